//! The rows that an index must have, for `bloom_index_check`.

use super::page::damaged_table_page;
use crate::heap::{HeapPage, RowColumn};
use crate::pg::call::{Result, SqlValue, interrupt};
use crate::pg::method::table::{Latest, scan_for_check};
use crate::pg::storage::announce::{NeighbouringPages, io_concurrency};
use crate::pg::storage::buffer::TablePage;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::page::RowId;
use std::ops::Range;

/// Pages that are checked before their rows are read. More would be gone from a small cache by
/// then.
const PAGES_AT_ONCE: u32 = 64;

/// Calls `found` with each row that an index must have, and the value of its column: all rows of
/// the table that a snapshot sees and that meet the index's WHERE clause. The value is `None` for
/// NULL. The rows come in the order of the table's pages. If `found` fails, its error is raised.
///
/// PostgreSQL's scan of the table trusts the chains of row versions: on a damaged page it may loop
/// forever, while the page is locked. So a few pages at a time are checked before their rows are
/// read. Fails with XX001 for a page on which the scan would not end.
pub fn each_live_row(
    table: Relation,
    index: Relation,
    snapshot: &Latest<'_>,
    mut found: impl FnMut(RowId, Option<SqlValue>) -> Result<()>,
) -> Result<()> {
    if !table.is_heap() {
        scan_for_check(table, index, snapshot, None, found);
        return Ok(());
    }

    let column = RowColumn::of_index(index, table);
    // Later pages have no row that the snapshot sees.
    let end = table.pages();
    for first in (0..end).step_by(PAGES_AT_ONCE as usize) {
        let pages = first..end.min(first + PAGES_AT_ONCE);
        check_pages(table, pages.clone(), column.as_ref())?;
        scan_for_check(table, index, snapshot, Some(pages), &mut found);
    }
    Ok(())
}

/// Checks that PostgreSQL can scan these pages of a table of the access method heap: it would
/// neither loop forever nor read out of bounds. If `column` is given, values up to this column are
/// checked, too. The pages are locked for sharing, one at a time. Fails with XX001 for the first
/// damaged page.
fn check_pages(table: Relation, pages: Range<u32>, column: Option<&RowColumn>) -> Result<()> {
    let mut pages = NeighbouringPages::new(table, pages, io_concurrency(table));
    pages.announce();
    for page in pages {
        interrupt::check_for_interrupts();
        let pin = TablePage::read(table, page);
        if let Some(problem) = HeapPage::lock(&pin).fatal_damage(column) {
            return Err(damaged_table_page(table, page, problem));
        }
    }
    Ok(())
}
