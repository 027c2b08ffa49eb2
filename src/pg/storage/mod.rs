//! Relations and their pages.
//!
//! | module | what it is for |
//! |---|---|
//! | [`relation`] | indexes and tables that are open |
//! | [`buffer`] | pages under locks |
//! | [`wal`] | changes of pages with their WAL records, and the pages of a new index |

pub mod buffer;
pub mod relation;
pub mod wal;
