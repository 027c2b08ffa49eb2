//! `bloom_set_info`: how full a set is.

use super::table::{Constraint, Set};
use crate::pg::call::Call;
use crate::pg::error::{Outcome, Result};
use crate::pg::open_table::Access;
use crate::pg::row::{Column, row};
use crate::pg::{interrupt, snapshot};
use pg_bloom_core::filter::{estimate, overfull};
use pg_bloom_core::{Header, View};
use pgrx::pg_sys;

/// What the filters of a set say together.
#[derive(Default)]
struct Sum {
    elements: f64,
    rates: f64,
    blocks: u64,
    num_hashes: u32,
}

/// `bloom_set_info(set)`.
fn info(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else { return Ok(None) };
    let constraint = call.remembered(|| Ok(Constraint::default()))?;
    let set = Set::open(call, oid, Access::Read, constraint)?;
    let sum = snapshot::with_current(|snapshot| sum(&set, snapshot))?;
    let made_for = set.parameters;
    let current_fpr = sum.rates / f64::from(made_for.shards);
    let columns = [
        Column::Oid(made_for.element),
        Column::F64(sum.elements),
        Column::I64(made_for.capacity as i64),
        Column::F64(made_for.fpr),
        Column::F64(current_fpr),
        Column::I32(made_for.shards as i32),
        Column::I64(set.bytes() as i64),
        Column::Bool(overfull::is_overfull(&sum.header(&set), made_for.capacity, current_fpr)),
    ];
    set.close();
    Ok(Some(row(call, &columns)))
}

fn sum(set: &Set, snapshot: pg_sys::Snapshot) -> Result<Sum> {
    let mut rows = set.rows(snapshot);
    let mut sum = Sum::default();
    for shard in 0..set.parameters.shards {
        interrupt::check_for_interrupts();
        if !rows.find(shard as i32) {
            return Err(set.missing(shard));
        }
        let value = rows.value();
        let view = View::parse_trusted(value.bytes())?;
        sum.elements += estimate::cardinality(&view);
        sum.rates += estimate::current_fpr(&view);
        sum.blocks += view.header.blocks;
        sum.num_hashes = view.header.num_hashes;
        value.free();
    }
    rows.end();
    Ok(sum)
}

impl Sum {
    /// The one filter whose rate the mean of all shards has.
    fn header(&self, set: &Set) -> Header<'static> {
        let unsized_ = Header::unsized_(pg_bloom_core::Layout::Blocked, set.parameters.fpr);
        Header { num_hashes: self.num_hashes, blocks: self.blocks, base_blocks: self.blocks, ..unsized_ }
    }
}

pg_functions! {
    bloom_set_info => info;
}
