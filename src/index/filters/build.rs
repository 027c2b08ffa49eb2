//! CREATE INDEX and REINDEX: one scan of the table.

use super::column;
use crate::error::invalid_parameter;
use crate::index::options;
use crate::index::page::{NewIndex, PAGE_SIZE};
use crate::pg::call::error::Result;
use crate::pg::call::interrupt;
use crate::pg::method::table::{self, Built, Wanted};
use crate::pg::storage::relation::Relation;
use crate::pg::storage::wal;
use crate::pg::value::varlena::Value;
use pg_bloom_core::View;
use pg_bloom_core::index::chain::Tiles;
use pg_bloom_core::index::filters::{Build, Directory};
use pg_bloom_core::index::page::RowId;

pub fn build(wanted: &Wanted<'_>) -> Result<Built> {
    check(wanted.index())?;
    let mut new = NewIndex::begin(wanted.index())?;
    let mut build = Build::new(PAGE_SIZE, table::maintenance_memory());
    let table_rows = wanted.scan(|row| {
        interrupt::check_for_interrupts();
        let Some(value) = row.value else { return Ok(()) };
        // SAFETY: the column is one of filters, as its operator class says.
        let value = unsafe { Value::detoast(value) };
        let filter = View::parse_trusted(value.bytes())?;
        build.add(&mut new, RowId { page: row.page, line: row.line }, &filter)?;
        value.free();
        Ok(())
    })?;
    let directory = build.finish(&mut new)?;
    new.finish(&directory.metapage());
    Ok(Built { table_rows, index_rows: directory.chain.rows_built as f64 })
}

/// Checks that an index can be one: 0A000 for another operator class, 22023 for options.
fn check(index: Relation) -> Result<()> {
    if options::are_given(index) {
        let message = format!("index \"{}\" over a column of filters has options", index.name());
        return Err(invalid_parameter(message)
            .detail("\"fpr\" and \"pages_per_range\" are those of an index over elements.")
            .hint("Leave out WITH, or use ALTER INDEX ... RESET (fpr, pages_per_range)."));
    }
    column::key_type(index).map(drop)
}

pub fn build_empty(index: Relation) -> Result<()> {
    check(index)?;
    wal::write_init_page(index, &Directory::empty(PAGE_SIZE).metapage());
    Ok(())
}
