//! How the pages of a table should be divided into ranges, judging by how much text some of them
//! have.
//!
//! A page of 8 kB may refer to megabytes of text out of line. A range with that many keys would
//! match nearly every pattern, so such a page is split among several ranges of some lines each.

use crate::heap::{ColumnValue, HeapPage, RowColumn};
use crate::pg::call::interrupt;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::ranges::{PageContent, Split};
use pgrx::pg_sys;

/// Pages that are read of a whole table, at equal distances.
const PAGES_OF_TABLE: u32 = 64;
/// Reading the last pages of a table ends when their rows would fill this many pages.
const ENOUGH_FULL_PAGES: f64 = 3.0;
/// The last pages of a table must have the rows of half a page: a single row on a page just begun
/// doesn't say what the page will have when it is full.
const LEAST_FULL_PAGES: f64 = 0.5;
/// The last pages that are read at most. PostgreSQL adds up to 512 empty pages at once where
/// sessions wait for room, so the rows may be before as many empty ones.
const MOST_LAST_PAGES: u32 = 1024;
/// Bytes of text that a range should have where pages are split.
const BYTES_PER_RANGE: f64 = 16384.0;

/// How new pages should be divided into ranges, judging by the last pages of a table.
pub enum LastPages {
    /// They have too few rows to say.
    TooFew,
    /// Each page should be a range by itself, or the rows can't be read here.
    Whole,
    Split(Split),
}

/// Returns into how many ranges each page of a table should be split, judging by 64 of its pages
/// and what they have when they are full. Returns `None` if pages should not be split, since they
/// have little text, or if the rows can't be read here: the index is on an expression, or the table
/// has another access method than heap.
pub fn split_for_table(index: Relation, table: Relation) -> Option<Split> {
    let num_pages = u64::from(table.pages());
    let num_read = num_pages.min(PAGES_OF_TABLE.into());
    let pages = (0..num_read).map(|i| (i * num_pages / num_read) as u32);
    Sample::read(index, table, pages, f64::INFINITY)?.split(table)
}

/// Returns into how many ranges each new page of a table should be divided, judging by up to 1,024
/// pages that the table has. They are read from page `last_page` backwards, until their rows would fill
/// three pages.
pub fn division_by_last_pages(index: Relation, table: Relation, last_page: u32) -> LastPages {
    let first_page = last_page.saturating_sub(MOST_LAST_PAGES - 1);
    let pages = (first_page..=last_page).rev();
    let Some(sample) = Sample::read(index, table, pages, ENOUGH_FULL_PAGES) else {
        return LastPages::Whole;
    };
    if sample.full_pages < LEAST_FULL_PAGES {
        return LastPages::TooFew;
    }
    match sample.split(table) {
        Some(split) => LastPages::Split(split),
        None => LastPages::Whole,
    }
}

/// What some pages of a table have, together.
#[derive(Default)]
struct Sample {
    /// How many pages their rows would fill, as far as the table's fillfactor allows.
    full_pages: f64,
    /// Lines that are in use: a range has whole lines.
    lines: f64,
    /// The values of the index's column, out of line or not, after decompression.
    text_bytes: f64,
}

impl Sample {
    /// Reads pages of a table in the given order until their rows would fill `enough` pages, and
    /// sums up their lines and the bytes of the index's column, whole and uncompressed. Each page
    /// is locked for sharing while it is read.
    ///
    /// Returns `None` if the rows can't be read here: the index is on an expression, the table has
    /// another access method than heap, or the column has a type of fixed length.
    fn read(
        index: Relation,
        table: Relation,
        pages: impl Iterator<Item = u32>,
        enough: f64,
    ) -> Option<Sample> {
        let column = RowColumn::of_index(index, table).filter(RowColumn::is_of_variable_length)?;
        let share_if_full = table.fill_factor();
        let mut sample = Sample::default();
        for number in pages {
            interrupt::check_for_interrupts();
            let pin = column.page(number);
            let page = HeapPage::lock(&pin);
            let mut last_line = 0;
            page.for_each_row(&column, |line, found| {
                last_line = line;
                if let ColumnValue::Value(element) = found {
                    // SAFETY: of variable length, on a page that is locked.
                    let bytes = unsafe { pg_sys::toast_raw_datum_size(element.datum) };
                    sample.text_bytes += bytes as f64;
                }
            });
            if last_line > 0 {
                sample.full_pages += (page.share_in_use() / share_if_full).min(1.0);
                sample.lines += f64::from(last_line);
            }
            if sample.full_pages >= enough {
                break;
            }
        }
        Some(sample)
    }

    /// Returns into how many ranges a page should be split that has, when it is full, as much as
    /// these pages. Returns `None` if each page should be one range.
    fn split(&self, table: Relation) -> Option<Split> {
        if self.full_pages == 0.0 {
            return None;
        }
        let full_page = PageContent {
            lines: self.lines / self.full_pages,
            text_bytes: self.text_bytes / self.full_pages,
        };
        Split::by_text(BYTES_PER_RANGE, full_page, table.pages())
    }
}
