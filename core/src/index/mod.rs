//! The index `USING bloom_filter`, as bytes: no PostgreSQL in it.
//!
//! | module | what it knows |
//! |---|---|
//! | [`page`] | numbers, kinds and headers of pages; how they are read and written |
//! | [`chain`] | the metapage and the directory pages, as far as both indexes have the same |
//! | [`ranges`] | the index over ranges of a table's pages: a filter for the keys of each |
//! | [`filters`] | the index over a column of filters |
//!
//! Neither of the two indexes uses the other. What their pages hold, byte by byte:
#![doc = include_str!("pages.md")]

pub mod chain;
pub mod filters;
pub mod page;
pub mod ranges;
