//! `bloom_set_info`: how full a set is.

use super::fill::Rates;
use super::items::MOST_SHARDS_AT_ONCE;
use super::table::{Purpose, Set};
use crate::pg::call::Call;
use crate::pg::call::error::Outcome;
use crate::pg::sql::{Sees, connected};
use crate::pg::value::row::{Column, row};
use pg_bloom_core::View;

/// `bloom_set_info(set)`.
fn info(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else { return Ok(None) };
    let set = Set::open(call, oid, Purpose::Ask)?;
    let made_for = set.parameters();
    let mut rates = Rates::default();
    for first in (0..made_for.shards).step_by(MOST_SHARDS_AT_ONCE) {
        let end = first.saturating_add(MOST_SHARDS_AT_ONCE as u32).min(made_for.shards);
        let shards: Vec<u32> = (first..end).collect();
        connected(|| {
            set.read(&shards, Sees::CallingQuery, |_, filter| {
                rates.add(&View::parse_trusted(filter.bytes())?);
                Ok(())
            })
        })?;
    }
    let columns = [
        Column::Oid(made_for.element),
        Column::F64(rates.elements),
        Column::I64(made_for.capacity as i64),
        Column::F64(made_for.fpr),
        Column::F64(rates.mean()),
        Column::I32(made_for.shards as i32),
        Column::I64(set.bytes()?),
        Column::Bool(rates.is_overfull(&set)),
    ];
    Ok(Some(row(call, &columns)))
}

pg_functions! {
    bloom_set_info => info;
}
