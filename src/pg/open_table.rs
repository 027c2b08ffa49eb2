//! Tables that functions work on by themselves, without a query: opening one with the rights of the caller, and what it
//! consists of.
//!
//! Who works on a table without the executor does what that would do. What it can't do is refused here: policies of row
//! security, rules, triggers. A table is closed by hand; after an error PostgreSQL closes it.

use super::catalog::{self, TableColumn};
use super::encoding;
use super::error::{Error, Result, SqlState};
use super::nodes::length;
use pgrx::pg_sys;
use std::ffi::CStr;

/// What is done with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Rows are read.
    Read,
    /// Rows are read and updated.
    Update,
}

impl Access {
    pub(super) fn lock(self) -> pg_sys::LOCKMODE {
        match self {
            Access::Read => pg_sys::AccessShareLock as pg_sys::LOCKMODE,
            Access::Update => pg_sys::RowExclusiveLock as pg_sys::LOCKMODE,
        }
    }
}

/// A table that is open.
pub struct Table {
    relation: pg_sys::Relation,
    access: Access,
}

impl Table {
    /// Opens the table with this identifier.
    ///
    /// # Errors
    /// 42P01 if there is none, 42809 if that is no ordinary table, 42501 without the privileges, 0A000 for one of
    /// another session.
    pub fn open(oid: pg_sys::Oid, access: Access) -> Result<Table> {
        // SAFETY: null for an unknown identifier; the entry of one that is open is valid.
        let table = unsafe {
            let relation = pg_sys::try_relation_open(oid, access.lock());
            if relation.is_null() {
                let message = format!("relation with OID {} does not exist", oid.to_u32());
                return Err(Error::new(SqlState::ERRCODE_UNDEFINED_TABLE, message));
            }
            Table { relation, access }
        };
        // SAFETY: the row of pg_class belongs to the entry.
        let (kind, is_temporary) =
            unsafe { ((*table.class()).relkind as u8, (*table.class()).relpersistence as u8 == b't') };
        if kind != b'r' {
            return Err(Error::new(
                SqlState::ERRCODE_WRONG_OBJECT_TYPE,
                format!("{} is not a table", table.quoted_name()),
            ));
        }
        // SAFETY: reads a field of the entry.
        if is_temporary && unsafe { !(*table.relation).rd_islocaltemp } {
            return Err(Error::new(
                SqlState::ERRCODE_FEATURE_NOT_SUPPORTED,
                "cannot access temporary tables of other sessions",
            ));
        }
        Ok(table)
    }

    /// Closes it, keeping the lock until the end of the transaction as statements do.
    pub fn close(self) {
        // SAFETY: it is open.
        unsafe { pg_sys::relation_close(self.relation, pg_sys::NoLock as pg_sys::LOCKMODE) };
    }

    pub(super) fn relation(&self) -> pg_sys::Relation {
        self.relation
    }

    pub(super) fn access(&self) -> Access {
        self.access
    }

    fn class(&self) -> pg_sys::Form_pg_class {
        // SAFETY: the entry is valid while the table is open.
        unsafe { (*self.relation).rd_rel }
    }

    /// Its identifier.
    pub fn oid(&self) -> pg_sys::Oid {
        // SAFETY: as in `class`.
        unsafe { (*self.relation).rd_id }
    }

    fn c_name(&self) -> &CStr {
        // SAFETY: a name ends in a zero byte.
        unsafe { CStr::from_ptr((*self.class()).relname.data.as_ptr()) }
    }

    /// Its name between quotes, as messages have it.
    pub fn quoted_name(&self) -> String {
        format!("\"{}\"", encoding::utf8(self.c_name().to_bytes()))
    }

    /// Its columns but for those that were dropped, in order.
    pub fn columns(&self) -> Vec<TableColumn> {
        // SAFETY: the entry has a descriptor.
        let count = unsafe { (*(*self.relation).rd_att).natts };
        (1..=count as i16).filter_map(|number| catalog::column(self.oid(), number)).collect()
    }

    /// Checks the caller's rights to read these columns.
    ///
    /// Raises 42501 without them.
    pub fn check_readable(&self, columns: &[TableColumn]) {
        self.check_privilege(pg_sys::ACL_SELECT, columns);
    }

    /// Checks the caller's rights to update these columns.
    ///
    /// Raises 42501 without them.
    pub fn check_updatable(&self, columns: &[TableColumn]) {
        self.check_privilege(pg_sys::ACL_UPDATE, columns);
    }

    /// A privilege on the table, or on each of these columns.
    fn check_privilege(&self, privilege: u32, columns: &[TableColumn]) {
        // SAFETY: all of these read the catalogs; the last one raises the error.
        unsafe {
            let (oid, user, privilege) = (self.oid(), pg_sys::GetUserId(), pg_sys::AclMode::from(privilege));
            let allowed = pg_sys::AclResult::ACLCHECK_OK;
            let on_columns =
                |column: &TableColumn| pg_sys::pg_attribute_aclcheck(oid, column.number, user, privilege) == allowed;
            if pg_sys::pg_class_aclcheck(oid, user, privilege) != allowed && !columns.iter().all(on_columns) {
                let denied = pg_sys::AclResult::ACLCHECK_NO_PRIV;
                pg_sys::aclcheck_error(denied, pg_sys::ObjectType::OBJECT_TABLE, self.c_name().as_ptr());
            }
        }
    }

    /// Refuses a change where none can be: in a read-only transaction, on a standby, in a parallel query. Temporary
    /// tables can be changed in a read-only transaction.
    ///
    /// Raises 25006, 25000.
    pub fn check_writable(&self, function: &CStr) {
        // SAFETY: all of these raise an error or do nothing.
        unsafe {
            if !(*self.relation).rd_islocaltemp {
                pg_sys::PreventCommandIfReadOnly(function.as_ptr());
            }
            pg_sys::PreventCommandIfParallelMode(function.as_ptr());
            pg_sys::CheckCmdReplicaIdentity(self.relation, pg_sys::CmdType::CMD_UPDATE);
        }
    }

    /// Waits for other transactions that called this for the same table, and makes those that call it later wait for
    /// the end of this one. It is in the way of nothing else: not of VACUUM, nor of other statements.
    pub fn take_turn(&self) {
        let mode = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: within a transaction. PostgreSQL itself locks tables as relations, never as objects.
        unsafe { pg_sys::LockDatabaseObject(pg_sys::RelationRelationId, self.oid(), 0, mode) };
    }

    /// What the table has that only the executor can follow when this column is read or updated, in the words of an
    /// error.
    ///
    /// Raises 42501 where row security is off for the session but would apply.
    pub fn obstacle(&self, column: &TableColumn) -> Option<&'static str> {
        // SAFETY: reads the catalogs and fields of the entry.
        unsafe {
            let row_security = pg_sys::check_enable_rls(self.oid(), pg_sys::InvalidOid, false);
            if row_security == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32 {
                return Some("row-level security that applies to the caller");
            }
            if self.access == Access::Read {
                return None;
            }
            if !(*self.relation).rd_rules.is_null() {
                return Some("rules");
            }
        }
        if self.has_update_triggers() {
            return Some("triggers on UPDATE");
        }
        if self.is_in_key(column) {
            return Some("a unique index or a foreign key on the column that is updated");
        }
        let is_plain = |&index: &pg_sys::Oid| catalog::is_plain_index(index);
        (!self.indexes().iter().all(is_plain))
            .then_some("a partial index, one on an expression, or a deferrable constraint")
    }

    /// Its indexes.
    pub(super) fn indexes(&self) -> Vec<pg_sys::Oid> {
        // SAFETY: the list has identifiers, and is a copy.
        unsafe {
            let list = pg_sys::RelationGetIndexList(self.relation);
            let indexes = (0..length(list)).map(|i| (*(*list).elements.add(i)).oid_value).collect();
            pg_sys::list_free(list);
            indexes
        }
    }

    /// Whether a value of this column may be what a row refers to another by, or is referred to by.
    fn is_in_key(&self, column: &TableColumn) -> bool {
        // SAFETY: a set of the columns' numbers, less that of the first system column, which is a copy; and the list of
        // foreign keys of the table's entry, which nothing changes while it is looked at. They have as many columns as
        // they say.
        unsafe {
            let keys = pg_sys::IndexAttrBitmapKind::INDEX_ATTR_BITMAP_KEY;
            let unique = pg_sys::RelationGetIndexAttrBitmap(self.relation, keys);
            let first = pg_sys::FirstLowInvalidHeapAttributeNumber;
            if pg_sys::bms_is_member(i32::from(column.number) - first, unique) {
                return true;
            }
            let foreign = pg_sys::RelationGetFKeyList(self.relation);
            (0..length(foreign)).any(|i| {
                let key: *const pg_sys::ForeignKeyCacheInfo = (*(*foreign).elements.add(i)).ptr_value.cast();
                (&(*key).conkey)[..(*key).nkeys as usize].contains(&column.number)
            })
        }
    }

    /// Whether users made triggers on UPDATE that are not disabled, also those of a partitioned table, whose copies
    /// PostgreSQL 13 and 14 call internal. Those of foreign keys are about keys, which stay.
    fn has_update_triggers(&self) -> bool {
        const ON_UPDATE: i16 = pg_sys::TRIGGER_TYPE_UPDATE as i16;
        // SAFETY: the entry has as many triggers as it says.
        unsafe {
            let Some(all) = (*self.relation).trigdesc.as_ref() else { return false };
            (0..all.numtriggers as usize).map(|i| &*all.triggers.add(i)).any(|trigger| {
                let is_of_constraint = trigger.tgisinternal && trigger.tgconstraint != pg_sys::InvalidOid;
                trigger.tgtype & ON_UPDATE != 0 && !is_of_constraint && trigger.tgenabled as u8 != b'D'
            })
        }
    }

    /// The expressions of its CHECK constraints, as PostgreSQL keeps them.
    pub fn checks(&self) -> Vec<&CStr> {
        // SAFETY: the entry has as many constraints as it says; each has an expression that ends in a zero byte.
        unsafe {
            let Some(constraints) = (*(*self.relation).rd_att).constr.as_ref() else { return Vec::new() };
            let checks = constraints.check;
            (0..usize::from(constraints.num_check)).map(|i| CStr::from_ptr((*checks.add(i)).ccbin)).collect()
        }
    }

    /// The index of its primary key, if there is one that is checked at once and has this column as its key.
    pub fn primary_key(&self, column: &TableColumn) -> Option<pg_sys::Oid> {
        // SAFETY: reads the catalogs.
        let index = unsafe {
            #[cfg(not(feature = "pg18"))]
            let index = pg_sys::RelationGetPrimaryKeyIndex(self.relation);
            #[cfg(feature = "pg18")]
            let index = pg_sys::RelationGetPrimaryKeyIndex(self.relation, false);
            index
        };
        catalog::is_unique_index_on(index, column.number).then_some(index)
    }

    /// Bytes on disk, with the index given.
    pub fn bytes(&self, index: pg_sys::Oid) -> u64 {
        let blocks = |relation| {
            // SAFETY: the relation is open.
            u64::from(unsafe { pg_sys::RelationGetNumberOfBlocksInFork(relation, pg_sys::ForkNumber::MAIN_FORKNUM) })
        };
        // SAFETY: an index of the table, which is open.
        unsafe {
            let lock = self.access.lock();
            let index = pg_sys::index_open(index, lock);
            let all = blocks(self.relation) + blocks(index);
            pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
            all * u64::from(pg_sys::BLCKSZ)
        }
    }
}
