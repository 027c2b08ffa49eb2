//! `bloom_find`, `bloom_find_all`: the rows of a table and all its partitions or children that have
//! a key.
//!
//! A query on the parent locks, plans and starts a scan of every partition. This asks the indexes
//! of the partitions first, and plans a query only on those that may have the key. That query is
//! what the planner makes of the query on the parent for a partition: it checks no rights, since
//! the parent's were checked.
//!
//! `condition` has `column = key`, and the keys to ask an index for. Here are the parent, the
//! caller's rights to it, and the tables below it, with the keys that each may have by its index.

mod condition;

use condition::{Asked, LookedFor};

use crate::error::unsupported;
use crate::index;
use crate::other_extensions;
use crate::pg::call::{Call, Error, Outcome, Result, SqlState, interrupt};
use crate::pg::catalog::{self, lookup, operators, owner};
use crate::pg::memory::in_scratch;
use crate::pg::query::Output;
use crate::pg::storage::relation::{ACCESS_SHARE, Opened, Relation};
use crate::pg::value::encoding;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// Returns the table whose row type argument 0 has. The caller may read all of its columns.
///
/// Fails with 42804 if the type is not that of a table's rows, with 42809 for a view, with 42501 if
/// the caller may not read it, and with 0A000 if row-level security applies to the caller or Citus
/// distributes the table.
fn table(call: &Call) -> Result<Opened<'_>> {
    let of_type = call.argument_type(0)?;
    let oid = lookup::get_typ_typrelid(of_type);
    let opened = lookup::valid(oid).and_then(|oid| Opened::if_there(call, oid, ACCESS_SHARE));
    let Some(opened) =
        opened.filter(|opened| opened.relation().kind() != pg_sys::RELKIND_COMPOSITE_TYPE)
    else {
        let message =
            format!("type {} is not the row type of a table", catalog::display_name(of_type));
        return Err(
            Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message).hint("Pass NULL::table.")
        );
    };
    let table = opened.relation();
    // Tables, partitioned ones, materialized views and foreign tables.
    if !b"rpmf".contains(&table.kind()) {
        let message = format!("\"{}\" is not a table", table.name());
        return Err(
            Error::new(SqlState::ERRCODE_WRONG_OBJECT_TYPE, message).hint("Query it as it is.")
        );
    }
    owner::require_all_columns(table);
    require_no_row_security(table)?;
    if other_extensions::is_distributed_by_citus(oid)? {
        let message = format!("table \"{}\" has its rows in shards of Citus", table.name());
        return Err(unsupported(message, "Query it as it is."));
    }
    Ok(opened)
}

/// Returns the name and the number of the column that argument 1 names. Fails with 22004 for NULL,
/// and with 42703 if the table has no such column.
fn column(call: &Call, table: Relation) -> Result<(CString, i16)> {
    let Some(name) = call.name(1) else {
        return Err(Error::new(
            SqlState::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "the name of the column cannot be NULL",
        ));
    };
    let number = table.column_named(&name);
    if number <= 0 {
        let (name, table) = (encoding::utf8(name.to_bytes()), table.name());
        let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
        return Err(Error::new(SqlState::ERRCODE_UNDEFINED_COLUMN, message));
    }
    Ok((name, number))
}

/// Fails with 0A000 if policies of the table apply to the caller.
fn require_no_row_security(table: Relation) -> Result<()> {
    if owner::has_policies_for_user(table) {
        let message =
            format!("row-level security of table \"{}\" applies to this call", table.name());
        return Err(unsupported(message, "Query the table itself, which applies its policies."));
    }
    Ok(())
}

/// Returns for each key of the condition whether the table may have it, as an index tells; `None` if
/// no index can be asked. Fails with XX002 if the index is damaged.
///
/// # Safety
/// The table must be the parent of the condition or below it, and the column the condition's.
unsafe fn candidates(
    leaf: Relation,
    column: &CStr,
    condition: &LookedFor,
) -> Result<Option<Vec<bool>>> {
    // The query on a table that can't be read is the error that it would be below its parent.
    let can_be_read = leaf.is_populated() && !leaf.is_lost_in_recovery();
    let Some(asked) = condition.asked.as_ref().filter(|_| can_be_read) else {
        return Ok(None);
    };
    let number = leaf.column_named(column);
    for index in leaf.indexes() {
        if let Some(asked_type) = asked_type(index.relation(), number, asked) {
            // SAFETY: the parser found an operator of this column for the keys, which takes them as
            // this type.
            return unsafe { index::may_have(index.relation(), asked_type, &asked.keys) }.map(Some);
        }
    }
    Ok(None)
}

/// Returns the type as which an index takes the keys that are compared with a column, given its
/// number. `None` if the index must not be asked for them: the conditions are the planner's own.
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

/// Implements `bloom_find(anyelement, name, anycompatible) → SETOF anyelement`; and with `is_array`
/// `bloom_find_all(anyelement, name, anycompatiblearray)`.
fn find(call: &Call, is_array: bool) -> Outcome {
    let opened = table(call)?;
    let parent = opened.relation();
    let (column, number) = column(call, parent)?;
    let output = Output::new(call, parent)?;
    let Some(condition) = LookedFor::argument(call, parent, number, is_array)? else {
        return Ok(None);
    };
    let compressed = other_extensions::compressed_by_timescale()?;
    let add_rows = |leaf: Relation| {
        let has_all = !compressed.contains(&leaf.oid());
        // SAFETY: a leaf, and the column of the condition; rows that were found are in the output's
        // memory, and what is known of an index in Rust's.
        unsafe {
            in_scratch(|| -> Result<()> {
                let may_have = if has_all { candidates(leaf, &column, &condition)? } else { None };
                if may_have.as_ref().is_none_or(|may_have| may_have.contains(&true)) {
                    output.add_rows(leaf, condition.of_keys(may_have.as_deref()));
                }
                Ok(())
            })
        }
    };
    let has_rows = |table: Relation| table.kind() != pg_sys::RELKIND_PARTITIONED_TABLE;
    if has_rows(parent) {
        add_rows(parent)?;
    }
    for leaf in parent.inheritors() {
        interrupt::check_for_interrupts();
        let leaf = leaf.relation();
        // A query on the parent leaves out temporary tables of other sessions.
        if has_rows(leaf) && !leaf.is_of_other_session() {
            require_no_row_security(leaf)?;
            add_rows(leaf)?;
        }
    }
    Ok(None)
}

pg_functions! {
    bloom_find => |call| find(call, false);
    bloom_find_all => |call| find(call, true);
}
