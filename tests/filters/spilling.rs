//! Temporary files of unsized builds: few, never left behind, and no reason for a warning, however
//! the build ends.

use crate::common::{Server, refused, rows, run, value};
use postgres::Client;
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("max_files_per_process = 100"))
}

/// A database with a table of the integers from 1 to 30,000, and the least memory: 17,000 of them
/// need a file.
fn database(name: &str) -> Client {
    let mut client = server().database(name);
    run(&mut client, "CREATE TABLE t AS SELECT x FROM generate_series(1, 30000) AS x; ANALYZE t");
    run(
        &mut client,
        "SET work_mem = '64kB'; SET max_parallel_workers_per_gather = 0; SET jit = off",
    );
    client
}

/// Whether a temporary file is of this session.
const OWN_FILE: &str = "name LIKE 'pgsql\\_tmp' || pg_backend_pid() || '.%'";

/// Asserts that no file is left, nor a word of one in the log.
fn left_nothing(client: &mut Client, what: &str) {
    let files: i64 =
        value(client, &format!("SELECT count(*) FROM pg_ls_tmpdir() WHERE {OWN_FILE}"));
    assert_eq!(files, 0, "{what}");
    let log = std::fs::read_to_string(server().dir().join("log")).expect("the log can be read");
    assert!(!log.contains("temporary file leak"), "{what}\n{log}");
}

/// Frames over the table's 12 groups of 2,500 rows: growing, moving, shrinking, by partition. Each
/// has the condition for a row y to be in the frame of the row x, and the last row. One has fewer
/// rows, since PostgreSQL computes the filter of a frame that ends FOLLOWING once for each row.
const WINDOWS: [(&str, &str, i32); 5] = [
    ("ORDER BY x / 2500", "y / 2500 <= x / 2500", 30_000),
    (
        "ORDER BY x / 2500 GROUPS BETWEEN 7 PRECEDING AND CURRENT ROW",
        "y / 2500 BETWEEN x / 2500 - 7 AND x / 2500",
        30_000,
    ),
    (
        "ORDER BY x / 2500 RANGE BETWEEN 6 PRECEDING AND 1 FOLLOWING",
        "y / 2500 BETWEEN x / 2500 - 6 AND x / 2500 + 1",
        22_000,
    ),
    (
        "ORDER BY x / 2500 GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        "y / 2500 >= x / 2500",
        30_000,
    ),
    ("PARTITION BY x % 2 ORDER BY x / 2500", "y % 2 = x % 2 AND y / 2500 <= x / 2500", 30_000),
];

#[test]
fn windows_have_one_file_at_a_time() {
    let mut client = database("windows");
    // The rows take half of it; the files of all frames would take more.
    run(&mut client, "SET temp_file_limit = '2MB'");
    for (window, frame, last) in WINDOWS {
        let sql = format!(
            "SELECT count(*), max(files), count(*) FILTER (WHERE f <> (SELECT bloom_agg(y) FROM t AS u (y) WHERE {frame} AND y <= {last}))
             FROM (
                 SELECT x, f, (SELECT count(*) FROM pg_ls_tmpdir() WHERE x > 0 AND size > 100000 AND {OWN_FILE}) AS files
                 FROM (SELECT x, bloom_agg(x) OVER ({window}) AS f FROM t WHERE x <= {last}) AS w WHERE x % 4001 = 0 OFFSET 0
             ) AS s"
        );
        let row = rows(&mut client, &sql).remove(0);
        let (frames, files, wrong): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!((frames, wrong), (i64::from(last / 4001), 0), "{window}");
        // The sort and the window keep rows in files as well.
        assert!((1..=3).contains(&files), "{window}: {files} files at once");
        left_nothing(&mut client, window);
    }
}

#[test]
fn windows_may_end_early() {
    let mut client = database("early");
    for (window, ..) in &WINDOWS[..2] {
        let frames = format!("SELECT x, bloom_cardinality(bloom_agg(x) OVER ({window})) FROM t");
        run(&mut client, &format!("{frames} OFFSET 20000 LIMIT 1"));
        left_nothing(&mut client, "LIMIT");
        run(
            &mut client,
            &format!("BEGIN; DECLARE c CURSOR FOR {frames}; FETCH 20001 c; CLOSE c; COMMIT"),
        );
        left_nothing(&mut client, "CLOSE");
        run(&mut client, &format!("BEGIN; DECLARE c CURSOR FOR {frames}; FETCH 20001 c; COMMIT"));
        left_nothing(&mut client, "COMMIT");
        run(&mut client, &format!("BEGIN; DECLARE c CURSOR FOR {frames}; FETCH 20001 c; ROLLBACK"));
        left_nothing(&mut client, "ROLLBACK");
        let failing = frames.replace("bloom_agg(x)", "bloom_agg(x / (x - 22000))");
        refused(&mut client, "22012", &failing);
        left_nothing(&mut client, "an error");
    }
}

/// Runs statements of which each must succeed or fail with its SQLSTATE.
fn script(client: &mut Client, statements: &[(&str, &str)]) {
    for (state, sql) in statements {
        refused(client, state, sql);
    }
}

#[test]
fn subtransactions_close_each_file_once() {
    let mut client = database("subtransactions");
    let window =
        "SELECT bloom_cardinality(bloom_agg(x / (x - 22000)) OVER (ORDER BY x / 2500)) FROM t";
    let groups = "SELECT x / 20000, bloom_cardinality(bloom_agg(x / (x - 22000))) FROM t GROUP BY 1 ORDER BY 1";
    for query in [window, groups] {
        let declare = format!("DECLARE c CURSOR FOR {query}");
        // The cursor fails in a subtransaction, and its memory outlives that.
        for end in ["CLOSE c", "COMMIT", "ROLLBACK"] {
            script(
                &mut client,
                &[
                    ("00000", "BEGIN"),
                    ("00000", &declare),
                    ("00000", "FETCH 1 c"),
                    ("00000", "SAVEPOINT s"),
                    ("22012", "FETCH ALL c"),
                    ("00000", "ROLLBACK TO s"),
                    // New files may get what the failed ones had.
                    ("00000", "SELECT bloom_agg(x) FROM t"),
                    ("00000", end),
                    ("00000", "ROLLBACK"),
                ],
            );
            left_nothing(&mut client, end);
        }
        // The cursor is of a subtransaction that is rolled back, or released, while it is open.
        for end in ["ROLLBACK TO s", "RELEASE s"] {
            script(
                &mut client,
                &[
                    ("00000", "BEGIN"),
                    ("00000", "SAVEPOINT s"),
                    ("00000", &declare),
                    ("00000", "FETCH 1 c"),
                    ("00000", end),
                    ("00000", "SELECT bloom_agg(x) FROM t"),
                    ("00000", "COMMIT"),
                ],
            );
            left_nothing(&mut client, end);
        }
        // Blocks of PL/pgSQL, whose exceptions are caught while other builds are under way.
        run(
            &mut client,
            &format!(
                "DO $$ DECLARE r record; n integer := 0; BEGIN
                     FOR r IN SELECT bloom_agg(x) OVER (ORDER BY x / 2500) AS f FROM t LOOP
                         n := n + 1;
                         IF n % 12000 = 0 THEN
                             BEGIN PERFORM * FROM ({query}) AS q; EXCEPTION WHEN division_by_zero THEN NULL; END;
                         END IF;
                     END LOOP;
                 END $$"
            ),
        );
        left_nothing(&mut client, "PL/pgSQL");
    }
    // A cursor that outlives its transaction is read to its end by COMMIT.
    run(
        &mut client,
        "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT bloom_agg(x) OVER (ORDER BY x / 10000) AS f FROM t; FETCH 1 c; COMMIT;
         CLOSE c",
    );
    left_nothing(&mut client, "WITH HOLD");
}

#[test]
fn a_full_disk_is_an_error() {
    let mut client = database("full_disk");
    run(&mut client, "SET temp_file_limit = '100kB'");
    for sql in [
        "SELECT bloom_agg(x) FROM t",
        "SELECT x > 29000, bloom_agg(x) FROM t GROUP BY 1",
        "SELECT bloom_agg(x) OVER (ORDER BY x / 1000 RANGE BETWEEN 25 PRECEDING AND CURRENT ROW) FROM t",
    ] {
        refused(&mut client, "53400", sql);
        left_nothing(&mut client, sql);
        script(
            &mut client,
            &[
                ("00000", "BEGIN; SAVEPOINT s"),
                ("53400", sql),
                ("00000", "ROLLBACK TO s; COMMIT"),
            ],
        );
        left_nothing(&mut client, sql);
    }
}

/// A number that Linux reports of a session's process, in kilobytes.
fn memory(client: &mut Client, name: &str) -> i64 {
    let pid: i32 = value(client, "SELECT pg_backend_pid()");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .expect("Linux tells about processes");
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .expect("the number is there");
    line.split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("it is a number")
}

#[test]
fn many_groups_take_no_more_with_less_memory() {
    server().database("groups");
    let (mut most, mut results) = (Vec::new(), Vec::new());
    for work_mem in ["1MB", "256kB", "64kB"] {
        // A session of its own, for its peak.
        let mut client = server().connect("groups");
        run(
            &mut client,
            "SET max_parallel_workers_per_gather = 0; SET jit = off; SELECT bloom_agg(1)",
        );
        run(
            &mut client,
            "CREATE TEMPORARY TABLE t AS SELECT i % 300 AS g, i AS x FROM generate_series(1, 1500000) AS i",
        );
        run(&mut client, &format!("ANALYZE t; SET work_mem = '{work_mem}'"));
        let before = memory(&mut client, "VmRSS:");
        let row = rows(
            &mut client,
            &format!(
                "SELECT md5(string_agg(md5(bloom_send(f)), '' ORDER BY g)),
                        (SELECT count(*) FROM pg_ls_tmpdir() WHERE count(f) > 0 AND {OWN_FILE})
                 FROM (SELECT g, bloom_agg(x) AS f FROM t GROUP BY g) AS groups"
            ),
        );
        results.push(row[0].get::<_, String>(0));
        let files: i64 = row[0].get(1);
        most.push(memory(&mut client, "VmHWM:") - before);
        assert!(files <= 300 + 40, "{files} files for 300 groups with {work_mem}");
    }
    assert!(results.iter().all(|result| *result == results[0]));
    assert!(
        most.iter().all(|&peak| peak <= most[0] + 8192),
        "kB with 1 MB, 256 kB and 64 kB: {most:?}"
    );
}
