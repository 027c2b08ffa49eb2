//! Which rows a range has: those of some pages, or some lines of a page.
//!
//! ```text
//! whole pages     range = page / pages per range
//! split pages     range = page · ranges per page + (line - 1) / lines per range mod ranges per page
//! from page 1 on  range = 1 + (page - 1) · ranges per page + …                            page 0 is range 0
//! ```
//!
//! Pages are split where a page stands for much text: that of rows out of line, of which a page has the pointers to a
//! hundred and more. A page with more lines than others has shorter texts: they begin again with its first range.
//!
//! An index that is made on an empty table can't know yet whether its pages will stand for much text. So page 0 is
//! whole, with a tile to itself, and those after it are split or not by what the table has when the second tile is
//! needed. The rows of a page without a tile have no bits yet, so no row's range changes.
//!
//! Rows may become so wide that a page has only some. Then most of its ranges would have no rows, but bits: so from
//! some page on pages are whole again, until the index is rebuilt.
//!
//! A row's line is that of the root of its HOT chain, by which indexes find it, so its range never changes.

use crate::index::page::RowId;

/// The most ranges of a page.
pub const MAX_RANGES_PER_PAGE: u16 = 128;
/// The most ranges of the table that a build may divide: so many are left for what is appended.
const MOST_RANGES: u64 = 1 << 30;
/// Line pointers that a page never has more of.
const MOST_LINES: u16 = 2047;

/// How the lines of a page are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Lines of a range, at least one.
    pub lines: u16,
    /// Ranges of a page, at least two.
    pub ranges: u16,
}

impl Split {
    /// The split by which a range has so many bytes of text, on a table of so many pages, each of which has so many
    /// lines and stands for so many bytes. `None` if whole pages have little more, or if there would be too many.
    pub fn of(range_bytes: f64, page_lines: f64, page_bytes: f64, table_pages: u32) -> Option<Split> {
        let fewest = (page_lines / f64::from(MAX_RANGES_PER_PAGE)).ceil();
        let lines = (range_bytes * page_lines / page_bytes).floor().clamp(1.0, f64::from(MOST_LINES)).max(fewest);
        let ranges = (page_lines / lines).ceil();
        let is_worth_it = page_bytes > 2.0 * range_bytes && ranges >= 2.0;
        // A byte says how many lines.
        let is_possible = f64::from(table_pages) * ranges <= MOST_RANGES as f64 && lines <= f64::from(u8::MAX);
        (is_worth_it && is_possible).then_some(Split { lines: lines as u16, ranges: ranges as u16 })
    }

    /// The range of a row, if pages before this one are whole. The last one there can be, for rows that no index can
    /// have.
    #[inline(always)]
    pub fn range_of(&self, row: RowId, first_page: u32) -> u32 {
        let Some(page) = row.page.checked_sub(first_page) else { return row.page };
        let within = row.line.saturating_sub(1) / self.lines % self.ranges;
        let range = u64::from(first_page) + u64::from(page) * u64::from(self.ranges) + u64::from(within);
        u32::try_from(range).unwrap_or(u32::MAX)
    }

    /// The page of a range, if pages before this one are whole.
    pub fn page_of(&self, range: u32, first_page: u32) -> u64 {
        let split = range.checked_sub(first_page).map(|range| range / u32::from(self.ranges));
        split.map_or(range.into(), |page| u64::from(page) + u64::from(first_page))
    }

    /// The lines of the n-th range of the pages that are split, in their order.
    pub fn lines_of(&self, range: u32) -> impl Iterator<Item = u16> + use<> {
        let Split { lines, ranges } = *self;
        let within = (range % u32::from(ranges)) as u16;
        let firsts = (within * lines + 1..=MOST_LINES).step_by(usize::from(lines) * usize::from(ranges));
        firsts.flat_map(move |first| first..first + lines)
    }
}
