//! `bloom_set_create`, and `bloom_set_check`, the constraint of every row of a set.

use super::clear::insert_first_rows;
use super::table::{kind_code, slice_of};
use crate::element::ElementType;
use crate::error::invalid_parameter;
use crate::pg::call::{Call, Error, Outcome, Result, SqlState};
use crate::pg::catalog;
use crate::pg::sql::{NewName, Parameter, Sees, execute, qualified};
use crate::pg::value::time::Interval;
use crate::settings;
use pg_bloom_core::set::tree::DEFAULT_CAPACITY;
use pg_bloom_core::set::{Form, Row};
use pg_bloom_core::{Layout, sizing};
use pgrx::pg_sys::Datum;

/// With less of each page free for the next versions of its rows, batches that change all rows
/// double the size.
const FILLFACTOR: &str = "70";

/// `bloom_set_create(name, element, capacity, fpr, keep, renew)`.
#[rustfmt::skip]
fn create(call: &Call) -> Outcome {
    let name = required(call.value(0), "name")?;
    let element = required(call.oid(1), "element type")?;
    let capacity = call.i64(2).map(check_capacity).transpose()?;
    let fpr = call.f64(3).unwrap_or_else(|| settings::DEFAULT_FPR.get());
    // SAFETY: the argument is declared to be an interval.
    let keep = call.datum(4).map(|datum| unsafe { Interval::of(datum) });
    let renews = call.datum(5).is_some_and(|datum| datum.value() != 0);
    sizing::check_fpr(Layout::Blocked, fpr)?;
    check_keep(keep, renews)?;
    let most = capacity.unwrap_or(DEFAULT_CAPACITY);
    let form = Form::new(most, fpr, keep.is_some()).ok_or_else(|| {
        let message = format!("a filter set cannot hold {most} elements at a false positive rate of {fpr:e}");
        Error::new(SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
            .detail("Capacity divided by rate must be at most 2^60.")
            .hint("Use a smaller capacity or a higher rate.")
    })?;
    let element_type = ElementType::of_later_elements(call, element)?;
    let arguments = format!(
        "'{}'::pg_catalog.regtype, '{}'::pg_catalog.int8, {}::pg_catalog.int8, '{fpr}'::pg_catalog.float8, \
         {}::pg_catalog.interval, {renews}",
        element.to_u32(),
        kind_code(&element_type),
        capacity.map_or("NULL".into(), |capacity| format!("'{capacity}'")),
        keep.map_or("NULL".into(), |keep| format!("'{keep}'")),
    );
    let new = NewName::parse(&name);
    let own_schema = catalog::namespace_of_function(call.function()?);
    let (table, set_check) = (new.qualified(), qualified(own_schema, c"bloom_set_check").unwrap_or_default());
    let execute = |sql: &[&[u8]], values: &[Parameter<'_>]| execute(sql, values, Sees::Now, |_| Ok(()));
    // A bare call in CHECK is misread by tools that expect two pairs of parentheses around a condition,
    // as pg_get_constraintdef writes it for every other expression: ActiveRecord and drizzle-kit.
    execute(
        &[
            b"CREATE TABLE ", &table, b" (bucket pg_catalog.int8 PRIMARY KEY, hashes pg_catalog.bytea NOT NULL, ",
            b"CONSTRAINT filter_set CHECK (", &set_check, b"(bucket, hashes, ", arguments.as_bytes(), b") IS TRUE)) ",
            b"WITH (fillfactor = ", FILLFACTOR.as_bytes(), b")",
        ],
        &[],
    )?;
    insert_first_rows(&table, form)?;
    Ok(new.relation().map(Datum::from))
}

/// Checks that the time for which a set remembers can be cut into slices.
fn check_keep(keep: Option<Interval>, renews: bool) -> Result<()> {
    match keep {
        None if renews => Err(invalid_parameter("elements of a filter set can only be renewed if they are forgotten")
            .hint("Say for how long it remembers: keep => '7 days'.")),
        Some(keep) if slice_of(keep).is_none() => {
            Err(invalid_parameter(format!("a filter set cannot remember for {}", keep.shown()))
                .detail("It remembers for at least 8 milliseconds, and at most 10,000 years. A month has 30 days."))
        }
        _ => Ok(()),
    }
}

fn check_capacity(capacity: i64) -> Result<u64> {
    u64::try_from(capacity).ok().filter(|&capacity| capacity > 0).ok_or_else(|| {
        invalid_parameter(format!("capacity of a filter set must be at least 1, not {capacity}"))
            .hint("The capacity is the number of elements at which the rate is reached; without it, ten billion.")
    })
}

/// An argument that can't be NULL.
fn required<T>(argument: Option<T>, what: &str) -> Result<T> {
    argument.ok_or_else(|| {
        Error::new(
            SqlState::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            format!("{what} of a filter set must not be null"),
        )
    })
}

/// `bloom_set_check(bucket, hashes, element, kind, capacity, fpr, keep, renew)`.
fn check(call: &Call) -> Outcome {
    let (Some(bucket), Some(hashes), Some(fpr)) = (call.i64(0), call.value(1), call.f64(5)) else {
        return Ok(None);
    };
    let capacity = call
        .i64(4)
        .map_or(DEFAULT_CAPACITY, |capacity| capacity.max(1) as u64);
    let form = Form::new(capacity, fpr, call.datum(6).is_some());
    let belongs = form.is_some_and(|form| Row::parse(form, bucket, &hashes).is_ok());
    Ok(Some(Datum::from(belongs)))
}

pg_functions! {
    bloom_set_create => create;
    bloom_set_check => check;
}
