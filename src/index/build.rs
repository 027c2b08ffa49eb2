//! CREATE INDEX and REINDEX: one scan of the table in the order of its pages.
//!
//! Nobody else sees the index meanwhile, so its pages are written without WAL, and logged as a whole at the end.
//! CREATE INDEX CONCURRENTLY builds in the same way, from a snapshot; what is inserted from then on goes through
//! [`super::insert`], and what was inserted meanwhile comes a second time when PostgreSQL validates the index.

use super::options;
use super::page::{Failure, PAGE_SIZE, unhashed};
use super::session;
use crate::element::Column;
use crate::pg::call::Element;
use crate::pg::error::{Error, Result, SqlState, raise};
use crate::pg::interrupt;
use crate::pg::relation::{PAGE_BYTES, Relation};
use crate::pg::table::{self, Built, Row};
use crate::pg::wal::{self, Filling};
use pg_bloom_core::memory;
use pg_bloom_core::range::{Build, Directory, Options, SPECIAL_BYTES, Sink};
use pgrx::pg_sys;

/// Bytes of a row beside its values: its header and its line pointer.
const ROW_OVERHEAD: u32 = 28;
/// Hashes between two looks whether to stop.
const CHECK_EVERY: usize = 4096;

/// The pages of the new index.
struct Pages(Filling);

impl Sink for Pages {
    type Error = Failure;

    fn write(&mut self, _number: u32, page: &[u8]) -> std::result::Result<(), Failure> {
        self.0.add(page);
        Ok(())
    }
}

/// A build under way.
struct Building {
    index: Relation,
    column: Column,
    pages_per_range: u32,
    build: Build,
    pages: Pages,
    /// The range that rows come from, and its hashes.
    range: u32,
    hashes: Vec<u64>,
    rows: u64,
}

/// Builds an index.
///
/// # Errors
/// 0A000 for a column that can't be in an index; 54000 for too many pages.
pub fn build(table: Relation, index: Relation, info: *mut pg_sys::IndexInfo) -> Result<Built> {
    if index.pages() > 0 {
        let message = format!("index \"{}\" already contains data", index.name());
        return Err(Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    session::check_type_of_column(index)?;
    let column = session::column(index)?;
    let options = core_options(index, table);
    let mut pages = Filling::new(index, SPECIAL_BYTES);
    let meta = pages.reserve();
    let mut building = Building {
        index,
        column,
        pages_per_range: options.pages_per_range,
        build: Build::new(options, hashes_to_hold())?,
        pages: Pages(pages),
        range: 0,
        hashes: Vec::new(),
        rows: 0,
    };
    let table_rows = table::scan_for_index(table, index, info, |row| {
        if let Err(error) = building.add(row) {
            raise(error);
        }
    });
    let rows = building.rows;
    let (directory, mut pages) = building.finish()?;
    pages.set(meta, &meta_page(&directory));
    pages.finish();
    session::forget(index);
    Ok(Built { table_rows, index_rows: rows as f64 })
}

impl Building {
    fn add(&mut self, row: Row) -> Result<()> {
        let Some(value) = row.value else { return Ok(()) };
        let range = row.page / self.pages_per_range;
        if range < self.range {
            let message =
                "cannot build a bloom_filter index on a table whose rows don't come in the order of its pages";
            return Err(Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message)
                .hint("Use a table of the access method heap."));
        }
        while self.range < range {
            self.end_range()?;
        }
        let hash = self.column.hasher().hash(Element { datum: value }).ok_or_else(unhashed)?;
        memory::push(&mut self.hashes, hash);
        self.rows += 1;
        if self.hashes.len().is_multiple_of(CHECK_EVERY) {
            interrupt::check_for_interrupts();
        }
        Ok(())
    }

    fn end_range(&mut self) -> Result<()> {
        let failed = |failure: Failure| failure.of(self.index);
        self.build.range(&mut self.pages, &self.hashes).map_err(failed)?;
        self.hashes.clear();
        self.range += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<(Directory, Filling)> {
        if !self.hashes.is_empty() {
            self.end_range()?;
        }
        let directory = self.build.finish(&mut self.pages, self.rows).map_err(|failure| failure.of(self.index))?;
        Ok((directory, self.pages.0))
    }
}

/// The metapage of a directory.
pub fn meta_page(directory: &Directory) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    directory.write_meta(&mut page);
    page
}

/// How many hashes may be kept in memory for level 1: those of half of maintenance_work_mem, since tiles need memory
/// too.
fn hashes_to_hold() -> usize {
    table::maintenance_memory() / 2 / size_of::<u64>()
}

/// What an index on a table is made with.
fn core_options(index: Relation, table: Relation) -> Options {
    let options::IndexOptions { fpr, pages_per_range } = options::of(index);
    let rows_per_page = (PAGE_BYTES as u32 / (table.row_width() + ROW_OVERHEAD)).max(1);
    Options { size: PAGE_SIZE, fpr, pages_per_range, guess: rows_per_page.saturating_mul(pages_per_range) }
}

/// Writes what an unlogged index is after a crash: one without rows.
///
/// # Errors
/// 0A000 for a column that can't be in an index.
pub fn build_empty(index: Relation) -> Result<()> {
    session::check_type_of_column(index)?;
    let table = table::of_index(index);
    let directory = Directory::empty(core_options(index, table.relation()));
    wal::write_init_page(index, &meta_page(&directory), SPECIAL_BYTES);
    Ok(())
}
