//! The index over a column of filters: `CREATE INDEX ON segments USING bloom_filter (seen)`.
//!
//! | condition | as a condition on the index | is probed again |
//! |---|---|---|
//! | `filter @> text`, or `ANY` of them if all filters are of text | the same | if a slot is no copy of its filter |
//! | the same, if others are in the index | as below | always |
//! | `filter @> anyelement`, `bloom_contains` | `filter @=> bloom_key(element)` | always |
//! | `bloom_contains_any` | `filter @=> ANY (bloom_keys(elements))` | always |
//!
//! [`crate::key_condition`] says why elements become keys; `cost` says why text may need that, too.
//!
//! | module | what it does |
//! |---|---|
//! | `column` | the column of filters, and what asks it |
//! | `build` | CREATE INDEX, REINDEX; unlogged indexes after a crash |
//! | `insert` | INSERT, UPDATE, COPY: a slot for a row |
//! | `scan` | lookups: a bitmap of rows |
//! | `vacuum` | VACUUM: slots of rows that are gone |
//! | `cost` | what the planner expects of a scan |
//! | `inspect` | `bloom_index_info`, `bloom_index_check` |

mod build;
mod column;
mod cost;
mod insert;
mod inspect;
mod scan;
mod vacuum;

use crate::index::kind::IndexKind;

pub static FILTERS: IndexKind = IndexKind {
    validate: column::validate,
    build: build::build,
    build_empty: build::build_empty,
    insert: insert::insert,
    bitmap: scan::bitmap,
    bulk_delete: vacuum::bulk_delete,
    cleanup: vacuum::cleanup,
    estimate: cost::estimate,
    check: inspect::check,
    info: inspect::info,
};
