//! CREATE INDEX and REINDEX: one scan of the table.

use super::column;
use crate::element::with_value;
use crate::error::invalid_parameter;
use crate::index::options;
use crate::index::page::{PAGE_SIZE, begin_index};
use crate::pg::call::{Result, interrupt};
use crate::pg::method::table::{NewIndex, TupleCounts, maintenance_memory};
use crate::pg::storage::relation::Relation;
use crate::pg::storage::wal;
use pg_bloom_core::View;
use pg_bloom_core::index::chain::IndexDirectory;
use pg_bloom_core::index::filters::{Build, Directory};

/// Builds an index over a column of filters, for CREATE INDEX and REINDEX: scans the table once,
/// and copies the bits of each filter into the index. Filters that are NULL or empty get no entry.
/// Returns how many rows the table and the index have. The memory is at most maintenance_work_mem.
///
/// Fails with 0A000 if the operator class isn't the extension's, with 22023 if the index has
/// options, with 22P03 for a damaged filter, and with 54000 if the index would have too many pages.
pub fn build(new_index: &NewIndex<'_>) -> Result<TupleCounts> {
    check(new_index.index())?;
    let mut pages = begin_index(new_index.index())?;
    let mut tiles = Build::new(PAGE_SIZE, maintenance_memory());
    let table_rows = new_index.scan_table(|row, value| {
        interrupt::check_for_interrupts();
        let Some(value) = value else { return Ok(()) };
        // SAFETY: the column is one of filters, as its operator class says.
        unsafe {
            with_value(value, |filter| tiles.add(&mut pages, row, &View::parse_trusted(filter)?))
        }
    });
    let directory = tiles.finish(&mut pages)?;
    pages.finish(&directory.metapage());
    Ok(TupleCounts {
        heap_tuples: table_rows,
        index_tuples: directory.chain.rows_built as f64,
    })
}

/// Checks that an index can be one over filters. Fails with 0A000 if it has an operator class that
/// isn't the extension's, and with 22023 if it has options.
fn check(index: Relation) -> Result<()> {
    if options::are_given(index) {
        let message = format!("index \"{}\" over a column of filters has options", index.name());
        return Err(invalid_parameter(message)
            .detail("\"fpr\" and \"pages_per_range\" are those of an index over elements.")
            .hint("Leave out WITH, or use ALTER INDEX ... RESET (fpr, pages_per_range)."));
    }
    column::bloom_key_type(index).map(drop)
}

/// Writes an index without rows, for an unlogged table: see
/// [`IndexKind::build_empty`](crate::index::kind::IndexKind).
pub fn build_empty(index: Relation) -> Result<()> {
    check(index)?;
    wal::write_init_page(index, &Directory::empty(PAGE_SIZE).metapage());
    Ok(())
}
