//! The index over a column of filters, in a server: what a lookup costs with it and without, and
//! what it costs to have it.
//!
//! | table | filters of 10,000 elements at 1 % | indexed |
//! |---|---:|---|
//! | `few` | a 500th of the rows | `few_seen` |
//! | `many` | a 100th: `few` five times over | `many_seen` |
//! | `bare` | none: what is inserted | no |

use crate::database::Database;
use crate::{ROUNDS, Row, against_figure, median, show};

/// Elements of a filter.
const ELEMENTS: usize = 10_000;
/// Questions of a measurement with the index, and without.
const QUESTIONS: [usize; 2] = [100, 1];
/// How often something is built or read whole, in turn.
const BUILDS: usize = 3;
/// Filters that are added, one a statement: fewer than the slots of a tile, so that one of its
/// pages in a hundred is new. As many before them let every page have its image in the log.
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
    /// Where the filters are.
    pub database: Database,
    few: usize,
}

impl Bench {
    /// Makes a database and the tables.
    pub fn new(rows: usize) -> Bench {
        let few = (rows / 500).max(1);
        let mut bench = Bench { database: Database::create("filters"), few };
        bench
            .database
            .run("SET maintenance_work_mem = '256MB'; SET synchronous_commit = off");
        bench.database.run(ASK);
        bench.database.run(&format!(
            "CREATE TABLE few (id bigint, seen bloom) WITH (autovacuum_enabled = off);
             CREATE TABLE many (LIKE few) WITH (autovacuum_enabled = off);
             CREATE TABLE bare (LIKE few) WITH (autovacuum_enabled = off);
             INSERT INTO few SELECT i, bloom_from_array(ARRAY(
                 SELECT 'trace ' || (i * {ELEMENTS} + j) FROM generate_series(1, {ELEMENTS}) AS j), {ELEMENTS}, 0.01)
             FROM generate_series(1, {few}) AS i;
             INSERT INTO many SELECT copy * {few} + id, seen FROM generate_series(0, 4) AS copy, few"
        ));
        bench.database.run("VACUUM (FREEZE, ANALYZE) few");
        bench.database.run("VACUUM (FREEZE, ANALYZE) many");
        bench
    }

    /// All measurements.
    pub fn measure(&mut self) -> Vec<Row> {
        let mut rows = vec![self.build()];
        self.database
            .run("CREATE INDEX many_seen ON many USING bloom_filter (seen)");
        rows.push(self.size());
        rows.push(self.against_a_scan());
        rows.push(self.of_many());
        rows.extend(self.adding());
        rows
    }

    /// The build against reading each filter of the table.
    fn build(&mut self) -> Row {
        let (mut building, mut reading) = (Vec::new(), Vec::new());
        for _ in 0..BUILDS {
            // The disk may still be busy with what was written before.
            self.database.run("CHECKPOINT");
            reading.push(self.database.time("SELECT sum(length(seen::bytea)) FROM few"));
            self.database.run("DROP INDEX IF EXISTS few_seen");
            building.push(
                self.database
                    .time("CREATE INDEX few_seen ON few USING bloom_filter (seen)"),
            );
        }
        let work = format!("CREATE INDEX, {} filters", self.few);
        Row::timed(work, "reading the filters", &mut building, &mut reading, 3.0)
    }

    fn size(&mut self) -> Row {
        let ours: i64 = self.database.value("SELECT pg_relation_size('few_seen')");
        let theirs: i64 = self.database.value("SELECT sum(length(seen::bytea)) FROM few");
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
            .database
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
            self.database
                .run("SET enable_seqscan = off; SET enable_bitmapscan = on");
            let with = self.ask("few", round, QUESTIONS[0]);
            self.database
                .run("SET enable_seqscan = on; SET enable_bitmapscan = off");
            let without = self.ask("few", round, QUESTIONS[1]);
            if round > 0 {
                ours.push(with);
                theirs.push(without);
            }
        }
        self.database.run("RESET enable_seqscan; RESET enable_bitmapscan");
        let work = format!("`seen @> 'absent'`, {} filters", self.few);
        Row::timed(work, "a sequential scan", &mut ours, &mut theirs, 1.0 / 50.0)
    }

    /// An absent key among five times as many, with the plan that the planner takes.
    fn of_many(&mut self) -> Row {
        let mut times: Vec<f64> = (0..=ROUNDS)
            .map(|round| self.ask("many", round, QUESTIONS[0]))
            .skip(1)
            .collect();
        against_figure(
            format!("`seen @> 'absent'`, {} filters", self.few * 5),
            median(&mut times),
            0.002,
            show,
        )
    }

    /// Seconds and bytes of WAL of adding one filter to a table.
    fn add(&mut self, table: &str, id: usize) -> (f64, f64) {
        let wal = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
        let sql = format!(
            "INSERT INTO {table} SELECT {id}, seen FROM few WHERE ctid = (SELECT place FROM one)"
        );
        let before: f64 = self.database.value(wal);
        let seconds = self.database.time(&sql);
        (seconds, self.database.value::<f64>(wal) - before)
    }

    /// A filter that is added: what the index takes beyond a table without one.
    fn adding(&mut self) -> Vec<Row> {
        self.database.run("CREATE TEMP TABLE one AS SELECT ctid AS place FROM few LIMIT 1; ANALYZE one; CHECKPOINT");
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for id in 0..2 * ADDED {
            let (ours, theirs) = (self.add("many", id), self.add("bare", id));
            if id >= ADDED {
                with.push(ours);
                without.push(theirs);
            }
        }
        let part = |all: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
            median(&mut all.iter().map(of).collect::<Vec<f64>>())
        };
        let seconds = part(&with, |it| it.0) - part(&without, |it| it.0);
        let wal = part(&with, |it| it.1) - part(&without, |it| it.1);
        let filter: i64 = self
            .database
            .value("SELECT length(seen::bytea)::bigint FROM few LIMIT 1");
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
