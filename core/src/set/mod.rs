//! Sets that change: a sorted list of the first bits of the elements' hashes, cut into rows.
//!
//! ```text
//! element ──▶ hash ──▶ its first B bits ──▶ leaf of a binary tree ──▶ row: the rest of these bits, in order
//!                      (form)               (tree)                   (row, code)
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | [`form`] | what the rows of one set share: B, and whether it forgets |
//! | [`tree`] | which bucket covers a hash; whether buckets are the leaves of one tree |
//! | `code` | a row and its stored form, in Elias-Fano code; the one validating parser, and what it finds wrong |
//! | `memory` | a whole set in memory, for tests and fuzzing (feature `testing`) |
//! | [`row`] | asking a row, and changing, splitting and joining rows |
//!
//! What a row holds, byte by byte:
#![doc = include_str!("rows.md")]

mod code;
pub mod form;
#[cfg(any(test, feature = "testing"))]
#[path = "tests/memory.rs"]
pub mod memory;
pub mod row;
#[cfg(test)]
mod tests;
pub mod tree;

pub use code::{Entry, Row, RowDamage};
pub use form::Form;
