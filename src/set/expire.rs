//! `bloom_set_expire`: drops what a set has forgotten, and joins rows that became small.

use super::table::{Purpose, Set};
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::sql::{Parameter, Sees, connected};
use pg_bloom_core::memory;
use pg_bloom_core::set::row::MOST_BYTES;
use pg_bloom_core::set::{Row, tree};
use pgrx::pg_sys::Datum;

/// `bloom_set_expire(set)`: returns how many hashes it dropped. It waits for no row, and leaves out those that others
/// have locked, so that it needs no order of locks.
fn expire(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else { return Ok(None) };
    let set = Set::open(call, oid, Purpose::Change)?;
    let mut forgotten = 0;
    connected(|| {
        // Each pass joins one level of the tree.
        while set.pages(Sees::Now, |rows| improve(&set, rows, &mut forgotten))? > 0 {}
        Ok(())
    })?;
    Ok(Some(Datum::from(forgotten as i64)))
}

/// Rewrites those of some rows that need it, and returns how many halves it joined.
fn improve(set: &Set, rows: Vec<Row>, forgotten: &mut usize) -> Result<usize> {
    let first = improved(set, rows);
    let wanted = first.gone.iter().copied().chain(first.updated.iter().map(|row| row.bucket));
    let wanted: Vec<u64> = memory::collect(wanted);
    if wanted.is_empty() {
        return Ok(0);
    }
    let mut rows = set.list(&set.changes()?.lock_free, Parameter::I64s(&wanted), Sees::Now)?;
    rows.sort_unstable_by_key(|row| row.bucket);
    let Improved { forgotten: dropped, gone, updated, inserted } = improved(set, rows);
    let joined = inserted.len();
    set.replace(gone, &updated, inserted)?;
    *forgotten += dropped;
    Ok(joined)
}

/// What is to be written in place of some rows.
#[derive(Default)]
struct Improved {
    forgotten: usize,
    gone: Vec<u64>,
    updated: Vec<Row>,
    inserted: Vec<Row>,
}

fn improved(set: &Set, rows: Vec<Row>) -> Improved {
    let (form, now) = (set.known.form, set.now());
    let mut improved = Improved::default();
    let mut rows = rows.into_iter().map(|mut row| (row.forget(form, now), row)).peekable();
    while let Some((dropped, mut row)) = rows.next() {
        improved.forgotten += dropped;
        let next = rows.peek().filter(|_| tree::depth(row.bucket) > tree::FIRST_DEPTH);
        if let Some(parent) = next.and_then(|(_, next)| Row::join(&row, next, form, MOST_BYTES)) {
            improved.forgotten += rows.next().map_or(0, |(dropped, _)| dropped);
            memory::push(&mut improved.gone, row.bucket);
            memory::push(&mut improved.gone, row.bucket + 1);
            memory::push(&mut improved.inserted, parent);
        } else if dropped > 0 {
            row.rebase();
            memory::push(&mut improved.updated, row);
        }
    }
    improved
}

pg_functions! {
    bloom_set_expire => expire;
}
