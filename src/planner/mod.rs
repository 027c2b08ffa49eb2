//! Estimates for the planner: how many rows `filter @> element` keeps, and what asking a stored
//! filter costs.
//!
//! | module | what it knows |
//! |---|---|
//! | `statistics` | what the statistics of a column say about a filter |
//! | `requests` | the planner's requests for a cost, for a number of rows, and for a condition on an index |
//!
//! # Rows
//!
//! With a filter that is known when the query is planned, and a column of elements that was
//! analysed, the filter itself is asked: about the column's most common values, and about the
//! bounds of its histogram, which are a sample of the others.
//!
//! ```text
//! share of rows = common values that are in the filter
//!               + other values · min(share of the histogram's bounds that are in it, N / distinct + p)
//! ```
//!
//! with N elements in the filter and p its present rate: no more of the column's distinct values
//! can be in it. In all other cases, as with a filter from a table, or of another kind than the
//! column, a tenth of the rows is expected.
//!
//! # Cost
//!
//! A call costs what the script declares, unless the filter is a column whose values are out of
//! line. Then, for `p` pages of TOAST per row,
//!
//! ```text
//! a probe, p > 2 (two slices)                   2 · (random_page_cost + 300 · cpu_operator_cost)
//! a probe, p ≤ 2; what reads the whole value    p · seq_page_cost + (300 + 150 p) · cpu_operator_cost
//! ```
//!
//! since values of consecutive rows lie one after the other. A slice of a cached value took 8 µs, a
//! page 3 to 4.5 µs, where PostgreSQL's cheapest operators, which cost `cpu_operator_cost`, take 25
//! ns.

mod requests;
mod statistics;

use statistics::{DEFAULT, share_of_clause};

use crate::filter_type::FilterType::{self, Bloom, CountingBloom};
use crate::pg::call::{Call, Outcome};
use pgrx::pg_sys::{self, Datum};

/// What fetching a slice out of line costs, and a page of it, in units of `cpu_operator_cost`.
const SLICE_COST: f64 = 300.0;
const PAGE_COST: f64 = 150.0;
/// Pages up to which a value is fetched whole to be probed for one element.
const SHORT_PAGES: f64 = 2.0;

/// The share of rows that a restriction keeps whose argument `filter` is one. Never an error: what
/// is planned may never be executed.
///
/// # Safety
/// The arguments must be those of a restriction estimator.
unsafe fn selectivity(call: &Call, filter_type: FilterType, filter: usize) -> Outcome {
    // SAFETY: promised by the caller.
    let share = unsafe { share_of_clause(call, filter_type, filter) };
    Ok(Some(Datum::from(share.unwrap_or(DEFAULT).to_bits())))
}

fn whole_value(pages: f64) -> f64 {
    // SAFETY: reading settings of the process.
    let (page, operator) = unsafe { (pg_sys::seq_page_cost, pg_sys::cpu_operator_cost) };
    pages * page + (SLICE_COST + pages * PAGE_COST) * operator
}

/// The cost of fetching the slices of a value that one probe needs.
fn slices(pages: f64) -> f64 {
    if pages <= SHORT_PAGES {
        return whole_value(pages);
    }
    // SAFETY: reading settings of the process.
    let (page, operator) = unsafe { (pg_sys::random_page_cost, pg_sys::cpu_operator_cost) };
    2.0 * (page + SLICE_COST * operator)
}

/// A support function of a function that fetches values at the cost of `fetch`.
///
/// # Safety
/// Argument 0 must be a node.
unsafe fn support(call: &Call, fetch: fn(f64) -> f64) -> Outcome {
    // SAFETY: promised by the caller.
    let answer = unsafe { requests::index_condition(call).or_else(|| requests::cost(call, fetch)) };
    Ok(Some(answer.unwrap_or(Datum::null())))
}

// SAFETY of all: their arguments are declared so.
pg_functions! {
    bloom_contains_selectivity => |call| unsafe { selectivity(call, Bloom, 0) };
    bloom_contained_selectivity => |call| unsafe { selectivity(call, Bloom, 1) };
    counting_bloom_contains_selectivity => |call| unsafe { selectivity(call, CountingBloom, 0) };
    counting_bloom_contained_selectivity => |call| unsafe { selectivity(call, CountingBloom, 1) };
    bloom_join_selectivity => |_| Ok(Some(Datum::from(DEFAULT.to_bits())));
    bloom_probe_support => |call| unsafe { support(call, slices) };
    bloom_whole_support => |call| unsafe { support(call, whole_value) };
    bloom_find_support => |call| Ok(Some(unsafe { requests::rows(call) }.unwrap_or(Datum::null())));
}
