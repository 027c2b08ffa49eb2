//! Bitmap scans: whole ranges that may have a key, clamped to the pages that the table has.

use super::column::Index;
use super::page::unhashed;
use crate::pg::error::Result;
use crate::pg::interrupt;
use crate::pg::memory::Scratch;
use crate::pg::relation::Relation;
use crate::pg::scan::{Bitmap, Key, Sought};
use crate::pg::table;
use pg_bloom_core::memory;
use pg_bloom_core::range::Directory;

/// Adds the pages that may have rows with these keys, all of them. Returns how many rows that may be.
///
/// # Errors
/// XX002 for damage; 0A000 for a comparison that the index can't answer.
pub fn bitmap(relation: Relation, keys: &[Key], bitmap: &mut Bitmap) -> Result<i64> {
    relation.count_scan();
    let index = Index::of(relation)?;
    let directory = index.directory()?;
    let mut ranges: Option<Vec<u32>> = None;
    for key in keys {
        let found = ranges_of(&index, &directory, key)?;
        let both = match ranges.take() {
            Some(before) => common(&before, &found),
            None => found,
        };
        if both.is_empty() {
            return Ok(0);
        }
        ranges = Some(both);
    }
    // Absent keys never come here: the table needn't be opened for them.
    let pages = table::of_index(relation).relation().pages();
    let mut added = 0;
    for range in ranges.unwrap_or_default() {
        let first = u64::from(range) * u64::from(directory.options.pages_per_range);
        let end = (first + u64::from(directory.options.pages_per_range)).min(u64::from(pages));
        for page in first..end {
            bitmap.add_page(page as u32);
            added += 1;
        }
        interrupt::check_for_interrupts();
    }
    Ok(added * ROWS_PER_PAGE)
}

/// What is reported for a page, of which nobody knows how many rows will match. BRIN says the same.
const ROWS_PER_PAGE: i64 = 10;

/// The ranges that may have a key, ascending.
fn ranges_of(index: &Index, directory: &Directory, key: &Key) -> Result<Vec<u32>> {
    // A nested loop asks again and again.
    let _scratch = key.is_array().then(Scratch::new);
    let mut ranges = Vec::new();
    let hasher = index.hasher_of(key.asked_type())?;
    let mut pages = index.pages();
    let mut ask = |element| {
        let hash = hasher.hash(element).ok_or_else(unhashed)?;
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
            ranges.sort_unstable();
            ranges.dedup();
        }
    }
    Ok(ranges)
}

/// What two ascending lists have in common.
fn common(left: &[u32], right: &[u32]) -> Vec<u32> {
    left.iter().copied().filter(|range| right.binary_search(range).is_ok()).collect()
}
