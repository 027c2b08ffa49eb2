//! The index over the parts of rows: members of arrays, windows of text, words, what JSON says.
//!
//! A row has many keys: the hashes of its parts. A lookup is a condition on such hashes, and PostgreSQL compares
//! every row of the ranges in which it may hold; of a condition with many alternatives only rows that may match.
//! Pages and tiles are those of the index over keys.
//!
//! | module | what it does |
//! |---|---|
//! | `class` | the operator classes, and what their operators are |
//! | `column` | the indexed column: the parts of a value, the condition of a lookup |
//! | `words` | the words of a tsvector, the condition of a tsquery |
//! | `gather` | the distinct parts of many rows |
//! | `sample` | how much text the pages of a table stand for |
//! | `build` | CREATE INDEX, REINDEX; unlogged indexes after a crash |
//! | `insert` | INSERT, UPDATE, COPY |
//! | `scan` | lookups |
//! | `heap_filter` | which rows of a range are worth a look, where a lookup has many alternatives |
//! | `cost` | what the planner expects of a scan |
//! | `check` | `bloom_index_check` |

mod build;
mod check;
mod class;
mod column;
mod cost;
mod gather;
mod heap_filter;
mod insert;
mod sample;
mod scan;
mod words;

pub use class::MOST_STRATEGIES;

use crate::index::keys::{info, vacuum};
use crate::index::kind::IndexKind;

/// The index over the parts of rows.
pub static PARTS: IndexKind = IndexKind {
    validate: class::validate,
    build: build::build,
    build_empty: build::build_empty,
    insert: insert::insert,
    bitmap: scan::bitmap,
    bulk_delete: vacuum::bulk_delete,
    cleanup: vacuum::cleanup,
    estimate: cost::estimate,
    check: check::check,
    info: info::<column::PartsColumn>,
};
