//! How elements are added to a set and removed from it: the protocol of locks.
//!
//! ```text
//! read      the rows of all elements, without locks: which may need a change, and their leaves
//! lock      some of these leaves, in the order of their hashes: returns the newest row of each
//! follow    leaves that are gone: lock those that replaced them, if this needs no waiting
//! write     the rows with the change; a row that became too large is split
//! again     if a leaf is still gone, release the locks, and read again what is left to do
//! ```
//!
//! A leaf is a part of all hashes, and the bucket is its number. The set has one row for each leaf.
//! Locking this row locks the elements of the leaf, until the transaction ends. Of sessions that
//! add an element at the same time, one gets it as new; the others wait for the row, and see it
//! there.
//!
//! Example: sessions A and B add elements of leaf 5. A locks it, splits it into leaves 10 and 11,
//! and commits. B has waited for leaf 5, which is gone now. So B reads its elements again, finds
//! them in leaf 10, and locks that one.
//!
//! # Why calls don't deadlock
//!
//! Sessions wait for leaves in the order of hashes only. A leaf that replaced another may come
//! earlier in that order than leaves that are locked already. So a session doesn't wait for it: it
//! undoes a subtransaction, which releases its locks, and starts again.
//!
//! Many leaves are locked and written part by part. The parts stay in order whatever other sessions
//! split or join: a leaf that replaces one covers hashes of it, and perhaps those of its other
//! half, which nobody has locked then. (In the order of bucket numbers, a row that joins two would
//! come before both.)

use super::fullness::{Addition, Fullness, RowSample};
use super::leaves::HashedElement;
use super::rows::{MOST_ROWS_AT_ONCE, Replacement};
use super::table::Set;
use crate::pg::call::Result;
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::memory::in_scratch;
use crate::pg::sql::{
    Ending, Parameter, Prepared, Sees, connected, in_subtransaction, with_new_snapshot,
};
use pg_bloom_core::interrupt;
use pg_bloom_core::memory::List;
use pg_bloom_core::set::{Row, row, tree};
use std::collections::BTreeMap;

/// The most elements that are read at once before they are changed: what is known of each takes
/// memory until it is written.
const MOST_ELEMENTS_AT_ONCE: usize = 1 << 16;
/// How often a leaf may be visible and then gone, while a call writes nothing, before that can't be
/// chance.
const MOST_ATTEMPTS: u32 = 20;

/// A change that a call makes to a set.
#[derive(Clone, Copy, PartialEq)]
pub enum Verb {
    Add,
    Remove,
}

/// Adds elements to a set or removes them, as `verb` says, and calls `on_changed` with the array
/// index of each element that was new, or that was removed.
///
/// The elements must be in the order of their hashes. The table's rows that may need a change are
/// locked until the transaction ends; this waits for other sessions that have locked the same rows.
/// Of two sessions that add one element at the same time, only one gets it as new. A warning is
/// raised if the set becomes overfull.
///
/// Fails if a statement does, with 55000 for a damaged set or a row that can't be locked, and with
/// 22023 for an overfull set if the setting `pg_bloom.overfill` is `error`.
pub fn change_elements(
    set: &Set,
    verb: Verb,
    elements: &[HashedElement],
    on_changed: &mut dyn FnMut(usize),
) -> Result<()> {
    let mut change = SetChange { set, verb, fullness: Fullness::new(set) };
    connected(|| {
        for part in elements.chunks(MOST_ELEMENTS_AT_ONCE) {
            change.change_part(part, on_changed)?;
        }
        Ok(())
    })?;
    change.fullness.warn_if_overfull();
    Ok(())
}

/// An element that may need a change, and the leaf that covered it when it was read.
#[derive(Clone, Copy)]
struct Candidate {
    element: HashedElement,
    leaf: u64,
}

/// How an attempt to change some elements ended.
enum Attempt {
    /// Their rows are written. These are the array indexes of the elements that were new, or that
    /// were removed.
    Written { changed_indexes: List<usize> },
    /// Nothing is written: the table has no row for this leaf any more, and those that replaced it
    /// aren't locked.
    LeafGone(u64),
}

/// A row that is locked, in its newest version, and the elements that it covers.
struct LockedLeaf {
    row: Row,
    elements: List<HashedElement>,
}

/// The outcome of locking the rows of some elements. Both lists are in the order of hashes.
#[derive(Default)]
struct LockOutcome {
    leaves: List<LockedLeaf>,
    /// The elements whose row the statement didn't lock.
    not_locked: List<Candidate>,
}

/// Failed attempts since rows were written last, counted until a leaf has failed so often that it
/// can't be chance.
#[derive(Default)]
struct Failures {
    /// How often each leaf was visible, but gone when it was to be locked.
    by_leaf: BTreeMap<u64, u32>,
}

impl Failures {
    /// Counts a failed attempt to change some elements. It failed because `leaf`, a row of the set
    /// given by its number, was visible when it was read, and gone when it was to be locked:
    /// another session may have split the row in the meantime.
    ///
    /// Failures are counted for each leaf, since several may fail by turns. Fails with 55000 for
    /// the twentieth failure of a leaf: so many can't be chance, so a row-level security policy or
    /// an extension hides the row from locking.
    fn count(&mut self, set: &Set, leaf: u64) -> Result<()> {
        let failures = self.by_leaf.entry(leaf).or_default();
        *failures += 1;
        if *failures >= MOST_ATTEMPTS {
            return Err(set.cannot_lock(leaf));
        }
        Ok(())
    }
}

/// Returns the first of the candidates, with all of up to 1,024 different leaves: one statement
/// locks at most this number of rows. Candidates are elements with their leaf, the row of the set
/// that covers them, in the order of their hashes.
fn first_leaves(candidates: &[Candidate]) -> &[Candidate] {
    let leaves = by_leaf(candidates).take(MOST_ROWS_AT_ONCE);
    &candidates[..leaves.map(<[Candidate]>::len).sum()]
}

/// Returns the elements of each leaf together: elements are in the order of their hashes, and a
/// leaf, one row of the set, covers hashes that follow each other.
fn by_leaf(candidates: &[Candidate]) -> impl Iterator<Item = &[Candidate]> {
    candidates.chunk_by(|a, b| a.leaf == b.leaf)
}

/// Returns the elements of candidates, in the same order.
fn elements_of(candidates: &[Candidate]) -> List<HashedElement> {
    candidates.iter().map(|candidate| candidate.element).collect()
}

/// One call that adds or removes elements.
struct SetChange<'a> {
    set: &'a Set,
    verb: Verb,
    fullness: Fullness<'a>,
}

impl SetChange<'_> {
    /// Adds or removes some elements of a call, which are in the order of their hashes, and calls
    /// `on_changed` with the array index of each element that was new, or that was removed.
    ///
    /// The rows that cover the elements, called leaves, are first read without locks. Then up to
    /// 1,024 of these rows at a time are locked and written. If another session has split or joined
    /// one of them since it was read, the attempt is given up, and the elements that remain are
    /// read again.
    ///
    /// Fails if a statement does, with 55000 for a damaged set or a row that can't be locked, and
    /// with 22023 for an overfull set if the setting `pg_bloom.overfill` is `error`.
    fn change_part(
        &mut self,
        elements: &[HashedElement],
        on_changed: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let mut failures = Failures::default();
        let mut remaining = self.read(elements)?;
        while !remaining.is_empty() {
            let candidates = first_leaves(&remaining);
            // SAFETY: an attempt leaves nothing in that memory that is used later: its result is
            // numbers in memory of Rust's.
            let attempt = unsafe { in_scratch(|| self.lock_and_write(candidates)) };
            match attempt? {
                Attempt::Written { changed_indexes } => {
                    for index in changed_indexes {
                        on_changed(index);
                    }
                    let written = candidates.len();
                    remaining.drain(..written);
                    // Progress was made: what failed before was another session's doing.
                    failures = Failures::default();
                }
                Attempt::LeafGone(leaf) => {
                    failures.count(self.set, leaf)?;
                    // Another session split or joined the leaf after it was read. Reading again
                    // finds the leaves that cover the elements now.
                    remaining = self.read(&elements_of(&remaining))?;
                }
            }
            check_for_interrupts();
        }
        Ok(())
    }

    /// Finds out which elements may need a change, by reading the rows of the set that cover them,
    /// with a new snapshot and without locks. Returns these elements in the order of their hashes,
    /// each with its *leaf*, the bucket number of the row that covers the element.
    ///
    /// The caller locks these rows next and looks again, since they may have changed by then. The
    /// other elements are left out for the rest of the call: elements to add that the set has
    /// already, unless it renews the time of those that are added again, and elements to remove
    /// that it doesn't have.
    ///
    /// Fails with 55000 if an element has no row or two, and if reading fails.
    fn read(&self, elements: &[HashedElement]) -> Result<List<Candidate>> {
        let form = self.set.form;
        let now = self.set.now();
        let mut candidates = List::new();
        with_new_snapshot(|| {
            self.set.read_leaves(elements, |row, element| {
                let added_at = row.time_slice_of(form.prefix(element.hash));
                let remembered_since = added_at.filter(|&added_at| form.remembers(added_at, now));
                if self.needs_change(remembered_since, now) {
                    let leaf = row.bucket;
                    candidates.push(Candidate { element, leaf });
                }
            })
        })?;
        candidates.sort_unstable_by_key(|candidate| candidate.element);
        Ok(candidates)
    }

    /// Returns whether an element must be written into its row, for this call's verb: to add it, to
    /// renew its time, or to remove it.
    ///
    /// `added_at` is the time of its last addition, `None` if it isn't in the set, and `now` the
    /// present time. Times are numbers of time slices, of which a set that forgets remembers the
    /// last eight.
    fn needs_change(&self, added_at: Option<i64>, now: i64) -> bool {
        match (self.verb, added_at) {
            (Verb::Add, Some(added_at)) => self.set.parameters.renews && added_at < now,
            (Verb::Add, None) => true,
            (Verb::Remove, added_at) => added_at.is_some(),
        }
    }

    /// Locks the rows of the set that cover some elements, and writes them with the elements added
    /// or removed. `part` has the elements, in the order of their hashes, each with its leaf, the
    /// number of the row that covered it when it was read.
    ///
    /// Returns [`Attempt::Written`] if all rows are written; the transaction then holds their locks
    /// until it ends. Returns [`Attempt::LeafGone`] if another session has split or joined one of
    /// the rows since it was read. Then nothing is written, and the transaction holds no more locks
    /// than before, so that starting again can't be a deadlock.
    ///
    /// Fails if locking or writing does, with 55000 if two rows cover one hash, and with 22023 if
    /// the set is overfull and the setting `pg_bloom.overfill` is `error`.
    fn lock_and_write(&mut self, part: &[Candidate]) -> Result<Attempt> {
        // An attempt that fails for its only leaf has locked nothing, so nothing must be undone.
        let has_one_leaf = by_leaf(part).count() == 1;
        if has_one_leaf {
            return self.attempt(part);
        }
        // SAFETY: the attempt leaves nothing open that a rollback would close, and its result is
        // numbers only.
        unsafe {
            in_subtransaction(|| {
                Ok(match self.attempt(part)? {
                    written @ Attempt::Written { .. } => Ending::Commit(written),
                    failed @ Attempt::LeafGone(_) => Ending::Rollback(failed),
                })
            })
        }
    }

    /// Locks the rows of the set that cover some elements, and writes them with the elements added
    /// or removed. `part` has the elements, in the order of their hashes, each with its leaf, the
    /// number of the row that covered it when it was read.
    ///
    /// If one of these rows is gone, nothing is written, and its number is returned as
    /// [`Attempt::LeafGone`]. Other rows may be locked then: the caller must roll back a
    /// subtransaction around this call, to release the locks. Fails with 55000 if two rows cover
    /// one hash, and if locking or writing fails.
    fn attempt(&mut self, part: &[Candidate]) -> Result<Attempt> {
        let mut locked = self.lock(part, &self.set.change_statements()?.lock)?;
        // If a row is gone but others are locked, locks the rows that replaced it, so that the
        // locks needn't be given up. With at most one lock to give up, starting again costs no
        // more.
        if locked.leaves.len() > 1 && !locked.not_locked.is_empty() {
            locked = self.lock_replacements(locked)?;
        }
        if let Some(candidate) = locked.not_locked.first() {
            return Ok(Attempt::LeafGone(candidate.leaf));
        }

        self.check_overlap(&locked.leaves)?;
        let changed_indexes = self.write(locked.leaves)?;
        Ok(Attempt::Written { changed_indexes })
    }

    /// Locks the rows of the set that cover some elements, which are in the order of their hashes,
    /// each with its leaf, the number of its row.
    ///
    /// `statement` locks rows by their numbers. The caller chooses whether it waits for rows that
    /// other sessions have locked, or leaves these out. Returns the newest versions of the rows
    /// that are locked now, each with its elements, and the elements whose row isn't locked: it is
    /// gone, or was left out.
    ///
    /// Fails if the statement does, and with 55000 if one leaf has two rows.
    fn lock(&self, candidates: &[Candidate], statement: &Prepared) -> Result<LockOutcome> {
        let leaves = by_leaf(candidates).map(|leaf_candidates| leaf_candidates[0].leaf);
        let buckets: List<u64> = leaves.collect();
        let mut rows = self.set.fetch_rows(statement, Parameter::I64s(&buckets), Sees::Now)?;

        // Sorted by the first hash that they cover, rows are in the order of the candidates. So
        // each leaf takes the next row, if that has its number.
        rows.sort_unstable_by_key(|row| tree::first_hash(row.bucket));
        let mut untaken_rows = rows.into_iter().peekable();

        let mut locked = LockOutcome::default();
        for leaf_candidates in by_leaf(candidates) {
            let leaf = leaf_candidates[0].leaf;
            if let Some(row) = untaken_rows.next_if(|row| row.bucket == leaf) {
                let elements = elements_of(leaf_candidates);
                locked.leaves.push(LockedLeaf { row, elements });
            } else {
                for &candidate in leaf_candidates {
                    locked.not_locked.push(candidate);
                }
            }
        }

        // Every leaf has taken one row, if it has any. The first row that is left is the second one
        // of its leaf.
        if let Some(second_row) = untaken_rows.next() {
            return Err(self.set.ambiguous(second_row.bucket, second_row.bucket));
        }
        Ok(locked)
    }

    /// Locks the rows that have replaced rows which are gone, and returns these with the rows that
    /// were locked before. Another session's split is followed in this way: this session hardly
    /// ever has to release its locks and start again.
    ///
    /// `locked` has the locked rows, and the elements whose row was gone. A replacing row that
    /// another session has locked is left out, and its elements stay in `not_locked`. Sessions wait
    /// for rows in the order of hashes only, and this row may come before one that is locked
    /// already, so that waiting could be a deadlock. Fails if reading or locking does.
    fn lock_replacements(&self, mut locked: LockOutcome) -> Result<LockOutcome> {
        let candidates = self.read(&elements_of(&locked.not_locked))?;
        let replacing =
            self.lock(&candidates, &self.set.change_statements()?.lock_skipping_locked)?;

        locked.leaves.extend(replacing.leaves);
        locked
            .leaves
            .sort_unstable_by_key(|leaf| tree::first_hash(leaf.row.bucket));
        locked.not_locked = replacing.not_locked;
        Ok(locked)
    }

    /// Checks that no two locked rows cover the same hashes, as in a damaged set. `leaves` are in
    /// the order of the first hash that they cover, so it suffices to compare neighbours. Reading
    /// the rows finds this damage only if one snapshot sees both. Fails with 55000 for such rows.
    fn check_overlap(&self, leaves: &[LockedLeaf]) -> Result<()> {
        for pair in leaves.windows(2) {
            let bucket = pair[0].row.bucket;
            let next_bucket = pair[1].row.bucket;
            if tree::covers(bucket, tree::first_hash(next_bucket)) {
                return Err(self.set.ambiguous(bucket, next_bucket));
            }
        }
        Ok(())
    }

    /// Writes locked rows with their elements added or removed, and divides those that become too
    /// large. Returns the array indexes of the elements that were new, or that were removed.
    ///
    /// Fails, before anything is written, for an overfull set, if the setting `pg_bloom.overfill`
    /// is `error` (22023). Fails while writing if a statement does, and if a trigger, a rule or a
    /// policy makes the table store something else (27000).
    fn write(&mut self, leaves: List<LockedLeaf>) -> Result<List<usize>> {
        let changed = self.changed_leaves(leaves);
        if self.verb == Verb::Add {
            self.fullness.check_addition(&Addition {
                sampled_rows: changed.rows_before,
                num_new: changed.array_indexes.len(),
                is_count_due: changed.is_count_due,
            })?;
        }
        self.set.replace(changed.replacement)?;
        Ok(changed.array_indexes)
    }

    /// Returns what to write in place of locked rows, so that their elements are added or removed:
    /// the changed rows, or the halves of those that become too large. Nothing is written yet.
    ///
    /// Whether an element is new is decided here, by the newest version of its row, which no other
    /// session can change before this transaction ends. A row that is written anyway loses the
    /// hashes that the set has forgotten.
    fn changed_leaves(&self, leaves: List<LockedLeaf>) -> ChangedLeaves {
        let form = self.set.form;
        // The time is taken only now that the rows are locked. A call that has waited long would
        // otherwise write a time that is already forgotten.
        let now = self.set.now();
        let mut changed = ChangedLeaves::default();

        for LockedLeaf { mut row, elements } in leaves {
            row.forget(form, now);
            // The row is a sample of all rows, so it is sampled before the new elements are in it:
            // they make it denser than the other rows.
            changed.rows_before.add(&row);
            changed.is_count_due |= elements
                .iter()
                .any(|element| self.fullness.is_count_due(element.hash));

            let row_change = self.row_change(&row, &elements, now);
            for index in row_change.array_indexes {
                changed.array_indexes.push(index);
            }
            if row_change.prefixes.is_empty() {
                continue;
            }
            match self.verb {
                Verb::Add => row.put(&row_change.prefixes, now),
                Verb::Remove => row.remove(&row_change.prefixes),
            }
            let bucket = row.bucket;
            let rows_after = row.split(form, row::MOST_BYTES);
            changed.replacement.add_split(bucket, rows_after);
        }
        changed
    }

    /// Returns what must change in a row of the set, so that some elements are added to it or
    /// removed from it, and which of the elements are new, or were there to be removed. The row
    /// must cover all of them, and they must be in the order of their hashes. `now` is the present
    /// time, as a number of time slices.
    ///
    /// A set stores only a *prefix* of each hash, its first bits, so it can't tell elements apart
    /// whose hashes have the same prefix. Of such elements, only the one that comes first in the
    /// caller's array counts as new or removed.
    fn row_change(&self, row: &Row, elements: &[HashedElement], now: i64) -> RowChange {
        let form = self.set.form;
        let mut change = RowChange {
            prefixes: List::with_capacity(elements.len()),
            array_indexes: List::new(),
        };
        let groups = elements.chunk_by(|a, b| form.prefix(a.hash) == form.prefix(b.hash));
        for elements_with_prefix in interrupt::cancellable(groups) {
            let prefix = form.prefix(elements_with_prefix[0].hash);
            let added_at = row.time_slice_of(prefix);
            if !self.needs_change(added_at, now) {
                continue;
            }
            change.prefixes.push(prefix);

            // An element that the set has already may get a new time, but isn't new.
            let is_only_renewed = self.verb == Verb::Add && added_at.is_some();
            let first_index = elements_with_prefix.iter().map(|element| element.array_index).min();
            if let Some(index) = first_index
                && !is_only_renewed
            {
                change.array_indexes.push(index);
            }
        }
        change
    }
}

/// What must be changed in a row.
struct RowChange {
    /// The prefixes of hashes to add, to give a new time, or to remove, ascending.
    prefixes: List<u64>,
    /// The array indexes of the elements that are new, or that are removed.
    array_indexes: List<usize>,
}

/// What is to be written in place of some locked rows.
#[derive(Default)]
struct ChangedLeaves {
    replacement: Replacement,
    /// The array indexes of the elements that are new, or that are removed.
    array_indexes: List<usize>,
    /// The rows as they were, without what the set has forgotten.
    rows_before: RowSample,
    /// Whether the set is to be counted: [`Fullness::is_count_due`] holds for one of the elements.
    is_count_due: bool,
}
