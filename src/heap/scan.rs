//! The rows of the page that a sequential scan is at.
//!
//! A scan of PostgreSQL's goes through a table page by page. It pins a page, looks which of its row
//! versions the scan's snapshot sees, and then returns these one after the other. Its progress
//! says:
//!
//! ```text
//! rs_cblock, rs_cbuf     the page, and the buffer in which it is pinned
//! rs_vistuples           the lines of the versions that the snapshot sees   | 1 | 2 | 5 | 6 | 9 |
//! rs_cindex              where in this list the scan is                           ▲
//! rs_ntuples             how many are in the list
//! ```
//!
//! Those after the current one can be read without any effect on the scan: it has found them
//! visible already, and while a page is pinned nobody removes or moves a version that a snapshot
//! sees, or changes its columns.

use super::bytes::{Line, MOST_ROWS, PageBytes};
use super::column::{ColumnPlace, ColumnValue};
use crate::pg::call::SqlValue;
use crate::pg::call::scan::{ScannedColumn, SequentialScan};
use pgrx::pg_sys;

/// A column of the rows that a sequential scan of a table of the access method `heap` returns.
pub struct RowsOfScan {
    scan: SequentialScan,
    column: ColumnPlace,
}

/// Where a sequential scan is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ScanPosition {
    pub page: u32,
    /// Counts the rows that the scan returns of this page, from 0.
    pub row: usize,
}

impl RowsOfScan {
    /// Returns `None` for a table of another access method.
    pub fn new(scanned: ScannedColumn) -> Option<RowsOfScan> {
        if !scanned.scan.is_of_heap() {
            return None;
        }
        let column = ColumnPlace::new(scanned.scan.columns(), scanned.number)?;
        Some(RowsOfScan { scan: scanned.scan, column })
    }

    /// Returns the scan's progress, as the access method `heap` keeps it. It is there, since the
    /// scan is at a row while it evaluates a call.
    #[inline(always)]
    fn progress(&self) -> *const pg_sys::HeapScanDescData {
        self.scan.progress().cast()
    }

    /// Returns where the scan is.
    #[inline(always)]
    pub fn position(&self) -> ScanPosition {
        let progress = self.progress();
        // SAFETY: the access method was checked by `new`.
        unsafe {
            ScanPosition {
                page: (*progress).rs_cblock,
                row: (*progress).rs_cindex as usize,
            }
        }
    }

    /// Looks at the row that a sequential scan is at and at those that it will return next, up to
    /// `most` rows of the same page. Calls `visit` with the value of each, and before it with the
    /// row's distance from the scan's own: 0 for the row that the scan is at, 1 for the next one.
    ///
    /// Rows whose value is NULL, and damaged rows, are left out. A value may be compressed or out
    /// of line, and stays until the scan goes to the next page.
    ///
    /// Returns how many rows were looked at: fewer than `most` at the end of the page, and 0 if the
    /// scan has no list of the rows that it will return, which only scans with an MVCC snapshot
    /// have.
    #[inline(always)]
    pub fn visit_next(&self, most: usize, mut visit: impl FnMut(usize, SqlValue)) -> usize {
        let progress = self.progress();
        // SAFETY: the access method was checked by `new`. The scan is at a row, so it has a page
        // pinned.
        let (page, visible) = unsafe {
            let has_list = (*progress).rs_base.rs_flags & pg_sys::ScanOptions::SO_ALLOW_PAGEMODE;
            if has_list == 0 {
                return 0;
            }
            let len = ((*progress).rs_ntuples as usize).min(MOST_ROWS);
            let lines: *const u16 = (&raw const (*progress).rs_vistuples).cast();
            let page = PageBytes::pinned(pg_sys::BufferGetPage((*progress).rs_cbuf).cast());
            (page, std::slice::from_raw_parts(lines, len))
        };

        // The list has the lines of all visible rows of the page; the scan is at one of them.
        let lines_from_here = visible.get(self.position().row..).unwrap_or(&[]);
        let lines_looked_at = &lines_from_here[..most.min(lines_from_here.len())];
        for (distance, &line) in lines_looked_at.iter().enumerate() {
            if let Line::Row { start, end } = page.line(line.into())
                && let Some(row) = page.body(start, end)
                && let Some(ColumnValue::Value(element)) = self.column.find(&row)
            {
                visit(distance, element);
            }
        }
        lines_looked_at.len()
    }
}
