//! A reader in plain Python, written from docs/format.md alone, answers as the server does.

mod common;

use common::{LAYOUTS, Server, rows, run, value};
use postgres::Client;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Elements as expressions of the integer i, the key kind that the reader is told, and its text of an element x.
const ELEMENTS: [(&str, &str, &str); 22] = [
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
    ("inet '10.0.0.0' + i", "other", "hashinetextended(x, 0)::text"),
    ("time '10:00' + i * interval '1 second'", "time", "(extract(epoch FROM x) * 1000000)::bigint::text"),
    (
        "timetz '10:00+02' + i * interval '1 second'",
        "timetz",
        "(extract(epoch FROM x::time) * 1000000)::bigint || ' -7200'",
    ),
    ("make_interval(days => i % 9, secs => -i)", "interval", "(extract(epoch FROM x) * 1000000)::bigint::text"),
    ("format('%s/%s', to_hex(i), to_hex(i))::pg_lsn", "pg_lsn", "(x - '0/0')::text"),
    ("i::text::xid8", "xid8", "x::text"),
    (
        "jsonb_build_object('k' || i % 3, i / 8.0, 'é', jsonb_build_array(i * 1e20, NULL, chr(34) || chr(10) || chr(1) || 'é', '{}'::jsonb), 'zz', true)",
        "jsonb",
        "x::text",
    ),
    ("ARRAY[[i, NULL], [-i, 0]]", "array of integer", "to_json(x::text[])::text"),
    ("ARRAY['é' || i, '', NULL]", "array of text", "to_json(x)::text"),
    ("ARRAY[i / 100.0, 1e30]", "array of numeric", "to_json(x::text[])::text"),
    ("ARRAY[to_jsonb(i), jsonb_build_object('é', i), NULL]", "array of jsonb", "to_json(x::text[])::text"),
];

/// What the reader prints for these lines.
fn read(arguments: &[&str], lines: &str) -> Vec<String> {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/reader.py");
    let mut child = Command::new("python3")
        .arg(reader)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let lines = lines.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("the reader ends");
    writer.join().expect("the writer ends").expect("the reader reads all lines");
    assert!(output.status.success(), "the reader failed");
    String::from_utf8(output.stdout).expect("answers are text").lines().map(str::to_owned).collect()
}

#[test]
fn the_reader_answers_as_the_server_does() {
    let server = Server::start("timezone = 'UTC'");
    let mut client = server.database("format");
    run(&mut client, "SET pg_bloom.overfill = ignore");
    let (mut lines, mut expected) = (String::new(), Vec::new());
    for (elements, kind, text) in ELEMENTS {
        let builds = LAYOUTS.map(|layout| (format!(", '{layout}'"), "bloom_agg"));
        for (layout, aggregate) in builds.into_iter().chain([(String::new(), "counting_bloom_agg")]) {
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
    let answers = read(&[], &lines);
    assert_eq!(answers.len(), expected.len());
    let differing = answers.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(differing.map(|n| lines.lines().nth(n)), None);
    assert!(expected.iter().filter(|answer| **answer == "f").count() > 2_000);
}

#[test]
fn the_reader_refuses_what_the_server_refuses() {
    let server = Server::start("");
    let mut client = server.database("damaged");
    for (sql_type, aggregate) in [("bloom", "bloom_agg"), ("counting_bloom", "counting_bloom_agg")] {
        let build = format!("SELECT {aggregate}(i, 1000)::bytea FROM generate_series(1, 20) AS i");
        let good: Vec<u8> = value(&mut client, &build);
        refuses_the_same(&mut client, sql_type, &good);
    }
}

/// Damages each of the first bytes of a value, and asserts that the reader takes the result if and only if the server does.
fn refuses_the_same(client: &mut Client, sql_type: &str, good: &[u8]) {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/reader.py");
    let (mut refused, mut accepted) = (0, 0);
    for byte in 0..good.len().min(60) {
        let mut damaged = good.to_vec();
        damaged[byte] ^= 1;
        let hex: String = damaged.iter().map(|b| format!("{b:02x}")).collect();
        let server_takes_it = common::sqlstate(client, &format!("SELECT '\\x{hex}'::{sql_type}")) == "00000";
        let mut child = Command::new("python3")
            .arg(&reader)
            .arg("--describe")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 runs");
        writeln!(child.stdin.take().expect("standard input is a pipe"), "{hex}").expect("the reader reads");
        let reader_takes_it = child.wait().expect("the reader ends").success();
        assert_eq!(reader_takes_it, server_takes_it, "byte {byte} of {hex}");
        *(if reader_takes_it { &mut accepted } else { &mut refused }) += 1;
    }
    assert!(refused > 10 && accepted > 5, "{refused} refused, {accepted} accepted");
}
