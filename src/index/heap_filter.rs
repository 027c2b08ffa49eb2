//! The heap filter: which rows of a range that may have a key are worth a look.
//!
//! PostgreSQL would look at every row of such a range: fetch it, decide who sees it, compare it, some 60 ns each. Most
//! of them are others. So the scan reads the pages itself, hashes the column of each row, and gives PostgreSQL only the
//! rows that have the hash; it does with these what it does with those of any index. A range that was named in vain
//! costs its pages once, and none of its rows.
//!
//! | 6 million rows, 8 pages per range | whole ranges | by the heap filter |
//! |---|---|---|
//! | a present key, median | 50 µs | |
//! | an absent key, mean | 15.2 µs | |
//!
//! Nothing here decides who sees a row, so nothing can hide one: a row that a snapshot sees was on its page before the
//! snapshot was taken, and is there, on the same line, as long as the snapshot is. What can't be hashed at once (a
//! value out of line, a column that was added later) counts as a match, since PostgreSQL compares each row again. Of a
//! row that was updated in its page the bitmap has the line by which indexes find it.

use super::column::Index;
use crate::element::Hasher;
use crate::pg::buffer::Pin;
use crate::pg::heap_page::{Found, HeapPage, RowColumn};
use crate::pg::relation::{Fork, Relation};
use crate::pg::scan::RowBatch;

/// What finds the rows of pages that have one of several hashes.
pub struct HeapFilter {
    table: Relation,
    column: RowColumn,
    hasher: Hasher,
    /// For each key hashes, ascending, of which a row has one.
    sought: Vec<Vec<u64>>,
}

impl HeapFilter {
    /// The most pages that a scan reads itself. Where a key may be in more, most of them have it, and PostgreSQL reads
    /// them as well.
    pub const MOST_PAGES: usize = 512;

    /// For rows that have one of the hashes of each key; nothing where rows can't be read without PostgreSQL.
    pub fn new(index: &Index, table: Relation, sought: Vec<Vec<u64>>) -> Option<HeapFilter> {
        let column = RowColumn::of_index(index.relation(), table)?;
        Some(HeapFilter { table, column, hasher: index.column().hasher().clone(), sought })
    }

    /// Adds the rows of a page, which the table must have, that may have the keys.
    pub fn add_rows(&self, page: u32, rows: &mut RowBatch<'_>) {
        let pin = Pin::read(self.table, Fork::Main, page);
        let heap_page = HeapPage::lock(&pin);
        let mut roots = None;
        heap_page.for_each_row(&self.column, |line, found| {
            if self.may_match(found) {
                let roots = roots.get_or_insert_with(|| heap_page.roots());
                let is_added = roots.of(line).is_some_and(|root| rows.add(page, root, true));
                if !is_added {
                    rows.add_page(page);
                }
            }
        });
    }

    /// Whether a row with this may have the keys.
    #[inline(always)]
    fn may_match(&self, found: Found) -> bool {
        match found {
            Found::Null => false,
            Found::Unknown => true,
            Found::Value(element) => self
                .hasher
                .hash_in_place(element)
                .is_none_or(|hash| self.sought.iter().all(|hashes| hashes.binary_search(&hash).is_ok())),
        }
    }
}
