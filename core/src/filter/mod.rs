//! Filters: their stored form; building, probing, merging and resizing them; estimates.
//!
//! | module | what it knows |
//! |---|---|
//! | [`header`] | the stored form: what a filter is, apart from its elements |
//! | [`view`] | a stored filter, or the state of a build, read in place: the one validating parser |
//! | [`sparse`] | lists of hashes |
//! | [`slices`] | probing a filter of which only slices are read |
//! | [`build`] | filters from hashes; adding to a filter |
//! | [`merge`] | union and intersection of two filters |
//! | [`merging`] | union and intersection of many, in any order |
//! | [`resize`](mod@resize) | other sizes for an existing filter |
//! | [`estimate`] | cardinality, present rate |
//! | [`overfull`] | whether that rate is more than chance above the promise |
//! | [`owned`] | a filter with its bytes, and all that a program does with one |

pub mod build;
pub mod estimate;
pub mod header;
pub mod merge;
pub mod merging;
pub mod overfull;
pub mod owned;
pub mod resize;
pub mod slices;
pub mod sparse;
pub mod view;

pub use crate::memory::Buffer;
pub use header::{Capacity, HEADER_BYTES, Header, VERSION, capacity_for_bytes};
pub use view::{Body, View};
