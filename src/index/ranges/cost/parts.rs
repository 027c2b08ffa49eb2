//! What scans over parts of values cost: `text LIKE '%abc%'`, `array @> '{5}'`.
//!
//! A *condition* says which hashes of parts a row must have. A *range* is some neighbouring pages
//! of the table, or a part of a page. If the planner knows the condition, a sample of tiles tells
//! in how many ranges it may hold: PostgreSQL has no statistics for that. Otherwise a typical
//! condition is assumed, which few rows meet; PostgreSQL would assume a fixed share of the table,
//! which is rows in all ranges.
//!
//! PostgreSQL compares the indexes of a table by their costs alone. So whatever an exact index
//! would not read is part of the cost here: pages without a match, and comparing their rows.
//!
//! Example: a pattern of six windows, by statistics in 5 rows of a table of 50,000 rows on 1,000
//! pages. Each page is a range. A lookup probes all 8 tiles of the index. So does the sample, which
//! reads 40 pages of them and finds 12 ranges.
//!
//! ```text
//! cost          40 · (4 + 50 · 0.0025)           165.0   index pages
//!             + (12 - 5) · (4 - 3 · √(12/1,000))  25.7   table pages without a match
//!             + (600 - 5) · (0.01 + 0.0025)        7.4   their rows
//!             = 198.1
//! ```

use super::known::{KnownIndex, TYPICAL_PAGES_PER_RANGE};
use super::probes::{self, PROBES_WITHOUT_MATCH};
use super::table::{ASSUMED_ROWS_PER_VALUE, ReturnedRows, TableSize, scan_can_test_rows};
use crate::index::kind::Cost;
use crate::index::ranges::by_condition::{MOST_COMPARISONS, should_hash_rows};
use crate::pg::method::planning::PlannedScan;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::alternatives::Alternatives;

/// Hashing the parts of a row takes as long as comparing it with this many alternatives.
const COMPARISONS_PER_HASHED_ROW: f64 = 4.0;
/// The share of ranges without a match that a typical condition on text reads.
const TYPICAL_RATE: f64 = 0.1;
/// The least factor by which costs are multiplied for a condition with many alternatives.
const LEAST_COST_FACTOR: f64 = 0.8;
/// The most alternatives of a condition for which the index is asked.
const MOST_ALTERNATIVES_ASKED: usize = 32;

/// Returns the cost, for the planner, of a bitmap scan that looks for rows by what is in their
/// values: `text LIKE '%abc%'`, `array @> '{5}'`. It is the sum of probing pages of the index,
/// reading pages of the table without a match, and comparing rows; PostgreSQL itself charges for
/// the pages and rows that it gets. The top of `cost/parts.rs` adds up an example.
///
/// The index keeps the hashes of the parts of all values, and finds *ranges* (neighbouring pages of
/// the table, or a part of a page) in which a condition on such hashes may hold. `known` is the
/// index, if it could be read; without it, the result is the cost of a typical index.
pub fn estimate(planned: &PlannedScan, known: Option<KnownIndex>) -> Cost {
    let table = TableSize::for_scan(planned);
    let lookup_condition = known.and_then(|known| LookupCondition::for_scan(planned, known));
    let condition = lookup_condition.as_ref().map(|known| &known.condition);
    if condition.is_some_and(Condition::is_unknown) {
        return cost_of_all_rows(planned, table);
    }

    let comparison = RowComparison::expected(planned, known, lookup_condition.as_ref());
    let matching_rows = matching_rows(planned, known, condition, table, &comparison);
    let lookup = Lookup::expected(known, condition, table, matching_rows);
    let reads = TableReads::for_lookup(&lookup, table, matching_rows);
    let returned = ReturnedRows {
        rows: matching_rows.min(reads.rows),
        pages: matching_rows.min(reads.pages),
    };

    let lookup_cost = lookup.cost(planned);
    let pages_cost = reads.cost_of_pages_without_match(planned, table, &lookup, returned);
    let rows_cost = comparison.cost(planned, &reads, returned);
    let cost = lookup_cost + pages_cost + rows_cost;

    let ranges_are_parts_of_pages = lookup.pages_per_range < 1.0;
    if ranges_are_parts_of_pages {
        return cost_with_texts_out_of_line(planned, table, &lookup, returned, cost);
    }
    let startup = planned.keys_cost();
    let cost_factor = cost_factor_for_alternatives(planned, table, condition);
    returned.cost(planned, startup, startup + cost * cost_factor)
}

/// The condition for which a scan will ask the index.
struct LookupCondition {
    condition: Condition,
    /// Whether the scan compares rows by their hashes.
    hashes_rows: bool,
}

impl LookupCondition {
    /// Returns the condition on the hashes of a row's parts for which a planned scan will ask the
    /// index, and whether the scan will compare rows by their hashes. Returns `None` if the
    /// condition isn't known before the query runs, as for `text LIKE $1`, or if computing it
    /// fails: then the scan reports the error.
    fn for_scan(planned: &PlannedScan, known: KnownIndex) -> Option<LookupCondition> {
        let scan_keys = planned.known_keys()?;
        // SAFETY: the scan keys are those of the planned scan, which is one of this index.
        let condition = unsafe { known.index.condition(&scan_keys) }.ok()?;
        let hashes_rows = should_hash_rows(known.index, &scan_keys, &condition);
        Some(LookupCondition { condition, hashes_rows })
    }
}

/// Returns the factor, from 0.8 to 1, by which the cost of the index's scan is multiplied for a
/// condition with many alternatives, such as `~ 'a|b|c'` or `@@ 'a | b | c'`.
///
/// PostgreSQL compares this cost with its cost of a sequential scan, which evaluates the condition
/// on each row. For that PostgreSQL charges one operator a row, however many alternatives the
/// operator tries, so the sequential scan seems cheaper than it is. The factor makes the index's
/// scan seem cheaper in the same proportion:
///
/// ```text
/// factor = what PostgreSQL charges for a sequential scan / a fair charge for it
/// ```
///
/// A fair charge has half an operator for each alternative, as PostgreSQL itself charges for the
/// patterns of `LIKE ANY`. The factor is at least 0.8, so that the estimate stays near the one for
/// `LIKE ANY`, whichever of the two a query has.
///
/// Example: a table of 20,000 pages and a million rows, and 16 alternatives. PostgreSQL charges
/// 20,000 for the pages and 1,000,000 · (0.01 + 0.0025) for the rows, 32,500 in all. A fair charge
/// for a row is 0.01 + 16 / 2 · 0.0025 = 0.03, so 50,000 in all. 32,500 / 50,000 is 0.65, and the
/// factor is 0.8.
fn cost_factor_for_alternatives(
    planned: &PlannedScan,
    table: TableSize,
    condition: Option<&Condition>,
) -> f64 {
    let alternatives = condition.map_or(1, Alternatives::count) as f64;
    let charged_comparison = planned.comparison_cost();
    let fair_comparison = planned.operator_cost() * alternatives / 2.0;
    let uncharged_per_row = (fair_comparison - charged_comparison).max(0.0);

    let charge = table.pages * planned.table_page_costs().next + table.rows * planned.row_cost();
    let fair_charge = charge + table.rows * uncharged_per_row;
    if fair_charge == 0.0 {
        return 1.0;
    }
    (charge / fair_charge).max(LEAST_COST_FACTOR)
}

/// Returns the cost of a scan for a condition that the index can't narrow down, so that the scan
/// returns all pages of the table. The sum has all pages and the comparisons of all rows, which
/// PostgreSQL charges for once more as it reads what the scan returns: so it never prefers this to
/// a sequential scan.
fn cost_of_all_rows(planned: &PlannedScan, table: TableSize) -> Cost {
    let startup = planned.keys_cost();
    let pages_cost = table.pages * planned.table_page_costs().next;
    let rows_cost = table.rows * planned.row_cost();
    Cost {
        startup,
        total: startup + pages_cost + rows_cost,
        selectivity: 1.0,
    }
}

/// How the rows of the ranges that are read are compared with the condition.
enum RowComparison {
    /// The scan hashes the parts of each row, at this cost, and returns only rows that match.
    ByScan { cost_per_row: f64 },
    /// The scan returns all rows, and PostgreSQL compares them.
    ByPostgres,
}

impl RowComparison {
    /// Returns who will compare the rows on the pages that a scan of the index finds: the scan
    /// itself, or PostgreSQL.
    ///
    /// A condition may have several *alternatives*, such as the patterns of `LIKE ANY`. PostgreSQL
    /// compares a row with one alternative after the other. The scan hashes the parts of the row
    /// once, which takes as long as 4 comparisons, and then knows whether any alternative may hold.
    /// So it compares the rows itself if there are many alternatives, and if it can read the rows.
    ///
    /// `known` is the index, if it could be read. `lookup_condition` is the condition, if it is
    /// known before the query runs. An unknown one, as of `LIKE ANY ($1)`, is taken to have an
    /// alternative for each value that is looked for.
    ///
    /// PostgreSQL charges for one comparison of a row, however many alternatives there are, so
    /// hashing must cost a fraction of that. Example: with 100 alternatives, hashing a row costs
    /// 4/100 of a comparison.
    fn expected(
        planned: &PlannedScan,
        known: Option<KnownIndex>,
        lookup_condition: Option<&LookupCondition>,
    ) -> RowComparison {
        let alternatives = match lookup_condition {
            Some(lookup_condition) => Alternatives::count(&lookup_condition.condition),
            None => planned.num_values as usize,
        };
        let is_worth_hashing = match lookup_condition {
            Some(lookup_condition) => lookup_condition.hashes_rows,
            None => alternatives > MOST_COMPARISONS,
        };

        if is_worth_hashing && known.is_none_or(can_hash_rows) && scan_can_test_rows(planned) {
            let share_of_comparison = (COMPARISONS_PER_HASHED_ROW / alternatives as f64).min(1.0);
            RowComparison::ByScan {
                cost_per_row: planned.comparison_cost() * share_of_comparison,
            }
        } else {
            RowComparison::ByPostgres
        }
    }

    /// Returns what it costs to compare the rows that are read, apart from what PostgreSQL charges
    /// for the rows that are returned.
    fn cost(&self, planned: &PlannedScan, reads: &TableReads, returned: ReturnedRows) -> f64 {
        match self {
            RowComparison::ByScan { cost_per_row } => reads.rows * cost_per_row,
            RowComparison::ByPostgres => (reads.rows - returned.rows) * planned.row_cost(),
        }
    }
}

/// Returns whether a scan of the index can hash the parts of the table's rows: it can read the
/// values where they are stored, and hash them without calling PostgreSQL.
fn can_hash_rows(known: KnownIndex) -> bool {
    // Pages are split among several ranges where they have much text. Such texts are stored in the
    // TOAST table, which only PostgreSQL reads.
    let has_texts_out_of_line = known.directory.options.split.is_some();
    known.index.column().is_hashed_in_place() && !has_texts_out_of_line
}

/// Estimates how many rows of the table meet the scan's condition, at least 1, by PostgreSQL's
/// statistics.
///
/// Statistics overestimate a condition with many alternatives: their errors add up. The scan hashes
/// the rows itself (`ByScan`) for such a condition, and then the estimate is at most what a sample
/// of the index shows. Where PostgreSQL compares the rows, statistics count alone. `condition` is
/// `None` if it isn't known before the query runs.
fn matching_rows(
    planned: &PlannedScan,
    known: Option<KnownIndex>,
    condition: Option<&Condition>,
    table: TableSize,
    comparison: &RowComparison,
) -> f64 {
    let by_statistics = matches_by_statistics(planned, condition, table);
    if let RowComparison::ByScan { .. } = comparison
        && let Some(known) = known
        && let Some(condition) = condition
        && let Some(most) = most_matches(known, condition, table)
    {
        return by_statistics.min(most.max(1.0));
    }
    by_statistics
}

/// Returns how many rows match by PostgreSQL's statistics, at least 1.
///
/// For a condition that isn't known before the query runs PostgreSQL assumes a fixed share of the
/// table. Five rows for each value that is looked for are assumed instead, if these are fewer.
fn matches_by_statistics(
    planned: &PlannedScan,
    condition: Option<&Condition>,
    table: TableSize,
) -> f64 {
    let by_selectivity = planned.selectivity * table.rows;
    let rows = match condition {
        Some(_) => by_selectivity,
        None => by_selectivity.min(ASSUMED_ROWS_PER_VALUE * planned.num_values),
    };
    rows.max(1.0)
}

/// Returns at most how many rows meet any of the alternatives of a condition, by a sample of both
/// the alternatives (at most 32) and the index's pages; `None` if the index is damaged, or if it
/// must not be asked, since the user may not see all rows. The result is infinite if an alternative
/// may hold in all ranges (neighbouring pages of the table).
///
/// PostgreSQL takes a value without statistics for one that many rows have. The index knows the
/// share of ranges that may have it, and so about how often it occurs: see
/// [`occurrences_if_random`]. Each occurrence is taken for five rows.
///
/// Example: an alternative that 10 of 1,000 ranges may have occurs `-ln(0.99) · 1,000 = 10.05`
/// times, in 50 rows.
fn most_matches(known: KnownIndex, condition: &Condition, table: TableSize) -> Option<f64> {
    let pages_per_range = known.directory.options.mean_pages(table.pages);
    let all_ranges = (table.pages / pages_per_range).ceil();
    let alternatives = Alternatives::of_condition(condition.clone()).choices;
    let stride = alternatives.len().div_ceil(MOST_ALTERNATIVES_ASKED).max(1);

    let mut occurrences_per_range = 0.0;
    for alternative in alternatives.iter().step_by(stride) {
        let share_of_ranges = known.ranges_matching(alternative)? / all_ranges;
        occurrences_per_range += occurrences_if_random(share_of_ranges);
    }
    let rows_of_sampled_alternatives = ASSUMED_ROWS_PER_VALUE * occurrences_per_range * all_ranges;
    // The sample has one of `stride` alternatives.
    Some(rows_of_sampled_alternatives * stride as f64)
}

/// Returns how often a value occurs for each range (neighbouring pages of the table), if it is in
/// this share of the ranges, from 0 to 1, and its occurrences are spread over them at random.
///
/// By Poisson's distribution a range is without the value with a probability of `e^-occurrences`.
/// So there are few if few ranges have the value, and infinitely many if all have it.
fn occurrences_if_random(share_of_ranges: f64) -> f64 {
    -(1.0 - share_of_ranges).max(0.0).ln()
}

/// The ranges that a lookup in the index is expected to find, and the pages that it probes for
/// that.
struct Lookup {
    /// Ranges in which the condition may hold. Not all of them have a row that matches.
    ranges: f64,
    /// Table pages of a range, in the mean; less than 1 where ranges are parts of pages.
    pages_per_range: f64,
    /// Pages of the index that are probed.
    index_pages: f64,
}

impl Lookup {
    /// Returns what a scan's lookup in the index is expected to find and to read: by a sample of
    /// the index's pages, if both the index and the condition are known.
    ///
    /// Otherwise the lookup is a typical one, which finds a *range* (neighbouring pages of the
    /// table, or a part of a page) for each of the `matching_rows` rows that meet the condition,
    /// and a typical share of all ranges by mistake.
    fn expected(
        known: Option<KnownIndex>,
        condition: Option<&Condition>,
        table: TableSize,
        matching_rows: f64,
    ) -> Lookup {
        let Some(known) = known else {
            return Lookup::in_typical_index(table, matching_rows);
        };
        if let Some(condition) = condition
            && let Some(sampled) = Lookup::by_sample(known, condition, table)
        {
            return sampled;
        }
        Lookup::for_typical_condition(known, table, matching_rows)
    }

    /// Returns a lookup in an index of which nothing is known: it has ranges of 8 table pages and
    /// one tile, the part of an index with the bits of many ranges. The lookup finds a range for
    /// each of the `matching_rows` rows that match, and a tenth of all ranges by mistake.
    fn in_typical_index(table: TableSize, matching_rows: f64) -> Lookup {
        let all_ranges = table.pages / TYPICAL_PAGES_PER_RANGE;
        Lookup {
            ranges: all_ranges * TYPICAL_RATE + matching_rows,
            pages_per_range: TYPICAL_PAGES_PER_RANGE,
            index_pages: PROBES_WITHOUT_MATCH,
        }
    }

    /// Returns the lookup for a condition, by a sample of the index's pages; `None` if the index
    /// must not be asked, since the user may not see all rows of the table, or if it is damaged.
    fn by_sample(known: KnownIndex, condition: &Condition, table: TableSize) -> Option<Lookup> {
        let sampled = known.lookup(condition)?;
        let ranges = if known.is_sampled_completely() {
            sampled.ranges
        } else {
            // The sample may have missed a range that matches, and most queries find something.
            sampled.ranges.max(1.0)
        };
        Some(Lookup::that_finds(ranges, sampled.index_pages, known, table))
    }

    /// Returns the lookup, in a known index, for a condition of which only is known how many rows
    /// meet it. The lookup finds a *range* (neighbouring pages of the table, or a part of a page)
    /// for each of these rows, and a share of all ranges by mistake. In each *tile*, a part of the
    /// index with the bits of many ranges, that every lookup probes, it reads four pages.
    fn for_typical_condition(known: KnownIndex, table: TableSize, matching_rows: f64) -> Lookup {
        let options = &known.directory.options;
        let all_ranges = (table.pages / options.mean_pages(table.pages)).ceil();
        let rate = if options.is_flat { TYPICAL_RATE } else { options.promised_fpr(0) };
        let ranges = matching_rows + all_ranges * rate;
        let tiles = f64::from(known.directory.always_probed());
        Lookup::that_finds(ranges, tiles * PROBES_WITHOUT_MATCH, known, table)
    }

    /// Returns a lookup in a known index that finds `ranges` ranges (neighbouring pages of the
    /// table, or parts of a page), at most all that the table has, by probing `index_pages` index
    /// pages.
    fn that_finds(ranges: f64, index_pages: f64, known: KnownIndex, table: TableSize) -> Lookup {
        let pages_per_range = known.directory.options.mean_pages(table.pages);
        // The index also reports ranges that the table had before VACUUM made it shorter.
        let all_ranges = (table.pages / pages_per_range).ceil();
        Lookup { ranges: ranges.min(all_ranges), pages_per_range, index_pages }
    }

    /// Returns the cost, for the planner, of reading the index pages that aren't cached, at most
    /// all of the index, and of testing the bits of each page that is probed.
    fn cost(&self, planned: &PlannedScan) -> f64 {
        let pages_read = planned
            .index_pages_read(self.index_pages, planned.loops)
            .min(planned.index_pages);
        probes::cost(planned, self.index_pages, pages_read)
    }
}

/// The pages and rows of the table that are read.
struct TableReads {
    pages: f64,
    /// Rows in the ranges that are read, at least those that match.
    rows: f64,
}

impl TableReads {
    /// Returns which part of the table is read for the ranges that a lookup in the index finds: how
    /// many pages and how many rows. A *range* is some neighbouring pages, or a part of a page, of
    /// which the whole page is read. `matching_rows` rows meet the condition; all of them are in
    /// these ranges.
    fn for_lookup(lookup: &Lookup, table: TableSize, matching_rows: f64) -> TableReads {
        // The pages that the ranges would fill: of a range that is a part of a page, only this
        // part.
        let size_of_one_range = lookup.pages_per_range.min(1.0);
        let size_of_ranges =
            (lookup.ranges * lookup.pages_per_range).clamp(size_of_one_range, table.pages);
        let rows_in_ranges = table.rows_on(size_of_ranges);

        // But to read a part of a page, the whole page is read.
        let pages_read = lookup.ranges * lookup.pages_per_range.max(1.0);
        TableReads {
            pages: pages_read.clamp(1.0, table.pages),
            rows: rows_in_ranges.max(matching_rows.min(table.rows)),
        }
    }

    /// Returns the cost, for the planner, of reading those table pages on which the scan finds no
    /// row to return. PostgreSQL itself charges for the pages of the rows in `returned`.
    ///
    /// `self.pages` table pages are read in all. They are in *ranges*: the neighbouring pages, or
    /// the part of a page, that the index reports as a whole. The first page of a range is a random
    /// one, which costs `random_page_cost`, and the others follow it, at `seq_page_cost`: so a page
    /// has a mean cost. The larger the share of the table that is read, the more often one range
    /// follows another, too, and at the whole table each page costs `seq_page_cost`. Between the
    /// two, the cost falls with the square root of the share, as in PostgreSQL's
    /// `cost_bitmap_heap_scan`.
    ///
    /// Example: 12 of 1,000 pages are read, each a range of its own, and 5 have a row to return. A
    /// page costs 4 - (4 - 1) · √(12 / 1,000) = 3.67, and the 7 without such a row cost 25.7.
    fn cost_of_pages_without_match(
        &self,
        planned: &PlannedScan,
        table: TableSize,
        lookup: &Lookup,
        returned: ReturnedRows,
    ) -> f64 {
        let costs = planned.table_page_costs();
        let cost_in_scattered_ranges = costs.of_range_page(lookup.pages_per_range);
        let cost_in_sequence = costs.next;
        let share_of_table = self.pages / table.pages;
        let page_cost = cost_in_scattered_ranges
            - (cost_in_scattered_ranges - cost_in_sequence) * share_of_table.sqrt();

        let pages_without_match = self.pages - returned.pages;
        planned.table_pages_read(pages_without_match) * page_cost
    }
}

/// Returns the cost of a scan of a table whose texts are stored out of line, in its TOAST table.
/// `cost` is what using the index and reading the table costs without these texts.
///
/// Each range (a part of a table page) has about one such text. Reading it takes a page of the
/// TOAST table's index and a page of the TOAST table. PostgreSQL charges for neither. So a
/// sequential scan, which reads all texts, seems far cheaper than it is, and the planner compares
/// with that. Therefore the cost of this scan has its texts, but all of it is multiplied by a
/// factor:
///
/// ```text
/// factor = what PostgreSQL charges for a sequential scan / that plus the cost of all texts
/// ```
///
/// PostgreSQL adds what it charges for the rows that the scan returns. To multiply that, too, fewer
/// rows and pages are said to be returned.
///
/// Example: PostgreSQL charges 1,500 for a sequential scan of 1,000 pages and their rows. With 4
/// ranges a page it also reads 4,000 texts, each for 2 sequential pages of cost 1. So a fair charge
/// is 9,500, and the factor is 1,500 / 9,500 = 0.16.
fn cost_with_texts_out_of_line(
    planned: &PlannedScan,
    table: TableSize,
    lookup: &Lookup,
    returned: ReturnedRows,
    cost: f64,
) -> Cost {
    // A sequential scan reads texts in the order in which they are stored. Another scan has to find
    // each text: the first of its two pages is a random one.
    let page_costs = planned.table_page_costs();
    let next_text_cost = page_costs.next + page_costs.next;
    let random_text_cost = page_costs.random + page_costs.next;

    let charge = table.pages * page_costs.next + table.rows * planned.row_cost();
    let texts_of_table = table.pages / lookup.pages_per_range;
    let cost_of_all_texts = texts_of_table * next_text_cost;
    let fair_charge = charge + cost_of_all_texts;
    // If pages and rows cost nothing by the settings, neither do texts.
    let factor = if fair_charge == 0.0 { 1.0 } else { charge / fair_charge };

    let cost_with_texts = cost + lookup.ranges * random_text_cost;
    let scaled_returned =
        ReturnedRows { rows: returned.rows * factor, pages: returned.pages * factor };
    let startup = planned.keys_cost();
    scaled_returned.cost(planned, startup, startup + cost_with_texts * factor)
}
