//! Aggregates.
//!
//! | module | what it knows |
//! |---|---|
//! | `bloom_agg`, `merge_agg`, `counting_agg` | the SQL functions of the aggregates |
//! | `site`, `parameters` | how rows are added, what a call site remembers, and what its groups share |
//! | `state`, `spill` | the state of `bloom_agg`: how it grows, merges and ends |
//! | `merge_state`, `list` | that of `bloom_union_agg` and `bloom_intersection_agg` |
//! | `counting_state` | that of `counting_bloom_agg` and `counting_bloom_union_agg` |
//! | `payload` | the bits that a state builds |
//! | `tag` | states as arguments and results, and which aggregate one is of |

mod bloom_agg;
mod counting_agg;
mod counting_state;
mod list;
mod merge_agg;
mod merge_state;
mod parameters;
mod payload;
mod site;
mod spill;
mod state;
mod tag;
