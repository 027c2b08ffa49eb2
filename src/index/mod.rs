//! The access method `bloom_filter`: an index that keeps a Bloom filter for each range of a table's pages.
//!
//! Tiles, pages and the directory as bytes are `pg_bloom_core::index::ranges` and `filters`, which also say what makes
//! "no" certain. Here are PostgreSQL's verbs, a file for each.
//!
//! | module | what it does |
//! |---|---|
//! | `handler` | what PostgreSQL calls, and the way from there |
//! | `ranges` | the index over ranges of a table's pages: of elements, and of what is in values |
//! | `filters` | the index over a column of filters |
//! | `kind`, `dispatch` | what each kind does for PostgreSQL's verbs; of which kind an index is |
//! | `options` | `fpr`, `pages_per_range` |
//! | `new_index` | the pages of an index that is being built |
//! | `inspect` | `bloom_index_info`, `bloom_index_check` |
//! | `named_index` | an index that a user names in SQL |
//! | `session` | what a session keeps of an index |
//! | `page` | pages in buffers; damage |

mod dispatch;
mod filters;
mod handler;
mod inspect;
mod kind;
mod named_index;
mod new_index;
mod options;
mod page;
mod ranges;
mod session;

pub use options::define;
pub use ranges::may_have;

use crate::pg::storage::relation::Relation;
use pgrx::pg_sys::Oid;

/// Whether an index is one over ranges, of elements.
pub fn is_over_elements(index: Relation) -> bool {
    index.is_index_by(c"bloom_filter")
        && std::ptr::eq(dispatch::of(index), &ranges::RANGES)
        && index.support_function(ranges::PARTS) == Oid::INVALID
}
