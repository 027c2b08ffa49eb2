//! A set, and a table of hashes with a primary key that is four times as large as the memory.

use super::{Bench, Taken, megabytes, milliseconds, reads};
use crate::{Row, median, show};
use std::fmt::Write as _;

/// The memory of the server, as a share of the table and its key.
const SHARE: f64 = 0.25;
/// How often the server is started for each side.
const ROUNDS: usize = 3;
/// Batches first after a start, those before later ones, and later ones; and elements of each.
const FIRST: usize = 20;
const BETWEEN: usize = 40;
const LATER: usize = 20;
const BATCH: usize = 1000;
/// Elements by which the set grows at first.
const STEP: usize = 1_000_000;

/// Elements `from` to `end` as an array.
fn urls(from: usize, end: usize) -> String {
    format!(
        "ARRAY(SELECT 'https://example.com/page/' || i FROM generate_series({from}, {}) AS i)",
        end - 1
    )
}

#[derive(Default)]
struct Side {
    bytes: f64,
    first: Taken,
    later: Taken,
}

impl Bench {
    /// Measures batches of new elements. Returns a table, and rows without bars.
    pub(super) fn sets(&mut self, elements: usize) -> (String, Vec<Row>) {
        self.database.run(&format!(
            "SET maintenance_work_mem = '1GB';
             CREATE TABLE hashes (hash bigint) WITH (autovacuum_enabled = off);
             INSERT INTO hashes SELECT hashtextextended('https://example.com/page/' || i, 0)
               FROM generate_series(0, {elements} - 1) AS i;
             ALTER TABLE hashes ADD PRIMARY KEY (hash)"
        ));
        self.database.run("SELECT bloom_set_create('seen', 'text')");
        for from in (0..elements).step_by(STEP) {
            let urls = urls(from, elements.min(from + STEP));
            self.database
                .run(&format!("SELECT cardinality(bloom_set_add_all('seen', {urls}))"));
        }
        self.database.run("VACUUM (FREEZE, ANALYZE) hashes");
        self.database.run("VACUUM seen");
        let total = |bench: &mut Bench, table: &str| -> f64 {
            bench
                .database
                .value(&format!("SELECT pg_total_relation_size('{table}')::float8"))
        };
        let mut sides = [Side::default(), Side::default()];
        sides[0].bytes = total(self, "hashes");
        sides[1].bytes = total(self, "seen");
        let memory = super::memory_for(sides[0].bytes, SHARE);

        let mut next = elements;
        for _ in 0..ROUNDS {
            for (number, side) in sides.iter_mut().enumerate() {
                let mut add = |bench: &mut Bench, batches: usize| {
                    bench.take(batches, |database, _| {
                        let urls = urls(next, next + BATCH);
                        next += BATCH;
                        if number == 0 {
                            database.run(&format!(
                                "INSERT INTO hashes SELECT hashtextextended(url, 0) FROM unnest({urls}) AS url
                                 ON CONFLICT DO NOTHING"
                            ));
                        } else {
                            database.run(&format!(
                                "SELECT cardinality(bloom_set_add_all('seen', {urls}))"
                            ));
                        }
                    })
                };
                self.restart(memory);
                side.first.add(add(self, FIRST));
                add(self, BETWEEN);
                side.later.add(add(self, LATER));
            }
        }
        self.database.run("DROP TABLE hashes, seen");
        (table(&sides, elements, memory as f64), rows(&mut sides))
    }
}

fn table(sides: &[Side; 2], elements: usize, memory: f64) -> String {
    let mut text = format!(
        "| {elements} URLs, memory {} MB | table with a primary key on hashes | set |\n|---|---:|---:|\n",
        megabytes(memory)
    );
    let mut line = |title: &str, cell: &dyn Fn(&Side) -> String| {
        let [table, set] = sides;
        writeln!(text, "| {title} | {} | {} |", cell(table), cell(set))
            .expect("text can be written to");
    };
    line("size, MB", &|side| megabytes(side.bytes));
    let time = |taken: &Taken| {
        format!("{} ({})", milliseconds(median(&mut taken.seconds.clone())), reads(taken))
    };
    line("1,000 new URLs, median, ms (reads): first after start", &|side| time(&side.first));
    line("later", &|side| time(&side.later));
    line("WAL for them, later, MB", &|side| megabytes(side.later.wal_bytes_each()));
    text
}

fn rows(sides: &mut [Side; 2]) -> Vec<Row> {
    let [table, set] = sides;
    let against = "`INSERT … ON CONFLICT DO NOTHING` of hashes";
    let times = [
        ("first after start", &mut set.first, &mut table.first),
        ("later", &mut set.later, &mut table.later),
    ];
    times
        .into_iter()
        .map(|(when, ours, theirs)| {
            let work = format!("`bloom_set_add_all`, 1,000 new URLs, {when}");
            let seconds = (&mut ours.seconds, &mut theirs.seconds);
            let (a, b) = (median(seconds.0), median(seconds.1));
            Row {
                work,
                against: against.into(),
                ours: show(a),
                theirs: show(b),
                ratio: a / b,
                bar: f64::INFINITY,
            }
        })
        .collect()
}
