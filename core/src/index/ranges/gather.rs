//! The hashes of ranges whose tile is not written yet.

use crate::filter::sparse;
use crate::memory;

/// Distinct hashes of neighbouring ranges.
#[derive(Default)]
pub(super) struct Gathered {
    hashes: Vec<u64>,
    /// Where the hashes of each range end.
    ends: Vec<usize>,
}

impl Gathered {
    pub fn ranges(&self) -> usize {
        self.ends.len()
    }

    pub fn range(&self, range: usize) -> &[u64] {
        let start = range.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.hashes[start..self.ends[range]]
    }

    /// Adds a range. Its hashes may be in any order, and may repeat.
    pub fn add(&mut self, hashes: &[u64]) {
        let start = self.hashes.len();
        let free = self.hashes.capacity() - start;
        if free < hashes.len() {
            memory::reserve(&mut self.hashes, hashes.len().max(start));
        }
        self.hashes.extend_from_slice(hashes);
        let distinct = sparse::sort_distinct(&mut self.hashes[start..], 0);
        self.hashes.truncate(start + distinct);
        self.ends.push(self.hashes.len());
    }

    /// All of its hashes, each once.
    pub fn distinct(mut self) -> Vec<u64> {
        let distinct = sparse::sort_distinct(&mut self.hashes, 0);
        self.hashes.truncate(distinct);
        self.hashes
    }
}
