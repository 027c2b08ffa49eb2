//! The index over the parts of rows: members of arrays, windows of text, words, what JSON says.
//!
//! A row has many keys: the hashes of its parts. What it is asked is a condition on such hashes, and PostgreSQL
//! compares every row of the ranges in which it may hold. Pages and tiles are those of the index over keys.
//!
//! | module | what it does |
//! |---|---|
//! | `class` | the operator classes, and what their operators are |
//! | `column` | the indexed column: the parts of a value, the condition of a lookup |
//! | `words` | the words of a tsvector, the condition of a tsquery |
//! | `gather` | the distinct parts of many rows |
//! | `build` | CREATE INDEX, REINDEX; unlogged indexes after a crash |
//! | `insert` | INSERT, UPDATE, COPY |
//! | `scan` | lookups |
//! | `cost` | what the planner expects of a scan |
//! | `check` | `bloom_index_check` |

mod build;
mod check;
mod class;
mod column;
mod cost;
mod gather;
mod insert;
mod scan;
mod words;

pub use class::{MOST_STRATEGIES, validate};

use crate::index::keys::{inspect, vacuum};
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

/// The index over the parts of rows.
pub struct Parts;

impl IndexKind for Parts {
    fn build(&self, table: Relation, index: Relation, info: *mut pg_sys::IndexInfo) -> Result<Built> {
        build::build(table, index, info)
    }

    fn build_empty(&self, index: Relation) -> Result<()> {
        build::build_empty(index)
    }

    unsafe fn insert(&self, index: Relation, value: Datum, row: RowId) -> Result<()> {
        // SAFETY: promised by the caller.
        unsafe { insert::insert(index, value, row.page) }
    }

    fn bitmap(&self, index: Relation, keys: &[Key], bitmap: &mut Bitmap) -> Result<i64> {
        scan::bitmap(index, keys, bitmap)
    }

    fn bulk_delete(&self, index: Relation, dead: &DeadRows) -> Result<Counts> {
        Ok(vacuum::bulk_delete(index, dead))
    }

    fn cleanup(&self, vacuum: &Vacuum, _had_pass: bool) -> Option<Counts> {
        Some(vacuum::cleanup(vacuum))
    }

    fn estimate(&self, planned: &Planned) -> Cost {
        cost::estimate(planned)
    }

    fn check(&self, named: &Named) -> Result<i64> {
        check::check(named)
    }

    fn info(&self, named: &Named) -> Result<Info> {
        inspect::info_of(&column::Index::of(named.index())?, named)
    }
}
