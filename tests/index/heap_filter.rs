//! The rows that a scan of the index takes from pages by itself: of tables of any shape, of every
//! version of a row, and never one too few.

use crate::common::asking::{Answers, agree, check, each};
use crate::common::{Random, Server, major_version, plan, rows, run};
use crate::{random, times};
use postgres::Client;
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("autovacuum = off"))
}

/// Types of every length, alignment and way to be stored, with an expression of the integer `i`.
const COLUMNS: [(&str, &str); 20] = [
    ("boolean", "i % 2 = 0"),
    ("\"char\"", "chr(65 + i % 20)::\"char\""),
    ("smallint", "i % 1000"),
    ("integer", "i"),
    ("bigint", "i * 10000000000"),
    ("real", "i / 3.0"),
    ("double precision", "i / 7.0"),
    ("numeric", "i / 100.0"),
    ("text", "repeat('x', i % 7)"),
    ("text", "repeat(md5(i::text), 4 + i % 3)"),
    ("text", "repeat('compressed', 500 + i)"),
    ("text", "(SELECT string_agg(md5(j::text), '') FROM generate_series(1, 90 + i % 2) AS j)"),
    ("char(7)", "'c' || i % 99"),
    ("name", "'n' || i"),
    ("uuid", "md5(i::text)::uuid"),
    ("interval", "i * interval '1 hour'"),
    ("timetz", "'12:00+02'::timetz + i * interval '1 second'"),
    ("bit(11)", "(i % 2000)::bit(11)"),
    ("macaddr", "'08:00:2b:01:02:03'::macaddr"),
    ("integer[]", "ARRAY[i, NULL, i + 1]"),
];

/// Types of keys that are read without PostgreSQL, which have a value of their own for each integer
/// up to 20,000.
const KEYS: [(&str, &str); 14] = [
    ("text", "'key ' || i"),
    ("text", "repeat('key', 50) || i"),
    ("varchar", "i::text"),
    ("char(20)", "'key ' || i"),
    ("name", "'key ' || i"),
    ("bytea", "convert_to('key ' || i, 'UTF8')"),
    ("smallint", "i"),
    ("integer", "i"),
    ("bigint", "-i::bigint"),
    ("numeric", "i / 1000.0"),
    ("double precision", "i / 7.0::float8"),
    ("uuid", "md5(i::text)::uuid"),
    ("timestamptz", "'epoch'::timestamptz + i * interval '1 s'"),
    ("interval", "i * interval '1 s'"),
];

/// Makes `t` with up to twelve columns before the key, some of them dropped; returns the key's
/// expression.
fn any_shape(client: &mut Client, random: &mut Random) -> (&'static str, &'static str) {
    let before: Vec<usize> = (0..random.below(13)).map(|_| random.below(COLUMNS.len())).collect();
    let (key_type, key) = KEYS[random.below(KEYS.len())];
    let columns: String = before
        .iter()
        .enumerate()
        .map(|(n, &of)| format!("c{n} {}, ", COLUMNS[of].0))
        .collect();
    run(
        client,
        &format!("DROP TABLE IF EXISTS t; CREATE TABLE t ({columns}x {key_type}, id integer)"),
    );
    // Columns are external, which are not compressed, for some; NULL in none, some or most rows.
    for (n, &of) in before.iter().enumerate() {
        if COLUMNS[of].0 == "text" && random.below(2) == 0 {
            run(client, &format!("ALTER TABLE t ALTER c{n} SET STORAGE EXTERNAL"));
        }
    }
    let mut fill = |client: &mut Client, kept: &[bool], from: usize| {
        let nulls = [1, 5, 1000][random.below(3)];
        let values = before.iter().zip(kept).enumerate().filter(|(_, (_, kept))| **kept);
        let values: String = values
            .map(|(n, (&of, _))| {
                format!("CASE WHEN (i + {n}) % {nulls} > 0 THEN {} END, ", COLUMNS[of].1)
            })
            .collect();
        let sql = format!(
            "INSERT INTO t SELECT {values}{key}, i FROM generate_series({from}, {from} + 149) AS i"
        );
        run(client, &sql);
    };
    let mut kept = vec![true; before.len()];
    fill(client, &kept, 1);
    for (n, _) in before.iter().enumerate().filter(|(n, _)| n % 4 == 2) {
        run(client, &format!("ALTER TABLE t DROP c{n}"));
        kept[n] = false;
    }
    fill(client, &kept, 151);
    (key_type, key)
}

/// The rows that a query's index scan named and that were compared unnecessarily, and pages of
/// which it named every row.
fn in_vain(client: &mut Client, sql: &str) -> (i64, i64) {
    let text = plan(client, "ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF", sql);
    let number_after = |label: &str| {
        let rest = text.split(label).nth(1)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<i64>().ok()
    };
    let removed = number_after("Rows Removed by Index Recheck: ").unwrap_or(0);
    (removed, number_after("lossy=").unwrap_or(0))
}

#[test]
fn rows_of_any_shape_are_read() {
    let mut client = server().database("shapes");
    let mut random = random(41);
    for _ in 0..times(60) {
        let (key_type, key) = any_shape(&mut client, &mut random);
        run(
            &mut client,
            "CREATE INDEX t_x ON t USING bloom_filter (x) WITH (fpr = 0.1, pages_per_range = 2)",
        );
        run(&mut client, "ANALYZE t; SET enable_seqscan = off");
        let value_of =
            |i: usize| format!("(SELECT ({key})::{key_type} FROM (VALUES ({i})) AS v (i))");
        let keys: Vec<String> = (0..40).map(|i| value_of(1 + i * 13 % 330)).collect();
        let found = agree(&mut client, "t_x", &each("t", "x", "", &keys));
        assert_eq!(found, keys.len());
        assert_eq!(check(&mut client, "t_x"), 300);
        for i in [1, 77, 151, 300, 301, 19_999] {
            let sql = format!("SELECT id FROM t WHERE x = {}", value_of(i));
            assert_eq!(rows(&mut client, &sql).len(), usize::from(i <= 300), "{sql}");
            assert_eq!(in_vain(&mut client, &sql), (0, 0), "{key_type}: {sql}");
        }
        run(&mut client, "SET enable_seqscan = on");
    }
}

#[test]
fn what_only_postgresql_can_tell_is_compared_by_it() {
    let mut client = server().database("unknown");
    run(
        &mut client,
        "CREATE TABLE t (id integer, toasted text, jsonb jsonb, span int4range);
         ALTER TABLE t ALTER toasted SET STORAGE EXTERNAL;
         INSERT INTO t SELECT i, repeat(md5(i::text), 100), jsonb_build_object('i', i), int4range(i, i + 1)
         FROM generate_series(1, 2000) AS i;
         ALTER TABLE t ADD added text DEFAULT 'there';
         INSERT INTO t SELECT i, repeat(md5(i::text), 100), jsonb_build_object('i', i), int4range(i, i + 1), i::text
         FROM generate_series(2001, 4000) AS i;
         CREATE INDEX t_toasted ON t USING bloom_filter (toasted);
         CREATE INDEX t_jsonb ON t USING bloom_filter (jsonb);
         CREATE INDEX t_span ON t USING bloom_filter (span);
         CREATE INDEX t_added ON t USING bloom_filter (added);
         CREATE INDEX t_expression ON t USING bloom_filter ((id + 1));
         ANALYZE t",
    );
    for (column, keys) in [
        (
            "toasted",
            [
                "repeat(md5('5'), 100)",
                "repeat(md5('3999'), 100)",
                "'none'",
            ],
        ),
        ("jsonb", ["'{\"i\": 5}'::jsonb", "'{\"i\": 3999}'", "'{}'"]),
        (
            "span",
            [
                "int4range(5, 6)",
                "int4range(3999, 4000)",
                "int4range(0, 9)",
            ],
        ),
        ("added", ["'there'", "'3999'", "'none'"]),
        ("(id + 1)", ["6", "4000", "0"]),
    ] {
        let index = if column == "(id + 1)" {
            "t_expression".to_owned()
        } else {
            format!("t_{column}")
        };
        assert_eq!(agree(&mut client, &index, &each("t", column, "", &keys.map(str::to_owned))), 3);
        check(&mut client, &index);
    }
}

/// Of however many ranges and keys: PostgreSQL would compare each row of a range with each key of
/// an array.
#[test]
fn rows_of_many_ranges_are_read() {
    let mut client = server().database("many_ranges");
    run(
        &mut client,
        "CREATE TABLE t (id integer, x integer, pad text);
         INSERT INTO t SELECT i, i % 3000 / 15, repeat('-', 500) FROM generate_series(1, 30000) AS i;
         CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 1);
         ANALYZE t; SET enable_seqscan = off",
    );
    for keys in [
        "ARRAY[7]",
        "ARRAY(SELECT generate_series(0, 99))",
        "ARRAY(SELECT generate_series(100, 5000))",
    ] {
        assert_eq!(
            in_vain(&mut client, &format!("SELECT id FROM t WHERE x = ANY ({keys})")),
            (0, 0)
        );
        agree(
            &mut client,
            "t_x",
            &format!("SELECT id::text FROM t WHERE x = ANY ({keys}) ORDER BY id"),
        );
    }
    agree(
        &mut client,
        "t_x",
        "SELECT id::text FROM t WHERE x = 7 AND x = ANY ('{5,7,9}') ORDER BY id",
    );
    agree(
        &mut client,
        "t_x",
        "SELECT id::text FROM t WHERE x = ANY ('{5,7}') AND x = ANY ('{6,8}') ORDER BY id",
    );
    run(&mut client, "SET work_mem = '64kB'");
    agree(
        &mut client,
        "t_x",
        "SELECT id::text FROM t WHERE x = ANY (ARRAY(SELECT generate_series(0, 150))) ORDER BY id",
    );
}

/// Versions of rows that were updated in their page, and of which older ones are seen by older
/// snapshots.
#[test]
fn every_version_is_found_by_those_who_see_it() {
    let mut client = server().database("versions");
    let mut other = server().connect("versions");
    let mut random = random(43);
    run(
        &mut client,
        "CREATE TABLE t (id integer PRIMARY KEY, n integer DEFAULT 0, x text) WITH (fillfactor = 40);
         INSERT INTO t SELECT i, 0, 'key ' || i % 50 FROM generate_series(1, 600) AS i;
         CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 2); ANALYZE t",
    );
    let keys: Vec<String> = (0..52).map(|i| format!("'key {i}'")).collect();
    let ask =
        |with_n: &str| each("t", "x", "", &keys).replace("id::text", &format!("id::text{with_n}"));
    for _ in 0..times(6) {
        run(&mut client, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM t");
        for _ in 0..8 {
            let some = format!("id % {} = {}", 2 + random.below(9), random.below(2));
            let change = match random.below(8) {
                0..3 => format!("UPDATE t SET n = n + 1 WHERE {some}"),
                3 => format!("BEGIN; UPDATE t SET n = n + 1 WHERE {some}; ROLLBACK"),
                4 => format!("UPDATE t SET x = 'key ' || (id + n) % 50 WHERE {some}"),
                5 => format!("DELETE FROM t WHERE {some} AND id % 3 = 0"),
                6 => "INSERT INTO t SELECT (SELECT max(id) FROM t) + i, 0, 'key ' || i % 50
                      FROM generate_series(1, 60) AS i"
                    .to_owned(),
                _ => format!(
                    "BEGIN; UPDATE t SET n = -1 WHERE {some}; SAVEPOINT s; UPDATE t SET n = -2 WHERE {some};
                     ROLLBACK TO s; UPDATE t SET n = -3 WHERE {some}; COMMIT"
                ),
            };
            run(&mut other, &change);
            if random.below(4) == 0 {
                run(&mut other, "VACUUM t");
            }
            agree(&mut other, "t_x", &ask(" || '/' || n::text"));
            let before = Answers::of_transaction(&mut client, &ask(" || '/' || n::text"))
                .expect("can be asked");
            before.assert_same("an older snapshot");
            assert!(before.used("t_x"));
        }
        run(&mut client, "COMMIT");
    }
    check(&mut client, "t_x");
}

/// Rows that were updated in their page before there was an index on what changed.
#[test]
fn broken_chains_are_found_by_their_last_version() {
    let mut client = server().database("broken_chains");
    let mut old = server().connect("broken_chains");
    run(
        &mut client,
        "CREATE TABLE t (id integer, x text) WITH (fillfactor = 50);
         INSERT INTO t SELECT i, 'old ' || i FROM generate_series(1, 500) AS i",
    );
    run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM t");
    run(
        &mut client,
        "UPDATE t SET x = 'new ' || id; CREATE INDEX t_x ON t USING bloom_filter (x); ANALYZE t",
    );
    let keys: Vec<String> = (1..20)
        .flat_map(|i| [format!("'old {i}'"), format!("'new {i}'")])
        .collect();
    let seen = Answers::of_transaction(&mut old, &each("t", "x", "", &keys)).expect("can be asked");
    seen.assert_same("a snapshot from before the index");
    assert_eq!(
        seen.by_index
            .iter()
            .filter(|answer| answer.starts_with("old") && !answer.ends_with("none"))
            .count(),
        19
    );
    run(&mut old, "COMMIT");
    agree(&mut client, "t_x", &each("t", "x", "", &keys));
}

/// Where PostgreSQL may remove what a snapshot still sees, it must look at the pages itself, to
/// notice that.
#[test]
fn old_snapshots_are_left_to_postgresql() {
    let mut client = server().database("old_snapshots");
    if major_version(&mut client) >= 17 {
        return;
    }
    let server = Server::start("old_snapshot_threshold = '1h'");
    let mut client = server.connect("postgres");
    run(
        &mut client,
        "CREATE EXTENSION pg_bloom; CREATE TABLE t (id integer, x text);
         INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) AS i;
         CREATE INDEX t_x ON t USING bloom_filter (x); ANALYZE t; SET enable_seqscan = off",
    );
    let (removed, lossy) = in_vain(&mut client, "SELECT id FROM t WHERE x = md5('77')");
    assert!(removed > 100 && lossy >= 8, "{removed} rows and {lossy} pages");
}
