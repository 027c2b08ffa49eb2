//! pg_bloom in a server, against what it is judged by.

use crate::database::Database;
use crate::{ROUNDS, Row, machine, show};
use pg_bloom_benches::machine::Watch;
use pg_bloom_benches::median;
use postgres::types::ToSql;
use std::time::Instant;

/// Executions of a prepared statement that make one measurement, and how many measurements of it
/// there are: where the kernel puts client and server changes from one to the next.
const EXECUTIONS: usize = 300;
const MEASUREMENTS: usize = 60;

/// A server with the extensions and the rows to work on.
pub struct Server {
    /// Where the rows are.
    pub database: Database,
    rows: usize,
}

impl Server {
    /// Makes a database and fills it.
    pub fn new(rows: usize) -> Server {
        let mut server = Server { database: Database::create("in_server"), rows };
        server.database.run("CREATE EXTENSION hll");
        server.database.run(&format!(
            "CREATE UNLOGGED TABLE urls WITH (parallel_workers = 2) AS
             SELECT 'https://example' || i % 1000 || '.org/p/' || substr(md5(i::text), 1, 20) AS url
             FROM generate_series(1, {rows}) AS i"
        ));
        server.database.run("VACUUM ANALYZE urls");
        server
    }

    /// All rows of the table.
    pub fn measure(&mut self) -> Vec<Row> {
        let mut rows = self.builds();
        rows.push(self.parallel_build());
        rows.extend(self.memory());
        rows.extend(self.groups());
        rows.extend(self.probes_of_one());
        rows.extend(self.single_probes());
        rows.push(self.unions());
        rows
    }

    /// Times two queries in turn, after one execution of each that isn't counted.
    fn compare(&mut self, work: &str, ours: &str, against: &str, theirs: &str, bar: f64) -> Row {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        self.database.run(ours);
        self.database.run(theirs);
        for _ in 0..ROUNDS {
            a.push(self.database.time(ours));
            b.push(self.database.time(theirs));
        }
        Row::timed(work, against, &mut a, &mut b, bar)
    }

    fn builds(&mut self) -> Vec<Row> {
        let sized =
            format!("SELECT bloom_cardinality(bloom_agg(url, {}, 0.01)) FROM urls", self.rows);
        let build = self.compare(
            "`bloom_agg(url, capacity, 0.01)`",
            &sized,
            "`hll_add_agg(hll_hash_text(url))`",
            "SELECT hll_cardinality(hll_add_agg(hll_hash_text(url))) FROM urls",
            if machine::cpu().contains("AMD") { 1.25 } else { 1.4 },
        );
        let count =
            self.compare("the same", &sized, "`count(url)`", "SELECT count(url) FROM urls", 1.6);
        self.database.run("SET work_mem = '64MB'");
        let unsized_build = self.compare(
            "`bloom_agg(url)`, `work_mem` 64 MB",
            "SELECT bloom_cardinality(bloom_agg(url)) FROM urls",
            "`bloom_agg(url, capacity, 0.01)`",
            &sized,
            1.5,
        );
        self.database.run("RESET work_mem");
        vec![build, count, unsized_build]
    }

    /// With workers and without; beside it what PostgreSQL itself gains by them.
    fn parallel_build(&mut self) -> Row {
        let build =
            format!("SELECT bloom_cardinality(bloom_agg(url, {}, 0.01)) FROM urls", self.rows);
        let [mut count_with, mut count_without] =
            self.with_workers_and_without("SELECT count(url) FROM urls");
        let [mut with, mut without] = self.with_workers_and_without(&build);
        let gain = median(&mut count_with) / median(&mut count_without);
        let against = format!("the same with none (`count(url)`: {gain:.2})");
        Row::timed("`bloom_agg` with 2 workers", &against, &mut with, &mut without, 1.05 * gain)
    }

    /// Times of a query with two workers, and with none, in turn.
    fn with_workers_and_without(&mut self, query: &str) -> [Vec<f64>; 2] {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=ROUNDS {
            for (workers, times) in [2, 0].into_iter().zip(&mut times) {
                self.database.run(&format!(
                    "SET max_parallel_workers_per_gather = {workers}; SET parallel_setup_cost = 0;
                     SET parallel_tuple_cost = 0"
                ));
                let time = self.database.time(query);
                if round > 0 {
                    times.push(time);
                }
            }
        }
        times
    }

    /// The server process's memory, as the operating system sees it, for many more elements than
    /// fit `work_mem`.
    fn memory(&mut self) -> Vec<Row> {
        let elements = self.rows * 10;
        let work_mem = 64.0;
        // The same process, so what it uses for everything else is known.
        self.database.run(&format!("SET work_mem = '{work_mem}MB'"));
        let pid: i32 = self.database.value("SELECT pg_backend_pid()");
        let watch = Watch::start(pid);
        self.database.run("SELECT pg_sleep(0.1)");
        let before = watch.stop();
        let watch = Watch::start(pid);
        let bytes: i64 = self.database.value(&format!(
            "SELECT (bloom_info(bloom_agg(x))).bytes FROM (SELECT generate_series(1, {elements}) AS x) AS elements"
        ));
        let used = watch.stop() - before;
        let result = bytes as f64 / 1024.0 / 1024.0;
        self.database.run("RESET work_mem");
        let allowed = work_mem + 2.0 * result;
        vec![Row {
            work: format!(
                "memory of `bloom_agg(x)` over {elements} elements, `work_mem` {work_mem} MB"
            ),
            against: format!("`work_mem` and twice the result ({result:.0} MB)"),
            ours: format!("{used:.0} MB"),
            theirs: format!("{allowed:.0} MB"),
            ratio: used / allowed,
            bar: 1.0,
        }]
    }

    fn groups(&mut self) -> Vec<Row> {
        let groups = self.rows / 10;
        self.database.run(&format!(
            "CREATE UNLOGGED TABLE groups AS
             SELECT (i * 7919::bigint % {groups})::integer AS g, i AS x FROM generate_series(1, {}) AS i",
            self.rows
        ));
        self.database.run("VACUUM ANALYZE groups");
        self.database.run("SET work_mem = '2GB'");
        let time = self.compare(
            &format!("{groups} groups of 10, `bloom_agg(x, 1000000)`"),
            "SELECT count(f) FROM (SELECT bloom_agg(x, 1000000) AS f FROM groups GROUP BY g OFFSET 0) AS built",
            "`array_agg(x)`",
            "SELECT count(f) FROM (SELECT array_agg(x) AS f FROM groups GROUP BY g OFFSET 0) AS built",
            1.0,
        );
        let ours = self.aggregate_kib("bloom_agg(x, 1000000)") - self.aggregate_kib("count(*)");
        self.database.run("RESET work_mem; DROP TABLE groups");
        let bytes = ours as f64 * 1024.0 / groups as f64;
        let memory = Row {
            work: "memory of a group, above that of `count(*)`".into(),
            against: "270 bytes".into(),
            ours: format!("{bytes:.0} bytes"),
            theirs: "270 bytes".into(),
            ratio: bytes / 270.0,
            bar: 1.0,
        };
        vec![time, memory]
    }

    /// What HashAggregate says about its memory, in kB.
    fn aggregate_kib(&mut self, aggregate: &str) -> i64 {
        let plan = self
            .database
            .client
            .query(
                &format!(
                    "EXPLAIN (ANALYZE, TIMING OFF) SELECT g, {aggregate} FROM groups GROUP BY g"
                ),
                &[],
            )
            .expect("the plan can be shown");
        let lines: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let usage = lines
            .iter()
            .find_map(|line| line.split("Memory Usage: ").nth(1))
            .expect("the plan shows memory");
        usage
            .split("kB")
            .next()
            .and_then(|kib| kib.parse().ok())
            .expect("memory is a number of kB")
    }

    /// One stored filter, asked for every row.
    fn probes_of_one(&mut self) -> Vec<Row> {
        let rows = self.rows;
        self.database.run(&format!(
            "CREATE UNLOGGED TABLE seen AS SELECT url FROM urls;
             CREATE UNLOGGED TABLE others AS SELECT 'http:' || substr(url, 7) AS url FROM urls;
             CREATE UNLOGGED TABLE stored AS SELECT bloom_agg(url, {rows}, 0.01) AS f FROM urls"
        ));
        for table in ["seen", "others", "stored"] {
            self.database.run(&format!("VACUUM ANALYZE {table}"));
        }
        let probe =
            |table| format!("SELECT count(*) FROM {table} WHERE (SELECT f FROM stored) @> url");
        let hash =
            |table| format!("SELECT count(*) FROM {table} WHERE hashtextextended(url, 0) <> 0");
        let against = "`hashtextextended(url, 0) <> 0`";
        let mut rows = vec![
            self.compare(
                "`f @> url`, every row in the set",
                &probe("urls"),
                against,
                &hash("urls"),
                2.2,
            ),
            self.compare(
                "`f @> url`, no row in the set",
                &probe("others"),
                against,
                &hash("others"),
                1.7,
            ),
            self.compare(
                "`f @> url`, every row in the set",
                &probe("urls"),
                "`url IN (SELECT url FROM seen)`",
                "SELECT count(*) FROM urls WHERE url IN (SELECT url FROM seen)",
                0.25,
            ),
        ];
        let [mut on, mut off] = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (times, setting) in [(&mut on, "on"), (&mut off, "off")] {
                self.database.run(&format!("SET pg_bloom.read_ahead = {setting}"));
                times.push(self.database.time(&probe("urls")));
            }
        }
        self.database.run("RESET pg_bloom.read_ahead");
        let work = "`f @> url`, every row in the set, `pg_bloom.read_ahead` on";
        rows.push(Row::timed(work, "off", &mut on, &mut off, 1.0 / 1.5));
        self.database.run("DROP TABLE seen, others, stored");
        rows
    }

    /// One probe of one stored filter by its key, prepared.
    fn single_probes(&mut self) -> Vec<Row> {
        self.database
            .run("CREATE UNLOGGED TABLE filters (id integer PRIMARY KEY, f bloom)");
        let mut rows = Vec::new();
        for (id, scale) in [(1, 1), (2, 10)] {
            let capacity = self.rows * scale;
            self.database.run(&format!(
                "INSERT INTO filters SELECT {id}, bloom_agg(x::text, {capacity}, 0.01)
                 FROM (SELECT generate_series(1, {capacity}) AS x) AS elements"
            ));
        }
        self.database.run("VACUUM ANALYZE filters");
        self.database.run("CHECKPOINT");
        let probe = self
            .database
            .client
            .prepare("SELECT f @> $1::text FROM filters WHERE id = $2")
            .expect("can be prepared");
        let other = self
            .database
            .client
            .prepare("SELECT id FROM filters WHERE id = $2 AND $1::text IS NOT NULL")
            .expect("can be prepared");
        let mut medians = Vec::new();
        for id in [1, 2] {
            let size: String = self.database.value(&format!(
                "SELECT pg_size_pretty(octet_length(f::bytea)::bigint) FROM filters WHERE id = {id}"
            ));
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for round in 0..=MEASUREMENTS {
                let (ours, theirs) = (self.execute(&probe, id), self.execute(&other, id));
                if round > 0 {
                    a.push(ours);
                    b.push(theirs);
                }
            }
            let row = Row::timed(
                format!("one probe of a stored filter of {size}, prepared"),
                "the same query returning `id`",
                &mut a,
                &mut b,
                2.0,
            );
            medians.push(crate::median(&mut a));
            rows.push(row);
        }
        rows.push(Row {
            work: "one probe of a filter ten times as large".into(),
            against: "one of the smaller".into(),
            ours: show(medians[1]),
            theirs: show(medians[0]),
            ratio: medians[1] / medians[0],
            bar: 1.15,
        });
        rows
    }

    /// Seconds an execution of a prepared probe for different elements.
    fn execute(&mut self, statement: &postgres::Statement, id: i32) -> f64 {
        let elements: Vec<String> = (0..EXECUTIONS)
            .map(|i| (i * 7919 % self.rows + 1).to_string())
            .collect();
        let start = Instant::now();
        for element in &elements {
            let parameters: [&(dyn ToSql + Sync); 2] = [element, &id];
            self.database
                .client
                .query_one(statement, &parameters)
                .expect("the statement can be executed");
        }
        start.elapsed().as_secs_f64() / EXECUTIONS as f64
    }

    fn unions(&mut self) -> Row {
        let capacity = (self.rows / 10).max(1);
        self.database.run(&format!(
            "CREATE UNLOGGED TABLE parts AS
             SELECT i, f FROM generate_series(1, 1000) AS i, (SELECT bloom_agg(x, {capacity}, 0.01) AS f
             FROM generate_series(1, {capacity}) AS x) AS built"
        ));
        self.database
            .run("CREATE UNLOGGED TABLE bytes (i integer, b bytea); ALTER TABLE bytes ALTER b SET STORAGE EXTERNAL");
        self.database.run("INSERT INTO bytes SELECT i, f::bytea FROM parts");
        self.database.run("VACUUM ANALYZE parts");
        self.database.run("VACUUM ANALYZE bytes");
        self.compare(
            "`bloom_union_agg` of 1000 stored filters",
            "SELECT bloom_cardinality(bloom_union_agg(f)) FROM parts",
            "`sum(bit_count(b))` of the same bytes",
            "SELECT sum(bit_count(b)) FROM bytes",
            0.9,
        )
    }
}
