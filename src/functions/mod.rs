//! The functions of SQL that take or return filters, but for aggregates, sets and `bloom_find`.
//! Each file has a group of them, as docs/reference.md has:
//!
//! - `datatype`: input, output, casts and comparison of both types;
//! - `build`: making filters one at a time;
//! - `membership`: probing a filter;
//! - `key`: an element in a form with which any filter can be probed;
//! - `merge`: union, intersection, and smaller filters;
//! - `inspect`: what is in a filter;
//! - `sizing`: how large a filter must be;
//! - `parquet`: exchange with Parquet files;
//! - `counting`: filters from which elements can be removed.
//!
//! No file uses another. What several need is in a room below: `arguments`, `overfull`, `probe`.

mod build;
mod counting;
mod datatype;
mod inspect;
mod key;
mod membership;
mod merge;
mod parquet;
mod sizing;
