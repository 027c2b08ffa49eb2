//! How much text the pages of a table stand for, by some of them.

use crate::heap::{Found, HeapPage, RowColumn};
use crate::pg::call::interrupt;
use crate::pg::storage::relation::Relation;
use crate::pg::value::toast;
use pg_bloom_core::index::ranges::Split;
use std::ops::Range;

/// Pages that are read.
const PAGES: usize = 64;
/// Bytes of text that a range has where pages are split.
const RANGE_BYTES: f64 = 16384.0;

/// How pages are split among ranges by some of these pages of a table, as they are when they are full. `None` where a
/// page stands for little text, where the index is on an expression, and for tables whose rows only PostgreSQL can
/// read.
pub fn split(index: Relation, table: Relation, among: Range<u32>) -> Option<Split> {
    let column = RowColumn::of_index(index, table).filter(RowColumn::is_of_variable_length)?;
    let (count, read, full) = (among.len() as u64, among.len().min(PAGES) as u64, table.fill_factor());
    let (mut pages, mut lines, mut bytes) = (0.0, 0.0, 0.0);
    for i in 0..read {
        interrupt::check_for_interrupts();
        let pin = column.page(among.start + (i * count / read) as u32);
        let mut last = 0;
        let page = HeapPage::lock(&pin);
        page.for_each_row(&column, |line, found| {
            last = line;
            if let Found::Value(element) = found {
                // SAFETY: of variable length, on a page that is locked.
                bytes += unsafe { toast::whole_bytes(element.datum) } as f64;
            }
        });
        if last > 0 {
            pages += (page.share_in_use() / full).min(1.0);
            lines += f64::from(last);
        }
    }
    (pages > 0.0).then(|| Split::by_text(RANGE_BYTES, lines / pages, bytes / pages, table.pages())).flatten()
}
