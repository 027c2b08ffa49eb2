//! While partitions and indexes come and go.

use crate::assert_same;
use crate::common::standby::{StopsWhenDropped, wait_until};
use crate::common::{Server, run, state_of, times, value};
use postgres::Client;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const TABLES: &str = "
    CREATE TABLE t (at integer, id text) PARTITION BY RANGE (at);
    CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (0) TO (100);
    CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (100) TO (200);
    CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (200) TO (300);
    CREATE INDEX ON t USING bloom_filter (id) WITH (pages_per_range = 1);
    INSERT INTO t SELECT at, 'key ' || key FROM generate_series(0, 200, 100) AS at, generate_series(1, 300) AS key;";

const FOUND: &str = "SELECT count(*) FROM bloom_find(NULL::t, 'id', 'key 7')";

/// Finds the rows of the query: as many.
fn finds(client: &mut Client, rows: usize) {
    let found = assert_same(client, "t", "id = 'key 7'", "bloom_find(NULL::t, 'id', 'key 7')");
    assert_eq!(found, rows);
    let keys = "'{key 7, none}'";
    assert_same(
        client,
        "t",
        &format!("id = ANY ({keys})"),
        &format!("bloom_find_all(NULL::t, 'id', {keys})"),
    );
}

/// Detaches a partition, which waits for `holder`. Older snapshots still find it. Then runs `end`.
/// Returns what the statement ended with.
fn detach(
    server: &Server,
    holder: &mut Client,
    partition: &str,
    rows: usize,
    end: impl FnOnce(&mut Client),
) -> String {
    let (mut reader, mut older) = (server.connect("detach"), server.connect("detach"));
    run(holder, "BEGIN; SELECT count(*) FROM t");
    run(&mut older, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT");
    thread::scope(|scope| {
        let mut detaching = server.connect("detach");
        let statement = scope.spawn(move || {
            detaching
                .batch_execute(&format!("ALTER TABLE t DETACH PARTITION {partition} CONCURRENTLY"))
        });
        wait_until("a partition is being detached", || {
            value(&mut reader, "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhdetachpending)")
        });
        finds(&mut reader, rows - 1);
        finds(holder, rows - 1);
        finds(&mut older, rows);
        end(&mut reader);
        run(&mut older, "COMMIT");
        run(holder, "COMMIT");
        let ended = statement.join().expect("the thread ends");
        finds(&mut reader, rows - 1);
        ended.err().map_or("00000".into(), |e| state_of(&e))
    })
}

#[test]
fn a_partition_that_is_being_detached_is_found_by_older_snapshots_only() {
    let server = Server::start("");
    let mut client = server.database("detach");
    run(&mut client, TABLES);
    finds(&mut client, 3);
    assert_eq!(detach(&server, &mut client, "t1", 3, |_| {}), "00000");
    // One that was interrupted stays half detached.
    let cancel = |reader: &mut Client| {
        let waiting = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE query ~ '^ALTER TABLE t DETACH'";
        assert_eq!(value::<i64>(reader, waiting), 1);
        let none = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE query ~ '^ALTER TABLE t DETACH' AND state = 'active')";
        wait_until("it is cancelled", || value(reader, none));
    };
    assert_eq!(detach(&server, &mut client, "t2", 2, cancel), "57014");
    run(&mut client, "ALTER TABLE t DETACH PARTITION t2 FINALIZE");
    finds(&mut client, 1);
    run(&mut client, "ALTER TABLE t ATTACH PARTITION t2 FOR VALUES FROM (200) TO (300)");
    finds(&mut client, 2);
}

#[test]
fn lookups_go_on_while_partitions_and_indexes_come_and_go() {
    let server = Server::start("");
    let mut client = server.database("changing");
    run(&mut client, TABLES);
    let done = AtomicBool::new(false);
    let changes = [
        "ALTER TABLE t DETACH PARTITION t1 CONCURRENTLY",
        "ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM (100) TO (200)",
        "REINDEX INDEX CONCURRENTLY t0_id_idx",
        "CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (300) TO (400)",
        "CREATE INDEX CONCURRENTLY another ON t2 USING bloom_filter (id) WITH (pages_per_range = 2)",
        "ALTER TABLE t DETACH PARTITION t3",
        "DROP INDEX CONCURRENTLY another",
        "DROP TABLE t3",
        "VACUUM t2",
    ];
    let lookups = thread::scope(|scope| {
        let _stops = StopsWhenDropped(&done);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let mut reader = server.connect("changing");
                let done = &done;
                scope.spawn(move || {
                    let mut lookups = 0;
                    while !done.load(Ordering::Relaxed) {
                        let found: i64 = value(&mut reader, FOUND);
                        assert!((2..=3).contains(&found), "{found} rows");
                        lookups += 1;
                    }
                    lookups
                })
            })
            .collect();
        for _ in 0..times(15) {
            changes.iter().for_each(|sql| run(&mut client, sql));
        }
        done.store(true, Ordering::Relaxed);
        readers
            .into_iter()
            .map(|reader| reader.join().expect("a reader ends"))
            .sum::<usize>()
    });
    println!("{lookups} lookups");
    finds(&mut client, 3);
}

#[test]
fn a_table_altered_between_the_query_and_its_lock_is_refused_by_name() {
    let server = Server::start("");
    let mut client = server.database("altered");
    run(&mut client, TABLES);
    for (change, sql) in [
        ("ADD COLUMN x integer", "SELECT * FROM bloom_find(NULL::t, 'id', 'key 7')"),
        ("DROP COLUMN x", "SELECT * FROM bloom_find_all(NULL::t, 'id', '{key 7}')"),
        ("ADD COLUMN x integer", "SELECT bloom_find(NULL::t, 'id', 'key 7')"),
        ("DROP COLUMN x", "SELECT bloom_find(NULL::t, 'id', 'key 7')"),
        ("ALTER COLUMN at TYPE bigint", "SELECT * FROM bloom_find(NULL::u, 'id', 'key 7')"),
    ] {
        run(&mut client, "CREATE TABLE IF NOT EXISTS u AS SELECT * FROM t");
        let table = if sql.contains("::u") { "u" } else { "t" };
        // A session that knows the type of the rows takes no lock until the call does.
        let mut reader = server.connect("altered");
        run(&mut reader, sql);
        run(&mut client, &format!("BEGIN; ALTER TABLE {table} {change}"));
        let state = thread::scope(|scope| {
            let call = scope.spawn(move || reader.batch_execute(sql).map_err(|e| state_of(&e)));
            let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)";
            wait_until("the call waits for the table", || value(&mut client, waits));
            run(&mut client, "COMMIT");
            call.join().expect("the thread ends")
        });
        assert_eq!(state, Err("55000".into()), "{change}: {sql}");
        run(&mut client, sql);
    }
}
