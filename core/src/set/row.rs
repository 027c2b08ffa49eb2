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
use crate::hash;
use crate::memory::List;

/// The most bytes of a row. A larger limit makes the WAL of each insertion larger; a smaller one
/// makes more rows, each with the header of a tuple and an entry of an index.
pub const MOST_BYTES: usize = 800;

/// How many time slices after the present one an element of a stored row may be: 7. The earliest
/// element that a set remembers is [`TIME_SLICES`] (8) before the present one, and no element of a
/// row can be stored that is more than [`MOST_LATER_TIME_SLICES`] (15) after the earliest.
const MOST_SLICES_AHEAD: i64 = MOST_LATER_TIME_SLICES - TIME_SLICES;

impl Row {
    /// Returns a row without elements.
    pub fn empty(bucket: u64) -> Row {
        Row { bucket, first_time_slice: 0, entries: List::new() }
    }

    /// Returns the time slice of a hash, of which the first B bits are given; `None` if the row
    /// doesn't have it.
    pub fn time_slice_of(&self, hash: u64) -> Option<i64> {
        let found = self.entries.binary_search_by_key(&hash, |entry| entry.hash);
        let index = found.ok()?;
        Some(self.entries[index].time_slice)
    }

    /// Removes the elements that were added too long ago for a set that forgets, and returns how
    /// many were removed; 0 if the set doesn't forget. Must be called before the row is written.
    ///
    /// Times are numbers of *time slices*, the equal parts into which a set divides the time for
    /// which it remembers elements; `now` is the present one. Elements that are up to eight slices
    /// old stay.
    ///
    /// Elements from the future stay as well, since the clock may have been set back. But a stored
    /// row has no room for times more than 15 slices apart, and its earliest time may be 8 slices
    /// before now. So times more than 7 slices after now (`MOST_SLICES_AHEAD`) are replaced by the
    /// time of that limit.
    ///
    /// Example: at time 100, elements from time 92 on stay, and times after 107 become 107.
    pub fn forget(&mut self, form: SetForm, now: i64) -> usize {
        if !form.forgets {
            return 0;
        }
        let count_before = self.entries.len();
        self.entries.retain(|entry| form.remembers(entry.time_slice, now));

        let latest = now.saturating_add(MOST_SLICES_AHEAD);
        for entry in &mut self.entries {
            entry.time_slice = entry.time_slice.min(latest);
        }
        count_before - self.entries.len()
    }

    /// Adds elements to the row. The row remembers for each that it was added in this time slice;
    /// an element that it already has gets this time slice instead of its old one.
    ///
    /// `hashes` has the bits of each element's hash that the set keeps, the first B ones as a
    /// number, in ascending order.
    pub fn put(&mut self, hashes: &[u64], time_slice: i64) {
        let mut old_entries = std::mem::take(&mut self.entries).into_iter().peekable();
        self.entries = List::with_capacity(old_entries.len() + hashes.len());
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

    /// Splits the row of a set if it has become too large. Returns the rows that replace it, in the
    /// order of their hashes: only the row itself if it isn't too large.
    ///
    /// All hashes of a row begin with the same bits, which the number of its *bucket* says. A row
    /// that is too large is divided into two by the next bit: one gets the hashes in which it is
    /// clear, the other those in which it is set. These rows are divided again as long as they are
    /// too large.
    ///
    /// `most_bytes` is the limit for the largest row of a set, [`MOST_BYTES`]; each bucket has a
    /// limit of its own, up to that. The returned rows can be written: [`Row::rebase`] has been
    /// called.
    pub fn split(mut self, form: SetForm, most_bytes: usize) -> List<Row> {
        self.rebase();

        let mut rows = List::new();
        // A stack of parts that may still be too large. The part with the lowest hashes is on top.
        let mut parts = List::from([RowPart { bucket: self.bucket, entries: &self.entries }]);
        while let Some(part) = parts.pop() {
            if part.fits(form, most_bytes) {
                let row = Row {
                    bucket: part.bucket,
                    first_time_slice: self.first_time_slice,
                    entries: part.entries.iter().copied().collect(),
                };
                rows.push(row);
            } else {
                let Halves { left, right } = part.divide(form);
                parts.push(right);
                parts.push(left);
            }
        }
        rows
    }

    /// Joins two small rows of a set, the reverse of [`Row::split`]: returns one row with the
    /// elements of both. It is ready to be written.
    ///
    /// Returns `None` if `left` and `right` aren't the two rows that one row is split into, in this
    /// order; or if the joined row would have more than three quarters of the bytes at which a row
    /// of its bucket is split, so that a few more elements would split it again.
    ///
    /// `most_bytes` is the limit for the largest row of a set, as for [`Row::split`].
    pub fn join(left: &Row, right: &Row, form: SetForm, most_bytes: usize) -> Option<Row> {
        // Bucket b is split into the buckets 2 b and 2 b + 1.
        let is_left_half = left.bucket > 1 && left.bucket.is_multiple_of(2);
        let are_halves = is_left_half && left.bucket + 1 == right.bucket;
        if !are_halves || left.entries.len() + right.entries.len() > MOST_HASHES {
            return None;
        }

        let entries = left.entries.iter().chain(&right.entries).copied();
        let mut row = Row {
            bucket: left.bucket / 2,
            first_time_slice: left.first_time_slice,
            entries: entries.collect(),
        };
        row.rebase();

        let bytes = stored_bytes(form, row.bucket, row.entries.len())?;
        let most_bytes_of_row = bytes_at_split(row.bucket, most_bytes);
        (bytes <= most_bytes_of_row * 3 / 4).then_some(row)
    }

    /// Makes sure that the time slices of all entries, the times at which elements were added, can
    /// be stored. They are stored as distances from `self.first_time_slice`, in four bits each. If
    /// a distance would be negative or too large, the first time slice becomes that of the earliest
    /// entry. Otherwise it stays, since it is at the start of the stored row, and PostgreSQL writes
    /// less WAL if the start doesn't change.
    ///
    /// [`Row::forget`] must have been called: it limits how far the time slices are apart.
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
    /// Returns whether the part can be a row of its own: it isn't larger than rows of its bucket
    /// may be, or it can't be divided any more, as its bucket says all bits of its hashes.
    fn fits(&self, form: SetForm, most_bytes: usize) -> bool {
        let bytes = stored_bytes(form, self.bucket, self.entries.len());
        let most_bytes_of_row = bytes_at_split(self.bucket, most_bytes);
        let says_all_bits = tree::depth(self.bucket) == form.bits;
        bytes.is_some_and(|bytes| bytes <= most_bytes_of_row) || says_all_bits
    }

    /// Divides the part into the hashes whose next bit is 0, and those whose next bit is 1. The
    /// next bit is the first one that the number of the bucket doesn't say. Panics if it says all
    /// bits.
    fn divide(self, form: SetForm) -> Halves<'a> {
        let next_bit = 1 << (form.bits - tree::depth(self.bucket) - 1);
        let count_of_left = self.entries.partition_point(|entry| entry.hash & next_bit == 0);
        let (left, right) = self.entries.split_at(count_of_left);
        Halves {
            left: RowPart { bucket: self.bucket * 2, entries: left },
            right: RowPart { bucket: self.bucket * 2 + 1, entries: right },
        }
    }
}

/// Returns the number of bytes above which the row of a bucket is split: a random number from half
/// of `most_bytes` to all of it, which is always the same for this bucket.
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
