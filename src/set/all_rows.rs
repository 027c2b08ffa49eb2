//! What reads all rows of a set: `bloom_set_info`, how full it is, and whether its rows are the
//! leaves of a tree; and `bloom_set_expire`, which drops what it has forgotten, and joins rows that
//! became small.

use super::rows::Replacement;
use super::table::{Purpose, Set};
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::sql::{Parameter, Sees, connected, execute};
use crate::pg::value::row::{ResultColumn, row};
use pg_bloom_core::memory;
use pg_bloom_core::set::Row;
use pg_bloom_core::set::row::MOST_BYTES;
use pg_bloom_core::set::tree::{self, Flaw};
use pgrx::pg_sys::{self, Datum};

/// `bloom_set_info(set)`; forgotten hashes don't count.
fn info(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else {
        return Ok(None);
    };
    let set = Set::open(call, oid, Purpose::Ask)?;
    let (form, made_for, now) = (set.form, &set.parameters, set.now());
    let (mut buckets, mut oldest) = (Vec::new(), None);
    let note = |rows: Vec<Row>| {
        let mut hashes = 0;
        for row in &rows {
            memory::push(&mut buckets, row.bucket);
            let remembered = row
                .entries
                .iter()
                .map(|entry| entry.slice)
                .filter(|&slice| form.remembers(slice, now));
            hashes += remembered.clone().count();
            oldest = remembered.map(|slice| slice.min(now)).chain(oldest).min();
        }
        Ok(hashes)
    };
    let hashes = connected(|| set.each_page(Sees::CallingQuery, note))?;
    tree::check(&mut buckets).map_err(|flaw| match flaw {
        Flaw::Gap(hash) => {
            set.missing(tree::covering(hash, set.depth.get().unwrap_or(tree::FIRST_DEPTH)))
        }
        Flaw::Overlap(a, b) => set.ambiguous(a, b),
    })?;
    let rate = form.rate(hashes as f64);
    let oldest = set
        .slice
        .zip(oldest)
        .map(|(slice, oldest)| oldest.saturating_mul(slice));
    let columns = [
        ResultColumn::Oid(made_for.element),
        ResultColumn::F64(hashes as f64),
        made_for
            .capacity
            .map_or(ResultColumn::Null, |capacity| ResultColumn::I64(capacity as i64)),
        ResultColumn::F64(made_for.fpr),
        ResultColumn::F64(rate),
        ResultColumn::I32(buckets.len() as i32),
        ResultColumn::I64(bytes(&set)?),
        ResultColumn::Bool(rate > made_for.fpr),
        made_for.keep.map_or(ResultColumn::Null, ResultColumn::Interval),
        oldest.map_or(ResultColumn::Null, ResultColumn::I64),
    ];
    Ok(Some(row(call, &columns)))
}

/// Bytes on disk of a set with its indexes and partitions.
fn bytes(set: &Set) -> Result<i64> {
    const SIZE: &[u8] = b"SELECT COALESCE((SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(relid)) \
        FROM pg_catalog.pg_partition_tree($1)), pg_catalog.pg_total_relation_size($1))::pg_catalog.int8";
    let mut bytes = 0;
    execute(&[SIZE], &[Parameter::Oid(set.oid)], Sees::CallingQuery, |row| {
        bytes = row.number(1, pg_sys::INT8OID)?.unwrap_or(0);
        Ok(())
    })?;
    Ok(bytes)
}

/// `bloom_set_expire(set)`: returns how many hashes it dropped. It waits for no row, and leaves out
/// those that others have locked, so that it needs no order of locks.
fn expire(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else {
        return Ok(None);
    };
    let set = Set::open(call, oid, Purpose::Remove)?;
    let mut forgotten = 0;
    connected(|| {
        // Each pass joins one level of the tree.
        while set.each_page(Sees::Now, |rows| improve(&set, rows, &mut forgotten))? > 0 {}
        Ok(())
    })?;
    Ok(Some(Datum::from(forgotten as i64)))
}

/// Rewrites those of some rows that need it, and returns how many halves it joined.
fn improve(set: &Set, rows: Vec<Row>, forgotten: &mut usize) -> Result<usize> {
    let first = improved(set, rows);
    let Replacement { deleted, updated, .. } = &first.replacement;
    let wanted = deleted.iter().copied().chain(updated.iter().map(|row| row.bucket));
    let wanted: Vec<u64> = memory::collect(wanted);
    if wanted.is_empty() {
        return Ok(0);
    }
    let mut rows =
        set.fetch_rows(&set.changes()?.lock_free, Parameter::I64s(&wanted), Sees::Now)?;
    rows.sort_unstable_by_key(|row| row.bucket);
    let Improved { forgotten: dropped, replacement } = improved(set, rows);
    let joined = replacement.inserted.len();
    set.replace(replacement)?;
    *forgotten += dropped;
    Ok(joined)
}

/// What is to be written in place of some rows, and how many hashes these have forgotten.
#[derive(Default)]
struct Improved {
    forgotten: usize,
    replacement: Replacement,
}

fn improved(set: &Set, rows: Vec<Row>) -> Improved {
    let (form, now) = (set.form, set.now());
    let mut improved = Improved::default();
    let mut rows = rows
        .into_iter()
        .map(|mut row| (row.forget(form, now), row))
        .peekable();
    while let Some((dropped, mut row)) = rows.next() {
        improved.forgotten += dropped;
        let next = rows.peek().filter(|_| tree::depth(row.bucket) > tree::FIRST_DEPTH);
        if let Some(parent) = next.and_then(|(_, next)| Row::join(&row, next, form, MOST_BYTES)) {
            improved.forgotten += rows.next().map_or(0, |(dropped, _)| dropped);
            memory::push(&mut improved.replacement.deleted, row.bucket);
            memory::push(&mut improved.replacement.deleted, row.bucket + 1);
            memory::push(&mut improved.replacement.inserted, parent);
        } else if dropped > 0 {
            row.rebase();
            memory::push(&mut improved.replacement.updated, row);
        }
    }
    improved
}

pg_functions! {
    bloom_set_info => info;
    bloom_set_expire => expire;
}
