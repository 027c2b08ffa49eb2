//! Finding the leaves of elements.
//!
//! The depth of a leaf isn't known before it is found. Nearly all leaves of a set have one of two
//! neighbouring depths, so the session remembers the depth of the leaf that it found last as a hint
//! where to look first. A wrong hint costs another statement.

use super::rows::MOST_ROWS_AT_ONCE;
use super::table::Set;
use crate::pg::call::Result;
use pg_bloom_core::interrupt;
use pg_bloom_core::memory::List;
use pg_bloom_core::set::{Row, tree};
use std::ops::RangeInclusive;

/// How many elements are looked for at all depths at once. Each needs up to sixty buckets.
const MOST_AT_ALL_DEPTHS: usize = 32;

/// An element that a call is given. The order of elements is that of their hashes, and so that of
/// their leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashedElement {
    /// All 64 bits of the hash.
    pub hash: u64,
    /// Which element of the call's array it is, from 0.
    pub array_index: usize,
}

impl Set {
    /// Reads for each element the row of the set's table that covers it, and calls `on_read` with
    /// the row and the element. The elements must be in the order of their hashes; `on_read` may
    /// get them in another order.
    ///
    /// A row covers all hashes that begin with certain bits. The rows are the leaves of a binary
    /// tree, and the number of these bits is a leaf's *depth*, which isn't known before the leaf is
    /// found. So each batch is looked for at the depth where the last leaf was found, and at other
    /// depths if that fails. Rows are read in batches, of at most 1,024 rows at the likely depth,
    /// since one query for many rows takes less time than many queries.
    ///
    /// Must be called within [`connected`](crate::pg::sql::connected). Reads with the snapshot of
    /// the calling query, without locks. Fails with 55000 if a hash has no row, or several; with
    /// 40001 if all rows are newer than the snapshot; and if reading fails.
    pub fn read_leaves(
        &self,
        elements: &[HashedElement],
        mut on_read: impl FnMut(&Row, HashedElement),
    ) -> Result<()> {
        let mut remaining = elements;
        while let Some(first) = remaining.first() {
            let depth = self.likely_depth(*first)?;
            let (batch, later) = remaining.split_at(batch_len(remaining, depth));
            self.read_batch(batch, depth, &mut on_read)?;
            remaining = later;
        }
        Ok(())
    }

    /// Returns at which depth of the tree the leaf of an element probably is. The leaf is the row
    /// that covers the element, and its depth the number of first bits that all hashes in this row
    /// have in common.
    ///
    /// Nearly all leaves of a set have one of two neighbouring depths. So this is the depth of the
    /// leaf that the session has found last. If it has found none yet, the element's leaf is looked
    /// for at all depths. Fails if the element has no leaf then, or if reading fails.
    fn likely_depth(&self, element: HashedElement) -> Result<u32> {
        if self.depth.get().is_none() {
            let mut search = LeafSearch::new(std::slice::from_ref(&element));
            self.read_at_depths(&mut search, 0..=self.form.bits, 1, &mut |_, _| ())?;
        }
        match self.depth.get() {
            Some(depth) => Ok(depth),
            None => self.fail_for_missing_row(tree::covering(element.hash, tree::FIRST_DEPTH)),
        }
    }

    /// Reads for each element its leaf, the row of the set that covers the element, and calls
    /// `on_read` with the row and the element. `depth` is where the leaves are likely to be in the
    /// tree; there the elements must have at most [`MOST_ROWS_AT_ONCE`] different buckets, which
    /// are numbers of possible rows.
    ///
    /// All elements are looked for at three depths: where the session found its last leaf, one
    /// above and one below. If this doesn't find all leaves, all depths are tried for a few
    /// elements, which gives a better hint for the others, and so on. Fails with 55000 if an
    /// element has no leaf, or two, and if reading fails.
    fn read_batch(
        &self,
        elements: &[HashedElement],
        depth: u32,
        on_read: &mut impl FnMut(&Row, HashedElement),
    ) -> Result<()> {
        let deepest = self.form.bits;
        let mut search = LeafSearch::new(elements);
        loop {
            let hint = self.depth.get().unwrap_or(depth);
            let around_hint = hint.saturating_sub(1)..=(hint + 1).min(deepest);
            self.read_at_depths(&mut search, around_hint, elements.len(), on_read)?;
            let Some(first_without_leaf) = search.first_without_leaf() else {
                return Ok(());
            };

            // The leaves of a few elements are found at any depth. This gives a better hint for the
            // others. The first element is among the few: if it still has no leaf, it has none.
            self.read_at_depths(&mut search, 0..=deepest, MOST_AT_ALL_DEPTHS, on_read)?;
            if search.leaves[first_without_leaf].is_none() {
                let hash = elements[first_without_leaf].hash;
                return self.fail_for_missing_row(tree::covering(hash, depth));
            }
        }
    }

    /// Looks for the leaves of the first `most` elements that have none yet, at some depths of the
    /// tree: reads all rows that could cover these elements there, notes each row that exists as
    /// the leaf of all elements of the search that it covers, and calls `on_read` with the row and
    /// each of these elements.
    ///
    /// Fails with 55000 if an element has another row as its leaf already, and if reading fails.
    fn read_at_depths(
        &self,
        search: &mut LeafSearch<'_>,
        depths: RangeInclusive<u32>,
        most: usize,
        on_read: &mut impl FnMut(&Row, HashedElement),
    ) -> Result<()> {
        let num_depths = depths.clone().count();
        let buckets = search.buckets_without_leaf(depths, most);
        if buckets.is_empty() {
            return Ok(());
        }
        // One element has a bucket at each depth, and only one of these has a row.
        let may_be_several = buckets.len() > num_depths;
        self.each_row_of(&buckets, may_be_several, |row| {
            for index in interrupt::cancellable(search.covered_by(row.bucket)) {
                if let Some(other_leaf) = search.leaves[index].replace(row.bucket) {
                    return Err(self.ambiguous(other_leaf, row.bucket));
                }
                on_read(&row, search.elements[index]);
            }
            self.depth.set(Some(tree::depth(row.bucket)));
            Ok(())
        })?;
        Ok(())
    }
}

/// Returns how many elements, from the first on, one statement can look for at this depth of the
/// tree: they have at most [`MOST_ROWS_AT_ONCE`] different buckets there, numbers of possible rows.
/// The elements must be in the order of their hashes.
fn batch_len(elements: &[HashedElement], depth: u32) -> usize {
    let by_bucket =
        elements.chunk_by(|a, b| tree::covering(a.hash, depth) == tree::covering(b.hash, depth));
    by_bucket.take(MOST_ROWS_AT_ONCE).map(<[HashedElement]>::len).sum()
}

/// Elements whose leaves are looked for.
struct LeafSearch<'a> {
    /// The elements, in their order.
    elements: &'a [HashedElement],
    /// The bucket of each element's leaf, once that was found.
    leaves: List<Option<u64>>,
}

impl<'a> LeafSearch<'a> {
    /// Returns a search that has found no leaf yet.
    fn new(elements: &'a [HashedElement]) -> LeafSearch<'a> {
        let leaves = elements.iter().map(|_| None).collect::<List<_>>();
        LeafSearch { elements, leaves }
    }

    /// Returns the place of the first element whose leaf isn't found; `None` if all are.
    fn first_without_leaf(&self) -> Option<usize> {
        self.leaves.iter().position(Option::is_none)
    }

    /// Returns the buckets at some depths of the tree that cover the first `most` elements whose
    /// leaf isn't found yet, each bucket once. A *bucket* is the number of a possible row: it is
    /// determined by a depth and by this number of first bits of a hash.
    fn buckets_without_leaf(&self, depths: RangeInclusive<u32>, most: usize) -> List<u64> {
        let hashes = self
            .elements
            .iter()
            .zip(&self.leaves)
            .filter(|(_, leaf)| leaf.is_none())
            .map(|(element, _)| element.hash);
        let hashes: List<u64> = hashes.take(most).collect();

        let mut buckets = List::new();
        for depth in depths {
            // Hashes are in order, so those of one bucket follow each other.
            let mut last_at_depth = None;
            for &hash in &hashes {
                let bucket = tree::covering(hash, depth);
                if last_at_depth != Some(bucket) {
                    buckets.push(bucket);
                    last_at_depth = Some(bucket);
                }
            }
        }
        buckets
    }

    /// Returns the range of indexes of the elements that a bucket, a row with this number, covers.
    /// They follow each other, as elements are in the order of their hashes.
    fn covered_by(&self, bucket: u64) -> std::ops::Range<usize> {
        let first_hash = tree::first_hash(bucket);
        let start = self.elements.partition_point(|element| element.hash < first_hash);
        let count =
            self.elements[start..].partition_point(|element| tree::covers(bucket, element.hash));
        start..start + count
    }
}
