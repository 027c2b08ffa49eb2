//! The index over the keys of rows: a Bloom filter for each range of a table's pages.
//!
//! | module | what it does |
//! |---|---|
//! | `build` | CREATE INDEX, REINDEX; unlogged indexes after a crash |
//! | `given` | rows that CREATE INDEX CONCURRENTLY need not give again |
//! | `insert` | INSERT, UPDATE, COPY: bits, and new tiles |
//! | `scan` | lookups: a bitmap of rows in the ranges that may have a key |
//! | `heap_filter` | which rows of such a range are worth a look |
//! | `vacuum` | VACUUM, which finds nothing to remove |
//! | `cost` | what the planner expects of a scan |
//! | `inspect`, `check` | `bloom_index_info`, `bloom_index_check` |
//! | `column` | the indexed column, and how keys are hashed that it is compared with |

mod build;
mod check;
mod column;
pub mod cost;
mod given;
mod heap_filter;
mod insert;
pub mod inspect;
mod scan;
pub mod vacuum;

pub use build::{Gather, build_of};
pub use check::has;
pub use column::check_type_of_column;
pub use insert::grow;

use crate::index::kind::{Cost, IndexKind, Info};
use crate::index::opened::Named;
use crate::pg::call::error::Result;
use crate::pg::method::planning::Planned;
use crate::pg::method::scan::{Bitmap, Key};
use crate::pg::method::table::Built;
use crate::pg::method::vacuum::{Counts, DeadRows, Vacuum};
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys::{self, Datum};

/// The index over the keys of rows.
pub struct Keys;

impl IndexKind for Keys {
    fn build(&self, table: Relation, index: Relation, info: *mut pg_sys::IndexInfo) -> Result<Built> {
        build::build(table, index, info)
    }

    fn build_empty(&self, index: Relation) -> Result<()> {
        build::build_empty(index)
    }

    unsafe fn insert(&self, index: Relation, value: Datum, row: RowId) -> Result<()> {
        insert::insert(index, value, row.page)
    }

    fn bitmap(&self, index: Relation, keys: &[Key], bitmap: &mut Bitmap) -> Result<i64> {
        scan::bitmap(index, keys, bitmap)
    }

    fn bulk_delete(&self, index: Relation, dead: &DeadRows) -> Result<Counts> {
        Ok(self::vacuum::bulk_delete(index, dead))
    }

    fn cleanup(&self, vacuum: &Vacuum, _had_pass: bool) -> Option<Counts> {
        Some(self::vacuum::cleanup(vacuum))
    }

    fn estimate(&self, planned: &Planned) -> Cost {
        cost::estimate(planned)
    }

    fn check(&self, named: &Named) -> Result<i64> {
        check::check(named)
    }

    fn info(&self, named: &Named) -> Result<Info> {
        inspect::info(named)
    }
}
