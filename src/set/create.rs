//! `bloom_set_create`, and `bloom_set_check`, the constraint of every row of a set.

use super::statements::BOTH_NUMBERS;
use crate::element::ElementType;
use crate::error::invalid_parameter;
use crate::pg::call::Call;
use crate::pg::call::error::{Error, Outcome, Result, SqlState};
use crate::pg::catalog;
use crate::pg::sql::{NewName, execute, namespace};
use crate::pg::value::time::{self, Interval, Timestamp};
use crate::pg::value::varlena::PgBuffer;
use crate::settings;
use pg_bloom_core::filter::build;
use pg_bloom_core::filter::generations::{Plan, SLICES};
use pg_bloom_core::filter::shards::{shard_capacity, shards};
use pg_bloom_core::sizing::{self, limits};
use pg_bloom_core::{Header, Layout, View};
use pgrx::pg_sys::{self, Datum, Oid};

/// Half of each page is free at first, for the next versions of its rows.
const FILLFACTOR: u32 = 50;
/// The shortest slice of the time for which a set remembers, in microseconds.
const SHORTEST: Timestamp = 1000;

/// `bloom_set_create(name, element, capacity, fpr, keep, renew)`.
fn create(call: &Call) -> Outcome {
    let name = required(call.datum(0), "name")?;
    let element = required(call.oid(1), "element type")?;
    let capacity = call.i64(2).map(check_capacity).transpose()?;
    let fpr = call.f64(3).unwrap_or_else(settings::default_fpr);
    // SAFETY: the argument is declared to be an interval.
    let keep = call.datum(4).map(|datum| unsafe { Interval::of(datum) });
    let renews = call.datum(5).is_some_and(|datum| datum.value() != 0);
    sizing::check_fpr(Layout::Blocked, fpr)?;
    check_keep(keep, renews)?;
    let element_type = ElementType::of_later_elements(call, element)?;
    let kind = element_type.kind(Layout::Blocked);
    let new = NewSet {
        table: NewName::parse(name),
        function: call.function()?,
        own: namespace(catalog::namespace_of_function(call.function()?)),
    };
    match (Plan::new(capacity, fpr, keep.is_some()), capacity) {
        (Some(plan), _) => {
            if plan.fpr() < limits::least_fpr(Layout::Blocked) {
                return Err(fpr_too_low(&plan, fpr));
            }
            let (shards, header) = plan.shards(0, kind)?;
            let capacity = capacity.map_or("NULL".into(), |capacity| format!("'{capacity}'"));
            let keep = keep.map_or("NULL".into(), |keep| format!("'{keep}'"));
            new.create_generations(
                &format!(
                    "'{}'::pg_catalog.regtype, {capacity}::pg_catalog.int8, '{fpr}'::pg_catalog.float8, \
                     {keep}::pg_catalog.interval, {renews}",
                    element.to_u32()
                ),
                shards,
                &header,
            )?;
        }
        (None, capacity) => {
            let capacity = capacity.unwrap_or(0);
            let (shards, header) = shards(capacity, fpr, kind)?;
            let arguments = format!(
                "'{}'::pg_catalog.regtype, {shards}, '{capacity}'::pg_catalog.int8, '{fpr}'::pg_catalog.float8",
                element.to_u32()
            );
            new.create_shards(&arguments, shards, &header)?;
        }
    }
    Ok(new.table.relation().map(Datum::from))
}

/// A set that is to be made.
struct NewSet {
    table: NewName,
    /// The function that makes it.
    function: Oid,
    /// The extension's schema.
    own: Vec<u8>,
}

impl NewSet {
    /// Makes a table with one row for each shard.
    #[rustfmt::skip]
    fn create_shards(&self, arguments: &str, shards: u32, header: &Header<'_>) -> Result<()> {
        header.check_size(settings::max_filter_bytes())?;
        let (table, own, fillfactor) = (self.table.qualified(), &self.own[..], FILLFACTOR.to_string());
        execute(
            &[
                b"CREATE TABLE ", &table, b" (shard pg_catalog.int4 PRIMARY KEY, filter ", own, b".bloom NOT NULL, ",
                b"CONSTRAINT filter_set CHECK (", own, b".bloom_set_check(shard, filter, ", arguments.as_bytes(), b"))) ",
                b"WITH (fillfactor = ", fillfactor.as_bytes(), b")",
            ],
            &[],
        )?;
        let (empty, last) = self.rows(shards, header);
        execute(
            &[b"INSERT INTO ", &table, b" SELECT i, $1 FROM pg_catalog.generate_series(0, $2) AS i"],
            &[empty, last],
        )
    }

    /// Makes a table with the rows of the first generation.
    #[rustfmt::skip]
    fn create_generations(&self, arguments: &str, shards: u32, header: &Header<'_>) -> Result<()> {
        header.check_size(settings::max_filter_bytes())?;
        let (table, own, fillfactor) = (self.table.qualified(), &self.own[..], FILLFACTOR.to_string());
        execute(
            &[
                b"CREATE TABLE ", &table, b" (generation pg_catalog.int4, shard pg_catalog.int4, ",
                b"shards pg_catalog.int4 NOT NULL, changed pg_catalog.timestamptz NOT NULL, ",
                b"filter ", own, b".bloom NOT NULL, since pg_catalog.timestamptz, until pg_catalog.timestamptz, ",
                b"oldest pg_catalog.int4, PRIMARY KEY (generation, shard), CONSTRAINT filter_set CHECK (",
                own, b".bloom_set_check(generation, shard, shards, filter, ", arguments.as_bytes(), b"))) ",
                b"WITH (fillfactor = ", fillfactor.as_bytes(), b")",
            ],
            &[],
        )?;
        execute(&[b"CREATE UNIQUE INDEX ON ", &table, b" ((", BOTH_NUMBERS.as_bytes(), b"))"], &[])?;
        let (empty, last) = self.rows(shards, header);
        execute(
            &[
                b"INSERT INTO ", &table, b" (generation, shard, shards, changed, filter, since, oldest) ",
                b"SELECT 0, i, $3, $4, $1, CASE WHEN i OPERATOR(pg_catalog.=) 0 THEN $4 END, ",
                b"CASE WHEN i OPERATOR(pg_catalog.=) 0 THEN 0 END FROM pg_catalog.generate_series(0, $2) AS i",
            ],
            &[
                empty,
                last,
                (pg_sys::INT4OID, Datum::from(shards as i32)),
                (pg_sys::TIMESTAMPTZOID, Datum::from(time::now())),
            ],
        )
    }

    /// An empty filter and the last shard, as parameters of a statement.
    fn rows(&self, shards: u32, header: &Header<'_>) -> ((Oid, Datum), (Oid, Datum)) {
        let empty = build::empty::<PgBuffer>(header).into_datum();
        ((catalog::type_beside(self.function, c"bloom"), empty), (pg_sys::INT4OID, Datum::from(shards as i32 - 1)))
    }
}

/// Checks that the time for which a set remembers can be cut into slices.
fn check_keep(keep: Option<Interval>, renews: bool) -> Result<()> {
    let Some(keep) = keep else {
        if !renews {
            return Ok(());
        }
        return Err(invalid_parameter("elements of a filter set can only be renewed if they are forgotten")
            .hint("Say for how long it remembers: keep => '7 days'."));
    };
    let (now, slice) = (time::now(), keep.divided_by(SLICES));
    if keep.has_no_negative_part() && slice.after(now) >= now + SHORTEST && keep.before(now) <= now - SHORTEST {
        return Ok(());
    }
    Err(invalid_parameter(format!("a filter set must remember for at least 7 milliseconds, not {}", keep.shown()))
        .hint("The time is cut into seven slices."))
}

#[cold]
fn fpr_too_low(plan: &Plan, fpr: f64) -> Error {
    let least = limits::least_fpr(Layout::Blocked) * f64::from(plan.most_full());
    let message = "false positive rate of a filter set that grows or forgets must be at least";
    invalid_parameter(format!("{message} {least:.1e}, not {fpr:e}"))
        .detail(format!("It is the sum of the rates of {} generations.", plan.most_full()))
}

fn check_capacity(capacity: i64) -> Result<u64> {
    u64::try_from(capacity).ok().filter(|&capacity| capacity > 0).ok_or_else(|| {
        invalid_parameter(format!("capacity of a filter set must be at least 1, not {capacity}"))
            .hint("The capacity is the number of distinct elements expected. Without it the set grows.")
    })
}

/// An argument that can't be NULL.
fn required<T>(argument: Option<T>, what: &str) -> Result<T> {
    argument.ok_or_else(|| {
        Error::new(SqlState::ERRCODE_NULL_VALUE_NOT_ALLOWED, format!("{what} of a filter set must not be null"))
    })
}

/// `bloom_set_check(shard, filter, element, shards, capacity, fpr)`.
fn check(call: &Call) -> Outcome {
    let (Some(shard), Some(filter)) = (call.i32(0), call.value(1)) else { return Ok(None) };
    let (Some(shards), Some(capacity), Some(fpr)) = (call.i32(3), call.i64(4), call.f64(5)) else { return Ok(None) };
    let header = View::parse_trusted(filter.bytes())?.header;
    let belongs = (0..shards).contains(&shard)
        && header.layout == Layout::Blocked
        && header.capacity.elements() == Some(shard_capacity(capacity.max(0) as u64, shards as u64))
        && header.fpr == fpr
        && !header.kind.is_none();
    Ok(Some(Datum::from(belongs)))
}

/// `bloom_set_check(generation, shard, shards, filter, element, capacity, fpr, keep, renew)`.
fn check_generation(call: &Call) -> Outcome {
    let (Some(generation), Some(shard), Some(shards)) = (call.i32(0), call.i32(1), call.i32(2)) else {
        return Ok(None);
    };
    let (Some(filter), Some(fpr)) = (call.value(3), call.f64(6)) else { return Ok(None) };
    let capacity = call.i64(5).map(|capacity| capacity.max(1) as u64);
    let header = View::parse_trusted(filter.bytes())?.header;
    let plan = Plan::new(capacity, fpr, call.datum(7).is_some());
    let belongs = (0..i32::MAX).contains(&generation)
        && shards > 0
        && (0..=shards).contains(&shard)
        && header.layout == Layout::Blocked
        && !header.kind.is_none()
        && plan.is_some_and(|plan| plan.has(&header, shards as u32));
    Ok(Some(Datum::from(belongs)))
}

pg_functions! {
    bloom_set_create => create;
    bloom_set_check => check;
    bloom_set_check_generation => check_generation;
}
