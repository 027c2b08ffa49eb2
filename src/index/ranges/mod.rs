//! The index over ranges of a table's pages: a Bloom filter for the keys of each range's rows.
//!
//! A row has one key, the hash of its element, or many: those of the parts of its value. A lookup
//! of elements has hashes, one of which a row must have; a lookup of parts is a condition on them.
//!
//! | module | what it does |
//! |---|---|
//! | `columns` | the indexed column: the keys of a value, the condition of a lookup, operator classes |
//! | `build` | CREATE INDEX, REINDEX; unlogged indexes after a crash |
//! | `sample` | how much text the pages of a table stand for |
//! | `insert` | INSERT, UPDATE, COPY: bits, and new tiles; keys that need not be added again |
//! | `by_hash` | lookups of elements: ranges that may have one of some hashes |
//! | `by_condition` | lookups of parts: ranges in which a condition may hold |
//! | `rows` | the pages of such ranges, and which of their rows are worth a look |
//! | `vacuum` | VACUUM, which finds nothing to remove; rows that CREATE INDEX CONCURRENTLY need not give again |
//! | `cost` | what the planner expects of a scan |
//! | `inspect` | `bloom_index_info`, `bloom_index_check` |

mod build;
mod by_condition;
mod by_hash;
mod columns;
mod cost;
mod insert;
mod inspect;
mod rows;
mod sample;
mod vacuum;

pub use by_hash::may_have;
pub use columns::class::{MOST_STRATEGIES, PARTS_CLASS_FUNCTION};

use columns::{RangesColumn, RangesIndex};

use crate::index::kind::IndexKind;
use crate::pg::call::error::{Result, info};
use crate::pg::catalog::operators;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::Relation;
use pgrx::pg_sys::Oid;

pub static RANGES: IndexKind = IndexKind {
    validate,
    build: build::build,
    build_empty: build::build_empty,
    insert: insert::insert,
    bitmap,
    bulk_delete: vacuum::bulk_delete,
    cleanup: vacuum::cleanup,
    estimate: cost::estimate,
    check: inspect::check,
    info: inspect::info,
};

fn validate(family: Oid, declared: Oid) -> bool {
    match operators::family_function(family, declared, PARTS_CLASS_FUNCTION) {
        Some(support) => columns::class::check(family, declared, support).map_err(info).is_ok(),
        None => columns::element::validate(family, declared),
    }
}

/// Adds the rows of the table that may match all scan keys to a bitmap, for an index over ranges of
/// the table's pages. A scan key is a comparison of the query with the column. Counts the index
/// pages that were read. Fails with 0A000 for a comparison that the index can't answer, and with
/// XX002 if it is damaged.
///
/// # Safety
/// The keys must be those of a scan of the index.
unsafe fn bitmap(relation: Relation, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let index = RangesIndex::open(relation)?;
    // SAFETY: promised by the caller.
    unsafe {
        match index.column() {
            RangesColumn::Element(elements) => by_hash::add_rows(&index, elements, keys, rows)?,
            _ => by_condition::add_rows(&index, keys, rows)?,
        }
    }
    rows.counts.index_pages += index.pages_read();
    Ok(())
}
