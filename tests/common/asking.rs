//! Asking a table twice, by its index and by a sequential scan.
//!
//! Both must give the same rows. Where a query asks for few rows, the index must be of use as well:
//! a scan of it that reads most pages of the table has lost what the query asks for.

use super::{column, rows, run, value};
use postgres::{Client, Error};
use std::collections::BTreeMap;

/// Lets the planner use indexes only. Some of these settings keep B-trees and hash joins out of the
/// way.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_bitmapscan = on; SET enable_indexscan = off;
    SET enable_indexonlyscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off";
/// Lets the planner use no index.
const BY_SCAN: &str = "SET enable_seqscan = on; SET enable_bitmapscan = off; SET enable_indexscan = off;
    SET enable_indexonlyscan = off; RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material";

/// The most of a table that a scan of an index may read: this share of its pages, and a few ranges.
const MOST_READ: f64 = 0.5;
const FEW_PAGES: f64 = 24.0;

/// What a query of one text column gave, by an index and by a sequential scan.
pub struct Answers {
    pub by_index: Vec<String>,
    pub by_scan: Vec<String>,
    /// The plan of the first.
    plan: String,
    /// What the first read.
    reads: Vec<TableReads>,
}

/// What scans of the `bloom_filter` indexes of a table have read of it.
#[derive(Clone, Copy)]
pub struct TableReads {
    scans: i64,
    pages_read: i64,
    pages: i64,
}

impl TableReads {
    /// Returns the share of the table's pages that a scan has read, in the mean. A page may count
    /// twice: the scan of the index reads it, and PostgreSQL reads it again.
    pub fn share(self) -> f64 {
        self.pages_read as f64 / (self.scans * self.pages).max(1) as f64
    }

    /// Returns whether more was read than what a few ranges and half of the table have.
    fn is_most(self) -> bool {
        self.share() > MOST_READ + FEW_PAGES / self.pages.max(1) as f64
    }
}

/// Counters of what this transaction has read so far, by the tables with a `bloom_filter` index.
struct Counters(BTreeMap<u32, TableReads>);

impl Counters {
    fn now(client: &mut Client) -> Result<Counters, Error> {
        const SQL: &str = "SELECT indrelid, sum(pg_stat_get_xact_numscans(indexrelid))::bigint,
                pg_stat_get_xact_blocks_fetched(indrelid), pg_relation_size(indrelid) / 8192
            FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
            WHERE amname = 'bloom_filter' GROUP BY indrelid";
        let of_row = |row: postgres::Row| {
            let reads = TableReads { scans: row.get(1), pages_read: row.get(2), pages: row.get(3) };
            (row.get(0), reads)
        };
        Ok(Counters(client.query(SQL, &[])?.into_iter().map(of_row).collect()))
    }

    /// Returns what was read since then of the tables whose indexes were scanned.
    fn reads_since(&self, earlier: &Counters) -> Vec<TableReads> {
        let since = self.0.iter().map(|(table, now)| {
            let before = earlier.0.get(table);
            TableReads {
                scans: now.scans - before.map_or(0, |before| before.scans),
                pages_read: now.pages_read - before.map_or(0, |before| before.pages_read),
                pages: now.pages,
            }
        });
        since.filter(|reads| reads.scans > 0).collect()
    }
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
        // Counters are asked for without the settings for indexes, under which their query would cost
        // so much that PostgreSQL compiles it.
        let before = Counters::now(client)?;
        client.batch_execute(BY_INDEX)?;
        let plan = texts(client, &format!("EXPLAIN (COSTS OFF) {sql}"))?.join("\n");
        let mut by_index = texts(client, sql)?;
        client.batch_execute(BY_SCAN)?;
        let reads = Counters::now(client)?.reads_since(&before);
        let mut by_scan = texts(client, sql)?;
        by_index.sort_unstable();
        by_scan.sort_unstable();
        Ok(Answers { by_index, by_scan, plan, reads })
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
/// sequential scan. Returns how many rows there are.
pub fn agree(client: &mut Client, index: &str, sql: &str) -> usize {
    answers(client, index, sql).by_scan.len()
}

/// Asserts the same of a query that asks for few rows, by what an index can know: so the scan of the
/// index reads only a part of the table.
pub fn agree_by_part(client: &mut Client, index: &str, sql: &str) -> usize {
    let answers = answers(client, index, sql);
    let reads_most = answers.reads.iter().find(|reads| reads.is_most());
    if let Some(TableReads { scans, pages_read, pages }) = reads_most {
        panic!("{sql}\n{scans} scans read {pages_read} pages of a table of {pages}");
    }
    answers.by_scan.len()
}

fn answers(client: &mut Client, index: &str, sql: &str) -> Answers {
    let answers = Answers::of(client, sql).unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}"));
    assert!(answers.used(index), "{index} is not used:\n{sql}\n{}", answers.plan);
    answers.assert_same(sql);
    answers
}

/// Returns which share of its table's pages each of these queries reads by an index: 0 if it scans
/// none.
pub fn shares_read(client: &mut Client, queries: &[String]) -> Vec<f64> {
    run(client, "BEGIN");
    run(client, BY_INDEX);
    let mut shares = Vec::new();
    let counters = |client: &mut Client| Counters::now(client).expect("counters can be read");
    let mut before = counters(client);
    for query in queries {
        rows(client, query);
        let now = counters(client);
        let reads = now.reads_since(&before);
        shares.push(reads.into_iter().map(TableReads::share).fold(0.0, f64::max));
        before = now;
    }
    run(client, "COMMIT");
    shares
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
