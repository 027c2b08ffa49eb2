//! What the pages of both indexes have in common.
//!
//! | module | what it knows |
//! |---|---|
//! | `address` | numbers and kinds of pages |
//! | `damage` | [`Damage`]: what is wrong with a page |
//! | `format` | headers, the special space; [`Pages`], through which pages are read, and [`PageSink`] |
//! | `memory` | pages in memory, for tests (feature `testing`) |
//! | `row_set` | rows of a table: [`RowId`], [`RowSet`] |

mod address;
mod damage;
mod format;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
mod row_set;

pub use address::{PageKind, PageNumber};
pub(crate) use damage::require;
pub use damage::{Damage, Defect};
pub(crate) use format::Reader;
pub use format::{PAGE_HEADER_BYTES, PAGE_ID, PAGE_VERSION, PageSink, PageSize, Pages, SPECIAL_BYTES, Special};
pub use row_set::{RowId, RowSet};
