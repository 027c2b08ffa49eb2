//! On a standby, after its promotion, and after a crash: with partitions whose rows are not in the
//! WAL.

use crate::assert_same;
use crate::common::standby::{catch_up, follow};
use crate::common::{Server, refused, run, value};
use postgres::Client;

const TABLES: &str = "
    CREATE TABLE t (at integer, id text) PARTITION BY RANGE (at);
    CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (0) TO (1000);
    CREATE TABLE t1 (id text, gone integer, at integer);
    ALTER TABLE t1 DROP gone;
    ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM (1000) TO (2000);
    CREATE INDEX ON t USING bloom_filter (id) WITH (pages_per_range = 1);
    CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (2000) TO (3000) PARTITION BY HASH (id);
    CREATE TABLE t20 PARTITION OF t2 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    CREATE TABLE rest PARTITION OF t DEFAULT;
    CREATE UNLOGGED TABLE unlogged PARTITION OF t FOR VALUES FROM (3000) TO (4000);
    INSERT INTO t SELECT i, 'key ' || i % 900 FROM generate_series(1, 5000) AS i;";

/// Finds the rows of the query, and returns how many.
fn find(client: &mut Client) -> usize {
    let one = assert_same(client, "t", "id = 'key 77'", "bloom_find(NULL::t, 'id', 'key 77')");
    let none = assert_same(client, "t", "id = 'none'", "bloom_find(NULL::t, 'id', 'none')");
    let keys = "'{key 5, none, key 899, NULL, written later}'";
    let many = assert_same(
        client,
        "t",
        &format!("id = ANY ({keys})"),
        &format!("bloom_find_all(NULL::t, 'id', {keys})"),
    );
    assert_eq!(none, 0);
    one + many
}

#[test]
fn a_standby_answers_as_the_query_does_and_takes_over() {
    let (primary, standby) = (Server::start("wal_level = replica"), Server::start(""));
    let mut client = primary.database("standby");
    run(&mut client, TABLES);
    let all = find(&mut client);
    follow(&standby, &primary);
    let mut reader = standby.connect("standby");
    catch_up(&mut client, &mut reader);
    // The query says so of the unlogged partition, whether or not that may have the key.
    for key in ["key 77", "none"] {
        refused(&mut reader, "0A000", &format!("SELECT * FROM t WHERE id = '{key}'"));
        refused(&mut reader, "0A000", &format!("SELECT * FROM bloom_find(NULL::t, 'id', '{key}')"));
    }
    run(&mut client, "ALTER TABLE t DETACH PARTITION unlogged");
    catch_up(&mut client, &mut reader);
    let logged = find(&mut reader);
    assert!(logged < all && logged > 3, "{logged} of {all}");

    // A snapshot stays what it is while more rows come, and a partition goes.
    run(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT");
    run(
        &mut client,
        "INSERT INTO t SELECT i * 1000, 'written later' FROM generate_series(0, 5) AS i",
    );
    catch_up(&mut client, &mut reader);
    assert_eq!(find(&mut reader), logged);
    run(&mut reader, "COMMIT");
    assert_eq!(find(&mut reader), logged + 6);
    run(&mut client, "DROP TABLE rest");
    catch_up(&mut client, &mut reader);
    assert_eq!(find(&mut reader), find(&mut client));

    assert!(value::<bool>(&mut reader, "SELECT pg_promote()"));
    run(&mut reader, "ALTER TABLE t ATTACH PARTITION unlogged FOR VALUES FROM (3000) TO (4000)");
    let before = find(&mut reader);
    run(&mut reader, "INSERT INTO t VALUES (3500, 'key 77'), (10, 'key 77')");
    assert_eq!(find(&mut reader), before + 2);
}

#[test]
fn a_crash_leaves_what_the_query_finds() {
    let server = Server::start("");
    let mut client = server.database("crash");
    run(&mut client, TABLES);
    run(
        &mut client,
        "CREATE INDEX ON t20 USING bloom_filter (id); CREATE INDEX ON rest USING bloom_filter (id)",
    );
    let before = find(&mut client);
    server.kill9();
    server.restart();
    let mut client = server.connect("crash");
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM unlogged"), 0);
    let after = find(&mut client);
    assert!(after < before, "{after} of {before}");
    run(&mut client, "INSERT INTO t VALUES (3500, 'key 77')");
    assert_eq!(find(&mut client), after + 1);
}
