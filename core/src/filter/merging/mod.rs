//! Merging many filters one by one, in any order.
//!
//! Filters can be merged if and only if their largest block count is a multiple of all the others. `64 | 96` is an
//! error, but 64, 96 and 192 can be merged. So filters of different sizes are kept apart until the end:
//!
//! ```text
//! members   64   96   192        end:   192
//!                                        ▲ 64 and 96 are spread into it
//! ```
//!
//! A member is the result for the filters of its size. In the usual case all filters have one size, and there is one
//! member. This takes no more memory than the filters together. Merging fails at the end if the largest size isn't a
//! multiple of another, or as soon as no multiple of all sizes could be stored.
//!
//! An intersection with a list keeps only the hashes that all filters have so far, and the headers of the other sizes.
//!
//! `whole` has all of them, `of_size` the result for one size, `store` the memory; `partial` is the state that one
//! process passes to another.

mod of_size;
mod partial;
mod store;
mod whole;

pub use partial::{Operation, PartialMerge};
pub use store::{Heap, List, MergeMemory};
pub use whole::MergedFilters;

#[cfg(test)]
mod tests;
