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
use super::probes::{self, PROBES_IN_VAIN};
use super::table::{ROWS_OF_UNKNOWN_VALUE, Returned, TableSize, scan_tests_rows};
use crate::index::kind::Cost;
use crate::index::ranges::by_condition::{MOST_COMPARISONS, should_hash_rows};
use crate::pg::method::planning::Planned;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::alternatives::Alternatives;

/// Hashing the parts of a row takes as long as comparing it with this many alternatives.
const COMPARISONS_PER_HASHED_ROW: f64 = 4.0;
/// The share of ranges without a match that a typical condition on text reads.
const TYPICAL_RATE: f64 = 0.1;
/// The least share of a sequential scan's cost that PostgreSQL is taken to charge for a condition
/// with many alternatives.
const LEAST_CHARGED_SHARE: f64 = 0.8;
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
pub fn estimate(planned: &Planned, known: Option<KnownIndex>) -> Cost {
    let table = TableSize::of(planned);
    let lookup_condition = known.and_then(|known| LookupCondition::of(planned, known));
    let condition = lookup_condition.as_ref().map(|known| &known.condition);
    if condition.is_some_and(Condition::is_unknown) {
        return cost_of_all_rows(planned, table);
    }

    let comparison = RowComparison::of(planned, known, lookup_condition.as_ref());
    let matching_rows = matching_rows(planned, known, condition, table, &comparison);
    let lookup = Lookup::expected(known, condition, table, matching_rows);
    let reads = TableReads::of(&lookup, table, matching_rows);
    let returned = Returned {
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
    let charged_share = charged_share_of_alternatives(planned, table, condition);
    returned.cost(planned, startup, startup + cost * charged_share)
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
    fn of(planned: &Planned, known: KnownIndex) -> Option<LookupCondition> {
        let scan_keys = planned.known_keys()?;
        // SAFETY: the scan keys are those of the planned scan, which is one of this index.
        let condition = unsafe { known.index.condition(&scan_keys) }.ok()?;
        let hashes_rows = should_hash_rows(known.index, &scan_keys, &condition);
        Some(LookupCondition { condition, hashes_rows })
    }
}

/// Returns the share of a sequential scan's true cost that PostgreSQL charges for it, from 0.8 to
/// 1, if the scan compares each row with many alternatives at once, as with `~ 'a|b|c'` or `@@ 'a |
/// b | c'`. The caller multiplies the cost of the index's scan by this share.
///
/// PostgreSQL charges for one comparison a row, whereas for LIKE ANY it charges half of one for
/// each pattern. So a sequential scan seems too cheap, and PostgreSQL would prefer it. The scan of
/// the index is made too cheap to the same degree, but by a fifth at most, so that its estimate
/// stays near the one for LIKE ANY, whichever of the two a query has.
///
/// Example: a table of 20,000 pages and a million rows, and 16 alternatives. PostgreSQL charges
/// 20,000 + 1,000,000 · (0.01 + 0.0025) = 32,500. For LIKE ANY it would charge 0.0025 · 16 / 2 for
/// the comparisons of a row, 50,000 in all. The share is 0.65, which counts as 0.8.
fn charged_share_of_alternatives(
    planned: &Planned,
    table: TableSize,
    condition: Option<&Condition>,
) -> f64 {
    let alternatives = condition.map_or(1, Alternatives::count) as f64;
    let charged_comparison = planned.comparison_cost();
    let cost_of_alternatives = planned.operator_cost() * alternatives / 2.0;
    let uncharged_per_row = (cost_of_alternatives - charged_comparison).max(0.0);

    let charged_cost =
        table.pages * planned.table_page_costs().next + table.rows * planned.row_cost();
    let true_cost = charged_cost + table.rows * uncharged_per_row;
    if true_cost == 0.0 {
        return 1.0;
    }
    (charged_cost / true_cost).max(LEAST_CHARGED_SHARE)
}

/// Returns the cost of a scan for a condition that the index can't narrow down, so that the scan
/// returns all pages of the table. The sum has all pages and the comparisons of all rows, which
/// PostgreSQL charges for once more as it reads what the scan returns: so it never prefers this to
/// a sequential scan.
fn cost_of_all_rows(planned: &Planned, table: TableSize) -> Cost {
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
    /// Returns how the rows of the ranges that a scan reads will be compared with its condition: by
    /// the scan, which hashes the parts of each row, if that is faster than comparing the row with
    /// each alternative of the condition, and otherwise by PostgreSQL.
    ///
    /// `known` is the index, if it could be read, and `lookup_condition` is the condition, if it is
    /// known before the query runs. Otherwise each value of the scan's keys counts as an
    /// alternative.
    ///
    /// PostgreSQL charges one comparison for a row, however many alternatives it is compared with,
    /// so hashing must cost a fraction of that. Example: hashing a row takes as long as comparing
    /// it with 4 alternatives. If the condition has 100, hashing costs 4/100 of a comparison.
    fn of(
        planned: &Planned,
        known: Option<KnownIndex>,
        lookup_condition: Option<&LookupCondition>,
    ) -> RowComparison {
        let alternatives = match lookup_condition {
            Some(lookup_condition) => Alternatives::count(&lookup_condition.condition),
            None => planned.searches as usize,
        };
        let is_worth_hashing = match lookup_condition {
            Some(lookup_condition) => lookup_condition.hashes_rows,
            None => alternatives > MOST_COMPARISONS,
        };
        let can_hash = match known {
            Some(known) => {
                // Where ranges are parts of pages, texts are stored out of line: only PostgreSQL
                // reads them.
                let has_texts_out_of_line = known.directory.options.split.is_some();
                known.index.column().is_hashed_in_place() && !has_texts_out_of_line
            }
            None => true,
        };

        if is_worth_hashing && can_hash && scan_tests_rows(planned) {
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
    fn cost(&self, planned: &Planned, reads: &TableReads, returned: Returned) -> f64 {
        match self {
            RowComparison::ByScan { cost_per_row } => reads.rows * cost_per_row,
            RowComparison::ByPostgres => (reads.rows - returned.rows) * planned.row_cost(),
        }
    }
}

/// Estimates how many rows of the table meet the scan's condition, at least 1, by PostgreSQL's
/// statistics.
///
/// Statistics overestimate a condition with many alternatives: their errors add up. The scan hashes
/// the rows itself (`ByScan`) for such a condition, and then the estimate is at most what a sample
/// of the index shows. Where PostgreSQL compares the rows, statistics count alone. `condition` is
/// `None` if it isn't known before the query runs.
fn matching_rows(
    planned: &Planned,
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
    planned: &Planned,
    condition: Option<&Condition>,
    table: TableSize,
) -> f64 {
    let by_selectivity = planned.selectivity * table.rows;
    let rows = match condition {
        Some(_) => by_selectivity,
        None => by_selectivity.min(ROWS_OF_UNKNOWN_VALUE * planned.searches),
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
    let rows_of_sampled_alternatives = ROWS_OF_UNKNOWN_VALUE * occurrences_per_range * all_ranges;
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
            index_pages: PROBES_IN_VAIN,
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
        Lookup::that_finds(ranges, tiles * PROBES_IN_VAIN, known, table)
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
    fn cost(&self, planned: &Planned) -> f64 {
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
    fn of(lookup: &Lookup, table: TableSize, matching_rows: f64) -> TableReads {
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

    /// Returns the cost, for the planner, of reading the table pages on which the scan finds no row
    /// to return: PostgreSQL itself charges for the pages in `returned`. A *range* is the
    /// neighbouring pages, or the part of a page, that the index reports as a whole.
    ///
    /// The first page of a range is a random one, the others follow it. The more pages of a table
    /// are read, the more ranges follow each other, too. So the cost of a page falls to
    /// `seq_page_cost`, as in PostgreSQL's `cost_bitmap_heap_scan`.
    fn cost_of_pages_without_match(
        &self,
        planned: &Planned,
        table: TableSize,
        lookup: &Lookup,
        returned: Returned,
    ) -> f64 {
        let costs = planned.table_page_costs();
        let cost_in_a_range = costs.of_range_page(lookup.pages_per_range);
        let share_of_table = self.pages / table.pages;
        let page_cost = cost_in_a_range - (cost_in_a_range - costs.next) * share_of_table.sqrt();
        let pages_without_match = self.pages - returned.pages;
        planned.table_pages_read(pages_without_match) * page_cost
    }
}

/// Returns the cost of a scan of a table whose texts are stored out of line, in its TOAST table.
/// `cost` is what using the index and reading the table costs without these texts.
///
/// Each range has about one such text. Reading it takes a page of the TOAST table's index and a
/// page of the TOAST table. PostgreSQL charges for neither, so a sequential scan, which reads all
/// texts, seems far too cheap. To compare with it, this scan is made as much too cheap: it is
/// charged for its texts, and then all of its costs are multiplied by the share of a sequential
/// scan's cost that PostgreSQL charges.
///
/// Example: PostgreSQL charges 1,500 for a sequential scan of 1,000 pages and their rows. With 4
/// ranges a page it also reads 4,000 texts, each for 2 sequential pages. So it should cost 9,500,
/// and the costs of this scan are multiplied by 1,500 / 9,500 = 0.16.
fn cost_with_texts_out_of_line(
    planned: &Planned,
    table: TableSize,
    lookup: &Lookup,
    returned: Returned,
    cost: f64,
) -> Cost {
    // A sequential scan reads texts in the order in which they are stored. Another scan has to find
    // each text: the first of its two pages is a random one.
    let page_costs = planned.table_page_costs();
    let next_text_cost = page_costs.next + page_costs.next;
    let random_text_cost = page_costs.random + page_costs.next;

    let charged_cost = table.pages * page_costs.next + table.rows * planned.row_cost();
    let texts_of_table = table.pages / lookup.pages_per_range;
    let cost_of_all_texts = texts_of_table * next_text_cost;
    // If pages and rows cost nothing by the settings, neither do texts.
    let is_free = charged_cost + cost_of_all_texts == 0.0;
    let charged_share =
        if is_free { 1.0 } else { charged_cost / (charged_cost + cost_of_all_texts) };

    let cost_with_texts = cost + lookup.ranges * random_text_cost;
    let scaled_returned = Returned {
        rows: returned.rows * charged_share,
        pages: returned.pages * charged_share,
    };
    let startup = planned.keys_cost();
    scaled_returned.cost(planned, startup, startup + cost_with_texts * charged_share)
}
