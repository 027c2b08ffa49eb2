//! CREATE INDEX and REINDEX: one scan of the table in the order of its pages, as for an index over keys.

use super::class::Class;
use super::column::PartsColumn;
use super::gather::Gathered;
use crate::index::keys::given::Given;
use crate::index::keys::{check_type_of_column, hashes_to_hold, out_of_order};
use crate::index::new_index::{NewIndex, meta_page, write_empty};
use crate::index::options;
use crate::index::page::PAGE_SIZE;
use crate::pg::call::error::Result;
use crate::pg::call::interrupt;
use crate::pg::method::table::{self, Built, Row};
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use pg_bloom_core::index::keys::{Build, Directory, MAX_PART_FPR, Options};
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys;

/// The bytes of a table that one distinct part is expected for, while there are none.
const BYTES_PER_PART: u32 = 20;
/// The rate of windows of texts, and the pages of their ranges, if nothing is said. A lookup asks for several of them,
/// and the rates of those multiply that a range doesn't have.
const WINDOWS: (f64, u32) = (0.5, 16);
/// Those of other parts.
const OTHERS: (f64, u32) = (0.003, 8);

/// A build under way.
struct Building {
    column: PartsColumn,
    pages_per_range: u32,
    build: Build,
    index: NewIndex,
    /// The range that rows come from, and its parts.
    range: u32,
    parts: Gathered,
    rows: u64,
    /// Parts of all rows.
    count: u64,
    /// The rows, if the index will be validated.
    given: Option<Given>,
}

/// Builds an index.
///
/// # Errors
/// 0A000 for a column that can't be in an index; 22023 for an invalid rate; 54000 for too many pages.
pub fn build(table: Relation, index: Relation, info: *mut pg_sys::IndexInfo) -> Result<Built> {
    let column = column_of_new(index)?;
    let options = core_options(&column, index, table.pages())?;
    let mut building = Building {
        parts: Gathered::new(&column),
        column,
        pages_per_range: options.pages_per_range,
        build: Build::new(options, hashes_to_hold())?,
        index: NewIndex::begin(index)?,
        range: 0,
        rows: 0,
        count: 0,
        given: table::is_concurrent(info).then(Given::new),
    };
    let table_rows = table::scan_for_index(table, index, info, |row| building.add(row))?;
    let given = building.given.take();
    let rows = building.finish()?;
    if let Some(given) = given {
        given.keep(index);
    }
    Ok(Built { table_rows, index_rows: rows as f64 })
}

impl Building {
    fn add(&mut self, row: Row) -> Result<()> {
        let Some(value) = row.value else { return Ok(()) };
        let range = row.page / self.pages_per_range;
        if range < self.range {
            return Err(out_of_order());
        }
        while self.range < range {
            self.end_range()?;
        }
        // SAFETY: the value is that of the index's column.
        self.count += unsafe { self.parts.add(&self.column, value)? } as u64;
        self.rows += 1;
        if let Some(given) = &mut self.given {
            given.add(RowId { page: row.page, line: row.line });
        }
        interrupt::check_for_interrupts();
        Ok(())
    }

    fn end_range(&mut self) -> Result<()> {
        self.build.range(&mut self.index, &self.parts.take())?;
        self.range += 1;
        Ok(())
    }

    /// Writes what is left. Returns how many rows the index has.
    fn finish(mut self) -> Result<u64> {
        if !self.parts.is_empty() {
            self.end_range()?;
        }
        let mut directory = self.build.finish(&mut self.index, self.rows)?;
        let per_row = (self.count + self.rows / 2).checked_div(self.rows).unwrap_or(0);
        directory.keys_per_row = u16::try_from(per_row).unwrap_or(u16::MAX);
        self.index.finish(&meta_page(|page| directory.write_meta(page)));
        Ok(self.rows)
    }
}

/// The column of an index that is built. A text of another type than the operator class's is refused if that can't be an
/// element; the other classes look at the column's own type in any case.
fn column_of_new(index: Relation) -> Result<PartsColumn> {
    let column = PartsColumn::new(index)?;
    if column.class() == Class::Text {
        check_type_of_column(index)?;
    }
    Ok(column)
}

/// What an index is made with, on a table of so many pages.
fn core_options(column: &PartsColumn, index: Relation, table_pages: u32) -> Result<Options> {
    let is_flat = column.class() == Class::Text;
    let (fpr, pages_per_range) = if is_flat { WINDOWS } else { OTHERS };
    let options = options::of(index);
    let fpr = options.fpr.unwrap_or(fpr);
    options::check(fpr, MAX_PART_FPR)?;
    let pages_per_range = options.pages_per_range.unwrap_or(pages_per_range);
    let guess = pages_per_range * (PAGE_BYTES as u32 / BYTES_PER_PART);
    Ok(Options { size: PAGE_SIZE, fpr: Some(fpr), pages_per_range, table_pages, guess, is_flat })
}

/// Writes what an unlogged index is after a crash: one without rows.
///
/// # Errors
/// As [`build`].
pub fn build_empty(index: Relation) -> Result<()> {
    let options = core_options(&column_of_new(index)?, index, 0)?;
    write_empty(index, &meta_page(|page| Directory::empty(options).write_meta(page)));
    Ok(())
}
