//! CREATE INDEX and REINDEX: one scan of the table. Pages are written without WAL, and logged as a whole at the end.

use super::super::options;
use super::super::page::{Failure, PAGE_SIZE};
use super::session;
use crate::error::invalid_parameter;
use crate::pg::error::{Error, Result, SqlState, raise};
use crate::pg::interrupt;
use crate::pg::relation::{PAGE_BYTES, Relation};
use crate::pg::table::{self, Built, Row};
use crate::pg::varlena::Value;
use crate::pg::wal::{self, Filling};
use pg_bloom_core::View;
use pg_bloom_core::page::{SPECIAL_BYTES, Sink};
use pg_bloom_core::rows::{Build, Directory, RowId};
use pgrx::pg_sys;

/// The pages of the new index.
struct Pages(Filling);

impl Sink for Pages {
    type Error = Failure;

    fn write(&mut self, _number: u32, page: &[u8]) -> std::result::Result<(), Failure> {
        self.0.add(page);
        Ok(())
    }
}

/// Builds an index.
///
/// # Errors
/// 0A000 for an operator class of somebody else's; 22023 for options, which are those of the other kind of index; 22P03
/// for a damaged filter; 54000 for too many pages.
pub fn build(table: Relation, index: Relation, info: *mut pg_sys::IndexInfo) -> Result<Built> {
    if index.pages() > 0 {
        let message = format!("index \"{}\" already contains data", index.name());
        return Err(Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    check(index)?;
    let mut filling = Filling::new(index, SPECIAL_BYTES);
    let meta = filling.reserve();
    let mut pages = Pages(filling);
    let mut build = Build::new(PAGE_SIZE, table::maintenance_memory());
    let table_rows = table::scan_for_index(table, index, info, |row| {
        interrupt::check_for_interrupts();
        if let Err(failure) = add(&mut build, &mut pages, row) {
            raise(failure.of(index));
        }
    });
    let rows = build.rows();
    let directory = build.finish(&mut pages).map_err(|failure| failure.of(index))?;
    let mut filling = pages.0;
    filling.set(meta, &meta_page(&directory));
    filling.finish();
    session::forget(index);
    Ok(Built { table_rows, index_rows: rows as f64 })
}

fn add(build: &mut Build, pages: &mut Pages, row: Row) -> std::result::Result<(), Failure> {
    let Some(value) = row.value else { return Ok(()) };
    // SAFETY: the column is one of filters, as its operator class says.
    let value = unsafe { Value::detoast(value) };
    let filter = View::parse_trusted(value.bytes())?;
    build.add(pages, RowId { page: row.page, line: row.line }, &filter)?;
    value.free();
    Ok(())
}

/// Checks that an index can be one.
fn check(index: Relation) -> Result<()> {
    if options::are_given(index) {
        let message = "an index over a column of filters has no options";
        return Err(invalid_parameter(message)
            .detail("\"fpr\" and \"pages_per_range\" are those of an index over elements.")
            .hint("Leave out WITH: the filters have the rates that they were made with."));
    }
    session::key_type(index).map(drop)
}

/// The metapage of a directory.
pub fn meta_page(directory: &Directory) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    directory.write_meta(&mut page);
    page
}

/// Writes what an unlogged index is after a crash: one without rows.
///
/// # Errors
/// As [`build`].
pub fn build_empty(index: Relation) -> Result<()> {
    check(index)?;
    wal::write_init_page(index, &meta_page(&Directory::empty(PAGE_SIZE)), SPECIAL_BYTES);
    Ok(())
}
