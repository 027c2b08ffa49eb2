//! The index over the keys of rows: a Bloom filter for each range of a table's pages.
//!
//! | module | what it does |
//! |---|---|
//! | `build` | CREATE INDEX, REINDEX; unlogged indexes after a crash |
//! | `given` | rows that CREATE INDEX CONCURRENTLY need not give again |
//! | `insert` | INSERT, UPDATE, COPY: bits, and new tiles |
//! | `known` | keys that INSERT need not add again |
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
mod inspect;
mod known;
mod scan;
pub mod vacuum;

pub use build::{Gather, build_of};
pub use check::has;
pub use column::check_type_of_column;
pub use insert::add;
pub use inspect::info;
pub use known::{Known, KnownKeys};
pub use scan::may_have;

use crate::index::kind::IndexKind;
use crate::index::validate;

/// The index over the keys of rows.
pub static KEYS: IndexKind = IndexKind {
    validate: validate::over_keys,
    build: build::build,
    build_empty: build::build_empty,
    insert: insert::insert,
    bitmap: scan::bitmap,
    bulk_delete: vacuum::bulk_delete,
    cleanup: vacuum::cleanup,
    estimate: cost::estimate,
    check: check::check,
    info: info::<column::Elements>,
};
