//! `LIKE '%…%'` on log lines of a table twice as large as the memory, and insertions.

use super::{Bench, Taken, megabytes, milliseconds, reads};
use crate::Row;
use crate::keys::lines::Random;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write as _;

/// The memory of the server, as a share of the table.
const SHARE: f64 = 0.5;
/// How often the server is started for each index.
const ROUNDS: usize = 2;
/// Patterns that are asked for first after a start, and as many later.
const PATTERNS: usize = 12;
/// Patterns between them, and those that a sequential scan is asked for.
const BETWEEN: usize = 24;
const SCANS: usize = 2;
/// Bytes of a pattern, without its `%`.
const PATTERN_BYTES: usize = 14;
/// Parts of lines that are tried for each pattern: few of them are in one line only.
const CANDIDATES: usize = 40;
/// What the lines of the table follow from.
const SEED: u64 = 1;
/// Statements that insert, and rows of each.
const INSERTIONS: usize = 50;
const ROWS: usize = 1000;

struct Side {
    /// Its index; none for a sequential scan.
    index: &'static str,
    title: &'static str,
    using: &'static str,
    bytes: f64,
    build_seconds: f64,
    first: Taken,
    later: Taken,
    inserted: Taken,
}

impl Side {
    fn new(index: &'static str, title: &'static str, using: &'static str) -> Side {
        Side {
            index,
            title,
            using,
            bytes: 0.0,
            build_seconds: 0.0,
            first: Taken::default(),
            later: Taken::default(),
            inserted: Taken::default(),
        }
    }
}

impl Bench {
    /// Measures `LIKE` and insertions. Returns a table, and the rows with bars.
    pub(super) fn text(&mut self, lines: usize) -> (String, Vec<Row>) {
        let mut random = Random::new(SEED);
        self.database.run(
            "CREATE EXTENSION IF NOT EXISTS pg_trgm; SET maintenance_work_mem = '1GB';
             CREATE TABLE logs (id bigint, message text) WITH (autovacuum_enabled = off);
             CREATE TABLE more_logs (id bigint, message text) WITH (autovacuum_enabled = off)",
        );
        self.copy("logs", lines, &mut random);
        self.copy("more_logs", 3 * INSERTIONS * ROWS, &mut random);
        self.database.run("ALTER TABLE more_logs ADD PRIMARY KEY (id)");
        let mut sides = [
            Side::new("", "sequential scan", ""),
            Side::new(
                "logs_gin",
                "GIN trigrams",
                "gin (message gin_trgm_ops) WITH (fastupdate = off)",
            ),
            Side::new("logs_ours", "`text_ngram_ops`", "bloom_filter (message text_ngram_ops)"),
        ];
        for side in &mut sides {
            if !side.index.is_empty() {
                let create = format!("CREATE INDEX {} ON logs USING {}", side.index, side.using);
                side.build_seconds = self.database.time(&create);
                side.bytes = self.bytes(side.index);
            }
        }
        let table_bytes = self.bytes("logs");
        let memory = super::memory_for(table_bytes, SHARE);
        let patterns = patterns(lines);

        let mut next = 0;
        let mut some = |count: usize| {
            next += count;
            (next - count..next)
                .map(|number| patterns[number % patterns.len()].clone())
                .collect::<Vec<_>>()
        };
        for _ in 0..ROUNDS {
            for side in &mut sides {
                let is_scan = side.index.is_empty();
                self.database.only("logs", side.index);
                self.restart(memory);
                let asked = if is_scan { SCANS } else { PATTERNS };
                side.first.add(self.ask(&some(asked)));
                if !is_scan {
                    self.ask(&some(BETWEEN));
                }
                side.later.add(self.ask(&some(asked)));
            }
        }

        // Last, since each index lacks the lines that are inserted into the others.
        for (number, side) in sides.iter_mut().enumerate() {
            self.database.only("logs", side.index);
            self.restart(memory);
            let first = number * INSERTIONS * ROWS;
            side.inserted = self.take(INSERTIONS, |database, number| {
                let from = first + number * ROWS;
                database.run(&format!(
                    "INSERT INTO logs SELECT id, message FROM more_logs WHERE id >= {from} AND id < {}",
                    from + ROWS
                ));
            });
        }
        let text = table(&sides, lines, table_bytes, memory as f64);
        self.database.run("DROP TABLE logs, more_logs");
        (text, bars(&sides))
    }

    fn copy(&mut self, table: &str, lines: usize, random: &mut Random) {
        let copy = format!("COPY {table} FROM STDIN");
        let mut writer = self.database.client.copy_in(&copy).expect("lines can be copied");
        for number in 0..lines {
            let line = random.line().replace('\\', "\\\\").replace('\t', " ");
            writeln!(writer, "{number}\t{line}").expect("lines can be copied");
        }
        writer.finish().expect("lines can be copied");
        self.database.run(&format!("VACUUM (FREEZE, ANALYZE) {table}"));
    }

    fn ask(&mut self, patterns: &[String]) -> Taken {
        self.take(patterns.len(), |database, number| {
            let found = count(database, &patterns[number]);
            assert_eq!(found, 1, "{}", patterns[number]);
        })
    }
}

/// Returns patterns that one line of the table matches. They are parts of lines from all over it.
fn patterns(lines: usize) -> Vec<String> {
    let wanted = ROUNDS * 2 * (2 * PATTERNS + BETWEEN);
    let lines_per_candidate = (lines / (wanted * CANDIDATES)).max(1);
    // The lines are made once more: to choose parts of them, and to count the lines that have each.
    let mut random = Random::new(SEED);
    let mut places = Random::new(SEED + 1);
    let mut lines_with = HashMap::new();
    for number in 0..lines {
        let line = random.line();
        if number % lines_per_candidate == 0 && line.len() >= PATTERN_BYTES && line.is_ascii() {
            let start = places.below(line.len() - PATTERN_BYTES + 1);
            let part = line.as_bytes()[start..start + PATTERN_BYTES].to_vec();
            lines_with.insert(part, HashSet::new());
        }
    }
    let mut random = Random::new(SEED);
    for number in 0..lines {
        for part in random.line().as_bytes().windows(PATTERN_BYTES) {
            // Two are enough to know that a part is in more than one.
            if let Some(found) = lines_with.get_mut(part)
                && found.len() < 2
            {
                found.insert(number);
            }
        }
    }
    let in_one_line = lines_with.into_iter().filter(|(_, found)| found.len() == 1);
    let mut parts: Vec<Vec<u8>> = in_one_line.map(|(part, _)| part).collect();
    assert!(parts.len() >= wanted, "{} of {wanted} patterns", parts.len());
    parts.sort();
    places.shuffle(&mut parts);
    let as_pattern = |part: &Vec<u8>| {
        let part = String::from_utf8_lossy(part);
        let escaped = part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        format!("%{escaped}%")
    };
    parts.iter().take(wanted).map(as_pattern).collect()
}

/// Returns how many lines match a pattern.
fn count(database: &mut crate::database::Database, pattern: &str) -> i64 {
    let quoted = pattern.replace('\'', "''");
    database.value(&format!("SELECT count(*) FROM logs WHERE message LIKE '{quoted}'"))
}

fn table(sides: &[Side; 3], lines: usize, table_bytes: f64, memory: f64) -> String {
    let mut text = format!(
        "| {lines} log lines, table {} MB, memory {} MB |",
        megabytes(table_bytes),
        megabytes(memory)
    );
    for side in sides {
        write!(text, " {} |", side.title).expect("text can be written to");
    }
    text.push_str("\n|---|---:|---:|---:|\n");
    let mut line = |title: &str, cell: &dyn Fn(&Side) -> String| {
        write!(text, "| {title} |").expect("text can be written to");
        for side in sides {
            write!(text, " {} |", cell(side)).expect("text can be written to");
        }
        text.push('\n');
    };
    let of_index = |side: &Side, cell: String| {
        if side.index.is_empty() { "–".to_owned() } else { cell }
    };
    line("size, MB", &|side| of_index(side, megabytes(side.bytes)));
    line("`CREATE INDEX`, s", &|side| of_index(side, format!("{:.1}", side.build_seconds)));
    let time = |taken: &Taken| format!("{} ({})", milliseconds(taken.mean()), reads(taken));
    line("`LIKE '%…%'` of what one line has, mean, ms (reads): first after start", &|side| {
        time(&side.first)
    });
    line("later", &|side| time(&side.later));
    line("1,000 lines inserted, mean, ms", &|side| milliseconds(side.inserted.mean()));
    line("disk reads for them", &|side| format!("{:.0}", side.inserted.requests_each()));
    line("WAL for them, MB", &|side| megabytes(side.inserted.wal_bytes_each()));
    text
}

fn bars(sides: &[Side; 3]) -> Vec<Row> {
    let [_, gin, ours] = sides;
    let row = |work: &str, ours: &Taken, theirs: &Taken, bar: f64| {
        let (a, b) = (ours.mean(), theirs.mean());
        Row {
            work: work.into(),
            against: "GIN trigrams".into(),
            ours: crate::show(a),
            theirs: crate::show(b),
            ratio: a / b,
            bar,
        }
    };
    vec![
        row("`LIKE`, first after start", &ours.first, &gin.first, 1.0 / 10.0),
        row("`LIKE`, later", &ours.later, &gin.later, 1.0 / 10.0),
        row("1,000 lines inserted, mean", &ours.inserted, &gin.inserted, 1.0 / 15.0),
    ]
}
