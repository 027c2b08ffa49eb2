//! Rights, and running a table's expressions as its owner.

use crate::pg::call::Call;
use crate::pg::call::guard::is_unwinding;
use crate::pg::storage::relation::{ACCESS_SHARE, Relation};
use crate::pg::version;
use pgrx::pg_sys::{self, Oid};
use std::marker::PhantomData;
use std::ptr::null_mut;

pub fn require_maintenance(table: Oid) {
    // SAFETY: reads a variable of the session.
    if !version::may_maintain(table, unsafe { pg_sys::GetUserId() }) {
        refuse_table(pg_sys::AclResult::ACLCHECK_NOT_OWNER, table);
    }
}

fn refuse_table(denied: pg_sys::AclResult::Type, table: Oid) {
    // SAFETY: reads the catalog; the name is a C string, or null for a table that was dropped.
    unsafe {
        pg_sys::aclcheck_error(
            denied,
            pg_sys::ObjectType::OBJECT_TABLE,
            pg_sys::get_rel_name(table),
        )
    };
}

pub fn require(table: Oid, right: u32) {
    // SAFETY: reads the catalogs.
    let result = unsafe {
        pg_sys::pg_class_aclcheck(table, pg_sys::GetUserId(), pg_sys::AclMode::from(right))
    };
    if result != pg_sys::AclResult::ACLCHECK_OK {
        refuse_table(result, table);
    }
}

pub fn require_usage_of_schema(relation: Oid) {
    // SAFETY: reads the catalogs; the name is a C string, or null where the relation was dropped.
    // Raises the error.
    unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation));
        if !schema.is_null() {
            pg_sys::LookupExplicitNamespace(schema, false);
        }
    }
}

/// While this is there, functions run as a table's owner, who can do no more than compute: as in
/// CREATE INDEX.
pub struct AsOwner<'c> {
    user: Oid,
    context: i32,
    level: i32,
    call: PhantomData<&'c Call>,
}

impl<'c> AsOwner<'c> {
    /// Of this table, for no longer than the call.
    pub fn of(_call: &'c Call, table: Relation) -> AsOwner<'c> {
        let (mut user, mut context) = (Oid::INVALID, 0);
        let restricted = pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        // SAFETY: these are PostgreSQL's own steps for this.
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
            // SAFETY: gives back what `of` has set; after an error PostgreSQL does.
            unsafe {
                pg_sys::AtEOXact_GUC(false, self.level);
                pg_sys::SetUserIdAndSecContext(self.user, self.context);
            }
        }
    }
}

/// Raises the error of `SELECT *` unless the user may read all columns of a table. The executor's own
/// check does that, in which other extensions take part.
pub fn require_all_columns(table: Relation) {
    // SAFETY: the parser's own steps for an open table, and for the columns that `SELECT *` names.
    unsafe {
        let state = pg_sys::make_parsestate(null_mut());
        let item = pg_sys::addRangeTableEntryForRelation(
            state,
            table.raw(),
            ACCESS_SHARE,
            null_mut(),
            true,
            true,
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

pub fn has_policies_for_user(table: Relation) -> bool {
    let enabled = pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32;
    // SAFETY: reads the catalogs.
    table.class().relrowsecurity
        && unsafe { pg_sys::check_enable_rls(table.oid(), pg_sys::InvalidOid, true) } == enabled
}
