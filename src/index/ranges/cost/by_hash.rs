//! What a lookup of elements costs.
//!
//! ```text
//! matches         rows that match, by the statistics; without any, a handful for each key; fewer if the index says so
//! ranges read     those that have the key         min(ranges, max(1, matches · elements / rows))
//!                 beside them                     a share of a range for each tile that has it
//!                 unnecessarily                   ranges · fpr, for each key
//! table pages     ranges read · pages per range
//! index pages     those that each lookup reads, and one for each tile that has the key
//! ```
//!
//! A range counts an element once, however many of its rows have it. So where equal keys lie together, as those of one
//! day do, a range has fewer elements than rows, and the rows of a key are in fewer ranges. How many is
//! read from the bits of a page of the index. The column's correlation says nothing about that: it is high for a sorted
//! column, and low where blocks of equal keys come in any order.
//!
//! PostgreSQL takes a value that is not among the most common ones for one of the others, also where it is nowhere. So
//! where the statistics expect more than a handful of rows for each key, or keys are many, the index is asked for some,
//! if they are known.
//!
//! Where the heap filter reads these pages, they are a part of the index's cost, a run for each range, and so is
//! hashing their rows; PostgreSQL then reads the pages of the rows that match. Where the index is on an expression,
//! PostgreSQL reads all of the pages.

use super::rows::{HANDFUL, OPERATORS_PER_PAGE, cost_of_rows};
use crate::index::kind::Cost;
use crate::index::ranges::columns::{Index, RangesColumn};
use crate::pg::call::Element;
use crate::pg::memory::in_scratch;
use crate::pg::method::planning::Planned;
use crate::pg::method::scan::Key;
use crate::settings;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::index::ranges::{Directory, Expectation, Level};
use pg_bloom_core::memory;

/// Keys of a condition for which an index is asked at most, and tiles of a level that are asked.
const KEYS_ASKED: usize = 1024;
const TILES_ASKED: u32 = 8;
/// So many keys are worth that in any case.
const MANY_KEYS: f64 = 100.0;

#[derive(Clone, Copy, Debug)]
struct IndexShape {
    pages_per_range: f64,
    tiles: f64,
    expected: Expectation,
    /// Distinct elements of a range, in the mean; one row is in one range, however many there are.
    elements: Option<f64>,
    /// Ranges that have the keys, if the index was asked.
    found: Option<f64>,
}

pub fn estimate(planned: &Planned) -> Cost {
    let (pages, rows) = (planned.table_pages.max(1.0), planned.table_rows.max(1.0));
    let searches = planned.searches;
    // By the column's statistics, or a handful for each key without them.
    let most = if planned.has_statistics() { rows } else { HANDFUL * planned.searches };
    let matches = (planned.selectivity * rows).min(most);
    let IndexShape { pages_per_range, tiles, expected, elements, found } = shape(planned, matches);
    let ranges = (pages / pages_per_range).ceil();
    // The share of a key's rows of which each is the first in its range.
    let first = elements.map_or(1.0, |elements| (elements * ranges / planned.index_rows.max(1.0)).min(1.0));
    let by_statistics = (matches * first).max(matches.min(1.0)).min(ranges);
    let having = found.map_or(by_statistics, |found| found.min(by_statistics));
    let matches = if found.is_some() { matches.min(having * rows / ranges) } else { matches };
    let read = having + having.min(tiles) * expected.beside_present + ranges * expected.fpr * searches;
    let pages_read = (read.min(ranges) * pages_per_range).clamp(1.0, pages);

    let lookups = expected.pages - 1.0 + (having / searches).min(tiles);
    let fetched = planned.index_pages_read(lookups, searches * planned.loops);

    let startup = planned.keys_cost();
    let mut total = startup
        + fetched * planned.random_page_cost()
        + lookups * searches * OPERATORS_PER_PAGE * planned.operator_cost();
    let rows_read = pages_read * rows / pages;
    let (given, pages_given) = if planned.is_on_column() && settings::heap_filter() {
        let (random, next) = planned.table_page_costs();
        let a_page = (random + (pages_per_range - 1.0) * next) / pages_per_range;
        total += planned.table_pages_read(pages_read) * a_page + rows_read * planned.operator_cost();
        (matches, (having * pages_per_range).min(pages))
    } else {
        (rows_read.max(matches), pages_read)
    };
    cost_of_rows(planned, startup, total, given, pages_given)
}

/// What is known of the index, given how many rows match by the statistics. A damaged one must not keep the table's
/// queries from being planned: the scan says what is wrong.
fn shape(planned: &Planned, matches: f64) -> IndexShape {
    let opened = planned.index();
    let index = opened.as_ref().and_then(|opened| Index::of(opened.relation()).ok());
    let directory = index.as_ref().and_then(|index| index.directory().ok());
    match index.zip(directory) {
        Some((index, directory)) => IndexShape {
            pages_per_range: f64::from(directory.options.pages_per_range),
            tiles: f64::from(directory.tiles(Level::Zero)).max(1.0),
            expected: directory.expectation(),
            elements: if matches > 1.0 {
                directory.elements_per_range(&mut index.pages()).ok().flatten()
            } else {
                None
            },
            found: if matches > HANDFUL * planned.searches || planned.searches >= MANY_KEYS {
                // SAFETY: this is the index that is planned.
                unsafe { ranges_found(planned, &index, &directory) }
            } else {
                None
            },
        },
        None => IndexShape {
            pages_per_range: 8.0,
            tiles: 1.0,
            expected: Expectation { pages: 4.0, fpr: 0.0, beside_present: 0.3 },
            elements: None,
            found: None,
        },
    }
}

/// How many ranges have the keys, by asking the index; `None` if they aren't known yet.
///
/// # Safety
/// It must be the index that is planned.
unsafe fn ranges_found(planned: &Planned, index: &Index, directory: &Directory) -> Option<f64> {
    let of_key = |key: &Key| {
        let RangesColumn::Element(elements) = index.kind() else { return None };
        let (hasher, sought) = (elements.hasher_of(index.relation(), key.asked_type).ok()?, key.sought());
        let stride = sought.len().div_ceil(KEYS_ASKED).max(1);
        // SAFETY: what is looked for in the index is of the type that the hasher is for.
        let hash = |key: &Element| unsafe { hasher.hash(*key) }.ok_or(());
        let asked = memory::try_collect(sought.iter().step_by(stride).map(hash)).ok()?;
        let found = ranges_having(index, directory, asked.iter())?;
        if asked.len() == sought.len() || found == 0.0 {
            return Some(found);
        }
        // Twice as many keys are in up to twice as many ranges, and in hardly more where a few ranges have them all.
        let growth = (found / ranges_having(index, directory, asked.iter().step_by(2))?).clamp(1.0, 2.0);
        Some(found * growth.powf((sought.len() as f64 / asked.len() as f64).log2()))
    };
    let of_keys =
        || planned.known_keys()?.iter().map(of_key).try_fold(f64::INFINITY, |least, found| Some(least.min(found?)));
    // SAFETY: a number, and what is known of an index is in Rust's memory.
    unsafe { in_scratch(of_keys) }
}

/// How many ranges have one of these keys; `None` for damage.
fn ranges_having<'h>(index: &Index, directory: &Directory, hashes: impl Iterator<Item = &'h u64>) -> Option<f64> {
    let mut ranges: Vec<(u32, f64)> = Vec::new();
    let mut pages = index.pages();
    for &hash in hashes {
        let add = |range, weight| memory::push(&mut ranges, (range, weight));
        directory.sample(&mut pages, &Condition::Has(hash), TILES_ASKED, add).ok()?;
    }
    ranges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    ranges.dedup_by_key(|(range, _)| *range);
    Some(ranges.iter().map(|(_, weight)| weight).sum())
}
