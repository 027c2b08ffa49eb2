//! What the pages of an index have in common, whatever its tiles hold.
//!
//! | module | what it knows |
//! |---|---|
//! | `address` | numbers and kinds of pages |
//! | `damage` | [`Damage`]: what is wrong with a page |
//! | `format` | PostgreSQL's header, the special space; [`Pages`], through which pages are read, and [`Sink`] |
//! | [`memory`] | pages in memory |

mod address;
mod damage;
mod format;
pub mod memory;

pub use address::{PageKind, PageNumber};
pub use damage::{Damage, Defect, RunProblem};
pub(crate) use format::Reader;
pub use format::{PAGE_HEADER_BYTES, PAGE_ID, PAGE_VERSION, PageSize, Pages, SPECIAL_BYTES, Sink, Special};
