//! Sets that change: a sorted list of the first bits of the elements' hashes, cut into rows.
//!
//! ```text
//! element ──▶ hash ──▶ its first B bits ──▶ leaf of a binary tree ──▶ row: the rest of these bits, in order
//!                      (Form)               (tree)                   (row, code)
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | [`tree`] | which bucket covers a hash; whether buckets are the leaves of one tree; what rows share: [`Form`] |
//! | `code` | a row and its stored form, in Elias-Fano code; the one validating parser, and what it finds wrong |
//! | `memory` | a whole set in memory, for tests and fuzzing (feature `testing`) |
//! | [`row`] | asking a row, and changing, splitting and joining rows |
//!
//! What a row holds, byte by byte:
#![doc = include_str!("rows.md")]

mod code;
#[cfg(any(test, feature = "testing"))]
#[path = "tests/memory.rs"]
pub mod memory;
pub mod row;
#[cfg(test)]
mod tests;
pub mod tree;

pub use code::{Entry, Row};
pub use tree::Form;
