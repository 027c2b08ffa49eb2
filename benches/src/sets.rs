//! Sets that change, against the bars for them, against one filter in one row, and against RedisBloom.

use crate::database::Database;
use crate::redis_bloom::RedisBloom;
use crate::{Row, against_figure, median, show};
use pg_bloom_core::filter::generations::Plan;
use pg_bloom_core::filter::{build, shards};
use pg_bloom_core::kind::Tag;
use pg_bloom_core::{Header, Kind, hash};
use postgres::Client;
use std::thread;
use std::time::Instant;

/// Elements of a batch.
const BATCH: usize = 1000;
/// Batches that one measurement is the median of.
const BATCHES: usize = 60;
/// Sessions at once.
const SESSIONS: usize = 8;
/// How full the set is when it is measured, as a share of its capacity.
const FILLED: f64 = 0.9;

fn megabytes(bytes: f64) -> String {
    format!("{:.2} MB", bytes / 1024.0 / 1024.0)
}

/// New elements: URLs that differ from all others.
struct Urls(usize);

impl Urls {
    fn batch(&mut self, elements: usize) -> Vec<String> {
        self.0 += 1;
        (0..elements).map(|i| format!("https://example.org/new/{}/{i}/of/a/batch", self.0)).collect()
    }
}

/// A database with a set.
pub struct Bench {
    /// Where it is.
    pub database: Database,
    rows: usize,
}

impl Bench {
    /// Makes a database, for sets of so many elements.
    pub fn new(rows: usize) -> Bench {
        Bench { database: Database::create("sets"), rows }
    }

    /// All rows about sets, and what to say of the comparison with RedisBloom.
    pub fn measure(&mut self) -> (String, Vec<Row>) {
        let capacity = self.rows;
        self.database.run(&format!("SELECT bloom_set_create('seen', 'text', {capacity})"));
        let filled = (capacity as f64 * FILLED) as usize;
        let large = 1_000_000;
        for from in (0..filled).step_by(large) {
            self.database.run(&format!(
                "SELECT cardinality(bloom_set_add_all('seen', ARRAY(
                    SELECT 'https://example.com/page/' || i FROM generate_series({from}, {}) AS i)))",
                filled.min(from + large) - 1
            ));
        }
        self.database.run("VACUUM seen");
        self.database.run(&format!(
            "CREATE TABLE one AS SELECT bloom_agg('https://example.com/page/' || i, {capacity}) AS f
             FROM generate_series(0, {filled} - 1) AS i"
        ));
        let mut urls = Urls(0);
        let mut rows = self.batches(&mut urls);
        rows.push(self.one_element());
        rows.extend(self.questions());
        rows.extend(self.sessions(&mut urls));
        let comparison = match RedisBloom::start() {
            Some(redis) => {
                rows.extend(self.redis_bloom(redis, &mut urls));
                "RedisBloom has a filter as large and as full, on a socket too; neither server waits for its disk."
            }
            None => "RedisBloom was not there to compare with.",
        };
        self.database.run("DROP TABLE one");
        rows.extend(self.grown(&mut urls));
        self.database.run("DROP TABLE seen");
        rows.extend(self.billion());
        rows.extend(self.grown_to_a_billion());
        rows.push(self.forgets());
        (comparison.into(), rows)
    }

    fn wal(&mut self) -> f64 {
        self.database.value::<f64>("SELECT (pg_current_wal_insert_lsn() - '0/0')::float8")
    }

    /// Seconds and bytes of WAL of a statement with a batch as its parameter.
    fn batch(&mut self, statement: &postgres::Statement, batch: &[String]) -> (f64, f64) {
        let before = self.wal();
        let start = Instant::now();
        self.database.client.query(statement, &[&batch]).expect("a batch can be added");
        let seconds = start.elapsed().as_secs_f64();
        (seconds, self.wal() - before)
    }

    /// A batch of new elements: time and WAL, steady and just after a checkpoint.
    fn batches(&mut self, urls: &mut Urls) -> Vec<Row> {
        let ours = self
            .database
            .client
            .prepare("SELECT cardinality(bloom_set_add_all('seen', $1::text[]))")
            .expect("it is SQL");
        let theirs =
            self.database.client.prepare("UPDATE one SET f = bloom_add_all(f, $1::text[])").expect("it is SQL");
        let mut after_checkpoint = Vec::new();
        for _ in 0..5 {
            self.database.run("CHECKPOINT");
            after_checkpoint.push(self.batch(&ours, &urls.batch(BATCH)).1);
        }
        // Every page is in the log by now.
        for _ in 0..BATCHES {
            self.batch(&ours, &urls.batch(BATCH));
        }
        let (mut times, mut wal): (Vec<f64>, Vec<f64>) =
            (0..BATCHES).map(|_| self.batch(&ours, &urls.batch(BATCH))).unzip();
        let (mut their_times, mut their_wal): (Vec<f64>, Vec<f64>) =
            (0..7).map(|_| self.batch(&theirs, &urls.batch(BATCH))).unzip();
        let time = median(&mut times);
        vec![
            against_figure("`bloom_set_add_all`, 1000 new URLs, dense", time, 0.015, show),
            Row::timed("the same", "`bloom_add_all` to one filter in one row", &mut times, &mut their_times, 0.25),
            against_figure("its WAL, steady", median(&mut wal), 1048576.0, megabytes),
            against_figure(
                "its WAL just after a checkpoint",
                median(&mut after_checkpoint),
                12.0 * 1048576.0,
                megabytes,
            ),
            Row {
                work: "its WAL, steady".into(),
                against: "that of one filter in one row".into(),
                ours: megabytes(median(&mut wal)),
                theirs: megabytes(median(&mut their_wal)),
                ratio: median(&mut wal) / median(&mut their_wal),
                bar: 0.1,
            },
        ]
    }

    /// Single elements, each a statement and a transaction.
    fn one_element(&mut self) -> Row {
        let statement = self.database.client.prepare("SELECT bloom_set_add('seen', $1::text)").expect("it is SQL");
        let mut times: Vec<f64> = (0..20 * BATCHES)
            .map(|i| {
                let start = Instant::now();
                let element = format!("https://example.net/one/{i}");
                self.database.client.query(&statement, &[&element]).expect("an element can be added");
                start.elapsed().as_secs_f64()
            })
            .collect();
        against_figure("`bloom_set_add`, a statement and a commit", median(&mut times), 0.0002, show)
    }

    /// Probes for elements, half of which are there: one in a statement, and in a query of many rows; arrays.
    fn questions(&mut self) -> Vec<Row> {
        let element = "'https://example.com/page/' || i";
        self.database.run(&format!(
            "CREATE TEMP TABLE asked AS SELECT {element} AS url
             FROM generate_series(0, {}, {}) AS i ORDER BY random()",
            2 * self.rows,
            (2 * self.rows / BATCH).max(1)
        ));
        let per_row = BATCH as f64;
        let mut single: Vec<f64> = (0..BATCHES)
            .map(|_| self.database.time("SELECT count(*) FROM asked WHERE bloom_set_contains('seen', url)") / per_row)
            .collect();
        let present = "SELECT cardinality(bloom_set_present('seen', (SELECT array_agg(url) FROM asked)))";
        let mut arrays: Vec<f64> = (0..BATCHES).map(|_| self.database.time(present)).collect();
        self.database.run("DROP TABLE asked");
        vec![
            against_figure("`bloom_set_contains` in a query", median(&mut single), 20e-6, show),
            against_figure("`bloom_set_present` of 1000", median(&mut arrays), 0.005, show),
        ]
    }

    /// The same work in both: one client, a socket, a statement or command at a time.
    fn redis_bloom(&mut self, mut redis: RedisBloom, urls: &mut Urls) -> Vec<Row> {
        redis.run(&["BF.RESERVE", "seen", "0.01", &self.rows.to_string()], &[""; 0]);
        let old = |i: usize| format!("https://example.com/page/{i}");
        let filled = (self.rows as f64 * FILLED) as usize;
        for from in (0..filled).step_by(10_000) {
            redis.run(&["BF.MADD", "seen"], &(from..filled.min(from + 10_000)).map(old).collect::<Vec<_>>());
        }
        let add = self.database.client.prepare("SELECT bloom_set_add_all('seen', $1::text[])").expect("it is SQL");
        let ask = self.database.client.prepare("SELECT bloom_set_present('seen', $1::text[])").expect("it is SQL");
        let mut asked = 0;
        let mut rows = Vec::new();
        for (elements, times) in [(1, 20 * BATCHES), (100, 4 * BATCHES), (BATCH, BATCHES)] {
            let new = (0..times).map(|_| urls.batch(elements)).collect();
            rows.push(self.both(&mut redis, &add, "BF.MADD", &format!("adding {elements}"), new));
        }
        for (elements, times) in [(1, 20 * BATCHES), (BATCH, BATCHES)] {
            let mut some = || (0..elements).map(|_| (asked = (asked + 7919) % (2 * filled), old(asked)).1).collect();
            let questions = (0..times).map(|_| some()).collect();
            rows.push(self.both(&mut redis, &ask, "BF.MEXISTS", &format!("asking for {elements}"), questions));
        }
        rows
    }

    /// Both with the same batches, in turn.
    fn both(
        &mut self,
        redis: &mut RedisBloom,
        statement: &postgres::Statement,
        command: &str,
        work: &str,
        batches: Vec<Vec<String>>,
    ) -> Row {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for batch in &batches {
            let start = Instant::now();
            self.database.client.query(statement, &[batch]).expect("a set answers");
            ours.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            redis.run(&[command, "seen"], batch);
            theirs.push(start.elapsed().as_secs_f64());
        }
        Row::timed(
            format!("{work} in a statement"),
            format!("RedisBloom's `{command}`"),
            &mut ours,
            &mut theirs,
            f64::INFINITY,
        )
    }

    /// Eight sessions at once, which add batches of other elements: time per element, against one session alone.
    fn sessions(&mut self, urls: &mut Urls) -> Vec<Row> {
        [(BATCH, 40), (100, 200), (10, 1000)]
            .into_iter()
            .map(|(elements, batches)| {
                let one = self.add_at_once(urls, 1, elements, batches);
                let many = self.add_at_once(urls, SESSIONS, elements, batches);
                Row {
                    work: format!("{SESSIONS} sessions that add batches of {elements}, time per element"),
                    against: "one session".into(),
                    ours: show(many),
                    theirs: show(one),
                    ratio: many / one,
                    bar: 1.5,
                }
            })
            .collect()
    }

    /// Seconds per element.
    fn add_at_once(&mut self, urls: &mut Urls, sessions: usize, elements: usize, batches: usize) -> f64 {
        let work: Vec<Vec<Vec<String>>> =
            (0..sessions).map(|_| (0..batches).map(|_| urls.batch(elements)).collect()).collect();
        let clients: Vec<Client> = (0..sessions).map(|_| self.database.another_client()).collect();
        let start = Instant::now();
        thread::scope(|scope| {
            for (mut client, batches) in clients.into_iter().zip(&work) {
                scope.spawn(move || {
                    let statement = client.prepare("SELECT bloom_set_add_all('seen', $1::text[])").expect("it is SQL");
                    for batch in batches {
                        client.query(&statement, &[batch]).expect("a batch can be added");
                    }
                });
            }
        });
        start.elapsed().as_secs_f64() / (sessions * elements * batches) as f64
    }

    /// A set for a hundred times as many elements: made, and filled to a hundredth.
    fn billion(&mut self) -> Vec<Row> {
        let (capacity, elements) = (self.rows * 100, self.rows);
        let create = self.database.time(&format!("SELECT bloom_set_create('huge', 'text', {capacity})"));
        let empty: i64 = self.database.value("SELECT bytes FROM bloom_set_info('huge')");
        let fill = (0..elements)
            .step_by(1_000_000)
            .map(|from| {
                self.database.time(&format!(
                    "SELECT cardinality(bloom_set_add_all('huge', ARRAY(
                        SELECT 'https://example.com/page/' || i FROM generate_series({from}, {}) AS i)))",
                    elements.min(from + 1_000_000) - 1
                ))
            })
            .sum();
        let filled: i64 = self.database.value("SELECT bytes FROM bloom_set_info('huge')");
        self.database.run("DROP TABLE huge");
        let scale = self.rows as f64 / 1e7;
        let set = format!("a set for {capacity} elements");
        vec![
            against_figure(format!("{set}, made"), create, 10.0 * scale, show),
            against_figure(format!("{set}, bytes when empty"), empty as f64, 400.0 * 1048576.0 * scale, megabytes),
            against_figure(format!("{set}, filled with {elements}"), fill, 120.0 * scale, show),
            against_figure(format!("{set}, bytes then"), filled as f64, 1024.0 * 1048576.0 * scale, megabytes),
        ]
    }

    /// A set that grew to as many elements as the other one was made for.
    fn grown(&mut self, urls: &mut Urls) -> Vec<Row> {
        let elements = self.rows;
        self.database
            .run(&format!("SELECT bloom_set_create('grown', 'text'), bloom_set_create('made', 'text', {elements})"));
        let size = (elements / 100).clamp(1, 100_000);
        for from in (0..(elements as f64 * FILLED) as usize).step_by(size) {
            for set in ["grown", "made"] {
                self.database.run(&format!(
                    "SELECT cardinality(bloom_set_add_all('{set}', ARRAY(
                        SELECT 'https://example.com/page/' || i FROM generate_series({from}, {}) AS i)))",
                    from + size - 1
                ));
            }
        }
        self.database.run("VACUUM grown, made");
        let bytes = |set: &str, database: &mut Database| {
            database.value::<i64>(&format!("SELECT bytes FROM bloom_set_info('{set}')")) as f64
        };
        let (grown, made) = (bytes("grown", &mut self.database), bytes("made", &mut self.database));
        let mut rows = vec![Row {
            work: format!("bytes of a set grown to {} elements", (elements as f64 * FILLED) as usize),
            against: "those of a set made for them".into(),
            ours: megabytes(grown),
            theirs: megabytes(made),
            ratio: grown / made,
            bar: 2.5,
        }];
        rows.push(self.contains("grown", "made", elements, "in that set"));
        let mut times = [Vec::new(), Vec::new()];
        let statements = ["grown", "made"].map(|set| {
            let sql = format!("SELECT cardinality(bloom_set_add_all('{set}', $1::text[]))");
            self.database.client.prepare(&sql).expect("it is SQL")
        });
        for round in 0..2 * BATCHES {
            let batch = urls.batch(BATCH);
            for (statement, times) in statements.iter().zip(&mut times) {
                let (seconds, _) = self.batch(statement, &batch);
                if round >= BATCHES {
                    times.push(seconds);
                }
            }
        }
        let [mut ours, mut theirs] = times;
        rows.push(Row::timed(
            "adding 1000 new URLs to that set",
            "to a set made for them",
            &mut ours,
            &mut theirs,
            3.0,
        ));
        self.database.run("DROP TABLE grown, made");
        rows
    }

    /// Time to ask for an element of a query's rows, half of which are there, in one set and in another.
    fn contains(&mut self, ours: &str, theirs: &str, elements: usize, what: &str) -> Row {
        self.database.run(&format!(
            "CREATE TEMP TABLE asked AS SELECT 'https://example.com/page/' || (random() * 2 * {elements})::bigint AS url
             FROM generate_series(1, {}) AS i",
            50 * BATCH
        ));
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..7 {
            for (set, times) in [ours, theirs].iter().zip(&mut times) {
                let sql = format!("SELECT count(*) FROM asked WHERE bloom_set_contains('{set}', url)");
                times.push(self.database.time(&sql) / (50 * BATCH) as f64);
            }
        }
        self.database.run("DROP TABLE asked");
        let [mut ours, mut theirs] = times;
        let work = format!("`bloom_set_contains` in a query, {what}");
        Row::timed(work, "in a set made for them", &mut ours, &mut theirs, 2.0)
    }

    /// Sets of a hundred times as many elements, one made for them and one grown to them. Their rows are copies of one
    /// full filter for each generation, whose elements nobody asks for.
    fn grown_to_a_billion(&mut self) -> Vec<Row> {
        let elements = self.rows as u64 * 100;
        let kind = Kind::of(Tag::Text);
        let full = |shards: u32, header: &Header<'_>, elements: u64| -> Vec<u8> {
            let each = elements / u64::from(shards);
            let mut hashes: Vec<u64> = (0..each).map(|i| hash::hash(&i.to_le_bytes())).collect();
            hashes.sort_unstable();
            build::from_hashes(header, &hashes, 1 << 20).expect("it is small")
        };
        let insert = |database: &mut Database, sql: &str, filter: &Vec<u8>| {
            database.client.execute(sql, &[filter]).expect("rows can be added");
        };
        self.database
            .run(&format!("SELECT bloom_set_create('made', 'text', {elements}), bloom_set_create('grown', 'text')"));
        self.database.run("TRUNCATE made, grown");
        let (shards, header) = shards::shards(elements, 0.01, kind).expect("possible");
        let sql = format!("INSERT INTO made SELECT i, $1::bytea::bloom FROM generate_series(0, {} - 1) AS i", shards);
        insert(&mut self.database, &sql, &full(shards, &header, elements));
        let plan = Plan::new(None, 0.01, false).expect("it grows");
        let mut left = elements;
        for (level, &capacity) in plan.capacities().iter().enumerate() {
            let (shards, header) = plan.shards(level, kind).expect("possible");
            let holds = left.min(capacity);
            left -= holds;
            // A generation that has ended has one row more, which says when.
            let last = if left == 0 { shards - 1 } else { shards };
            let sql = format!(
                "INSERT INTO grown SELECT {level}, i, {shards}, now(), $1::bytea::bloom, CASE i WHEN 0 THEN now() END,
                    CASE i WHEN {shards} THEN now() END, CASE i WHEN 0 THEN 0 END FROM generate_series(0, {last}) AS i"
            );
            insert(&mut self.database, &sql, &full(shards, &header, holds));
            if left == 0 {
                break;
            }
        }
        self.database.run("VACUUM ANALYZE made, grown");
        let generations: i64 = self.database.value("SELECT max(generation)::bigint + 1 FROM grown");
        let what = format!("grown to {elements} elements in {generations} generations");
        let [ours, theirs] = ["grown", "made"]
            .map(|set| self.database.value::<i64>(&format!("SELECT pg_total_relation_size('{set}')")) as f64);
        let rows = vec![
            self.contains("grown", "made", self.rows * 100, &what),
            Row {
                work: format!("bytes of a set {what}"),
                against: "those of a set made for them".into(),
                ours: megabytes(ours),
                theirs: megabytes(theirs),
                ratio: ours / theirs,
                bar: 2.5,
            },
        ];
        self.database.run("DROP TABLE made, grown");
        rows
    }

    /// A set that forgets, seven of whose slices are full.
    fn forgets(&mut self) -> Row {
        let elements = self.rows / 10;
        self.database.run(&format!("SELECT bloom_set_create('recent', 'text', {elements}, 0.01, '7 days')"));
        let size = (elements / 100).max(1);
        for from in (0..elements).step_by(size) {
            self.database.run(&format!(
                "SELECT cardinality(bloom_set_add_all('recent', ARRAY(
                    SELECT 'https://example.com/page/' || i FROM generate_series({from}, {}) AS i)))",
                from + size - 1
            ));
        }
        // Of the slices that are full, without the headers of their filters.
        let bits: f64 = self.database.value(
            "SELECT (sum(bytes - 44 * shards) * 8 / sum(elements))::float8 FROM bloom_set_generations('recent') WHERE until IS NOT NULL",
        );
        self.database.run("DROP TABLE recent");
        against_figure("bits per element in full slices of a set that forgets, 1 %", bits, 16.0, |bits| {
            format!("{bits:.1}")
        })
    }
}
