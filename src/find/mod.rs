//! `bloom_find`, `bloom_find_all`: the rows of a table and all its partitions or children that have a key.
//!
//! A query on the parent locks, plans and starts a scan of every partition. This asks the indexes of the partitions
//! first, and plans a query only on those that may have the key. That query is what the planner makes of the query on
//! the parent for a partition: it checks no rights, since the parent's were checked.
//!
//! | module | what it does |
//! |---|---|
//! | `parent` | the table that the call names, and the caller's rights to it |
//! | `condition` | `column = key`, and the keys to ask an index for |
//!
//! Here are the tables below the parent, and which keys each may have by its index.

mod condition;
mod parent;

use condition::{Asked, LookedFor};
use parent::require_no_row_security;

use crate::index;
use crate::pg::call::{Call, Outcome, Result, interrupt};
use crate::pg::catalog::operators;
use crate::pg::memory::in_scratch;
use crate::pg::query::Output;
use crate::pg::sql;
use crate::pg::storage::relation::Relation;
use pgrx::pg_sys;
use std::ffi::CStr;

/// Calls `visit` with the parent and each table below it that has rows of its own, under the lock of a query. Errors:
/// 0A000 for row security; those of `visit`.
fn each_leaf(parent: Relation, mut visit: impl FnMut(Relation) -> Result<()>) -> Result<()> {
    let has_rows = |table: Relation| table.kind() != pg_sys::RELKIND_PARTITIONED_TABLE;
    if has_rows(parent) {
        visit(parent)?;
    }
    for leaf in parent.inheritors() {
        interrupt::check_for_interrupts();
        let leaf = leaf.relation();
        // A query on the parent leaves out temporary tables of other sessions.
        if has_rows(leaf) && !leaf.is_of_other_session() {
            require_no_row_security(leaf)?;
            visit(leaf)?;
        }
    }
    Ok(())
}

/// Which of the condition's keys a table may have; `None` if no index tells. XX002 for damage.
///
/// # Safety
/// The table must be the parent of the condition or below it, and the column the condition's.
unsafe fn candidates(leaf: Relation, column: &CStr, condition: &LookedFor) -> Result<Option<Vec<bool>>> {
    let Some(asked) = condition.asked().filter(|_| !leaf.is_lost_in_recovery()) else {
        return Ok(None);
    };
    let number = leaf.column_named(column);
    for index in leaf.indexes() {
        if let Some(asked_type) = asked_type(index.relation(), number, asked) {
            // SAFETY: the parser found an operator of this column for the keys, which takes them as this type.
            return unsafe { index::may_have(index.relation(), asked_type, &asked.keys) }.map(Some);
        }
    }
    Ok(None)
}

/// As which type an index takes the keys, if it can be asked for them: the planner's own conditions.
fn asked_type(index: Relation, number: i16, asked: &Asked) -> Option<pg_sys::Oid> {
    let is_usable = index::is_over_elements(index)
        && index.column_number() == number
        && index.is_valid_index()
        && index.has_all_rows_of_snapshots()
        && !index.is_partial();
    if !is_usable {
        return None;
    }
    let (family, _, collation) = index.column_class();
    let (_, right) = operators::properties(family, asked.operator)?;
    (collation == pg_sys::InvalidOid || collation == asked.collation).then_some(right)
}

/// `bloom_find(anyelement, name, anycompatible) → SETOF anyelement`, `bloom_find_all(…, anycompatiblearray)`
fn find(call: &Call, is_array: bool) -> Outcome {
    let opened = parent::table(call)?;
    let parent = opened.relation();
    let (column, number) = parent::column(call, parent)?;
    let output = Output::new(call, parent)?;
    let Some(condition) = LookedFor::argument(call, parent, number, is_array)? else { return Ok(None) };
    let compressed = sql::compressed_by_timescale()?;
    each_leaf(parent, |leaf| {
        let has_all = !compressed.contains(&leaf.oid());
        // SAFETY: a leaf, and the column of the condition; rows that were found are in the output's memory, and what is
        // known of an index in Rust's.
        unsafe {
            in_scratch(|| {
                let may_have = if has_all { candidates(leaf, &column, &condition)? } else { None };
                if may_have.as_ref().is_none_or(|may_have| may_have.contains(&true)) {
                    output.add_rows(leaf, condition.of_keys(may_have.as_deref()));
                }
                Ok(())
            })
        }
    })?;
    Ok(None)
}

pg_functions! {
    bloom_find => |call| find(call, false);
    bloom_find_all => |call| find(call, true);
}
