//! Querying stored filters: what a call site remembers of them, and reading no more of one than is needed.
//!
//! | module | what it knows |
//! |---|---|
//! | `cache` | the filters that a call site asks, remembered between its calls |
//! | `site` | a call site, or a scan, that asks a filter for elements |

mod cache;
mod site;

pub use cache::FilterCache;
pub use site::{MOST_AT_ONCE, probe, probe_each};
