//! What reads all rows of a set: `bloom_set_info`, how full it is, and whether its rows are the
//! leaves of a tree; and `bloom_set_expire`, which drops what it has forgotten, and joins rows that
//! became small.

use super::fullness::most_elements;
use super::rows::Replacement;
use super::table::{Purpose, Set};
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::memory::in_scratch;
use crate::pg::sql::{Parameter, Sees, connected, execute};
use crate::pg::value::row::{ResultColumn, row};
use pg_bloom_core::memory;
use pg_bloom_core::set::row::MOST_BYTES;
use pg_bloom_core::set::tree::{self, Flaw};
use pg_bloom_core::set::{Form, Row};
use pgrx::pg_sys::{self, Datum};

/// What `bloom_set_info` finds out by reading all rows of a set.
#[derive(Default)]
struct Totals {
    buckets: Vec<u64>,
    /// How many hashes the set remembers now.
    hashes: usize,
    /// The first time slice in which one of these was added.
    oldest: Option<i64>,
}

impl Totals {
    /// Adds a row of a set to the totals. `now` is the present time slice.
    fn add(&mut self, row: &Row, form: Form, now: i64) {
        memory::push(&mut self.buckets, row.bucket);
        for entry in &row.entries {
            if form.remembers(entry.slice, now) {
                self.hashes += 1;
                // A time slice in the future counts as the present one.
                let added_at = entry.slice.min(now);
                self.oldest = Some(self.oldest.map_or(added_at, |oldest| oldest.min(added_at)));
            }
        }
    }
}

/// `bloom_set_info(set)`: how full a set is. Fails if its rows aren't the leaves of one tree.
fn info(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else {
        return Ok(None);
    };
    let set = Set::open(call, oid, Purpose::Ask)?;
    let totals = totals_of_tree(&set)?;

    let made_for = &set.parameters;
    let rate = set.form.rate(totals.hashes as f64);
    let capacity = made_for.capacity.map(|capacity| capacity as i64);
    let oldest = set
        .slice
        .zip(totals.oldest)
        .map(|(slice, oldest)| oldest.saturating_mul(slice));
    let columns = [
        ResultColumn::Oid(made_for.element),
        ResultColumn::F64(totals.hashes as f64),
        capacity.map_or(ResultColumn::Null, ResultColumn::I64),
        ResultColumn::F64(made_for.fpr),
        ResultColumn::F64(rate),
        ResultColumn::I32(totals.buckets.len() as i32),
        ResultColumn::I64(bytes_on_disk(&set)?),
        ResultColumn::Bool(totals.hashes as f64 > most_elements(made_for, set.form)),
        made_for.keep.map_or(ResultColumn::Null, ResultColumn::Interval),
        oldest.map_or(ResultColumn::Null, ResultColumn::I64),
    ];
    Ok(Some(row(call, &columns)))
}

/// Reads all rows of a set with the snapshot of the calling query, and returns what they have in
/// all. Fails if a row is damaged, or if the rows aren't the leaves of one tree.
fn totals_of_tree(set: &Set) -> Result<Totals> {
    let form = set.form;
    let now = set.now();
    connected(|| {
        let mut totals = Totals::default();
        set.each_page(Sees::CallingQuery, |rows| {
            for row in &rows {
                totals.add(row, form, now);
            }
            Ok(0)
        })?;

        match tree::check(&mut totals.buckets) {
            Ok(()) => Ok(totals),
            Err(Flaw::Gap(hash)) => {
                let depth = set.depth.get().unwrap_or(tree::FIRST_DEPTH);
                set.fail_for_missing_row(tree::covering(hash, depth))
            }
            Err(Flaw::Overlap(a, b)) => Err(set.ambiguous(a, b)),
        }
    })
}

/// Returns the bytes on disk of a set with its indexes and partitions.
fn bytes_on_disk(set: &Set) -> Result<i64> {
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
    let set = Set::open(call, oid, Purpose::Change)?;
    let mut forgotten = 0;
    connected(|| {
        loop {
            let joined = set.each_page(Sees::Now, |rows| {
                // SAFETY: nothing that is made in that memory is used later.
                unsafe { in_scratch(|| improve(&set, rows, &mut forgotten)) }
            })?;
            // Each pass joins one level of the tree.
            if joined == 0 {
                return Ok(());
            }
        }
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
