//! The statements that read and change the rows of a set. They name its table, `{set}` below, and
//! qualify everything else, operators included: the caller's search_path decides nothing.

use crate::pg::call::Result;
use crate::pg::sql::{Planning, Prepared};
use pg_bloom_core::memory::List;
use pgrx::pg_sys;

/// Reads rows by an array of buckets. All statements return the bucket and the hashes of each row
/// that they read or change.
pub const READ: &str =
    "SELECT s.bucket, s.hashes FROM {set} AS s WHERE s.bucket OPERATOR(pg_catalog.=) ANY ($1)";

/// Follows [`READ`]: locks the rows, in the order of their hashes. Buckets as strings of bits have
/// that order.
const LOCK: &str = "
    ORDER BY pg_catalog.ltrim(s.bucket::pg_catalog.\"bit\"(64)::pg_catalog.text, '0') COLLATE pg_catalog.\"C\" \
    FOR NO KEY UPDATE";

/// Follows [`READ`]: locks the rows that no other transaction has locked.
const LOCK_SKIPPING_LOCKED: &str = " FOR NO KEY UPDATE SKIP LOCKED";

/// Gives rows, by an array of buckets, the hashes in another array.
const UPDATE: &str = "UPDATE {set} AS s SET hashes = n.hashes
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (bucket, hashes)
    WHERE s.bucket OPERATOR(pg_catalog.=) n.bucket
    RETURNING s.bucket, s.hashes";

/// Gives rows, by the array `$3` of their buckets, other buckets and hashes. A row that is split is
/// replaced so by its first half, which may then stay in its page.
const CHANGE_BUCKET: &str = "UPDATE {set} AS s SET bucket = n.bucket, hashes = n.hashes
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3)) AS n (bucket, hashes, old_bucket)
    WHERE s.bucket OPERATOR(pg_catalog.=) n.old_bucket
    RETURNING s.bucket, s.hashes";

/// Deletes rows by an array of buckets.
const DELETE: &str = "DELETE FROM {set} AS s WHERE s.bucket OPERATOR(pg_catalog.=) ANY ($1)
    RETURNING s.bucket, s.hashes";

/// Inserts rows with the buckets and the hashes in two arrays.
const INSERT: &str = "INSERT INTO {set} AS s (bucket, hashes) SELECT n.bucket, n.hashes
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (bucket, hashes)
    RETURNING s.bucket, s.hashes";

/// Reads the rows from a bucket on, in the order of buckets: the first 1,024.
pub const PAGE: &str =
    "SELECT s.bucket, s.hashes FROM {set} AS s WHERE s.bucket OPERATOR(pg_catalog.>=) $1
    ORDER BY s.bucket LIMIT 1024";

/// Prepares a statement on the table of a set. `{set}` in the statement is replaced by `table`, the
/// table's quoted name in the encoding of the database; `types` are the types of its parameters.
///
/// The statement is planned with the index of the primary key. A plan that was made while the table
/// was small would otherwise read all of it when the table has grown. Fails if preparing does.
pub fn prepared(statement: &str, table: &[u8], types: &[pg_sys::Oid]) -> Result<Prepared> {
    planned(statement, table, types, Planning::WithIndexes)
}

/// Prepares [`READ`] on the table of a set with this quoted name, for rows that aren't in memory:
/// the index of the primary key finds the pages of all of them before the first is read. Fails if
/// preparing does.
pub fn prepared_for_disk(table: &[u8]) -> Result<Prepared> {
    planned(READ, table, &[pg_sys::INT8ARRAYOID], Planning::WithBitmaps)
}

fn planned(
    statement: &str,
    table: &[u8],
    types: &[pg_sys::Oid],
    planning: Planning,
) -> Result<Prepared> {
    let parts: List<&[u8]> = statement.split("{set}").map(str::as_bytes).collect();
    Prepared::new(&[&parts.join(table)], types.into(), planning)
}

/// The statements that lock rows, and then return their newest versions, and those that change
/// rows.
pub struct Changes {
    /// Locks rows by their buckets, in the order of hashes, and waits for those that others have
    /// locked.
    pub lock: Prepared,
    /// Locks rows by their buckets, except those that other transactions have locked.
    pub lock_skipping_locked: Prepared,
    /// Updates the hashes of rows.
    pub update: Prepared,
    /// Updates the buckets and the hashes of rows.
    pub change_bucket: Prepared,
    pub delete: Prepared,
    pub insert: Prepared,
}

impl Changes {
    /// Prepares the statements that lock and change rows of the set whose table has this quoted
    /// name. Fails if preparing does.
    pub fn new(table: &[u8]) -> Result<Changes> {
        let buckets = pg_sys::INT8ARRAYOID;
        let hashes = pg_sys::BYTEAARRAYOID;
        Ok(Changes {
            lock: prepared(&[READ, LOCK].concat(), table, &[buckets])?,
            lock_skipping_locked: prepared(
                &[READ, LOCK_SKIPPING_LOCKED].concat(),
                table,
                &[buckets],
            )?,
            update: prepared(UPDATE, table, &[buckets, hashes])?,
            change_bucket: prepared(CHANGE_BUCKET, table, &[buckets, hashes, buckets])?,
            delete: prepared(DELETE, table, &[buckets])?,
            insert: prepared(INSERT, table, &[buckets, hashes])?,
        })
    }
}
