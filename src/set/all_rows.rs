//! The functions that read all rows of a set: `bloom_set_info` says how full it is, and checks that
//! its rows are the leaves of a tree; `bloom_set_expire` drops what the set has forgotten, and
//! joins rows that became small.

use super::fullness::most_elements;
use super::rows::Replacement;
use super::table::{Purpose, Set};
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::memory::in_scratch;
use crate::pg::sql::{Parameter, Sees, connected, execute};
use crate::pg::value::row::{ResultColumn, row};
use pg_bloom_core::memory::List;
use pg_bloom_core::set::row::MOST_BYTES;
use pg_bloom_core::set::tree::{self, TreeFlaw};
use pg_bloom_core::set::{Row, SetForm};
use pgrx::pg_sys::{self, Datum};

/// What `bloom_set_info` finds out by reading all rows of a set.
#[derive(Default)]
struct Totals {
    buckets: List<u64>,
    /// How many hashes the set remembers now.
    hashes: usize,
    /// The first time slice in which one of these was added.
    oldest: Option<i64>,
}

impl Totals {
    /// Adds a row of a set to the totals: its bucket, which is the number of the row, and the
    /// hashes in it that the set still remembers. `now` is the present time, as a number of time
    /// slices.
    fn add(&mut self, row: &Row, form: SetForm, now: i64) {
        self.buckets.push(row.bucket);
        for entry in &row.entries {
            if form.remembers(entry.time_slice, now) {
                self.hashes += 1;
                // A time slice in the future counts as the present one.
                let added_at = entry.time_slice.min(now);
                self.oldest = Some(self.oldest.map_or(added_at, |oldest| oldest.min(added_at)));
            }
        }
    }
}

/// Implements `bloom_set_info(set)`: reads all rows of a set, and returns one row that says how
/// full the set is; NULL for NULL.
///
/// Fails for a table that isn't a set that the user may read, with XX001 for a damaged row, and
/// with 55000 if the rows don't cover each possible hash exactly once, as in a damaged set.
fn info(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else {
        return Ok(None);
    };
    let set = Set::open(call, oid, Purpose::Ask)?;
    let totals = totals_of_tree(&set)?;

    let made_for = &set.parameters;
    let rate = set.form.rate(totals.hashes as f64);
    let capacity = made_for.capacity.map(|capacity| capacity as i64);
    // When the first time slice in which an element was added began, in microseconds.
    let oldest = set
        .time_slice_length
        .zip(totals.oldest)
        .map(|(length, oldest)| oldest.saturating_mul(length));
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

/// Reads all rows of a set with the snapshot of the calling query, and returns their bucket
/// numbers, how many hashes they have, and the time of the oldest one.
///
/// Each row covers the hashes that begin with certain bits, as a leaf of a binary tree. Fails with
/// XX001 if a row is damaged, and with 55000 if a hash is covered by no row, or by two.
fn totals_of_tree(set: &Set) -> Result<Totals> {
    let form = set.form;
    let now = set.now();
    connected(|| {
        let mut totals = Totals::default();
        set.each_page(Sees::CallingQuery, |rows| {
            for row in &rows {
                totals.add(row, form, now);
            }
            Ok(())
        })?;

        match tree::check_leaves(&mut totals.buckets) {
            Ok(()) => Ok(totals),
            Err(TreeFlaw::Gap { hash }) => {
                let depth = set.depth.get().unwrap_or(tree::FIRST_DEPTH);
                set.fail_for_missing_row(tree::covering(hash, depth))
            }
            Err(TreeFlaw::Overlap { bucket, next }) => Err(set.ambiguous(bucket, next)),
        }
    })
}

/// Returns how many bytes a set's table takes on disk, with its indexes and partitions. Fails if
/// the statement does.
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

/// Implements `bloom_set_expire(set)`: drops hashes that a set has forgotten, joins rows that
/// became small, and returns how many hashes were dropped; NULL for NULL.
///
/// Rows that other sessions have locked are left as they are. As it waits for no row, it can lock
/// rows in any order without a deadlock. Rows that it changes stay locked until the transaction
/// ends. Fails for a table that isn't a set that the user may change, and if reading or writing
/// rows does.
fn expire(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else {
        return Ok(None);
    };
    let set = Set::open(call, oid, Purpose::Change)?;
    let mut num_forgotten = 0;
    connected(|| {
        loop {
            let mut num_joined = 0;
            set.each_page(Sees::Now, |rows| {
                // SAFETY: nothing that is made in that memory is used later.
                let counts = unsafe { in_scratch(|| drop_forgotten_and_join(&set, rows)) }?;
                num_forgotten += counts.num_forgotten;
                num_joined += counts.num_joined;
                Ok(())
            })?;
            // Rows are joined in pairs. The joined rows may be small enough to be joined again,
            // which takes another pass.
            if num_joined == 0 {
                return Ok(());
            }
        }
    })?;
    Ok(Some(Datum::from(num_forgotten as i64)))
}

/// What was done to some rows of a set.
#[derive(Default)]
struct ReductionCounts {
    /// How many hashes were dropped, since the set has forgotten them.
    num_forgotten: usize,
    /// How many pairs of rows were joined.
    num_joined: usize,
}

/// Drops from some rows the hashes that the set has forgotten, and joins pairs of rows that have
/// become small. Returns how many hashes were dropped, and how many pairs were joined. A row that
/// another session has locked is left as it is.
///
/// The rows must be in the order of their buckets: a *bucket* is the number of a row. A row that
/// became too large was divided, row b into rows 2b and 2b + 1, and only two such halves can be
/// joined again. They follow each other in this order.
///
/// Must be called while connected. Fails if locking or writing the rows does.
fn drop_forgotten_and_join(set: &Set, rows: List<Row>) -> Result<ReductionCounts> {
    let buckets = reduced_rows(set, rows).replacement.buckets_to_lock();
    if buckets.is_empty() {
        return Ok(ReductionCounts::default());
    }

    let lock = &set.change_statements()?.lock_skipping_locked;
    let mut locked_rows = set.fetch_rows(lock, Parameter::I64s(&buckets), Sees::Now)?;
    locked_rows.sort_unstable_by_key(|row| row.bucket);

    // The rows were read without locks. They may have changed before they were locked, and some
    // weren't locked. So what to write is determined again, from the locked versions.
    let ReducedRows { num_forgotten, replacement } = reduced_rows(set, locked_rows);
    // Each inserted row is one that two others were joined to.
    let num_joined = replacement.inserted.len();
    set.replace(replacement)?;
    Ok(ReductionCounts { num_forgotten, num_joined })
}

/// What is to be written in place of some rows.
#[derive(Default)]
struct ReducedRows {
    /// How many hashes are left out, since the set has forgotten them.
    num_forgotten: usize,
    replacement: Replacement,
}

/// A row without the hashes that the set has forgotten.
struct CurrentRow {
    row: Row,
    /// How many hashes were dropped from the row.
    num_forgotten: usize,
}

/// Returns the rows that should replace some rows of a set: rows without the hashes that the set
/// has forgotten, and one row instead of two small ones that are the halves of a divided row. Rows
/// that need no change are left out. Reads and writes nothing.
///
/// The rows must be in the order of their buckets, the numbers of rows: the halves of row b are
/// rows 2b and 2b + 1, so they follow each other.
fn reduced_rows(set: &Set, rows: List<Row>) -> ReducedRows {
    let form = set.form;
    let now = set.now();
    let mut current_rows = rows
        .into_iter()
        .map(|mut row| CurrentRow { num_forgotten: row.forget(form, now), row })
        .peekable();

    let mut reduced = ReducedRows::default();
    while let Some(CurrentRow { mut row, num_forgotten }) = current_rows.next() {
        reduced.num_forgotten += num_forgotten;
        // A set never has fewer rows than the 1,024 that it begins with, which are at this depth.
        let may_join = tree::depth(row.bucket) > tree::FIRST_DEPTH;
        let next = current_rows.peek().filter(|_| may_join);
        let parent = next.and_then(|next| Row::join(&row, &next.row, form, MOST_BYTES));

        if let Some(parent) = parent {
            let right_half = current_rows.next().expect("the row that was joined");
            reduced.num_forgotten += right_half.num_forgotten;
            reduced.replacement.deleted.push(row.bucket);
            reduced.replacement.deleted.push(right_half.row.bucket);
            reduced.replacement.inserted.push(parent);
        } else if num_forgotten > 0 {
            // A row stores times as distances from a first one. Makes sure that all distances are
            // small enough for the stored form.
            row.rebase();
            reduced.replacement.updated.push(row);
        }
    }
    reduced
}

pg_functions! {
    bloom_set_info => info;
    bloom_set_expire => expire;
}
