//! The JavaScript package of js/, which `scripts/js` builds, does what the core and the server do.
//! Its own tests are in js/tests/, and run by Node; two programs there compare it with what is
//! written here.
//!
//! Where Node, or Rust for WebAssembly, is neither there nor can be installed, the tests say so and
//! are left out.

mod common;

use common::page::{examples, trimmed};
use common::{LAYOUTS, Server, feed, output, value};
use pg_bloom_core::layout::least_fpr;
use pg_bloom_core::sizing::{rate, size_for_capacity};
use pg_bloom_core::{Filter, Header, Kind, Layout, Request, filter::estimate};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Elements of each key kind that are asked.
const ELEMENTS: usize = 100_000;

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("js")
}

/// Returns whether the package can be built here; prints what is missing if not.
fn can_build() -> bool {
    let script = package().join("../scripts/js");
    let missing = output(Command::new(script).arg("--missing"));
    let missing = String::from_utf8(missing).expect("what it prints is text");
    if !missing.is_empty() {
        println!("left out, since this is missing: {}", missing.trim());
        return false;
    }
    assert!(package().join("dist/pg_bloom.wasm").exists(), "run make js first");
    true
}

/// Returns whether the drivers are there; prints what is missing if not.
fn has_drivers() -> bool {
    if !can_build() {
        return false;
    }
    let is_installed = package().join("node_modules/pg").exists();
    if !is_installed {
        println!("left out, since npm could not install the drivers: scripts/setup js");
    }
    is_installed
}

/// Returns Node as a client of a database of this server, in the directory of the package.
fn node(server: &Server, database: &str) -> Command {
    let mut command = Command::new("node");
    command.current_dir(package());
    for (name, value) in server.program("psql").get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("PGDATABASE", database);
    command
}

/// Drivers and Drizzle send and read filters by the adapters of the package.
#[test]
fn drivers_send_and_read_filters() {
    if !has_drivers() {
        return;
    }
    let server = Server::start("timezone = 'UTC'");
    drop(server.database("app"));
    output(node(&server, "app").arg(package().join("tests/adapters.mjs")));
}

/// The examples of js/README.md run as they are written there.
#[test]
fn the_examples_of_the_readme_run() {
    if !has_drivers() {
        return;
    }
    let server = Server::start("timezone = 'UTC'");
    drop(server.database("app"));
    output(node(&server, "app").arg(package().join("tests/readme-database.mjs")));
}

/// The program of docs/applications.md prints what the page says.
#[test]
fn the_program_of_the_page_runs() {
    if !has_drivers() {
        return;
    }
    let page = "docs/applications.md";
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page))
        .expect("the page can be read");
    let lines: Vec<&str> = text.lines().collect();
    let programs = examples(page, &lines, "js");
    let [program] = &programs[..] else {
        panic!("{} programs", programs.len());
    };
    let expected = program.output.clone().expect("the page has its output");

    let server = Server::start("timezone = 'UTC'");
    drop(server.database("app"));
    let mut command = node(&server, "app");
    let printed = output(command.args(["--input-type=module", "--eval", &program.code]));
    let printed = String::from_utf8(printed).expect("the output is UTF-8");
    assert_eq!(trimmed(&printed), trimmed(&lines[expected].join("\n")));
}

/// Runs a program of js/tests/ with this input.
fn passes(program: &str, input: &str) {
    let mut command = Command::new("node");
    command.arg(package().join("tests").join(program));
    feed(&mut command, input.as_bytes());
}

#[test]
fn the_tests_of_the_package_pass() {
    if !can_build() {
        return;
    }
    let mut tests: Vec<PathBuf> = std::fs::read_dir(package().join("tests"))
        .expect("the tests can be read")
        .map(|entry| entry.expect("the tests can be read").path())
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    tests.sort();
    assert!(tests.len() >= 5, "{tests:?}");
    let ended = Command::new("node")
        .arg("--test")
        .args(tests)
        .output()
        .expect("Node starts");
    println!("{}", String::from_utf8_lossy(&ended.stdout));
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// Sizes of many capacities and rates are those that the core computes here, and rates and estimates
/// agree to 1e-12: the functions of other C libraries differ in the last digits.
#[test]
fn sizes_and_estimates_are_those_of_the_core() {
    if !can_build() {
        return;
    }
    let mut lines = String::new();
    for layout in Layout::ALL {
        for fpr in [0.5, 0.25, 0.1, 0.03, 0.01, 0.001, 1e-5, 1e-6, 1e-9] {
            if fpr < least_fpr(layout) {
                continue;
            }
            let mut capacity = 1;
            while capacity < 100_000_000 {
                write_size(&mut lines, layout, capacity, fpr);
                capacity += capacity / 3 + 1;
            }
        }
        for num_elements in [0, 1, 10, 100, 1000, 5000] {
            write_estimates(&mut lines, layout, num_elements);
        }
    }
    assert!(lines.lines().count() > 1000);
    passes("compare-sizes.mjs", &lines);
}

/// Writes the size of a filter for this capacity as a line of JSON.
fn write_size(lines: &mut String, layout: Layout, capacity: u64, fpr: f64) {
    let size = size_for_capacity(layout, capacity, fpr).expect("the rate is possible");
    let name = layout.name();
    let num_bits = size.blocks * layout.block_bits();
    let num_hashes = size.num_hashes;
    let bytes = Header::with_size(size, Kind::NONE).dense_bytes();
    let expected = rate::expected(size.shape(), capacity as f64);
    writeln!(
        lines,
        "{{\"layout\":\"{name}\",\"capacity\":{capacity},\"target\":{fpr},\
         \"numBits\":{num_bits},\"numHashes\":{num_hashes},\"bytes\":{bytes},\"fpr\":{expected}}}"
    )
    .expect("a string can be written");
}

/// Writes a filter of the numbers below `num_elements`, and what the core says of it, as a line of
/// JSON.
fn write_estimates(lines: &mut String, layout: Layout, num_elements: i64) {
    let request = Request { capacity: Some(1000), layout, ..Request::default() };
    let filter = Filter::build(0..num_elements, &request).expect("the filter is built");
    let stored: String = filter.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let info = estimate::info(&filter.view());
    let name = layout.name();
    let overfull = filter.overfull().is_some();
    writeln!(
        lines,
        "{{\"layout\":\"{name}\",\"elements\":{num_elements},\"stored\":\"{stored}\",\
         \"bitsSet\":{},\"fillRatio\":{},\"cardinality\":{},\"currentFpr\":{},\
         \"overfull\":{overfull}}}",
        info.bits_set, info.fill_ratio, info.cardinality, info.current_fpr
    )
    .expect("a string can be written");
}

/// For each kind an expression of the integer i, and one that makes JSON of the value x that
/// JavaScript reads.
const KINDS: [(&str, &str, &str); 15] = [
    ("integer", "i * 1000000007::bigint - 499999999999999", "x::text"),
    ("text", "'https://example.com/é€😀/' || i", "x"),
    ("bytea", "decode(md5(i::text), 'hex')", "encode(x, 'hex')"),
    ("float", "(i - 500000) / 7::float8", "x"),
    ("numeric", "(i - 500000) * (ARRAY[1e-23, 1e-3, 1, 1e17])[1 + i % 4]", "x::text"),
    ("uuid", "md5(i::text)::uuid", "x"),
    ("date", "date '0001-01-01' + i * 7", "x::text"),
    ("timestamp", "timestamp '1990-01-01' + i * interval '3671000123 us'", "x::text"),
    (
        "timestamptz",
        "timestamptz '1990-01-01 00:00+00' + i * interval '3671000123 us'",
        "x::text",
    ),
    ("boolean", "i % 2 = 0", "x"),
    ("time", "time '00:00' + i * interval '86399 us'", "x::text"),
    ("timetz", "timetz '00:00+02' + i * interval '86399 us'", "x::text"),
    ("interval", "(i - 50000) * interval '1 mon -2 days 3671000123 us'", "x::text"),
    ("array of integer", "ARRAY[i, NULL, -i]", "x"),
    ("array of text", "ARRAY[['é' || i, 'a'], [NULL, 'b']]", "x"),
];

/// Both build a filter of every second element, and ask it for each.
#[test]
fn answers_are_those_of_the_server() {
    if !can_build() {
        return;
    }
    let server = Server::start("timezone = 'UTC'");
    let mut client = server.database("app");
    for (i, (kind, expression, json)) in KINDS.into_iter().enumerate() {
        let layout = LAYOUTS[i % LAYOUTS.len()];
        let half = ELEMENTS / 2;
        let line: String = value(
            &mut client,
            &format!(
                "WITH elements AS MATERIALIZED (
                     SELECT i, {expression} AS x FROM generate_series(1, {ELEMENTS}) AS i
                 ), built AS MATERIALIZED (
                     SELECT bloom_agg(x, {half}, 0.01, '{layout}') AS f
                     FROM elements WHERE i % 2 = 0
                 )
                 SELECT json_build_object(
                     'kind', '{kind}', 'layout', '{layout}', 'capacity', {half},
                     'stored', (SELECT f::text FROM built),
                     'elements', json_agg({json} ORDER BY i),
                     'answers', string_agg(
                         CASE WHEN (SELECT f FROM built) @> x THEN '1' ELSE '0' END, '' ORDER BY i)
                 )::text
                 FROM elements"
            ),
        );
        passes("compare-answers.mjs", &line);
    }
}

/// Infinities are the elements that they are in the server.
#[test]
fn infinities_are_those_of_the_server() {
    if !can_build() {
        return;
    }
    let server = Server::start("timezone = 'UTC'");
    let mut client = server.database("app");
    for (sql_type, kind, finite) in [
        ("date", "date", "2026-02-28"),
        ("timestamp", "timestamp", "2026-02-28 12:34:56"),
        ("timestamptz", "timestamptz", "2026-02-28 12:34:56+00"),
        ("numeric", "numeric", "12.5"),
    ] {
        let line: String = value(
            &mut client,
            &format!(
                "SELECT json_build_object(
                     'kind', '{kind}', 'layout', 'blocked', 'capacity', 100,
                     'stored', bloom_from_array(
                         ARRAY['infinity', '-infinity']::{sql_type}[], 100, 0.01, 'blocked')::text,
                     'elements', json_build_array('{finite}', 'infinity', '{finite}', '-infinity'),
                     'answers', '0101'
                 )::text"
            ),
        );
        passes("compare-answers.mjs", &line);
    }
}
