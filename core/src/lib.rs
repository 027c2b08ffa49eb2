//! Bloom filters as plain bytes.
//!
//! This crate has everything about filters that does not need a database: which bytes of an element are hashed, how a
//! hash becomes bits, how large a filter must be, how filters merge, estimates, the stored form, and the pages of
//! indexes. The `pg_bloom` extension connects it to PostgreSQL.
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
//! | [`kind`] | key kinds: which elements can be in one filter |
//! | [`simd`] | code for particular CPUs |
//! | [`layout`] | `blocked`, `classic`, `parquet`: which bits an element sets |
//! | [`error`] | what can go wrong |
//! | [`sizing`] | rates, the lookup tables, how many blocks a capacity needs |
//! | [`filter`] | the stored form; building, probing, merging, resizing, estimating |
//! | [`counting`] | the other kind of filter: counters instead of bits, so that elements can be removed |
//! | [`mod@parquet`] | filters in the form of Parquet files |
//! | [`set`] | sets that change: sorted hashes in rows that split |
//! | [`parts`] | parts of a value that an index finds it by, and conditions on them |
//! | [`index`] | the pages of an index over keys of a table, and of one over a column of filters |
//!
//! A module uses only those above it.
//!
//! Every operation reads stored bytes in place and writes its result into a [`Buffer`], so that the caller decides how
//! memory is allocated.

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]
#![deny(unsafe_code)]

pub mod canonical;
pub mod counting;
pub mod error;
pub mod filter;
pub mod hash;
pub mod index;
pub mod interrupt;
pub mod kind;
pub mod layout;
pub mod memory;
pub mod parquet;
pub mod parts;
pub mod set;
#[allow(unsafe_code, reason = "the one place: prefetches, loads and stores of whole registers have no safe form")]
pub mod simd;
pub mod sizing;

pub use error::{Class, Error, Problem, Result};
pub use filter::{Body, Buffer, Capacity, Header, Partial, View};
pub use kind::Kind;
pub use layout::Layout;
pub use sizing::{DEFAULT_FPR, MAX_STORED_BYTES};
