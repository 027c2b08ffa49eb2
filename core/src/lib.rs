//! Bloom filters as plain bytes.
//!
//! This crate is everything about a filter that does not need a database: which bytes of an element are hashed, how
//! a hash becomes bits, how large a filter must be, how filters merge, what they say about themselves, and the bytes
//! they are stored as. The `pg_bloom` extension is thin glue around it.
//!
//! Data flows one way:
//!
//! ```text
//! element bytes ──hash──▶ u64 ──layout──▶ block, positions ──▶ bits of the payload
//!  (element)      (hash)       (layout)                         (format: View)
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | [`element`] | the canonical bytes of each kind of element |
//! | [`canonical`] | those that are written piece by piece: decimals, JSON, arrays and the like |
//! | [`kind`] | key kinds: which elements may meet in one filter |
//! | [`hash`] | XXH64 and the words drawn from it |
//! | [`layout`] | `blocked`, `classic`, `parquet`: which bits an element sets |
//! | [`rate`] | the exact false positive rate of a layout |
//! | [`table`] | the sizing lookup tables, in the manner of ClickHouse |
//! | [`sizing`] | how many blocks a capacity needs, and the way back |
//! | [`mod@format`] | the stored form and its one validating parser |
//! | [`build`] | filters from hashes; adding to a filter |
//! | [`merge`] | union, intersection, spreading and folding |
//! | [`counting`] | the other sort of filter: counters in place of bits, so that elements can be removed |
//! | [`estimate`] | cardinality, present rate |
//! | [`overfull`] | whether that rate is more than chance above the promise |
//! | [`memory`] | what operations need beside their results, with an error where there is none |
//! | [`mod@parquet`] | filters as Parquet files keep them |
//! | [`range`] | tiles and pages of the index: many filters asked at once |
//!
//! Every operation works on stored bytes in place and writes its result into a [`Buffer`], so that the caller decides
//! whose memory it is.

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]
#![deny(unsafe_code)]

pub mod build;
pub mod canonical;
pub mod counting;
pub mod element;
pub mod error;
pub mod estimate;
pub mod format;
pub mod hash;
pub mod interrupt;
pub mod kind;
pub mod layout;
pub mod memory;
pub mod merge;
pub mod overfull;
pub mod parquet;
pub mod range;
pub mod rate;
#[allow(unsafe_code, reason = "the one place: prefetches, loads and stores of whole registers have no safe form")]
mod simd;
pub mod sizing;
pub mod slices;
pub mod sparse;
pub mod table;

pub use error::{Code, Error, Result};
pub use format::{Body, Buffer, Header, View};
pub use kind::Kind;
pub use layout::Layout;

/// The false positive rate of a filter for which none was given.
pub const DEFAULT_FPR: f64 = 0.01;

/// The largest stored filter in bytes: 511 MB, so that its text form (two characters a byte) fits a PostgreSQL value.
pub const MAX_STORED_BYTES: u64 = 511 * 1024 * 1024;
