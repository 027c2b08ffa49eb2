//! `bloom_set_create`, and `bloom_set_check`, which every row of a set meets.

use crate::element::ElementType;
use crate::error::invalid_parameter;
use crate::pg::call::Call;
use crate::pg::call::error::{Error, Outcome, Result, SqlState};
use crate::pg::catalog;
use crate::pg::sql::{NewName, execute, namespace};
use crate::pg::value::varlena::PgBuffer;
use crate::settings;
use pg_bloom_core::filter::build;
use pg_bloom_core::filter::shards::{shard_capacity, shards};
use pg_bloom_core::{Layout, View, sizing};
use pgrx::pg_sys::{self, Datum};

/// Half of each page is free at first: as much as its rows take once more, for their next versions.
const FILLFACTOR: u32 = 50;

/// `bloom_set_create(name, element, capacity, fpr)`.
fn create(call: &Call) -> Outcome {
    let name = required(call.datum(0), "name")?;
    let element = required(call.oid(1), "element type")?;
    let capacity = check_capacity(required(call.i64(2), "capacity")?)?;
    let fpr = call.f64(3).unwrap_or_else(settings::default_fpr);
    sizing::check_fpr(Layout::Blocked, fpr)?;
    let element_type = ElementType::of_later_elements(call, element)?;
    let (shards, header) = shards(capacity, fpr, element_type.kind(Layout::Blocked))?;
    header.check_size(settings::max_filter_bytes())?;

    let name = NewName::parse(name);
    let table = name.qualified();
    let table = table.as_slice();
    let function = call.function()?;
    let own = namespace(catalog::namespace_of_function(function));
    let arguments = format!(
        "'{}'::pg_catalog.regtype, {shards}, '{capacity}'::pg_catalog.int8, '{fpr}'::pg_catalog.float8",
        element.to_u32()
    );
    let (own, arguments) = (own.as_slice(), arguments.as_bytes());
    let fillfactor = FILLFACTOR.to_string();
    #[rustfmt::skip]
    execute(
        &[
            b"CREATE TABLE ", table, b" (shard pg_catalog.int4 PRIMARY KEY, filter ", own, b".bloom NOT NULL, ",
            b"CONSTRAINT filter_set CHECK (", own, b".bloom_set_check(shard, filter, ", arguments, b"))) ",
            b"WITH (fillfactor = ", fillfactor.as_bytes(), b")",
        ],
        &[],
    )?;
    let empty = build::empty::<PgBuffer>(&header).into_datum();
    let last = Datum::from(shards as i32 - 1);
    execute(
        &[b"INSERT INTO ", table, b" SELECT i, $1 FROM pg_catalog.generate_series(0, $2) AS i"],
        &[(catalog::type_beside(function, c"bloom"), empty), (pg_sys::INT4OID, last)],
    )?;
    Ok(name.relation().map(Datum::from))
}

fn check_capacity(capacity: i64) -> Result<u64> {
    u64::try_from(capacity).ok().filter(|&capacity| capacity > 0).ok_or_else(|| {
        invalid_parameter(format!("capacity of a filter set must be at least 1, not {capacity}"))
            .hint("The capacity is the number of distinct elements expected; empty filters take some 80 bytes each.")
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

pg_functions! {
    bloom_set_create => create;
    bloom_set_check => check;
}
