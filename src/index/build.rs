//! CREATE INDEX and REINDEX: one scan of the table in the order of its pages.
//!
//! CREATE INDEX CONCURRENTLY builds in the same way, from a snapshot; what is inserted from then on goes through
//! [`super::insert`], and so does what was inserted meanwhile, when PostgreSQL validates the index ([`super::given`]).

use super::column;
use super::given::Given;
use super::new_index::{NewIndex, meta_page, write_empty};
use super::options;
use super::page::{PAGE_SIZE, unhashed};
use super::tiles::Tiles;
use crate::element::Column;
use crate::pg::call::Element;
use crate::pg::error::{Error, Result, SqlState, raise};
use crate::pg::heap_scan::{HeapScan, MayCall};
use crate::pg::interrupt;
use crate::pg::relation::{PAGE_BYTES, Relation};
use crate::pg::table::{self, Built, Row};
use crate::pg::worker;
use pg_bloom_core::index::keys::{Directory, Options};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory;
use pgrx::pg_sys;

/// Bytes of a row beside its values: its header and its line pointer.
const ROW_OVERHEAD: u32 = 28;
/// Hashes between two looks whether to stop.
const CHECK_EVERY: usize = 4096;

/// A build under way.
struct Building {
    column: Column,
    pages_per_range: u32,
    tiles: Tiles,
    /// The range that rows come from, and its hashes.
    range: u32,
    hashes: Vec<u64>,
    rows: u64,
    /// The rows, if the index will be validated.
    given: Option<Given>,
}

/// Builds an index.
///
/// # Errors
/// 0A000 for a column that can't be in an index; 54000 for too many pages.
pub fn build(table: Relation, index: Relation, info: *mut pg_sys::IndexInfo) -> Result<Built> {
    column::check_type_of_column(index)?;
    let column = column::column(index)?;
    let options = core_options(index, table);
    let new = NewIndex::begin(index)?;
    let may_have_worker = table.pages() >= worker::enough_pages() && worker::may_build(table, info);
    let mut building = Building {
        column,
        pages_per_range: options.pages_per_range,
        tiles: Tiles::begin(&new, options, hashes_to_hold(), may_have_worker)?,
        range: 0,
        hashes: Vec::new(),
        rows: 0,
        given: table::is_concurrent(info).then(Given::new),
    };
    // SAFETY: what PostgreSQL passes to ambuild.
    let table_rows = match unsafe { HeapScan::for_index(table, index, info) } {
        Some(mut scan) => building.add_pages(&mut scan)?,
        None => table::scan_for_index(table, index, info, |row| {
            if let Err(error) = building.add(row) {
                raise(error);
            }
        }),
    };
    let rows = building.rows + building.hashes.len() as u64;
    if let Some(given) = building.given.take() {
        given.keep(index);
    }
    new.finish(&building.finish());
    Ok(Built { table_rows, index_rows: rows as f64 })
}

impl Building {
    /// Adds the rows of all pages. Returns how many rows the table has.
    fn add_pages(&mut self, scan: &mut HeapScan) -> Result<f64> {
        let mut table_rows = 0.0;
        for page in 0..scan.pages() {
            self.go_to(page / self.pages_per_range)?;
            let (column, hashes) = (&self.column, &mut self.hashes);
            let rows = scan.read(page, |element, may_call| {
                let hash = match may_call {
                    MayCall::No => column.hasher().hash_in_place(element),
                    MayCall::Yes => Some(hash_of(column, element).unwrap_or_else(|error| raise(error))),
                };
                if let Some(hash) = hash {
                    memory::push(hashes, hash);
                }
                hash.is_some()
            })?;
            table_rows += f64::from(rows);
        }
        Ok(table_rows)
    }

    /// Ends the ranges before this one.
    fn go_to(&mut self, range: u32) -> Result<()> {
        while self.range < range {
            self.end_range()?;
        }
        Ok(())
    }

    fn add(&mut self, row: Row) -> Result<()> {
        let Some(value) = row.value else { return Ok(()) };
        let range = row.page / self.pages_per_range;
        if range < self.range {
            let message =
                "cannot build a bloom_filter index on a table whose rows don't come in the order of its pages";
            return Err(Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message)
                .hint("Use a table of the access method heap."));
        }
        self.go_to(range)?;
        memory::push(&mut self.hashes, hash_of(&self.column, Element { datum: value })?);
        if let Some(given) = &mut self.given {
            given.add(RowId { page: row.page, line: row.line });
        }
        if self.hashes.len().is_multiple_of(CHECK_EVERY) {
            interrupt::check_for_interrupts();
        }
        Ok(())
    }

    fn end_range(&mut self) -> Result<()> {
        self.rows += self.hashes.len() as u64;
        self.tiles.range(&self.hashes)?;
        self.hashes.clear();
        self.range += 1;
        Ok(())
    }

    /// Writes what is left, and returns the metapage.
    fn finish(mut self) -> Vec<u8> {
        if !self.hashes.is_empty() {
            self.end_range().unwrap_or_else(|error| raise(error));
        }
        self.tiles.finish()
    }
}

fn hash_of(column: &Column, element: Element) -> Result<u64> {
    column.hasher().hash(element).ok_or_else(unhashed)
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
    column::check_type_of_column(index)?;
    let table = table::of_index(index);
    let directory = Directory::empty(core_options(index, table.relation()));
    write_empty(index, &meta_page(|page| directory.write_meta(page)));
    Ok(())
}
