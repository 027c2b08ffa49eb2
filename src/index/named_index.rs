//! An index that a user names in a function.

use crate::other_extensions::is_distributed_by_citus;
use crate::pg::call::{Call, Error, Result, SqlState};
use crate::pg::catalog::lookup;
use crate::pg::catalog::owner::{self, AsOwner};
use crate::pg::storage::relation::{self, ACCESS_SHARE, Opened, Relation};
use pgrx::pg_sys;

/// An index of this access method and its table, opened for a user who may, with functions run as
/// the table's owner.
pub struct NamedIndex<'c> {
    _as_owner: AsOwner<'c>,
    index: Opened<'c>,
    table: Opened<'c>,
}

impl<'c> NamedIndex<'c> {
    /// Opens the index that argument 0 of a SQL function names, a `regclass`, and its table, both
    /// locked for reading until the end of the transaction. From then on functions run as the
    /// table's owner, until the result is dropped.
    ///
    /// Fails with 42809 if it isn't an index of this access method, with 42501 if the caller may
    /// not maintain its table, with 42P01 if it was dropped in the meantime, with 0A000 if Citus
    /// distributes its table, and with 55000 if it can't be read or may not know all rows.
    pub fn argument(call: &'c Call) -> Result<NamedIndex<'c>> {
        let oid = call.oid(0).unwrap_or(pg_sys::InvalidOid);
        // The table first, as everybody else locks them.
        let table_oid = lookup::valid(lookup::IndexGetRelation(oid, true))
            .ok_or_else(|| wrong(&relation::name_of(oid)))?;
        owner::require_maintenance(table_oid);
        if is_distributed_by_citus(table_oid)? {
            let message = format!(
                "table \"{}\" has its rows in shards of Citus",
                relation::name_of(table_oid)
            );
            return Err(Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message)
                .detail("The index of the table itself is empty.")
                .hint("Call the function for the index of each shard, by run_command_on_shards."));
        }
        let table = Opened::if_there(call, table_oid, ACCESS_SHARE).ok_or_else(|| dropped(oid))?;
        let as_owner = AsOwner::of(call, table.relation());
        let index = Opened::if_there(call, oid, ACCESS_SHARE).ok_or_else(|| dropped(oid))?;
        let relation = index.relation();
        if !relation.is_index_by(c"bloom_filter") {
            return Err(wrong(&relation.name()));
        }
        let unusable = if !relation.is_valid_index() {
            Some(("is not valid", "REINDEX it, or wait until it is built."))
        } else if relation.is_lost_in_recovery() {
            Some((
                "is unlogged, so a standby doesn't have it",
                "Call the function on the primary server.",
            ))
        } else {
            None
        };
        if let Some((problem, hint)) = unusable {
            let message = format!("index \"{}\" {problem}", relation.name());
            return Err(
                Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(hint)
            );
        }
        Ok(NamedIndex { _as_owner: as_owner, index, table })
    }

    /// Returns the index that was named.
    pub fn index(&self) -> Relation<'_> {
        self.index.relation()
    }

    /// Returns the table of the index.
    pub fn table(&self) -> Relation<'_> {
        self.table.relation()
    }
}

/// The error for an index that was there a moment ago; on a standby also for one that REINDEX
/// CONCURRENTLY replaced.
fn dropped(index: pg_sys::Oid) -> Error {
    let message = format!("index with OID {} does not exist any more", index.to_u32());
    Error::new(SqlState::ERRCODE_UNDEFINED_TABLE, message).hint("Name the index that is there now.")
}

fn wrong(name: &str) -> Error {
    Error::new(
        SqlState::ERRCODE_WRONG_OBJECT_TYPE,
        format!("\"{name}\" is not an index USING bloom_filter"),
    )
    .hint("Of a partitioned index, name those of the partitions.")
}
