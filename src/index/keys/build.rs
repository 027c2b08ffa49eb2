//! CREATE INDEX and REINDEX: one scan of the table in the order of its pages.
//!
//! CREATE INDEX CONCURRENTLY builds in the same way, from a snapshot; what is inserted from then on goes through
//! [`super::insert`], and so does what was inserted in the meantime, when PostgreSQL validates the index
//! ([`super::given`]).

use super::column;
use super::given::Given;
use crate::element::Column;
use crate::index::new_index::{NewIndex, meta_page, write_empty};
use crate::index::options;
use crate::index::page::{PAGE_SIZE, unhashed};
use crate::pg::call::Element;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::call::interrupt;
use crate::pg::method::table::{self, Built, Row, Wanted};
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use pg_bloom_core::index::keys::{Build, Directory, MAX_FPR, Options};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory;
use pgrx::pg_sys::Datum;

/// Heap pages of a range, if nothing is said.
const PAGES_PER_RANGE: u32 = 8;
/// Bytes of a row beside its values: its header and its line pointer.
const ROW_OVERHEAD: u32 = 28;

/// The keys of a range, gathered row by row.
pub trait Gather {
    /// Adds those of a row. Returns how many it has.
    ///
    /// # Errors
    /// Those of hashing.
    ///
    /// # Safety
    /// The value must be of the type of the index's column.
    unsafe fn add(&mut self, value: Datum) -> Result<usize>;

    /// Whether there are none.
    fn is_empty(&self) -> bool;

    /// Their hashes, which may repeat. After them there are none.
    fn take(&mut self) -> Vec<u64>;
}

/// The elements of rows, one each.
struct Elements {
    column: Column,
    hashes: Vec<u64>,
}

impl Gather for Elements {
    unsafe fn add(&mut self, value: Datum) -> Result<usize> {
        // SAFETY: promised by the caller.
        let hash = unsafe { self.column.hasher().hash(Element { datum: value }) }.ok_or_else(unhashed)?;
        memory::push(&mut self.hashes, hash);
        Ok(1)
    }

    fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    fn take(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.hashes)
    }
}

/// A build under way.
struct Building<'r, G> {
    options: Options,
    build: Build,
    index: NewIndex<'r>,
    /// The range that rows come from, and its keys.
    range: u32,
    gathered: G,
    /// Where pages are split, the keys of the rows of a page with their ranges, in the order of their lines: those of
    /// HOT chains come in that of their last ones.
    of_page: (u32, Vec<(u32, Vec<u64>)>),
    rows: u64,
    /// Keys of all rows.
    keys: u64,
    /// The rows, if the index will be validated.
    given: Option<Given>,
}

/// Builds an index.
///
/// # Errors
/// 0A000 for a column that can't be in an index; 54000 for too many pages.
pub fn build(wanted: &Wanted<'_>) -> Result<Built> {
    column::check_type_of_column(wanted.index)?;
    let elements = Elements { column: column::column(wanted.index)?, hashes: Vec::new() };
    build_of(wanted, core_options(wanted.index, wanted.table)?, elements)
}

/// Builds an index of what is gathered.
///
/// # Errors
/// Those of gathering; 22023 for an invalid rate; 54000 for too many pages.
pub fn build_of<G: Gather>(wanted: &Wanted<'_>, options: Options, gathered: G) -> Result<Built> {
    let mut building = Building {
        options,
        // Those of half of the memory, since tiles need memory too.
        build: Build::new(options, table::maintenance_memory() / 2 / size_of::<u64>())?,
        index: NewIndex::begin(wanted.index)?,
        range: 0,
        gathered,
        of_page: (0, Vec::new()),
        rows: 0,
        keys: 0,
        given: wanted.is_concurrent().then(Given::new),
    };
    let table_rows = wanted.scan(|row| building.add(row))?;
    let given = building.given.take();
    let rows = building.finish()?;
    if let Some(given) = given {
        given.keep(wanted.index);
    }
    Ok(Built { table_rows, index_rows: rows as f64 })
}

impl<G: Gather> Building<'_, G> {
    fn add(&mut self, row: Row) -> Result<()> {
        let Some(value) = row.value else { return Ok(()) };
        let id = RowId { page: row.page, line: row.line };
        let is_split = self.options.split.is_some();
        let range = self.options.range_of(if is_split { RowId { line: 1, ..id } } else { id });
        if range < self.range {
            return Err(out_of_order());
        }
        if is_split && row.page != self.of_page.0 {
            self.end_page()?;
            self.of_page.0 = row.page;
        }
        self.end_ranges_before(range)?;
        // SAFETY: the value is that of the index's column.
        self.keys += unsafe { self.gathered.add(value)? } as u64;
        if is_split {
            memory::push(&mut self.of_page.1, (self.options.range_of(id), self.gathered.take()));
        }
        self.rows += 1;
        if let Some(given) = &mut self.given {
            given.add(id);
        }
        interrupt::check_for_interrupts();
        Ok(())
    }

    /// Writes the ranges of a page that is split, as far as they have rows.
    fn end_page(&mut self) -> Result<()> {
        let mut of_page = std::mem::take(&mut self.of_page.1);
        of_page.sort_by_key(|(range, _)| *range);
        for rows in of_page.chunk_by(|a, b| a.0 == b.0) {
            self.end_ranges_before(rows[0].0)?;
            let hashes: Vec<u64> = memory::collect(rows.iter().flat_map(|(_, hashes)| hashes.iter().copied()));
            self.build.range(&mut self.index, &hashes)?;
            self.range += 1;
        }
        Ok(())
    }

    fn end_ranges_before(&mut self, range: u32) -> Result<()> {
        while self.range < range {
            self.end_range()?;
        }
        Ok(())
    }

    fn end_range(&mut self) -> Result<()> {
        self.build.range(&mut self.index, &self.gathered.take())?;
        self.range += 1;
        Ok(())
    }

    /// Writes what is left. Returns how many rows the index has.
    fn finish(mut self) -> Result<u64> {
        self.end_page()?;
        if !self.gathered.is_empty() {
            self.end_range()?;
        }
        let mut directory = self.build.finish(&mut self.index, self.rows)?;
        let per_row = (self.keys + self.rows / 2).checked_div(self.rows).unwrap_or(0);
        directory.keys_per_row = u16::try_from(per_row).unwrap_or(u16::MAX);
        self.index.finish(&meta_page(|page| directory.write_meta(page)));
        Ok(self.rows)
    }
}

/// The refusal of a table that a build can't read in order.
fn out_of_order() -> Error {
    let message = "cannot build a bloom_filter index on a table whose rows don't come in the order of its pages";
    Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message).hint("Use a table of the access method heap.")
}

/// What an index on a table is made with.
fn core_options(index: Relation, table: Relation) -> Result<Options> {
    let options = options::of(index, MAX_FPR)?;
    let pages_per_range = options.pages_per_range.unwrap_or(PAGES_PER_RANGE);
    let rows_per_page = (PAGE_BYTES as u32 / (table.row_width() + ROW_OVERHEAD)).max(1);
    let guess = rows_per_page.saturating_mul(pages_per_range);
    let table_pages = table.pages();
    Ok(Options { size: PAGE_SIZE, fpr: options.fpr, pages_per_range, split: None, table_pages, guess, is_flat: false })
}

/// Writes what an unlogged index is after a crash: one without rows.
///
/// # Errors
/// 0A000 for a column that can't be in an index.
pub fn build_empty(index: Relation) -> Result<()> {
    column::check_type_of_column(index)?;
    let table = table::of_index(index);
    let directory = Directory::empty(Options { table_pages: 0, ..core_options(index, table.relation())? });
    write_empty(index, &meta_page(|page| directory.write_meta(page)));
    Ok(())
}
