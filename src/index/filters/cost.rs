//! What a bitmap scan costs: a page of each tile and the row pages, for each key. Which rows match
//! is the planner's own estimate; none but these is read of the table.
//!
//! # What is evaluated when
//!
//! PostgreSQL rechecks a condition by an operator of the operator class before all others, and
//! evaluates a condition that another one stands for in the order of the conditions' costs. The
//! first breaks queries which exclude filters of other kinds, whose probe is an error, by another
//! condition: `name = 'url' AND filter @> 'x'`. So the index is asked by `@=>`, and no row that is
//! found by it is rechecked: what it stands for is evaluated on all of them. Where all filters are
//! of text it is asked by `@>` itself, so that rows which are found by a filter's own bits need not
//! be probed: at a rate of 1 % that is one in a hundred of the table.
//!
//! PostgreSQL asks no support function about operators of the operator class, nor about `ANY`. So
//! the conditions of a path are replaced when its cost is asked for. `@=>` that a user writes is
//! made unequal to itself, so that it stands for itself and is evaluated, too.

use super::column::{Index, is_of_text};
use crate::index::kind::Cost;
use crate::key_condition::{KEY_OF_ELEMENT, KeyCondition};
use crate::pg::call::nodes::collated;
use crate::pg::catalog::{self, operators};
use crate::pg::method::planning::{Comparison, Planned};
use pg_bloom_core::index::filters::Directory;
use pgrx::pg_sys::exprCollation;

/// Operators that asking a page of 127 filters is worth.
const OPERATORS_PER_PAGE: f64 = 60.0;

pub fn estimate(planned: &Planned) -> Cost {
    // A damaged index must not keep the table's queries from being planned: the scan says what is
    // wrong.
    let directory = planned
        .index()
        .and_then(|opened| Index::of(opened.relation()).ok()?.directory().ok());
    let guess = 1.0 + planned.index_pages / 100.0;
    let asked = directory
        .as_ref()
        .map_or(guess, |directory| directory.pages_per_lookup() as f64);
    // `insert` sees to it that no plan is kept which relies on this when it isn't true any more.
    let is_text = |directory: &Directory| directory.groups().all(|(_, group)| is_of_text(group));
    ask_by_key(
        planned,
        directory.is_some_and(|directory| directory.group(0).is_some() && is_text(&directory)),
    );
    let fetched = planned.index_pages_read(asked, planned.searches * planned.loops);
    let startup = planned.keys_cost();
    let total = startup
        + fetched * planned.random_page_cost()
        + asked * planned.searches * OPERATORS_PER_PAGE * planned.operator_cost();
    Cost { startup, total, selectivity: planned.selectivity }
}

/// Asks by `@=>`, except by operators of the operator class if there are filters, and all are of
/// text.
fn ask_by_key(planned: &Planned, is_text: bool) {
    let (family, Some(own)) = planned.support_function(KEY_OF_ELEMENT) else {
        return;
    };
    let Some(keys) = KeyCondition::of(family, own) else {
        return;
    };
    let instead = |condition: &Comparison| {
        let &Comparison { operator, is_array, left, right, collation } = condition;
        let is_own =
            || catalog::is_beside(operators::function_of(operator), own, c"bloom_contains");
        // SAFETY: an operator of the operator class has a filter on its left, and on its right a
        // key, an element, or an array of some.
        unsafe {
            if operator == keys.operator {
                Some(keys.of_key(left, collated(right, exprCollation(right)), is_array))
            } else if is_text || !is_own() {
                None
            } else {
                Some(keys.of_element(left, right, is_array, collation))
            }
        }
    };
    // SAFETY: they are conditions of the operator class of the index.
    unsafe { planned.ask_instead(instead) };
}
