//! How much text the pages of a table stand for, by some of them.

use crate::heap::{Found, HeapPage, RowColumn};
use crate::pg::call::interrupt;
use crate::pg::storage::relation::Relation;
use crate::pg::value::toast;
use pg_bloom_core::index::ranges::Split;

/// Pages that are read.
const PAGES: u32 = 64;
/// Bytes of text that a range has where pages are split.
const RANGE_BYTES: f64 = 16384.0;

/// How the pages of a table are split among ranges. `None` where a page stands for little text, where the index is on
/// an expression, and for tables whose rows only PostgreSQL can read.
pub fn split(index: Relation, table: Relation) -> Option<Split> {
    let column = RowColumn::of_index(index, table).filter(RowColumn::is_of_variable_length)?;
    let (count, read) = (table.pages(), table.pages().min(PAGES));
    let (mut pages, mut lines, mut bytes) = (0.0, 0.0, 0.0);
    for i in 0..read {
        interrupt::check_for_interrupts();
        let pin = column.page((u64::from(i) * u64::from(count) / u64::from(read)) as u32);
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
            pages += page.share_in_use();
            lines += f64::from(last);
        }
    }
    (pages > 0.0).then(|| Split::of(RANGE_BYTES, lines / pages, bytes / pages, count)).flatten()
}
