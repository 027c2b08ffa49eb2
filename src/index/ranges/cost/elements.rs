//! What scans for elements cost: `x = 5`, `x = ANY (…)`.
//!
//! A *range* is some neighbouring pages of the table. It *matches* if one of its rows has an
//! element that is looked for. The index may also report other ranges, which the scan reads in
//! vain: anywhere, and more often beside a match, in the same tile.
//!
//! ```text
//! matching rows    by statistics; fewer if the index says so
//! matching ranges  ranges with such a row; fewer than rows where equal elements lie together
//! ranges read      matching ranges
//!                  + min(matching ranges, tiles) · ranges reported beside a match
//!                  + all ranges · false positive rate · elements
//! table pages      ranges read · pages per range
//! index pages      elements · (tiles probed for an absent element
//!                              + min(matching ranges / elements, tiles) · share of tiles below others)
//! ```
//!
//! Example: `x = 5`, where one row has 5. The table has 600,000 rows on 10,000 pages, so 1,250
//! ranges of 8 pages. The index has 9 tiles with bits of ranges, 7 of them below another one, so a
//! lookup of an absent element probes 3 tiles. It has a rate of 0.0001, and reports 0.05 ranges
//! beside a match.
//!
//! ```text
//! ranges read    1 + 1 · 0.05 + 1,250 · 0.0001 · 1 = 1.175
//! table pages    1.175 · 8 = 9.4, with 564 rows
//! index pages    1 · (3 + min(1, 9) · 7 / 9) = 3.8
//! cost         3.8 · (4 + 50 · 0.0025)  15.6   index pages
//!              + 9.4 · (4 + 7 · 1) / 8  12.9   table pages: of each range a random one, then the next 7
//!              + 564 · 0.0025            1.4   one operator for each row
//!              = 29.9
//! ```

use super::known::{KnownIndex, TYPICAL_PAGES_PER_RANGE};
use super::probes;
use super::table::{ASSUMED_ROWS_PER_VALUE, ReturnedRows, TableSize, scan_can_test_rows};
use crate::index::kind::Cost;
use crate::index::ranges::columns::RangesColumn;
use crate::index::ranges::columns::element::ElementColumn;
use crate::pg::memory::in_scratch;
use crate::pg::method::planning::PlannedScan;
use crate::pg::method::scan::Key;
use pg_bloom_core::index::ranges::{Expectation, Level};
use pg_bloom_core::memory::List;

/// The most elements of one array (`x = ANY (…)`) for which the index is asked.
const MOST_ELEMENTS_ASKED: usize = 1024;
/// From this number of elements on, asking the index costs less than a wrong estimate does.
const MANY_ELEMENTS: f64 = 100.0;

/// Returns the cost, for the planner, of a bitmap scan that looks for rows with one of some elements
/// (`x = 5`, `x = ANY (…)`): the cost before its first row, the cost in all, and the share of the
/// table's rows that it returns. The top of `cost/elements.rs` adds up an example.
///
/// An index over ranges finds *ranges*, runs of neighbouring pages of the table, that may have one
/// of the elements. Who reads these pages depends:
///
/// | | in this cost | PostgreSQL adds |
/// |---|---|---|
/// | the scan can test rows itself | index pages; the ranges' pages, testing their rows | reading and comparing the rows that match |
/// | it can't | index pages | reading the ranges' pages, comparing all of their rows |
///
/// `known` is the index, if it could be read; without it, the result is the cost of a typical
/// index.
pub fn estimate(planned: &PlannedScan, known: Option<KnownIndex>) -> Cost {
    let table = TableSize::for_scan(planned);
    let ranges = match known {
        Some(known) => Ranges::of_index(known, table),
        None => Ranges::of_typical_index(table),
    };
    let matches = Matches::expected(planned, known, table, &ranges);
    let num_elements = planned.num_values;
    let reads = ScanReads::expected(&matches, num_elements, table, &ranges);

    let startup = planned.keys_cost();
    let index_cost = reads.index_cost(planned);
    if scan_can_test_rows(planned) {
        let table_cost = reads.table_cost(planned, &ranges);
        let returned = ReturnedRows {
            rows: matches.rows,
            pages: (matches.ranges * ranges.pages_per_range).min(table.pages),
        };
        returned.cost(planned, startup, startup + index_cost + table_cost)
    } else {
        let returned = ReturnedRows {
            rows: reads.table_rows.max(matches.rows),
            pages: reads.table_pages,
        };
        returned.cost(planned, startup, startup + index_cost)
    }
}

/// The ranges that an index divides the table into, and how exactly its tiles find them.
struct Ranges {
    count: f64,
    pages_per_range: f64,
    /// Tiles that have the bits of ranges; further tiles of higher levels only tell which of these
    /// to probe.
    tiles: f64,
    /// How many of these tiles are probed only if a tile above reports them, rightly or not. The
    /// others are probed by every lookup.
    tiles_below_others: f64,
    lookup: Expectation,
}

impl Ranges {
    /// Returns the ranges and tiles of an index that was read, for a table of this size. A tile
    /// (the bits of many neighbouring ranges) is *below another* if a tile of a higher level covers
    /// it.
    fn of_index(known: KnownIndex, table: TableSize) -> Ranges {
        let directory = known.directory;
        let tiles = directory.tile_count(Level::Zero);
        let pages_per_range = f64::from(directory.options.pages_per_range);
        Ranges {
            count: (table.pages / pages_per_range).ceil(),
            pages_per_range,
            // At least 1, since others divide by it. An empty index has no tile.
            tiles: f64::from(tiles.max(1)),
            tiles_below_others: f64::from(tiles - directory.tiles_without_slot_above(Level::Zero)),
            lookup: Expectation::for_directory(directory),
        }
    }

    /// Returns the ranges of a typical index for a table of this size: 8 pages each, and one tile.
    /// A lookup of an absent element reads four index pages, and finds 0.3 further ranges beside a
    /// match.
    fn of_typical_index(table: TableSize) -> Ranges {
        Ranges {
            count: (table.pages / TYPICAL_PAGES_PER_RANGE).ceil(),
            pages_per_range: TYPICAL_PAGES_PER_RANGE,
            tiles: 1.0,
            tiles_below_others: 0.0,
            lookup: Expectation { index_pages: 4.0, fpr: 0.0, beside_match: 0.3 },
        }
    }
}

/// The rows and ranges that match.
struct Matches {
    /// Rows that have one of the elements.
    rows: f64,
    /// Ranges that have at least one such row.
    ranges: f64,
}

impl Matches {
    /// Returns how many rows have one of the elements that the planned scan looks for, and how many
    /// ranges (neighbouring pages of the table) have such a row: both by PostgreSQL's statistics,
    /// but no more than the index says where statistics may be far off.
    ///
    /// PostgreSQL assumes the same number of rows for each value that isn't among the most common
    /// ones, even for a value that no row has. So a known index is asked where that number is
    /// large, and where there are many elements: each adds the error of its own estimate. Without a
    /// known index, or if it can't be asked, the statistics decide alone.
    fn expected(
        planned: &PlannedScan,
        known: Option<KnownIndex>,
        table: TableSize,
        ranges: &Ranges,
    ) -> Matches {
        let by_statistics = Matches::by_statistics(planned, known, table, ranges);

        let rows_are_many = by_statistics.rows > ASSUMED_ROWS_PER_VALUE * planned.num_values;
        let elements_are_many = planned.num_values >= MANY_ELEMENTS;
        if let Some(known) = known
            && (rows_are_many || elements_are_many)
            // SAFETY: `known` is the index of the scan that is planned.
            && let Some(ranges_found) = unsafe { ranges_by_index(planned, known) }
        {
            return by_statistics.limited_to(ranges_found, table, ranges);
        }
        by_statistics
    }

    /// Returns how many rows have one of the elements that a scan looks for, by PostgreSQL's
    /// statistics, and in how many ranges (neighbouring pages of the table) these rows are.
    ///
    /// Several of the rows may be in one range. The index tells the share of an element's rows that
    /// are the first with it in their range: so many ranges have the element. Example: 4,000 rows,
    /// of which 1/8 are the first in their range, are in 500 ranges. Without a known index each row
    /// is taken to be in a range of its own.
    ///
    /// An estimate may be a fraction of a row. Then the number of ranges is the same fraction.
    fn by_statistics(
        planned: &PlannedScan,
        known: Option<KnownIndex>,
        table: TableSize,
        ranges: &Ranges,
    ) -> Matches {
        // Without statistics of the column PostgreSQL assumes that half a percent of the table has
        // each element, far more than most elements have.
        let num_elements = planned.num_values;
        let most_rows = if planned.has_statistics() {
            table.rows
        } else {
            ASSUMED_ROWS_PER_VALUE * num_elements
        };
        let rows = (planned.selectivity * table.rows).min(most_rows);

        // A single row is the first in its range: the index needn't be read for that.
        let share_of_first_rows = match known {
            Some(known) if rows > 1.0 => share_of_first_rows(planned, known, ranges),
            _ => 1.0,
        };
        // If a row matches, at least one range does.
        let least_ranges = rows.min(1.0);
        let matching_ranges = (rows * share_of_first_rows).max(least_ranges);
        Matches { rows, ranges: matching_ranges.min(ranges.count) }
    }

    /// Returns these matches, reduced to at most `most_ranges` ranges, and to at most as many rows
    /// as such ranges have in the mean.
    fn limited_to(self, most_ranges: f64, table: TableSize, ranges: &Ranges) -> Matches {
        let matching_ranges = self.ranges.min(most_ranges);
        let rows_in_them = matching_ranges * table.rows / ranges.count;
        Matches { rows: self.rows.min(rows_in_them), ranges: matching_ranges }
    }
}

/// Returns the share of an element's rows that are the first with that element in their range,
/// which is some neighbouring pages of the table: 1 where equal elements are spread over the table,
/// less where they lie together, like the rows of one day.
///
/// The share times an element's rows is the number of ranges that have the element. The index knows
/// the share, as it knows about how many distinct elements a range has; if it is damaged, the share
/// is taken for 1. PostgreSQL's statistics don't tell: their correlation is low also for blocks of
/// equal elements in any order.
///
/// Example: a range has 480 rows and 60 distinct elements, so an element has 8 rows in a range. The
/// share is 1/8: 4,000 rows of an element are in 500 ranges.
fn share_of_first_rows(planned: &PlannedScan, known: KnownIndex, ranges: &Ranges) -> f64 {
    match known.distinct_elements_per_range() {
        Some(elements_per_range) => {
            let first_rows = elements_per_range * ranges.count;
            (first_rows / planned.index_rows.max(1.0)).min(1.0)
        }
        None => 1.0,
    }
}

/// What a scan reads to find its matches.
struct ScanReads {
    /// How many elements are looked for.
    num_elements: f64,
    index_pages_per_element: f64,
    table_pages: f64,
    /// Rows on these table pages.
    table_rows: f64,
}

impl ScanReads {
    /// Returns how many pages of the table and of the index a scan is expected to read, which looks
    /// for `num_elements` elements and finds `matches`.
    ///
    /// Of the table it reads all *ranges* (neighbouring pages) that the index reports. Their bits
    /// are in *tiles*, parts of the index that have many ranges each. Example: one element, in one
    /// of 1,250 ranges of 8 pages, in an index with a false positive rate of 0.0001 that reports
    /// 0.05 ranges wrongly beside each match:
    ///
    /// ```text
    /// ranges with an element                        1
    /// reported wrongly in the tile of such a range  1 · 0.05
    /// reported wrongly in any tile                  1,250 · 0.0001 · 1 element
    /// ranges read                                   1.175, which are 9.4 pages
    /// ```
    ///
    /// Of the index it reads one page of each tile that it probes for an element. A tile may be
    /// *below* another one, which stands for all of its ranges together: it is probed only if that
    /// one reports it. So an absent element costs a page of each tile that is below no other, and
    /// of the few that are reported wrongly: `lookup.index_pages` counts these. An element that is
    /// present costs one more page for each tile below others that has it. Example: if 7 of 9 tiles
    /// are below others, the tile with the element is one of them with a probability of 7/9, and
    /// costs 7/9 of a page in the mean.
    fn expected(
        matches: &Matches,
        num_elements: f64,
        table: TableSize,
        ranges: &Ranges,
    ) -> ScanReads {
        // At most this many tiles have a match. Each also reports some ranges beside it wrongly,
        // since one page has the bits of all of its ranges.
        let tiles_with_match = matches.ranges.min(ranges.tiles);
        let wrong_beside_matches = tiles_with_match * ranges.lookup.beside_match;
        let wrong_anywhere = ranges.count * ranges.lookup.fpr * num_elements;
        let ranges_read = matches.ranges + wrong_beside_matches + wrong_anywhere;

        let pages_of_ranges = ranges_read.min(ranges.count) * ranges.pages_per_range;
        let table_pages = pages_of_ranges.clamp(1.0, table.pages);

        // `lookup.index_pages` counts the metapage, which is in PostgreSQL's cache.
        let pages_for_absent_element = ranges.lookup.index_pages - 1.0;
        let tiles_with_element = (matches.ranges / num_elements).min(ranges.tiles);
        let share_below_others = ranges.tiles_below_others / ranges.tiles;
        let further_pages_if_present = tiles_with_element * share_below_others;

        ScanReads {
            num_elements,
            index_pages_per_element: pages_for_absent_element + further_pages_if_present,
            table_pages,
            table_rows: table.rows_on(table_pages),
        }
    }

    /// Returns the cost, for the planner, of reading the index pages that aren't cached, and of
    /// testing their bits. In a nested loop that repeats the scan, it is the mean cost of a
    /// repetition: later ones find pages cached.
    fn index_cost(&self, planned: &PlannedScan) -> f64 {
        let lookups = self.num_elements * planned.loops;
        let pages_read = planned.index_pages_read(self.index_pages_per_element, lookups);
        let pages_probed = self.index_pages_per_element * self.num_elements;
        probes::cost(planned, pages_probed, pages_read)
    }

    /// Returns what it costs that the scan itself reads the table's pages and tests their rows.
    fn table_cost(&self, planned: &PlannedScan, ranges: &Ranges) -> f64 {
        let mean_page_cost = planned.table_page_costs().of_range_page(ranges.pages_per_range);
        let pages_read = planned.table_pages_read(self.table_pages);
        pages_read * mean_page_cost + self.table_rows * planned.operator_cost()
    }
}

/// Returns in about how many ranges (neighbouring pages of the table) a scan can find rows, by a
/// sample of the index's pages.
///
/// Returns `None` if the elements that the scan looks for aren't known before the query runs, as
/// for `x = $1`, or if the index can't be asked for them: it is damaged, or the user may not see
/// all rows.
///
/// # Safety
/// `known` must be the index of the scan that is planned.
unsafe fn ranges_by_index(planned: &PlannedScan, known: KnownIndex) -> Option<f64> {
    let RangesColumn::Element(column) = known.index.column() else {
        return None;
    };
    // SAFETY: the scan is one of this index, which has this column. Only a number outlives the
    // memory of PostgreSQL's that is used here: hashers that the session keeps are in Rust's
    // memory.
    unsafe { in_scratch(|| fewest_ranges(planned, known, column)) }
}

/// Returns about how many ranges may have rows that match all scan keys of a scan: the smallest of
/// the numbers for each scan key alone. A *scan key* is one comparison of the query with the
/// column.
///
/// A row must match all of them (`x = 5 AND x = ANY (…)`), so no more ranges match than for the
/// scan key with the fewest. Returns `None` if the elements aren't known before the query runs, or
/// if the index can't be asked for one of the scan keys.
///
/// # Safety
/// `known` must be the index of the scan that is planned, and `column` its column.
unsafe fn fewest_ranges(
    planned: &PlannedScan,
    known: KnownIndex,
    column: &ElementColumn,
) -> Option<f64> {
    let mut fewest = f64::INFINITY;
    for scan_key in planned.known_keys()? {
        // SAFETY: the scan key is one of the planned scan, which is of this index.
        let ranges = unsafe { ranges_with_key(known, column, &scan_key) }?;
        fewest = fewest.min(ranges);
    }
    Some(fewest)
}

/// Returns about how many ranges may have one of the elements that a scan key asks for (`x = 5`,
/// `x = ANY (…)`); `None` if the index can't be asked for elements of their type, or is damaged.
///
/// If there are more than 1,024 elements, only a part is asked for, and the result for all is
/// extrapolated from how it grows with the number of elements: twice as many elements find up to
/// twice as many ranges where elements are spread, hardly more where a few ranges have them all.
///
/// Example: of 4,096 elements 1,024 are asked for and found in 300 ranges, half of these in 200. So
/// doubling the elements multiplies the ranges by 1.5. Doubling them twice gives 300 · 1.5² = 675.
///
/// # Safety
/// The scan key must be one of a scan of this index, whose column must be `column`.
unsafe fn ranges_with_key(
    known: KnownIndex,
    column: &ElementColumn,
    scan_key: &Key,
) -> Option<f64> {
    let relation = known.index.relation;
    let hasher = column.hasher_of(relation, scan_key.asked_type).ok()?;

    let elements = scan_key.sought();
    // Each `stride`-th element is looked up; 1 looks up all of them.
    let stride = elements.len().div_ceil(MOST_ELEMENTS_ASKED).max(1);
    let mut hashes = List::with_capacity(elements.len().div_ceil(stride));
    for &element in elements.iter().step_by(stride) {
        // SAFETY: the hasher is for the type of the elements that the scan key asks for.
        let hash = unsafe { hasher.hash(element) }?;
        hashes.push(hash);
    }

    let found = known.ranges_with_any(hashes.iter())?;
    let all_were_asked_for = hashes.len() == elements.len();
    if all_were_asked_for || found == 0.0 {
        return Some(found);
    }

    let found_by_half = known.ranges_with_any(hashes.iter().step_by(2))?;
    let growth_by_doubling = (found / found_by_half).clamp(1.0, 2.0);
    let doublings = (elements.len() as f64 / hashes.len() as f64).log2();
    Some(found * growth_by_doubling.powf(doublings))
}
