//! Sets that change: against the bars for them, against one filter in one row, and against
//! RedisBloom.

use crate::database::Database;
use crate::redis_bloom::RedisBloom;
use crate::{Row, against_figure, median, show};
use pg_bloom_benches::machine;
use pg_bloom_benches::plot::{Axis, INK, Panel, Picture, Side};
use plotters::style::RGBColor;
use postgres::Client;
use std::thread;
use std::time::Instant;

/// Elements of a batch.
const BATCH: usize = 1000;
/// Batches that one measurement is the median of.
const BATCHES: usize = 60;
/// Sessions at once.
const SESSIONS: usize = 8;
/// Elements of the arrays by which a set grows here.
const STEP: usize = 1000;
/// Where the figure goes.
const FIGURE: &str = "docs/figures/sets.svg";

fn megabytes(bytes: f64) -> String {
    format!("{:.2} MB", bytes / 1024.0 / 1024.0)
}

fn an_element(bytes: f64) -> String {
    format!("{bytes:.2} bytes")
}

/// New elements: URLs that differ from all others.
struct Urls(usize);

impl Urls {
    fn batch(&mut self, elements: usize) -> Vec<String> {
        self.0 += 1;
        (0..elements)
            .map(|i| format!("https://example.org/new/{}/{i}/of/a/batch", self.0))
            .collect()
    }
}

/// What a set of some size takes: elements, bytes on disk, its rate.
type Point = (f64, f64, f64);

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
        let (points, mut rows) = self.grow("seen", "", [4.5, 4.0]);
        rows.extend(self.grow("recent", ", keep => '7 days'", [5.2, 4.7]).1);
        self.database.run("DROP TABLE recent");
        std::fs::write(FIGURE, figure(&points).svg()).expect("the figure can be written");
        let mut urls = Urls(0);
        rows.extend(self.batches(&mut urls));
        rows.push(self.one_element());
        rows.extend(self.questions());
        rows.extend(self.sessions(&mut urls));
        rows.push(self.large());
        let comparison = match RedisBloom::start() {
            Some(redis) => {
                rows.extend(self.redis_bloom(redis, &mut urls));
                "RedisBloom has a scaling filter of the same elements, on a socket too; neither server waits for its disk."
            }
            None => "RedisBloom was not there to compare with.",
        };
        self.database.run("DROP TABLE seen");
        (comparison.into(), rows)
    }

    /// Grows a set from nothing, in a transaction for each array. The limits are bytes an element
    /// at a fifth of the elements, and at all of them.
    fn grow(&mut self, set: &str, made_for: &str, limits: [f64; 2]) -> (Vec<Point>, Vec<Row>) {
        self.database
            .run(&format!("SELECT bloom_set_create('{set}', 'text'{made_for})"));
        let steps = self.rows.div_ceil(STEP);
        let (mut points, mut rows) = (Vec::new(), Vec::new());
        let start = Instant::now();
        for step in 0..steps {
            let from = step * STEP;
            self.database.run(&format!(
                "SELECT cardinality(bloom_set_add_all('{set}', ARRAY(
                    SELECT 'https://example.com/page/' || i FROM generate_series({from}, {}) AS i)))",
                from + STEP - 1
            ));
            let done = step + 1;
            if done == steps
                || done == steps / 5
                || (done * STEP).to_string().trim_end_matches('0').len() == 1
            {
                self.database.run(&format!("VACUUM {set}"));
                let info = format!(
                    "SELECT elements, bytes::float8, current_fpr FROM bloom_set_info('{set}')"
                );
                let row = self
                    .database
                    .client
                    .query_one(&info, &[])
                    .expect("a set can be described");
                points.push((row.get(0), row.get(1), row.get(2)));
                let limit = if done == steps { limits[1] } else { limits[0] };
                if done == steps || done == steps / 5 {
                    let work = format!("bytes of `{set}` grown to {} elements, each", done * STEP);
                    rows.push(against_figure(
                        work,
                        row.get::<_, f64>(1) / row.get::<_, f64>(0),
                        limit,
                        an_element,
                    ));
                }
            }
        }
        println!("{set} grew in {:.0} s", start.elapsed().as_secs_f64());
        (points, rows)
    }

    fn wal(&mut self) -> f64 {
        self.database
            .value::<f64>("SELECT (pg_current_wal_insert_lsn() - '0/0')::float8")
    }

    /// Seconds and bytes of WAL of a statement with a batch as its parameter.
    fn batch(&mut self, statement: &postgres::Statement, batch: &[String]) -> (f64, f64) {
        let before = self.wal();
        let start = Instant::now();
        self.database
            .client
            .query(statement, &[&batch])
            .expect("a batch can be added");
        let seconds = start.elapsed().as_secs_f64();
        (seconds, self.wal() - before)
    }

    /// A batch of new elements: time and WAL, steady and just after a checkpoint.
    fn batches(&mut self, urls: &mut Urls) -> Vec<Row> {
        let elements = self.rows;
        self.database.run(&format!(
            "CREATE TABLE one AS SELECT bloom_agg('https://example.com/page/' || i, {elements}) AS f
             FROM generate_series(1, {elements}) AS i"
        ));
        let ours = "SELECT cardinality(bloom_set_add_all('seen', $1::text[]))";
        let ours = self.database.client.prepare(ours).expect("it is SQL");
        let theirs = self
            .database
            .client
            .prepare("UPDATE one SET f = bloom_add_all(f, $1::text[])")
            .expect("it is SQL");
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
        let (mut their_times, _): (Vec<f64>, Vec<f64>) =
            (0..7).map(|_| self.batch(&theirs, &urls.batch(BATCH))).unzip();
        self.database.run("DROP TABLE one");
        let (time, wal) = (median(&mut times), median(&mut wal));
        let after = median(&mut after_checkpoint);
        vec![
            against_figure("`bloom_set_add_all`, 1000 new URLs", time, 0.018, show),
            Row::timed(
                "the same",
                "`bloom_add_all` to one filter in one row",
                &mut times,
                &mut their_times,
                0.5,
            ),
            against_figure("its WAL, steady", wal, 0.7 * 1048576.0, megabytes),
            against_figure("its WAL just after a checkpoint", after, 12.0 * 1048576.0, megabytes),
        ]
    }

    /// Single elements, each a statement and a transaction.
    fn one_element(&mut self) -> Row {
        let statement = self
            .database
            .client
            .prepare("SELECT bloom_set_add('seen', $1::text)")
            .expect("it is SQL");
        let mut times: Vec<f64> = (0..20 * BATCHES)
            .map(|i| {
                let start = Instant::now();
                let element = format!("https://example.net/one/{i}");
                self.database
                    .client
                    .query(&statement, &[&element])
                    .expect("an element can be added");
                start.elapsed().as_secs_f64()
            })
            .collect();
        against_figure(
            "`bloom_set_add`, a statement and a commit",
            median(&mut times),
            0.0002,
            show,
        )
    }

    /// Lookups of elements, half of which are there: one for each row of a query, here and in a
    /// small set; arrays.
    fn questions(&mut self) -> Vec<Row> {
        let element = "'https://example.com/page/' || i";
        self.database.run(&format!(
            "SELECT bloom_set_create('small', 'text');
             SELECT count(bloom_set_add_all('small', ARRAY(SELECT {element} FROM generate_series(1, 10000) AS i)));
             CREATE TEMP TABLE asked AS SELECT {element} AS url
             FROM generate_series(0, {}, {}) AS i ORDER BY random()",
            2 * self.rows,
            (2 * self.rows / BATCH).max(1)
        ));
        self.database.run("VACUUM ANALYZE small");
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..BATCHES {
            for (set, times) in ["seen", "small"].iter().zip(&mut times) {
                let sql =
                    format!("SELECT count(*) FROM asked WHERE bloom_set_contains('{set}', url)");
                times.push(self.database.time(&sql) / BATCH as f64);
            }
        }
        let present =
            "SELECT cardinality(bloom_set_present('seen', (SELECT array_agg(url) FROM asked)))";
        let mut arrays: Vec<f64> = (0..BATCHES).map(|_| self.database.time(present)).collect();
        self.database.run("DROP TABLE asked, small");
        let [mut single, mut small] = times;
        vec![
            against_figure("`bloom_set_contains` in a query", median(&mut single), 20e-6, show),
            Row::timed("the same", "in a set of 10,000", &mut single, &mut small, 1.3),
            against_figure("`bloom_set_present` of 1000", median(&mut arrays), 0.006, show),
        ]
    }

    /// An array of a million into an empty set.
    fn large(&mut self) -> Row {
        let count = self.rows / 10;
        self.database.run(&format!(
            "CREATE TEMP TABLE large AS SELECT array_agg('https://example.com/page/' || i) AS urls FROM generate_series(1, {count}) AS i"
        ));
        let mut times: Vec<f64> = (0..3)
            .map(|_| {
                self.database.run("SELECT bloom_set_create('new', 'text')");
                let seconds = self
                    .database
                    .time("SELECT cardinality(bloom_set_add_all('new', urls)) FROM large");
                self.database.run("DROP TABLE new");
                seconds
            })
            .collect();
        self.database.run("DROP TABLE large");
        let limit = 0.6 * count as f64 / 1e6;
        against_figure(
            format!("an array of {count} into an empty set"),
            median(&mut times),
            limit,
            show,
        )
    }

    /// The same work in both: one client, a socket, a statement or command at a time.
    fn redis_bloom(&mut self, mut redis: RedisBloom, urls: &mut Urls) -> Vec<Row> {
        // A scaling filter: what it does if nobody knows how many elements there will be.
        redis.run(&["BF.RESERVE", "seen", "0.01", "10000", "EXPANSION", "2"], &[""; 0]);
        let old = |i: usize| format!("https://example.com/page/{i}");
        let filled = self.rows;
        for from in (0..filled).step_by(10_000) {
            redis.run(
                &["BF.MADD", "seen"],
                &(from..filled.min(from + 10_000)).map(old).collect::<Vec<_>>(),
            );
        }
        let add = self
            .database
            .client
            .prepare("SELECT bloom_set_add_all('seen', $1::text[])")
            .expect("it is SQL");
        let ask = self
            .database
            .client
            .prepare("SELECT bloom_set_present('seen', $1::text[])")
            .expect("it is SQL");
        let mut asked = 0;
        let mut rows = Vec::new();
        for (elements, times) in [(1, 20 * BATCHES), (100, 4 * BATCHES), (BATCH, BATCHES)] {
            let new = (0..times).map(|_| urls.batch(elements)).collect();
            rows.push(self.both(&mut redis, &add, "BF.MADD", &format!("adding {elements}"), new));
        }
        for (elements, times) in [(1, 20 * BATCHES), (BATCH, BATCHES)] {
            let mut some = || {
                (0..elements)
                    .map(|_| (asked = (asked + 7919) % (2 * filled), old(asked)).1)
                    .collect()
            };
            let questions = (0..times).map(|_| some()).collect();
            rows.push(self.both(
                &mut redis,
                &ask,
                "BF.MEXISTS",
                &format!("asking for {elements}"),
                questions,
            ));
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
            self.database
                .client
                .query(statement, &[batch])
                .expect("a set answers");
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

    /// Eight sessions at once, which add batches of other elements: time per element, against one
    /// session alone.
    fn sessions(&mut self, urls: &mut Urls) -> Vec<Row> {
        [(BATCH, 40), (100, 200), (10, 1000)]
            .into_iter()
            .map(|(elements, batches)| {
                let one = self.add_at_once(urls, 1, elements, batches);
                let many = self.add_at_once(urls, SESSIONS, elements, batches);
                Row {
                    work: format!(
                        "{SESSIONS} sessions that add batches of {elements}, time per element"
                    ),
                    against: "one session".into(),
                    ours: show(many),
                    theirs: show(one),
                    ratio: many / one,
                    bar: if elements == 100 { 1.0 / 1.5 } else { f64::INFINITY },
                }
            })
            .collect()
    }

    /// Seconds per element.
    fn add_at_once(
        &mut self,
        urls: &mut Urls,
        sessions: usize,
        elements: usize,
        batches: usize,
    ) -> f64 {
        let work: Vec<Vec<Vec<String>>> = (0..sessions)
            .map(|_| (0..batches).map(|_| urls.batch(elements)).collect())
            .collect();
        let clients: Vec<Client> = (0..sessions).map(|_| self.database.another_client()).collect();
        let start = Instant::now();
        thread::scope(|scope| {
            for (mut client, batches) in clients.into_iter().zip(&work) {
                scope.spawn(move || {
                    let statement = client
                        .prepare("SELECT bloom_set_add_all('seen', $1::text[])")
                        .expect("it is SQL");
                    for batch in batches {
                        client.query(&statement, &[batch]).expect("a batch can be added");
                    }
                });
            }
        });
        start.elapsed().as_secs_f64() / (sessions * elements * batches) as f64
    }
}

/// Bytes an element and the rate by the number of elements, with those of a scaling filter by its
/// formula.
fn figure(points: &[Point]) -> Picture {
    let last = points.last().map_or(1e7, |point| point.0);
    let count = |exponent: i32| {
        (10f64.powi(exponent), ["10k", "100k", "1M", "10M", "100M"][exponent as usize - 4].into())
    };
    let x = Axis::log(
        "elements",
        9e3..last * 1.1,
        (4..=8).map(count).filter(|(n, _): &(f64, String)| *n <= last * 1.1),
    );
    let bytes = Axis::linear(
        "bytes an element",
        0.0..20.0,
        (0..=4).map(|i| (f64::from(5 * i), format!("{}", 5 * i))),
    );
    let power = |exponent: i32| (10f64.powi(exponent), format!("1e{exponent}"));
    let rate = Axis::log("false positive rate", 1e-9..1.0, (-8..=-2).step_by(2).map(power));
    let (ours, theirs) = (RGBColor(0, 114, 178), RGBColor(200, 85, 0));
    let layers: Vec<Point> = points.iter().map(|&(elements, ..)| scaling(elements)).collect();
    Picture::draw("A set that grows", &machine::describe(), 330, 2, |areas| {
        for (area, (name, y, pick)) in areas.iter().zip([
            ("size", bytes, (|p: &Point| p.1 / p.0) as fn(&Point) -> f64),
            ("rate", rate, |p: &Point| p.2),
        ]) {
            let mut panel = Panel::new(area, name, INK, x.clone(), y);
            for (curve, colour, label) in [
                (points, ours, "filter set"),
                (&layers[..], theirs, "RedisBloom, by its formula"),
            ] {
                let line: Vec<(f64, f64)> =
                    curve.iter().map(|point| (point.0, pick(point))).collect();
                panel.line(&line, colour, 2.0);
                panel.dots(&line, colour, 3.0);
                panel.label(line[line.len() / 2], Side::Above, label, colour);
            }
        }
    })
}

/// A scaling filter of RedisBloom for 1 %: layers from 10,000 elements on, each twice as large as
/// the one before and with half its rate, the first with half of what was asked for; k = ⌈log2(1 /
/// rate)⌉ and n · k / ln 2 bits.
fn scaling(elements: f64) -> Point {
    let (mut left, mut capacity, mut rate) = (elements, 10_000.0, 0.005f64);
    let (mut bytes, mut absent) = (0.0, 1.0);
    while left > 0.0 {
        let hashes = (1.0 / rate).log2().ceil();
        let bits = capacity * -rate.ln() / std::f64::consts::LN_2.powi(2);
        bytes += bits / 8.0;
        let held = left.min(capacity);
        absent *= 1.0 - (1.0 - (-hashes * held / bits).exp()).powf(hashes);
        left -= held;
        (capacity, rate) = (capacity * 2.0, rate / 2.0);
    }
    (elements, bytes, 1.0 - absent)
}
