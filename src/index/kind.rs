//! The kinds of index as tables of functions: over the keys of rows, over what is in values, over a
//! column of filters.

use super::named_index::NamedIndex;
use crate::pg::call::{Result, SqlValue};
use crate::pg::method::planning::Planned;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::method::table::{Built, Wanted};
use crate::pg::method::vacuum::{Counts, DeadRows, Vacuum};
use crate::pg::storage::relation::Relation;
use crate::pg::value::row::ResultColumn::{self, F64, I32, I64, Null};
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys::Oid;

/// What PostgreSQL's verbs do for a kind of index. Damage is an error of class XX002 in all of
/// them.
pub struct IndexKind {
    /// Returns whether an index can have an operator class, given its family and its declared type;
    /// reports what is wrong with it, as INFO.
    pub validate: fn(family: Oid, declared: Oid) -> bool,
    /// Builds the index, for CREATE INDEX and REINDEX.
    ///
    /// Fails with 0A000 for a column that can't be in such an index, with 22023 for options that it
    /// can't have, with 22P03 for a damaged filter, and with 54000 for too many pages.
    pub build: fn(&Wanted<'_>) -> Result<Built>,
    /// Writes what an unlogged index is after a crash: one without rows. Fails as `build` does.
    pub build_empty: fn(index: Relation) -> Result<()>,
    /// Adds a row with this value, which is not NULL and must be of the type of the index's column.
    /// Fails with 22P03 for a damaged filter, and with 54000 for too many pages.
    pub insert: unsafe fn(index: Relation, value: SqlValue, row: RowId) -> Result<()>,
    /// Adds the rows that may match all of these keys, which must be those of a scan of the index.
    /// Fails with 0A000 for a comparison that the index can't answer.
    pub bitmap: unsafe fn(index: Relation, keys: &[Key], rows: &mut RowBatch) -> Result<()>,
    /// Does a pass of VACUUM: frees what dead rows have. CREATE INDEX CONCURRENTLY asks in this way
    /// which rows the index has.
    pub bulk_delete: fn(index: Relation, dead: &DeadRows) -> Result<Counts>,
    /// Returns the counts of the index at the end of VACUUM; `None` leaves those that a pass has
    /// returned.
    pub cleanup: fn(index: Relation, vacuum: &Vacuum, had_pass: bool) -> Option<Counts>,
    /// Estimates the cost of a scan.
    pub estimate: fn(planned: &Planned) -> Cost,
    /// Looks for every row of the table, and returns how many there are. Fails with XX002 for the
    /// first one that is missed.
    pub check: fn(named: &NamedIndex) -> Result<i64>,
    /// Returns what `bloom_index_info` says.
    pub info: fn(named: &NamedIndex) -> Result<IndexInfo>,
}

/// What `bloom_index_info` says of an index; docs/reference.md describes each column. `None` is for
/// what the kind of index doesn't have.
#[derive(Default)]
pub struct IndexInfo {
    pub pages: u64,
    pub table_pages: u64,
    pub pages_per_range: Option<u32>,
    pub ranges: Option<u64>,
    pub levels: u32,
    pub rows_built: u64,
    pub elements: Option<f64>,
    pub bits_per_element: Option<f64>,
    pub target_fpr: Option<f64>,
    pub current_fpr: Option<f64>,
    pub overfull_ranges: Option<u64>,
    pub pages_per_lookup: f64,
    pub filters: Option<u64>,
    pub slots: Option<u64>,
    pub always_probed: Option<u64>,
    pub keys_per_row: Option<f64>,
    pub keys_per_range: Option<f64>,
    pub ranges_per_page: Option<u32>,
}

impl IndexInfo {
    /// Returns the columns of the SQL function `bloom_index_info`, in the order in which
    /// `sql/pg_bloom.sql` declares them. What the index doesn't have is NULL.
    pub fn columns(&self) -> [ResultColumn; 18] {
        let count = |number: u64| I64(number.cast_signed());
        let some_count = |number: Option<u64>| number.map_or(Null, count);
        let some_integer = |number: Option<u32>| number.map_or(Null, |n| I32(n.cast_signed()));
        let some_float = |number: Option<f64>| number.map_or(Null, F64);
        [
            count(self.pages),
            count(self.table_pages),
            some_integer(self.pages_per_range),
            some_count(self.ranges),
            I32(self.levels.cast_signed()),
            count(self.rows_built),
            some_float(self.elements),
            some_float(self.bits_per_element),
            some_float(self.target_fpr),
            some_float(self.current_fpr),
            some_count(self.overfull_ranges),
            F64(self.pages_per_lookup),
            some_count(self.filters),
            some_count(self.slots),
            some_count(self.always_probed),
            some_float(self.keys_per_row),
            some_float(self.keys_per_range),
            some_integer(self.ranges_per_page),
        ]
    }
}

/// What the planner is told of a scan, in its unit, the cost of reading a page in sequence.
pub struct Cost {
    /// Until the first row is returned.
    pub startup: f64,
    pub total: f64,
    /// The share of the table's rows whose pages are as many as are read.
    pub selectivity: f64,
}
