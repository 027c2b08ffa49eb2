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
/// Pages that are read for that: PostgreSQL adds up to 512 empty ones at once where sessions wait
/// for room.
const LAST_PAGES: u32 = 1024;
/// Bytes of text that a range has where pages are split.
const RANGE_BYTES: f64 = 16384.0;

/// How the pages of a table are split among ranges by some of all of them, as they are when they
/// are full. `None` where a page stands for little text, where the index is on an expression, and
/// for tables whose rows only PostgreSQL can read.
pub fn split_of_all(index: Relation, table: Relation) -> Option<Split> {
    let (count, read) = (u64::from(table.pages()), u64::from(table.pages().min(PAGES)));
    split(index, table, (0..read).map(|i| (i * count / read) as u32), f64::INFINITY)
}

/// The same by the pages up to this one.
pub fn split_of_last(index: Relation, table: Relation, last: u32) -> Option<Split> {
    split(index, table, (last.saturating_sub(LAST_PAGES - 1)..=last).rev(), ENOUGH)
}

fn split(
    index: Relation,
    table: Relation,
    among: impl Iterator<Item = u32>,
    enough: f64,
) -> Option<Split> {
    let column = RowColumn::of_index(index, table).filter(RowColumn::is_of_variable_length)?;
    let full = table.fill_factor();
    let (mut pages, mut lines, mut bytes) = (0.0, 0.0, 0.0);
    for at in among {
        interrupt::check_for_interrupts();
        let pin = column.page(at);
        let mut last = 0;
        let page = HeapPage::lock(&pin);
        page.for_each_row(&column, |line, found| {
            last = line;
            if let Found::Value(element) = found {
                // SAFETY: of variable length, on a page that is locked.
                bytes += unsafe { pg_sys::toast_raw_datum_size(element.datum) } as f64;
            }
        });
        if last > 0 {
            pages += (page.share_in_use() / full).min(1.0);
            lines += f64::from(last);
        }
        if pages >= enough {
            break;
        }
    }
    (pages > 0.0)
        .then(|| {
            let page = PageContent { lines: lines / pages, text_bytes: bytes / pages };
            Split::by_text(RANGE_BYTES, page, table.pages())
        })
        .flatten()
}
