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
/// A lookup in a typical index reads the metapage, and one of this many other pages.
const TYPICAL_PAGES_PER_PAGE_READ: f64 = 100.0;

/// Estimates the cost of a bitmap scan of an index over a column of filters, for the planner, and
/// replaces the conditions of its path by others that mean the same: see [`replace_conditions`].
///
/// A lookup of one key reads a fixed number of index pages, each of which has bits of up to 127
/// filters. How many rows match is the planner's own estimate. An index that can't be read, since
/// it is damaged or only imagined by a tool like hypopg, gets the cost of a typical one: it must
/// not keep the table's queries from being planned, and the scan reports the damage.
pub fn estimate(planned: &PlannedScan) -> Cost {
    let directory = planned
        .index()
        .and_then(|opened| FiltersIndex::open(opened.relation()).ok()?.directory().ok());

    // Plans that PostgreSQL keeps rely on this. They stay right: before a filter with elements of
    // another type gets into such an index, its insertion makes all sessions plan their queries of
    // the table again.
    let filters = match &directory {
        Some(directory) if has_only_text(directory) => IndexedFilters::OnlyText,
        _ => IndexedFilters::AnyKind,
    };
    replace_conditions(planned, filters);

    let pages_per_lookup = match &directory {
        Some(directory) => directory.pages_per_lookup() as f64,
        None => 1.0 + planned.index_pages / TYPICAL_PAGES_PER_PAGE_READ,
    };
    let pages_read = planned.index_pages_read(pages_per_lookup, planned.num_values * planned.loops);
    let startup = planned.keys_cost();
    let reading_cost = pages_read * planned.random_page_cost();
    let probing_cost =
        pages_per_lookup * planned.num_values * OPERATORS_PER_PAGE * planned.operator_cost();
    Cost {
        startup,
        total: startup + reading_cost + probing_cost,
        selectivity: planned.selectivity,
    }
}

/// Which filters an index has.
#[derive(Clone, Copy, PartialEq)]
enum IndexedFilters {
    /// Filters whose elements are texts, and no others: each can be probed for a text.
    OnlyText,
    /// Perhaps filters with elements of other types, for which a probe for a text is an error.
    AnyKind,
}

/// Returns whether an index has filters, and only filters of text.
fn has_only_text(directory: &Directory) -> bool {
    directory.group(0).is_some() && directory.groups().all(|(_, group)| is_of_text(group))
}

/// Replaces the conditions by which a planned scan asks an index over filters, by others that find
/// the same rows. Does nothing if the operator class isn't the extension's.
///
/// ```text
/// query                   WHERE name = 'url' AND filter @> 'x'
/// the index is asked by   filter @=> bloom_key('x')               instead of   filter @> 'x'
/// PostgreSQL evaluates    name = 'url', then filter @> 'x'        on each row that is found
/// ```
///
/// The operator `@=>` finds the rows that `@>` finds. But of a row that an index has found by `@>`,
/// PostgreSQL would *recheck* that condition before all others, and a probe of a filter with
/// elements of another type is an error. Users exclude such filters by a cheaper condition, here
/// `name = 'url'`, which must come first. Rows that are found by `@=>` aren't rechecked. PostgreSQL
/// evaluates the query's own conditions on them, in the order of their costs.
///
/// | condition of the query | the index is asked by |
/// |---|---|
/// | `filter @> 'x'`, if all filters are of text: no probe can fail | the same condition |
/// | `filter @> 'x'` | `filter @=> bloom_key('x')` |
/// | `filter @=> key`, written by a user | `filter @=> key`, in a way in which PostgreSQL takes it for another condition |
///
/// About the last line: PostgreSQL doesn't evaluate a condition of the query that is equal to one
/// by which the index is asked. It relies on the recheck, which these rows don't get. `filters`
/// says whether all filters of the index are of text.
fn replace_conditions(planned: &PlannedScan, filters: IndexedFilters) {
    // A function of the extension: others are recognised by being in its schema.
    let (family, Some(own_function)) = planned.support_function(KEY_OF_ELEMENT) else {
        return;
    };
    let Some(key_condition) = KeyCondition::in_operator_family(family, own_function) else {
        return;
    };
    let replacement = |condition: &Comparison| {
        let &Comparison { operator, is_array, left, right, collation } = condition;
        // SAFETY: an operator of the operator class has a filter on its left, and on its right a
        // key, an element, or an array of keys or elements.
        unsafe {
            let is_written_by_user = operator == key_condition.operator;
            if is_written_by_user {
                // The same value in another node makes another condition of it.
                let same_key = collated(right, exprCollation(right));
                return Some(key_condition.for_key(left, same_key, is_array));
            }

            let function = operators::function_of(operator);
            let probe_can_fail = filters != IndexedFilters::OnlyText;
            // `bloom_contains` is the function of `@>`.
            if probe_can_fail && catalog::is_in_schema_of(function, own_function, c"bloom_contains")
            {
                Some(key_condition.for_element(left, right, is_array, collation))
            } else {
                None
            }
        }
    };
    // SAFETY: the replacements are conditions of the index's operator class.
    unsafe { planned.ask_instead(replacement) };
}
