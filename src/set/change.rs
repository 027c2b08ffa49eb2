//! How elements are added and removed: the protocol of locks.
//!
//! ```text
//! read      the leaves of all elements, with one snapshot and without locks: which of them may need a change
//! lock      these leaves, in the order of their hashes; what comes back are their newest versions
//! compute   from these, for these elements only: what is new, and the rows with it
//! write     the rows; one that has become too large is deleted, and its halves are inserted
//! ```
//!
//! The lock of an element is its leaf, and lasts until the transaction ends: of sessions that add
//! an element at the same time one gets it as new, and the others wait, and look again. Locking and
//! writing share a subtransaction. If a leaf is gone, since another session split or joined it,
//! what is there now is locked if that needs no waiting; else all is undone, which releases the
//! locks, and the elements are read again. So sessions wait in one order only, and calls don't
//! deadlock.
//!
//! Many leaves are locked and written part by part. What replaces a leaf covers the same hashes, or
//! those of its other half too, which nobody has locked then: so the parts stay in order whatever
//! is split or joined. (In the order of buckets a row that joins two would come before both.)
//!
//! The rows of a call show whether a set is overfull: leaves are split, so all are about equally
//! dense.

use super::leaves::Item;
use super::rows::MOST_ROWS_AT_ONCE;
use super::table::{Parameters, Purpose, Set};
use crate::error::invalid_parameter;
use crate::pg::call::error::warn;
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::{Error, Result};
use crate::pg::sql::{Parameter, Sees, connected, in_subtransaction, with_new_snapshot};
use crate::settings::{self, Overfill};
use pg_bloom_core::set::tree::{self, DEFAULT_CAPACITY};
use pg_bloom_core::set::{Row, row};
use pg_bloom_core::{interrupt, memory};

/// The most elements in one part.
const MOST_ITEMS_AT_ONCE: usize = 1 << 20;
/// How often the same leaf may be visible and then gone before that can't be chance.
const MOST_ATTEMPTS: u32 = 20;

/// An element whose leaf may need a change.
#[derive(Clone, Copy)]
struct Work {
    leaf: u64,
    item: Item,
}

struct Changing<'a> {
    set: &'a Set,
    is_adding: bool,
    /// The leaf that was gone last, and how often in turn.
    gone: (u64, u32),
    added: usize,
}

/// Adds or removes items, which are in the order of their hashes, and calls `affected` with the
/// places of those that were new, or that were removed. Errors: those of the statements; 22023 for
/// an overfull set, if the setting says so.
pub fn change(
    set: &Set,
    purpose: Purpose,
    items: &[Item],
    affected: &mut dyn FnMut(usize),
) -> Result<()> {
    let mut change = Changing {
        set,
        is_adding: purpose == Purpose::Add,
        gone: (0, 0),
        added: 0,
    };
    connected(|| {
        let mut work = change.read(items)?;
        while !work.is_empty() {
            let (leaves, len) = first_part(&work);
            let part = &work[..len];
            // A single lock needn't be released if there is nothing to lock.
            let one = leaves == 1;
            // SAFETY: nothing is opened that outlives `part`.
            let done = if one {
                change.part(part)?
            } else {
                unsafe { in_subtransaction(|| change.part(part))? }
            };
            if let Some(places) = done {
                change.added += places.len();
                places.into_iter().for_each(&mut *affected);
                work.drain(..len);
            } else {
                let rest: Vec<Item> = memory::collect(work.iter().map(|work| work.item));
                work = change.read(&rest)?;
            }
            check_for_interrupts();
        }
        Ok(())
    })
}

/// How much of the work is done at once: leaves and elements.
fn first_part(work: &[Work]) -> (usize, usize) {
    let (mut leaves, mut len) = (0, 0);
    for leaf in work.chunk_by(|a, b| a.leaf == b.leaf).take(MOST_ROWS_AT_ONCE) {
        if leaves > 0 && len + leaf.len() > MOST_ITEMS_AT_ONCE {
            break;
        }
        (leaves, len) = (leaves + 1, len + leaf.len());
    }
    (leaves, len)
}

impl Changing<'_> {
    /// Whether an element that a row has with this slice, or lacks, needs a change at time `now`,
    /// in slices.
    fn is_wanted(&self, slice: Option<i64>, now: i64) -> bool {
        if self.is_adding {
            slice.is_none_or(|slice| self.set.parameters.renews && slice < now)
        } else {
            slice.is_some()
        }
    }

    /// The items whose leaves must be locked, in the order of their hashes. One that is there needs
    /// no change, and so stays there for this call, unless it is to be renewed.
    fn read(&self, items: &[Item]) -> Result<Vec<Work>> {
        let (form, now) = (self.set.form, self.set.now());
        let mut work = Vec::new();
        let note = |row: &Row, item: Item| {
            let slice = row
                .slice_of(form.prefix(item.hash))
                .filter(|&slice| form.remembers(slice, now));
            if self.is_wanted(slice, now) {
                memory::push(&mut work, Work { leaf: row.bucket, item });
            }
        };
        with_new_snapshot(|| self.set.read_leaves(items, note))?;
        work.sort_unstable_by_key(|work| work.item);
        Ok(work)
    }

    /// Locks the leaves of some work, and does it. Returns the places of the elements that were new
    /// or removed; `None` if a leaf is gone and nothing covers its elements that can be locked at
    /// once.
    fn part(&mut self, work: &[Work]) -> Result<Option<Vec<usize>>> {
        let set = self.set;
        let mut rows = set.list(&set.changes()?.lock, Parameter::I64s(&leaves(work)), Sees::Now)?;
        let mut work: Vec<Work> = memory::collect(work.iter().copied());
        rows.sort_unstable_by_key(first_hash);
        if rows.len() > 1 {
            self.follow(&mut work, &mut rows)?;
        }
        if let Some(twice) = rows.windows(2).find(|rows| rows[0].bucket == rows[1].bucket) {
            return Err(set.ambiguous(twice[0].bucket, twice[1].bucket));
        }
        let Some(&Work { leaf: gone, .. }) = without_row(&work, &rows).next() else {
            return self.write(work.chunk_by(|a, b| a.leaf == b.leaf), rows).map(Some);
        };
        self.gone = if self.gone.0 == gone { (gone, self.gone.1 + 1) } else { (gone, 1) };
        if self.gone.1 < MOST_ATTEMPTS { Ok(None) } else { Err(set.cannot_lock(gone)) }
    }

    /// Locks what has replaced the leaves of work that are gone, as far as that is free: waiting
    /// for it, after leaves that come later in the order, would not be safe. So after a split
    /// sessions hardly ever start over.
    fn follow(&self, work: &mut Vec<Work>, rows: &mut Vec<Row>) -> Result<()> {
        let gone: Vec<Item> = memory::collect(without_row(work, rows).map(|work| work.item));
        if gone.is_empty() {
            return Ok(());
        }
        work.retain(|work| gone.binary_search(&work.item).is_err());
        let again = self.read(&gone)?;
        rows.extend(self.set.list(
            &self.set.changes()?.lock_free,
            Parameter::I64s(&leaves(&again)),
            Sees::Now,
        )?);
        rows.sort_unstable_by_key(first_hash);
        work.extend(again);
        work.sort_unstable_by_key(|work| work.item);
        Ok(())
    }

    /// Changes the locked rows for the work on each.
    fn write<'w>(
        &self,
        work: impl Iterator<Item = &'w [Work]>,
        rows: Vec<Row>,
    ) -> Result<Vec<usize>> {
        let set = self.set;
        // After the locks: a call that waited would write what is already forgotten.
        let (form, now) = (set.form, set.now());
        let (mut gone, mut updated, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
        let (mut places, mut hashes, mut share) = (Vec::new(), 0, 0.0);
        for (work, mut row) in work.zip(rows) {
            row.forget(form, now);
            hashes += row.entries.len();
            share += tree::share(row.bucket);
            if !self.apply(&mut row, work, now, &mut places) {
                continue;
            }
            let bucket = row.bucket;
            let rows = row.split(form, row::MOST_BYTES);
            let written = if rows.len() == 1 { &mut updated } else { &mut inserted };
            if rows.len() > 1 {
                memory::push(&mut gone, bucket);
            }
            rows.into_iter().for_each(|row| memory::push(written, row));
        }
        if self.is_adding && !places.is_empty() {
            check_fullness(set, hashes as f64, share, self.added + places.len())?;
        }
        set.replace(gone, &updated, inserted)?;
        Ok(places)
    }

    /// Changes a row, and returns whether that is needed.
    fn apply(&self, row: &mut Row, work: &[Work], now: i64, places: &mut Vec<usize>) -> bool {
        let form = self.set.form;
        let mut hashes: Vec<u64> = memory::list(work.len());
        // Of elements with the same first bits the first is new, or removed: then the others are
        // there, or gone.
        let are_same = |a: &Work, b: &Work| form.prefix(a.item.hash) == form.prefix(b.item.hash);
        for same in interrupt::each(work.chunk_by(are_same)) {
            let hash = form.prefix(same[0].item.hash);
            let slice = row.slice_of(hash);
            let first = same.iter().map(|work| work.item.place).min();
            // One that is only renewed is not affected.
            if let Some(first) = first.filter(|_| slice.is_none() == self.is_adding) {
                memory::push(places, first);
            }
            if self.is_wanted(slice, now) {
                memory::push(&mut hashes, hash);
            }
        }
        if self.is_adding {
            row.put(&hashes, now);
        } else {
            row.remove(&hashes);
        }
        !hashes.is_empty()
    }
}

fn first_hash(row: &Row) -> u64 {
    tree::first_hash(row.bucket)
}

fn leaves(work: &[Work]) -> Vec<u64> {
    memory::collect(work.chunk_by(|a, b| a.leaf == b.leaf).map(|work| work[0].leaf))
}

/// The work whose leaves are not among rows, which are in the order of their hashes.
fn without_row<'w>(work: &'w [Work], rows: &'w [Row]) -> impl Iterator<Item = &'w Work> {
    work.iter().filter(|work| {
        let place = rows.binary_search_by_key(&tree::first_hash(work.leaf), first_hash);
        place.map_or(true, |place| rows[place].bucket != work.leaf)
    })
}

/// Checks how full the set will be with so many new elements; warns once in a session, or fails.
/// `hashes` and `share` are sums over some rows: how many hashes they have, and the share of all
/// hashes that they cover. They are taken before the call adds to these rows: afterwards they would
/// be denser than others.
fn check_fullness(set: &Set, hashes: f64, share: f64, added: usize) -> Result<()> {
    let form = set.form;
    let (added, all) = (added as f64, hashes / share + added as f64);
    let most = set.parameters.fpr / form.rate(1.0);
    if added > most || is_more_than_chance(hashes, (most - added) * share) {
        match settings::OVERFILL.get() {
            Overfill::Error => return Err(describe(set, form.rate(all))),
            Overfill::Warn if !set.has_warned.replace(true) => warn(describe(set, form.rate(all))),
            _ => {}
        }
    }
    Ok(())
}

/// Whether so many hashes would be in some rows with a probability of at most e^-18, six deviations
/// of a large number, if so many were expected there. By Chernoff's bound for Poisson's
/// distribution, P(n ≥ found) ≤ e^(found - expected) (expected / found)^found.
fn is_more_than_chance(found: f64, expected: f64) -> bool {
    found > expected && found - expected - found * (found / expected).ln() < -18.0
}

fn describe(set: &Set, rate: f64) -> Error {
    let Parameters { capacity, fpr, .. } = set.parameters;
    let capacity = capacity.unwrap_or(DEFAULT_CAPACITY);
    let digits = (2.0 - rate.log10().floor()).clamp(1.0, 9.0) as usize;
    invalid_parameter(format!("filter set {} holds more than its capacity of {capacity}", set.quoted_name()))
        .detail(format!(
            "Judging by the rows that change, its false positive rate is about {rate:.digits$}, not {fpr}: that share of the new elements is taken for old ones.",
        ))
        .hint("Make a set with a larger capacity, and use both for a while. Capacity costs only a few bits an element.")
}
