//! Regular expressions of several words, `~ 'out of memory|disk full|…'`: they find, read and cost
//! what LIKE ANY of the words does, however many there are.

use crate::common::asking::{agree_by_part, shares_read};
use crate::common::{Random, column, plan, run, value};
use crate::{random, server, times};
use postgres::Client;

/// Rows of the table.
const ROWS: usize = 30_000;
/// The most branches of an alternation.
const MOST_BRANCHES: usize = 20;
/// How much more one of the two may cost or read.
const MOST_RATIO: f64 = 1.5;

/// Parts of lines, so that lines share most of their windows.
const EVENTS: [&str; 24] = [
    "connection refused by peer",
    "connection reset by peer",
    "connection closed by host",
    "authentication failure for user",
    "authentication succeeded for user",
    "session opened for user",
    "session closed for user",
    "block received from node",
    "block deleted on node",
    "block replicated to node",
    "checkpoint complete, wrote buffers",
    "checkpoint starting, wal",
    "temperature above threshold",
    "temperature back to normal",
    "disk write error on sector",
    "disk read error on sector",
    "memory allocation failed in zone",
    "memory pressure detected in zone",
    "request timed out after retry",
    "request completed after retry",
    "certificate expired for site",
    "certificate renewed for site",
    "packet dropped on interface",
    "packet forwarded on interface",
];

/// Makes a table of lines, and an index on it.
fn prepare(client: &mut Client, random: &mut Random) {
    run(client, "CREATE TABLE lines (id serial, line text) WITH (autovacuum_enabled = off)");
    let mut lines = Vec::new();
    for _ in 0..ROWS {
        let number = random.below(1_000_000);
        let event = random.pick(&EVENTS);
        lines.push(format!("('{event} {number:06} module-{:02}')", random.below(60)));
    }
    for rows in lines.chunks(5000) {
        run(client, &format!("INSERT INTO lines (line) VALUES {}", rows.join(",")));
    }
    run(client, "CREATE INDEX lines_line ON lines USING bloom_filter (line text_ngram_ops)");
    run(client, "VACUUM (FREEZE, ANALYZE) lines");
}

/// Words that some rows have, and as many that none has.
struct Words {
    present: Vec<String>,
    absent: Vec<String>,
}

impl Words {
    fn of_lines(client: &mut Client, random: &mut Random) -> Words {
        let lines: Vec<String> = column(client, "SELECT line FROM lines WHERE id % 97 = 1");
        let mut words = Words { present: Vec::new(), absent: Vec::new() };
        for line in &lines {
            // With the number, which few other lines have.
            let end = line.find("module").expect("each line has one");
            let start = end - 14 - random.below(4);
            let present = &line[start..end - 1];
            words.present.push(present.to_owned());
            words.absent.push(present.chars().rev().collect());
        }
        words
    }
}

/// The two ways to ask for some words, as conditions.
struct Ways {
    like: String,
    regex: String,
}

impl Ways {
    fn of(words: &[&String]) -> Ways {
        let patterns: Vec<String> = words.iter().map(|word| format!("'%{word}%'")).collect();
        let branches: Vec<String> = words.iter().map(|word| word.replace('.', r"\.")).collect();
        Ways {
            like: format!("line LIKE ANY (ARRAY[{}])", patterns.join(", ")),
            regex: format!("line ~ '{}'", branches.join("|")),
        }
    }
}

fn cost(client: &mut Client, condition: &str) -> f64 {
    let shown = plan(client, "COSTS", &format!("SELECT * FROM lines WHERE {condition}"));
    let total = shown.split("..").nth(1).and_then(|rest| rest.split(' ').next());
    total.and_then(|total| total.parse().ok()).expect("a plan has a cost")
}

/// The pages of the index that a query reads.
fn index_pages_read(client: &mut Client, condition: &str) -> f64 {
    const FETCHED: &str = "SELECT pg_stat_get_xact_blocks_fetched('lines_line'::regclass)";
    run(client, "BEGIN");
    let before: i64 = value(client, FETCHED);
    let _: i64 = value(client, &format!("SELECT count(*) FROM lines WHERE {condition}"));
    let read = value::<i64>(client, FETCHED) - before;
    run(client, "COMMIT");
    read as f64
}

#[track_caller]
fn assert_near(what: &str, regex: f64, like: f64) {
    // A page more or less says nothing.
    let ratio = (regex + 20.0) / (like + 20.0);
    assert!(ratio < MOST_RATIO && ratio > 1.0 / MOST_RATIO, "{what}: {regex} by ~, {like} by LIKE");
}

#[test]
fn an_alternation_costs_and_reads_what_like_any_does() {
    let mut client = server().database("alternations");
    let mut random = random(51);
    prepare(&mut client, &mut random);
    let words = Words::of_lines(&mut client, &mut random);
    for list in [&words.absent, &words.present] {
        let mut cost_of_one_less = f64::INFINITY;
        for count in 2..=MOST_BRANCHES {
            // Each list has the words of the one before, so that only their number differs.
            let some: Vec<&String> = list.iter().take(count).collect();
            let ways = Ways::of(&some);
            for condition in [&ways.like, &ways.regex] {
                let sql = format!("SELECT id::text FROM lines WHERE {condition}");
                agree_by_part(&mut client, "lines_line", &sql);
            }
            run(&mut client, "RESET ALL");
            let shown =
                plan(&mut client, "COSTS OFF", &format!("SELECT FROM lines WHERE {}", ways.regex));
            assert!(shown.contains("lines_line"), "{count} branches\n{shown}");

            let costs = [&ways.regex, &ways.like].map(|condition| cost(&mut client, condition));
            assert_near(&format!("cost of {count}"), costs[0], costs[1]);
            let pages =
                [&ways.regex, &ways.like].map(|condition| index_pages_read(&mut client, condition));
            assert_near(&format!("index pages read for {count}"), pages[0], pages[1]);
            // No cliff, such as where rows are hashed.
            assert!(costs[0] < cost_of_one_less * MOST_RATIO, "{count}: {costs:?}");
            cost_of_one_less = costs[0];
        }
    }
}

/// What alternations are part of, and what is part of them.
#[test]
fn pieces_around_and_within_alternations_read_a_part_of_the_table() {
    let mut client = server().database("around_alternations");
    let mut random = random(52);
    prepare(&mut client, &mut random);
    let words = Words::of_lines(&mut client, &mut random);
    for round in 0..times(12) {
        let list = if round % 2 == 0 { &words.absent } else { &words.present };
        let mut pick = || random.pick(list).as_str();
        let mut pick_some = |count: usize| (0..count).map(|_| pick()).collect::<Vec<_>>().join("|");
        let expressions = [
            format!("for user ({})", pick_some(9)),
            format!("({}) module-0[0-9]", pick_some(3)),
            format!("(({})|(?:{})) module", pick_some(4), pick_some(6)),
            format!("({})?({})", pick_some(3), pick_some(8)),
            format!("^.*({}).*$", pick_some(12)),
            format!("({}).*({})", pick_some(4), pick_some(5)),
            format!("(?i)({})", pick_some(15).to_uppercase()),
            format!("({})+", pick_some(10)),
        ];
        let mut conditions: Vec<String> = expressions
            .iter()
            .map(|expression| format!("~ '{expression}'"))
            .collect();
        conditions.push(format!("SIMILAR TO '%({})%'", pick_some(7)));
        conditions.push(format!("SIMILAR TO '%for user ({})_*module%'", pick_some(18)));
        let of_condition =
            |condition: &String| format!("SELECT id::text FROM lines WHERE line {condition}");
        let queries: Vec<String> = conditions.iter().map(of_condition).collect();
        for (query, share) in queries.iter().zip(shares_read(&mut client, &queries)) {
            assert!(share < 0.6, "{query}\nread {share:.2} of the table");
        }
        for query in &queries {
            agree_by_part(&mut client, "lines_line", query);
        }
    }
}

/// An OR of words within an AND is as cheap as the OR alone.
#[test]
fn alternatives_within_a_conjunction_read_a_part_of_the_table() {
    let mut client = server().database("conjunctions");
    run(
        &mut client,
        "CREATE TABLE words (id serial, d tsvector, pad text DEFAULT repeat('-', 200)) WITH (autovacuum_enabled = off);
         INSERT INTO words (d) SELECT to_tsvector('simple', 'common w' || i || ' v' || i / 3 || ' u' || i % 200)
         FROM generate_series(1, 20000) AS i;
         CREATE INDEX words_d ON words USING bloom_filter (d); ANALYZE words",
    );
    let list = |letter: char, count: usize| {
        let words: Vec<String> = (0..count).map(|i| format!("{letter}{}", 7 + 531 * i)).collect();
        format!("({})", words.join(" | "))
    };
    for count in [2, 8, 9, 30] {
        let alone = list('w', count);
        let queries = [
            alone.clone(),
            format!("common & {alone}"),
            format!("{alone} & {}", list('v', count)),
            format!("(common & {alone}) | nobody"),
            format!("common & ({alone} | (u7 & {}))", list('v', count)),
        ]
        .map(|query| format!("SELECT id::text FROM words WHERE d @@ '{query}'"));
        let shares = shares_read(&mut client, &queries);
        // The last one also finds the rows of a second list.
        let lists_found = [1.0, 1.0, 1.0, 1.0, 2.0];
        for ((query, share), lists) in queries.iter().zip(&shares).zip(lists_found) {
            agree_by_part(&mut client, "words_d", query);
            let most = lists * shares[0] * MOST_RATIO + 0.02;
            assert!(*share < most, "{query}: {share} of the table");
        }
        run(&mut client, "RESET ALL");
        for query in &queries {
            let shown = plan(&mut client, "COSTS OFF", query);
            assert!(shown.contains("words_d"), "{query}\n{shown}");
        }
    }
}
