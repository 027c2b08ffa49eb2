//! Bitmap scans: the rows of ranges that may have a key, clamped to the pages that the table has.

use super::column::Index;
use super::heap_filter::HeapFilter;
use super::page::unhashed;
use crate::pg::buffer;
use crate::pg::error::Result;
use crate::pg::interrupt;
use crate::pg::memory::Scratch;
use crate::pg::relation::Relation;
use crate::pg::scan::{Bitmap, Key, RowBatch, Sought};
use crate::pg::table;
use pg_bloom_core::index::keys::Directory;
use pg_bloom_core::memory;

/// Adds the rows that may have these keys, all of them. Returns how many that may be.
///
/// # Errors
/// XX002 for damage; 0A000 for a comparison that the index can't answer.
pub fn bitmap(relation: Relation, keys: &[Key], bitmap: &mut Bitmap) -> Result<i64> {
    relation.count_scan();
    let index = Index::of(relation)?;
    let directory = index.directory()?;
    let mut ranges: Option<Vec<u32>> = None;
    let mut hashes_of_keys = Vec::new();
    for key in keys {
        let Asked { hashes, ranges: found } = ask(&index, &directory, key)?;
        let both = match ranges.take() {
            Some(before) => common(&before, &found),
            None => found,
        };
        if both.is_empty() {
            return Ok(0);
        }
        ranges = Some(both);
        memory::push(&mut hashes_of_keys, hashes);
    }
    // Absent keys never come here: the table needn't be opened for them.
    let table = table::of_index(relation);
    let candidates = Candidates {
        table: table.relation(),
        pages_per_range: directory.options.pages_per_range,
        ranges: ranges.unwrap_or_default(),
        keys: hashes_of_keys,
    };
    let mut rows = RowBatch::new(bitmap);
    candidates.add(HeapFilter::new(&index, table.relation()).as_ref(), &mut rows);
    Ok(rows.finish())
}

/// Ranges that may have rows with all keys.
struct Candidates {
    table: Relation,
    pages_per_range: u32,
    ranges: Vec<u32>,
    /// For each key the hashes of which a row must have one, ascending.
    keys: Vec<Vec<u64>>,
}

impl Candidates {
    /// Adds what a filter finds in their pages; whole pages without one.
    fn add(&self, filter: Option<&HeapFilter>, rows: &mut RowBatch<'_>) {
        let end = self.table.pages();
        let pages_of = |range: u32| {
            let first = u64::from(range) * u64::from(self.pages_per_range);
            (first..(first + u64::from(self.pages_per_range)).min(u64::from(end))).map(|page| page as u32)
        };
        for (i, &range) in self.ranges.iter().enumerate() {
            match filter {
                Some(filter) => {
                    let next = self.ranges.get(i + 1).copied();
                    next.into_iter().flat_map(pages_of).for_each(|page| buffer::prefetch(self.table, page));
                    pages_of(range).for_each(|page| filter.add_rows(page, &self.keys, rows));
                }
                None => pages_of(range).for_each(|page| rows.add_page(page)),
            }
            interrupt::check_for_interrupts();
        }
    }
}

/// What a key looks for: hashes of which an element has one, and the ranges that may have these, both ascending.
struct Asked {
    hashes: Vec<u64>,
    ranges: Vec<u32>,
}

fn ask(index: &Index, directory: &Directory, key: &Key) -> Result<Asked> {
    // A nested loop asks again and again.
    let _scratch = key.is_array().then(Scratch::new);
    let (mut hashes, mut ranges) = (Vec::new(), Vec::new());
    let hasher = index.hasher_of(key.asked_type())?;
    let mut pages = index.pages();
    let mut ask = |element| {
        let hash = hasher.hash(element).ok_or_else(unhashed)?;
        memory::push(&mut hashes, hash);
        directory
            .search(&mut pages, hash, |range| memory::push(&mut ranges, range))
            .map_err(|failure| failure.of(index.relation()))
    };
    match key.sought() {
        Sought::Nothing => {}
        Sought::Value(element) => ask(element)?,
        Sought::AnyOf(elements) => {
            for element in elements {
                ask(element)?;
            }
            hashes.sort_unstable();
            ranges.sort_unstable();
            ranges.dedup();
        }
    }
    Ok(Asked { hashes, ranges })
}

/// What two ascending lists have in common.
fn common(left: &[u32], right: &[u32]) -> Vec<u32> {
    left.iter().copied().filter(|range| right.binary_search(range).is_ok()).collect()
}
