//! Lookups of conditions on keys: the pages of ranges in which a condition may hold.
//!
//! PostgreSQL compares all rows of these ranges. Where that takes longer than hashing the rows'
//! keys, as for a condition with many alternatives or a regular expression, the scan does that, and
//! PostgreSQL compares only rows that may match.

use super::columns::RangesIndex;
use super::rows::{RangePages, RowFilter, add_pages};
use crate::pg::call::{Result, interrupt};
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::Opened;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::alternatives::{Alternatives, RowTest};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::index::ranges::{Directory, Split, search_alternatives, search_condition};
use pg_bloom_core::memory::List;

/// The most comparisons of each row of a range that are left to PostgreSQL, in the time of one with
/// a pattern of LIKE; for more, the scan hashes the row's keys. Hashing takes as long as four
/// comparisons. Copying the row first, and going through its keys twice, takes as long again.
pub const MOST_COMPARISONS: usize = 8;

/// Returns whether the rows of a range should be compared by the hashes of their keys, instead of
/// by PostgreSQL, for a lookup with these scan keys and their condition.
pub fn should_hash_rows(index: &RangesIndex, scan_keys: &[Key], condition: &Condition) -> bool {
    let times = scan_keys.iter().map(|scan_key| index.comparison_time(scan_key));
    let longest_time = times.max().unwrap_or(1);
    Alternatives::count(condition) * longest_time > MOST_COMPARISONS
}

/// Adds the rows that may match all scan keys to a bitmap, for an index that keeps the hashes of the
/// parts of a value: the windows of a text, the members of an array. A *scan key* is a comparison of
/// the query with the column, such as `text LIKE '%abc%'` or `array @> '{5}'`. PostgreSQL compares
/// each of these rows with the query again.
///
/// The scan keys become one condition on a row's hashes. The index says in which *ranges*, some
/// neighbouring pages of the table or a part of one, the condition may hold:
///
/// | condition | rows that are added |
/// |---|---|
/// | no row can meet it, as `array @> ANY ('{}')` | none |
/// | it restricts nothing, as `LIKE '%'` | all rows of the table |
/// | it has few alternatives | all rows of these ranges |
/// | it has so many that hashing a row is faster than comparing it with all | the rows of these ranges whose hashes meet it |
///
/// Fails with 2201B for an invalid regular expression, and with XX002 if the index is damaged.
///
/// # Safety
/// The scan keys must be those of a scan of the index.
pub unsafe fn add_rows(index: &RangesIndex, scan_keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    // SAFETY: promised by the caller.
    let condition = unsafe { index.condition(scan_keys)? };
    let no_row_matches = condition == Condition::NONE;
    if no_row_matches {
        return Ok(());
    }

    let opened = Opened::table_of(index.relation);
    let table = opened.relation();
    let restricts_nothing = condition.is_unknown();
    if restricts_nothing {
        rows.counts.unrestricted_searches += 1;
        // All pages, not all ranges: the last pages have no tile if their rows have no keys.
        add_pages(0..table.pages(), rows);
        return Ok(());
    }

    let directory = index.directory()?;
    let pages = RangePages::new(table, directory.options);
    // Where pages are split among several ranges, texts are out of line: only PostgreSQL reads
    // them.
    let has_texts_out_of_line = directory.options.split.is_some();
    if !has_texts_out_of_line
        && should_hash_rows(index, scan_keys, &condition)
        && let Some(filter) = RowFilter::new(index, table)
    {
        let alternatives = Alternatives::of_condition(condition);
        let mut reader = RangeReader {
            pages: &pages,
            filter,
            test: RowTest::new(&alternatives),
            rows,
        };
        return reader.add_matching_rows(index, &directory, &alternatives);
    }
    add_ranges(index, &directory, &condition, &pages, rows)
}

/// Adds all rows of the ranges (parts of the table) in which a condition may hold. Fails with XX002
/// if the index is damaged.
fn add_ranges(
    index: &RangesIndex,
    directory: &Directory,
    condition: &Condition,
    pages: &RangePages,
    rows: &mut RowBatch,
) -> Result<()> {
    let mut ranges = List::new();
    let add = |range| ranges.push(range);
    index.checked(search_condition(directory, &mut index.pages(), condition, add))?;
    rows.counts.ranges += ranges.len() as u64;
    for range in ranges {
        interrupt::check_for_interrupts();
        add_range(pages, directory.options.split, range, rows);
    }
    Ok(())
}

/// Adds all rows of a range, a part of the table, to the bitmap that PostgreSQL reads: whole pages
/// or, if pages are *split* among several ranges (`split`), those lines of one page that belong to
/// the range. Lines that the page doesn't have may be among them; PostgreSQL skips these.
fn add_range(pages: &RangePages, split: Option<Split>, range: u32, rows: &mut RowBatch) {
    let lines = split.and_then(|split| split.lines_of(range));
    match (lines, pages.pages(range).next()) {
        (Some(lines), Some(page)) => {
            // PostgreSQL skips lines that the page doesn't have; no page has more lines than `add`
            // takes.
            let must_compare = true;
            for line in lines {
                if !rows.add(RowId { page, line }, must_compare) {
                    break;
                }
            }
        }
        _ => add_pages(pages.pages(range), rows),
    }
}

/// A range that may have rows for some alternatives of a condition.
struct RangeFound {
    range: u32,
    /// The numbers of these alternatives.
    alternatives: List<u32>,
}

/// Reads the ranges that a lookup of many alternatives finds, and gives PostgreSQL the rows for
/// which one of the alternatives may hold.
struct RangeReader<'a, 'r> {
    pages: &'a RangePages<'r>,
    filter: RowFilter<'a>,
    test: RowTest,
    rows: &'a mut RowBatch,
}

impl RangeReader<'_, '_> {
    /// Finds the ranges (neighbouring pages of the table) that may have rows for at least one of
    /// the alternatives of a condition, reads their pages, and adds the rows that may match to the
    /// bitmap. Whenever the ranges found so far take a megabyte, they are read and forgotten.
    ///
    /// Fails with XX002 if the index is damaged.
    fn add_matching_rows(
        &mut self,
        index: &RangesIndex,
        directory: &Directory,
        alternatives: &Alternatives,
    ) -> Result<()> {
        /// Ranges are read when their lists have this many numbers: a megabyte.
        const MOST_NUMBERS: usize = 1 << 18;
        /// A list takes as much memory beside its numbers as this many numbers.
        const NUMBERS_PER_LIST: usize = 16;

        let mut found: List<RangeFound> = List::new();
        let mut size_in_numbers = 0;
        index.checked(search_alternatives(
            directory,
            &mut index.pages(),
            alternatives,
            |range, numbers| {
                let alternatives = numbers.iter().copied().collect::<List<_>>();
                found.push(RangeFound { range, alternatives });
                size_in_numbers += NUMBERS_PER_LIST + numbers.len();
                if size_in_numbers >= MOST_NUMBERS {
                    self.read(&std::mem::take(&mut found));
                    size_in_numbers = 0;
                }
            },
        ))?;
        self.read(&found);
        Ok(())
    }

    /// Reads ranges, and gives PostgreSQL their rows that may match.
    fn read(&mut self, found: &[RangeFound]) {
        self.rows.counts.ranges += found.len() as u64;
        let ranges: List<u32> = found.iter().map(|found| found.range).collect();
        self.pages.visit(&ranges, |i, page| {
            self.rows.count_table_page(found[i].range);
            let mut test = self.test.begin_range(&found[i].alternatives);
            self.filter.add_rows(page, &mut test, self.rows);
        });
    }
}
