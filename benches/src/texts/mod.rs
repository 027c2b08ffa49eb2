//! `LIKE` and `ILIKE` in texts of several kinds and scripts, against a sequential scan and GIN's
//! trigrams.
//!
//! Patterns are cut from texts that are not in the table; half of them have a letter of another
//! text. Those count that at most twenty rows match: for others an index is of no use. They have 8
//! to 20 characters; in Chinese and Japanese 2 to 6, of which one at least is Chinese or Japanese:
//! manuals have much in English, where a pattern has 8 letters.

mod alternations;
mod corpora;
mod model;

use crate::Row;
use crate::database::Database;
use crate::keys::lines::Random;
use corpora::Corpus;
use model::Model;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

/// Patterns for each kind of text.
const PATTERNS: usize = 48;
/// Rows that match a pattern at most.
const MOST_ROWS: i64 = 20;

/// A pattern, and how many rows match it by LIKE.
type Pattern = (String, i64);

/// Measures regular expressions of several words against `LIKE ANY`. Returns also a sentence on
/// what the comparison of a row takes.
pub fn alternations() -> (String, Vec<Row>) {
    alternations::by_number(&mut Random::new(2))
}

/// Measures all kinds of texts. Returns a table.
pub fn by_kind() -> String {
    let mut random = Random::new(1);
    let mut text = String::from(
        "Shares of the time of a sequential scan; sizes as shares of the text. `forced`: with `enable_seqscan = off`. \
         Patterns have 8 to 20 characters; in Chinese and Japanese 2 to 6, at least one of them wide. By a model of \
         the filters alone: size, share of the text that `LIKE` reads, and that it must read.\n\n\
         | | rows | text | index | `LIKE` | `ILIKE` | forced | by a model | GIN trigrams, size | `LIKE` | `ILIKE` |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut database = Database::create("texts");
    database.run(
        "CREATE EXTENSION pg_trgm; SET maintenance_work_mem = '512MB'; SET synchronize_seqscans = off; SET jit = off",
    );
    for corpus in corpora::all(&mut random) {
        let row = Bench { database: &mut database, corpus: &corpus }.measure(&mut random);
        println!("{row}");
        writeln!(text, "{row}").expect("text can be written to");
    }
    database.drop();
    text
}

/// Size of the filters, share of the text that patterns read, and that they must read.
fn by_model(texts: &[String], patterns: &[Pattern]) -> String {
    let model = Model::new(texts);
    let (read, exact) = model.read(patterns.iter().map(|(pattern, _)| pattern.as_str()));
    format!("{:.1} %, {read:.3} ({exact:.3})", 100.0 * model.size())
}

/// Whether a character is Chinese or Japanese, or punctuation of these.
fn is_wide(character: char) -> bool {
    character >= '\u{2e80}'
}

struct Bench<'a> {
    database: &'a mut Database,
    corpus: &'a Corpus,
}

impl Bench<'_> {
    /// A row of the table.
    fn measure(&mut self, random: &mut Random) -> String {
        let Corpus { name, title, texts, .. } = self.corpus;
        let (stored, held_back) = texts.split_at(texts.len() / 10 * 9);
        self.load(stored);
        let bytes: i64 = self
            .database
            .value(&format!("SELECT sum(octet_length(body)) FROM {name}"));
        self.database.run(&format!(
            "CREATE INDEX {name}_ours ON {name} USING bloom_filter (body text_ngram_ops);
             CREATE INDEX {name}_gin ON {name} USING gin (body gin_trgm_ops)"
        ));
        let patterns = self.patterns(stored, held_back, random);
        let mut share_of = |index: &str| {
            self.database
                .value::<i64>(&format!("SELECT pg_relation_size('{name}_{index}')"))
                as f64
                / bytes as f64
        };
        let [ours, gin] = [share_of("ours"), share_of("gin")];
        let mut row = format!(
            "| {title} | {} | {:.1} MB | {:.1} % |",
            stored.len(),
            bytes as f64 / 1e6,
            100.0 * ours
        );
        let scans = ["LIKE", "ILIKE"]
            .map(|operator| self.time("", "enable_bitmapscan = off", operator, &patterns));
        for (index, setting, size) in [("ours", "jit = off", None), ("gin", "jit = off", Some(gin))]
        {
            if let Some(size) = size {
                write!(row, " {:.0} % |", 100.0 * size).expect("text can be written to");
            }
            for (operator, scan) in ["LIKE", "ILIKE"].into_iter().zip(scans) {
                let share = self.time(index, setting, operator, &patterns) / scan;
                write!(row, " {share:.3} |").expect("text can be written to");
            }
            if size.is_none() {
                let share = self.time(index, "enable_seqscan = off", "LIKE", &patterns) / scans[0];
                write!(row, " {share:.3} | {} |", by_model(stored, &patterns))
                    .expect("text can be written to");
            }
        }
        row
    }

    fn load(&mut self, texts: &[String]) {
        let name = self.corpus.name;
        self.database.run(&format!(
            "CREATE TABLE {name} (id integer, body text) WITH (autovacuum_enabled = off)"
        ));
        let mut copy = self
            .database
            .client
            .copy_in(&format!("COPY {name} FROM STDIN"))
            .expect("texts can be copied");
        for (i, text) in texts.iter().enumerate() {
            let quoted = text
                .replace('\\', "\\\\")
                .replace('\n', "\\n")
                .replace('\t', "\\t")
                .replace('\r', "\\r");
            writeln!(copy, "{i}\t{quoted}").expect("texts can be copied");
        }
        copy.finish().expect("texts can be copied");
        self.database.run(&format!("VACUUM (FREEZE, ANALYZE) {name}"));
    }

    fn patterns(
        &mut self,
        stored: &[String],
        held_back: &[String],
        random: &mut Random,
    ) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        self.database.run("SET enable_bitmapscan = off");
        for attempt in 0..3000 {
            let text: Vec<char> = random.one_of(held_back).chars().collect();
            let length =
                if self.corpus.is_wide { 2 + random.below(5) } else { 8 + random.below(13) };
            if text.len() <= length {
                continue;
            }
            let start = random.below(text.len() - length);
            let mut pattern = text[start..start + length].to_vec();
            if attempt % 2 == 1 {
                let other: Vec<char> = random.one_of(stored).chars().collect();
                pattern[random.below(length)] = *random.one_of(&other);
            }
            let pattern: String = pattern.into_iter().collect();
            let pattern = pattern.trim();
            let is_asked = !self.corpus.is_wide || pattern.chars().any(is_wide);
            if !is_asked || pattern.chars().count() < 2 || pattern.contains('\n') {
                continue;
            }
            let pattern = format!(
                "%{}%",
                pattern.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
            );
            let rows = self.count("LIKE", &pattern);
            if rows <= MOST_ROWS {
                patterns.push((pattern, rows));
            }
            if patterns.len() == PATTERNS {
                break;
            }
        }
        self.database.run("RESET enable_bitmapscan");
        patterns
    }

    fn count(&mut self, operator: &str, pattern: &str) -> i64 {
        let query = format!("SELECT count(*) FROM {} WHERE body {operator} $1", self.corpus.name);
        self.database
            .client
            .query_one(&query, &[&pattern])
            .expect("texts can be searched")
            .get(0)
    }

    /// Mean seconds of these patterns, with this index and no other.
    fn time(&mut self, index: &str, setting: &str, operator: &str, patterns: &[Pattern]) -> f64 {
        let name = self.corpus.name;
        self.database.only(name, &format!("{name}_{index}"));
        self.database.run(&format!("SET {setting}"));
        let mut seconds = 0.0;
        for (pattern, rows) in patterns {
            // What is read first is not in memory yet.
            self.count(operator, pattern);
            let start = Instant::now();
            let found = self.count(operator, pattern);
            seconds += start.elapsed().as_secs_f64();
            assert!(operator != "LIKE" || found == *rows, "{pattern} has {found} rows, not {rows}");
        }
        self.database.run("RESET enable_bitmapscan; RESET enable_seqscan");
        seconds / patterns.len() as f64
    }
}
