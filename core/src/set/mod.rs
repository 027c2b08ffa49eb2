//! Sets that change: a sorted list of the first bits of the elements' hashes, cut into rows.
//!
//! ```text
//! element ──▶ hash ──▶ its first B bits ──▶ leaf of a tree ──▶ row: the rest of these bits, in order
//!                      (form)               (tree)            (row, record, elias_fano)
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | [`form`] | what all rows of a set have in common: bits of a hash, and whether it forgets |
//! | [`tree`] | which bucket covers a hash; whether buckets are the leaves of one tree |
//! | `elias_fano` | where the bits of a row's hashes are |
//! | `record` | a row and its stored form; the one validating parser, and what it finds wrong |
//! | [`row`] | asking a row, and changing, splitting and joining rows |
//! | `memory` | a whole set in memory, for tests and fuzzing (feature `testing`) |
//!
//! What a row holds, byte by byte:
#![doc = include_str!("rows.md")]

mod elias_fano;
pub mod form;
#[cfg(any(test, feature = "testing"))]
#[path = "tests/memory.rs"]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only tests use it"
)]
pub mod memory;
mod record;
pub mod row;
#[cfg(test)]
mod tests;
pub mod tree;

pub use form::SetForm;
pub use record::{Row, RowEntry};
