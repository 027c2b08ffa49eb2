//! CREATE INDEX and REINDEX: one scan of the table in the order of its pages. [`super::vacuum`] has
//! CONCURRENTLY.

use super::columns::{GatheredKeys, RangesColumn};
use super::sample;
use super::vacuum;
use crate::element::{Column, HASH};
use crate::error::unsupported;
use crate::index::options;
use crate::index::page::{PAGE_SIZE, begin_index};
use crate::index::session::IndexColumn;
use crate::pg::call::{Element, Result, interrupt};
use crate::pg::method::table::{Built, Wanted, maintenance_memory};
use crate::pg::storage::relation::{Opened, PAGE_BYTES, Relation};
use crate::pg::storage::wal::{self, NewPages};
use pg_bloom_core::index::page::{RowId, RowSet};
use pg_bloom_core::index::ranges::{
    Build, Directory, IndexDirectory, MAX_FPR_MANY_KEYS, MAX_FPR_ONE_KEY, Options,
};
use pg_bloom_core::memory;
use pgrx::pg_sys::Oid;

/// The rate of a filter, and the pages of a range, if nothing is said: those of elements, whose
/// rate follows the table.
const ELEMENTS: (Option<f64>, u32) = (None, 8);
/// Those of windows of texts. A lookup asks for several of them, and the rates of those multiply
/// that a range doesn't have. So a hash gets 2.5 bits, of which it sets one: by a model fewer bits
/// and smaller ranges, or more bits and larger ones, read more of the text at the same size.
const WINDOWS: (Option<f64>, u32) = (Some(0.33), 1);
/// Those of other parts.
const OTHER_PARTS: (Option<f64>, u32) = (Some(0.003), 8);
/// The bytes of a table that one distinct part is expected for, while there are none.
const BYTES_PER_PART: u32 = 20;
/// Bytes of a row's header and its line pointer.
const ROW_OVERHEAD: u32 = 28;

struct Building<'b> {
    options: Options,
    build: Build,
    index: NewPages<'b>,
    /// The range that rows come from, and its keys.
    range: u32,
    gathered: GatheredKeys<'b>,
    /// Where pages are split, the keys of the rows of a page with their ranges, in the order of
    /// their lines: those of HOT chains come in that of their last ones.
    of_page: (u32, Vec<(u32, Vec<u64>)>),
    rows: u64,
    keys: u64,
    /// The rows, if the index will be validated.
    built_rows: Option<RowSet>,
}

pub fn build(wanted: &Wanted<'_>) -> Result<Built> {
    let (index, table) = (wanted.index(), wanted.table());
    let column = column_of_new(index)?;
    let options = core_options(&column, index, table, false)?;
    let mut building = Building {
        options,
        // Those of half of the memory, since tiles need memory too.
        build: Build::new(
            Options { may_split: false, ..options },
            maintenance_memory() / 2 / size_of::<u64>(),
        ),
        index: begin_index(index)?,
        range: 0,
        gathered: GatheredKeys::new(&column),
        of_page: (0, Vec::new()),
        rows: 0,
        keys: 0,
        built_rows: wanted.is_concurrent().then(vacuum::built_rows),
    };
    // SAFETY: the scan is one for the index, whose column this is.
    let table_rows = wanted.scan(|row, value| unsafe { building.add(row, value) });
    let built_rows = building.built_rows.take();
    let rows = building.finish()?;
    if let Some(built_rows) = built_rows {
        vacuum::keep(index, built_rows);
    }
    Ok(Built { heap_tuples: table_rows, index_tuples: rows as f64 })
}

impl Building<'_> {
    /// # Safety
    /// The value must be one of the index's column.
    unsafe fn add(&mut self, row: RowId, value: Option<Element>) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        let is_split = self.options.split.is_some();
        let range = self
            .options
            .range_of(if is_split { RowId { line: 1, ..row } } else { row });
        if range < self.range {
            return Err(unsupported(
                "cannot build a bloom_filter index on a table whose rows don't come in the order of its pages",
                "Use a table of the access method heap.",
            ));
        }
        if is_split && row.page != self.of_page.0 {
            self.end_page()?;
            self.of_page.0 = row.page;
        }
        self.end_ranges_before(range)?;
        // SAFETY: promised by the caller.
        self.keys += unsafe { self.gathered.add(value)? } as u64;
        if is_split {
            memory::push(&mut self.of_page.1, (self.options.range_of(row), self.gathered.take()));
        }
        self.rows += 1;
        if let Some(built_rows) = &mut self.built_rows {
            built_rows.add(row);
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
            self.range += 1;
            let hashes: Vec<u64> =
                memory::collect(rows.iter().flat_map(|(_, hashes)| hashes.iter().copied()));
            self.build.add_range(&mut self.index, &hashes)?;
        }
        Ok(())
    }

    fn end_ranges_before(&mut self, range: u32) -> Result<()> {
        while self.range < range {
            self.range += 1;
            self.build.add_range(&mut self.index, &self.gathered.take())?;
        }
        Ok(())
    }

    /// Writes what is left. Returns how many rows the index has.
    fn finish(mut self) -> Result<u64> {
        self.end_page()?;
        if !self.gathered.is_empty() {
            self.end_ranges_before(self.range + 1)?;
        }
        let mut directory = self.build.finish(&mut self.index, self.rows)?;
        // A row has one element.
        if !matches!(self.gathered.column, RangesColumn::Element(_)) {
            let per_row = (self.keys + self.rows / 2).checked_div(self.rows).unwrap_or(0);
            directory.keys_per_row = u16::try_from(per_row.max(1)).unwrap_or(u16::MAX);
        }
        directory.options.may_split = self.options.may_split;
        self.index.finish(&directory.metapage());
        Ok(self.rows)
    }
}

/// The column of an index that is built. 0A000 for a new one of a type that has the bytes of an
/// element and can't be one: an index on `citext` would answer no lookup about `citext`. One that
/// is there already is rebuilt.
fn column_of_new(index: Relation) -> Result<RangesColumn> {
    let column = RangesColumn::of(index)?;
    let is_compared_as_another = matches!(column, RangesColumn::Element(_) | RangesColumn::Text(_))
        && index.support_function(HASH) == Oid::INVALID;
    if is_compared_as_another && !index.is_being_reindexed() {
        let (_, _, collation) = index.column_class();
        Column::check(index.handler(), index.column_type(), collation)?;
    }
    Ok(column)
}

/// What an index is made with, on the table as it is, or on an empty one. Pages may be split among
/// ranges if they stand for much, since a value with many keys may be longer than all others of its
/// page. Those of texts may always be split later, since their ranges are single pages in any case;
/// those of others only if some are now.
fn core_options(
    column: &RangesColumn,
    index: Relation,
    table: Relation,
    is_empty: bool,
) -> Result<Options> {
    let (most_fpr, (fpr, pages_per_range), keys_per_page) = match column {
        RangesColumn::Element(_) => {
            (MAX_FPR_ONE_KEY, ELEMENTS, PAGE_BYTES as u32 / (table.row_width() + ROW_OVERHEAD))
        }
        RangesColumn::Text(_) => (MAX_FPR_MANY_KEYS, WINDOWS, PAGE_BYTES as u32 / BYTES_PER_PART),
        _ => (MAX_FPR_MANY_KEYS, OTHER_PARTS, PAGE_BYTES as u32 / BYTES_PER_PART),
    };
    let (own_fpr, own_pages) = options::of(index, most_fpr)?;
    let may_be_split = own_pages.is_none() && !matches!(column, RangesColumn::Element(_));
    let split = if may_be_split && !is_empty {
        sample::split_of_all(index, table)
    } else {
        None
    };
    let is_flat = split.is_some() || matches!(column, RangesColumn::Text(_));
    let pages_per_range = own_pages.unwrap_or(if split.is_some() { 1 } else { pages_per_range });
    let guess = keys_per_page.max(1).saturating_mul(pages_per_range);
    let (fpr, may_split) = (own_fpr.or(fpr), is_flat && may_be_split);
    let table_pages = if is_empty { 0 } else { table.pages() };
    let whole = Options::for_empty_table(PAGE_SIZE, pages_per_range, guess);
    Ok(Options { fpr, table_pages, is_flat, split, may_split, ..whole })
}

pub fn build_empty(index: Relation) -> Result<()> {
    let options =
        core_options(&column_of_new(index)?, index, Opened::table_of(index).relation(), true)?;
    wal::write_init_page(index, &Directory::empty(options).metapage());
    Ok(())
}
