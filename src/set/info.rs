//! `bloom_set_info`: how full a set is, and whether its rows are the leaves of a tree.

use super::table::{Purpose, Set};
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::sql::{Parameter, Prepared, ResultRow, Sees, connected};
use crate::pg::value::row::{ResultColumn, row};
use pg_bloom_core::memory;
use pg_bloom_core::set::Row;
use pg_bloom_core::set::tree::{self, Flaw};
use pgrx::pg_sys;

/// `bloom_set_info(set)`; forgotten hashes don't count.
fn info(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else { return Ok(None) };
    let set = Set::open(call, oid, Purpose::Ask)?;
    let (form, made_for, now) = (set.known.form, &set.known.parameters, set.now());
    let (mut buckets, mut oldest) = (Vec::new(), None);
    let note = |rows: Vec<Row>| {
        let mut hashes = 0;
        for row in &rows {
            memory::push(&mut buckets, row.bucket);
            let remembered = row.entries.iter().map(|entry| entry.slice).filter(|&slice| form.remembers(slice, now));
            hashes += remembered.clone().count();
            oldest = remembered.map(|slice| slice.min(now)).chain(oldest).min();
        }
        Ok(hashes)
    };
    let hashes = connected(|| set.pages(Sees::CallingQuery, note))?;
    tree::check(&mut buckets).map_err(|flaw| match flaw {
        Flaw::Gap(hash) => set.missing(tree::covering(hash, set.known.depth.get().unwrap_or(tree::FIRST_DEPTH))),
        Flaw::Overlap(a, b) => set.ambiguous(a, b),
    })?;
    let rate = form.rate(hashes as f64);
    let oldest = set.known.slice.zip(oldest).map(|(slice, oldest)| oldest.saturating_mul(slice));
    let columns = [
        ResultColumn::Oid(made_for.element),
        ResultColumn::F64(hashes as f64),
        made_for.capacity.map_or(ResultColumn::Null, |capacity| ResultColumn::I64(capacity as i64)),
        ResultColumn::F64(made_for.fpr),
        ResultColumn::F64(rate),
        ResultColumn::I32(buckets.len() as i32),
        ResultColumn::I64(bytes(&set)?),
        ResultColumn::Bool(rate > made_for.fpr),
        made_for.keep.map_or(ResultColumn::Null, ResultColumn::Interval),
        oldest.map_or(ResultColumn::Null, ResultColumn::Time),
    ];
    Ok(Some(row(call, &columns)))
}

/// Bytes on disk of a set with its indexes and partitions.
fn bytes(set: &Set) -> Result<i64> {
    const SIZE: &[u8] = b"SELECT COALESCE((SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(relid)) \
        FROM pg_catalog.pg_partition_tree($1)), pg_catalog.pg_total_relation_size($1))::pg_catalog.int8";
    let mut bytes = 0;
    let size = Prepared::new(&[SIZE], &[pg_sys::OIDOID])?;
    let each = |row: &ResultRow| {
        bytes = row.column(1, pg_sys::INT8OID)?.map_or(0, |datum| datum.value() as i64);
        Ok(())
    };
    connected(|| size.execute(&[Parameter::Oid(set.oid)], Sees::CallingQuery, each))?;
    Ok(bytes)
}

pg_functions! {
    bloom_set_info => info;
}
