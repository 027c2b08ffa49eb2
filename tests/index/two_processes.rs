//! Builds of large indexes whose pages a worker writes: the same pages, and nothing is left of one that fails.

use crate::common::{Server, column, run, sqlstate, sqlstate_within, state_of, value};
use crate::random;
use postgres::Client;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Any index that has more than one batch of pages may have a worker. Its start is logged.
const CONFIG: &str = "min_parallel_table_scan_size = 0\nlog_min_messages = debug1\nautovacuum = off";

/// Tables for an index of either kind with some hundred pages: 125 and more.
const TABLES: &str = "
    CREATE TABLE keys AS SELECT i FROM generate_series(1, 200000) AS i;
    CREATE TABLE one AS SELECT bloom_agg(x, 10000) AS f FROM generate_series(1, 10000) AS x;
    CREATE TABLE filters AS SELECT i, f || -i AS f FROM generate_series(1, 400) AS i, one;
    ANALYZE";
const INDEXES: [(&str, &str); 2] = [("keys", "(i) WITH (pages_per_range = 1, fpr = 0.0000001)"), ("filters", "(f)")];

fn create(table: &str, index: &str) -> String {
    format!("CREATE INDEX {table}_index ON {table} USING bloom_filter {index}")
}

/// How many workers the server has started.
fn workers(server: &Server) -> usize {
    let log = std::fs::read(server.dir().join("log")).expect("the log can be read");
    String::from_utf8_lossy(&log).matches("starting background worker process \"parallel worker").count()
}

/// The bytes of an index without what is new in each build: where its WAL is, and the checksums. Without the metapage
/// as well, of which a checkpoint only brings those of permanent tables to the file.
fn pages(client: &mut Client, index: &str) -> Vec<u8> {
    run(client, "CHECKPOINT");
    let mut bytes: Vec<u8> = value(client, &format!("SELECT pg_read_binary_file(pg_relation_filepath('{index}'))"));
    bytes.chunks_exact_mut(8192).for_each(|page| page[..10].fill(0));
    bytes.split_off(8192)
}

/// Builds an index after these settings. Returns its pages, and how many workers it had.
fn built(server: &Server, client: &mut Client, settings: &str, table: &str, index: &str) -> (Vec<u8>, usize) {
    run(client, &format!("RESET ALL; {settings}"));
    let before = workers(server);
    run(client, &create(table, index));
    let had = workers(server) - before;
    run(client, "SET max_parallel_workers_per_gather = 0");
    assert_eq!(column::<String>(client, &format!("SELECT bloom_index_check('{table}_index')::text")).len(), 1);
    let found = pages(client, &format!("{table}_index"));
    run(client, &format!("DROP INDEX {table}_index"));
    (found, had)
}

#[test]
fn a_worker_writes_the_same_pages() {
    for wal_level in ["replica", "minimal"] {
        let config = format!("{CONFIG}\nwal_level = {wal_level}\nmax_wal_senders = 0");
        let server = Server::start_with(&config, &[("SERVER_INITDB_ARGS", "--data-checksums")]);
        let mut client = server.database("same");
        run(&mut client, TABLES);
        for (table, index) in INDEXES {
            let (alone, none) = built(&server, &mut client, "SET max_parallel_maintenance_workers = 0", table, index);
            assert_eq!(none, 0);
            assert!(alone.len() / 8192 > 100, "{} pages of {table}", alone.len() / 8192);
            let same = |client: &mut Client, settings: &str, expected: usize| {
                let (found, had) = built(&server, client, settings, table, index);
                assert!(found == alone, "other pages of {table} after {settings}");
                assert_eq!(had, expected, "workers for {table} after {settings}");
            };
            same(&mut client, "", 1);
            same(&mut client, "SET max_parallel_workers = 0", 0);
            same(&mut client, "SET min_parallel_table_scan_size = '8MB'", 0);
            same(&mut client, &format!("ALTER TABLE {table} SET (parallel_workers = 0)"), 0);
            same(&mut client, &format!("ALTER TABLE {table} RESET (parallel_workers); SET work_mem = '64kB'"), 1);
            same(&mut client, &format!("ALTER TABLE {table} SET UNLOGGED"), 1);
            run(&mut client, &format!("ALTER TABLE {table} SET LOGGED; CREATE TEMP TABLE mine AS TABLE {table}"));
            let (found, had) = built(&server, &mut client, "", "mine", index);
            assert!((found == alone, had) == (true, 0), "temporary {table}");
            run(&mut client, "DROP TABLE mine");
        }
    }
}

/// What must not be done in parallel mode is done without a worker; what may be is done in all ways to make an index.
#[test]
fn workers_are_for_what_is_safe() {
    let server = Server::start(CONFIG);
    let mut client = server.database("safe");
    run(&mut client, TABLES);
    run(
        &mut client,
        "CREATE SEQUENCE counted;
         CREATE FUNCTION writes(i integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
         BEGIN IF i % 50000 = 0 THEN PERFORM nextval('public.counted'); END IF; RETURN i; END $$;
         CREATE FUNCTION is_even(i integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
         BEGIN RETURN i % 2 = 0; END $$",
    );
    let (keys, options) = ("keys USING bloom_filter", "WITH (pages_per_range = 1, fpr = 0.0000001)");
    let before = workers(&server);
    run(&mut client, &format!("CREATE INDEX ON {keys} ((writes(i))) {options}"));
    run(&mut client, &format!("CREATE INDEX ON {keys} (i) {options} WHERE writes(i) > 0"));
    assert_eq!(value::<i64>(&mut client, "SELECT last_value FROM counted"), 8);
    assert_eq!(workers(&server), before);
    for (builds, sql) in [
        (1, format!("CREATE INDEX even ON {keys} (i) {options} WHERE is_even(i)")),
        (1, "REINDEX INDEX even".into()),
        (1, "REINDEX INDEX CONCURRENTLY even".into()),
        (1, format!("CREATE INDEX CONCURRENTLY concurrent ON {keys} (i) {options}")),
        (
            2,
            format!(
                "BEGIN; SAVEPOINT s; CREATE INDEX undone ON {keys} (i) {options}; ROLLBACK TO s;
             CREATE INDEX kept ON {keys} (i) {options}; COMMIT"
            ),
        ),
    ] {
        let before = workers(&server);
        run(&mut client, &sql);
        assert_eq!(workers(&server) - before, builds, "{sql}");
    }
    for index in ["even", "concurrent", "kept"] {
        run(&mut client, &format!("SELECT bloom_index_check('{index}')"));
    }
    run(&mut client, "DELETE FROM keys WHERE i % 3 = 0");
    let before = workers(&server);
    run(&mut client, "VACUUM FULL keys");
    assert!(workers(&server) > before);
    run(&mut client, "SELECT bloom_index_check('kept'), bloom_index_check('even')");
}

/// The names of the files of a database.
fn files(server: &Server, client: &mut Client) -> BTreeSet<String> {
    run(client, "CHECKPOINT");
    let database: i64 = value(client, "SELECT oid::bigint FROM pg_database WHERE datname = current_database()");
    let directory = server.dir().join("data/base").join(database.to_string());
    let is_index = |path: &Path| path.metadata().is_ok_and(|file| file.len() > 32 * 8192);
    std::fs::read_dir(directory)
        .expect("a database has a directory")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| is_index(path))
        .map(|path| path.display().to_string())
        .collect()
}

#[test]
fn builds_that_fail_leave_nothing_behind() {
    let server = Server::start(CONFIG);
    let mut client = server.database("failing");
    run(&mut client, TABLES);
    let before = files(&server, &mut client);
    let (mut cancelled, mut random) = (0, random(20));
    for i in 0..60 {
        let (table, index) = INDEXES[i % 2];
        let state = sqlstate_within(&mut client, 1 + random.below(120), &create(table, index));
        assert!(["00000", "57014"].contains(&state.as_str()), "{state}");
        cancelled += usize::from(state == "57014");
        run(&mut client, &format!("DROP INDEX IF EXISTS {table}_index"));
    }
    assert!(cancelled > 5, "{cancelled} builds were cancelled");
    // Errors of the rows, and after them all, while there is a worker.
    for expression in ["1 / (i - 150000)", "1 / (i - 200000)"] {
        let sql =
            format!("CREATE INDEX ON keys USING bloom_filter (({expression})) WITH (pages_per_range = 1, fpr = 1e-7)");
        assert_eq!(sqlstate(&mut client, &sql), "22012");
    }
    assert_eq!(files(&server, &mut client), before);
    let left = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'";
    assert_eq!(value::<i64>(&mut client, left), 0);
}

/// Somebody who ends the worker ends the build, with the error that says so.
#[test]
fn a_worker_that_is_ended_ends_the_build() {
    let server = Server::start(CONFIG);
    let (mut client, mut other) = (server.database("ended"), server.connect("ended"));
    run(&mut client, TABLES);
    run(
        &mut client,
        "CREATE FUNCTION slow(f bloom) RETURNS bloom LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
         BEGIN PERFORM pg_sleep(0.01); RETURN f; END $$",
    );
    let before = files(&server, &mut client);
    for pid in ["pid", "leader_pid"] {
        thread::scope(|scope| {
            let build = scope.spawn(|| client.batch_execute(&create("filters", "(slow(f))")));
            let end = format!(
                "SELECT pg_terminate_backend({pid}) FROM pg_stat_activity WHERE backend_type = 'parallel worker'"
            );
            while column::<bool>(&mut other, &end).is_empty() {
                assert!(!build.is_finished(), "the build has a worker");
                thread::sleep(Duration::from_millis(1));
            }
            let error = build.join().expect("the build ends").expect_err("the build fails");
            // Where the session ended too, its client may see that before it reads the error.
            assert!(
                error.is_closed() && pid == "leader_pid" || state_of(&error) == "57P01",
                "after the end of {pid}: {error:?}"
            );
        });
        client = server.connect("ended");
    }
    assert_eq!(files(&server, &mut client), before);
    run(&mut client, &create("filters", "(f)"));
    run(&mut client, "SELECT bloom_index_check('filters_index')");
}
