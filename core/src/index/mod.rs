//! The index `USING bloom_filter`, as bytes: no PostgreSQL in it.
//!
//! | module | what it knows |
//! |---|---|
//! | [`page`] | numbers, kinds and headers of pages; how they are read and written |
//! | [`chain`] | the metapage and the directory pages, as far as both indexes have the same |
//! | [`keys`] | the index over the keys of a table: a filter for each range of its pages |
//! | [`filters`] | the index over a column of filters |
//!
//! Neither of the two indexes uses the other. What their pages hold, byte by byte:
#![doc = include_str!("pages.md")]

pub mod chain;
pub mod filters;
pub mod keys;
pub mod page;
