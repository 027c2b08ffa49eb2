//! The access method `bloom_filter`: an index that keeps a Bloom filter for each range of a table's pages.
//!
//! Tiles, pages and the directory as bytes are `pg_bloom_core::index::keys`, which also says what makes "no" certain.
//! Here are PostgreSQL's verbs, a file for each.
//!
//! | module | what it does |
//! |---|---|
//! | `handler` | what PostgreSQL calls, and the way from there |
//! | `options` | `fpr`, `pages_per_range` |
//! | `build` | CREATE INDEX, REINDEX; unlogged indexes after a crash |
//! | `given` | rows that CREATE INDEX CONCURRENTLY need not give again |
//! | `new_index` | the pages of an index that is being built |
//! | `insert` | INSERT, UPDATE, COPY: bits, and new tiles |
//! | `scan` | lookups: a bitmap of rows in the ranges that may have a key |
//! | `heap_filter` | which rows of such a range are worth a look |
//! | `vacuum` | VACUUM, which finds nothing to remove |
//! | `cost` | what the planner expects of a scan |
//! | `inspect` | `bloom_index_info` |
//! | `check` | `bloom_index_check` |
//! | `opened` | an index that somebody names in SQL |
//! | `validate` | which operator classes an index may have |
//! | `column` | the indexed column, and how what it is compared with is hashed |
//! | `session` | what a session keeps of an index |
//! | `rows` | all of this for the other kind of index, over a column of filters |
//! | `page` | pages in buffers; damage |

mod build;
mod check;
mod column;
mod cost;
mod given;
mod handler;
mod heap_filter;
mod insert;
mod inspect;
mod new_index;
mod opened;
mod options;
mod page;
mod rows;
mod scan;
mod session;
mod vacuum;
mod validate;

pub use options::define;
