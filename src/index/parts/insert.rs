//! INSERT, and UPDATE to another page: the bits of the new row's parts.

use super::column::Index;
use super::gather::Gathered;
use crate::index::keys::{Gather, add};
use crate::pg::call::error::Result;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys::Datum;

/// Adds the parts of a row.
///
/// # Errors
/// XX002 for damage; 54000 if there are no numbers left for pages or ranges.
///
/// # Safety
/// The value must be of the type of the index's column.
pub unsafe fn insert(relation: Relation, value: Datum, row: RowId) -> Result<()> {
    let index = Index::of(relation)?;
    let mut parts = Gathered::new(index.kind());
    // SAFETY: promised by the caller.
    unsafe { parts.add(value)? };
    add(&index, row, &parts.take())
}
