//! The cost of a bitmap scan: for each key, one page of each tile and the row pages. How many rows
//! match is the planner's own estimate, and no other rows of the table are read.
//!
//! # The order in which conditions are evaluated
//!
//! A probe of a filter of another key kind is an error. Users exclude such filters by another
//! condition: `name = 'url' AND filter @> 'x'`. In a sequential scan PostgreSQL evaluates the
//! cheaper condition first, so that works. In a bitmap scan it rechecks the conditions that the
//! index was asked by before all others, and the query would fail.
//!
//! So the index is asked by another operator, `@=>`, in place of `@>`. PostgreSQL doesn't recheck
//! rows that are found by it, and evaluates `@>` itself on each of them, in the order of the costs.
//!
//! If all filters are of text, no probe can fail, and the index is asked by `@>` itself. Then rows
//! that were found by all bits of a filter needn't be probed again: at a rate of 1 % these are one
//! in a hundred of the table.
//!
//! PostgreSQL calls no support function for operators of the operator class, nor for `ANY`. So the
//! conditions of a path are replaced when its cost is asked for. If a user writes `@=>`, the
//! condition is made unequal to itself, so that PostgreSQL evaluates it, too.

use super::column::{FiltersIndex, is_of_text};
use crate::index::kind::Cost;
use crate::key_condition::{KEY_OF_ELEMENT, KeyCondition};
use crate::pg::call::nodes::collated;
use crate::pg::catalog::{self, operators};
use crate::pg::method::planning::{Comparison, PlannedScan};
use pg_bloom_core::index::filters::Directory;
use pgrx::pg_sys::exprCollation;

/// Asking the 127 filters that a page has bits of takes as long as evaluating this many operators.
const OPERATORS_PER_PAGE: f64 = 60.0;
/// Of this number of pages of a typical index a lookup reads one, besides the metapage.
const PAGES_OF_TYPICAL_INDEX_PER_READ: f64 = 100.0;

/// Estimates the cost of a bitmap scan of an index over a column of filters, for the planner, and
/// replaces the conditions of its path by others that mean the same: see [`replace_conditions`].
///
/// A lookup of one key reads a fixed number of index pages, each of which has bits of up to 127
/// filters. How many rows match is the planner's own estimate. An index that can't be read, since
/// it is damaged or only imagined by a tool like hypopg, gets the cost of a typical one.
pub fn estimate(planned: &PlannedScan) -> Cost {
    // A damaged index must not keep the table's queries from being planned: the scan reports the
    // damage.
    let directory = planned
        .index()
        .and_then(|opened| FiltersIndex::open(opened.relation()).ok()?.directory().ok());
    let filters = match &directory {
        // `insert` makes PostgreSQL plan again before this stops being true.
        Some(directory) if has_only_text(directory) => FiltersAsked::OnlyText,
        _ => FiltersAsked::AnyKind,
    };
    replace_conditions(planned, filters);

    let pages_per_lookup = match &directory {
        Some(directory) => directory.pages_per_lookup() as f64,
        None => 1.0 + planned.index_pages / PAGES_OF_TYPICAL_INDEX_PER_READ,
    };
    let pages_read = planned.index_pages_read(pages_per_lookup, planned.num_values * planned.loops);
    let startup = planned.keys_cost();
    let total = startup
        + pages_read * planned.random_page_cost()
        + pages_per_lookup * planned.num_values * OPERATORS_PER_PAGE * planned.operator_cost();
    Cost { startup, total, selectivity: planned.selectivity }
}

/// The filters that a scan may ask.
#[derive(Clone, Copy, PartialEq)]
enum FiltersAsked {
    OnlyText,
    AnyKind,
}

/// Returns whether an index has filters, and only filters of text.
fn has_only_text(directory: &Directory) -> bool {
    directory.group(0).is_some() && directory.groups().all(|(_, group)| is_of_text(group))
}

/// Replaces the conditions by which a planned scan asks an index over filters, by others that find
/// the same rows.
///
/// ```text
/// query          WHERE name = 'url' AND filter @> 'x'
/// asked before   filter @> 'x'
/// asked now      filter @=> bloom_key('x')
/// ```
///
/// A probe of a filter with elements of another type raises an error, and users exclude such
/// filters by a cheaper condition, here `name = 'url'`. PostgreSQL rechecks a condition that the
/// index was asked by before all others: `@>` would be evaluated for filters that `name = 'url'`
/// excludes. Of a query whose index is asked by `@=>`, PostgreSQL evaluates all conditions in the
/// order of their costs: `name = 'url'`, then `filter @> 'x'`.
///
/// | condition of the query | the index is asked by |
/// |---|---|
/// | `filter @> 'x'` | `@=>`; by `@>` if all filters are of text, since no probe can fail then |
/// | `filter @=> key` | `@=>` with the same key in another node, which PostgreSQL takes for another condition |
///
/// PostgreSQL leaves a condition of the query that equals one of the index to the recheck, which
/// rows found by `@=>` don't get. So `filter @=> key` must not be equal to itself.
///
/// Does nothing if the operator class isn't the extension's.
fn replace_conditions(planned: &PlannedScan, filters: FiltersAsked) {
    let (family, Some(own_function)) = planned.support_function(KEY_OF_ELEMENT) else {
        return;
    };
    let Some(key_condition) = KeyCondition::of(family, own_function) else {
        return;
    };
    let replacement = |condition: &Comparison| {
        let &Comparison { operator, is_array, left, right, collation } = condition;
        // SAFETY: an operator of the operator class has a filter on its left, and on its right a
        // key, an element, or an array of keys or elements.
        unsafe {
            if operator == key_condition.operator {
                // The same value as another node, so that PostgreSQL doesn't take the query's
                // condition for one that the index has evaluated.
                let same_key = collated(right, exprCollation(right));
                return Some(key_condition.of_key(left, same_key, is_array));
            }
            // Only `bloom_contains`, the function of `@>`, is replaced, and only if a probe may
            // fail.
            let function = operators::function_of(operator);
            if filters == FiltersAsked::OnlyText
                || !catalog::is_in_schema_of(function, own_function, c"bloom_contains")
            {
                return None;
            }
            Some(key_condition.of_element(left, right, is_array, collation))
        }
    };
    // SAFETY: the replacements are conditions of the index's operator class.
    unsafe { planned.ask_instead(replacement) };
}
