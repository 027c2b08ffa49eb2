//! Other extensions that keep rows of a table where its indexes don't have them.

use crate::pg::call::Result;
use crate::pg::sql::{Parameter, Sees, execute};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{self, Oid};
use std::ffi::CStr;

/// Returns whether Citus keeps the rows of a table in shards, other tables, so that the table
/// itself is empty. Asks a catalog of Citus by SQL, if the catalog exists, and fails as the
/// statement does.
pub fn is_distributed_by_citus(table: Oid) -> Result<bool> {
    const SHARDED_TABLE: &[u8] = b"SELECT true FROM pg_catalog.pg_dist_partition \
        WHERE logicalrelid OPERATOR(pg_catalog.=) $1::pg_catalog.oid";
    let pg_catalog = Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
    // SAFETY: this reads the catalog; the name is a C string.
    let citus_table =
        unsafe { pg_sys::get_relname_relid(c"pg_dist_partition".as_ptr(), pg_catalog) };
    if citus_table == Oid::INVALID {
        return Ok(false);
    }
    let values = [Parameter::Oid(table)];
    let num_rows = execute(&[SHARDED_TABLE], &values, Sees::CallingQuery, |_| Ok(()))?;
    Ok(num_rows > 0)
}

/// Returns the tables with rows that TimescaleDB has compressed: their indexes lack these rows.
/// Returns none if the extension isn't installed. Asks a view of TimescaleDB by SQL, as the calling
/// query sees it, and fails as the statement does.
pub fn compressed_by_timescale() -> Result<List<Oid>> {
    const COMPRESSED_CHUNKS: &[u8] = b"SELECT t.oid FROM timescaledb_information.chunks AS c \
        JOIN pg_catalog.pg_namespace AS n ON n.nspname OPERATOR(pg_catalog.=) c.chunk_schema \
        JOIN pg_catalog.pg_class AS t ON t.relname OPERATOR(pg_catalog.=) c.chunk_name \
            AND t.relnamespace OPERATOR(pg_catalog.=) n.oid WHERE c.is_compressed";
    let mut compressed = List::new();
    if has_timescale() {
        execute(&[COMPRESSED_CHUNKS], &[], Sees::CallingQuery, |row| {
            if let Some(oid) = row.number(1, pg_sys::OIDOID)? {
                compressed.push(Oid::from(oid as u32));
            }
            Ok(())
        })?;
    }
    Ok(compressed)
}

/// Returns whether TimescaleDB is installed in the database. Its view must belong to it: without
/// the extension, anybody may create such a schema.
fn has_timescale() -> bool {
    // The schema is looked up first, since that costs least where there is none.
    // SAFETY: this reads the catalogs; the names are C strings, or null.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"timescaledb_information".as_ptr(), true);
        if schema == Oid::INVALID {
            return false;
        }
        let view = pg_sys::get_relname_relid(c"chunks".as_ptr(), schema);
        let extension = pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, view);
        let name = pg_sys::get_extension_name(extension);
        !name.is_null() && CStr::from_ptr(name) == c"timescaledb"
    }
}
