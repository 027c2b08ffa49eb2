//! Lookups in an index of elements: finds the rows of ranges that may have one of the elements that
//! a scan asks for.

use super::columns::element::ElementColumn;
use super::columns::{RangesColumn, RangesIndex, SHORT_LIST, keep_distinct};
use super::rows::{HashFilter, RangePages, add_pages};
use crate::index::page::unhashed;
use crate::pg::call::{Result, SqlValue, interrupt};
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::{Opened, Relation};
use pg_bloom_core::index::page::Pages;
use pg_bloom_core::index::ranges::{self, Directory};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::Oid;

/// Adds the rows that may match all scan keys (`x = 5`, `x = ANY (…)`) to a bitmap, for an index
/// whose rows have one element each. PostgreSQL compares each of these rows with the query again.
///
/// The index says which *ranges*, some neighbouring pages of the table, may have one of the
/// elements. The scan reads their pages, and adds only rows whose element has one of the hashes;
/// or, if it can't read rows itself, all rows of these pages. Without scan keys nothing is added.
///
/// Fails with 0A000 for a comparison that the index can't answer, and with XX002 if it is damaged.
///
/// # Safety
/// The scan keys must be those of a scan of the index.
pub unsafe fn add_rows(
    index: &RangesIndex,
    elements: &ElementColumn,
    scan_keys: &[Key],
    rows: &mut RowBatch,
) -> Result<()> {
    // SAFETY: promised by the caller.
    let hashes = unsafe { hashes_that_match_all(index, elements, scan_keys)? };
    let directory = index.directory()?;
    let ranges = ranges_with_hashes(index, &directory, &hashes)?;
    rows.counts.ranges += ranges.len() as u64;
    if ranges.is_empty() {
        // For absent keys the table needn't be opened.
        return Ok(());
    }

    let table = Opened::table_of(index.relation);
    let pages = RangePages::new(table.relation(), directory.options);
    match HashFilter::new(index, table.relation()) {
        Some(filter) => pages.visit(&ranges, |i, page| {
            rows.count_table_page(ranges[i]);
            filter.add_rows(page, &hashes, rows);
        }),
        None => add_pages(ranges.into_iter().flat_map(|range| pages.pages(range)), rows),
    }
    Ok(())
}

/// Returns the hashes, in ascending order, of the elements that match all scan keys of a scan (`x =
/// ANY (…) AND x = 5`): each such hash is one of every scan key's. Returns none without scan keys.
/// Fails with 0A000 if the elements of a scan key can't be compared with the column by hashes.
///
/// # Safety
/// The scan keys must be those of a scan of the index.
unsafe fn hashes_that_match_all(
    index: &RangesIndex,
    elements: &ElementColumn,
    scan_keys: &[Key],
) -> Result<List<u64>> {
    let Some((first, others)) = scan_keys.split_first() else {
        return Ok(List::new());
    };
    // SAFETY: promised by the caller.
    let mut hashes = unsafe { hashes_of_scan_key(index, elements, first)? };
    for other in others {
        // SAFETY: promised by the caller.
        let hashes_of_other = unsafe { hashes_of_scan_key(index, elements, other)? };
        hashes.retain(|hash| hashes_of_other.binary_search(hash).is_ok());
    }
    Ok(hashes)
}

/// Returns the hashes of the elements that a scan key asks for, in ascending order. Fails with
/// 0A000 if elements of their type can't be compared with the column by hashes, or if the operator
/// isn't `=`.
///
/// # Safety
/// The scan key must be one of a scan of the index.
unsafe fn hashes_of_scan_key(
    index: &RangesIndex,
    elements: &ElementColumn,
    scan_key: &Key,
) -> Result<List<u64>> {
    let hasher = elements.hasher_of_scan_key(index.relation, scan_key)?;
    // SAFETY: promised by the caller: the elements are of the type that the hasher is for.
    let hash_of = |element| unsafe { hasher.hash(element) }.ok_or_else(unhashed);
    // A nested loop repeats the lookup many times, so what PostgreSQL allocates for one is freed.
    // SAFETY: hashes are in Rust's memory.
    let mut hashes: List<u64> = unsafe {
        in_scratch(|| scan_key.sought().into_iter().map(hash_of).collect::<Result<_>>())?
    };
    keep_distinct(&mut hashes);
    Ok(hashes)
}

/// Returns the numbers of the ranges that may have an element with one of these hashes, each once
/// and in ascending order. A *range* is some neighbouring pages of the table.
///
/// The hashes are looked up one after the other. While one is, the operating system is asked to
/// read the index pages for the next ones (they are *announced*). Each page is locked for sharing
/// while it is read. Fails with XX002 if the index is damaged.
fn ranges_with_hashes(
    index: &RangesIndex,
    directory: &Directory,
    hashes: &[u64],
) -> Result<List<u32>> {
    let mut ranges = List::new();
    let mut num_distinct = 0;
    let mut pages = index.pages();
    let mut next_to_announce = 0;
    for (hash_index, &hash) in hashes.iter().enumerate() {
        interrupt::check_for_interrupts();
        // The pages of the next lookups are read from disk while this one is at work.
        next_to_announce = next_to_announce.max(hash_index + 1);
        while let Some(&next) = hashes.get(next_to_announce)
            && pages.can_announce()
        {
            ranges::announce_search(directory, &mut pages, next);
            next_to_announce += 1;
        }

        index.checked(ranges::search(directory, &mut pages, hash, |range| ranges.push(range)))?;
        // Thousands of hashes may find the same ranges: the list should not become longer than
        // twice the ranges that there are.
        if ranges.len() > SHORT_LIST.max(2 * num_distinct) {
            keep_distinct(&mut ranges);
            num_distinct = ranges.len();
        }
    }
    keep_distinct(&mut ranges);
    Ok(ranges)
}

/// Returns for each key, in their order, whether the table of an index may have a row with it;
/// `false` is certain. For the SQL function `bloom_find`. `asked_type` is the type of the keys.
///
/// Counts as one scan of the index in PostgreSQL's statistics, and takes a predicate lock of the
/// whole index for SERIALIZABLE transactions. Fails with 0A000 if keys of this type can't be
/// compared with the column, with XX002 if the index is damaged, and with XX000 if it isn't one of
/// elements.
///
/// # Safety
/// The keys must be values of that type.
pub unsafe fn may_have(
    relation: Relation,
    asked_type: Oid,
    keys: &[SqlValue],
) -> Result<List<bool>> {
    relation.lock_for_serializable();
    relation.count_scan();
    let index = RangesIndex::open(relation)?;
    let directory = index.directory()?;
    let RangesColumn::Element(elements) = index.column() else {
        return Err(unhashed());
    };
    let hasher = elements.hasher_of(relation, asked_type)?;
    keys.iter()
        .map(|&key| {
            interrupt::check_for_interrupts();
            // SAFETY: promised by the caller.
            let hash = unsafe { hasher.hash(key) }.ok_or_else(unhashed)?;
            let mut may_have = false;
            index.checked(ranges::search(&directory, &mut index.pages(), hash, |_| {
                may_have = true
            }))?;
            Ok(may_have)
        })
        .collect()
}
