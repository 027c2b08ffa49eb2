//! Bitmap scans: the rows whose filters may have a key.

use super::column::{Index, can_be, end_of};
use super::key::{conditions, keys};
use super::prefetch::Ahead;
use crate::index::page::impossible;
use crate::pg::call::error::Result;
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::method::table;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::page::RowId;

/// Adds the rows that may match all of these keys.
///
/// # Errors
/// XX002 for damage; those of the keys.
///
/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn bitmap(relation: Relation, scan_keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let index = Index::of(relation)?;
    // A nested loop asks again and again.
    // SAFETY: promised by the caller; what is returned is in Rust's memory.
    let sought = unsafe { in_scratch(|| keys(&index, scan_keys))? };
    // PostgreSQL evaluates what `@=>` stands for on all rows that are found: see `cost`.
    let is_own = scan_keys.iter().any(|key| key.asked_type != index.kind().key);
    let directory = index.directory()?;
    // The row on the highest page, and one that no page has.
    let (mut highest, mut wrong): (Option<RowId>, Option<RowId>) = (None, None);
    let found = directory.search(
        &mut Ahead::new(relation, index.pages()),
        |group| conditions(&sought, group),
        |row, again| {
            highest = highest.max(Some(row));
            if !rows.add(row.page, row.line, again && is_own) {
                wrong = Some(row);
            }
        },
    );
    found.map_err(|failure| failure.of(relation))?;
    let Some(highest) = highest else { return Ok(()) };
    // Others may have made the table longer, but no row was found before it was there.
    let table = table::of_index(relation);
    let table = table.relation();
    match wrong.or(Some(highest)).filter(|&row| !can_be(row, end_of(table))) {
        Some(row) => Err(impossible(relation, table, row)),
        None => Ok(()),
    }
}
