//! Merging a set of filters one by one, in any order.
//!
//! A set can be merged if and only if its largest block count is a multiple of all the others. `64 | 96` is an error,
//! and yet 64, 96 and 192 can be merged. So what can't be merged yet is kept apart until the end:
//!
//! ```text
//! members   64 ──┐                                192 comes:   192
//!           96 ──┴─ neither divides the other        ──▶        ▲ 64 and 96 are spread into it
//! ```
//!
//! Each member is what the filters of its size, and of sizes that divide it, make together. One size, the usual case,
//! is one member. It takes no more memory than the filters had in all: a list of a large size becomes bits only where
//! these are within the limit or no larger than one of the filters. It fails in the end if the largest size is no
//! multiple of another, or as soon as no filter that can be stored would be one.
//!
//! Of an intersection with a list there are only the hashes that all filters have so far; of the other sizes only the
//! headers are kept.
//!
//! `operation` says which; `merging` has the set, `member` what the filters of one size have together, `store` whose
//! memory that is; `parts` and `write` are what one process hands to another.

mod member;
mod merging;
mod operation;
mod parts;
mod store;
mod write;

pub use merging::Set;
pub use operation::Operation;
pub use parts::Parts;
pub use store::{Heap, List, Memory};

#[cfg(test)]
mod tests;
