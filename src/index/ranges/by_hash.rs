//! Lookups of elements: the rows of ranges that may have one of some hashes.

use super::columns::element::ElementColumn;
use super::columns::{Index, RangesColumn};
use super::rows::{HashFilter, RangePages, add_pages};
use crate::index::page::unhashed;
use crate::pg::call::{Element, Result, interrupt};
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::{Opened, Relation};
use pg_bloom_core::index::ranges::Directory;
use pg_bloom_core::memory;
use pgrx::pg_sys::Oid;

/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn add_rows(index: &Index, elements: &ElementColumn, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let directory = index.directory()?;
    let mut ranges: Vec<u32> = Vec::new();
    let mut hashes_of_keys = Vec::new();
    for key in keys {
        // SAFETY: promised by the caller.
        let (hashes, mut found) = unsafe { look_up(index, elements, &directory, key)? };
        if !hashes_of_keys.is_empty() {
            found.retain(|range| ranges.binary_search(range).is_ok());
        }
        if found.is_empty() {
            return Ok(());
        }
        ranges = found;
        memory::push(&mut hashes_of_keys, hashes);
    }
    // Absent keys never come here: the table needn't be opened for them.
    let table = Opened::table_of(index.relation());
    let pages = RangePages::new(table.relation(), directory.options);
    match HashFilter::new(index, table.relation()) {
        Some(filter) => pages.visit(&ranges, |_, page| filter.add_rows(page, &hashes_of_keys, rows)),
        None => add_pages(ranges.into_iter().flat_map(|range| pages.pages(range)), rows),
    }
    Ok(())
}

/// Which of these keys, of a type that the column is compared with, a row may have. Errors: as a scan; XX000 for an
/// index of parts.
///
/// # Safety
/// The keys must be values of that type.
pub unsafe fn may_have(relation: Relation, asked_type: Oid, keys: &[Element]) -> Result<Vec<bool>> {
    relation.lock_for_serializable();
    relation.count_scan();
    let index = Index::of(relation)?;
    let directory = index.directory()?;
    let RangesColumn::Element(elements) = index.kind() else { return Err(unhashed()) };
    let hasher = elements.hasher_of(relation, asked_type)?;
    memory::try_collect(keys.iter().map(|&key| {
        interrupt::check_for_interrupts();
        // SAFETY: promised by the caller.
        let hash = unsafe { hasher.hash(key) }.ok_or_else(unhashed)?;
        let mut may_have = false;
        index.checked(directory.search(&mut index.pages(), hash, |_| may_have = true))?;
        Ok(may_have)
    }))
}

/// The hashes of which an element must have one to match a key, and the ranges that may have these. Both ascend.
///
/// # Safety
/// The key must be one of a scan of the index.
unsafe fn look_up(
    index: &Index,
    elements: &ElementColumn,
    directory: &Directory,
    key: &Key,
) -> Result<(Vec<u64>, Vec<u32>)> {
    /// Ranges that are gathered before those that were found several times are looked for.
    const FEW: usize = 1 << 16;
    let hasher = elements.hasher_of(index.relation(), key.asked_type)?;
    // SAFETY: promised by the caller: what is looked for is of the type that the hasher is for.
    let hash_of = |element| unsafe { hasher.hash(element) }.ok_or_else(unhashed);
    let all_hashes = || memory::try_collect(key.sought().into_iter().map(hash_of));
    // A nested loop asks again and again.
    // SAFETY: hashes are in Rust's memory.
    let mut hashes = if key.is_array() { unsafe { in_scratch(all_hashes)? } } else { all_hashes()? };
    keep_distinct(&mut hashes);
    let (mut ranges, mut distinct) = (Vec::new(), 0);
    let mut pages = index.pages();
    for &hash in &hashes {
        interrupt::check_for_interrupts();
        index.checked(directory.search(&mut pages, hash, |range| memory::push(&mut ranges, range)))?;
        if ranges.len() > FEW.max(2 * distinct) {
            keep_distinct(&mut ranges);
            distinct = ranges.len();
        }
    }
    keep_distinct(&mut ranges);
    Ok((hashes, ranges))
}

/// Sorts items, and drops those that are there several times.
fn keep_distinct<T: Ord>(items: &mut Vec<T>) {
    items.sort_unstable();
    items.dedup();
}
