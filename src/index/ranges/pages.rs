//! Ranges of a table's pages, as a scan that found them reads their rows.

use crate::heap::RowColumn;
use crate::pg::call::interrupt;
use crate::pg::storage::buffer;
use crate::pg::storage::relation::Relation;
use crate::settings;
use pg_bloom_core::index::ranges::Options;

/// The column of an index in the rows of its table; `None` if rows can't, or must not, be read without PostgreSQL.
pub fn readable_column<'r>(index: Relation, table: Relation<'r>) -> Option<RowColumn<'r>> {
    if settings::heap_filter() { RowColumn::of_index(index, table) } else { None }
}

/// The pages that a table has now, by ranges.
pub struct RangePages<'r> {
    table: Relation<'r>,
    end: u64,
    options: Options,
}

impl<'r> RangePages<'r> {
    pub fn new(table: Relation<'r>, options: Options) -> RangePages<'r> {
        RangePages { table, end: table.pages().into(), options }
    }

    pub fn pages(&self, range: u32) -> impl Iterator<Item = u32> + use<> {
        let pages = self.options.pages_of(range);
        (pages.start..pages.end.min(self.end)).map(|page| page as u32)
    }

    /// Calls `visit` with each page of these ranges, and which of them it is of. Others are read ahead.
    pub fn visit(&self, ranges: &[u32], mut visit: impl FnMut(usize, u32)) {
        // The pages of a range follow each other: those of the others are read ahead, so many at a time.
        let concurrency = buffer::io_concurrency(self.table) as usize;
        let mut ahead = ranges.iter().skip(1).flat_map(|&range| self.pages(range));
        let mut read_ahead = |pages| ahead.by_ref().take(pages).for_each(|page| buffer::prefetch(self.table, page));
        read_ahead(concurrency);
        for (i, &range) in ranges.iter().enumerate() {
            for page in self.pages(range) {
                interrupt::check_for_interrupts();
                read_ahead(if i > 0 { concurrency.min(1) } else { 0 });
                visit(i, page);
            }
        }
    }
}
