//! The tables below a parent, and which keys each may have by its index.

use super::condition::{Asked, LookedFor};
use super::parent::{Parent, ParentColumn, require_no_row_security};
use crate::index;
use crate::pg::call::error::Result;
use crate::pg::call::interrupt;
use crate::pg::catalog::operators;
use crate::pg::storage::relation::{ACCESS_SHARE, Relation, in_recovery};
use pgrx::pg_sys;

/// Calls `visit` with the parent and each table below it that has rows of its own, under the lock of a query.
///
/// # Errors
/// 0A000 for row security; those of `visit`.
pub fn each(parent: &Parent, mut visit: impl FnMut(Relation) -> Result<()>) -> Result<()> {
    let has_rows = |table: Relation| table.kind() != pg_sys::RELKIND_PARTITIONED_TABLE;
    if has_rows(parent.table()) {
        visit(parent.table())?;
    }
    for leaf in parent.table().inheritors(ACCESS_SHARE) {
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

/// Which of the condition's keys a table may have; `None` if no index tells.
///
/// # Errors
/// XX002 for damage.
///
/// # Safety
/// The table must be the parent of the condition or below it, and the column the condition's.
pub unsafe fn candidates(leaf: Relation, column: &ParentColumn, condition: &LookedFor) -> Result<Option<Vec<bool>>> {
    let Some(asked) = condition.asked().filter(|_| !(leaf.is_unlogged() && in_recovery())) else {
        return Ok(None);
    };
    let number = leaf.column_named(&column.name);
    for index in leaf.indexes(ACCESS_SHARE) {
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
    let is_comparable = collation == pg_sys::InvalidOid || collation == asked.collation;
    is_comparable.then(|| operators::right_type(family, asked.operator)).flatten()
}
