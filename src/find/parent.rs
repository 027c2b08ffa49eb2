//! The table that a call names, and the caller's rights to it.

use crate::error::unsupported;
use crate::pg::call::{Call, Error, Result, SqlState};
use crate::pg::catalog::{self, lookup, owner};
use crate::pg::sql;
use crate::pg::storage::relation::{ACCESS_SHARE, Opened, Relation};
use crate::pg::value::encoding;
use pgrx::pg_sys;
use std::ffi::CString;

/// The table whose row type argument 0 has, all of whose columns the caller may read. Errors: 42804 for another type;
/// 42809 for a view; 42501 without the right; 0A000 for row security, and for a table that Citus distributes.
pub fn table(call: &Call) -> Result<Opened<'_>> {
    let of_type = call.argument_type(0)?;
    let oid = lookup::get_typ_typrelid(of_type);
    let opened = (oid != pg_sys::InvalidOid).then(|| Opened::if_there(call, oid, ACCESS_SHARE)).flatten();
    let has_rows = |opened: &Opened| opened.relation().kind() != pg_sys::RELKIND_COMPOSITE_TYPE;
    let Some(opened) = opened.filter(has_rows) else {
        let message = format!("type {} is not the row type of a table", catalog::display_name(of_type));
        return Err(Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message).hint("Pass NULL::table."));
    };
    let table = opened.relation();
    // Tables, partitioned ones, materialized views and foreign tables.
    if !b"rpmf".contains(&table.kind()) {
        let message = format!("\"{}\" is not a table", table.name());
        return Err(Error::new(SqlState::ERRCODE_WRONG_OBJECT_TYPE, message).hint("Query it as it is."));
    }
    owner::require_all_columns(oid);
    require_no_row_security(table)?;
    if sql::is_distributed_by_citus(oid)? {
        let message = format!("table \"{}\" has its rows in shards of Citus", table.name());
        return Err(unsupported(message, "Query it as it is."));
    }
    Ok(opened)
}

/// The column that argument 1 names: its name, and its number in the table. Errors: 22004 for NULL; 42703 if there is
/// none.
pub fn column(call: &Call, table: Relation) -> Result<(CString, i16)> {
    let Some(name) = call.name(1) else {
        return Err(Error::new(SqlState::ERRCODE_NULL_VALUE_NOT_ALLOWED, "the name of the column cannot be NULL"));
    };
    let number = table.column_named(&name);
    if number <= 0 {
        let (name, table) = (encoding::utf8(name.to_bytes()), table.name());
        let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
        return Err(Error::new(SqlState::ERRCODE_UNDEFINED_COLUMN, message));
    }
    Ok((name, number))
}

/// Refuses a table whose policies concern the caller, by 0A000.
pub fn require_no_row_security(table: Relation) -> Result<()> {
    if owner::has_policies_for_user(table) {
        let message = format!("row-level security of table \"{}\" applies to this call", table.name());
        return Err(unsupported(message, "Query the table itself, which applies its policies."));
    }
    Ok(())
}
