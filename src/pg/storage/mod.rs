//! Relations and their pages.
//!
//! | module | what it is for |
//! |---|---|
//! | [`relation`] | indexes and tables that are open |
//! | [`buffer`] | pages under locks |
//! | [`announce`] | pages that will be read soon |
//! | [`wal`] | changes of pages with their WAL records, and the pages of a new index |

pub mod announce;
pub mod buffer;
pub mod relation;
pub mod wal;
