//! CREATE INDEX and REINDEX: one scan of the table, in the order of its pages, gathers the keys of
//! one range after the other. What CREATE INDEX CONCURRENTLY needs besides is in [`super::vacuum`].

use super::columns::{GatheredKeys, RangesColumn};
use super::sample;
use super::vacuum;
use crate::element::{Column, HASH};
use crate::error::unsupported;
use crate::index::options;
use crate::index::page::{PAGE_SIZE, begin_index};
use crate::index::session::IndexColumn;
use crate::pg::call::{Result, SqlValue, interrupt};
use crate::pg::method::table::{Built, Wanted, maintenance_memory};
use crate::pg::storage::relation::{Opened, PAGE_BYTES, Relation};
use crate::pg::storage::wal::{self, NewPages};
use pg_bloom_core::index::page::{RowId, RowSet};
use pg_bloom_core::index::ranges::{
    Build, Directory, IndexDirectory, MAX_FPR_MANY_KEYS, MAX_FPR_ONE_KEY, Options,
};
use pg_bloom_core::memory;
use pgrx::pg_sys::Oid;

/// What an index has unless its options say otherwise.
struct Defaults {
    /// The false positive rate of a range; `None` if it follows the size of the table.
    fpr: Option<f64>,
    pages_per_range: u32,
}

const FOR_ELEMENTS: Defaults = Defaults { fpr: None, pages_per_range: 8 };
/// A lookup asks for several windows, and a range is read only if it seems to have all of them, so
/// their rates multiply. At 0.33 a key takes 2.5 bits, of which it sets one. By a model fewer bits
/// and smaller ranges, or more bits and larger ranges, read more of the text at the same size.
const FOR_WINDOWS: Defaults = Defaults { fpr: Some(0.33), pages_per_range: 1 };
/// For members of arrays, values in documents, and words.
const FOR_OTHER_KEYS: Defaults = Defaults { fpr: Some(0.003), pages_per_range: 8 };

/// Bytes of a table for one distinct key, which an index with several keys a row expects before it
/// has rows.
const BYTES_PER_KEY: u32 = 20;
/// Bytes of a row's header and its line pointer.
const ROW_OVERHEAD: u32 = 28;

/// An index that is being built.
struct Building<'b> {
    options: Options,
    build: Build,
    index: NewPages<'b>,
    /// The range that rows come from, whose keys are being gathered.
    range: u32,
    gathered: GatheredKeys<'b>,
    /// The rows of the last page so far, if pages are split among ranges.
    split_page: SplitPage,
    num_rows: u64,
    /// Keys of all rows, counted as often as rows have them.
    num_keys: u64,
    /// The rows, if PostgreSQL will ask for them to validate the index.
    built_rows: Option<RowSet>,
}

/// The rows of a page that is split among several ranges, in the order in which the scan gives
/// them. That isn't the order of their ranges: PostgreSQL gives a row with the line that its HOT
/// chain begins with, when it comes to the chain's last line.
#[derive(Default)]
struct SplitPage {
    number: u32,
    rows: Vec<RowKeys>,
}

struct RowKeys {
    range: u32,
    hashes: Vec<u64>,
}

/// Builds an index over ranges from all rows of its table, for CREATE INDEX and REINDEX, and
/// returns how many rows the table and the index have.
///
/// The table is scanned once, in the order of its pages. The keys (hashes of values, or of their
/// parts) of one *range*, some neighbouring pages or a part of one, are gathered until the scan has
/// passed the range. Their bits are written once enough ranges make up a tile. The memory is at
/// most maintenance_work_mem. If the build is CONCURRENTLY, this session also remembers which rows
/// the index has, since PostgreSQL will ask for them.
///
/// Fails with 0A000 for a column that can't be in such an index, or a table whose rows don't come
/// in the order of its pages; with 22023 for options that the index can't have; and with 54000 if
/// the index would have too many pages.
pub fn build(wanted: &Wanted<'_>) -> Result<Built> {
    let index = wanted.index();
    let column = column_of_new(index)?;
    let options = options_of_new(&column, index, Some(wanted.table()))?;
    // Hashes are kept in half of maintenance_work_mem; tiles take the other half.
    let most_hashes = maintenance_memory() / 2 / size_of::<u64>();
    let mut building = Building {
        options,
        // The rows come by a division into ranges that is already decided. Only pages that the
        // table gets later may be divided in another way, so `finish` sets the option back.
        build: Build::new(Options { may_split: false, ..options }, most_hashes),
        index: begin_index(index)?,
        range: 0,
        gathered: GatheredKeys::new(&column),
        split_page: SplitPage::default(),
        num_rows: 0,
        num_keys: 0,
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
    /// Adds the keys of a row, the hashes of its value or of its parts, to the index that is being
    /// built. `value` is `None` for NULL, which has no keys. A row of a later range (some
    /// neighbouring pages of the table) than the rows before it first ends their range: its keys
    /// are all there.
    ///
    /// Where a page is *split*, its lines belong to several ranges. The rows of such a page are
    /// kept until the scan goes to the next page, since they don't come in the order of their
    /// lines.
    ///
    /// Fails with 0A000 if rows don't come in the order of their pages, with XX000 if a value has
    /// no hash, and with 54000 if the index would have too many pages.
    ///
    /// # Safety
    /// The value must be one of the index's column.
    unsafe fn add(&mut self, row: RowId, value: Option<SqlValue>) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        let is_split = self.options.split.is_some();
        let range = self.options.range_of(row);
        // The rows of a split page come in any order, so none of its ranges ends before the page.
        let begun_range =
            if is_split { self.options.range_of(RowId { line: 1, ..row }) } else { range };
        if begun_range < self.range {
            return Err(unsupported(
                "cannot build a bloom_filter index on a table whose rows don't come in the order of its pages",
                "Use a table of the access method heap.",
            ));
        }

        if is_split && row.page != self.split_page.number {
            self.end_split_page()?;
            self.split_page.number = row.page;
        }
        self.end_ranges_before(begun_range)?;

        // SAFETY: promised by the caller.
        self.num_keys += unsafe { self.gathered.add(value)? } as u64;
        if is_split {
            let hashes = self.gathered.take();
            memory::push(&mut self.split_page.rows, RowKeys { range, hashes });
        }
        self.num_rows += 1;
        if let Some(built_rows) = &mut self.built_rows {
            built_rows.add(row);
        }
        interrupt::check_for_interrupts();
        Ok(())
    }

    /// Gives the build the keys of all rows of the last page, if pages are *split*, so that the
    /// lines of one page belong to several ranges: range by range, up to the last one that has a
    /// row. Does nothing if no rows are kept. Fails with 54000 if the index would have too many
    /// pages.
    fn end_split_page(&mut self) -> Result<()> {
        let mut rows = std::mem::take(&mut self.split_page.rows);
        rows.sort_by_key(|row| row.range);
        for rows_of_range in rows.chunk_by(|a, b| a.range == b.range) {
            self.end_ranges_before(rows_of_range[0].range)?;
            let hashes = rows_of_range.iter().flat_map(|row| row.hashes.iter().copied());
            self.range += 1;
            self.build.add_range(&mut self.index, &memory::collect(hashes))?;
        }
        Ok(())
    }

    /// Ends the current range, with the keys that were gathered, and those after it that have no
    /// rows, so that `range` is the current one.
    fn end_ranges_before(&mut self, range: u32) -> Result<()> {
        while self.range < range {
            self.range += 1;
            self.build.add_range(&mut self.index, &self.gathered.take())?;
        }
        Ok(())
    }

    /// Ends the last range (the neighbouring pages of the table whose keys were gathered last), and
    /// writes the rest of the index: its last tiles, and the metapage, which makes it an index.
    /// Returns how many rows the index has. Fails with 54000 if the index would have too many
    /// pages.
    fn finish(mut self) -> Result<u64> {
        self.end_split_page()?;
        if !self.gathered.is_empty() {
            self.end_ranges_before(self.range + 1)?;
        }
        let mut directory = self.build.finish(&mut self.index, self.num_rows)?;
        // In an index of elements every row has one key, which needn't be stored.
        if !matches!(self.gathered.column, RangesColumn::Element(_)) {
            let keys_per_row = mean_keys_per_row(self.num_keys, self.num_rows);
            directory.keys_per_row = u16::try_from(keys_per_row).unwrap_or(u16::MAX);
        }
        // The build itself ran without this option: only later pages may be divided in another way.
        directory.options.may_split = self.options.may_split;
        self.index.finish(&directory.metapage());
        Ok(self.num_rows)
    }
}

/// Returns how many keys a row has on average, rounded, and at least 1.
fn mean_keys_per_row(num_keys: u64, num_rows: u64) -> u64 {
    let rounded = (num_keys + num_rows / 2).checked_div(num_rows);
    rounded.unwrap_or(0).max(1)
}

/// Returns a description of the column of an index that is about to be built: which keys its values
/// have, and how they are hashed.
///
/// Fails with 0A000 for a type that has the bytes of an element and compares in another way, such
/// as `citext`: no lookup could use the index. An older index over such a column, whose type was
/// altered later, is rebuilt all the same.
fn column_of_new(index: Relation) -> Result<RangesColumn> {
    let column = RangesColumn::of(index)?;
    let is_read_as_its_bytes = matches!(column, RangesColumn::Element(_) | RangesColumn::Text(_))
        && index.support_function(HASH) == Oid::INVALID;
    if is_read_as_its_bytes && !index.is_being_reindexed() {
        let collation = index.column_class().collation;
        Column::check(index.handler(), index.column_type(), collation)?;
    }
    Ok(column)
}

/// Returns the options that an index is built with: those that the user has given in WITH, and
/// defaults for the others, by the type of the column. A *range* is the part of the table that has
/// one Bloom filter. `table` is the table whose rows the index will have; `None` makes the index
/// for a table that is still empty.
///
/// A page with much text may be *split* among several ranges, by a sample of the table's pages,
/// unless the user has said how many pages a range has. An index of elements is never split. An
/// index of texts, whose ranges are single pages in any case, may split later pages even if it
/// splits none now. The number of keys in a range is a guess, for an index without rows: from the
/// width of a row, or one key for each 20 bytes.
///
/// Fails with 22023 for options that such an index can't have.
fn options_of_new(
    column: &RangesColumn,
    index: Relation,
    table: Option<Relation>,
) -> Result<Options> {
    let is_of_elements = matches!(column, RangesColumn::Element(_));
    let is_of_texts = matches!(column, RangesColumn::Text(_));
    let defaults = match column {
        RangesColumn::Element(_) => FOR_ELEMENTS,
        RangesColumn::Text(_) => FOR_WINDOWS,
        RangesColumn::Array(_) | RangesColumn::Json | RangesColumn::Words => FOR_OTHER_KEYS,
    };
    let most_fpr = if is_of_elements { MAX_FPR_ONE_KEY } else { MAX_FPR_MANY_KEYS };
    let given = options::given(index, most_fpr)?;

    // Unless the user says how many pages a range has, pages may be split, now or later.
    let division_is_open = given.pages_per_range.is_none() && !is_of_elements;
    let split = match table {
        Some(table) if division_is_open => sample::split_of_all(index, table),
        _ => None,
    };
    let default_pages = if split.is_some() { 1 } else { defaults.pages_per_range };
    let pages_per_range = given.pages_per_range.unwrap_or(default_pages);

    let keys_per_range = keys_per_page(index, is_of_elements).saturating_mul(pages_per_range);
    // A flat index has only one level. A filter of a level above stands for up to 128 ranges, and
    // would have nearly all keys of texts.
    let is_flat = split.is_some() || is_of_texts;
    Ok(Options {
        fpr: given.fpr.or(defaults.fpr),
        table_pages: table.map_or(0, Relation::pages),
        is_flat,
        split,
        may_split: is_flat && division_is_open,
        ..Options::for_empty_table(PAGE_SIZE, pages_per_range, keys_per_range)
    })
}

/// Returns a guess of how many keys the rows on a page of the table have, at least 1: one for each
/// row that fits on a page, if each row has one element; otherwise one for each 20 bytes.
fn keys_per_page(index: Relation, is_of_elements: bool) -> u32 {
    let bytes_per_key = if is_of_elements {
        Opened::table_of(index).relation().row_width() + ROW_OVERHEAD
    } else {
        BYTES_PER_KEY
    };
    (PAGE_BYTES as u32 / bytes_per_key).max(1)
}

/// Writes an index without rows, for an unlogged table: see
/// [`IndexKind::build_empty`](crate::index::kind::IndexKind).
pub fn build_empty(index: Relation) -> Result<()> {
    let options = options_of_new(&column_of_new(index)?, index, None)?;
    wal::write_init_page(index, &Directory::empty(options).metapage());
    Ok(())
}
