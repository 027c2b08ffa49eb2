//! All row versions of a page.

use super::bytes::{Line, MOST_ROWS, PageBytes};
use super::chains::Chains;
use super::column::{ColumnValue, RowColumn};
use crate::pg::storage::buffer::TablePage;
use std::cell::OnceCell;

/// A page of a table, locked for sharing.
pub struct HeapPage<'p> {
    bytes: PageBytes<'p>,
    chains: OnceCell<Chains>,
}

impl<'p> HeapPage<'p> {
    /// Waits for a share lock of a page that is pinned, and returns the page under it.
    pub fn lock(page: &'p TablePage<'_>) -> HeapPage<'p> {
        HeapPage { bytes: PageBytes::lock(page), chains: OnceCell::new() }
    }

    /// Returns the share of the page that line pointers and rows take, from 0 to 1: the last page
    /// of a table has few.
    pub fn share_in_use(&self) -> f64 {
        self.bytes.share_in_use()
    }

    /// Returns how many lines the page has. Each has a row version, or had one.
    pub fn num_lines(&self) -> usize {
        self.bytes.lines()
    }

    /// Returns whether a line is in use, counted from 1, if only for a row that was removed.
    pub fn has_line(&self, line: u16) -> bool {
        let number = usize::from(line);
        let is_there = (1..=self.bytes.lines()).contains(&number);
        is_there && self.bytes.line(number) != Line::Unused
    }

    /// Calls `visit` with the line of each row version, counted from 1, and what that has in the
    /// column. A value is there as long as the page is locked.
    ///
    /// Leaves out a damaged row version whose column would not end within the page: PostgreSQL
    /// doesn't look at ends, and might end the session by reading it.
    #[inline(always)]
    pub fn for_each_row(&self, column: &RowColumn, mut visit: impl FnMut(u16, ColumnValue)) {
        for line in 1..=self.bytes.lines() {
            if let Line::Row { start, end } = self.bytes.line(line) {
                let found = self.find(column, start, end);
                if let Some(found) = found.or_else(|| self.find_in_damaged_row(column, start)) {
                    visit(line as u16, found);
                }
            }
        }
    }

    /// Returns what a sound row version has in the column; `None` for a damaged one.
    #[inline(always)]
    fn find(&self, column: &RowColumn, start: usize, end: usize) -> Option<ColumnValue> {
        column.place.find(&self.bytes.body(start, end)?)
    }

    /// Returns [`ColumnValue::Unknown`] if PostgreSQL can read the column of a damaged row version
    /// without leaving the page.
    #[cold]
    fn find_in_damaged_row(&self, column: &RowColumn, start: usize) -> Option<ColumnValue> {
        let copy = self.bytes.copy(start);
        column.place.find(&copy.body()?)?;
        Some(ColumnValue::Unknown)
    }

    /// Returns by which line an index finds the row version on a line, both counted from 1. Returns
    /// `None` where that isn't certain: for a version that nobody sees any more, and for a damaged
    /// chain. Then any row of the page may be meant.
    pub fn root_of(&self, line: u16) -> Option<u16> {
        if self.is_alone(line) {
            return Some(line);
        }
        self.chains().root_of(line)
    }

    /// Returns whether a row version is the first and the last one of its chain.
    fn is_alone(&self, line: u16) -> bool {
        let Line::Row { start, .. } = self.bytes.line(line.into()) else {
            return false;
        };
        let version = self.bytes.version(start);
        !version.is_heap_only && version.next.is_none()
    }

    /// Returns what is wrong with the page, in words for a message, if PostgreSQL may loop forever
    /// over it, or read or write out of bounds. `None` if the page is safe to scan.
    ///
    /// Checks the number of line pointers, the header of each row version, and the *chains*, in
    /// which a version leads to the newer one of the same row. If a column is given, the values up
    /// to this one must also end within their row.
    pub fn fatal_damage(&self, column: Option<&RowColumn>) -> Option<&'static str> {
        let lines = self.bytes.lines();
        if lines > MOST_ROWS {
            return Some("it has more line pointers than rows fit");
        }
        for line in 1..=lines {
            let is_sound = match (self.bytes.line(line), column) {
                (Line::Row { start, end }, Some(column)) => self.find(column, start, end).is_some(),
                (Line::Row { start, end }, None) => self.bytes.body(start, end).is_some(),
                (without_row, _) => without_row != Line::Damaged,
            };
            if !is_sound {
                return Some("a row has a wrong header, or leaves its place");
            }
        }
        self.chains().fatal_damage()
    }

    fn chains(&self) -> &Chains {
        self.chains.get_or_init(|| Chains::of(&self.bytes))
    }
}
