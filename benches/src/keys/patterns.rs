//! `LIKE '%…%'`: patterns cut from lines that are not in the table, and the ranges that have all of
//! their windows.

use super::lines::Random;
use super::{Bench, TEXT, mean};
use crate::{ROUNDS, Row, against_figure, show};
use pg_bloom_benches::median;
use pg_bloom_core::conditions::text::{Encoding, Windows};
use std::collections::{BTreeSet, HashMap};
use std::hint::black_box;
use std::time::Instant;

/// Patterns that no row has, and as many that few rows have.
const PATTERNS: usize = 200;
/// The most rows that are few.
const FEW: usize = 20;
/// The seed of the lines that patterns are cut from.
const SEED: u64 = 3;
/// Pages of a range, by default.
const PAGES: usize = 1;
/// Patterns that are asked between two sequential scans.
const BETWEEN: usize = 4;

/// What the plan of a query says, or what its execution did.
const EXPLAIN: &str = "
    CREATE FUNCTION explain(options text, query text, field text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        plan json;
    BEGIN
        EXECUTE format('EXPLAIN (FORMAT JSON %s) %s', options, query) INTO plan;
        RETURN plan #>> ARRAY['0', 'Plan', field];
    END $$";

/// The table as it is: lines by ranges, and the ranges that have a window.
struct Truth<'a> {
    ranges: Vec<Vec<&'a str>>,
    /// A bit for each range.
    having: HashMap<[u8; 4], Vec<u64>>,
    /// Distinct windows of a range, and distinct words, in the mean.
    windows: f64,
    words: f64,
}

/// Some text, with the ranges that have all of its windows.
struct Pattern {
    text: String,
    ranges: usize,
}

impl Pattern {
    /// A query for the rows that have it.
    fn query(&self, what: &str) -> String {
        let escaped = self
            .text
            .replace('\\', "\\\\")
            .replace('%', "\\%")
            .replace('_', "\\_")
            .replace('\'', "''");
        format!("SELECT {what} FROM message WHERE message LIKE '%{escaped}%'")
    }
}

/// Distinct windows of a text, its letters lower-cased.
fn windows(text: &str) -> impl Iterator<Item = [u8; 4]> {
    let lower = text.to_ascii_lowercase().into_bytes();
    let windows: BTreeSet<[u8; 4]> = lower
        .windows(4)
        .map(|window| [window[0], window[1], window[2], window[3]])
        .collect();
    windows.into_iter()
}

impl<'a> Truth<'a> {
    fn new(ranges: Vec<Vec<&'a str>>) -> Truth<'a> {
        let mut having: HashMap<[u8; 4], Vec<u64>> = HashMap::new();
        let mut words = 0;
        for (n, lines) in ranges.iter().enumerate() {
            let all = lines.join("\n").to_ascii_lowercase();
            words += all
                .split(|c: char| !c.is_ascii_alphanumeric())
                .collect::<BTreeSet<_>>()
                .len();
            for window in lines.iter().flat_map(|line| windows(line)) {
                having
                    .entry(window)
                    .or_insert_with(|| vec![0; ranges.len().div_ceil(64)])[n / 64] |= 1 << (n % 64);
            }
        }
        let bits: u64 = having
            .values()
            .flatten()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        let many = ranges.len() as f64;
        Truth {
            windows: bits as f64 / many,
            words: words as f64 / many,
            having,
            ranges,
        }
    }

    /// The ranges that have all windows of a text.
    fn ranges_having(&self, text: &str) -> Vec<usize> {
        let mut left = vec![u64::MAX; self.ranges.len().div_ceil(64)];
        for window in windows(text) {
            let Some(having) = self.having.get(&window) else {
                return Vec::new();
            };
            left.iter_mut().zip(having).for_each(|(left, having)| *left &= having);
        }
        (0..self.ranges.len())
            .filter(|n| left[n / 64] >> (n % 64) & 1 == 1)
            .collect()
    }

    /// Patterns that no row has, and that few rows have.
    fn patterns(&self) -> [Vec<Pattern>; 2] {
        let mut random = Random::new(SEED);
        let (mut none, mut few) = (Vec::new(), Vec::new());
        for n in 0.. {
            if none.len() == PATTERNS && few.len() == PATTERNS {
                break;
            }
            let text = cut(&mut random, n % 2 == 0);
            let ranges = self.ranges_having(&text);
            let lines = ranges.iter().flat_map(|n| &self.ranges[*n]);
            let into = match lines.filter(|line| line.contains(&text)).take(FEW + 1).count() {
                0 => &mut none,
                1..=FEW => &mut few,
                _ => continue,
            };
            if into.len() < PATTERNS {
                into.push(Pattern { text, ranges: ranges.len() });
            }
        }
        [none, few]
    }
}

/// 8 to 20 bytes of a new line; with a letter changed, if it has any.
fn cut(random: &mut Random, is_changed: bool) -> String {
    let line = random.line();
    let length = (8 + random.below(13)).min(line.len());
    let start = random.below(line.len() - length + 1);
    let mut text = line[start..start + length].to_owned();
    let letters: Vec<usize> = (0..length)
        .filter(|n| text.as_bytes()[*n].is_ascii_alphabetic())
        .collect();
    if is_changed && !letters.is_empty() {
        let (at, letter) =
            (*random.one_of(&letters), char::from(*random.one_of(b"abcdefghijklmnopqrstuvwxyz")));
        text.replace_range(at..at + 1, letter.encode_utf8(&mut [0; 1]));
    }
    text
}

impl Bench {
    /// Patterns against sequential scans, and the ranges that are read for them.
    pub(super) fn patterns(&mut self) -> (String, Vec<Row>) {
        self.database.only(TEXT.name, &TEXT.ours());
        self.database.run(EXPLAIN);
        let lines = std::mem::take(&mut self.lines);
        let truth = Truth::new(self.lines_by_range(&lines));
        let patterns = truth.patterns();
        let mut rows = Vec::new();
        for (patterns, title, bar) in [
            (&patterns[0], "that no row has", 1.0 / 10.0),
            (&patterns[1], "that 1 to 20 rows have", 1.0 / 7.0),
        ] {
            let [mut ours, mut theirs] = self.against_scans(patterns).map(|times| [mean(&times)]);
            let work = format!("`LIKE '%…%'`, 8 to 20 bytes {title}, mean of {PATTERNS}");
            rows.push(Row::timed(work, "a sequential scan", &mut ours, &mut theirs, bar));
        }
        let all: Vec<&Pattern> = patterns.iter().flatten().collect();
        rows.push(self.ranges_read(&all));
        rows.push(gathering(&truth));
        let text = self.about(&truth, &patterns);
        self.lines = lines;
        (text, rows)
    }

    /// The lines of each range of the table.
    fn lines_by_range<'a>(&mut self, lines: &'a [String]) -> Vec<Vec<&'a str>> {
        let sql = format!(
            "SELECT array_agg(id) FROM message GROUP BY (ctid::text::point)[0]::bigint / {PAGES} ORDER BY min(id)"
        );
        let ranges = self.database.client.query(&sql, &[]).expect("rows can be read");
        ranges
            .iter()
            .map(|range| {
                range
                    .get::<_, Vec<i64>>(0)
                    .iter()
                    .map(|id| lines[*id as usize].as_str())
                    .collect()
            })
            .collect()
    }

    /// Seconds of each pattern with the plan that the planner takes, and of some by a sequential
    /// scan, in turn.
    fn against_scans(&mut self, patterns: &[Pattern]) -> [Vec<f64>; 2] {
        let queries: Vec<String> =
            patterns.iter().map(|pattern| pattern.query("count(*)")).collect();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for queries in queries.chunks(BETWEEN) {
            ours.extend(self.ask(queries));
            self.database.run("SET enable_bitmapscan = off");
            theirs.extend(self.ask(&queries[..1]));
            self.database.run("RESET enable_bitmapscan");
        }
        [ours, theirs]
    }

    /// What the index says of ranges, against what is true, whatever the planner would take.
    fn ranges_read(&mut self, patterns: &[&Pattern]) -> Row {
        self.database.run("SET enable_seqscan = off");
        let mut pages = 0;
        for pattern in patterns {
            for field in ["Exact Heap Blocks", "Lossy Heap Blocks"] {
                pages += self
                    .explained(", ANALYZE, TIMING off", pattern, field)
                    .parse::<usize>()
                    .expect("a number");
            }
        }
        self.database.run("RESET enable_seqscan");
        let (ours, theirs) =
            (pages as f64 / PAGES as f64, patterns.iter().map(|p| p.ranges).sum::<usize>() as f64);
        Row {
            work: format!("ranges read for these {} patterns", patterns.len()),
            against: "those with all windows".into(),
            ours: format!("{ours:.0}"),
            theirs: format!("{theirs:.0}"),
            ratio: ours / theirs,
            bar: 1.5,
        }
    }

    fn explained(&mut self, options: &str, pattern: &Pattern, field: &str) -> String {
        let arguments: [&(dyn postgres::types::ToSql + Sync); 3] =
            [&options, &pattern.query("id"), &field];
        self.database
            .client
            .query_one("SELECT explain($1, $2, $3)", &arguments)
            .expect("it can be explained")
            .get(0)
    }

    /// What is to be known of the lines and the patterns.
    fn about(&mut self, truth: &Truth, patterns: &[Vec<Pattern>; 2]) -> String {
        let ranges = truth.ranges.len() as f64;
        let [none, few] = patterns.each_ref().map(|patterns| {
            let share = patterns.iter().map(|p| p.ranges as f64).sum::<f64>()
                / patterns.len() as f64
                / ranges;
            let scans = patterns
                .iter()
                .filter(|p| self.explained("", p, "Node Type") == "Seq Scan")
                .count();
            format!("{:.1} % ({scans} by a sequential scan)", share * 100.0)
        });
        format!(
            "Lines made from templates: {:.0} distinct windows and {:.0} distinct words in {PAGES} pages. Ranges that have all windows \
             of a pattern, in the mean: {none} of those that no row has, {few} of those that few have.",
            truth.windows, truth.words
        )
    }
}

/// Windows of the lines of each range, hashed and gathered as a build does it.
fn gathering(truth: &Truth) -> Row {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let (mut gathered, mut count) = (Windows::default(), 0);
            let start = Instant::now();
            for lines in &truth.ranges {
                count += lines
                    .iter()
                    .map(|line| gathered.add(line.as_bytes(), Encoding::Utf8))
                    .sum::<usize>();
                black_box(gathered.take());
            }
            start.elapsed().as_secs_f64() / count as f64
        })
        .collect();
    against_figure("a window hashed and gathered by a build", median(&mut times), 8e-9, show)
}
