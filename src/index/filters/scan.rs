//! Bitmap scans: the rows whose filters may have a key.

use super::ahead::Ahead;
use super::column::Index;
use super::key::{conditions, keys};
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::Relation;

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
    let mut impossible = None;
    let found = directory.search(
        &mut Ahead::new(relation, index.pages()),
        |group| conditions(&sought, group),
        |row, again| {
            if !rows.add(row.page, row.line, again && is_own) {
                impossible = Some(row);
            }
        },
    );
    found.map_err(|failure| failure.of(relation))?;
    if let Some(row) = impossible {
        let message = format!("index \"{}\" has row ({},{}), which can't be", relation.name(), row.page, row.line);
        return Err(Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, message).hint("REINDEX it."));
    }
    Ok(())
}
