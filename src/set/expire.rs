//! `bloom_set_expire`: drops what a set has forgotten, and joins rows that became small.

use super::rows::MOST_ROWS_AT_ONCE;
use super::table::{Purpose, Set};
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::call::interrupt;
use crate::pg::sql::{Sees, connected};
use pg_bloom_core::memory;
use pg_bloom_core::set::row::MOST_BYTES;
use pg_bloom_core::set::{Row, tree};
use pgrx::pg_sys::Datum;

/// `bloom_set_expire(set)`: returns how many hashes it dropped. It waits for no row, and leaves out those that others
/// have locked, so that it needs no order of locks.
fn expire(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else { return Ok(None) };
    let set = Set::open(call, oid, Purpose::Change)?;
    let forgotten = connected(|| {
        let mut forgotten = 0;
        // Each pass joins one level of the tree.
        while pass(&set, &mut forgotten)? > 0 {}
        Ok(forgotten)
    })?;
    Ok(Some(Datum::from(forgotten as i64)))
}

/// Goes through all rows, and returns how many halves it joined.
fn pass(set: &Set, forgotten: &mut usize) -> Result<usize> {
    let (mut after, mut joined) = (0, 0);
    loop {
        let mut rows = set.page(after, Sees::Now)?;
        let is_last = rows.len() < MOST_ROWS_AT_ONCE;
        // The other half may be in the next page.
        if !is_last && rows.last().is_some_and(|row| row.bucket & 1 == 0) {
            rows.pop();
        }
        let Some(last) = rows.last() else { return Ok(joined) };
        after = last.bucket;
        joined += improve(set, rows, forgotten)?;
        if is_last {
            return Ok(joined);
        }
        interrupt::check_for_interrupts();
    }
}

/// Rewrites those of some rows that need it.
fn improve(set: &Set, rows: Vec<Row>, forgotten: &mut usize) -> Result<usize> {
    let improved = Improved::of(set, rows);
    let wanted = improved.gone.iter().copied().chain(improved.updated.iter().map(|row| row.bucket));
    let wanted: Vec<u64> = memory::collect(wanted);
    if wanted.is_empty() {
        return Ok(0);
    }
    let mut rows = set.list(&set.changes()?.lock_free, &wanted, Sees::Now)?;
    rows.sort_unstable_by_key(|row| row.bucket);
    let Improved { forgotten: dropped, gone, updated, inserted } = Improved::of(set, rows);
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

impl Improved {
    fn of(set: &Set, rows: Vec<Row>) -> Improved {
        let (form, now) = (set.known.form, set.now());
        let mut improved = Improved::default();
        let mut rows = rows.into_iter().peekable();
        while let Some(mut row) = rows.next() {
            let dropped = row.forget(form, now);
            improved.forgotten += dropped;
            let is_deep = tree::depth(row.bucket) > tree::FIRST_DEPTH;
            if let Some(mut other) = rows.next_if(|other| is_deep && other.bucket == row.bucket ^ 1) {
                let also_dropped = other.forget(form, now);
                improved.forgotten += also_dropped;
                if let Some(parent) = Row::join(&row, &other, form, MOST_BYTES) {
                    memory::push(&mut improved.gone, row.bucket);
                    memory::push(&mut improved.gone, other.bucket);
                    memory::push(&mut improved.inserted, parent);
                    continue;
                }
                improved.update(other, also_dropped);
            }
            improved.update(row, dropped);
        }
        improved
    }

    /// Notes that a row is to be written if something was dropped from it.
    fn update(&mut self, mut row: Row, dropped: usize) {
        if dropped > 0 {
            row.rebase();
            memory::push(&mut self.updated, row);
        }
    }
}

pg_functions! {
    bloom_set_expire => expire;
}
