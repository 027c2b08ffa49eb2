//! Lookups of parts: the pages of ranges in which a condition may hold. PostgreSQL compares all of their rows; where a
//! condition has many alternatives, only those that may match.

use super::rows::{RangePages, Readable, RowFilter};
use crate::index::ranges::columns::Index;
use crate::pg::call::error::Result;
use crate::pg::call::interrupt;
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::method::table;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::alternatives::{Alternatives, RowTest};
use pg_bloom_core::memory;

/// The most alternatives of a condition that PostgreSQL compares with each row of a range.
pub const FEW: usize = 8;

/// Adds the rows that may match all of these keys.
///
/// # Errors
/// XX002 for damage.
///
/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn add_rows(index: &Index, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let relation = index.relation();
    // SAFETY: promised by the caller.
    let condition = unsafe { condition(index, keys)? };
    if condition == Condition::NONE {
        return Ok(());
    }
    if condition.is_unknown() {
        // Rows without parts have no tile.
        add_pages(0..table::of_index(relation).relation().pages(), rows);
        return Ok(());
    }
    let directory = index.directory()?;
    // Where pages are split the texts are out of line: only PostgreSQL can read them.
    if directory.options.split.is_none() && Alternatives::count(&condition) > FEW {
        let table = table::of_index(relation);
        if let Some(readable) = Readable::new(index, table.relation()) {
            let ranges = RangePages::new(table.relation(), directory.options);
            return add_alternatives(index, &Alternatives::of(condition), readable, &ranges, rows);
        }
    }
    let mut found = Vec::new();
    let searched = directory.search_for(&mut index.pages(), &condition, |range| memory::push(&mut found, range));
    searched.map_err(|failure| failure.of(relation))?;
    if !found.is_empty() {
        let table = table::of_index(relation);
        let ranges = RangePages::new(table.relation(), directory.options);
        for range in found {
            match directory.options.lines_of(range) {
                None => add_pages(ranges.pages(range), rows),
                Some(lines) => add_lines(ranges.pages(range), lines, rows),
            }
        }
    }
    Ok(())
}

/// Adds the rows of these lines of a page. Those of lines that the page doesn't have are skipped by PostgreSQL.
fn add_lines(mut pages: impl Iterator<Item = u32>, lines: impl Iterator<Item = u16>, rows: &mut RowBatch) {
    interrupt::check_for_interrupts();
    if let Some(page) = pages.next() {
        for line in lines {
            if !rows.add(page, line, true) {
                break;
            }
        }
    }
}

/// Adds the rows for which one of many alternatives may hold.
fn add_alternatives(
    index: &Index,
    alternatives: &Alternatives,
    readable: Readable,
    ranges: &RangePages,
    rows: &mut RowBatch,
) -> Result<()> {
    let mut filter = RowFilter::new(readable, RowTest::new(alternatives));
    let mut read = |found: &FoundRanges| {
        ranges.visit(&found.ranges, |i, page| filter.add_rows(page, found.numbers(i), rows));
    };
    let mut found = FoundRanges::default();
    let search = index.directory()?.search_each(&mut index.pages(), alternatives, |range, numbers| {
        found.add(range, numbers);
        if found.is_full() {
            read(&std::mem::take(&mut found));
        }
    });
    search.map_err(|failure| failure.of(index.relation()))?;
    read(&found);
    Ok(())
}

/// Ranges, and which alternatives each of them may have.
#[derive(Default)]
struct FoundRanges {
    ranges: Vec<u32>,
    /// Where the numbers of each begin.
    starts: Vec<usize>,
    numbers: Vec<u32>,
}

impl FoundRanges {
    /// Whether there are so many that they are to be read before more are found.
    fn is_full(&self) -> bool {
        /// A megabyte.
        const MOST: usize = 1 << 18;
        self.numbers.len() >= MOST
    }

    fn add(&mut self, range: u32, numbers: &[u32]) {
        memory::push(&mut self.ranges, range);
        memory::push(&mut self.starts, self.numbers.len());
        numbers.iter().for_each(|&number| memory::push(&mut self.numbers, number));
    }

    /// Those of a range by its place.
    fn numbers(&self, i: usize) -> &[u32] {
        let end = self.starts.get(i + 1).copied().unwrap_or(self.numbers.len());
        &self.numbers[self.starts[i]..end]
    }
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

fn add_pages(pages: impl Iterator<Item = u32>, rows: &mut RowBatch) {
    for page in pages {
        rows.add_page(page);
        if page.is_multiple_of(1024) {
            interrupt::check_for_interrupts();
        }
    }
    interrupt::check_for_interrupts();
}
