//! The table's size, and what PostgreSQL charges for the rows that a scan returns.

use crate::index::kind::Cost;
use crate::pg::method::planning::PlannedScan;
use crate::settings;

/// How many rows are assumed to have a value that a query looks for, if nothing is known of it.
pub const ASSUMED_ROWS_PER_VALUE: f64 = 5.0;

/// How large the planner takes the table for. Both numbers are at least 1, so one can divide by
/// them.
#[derive(Clone, Copy)]
pub struct TableSize {
    pub pages: f64,
    pub rows: f64,
}

impl TableSize {
    /// Returns the size of the table whose index the planned scan uses, at least one page and one
    /// row.
    pub fn for_scan(planned: &PlannedScan) -> TableSize {
        TableSize {
            pages: planned.table_pages.max(1.0),
            rows: planned.table_rows.max(1.0),
        }
    }

    /// Returns how many rows are on this many pages, in the mean.
    pub fn rows_on(self, pages: f64) -> f64 {
        pages * self.rows / self.pages
    }
}

/// Returns whether a scan of the index can itself read the table's pages and test their rows: it
/// computes the hashes of their values, and returns only rows that match by these.
///
/// A scan that can't returns whole pages, and PostgreSQL reads them and compares their rows: for an
/// index on an expression, and if the setting `pg_bloom.heap_filter` is off.
pub fn scan_can_test_rows(planned: &PlannedScan) -> bool {
    planned.is_on_column() && settings::HEAP_FILTER.get()
}

/// What a bitmap scan returns to PostgreSQL, which compares these rows with the query's condition.
#[derive(Clone, Copy)]
pub struct ReturnedRows {
    pub rows: f64,
    /// Table pages on which these rows are.
    pub pages: f64,
}

impl ReturnedRows {
    /// Returns the cost of a scan that returns these rows. `startup` and `total` are what using the
    /// index costs, before its first row and in all.
    ///
    /// PostgreSQL gets one number, the share of the table's rows that the index returns. It charges
    /// for comparing that many rows, and for reading the pages that they would be on if they were
    /// spread at random. But the rows that an index over ranges returns lie together, on far fewer
    /// pages. So the share returned here is the one for which PostgreSQL computes the right number
    /// of pages. Comparing the rows beyond that share is added to the cost of the index.
    ///
    /// Example: 800 rows on 8 pages, in a table of 100,000 rows on 1,000 pages. About 8.03 rows at
    /// random would be on 8 pages. So the share is 8.03 / 100,000, and comparing the other 791.97
    /// rows is added.
    pub fn cost(self, planned: &PlannedScan, startup: f64, total: f64) -> Cost {
        let table = TableSize::for_scan(planned);
        let charged_rows = self.rows.min(self.random_rows_on_as_many_pages(table));
        let other_rows = (self.rows - charged_rows).max(0.0);

        Cost {
            startup,
            total: total + other_rows * planned.row_cost(),
            selectivity: (charged_rows / table.rows).min(1.0),
        }
    }

    /// Returns how many rows, spread over the table at random, would be on as many pages.
    ///
    /// For a table of `T` pages PostgreSQL computes `pages = 2·T·rows / (2·T + rows)`, after
    /// Mackert and Lohman (`compute_bitmap_pages`). Solved for the rows, that is
    /// `rows = 2·T·pages / (2·T - pages)`.
    fn random_rows_on_as_many_pages(self, table: TableSize) -> f64 {
        2.0 * table.pages * self.pages / (2.0 * table.pages - self.pages)
    }
}
