//! The statements about a set. They name its table and qualify everything else, operators included.
//!
//! Rows of many generations are given as one array of both numbers, `generation << 32 | shard`, which an index of the
//! table has: PostgreSQL looks up a list of values of one column in a scan of an index, and pairs of values by a join,
//! which takes twice as long. The plans are made with an index from the start: one that was made while the table was
//! small would read all of it later.

use crate::pg::call::Element;
use crate::pg::call::error::Result;
use crate::pg::sql::Prepared;
use crate::pg::value::array;
use pg_bloom_core::memory;
use pgrx::pg_sys::{self, Datum, Oid};

/// Reads rows: shard, filter, and for those of generations also generation, number of shards, time of the last change.
pub fn read(table: &[u8], has_generations: bool) -> Result<Prepared> {
    if !has_generations {
        return Prepared::new(
            &[b"SELECT s.shard, s.filter FROM ", table, b" AS s WHERE s.shard OPERATOR(pg_catalog.=) ANY ($1)"],
            &[pg_sys::INT4ARRAYOID],
        );
    }
    let read = Prepared::new(
        &[
            b"SELECT s.shard, s.filter, s.generation, s.shards, s.changed FROM ",
            table,
            b" AS s WHERE ",
            BOTH_NUMBERS,
            b" OPERATOR(pg_catalog.=) ANY ($1)",
        ],
        &[pg_sys::INT8ARRAYOID],
    )?;
    Ok(read.with_index())
}

/// The expression that the index has.
pub const BOTH_NUMBERS: &[u8] =
    b"pg_catalog.int8or(pg_catalog.int8shl(generation::pg_catalog.int8, 32), shard::pg_catalog.int8)";

/// Generations and shards as an array of its values.
pub fn both_numbers(rows: impl ExactSizeIterator<Item = (i32, u32)>) -> Datum {
    let both = |(generation, shard): (i32, u32)| Datum::from((i64::from(generation) << 32) | i64::from(shard));
    let numbers = memory::collect(rows.map(|row| Element { datum: both(row) }));
    array::array_of(pg_sys::INT8ARRAYOID, pg_sys::INT8OID, numbers)
}

/// Numbers as an array of integers.
pub fn numbers(numbers: impl ExactSizeIterator<Item = u32>) -> Datum {
    let numbers = memory::collect(numbers.map(|number| Element { datum: Datum::from(number as i32) }));
    array::array_of(pg_sys::INT4ARRAYOID, pg_sys::INT4OID, numbers)
}

/// Locks rows in the order of their shards, and changes them; `filters` is the type `bloom[]`.
pub fn write(table: &[u8], filters: Oid) -> Result<(Prepared, Prepared)> {
    let lock = Prepared::new(
        &[
            b"SELECT s.shard, s.filter FROM ",
            table,
            b" AS s WHERE s.shard OPERATOR(pg_catalog.=) ANY ($1) ORDER BY s.shard FOR NO KEY UPDATE",
        ],
        &[pg_sys::INT4ARRAYOID],
    )?;
    let update = Prepared::new(
        &[
            b"UPDATE ",
            table,
            b" AS s SET filter = n.filter ",
            b"FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (shard, filter) ",
            b"WHERE s.shard OPERATOR(pg_catalog.=) n.shard RETURNING s.shard, s.filter",
        ],
        &[pg_sys::INT4ARRAYOID, filters],
    )?;
    Ok((lock, update))
}

/// The same of rows of generations; the last parameter of the change is its time.
pub fn write_generation(table: &[u8], filters: Oid) -> Result<(Prepared, Prepared)> {
    let lock = Prepared::new(
        &[
            b"SELECT s.shard, s.filter, s.generation, s.shards, s.changed FROM ",
            table,
            b" AS s WHERE ",
            BOTH_NUMBERS,
            b" OPERATOR(pg_catalog.=) ANY ($1) ORDER BY s.generation, s.shard FOR NO KEY UPDATE",
        ],
        &[pg_sys::INT8ARRAYOID],
    )?;
    let update = Prepared::new(
        &[
            b"UPDATE ",
            table,
            b" AS s SET filter = n.filter, changed = GREATEST(s.changed, $3) ",
            b"FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (both_numbers, filter) WHERE ",
            BOTH_NUMBERS,
            b" OPERATOR(pg_catalog.=) n.both_numbers ",
            b"RETURNING s.shard, s.filter, s.generation, s.shards, s.changed",
        ],
        &[pg_sys::INT8ARRAYOID, filters, pg_sys::TIMESTAMPTZOID],
    )?;
    Ok((lock.with_index(), update.with_index()))
}

/// What is asked and done about generations.
pub struct About {
    /// The first row of each generation: its number, number of shards, since, until (from the row after its last), the
    /// oldest that counted then.
    pub list: Prepared,
    /// When something in a generation changed last.
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
    /// Those of a set; `bloom` is the type of filters.
    ///
    /// # Errors
    /// Those of preparing them.
    pub fn new(table: &[u8], bloom: Oid) -> Result<About> {
        let first = b"SELECT s.generation, s.shards, s.since, s.oldest FROM ".as_slice();
        let list = Prepared::new(
            &[
                b"WITH RECURSIVE g AS ((",
                first,
                table,
                b" AS s WHERE s.shard OPERATOR(pg_catalog.=) 0 ORDER BY s.generation LIMIT 1) UNION ALL ",
                b"SELECT n.* FROM g, LATERAL (",
                first,
                table,
                b" AS s WHERE s.generation OPERATOR(pg_catalog.>) g.generation AND s.shard OPERATOR(pg_catalog.=) 0 ",
                b"ORDER BY s.generation LIMIT 1) AS n) SELECT g.generation, g.shards, g.since, (SELECT s.until FROM ",
                table,
                b" AS s WHERE s.generation OPERATOR(pg_catalog.=) g.generation AND s.shard OPERATOR(pg_catalog.=) g.shards), ",
                b"g.oldest FROM g ORDER BY g.generation",
            ],
            &[],
        )?
        .with_index();
        let last_change = Prepared::new(
            &[
                b"SELECT pg_catalog.max(s.changed) FROM ",
                table,
                b" AS s WHERE s.generation OPERATOR(pg_catalog.=) $1 AND s.until IS NULL",
            ],
            &[pg_sys::INT4OID],
        )?;
        let end = Prepared::seldom(
            &[
                b"INSERT INTO ",
                table,
                b" (generation, shard, shards, changed, filter, until) VALUES ($1, $2, $2, $3, $4, $3)",
            ],
            &[pg_sys::INT4OID, pg_sys::INT4OID, pg_sys::TIMESTAMPTZOID, bloom],
        )?;
        let make = Prepared::seldom(
            &[
                b"INSERT INTO ",
                table,
                b" (generation, shard, shards, changed, filter, since, oldest) SELECT $1, i, $2, $4, $5, ",
                b"CASE WHEN i OPERATOR(pg_catalog.=) 0 THEN $4 END, CASE WHEN i OPERATOR(pg_catalog.=) 0 THEN $6 END ",
                b"FROM pg_catalog.generate_series(0, $3) AS i",
            ],
            &[pg_sys::INT4OID, pg_sys::INT4OID, pg_sys::INT4OID, pg_sys::TIMESTAMPTZOID, bloom, pg_sys::INT4OID],
        )?;
        let (drop, drop_unlocked) = drop_statements(table)?;
        Ok(About { list, last_change, end, make, drop, drop_unlocked })
    }
}

/// Those that delete the generations before one: all of their rows, or those that nobody has locked.
fn drop_statements(table: &[u8]) -> Result<(Prepared, Prepared)> {
    let drop = Prepared::seldom(
        &[b"DELETE FROM ", table, b" AS s WHERE s.generation OPERATOR(pg_catalog.<) $1"],
        &[pg_sys::INT4OID],
    )?;
    let drop_unlocked = Prepared::seldom(
        &[
            b"WITH free AS MATERIALIZED (SELECT s.generation, s.shard FROM ",
            table,
            b" AS s WHERE s.generation OPERATOR(pg_catalog.<) $1 FOR UPDATE SKIP LOCKED) DELETE FROM ",
            table,
            b" AS s USING free WHERE s.generation OPERATOR(pg_catalog.=) free.generation AND s.shard ",
            b"OPERATOR(pg_catalog.=) free.shard",
        ],
        &[pg_sys::INT4OID],
    )?;
    Ok((drop, drop_unlocked))
}
