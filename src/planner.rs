//! What the planner is told: how many rows `filter @> element` keeps.
//!
//! With a filter that is known when the query is planned, and a column of elements that was analysed, the filter itself is
//! asked: about the column's most common values, and about the bounds of its histogram, which are a sample of the others.
//!
//! ```text
//! share of rows = common values that are in the filter
//!               + other values · min(share of the histogram's bounds that are in it, N / distinct + p)
//! ```
//!
//! with N elements in the filter and p its present rate: no more of the column's distinct values can be in it. In all
//! other cases, as with a filter from a table, a tenth of the rows is expected.

use crate::datum::{Asked, Call, Side, statistics};
use crate::error::Failure;
use pg_bloom_core::counting::Counting;
use pg_bloom_core::{View, estimate};
use pgrx::pg_sys::Datum;

type Outcome = Result<Option<Datum>, Failure>;

/// The share of rows where nothing is known.
const DEFAULT: f64 = 0.1;
/// From this many bounds on a histogram is a fair sample by itself.
const FAIR_SAMPLE: f64 = 100.0;

/// The largest share of so many distinct values that may be in the filter with these stored bytes.
type MostOf = fn(&[u8], f64) -> Result<f64, Failure>;

fn selectivity(call: &Call, filter: Side, most_of: MostOf) -> Result<f64, Failure> {
    match statistics(call, filter)? {
        None => Ok(DEFAULT),
        Some(Asked::Null) => Ok(0.0),
        Some(Asked::Column { filter, common_found, common, nulls, distinct, bounds }) => {
            let most = match distinct {
                Some(distinct) => most_of(filter.bytes(), distinct)?,
                None => 1.0,
            };
            let unknown = if distinct.is_some() { most } else { DEFAULT };
            let others = match bounds {
                Some((found, size)) => {
                    let size = f64::from(size);
                    // A share that the sample is too small to show is half of one bound.
                    let seen = found.max(0.5 / size);
                    let weight = (size / FAIR_SAMPLE).min(1.0);
                    (weight * seen + (1.0 - weight) * unknown).min(most)
                }
                None => unknown,
            };
            Ok((common_found + (1.0 - nulls - common).max(0.0) * others).clamp(0.0, 1.0))
        }
    }
}

fn most_of_view(filter: &View<'_>, distinct: f64) -> f64 {
    (estimate::cardinality(filter) / distinct + estimate::current_fpr(filter)).min(1.0)
}

fn most_of_bloom(filter: &[u8], distinct: f64) -> Result<f64, Failure> {
    Ok(most_of_view(&View::parse_trusted(filter)?, distinct))
}

fn most_of_counting_bloom(filter: &[u8], distinct: f64) -> Result<f64, Failure> {
    Ok(Counting::parse_trusted(filter)?.with_bits(|view| most_of_view(view, distinct)))
}

/// `bloom_contains_selectivity`, of `filter @> element`.
fn contains(call: &Call) -> Outcome {
    Ok(Some(result(selectivity(call, Side::Left, most_of_bloom)?)))
}

/// `bloom_contained_selectivity`, of `element <@ filter`.
fn contained(call: &Call) -> Outcome {
    Ok(Some(result(selectivity(call, Side::Right, most_of_bloom)?)))
}

/// `counting_bloom_contains_selectivity`, of `filter @> element`.
fn counting_contains(call: &Call) -> Outcome {
    Ok(Some(result(selectivity(call, Side::Left, most_of_counting_bloom)?)))
}

/// `counting_bloom_contained_selectivity`, of `element <@ filter`.
fn counting_contained(call: &Call) -> Outcome {
    Ok(Some(result(selectivity(call, Side::Right, most_of_counting_bloom)?)))
}

/// `bloom_join_selectivity`, where both come from tables.
fn join(_: &Call) -> Outcome {
    Ok(Some(result(DEFAULT)))
}

fn result(share: f64) -> Datum {
    Datum::from(share.to_bits())
}

pg_functions! {
    bloom_contains_selectivity => contains;
    bloom_contained_selectivity => contained;
    counting_bloom_contains_selectivity => counting_contains;
    counting_bloom_contained_selectivity => counting_contained;
    bloom_join_selectivity => join;
}
