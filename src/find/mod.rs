//! `bloom_find`, `bloom_find_all`: the rows of a table and all its partitions or children that have
//! a key.
//!
//! A query on the parent locks, plans and starts a scan of every partition. This asks the indexes
//! of the partitions first, and plans a query only on those that may have the key. That query is
//! what the planner makes of the query on the parent for a partition: it checks no rights, since
//! the parent's were checked.
//!
//! `condition` has `column = key`, and the keys to ask an index for. This file has the parent, the
//! caller's rights to it, and the tables below it, with the keys that each may have by its index.
//!
//! The *parent* is the table that the call names, and a *leaf* is the parent or a
//! table below it that has rows of its own.

mod condition;

use condition::{ColumnCondition, IndexableKeys, KeyArgument};
use pg_bloom_core::memory::List;

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

/// Opens the table that a call of `bloom_find` searches, and locks it for reading: argument 0 of
/// the call is a value of the table's row type, usually `NULL::table`. Checks that the user may
/// read all of its columns.
///
/// Fails with 42804 if argument 0 has no table's row type, with 42809 for a view, with 42501 if the
/// user may not read the table, and with 0A000 if row-level security applies to the user or Citus
/// distributes the table.
fn searched_table(call: &Call) -> Result<Opened<'_>> {
    let row_type = call.argument_type(0)?;
    let oid = lookup::get_typ_typrelid(row_type);
    let opened = lookup::valid(oid)
        .and_then(|oid| Opened::if_there(call, oid, ACCESS_SHARE))
        .filter(|opened| opened.relation().kind() != pg_sys::RELKIND_COMPOSITE_TYPE);
    let Some(opened) = opened else {
        let message =
            format!("type {} is not the row type of a table", catalog::display_name(row_type));
        let error = Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message);
        return Err(error.hint("Pass NULL::table."));
    };

    let table = opened.relation();
    // PostgreSQL's letters for tables (r), partitioned ones (p), materialized views (m) and foreign
    // tables (f).
    if !b"rpmf".contains(&table.kind()) {
        let message = format!("\"{}\" is not a table", table.name());
        let error = Error::new(SqlState::ERRCODE_WRONG_OBJECT_TYPE, message);
        return Err(error.hint("Query it as it is."));
    }
    owner::require_all_columns(table);
    require_no_row_security(table)?;
    if other_extensions::is_distributed_by_citus(oid)? {
        let message = format!("table \"{}\" has its rows in shards of Citus", table.name());
        return Err(unsupported(message, "Query it as it is."));
    }
    Ok(opened)
}

/// Returns the name and the number of the column that argument 1 of the call names. Fails with
/// 22004 for NULL, and with 42703 if the table has no such column.
fn searched_column(call: &Call, table: Relation) -> Result<(CString, i16)> {
    let Some(name) = call.name(1) else {
        return Err(Error::new(
            SqlState::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "the name of the column cannot be NULL",
        ));
    };
    let number = table.column_named(&name);
    if number <= 0 {
        let column = encoding::utf8(name.to_bytes());
        let message =
            format!("column \"{column}\" of relation \"{}\" does not exist", table.name());
        return Err(Error::new(SqlState::ERRCODE_UNDEFINED_COLUMN, message));
    }
    Ok((name, number))
}

/// Checks that row-level security doesn't restrict which rows of the table the user sees. Fails
/// with 0A000 if it does.
fn require_no_row_security(table: Relation) -> Result<()> {
    if owner::has_policies_for_user(table) {
        let message =
            format!("row-level security of table \"{}\" applies to this call", table.name());
        return Err(unsupported(message, "Query the table itself, which applies its policies."));
    }
    Ok(())
}

/// Asks an index of a leaf which of the condition's keys the leaf may have: returns for each key,
/// in their order, whether some row may have it. A *leaf* is a table that has rows of its own: the
/// searched table, a partition or a child. `column` is the name of the condition's column.
///
/// `None` if no index of the leaf can be asked, so that any key may be there. Fails with XX002 if
/// the index is damaged.
///
/// # Safety
/// The leaf must be the parent of the condition or below it, and the column the condition's.
unsafe fn keys_leaf_may_have(
    leaf: Relation,
    column: &CStr,
    condition: &ColumnCondition,
) -> Result<Option<List<bool>>> {
    let Some(keys) = &condition.indexable_keys else {
        return Ok(None);
    };
    // The query on a table that can't be read will raise the error that a query on the parent
    // raises.
    if !leaf.is_populated() || leaf.is_lost_in_recovery() {
        return Ok(None);
    }

    let number = leaf.column_named(column);
    for index in leaf.indexes() {
        let index = index.relation();
        if let Some(key_type) = key_type_in_index(index, number, keys) {
            // SAFETY: the parser found an operator between this column and the keys. The operator
            // takes the keys as `key_type`.
            let may_have = unsafe { index::may_have(index, key_type, &keys.keys) }?;
            return Ok(Some(may_have));
        }
    }
    Ok(None)
}

/// Returns the type as which an index takes the keys that a condition compares with a column of the
/// index's table, given by the column's number. `None` if the planner would not use the index for a
/// query on this column and these keys: it is of another method or column, partial, not valid, or
/// has another collation or no such operator.
fn key_type_in_index(index: Relation, column: i16, keys: &IndexableKeys) -> Option<pg_sys::Oid> {
    let is_usable = index::is_over_elements(index)
        && index.column_number() == column
        && index.is_valid_index()
        && index.has_all_rows_of_snapshots()
        && !index.is_partial();
    if !is_usable {
        return None;
    }
    let class = index.column_class();
    let (_, key_type) = operators::strategy_and_right_type(class.family, keys.operator)?;
    let has_collation = class.collation != pg_sys::InvalidOid;
    if has_collation && class.collation != keys.collation {
        None
    } else {
        Some(key_type)
    }
}

/// Adds the rows of a leaf that meet the condition to the output of the call. A *leaf* is a table
/// that has rows of its own: the searched table, a partition or a child. If an index of the leaf
/// says that none of the keys is there, no row is read.
///
/// `is_compressed` says that TimescaleDB has stored some rows of the leaf elsewhere, compressed:
/// the leaf's indexes don't have these, so they aren't asked.
///
/// Fails with XX002 if an index is damaged, and raises the errors of a query on the leaf.
///
/// # Safety
/// The leaf must be the parent of the condition or below it, and the column the condition's.
unsafe fn add_matching_rows(
    output: &Output,
    leaf: Relation,
    column: &CStr,
    condition: &ColumnCondition,
    is_compressed: bool,
) -> Result<()> {
    let search = || -> Result<()> {
        let may_have = if is_compressed {
            None
        } else {
            // SAFETY: the caller promises the leaf and the column.
            unsafe { keys_leaf_may_have(leaf, column, condition) }?
        };
        let may_match = may_have.as_ref().is_none_or(|may_have| may_have.contains(&true));
        if may_match {
            // SAFETY: the caller promises the leaf, and the condition is a new copy.
            unsafe { output.add_rows(leaf, condition.on_keys(may_have.as_deref())) };
        }
        Ok(())
    };
    // SAFETY: rows that are found are copied into the output's own memory, and what a session keeps
    // about an index is in Rust's memory; nothing else stays.
    unsafe { in_scratch(search) }
}

/// Implements `bloom_find(anyelement, name, anycompatible)` and `bloom_find_all(anyelement, name,
/// anycompatiblearray)`, which return SETOF anyelement: the rows of a table, and of all tables
/// below it, whose column equals a key, or one of several keys. Argument 0 has the table's row
/// type, argument 1 names the column, and argument 2 is the key, or the array of keys as
/// `key_argument` says. Without a key no rows are returned.
///
/// The rows are added to the call's output, so the result itself is `None`. Fails with 42804,
/// 42809, 42501 or 0A000 for a table that can't be searched, with 22004 or 42703 for a missing
/// column, with 42P18 or 42P21 for a key that can't be compared, and with XX002 for a damaged
/// index.
fn find(call: &Call, key_argument: KeyArgument) -> Outcome {
    let opened = searched_table(call)?;
    let parent = opened.relation();
    let (column, column_number) = searched_column(call, parent)?;
    let output = Output::new(call, parent)?;
    let Some(condition) =
        ColumnCondition::from_key_argument(call, parent, column_number, key_argument)?
    else {
        return Ok(None);
    };

    let compressed_tables = other_extensions::compressed_by_timescale()?;
    let has_rows = |table: Relation| table.kind() != pg_sys::RELKIND_PARTITIONED_TABLE;
    if has_rows(parent) {
        let is_compressed = compressed_tables.contains(&parent.oid());
        // SAFETY: the condition was made for the parent and this column.
        unsafe { add_matching_rows(&output, parent, &column, &condition, is_compressed)? };
    }
    for opened_leaf in parent.inheritors() {
        interrupt::check_for_interrupts();
        let leaf = opened_leaf.relation();
        // A query on the parent leaves out temporary tables of other sessions, whose rows can't be
        // read.
        if !has_rows(leaf) || leaf.is_of_other_session() {
            continue;
        }
        require_no_row_security(leaf)?;
        let is_compressed = compressed_tables.contains(&leaf.oid());
        // SAFETY: the condition was made for the parent, above this table, and for this column.
        unsafe { add_matching_rows(&output, leaf, &column, &condition, is_compressed)? };
    }
    Ok(None)
}

pg_functions! {
    bloom_find => |call| find(call, KeyArgument::OneKey);
    bloom_find_all => |call| find(call, KeyArgument::Array);
}
