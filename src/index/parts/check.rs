//! `bloom_index_check` of an index over parts: whether it would find every row of its table by each of its parts.

use super::column::Index;
use crate::index::keys::{Known, KnownKeys, has};
use crate::index::opened::Named;
use crate::index::page::missed;
use crate::pg::call::error::Result;
use crate::pg::method::table::{Latest, scan_for_check};
use pg_bloom_core::index::page::RowId;

/// Looks for every row. Returns how many there are.
///
/// # Errors
/// XX002 with the first one that is missed, and for damage.
pub fn check(named: &Named) -> Result<i64> {
    // Rows that the snapshot sees got their bits and tiles before it was taken.
    let snapshot = Latest::take(named.table());
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    // Most parts are those of the rows before.
    let (mut found, mut count) = (KnownKeys::default(), 0);
    scan_for_check(named.table(), named.index(), &snapshot, |row| {
        // One that is NULL is never looked for.
        let Some(value) = row.value else { return Ok(()) };
        let mut result = Ok(true);
        // SAFETY: the value is that of the index's column.
        unsafe {
            index.kind().each_part(value, |hash| {
                let id = RowId { page: row.page, line: row.line };
                let range = directory.options.range_of(id);
                let key = Known { index: index.number(), range, hash };
                if matches!(result, Ok(true)) && !found.has(&key) {
                    result = has(&index, &directory, id, hash);
                    found.add(key);
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
