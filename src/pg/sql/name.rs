//! Names of relations as SQL writes them.

use crate::pg::call::error::{Error, SqlState, raise};
use crate::pg::catalog::lookup::valid;
use crate::pg::value::varlena::Value;
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{CStr, CString};

/// The name of a table to create, and the schema to create it in.
pub struct NewName {
    schema: Oid,
    name: CString,
}

impl NewName {
    /// Parses a name as a user wrote it, with or without a schema, quoted as identifiers are.
    /// Without a schema, it is the first one of search_path.
    ///
    /// Raises 42602 for an invalid name, and 3F000 if the schema doesn't exist or search_path has
    /// none.
    pub fn parse(name: &Value<'_>) -> NewName {
        // SAFETY: a text is a value of variable length. The range variable has a name, which is a C
        // string.
        unsafe {
            let parts = pg_sys::textToQualifiedNameList(name.pointer());
            let range_var = pg_sys::makeRangeVarFromNameList(parts);
            let name = CStr::from_ptr((*range_var).relname);
            if name.is_empty() {
                raise(Error::new(
                    SqlState::ERRCODE_INVALID_NAME,
                    "a table cannot have an empty name",
                ));
            }
            let schema = pg_sys::RangeVarGetCreationNamespace(range_var);
            NewName { schema, name: name.to_owned() }
        }
    }

    /// Returns the name with its schema, as SQL writes it. It is empty if the schema was dropped in
    /// the meantime.
    pub fn qualified(&self) -> List<u8> {
        qualified(self.schema, &self.name).unwrap_or_default()
    }

    /// Locks the name until the transaction ends, against other calls that lock it for the same
    /// `function`. A transaction that had locked it before has ended then, so what it has created
    /// is visible.
    pub fn lock(&self, function: Oid) {
        // Names with the same key wait for each other unnecessarily.
        let key = pg_bloom_core::hash::hash(&self.qualified()) as u16;
        // SAFETY: the function exists, since it is being called. Its sub-object with the number
        // `key` is locked, which nothing else locks.
        unsafe {
            let lock = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
            pg_sys::LockDatabaseObject(pg_sys::ProcedureRelationId, function, key, lock);
        }
    }

    /// Returns the relation that has the name already; `None` if there is none.
    pub fn relation(&self) -> Option<Oid> {
        // SAFETY: this reads the catalog; the name is a C string.
        valid(unsafe { pg_sys::get_relname_relid(self.name.as_ptr(), self.schema) })
    }
}

/// Returns the name that a relation has now, with its schema, as SQL writes it; `None` if there is
/// no such relation.
pub fn relation(oid: Oid) -> Option<List<u8>> {
    // SAFETY: this reads the catalog. The name is null or a C string in the current memory.
    unsafe {
        let name = pg_sys::get_rel_name(oid);
        if name.is_null() {
            return None;
        }
        qualified(pg_sys::get_rel_namespace(oid), CStr::from_ptr(name))
    }
}

/// Returns a name with its schema, each quoted as SQL needs it (`public."My table"`), in the
/// encoding of the database; `None` if there is no such schema.
pub fn qualified(schema: Oid, name: &CStr) -> Option<List<u8>> {
    // SAFETY: this reads the catalog. The schema's name is null or a C string, and the result is a
    // C string in the current memory.
    unsafe {
        let schema_name = pg_sys::get_namespace_name(schema);
        if schema_name.is_null() {
            return None;
        }
        let written = pg_sys::quote_qualified_identifier(schema_name, name.as_ptr());
        Some(CStr::from_ptr(written).to_bytes().into())
    }
}
