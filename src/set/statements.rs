//! The statements about a set. They name its table, `{set}` below, and qualify everything else,
//! operators included.

use crate::pg::call::Result;
use crate::pg::sql::Prepared;
use pgrx::pg_sys;

/// Reads rows by an array of buckets. All statements return bucket and hashes.
pub const READ: &str =
    "SELECT s.bucket, s.hashes FROM {set} AS s WHERE s.bucket OPERATOR(pg_catalog.=) ANY ($1)";

/// After [`READ`]. The order of hashes is that of buckets as strings of bits.
const LOCK: &str = "
    ORDER BY pg_catalog.ltrim(s.bucket::pg_catalog.\"bit\"(64)::pg_catalog.text, '0') COLLATE pg_catalog.\"C\" \
    FOR NO KEY UPDATE";

/// After [`READ`].
const LOCK_FREE: &str = " FOR NO KEY UPDATE SKIP LOCKED";

const UPDATE: &str = "UPDATE {set} AS s SET hashes = n.hashes
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (bucket, hashes)
    WHERE s.bucket OPERATOR(pg_catalog.=) n.bucket
    RETURNING s.bucket, s.hashes";

/// Another row in the place of one: what keeps a page's free space in use when its rows are split.
const MOVE: &str = "UPDATE {set} AS s SET bucket = n.bucket, hashes = n.hashes
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3)) AS n (bucket, hashes, place)
    WHERE s.bucket OPERATOR(pg_catalog.=) n.place
    RETURNING s.bucket, s.hashes";

const DELETE: &str = "DELETE FROM {set} AS s WHERE s.bucket OPERATOR(pg_catalog.=) ANY ($1)
    RETURNING s.bucket, s.hashes";

const INSERT: &str = "INSERT INTO {set} AS s (bucket, hashes) SELECT n.bucket, n.hashes
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (bucket, hashes)
    RETURNING s.bucket, s.hashes";

/// Reads the rows from a bucket on, some at a time.
pub const PAGE: &str =
    "SELECT s.bucket, s.hashes FROM {set} AS s WHERE s.bucket OPERATOR(pg_catalog.>=) $1
    ORDER BY s.bucket LIMIT 1024";

/// A statement with the name of its table, which is in the encoding of the database. It is planned
/// with the index of the primary key: a plan made while the table was small would read all of it
/// later.
pub fn prepared(statement: &str, table: &[u8], types: &[pg_sys::Oid]) -> Result<Prepared> {
    let parts: Vec<&[u8]> = statement.split("{set}").map(str::as_bytes).collect();
    Prepared::new(&[&parts.join(table)], types.to_vec(), true)
}

/// The statements that lock rows, and return their newest versions, and those that change them.
pub struct Changes {
    /// In the order of hashes.
    pub lock: Prepared,
    /// Only rows that no other transaction has locked.
    pub lock_free: Prepared,
    pub update: Prepared,
    pub replace: Prepared,
    pub delete: Prepared,
    pub insert: Prepared,
}

impl Changes {
    pub fn new(table: &[u8]) -> Result<Changes> {
        let places = [
            pg_sys::INT8ARRAYOID,
            pg_sys::BYTEAARRAYOID,
            pg_sys::INT8ARRAYOID,
        ];
        let types = &places[..2];
        Ok(Changes {
            lock: prepared(&[READ, LOCK].concat(), table, &types[..1])?,
            lock_free: prepared(&[READ, LOCK_FREE].concat(), table, &types[..1])?,
            update: prepared(UPDATE, table, types)?,
            replace: prepared(MOVE, table, &places)?,
            delete: prepared(DELETE, table, &types[..1])?,
            insert: prepared(INSERT, table, types)?,
        })
    }
}
