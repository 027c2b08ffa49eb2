//! Relations and their pages.
//!
//! | module | what it is for |
//! |---|---|
//! | [`relation`] | indexes and tables that are open |
//! | [`lock`] | locks of what a table stands for |
//! | [`buffer`] | pages under locks |
//! | [`wal`] | changes of pages with their WAL records |

pub mod buffer;
pub mod lock;
pub mod relation;
pub mod wal;
