//! `bloom_set_create`, and `bloom_set_check`, the constraint of every row of a set.

use super::clear::insert_first_rows;
use super::parameters::{Parameters, kind_code, time_slice_length};
use super::table::{Purpose, Set};
use crate::element::ElementType;
use crate::error::invalid_parameter;
use crate::pg::call::error::notice;
use crate::pg::call::{Call, Error, Outcome, Result, SqlState};
use crate::pg::catalog;
use crate::pg::sql::{NewName, Sees, execute, qualified, require_writable};
use crate::pg::value::time::Interval;
use crate::settings;
use pg_bloom_core::Layout;
use pg_bloom_core::set::form::DEFAULT_CAPACITY;
use pg_bloom_core::set::{Row, SetForm};
use pg_bloom_core::sizing::{self, GREATEST_FPR};
use pgrx::pg_sys::Datum;

/// The share of each page that new rows fill, in percent. With less of a page free for the next
/// versions of its rows, batches that change all rows double the size of the table.
const FILLFACTOR: &str = "70";

/// Implements `bloom_set_create(name, element, capacity, fpr, keep, renew, if_not_exists)`: creates
/// the table of a filter set, fills it with the rows of a set without elements, and returns the
/// table's identifier. With `if_not_exists`, an equal set with this name is left as it is: its
/// identifier is returned, with a notice.
///
/// Fails with 22004 or 22023 for arguments that no set can have, with 0A000 for a type that
/// elements can't have, with 54000 for a capacity that is too large for the rate, with 25006 in a
/// transaction that may only read, and with 42P07 if the name belongs to anything else.
fn create(call: &Call) -> Outcome {
    let name = required(call.value(0), "name")?;
    let made_for = requested_parameters(call)?;
    let form = requested_form(&made_for)?;
    let is_conditional = call.datum(6).is_some_and(|datum| datum.value() != 0);

    require_writable(c"CREATE TABLE");
    let new = NewName::parse(&name);
    // Of sessions that create a set of one name, one does so. The others wait here for the end of
    // its transaction, and then see the set.
    new.lock(call.function()?);
    if is_conditional
        && let Some(existing) = new.relation()
        && let Ok(set) = Set::lock(call, existing, Purpose::Ask)
    {
        require_same(&set, &made_for)?;
        notice(Error::new(
            SqlState::ERRCODE_DUPLICATE_TABLE,
            format!("filter set {} already exists, skipping", set.quoted_name()),
        ));
        return Ok(Some(Datum::from(existing)));
    }

    // If the name belongs to anything else than a set, this fails.
    create_table(call, &new, &made_for)?;
    insert_first_rows(&new.qualified(), form)?;
    Ok(new.relation().map(Datum::from))
}

/// Returns the parameters of the set that the arguments of `bloom_set_create` ask for: the type of
/// its elements, how many it can have (argument 2), at which false positive rate (3), for how long
/// it remembers them (4), and whether adding an element again renews its time (5). If no
/// rate is given, the setting `pg_bloom.default_fpr` is used.
///
/// Fails with 22004 if the type is NULL, with 22023 for values that no set can have, and with 0A000
/// for a type that elements can't have.
fn requested_parameters(call: &Call) -> Result<Parameters> {
    let element = required(call.oid(1), "element type")?;
    let capacity = call.i64(2).map(check_capacity).transpose()?;
    let fpr = call.f64(3).unwrap_or_else(|| settings::DEFAULT_FPR.get());
    // SAFETY: the argument is declared to be an interval.
    let keep = call.datum(4).map(|datum| unsafe { Interval::of(datum) });
    let renews = call.datum(5).is_some_and(|datum| datum.value() != 0);
    check_fpr(fpr)?;
    check_keep(keep, renews)?;

    let element_type = ElementType::of_later_elements(call, element)?;
    let kind = kind_code(&element_type);
    Ok(Parameters { element, kind, capacity, fpr, keep, renews })
}

/// Returns how the rows of a requested set are stored: how many bits of each hash they keep, and
/// whether they keep times. Fails with 54000 if the capacity at this rate would need more than 60
/// bits of each hash.
fn requested_form(made_for: &Parameters) -> Result<SetForm> {
    let capacity = made_for.capacity_or_default();
    let fpr = made_for.fpr;
    made_for.form().ok_or_else(|| {
        let message = format!(
            "a filter set cannot hold {capacity} elements at a false positive rate of {fpr:e}"
        );
        Error::new(SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
            .detail("Capacity divided by rate must be at most 2^60.")
            .hint("Use a smaller capacity or a higher rate.")
    })
}

/// Creates the table of a set, without rows: the columns `bucket` (the primary key) and `hashes`,
/// and a CHECK constraint that calls `bloom_set_check` for each row. The further arguments of this
/// call are constants, the set's parameters: this is where a set stores them.
///
/// Fails if PostgreSQL doesn't create the table: with 42P07 if the name is taken.
fn create_table(call: &Call, new: &NewName, made_for: &Parameters) -> Result<()> {
    let own_schema = catalog::namespace_of_function(call.function()?);
    let set_check = qualified(own_schema, c"bloom_set_check").unwrap_or_default();
    let Parameters { element, kind, capacity, fpr, keep, renews } = *made_for;
    let arguments = format!(
        "'{}'::pg_catalog.regtype, '{kind}'::pg_catalog.int8, {}::pg_catalog.int8, '{fpr}'::pg_catalog.float8, \
         {}::pg_catalog.interval, {renews}",
        element.to_u32(),
        capacity.map_or("NULL".into(), |capacity| format!("'{capacity}'")),
        keep.map_or("NULL".into(), |keep| format!("'{keep}'")),
    );
    // A bare call in CHECK is misread by tools that expect two pairs of parentheses around a
    // condition, as pg_get_constraintdef writes it for every other expression: ActiveRecord and
    // drizzle-kit.
    let statement: [&[u8]; 9] = [
        b"CREATE TABLE ",
        &new.qualified(),
        b" (bucket pg_catalog.int8 PRIMARY KEY, hashes pg_catalog.bytea NOT NULL, CONSTRAINT filter_set CHECK (",
        &set_check,
        b"(bucket, hashes, ",
        arguments.as_bytes(),
        b") IS TRUE)) WITH (fillfactor = ",
        FILLFACTOR.as_bytes(),
        b")",
    ];
    execute(&statement, &[], Sees::Now, |_| Ok(()))?;
    Ok(())
}

/// Checks that an existing set was made with the parameters that the caller wants. Fails with 42P07
/// if not; the message names the first parameter that differs.
fn require_same(existing: &Set, wanted: &Parameters) -> Result<()> {
    let Some(difference) = difference(&existing.parameters, wanted) else {
        return Ok(());
    };
    let message = format!("relation {} already exists", existing.quoted_name());
    Err(Error::new(SqlState::ERRCODE_DUPLICATE_TABLE, message)
        .detail(format!("It is a filter set that was made for something else: its {difference}."))
        .hint("Ask for a set as it is, or choose another name."))
}

/// Returns the first parameter in which an existing set differs from a wanted one, as the end of a
/// sentence that begins "It is a set … its", with both values: "capacity is 1000, not 2000". `None`
/// if the sets have equal parameters.
fn difference(existing: &Parameters, wanted: &Parameters) -> Option<String> {
    let capacity = existing.capacity_or_default();
    let wanted_capacity = wanted.capacity_or_default();
    // Intervals of different forms may be equally long.
    let length_of_keep = |set: &Parameters| set.keep.and_then(|keep| keep.microseconds());

    if existing.element != wanted.element {
        let type_name = catalog::display_name(existing.element);
        let wanted_name = catalog::display_name(wanted.element);
        Some(format!("elements are of type {type_name}, not {wanted_name}"))
    } else if existing.kind != wanted.kind {
        let type_name = catalog::display_name(existing.element);
        Some(format!("elements are of type {type_name} as that was before it was altered"))
    } else if capacity != wanted_capacity {
        Some(format!("capacity is {capacity}, not {wanted_capacity}"))
    } else if existing.fpr != wanted.fpr {
        Some(format!("false positive rate is {}, not {}", existing.fpr, wanted.fpr))
    } else if length_of_keep(existing) != length_of_keep(wanted) {
        let shown = |set: &Parameters| set.keep.map_or("null".into(), |keep| keep.shown());
        Some(format!("\"keep\" is {}, not {}", shown(existing), shown(wanted)))
    } else if existing.renews != wanted.renews {
        Some(format!("\"renew\" is {}, not {}", existing.renews, wanted.renews))
    } else {
        None
    }
}

/// Checks that a set can be made for this false positive rate. Fails with 22023 if not.
fn check_fpr(fpr: f64) -> Result<()> {
    sizing::check_fpr(Layout::Blocked, fpr).map_err(|error| {
        let error = Error::from(error);
        let is_too_small = fpr > 0.0 && fpr < GREATEST_FPR;
        if is_too_small {
            error.hint("A set has this rate at its capacity, and a lower one before: give a larger capacity.")
        } else {
            error
        }
    })
}

/// Checks for how long a set is to remember its elements; `None` if it doesn't forget them. The
/// time is divided into eight time slices, so it can be too short or too long. Fails with 22023 if
/// it is, and if `renews` is set without a time: only a set that forgets can renew elements.
fn check_keep(keep: Option<Interval>, renews: bool) -> Result<()> {
    match keep {
        None if renews => Err(invalid_parameter("elements of a filter set can only be renewed if they are forgotten")
            .hint("Say for how long it remembers: keep => '7 days'.")),
        Some(keep) if time_slice_length(keep).is_none() => {
            Err(invalid_parameter(format!("a filter set cannot remember for {}", keep.shown()))
                .detail("It remembers for at least 8 milliseconds, and at most 10,000 years. A month has 30 days."))
        }
        _ => Ok(()),
    }
}

/// Returns a capacity if a set can have it. Fails if not (22023).
fn check_capacity(capacity: i64) -> Result<u64> {
    if capacity > 0 {
        return Ok(capacity as u64);
    }
    let message = format!("capacity of a filter set must be at least 1, not {capacity}");
    Err(invalid_parameter(message)
        .hint("The capacity is the number of elements at which the rate is reached; without it, ten billion."))
}

/// Returns the value of an argument of the SQL function that must not be NULL. `what` names it in
/// the message. Fails with 22004 for NULL.
fn required<T>(argument: Option<T>, what: &str) -> Result<T> {
    argument.ok_or_else(|| {
        Error::new(
            SqlState::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            format!("{what} of a filter set must not be null"),
        )
    })
}

/// Implements `bloom_set_check(bucket, hashes, element, kind, capacity, fpr, keep, renew)`, which
/// the CHECK constraint of a set's table calls for each row: returns whether `hashes` can be parsed
/// as the row with the number `bucket` of a set with these parameters.
///
/// Only `capacity`, `fpr` and `keep` decide about the stored form of rows; the other parameters are
/// here to be stored in the constraint. A capacity that is NULL stands for ten billion. Returns
/// NULL if the bucket, the hashes or the rate is NULL.
fn check(call: &Call) -> Outcome {
    let (Some(bucket), Some(hashes), Some(fpr)) = (call.i64(0), call.value(1), call.f64(5)) else {
        return Ok(None);
    };
    let capacity = match call.i64(4) {
        Some(capacity) => capacity.max(1) as u64,
        None => DEFAULT_CAPACITY,
    };
    let forgets = call.datum(6).is_some();
    let belongs = SetForm::fewest_bits(capacity, fpr).is_some_and(|bits| {
        let form = SetForm { bits, forgets };
        Row::parse(form, bucket, &hashes).is_ok()
    });
    Ok(Some(Datum::from(belongs)))
}

pg_functions! {
    bloom_set_create => create;
    bloom_set_check => check;
}
