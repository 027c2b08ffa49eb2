//! What a bitmap scan of an index over parts costs.
//!
//! Where the planner knows what is asked, a sample of tiles is asked how many ranges may match: no statistics of
//! PostgreSQL knows that. Otherwise a typical lookup is assumed, which finds a handful of rows: PostgreSQL then expects
//! a fixed share of the table, which would be rows in all ranges. A lookup that the index can't answer reads the whole
//! table, and costs more than a sequential scan. As for an index over keys, reading and comparing what does not match
//! is a part of the index's cost.

use super::column::Index;
use super::scan;
use crate::index::keys::cost::{HANDFUL, OPERATORS_PER_PAGE, cost_of_rows};
use crate::index::kind::Cost;
use crate::pg::method::planning::Planned;
use pg_bloom_core::index::keys::Level;
use pg_bloom_core::parts::Condition;

/// Tiles that are asked.
const SAMPLE: u32 = 8;
/// The share of ranges that a typical lookup in text reads unnecessarily.
const TYPICAL: f64 = 0.1;
/// Hashes that a typical lookup asks for.
const TYPICAL_HASHES: f64 = 4.0;

/// What a lookup is expected to read.
struct Expected {
    /// Ranges of the table.
    ranges: f64,
    /// Pages of the index.
    pages: f64,
}

/// What a scan costs.
pub fn estimate(planned: &Planned) -> Cost {
    let (pages, rows) = (planned.table_pages.max(1.0), planned.table_rows.max(1.0));
    let opened = planned.index();
    let index = opened.as_ref().and_then(|opened| Index::of(opened.relation()).ok());
    // SAFETY: the keys are those of a scan of this index.
    let condition = index.as_ref().and_then(|index| unsafe { scan::condition(index, &planned.known_keys()?) }.ok());
    let startup = planned.keys_cost();
    if condition.as_ref().is_some_and(Condition::is_unknown) {
        let total = startup + pages * planned.table_page_costs().1 + rows * planned.row_cost();
        return Cost { startup, total, selectivity: 1.0 };
    }
    let matches = planned.selectivity * rows;
    let matches = if condition.is_some() { matches } else { matches.min(HANDFUL * planned.searches) }.max(1.0);
    let (pages_per_range, Expected { ranges, pages: lookups }) = expected(index.as_ref(), condition, pages, matches);
    let pages_read = (ranges * pages_per_range).clamp(1.0, pages);
    let fetched = planned.index_pages_read(lookups, planned.loops);
    let rows_read = (pages_read * rows / pages).max(matches.min(rows));
    // PostgreSQL compares indexes for one condition by their own costs. What an exact one would not read is a part of
    // these: pages without a match, at the price that PostgreSQL has for a page of so many, and their rows.
    let (given, pages_given) = (matches.min(rows_read), matches.min(pages_read));
    let (random, next) = planned.table_page_costs();
    let a_page = random - (random - next) * (pages_read / pages).sqrt();
    let total = startup
        + fetched.min(planned.index_pages) * planned.random_page_cost()
        + lookups * OPERATORS_PER_PAGE * planned.operator_cost()
        + planned.table_pages_read(pages_read - pages_given) * a_page
        + (rows_read - given) * planned.row_cost();
    cost_of_rows(planned, startup, total, given, pages_given)
}

/// Pages per range, and what a lookup reads. A damaged index must not keep the table's queries from being planned: the
/// scan says what is wrong.
fn expected(index: Option<&Index>, condition: Option<Condition>, pages: f64, matches: f64) -> (f64, Expected) {
    let directory = index.and_then(|index| index.directory().ok());
    let Some((index, directory)) = index.zip(directory) else {
        return (8.0, Expected { ranges: pages / 8.0 * TYPICAL + matches, pages: TYPICAL_HASHES });
    };
    let pages_per_range = f64::from(directory.options.pages_per_range);
    let all = (pages / pages_per_range).ceil();
    let tiles = f64::from(directory.always_probed());
    let sampled = condition.and_then(|condition| {
        let ranges = directory.ranges_expected(&mut index.pages(), &condition, SAMPLE).ok()?;
        Some((probes(&condition), ranges))
    });
    let (probes, ranges) = match sampled {
        Some((probes, ranges)) if directory.tiles(Level::Zero) <= SAMPLE => (probes, ranges),
        // There is at least what is looked for.
        Some((probes, ranges)) => (probes, ranges.max(1.0)),
        None => {
            let in_vain = if directory.options.is_flat { TYPICAL } else { directory.options.promised(0) };
            (TYPICAL_HASHES, matches + all * in_vain)
        }
    };
    (pages_per_range, Expected { ranges: ranges.min(all), pages: tiles * probes })
}

/// Pages of a tile that are probed for a condition. Where all of many hashes must be there, few tiles are probed for
/// more than some of them: nothing is left by then.
fn probes(condition: &Condition) -> f64 {
    match condition {
        Condition::Unknown => 0.0,
        Condition::Has(_) => 1.0,
        Condition::All(conditions) => conditions.iter().map(probes).sum::<f64>().min(TYPICAL_HASHES),
        Condition::Any(conditions) => conditions.iter().map(probes).sum(),
    }
}
