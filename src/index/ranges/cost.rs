//! What a bitmap scan of the index costs.
//!
//! PostgreSQL takes the share of rows that we return for rows spread at random, and computes the
//! pages that these are on, by Mackert and Lohman. So we return the share that gives the right
//! pages. What PostgreSQL doesn't charge of comparing rows by that is part of the index's cost.
//!
//! # Lookups of elements
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
//! Where equal keys lie together, as those of one day do, a range has fewer elements than rows, and
//! the rows of a key are in fewer ranges. How many is read from the bits of a page of the index:
//! the column's correlation is low also where blocks of equal keys come in any order.
//!
//! PostgreSQL takes a value that is not among the most common ones for one of the others, also
//! where it is nowhere. So where the statistics expect more than a handful of rows for each key, or
//! keys are many, the index is asked for some.
//!
//! Where the heap filter reads these pages, they are a part of the index's cost, a run for each
//! range, and so is hashing their rows.
//!
//! # Lookups of parts
//!
//! Where the planner knows what is asked, a sample of tiles is asked how many ranges may match: no
//! statistics of PostgreSQL knows that. Otherwise a typical lookup is assumed, which finds a
//! handful of rows: PostgreSQL then expects a fixed share of the table, which would be rows in all
//! ranges. A lookup that the index can't answer reads the whole table, and costs more than a
//! sequential scan. As for elements, reading and comparing what does not match is a part of the
//! index's cost.

use super::by_condition::FEW;
use super::columns::class::PARTS;
use super::columns::{Index, RangesColumn};
use crate::index::kind::Cost;
use crate::pg::call::Element;
use crate::pg::memory::in_scratch;
use crate::pg::method::planning::Planned;
use crate::pg::method::scan::Key;
use crate::settings;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::alternatives::Alternatives;
use pg_bloom_core::index::ranges::{Directory, Expectation, Level};
use pg_bloom_core::memory;

pub fn estimate(planned: &Planned) -> Cost {
    // A damaged index must not keep the table's queries from being planned: the scan says what is
    // wrong.
    let opened = planned.index();
    let index = opened.as_ref().and_then(|opened| Index::of(opened.relation()).ok());
    let directory = index.as_ref().and_then(|index| index.directory().ok());
    let known = index.as_ref().zip(directory.as_deref());
    let has_parts = planned.support_function(PARTS).1.is_some();
    if has_parts {
        cost_of_parts(planned, known)
    } else {
        cost_of_elements(planned, known)
    }
}

type Known<'k> = Option<(&'k Index<'k>, &'k Directory)>;

/// Operators that asking a page of the index is worth: hashing, the lock, ten rows of bits.
const OPERATORS_PER_PAGE: f64 = 50.0;
/// Rows that a key is expected to have without statistics.
const HANDFUL: f64 = 5.0;

/// The cost of a scan after which PostgreSQL compares so many rows, on so many pages of the table.
fn cost_of_rows(planned: &Planned, startup: f64, total: f64, rows: f64, pages: f64) -> Cost {
    let (all_pages, all_rows) = (planned.table_pages.max(1.0), planned.table_rows.max(1.0));
    // How many rows at random are on so many pages, by the formula that PostgreSQL inverts.
    let charged = rows.min(2.0 * all_pages * pages / (2.0 * all_pages - pages));
    let total = total + (rows - charged).max(0.0) * planned.row_cost();
    Cost { startup, total, selectivity: (charged / all_rows).min(1.0) }
}

/// Keys of a condition for which an index is asked at most.
const KEYS_ASKED: usize = 1024;
/// Tiles of a level that are asked.
const TILES_ASKED: u32 = 8;
/// So many keys are worth that in any case.
const MANY_KEYS: f64 = 100.0;

fn cost_of_elements(planned: &Planned, known: Known) -> Cost {
    let (pages, rows) = (planned.table_pages.max(1.0), planned.table_rows.max(1.0));
    let searches = planned.searches;
    let most = if planned.has_statistics() { rows } else { HANDFUL * searches };
    let matches = (planned.selectivity * rows).min(most);
    let (pages_per_range, tiles, expected) = match known {
        Some((_, directory)) => {
            let (pages_per_range, tiles) =
                (directory.options.pages_per_range, directory.tiles(Level::Zero).max(1));
            (f64::from(pages_per_range), f64::from(tiles), directory.expectation())
        }
        None => (8.0, 1.0, Expectation { pages: 4.0, fpr: 0.0, beside_present: 0.3 }),
    };
    // Distinct elements of a range, in the mean; one row is in one range, however many there are.
    let elements = known.filter(|_| matches > 1.0);
    let elements = elements
        .and_then(|(index, directory)| directory.elements_per_range(&mut index.pages()).ok()?);
    // Ranges that have the keys, if the index is asked.
    let asked = known.filter(|_| matches > HANDFUL * searches || searches >= MANY_KEYS);
    // SAFETY: this is the index that is planned.
    let found =
        asked.and_then(|(index, directory)| unsafe { ranges_found(planned, index, directory) });
    let ranges = (pages / pages_per_range).ceil();
    // The share of a key's rows of which each is the first in its range.
    let first =
        elements.map_or(1.0, |elements| (elements * ranges / planned.index_rows.max(1.0)).min(1.0));
    let by_statistics = (matches * first).max(matches.min(1.0)).min(ranges);
    let having = found.map_or(by_statistics, |found| found.min(by_statistics));
    let matches = if found.is_some() { matches.min(having * rows / ranges) } else { matches };
    let read =
        having + having.min(tiles) * expected.beside_present + ranges * expected.fpr * searches;
    let pages_read = (read.min(ranges) * pages_per_range).clamp(1.0, pages);

    let lookups = expected.pages - 1.0 + (having / searches).min(tiles);
    let fetched = planned.index_pages_read(lookups, searches * planned.loops);

    let startup = planned.keys_cost();
    let mut total = startup
        + fetched * planned.random_page_cost()
        + lookups * searches * OPERATORS_PER_PAGE * planned.operator_cost();
    let rows_read = pages_read * rows / pages;
    let (given, pages_given) = if planned.is_on_column() && settings::HEAP_FILTER.get() {
        let (random, next) = planned.table_page_costs();
        let a_page = (random + (pages_per_range - 1.0) * next) / pages_per_range;
        total +=
            planned.table_pages_read(pages_read) * a_page + rows_read * planned.operator_cost();
        (matches, (having * pages_per_range).min(pages))
    } else {
        (rows_read.max(matches), pages_read)
    };
    cost_of_rows(planned, startup, total, given, pages_given)
}

/// How many ranges have the keys, by asking the index; `None` if they aren't known yet.
///
/// # Safety
/// It must be the index that is planned.
unsafe fn ranges_found(planned: &Planned, index: &Index, directory: &Directory) -> Option<f64> {
    let RangesColumn::Element(elements) = index.kind() else {
        return None;
    };
    let of_key = |key: &Key| {
        let (hasher, sought) =
            (elements.hasher_of(index.relation, key.asked_type).ok()?, key.sought());
        let stride = sought.len().div_ceil(KEYS_ASKED).max(1);
        // SAFETY: what is looked for in the index is of the type that the hasher is for.
        let hash = |key: &Element| unsafe { hasher.hash(*key) }.ok_or(());
        let asked = memory::try_collect(sought.iter().step_by(stride).map(hash)).ok()?;
        let found = ranges_having(index, directory, asked.iter())?;
        if asked.len() == sought.len() || found == 0.0 {
            return Some(found);
        }
        // Twice as many keys are in up to twice as many ranges, and in hardly more where a few
        // ranges have them all.
        let growth =
            (found / ranges_having(index, directory, asked.iter().step_by(2))?).clamp(1.0, 2.0);
        Some(found * growth.powf((sought.len() as f64 / asked.len() as f64).log2()))
    };
    let of_keys = || {
        planned
            .known_keys()?
            .iter()
            .map(of_key)
            .try_fold(f64::INFINITY, |least, found| Some(least.min(found?)))
    };
    // SAFETY: a number, and what is known of an index is in Rust's memory.
    unsafe { in_scratch(of_keys) }
}

/// How many ranges have one of these keys; `None` for damage.
fn ranges_having<'h>(
    index: &Index,
    directory: &Directory,
    hashes: impl Iterator<Item = &'h u64>,
) -> Option<f64> {
    let mut ranges: Vec<(u32, f64)> = Vec::new();
    let mut pages = index.pages();
    for &hash in hashes {
        let add = |range, weight| memory::push(&mut ranges, (range, weight));
        directory
            .sample(&mut pages, &Condition::Has(hash), TILES_ASKED, add)
            .ok()?;
    }
    ranges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    ranges.dedup_by_key(|(range, _)| *range);
    Some(ranges.iter().map(|(_, weight)| weight).sum())
}

/// Comparisons of a row with one of many values that hashing its parts is worth.
const COMPARISONS_PER_ROW: f64 = 4.0;
/// The share of ranges that a typical lookup in text reads unnecessarily.
const TYPICAL: f64 = 0.1;
/// Hashes that a typical lookup probes in a tile of which no range has all.
const TYPICAL_HASHES: f64 = 4.0;

fn cost_of_parts(planned: &Planned, known: Known) -> Cost {
    let (pages, rows) = (planned.table_pages.max(1.0), planned.table_rows.max(1.0));
    // SAFETY: the keys are those of a scan of this index.
    let condition =
        known.and_then(|(index, _)| unsafe { index.condition(&planned.known_keys()?) }.ok());
    let startup = planned.keys_cost();
    if condition.as_ref().is_some_and(Condition::is_unknown) {
        let total = startup + pages * planned.table_page_costs().1 + rows * planned.row_cost();
        return Cost { startup, total, selectivity: 1.0 };
    }
    let matches = planned.selectivity * rows;
    let matches = if condition.is_some() {
        matches
    } else {
        matches.min(HANDFUL * planned.searches)
    }
    .max(1.0);
    let hashing = cost_of_hashing(planned, known, condition.as_ref());
    let most = known.zip(condition.as_ref()).filter(|_| hashing.is_some());
    let most = most
        .and_then(|(known, condition)| most_matches(known, condition, pages))
        .unwrap_or(matches);
    let matches = matches.min(most.max(1.0));
    let (mean_pages, ranges, lookups) = expected(known, condition, pages, matches);
    // A range that is a part of a page is on one page.
    let pages_read = (ranges * mean_pages.max(1.0)).clamp(1.0, pages);
    let rows_read = (ranges * mean_pages).clamp(mean_pages.min(1.0), pages) * rows / pages;
    let fetched = planned.index_pages_read(lookups, planned.loops);
    let rows_read = rows_read.max(matches.min(rows));
    // PostgreSQL compares indexes for one condition by their own costs. What an exact one would not
    // read is a part of these: pages without a match, at the price that PostgreSQL has for a page
    // of so many, and their rows, or hashing all rows.
    let (given, pages_given) = (matches.min(rows_read), matches.min(pages_read));
    let (random, next) = planned.table_page_costs();
    let rows_cost =
        hashing.map_or((rows_read - given) * planned.row_cost(), |hashing| rows_read * hashing);
    let a_page = random - (random - next) * (pages_read / pages).sqrt();
    let total = fetched.min(planned.index_pages) * planned.random_page_cost()
        + lookups * OPERATORS_PER_PAGE * planned.operator_cost()
        + planned.table_pages_read(pages_read - pages_given) * a_page
        + rows_cost;
    if mean_pages >= 1.0 {
        return cost_of_rows(planned, startup, startup + total, given, pages_given);
    }
    // Each range has about one text out of line: a page, and one of the index by which it is found.
    // PostgreSQL charges nothing for these. So the cost of this scan is scaled as that of a
    // sequential scan is: by what PostgreSQL charges for one, as a share of what it takes together
    // with the texts.
    let scan = planned.table_pages * next + planned.table_rows * planned.row_cost();
    let coin = scan / (scan + planned.table_pages * (1.0 / mean_pages) * (next + next));
    let total = (total + ranges * (random + next)) * coin;
    cost_of_rows(planned, startup, startup + total, given * coin, pages_given * coin)
}

/// What it costs to hash the parts of a row, if a scan does so: a share of what a comparison costs,
/// which is one to PostgreSQL, however many values the operator takes at once.
fn cost_of_hashing(planned: &Planned, known: Known, condition: Option<&Condition>) -> Option<f64> {
    let alternatives = condition.map_or(planned.searches as usize, Alternatives::count);
    // Where pages are split the texts are out of line, which a scan doesn't hash.
    let can_hash = known.is_none_or(|(index, directory)| {
        index.kind().is_hashed_in_place() && directory.options.split.is_none()
    });
    let is_hashed =
        alternatives > FEW && can_hash && planned.is_on_column() && settings::HEAP_FILTER.get();
    is_hashed
        .then(|| planned.comparison_cost() * (COMPARISONS_PER_ROW / alternatives as f64).min(1.0))
}

/// How many rows match one of many alternatives at most, by a sample of them and of tiles.
/// PostgreSQL takes a value that it doesn't know for one that many rows have. Here it is a handful
/// for each time that a value would be in a range, if rows had it at random: once where few ranges
/// have it, and without limit where all have it.
fn most_matches(
    (index, directory): (&Index, &Directory),
    condition: &Condition,
    pages: f64,
) -> Option<f64> {
    const ASKED: usize = 32;
    let ranges = (pages / directory.options.mean_pages(pages)).ceil();
    let alternatives = Alternatives::of(condition.clone()).each;
    let stride = alternatives.len().div_ceil(ASKED).max(1);
    let mut times = 0.0;
    for alternative in alternatives.iter().step_by(stride) {
        let having = directory
            .ranges_expected(&mut index.pages(), alternative, TILES_ASKED)
            .ok()?;
        times -= (1.0 - having / ranges).max(0.0).ln();
    }
    Some(HANDFUL * times * ranges * stride as f64)
}

/// Pages that a range has, or a part of one; and ranges and pages of the index that a lookup is
/// expected to read.
fn expected(
    known: Known,
    condition: Option<Condition>,
    pages: f64,
    matches: f64,
) -> (f64, f64, f64) {
    let Some((index, directory)) = known else {
        return (8.0, pages / 8.0 * TYPICAL + matches, TYPICAL_HASHES);
    };
    let mean_pages = directory.options.mean_pages(pages);
    let all = (pages / mean_pages).ceil();
    let tiles = f64::from(directory.always_probed());
    let sampled = condition.and_then(|condition| {
        let ranges = directory
            .ranges_expected(&mut index.pages(), &condition, TILES_ASKED)
            .ok()?;
        Some((probes(&condition), ranges))
    });
    let ((in_vain, more), ranges) = match sampled {
        Some((probes, ranges)) if directory.tiles(Level::Zero) <= TILES_ASKED => (probes, ranges),
        // There is at least what is looked for.
        Some((probes, ranges)) => (probes, ranges.max(1.0)),
        None => {
            let share =
                if directory.options.is_flat { TYPICAL } else { directory.options.promised(0) };
            ((TYPICAL_HASHES, 0.0), matches + all * share)
        }
    };
    (mean_pages, ranges.min(all), tiles * in_vain + ranges * more)
}

/// Pages of a tile that are probed for a condition: if the tile has no range for which it may hold,
/// and what each range adds for which it may, for which all of the hashes are probed. Where all of
/// many must be there, a search that finds nothing ends after some of them: no range is left.
fn probes(condition: &Condition) -> (f64, f64) {
    let sum = |conditions: &[Condition]| {
        conditions
            .iter()
            .map(probes)
            .fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1))
    };
    match condition {
        Condition::Unknown => (0.0, 0.0),
        Condition::Has(_) => (1.0, 0.0),
        Condition::All(conditions) => {
            let (in_vain, more) = sum(conditions);
            let some = in_vain.min(TYPICAL_HASHES);
            (some, more + in_vain - some)
        }
        Condition::Any(conditions) => {
            let (in_vain, more) = sum(conditions);
            (in_vain, more / conditions.len().max(1) as f64)
        }
    }
}
