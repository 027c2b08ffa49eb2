//! Asking a table twice, by its index and by a sequential scan.

use super::{column, value};
use postgres::{Client, Error};

/// Lets the planner use indexes only. Some of these settings keep B-trees and hash joins out of the
/// way.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_bitmapscan = on; SET enable_indexscan = off;
    SET enable_indexonlyscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off";
/// Lets the planner use no index.
const BY_SCAN: &str = "SET enable_seqscan = on; SET enable_bitmapscan = off; SET enable_indexscan = off;
    SET enable_indexonlyscan = off; RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material";

/// What a query of one text column gave, by an index and by a sequential scan.
pub struct Answers {
    pub by_index: Vec<String>,
    pub by_scan: Vec<String>,
    /// The plan of the first.
    plan: String,
}

impl Answers {
    /// Asks both ways, of one snapshot.
    pub fn of(client: &mut Client, sql: &str) -> Result<Answers, Error> {
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        let answers = Answers::of_transaction(client, sql)?;
        client.batch_execute("COMMIT")?;
        Ok(answers)
    }

    /// The same on a standby; `None` if the index was made after the snapshot was taken.
    ///
    /// REINDEX CONCURRENTLY lets nobody use the new index before all snapshots are gone that may
    /// see rows which it lacks, but it can't know those of a standby: there any new index may lack
    /// what was updated before it was made. A B-tree lacks the same row: take a snapshot on the
    /// standby, UPDATE and REINDEX CONCURRENTLY on the primary; in version 15 an index scan misses
    /// the old row, which a sequential scan finds.
    pub fn of_standby(
        client: &mut Client,
        sql: &str,
        index: &str,
    ) -> Result<Option<Answers>, Error> {
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        let answers = Answers::of_transaction(client, sql)?;
        // A query sees the catalog as it was; the cast looks at it as it is.
        let is_newer = format!(
            "SELECT (SELECT oid FROM pg_class WHERE relname = '{index}') IS DISTINCT FROM to_regclass('{index}')"
        );
        let is_newer: bool = client.query_one(&is_newer, &[])?.get(0);
        client.batch_execute("COMMIT")?;
        Ok((!is_newer).then_some(answers))
    }

    /// Asks both ways in a transaction that is under way.
    pub fn of_transaction(client: &mut Client, sql: &str) -> Result<Answers, Error> {
        client.batch_execute(BY_INDEX)?;
        let plan = texts(client, &format!("EXPLAIN (COSTS OFF) {sql}"))?.join("\n");
        let mut by_index = texts(client, sql)?;
        client.batch_execute(BY_SCAN)?;
        let mut by_scan = texts(client, sql)?;
        by_index.sort_unstable();
        by_scan.sort_unstable();
        Ok(Answers { by_index, by_scan, plan })
    }

    /// Whether the first was by one of the indexes whose names begin like this.
    pub fn used(&self, index: &str) -> bool {
        self.plan.contains(&format!("Bitmap Index Scan on {index}"))
    }

    /// Asserts that both are one.
    pub fn assert_same(&self, sql: &str) {
        let Answers { by_index, by_scan, .. } = self;
        let without = |a: &[String], b: &[String]| {
            a.iter().filter(|row| !b.contains(row)).cloned().collect::<Vec<_>>()
        };
        assert!(
            by_index == by_scan,
            "{sql}\n{} rows by the index, {} by a sequential scan\nthe index lacks {:?}\nand has {:?} too many",
            by_index.len(),
            by_scan.len(),
            without(by_scan, by_index),
            without(by_index, by_scan)
        );
    }
}

fn texts(client: &mut Client, sql: &str) -> Result<Vec<String>, Error> {
    Ok(client.query(sql, &[])?.iter().map(|row| row.get(0)).collect())
}

/// Asserts that a query uses an index of a name that begins like this, and gives the same rows by a
/// sequential scan. Returns how many these are.
pub fn agree(client: &mut Client, index: &str, sql: &str) -> usize {
    let answers = Answers::of(client, sql).unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}"));
    assert!(answers.used(index), "{index} is not used:\n{sql}\n{}", answers.plan);
    answers.assert_same(sql);
    answers.by_scan.len()
}

/// A query for each of these keys, given as SQL expressions of one type: which rows of `table` have
/// it in `column`? Each key is a row of the answer, also where no row has it.
pub fn each(table: &str, column: &str, condition: &str, keys: &[String]) -> String {
    format!(
        "SELECT k::text || ': ' || coalesce(
            (SELECT string_agg(id::text, ',' ORDER BY id) FROM {table} WHERE {column} = k{condition}), 'none')
         FROM unnest(ARRAY[{}]) WITH ORDINALITY AS key (k, i) ORDER BY i",
        keys.join(", ")
    )
}

/// The same keys in one question.
pub fn any(table: &str, column: &str, condition: &str, keys: &[String]) -> String {
    format!(
        "SELECT id::text FROM {table} WHERE {column} = ANY (ARRAY[{}]){condition} ORDER BY id::text",
        keys.join(", ")
    )
}

/// Asserts that the index finds every row, by its own check. Returns how many it looked at.
pub fn check(client: &mut Client, index: &str) -> i64 {
    value(client, &format!("SELECT bloom_index_check('{index}')"))
}

/// The `bloom_filter` indexes of a table that can be used.
pub fn indexes(client: &mut Client, table: &str) -> Vec<String> {
    column(
        client,
        &format!(
            "SELECT c.relname::text FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
             WHERE indrelid = '{table}'::regclass AND amname = 'bloom_filter' AND indisvalid AND indisready ORDER BY 1"
        ),
    )
}
