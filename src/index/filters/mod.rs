//! The index over a column of filters: `CREATE INDEX ON segments USING bloom_filter (seen)`.
//!
//! Tiles, row pages and the directory as bytes are `pg_bloom_core::index::filters`, which also says what makes "no"
//! certain. Here are PostgreSQL's verbs, as in the room above.
//!
//! # From the operator to the index
//!
//! | condition | as a condition on the index | is asked again |
//! |---|---|---|
//! | `filter @> text`, `@> "char"`, also with `ANY` | the same | where the index has not the filter's own bits |
//! | `filter @> anyelement`, `bloom_contains` | `filter @=> bloom_key(element)` | always |
//! | `filter @> ANY (array)`, `bloom_contains_any` | `filter @=> ANY (bloom_keys(elements))` | always |
//!
//! Keys of a scan don't say of which type an element is. So the support function of the operators gives the planner a
//! condition with a key that is made of the element in the executor.
//!
//! | module | what it does |
//! |---|---|
//! | `column` | the column of filters, and what asks it |
//! | `key` | what a scan looks for, for each kind of elements |
//! | `build` | CREATE INDEX, REINDEX; unlogged indexes after a crash |
//! | `insert` | INSERT, UPDATE, COPY: a slot for a row |
//! | `scan` | lookups: a bitmap of rows |
//! | `ahead` | pages that a lookup will read |
//! | `vacuum` | VACUUM: slots of rows that are gone |
//! | `cost` | what the planner expects of a scan |
//! | `inspect` | `bloom_index_info` |
//! | `check` | `bloom_index_check` |

mod ahead;
mod build;
mod check;
mod column;
mod cost;
mod insert;
mod inspect;
mod key;
mod scan;
mod vacuum;

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

/// The index over a column of filters.
pub struct Filters;

impl IndexKind for Filters {
    fn build(&self, table: Relation, index: Relation, info: *mut pg_sys::IndexInfo) -> Result<Built> {
        build::build(table, index, info)
    }

    fn build_empty(&self, index: Relation) -> Result<()> {
        build::build_empty(index)
    }

    unsafe fn insert(&self, index: Relation, value: Datum, row: RowId) -> Result<()> {
        // SAFETY: promised by the caller.
        unsafe { insert::insert(index, value, row) }
    }

    fn bitmap(&self, index: Relation, keys: &[Key], bitmap: &mut Bitmap) -> Result<i64> {
        scan::bitmap(index, keys, bitmap)
    }

    fn bulk_delete(&self, index: Relation, dead: &DeadRows) -> Result<Counts> {
        self::vacuum::bulk_delete(index, dead)
    }

    fn cleanup(&self, vacuum: &Vacuum, had_pass: bool) -> Option<Counts> {
        (!had_pass).then(|| self::vacuum::cleanup(vacuum))
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
