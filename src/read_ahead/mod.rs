//! Bloom Scan: a sequential scan that reads some rows ahead before it probes a filter for their
//! elements, so that the memory that the probes need is fetched to the processor's cache for all of
//! them at once.
//!
//! | module | what it knows |
//! |---|---|
//! | `condition` | the conditions that are evaluated for many rows at once, and how paths and plans have them |
//! | `batch` | rows that were read ahead, and those among them that are handed out |
//! | `scan` | the executor's side: reading ahead and handing out; what EXPLAIN shows |
//! | `path` | the planner's side: which scans are worth it, and from a path to a plan |

mod batch;
mod condition;
mod path;
mod scan;

pub use path::define;
