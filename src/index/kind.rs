//! The kinds of index as tables of functions: over the keys of rows, over what is in values, over a
//! column of filters.

use super::named_index::NamedIndex;
use crate::pg::call::{Element, Result};
use crate::pg::method::planning::Planned;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::method::table::{Built, Wanted};
use crate::pg::method::vacuum::{Counts, DeadRows, Vacuum};
use crate::pg::storage::relation::Relation;
use crate::pg::value::row::ResultColumn;
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys::Oid;

/// What PostgreSQL's verbs do for a kind of index. Damage is an error of class XX002 in all of
/// them.
pub struct IndexKind {
    /// Whether an index can have an operator class, by its family and declared type; says what is
    /// wrong with it.
    pub validate: fn(family: Oid, declared: Oid) -> bool,
    /// CREATE INDEX, REINDEX. 0A000 for a column that can't be in such an index; 22023 for options
    /// that it can't have; 22P03 for a damaged filter; 54000 for too many pages.
    pub build: fn(&Wanted<'_>) -> Result<Built>,
    /// Writes what an unlogged index is after a crash: one without rows. Errors: as `build`.
    pub build_empty: fn(index: Relation) -> Result<()>,
    /// Adds a row with this value, which is not NULL and must be of the type of the index's column.
    /// 22P03 for a damaged filter; 54000 for too many pages.
    pub insert: unsafe fn(index: Relation, value: Element, row: RowId) -> Result<()>,
    /// Adds the rows that may match all of these keys, which must be those of a scan of the index.
    /// 0A000 for a comparison that the index can't answer.
    pub bitmap: unsafe fn(index: Relation, keys: &[Key], rows: &mut RowBatch) -> Result<()>,
    /// A pass of VACUUM; CREATE INDEX CONCURRENTLY asks in this way which rows the index has.
    pub bulk_delete: fn(index: Relation, dead: &DeadRows) -> Result<Counts>,
    /// What is said of the index at the end of VACUUM; `None` leaves what a pass has said.
    pub cleanup: fn(index: Relation, vacuum: &Vacuum, had_pass: bool) -> Option<Counts>,
    pub estimate: fn(planned: &Planned) -> Cost,
    /// Looks for every row of the table. Returns how many there are. XX002 with the first one that
    /// is missed.
    pub check: fn(named: &NamedIndex) -> Result<i64>,
    /// The columns of `bloom_index_info`, in their order. NULL is what the kind of index doesn't
    /// have.
    pub info: fn(named: &NamedIndex) -> Result<[ResultColumn; 18]>,
}

pub struct Cost {
    pub startup: f64,
    pub total: f64,
    /// The share of the table's rows whose pages are as many as are read.
    pub selectivity: f64,
}
