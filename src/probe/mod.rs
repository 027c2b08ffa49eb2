//! Querying stored filters: what a call site remembers of them, and reading no more of one than is needed.
//!
//! | module | what it knows |
//! |---|---|
//! | `cache` | the filters that a call site asks, remembered between its calls |
//! | `site` | a call site, or a scan, that asks a filter for elements |
//! | `start` | the start of a filter: enough to read its header |

mod cache;
mod site;
mod start;

pub use cache::FilterCache;
pub use site::{MOST_AT_ONCE, probe, probe_each};
pub use start::start;
