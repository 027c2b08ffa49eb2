//! The table that a call names, and the caller's rights to it.

use crate::pg::call::Call;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::call::guard::{guard, raw};
use crate::pg::catalog;
use crate::pg::sql;
use crate::pg::storage::relation::{Opened, Relation};
use crate::pg::value::encoding::utf8_of;
use crate::pg::version::attribute;
use pgrx::pg_sys::{self, AclResult::ACLCHECK_OK};
use std::ffi::{CStr, CString};

/// The lock that a query takes.
pub const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// The parent, opened for a caller who may read all its columns.
pub struct Parent(Opened);

/// A column of the parent.
pub struct Column {
    /// Its name, as the catalogs have it.
    pub name: CString,
    /// Its number in the parent, from 1.
    pub number: i16,
}

impl Parent {
    /// The table whose row type argument 0 has.
    ///
    /// # Errors
    /// 42804 for another type; 42809 for a view or a type without a table; 42501 without the right to read all columns;
    /// 0A000 for row security, and for a table that Citus distributes.
    pub fn argument(call: &Call) -> Result<Parent> {
        let of_type = call.argument_type(0)?;
        // SAFETY: reads the catalog.
        let oid = unsafe { pg_sys::get_typ_typrelid(of_type) };
        let opened = (oid != pg_sys::InvalidOid).then(|| Opened::if_there(oid, LOCK)).flatten();
        let Some(opened) = opened else {
            let message = format!("type {} is not the row type of a table", catalog::display_name(of_type));
            return Err(Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message).hint("Pass NULL::table."));
        };
        let table = opened.relation();
        if ![pg_sys::RELKIND_RELATION, pg_sys::RELKIND_PARTITIONED_TABLE, pg_sys::RELKIND_MATVIEW]
            .into_iter()
            .chain([pg_sys::RELKIND_FOREIGN_TABLE])
            .any(|kind| kind == table.kind())
        {
            let message = format!("\"{}\" is not a table", table.name());
            return Err(Error::new(SqlState::ERRCODE_WRONG_OBJECT_TYPE, message).hint("Query it as it is."));
        }
        require_select(table);
        require_no_row_security(table)?;
        if sql::is_distributed_by_citus(oid)? {
            let message = format!("table \"{}\" has its rows in shards of Citus", table.name());
            return Err(Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message).hint("Query it as it is."));
        }
        Ok(Parent(opened))
    }

    /// The parent itself.
    pub fn table(&self) -> Relation {
        self.0.relation()
    }

    /// The column that argument 1 names.
    ///
    /// # Errors
    /// 22004 for NULL; 42703 if there is none.
    pub fn column(&self, call: &Call) -> Result<Column> {
        let Some(name) = call.datum(1) else {
            return Err(Error::new(SqlState::ERRCODE_NULL_VALUE_NOT_ALLOWED, "the name of the column cannot be NULL"));
        };
        // SAFETY: by declaration the argument is a name, which ends in a zero byte.
        let name = unsafe { CStr::from_ptr(name.cast_mut_ptr()) };
        let number = self.table().column_named(name);
        if number <= 0 {
            // SAFETY: as above.
            let name = unsafe { utf8_of(name.as_ptr()) }.unwrap_or_default();
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", self.table().name());
            return Err(Error::new(SqlState::ERRCODE_UNDEFINED_COLUMN, message));
        }
        Ok(Column { name: name.to_owned(), number })
    }

    /// The columns of the parent, dropped ones included.
    pub fn columns(&self) -> impl Iterator<Item = &pg_sys::FormData_pg_attribute> {
        // SAFETY: an open relation has a descriptor with as many attributes as it says.
        unsafe {
            let descriptor = (*self.table().raw()).rd_att;
            (0..(*descriptor).natts as usize).map(move |i| attribute(descriptor, i))
        }
    }
}

/// Fails by 42501 as `SELECT * FROM table` does: without the right to read the table or each of its columns.
fn require_select(table: Relation) {
    // SAFETY: reads the catalogs; an open relation has a name, which ends in a zero byte.
    unsafe {
        let (oid, user) = (table.oid(), pg_sys::GetUserId());
        let select = pg_sys::AclMode::from(pg_sys::ACL_SELECT);
        let may = pg_sys::pg_class_aclcheck(oid, user, select) == ACLCHECK_OK
            || pg_sys::pg_attribute_aclcheck_all(oid, user, select, pg_sys::AclMaskHow::ACLMASK_ALL) == ACLCHECK_OK;
        if !may {
            let class = &*(*table.raw()).rd_rel;
            let (name, kind) = (class.relname.data.as_ptr(), pg_sys::get_relkind_objtype(class.relkind));
            guard(|| raw::aclcheck_error(pg_sys::AclResult::ACLCHECK_NO_PRIV, kind, name));
        }
    }
}

/// Refuses a table whose policies concern the caller.
///
/// # Errors
/// 0A000.
pub fn require_no_row_security(table: Relation) -> Result<()> {
    // SAFETY: reads the catalogs.
    let applies = unsafe {
        (*(*table.raw()).rd_rel).relrowsecurity
            && pg_sys::check_enable_rls(table.oid(), pg_sys::InvalidOid, true)
                == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
    };
    if !applies {
        return Ok(());
    }
    let message = format!("row-level security of table \"{}\" applies to this call", table.name());
    Err(Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message)
        .hint("Query the table itself, which applies its policies."))
}
