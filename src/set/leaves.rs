//! Finding the leaves of elements.
//!
//! The depth of a leaf isn't known before it is found. Nearly all leaves of a set have one of two
//! neighbouring depths, so the session remembers a depth as a hint where to look first; a wrong one
//! costs another statement.

use super::rows::MOST_ROWS_AT_ONCE;
use super::table::Set;
use crate::pg::call::Result;
use crate::pg::sql::{Parameter, Sees};
use pg_bloom_core::set::{Row, tree};
use pg_bloom_core::{interrupt, memory};
use std::ops::RangeInclusive;

/// How many elements are looked for at all depths at once.
const MOST_AT_ALL_DEPTHS: usize = 32;

/// An element of a call. The order of hashes is that of their leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    pub hash: u64,
    /// Its place in the array.
    pub place: usize,
}

impl Set {
    /// Calls `each` with these items, which are in the order of their hashes, and with the leaf
    /// that covers each. While connected, with the snapshot of the calling query. Errors: 55000 for
    /// a gap or an overlap; those of reading.
    pub fn read_leaves(&self, items: &[Item], mut each: impl FnMut(&Row, Item)) -> Result<()> {
        let (mut rest, bits) = (items, self.form.bits);
        while let Some(first) = rest.first() {
            if self.depth.get().is_none() {
                self.read_at(&rest[..1], 0..=bits, 1, &mut [None], |_, _| ())?;
            }
            let Some(depth) = self.depth.get() else {
                return self.fail_for_missing_row(tree::covering(first.hash, tree::FIRST_DEPTH));
            };
            let leaves = rest
                .chunk_by(|a, b| tree::covering(a.hash, depth) == tree::covering(b.hash, depth));
            let (batch, later) =
                rest.split_at(leaves.take(MOST_ROWS_AT_ONCE).map(<[Item]>::len).sum());
            let mut leaves: Vec<Option<u64>> = memory::collect(batch.iter().map(|_| None));
            loop {
                let hint = self.depth.get().unwrap_or(depth);
                let around = hint.saturating_sub(1)..=(hint + 1).min(bits);
                self.read_at(batch, around, batch.len(), &mut leaves, &mut each)?;
                let Some(first) = leaves.iter().position(Option::is_none) else {
                    break;
                };
                self.read_at(batch, 0..=bits, MOST_AT_ALL_DEPTHS, &mut leaves, &mut each)?;
                if leaves[first].is_none() {
                    return self.fail_for_missing_row(tree::covering(batch[first].hash, depth));
                }
            }
            rest = later;
        }
        Ok(())
    }

    /// Reads the rows at some depths that cover the first `most` items without a leaf, and notes
    /// them for all items.
    fn read_at(
        &self,
        items: &[Item],
        depths: RangeInclusive<u32>,
        most: usize,
        leaves: &mut [Option<u64>],
        mut each: impl FnMut(&Row, Item),
    ) -> Result<()> {
        let without = items
            .iter()
            .zip(leaves.iter())
            .filter(|(_, leaf)| leaf.is_none())
            .map(|(&item, _)| item);
        let without = memory::collect(without.take(most));
        let mut wanted: Vec<u64> = Vec::new();
        for depth in depths {
            let before = wanted.len();
            for item in &without {
                let bucket = tree::covering(item.hash, depth);
                if wanted[before..].last() != Some(&bucket) {
                    memory::push(&mut wanted, bucket);
                }
            }
        }
        let note = |row: Row| {
            let start = items.partition_point(|item| item.hash < tree::first_hash(row.bucket));
            let end =
                start + items[start..].partition_point(|item| tree::covers(row.bucket, item.hash));
            for place in interrupt::cancellable(start..end) {
                if let Some(other) = leaves[place].replace(row.bucket) {
                    return Err(self.ambiguous(other, row.bucket));
                }
                each(&row, items[place]);
            }
            self.depth.set(Some(tree::depth(row.bucket)));
            Ok(())
        };
        self.each_row(&self.read, &[Parameter::I64s(&wanted)], Sees::CallingQuery, note)
            .map(drop)
    }
}
