//! A reader in plain Python, written from docs/format.md alone, answers as the server does.

use crate::common::{LAYOUTS, python, rows, run, value};
use crate::server;
use postgres::Client;

/// Elements as expressions of the integer i, the key kind that the reader is given, and its text of
/// an element x.
const ELEMENTS: [(&str, &str, &str); 19] = [
    ("i", "integer", "x::text"),
    ("i * 1000000007::bigint", "integer", "x::text"),
    ("'text é ' || i", "text", "x"),
    ("decode(md5(i::text), 'hex')", "bytea", "encode(x, 'hex')"),
    ("i / 7::float8", "float", "x::text"),
    ("i / 100.0", "numeric", "x::text"),
    ("md5(i::text)::uuid", "uuid", "x::text"),
    ("date '1990-01-01' + i", "date", "x::text"),
    ("timestamp '1990-01-01' + i * interval '1 hour'", "timestamp", "x::text"),
    (
        "timestamptz '1990-01-01 00:00+00' + i * interval '1 hour'",
        "timestamptz",
        "(extract(epoch FROM x) * 1000000)::bigint::text",
    ),
    ("i % 2 = 0", "boolean", "CASE WHEN x THEN 't' ELSE 'f' END"),
    (
        "inet '10.0.0.0' + i",
        r#"{"other": ["pg_catalog", "inet"]}"#,
        "hashinetextended(x, 0)::text",
    ),
    (
        "i::text::\"Own type\"",
        r#"{"other": ["public", "Own type"], "function": ["pg_catalog", "hashint8extended"], "takes": ["pg_catalog", "int8"]}"#,
        "hashint8extended(x, 0)::text",
    ),
    (
        "time '10:00' + i * interval '1 second'",
        "time",
        "(extract(epoch FROM x) * 1000000)::bigint::text",
    ),
    (
        "timetz '10:00+02' + i * interval '1 second'",
        "timetz",
        "(extract(epoch FROM x::time) * 1000000)::bigint || ' -7200'",
    ),
    (
        "make_interval(days => i % 9, secs => -i)",
        "interval",
        "format('0 %s %s', extract(day FROM x), (extract(epoch FROM x - date_trunc('day', x)) * 1000000)::bigint)",
    ),
    ("format('%s/%s', to_hex(i), to_hex(i))::pg_lsn", "pg_lsn", "(x - '0/0')::text"),
    ("i::text::xid8", "xid8", "x::text"),
    (
        "jsonb_build_object('k' || i % 3, i / 8.0, 'é', jsonb_build_array(i * 1e20, NULL, chr(34) || chr(10) || chr(1) || 'é', '{}'::jsonb), 'zz', true)",
        "jsonb",
        "x::text",
    ),
];

/// A type without an operator class, whose values are those of another type.
const OWN_TYPE: &str = r#"
    CREATE TYPE "Own type";
    CREATE FUNCTION own_in(cstring) RETURNS "Own type" LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
    CREATE FUNCTION own_out("Own type") RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
    CREATE TYPE "Own type" (INPUT = own_in, OUTPUT = own_out, LIKE = int8);
    CREATE CAST ("Own type" AS bigint) WITHOUT FUNCTION AS IMPLICIT"#;

#[test]
fn the_reader_answers_as_the_server_does() {
    let mut client = server().database("format");
    run(&mut client, "SET pg_bloom.overfill = ignore");
    run(&mut client, OWN_TYPE);
    let (mut lines, mut expected) = (String::new(), Vec::new());
    for (elements, kind, text) in ELEMENTS {
        let builds = LAYOUTS.map(|layout| (format!(", '{layout}'"), "bloom_agg"));
        for (layout, aggregate) in builds.into_iter().chain([(String::new(), "counting_bloom_agg")])
        {
            for (held, capacity) in [(30, 1_000), (150, 150)] {
                let sql = format!(
                    "SELECT concat_ws(E'\\t', encode(f::bytea, 'hex'), '{kind}',
                       {text}), f @> x
                     FROM (SELECT {aggregate}({elements}, {capacity}, 0.05{layout}) AS f
                           FROM generate_series(1, {held}) AS i) AS built,
                       LATERAL (SELECT {elements} AS x FROM generate_series(1, {held} * 2) AS i) AS asked"
                );
                for row in rows(&mut client, &sql) {
                    lines += row.get::<_, &str>(0);
                    lines.push('\n');
                    expected.push(if row.get(1) { "t" } else { "f" });
                }
            }
        }
    }
    let answers = python::lines("reader.py", &[], &lines);
    assert_eq!(answers.len(), expected.len());
    let differing = answers.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(differing.map(|n| lines.lines().nth(n)), None);
    assert!(expected.iter().filter(|answer| **answer == "f").count() > 2_000);
}

#[test]
fn the_reader_refuses_what_the_server_refuses() {
    let mut client = server().database("damaged");
    for (sql_type, aggregate) in [
        ("bloom", "bloom_agg"),
        ("counting_bloom", "counting_bloom_agg"),
    ] {
        let build = format!("SELECT {aggregate}(i, 1000)::bytea FROM generate_series(1, 20) AS i");
        let good: Vec<u8> = value(&mut client, &build);
        refuses_the_same(&mut client, sql_type, &good);
    }
}

/// Damages each of the first bytes of a value, and asserts that the reader takes the result if and
/// only if the server does.
fn refuses_the_same(client: &mut Client, sql_type: &str, good: &[u8]) {
    let damage = |byte: usize| -> String {
        good.iter()
            .enumerate()
            .map(|(i, b)| format!("{:02x}", b ^ u8::from(i == byte)))
            .collect()
    };
    let values: Vec<String> = (0..good.len().min(60)).map(damage).collect();
    let checked = python::lines("reader.py", &["--check"], &(values.join("\n") + "\n"));
    assert_eq!(checked.len(), values.len());
    for (byte, (hex, checked)) in values.iter().zip(&checked).enumerate() {
        let server_takes_it =
            crate::common::sqlstate(client, &format!("SELECT '\\x{hex}'::{sql_type}")) == "00000";
        assert_eq!(checked == "good", server_takes_it, "byte {byte} of {hex}: {checked}");
    }
    let accepted = checked.iter().filter(|checked| *checked == "good").count();
    assert!(
        accepted > 5 && accepted + 10 < checked.len(),
        "{accepted} of {} accepted",
        checked.len()
    );
}

const PAGE: &str = include_str!("../../docs/format.md");

/// The page's examples: an expression, between backquotes in the paragraph before, and the lines of
/// the block.
fn examples() -> Vec<(String, Vec<&'static str>)> {
    let mut found = Vec::new();
    let (mut lines, mut paragraph) = (PAGE.lines(), String::new());
    let mut before = String::new();
    while let Some(line) = lines.next() {
        if line == "```text" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let expression = before
                .split('`')
                .skip(1)
                .step_by(2)
                .find(|code| code.contains("bloom_") && code.contains('('));
            let is_hex = block
                .first()
                .is_some_and(|line| line.starts_with("01 ") || line.starts_with("15401c"));
            found.extend(
                expression
                    .filter(|_| is_hex)
                    .map(|expression| (expression.to_owned(), block)),
            );
        } else if line.is_empty() {
            before = std::mem::take(&mut paragraph);
        } else {
            paragraph = format!("{paragraph} {line}");
        }
    }
    found
}

/// The bytes in hexadecimal that a line of a block begins with.
fn digits(line: &str) -> String {
    let shown = line.split("   ").next().unwrap_or_default();
    shown
        .split(' ')
        .take_while(|word| word.chars().all(|c| c.is_ascii_hexdigit()))
        .collect()
}

#[test]
fn examples_of_the_page_are_what_the_server_stores() {
    let mut client = server().database("examples");
    let examples = examples();
    assert!(examples.len() >= 10, "{examples:?}");
    for (expression, lines) in examples {
        let sql = format!("SELECT encode(({expression})::bytea, 'hex')");
        let stored: String = value(&mut client, &sql);
        let (single, whole): (Vec<&str>, Vec<&str>) =
            lines.iter().partition(|line| line.split(' ').nth(1) == Some("…"));
        let mut shown: String = whole.into_iter().map(digits).collect();
        if !single.is_empty() {
            shown += &"00".repeat((stored.len() - shown.len()) / 2);
            for line in single {
                let byte = line
                    .split("byte")
                    .nth(1)
                    .and_then(|rest| rest.split(':').next())
                    .map(str::trim);
                let at = 88
                    + 2 * byte
                        .and_then(|byte| byte.parse::<usize>().ok())
                        .expect("a line says which byte it is");
                shown.replace_range(at..at + 2, &line[..2]);
            }
        }
        assert_eq!(shown, stored, "{expression}");
    }
}

/// The rows of the page's table with this head.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let table = PAGE
        .split(head)
        .nth(1)
        .unwrap_or_else(|| panic!("the page has no table {head}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn hashes_of_the_page_are_those_of_the_server() {
    let mut client = server().database("hashes_by_hand");
    let rows = table("| kind | element | canonical bytes | hash |");
    assert!(rows.len() > 20);
    for row in rows {
        let [kind, element, canonical, hash] = row[..] else {
            panic!("{row:?}")
        };
        let element = element.split('`').nth(1).unwrap_or_default();
        let (sql_type, layout) = match kind {
            "float" => ("float8", "blocked"),
            "other (`pg_catalog.inet`)" => ("inet", "blocked"),
            "array of integer" => ("integer[]", "blocked"),
            "pg_catalog.int4range of integer" => ("int4range", "blocked"),
            "parquet INT32" => ("integer", "parquet"),
            "parquet FLOAT" => ("real", "parquet"),
            general => (general, "blocked"),
        };
        let sql = format!(
            "SELECT bloom_kind || ' ' || encode(substr(f::bytea, octet_length(f::bytea) - 7), 'hex')
             FROM (SELECT bloom_agg('{element}'::{sql_type}, 1000, 0.01, '{layout}') AS f) AS built,
                  LATERAL (SELECT (bloom_info(f)).key_kind AS bloom_kind) AS shown"
        );
        let stored: String = value(&mut client, &sql);
        let hash = u64::from_str_radix(hash.trim_matches('`'), 16).expect("a hash is a number");
        let bytes: String = hash.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let kind = kind
            .strip_prefix("other (`")
            .map_or(kind, |name| name.trim_end_matches("`)"));
        assert_eq!(stored, format!("{kind} {bytes}"), "{row:?}");
        let canonical = canonical.trim_matches('`').as_bytes();
        let digit =
            |i: usize| (canonical[i] as char).to_digit(16).expect("a hexadecimal digit") as u8;
        let canonical: Vec<u8> = (0..canonical.len())
            .step_by(2)
            .map(|i| digit(i) << 4 | digit(i + 1))
            .collect();
        assert_eq!(pg_bloom_core::hash::hash(&canonical), hash, "{row:?}");
    }
}

#[test]
fn shards_of_the_page_are_those_of_the_server() {
    let mut client = server().database("shards");
    let rows = table("| element | h | XXH64(h, seed 1) | n = 8 | n = 1000 | n = 2^31 - 1 |");
    assert_eq!(rows.len(), 3);
    for row in rows {
        let element = row[0].split('`').nth(1).expect("an element is between backquotes");
        for (shards, expected) in [8, 1000, i32::MAX].iter().zip(&row[3..]) {
            let shard: i32 =
                value(&mut client, &format!("SELECT bloom_shard({element}, {shards})"));
            assert_eq!(shard.to_string(), *expected, "{row:?}");
        }
    }
}
