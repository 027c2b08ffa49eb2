//! A whole set in memory, for tests and fuzzing: every row as its stored bytes.

use super::{Row, SetForm, tree};
use std::collections::BTreeMap;

/// A set whose rows are in a map.
#[derive(Clone, Debug)]
pub struct MemorySet {
    /// The form of its rows.
    pub form: SetForm,
    /// More bytes than this split a row.
    pub most_bytes: usize,
    /// The rows by their buckets.
    pub rows: BTreeMap<u64, Vec<u8>>,
}

impl MemorySet {
    /// Returns a set without elements, whose leaves all have this depth.
    pub fn new(form: SetForm, most_bytes: usize, depth: u32) -> MemorySet {
        let rows = (1 << depth..2 << depth)
            .map(|bucket| (bucket, Row::empty(bucket).write(form)))
            .collect();
        MemorySet { form, most_bytes, rows }
    }

    /// Returns the row that covers a 64-bit hash.
    pub fn leaf(&self, hash: u64) -> Row {
        let mut buckets = (0..=self.form.bits).map(|depth| tree::covering(hash, depth));
        self.row(
            buckets
                .find(|bucket| self.rows.contains_key(bucket))
                .expect("each hash has a leaf"),
        )
    }

    fn row(&self, bucket: u64) -> Row {
        Row::parse(self.form, bucket as i64, &self.rows[&bucket]).expect("a row that was written")
    }

    fn store(&mut self, mut row: Row) {
        row.rebase();
        self.rows.insert(row.bucket, row.write(self.form));
    }

    /// Adds the first bits of 64-bit hashes at the time `now`, to each leaf all that it covers at
    /// once.
    pub fn put(&mut self, hashes: &[u64], now: i64) {
        let mut sorted = hashes.to_vec();
        sorted.sort_unstable();
        while let Some(&first) = sorted.first() {
            let mut row = self.leaf(first);
            let here = sorted.partition_point(|&hash| tree::covers(row.bucket, hash));
            let mut prefixes: Vec<u64> =
                sorted.drain(..here).map(|hash| self.form.prefix(hash)).collect();
            prefixes.dedup();
            row.forget(self.form, now);
            row.put(&prefixes, if self.form.forgets { now } else { 0 });
            self.rows.remove(&row.bucket);
            row.split(self.form, self.most_bytes)
                .into_iter()
                .for_each(|row| self.store(row));
        }
    }

    /// Removes the first bits of a hash.
    pub fn remove(&mut self, hash: u64) {
        let mut row = self.leaf(hash);
        row.remove(&[self.form.prefix(hash)]);
        self.store(row);
    }

    /// Returns whether the set remembers the first bits of a hash at the time `now`.
    pub fn contains(&self, hash: u64, now: i64) -> bool {
        let added_at = self.leaf(hash).time_slice_of(self.form.prefix(hash));
        added_at.is_some_and(|time_slice| self.form.remembers(time_slice, now))
    }

    /// Drops what is forgotten at the time `now`, and joins halves once.
    pub fn expire(&mut self, now: i64) {
        for bucket in self.rows.keys().copied().collect::<Vec<u64>>() {
            let mut row = self.row(bucket);
            row.forget(self.form, now);
            self.store(row);
        }
        for left in self
            .rows
            .keys()
            .copied()
            .filter(|bucket| bucket & 1 == 0)
            .collect::<Vec<u64>>()
        {
            if !self.rows.contains_key(&(left + 1)) {
                continue;
            }
            let both = (self.row(left), self.row(left + 1));
            if let Some(row) = Row::join(&both.0, &both.1, self.form, self.most_bytes) {
                self.rows.remove(&left);
                self.rows.remove(&(left + 1));
                self.store(row);
            }
        }
    }
}
