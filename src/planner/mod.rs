//! Estimates for the planner: how many rows a condition `filter @> element` keeps, and what probing
//! a stored filter costs.
//!
//! | module | what it knows |
//! |---|---|
//! | `statistics` | what the statistics of a column say about a filter |
//! | `requests` | the planner's requests for a cost, for a number of rows, and for a condition on an index |
//!
//! # Rows
//!
//! If the filter is known when the query is planned, and the column of elements was analysed, the
//! filter itself is probed: for the column's most common values, and for the bounds of its
//! histogram, which are a sample of the other values.
//!
//! ```text
//! share of rows = share of the common values that are in the filter
//!               + share of other values · min(share of the bounds that are in it, N / distinct + p)
//! ```
//!
//! where N is the number of elements in the filter, and p its present rate: of the column's
//! distinct values at most N can be in the filter, and a share p of the others seems to be. In all
//! other cases, such as a filter from a table or of another kind than the column, a tenth of the
//! rows is expected.
//!
//! Example: a filter has 1,000 elements and a rate of 0.01. The column has 5,000 distinct values,
//! no NULL, two common values with 5 % and 3 % of the rows, of which the first is in the filter,
//! and a histogram, of whose bounds 20 % are in it.
//!
//! ```text
//! 0.05 + 0.92 · min(0.20, 1,000 / 5,000 + 0.01) = 0.234
//! ```
//!
//! # Cost
//!
//! A call costs what the script declares, unless the filter is a column whose values are out of
//! line. In that case it costs more by, for `p` pages of TOAST per row,
//!
//! ```text
//! a probe, p > 2 (two slices)                   2 · (random_page_cost + 300 · cpu_operator_cost)
//! a probe, p ≤ 2; what reads the whole value    p · seq_page_cost + (300 + 150 p) · cpu_operator_cost
//! ```
//!
//! since values of consecutive rows lie one after the other. A slice of a cached value took 8 µs, a
//! page 3 to 4.5 µs, where PostgreSQL's cheapest operators, which cost `cpu_operator_cost`, take 25
//! ns.
//!
//! Example: a filter of 1,600 pages costs 2 · (4 + 300 · 0.0025) = 9.5 to probe, and 1,600 · 1 +
//! 240,300 · 0.0025 = 2,200.75 to read.

mod requests;
mod statistics;

use statistics::{DEFAULT_SHARE, share_of_clause};

use crate::filter_type::FilterType::{self, Bloom, CountingBloom};
use crate::pg::call::{Call, Outcome};
use pgrx::pg_sys::{self, Datum};

/// The processor's work to fetch a slice of a value out of line, as a multiple of
/// `cpu_operator_cost`.
const OPERATORS_PER_SLICE: f64 = 300.0;
/// The processor's work to fetch a page more of a value out of line, in the same unit.
const OPERATORS_PER_PAGE: f64 = 150.0;
/// The most pages of a value that a probe fetches whole.
const MOST_PAGES_FETCHED_WHOLE: f64 = 2.0;
/// How many slices a probe fetches of a longer value: its start, and the bits of the element.
const SLICES_PER_PROBE: f64 = 2.0;

/// Implements the restriction estimators of the operators between a filter and an element: returns
/// the share of rows that a condition such as `filter @> element` keeps, from 0 to 1. Argument
/// `filter` of the operator, 0 or 1, is the filter, and the other one the element.
///
/// Never fails itself, since a query that is planned may never be executed.
///
/// # Safety
/// The arguments must be those of a restriction estimator.
unsafe fn selectivity(call: &Call, filter_type: FilterType, filter: usize) -> Outcome {
    // SAFETY: the caller promises the arguments of a restriction estimator.
    let share = unsafe { share_of_clause(call, filter_type, filter) };
    Ok(Some(Datum::from(share.unwrap_or(DEFAULT_SHARE).to_bits())))
}

/// Returns the cost, in the planner's units, of fetching all of a value out of line that has
/// `pages` pages.
fn cost_of_whole_value(pages: f64) -> f64 {
    // SAFETY: settings of the session.
    let (page_cost, operator_cost) = unsafe { (pg_sys::seq_page_cost, pg_sys::cpu_operator_cost) };
    let operators = OPERATORS_PER_SLICE + pages * OPERATORS_PER_PAGE;
    pages * page_cost + operators * operator_cost
}

/// Returns the cost, in the planner's units, of fetching what one probe needs of a filter out of
/// line that has `pages` pages: two slices, parts of the value, or all of a short one.
fn cost_of_probe(pages: f64) -> f64 {
    if pages <= MOST_PAGES_FETCHED_WHOLE {
        return cost_of_whole_value(pages);
    }
    // SAFETY: settings of the session.
    let (page_cost, operator_cost) =
        unsafe { (pg_sys::random_page_cost, pg_sys::cpu_operator_cost) };
    SLICES_PER_PROBE * (page_cost + OPERATORS_PER_SLICE * operator_cost)
}

/// Implements the support functions of SQL functions that have a filter as an argument. Argument 0
/// is a request of the planner, a node: for a condition by which an index finds the rows of a call,
/// or for the cost of a call. Returns the answer; a null pointer, by which the planner uses its
/// defaults, for another request.
///
/// `cost_of_fetching` returns the cost of fetching what a call needs of a filter of so many pages.
///
/// # Safety
/// Argument 0 must be a node.
unsafe fn support(call: &Call, cost_of_fetching: fn(f64) -> f64) -> Outcome {
    // SAFETY: the caller promises that argument 0 is a node.
    let answer = unsafe {
        requests::answer_index_request(call)
            .or_else(|| requests::answer_cost_request(call, cost_of_fetching))
    };
    Ok(Some(answer.unwrap_or(Datum::null())))
}

/// Answers a request to the support function of `bloom_find_all`, as [`support`] does.
///
/// # Safety
/// Argument 0 must be a node.
unsafe fn find_support(call: &Call) -> Outcome {
    // SAFETY: the caller promises that argument 0 is a node.
    let answer = unsafe { requests::answer_rows_request(call) };
    Ok(Some(answer.unwrap_or(Datum::null())))
}

// SAFETY of all: the script declares them with such arguments.
pg_functions! {
    bloom_contains_selectivity => |call| unsafe { selectivity(call, Bloom, 0) };
    bloom_contained_selectivity => |call| unsafe { selectivity(call, Bloom, 1) };
    counting_bloom_contains_selectivity => |call| unsafe { selectivity(call, CountingBloom, 0) };
    counting_bloom_contained_selectivity => |call| unsafe { selectivity(call, CountingBloom, 1) };
    bloom_join_selectivity => |_| Ok(Some(Datum::from(DEFAULT_SHARE.to_bits())));
    bloom_probe_support => |call| unsafe { support(call, cost_of_probe) };
    bloom_whole_support => |call| unsafe { support(call, cost_of_whole_value) };
    bloom_find_support => |call| unsafe { find_support(call) };
}
