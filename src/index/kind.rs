//! The kinds of index as tables of functions: over the keys of rows, over what is in values, over a
//! column of filters.

use super::named_index::NamedIndex;
use crate::pg::call::{Result, SqlValue};
use crate::pg::method::planning::PlannedScan;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::method::table::{NewIndex, TupleCounts};
use crate::pg::method::vacuum::{Counts, DeadRows, Vacuum};
use crate::pg::storage::relation::Relation;
use crate::pg::value::row::{OutParameter, ResultColumn};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory::List;
use pgrx::pg_sys::Oid;

/// What PostgreSQL's verbs do for a kind of index. Damage is an error of class XX002 in all of
/// them.
pub struct IndexKind {
    /// Returns whether an index can have an operator class, given its family and its declared type;
    /// reports what is wrong with it, as INFO.
    pub validate: fn(family: Oid, declared: Oid) -> bool,
    /// Builds the index, for CREATE INDEX and REINDEX. Returns how many rows the table and the index
    /// have.
    ///
    /// Fails with 0A000 for a column that can't be in such an index, with 22023 for options that it
    /// can't have, with 22P03 for a damaged filter, and with 54000 for too many pages.
    pub build: fn(&NewIndex<'_>) -> Result<TupleCounts>,
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
    pub estimate: fn(planned: &PlannedScan) -> Cost,
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
    /// Returns the values of the OUT parameters of the SQL function `bloom_index_info`, by the
    /// names that `sql/pg_bloom.sql` declares. What the index doesn't have is NULL.
    pub fn out_parameters(&self) -> List<OutParameter> {
        List::from([
            bigint("pages", Some(self.pages)),
            bigint("table_pages", Some(self.table_pages)),
            integer("pages_per_range", self.pages_per_range),
            bigint("ranges", self.ranges),
            integer("levels", Some(self.levels)),
            bigint("rows_built", Some(self.rows_built)),
            double("elements", self.elements),
            double("bits_per_element", self.bits_per_element),
            double("target_fpr", self.target_fpr),
            double("current_fpr", self.current_fpr),
            bigint("overfull_ranges", self.overfull_ranges),
            double("pages_per_lookup", Some(self.pages_per_lookup)),
            bigint("filters", self.filters),
            bigint("slots", self.slots),
            bigint("always_probed", self.always_probed),
            double("keys_per_row", self.keys_per_row),
            double("keys_per_range", self.keys_per_range),
            integer("ranges_per_page", self.ranges_per_page),
        ])
    }
}

/// Returns an OUT parameter of type `bigint`; `None` is NULL.
fn bigint(name: &'static str, number: Option<u64>) -> OutParameter {
    let value = number.map_or(ResultColumn::Null, |n| ResultColumn::I64(n.cast_signed()));
    OutParameter { name, value }
}

/// Returns an OUT parameter of type `integer`; `None` is NULL.
fn integer(name: &'static str, number: Option<u32>) -> OutParameter {
    let value = number.map_or(ResultColumn::Null, |n| ResultColumn::I32(n.cast_signed()));
    OutParameter { name, value }
}

/// Returns an OUT parameter of type `double precision`; `None` is NULL.
fn double(name: &'static str, number: Option<f64>) -> OutParameter {
    let value = number.map_or(ResultColumn::Null, ResultColumn::F64);
    OutParameter { name, value }
}

/// What the planner is told of a scan, in its unit, the cost of reading a page in sequence.
pub struct Cost {
    /// Until the first row is returned.
    pub startup: f64,
    pub total: f64,
    /// The share of the table's rows whose pages are as many as are read.
    pub selectivity: f64,
}
