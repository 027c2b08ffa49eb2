//! Merging a set of filters one by one, in any order.
//!
//! A set can be merged if and only if its largest block count is a multiple of all the others. `64 | 96` is an error,
//! but 64, 96 and 192 can be merged. So filters of different sizes are kept apart until the end:
//!
//! ```text
//! members   64   96   192        end:   192
//!                                        ▲ 64 and 96 are spread into it
//! ```
//!
//! A member is the result for the filters of its size. In the usual case all filters have one size, and there is one
//! member. A set takes no more memory than its filters together. Merging fails at the end if the largest size isn't a
//! multiple of another, or as soon as no multiple of all sizes could be stored.
//!
//! An intersection with a list keeps only the hashes that all filters have so far, and the headers of the other sizes.
//!
//! `merging` has the set, `member` the result for one size, `store` the memory; `parts` and `write` are the state that
//! one process passes to another.

mod member;
mod merging;
mod parts;
mod store;
mod write;

pub use merging::Set;
pub use parts::{Operation, Parts};
pub use store::{Heap, List, Memory};

#[cfg(test)]
mod tests;
