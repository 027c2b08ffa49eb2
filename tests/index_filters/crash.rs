//! Indexes over filters that aren't in the WAL, or not at once.

use crate::common::{Server, column, run, value};
use crate::{FILTER, agree};
use postgres::Client;

/// The same rows by the index and without, and the check.
fn assert_sound(client: &mut Client, table: &str, rows: i64) {
    for element in ["e 5", "e 17", "e 300"] {
        agree(client, &format!("SELECT id FROM {table} WHERE seen @> '{element}' ORDER BY id"));
    }
    assert_eq!(value::<i64>(client, &format!("SELECT bloom_index_check('{table}_seen')")), rows);
}

#[test]
fn a_table_made_in_the_transaction_that_fills_it() {
    let server = Server::start("autovacuum = off\nwal_level = minimal\nmax_wal_senders = 0");
    let mut client = server.database("filters");
    run(&mut client, FILTER);
    run(
        &mut client,
        "BEGIN;
         CREATE TABLE g (id integer, seen bloom);
         INSERT INTO g SELECT i, made(i) FROM generate_series(1, 60) AS i;
         CREATE INDEX g_seen ON g USING bloom_filter (seen);
         INSERT INTO g SELECT i, made(i) FROM generate_series(61, 200) AS i;
         SAVEPOINT a;
         INSERT INTO g SELECT i, made(i) FROM generate_series(201, 300) AS i;
         ROLLBACK TO a;
         UPDATE g SET seen = bloom_add(seen, 'e 5') WHERE id < 20;
         COMMIT;
         BEGIN;
         TRUNCATE f;
         INSERT INTO f SELECT i, made(i) FROM generate_series(1, 90) AS i;
         COMMIT",
    );
    server.kill9();
    server.restart();
    let mut client = server.connect("filters");
    assert_sound(&mut client, "g", 200);
    assert_sound(&mut client, "f", 90);
    run(&mut client, "VACUUM g");
    run(&mut client, "INSERT INTO g SELECT i, made(i) FROM generate_series(401, 500) AS i");
    assert_sound(&mut client, "g", 300);
}

#[test]
fn unlogged_temporary_and_prepared() {
    let server = Server::start("autovacuum = off\nmax_prepared_transactions = 2");
    let mut client = server.database("filters");
    run(&mut client, FILTER);
    run(
        &mut client,
        "CREATE UNLOGGED TABLE u (LIKE f);
         CREATE INDEX u_seen ON u USING bloom_filter (seen);
         INSERT INTO u SELECT i, made(i) FROM generate_series(1, 60) AS i;
         INSERT INTO f SELECT i, made(i) FROM generate_series(1, 60) AS i;
         CREATE TEMP TABLE e (LIKE f) ON COMMIT DELETE ROWS;
         CREATE INDEX e_seen ON e USING bloom_filter (seen);
         CREATE TEMP TABLE t (LIKE f);
         CREATE INDEX t_seen ON t USING bloom_filter (seen)",
    );
    for round in 1..4 {
        run(
            &mut client,
            "BEGIN; INSERT INTO e SELECT i, made(i) FROM generate_series(1, 150) AS i",
        );
        assert_sound(&mut client, "e", 150);
        run(&mut client, "COMMIT");
        assert_sound(&mut client, "e", 0);
        run(
            &mut client,
            "INSERT INTO t SELECT i, made(i) FROM generate_series(1, 150) AS i; DELETE FROM t WHERE id > 100",
        );
        assert_sound(&mut client, "t", 100 * round);
        run(&mut client, "VACUUM t");
        assert_sound(&mut client, "t", 100 * round);
    }
    run(
        &mut client,
        "BEGIN; INSERT INTO f SELECT i, made(i) FROM generate_series(61, 100) AS i; PREPARE TRANSACTION 'kept';
         BEGIN; INSERT INTO f SELECT i, made(i) FROM generate_series(101, 140) AS i; PREPARE TRANSACTION 'undone'",
    );
    server.kill9();
    server.restart();
    let mut client = server.connect("filters");
    assert_eq!(column::<i64>(&mut client, "SELECT count(*) FROM u"), [0]);
    run(&mut client, "INSERT INTO u SELECT i, made(i) FROM generate_series(1, 90) AS i");
    assert_sound(&mut client, "u", 90);
    assert_sound(&mut client, "f", 60);
    run(&mut client, "COMMIT PREPARED 'kept'");
    run(&mut client, "ROLLBACK PREPARED 'undone'");
    assert_sound(&mut client, "f", 100);
    run(&mut client, "VACUUM f");
    run(&mut client, "INSERT INTO f SELECT i, made(i) FROM generate_series(141, 240) AS i");
    assert_sound(&mut client, "f", 200);
}
