//! Rights, and running a table's expressions as its owner.

use crate::pg::call::Call;
use crate::pg::call::guard::is_unwinding;
use crate::pg::storage::relation::{ACCESS_SHARE, Relation};
use crate::pg::version;
use pgrx::pg_sys::{self, Oid};
use std::marker::PhantomData;
use std::ptr::null_mut;

/// Checks that the user may maintain a table, as for VACUUM and REINDEX. Raises 42501 otherwise.
pub fn require_maintenance(table: Oid) {
    // SAFETY: a variable of the session is read.
    if !version::may_maintain(table, unsafe { pg_sys::GetUserId() }) {
        refuse_table(pg_sys::AclResult::ACLCHECK_NOT_OWNER, table);
    }
}

/// Raises PostgreSQL's error 42501 for a table to which the user lacks a right.
fn refuse_table(denied: pg_sys::AclResult::Type, table: Oid) {
    // SAFETY: the name is a C string, or null for a table that was dropped.
    unsafe {
        pg_sys::aclcheck_error(
            denied,
            pg_sys::ObjectType::OBJECT_TABLE,
            pg_sys::get_rel_name(table),
        )
    };
}

/// Checks that the user has one of these rights to a table, such as `ACL_SELECT`. Raises 42501
/// otherwise.
pub fn require(table: Oid, right: u32) {
    // SAFETY: the catalogs are read, and a variable of the session.
    let result = unsafe {
        pg_sys::pg_class_aclcheck(table, pg_sys::GetUserId(), pg_sys::AclMode::from(right))
    };
    if result != pg_sys::AclResult::ACLCHECK_OK {
        refuse_table(result, table);
    }
}

/// Checks that the user may use the schema of a relation. Raises 42501 otherwise; does nothing if
/// the relation was dropped.
pub fn require_usage_of_schema(relation: Oid) {
    // SAFETY: the name is a C string, or null if the relation was dropped.
    unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation));
        if !schema.is_null() {
            pg_sys::LookupExplicitNamespace(schema, false);
        }
    }
}

/// Makes functions run as the owner of a table until this is dropped. As while an index is created,
/// they can't do more than compute: no command that would last, such as one that creates a
/// temporary table.
pub struct AsOwner<'c> {
    user: Oid,
    context: i32,
    level: i32,
    call: PhantomData<&'c Call>,
}

impl<'c> AsOwner<'c> {
    /// Makes functions that PostgreSQL calls run with the rights of this table's owner, with a safe
    /// search_path from PostgreSQL 17 on, and with commands forbidden that would last longer. The
    /// result sets user and settings back when it is dropped, which must be within the call.
    pub fn of(_call: &'c Call, table: Relation) -> AsOwner<'c> {
        let mut user = Oid::INVALID;
        let mut context = 0;
        let restricted = pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        // SAFETY: these are the steps of PostgreSQL's own commands, and `drop` undoes them.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
            pg_sys::SetUserIdAndSecContext(table.class().relowner, context | restricted);
            let level = pg_sys::NewGUCNestLevel();
            version::restrict_search_path();
            AsOwner { user, context, level, call: PhantomData }
        }
    }
}

impl Drop for AsOwner<'_> {
    fn drop(&mut self) {
        if !is_unwinding() {
            // SAFETY: the values are the ones from before `of`. After an error PostgreSQL restores
            // them itself.
            unsafe {
                pg_sys::AtEOXact_GUC(false, self.level);
                pg_sys::SetUserIdAndSecContext(self.user, self.context);
            }
        }
    }
}

/// Checks that the user may read all columns of a table, as for `SELECT *`. The executor's own
/// check is used, in which other extensions take part. Raises 42501 otherwise.
pub fn require_all_columns(table: Relation) {
    // SAFETY: the parser's own steps for an open table, and for the columns that `SELECT *` names.
    unsafe {
        let state = pg_sys::make_parsestate(null_mut());
        let with_descendants = true;
        let is_in_from_clause = true;
        let item = pg_sys::addRangeTableEntryForRelation(
            state,
            table.raw(),
            ACCESS_SHARE,
            null_mut(),
            with_descendants,
            is_in_from_clause,
        );
        let mut columns = null_mut();
        for (column, number) in table.columns().zip(1..) {
            if !column.attisdropped {
                // System columns come first, whose numbers are negative.
                let member = number - pg_sys::FirstLowInvalidHeapAttributeNumber;
                columns = pg_sys::bms_add_member(columns, member);
            }
        }
        version::require_rights(state, item, columns);
    }
}

/// Returns whether policies of row-level security decide which rows of a table the user sees: not
/// if the table has none enabled, and not for its owner or a user with BYPASSRLS.
pub fn has_policies_for_user(table: Relation) -> bool {
    if !table.class().relrowsecurity {
        return false;
    }
    let current_user = pg_sys::InvalidOid;
    let raises_no_error = true;
    // SAFETY: the catalogs are read.
    let result = unsafe { pg_sys::check_enable_rls(table.oid(), current_user, raises_no_error) };
    result == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
}
