//! Layouts: which bits of the payload an element sets.
//!
//! | layout | block | an element sets |
//! |---|---|---|
//! | [`Blocked`] | 512 bits: a cache line | k bits anywhere in one block |
//! | [`Classic`] | one bit | k bits anywhere |
//! | [`Parquet`] | 256 bits, split in eight words | one bit in each word of one block |
//!
//! [`Shape`] (in `shape`) has layout, number of hashes and number of blocks; its methods (in `dispatch`) are the
//! operations of its layout; `scheme` has the trait that `blocked`, `classic` and `parquet` implement.
//!
//! A layout divides the payload into blocks and chooses an element's blocks by multiply-shift
//! ([`crate::hash::reduce`]), so block `i` of a filter with `B` blocks has exactly the elements of blocks
//! `q·i … q·i + q - 1` of one with `q·B`.

mod blocked;
mod classic;
mod dispatch;
mod parquet;
mod scheme;
mod shape;

pub use blocked::Blocked;
pub use classic::Classic;
pub use parquet::{PARQUET_HASHES, Parquet};
pub use scheme::{Scheme, and_bytes, or_bytes};
pub use shape::{GREATEST_FPR, Layout, MAX_HASHES, Shape, is_possible_fpr, least_fpr};
