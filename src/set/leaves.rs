//! Finding the leaves of elements.
//!
//! The depth of a leaf isn't known before it is found. Nearly all leaves of a set have one of two neighbouring depths,
//! so the session remembers a depth as a hint where to look first; a wrong one costs another statement.

use super::items::Item;
use super::rows::MOST_ROWS_AT_ONCE;
use super::table::Set;
use crate::pg::call::error::Result;
use crate::pg::sql::{Parameter, Sees};
use pg_bloom_core::memory;
use pg_bloom_core::set::{Row, tree};
use std::ops::RangeInclusive;

/// How many elements are looked for at all depths at once.
const MOST_AT_ALL_DEPTHS: usize = 32;

impl Set {
    /// Calls `each` with every leaf that covers some of these items, which are in the order of their hashes, and with
    /// these items. While connected, with the snapshot of the calling query.
    ///
    /// # Errors
    /// 55000 for a gap or an overlap; those of reading and of `each`.
    pub fn read_leaves(&self, items: &[Item], mut each: impl FnMut(&Row, &[Item]) -> Result<()>) -> Result<()> {
        let mut rest = items;
        while let Some(first) = rest.first() {
            if self.known.depth.get().is_none() {
                let all = 0..=self.known.form.bits;
                self.read_at(&rest[..1], all, &mut [None], |_, _| Ok(()))?;
            }
            let depth =
                self.known.depth.get().ok_or_else(|| self.missing(tree::covering(first.hash, tree::FIRST_DEPTH)))?;
            let leaves = rest.chunk_by(|a, b| tree::covering(a.hash, depth) == tree::covering(b.hash, depth));
            let (batch, later) = rest.split_at(leaves.take(MOST_ROWS_AT_ONCE).map(<[Item]>::len).sum());
            self.read_batch(batch, depth, &mut each)?;
            rest = later;
        }
        Ok(())
    }

    fn read_batch(&self, batch: &[Item], depth: u32, mut each: impl FnMut(&Row, &[Item]) -> Result<()>) -> Result<()> {
        let mut leaves: Vec<Option<u64>> = memory::collect(batch.iter().map(|_| None));
        let near = depth.saturating_sub(1)..=(depth + 1).min(self.known.form.bits);
        self.read_at(batch, near, &mut leaves, &mut each)?;
        while let Some(first) = leaves.iter().position(Option::is_none) {
            let is_missing = |place: &usize| leaves[*place].is_none();
            let places: Vec<usize> = memory::collect((first..batch.len()).filter(is_missing).take(MOST_AT_ALL_DEPTHS));
            let missing: Vec<Item> = memory::collect(places.iter().map(|&place| batch[place]));
            let mut found = memory::collect(missing.iter().map(|_| None));
            // A leaf that is found only now may cover other items.
            self.read_at(&missing, 0..=self.known.form.bits, &mut found, |_, _| Ok(()))?;
            let Some(leaf) = found[0] else { return Err(self.missing(tree::covering(batch[first].hash, depth))) };
            let depth = tree::depth(leaf);
            self.read_at(batch, depth..=depth, &mut leaves, &mut each)?;
        }
        Ok(())
    }

    /// Reads the rows at some depths that cover items, and notes them.
    fn read_at(
        &self,
        items: &[Item],
        depths: RangeInclusive<u32>,
        leaves: &mut [Option<u64>],
        mut each: impl FnMut(&Row, &[Item]) -> Result<()>,
    ) -> Result<()> {
        let mut wanted: Vec<u64> = Vec::new();
        for depth in depths {
            let before = wanted.len();
            for (item, _) in items.iter().zip(leaves.iter()).filter(|(_, leaf)| leaf.is_none()) {
                let bucket = tree::covering(item.hash, depth);
                if wanted[before..].last() != Some(&bucket) {
                    memory::push(&mut wanted, bucket);
                }
            }
        }
        self.rows(&self.known.read, &[Parameter::I64s(&wanted)], Sees::CallingQuery, |row| {
            let start = items.partition_point(|item| item.hash < tree::first_hash(row.bucket));
            let end = start + items[start..].partition_point(|item| tree::covers(row.bucket, item.hash));
            for leaf in &mut leaves[start..end] {
                if let Some(other) = leaf.replace(row.bucket) {
                    return Err(self.ambiguous(other, row.bucket));
                }
            }
            self.known.depth.set(Some(tree::depth(row.bucket)));
            each(&row, &items[start..end])
        })?;
        Ok(())
    }
}
