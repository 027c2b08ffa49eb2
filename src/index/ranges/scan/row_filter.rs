//! The filter of rows for conditions with many alternatives: which rows of a range are worth a look.
//!
//! PostgreSQL compares each row of a range with all of the values, 200 patterns or 100 members, one after the other.
//! So the scan reads the rows itself, hashes the parts of each, and gives PostgreSQL only those that may match: by one
//! of the alternatives that the index has found in their range.
//!
//! As for that of hashes ([`crate::index::ranges`]) nothing is decided about who sees a row, so nothing can be
//! hidden. But the rows of a page are copied under its lock and hashed without it: a page of text has thousands of
//! parts, a value may be compressed, and arrays must be aligned. What is out of line counts as a match: the parts of a
//! row that nobody sees any more may be gone. So do arrays whose members only PostgreSQL can hash.

use crate::heap::{Found, HeapPage, RowColumn};
use crate::index::ranges::columns::{Index, RangesColumn};
use crate::index::ranges::pages::readable_column;
use crate::pg::method::scan::RowBatch;
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use crate::pg::value::varlena::Value;
use pg_bloom_core::conditions::alternatives::RowTest;
use pg_bloom_core::memory;
use pgrx::pg_sys::Datum;

/// The column of an index in the rows of its table, and its keys.
pub struct Readable<'r> {
    column: RowColumn<'r>,
    kind: &'r RangesColumn,
}

/// What reads the rows of a table with an index, and which of them it looks for.
pub struct RowFilter<'r> {
    readable: Readable<'r>,
    test: RowTest,
    rows: Vec<CandidateRow>,
    /// The values of these rows.
    values: Vec<u64>,
}

/// A row of a page.
struct CandidateRow {
    /// By which line an index finds it; `None` where none does any more.
    root: Option<u16>,
    /// Where its value begins; `None` where only PostgreSQL can tell what it is.
    value: Option<usize>,
}

impl<'r> Readable<'r> {
    /// `None` where rows can't be looked at here.
    pub fn new(index: &'r Index, table: Relation<'r>) -> Option<Readable<'r>> {
        let kind = index.kind();
        let column = if kind.is_hashed_in_place() { readable_column(index.relation(), table)? } else { return None };
        column.is_of_variable_length().then_some(Readable { column, kind })
    }
}

impl<'r> RowFilter<'r> {
    pub fn new(readable: Readable<'r>, test: RowTest) -> RowFilter<'r> {
        // So much that nothing is allocated under the lock of a page.
        let values = memory::list(2 * PAGE_BYTES / size_of::<u64>());
        RowFilter { readable, test, rows: Vec::new(), values }
    }

    /// Adds the rows of a page, which the table must have, for which one of the alternatives with these numbers may
    /// hold.
    pub fn add_rows(&mut self, page: u32, alternatives: &[u32], rows: &mut RowBatch) {
        self.copy(page);
        self.test.begin_range(alternatives);
        for row in &self.rows {
            let may_match = row.value.is_none_or(|start| {
                let value = Datum::from(self.values[start..].as_ptr());
                // SAFETY: a value of the column, whole if it was in line, with a length of four bytes.
                unsafe { may_match(self.readable.kind, value, &mut self.test) }
            });
            if may_match {
                rows.add_again(page, row.root);
            }
        }
    }

    /// Copies the rows of a page, except for those whose column is NULL.
    fn copy(&mut self, page: u32) {
        self.rows.clear();
        self.values.clear();
        let column = &self.readable.column;
        let pin = column.page(page);
        let heap_page = HeapPage::lock(&pin);
        heap_page.for_each_row(column, |line, found| {
            let value = match found {
                Found::Null => return,
                Found::Unknown => None,
                // SAFETY: of variable length, as `new` has asked; the value is there as long as the page is locked.
                Found::Value(element) => unsafe { Value::append_to(element.datum, &mut self.values) },
            };
            memory::push(&mut self.rows, CandidateRow { root: heap_page.root_of(line), value });
        });
    }
}

/// Whether a row with this value passes the test. A value that can't be hashed, which can't happen, would.
///
/// # Safety
/// The value must be of the column's type.
unsafe fn may_match(kind: &RangesColumn, value: Datum, test: &mut RowTest) -> bool {
    let mut is_watched = false;
    // SAFETY: promised by the caller.
    let hashed = unsafe { kind.each_key(value, |hash| is_watched |= test.is_watched(hash)) };
    if hashed.is_ok() && !is_watched {
        return false;
    }
    test.begin_row();
    // SAFETY: promised by the caller.
    let hashed = unsafe { kind.each_key(value, |hash| test.add(hash)) };
    hashed.is_err() || test.may_match()
}
