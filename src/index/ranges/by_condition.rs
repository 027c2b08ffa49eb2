//! Lookups of conditions on keys: the pages of ranges in which a condition may hold.
//!
//! PostgreSQL compares all rows of these ranges. Where that takes longer than hashing the rows' keys,
//! as for a condition with many alternatives or a regular expression, the scan does that, and
//! PostgreSQL compares only rows that may match.

use super::columns::Index;
use super::rows::{RangePages, RowFilter, add_pages};
use crate::pg::call::{Result, interrupt};
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::Opened;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::alternatives::{Alternatives, RowTest};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::index::ranges::{Directory, search_alternatives, search_condition};
use pg_bloom_core::memory;

/// The most comparisons that PostgreSQL makes of each row of a range, counted as those with a pattern
/// of LIKE. Hashing the keys of a row takes as long as four, and copying it before that, and looking
/// at it twice, as long again.
pub const MOST_COMPARISONS: usize = 8;

/// Returns whether the rows of a range should be compared by the hashes of their keys, instead of by
/// PostgreSQL, for a lookup with these scan keys and their condition.
pub fn should_hash_rows(index: &Index, scan_keys: &[Key], condition: &Condition) -> bool {
    let times = scan_keys.iter().map(|scan_key| index.comparison_time(scan_key));
    let longest_time = times.max().unwrap_or(1);
    Alternatives::count(condition) * longest_time > MOST_COMPARISONS
}

/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn add_rows(index: &Index, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    // SAFETY: promised by the caller.
    let condition = unsafe { index.condition(keys)? };
    if condition == Condition::NONE {
        return Ok(());
    }
    let opened = Opened::table_of(index.relation);
    let table = opened.relation();
    if condition.is_unknown() {
        rows.counts.unrestricted_searches += 1;
        // Rows without parts have no tile.
        add_pages(0..table.pages(), rows);
        return Ok(());
    }
    let directory = index.directory()?;
    let options = directory.options;
    let pages = RangePages::new(table, options);
    // Where pages are split the texts are out of line: only PostgreSQL can read them.
    if options.split.is_none()
        && should_hash_rows(index, keys, &condition)
        && let Some(filter) = RowFilter::new(index, table)
    {
        return add_alternatives(
            index,
            &directory,
            &Alternatives::of(condition),
            filter,
            &pages,
            rows,
        );
    }
    let mut found = Vec::new();
    let add = |range| memory::push(&mut found, range);
    index.checked(search_condition(&directory, &mut index.pages(), &condition, add))?;
    rows.counts.ranges += found.len() as u64;
    for range in found {
        interrupt::check_for_interrupts();
        match (options.split.and_then(|split| split.lines_of(range)), pages.pages(range).next()) {
            // Lines that the page doesn't have are skipped by PostgreSQL.
            (Some(lines), Some(page)) => {
                lines
                    .take_while(|&line| rows.add(RowId { page, line }, true))
                    .for_each(drop);
            }
            _ => add_pages(pages.pages(range), rows),
        }
    }
    Ok(())
}

/// Adds the rows for which one of many alternatives may hold.
fn add_alternatives(
    index: &Index,
    directory: &Directory,
    alternatives: &Alternatives,
    mut filter: RowFilter,
    pages: &RangePages,
    rows: &mut RowBatch,
) -> Result<()> {
    /// Numbers of alternatives after which ranges are read before more are found: a megabyte; and
    /// as many as take the memory that a list takes beside its own.
    const MOST: usize = 1 << 18;
    const OF_LIST: usize = 16;
    let mut test = RowTest::new(alternatives);
    let mut read = |ranges: &[u32], numbers: &[Vec<u32>]| {
        rows.counts.ranges += ranges.len() as u64;
        pages.visit(ranges, |i, page| {
            rows.count_table_page(ranges[i]);
            test.begin_range(&numbers[i]);
            filter.add_rows(page, &mut test, rows);
        });
    };
    // Ranges, and which alternatives each of them may have.
    let (mut ranges, mut numbers, mut taken) = (Vec::new(), Vec::new(), 0);
    index.checked(search_alternatives(
        directory,
        &mut index.pages(),
        alternatives,
        |range, own| {
            memory::push(&mut ranges, range);
            memory::push(&mut numbers, memory::collect(own.iter().copied()));
            taken += OF_LIST + own.len();
            if taken >= MOST {
                read(&std::mem::take(&mut ranges), &std::mem::take(&mut numbers));
                taken = 0;
            }
        },
    ))?;
    read(&ranges, &numbers);
    Ok(())
}
