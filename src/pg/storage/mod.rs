//! Relations and their pages.
//!
//! | module | what it is for |
//! |---|---|
//! | [`relation`] | indexes and tables that are open |
//! | [`buffer`] | pages under locks |
//! | [`wal`] | changes of pages with their WAL records |
//! | [`new_pages`] | the pages of a relation that is being made |

pub mod buffer;
pub mod new_pages;
pub mod relation;
pub mod wal;
