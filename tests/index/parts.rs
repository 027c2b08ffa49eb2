//! The operator classes over what is in values: random documents, and random questions of each
//! operator. The oracle is the sequential scan. Each block of rows is made of a few letters, so
//! that ranges differ and matches happen.

use crate::answerable::is_answerable;
use crate::common::asking::{agree, agree_by_part, check, shares_read};
use crate::common::{Random, Server, column, plan, run, value};
use crate::{json_paths, random, server, times};
use postgres::Client;
use std::collections::BTreeSet;

/// Rows of a table, half of them before the index is made.
const ROWS: usize = 1200;
/// Rows that are made of the same letters.
const BLOCK: usize = 60;
/// Questions of each class; with `SOAK=10` 50,000 of all classes and more.
const QUESTIONS: usize = 2400;
/// Questions that are asked at once.
const AT_ONCE: usize = 80;
/// The most of a table that a question may read of which the index has keys: rows of a few blocks.
const MOST_READ: f64 = 0.6;

/// What a class is tried with: the type, its operators with the types they ask with, documents and
/// questions, all as SQL literals without quotes.
struct Trial {
    name: &'static str,
    class: &'static str,
    sql_type: &'static str,
    operators: &'static [(&'static str, &'static str)],
    document: fn(&mut Random, &[&'static str]) -> String,
    /// For an operator, from a document that may match.
    question: fn(&mut Random, &str, &str) -> String,
    letters: &'static [&'static str],
}

const LETTERS: [&str; 19] = [
    "a", "b", "A", "B", "c", "1", "2", "3", "\\", "%", "_", "é", "É", "İ", "ı", "ſ", "\u{307}",
    "漢", "字",
];
const WORDS: [&str; 12] = [
    "ab", "ba", "cat", "Dog", "x", "y", "z", "elk", "emu", "fox", "gnu", "hen",
];

fn text(random: &mut Random, letters: &[&str], most: usize) -> String {
    (0..random.below(most + 1)).map(|_| *random.pick(letters)).collect()
}

/// A pattern that a text is like, or nearly so; it never ends in an escape.
fn pattern(random: &mut Random, of: &str) -> String {
    let mut pattern = String::new();
    if random.below(3) == 0 {
        pattern.push('%');
    }
    let start = random.below(4);
    for character in of.chars().skip(start).take(3 + random.below(9)) {
        match random.below(14) {
            0 => pattern.push('_'),
            1 => pattern.push('%'),
            2 => pattern.extend(['\\', character]),
            3 => pattern.push(*random.pick(&['a', 'b', '1', 'É', 'x'])),
            _ if "\\%_".contains(character) => pattern.extend(['\\', character]),
            _ => pattern.push(character),
        }
    }
    if random.below(4) > 0 { pattern + "%" } else { pattern }
}

fn swap_case(random: &mut Random, text: &str) -> String {
    let swapped = |c: char| {
        if c.is_lowercase() {
            c.to_uppercase().to_string()
        } else {
            c.to_lowercase().to_string()
        }
    };
    text.chars()
        .map(|c| if random.below(2) == 0 { swapped(c) } else { c.to_string() })
        .collect()
}

fn text_question(random: &mut Random, operator: &str, document: &str) -> String {
    match operator {
        "=" => document.to_owned(),
        "^@" => document.chars().take(random.below(8)).collect(),
        "ILIKE" => {
            let pattern = pattern(random, document);
            swap_case(random, &pattern)
        }
        "~" => regex(random, document),
        "~*" => {
            let document = swap_case(random, document);
            regex(random, &document)
        }
        "LIKE" => pattern(random, document),
        _ => panic!("no question for {operator} of texts"),
    }
}

/// A regular expression that a text matches, or nearly so.
fn regex(random: &mut Random, of: &str) -> String {
    if random.below(4) == 0 {
        return alternation(random, of);
    }
    let start = *random.pick(&["", "", "", "", "^", r"\y", "(?i)", "(?x)", "(?n)^"]);
    start.to_owned() + &sequence(random, of)
}

/// Several words in turn, one of them from a text; some of them with a common start or end.
fn alternation(random: &mut Random, of: &str) -> String {
    let literal = |text: &str| {
        let escaped = |c: char| {
            let is_itself = c.is_ascii_alphanumeric() || !c.is_ascii();
            if is_itself { c.to_string() } else { format!(r"\{c}") }
        };
        text.chars().map(escaped).collect::<String>()
    };
    let start = random.below(4);
    let length = 4 + random.below(6);
    let own: String = of.chars().skip(start).take(length).collect();
    let mut branches = vec![literal(&own)];
    for _ in 0..1 + random.below(19) {
        let kept: String = own.chars().take(random.below(4)).collect();
        let other = text(random, &LETTERS, 8);
        branches.push(match random.below(4) {
            0 => literal(&(kept + &other)),
            1 => literal(&(other + &kept)),
            2 => sequence(random, &own),
            _ => literal(&other),
        });
    }
    let place = random.below(branches.len());
    branches.swap(0, place);
    let branches = branches.join("|");
    match random.below(4) {
        // A group that counts would be one that `\1` is in.
        0 => format!("(?:{branches})"),
        1 => format!("(?:{branches})[{}]?", random.pick(&["a", "b1", "é漢"])),
        _ => branches,
    }
}

/// Characters of a text one after the other, with other pieces in between.
fn sequence(random: &mut Random, of: &str) -> String {
    let start = random.below(4);
    let mut regex = String::new();
    for c in of.chars().skip(start).take(4 + random.below(9)) {
        let c = if c.is_ascii_alphanumeric() || !c.is_ascii() {
            c.to_string()
        } else {
            format!(r"\{c}")
        };
        let other = random.pick(&["a", "b", "1", "é", "漢"]);
        regex += &match random.below(24) {
            0 => ".".to_owned(),
            1 => ".*".to_owned(),
            2 => (*other).to_owned(),
            3 => format!("({c}|{other})"),
            4 => format!("[{c}{other}]"),
            5 => format!("[^{other}]"),
            6 => format!("{c}?"),
            7 => format!("{c}+?"),
            8 => format!("({c}{other}|{c})"),
            9 => format!("{c}(?={other}|.|$)"),
            10 => format!("(?:{other}{{0,2}}){c}"),
            11 => format!(r"(?:\w|\W){c}"),
            12 => format!(r"({c})\1?"),
            13 => "[a-z]?".to_owned(),
            _ => c,
        };
    }
    regex + *random.pick(&["", "", "", "$", ".*", "|nothing", r"\d?"])
}

fn members(random: &mut Random, letters: &[&str], most: usize) -> Vec<String> {
    (0..random.below(most + 1))
        .map(|_| {
            if random.below(12) == 0 {
                "NULL".to_owned()
            } else {
                (*random.pick(letters)).to_owned()
            }
        })
        .collect()
}

fn array(random: &mut Random, letters: &[&'static str]) -> String {
    let members = members(random, letters, 5);
    let list = members.join(",");
    match members.len() {
        4 if random.below(3) == 0 => {
            format!("{{{{{}}},{{{}}}}}", members[..2].join(","), members[2..].join(","))
        }
        2 if random.below(5) == 0 => format!("[5:6]={{{list}}}"),
        _ => format!("{{{list}}}"),
    }
}

fn array_question(random: &mut Random, operator: &str, document: &str) -> String {
    match operator {
        "=" => return document.to_owned(),
        "@>" | "&&" => {}
        _ => panic!("no question for {operator} of arrays"),
    }
    let kept: Vec<&str> = document
        .split_once('=')
        .map_or(document, |(_, members)| members)
        .split(|c| "{,}".contains(c))
        .filter(|member| !member.is_empty() && random.below(2) == 0)
        .collect();
    format!("{{{}}}", kept.join(","))
}

/// A JSON value; `letters` are the scalars that it may have.
fn json_value(random: &mut Random, letters: &[&str], depth: usize) -> String {
    match random.below(if depth == 0 { 4 } else { 9 }) {
        0..4 => (*random.pick(letters)).to_owned(),
        4..6 => {
            let members: Vec<String> = (0..random.below(4))
                .map(|_| json_value(random, letters, depth - 1))
                .collect();
            format!("[{}]", members.join(","))
        }
        _ => {
            let member = |random: &mut Random| {
                format!(
                    "\"{}\":{}",
                    random.pick(&["a", "b", "cat", "é"]),
                    json_value(random, letters, depth - 1)
                )
            };
            let members: Vec<String> = (0..random.below(4)).map(|_| member(random)).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn json_question(random: &mut Random, operator: &str, document: &str) -> String {
    let keys = ["a", "b", "cat", "é", "ab", "ba", "x", "nobody"];
    match operator {
        "?" => (*random.pick(&keys)).to_owned(),
        "?|" | "?&" => {
            let keys: Vec<&str> = (0..random.below(4)).map(|_| *random.pick(&keys)).collect();
            format!("{{{}}}", keys.join(","))
        }
        "@>" if random.below(3) == 0 => {
            let scalar = json_value(random, &JSON, 0);
            let key = random.pick(&keys);
            [
                format!("{{\"{key}\":{scalar}}}"),
                format!("[{scalar}]"),
                scalar.clone(),
            ][random.below(3)]
            .clone()
        }
        "@>" if random.below(2) == 0 => json_value(random, &JSON, 2),
        "@>" | "=" => document.to_owned(),
        _ => panic!("no question for {operator} of documents"),
    }
}

/// Numbers of equal value among them, and what an index can't know.
const JSON: [&str; 14] = [
    "0", "1", "1.0", "1e2", "100.00", "\"ab\"", "\"ba\"", "\"1\"", "\"x\"", "null", "true",
    "false", "[]", "{}",
];

fn tsvector(random: &mut Random, letters: &[&'static str]) -> String {
    let word = |random: &mut Random| {
        let word = random.pick(letters);
        match random.below(3) {
            0 => (*word).to_owned(),
            _ => format!("{word}:{}{}", 1 + random.below(6), random.pick(&["", "A", "B"])),
        }
    };
    (0..random.below(6))
        .map(|_| word(random))
        .collect::<Vec<_>>()
        .join(" ")
}

fn tsquery(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 4 } else { 10 }) {
        0..4 => {
            format!("{}{}", random.pick(&WORDS), random.pick(&["", "", "", ":*", ":A", ":AB*"]))
        }
        4 => format!("!{}", tsquery(random, depth - 1)),
        5 => format!("({} | {})", tsquery(random, depth - 1), tsquery(random, depth - 1)),
        6 => format!("({} <-> {})", tsquery(random, depth - 1), tsquery(random, depth - 1)),
        7 => format!("({} <2> {})", tsquery(random, depth - 1), tsquery(random, depth - 1)),
        _ => format!("({} & {})", tsquery(random, depth - 1), tsquery(random, depth - 1)),
    }
}

const TRIALS: [Trial; 6] = [
    Trial {
        name: "texts",
        class: "text_ngram_ops",
        sql_type: "text",
        operators: &[
            ("LIKE", "text"),
            ("ILIKE", "text"),
            ("=", "text"),
            ("^@", "text"),
            ("~", "text"),
            ("~*", "text"),
        ],
        document: |random, letters| text(random, letters, 14),
        question: text_question,
        letters: &LETTERS,
    },
    Trial {
        name: "arrays",
        class: "array_ops",
        sql_type: "text[]",
        operators: &[("@>", "text[]"), ("&&", "text[]"), ("=", "text[]")],
        document: array,
        question: array_question,
        letters: &WORDS,
    },
    Trial {
        name: "numbers",
        class: "array_ops",
        sql_type: "numeric[]",
        operators: &[("@>", "numeric[]"), ("&&", "numeric[]"), ("=", "numeric[]")],
        document: array,
        question: array_question,
        letters: &[
            "0",
            "0.0",
            "-1",
            "1",
            "1.00",
            "1e2",
            "100",
            "NaN",
            "12345678901234567890",
            "7",
            "0.5",
            ".50",
        ],
    },
    Trial {
        name: "documents",
        class: "jsonb_ops",
        sql_type: "jsonb",
        operators: &[
            ("@>", "jsonb"),
            ("?", "text"),
            ("?|", "text[]"),
            ("?&", "text[]"),
            ("=", "jsonb"),
        ],
        document: |random, letters| json_value(random, letters, 3),
        question: json_question,
        letters: &JSON,
    },
    Trial {
        name: "paths",
        class: "jsonb_ops",
        sql_type: "jsonb",
        operators: &[("@?", "jsonpath"), ("@@", "jsonpath")],
        document: |random, letters| json_value(random, letters, 3),
        question: |random, operator, _| json_paths::expression(random, operator),
        letters: &JSON,
    },
    Trial {
        name: "words",
        class: "tsvector_ops",
        sql_type: "tsvector",
        operators: &[("@@", "tsquery")],
        document: tsvector,
        question: |random, _, _| tsquery(random, 3),
        letters: &WORDS,
    },
];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Makes a table with an index, half of its rows before that, and returns its documents.
fn prepare(client: &mut Client, random: &mut Random, trial: &Trial) -> Vec<String> {
    let Trial { name, class, sql_type, letters, .. } = trial;
    run(
        client,
        &format!(
            "CREATE TABLE {name} (id serial, d {sql_type}, pad text DEFAULT repeat('-', 400)) WITH (autovacuum_enabled = off);
             ALTER TABLE {name} ALTER pad SET STORAGE PLAIN"
        ),
    );
    let mut documents = Vec::new();
    for block in 0..ROWS / BLOCK {
        let few: Vec<&'static str> =
            (0..2 + random.below(3)).map(|_| *random.pick(letters)).collect();
        documents.extend((0..BLOCK).map(|_| (trial.document)(random, &few)));
        let rows: Vec<String> = documents[block * BLOCK..]
            .iter()
            .map(|d| format!("({})", quoted(d)))
            .collect();
        run(client, &format!("INSERT INTO {name} (d) VALUES {}, (NULL)", rows.join(",")));
        if block == ROWS / BLOCK / 2 {
            let sql = format!(
                "CREATE INDEX {name}_d ON {name} USING bloom_filter (d {class}) WITH (pages_per_range = 1)"
            );
            run(client, &sql);
        }
    }
    run(client, &format!("ANALYZE {name}"));
    documents
}

/// Asks some questions in one query: all rows that match each of them. Then those by themselves that
/// the index can answer: each must read a part of the table.
fn ask(client: &mut Client, random: &mut Random, trial: &Trial, documents: &[String]) -> Asked {
    let (operator, asked_type) = *random.pick(trial.operators);
    let mut question = || {
        let document = random.pick(documents);
        (trial.question)(random, operator, document)
    };
    let questions: Vec<String> = (0..AT_ONCE).map(|_| question()).collect();
    let list: Vec<String> = questions.iter().map(|question| quoted(question)).collect();
    let name = trial.name;
    let each = format!(
        "SELECT q || ': ' || coalesce((SELECT string_agg(id::text, ',' ORDER BY id) FROM {name} WHERE d {operator} q::{asked_type}), 'none')
         FROM unnest(ARRAY[{}]) WITH ORDINALITY AS question (q, i) ORDER BY i",
        list.join(", ")
    );
    let asked = agree(client, &format!("{name}_d"), &each);

    let answerable = questions
        .iter()
        .filter(|question| is_answerable(trial.class, operator, question));
    let alone = answerable.map(|question| {
        format!(
            "SELECT ctid::text FROM {name} WHERE d {operator} {}::{asked_type}",
            quoted(question)
        )
    });
    let alone: Vec<String> = alone.collect();
    for (query, share) in alone.iter().zip(shares_read(client, &alone)) {
        // A page that has a row is read twice: by the index, and by PostgreSQL.
        let most = MOST_READ + 2.0 * share_of_pages_with(client, name, query);
        assert!(share < most, "{query}\nread {share:.2} of the table, where {most:.2} are allowed");
    }
    Asked { all: asked, answerable: alone.len() }
}

/// Returns which share of a table's pages has the rows whose `ctid` a query returns.
fn share_of_pages_with(client: &mut Client, table: &str, query: &str) -> f64 {
    let pages = format!(
        "SELECT count(DISTINCT split_part(ctid, ',', 1)) * 8192.0::float8
             / greatest(pg_relation_size('{table}'), 1) FROM ({query}) AS found (ctid)"
    );
    value(client, &pages)
}

/// Numbers of questions.
#[derive(Default)]
struct Asked {
    all: usize,
    /// Those that read a part of the table.
    answerable: usize,
}

#[test]
fn random_documents_are_found_by_random_questions() {
    let mut client = server().database("parts");
    let mut random = random(7);
    for trial in &TRIALS {
        let documents = prepare(&mut client, &mut random, trial);
        let rounds = times(QUESTIONS / AT_ONCE);
        let mut asked = Asked::default();
        for _ in 0..rounds {
            let Asked { all, answerable } = ask(&mut client, &mut random, trial, &documents);
            asked.all += all;
            asked.answerable += answerable;
        }
        assert_eq!(asked.all, rounds * AT_ONCE);
        let least_answerable = if trial.class == "jsonb_ops" { 0 } else { 20 };
        assert!(asked.answerable * 100 >= asked.all * least_answerable, "{}", asked.answerable);
        check(&mut client, &format!("{}_d", trial.name));
        println!("{}: {} questions, {} alone", trial.name, asked.all, asked.answerable);
    }
}

/// Each operator of a class with parts is in a trial.
#[test]
fn trials_have_every_operator() {
    let mut client = server().database("all_operators");
    let operators = "
        SELECT DISTINCT opcname || ' ' || CASE oprname WHEN '~~' THEN 'LIKE' WHEN '~~*' THEN 'ILIKE' ELSE oprname END AS operator
        FROM pg_opclass JOIN pg_amproc ON amprocfamily = opcfamily AND amprocnum = 3
        JOIN pg_amop ON amopfamily = opcfamily JOIN pg_operator AS o ON o.oid = amopopr
        WHERE amopmethod = (SELECT oid FROM pg_am WHERE amname = 'bloom_filter') ORDER BY operator";
    let all: BTreeSet<String> = column(&mut client, operators).into_iter().collect();
    let of_trial = |trial: &Trial| {
        let names = trial.operators.iter().map(|(operator, _)| operator);
        names
            .map(|operator| format!("{} {operator}", trial.class))
            .collect::<Vec<_>>()
    };
    assert_eq!(TRIALS.iter().flat_map(of_trial).collect::<BTreeSet<_>>(), all);
}

/// What the oracle of a condition is written for: constants, several conditions on one column, and
/// lists.
#[test]
fn conditions_together_find_what_a_scan_does() {
    // Such plans cost so much that PostgreSQL compiles them.
    let server = Server::start("jit = on");
    let mut client = server.database("together");
    let mut random = random(8);
    for trial in &TRIALS {
        let documents = prepare(&mut client, &mut random, trial);
        let name = trial.name;
        for _ in 0..times(60) {
            let mut condition = || {
                let (operator, asked_type) = *random.pick(trial.operators);
                let document = random.pick(&documents);
                let question = (trial.question)(&mut random, operator, document);
                format!("d {operator} {}::{asked_type}", quoted(&question))
            };
            let (a, b, c) = (condition(), condition(), condition());
            // That two different values can't be equal to one is known to newer planners, which
            // then read nothing.
            if [&a, &b].iter().all(|condition| condition.starts_with("d = ")) {
                continue;
            }
            for condition in [
                format!("{a} AND {b}"),
                format!("{a} OR {b} AND {c}"),
                format!("{a} AND NOT {b}"),
            ] {
                let sql = format!("SELECT id::text FROM {name} WHERE {condition} ORDER BY id");
                agree(&mut client, &format!("{name}_d"), &sql);
            }
        }
    }
    let patterns = "'{%ab%,_a\\\\%%,%nobody%,ba%}'::text[]";
    for (sql, index) in [
        (format!("SELECT id::text FROM texts WHERE d LIKE ANY ({patterns}) ORDER BY id"), "texts_d"),
        ("SELECT id::text FROM texts WHERE d ~ ANY (ARRAY['ab(a|1)é?', '漢字']) ORDER BY id".to_owned(), "texts_d"),
        (format!("SELECT id::text FROM texts WHERE d ILIKE ANY ({patterns}) ORDER BY id"), "texts_d"),
        (
            "SELECT id::text FROM documents WHERE d @> ANY (ARRAY['1', '{\"a\":1}', NULL]::jsonb[]) ORDER BY id".into(),
            "documents_d",
        ),
        ("SELECT id::text FROM documents WHERE d ? ANY ('{a,cat,NULL}') ORDER BY id".into(), "documents_d"),
        ("SELECT id::text FROM words WHERE d @@ ANY ('{cat,\"emu & x\",!x}'::tsquery[]) ORDER BY id".into(), "words_d"),
    ] {
        agree(&mut client, index, &sql);
    }
}

/// A session need not add again what it has added: to the same range of the same contents of an
/// index.
#[test]
fn parts_are_added_again_to_other_contents() {
    const ADD: &str = "INSERT INTO lines (d) SELECT 'the same line' FROM generate_series(1, 10)";
    // Rows of which three fill a page, which is a range.
    const TABLE: &str = "CREATE TABLE lines (id serial, d text, more text DEFAULT repeat('x', 1900));
        CREATE INDEX lines_d ON lines USING bloom_filter (d text_ngram_ops) WITH (pages_per_range = 1)";
    const FORGET: &str = "DELETE FROM lines; VACUUM lines; REINDEX INDEX lines_d";
    let mut client = server().database("contents");
    run(&mut client, TABLE);
    let other_contents = [
        format!("{ADD}; {ADD}"),
        "TRUNCATE lines".into(),
        FORGET.into(),
        format!("{FORGET}; REINDEX INDEX CONCURRENTLY lines_d"),
        format!("{FORGET}; VACUUM FULL lines"),
        format!("{FORGET}; BEGIN; TRUNCATE lines; {ADD}; ROLLBACK"),
        format!("{FORGET}; BEGIN; SAVEPOINT a; TRUNCATE lines; {ADD}; ROLLBACK TO a; COMMIT"),
        format!(
            "{FORGET}; BEGIN; SAVEPOINT a; REINDEX INDEX lines_d; {ADD}; ROLLBACK TO a; {ADD}; COMMIT"
        ),
        format!("{FORGET}; BEGIN; {ADD}; ROLLBACK"),
        // The table's file is a new one, which is emptied in its place.
        format!("BEGIN; DROP TABLE lines; {TABLE}; {ADD}; TRUNCATE lines; {ADD}; COMMIT"),
        format!("BEGIN; TRUNCATE lines; {ADD}; TRUNCATE lines; {ADD}; TRUNCATE lines; COMMIT"),
    ];
    for change in other_contents {
        change.split("; ").for_each(|statement| run(&mut client, statement));
        run(&mut client, ADD);
        // All rows.
        let found = agree(
            &mut client,
            "lines_d",
            "SELECT id::text FROM lines WHERE d LIKE '%same line%' ORDER BY id",
        );
        assert!(found >= 10, "{found} rows after {change}");
        check(&mut client, "lines_d");
    }
}

/// The extension `intarray` has operators of the same names for `integer[]`, which PostgreSQL
/// prefers.
#[test]
fn arrays_are_found_beside_the_operators_of_intarray() {
    let mut client = server().database("intarray");
    run(&mut client, "CREATE EXTENSION intarray; CREATE TABLE i (id integer, tags integer[])");
    run(&mut client, "INSERT INTO i SELECT i, ARRAY[i, i % 7] FROM generate_series(1, 20000) AS i");
    run(&mut client, "CREATE INDEX i_tags ON i USING bloom_filter (tags); ANALYZE i");
    for (condition, rows) in [
        ("tags OPERATOR(pg_catalog.@>) '{777}'", 1),
        ("tags OPERATOR(pg_catalog.&&) '{777,999}'", 2),
    ] {
        assert_eq!(
            agree_by_part(
                &mut client,
                "i_tags",
                &format!("SELECT id::text FROM i WHERE {condition} ORDER BY id")
            ),
            rows
        );
    }
    run(&mut client, "SET enable_seqscan = off; SET enable_bitmapscan = on");
    let shown = plan(&mut client, "COSTS OFF", "SELECT id FROM i WHERE tags @> '{777}'");
    assert!(!shown.contains("i_tags"), "docs/index.md says otherwise: {shown}");
}
