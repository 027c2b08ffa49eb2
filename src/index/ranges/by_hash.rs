//! Lookups of elements: the rows of ranges that may have one of some hashes.

use super::columns::element::ElementColumn;
use super::columns::{Index, RangesColumn, SHORT_LIST, keep_distinct};
use super::rows::{HashFilter, RangePages, add_pages};
use crate::index::page::unhashed;
use crate::pg::call::{Element, Result, interrupt};
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::{Opened, Relation};
use pg_bloom_core::index::page::Pages;
use pg_bloom_core::index::ranges;
use pg_bloom_core::memory;
use pgrx::pg_sys::Oid;

/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn add_rows(
    index: &Index,
    elements: &ElementColumn,
    keys: &[Key],
    rows: &mut RowBatch,
) -> Result<()> {
    // An element must have one of these hashes to match a key. They ascend.
    let hashes_of = |key: &Key| -> Result<Vec<u64>> {
        let hasher = elements.hasher_of(index.relation, key.asked_type)?;
        // SAFETY: promised by the caller: what is looked for is of the type that the hasher is for.
        let hash_of = |element| unsafe { hasher.hash(element) }.ok_or_else(unhashed);
        // A nested loop asks again and again.
        // SAFETY: hashes are in Rust's memory.
        let mut hashes =
            unsafe { in_scratch(|| memory::try_collect(key.sought().into_iter().map(hash_of)))? };
        keep_distinct(&mut hashes);
        Ok(hashes)
    };
    let mut of_keys = keys.iter().map(hashes_of);
    let mut hashes = of_keys.next().transpose()?.unwrap_or_default();
    for own in of_keys {
        // An element has one hash.
        let own = own?;
        hashes.retain(|hash| own.binary_search(hash).is_ok());
    }
    let directory = index.directory()?;
    let (mut ranges, mut distinct) = (Vec::new(), 0);
    let mut pages = index.pages();
    let mut next_to_announce = 0;
    for (number, &hash) in hashes.iter().enumerate() {
        interrupt::check_for_interrupts();
        next_to_announce = next_to_announce.max(number + 1);
        while let Some(&next) = hashes.get(next_to_announce)
            && pages.can_announce()
        {
            ranges::announce_search(&directory, &mut pages, next);
            next_to_announce += 1;
        }
        index.checked(ranges::search(&directory, &mut pages, hash, |range| {
            memory::push(&mut ranges, range)
        }))?;
        if ranges.len() > SHORT_LIST.max(2 * distinct) {
            keep_distinct(&mut ranges);
            distinct = ranges.len();
        }
    }
    keep_distinct(&mut ranges);
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

/// Returns for each key whether a row may have it. `asked_type` is the type of the keys, with which
/// the column is compared. Fails as a scan does, and with XX000 for an index of parts.
///
/// # Safety
/// The keys must be values of that type.
pub unsafe fn may_have(relation: Relation, asked_type: Oid, keys: &[Element]) -> Result<Vec<bool>> {
    relation.lock_for_serializable();
    relation.count_scan();
    let index = Index::of(relation)?;
    let directory = index.directory()?;
    let RangesColumn::Element(elements) = index.column() else {
        return Err(unhashed());
    };
    let hasher = elements.hasher_of(relation, asked_type)?;
    memory::try_collect(keys.iter().map(|&key| {
        interrupt::check_for_interrupts();
        // SAFETY: promised by the caller.
        let hash = unsafe { hasher.hash(key) }.ok_or_else(unhashed)?;
        let mut may_have = false;
        index.checked(ranges::search(&directory, &mut index.pages(), hash, |_| may_have = true))?;
        Ok(may_have)
    }))
}
