//! `bloom_index_check` of an index over keys: whether it would find every row of its table.
//!
//! The rows are those that everybody sees who begins now. Each is looked up as a query would do it, in the two pages
//! that its bits are in, and by the heap filter on its own page.

use super::column::Index;
use super::heap_filter::HeapFilter;
use crate::index::opened::Named;
use crate::index::page::{missed, unhashed};
use crate::index::session::{self, Kind};
use crate::pg::call::Element;
use crate::pg::call::error::Result;
use crate::pg::method::table::{Latest, Row, scan_for_check};
use pg_bloom_core::index::keys::{Directory, Pages};
use pg_bloom_core::memory;

/// Looks for every row. Returns how many there are.
pub fn check(named: &Named) -> Result<i64> {
    // Rows that the snapshot sees got their bits and tiles before it was taken.
    let snapshot = Latest::take();
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let filter = HeapFilter::new(&index, named.table());
    let mut of_page = RowsOfPage { rows: Vec::new(), count: 0 };
    let require = |missing: Option<Row>| match missing {
        Some(row) => Err(missed(named.index(), named.table(), row)),
        None => Ok(()),
    };
    scan_for_check(named.table(), named.index(), &snapshot, |row| {
        // One that is NULL is never looked for.
        let Some(datum) = row.value else { return Ok(()) };
        let hash = index.column().hasher.hash(Element { datum }).ok_or_else(unhashed)?;
        if !has(&index, &directory, row.page, hash)? {
            return require(Some(row));
        }
        require(of_page.add(row, hash, filter.as_ref()))
    })?;
    require(of_page.finish(filter.as_ref()))?;
    Ok(of_page.count)
}

/// Rows of one page of the table, with their hashes: a scan has those of a page one after the other.
struct RowsOfPage {
    rows: Vec<(Row, u64)>,
    /// Rows of all pages.
    count: i64,
}

impl RowsOfPage {
    /// Adds a row. Where it is the first of another page, those before it are done: returns one that the filter would
    /// not find.
    fn add(&mut self, row: Row, hash: u64, filter: Option<&HeapFilter>) -> Option<Row> {
        let is_of_other = self.rows.first().is_some_and(|(first, _)| first.page != row.page);
        let missing = if is_of_other { self.finish(filter) } else { None };
        memory::push(&mut self.rows, (row, hash));
        self.count += 1;
        missing
    }

    /// Returns a row that the filter would not find.
    fn finish(&mut self, filter: Option<&HeapFilter>) -> Option<Row> {
        let rows = std::mem::take(&mut self.rows);
        let (filter, page) = (filter?, rows.first()?.0.page);
        let found = filter.rows_of(page);
        let is_found = |row: &Row, hash| {
            found
                .iter()
                .any(|found| found.root.is_none_or(|root| root == row.line) && found.hash.is_none_or(|h| h == hash))
        };
        rows.into_iter().find(|&(row, hash)| !is_found(&row, hash)).map(|(row, _)| row)
    }
}

/// Whether a row with this hash on this page of the table would be looked for there.
///
/// # Errors
/// XX002 for damage.
pub fn has<K: Kind>(index: &session::Index<K>, directory: &Directory, table_page: u32, hash: u64) -> Result<bool> {
    let range = table_page / directory.options.pages_per_range;
    let Some(places) = directory.places(range, hash) else { return Ok(false) };
    for mark in places.in_lock_order() {
        let is_set = index.pages().with(mark.page(), |page| mark.is_set(page));
        let is_set = is_set.and_then(|found| Ok(found?)).map_err(|failure| failure.of(index.relation))?;
        if !is_set {
            return Ok(false);
        }
    }
    Ok(true)
}
