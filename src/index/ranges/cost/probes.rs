//! The index pages that a scan probes, and what they cost.

use crate::pg::method::planning::PlannedScan;
use pg_bloom_core::conditions::Condition;

/// How many operators cost as much as probing a page of the index: hashing a key, locking the page,
/// and reading ten rows of bits.
const OPERATORS_PER_PROBE: f64 = 50.0;
/// A row must meet several conditions, each on one hash or more. In a tile, the part of the index
/// with the bits of many ranges, they are looked up one after the other, until no range is left
/// that may meet all of them. If no range matches, this is typically so after this many conditions.
const CONDITIONS_WITHOUT_MATCH: usize = 4;
/// The pages of a tile without a match that are probed until its search ends, if each condition is
/// on one hash.
pub const PROBES_WITHOUT_MATCH: f64 = CONDITIONS_WITHOUT_MATCH as f64;

/// Returns what it costs to probe `pages_probed` index pages, of which `pages_read` must be read
/// because they aren't in PostgreSQL's cache.
pub fn cost(planned: &PlannedScan, pages_probed: f64, pages_read: f64) -> f64 {
    let reading = pages_read * planned.random_page_cost();
    let probing = pages_probed * OPERATORS_PER_PROBE * planned.operator_cost();
    reading + probing
}

/// How many index pages are probed for a condition on the hashes of a row.
///
/// A tile has the bits of many ranges. Each hash of the condition is looked up on one page of the
/// tile, which tells in what ranges it may be.
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
    /// | condition | `per_tile` | `per_match` |
    /// |---|---|---|
    /// | one hash | 1 page | 0 |
    /// | all of some conditions | sum over the first four | sum over all, plus the `per_tile` of the others |
    /// | any of some alternatives | sum over all | mean of all |
    /// | unknown: the scan returns the whole table | 0 | 0 |
    ///
    /// Example: a row must have each of six hashes. If no range of a tile matches, no range is left
    /// after four pages, and the search in the tile ends. If one matches, all six pages are probed:
    /// `per_tile` is 4, and `per_match` is 2.
    pub fn for_condition(condition: &Condition) -> Probes {
        match condition {
            Condition::Unknown => Probes::NONE,
            Condition::Has(_) => Probes { per_tile: 1.0, per_match: 0.0 },
            Condition::All(conditions) => {
                let num_first = conditions.len().min(CONDITIONS_WITHOUT_MATCH);
                let first = Probes::sum(&conditions[..num_first]);
                let all = Probes::sum(conditions);
                // The other conditions are only probed in a tile where a range matches.
                let pages_of_others = all.per_tile - first.per_tile;
                Probes {
                    per_tile: first.per_tile,
                    per_match: all.per_match + pages_of_others,
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
            let probes = Probes::for_condition(condition);
            sum.per_tile += probes.per_tile;
            sum.per_match += probes.per_match;
        }
        sum
    }
}
