//! Bloom filters as plain bytes.
//!
//! This crate reads, asks, builds and merges the filters of the PostgreSQL extension `pg_bloom`
//! without PostgreSQL, and is what the extension itself is built on: the same answers, the same
//! bytes.
//!
//! | to | use |
//! |---|---|
//! | read and write stored bytes | [`Filter::parse`], [`Filter::from_hex`], [`Filter::as_bytes`] |
//! | ask | [`Filter::contains`], [`Filter::contains_each`], [`Prober`] |
//! | build and add | [`Filter::build`], [`Filter::add_all`], [`Builder`] |
//! | merge and resize | [`Filter::union`], [`Filter::intersection`], [`Filter::resize`] |
//! | know what a filter is | [`Filter::header`], [`Filter::cardinality`], [`Filter::current_fpr`] |
//! | size | [`Request::header`], [`capacity_for_bytes`] |
//! | give elements | [`Element`], [`Numeric`], [`Array`] |
//!
//! What this page shows keeps to semantic versioning. The modules are public for the extension and
//! its tests, and may change in any release; `cargo doc --document-hidden-items` shows them.
//!
//! # Inside
//!
//! Data flows one way:
//!
//! ```text
//! element bytes ──hash──▶ u64 ──layout──▶ block, positions ──▶ bits of the payload
//!  (canonical)    (hash)       (layout)                         (filter: View)
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | [`interrupt`] | how a long operation is cancelled |
//! | [`memory`] | memory that operations need besides their results; an error if there is none |
//! | [`canonical`] | the canonical bytes of each kind of element |
//! | [`hash`] | XXH64, and the words derived from it |
//! | [`simd`] | code for particular CPUs |
//! | [`layout`] | `blocked`, `classic`, `parquet`: which bits an element sets |
//! | [`kind`] | key kinds: which elements can be in one filter |
//! | [`error`] | what can go wrong |
//! | [`element`] | values of Rust as elements |
//! | [`sizing`] | rates, the lookup tables, how many blocks a capacity needs |
//! | [`filter`] | the stored form; building, probing, merging, resizing, estimating |
//! | [`counting`] | the other kind of filter: counters instead of bits, so that elements can be removed |
//! | [`mod@parquet`] | filters in the form of Parquet files |
//! | [`set`] | sets that change: sorted hashes in rows that split |
//! | [`conditions`] | what a value must have in it that an index is asked for: parts of texts, arrays, documents |
//! | [`index`] | the pages of an index over ranges of a table, and of one over a column of filters |
//!
//! A module uses only those above it.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)
)]
#![deny(missing_docs, unsafe_op_in_unsafe_fn, unsafe_code)]

#[doc(hidden)]
pub mod canonical;
#[doc(hidden)]
pub mod conditions;
#[doc(hidden)]
pub mod counting;
#[doc(hidden)]
pub mod element;
#[doc(hidden)]
pub mod error;
#[doc(hidden)]
pub mod filter;
#[doc(hidden)]
pub mod hash;
#[doc(hidden)]
pub mod index;
#[doc(hidden)]
pub mod interrupt;
#[doc(hidden)]
pub mod kind;
#[doc(hidden)]
pub mod layout;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod parquet;
pub mod set;
#[allow(
    unsafe_code,
    reason = "the one place: prefetches, loads and stores of whole registers have no safe form"
)]
#[doc(hidden)]
pub mod simd;
#[doc(hidden)]
pub mod sizing;

pub use canonical::numeric::Numeric;
pub use element::{Array, Element};
pub use error::{Class, Error, Result};
pub use filter::build::Request;
pub use filter::overfull::Overfull;
pub use filter::owned::{Builder, Filter, Prober};
pub use filter::{Capacity, Header, capacity_for_bytes};
pub use kind::{Kind, Tag};
pub use layout::Layout;
pub use sizing::{DEFAULT_FPR, MAX_STORED_BYTES};

#[doc(hidden)]
pub use error::Problem;
#[doc(hidden)]
pub use filter::{Body, Buffer, View};

/// The README's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
