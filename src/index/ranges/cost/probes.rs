//! The index pages that a scan probes, and what they cost.

use crate::pg::method::planning::Planned;
use pg_bloom_core::conditions::Condition;

/// How many operators cost as much as probing a page of the index: hashing a key, locking the page,
/// and reading ten rows of bits.
const OPERATORS_PER_PROBE: f64 = 50.0;
/// After this many conditions, each on one hash or more, typically no range of a tile is left that
/// may meet all of them, so the search in the tile ends.
const CONDITIONS_IN_VAIN: usize = 4;
/// The pages of a tile without a match that are probed until its search ends, if each condition is
/// on one hash.
pub const PROBES_IN_VAIN: f64 = CONDITIONS_IN_VAIN as f64;

/// Returns what it costs to probe `pages_probed` index pages, of which `pages_read` must be read
/// because they aren't in PostgreSQL's cache.
pub fn cost(planned: &Planned, pages_probed: f64, pages_read: f64) -> f64 {
    let reading = pages_read * planned.random_page_cost();
    let probing = pages_probed * OPERATORS_PER_PROBE * planned.operator_cost();
    reading + probing
}

/// How many index pages are probed for a condition on the hashes of a row.
///
/// A tile has the bits of many ranges. Each hash of the condition is looked up on one page of the
/// tile, which tells in what ranges it may be.
///
/// Example: a condition that needs six hashes. In a tile without a matching range the search ends
/// after four probes in the mean: no range has all hashes so far. In a tile with a matching range
/// all six are probed. So `per_tile` is 4, and `per_match` is the other 2.
#[derive(Clone, Copy)]
pub struct Probes {
    /// Pages probed of a tile without a matching range.
    pub per_tile: f64,
    /// Further pages for each matching range.
    pub per_match: f64,
}

impl Probes {
    pub const NONE: Probes = Probes { per_tile: 0.0, per_match: 0.0 };

    /// Estimates how many pages of the index a lookup probes for a condition, by the form of the
    /// condition alone: `per_tile` in each tile that it searches, and `per_match` more for each
    /// range that may match. A *range* is some neighbouring pages of the table; a *tile* is a part
    /// of the index that has the Bloom filters of many ranges.
    ///
    /// One hash takes one page of a tile. Of conditions that must all hold, the first four are
    /// probed in each tile, and the others only where a range is left that may match. Of
    /// alternatives, all are probed in each tile, and a range that may match adds the mean of what
    /// the alternatives add. An unknown condition probes nothing: it returns the whole table.
    pub fn of(condition: &Condition) -> Probes {
        match condition {
            Condition::Unknown => Probes::NONE,
            Condition::Has(_) => Probes { per_tile: 1.0, per_match: 0.0 },
            Condition::All(conditions) => {
                let complete = Probes::sum(conditions);
                // If no range of a tile matches, the search finds that out after the first few
                // conditions and skips the others. If one matches, all conditions are probed. A
                // condition of several alternatives is only known to fail when all were probed.
                let first = Probes::sum(&conditions[..conditions.len().min(CONDITIONS_IN_VAIN)]);
                let saved_without_match = complete.per_tile - first.per_tile;
                Probes {
                    per_tile: first.per_tile,
                    per_match: complete.per_match + saved_without_match,
                }
            }
            Condition::Any(alternatives) => {
                let all = Probes::sum(alternatives);
                let count = alternatives.len().max(1) as f64;
                Probes {
                    per_tile: all.per_tile,
                    // A matching range typically meets only one of the alternatives.
                    per_match: all.per_match / count,
                }
            }
        }
    }

    /// Returns the sums of `per_tile` and `per_match` over these conditions.
    fn sum(conditions: &[Condition]) -> Probes {
        let mut sum = Probes::NONE;
        for condition in conditions {
            let probes = Probes::of(condition);
            sum.per_tile += probes.per_tile;
            sum.per_match += probes.per_match;
        }
        sum
    }
}
