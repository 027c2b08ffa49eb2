//! A key in hundreds of partitions: `bloom_find` against the query on the parent.

use crate::database::Database;
use crate::{ROUNDS, Row, against_figure, median, show};
use std::fmt::Write;

/// Partitions of the table with bars.
const PARTITIONS: usize = 384;
/// Rows of a partition.
const ROWS: usize = 5_000;
/// Lookups of a measurement.
const LOOKUPS: usize = 40;

/// Runs a query for many keys within the server: seconds of each. `$1` is replaced by a number.
const LAP: &str = "
    CREATE FUNCTION lap(query text, first integer, lookups integer) RETURNS float8[] LANGUAGE plpgsql AS $$
    DECLARE
        start timestamptz;
        times float8[] := '{}';
    BEGIN
        FOR i IN first .. first + lookups - 1 LOOP
            start := clock_timestamp();
            EXECUTE replace(query, '$1', (i * 7919)::text);
            times := times || extract(epoch FROM clock_timestamp() - start)::float8;
        END LOOP;
        RETURN times;
    END $$";

/// A server with a partitioned table.
pub struct Bench {
    /// Where it is.
    pub database: Database,
}

impl Bench {
    /// Makes a database.
    pub fn new() -> Bench {
        let mut database = Database::create("find");
        database.run("SET synchronous_commit = off; SET maintenance_work_mem = '256MB'");
        database.run(LAP);
        Bench { database }
    }

    /// A table `t` with so many partitions, with indexes by this method, and `plain` with the same
    /// rows.
    fn make(&mut self, partitions: usize, method: &str) {
        self.database.run("DROP TABLE IF EXISTS t, plain");
        self.database.run(&format!(
            "CREATE TABLE t (day integer, id text, n integer) PARTITION BY RANGE (day);
             DO $$ BEGIN FOR i IN 0 .. {partitions} - 1 LOOP
                 EXECUTE format('CREATE TABLE t_%s PARTITION OF t FOR VALUES FROM (%s) TO (%s)', i, i, i + 1);
             END LOOP; END $$;
             INSERT INTO t SELECT i / {ROWS}, md5(i::text), i FROM generate_series(0, {partitions} * {ROWS} - 1) AS i;
             CREATE TABLE plain AS TABLE t;
             CREATE INDEX ON t USING {method} (id); CREATE INDEX ON plain USING {method} (id)"
        ));
        self.database.run("VACUUM (FREEZE, ANALYZE) t");
        self.database.run("VACUUM (FREEZE, ANALYZE) plain");
        // Calls that name the type of the table that was dropped.
        self.database.run("DISCARD PLANS");
    }

    /// The medians of each round of these queries, in turn.
    fn medians<const N: usize>(&mut self, queries: [(&str, usize); N]) -> [Vec<f64>; N] {
        let mut all = [const { Vec::new() }; N];
        for round in 0..=ROUNDS {
            for ((query, lookups), medians) in queries.iter().zip(&mut all) {
                let (first, lookups) = ((round * LOOKUPS) as i32, *lookups as i32);
                let row = self
                    .database
                    .client
                    .query_one("SELECT lap($1, $2, $3)", &[query, &first, &lookups]);
                let mut times: Vec<f64> = row.expect("it can be asked").get(0);
                if round > 0 {
                    medians.push(median(&mut times));
                }
            }
        }
        all
    }

    /// The bars.
    pub fn measure(&mut self) -> Vec<Row> {
        // There are 1,920,000 rows.
        const PRESENT: &str = "SELECT * FROM bloom_find(NULL::t, 'id', md5(($1 % 1920000)::text))";
        const ABSENT: &str = "SELECT * FROM bloom_find(NULL::t, 'id', 'absent $1')";
        const MANY: &str = "SELECT * FROM bloom_find_all(NULL::t, 'id',
            (SELECT array_agg(md5(((i * 19201 + $1) % 1920000)::text)) FROM generate_series(0, 99) AS i))";
        const PLAIN: &str =
            "SELECT * FROM bloom_find(NULL::plain, 'id', md5(($1 % 1920000)::text))";
        const PLAIN_QUERY: &str = "SELECT * FROM plain WHERE id = md5(($1 % 1920000)::text)";
        self.make(PARTITIONS, "bloom_filter");
        let [mut present, mut absent, mut many, mut query] = self.medians([
            (PRESENT, LOOKUPS),
            (ABSENT, LOOKUPS),
            (MANY, 5),
            ("SELECT * FROM t WHERE id = md5(($1 % 1920000)::text)", 5),
        ]);
        let [
            mut function,
            mut plain,
            mut absent_function,
            mut absent_plain,
        ] = self.medians([
            (PLAIN, LOOKUPS * 10),
            (PLAIN_QUERY, LOOKUPS * 10),
            ("SELECT * FROM bloom_find(NULL::plain, 'id', 'absent $1')", LOOKUPS * 10),
            ("SELECT * FROM plain WHERE id = 'absent $1'", LOOKUPS * 10),
        ]);
        let of =
            |what: &str| format!("`bloom_find`, {what}, {PARTITIONS} partitions of {ROWS} rows");
        vec![
            Row::timed(
                of("a present key"),
                "the query",
                &mut present.clone(),
                &mut query,
                f64::INFINITY,
            ),
            against_figure(of("a present key"), median(&mut present), 0.002, show),
            against_figure(of("an absent key"), median(&mut absent), 0.002, show),
            against_figure(of("100 keys"), median(&mut many), 0.015, show),
            Row::timed(
                "`bloom_find`, a present key, a plain table",
                "the query",
                &mut function,
                &mut plain,
                1.2,
            ),
            Row::timed(
                "`bloom_find`, an absent key, a plain table",
                "the query",
                &mut absent_function,
                &mut absent_plain,
                1.2,
            ),
        ]
    }

    /// What an ingest job takes for an id by the number of partitions, in several ways.
    pub fn by_partitions(&mut self) -> String {
        let mut text = String::from(
            "An ingest job locks the hash of an id, looks the id up, and stores it if it is new, as in the cookbook: with\n\
             `bloom_find`; with the query; with the query over B-trees; with a filter set in front of `bloom_find`.\n\n\
             | partitions | id | `bloom_find` | query | B-trees | filter set |\n|---:|---|---:|---:|---:|---:|\n",
        );
        const WAYS: [(&str, &str); 3] = [
            ("find", "NOT EXISTS (SELECT FROM bloom_find(NULL::t, 'id', new_id))"),
            ("query", "NOT EXISTS (SELECT FROM t WHERE id = new_id)"),
            (
                "set",
                "bloom_set_add('seen', new_id) OR NOT EXISTS (SELECT FROM bloom_find(NULL::t, 'id', new_id))",
            ),
        ];
        for (way, is_new) in WAYS {
            self.database.run(&format!(
                "CREATE PROCEDURE ingest_{way}(new_id text) LANGUAGE plpgsql AS $$ BEGIN
                     PERFORM pg_advisory_xact_lock(hashtextextended(new_id, 0));
                     IF {is_new} THEN INSERT INTO t VALUES (0, new_id, 0); END IF;
                 END $$"
            ));
        }
        for partitions in [3, 30, 300] {
            let ids = [
                ("new", "'new $1'".into()),
                ("stored", format!("md5(($1 % {})::text)", partitions * ROWS)),
            ];
            self.make(partitions, "btree");
            let trees = ids.clone().map(|(_, id)| {
                let [times] = self.medians([(&format!("CALL ingest_query({id})"), LOOKUPS)]);
                times
            });
            self.make(partitions, "bloom_filter");
            for ((what, id), mut trees) in ids.into_iter().zip(trees) {
                self.database.run("DROP TABLE IF EXISTS seen");
                self.database
                    .run("SELECT bloom_set_create('seen', 'text', 10000000, 1e-6)");
                self.database
                    .run("SELECT bloom_set_add_all('seen', array_agg(id)) FROM t");
                // Each way has new ids of its own.
                let calls =
                    WAYS.map(|(way, _)| format!("CALL ingest_{way}({})", id.replace("new", way)));
                let [mut find, mut query, mut set] =
                    self.medians(calls.each_ref().map(|call| (&**call, LOOKUPS)));
                let times =
                    [&mut find, &mut query, &mut trees, &mut set].map(|times| show(median(times)));
                writeln!(text, "| {partitions} | {what} | {} |", times.join(" | "))
                    .expect("text can be written to");
            }
        }
        text
    }
}
