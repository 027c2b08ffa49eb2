//! The index over a column of filters, in a server: what a question costs with it and without, and what it costs to
//! have it.
//!
//! | table | filters of 10,000 elements at 1 % | indexed |
//! |---|---:|---|
//! | `few` | a 500th of the rows | `few_seen` |
//! | `many` | a 100th: `few` five times over | `many_seen` |
//! | `bare` | none: what is inserted | no |

use crate::{ROUNDS, Row, against_figure, median, show};
use postgres::types::FromSqlOwned;
use postgres::{Client, NoTls};
use std::time::Instant;

/// Elements of a filter.
const ELEMENTS: usize = 10_000;
/// Questions of a measurement with the index, and without.
const QUESTIONS: [usize; 2] = [100, 1];
/// How often something is built or read whole, in turn.
const BUILDS: usize = 3;
/// Filters that are added, one a statement: fewer than the slots of a tile, so that one of its pages in a hundred is
/// new. As many before them let every page have its image in the log.
const ADDED: usize = 120;

/// Asks within the server, for keys that no filter was given: seconds of each question.
const ASK: &str = "
    CREATE FUNCTION ask(question text, round integer, questions integer) RETURNS float8[] LANGUAGE plpgsql AS $$
    DECLARE
        start timestamptz;
        times float8[] := '{}';
        ids bigint[];
    BEGIN
        FOR i IN 1 .. questions LOOP
            start := clock_timestamp();
            EXECUTE question INTO ids USING 'absent ' || round || ' ' || i;
            times := times || extract(epoch FROM clock_timestamp() - start)::float8;
        END LOOP;
        RETURN times;
    END $$";

/// A server with tables of filters.
pub struct Bench {
    client: Client,
    few: usize,
}

impl Bench {
    /// Connects to the server that the environment names, and makes the tables.
    pub fn connect(rows: usize) -> Bench {
        let host = std::env::var("PGHOST").expect("PGHOST names the server's socket: run this by make bench");
        let connect = |database: &str| {
            Client::connect(&format!("host={host} user=postgres dbname={database}"), NoTls)
                .expect("the server can be reached")
        };
        connect("postgres").batch_execute("CREATE DATABASE filters").expect("a database can be made");
        let few = (rows / 500).max(1);
        let mut bench = Bench { client: connect("filters"), few };
        bench.run("CREATE EXTENSION pg_bloom");
        bench.run(
            "SET max_parallel_workers_per_gather = 0; SET max_parallel_maintenance_workers = 0;
             SET maintenance_work_mem = '256MB'; SET synchronous_commit = off",
        );
        bench.run(ASK);
        bench.run(&format!(
            "CREATE TABLE few (id bigint, seen bloom) WITH (autovacuum_enabled = off);
             CREATE TABLE many (LIKE few) WITH (autovacuum_enabled = off);
             CREATE TABLE bare (LIKE few) WITH (autovacuum_enabled = off);
             INSERT INTO few SELECT i, bloom_from_array(ARRAY(
                 SELECT 'trace ' || (i * {ELEMENTS} + j) FROM generate_series(1, {ELEMENTS}) AS j), {ELEMENTS}, 0.01)
             FROM generate_series(1, {few}) AS i;
             INSERT INTO many SELECT copy * {few} + id, seen FROM generate_series(0, 4) AS copy, few"
        ));
        bench.run("VACUUM (FREEZE, ANALYZE) few");
        bench.run("VACUUM (FREEZE, ANALYZE) many");
        bench
    }

    /// Version of the server.
    pub fn version(&mut self) -> String {
        self.value("SHOW server_version")
    }

    /// All measurements.
    pub fn measure(&mut self) -> Vec<Row> {
        let mut rows = vec![self.build()];
        self.run("CREATE INDEX many_seen ON many USING bloom_filter (seen)");
        rows.push(self.size());
        rows.push(self.against_a_scan());
        rows.push(self.of_many());
        rows.extend(self.adding());
        rows
    }

    fn run(&mut self, sql: &str) {
        self.client.batch_execute(sql).unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}"));
    }

    fn value<T: FromSqlOwned>(&mut self, sql: &str) -> T {
        self.client.query_one(sql, &[]).unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}")).get(0)
    }

    fn time(&mut self, sql: &str) -> f64 {
        let start = Instant::now();
        self.run(sql);
        start.elapsed().as_secs_f64()
    }

    /// The build against reading each filter of the table.
    fn build(&mut self) -> Row {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..BUILDS {
            theirs.push(self.time("SELECT sum(length(seen::bytea)) FROM few"));
            self.run("DROP INDEX IF EXISTS few_seen");
            ours.push(self.time("CREATE INDEX few_seen ON few USING bloom_filter (seen)"));
        }
        Row::timed(format!("CREATE INDEX, {} filters", self.few), "reading the filters", &mut ours, &mut theirs, 3.0)
    }

    fn size(&mut self) -> Row {
        let ours: i64 = self.value("SELECT pg_relation_size('few_seen')");
        let theirs: i64 = self.value("SELECT sum(length(seen::bytea)) FROM few");
        let show = |bytes: i64| format!("{:.1} MB", bytes as f64 / 1e6);
        Row {
            work: format!("size, {} filters", self.few),
            against: "the filters".into(),
            ours: show(ours),
            theirs: show(theirs),
            ratio: ours as f64 / theirs as f64,
            bar: 1.2,
        }
    }

    /// The median of so many questions of this table.
    fn ask(&mut self, table: &str, round: usize, questions: usize) -> f64 {
        let question = format!("SELECT array_agg(id) FROM {table} WHERE seen @> $1");
        let mut times: Vec<f64> = self
            .client
            .query_one("SELECT ask($1, $2, $3)", &[&question, &(round as i32), &(questions as i32)])
            .expect("it can be asked")
            .get(0);
        median(&mut times)
    }

    /// An absent key: with the index, and by a sequential scan.
    fn against_a_scan(&mut self) -> Row {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            self.run("SET enable_seqscan = off; SET enable_bitmapscan = on");
            let with = self.ask("few", round, QUESTIONS[0]);
            self.run("SET enable_seqscan = on; SET enable_bitmapscan = off");
            let without = self.ask("few", round, QUESTIONS[1]);
            if round > 0 {
                ours.push(with);
                theirs.push(without);
            }
        }
        self.run("RESET enable_seqscan; RESET enable_bitmapscan");
        let work = format!("`seen @> 'absent'`, {} filters", self.few);
        Row::timed(work, "a sequential scan", &mut ours, &mut theirs, 1.0 / 50.0)
    }

    /// An absent key among five times as many, with the plan that the planner takes.
    fn of_many(&mut self) -> Row {
        let mut times: Vec<f64> = (0..=ROUNDS).map(|round| self.ask("many", round, QUESTIONS[0])).skip(1).collect();
        against_figure(format!("`seen @> 'absent'`, {} filters", self.few * 5), median(&mut times), 0.002, show)
    }

    /// Seconds and bytes of WAL of adding one filter to a table.
    fn add(&mut self, table: &str, id: usize) -> (f64, f64) {
        let wal = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
        let sql = format!("INSERT INTO {table} SELECT {id}, seen FROM few WHERE ctid = (SELECT place FROM one)");
        let before: f64 = self.value(wal);
        let seconds = self.time(&sql);
        (seconds, self.value::<f64>(wal) - before)
    }

    /// A filter that is added: what the index takes beyond a table without one.
    fn adding(&mut self) -> Vec<Row> {
        self.run("CREATE TEMP TABLE one AS SELECT ctid AS place FROM few LIMIT 1; ANALYZE one; CHECKPOINT");
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for id in 0..2 * ADDED {
            let (ours, theirs) = (self.add("many", id), self.add("bare", id));
            if id >= ADDED {
                with.push(ours);
                without.push(theirs);
            }
        }
        let part =
            |all: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| median(&mut all.iter().map(of).collect::<Vec<f64>>());
        let seconds = part(&with, |it| it.0) - part(&without, |it| it.0);
        let wal = part(&with, |it| it.1) - part(&without, |it| it.1);
        let filter: i64 = self.value("SELECT length(seen::bytea)::bigint FROM few LIMIT 1");
        let bytes = |bytes: f64| format!("{bytes:.0} bytes");
        vec![
            against_figure("adding a filter, beyond a table without index", seconds, 0.001, show),
            Row {
                work: "its WAL, beyond a table without index, steady".into(),
                against: "the filter".into(),
                ours: bytes(wal),
                theirs: bytes(filter as f64),
                ratio: wal / filter as f64,
                bar: 2.5,
            },
        ]
    }
}
