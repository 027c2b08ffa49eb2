//! A row of a set: asking it, and changing, splitting and joining rows.
//!
//! # Example: a row that splits
//!
//! A set keeps B = 7 bits of each hash (real sets keep 16 at least). Its row for bucket 5 has grown
//! too large. In binary, 5 is 101: a 1, and then the bits 01 with which all its hashes begin. They
//! are stored without these:
//!
//! ```text
//! bucket 5    01|00101  01|00110  01|01100  01|10001  01|11110     5 bits of each are stored
//! ```
//!
//! The next bit divides the hashes into those of bucket 10, 1010 in binary, and those of bucket 11,
//! 1011 in binary:
//!
//! ```text
//! bucket 10   010|0101  010|0110  010|1100                         4 bits of each are stored
//! bucket 11   011|0001  011|1110
//! ```
//!
//! If one of these is still too large, as after an array was added, it is divided in turn. Joining
//! is the reverse.

use super::elias_fano::{MOST_HASHES, MOST_LATER_TIME_SLICES};
use super::form::{SetForm, TIME_SLICES};
use super::record::{Row, RowEntry, stored_bytes};
use super::tree;
use crate::{hash, memory};

/// The most bytes of a row. A larger limit makes the WAL of each insertion larger; a smaller one
/// makes more rows, each with the header of a tuple and an entry of an index.
pub const MOST_BYTES: usize = 800;

impl Row {
    /// Returns a row without elements.
    pub fn empty(bucket: u64) -> Row {
        Row { bucket, first_time_slice: 0, entries: Vec::new() }
    }

    /// Returns the time slice of a hash, of which the first B bits are given; `None` if the row
    /// doesn't have it.
    pub fn time_slice_of(&self, hash: u64) -> Option<i64> {
        let found = self.entries.binary_search_by_key(&hash, |entry| entry.hash);
        let index = found.ok()?;
        Some(self.entries[index].time_slice)
    }

    /// Drops the elements that the set has forgotten at the time `now`, a number of time slices,
    /// and returns how many these were. Must be called before the row is written.
    ///
    /// Time slices in the future are kept, since the clock may have been set back and be set right
    /// again, but only as far as the stored form has room beside those that are remembered.
    pub fn forget(&mut self, form: SetForm, now: i64) -> usize {
        if !form.forgets {
            return 0;
        }
        let count_before = self.entries.len();
        self.entries.retain(|entry| form.remembers(entry.time_slice, now));

        let latest = now.saturating_add(MOST_LATER_TIME_SLICES - TIME_SLICES);
        for entry in &mut self.entries {
            entry.time_slice = entry.time_slice.min(latest);
        }
        count_before - self.entries.len()
    }

    /// Adds elements with this time slice. Those that the row has already get it, too.
    ///
    /// `hashes` are the first B bits of their hashes, ascending.
    pub fn put(&mut self, hashes: &[u64], time_slice: i64) {
        let mut old_entries = std::mem::take(&mut self.entries).into_iter().peekable();
        self.entries = memory::with_capacity(old_entries.len() + hashes.len());
        for &hash in hashes {
            while let Some(entry) = old_entries.next_if(|entry| entry.hash < hash) {
                self.entries.push(entry);
            }
            // An entry with this hash is replaced.
            old_entries.next_if(|entry| entry.hash == hash);
            self.entries.push(RowEntry { hash, time_slice });
        }
        self.entries.extend(old_entries);
    }

    /// Removes elements. `hashes` are the first B bits of their hashes, ascending.
    pub fn remove(&mut self, hashes: &[u64]) {
        self.entries
            .retain(|entry| hashes.binary_search(&entry.hash).is_err());
    }

    /// Returns the rows that replace this one, in the order of their hashes: the row itself, if it
    /// isn't too large, or else its halves, or theirs.
    ///
    /// `most_bytes` is the limit for the largest row of a set, [`MOST_BYTES`]. The rows can be
    /// written: their first time slices are near those of their entries.
    pub fn split(mut self, form: SetForm, most_bytes: usize) -> Vec<Row> {
        self.rebase();

        let mut rows = Vec::new();
        // Parts that may still be too large. The last one comes first in the order of hashes.
        let mut parts = vec![RowPart { bucket: self.bucket, entries: &self.entries }];
        while let Some(part) = parts.pop() {
            if part.fits(form, most_bytes) {
                let row = Row {
                    bucket: part.bucket,
                    first_time_slice: self.first_time_slice,
                    entries: memory::collect(part.entries.iter().copied()),
                };
                memory::push(&mut rows, row);
            } else {
                let Halves { left, right } = part.halves(form);
                parts.push(right);
                parts.push(left);
            }
        }
        rows
    }

    /// Returns the row that replaces two halves of a bucket; `None` if the rows aren't these, or if
    /// the row would have more than three quarters of the bytes at which it is split. The next
    /// insertions must not split it again.
    ///
    /// `most_bytes` is as in [`Row::split`].
    pub fn join(left: &Row, right: &Row, form: SetForm, most_bytes: usize) -> Option<Row> {
        let is_left_half = left.bucket > 1 && left.bucket.is_multiple_of(2);
        let are_halves = is_left_half && left.bucket + 1 == right.bucket;
        if !are_halves || left.entries.len() + right.entries.len() > MOST_HASHES {
            return None;
        }

        let entries = left.entries.iter().chain(&right.entries).copied();
        let mut row = Row {
            bucket: left.bucket / 2,
            first_time_slice: left.first_time_slice,
            entries: memory::collect(entries),
        };
        row.rebase();

        let bytes = stored_bytes(form, row.bucket, row.entries.len())?;
        let limit = bytes_at_split(row.bucket, most_bytes);
        (bytes <= limit * 3 / 4).then_some(row)
    }

    /// Lets the first time slice be that of the earliest entry, if the stored form couldn't have
    /// all entries otherwise. While it can, the start of the row stays as it is.
    pub fn rebase(&mut self) {
        let time_slices = self.entries.iter().map(|entry| entry.time_slice);
        let (Some(earliest), Some(latest)) = (time_slices.clone().min(), time_slices.max()) else {
            return;
        };
        let later_slices = latest.saturating_sub(self.first_time_slice);
        if earliest < self.first_time_slice || later_slices > MOST_LATER_TIME_SLICES {
            self.first_time_slice = earliest;
        }
    }
}

/// The entries of a row that belong to one bucket below its own.
struct RowPart<'a> {
    bucket: u64,
    entries: &'a [RowEntry],
}

/// The two parts of a bucket.
struct Halves<'a> {
    left: RowPart<'a>,
    right: RowPart<'a>,
}

impl<'a> RowPart<'a> {
    /// Returns whether the part can be a row: it isn't too large, or can't be divided any more.
    fn fits(&self, form: SetForm, most_bytes: usize) -> bool {
        let bytes = stored_bytes(form, self.bucket, self.entries.len());
        let limit = bytes_at_split(self.bucket, most_bytes);
        bytes.is_some_and(|bytes| bytes <= limit) || tree::depth(self.bucket) == form.bits
    }

    /// Divides the part by the first bit of its hashes that the bucket doesn't say. Panics if the
    /// bucket says all bits.
    fn halves(self, form: SetForm) -> Halves<'a> {
        let next_bit = 1 << (form.bits - tree::depth(self.bucket) - 1);
        let count_of_left = self.entries.partition_point(|entry| entry.hash & next_bit == 0);
        let (left, right) = self.entries.split_at(count_of_left);
        Halves {
            left: RowPart { bucket: self.bucket * 2, entries: left },
            right: RowPart { bucket: self.bucket * 2 + 1, entries: right },
        }
    }
}

/// Returns the number of bytes above which a row is split: from half of `most_bytes` to all of it,
/// by a hash of its bucket.
///
/// Hashes are uniform. With one limit all rows of a set would be split at about the same time, and
/// then all be half empty.
pub(super) fn bytes_at_split(bucket: u64, most_bytes: usize) -> usize {
    let half = most_bytes / 2;
    // The remainder of the whole hash: `usize` may have 32 bits, and the rows of a set are the same
    // everywhere.
    let above_half = hash::hash(&bucket.to_le_bytes()) % (half as u64 + 1);
    half + above_half as usize
}
