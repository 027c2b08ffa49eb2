//! Aggregates.
//!
//! | module | what it knows |
//! |---|---|
//! | `state`, `spill` | `bloom_agg`, and how its state grows, merges and ends |
//! | `merge_agg` | `bloom_union_agg` and `bloom_intersection_agg`, and their state |
//! | `counting_agg` | `counting_bloom_agg` and `counting_bloom_union_agg`, and their state |
//! | `site` | how rows are added, what a call site remembers, and what its groups share |
//! | `memory` | what a state has in a memory context: the bits that it builds, lists |
//! | `tag` | states as arguments and results, and which aggregate one is of |

mod counting_agg;
mod memory;
mod merge_agg;
mod site;
mod spill;
mod state;
mod tag;
