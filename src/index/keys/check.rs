//! `bloom_index_check` of an index over keys: whether it would find every row of its table.
//!
//! The rows are those that everybody sees who begins now. Each is looked up as a query would do it, in the two pages
//! that its bits are in, and by the heap filter on its own page.

use super::column::Index;
use super::heap_filter::{HashedRow, HeapFilter};
use crate::index::opened::Named;
use crate::index::page::{missed, unhashed};
use crate::index::session::{self, Kind};
use crate::pg::call::Element;
use crate::pg::call::error::Result;
use crate::pg::method::table::{Latest, scan_for_check};
use pg_bloom_core::index::keys::{Directory, Pages};
use pg_bloom_core::index::page::RowId;

/// Looks for every row. Returns how many there are.
///
/// # Errors
/// XX002 with the first one that is missed, and for damage.
pub fn check(named: &Named) -> Result<i64> {
    // Rows that the snapshot sees got their bits and tiles before it was taken.
    let snapshot = Latest::take(named.table());
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let filter = HeapFilter::new(&index, named.table());
    // What the filter finds on the page that the scan is on: it has the rows of a page one after the other.
    let (mut page, mut found) = (None, Vec::new());
    let mut count = 0;
    scan_for_check(named.table(), named.index(), &snapshot, |row| {
        // One that is NULL is never looked for.
        let Some(datum) = row.value else { return Ok(()) };
        // SAFETY: the value is that of the index's column.
        let hash = unsafe { index.column().hasher().hash(Element { datum }) }.ok_or_else(unhashed)?;
        let mut is_found = has(&index, &directory, RowId { page: row.page, line: row.line }, hash)?;
        if let Some(filter) = &filter {
            if page != Some(row.page) {
                (page, found) = (Some(row.page), filter.rows_of(row.page));
            }
            is_found &= found.iter().any(|found: &HashedRow| {
                found.root.is_none_or(|root| root == row.line) && found.hash.is_none_or(|found| found == hash)
            });
        }
        if !is_found {
            return Err(missed(named.index(), named.table(), row));
        }
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Whether a row with this hash would be looked for where it is.
///
/// # Errors
/// XX002 for damage.
pub fn has<K: Kind>(index: &session::Index<K>, directory: &Directory, row: RowId, hash: u64) -> Result<bool> {
    let Some(places) = directory.places(directory.options.range_of(row), hash) else { return Ok(false) };
    for mark in places.marks() {
        let is_set = index.pages().with(mark.page(), |page| mark.is_set(page));
        let is_set = is_set.and_then(|found| Ok(found?)).map_err(|failure| failure.of(index.relation))?;
        if !is_set {
            return Ok(false);
        }
    }
    Ok(true)
}
