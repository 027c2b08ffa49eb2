//! The statements about a set. They name its table, `{set}` below, and qualify everything else, operators included.
//!
//! Rows of sets with generations are looked up by one number, `generation << 32 | shard`, on which the table has an
//! index: PostgreSQL looks up a list of such numbers in one scan of the index, while pairs of numbers need a join,
//! which takes twice as long. These statements are planned with that index from the start: a plan that was made while
//! the table was small would read all of it later.

use crate::pg::call::error::Result;
use crate::pg::sql::Prepared;
use pgrx::pg_sys::{self, Oid};

/// The number by which rows of sets with generations are looked up, `{both}` below.
pub const BOTH_NUMBERS: &str =
    "pg_catalog.int8or(pg_catalog.int8shl(generation::pg_catalog.int8, 32), shard::pg_catalog.int8)";

const READ: &str = "SELECT s.shard, s.filter FROM {set} AS s WHERE s.shard OPERATOR(pg_catalog.=) ANY ($1)";

const LOCK: &str = "SELECT s.shard, s.filter FROM {set} AS s
    WHERE s.shard OPERATOR(pg_catalog.=) ANY ($1)
    ORDER BY s.shard FOR NO KEY UPDATE";

const UPDATE: &str = "UPDATE {set} AS s SET filter = n.filter
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (shard, filter)
    WHERE s.shard OPERATOR(pg_catalog.=) n.shard
    RETURNING s.shard, s.filter";

const READ_GENERATIONS: &str = "SELECT s.shard, s.filter, s.generation, s.shards, s.changed FROM {set} AS s
    WHERE {both} OPERATOR(pg_catalog.=) ANY ($1)";

const LOCK_GENERATIONS: &str = "SELECT s.shard, s.filter, s.generation, s.shards, s.changed FROM {set} AS s
    WHERE {both} OPERATOR(pg_catalog.=) ANY ($1)
    ORDER BY s.generation, s.shard FOR NO KEY UPDATE";

const UPDATE_GENERATIONS: &str = "UPDATE {set} AS s SET filter = n.filter, changed = GREATEST(s.changed, $3)
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (both_numbers, filter)
    WHERE {both} OPERATOR(pg_catalog.=) n.both_numbers
    RETURNING s.shard, s.filter, s.generation, s.shards, s.changed";

/// Reads the first row of each generation by an index scan for each, and `until` from the row after the last.
const LIST: &str = "WITH RECURSIVE g AS (
        (SELECT s.generation, s.shards, s.since, s.oldest FROM {set} AS s
         WHERE s.shard OPERATOR(pg_catalog.=) 0
         ORDER BY s.generation LIMIT 1)
        UNION ALL
        SELECT n.* FROM g, LATERAL (
            SELECT s.generation, s.shards, s.since, s.oldest FROM {set} AS s
            WHERE s.generation OPERATOR(pg_catalog.>) g.generation AND s.shard OPERATOR(pg_catalog.=) 0
            ORDER BY s.generation LIMIT 1) AS n)
    SELECT g.generation, g.shards, g.since,
        (SELECT s.until FROM {set} AS s
         WHERE s.generation OPERATOR(pg_catalog.=) g.generation AND s.shard OPERATOR(pg_catalog.=) g.shards),
        g.oldest
    FROM g ORDER BY g.generation";

const LAST_CHANGE: &str = "SELECT pg_catalog.max(s.changed) FROM {set} AS s
    WHERE s.generation OPERATOR(pg_catalog.=) $1 AND s.until IS NULL";

const END: &str = "INSERT INTO {set} (generation, shard, shards, changed, filter, until)
    VALUES ($1, $2, $2, $3, $4, $3)";

const MAKE: &str = "INSERT INTO {set} (generation, shard, shards, changed, filter, since, oldest)
    SELECT $1, i, $2, $4, $5,
        CASE WHEN i OPERATOR(pg_catalog.=) 0 THEN $4 END,
        CASE WHEN i OPERATOR(pg_catalog.=) 0 THEN $6 END
    FROM pg_catalog.generate_series(0, $3) AS i";

const DROP: &str = "DELETE FROM {set} AS s WHERE s.generation OPERATOR(pg_catalog.<) $1";

const DROP_UNLOCKED: &str = "WITH free AS MATERIALIZED (
        SELECT s.generation, s.shard FROM {set} AS s
        WHERE s.generation OPERATOR(pg_catalog.<) $1 FOR UPDATE SKIP LOCKED)
    DELETE FROM {set} AS s USING free
    WHERE s.generation OPERATOR(pg_catalog.=) free.generation AND s.shard OPERATOR(pg_catalog.=) free.shard";

/// A statement with the name of its table, which is in the encoding of the database.
fn named(statement: &str, table: &[u8]) -> Vec<u8> {
    let statement = statement.replace("{both}", BOTH_NUMBERS);
    let parts: Vec<&[u8]> = statement.split("{set}").map(str::as_bytes).collect();
    parts.join(table)
}

/// Reads rows: shard and filter; with generations also generation, number of shards, and time of the last change.
///
/// # Errors
/// Those of preparing it.
pub fn read(table: &[u8], has_generations: bool) -> Result<Prepared> {
    if has_generations {
        return Ok(Prepared::new(&[&named(READ_GENERATIONS, table)], &[pg_sys::INT8ARRAYOID])?.with_index());
    }
    Prepared::new(&[&named(READ, table)], &[pg_sys::INT4ARRAYOID])
}

/// Two statements: one locks rows in the order of their generations and shards, and one changes their filters;
/// `filters` is the type `bloom[]`. With generations the last parameter of the change is its time.
///
/// # Errors
/// Those of preparing them.
pub fn write(table: &[u8], filters: Oid, has_generations: bool) -> Result<(Prepared, Prepared)> {
    if has_generations {
        let types = [pg_sys::INT8ARRAYOID, filters, pg_sys::TIMESTAMPTZOID];
        let lock = Prepared::new(&[&named(LOCK_GENERATIONS, table)], &types[..1])?;
        let update = Prepared::new(&[&named(UPDATE_GENERATIONS, table)], &types)?;
        return Ok((lock.with_index(), update.with_index()));
    }
    let types = [pg_sys::INT4ARRAYOID, filters];
    Ok((Prepared::new(&[&named(LOCK, table)], &types[..1])?, Prepared::new(&[&named(UPDATE, table)], &types)?))
}

/// The statements about generations.
pub struct About {
    /// Returns each generation: its number, its number of shards, since, until, and the oldest that counted when it was
    /// made.
    pub list: Prepared,
    /// Returns when something in a generation changed last.
    pub last_change: Prepared,
    /// Writes that a generation has ended, in a row after its last: its number, number of shards, now, an empty filter.
    pub end: Prepared,
    /// Makes the rows of a generation: its number, number of shards, the last shard, now, a filter, the oldest that
    /// counts.
    pub make: Prepared,
    /// Deletes the generations before one.
    pub drop: Prepared,
    /// The same, except rows that another transaction has locked.
    pub drop_unlocked: Prepared,
}

impl About {
    /// Prepares them for a set; `bloom` is the type of filters.
    ///
    /// # Errors
    /// Those of preparing them.
    pub fn new(table: &[u8], bloom: Oid) -> Result<About> {
        let (int, time) = (pg_sys::INT4OID, pg_sys::TIMESTAMPTZOID);
        Ok(About {
            list: Prepared::new(&[&named(LIST, table)], &[])?.with_index(),
            last_change: Prepared::new(&[&named(LAST_CHANGE, table)], &[int])?,
            end: Prepared::seldom(&[&named(END, table)], &[int, int, time, bloom])?,
            make: Prepared::seldom(&[&named(MAKE, table)], &[int, int, int, time, bloom, int])?,
            drop: Prepared::seldom(&[&named(DROP, table)], &[int])?,
            drop_unlocked: Prepared::seldom(&[&named(DROP_UNLOCKED, table)], &[int])?,
        })
    }
}
