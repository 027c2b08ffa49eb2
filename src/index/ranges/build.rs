//! CREATE INDEX and REINDEX: one scan of the table, in the order of its pages, gathers the keys of
//! one range after the other. What CREATE INDEX CONCURRENTLY needs besides is in [`super::vacuum`].

use super::columns::{GatheredKeys, RangesColumn};
use super::sample;
use super::vacuum;
use crate::element::{Column, HASH_SUPPORT};
use crate::error::unsupported;
use crate::index::options;
use crate::index::page::{PAGE_SIZE, begin_index};
use crate::index::session::IndexColumn;
use crate::pg::call::{Result, SqlValue, interrupt};
use crate::pg::method::table::{NewIndex, TupleCounts, maintenance_memory};
use crate::pg::storage::relation::{Opened, PAGE_BYTES, Relation};
use crate::pg::storage::wal::{self, NewPages};
use pg_bloom_core::index::page::{RowId, RowSet};
use pg_bloom_core::index::ranges::{
    Build, Directory, IndexDirectory, MAX_FPR_MANY_KEYS, MAX_FPR_ONE_KEY, Options,
};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::Oid;

/// What an index has unless its options say otherwise.
struct Defaults {
    /// The false positive rate of a range; `None` if it follows the size of the table.
    fpr: Option<f64>,
    pages_per_range: u32,
}

const DEFAULTS_FOR_ELEMENTS: Defaults = Defaults { fpr: None, pages_per_range: 8 };
/// A text has a key for each window, some characters that follow each other. A lookup asks for
/// several windows, and a range is read only if it seems to have all of them, so their rates
/// multiply. At 0.33 a key takes 2.5 bits, of which it sets one. By a model fewer bits and smaller
/// ranges, or more bits and larger ranges, read more of the text at the same size.
const DEFAULTS_FOR_TEXTS: Defaults = Defaults { fpr: Some(0.33), pages_per_range: 1 };
/// For members of arrays, values in documents, and words.
const DEFAULTS_FOR_OTHER_KEYS: Defaults = Defaults { fpr: Some(0.003), pages_per_range: 8 };

impl Defaults {
    /// Returns what an index over such a column has unless its options say otherwise.
    fn for_column(column: &RangesColumn) -> Defaults {
        match column {
            RangesColumn::Element(_) => DEFAULTS_FOR_ELEMENTS,
            RangesColumn::Text(_) => DEFAULTS_FOR_TEXTS,
            RangesColumn::Array(_) | RangesColumn::Json | RangesColumn::Tsvector => {
                DEFAULTS_FOR_OTHER_KEYS
            }
        }
    }
}

/// Bytes of a table for one distinct key, which an index with several keys a row expects before it
/// has rows.
const BYTES_PER_KEY: u32 = 20;
/// Bytes of a row's header and its line pointer.
const ROW_OVERHEAD: u32 = 28;

/// Gathers the keys of one range after the other, as the scan of the table brings their rows, and
/// passes them on to the writer of the index's tiles.
struct RangeCollector<'b> {
    options: Options,
    /// Writes a tile, the pages with the bits of many ranges, whenever it has the keys of enough
    /// ranges.
    tiles: Build,
    /// Where the tiles are written.
    pages: NewPages<'b>,
    /// The number of the range that the last row is in.
    current_range: u32,
    /// The keys of that range so far.
    keys: GatheredKeys<'b>,
    /// The rows of the last page so far, if pages are split among ranges.
    split_page: SplitPage,
    num_rows: u64,
    /// Keys of all rows, counted as often as rows have them.
    num_keys: u64,
    /// The rows, if PostgreSQL will ask for them to validate the index.
    rows_to_validate: Option<RowSet>,
}

/// The rows of a page that is split among several ranges, in the order in which the scan gives
/// them. That isn't the order of their ranges: PostgreSQL gives a row with the line that its HOT
/// chain begins with, when it comes to the chain's last line.
#[derive(Default)]
struct SplitPage {
    number: u32,
    rows: List<RowKeys>,
}

struct RowKeys {
    range: u32,
    hashes: List<u64>,
}

/// Builds an index over ranges from all rows of its table, for CREATE INDEX and REINDEX, and
/// returns how many rows the table and the index have.
///
/// The table is scanned once, in the order of its pages. The keys (hashes of values, or of their
/// parts) of one *range*, some neighbouring pages or a part of one, are gathered until the scan has
/// passed the range. Their bits are written once enough ranges make up a *tile*, some pages of the
/// index. The memory is at most maintenance_work_mem. If the build is CONCURRENTLY, this session
/// also remembers which rows the index has, since PostgreSQL will ask for them.
///
/// Fails with 0A000 for a column that can't be in such an index, or a table whose rows don't come
/// in the order of its pages; with 22023 for options that the index can't have; and with 54000 if
/// the index would have too many pages.
pub fn build(new_index: &NewIndex<'_>) -> Result<TupleCounts> {
    let index = new_index.index();
    let column = column_of_new(index)?;
    let options = options_of_new(&column, index, Some(new_index.table()))?;
    // `may_split` leaves open whether pages are split among several ranges. It is about pages that
    // the table gets later. For those that it has, `options.split` has decided, so their tiles are
    // made without the option, and `finish` stores it.
    let options_of_tiles = Options { may_split: false, ..options };
    // Hashes are kept in half of maintenance_work_mem; tiles take the other half.
    let most_hashes = maintenance_memory() / 2 / size_of::<u64>();

    let mut collector = RangeCollector {
        options,
        tiles: Build::new(options_of_tiles, most_hashes),
        pages: begin_index(index)?,
        current_range: 0,
        keys: GatheredKeys::new(&column),
        split_page: SplitPage::default(),
        num_rows: 0,
        num_keys: 0,
        rows_to_validate: new_index.is_concurrent().then(vacuum::empty_row_set),
    };
    // SAFETY: the scan is one for the index, whose column this is.
    let table_rows = new_index.scan_table(|row, value| unsafe { collector.add(row, value) });
    let rows_to_validate = collector.rows_to_validate.take();
    let index_rows = collector.finish()?;

    if let Some(rows) = rows_to_validate {
        vacuum::keep_until_validated(index, rows);
    }
    Ok(TupleCounts { heap_tuples: table_rows, index_tuples: index_rows as f64 })
}

impl RangeCollector<'_> {
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
        if begun_range < self.current_range {
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
        self.num_keys += unsafe { self.keys.add(value)? } as u64;
        if is_split {
            let hashes = self.keys.take();
            self.split_page.rows.push(RowKeys { range, hashes });
        }
        self.num_rows += 1;
        if let Some(rows) = &mut self.rows_to_validate {
            rows.add(row);
        }
        interrupt::check_for_interrupts();
        Ok(())
    }

    /// Passes on the keys of all rows of the last page, if pages are *split*, so that the
    /// lines of one page belong to several ranges: range by range, up to the last one that has a
    /// row. Does nothing if no rows are kept. Fails with 54000 if the index would have too many
    /// pages.
    fn end_split_page(&mut self) -> Result<()> {
        let mut rows = std::mem::take(&mut self.split_page.rows);
        rows.sort_by_key(|row| row.range);
        for rows_of_range in rows.chunk_by(|a, b| a.range == b.range) {
            self.end_ranges_before(rows_of_range[0].range)?;
            let hashes = rows_of_range.iter().flat_map(|row| row.hashes.iter().copied());
            self.end_range(&hashes.collect::<List<_>>())?;
        }
        Ok(())
    }

    /// Ends all ranges before `range`: the current one, with the keys that were gathered, and those
    /// after it, which have no rows. Then `range` is the current one.
    fn end_ranges_before(&mut self, range: u32) -> Result<()> {
        while self.current_range < range {
            let keys = self.keys.take();
            self.end_range(&keys)?;
        }
        Ok(())
    }

    /// Ends the current range, which has these keys: the next one becomes the current one.
    fn end_range(&mut self, keys: &[u64]) -> Result<()> {
        self.current_range += 1;
        self.tiles.add_range(&mut self.pages, keys)
    }

    /// Writes the rest of an index, when all rows of the table were added: the keys of the last
    /// *range* (neighbouring pages of the table), the last *tiles* (pages with the bits of many
    /// ranges), and in the end the metapage, without which PostgreSQL's file is no valid index.
    /// Returns how many rows the index has. Fails with 54000 if the index would have too many
    /// pages.
    fn finish(mut self) -> Result<u64> {
        self.end_split_page()?;
        if !self.keys.is_empty() {
            let keys_of_last_range = self.keys.take();
            self.end_range(&keys_of_last_range)?;
        }
        let mut directory = self.tiles.finish(&mut self.pages, self.num_rows)?;

        // In an index of elements every row has one key, which needn't be stored.
        if !matches!(self.keys.column, RangesColumn::Element(_)) {
            let keys_per_row = mean_keys_per_row(self.num_keys, self.num_rows);
            directory.keys_per_row = u16::try_from(keys_per_row).unwrap_or(u16::MAX);
        }
        // The tiles were made without this option: it says whether pages that the table gets later
        // may be split among several ranges.
        directory.options.may_split = self.options.may_split;
        self.pages.finish(&directory.metapage());
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
    let column = RangesColumn::describe_column(index)?;
    let is_read_as_its_bytes = matches!(column, RangesColumn::Element(_) | RangesColumn::Text(_))
        && index.support_function(HASH_SUPPORT) == Oid::INVALID;
    if is_read_as_its_bytes && !index.is_being_reindexed() {
        let collation = index.column_class().collation;
        Column::check(index.handler(), index.column_type(), collation)?;
    }
    Ok(column)
}

/// Returns the options that an index is built with: those that the user has given in WITH, and
/// defaults for the others, by the type of the column. `table` is the table whose rows the index
/// will have; `None` makes the index for a table that is still empty.
///
/// A *range* is the part of the table that has one Bloom filter: some neighbouring pages or, where
/// pages are *split*, a part of one page. A sample of the table's pages decides whether they have
/// so much text that they should be split. They never are in an index of elements, and if the user
/// has said how many pages a range has.
///
/// Fails with 22023 for options that such an index can't have.
fn options_of_new(
    column: &RangesColumn,
    index: Relation,
    table: Option<Relation>,
) -> Result<Options> {
    let is_of_elements = matches!(column, RangesColumn::Element(_));
    let is_of_texts = matches!(column, RangesColumn::Text(_));
    let defaults = Defaults::for_column(column);
    let most_fpr = if is_of_elements { MAX_FPR_ONE_KEY } else { MAX_FPR_MANY_KEYS };
    let given = options::given(index, most_fpr)?;

    let can_split_pages = given.pages_per_range.is_none() && !is_of_elements;
    let split = match table {
        Some(table) if can_split_pages => sample::split_for_table(index, table),
        _ => None,
    };
    let default_pages = if split.is_some() { 1 } else { defaults.pages_per_range };
    let pages_per_range = given.pages_per_range.unwrap_or(default_pages);

    // Sizes the first tile of an index that gets all its rows later.
    let guessed_keys_per_range =
        keys_per_page(index, is_of_elements).saturating_mul(pages_per_range);

    // A *flat* index has no filters of higher levels, each of which stands for up to 128 ranges and
    // lets a lookup skip them. With texts such a filter would have nearly all keys.
    let is_flat = split.is_some() || is_of_texts;
    // Only a flat index can split later pages. If it is of texts, its ranges are single pages, and
    // it may begin to split them when the table gets pages with more text.
    let may_split = is_flat && can_split_pages;
    Ok(Options {
        fpr: given.fpr.or(defaults.fpr),
        table_pages: table.map_or(0, Relation::pages),
        is_flat,
        split,
        may_split,
        ..Options::for_empty_table(PAGE_SIZE, pages_per_range, guessed_keys_per_range)
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
