//! The access method `bloom_filter`: an index that keeps a Bloom filter for each range of a table's pages.
//!
//! Tiles, pages and the directory as bytes are `pg_bloom_core::index::keys`, which also says what makes "no" certain.
//! Here are PostgreSQL's verbs, a file for each.
//!
//! | module | what it does |
//! |---|---|
//! | `handler` | what PostgreSQL calls, and the way from there |
//! | `keys` | the index over the keys of rows: a filter for each range |
//! | `filters` | the index over a column of filters |
//! | `parts` | the index over what is in values: members, windows of text, words, JSON |
//! | `kind`, `kinds` | what each kind does for PostgreSQL's verbs; of which kind an index is |
//! | `options` | `fpr`, `pages_per_range` |
//! | `new_index` | the pages of an index that is being built |
//! | `inspect` | `bloom_index_info`, `bloom_index_check` |
//! | `opened` | an index that somebody names in SQL |
//! | `validate` | which operator classes an index may have |
//! | `session` | what a session keeps of an index |
//! | `page` | pages in buffers; damage |
//! | `ranges` | pages of the table, by ranges, for scans that read their rows |

mod filters;
mod handler;
mod inspect;
mod keys;
mod kind;
mod kinds;
mod new_index;
mod opened;
mod options;
mod page;
mod parts;
mod ranges;
mod session;
mod validate;

pub use keys::may_have;
pub use options::define;

use crate::pg::storage::relation::Relation;

/// Whether an index is one over the keys of rows.
pub fn is_over_keys(index: Relation) -> bool {
    index.is_index_by(c"bloom_filter") && std::ptr::eq(kinds::of(index), &keys::KEYS)
}
