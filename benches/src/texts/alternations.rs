//! Regular expressions of several words, `~ 'out of memory|disk full|…'`, against `LIKE ANY` of the
//! same words: what they take, and what the planner believes that they take.
//!
//! Words are cut from lines that are not in the table, and have 8 to 16 characters. Some rows have
//! each of the words that are present, at most twenty. Of those that are absent one letter is another.

use super::MOST_ROWS;
use crate::database::Database;
use crate::keys::lines::Random;
use crate::{ROUNDS, Row};
use std::io::Write as _;
use std::time::Instant;

/// Lines in the table.
const LINES: usize = 300_000;
/// How many words are asked for at once. From nine patterns on the scan of `LIKE ANY` compares rows
/// by their hashes.
const COUNTS: [usize; 6] = [2, 5, 8, 9, 14, 20];
/// Words to choose from: present, and as many that are absent.
const WORDS: usize = 40;
/// What times and estimates may be, by those for `LIKE ANY`.
const BAR: f64 = 1.5;

/// The operators of a question: for patterns, and for a regular expression.
struct Operators {
    like: &'static str,
    regex: &'static str,
}

const OPERATORS: [Operators; 2] = [
    Operators { like: "LIKE", regex: "~" },
    Operators { like: "ILIKE", regex: "~*" },
];

/// What is measured of one question.
struct Measured {
    seconds: Vec<f64>,
    /// The mean of the planner's estimates.
    cost: f64,
}

/// Measures all numbers of words. Returns also a sentence on what a row's comparison takes.
pub fn by_number(random: &mut Random) -> (String, Vec<Row>) {
    let mut database = Database::create("alternations");
    // The choice of the planner is another matter, which the tests of the index look at.
    database.run("SET enable_seqscan = off");
    load(&mut database, random);
    let present = words(&mut database, random, |rows| (1..=MOST_ROWS).contains(&rows));
    let absent = words(&mut database, random, |rows| rows == 0);

    let mut rows = Vec::new();
    for (list, kind) in [(&present, "present"), (&absent, "absent")] {
        for count in COUNTS {
            for operators in &OPERATORS {
                let mut like = Measured { seconds: Vec::new(), cost: 0.0 };
                let mut regex = Measured { seconds: Vec::new(), cost: 0.0 };
                for _ in 0..ROUNDS {
                    let some: Vec<&str> =
                        (0..count).map(|_| random.one_of(list).as_str()).collect();
                    measure(&mut database, &any_pattern(operators.like, &some), &mut like);
                    measure(&mut database, &alternation(operators.regex, &some), &mut regex);
                }
                let work = format!("`{}` of {count} words, {kind}", operators.regex);
                let against = format!("`{} ANY`", operators.like);
                rows.push(Row {
                    work: format!("{work}: estimate"),
                    against: against.clone(),
                    ours: format!("{:.0}", regex.cost),
                    theirs: format!("{:.0}", like.cost),
                    ratio: regex.cost / like.cost,
                    bar: BAR,
                });
                rows.push(Row::timed(
                    format!("{work}: time"),
                    against,
                    &mut regex.seconds,
                    &mut like.seconds,
                    BAR,
                ));
            }
        }
    }
    let text = comparison_of_a_row(&mut database, &absent);
    database.drop();
    (text, rows)
}

/// Returns a sentence on what PostgreSQL takes to compare a row, without an index, with two words.
fn comparison_of_a_row(database: &mut Database, words: &[String]) -> String {
    let two: Vec<&str> = words.iter().take(2).map(String::as_str).collect();
    let mut like = Vec::new();
    let mut regex = Vec::new();
    database.run("SET enable_seqscan = on; SET enable_bitmapscan = off");
    for _ in 0..ROUNDS {
        like.push(seconds_of_count(database, &any_pattern("LIKE", &two)));
        regex.push(seconds_of_count(database, &alternation("~", &two)));
    }
    let [like, regex] =
        [like, regex].map(|mut seconds| 1e6 * crate::median(&mut seconds) / LINES as f64);
    format!(
        "PostgreSQL compares each row that may match: without an index, two words take \
         {regex:.1} µs a row by `~` and {like:.1} µs by `LIKE ANY`, {:.1} times as long.",
        regex / like
    )
}

fn seconds_of_count(database: &mut Database, condition: &str) -> f64 {
    let query = format!("SELECT count(*) FROM lines WHERE {condition}");
    let start = Instant::now();
    database.run(&query);
    start.elapsed().as_secs_f64()
}

fn load(database: &mut Database, random: &mut Random) {
    database.run("CREATE TABLE lines (line text) WITH (autovacuum_enabled = off)");
    let mut copy = database
        .client
        .copy_in("COPY lines FROM STDIN")
        .expect("lines can be copied");
    for _ in 0..LINES {
        let line = random.line().replace('\\', "\\\\");
        writeln!(copy, "{line}").expect("lines can be copied");
    }
    copy.finish().expect("lines can be copied");
    database.run("CREATE INDEX lines_line ON lines USING bloom_filter (line text_ngram_ops)");
    database.run("VACUUM (FREEZE, ANALYZE) lines");
}

/// Returns words that as many rows have as `is_asked` says.
fn words(
    database: &mut Database,
    random: &mut Random,
    is_asked: impl Fn(i64) -> bool,
) -> Vec<String> {
    let mut words = Vec::new();
    while words.len() < WORDS {
        let line: Vec<char> = random.line().chars().collect();
        let length = 8 + random.below(9);
        if line.len() <= length {
            continue;
        }
        let start = random.below(line.len() - length);
        let mut word = line[start..start + length].to_vec();
        if is_asked(0) {
            word[random.below(length)] = *random.one_of(&['k', 'q', 'v', 'x', 'z']);
        }
        let word: String = word.into_iter().collect();
        let rows: i64 = database
            .value(&format!("SELECT count(*) FROM lines WHERE {}", any_pattern("LIKE", &[&word])));
        if word.trim() == word && is_asked(rows) {
            words.push(word);
        }
    }
    words
}

/// Returns a condition of an array of patterns.
fn any_pattern(operator: &str, words: &[&str]) -> String {
    let escape = |word: &&str| {
        let escaped = word.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
        quoted(&format!("%{escaped}%"))
    };
    let patterns: Vec<String> = words.iter().map(escape).collect();
    format!("line {operator} ANY (ARRAY[{}])", patterns.join(", "))
}

/// Returns a condition of one regular expression.
fn alternation(operator: &str, words: &[&str]) -> String {
    let escape = |c: char| {
        let is_itself = c.is_alphanumeric() || c == ' ';
        if is_itself { c.to_string() } else { format!(r"\{c}") }
    };
    let branches: Vec<String> =
        words.iter().map(|word| word.chars().map(escape).collect()).collect();
    format!("line {operator} {}", quoted(&branches.join("|")))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Adds the time and the estimate of a query with this condition.
fn measure(database: &mut Database, condition: &str, measured: &mut Measured) {
    let query = format!("SELECT * FROM lines WHERE {condition}");
    let lines = database
        .client
        .query(&format!("EXPLAIN {query}"), &[])
        .expect("a query can be explained");
    let plan: &str = lines[0].get(0);
    let total = plan.split("..").nth(1).and_then(|rest| rest.split(' ').next());
    let cost: f64 = total
        .and_then(|total| total.parse().ok())
        .unwrap_or_else(|| panic!("{plan} has no cost"));
    measured.cost += cost / ROUNDS as f64;

    // What is read first is not in memory yet.
    database.run(&query);
    let start = Instant::now();
    database.run(&query);
    measured.seconds.push(start.elapsed().as_secs_f64());
}
