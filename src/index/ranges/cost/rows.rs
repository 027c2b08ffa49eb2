//! What PostgreSQL does with the rows that a scan finds.
//!
//! There is no place to tell PostgreSQL the number of pages: it takes the share of rows that we return for rows spread
//! at random, and computes the pages that these are on, by Mackert and Lohman. So we return the share that gives the
//! right pages. What PostgreSQL doesn't charge of comparing rows by that is part of the index's cost.

use crate::index::kind::Cost;
use crate::pg::method::planning::Planned;

/// Operators that asking a page of the index is worth: hashing, the lock, ten rows of bits.
pub const OPERATORS_PER_PAGE: f64 = 50.0;

/// Rows that a key is expected to have without statistics.
pub const HANDFUL: f64 = 5.0;

/// The cost of a scan after which PostgreSQL compares so many rows, on so many pages of the table.
pub fn cost_of_rows(planned: &Planned, startup: f64, total: f64, rows: f64, pages: f64) -> Cost {
    let (all_pages, all_rows) = (planned.table_pages.max(1.0), planned.table_rows.max(1.0));
    // How many rows at random are on so many pages, by the formula that PostgreSQL inverts.
    let charged = rows.min(2.0 * all_pages * pages / (2.0 * all_pages - pages));
    let total = total + (rows - charged).max(0.0) * planned.row_cost();
    Cost { startup, total, selectivity: (charged / all_rows).min(1.0) }
}
