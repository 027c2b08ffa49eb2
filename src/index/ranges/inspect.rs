//! `bloom_index_info` of an index over ranges, and `bloom_index_check`, which says whether queries
//! would find every row of its table by each of its keys.
//!
//! The check looks at the pages of all tiles first, since PostgreSQL would lose the bits of a page
//! with a damaged header later. Then it reads the rows that every new transaction sees. It looks up
//! each key of a row as a query would: the bits in the index, and, for an index of elements, the
//! heap filter on the row's own page.

use super::columns::RangesIndex;
use super::insert::{RecentKey, RecentKeys};
use super::rows::{HashFilter, RowHash};
use crate::index::kind::IndexInfo;
use crate::index::live_rows::each_live_row;
use crate::index::named_index::NamedIndex;
use crate::index::page::missed;
use crate::pg::call::SqlValue;
use crate::pg::call::error::Result;
use crate::pg::method::table::Latest;
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::index::ranges::{Directory, Expectation, Level, Survey};
use pg_bloom_core::memory::List;

/// Returns the row of the SQL function `bloom_index_info` for an index over ranges, which are some
/// neighbouring pages of the table each. Reads all pages of the index, to count bits and to
/// estimate the keys and the false positive rate that the index has now. Fails with XX002 if a page
/// is damaged.
pub fn info(named: &NamedIndex) -> Result<IndexInfo> {
    let index = RangesIndex::open(named.index())?;
    let directory = index.directory()?;
    let survey = index.checked(Survey::read(&directory, &mut index.pages()))?;
    let options = directory.options;
    let expected = Expectation::for_directory(&directory);

    let has_tiles = |&level: &Level| directory.tile_count(level) > 0;
    let levels = Level::ALL.into_iter().filter(has_tiles).count().max(1);
    let has_ranges = survey.ranges > 0;
    Ok(IndexInfo {
        pages: named.index().pages().into(),
        // The last range may be shorter in the table than in the index.
        table_pages: covered_pages(&directory).min(named.table().pages().into()),
        pages_per_range: Some(options.pages_per_range),
        ranges: Some(survey.ranges),
        levels: levels as u32,
        rows_built: directory.chain.rows_built,
        elements: Some(survey.keys),
        bits_per_element: Some(survey.bits as f64 / survey.keys.max(1.0)),
        target_fpr: Some(expected.fpr),
        current_fpr: Some(survey.fpr),
        overfull_ranges: Some(survey.overfull),
        pages_per_lookup: expected.index_pages,
        keys_per_row: Some(directory.keys_per_row.max(1).into()),
        keys_per_range: has_ranges.then(|| survey.keys / survey.ranges as f64),
        ranges_per_page: options.split.map(|split| split.ranges_per_page.into()),
        ..IndexInfo::default()
    })
}

/// Returns how many pages of a table, from the first one on, have a range in the index, also if the
/// table isn't as long; 0 for an index without tiles.
fn covered_pages(directory: &Directory) -> u64 {
    let Some(last_slot) = directory.end_slot(Level::Zero).checked_sub(1) else {
        return 0;
    };
    let last_range = u32::try_from(last_slot).unwrap_or(u32::MAX);
    directory.options.pages_of(last_range).end
}

/// Checks an index over ranges against its table, for the SQL function `bloom_index_check`, and
/// returns how many rows with a value, not NULL, the index must have and finds.
///
/// First looks at the pages of all tiles, which have the index's bits. Then looks up each key of
/// each row that a snapshot taken here sees, as a query would. Pages are locked for sharing, one at
/// a time.
///
/// Fails with XX002 if a page of the index is damaged, or if a query would not find a row by one of
/// its keys, and with XX001 if a page of the table is damaged.
pub fn check(named: &NamedIndex) -> Result<i64> {
    // Rows that the snapshot sees got their bits and tiles before it was taken.
    let snapshot = Latest::take(named.table());
    let index = RangesIndex::open(named.index())?;
    let directory = index.directory()?;
    for level in Level::ALL {
        for tile in directory
            .tiles_from(level, 0)
            .take_while(|tile| index.pages().has(tile.first_page))
        {
            index.pages().check_each(tile.pages(), tile.special())?;
        }
    }
    let mut checker = RowChecker {
        index: &index,
        directory: &directory,
        checked_keys: RecentKeys::default(),
        heap_filter: HashFilter::new(&index, named.table()),
        heap_page: None,
    };
    let mut num_rows = 0;
    each_live_row(named.table(), named.index(), &snapshot, |row, value| {
        // No query finds a NULL by the index, so it has no key.
        let Some(value) = value else { return Ok(()) };
        // SAFETY: the value is that of the index's column.
        if !unsafe { checker.finds(row, value)? } {
            return Err(missed(named.index(), named.table(), row));
        }
        num_rows += 1;
        Ok(())
    })?;
    Ok(num_rows)
}

/// Checks whether the index finds rows. The rows come in the order of their pages.
struct RowChecker<'a> {
    index: &'a RangesIndex<'a>,
    directory: &'a Directory,
    /// Keys that were found in a range: most keys of a text are also those of the rows before it.
    checked_keys: RecentKeys,
    /// `None` where a scan has no heap filter.
    heap_filter: Option<HashFilter<'a>>,
    /// What the heap filter finds on the page of the last row.
    heap_page: Option<HeapPageRows>,
}

/// The rows that the heap filter finds on a page of the table.
struct HeapPageRows {
    number: u32,
    rows: List<RowHash>,
}

impl RowChecker<'_> {
    /// Returns whether queries would find a row by each key of its value. A *key* is the hash of
    /// the value or of a part of it, such as a member of an array. Rows in the order of their pages
    /// take least time, since what was found on the last page is kept. Fails with XX002 if the
    /// index is damaged, and with XX000 if a value has no hash.
    ///
    /// # Safety
    /// The value must be of the type of the index's column.
    unsafe fn finds(&mut self, row: RowId, value: SqlValue) -> Result<bool> {
        let index = self.index;
        let mut finds_all = Ok(true);
        // SAFETY: promised by the caller.
        unsafe {
            index.column().each_key(value, |key| {
                if matches!(finds_all, Ok(true)) {
                    finds_all = self.finds_key(row, key);
                }
            })?;
        }
        finds_all
    }

    /// Returns whether a query for a key would find a row that has it: the Bloom filter of the
    /// row's range (some neighbouring pages of the table) has all bits of the key, and the heap
    /// filter, which compares hashes of the rows on those pages, passes the row on. Fails with
    /// XX002 if the index is damaged.
    fn finds_key(&mut self, row: RowId, hash: u64) -> Result<bool> {
        let range = self.directory.options.range_of(row);
        let key = RecentKey { load_number: self.index.load_number(), range, hash };
        if !self.checked_keys.has(&key) {
            if !has_bits(self.index, self.directory, range, hash)? {
                return Ok(false);
            }
            self.checked_keys.add(key);
        }
        Ok(self.passes_heap_filter(row, hash))
    }

    /// Returns whether the heap filter gives a row to PostgreSQL in a query for a hash. The *heap
    /// filter* reads the table's pages that the index has found, and passes on rows whose value has
    /// the hash. Returns true if the index's scans have no heap filter.
    fn passes_heap_filter(&mut self, row: RowId, hash: u64) -> bool {
        let Some(filter) = &self.heap_filter else {
            return true;
        };
        let heap_page = match self.heap_page.take() {
            Some(known) if known.number == row.page => known,
            _ => HeapPageRows { number: row.page, rows: filter.rows_of(row.page) },
        };
        // A line or a hash that isn't known counts as the one that is asked for, as in a query.
        let is_given = heap_page.rows.iter().any(|found| {
            found.line.is_none_or(|line| line == row.line)
                && found.hash.is_none_or(|found_hash| found_hash == hash)
        });
        self.heap_page = Some(heap_page);
        is_given
    }
}

/// Returns whether a range has all bits of a key. Fails with XX002 if the index is damaged.
fn has_bits(index: &RangesIndex, directory: &Directory, range: u32, key: u64) -> Result<bool> {
    let Some(marks) = directory.marks(range, key) else {
        return Ok(false);
    };
    for mark in &marks {
        if !index.read(mark.page(), |page| mark.is_set(page))? {
            return Ok(false);
        }
    }
    Ok(true)
}
