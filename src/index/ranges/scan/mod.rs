//! Bitmap scans: the rows of ranges that may match, clamped to the pages that the table has.
//!
//! | module | what it does |
//! |---|---|
//! | `by_hash` | lookups of elements: ranges that may have one of some hashes |
//! | `by_condition` | lookups of parts: ranges in which a condition may hold |
//! | `rows` | the pages of such ranges, and which of their rows are worth a look |

pub mod by_condition;
pub mod by_hash;
pub mod rows;

use super::columns::{Index, RangesColumn};
use crate::pg::call::error::Result;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::Relation;

/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn bitmap(relation: Relation, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let index = Index::of(relation)?;
    // SAFETY: promised by the caller.
    unsafe {
        match index.kind() {
            RangesColumn::Element(elements) => by_hash::add_rows(&index, elements, keys, rows),
            _ => by_condition::add_rows(&index, keys, rows),
        }
    }
}
