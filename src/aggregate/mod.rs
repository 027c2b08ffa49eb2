//! Aggregates.
//!
//! | module | what it knows |
//! |---|---|
//! | `bloom_agg` | the SQL functions of `bloom_agg` |
//! | `site` | how rows are added, what a call site remembers, and what its groups share |
//! | `state`, `spill` | the state of `bloom_agg`: how it grows, merges and ends |
//! | `merge_agg` | `bloom_union_agg` and `bloom_intersection_agg`, and their state |
//! | `counting_agg` | `counting_bloom_agg` and `counting_bloom_union_agg`, and their state |
//! | `memory` | what a state has in a memory context: the bits that it builds, lists |
//! | `tag` | states as arguments and results, and which aggregate one is of |

mod bloom_agg;
mod counting_agg;
mod memory;
mod merge_agg;
mod site;
mod spill;
mod state;
mod tag;
