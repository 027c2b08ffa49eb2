//! What a bitmap scan of the index costs.
//!
//! ```text
//! matches         rows that match, by the statistics; without any, a handful for each key
//! ranges read     those that have the key         min(ranges, max(1, matches · elements / rows))
//!                 beside them                     a share of a range for each tile that has it
//!                 unnecessarily                   ranges · fpr, for each key
//! table pages     ranges read · pages per range
//! index pages     those that each lookup reads, and one for each tile that has the key
//! ```
//!
//! A range counts an element once, however many of its rows have it. So where equal keys lie together, as those of one
//! day do, a range has fewer elements than rows, and the rows of a key are in fewer ranges. How many is
//! read from the bits of a page of the index. The column's correlation says nothing about that: it is high for a sorted
//! column, and low where blocks of equal keys come in any order.
//!
//! Where the heap filter reads these pages, they are a part of the index's cost, a run for each range, and so is
//! hashing their rows; PostgreSQL then reads the pages of the rows that match. Where the index is on an expression,
//! PostgreSQL reads all of the pages.
//!
//! There is no place to tell PostgreSQL the number of pages: it takes the share of rows that we return for rows spread
//! at random, and computes the pages that these are on, by Mackert and Lohman. So we return the share that gives the
//! right pages. What PostgreSQL doesn't charge of comparing rows by that is part of the index's cost.

use super::column::Index;
use crate::index::kind::Cost;
use crate::pg::method::planning::Planned;
use crate::settings;
use pg_bloom_core::index::keys::{Expectation, Level};

/// Operators that asking a page of the index is worth: hashing, the lock, ten rows of bits.
pub const OPERATORS_PER_PAGE: f64 = 50.0;

/// Rows that a key is expected to have without statistics.
pub const HANDFUL: f64 = 5.0;

/// What is known of the index.
#[derive(Clone, Copy, Debug)]
struct Shape {
    pages_per_range: f64,
    tiles: f64,
    expected: Expectation,
    /// Distinct elements of a range, in the mean; one row is in one range, however many there are.
    elements: Option<f64>,
}

/// What a scan costs.
pub fn estimate(planned: &Planned) -> Cost {
    let (pages, rows) = (planned.table_pages.max(1.0), planned.table_rows.max(1.0));
    let searches = planned.searches;
    // By the column's statistics, or a handful for each key without them.
    let most = if planned.has_statistics() { rows } else { HANDFUL * planned.searches };
    let matches = (planned.selectivity * rows).min(most);
    let Shape { pages_per_range, tiles, expected, elements } = shape(planned, matches > 1.0);
    let ranges = (pages / pages_per_range).ceil();
    // The share of a key's rows of which each is the first in its range.
    let first = elements.map_or(1.0, |elements| (elements * ranges / planned.index_rows.max(1.0)).min(1.0));
    let having = (matches * first).max(matches.min(1.0)).min(ranges);
    let read = having + having.min(tiles) * expected.beside_present + ranges * expected.fpr * searches;
    let pages_read = (read.min(ranges) * pages_per_range).clamp(1.0, pages);

    let lookups = expected.pages - 1.0 + (having / searches).min(tiles);
    let fetched = planned.index_pages_read(lookups, searches * planned.loops);

    let startup = planned.keys_cost();
    let mut total = startup
        + fetched * planned.random_page_cost()
        + lookups * searches * OPERATORS_PER_PAGE * planned.operator_cost();
    let rows_read = pages_read * rows / pages;
    let (given, pages_given) = if planned.is_on_column() && settings::heap_filter() {
        let (random, next) = planned.table_page_costs();
        let a_page = (random + (pages_per_range - 1.0) * next) / pages_per_range;
        total += planned.table_pages_read(pages_read) * a_page + rows_read * planned.operator_cost();
        (matches, (having * pages_per_range).min(pages))
    } else {
        (rows_read.max(matches), pages_read)
    };
    cost_of_rows(planned, startup, total, given, pages_given)
}

/// The cost of a scan after which PostgreSQL compares so many rows, on so many pages of the table.
pub fn cost_of_rows(planned: &Planned, startup: f64, total: f64, rows: f64, pages: f64) -> Cost {
    let (all_pages, all_rows) = (planned.table_pages.max(1.0), planned.table_rows.max(1.0));
    // How many rows at random are on so many pages, by the formula that PostgreSQL inverts.
    let charged = rows.min(2.0 * all_pages * pages / (2.0 * all_pages - pages));
    let total = total + (rows - charged).max(0.0) * planned.row_cost();
    Cost { startup, total, selectivity: (charged / all_rows).min(1.0) }
}

/// What is known of the index. A damaged one must not keep the table's queries from being planned: the scan says what
/// is wrong.
fn shape(planned: &Planned, with_elements: bool) -> Shape {
    let opened = planned.index();
    let index = opened.as_ref().and_then(|opened| Index::of(opened.relation()).ok());
    let directory = index.as_ref().and_then(|index| index.directory().ok());
    match index.zip(directory) {
        Some((index, directory)) => Shape {
            pages_per_range: f64::from(directory.options.pages_per_range),
            tiles: f64::from(directory.tiles(Level::Zero)).max(1.0),
            expected: directory.expectation(),
            elements: with_elements.then(|| directory.elements_per_range(&mut index.pages()).ok().flatten()).flatten(),
        },
        None => Shape {
            pages_per_range: 8.0,
            tiles: 1.0,
            expected: Expectation { pages: 4.0, fpr: 0.0, beside_present: 0.3 },
            elements: None,
        },
    }
}
