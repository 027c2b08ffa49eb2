//! Builds that outgrow the cache, `work_mem`, or one process: whatever way they take, the filter is
//! the same.

use crate::common::{LAYOUTS, Server, refused, run, sqlstate_within, value};
use postgres::Client;
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        Server::start("max_worker_processes = 40\nmax_parallel_workers = 32\nlog_temp_files = -1")
    })
}

/// A database with a table of these rows of x, integers, and no parallel plans.
fn database(name: &str, rows: &str) -> Client {
    let mut client = server().database(name);
    run(
        &mut client,
        &format!("CREATE TABLE t WITH (parallel_workers = 2) AS SELECT x::integer FROM {rows}"),
    );
    run(&mut client, "ANALYZE t");
    run(&mut client, "SET max_parallel_workers_per_gather = 0");
    client
}

/// Whether a temporary file is of this session.
const OWN_FILE: &str = "name LIKE 'pgsql\\_tmp' || pg_backend_pid() || '.%'";

/// MD5 of a filter that a query makes.
fn md5(client: &mut Client, filter: &str) -> String {
    value(client, &format!("SELECT md5(bloom_send(({filter})))"))
}

/// Bytes and number of temporary files that this database has written, of queries that are
/// finished.
fn temporary_bytes(client: &mut Client) -> i64 {
    run(client, "SELECT pg_sleep(1.1)");
    value(client, "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()")
}

#[test]
fn unsized_builds_are_the_same_with_little_memory() {
    let mut client = database("memory", "generate_series(1, 300000) AS x");
    for arguments in [
        "x",
        "x, NULL, 0.001",
        "x, NULL, 0.01, 'classic'",
        "x, NULL, 0.01, 'parquet'",
        "x, NULL, 1e-9",
    ] {
        let build = format!("SELECT bloom_agg({arguments}) FROM t");
        run(&mut client, "SET work_mem = '1GB'");
        let expected = md5(&mut client, &build);
        for work_mem in ["64kB", "300kB", "4MB"] {
            run(&mut client, &format!("SET work_mem = '{work_mem}'"));
            assert_eq!(md5(&mut client, &build), expected, "{arguments} with {work_mem}");
        }
    }
    assert!(temporary_bytes(&mut client) > 300_000 * 8, "nothing was spilled");
}

#[test]
fn repeated_elements_do_not_make_a_build_grow() {
    let mut client =
        database("repetitions", "generate_series(1, 40) AS pass, generate_series(1, 20000) AS x");
    run(&mut client, "SET work_mem = '64kB'");
    let built = md5(&mut client, "SELECT bloom_agg(x) FROM t");
    let once = md5(&mut client, "SELECT bloom_agg(x) FROM generate_series(1, 20000) AS x");
    assert_eq!(built, once);
    let bytes = temporary_bytes(&mut client);
    assert!(bytes < 4_000_000, "{bytes} bytes for 20,000 distinct elements");
    run(&mut client, "SET work_mem = '1MB'");
    assert_eq!(md5(&mut client, "SELECT bloom_agg(x) FROM t"), once);
    assert_eq!(temporary_bytes(&mut client), bytes, "what fits was spilled");
}

#[test]
fn parallel_unsized_builds_keep_the_promise() {
    let mut client = database("promise", "generate_series(1, 1000000) AS x");
    run(
        &mut client,
        "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0",
    );
    for (work_mem, layout) in [
        ("64kB", "blocked"),
        ("1GB", "blocked"),
        ("4MB", "classic"),
        ("4MB", "parquet"),
    ] {
        run(&mut client, &format!("SET work_mem = '{work_mem}'"));
        run(
            &mut client,
            &format!(
                "CREATE TEMPORARY TABLE built AS SELECT bloom_agg(x, NULL, 0.01, '{layout}') AS f FROM t"
            ),
        );
        let missed: i64 = value(&mut client, "SELECT count(*) FROM t, built WHERE NOT f @> x");
        assert_eq!(missed, 0, "{layout}");
        let (capacity, rate): (i64, f64) = {
            let row = client
                .query_one("SELECT (bloom_info(f)).capacity, bloom_fpr(f) FROM built", &[])
                .expect("the filter can be inspected");
            (row.get(0), row.get(1))
        };
        assert!((1_000_000..2_100_000).contains(&capacity), "{layout}: capacity {capacity}");
        assert!(rate <= 0.01, "{layout}: rate {rate}");
        let found: i64 = value(
            &mut client,
            "SELECT count(*) FROM generate_series(2000000, 2199999) AS x, built WHERE f @> x",
        );
        assert!(
            found as f64 <= 2000.0 + crate::common::bound(200_000.0, 0.01),
            "{layout}: {found} false positives"
        );
        run(&mut client, "DROP TABLE built");
    }
}

#[test]
fn large_sized_builds_are_the_union_of_their_parts() {
    // Far more than the cache has room for.
    let mut client = database(
        "sized",
        "generate_series(1, 2000000) AS i, LATERAL (SELECT i % 1500000 AS x) AS xs",
    );
    for layout in LAYOUTS {
        let whole =
            md5(&mut client, &format!("SELECT bloom_agg(x, 1500000, 0.01, '{layout}') FROM t"));
        let parts = format!(
            "SELECT bloom_union_agg(f) FROM (SELECT bloom_agg(x, 1500000, 0.01, '{layout}') AS f FROM t GROUP BY x % 12) AS parts"
        );
        assert_eq!(md5(&mut client, &parts), whole, "{layout}");
        let missed: i64 = value(
            &mut client,
            &format!(
                "SELECT count(*) FROM t, (SELECT bloom_agg(x, 1500000, 0.01, '{layout}') AS f FROM t OFFSET 0) AS built
                 WHERE NOT f @> x"
            ),
        );
        assert_eq!(missed, 0, "{layout}");
    }
}

#[test]
fn files_are_deleted_with_their_group() {
    let mut client = database("files", "generate_series(1, 20000) AS x");
    run(&mut client, "SET work_mem = '64kB'");
    // One rescan of the aggregate for each of 60 rows; each looks how many files there are.
    let most: i64 = value(
        &mut client,
        &format!(
            "SELECT max(files) FROM generate_series(1, 60) AS i,
         LATERAL (SELECT bloom_cardinality(bloom_agg(x + i)) AS held FROM t) AS built,
         LATERAL (SELECT count(*) AS files FROM pg_ls_tmpdir() WHERE held > 0 AND {OWN_FILE}) AS seen"
        ),
    );
    assert!((1..=64).contains(&most), "{most} files at once");
    run(&mut client, "SET enable_hashagg = off");
    let groups: i64 = value(
        &mut client,
        "SELECT count(*) FROM (SELECT bloom_cardinality(bloom_agg(x)) AS held FROM t GROUP BY x / 5001) AS groups
         WHERE held BETWEEN 4900 AND 5100",
    );
    assert_eq!(groups, 4);
}

#[test]
fn spilled_builds_survive_cursors_windows_and_errors() {
    let mut client = database("ends", "generate_series(1, 30000) AS x");
    run(&mut client, "SET work_mem = '64kB'");
    let expected = md5(&mut client, "SELECT bloom_agg(x) FROM t");
    let by_cursor: String = {
        let mut transaction = client.transaction().expect("a transaction starts");
        transaction
            .batch_execute(
                "DECLARE c CURSOR FOR SELECT md5(bloom_send(bloom_agg(x))) FROM t, generate_series(1, 3) AS g GROUP BY g;
                 SAVEPOINT s; FETCH c; ROLLBACK TO s; FETCH c",
            )
            .expect("the cursor can be read");
        transaction
            .query_one("FETCH c", &[])
            .expect("there is a third row")
            .get(0)
    };
    assert_eq!(by_cursor, expected);
    let by_window: String = value(
        &mut client,
        "SELECT md5(bloom_send(f)) FROM (SELECT x, bloom_agg(x) OVER (ORDER BY x / 10000) AS f FROM t) AS w
         ORDER BY x DESC LIMIT 1",
    );
    assert_eq!(by_window, expected);
    for _ in 0..3 {
        refused(&mut client, "22012", "SELECT bloom_agg(x / (29000 - x)) FROM t");
    }
    let left: i64 =
        value(&mut client, &format!("SELECT count(*) FROM pg_ls_tmpdir() WHERE {OWN_FILE}"));
    assert_eq!(left, 0);
    assert_eq!(md5(&mut client, "SELECT bloom_agg(x) FROM t"), expected);
}

#[test]
fn long_builds_can_be_cancelled() {
    let mut client = database("cancelled", "generate_series(1, 2000000) AS x");
    run(&mut client, "SELECT bloom_agg(x) FROM t");
    let mut cancelled = 0;
    for work_mem in ["64kB", "1GB"] {
        run(&mut client, &format!("SET work_mem = '{work_mem}'"));
        for build in [
            "bloom_agg(x)",
            "bloom_agg(x, 1500000)",
            "bloom_agg(x, NULL, 1e-9)",
        ] {
            for milliseconds in [1, 20, 50, 80, 110, 140] {
                match sqlstate_within(&mut client, milliseconds, &format!("SELECT {build} FROM t"))
                    .as_str()
                {
                    "57014" => cancelled += 1,
                    "00000" => {}
                    other => panic!("{other} from {build} after {milliseconds} ms"),
                }
            }
        }
    }
    assert!(cancelled >= 6, "only {cancelled} builds took longer than a millisecond");
    let left: i64 =
        value(&mut client, &format!("SELECT count(*) FROM pg_ls_tmpdir() WHERE {OWN_FILE}"));
    assert_eq!(left, 0);
    let missed: i64 = value(
        &mut client,
        "SELECT count(*) FROM t, (SELECT bloom_agg(x) AS f FROM t OFFSET 0) AS built WHERE NOT f @> x",
    );
    assert_eq!(missed, 0);
}
