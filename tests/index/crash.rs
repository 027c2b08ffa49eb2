//! Tables that aren't in the WAL, or not at once, and pages that were allocated but never written.

use crate::common::asking::{agree, any, check, each};
use crate::common::{Server, run, value};
use postgres::Client;
use std::fs::OpenOptions;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;

/// Runs statements one by one, so that those between two transactions have their own.
fn run_each(client: &mut Client, sql: &str) {
    sql.split(';')
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
        .for_each(|statement| run(client, statement));
}

/// Rows of a batch.
const BATCH: usize = 1500;

/// A batch of rows for a table of `id bigint, x text`, with numbers from `first` on.
fn batch(table: &str, first: usize) -> String {
    format!(
        "INSERT INTO {table} SELECT i, md5((i % 1200)::text) FROM generate_series({first}, {first} + {BATCH} - 1) AS i"
    )
}

/// Asserts that the index `<table>_x` finds what is there, and how many rows these are.
fn finds(client: &mut Client, table: &str, rows: usize) {
    let keys: Vec<String> = (0..30).map(|i| format!("md5('{}')", i * 53)).collect();
    for sql in [each(table, "x", "", &keys), any(table, "x", "", &keys)] {
        agree(client, &format!("{table}_x"), &sql);
    }
    assert_eq!(check(client, &format!("{table}_x")), rows as i64, "rows of {table}");
}

fn crash(server: &Server) -> Client {
    server.kill9();
    server.restart();
    server.connect("crashes")
}

/// With `wal_level = minimal` a transaction that makes a table or an index writes no WAL for it.
/// What it wrote is flushed when it commits, or becomes WAL then if it is little:
/// `wal_skip_threshold`.
fn made_and_filled_in_one_transaction(client: &mut Client, suffix: &str, threshold: &str) {
    run_each(
        client,
        &format!(
            "SET wal_skip_threshold = '{threshold}';
             BEGIN;
             CREATE TABLE new{suffix} (id bigint, x text);
             {};
             CREATE INDEX new{suffix}_x ON new{suffix} USING bloom_filter (x) WITH (pages_per_range = 1);
             {};
             COMMIT;
             CREATE TABLE empty{suffix} (id bigint, x text);
             BEGIN;
             CREATE INDEX empty{suffix}_x ON empty{suffix} USING bloom_filter (x) WITH (pages_per_range = 1);
             {};
             SAVEPOINT s;
             {};
             ROLLBACK TO s;
             COMMIT;
             CREATE TABLE rebuilt{suffix} (id bigint, x text);
             CREATE INDEX rebuilt{suffix}_x ON rebuilt{suffix} USING bloom_filter (x) WITH (pages_per_range = 1);
             {};
             BEGIN;
             REINDEX INDEX rebuilt{suffix}_x;
             {};
             COMMIT;
             CREATE TABLE truncated{suffix} (id bigint, x text);
             CREATE INDEX truncated{suffix}_x ON truncated{suffix} USING bloom_filter (x) WITH (pages_per_range = 1);
             {};
             BEGIN;
             TRUNCATE truncated{suffix};
             {};
             COMMIT;",
            batch(&format!("new{suffix}"), 0),
            batch(&format!("new{suffix}"), BATCH),
            batch(&format!("empty{suffix}"), 0),
            batch(&format!("empty{suffix}"), BATCH),
            batch(&format!("rebuilt{suffix}"), 0),
            batch(&format!("rebuilt{suffix}"), BATCH),
            batch(&format!("truncated{suffix}"), 0),
            batch(&format!("truncated{suffix}"), BATCH),
        ),
    );
}

/// The file of an index's main fork; 0 segments are enough for all tests.
fn file(server: &Server, client: &mut Client, index: &str) -> PathBuf {
    let path: String = value(client, &format!("SELECT pg_relation_filepath('{index}')"));
    server.dir().join("data").join(path)
}

#[test]
fn what_was_never_in_the_wal_survives_as_the_table_does() {
    let config = "wal_level = minimal\nmax_wal_senders = 0\narchive_mode = off\nautovacuum = off\n\
        max_prepared_transactions = 2\nmin_parallel_table_scan_size = 0";
    let server = Server::start(config);
    let mut client = server.database("crashes");
    made_and_filled_in_one_transaction(&mut client, "_flushed", "0");
    made_and_filled_in_one_transaction(&mut client, "_logged", "1GB");
    run_each(
        &mut client,
        &format!(
            "CREATE UNLOGGED TABLE unlogged (id bigint, x text);
             CREATE INDEX unlogged_x ON unlogged USING bloom_filter (x) WITH (pages_per_range = 1);
             {};
             CREATE UNLOGGED TABLE logged (id bigint, x text);
             {};
             CREATE INDEX logged_x ON logged USING bloom_filter (x) WITH (pages_per_range = 1);
             CHECKPOINT;
             ALTER TABLE logged SET LOGGED;
             {}",
            batch("unlogged", 0),
            batch("logged", 0),
            batch("logged", BATCH)
        ),
    );
    finds(&mut client, "unlogged", BATCH);
    run_each(
        &mut client,
        &format!(
            "CREATE TABLE prepared (id bigint, x text);
             CREATE INDEX prepared_x ON prepared USING bloom_filter (x) WITH (pages_per_range = 1);
             BEGIN; {}; PREPARE TRANSACTION 'kept'",
            batch("prepared", 0)
        ),
    );

    let mut client = crash(&server);
    for suffix in ["_flushed", "_logged"] {
        for (table, batches) in [("new", 2), ("empty", 1), ("rebuilt", 2), ("truncated", 1)] {
            finds(&mut client, &format!("{table}{suffix}"), batches * BATCH);
        }
    }
    finds(&mut client, "logged", 2 * BATCH);
    finds(&mut client, "prepared", 0);
    run(&mut client, "COMMIT PREPARED 'kept'");
    finds(&mut client, "prepared", BATCH);
    // The table is empty again, and its index with it: that of the initialisation fork.
    finds(&mut client, "unlogged", 0);
    run(&mut client, &batch("unlogged", 0));
    run(&mut client, &batch("unlogged", 7 * BATCH));
    finds(&mut client, "unlogged", 2 * BATCH);
    // A clean stop keeps them.
    server.restart();
    client = server.connect("crashes");
    finds(&mut client, "unlogged", 2 * BATCH);
    run(&mut client, "ALTER TABLE unlogged SET LOGGED");
    run(&mut client, &batch("unlogged", 9 * BATCH));
    client = crash(&server);
    finds(&mut client, "unlogged", 3 * BATCH);

    // A crash after the file was extended, before anything was written there: pages of zeroes at
    // its end.
    let name = "rebuilt_logged";
    let path = file(&server, &mut client, &format!("{name}_x"));
    server.stop();
    let index = OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("the index has a file");
    let length = index.metadata().expect("the file has a length").len();
    index
        .set_len(length + 40 * 8192)
        .expect("the file can be made longer");
    server.restart();
    client = server.connect("crashes");
    finds(&mut client, name, 2 * BATCH);
    for n in 2..12 {
        run(&mut client, &batch(name, n * BATCH));
    }
    finds(&mut client, name, 12 * BATCH);
    client = crash(&server);
    finds(&mut client, name, 12 * BATCH);
}

#[test]
fn temporary_tables_have_indexes_as_well() {
    let server = Server::start("");
    let mut client = server.database("crashes");
    let table = |name: &str, options: &str| {
        format!(
            "CREATE TEMP TABLE {name} (id bigint, x text) {options};
             CREATE INDEX {name}_x ON {name} USING bloom_filter (x) WITH (pages_per_range = 1)"
        )
    };
    run(&mut client, &table("kept", ""));
    for n in 0..4 {
        run(&mut client, &batch("kept", n * BATCH));
        finds(&mut client, "kept", (n + 1) * BATCH);
    }
    run(&mut client, &format!("BEGIN; {}; ROLLBACK", batch("kept", 4 * BATCH)));
    finds(&mut client, "kept", 4 * BATCH);
    run(&mut client, "VACUUM kept");
    run(&mut client, "REINDEX TABLE kept");
    finds(&mut client, "kept", 4 * BATCH);
    run(&mut client, "TRUNCATE kept");
    finds(&mut client, "kept", 0);

    // PostgreSQL empties these in place: the file stays and is initialised again.
    run(&mut client, &table("emptied", "ON COMMIT DELETE ROWS"));
    for _ in 0..3 {
        run(&mut client, &format!("BEGIN; {}", batch("emptied", 0)));
        let found: i64 = value(&mut client, "SELECT bloom_index_check('emptied_x')");
        run(&mut client, "COMMIT");
        assert_eq!(found, BATCH as i64);
        finds(&mut client, "emptied", 0);
    }
    run(
        &mut client,
        &format!("BEGIN; {}; DROP TABLE kept; COMMIT", table("dropped", "ON COMMIT DROP")),
    );
    // As does a second TRUNCATE in the transaction that made the table.
    run_each(
        &mut client,
        &format!(
            "BEGIN; {}; {}; TRUNCATE twice; {}; TRUNCATE twice; {}; COMMIT",
            table("twice", ""),
            batch("twice", 0),
            batch("twice", BATCH),
            batch("twice", 2 * BATCH)
        ),
    );
    finds(&mut client, "twice", BATCH);
}

/// A full disk must fail an INSERT, not the checkpoint after it: then the server could not even be
/// started again.
#[test]
fn the_file_of_an_index_has_no_holes() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("holes");
    run(
        &mut client,
        "CREATE TABLE t (k integer);
         CREATE INDEX t_k ON t USING bloom_filter (k) WITH (pages_per_range = 1, fpr = 0.0000001);
         INSERT INTO t SELECT generate_series(1, 200000)",
    );
    let data = file(&server, &mut client, "t_k")
        .metadata()
        .expect("the index has a file");
    assert!(data.len() > 1 << 20, "{} bytes", data.len());
    assert!(data.blocks() * 512 >= data.len(), "{} blocks for {} bytes", data.blocks(), data.len());
}

/// Waits in `CREATE INDEX` for a lock, when it is at some row.
const WAITING: &str = "
    CREATE FUNCTION reached(id integer, at integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
    BEGIN
        IF id = at THEN PERFORM pg_advisory_xact_lock(1); END IF;
        RETURN id;
    END $$;
    CREATE TABLE keys AS SELECT i FROM generate_series(1, 120000) AS i;
    CREATE TABLE filters AS SELECT i, bloom_from_array(ARRAY(SELECT generate_series(i, i + 600)), 600, 0.01) AS f
    FROM generate_series(1, 1500) AS i";

/// Pages are logged before they are written. Those that were logged before a checkpoint are not
/// replayed after it.
#[test]
fn a_checkpoint_in_the_middle_of_a_build() {
    for wal_level in ["replica", "minimal"] {
        let config = format!(
            "wal_level = {wal_level}\nmax_wal_senders = 0\nautovacuum = off\nmin_parallel_table_scan_size = 0"
        );
        let server = Server::start_with(&config, &[("SERVER_INITDB_ARGS", "--data-checksums")]);
        run(&mut server.database("crashes"), WAITING);
        // With a worker that writes the pages of any index that has enough for it, and without.
        (0..2).for_each(|workers| crash_after_builds(&server, workers));
    }
}

fn crash_after_builds(server: &Server, workers: usize) {
    let (mut client, mut other) = (server.connect("crashes"), server.connect("crashes"));
    run(&mut client, &format!("SET max_parallel_maintenance_workers = {workers}"));
    let indexes = [
        (
            "keys_i",
            "keys USING bloom_filter (reached(i, 100000)) WITH (pages_per_range = 1, fpr = 0.0000001)",
        ),
        ("filters_f", "filters USING bloom_filter ((CASE WHEN reached(i, 1300) > 0 THEN f END))"),
    ];
    for (name, index) in indexes {
        run(&mut other, "SELECT pg_advisory_lock(1)");
        thread::scope(|scope| {
            let build =
                scope.spawn(|| run(&mut client, &format!("CREATE INDEX {name} ON {index}")));
            let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
            while value::<i64>(&mut other, waits) == 0 {
                assert!(!build.is_finished(), "{name} waits for the lock");
                thread::yield_now();
            }
            run(&mut other, "CHECKPOINT; SELECT pg_advisory_unlock(1)");
        });
    }
    client = crash(server);
    for ((name, _), rows) in indexes.into_iter().zip([120_000, 1500]) {
        let pages: i64 = value(&mut client, &format!("SELECT pg_relation_size('{name}') / 8192"));
        assert!(
            pages > 64,
            "{name} has only {pages} pages: were some written before the checkpoint?"
        );
        assert_eq!(check(&mut client, name), rows, "rows of {name}");
        run(&mut client, &format!("DROP INDEX {name}"));
    }
}
