//! A column of a table, in the row versions of its pages.

use super::bytes::RowBody;
use crate::pg::call::SqlValue;
use crate::pg::catalog::Storage;
use crate::pg::storage::buffer::TablePage;
use crate::pg::storage::relation::Relation;
use crate::pg::version;
use pg_bloom_core::memory::List;
use pgrx::pg_sys::FormData_pg_attribute;

/// A column of a table.
pub struct RowColumn<'r> {
    table: Relation<'r>,
    pub(super) place: ColumnPlace,
}

/// Where a column is in the rows of its table.
pub(super) struct ColumnPlace {
    /// How the columns before it are stored.
    before: List<Storage>,
    /// How it is stored.
    own: Storage,
    /// Whether rows that are older than the column have a value: the default that it was added
    /// with.
    has_default_for_older: bool,
}

/// What a row version has in a column.
pub enum ColumnValue {
    Null,
    /// A value, which may be compressed or out of line.
    Value(SqlValue),
    /// Something that only PostgreSQL can read: the row is older than a column that was added with
    /// a default, or damaged, though the column is within the page.
    Unknown,
}

impl<'r> RowColumn<'r> {
    /// Returns the column of a table that an index is on, for reading its values from the table's
    /// pages. Returns `None` for an index on an expression, for a table of another access method
    /// than heap, and where PostgreSQL may remove rows that a snapshot still sees, since it has to
    /// notice that itself (`old_snapshot_threshold`, before version 17). Panics for an index of
    /// another table.
    pub fn of_index(index: Relation, table: Relation<'r>) -> Option<RowColumn<'r>> {
        assert_eq!(index.table(), table.oid(), "the table of the index");
        let number = usize::try_from(index.column_number())
            .ok()
            .filter(|&number| number > 0)?;
        if !table.is_heap() || version::may_snapshots_be_too_old() {
            return None;
        }

        let place = ColumnPlace::new(table.columns(), number)?;
        Some(RowColumn { table, place })
    }

    /// Returns whether values of the column have a variable length, as texts and arrays have.
    pub fn is_of_variable_length(&self) -> bool {
        self.place.own.len == -1
    }

    /// Reads a page of the table, which must have it.
    pub fn page(&self, page: u32) -> TablePage<'r> {
        TablePage::read(self.table, page)
    }
}

impl ColumnPlace {
    /// Returns where in the rows of a table the column with this number, counted from 1, is: behind
    /// all columns before it, whose lengths and alignments are noted. `columns` are all columns of
    /// the table in their order, dropped ones included. `None` if there is no such column.
    pub(super) fn new(
        mut columns: impl Iterator<Item = FormData_pg_attribute>,
        number: usize,
    ) -> Option<ColumnPlace> {
        let storage = |column: FormData_pg_attribute| Storage::of(&column);
        let before = columns.by_ref().take(number - 1).map(storage).collect();
        let own = columns.next()?;
        Some(ColumnPlace {
            before,
            own: storage(own),
            has_default_for_older: own.atthasmissing,
        })
    }

    /// Returns what a row version has in the column: a value, NULL, or something that only
    /// PostgreSQL knows, since the row is older than a column with a default. Skips the values of
    /// the columns before it, one by one. `None` if a value would not end within the row, which is
    /// damaged then.
    pub(super) fn find(&self, row: &RowBody<'_>) -> Option<ColumnValue> {
        let number = self.before.len();
        if row.columns <= number {
            return Some(if self.has_default_for_older {
                ColumnValue::Unknown
            } else {
                ColumnValue::Null
            });
        }
        if row.is_null(number) {
            return Some(ColumnValue::Null);
        }

        let mut rest = row.data;
        for (number, storage) in self.before.iter().enumerate() {
            if !row.is_null(number) {
                (_, rest) = storage.split_first_value(rest)?;
            }
        }
        let (value, _) = self.own.split_first_value(rest)?;
        // SAFETY: the bytes are a value of the column, stored as its type says.
        let datum = unsafe { self.own.fetch(value.as_ptr()) };
        Some(ColumnValue::Value(SqlValue { datum }))
    }
}
