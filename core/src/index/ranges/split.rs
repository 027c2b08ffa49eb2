//! Which rows a range has: those of some pages, or some lines of a page.
//!
//! ```text
//! whole pages     range = page / pages per range
//! split pages     range = page · ranges per page + (line - 1) / lines per range mod ranges per page
//! both            |0|1|2|…|f - 1|f: ranges per page each       |e|e + 1|…          split from page f up to page e
//! ```
//!
//! Pages are split where a page stands for much text: that of rows out of line, of which a page has
//! the pointers to a hundred and more. A page with more lines than others has shorter texts: they
//! begin again with its first range.
//!
//! Rows that come later may be of another kind. So whenever whole pages need another tile, the
//! pages from there on are split if the last pages of the table stand for much text. And rows may
//! become so wide that a page has only some, and most of its ranges none: then pages are whole
//! again from there on, until the index is rebuilt. The rows of a page without a tile have no bits
//! yet, so no row's range changes; and a row's line is that of the root of its HOT chain.

use crate::index::page::RowId;

pub const MAX_RANGES_PER_PAGE: u16 = 128;
/// The most ranges of the table that a build may divide: so many are left for what is appended.
const MOST_RANGES: u64 = 1 << 30;
/// Line pointers that a page never has more of.
const MOST_LINES: u16 = 2047;

/// How the lines of some pages are divided. Those before and after them are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Lines of a range, at least one.
    pub lines: u16,
    /// Ranges of a page, at least two.
    pub ranges: u16,
    pub first_page: u32,
    /// The first page after it that is whole again; [`Split::NO_PAGE`] if there is none.
    pub end_page: u32,
}

impl Split {
    /// No page of a table has this number.
    pub const NO_PAGE: u32 = u32::MAX;

    pub const fn of_all(lines: u16, ranges: u16) -> Split {
        Split { lines, ranges, first_page: 0, end_page: Split::NO_PAGE }
    }

    /// The split by which a range has so many bytes of text, on a table of so many pages, each of
    /// which has so many lines and stands for so many bytes. `None` if whole pages have little
    /// more, or if there would be too many.
    pub fn by_text(
        range_bytes: f64,
        page_lines: f64,
        page_bytes: f64,
        table_pages: u32,
    ) -> Option<Split> {
        let fewest = (page_lines / f64::from(MAX_RANGES_PER_PAGE)).ceil();
        let lines = (range_bytes * page_lines / page_bytes)
            .floor()
            .clamp(1.0, f64::from(MOST_LINES))
            .max(fewest);
        let ranges = (page_lines / lines).ceil();
        let is_worth_it = page_bytes > 2.0 * range_bytes && ranges >= 2.0;
        // A byte says how many lines.
        let is_possible =
            f64::from(table_pages) * ranges <= MOST_RANGES as f64 && lines <= f64::from(u8::MAX);
        (is_worth_it && is_possible).then_some(Split::of_all(lines as u16, ranges as u16))
    }

    /// Whether no page is whole again.
    pub const fn is_open(&self) -> bool {
        self.end_page == Split::NO_PAGE
    }

    #[inline(always)]
    pub fn first_range(&self, page: u32) -> u64 {
        let split = page.clamp(self.first_page, self.end_page) - self.first_page;
        u64::from(page - split) + u64::from(split) * u64::from(self.ranges)
    }

    /// The range of a row. The last one there can be, for rows that no index can have.
    #[inline(always)]
    pub fn range_of(&self, row: RowId) -> u32 {
        let is_split = (self.first_page..self.end_page).contains(&row.page);
        let within =
            if is_split { row.line.saturating_sub(1) / self.lines % self.ranges } else { 0 };
        u32::try_from(self.first_range(row.page) + u64::from(within)).unwrap_or(u32::MAX)
    }

    /// Whether a range is a part of a page.
    pub fn is_split(&self, range: impl Into<u64>) -> bool {
        (self.first_page.into()..self.first_range(self.end_page)).contains(&range.into())
    }

    pub fn page_of(&self, range: u32) -> u64 {
        let (first, range) = (u64::from(self.first_page), u64::from(range));
        match range.checked_sub(self.first_range(self.end_page)) {
            Some(after) => u64::from(self.end_page) + after,
            None if range < first => range,
            None => first + (range - first) / u64::from(self.ranges),
        }
    }

    /// The lines of a range, in their order; `None` for all.
    pub fn lines_of(&self, range: u32) -> Option<impl Iterator<Item = u16> + use<>> {
        let Split { lines, ranges, first_page, .. } = *self;
        let within = self
            .is_split(range)
            .then(|| (range - first_page) % u32::from(ranges))? as u16;
        let firsts =
            (within * lines + 1..=MOST_LINES).step_by(usize::from(lines) * usize::from(ranges));
        Some(firsts.flat_map(move |first| first..first + lines))
    }
}
