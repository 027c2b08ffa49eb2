//! `bloom_index_check` of an index over parts: whether it would find every row of its table by each of its parts.

use super::column::Index;
use crate::index::keys::has;
use crate::index::opened::Named;
use crate::index::page::missed;
use crate::pg::call::error::Result;
use crate::pg::method::table::{Latest, scan_for_check};
use pg_bloom_core::memory;
use std::collections::HashSet;

/// The most parts of a range that are remembered as found.
const MOST_REMEMBERED: usize = 1 << 20;

/// Whether a hash was not in the set, where it is now.
fn is_new(found: &mut HashSet<u64>, hash: u64) -> bool {
    let more = found.len().max(64);
    if found.len() == found.capacity() && found.try_reserve(more).is_err() {
        memory::exhausted(more * 2 * size_of::<u64>());
    }
    found.insert(hash)
}

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
    // The parts of a range that were found: most are those of the rows before.
    let (mut range, mut found) = (0, HashSet::new());
    scan_for_check(named.table(), named.index(), &snapshot, |row| {
        // One that is NULL is never looked for.
        let Some(value) = row.value else { return Ok(()) };
        let of_row = row.page / directory.options.pages_per_range;
        if of_row != range || found.len() > MOST_REMEMBERED {
            (range, found) = (of_row, HashSet::new());
        }
        let mut result = Ok(true);
        // SAFETY: the value is that of the index's column.
        unsafe {
            index.kind().each_part(value, |hash| {
                if matches!(result, Ok(true)) && is_new(&mut found, hash) {
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
