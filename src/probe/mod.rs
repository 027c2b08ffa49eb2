//! Querying stored filters: what a call site remembers of them, and hasher no more of one than is needed.

mod cache;
mod start;

pub use cache::FilterCache;
pub use start::start;
