//! `bloom_index_check` of an index over parts: whether it would find every row of its table by each of its parts.

use super::column::Index;
use crate::index::keys::has;
use crate::index::opened::Named;
use crate::index::page::missed;
use crate::pg::call::error::Result;
use crate::pg::method::table::{Latest, scan_for_check};

/// Looks for every row. Returns how many there are.
///
/// # Errors
/// XX002 with the first one that is missed, and for damage.
pub fn check(named: &Named) -> Result<i64> {
    // Rows that the snapshot sees got their bits and tiles before it was taken.
    let snapshot = Latest::take();
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let mut count = 0;
    scan_for_check(named.table(), named.index(), &snapshot, |row| {
        // One that is NULL is never looked for.
        let Some(value) = row.value else { return Ok(()) };
        let mut result = Ok(true);
        // SAFETY: the value is that of the index's column.
        unsafe {
            index.kind().each_part(value, |hash| {
                if matches!(result, Ok(true)) {
                    result = has(&index, &directory, row.page, hash);
                }
            })?;
        }
        if !result? {
            return Err(missed(named.index(), named.table(), row));
        }
        count += 1;
        Ok(())
    })?;
    Ok(count)
}
