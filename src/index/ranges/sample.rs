//! How much text the pages of a table stand for, by some of them.

use crate::heap::{Found, HeapPage, RowColumn};
use crate::pg::call::interrupt;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::ranges::{PageContent, Split};
use pgrx::pg_sys;

/// Pages that are read of all.
const PAGES: u32 = 64;
/// Full pages that the last ones of a table make up: empty ones may be among them.
const ENOUGH: f64 = 3.0;
/// Full pages that the last ones of a table must make up at least: a row on a page just begun doesn't
/// say what the page will have when it is full.
const LEAST: f64 = 0.5;
/// Pages that are read for that: PostgreSQL adds up to 512 empty ones at once where sessions wait
/// for room.
const LAST_PAGES: u32 = 1024;
/// Bytes of text that a range has where pages are split.
const RANGE_BYTES: f64 = 16384.0;

/// How pages should be divided into ranges, by the last pages of a table.
pub enum LastPages {
    /// They have too few rows to say.
    TooFew,
    /// Each page should be a range by itself, or the rows can't be read here.
    Whole,
    Split(Split),
}

/// Returns how the pages of a table are split among ranges by some of all of them, as they are when
/// they are full. `None` where a page stands for little text, where the index is on an expression,
/// and for tables whose rows only PostgreSQL can read.
pub fn split_of_all(index: Relation, table: Relation) -> Option<Split> {
    let count = u64::from(table.pages());
    let read = count.min(PAGES.into());
    let pages = (0..read).map(|i| (i * count / read) as u32);
    PagesSeen::read(index, table, pages, f64::INFINITY)?.split(table)
}

/// Returns how pages should be divided by the pages up to this one.
pub fn division_of_last(index: Relation, table: Relation, last: u32) -> LastPages {
    let first = last.saturating_sub(LAST_PAGES - 1);
    match PagesSeen::read(index, table, (first..=last).rev(), ENOUGH) {
        Some(seen) if seen.full_pages < LEAST => LastPages::TooFew,
        Some(seen) => match seen.split(table) {
            Some(split) => LastPages::Split(split),
            None => LastPages::Whole,
        },
        None => LastPages::Whole,
    }
}

/// What some pages of a table have.
#[derive(Default)]
struct PagesSeen {
    /// How many full pages their rows make up.
    full_pages: f64,
    lines: f64,
    text_bytes: f64,
}

impl PagesSeen {
    /// Reads pages until they make up this number of full ones. `None` if their rows can't be read
    /// here.
    fn read(
        index: Relation,
        table: Relation,
        pages: impl Iterator<Item = u32>,
        enough: f64,
    ) -> Option<PagesSeen> {
        let column = RowColumn::of_index(index, table).filter(RowColumn::is_of_variable_length)?;
        let share_if_full = table.fill_factor();
        let mut seen = PagesSeen::default();
        for number in pages {
            interrupt::check_for_interrupts();
            let pin = column.page(number);
            let page = HeapPage::lock(&pin);
            let mut last_line = 0;
            page.for_each_row(&column, |line, found| {
                last_line = line;
                if let Found::Value(element) = found {
                    // SAFETY: of variable length, on a page that is locked.
                    let bytes = unsafe { pg_sys::toast_raw_datum_size(element.datum) };
                    seen.text_bytes += bytes as f64;
                }
            });
            if last_line > 0 {
                seen.full_pages += (page.share_in_use() / share_if_full).min(1.0);
                seen.lines += f64::from(last_line);
            }
            if seen.full_pages >= enough {
                break;
            }
        }
        Some(seen)
    }

    /// Returns how pages are split that have as much as these when they are full; `None` if they
    /// should be whole.
    fn split(&self, table: Relation) -> Option<Split> {
        if self.full_pages == 0.0 {
            return None;
        }
        let full_page = PageContent {
            lines: self.lines / self.full_pages,
            text_bytes: self.text_bytes / self.full_pages,
        };
        Split::by_text(RANGE_BYTES, full_page, table.pages())
    }
}
