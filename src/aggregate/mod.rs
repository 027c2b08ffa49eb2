//! Aggregates.
//!
//! | module | what it knows |
//! |---|---|
//! | `bloom_agg` | `bloom_agg`: how its state grows, merges with others and ends |
//! | `merge_agg` | `bloom_union_agg` and `bloom_intersection_agg`, and their state |
//! | `counting_agg` | `counting_bloom_agg` and `counting_bloom_union_agg`, and their state |
//! | `elements` | how aggregates over elements add a row, and what a call site remembers |
//! | `spill` | hashes that don't fit in memory, in a temporary file |
//! | `memory` | what a state allocates in PostgreSQL's memory: the bits that it builds, lists |
//! | `pointer` | states as arguments and results, and how states of other aggregates are refused |

mod bloom_agg;
mod counting_agg;
mod elements;
mod memory;
mod merge_agg;
mod pointer;
mod spill;
