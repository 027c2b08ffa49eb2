//! Which rows a range has: those of some pages, or some lines of a page.
//!
//! ```text
//! whole pages     range = page / pages per range
//! split pages     range = page · ranges per page + (line - 1) / lines per range mod ranges per page
//! both            |0|1|2|…|f - 1|f: ranges per page each       |e|e + 1|…          split from page f up to page e
//! ```
//!
//! Example: pages are split from page 2 up to page 4, into 3 ranges of 10 lines each.
//!
//! ```text
//! page     0     1     2                                   3          4     5
//! range    0     1     2          3           4            5  6  7    8     9
//! lines    all   all   1 … 10,    11 … 20,    21 … 30,     …          all   all
//!                      31 … 40    41 … 50     51 … 60
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

/// The most ranges of a page: as many as a tile has columns at most.
pub const MAX_RANGES_PER_PAGE: u16 = 128;
/// The most ranges of the table that a build may divide pages into. Range numbers have 32 bits:
/// three quarters of them are left for what is appended.
const MOST_RANGES_OF_BUILD: f64 = (1u32 << 30) as f64;
/// Line pointers that a page never has more of: 2,047 is the greatest number of a line in
/// PostgreSQL's largest pages.
const MOST_LINES: u16 = 2047;
/// Pages are split if they stand for more than this many times the text of a range.
const LEAST_RANGES_OF_TEXT: f64 = 2.0;

/// How the lines of some pages are divided among ranges. The pages before and after them are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// How many neighbouring lines are in one range, at least one.
    pub lines_per_range: u16,
    /// How many ranges a page has, at least two.
    pub ranges_per_page: u16,
    /// The first page that is split.
    pub first_page: u32,
    /// The first page after it that is whole again; [`Split::NO_PAGE`] if there is none.
    pub end_page: u32,
}

/// What the pages of a table hold on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageContent {
    /// Line pointers of a page.
    pub lines: f64,
    /// Bytes of text that the rows of a page have, out of line or not, uncompressed.
    pub text_bytes: f64,
}

impl Split {
    /// No page of a table has this number.
    pub const NO_PAGE: u32 = u32::MAX;

    /// Returns the split of all pages into ranges of this many lines, of which each page has this
    /// many.
    pub const fn of_all_pages(lines_per_range: u16, ranges_per_page: u16) -> Split {
        Split {
            lines_per_range,
            ranges_per_page,
            first_page: 0,
            end_page: Split::NO_PAGE,
        }
    }

    /// Divides each page of a table among several ranges, so that a range has about `range_bytes`
    /// bytes of text. A range gets neighbouring lines of a page. `page` says how many lines and how
    /// much text a page has on average, and `table_pages` how many pages the table has.
    ///
    /// Returns `None` if pages should stay whole: if a page has at most twice as much text as a
    /// range should have, if the table would get so many ranges that too few of the 32-bit numbers
    /// were left for pages that are appended (`MOST_RANGES_OF_BUILD`), or if a range would have
    /// more than 255 lines.
    ///
    /// Example: a page has 100 lines and 800,000 bytes of text on average, and a range should have
    /// 80,000 bytes. So a range gets 10 lines, and a page 10 ranges.
    pub fn by_text(range_bytes: f64, page: PageContent, table_pages: u32) -> Option<Split> {
        // A line has page.text_bytes / page.lines bytes of text.
        let wanted_lines = (range_bytes * page.lines / page.text_bytes).floor();
        // With fewer lines in a range, a page would have too many ranges.
        let least_lines = (page.lines / f64::from(MAX_RANGES_PER_PAGE)).ceil();
        let lines_per_range = wanted_lines.clamp(1.0, f64::from(MOST_LINES)).max(least_lines);
        let ranges_per_page = (page.lines / lines_per_range).ceil();

        let has_much_text = page.text_bytes > LEAST_RANGES_OF_TEXT * range_bytes;
        let is_worth_it = has_much_text && ranges_per_page >= 2.0;

        let ranges_of_table = f64::from(table_pages) * ranges_per_page;
        let leaves_numbers_to_append = ranges_of_table <= MOST_RANGES_OF_BUILD;
        // The metapage stores the number of lines in a byte.
        let can_be_stored = lines_per_range <= f64::from(u8::MAX);

        if is_worth_it && leaves_numbers_to_append && can_be_stored {
            Some(Split::of_all_pages(lines_per_range as u16, ranges_per_page as u16))
        } else {
            None
        }
    }

    /// Returns whether all pages from the first split one on are split.
    pub const fn is_open(&self) -> bool {
        self.end_page == Split::NO_PAGE
    }

    /// Returns the first range of a page.
    #[inline(always)]
    pub fn first_range(&self, page: u32) -> u64 {
        // Each page before this one is one range if it is whole, and several if it is split.
        let split_pages_before = page.clamp(self.first_page, self.end_page) - self.first_page;
        let whole_pages_before = page - split_pages_before;
        u64::from(whole_pages_before)
            + u64::from(split_pages_before) * u64::from(self.ranges_per_page)
    }

    /// Returns the number of the range that a row of the table is in. A page is one range, or, if
    /// it is split, several: its lines are dealt out to them by groups of `lines_per_range`,
    /// beginning again with the first range after the last one.
    ///
    /// A row so far back that its range would have no 32-bit number, which no index can have, is in
    /// the last range.
    #[inline(always)]
    pub fn range_of(&self, row: RowId) -> u32 {
        let is_split = (self.first_page..self.end_page).contains(&row.page);
        let range_in_page = if is_split {
            row.line.saturating_sub(1) / self.lines_per_range % self.ranges_per_page
        } else {
            0
        };
        let range = self.first_range(row.page) + u64::from(range_in_page);
        u32::try_from(range).unwrap_or(u32::MAX)
    }

    /// Returns whether a range is only a part of a page.
    pub fn is_split(&self, range: impl Into<u64>) -> bool {
        let split_ranges = u64::from(self.first_page)..self.first_range(self.end_page);
        split_ranges.contains(&range.into())
    }

    /// Returns the number of the heap page that has the rows of a range. A range is a whole page,
    /// or some lines of a page that is *split*. Pages from `first_page` up to `end_page` are split,
    /// those before and after them are whole, and ranges are numbered in the order of the pages.
    pub fn page_of(&self, range: u32) -> u64 {
        // Pages before the first split one have the numbers of their ranges.
        let range = u64::from(range);
        let first_page = u64::from(self.first_page);
        let end_page = u64::from(self.end_page);
        let first_whole_range_after = self.first_range(self.end_page);
        if range < first_page {
            range
        } else if range < first_whole_range_after {
            first_page + (range - first_page) / u64::from(self.ranges_per_page)
        } else {
            end_page + (range - first_whole_range_after)
        }
    }

    /// Returns the numbers of the lines (line pointers) of a heap page that are in a range, in
    /// ascending order, up to the greatest number that PostgreSQL gives a line; `None` if the range
    /// has all lines of its page.
    ///
    /// Example: with 10 lines in a range and 3 ranges in a page, the first range of a page has the
    /// lines 1 to 10, 31 to 40, 61 to 70 and so on.
    pub fn lines_of(&self, range: u32) -> Option<impl Iterator<Item = u16> + use<>> {
        if !self.is_split(range) {
            return None;
        }
        let range_in_page = (range - self.first_page) % u32::from(self.ranges_per_page);
        let lines_per_range = self.lines_per_range;

        // The lines of a page are dealt out to its ranges in turns.
        let first_line = range_in_page as u16 * lines_per_range + 1;
        let lines_per_turn = usize::from(lines_per_range) * usize::from(self.ranges_per_page);
        let first_lines = (first_line..=MOST_LINES).step_by(lines_per_turn);
        Some(first_lines.flat_map(move |first| first..first + lines_per_range))
    }
}
