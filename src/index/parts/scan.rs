//! Bitmap scans: the pages of ranges in which a condition may hold, clamped to the pages that the table has. PostgreSQL
//! compares all of their rows.

use super::column::Index;
use crate::pg::call::error::Result;
use crate::pg::call::interrupt;
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::method::table;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::memory;
use pg_bloom_core::parts::Condition;

/// Adds the rows that may match all of these keys.
///
/// # Errors
/// XX002 for damage.
///
/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn bitmap(relation: Relation, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let index = Index::of(relation)?;
    // SAFETY: promised by the caller.
    let condition = unsafe { condition(&index, keys)? };
    if condition == Condition::NONE {
        return Ok(());
    }
    if condition.is_unknown() {
        // Rows without parts have no tile.
        add_pages(0..u64::from(table::of_index(relation).relation().pages()), rows);
        return Ok(());
    }
    let directory = index.directory()?;
    let mut ranges = Vec::new();
    let found = directory.search_for(&mut index.pages(), &condition, |range| memory::push(&mut ranges, range));
    found.map_err(|failure| failure.of(relation))?;
    if !ranges.is_empty() {
        let end = u64::from(table::of_index(relation).relation().pages());
        for range in ranges {
            let pages = directory.options.pages_of(range);
            match directory.options.lines_of(range) {
                // A line without a row is skipped by PostgreSQL.
                Some(lines) if pages.start < end => {
                    lines.take_while(|&line| rows.add(pages.start as u32, line, true)).for_each(drop)
                }
                Some(_) => {}
                None => add_pages(pages.start..pages.end.min(end), rows),
            }
            interrupt::check_for_interrupts();
        }
    }
    Ok(())
}

/// What the parts of a row must be that matches all of these keys.
///
/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn condition(index: &Index, keys: &[Key]) -> Result<Condition> {
    // A nested loop asks again and again.
    // SAFETY: promised by the caller; conditions are in Rust's memory.
    let conditions = unsafe { in_scratch(|| memory::try_collect(keys.iter().map(|key| index.kind().condition(key))))? };
    Ok(Condition::all(conditions))
}

fn add_pages(pages: std::ops::Range<u64>, rows: &mut RowBatch) {
    for page in pages {
        rows.add_page(page as u32);
        if page.is_multiple_of(1024) {
            interrupt::check_for_interrupts();
        }
    }
    interrupt::check_for_interrupts();
}
