//! Querying stored filters: what a call site remembers of them, and reading no more of one than is needed.
//!
//! | module | what it knows |
//! |---|---|
//! | `cache` | the filters that a call site asks, remembered between its calls |
//! | `start` | the start of a filter: enough to read its header |

mod cache;
mod start;

pub use cache::FilterCache;
pub use start::start;
