//! Asking a row, and changing, splitting and joining rows.

use super::code::{Entry, MOST_HASHES, MOST_SLICES, Row, RowShape};
use super::tree::{self, Form, SLICES};
use crate::{hash, memory};

/// The most bytes of a row. WAL for each insertion grows with it, bytes of headers shrink.
pub const MOST_BYTES: usize = 800;

/// The bytes at which a row is split: between half of the most and all of it, by its bucket. Hashes
/// are uniform, so with one limit all rows of a set would be split at about the same time, and then
/// all be half empty.
fn limit(bucket: u64, most_bytes: usize) -> usize {
    let half = most_bytes / 2;
    half + hash::hash(&bucket.to_le_bytes()) as usize % (half + 1)
}

impl Row {
    /// A row without hashes.
    pub fn empty(bucket: u64) -> Row {
        Row { bucket, first: 0, entries: Vec::new() }
    }

    /// The slice of a hash, if the row has it.
    pub fn slice_of(&self, hash: u64) -> Option<i64> {
        let place = self.entries.binary_search_by_key(&hash, |entry| entry.hash);
        place.ok().map(|place| self.entries[place].slice)
    }

    /// Drops what is forgotten at time `now`, in slices; to be called before a row is written.
    /// Returns how many. What is later stays so, as far as slices have room for it: the clock was
    /// set back, and may be set right again.
    pub fn forget(&mut self, form: Form, now: i64) -> usize {
        if !form.keeps {
            return 0;
        }
        let before = self.entries.len();
        self.entries.retain(|entry| form.remembers(entry.slice, now));
        let latest = now.saturating_add(MOST_SLICES - SLICES);
        self.entries
            .iter_mut()
            .for_each(|entry| entry.slice = entry.slice.min(latest));
        before - self.entries.len()
    }

    /// Adds hashes, which ascend, with this slice; those that are there get it.
    pub fn put(&mut self, hashes: &[u64], slice: i64) {
        let mut old = std::mem::take(&mut self.entries).into_iter().peekable();
        self.entries = memory::with_capacity(old.len() + hashes.len());
        for &hash in hashes {
            while let Some(entry) = old.next_if(|entry| entry.hash < hash) {
                self.entries.push(entry);
            }
            old.next_if(|entry| entry.hash == hash);
            self.entries.push(Entry { hash, slice });
        }
        self.entries.extend(old);
    }

    /// Removes hashes, which ascend.
    pub fn remove(&mut self, hashes: &[u64]) {
        self.entries
            .retain(|entry| hashes.binary_search(&entry.hash).is_err());
    }

    /// The rows that replace this one, in order: itself, or its halves, or theirs, until none
    /// exceeds its limit if the largest has so many bytes.
    pub fn split(mut self, form: Form, most_bytes: usize) -> Vec<Row> {
        self.rebase();
        let (mut rows, mut rest) = (Vec::new(), vec![(self.bucket, &self.entries[..])]);
        while let Some((bucket, entries)) = rest.pop() {
            let shape = RowShape::new(form, bucket, entries.len());
            let fits = shape.is_some_and(|shape| shape.bytes <= limit(bucket, most_bytes));
            let depth = tree::depth(bucket);
            if fits || depth == form.bits {
                let entries = memory::collect(entries.iter().copied());
                memory::push(&mut rows, Row { bucket, first: self.first, entries });
            } else {
                let bit = 1 << (form.bits - depth - 1);
                let (left, right) =
                    entries.split_at(entries.partition_point(|entry| entry.hash & bit == 0));
                rest.extend([(bucket * 2 + 1, right), (bucket * 2, left)]);
            }
        }
        rows
    }

    /// The row of the parent of two halves; `None` if these are not the halves of one bucket, or if
    /// it would have more than three quarters of the bytes at which it is split: the next
    /// insertions must not split it again.
    pub fn join(left: &Row, right: &Row, form: Form, most_bytes: usize) -> Option<Row> {
        let are_halves =
            left.bucket ^ 1 == right.bucket && left.bucket < right.bucket && left.bucket > 1;
        if !are_halves || left.entries.len() + right.entries.len() > MOST_HASHES {
            return None;
        }
        let all = left.entries.iter().chain(&right.entries).copied();
        let mut row = Row {
            bucket: left.bucket / 2,
            first: left.first,
            entries: memory::collect(all),
        };
        row.rebase();
        let bytes = RowShape::new(form, row.bucket, row.entries.len())?.bytes;
        (bytes <= limit(row.bucket, most_bytes) * 3 / 4).then_some(row)
    }

    /// Counts slices from the earliest of them if one is too far from the first.
    pub fn rebase(&mut self) {
        let slices = || self.entries.iter().map(|entry| entry.slice);
        let (Some(earliest), Some(latest)) = (slices().min(), slices().max()) else {
            return;
        };
        if earliest < self.first || latest.saturating_sub(self.first) > MOST_SLICES {
            self.first = earliest;
        }
    }
}
