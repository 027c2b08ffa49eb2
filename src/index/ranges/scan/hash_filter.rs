//! The heap filter: which rows of a range that may have a key are worth a look.
//!
//! PostgreSQL would look at every row of such a range: fetch it, decide who sees it, compare it, some 60 ns each. Most
//! of them are others. So the scan reads the pages itself, hashes the column of each row, and gives PostgreSQL only the
//! rows that have the hash; it does with these what it does with those of any index. A range that was named
//! unnecessarily costs its pages once, and none of its rows.
//!
//! | 6 million rows, 8 pages per range | whole ranges | by the heap filter |
//! |---|---|---|
//! | a present key, median | 50 µs | 27 µs |
//! | an absent key, mean | 15.2 µs | 10.8 µs |
//! | a new key in an anti-join, mean | 8.5 µs | 4.5 µs |
//!
//! Nothing here decides who sees a row, so nothing can hide one: a row that a snapshot sees was on its page before the
//! snapshot was taken, and is there, on the same line, as long as the snapshot is. What can't be hashed at once (a
//! value out of line, a column that was added later) counts as a match, since PostgreSQL compares each row again. Of a
//! row that was updated in its page the bitmap has the line by which indexes find it.

use crate::element::Hasher;
use crate::heap::{Found, HeapPage, RowColumn};
use crate::index::ranges::columns::{Index, RangesColumn};
use crate::index::ranges::pages::readable_column;
use crate::pg::method::scan::RowBatch;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::memory;

/// What reads the rows of a table with an index.
pub struct HashFilter<'r> {
    column: RowColumn<'r>,
    hasher: Hasher,
}

/// A row of a page.
pub struct HashedRow {
    /// By which line an index finds it; `None` where none does any more.
    pub root: Option<u16>,
    /// `None` where only PostgreSQL can tell.
    pub hash: Option<u64>,
}

impl<'r> HashFilter<'r> {
    /// `None` if rows can't, or must not, be read without PostgreSQL, and for an index of parts.
    pub fn new(index: &Index, table: Relation<'r>) -> Option<HashFilter<'r>> {
        let RangesColumn::Element(elements) = index.kind() else { return None };
        let column = readable_column(index.relation(), table)?;
        Some(HashFilter { column, hasher: elements.hasher().clone() })
    }

    /// Adds the rows of a page, which the table must have, that may have one of the hashes of each key. These ascend.
    pub fn add_rows(&self, page: u32, keys: &[Vec<u64>], rows: &mut RowBatch) {
        let is_sought = |hash| keys.iter().all(|hashes| hashes.binary_search(&hash).is_ok());
        self.each_row(page, |heap_page, row, hash| {
            if hash.is_none_or(is_sought) {
                rows.add_again(page, heap_page.root_of(row));
            }
        });
    }

    /// The rows of a page, which the table must have, except for those whose column is NULL.
    pub fn rows_of(&self, page: u32) -> Vec<HashedRow> {
        let mut rows = Vec::new();
        self.each_row(page, |heap_page, row, hash| {
            memory::push(&mut rows, HashedRow { root: heap_page.root_of(row), hash });
        });
        rows
    }

    /// Calls `visit` with each row, and its hash, if it can be computed here.
    #[inline(always)]
    fn each_row(&self, page: u32, mut visit: impl FnMut(&HeapPage<'_>, u16, Option<u64>)) {
        let pin = self.column.page(page);
        let heap_page = HeapPage::lock(&pin);
        heap_page.for_each_row(&self.column, |row, found| match found {
            Found::Null => {}
            Found::Unknown => visit(&heap_page, row, None),
            // SAFETY: the value is that of the index's column, and there as long as the page is locked.
            Found::Value(element) => visit(&heap_page, row, unsafe { self.hasher.hash_in_place(element) }),
        });
    }
}
