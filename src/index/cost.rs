//! What a bitmap scan of the index costs.
//!
//! ```text
//! ranges read     those that have the key    min(ranges, rows that match), as if each were in a range of its own
//!                 beside them                a share of a range for each tile that has it
//!                 in vain                    ranges · fpr, for each key
//! table pages     ranges read · pages per range
//! index pages     those that each question reads, and one for each tile that has the key
//! ```
//!
//! Where the heap filter reads these pages, they are a part of the index's cost, a run for each range, and so is
//! hashing their rows; PostgreSQL is told the share of rows that match.
//!
//! Where the index is on an expression PostgreSQL reads them, and has no place for their number: it takes the share of
//! rows that we return for rows spread at random, and computes the pages that these are on, by Mackert and Lohman. So
//! we return the share that gives the right pages. The rows of these pages are all compared: what PostgreSQL doesn't
//! charge of that is part of the index's cost.

use super::column::Index;
use crate::pg::planning::Planned;
use pg_bloom_core::index::keys::{DEFAULT_FPR, Expectation, Level};

/// Operators that asking a page of the index is worth: hashing, the lock, ten rows of bits.
const OPERATORS_PER_PAGE: f64 = 50.0;

/// What PostgreSQL wants to know.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Before the first result.
    pub startup: f64,
    /// All of it.
    pub total: f64,
    /// The share of the table's rows whose pages are as many as are read.
    pub selectivity: f64,
}

/// What is known of the index.
#[derive(Clone, Copy, Debug)]
struct Shape {
    pages_per_range: f64,
    tiles: f64,
    expected: Expectation,
}

/// What a scan costs.
pub fn estimate(planned: &Planned) -> Cost {
    let Shape { pages_per_range, tiles, expected } = shape(planned);
    let (pages, rows) = (planned.table_pages().max(1.0), planned.table_rows().max(1.0));
    let searches = planned.searches();
    let ranges = (pages / pages_per_range).ceil();
    let matches = planned.selectivity() * rows;
    let having = matches.min(ranges);
    let read = having + matches.min(tiles) * expected.beside_present + ranges * expected.fpr * searches;
    let pages_read = (read.min(ranges) * pages_per_range).clamp(1.0, pages);

    let asked = expected.pages - 1.0 + (matches / searches).min(tiles);
    let scans = searches * planned.loops();
    let fetched = if scans > 1.0 { planned.index_pages_read(asked * scans) / planned.loops() } else { asked };

    let startup = planned.keys_cost();
    let asking = startup
        + fetched * planned.random_page_cost()
        + asked * searches * OPERATORS_PER_PAGE * planned.operator_cost();
    let rows_read = pages_read * rows / pages;
    if planned.is_on_column() {
        let reading = cost_of_reading(planned, pages_read, pages_per_range) + rows_read * planned.operator_cost();
        return Cost { startup, total: asking + reading, selectivity: planned.selectivity().min(1.0) };
    }
    let charged = rows_on(pages_read, pages);
    let compared = (rows_read - charged).max(0.0);
    let total = asking + compared * planned.row_cost();
    Cost { startup, total, selectivity: (charged / rows).max(planned.selectivity()).min(1.0) }
}

/// What it costs to read so many pages of the table in ranges.
fn cost_of_reading(planned: &Planned, pages: f64, pages_per_range: f64) -> f64 {
    let loops = planned.loops();
    let fetched = if loops > 1.0 { planned.table_pages_read(pages * loops) / loops } else { pages };
    let (random, next) = planned.table_page_costs();
    fetched * (random + (pages_per_range - 1.0) * next) / pages_per_range
}

/// How many rows at random are on so many of a table's pages, by the formula that PostgreSQL inverts.
fn rows_on(read: f64, pages: f64) -> f64 {
    2.0 * pages * read / (2.0 * pages - read)
}

/// What is known of the index. A damaged one must not keep the table's queries from being planned: the scan says what
/// is wrong.
fn shape(planned: &Planned) -> Shape {
    let opened = planned.index();
    let directory = opened.as_ref().and_then(|opened| Index::of(opened.relation()).ok()?.directory().ok());
    match directory {
        Some(directory) => Shape {
            pages_per_range: f64::from(directory.options.pages_per_range),
            tiles: f64::from(directory.tiles(Level::Zero)).max(1.0),
            expected: directory.expectation(),
        },
        None => Shape {
            pages_per_range: 8.0,
            tiles: 1.0,
            expected: Expectation { pages: 4.0, fpr: DEFAULT_FPR, beside_present: 0.3 },
        },
    }
}
