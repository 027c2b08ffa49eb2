//! What a build takes from the pages of a table by itself: every version of a row that somebody sees, and as many rows
//! as PostgreSQL's own scan counts.

use crate::common::asking::{Answers, agree, check, each};
use crate::common::{Server, refused, run, value};
use postgres::Client;
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("autovacuum = off"))
}

const TABLE: &str = "DROP TABLE IF EXISTS t; CREATE TABLE t (id integer, pad text, x text) WITH (fillfactor = 70);";
const ROWS: &str = "INSERT INTO t SELECT i, repeat('-', i % 40), 'key ' || i FROM generate_series(1, 1000) AS i;";

fn reltuples(client: &mut Client) -> f32 {
    value(client, "SELECT reltuples FROM pg_class WHERE oid = 't'::regclass")
}

fn keys() -> Vec<String> {
    (0..60).flat_map(|i| [format!("'key {}'", i * 25), format!("'key {}!'", i * 25)]).collect()
}

/// Builds an index, and a B-tree on the same rows: both count as many.
fn build(client: &mut Client) {
    run(client, "CREATE INDEX t_x ON t USING bloom_filter (x)");
    let counted = reltuples(client);
    run(client, "CREATE INDEX t_id ON t (id)");
    assert_eq!(counted, reltuples(client), "rows of the table");
}

#[test]
fn every_row_is_built_from_whatever_became_of_others() {
    // Alone on its server: transactions of any database keep versions of rows from being dead to everybody.
    let server = Server::start("autovacuum = off");
    let mut client = server.database("fates");
    for changes in [
        "",
        "BEGIN; INSERT INTO t SELECT i, '', 'never ' || i FROM generate_series(1, 700) AS i; ROLLBACK",
        "DELETE FROM t WHERE id % 3 = 0",
        "UPDATE t SET x = x || '!' WHERE id % 5 = 0; SELECT FROM t WHERE id < 500",
        "BEGIN; DELETE FROM t; ROLLBACK",
        "BEGIN; UPDATE t SET x = 'never'; ROLLBACK; UPDATE t SET pad = 'hot' WHERE id % 4 = 0",
        "BEGIN; UPDATE t SET id = id; SAVEPOINT s; DELETE FROM t WHERE id % 2 = 0; ROLLBACK TO s; COMMIT",
        "DELETE FROM t",
        "ALTER TABLE t ADD y text; ALTER TABLE t DROP pad; UPDATE t SET y = 'new' WHERE id % 7 = 0",
    ] {
        for is_read_before in [false, true] {
            run(&mut client, &format!("{TABLE} {ROWS}"));
            run(&mut client, changes);
            if is_read_before {
                // What became of the rows is noted in their headers.
                run(&mut client, "SELECT count(x) FROM t");
            }
            build(&mut client);
            run(&mut client, "ANALYZE t");
            agree(&mut client, "t_x", &each("t", "x", "", &keys()));
            let rows: i64 = value(&mut client, "SELECT count(*) FROM t");
            assert_eq!(check(&mut client, "t_x"), rows, "{changes}");
            let built: i64 = value(&mut client, "SELECT rows_built FROM bloom_index_info('t_x')");
            assert_eq!(built, rows, "nobody sees the others: {changes}");
        }
    }
}

/// All of it in the transaction that makes the index.
#[test]
fn rows_of_the_same_transaction_are_built_from() {
    let mut client = server().database("own");
    run(
        &mut client,
        &format!(
            "BEGIN; {TABLE} {ROWS} SAVEPOINT a; DELETE FROM t WHERE id % 2 = 0; ROLLBACK TO a;
             SAVEPOINT b; INSERT INTO t SELECT i, '', 'never ' || i FROM generate_series(1, 500) AS i; ROLLBACK TO b;
             UPDATE t SET x = x || '!' WHERE id % 5 = 0; DELETE FROM t WHERE id % 9 = 0"
        ),
    );
    build(&mut client);
    run(&mut client, "COMMIT; ANALYZE t");
    agree(&mut client, "t_x", &each("t", "x", "", &keys()));
    assert_eq!(check(&mut client, "t_x"), value::<i64>(&mut client, "SELECT count(*) FROM t"));
}

/// Transactions that began before the index find by it what they see, deleted or updated since.
#[test]
fn older_snapshots_use_a_new_index() {
    let mut client = server().database("older");
    let mut older = server().connect("older");
    for change in ["DELETE FROM t WHERE id % 2 = 0", "UPDATE t SET x = x || '!'", "UPDATE t SET x = 'key ' || id + 25"]
    {
        run(&mut client, &format!("{TABLE} {ROWS}"));
        run(&mut client, "ANALYZE t");
        run(&mut older, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM t");
        run(&mut client, change);
        build(&mut client);
        let answers = Answers::of_transaction(&mut older, &each("t", "x", "", &keys())).expect("can be asked");
        assert!(answers.used("t_x"));
        answers.assert_same(change);
        run(&mut older, "COMMIT");
        agree(&mut client, "t_x", &each("t", "x", "", &keys()));
        check(&mut client, "t_x");
    }
}

/// A version that was updated in its page, and whose value VACUUM has removed from the TOAST table: there it need not
/// wait for transactions of other databases.
#[test]
fn versions_that_lost_their_value_are_left_out() {
    let server = Server::start("autovacuum = off");
    let (mut client, mut elsewhere) = (server.database("lost"), server.database("elsewhere"));
    for (column, kept, lost) in [
        ("text", "'kept'", "repeat('lost', 1000)"),
        ("integer[]", "ARRAY[7]", "ARRAY(SELECT generate_series(1, 2000))"),
    ] {
        run(
            &mut client,
            &format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t (id integer, x {column}) WITH (fillfactor = 50);
                 ALTER TABLE t ALTER x SET STORAGE EXTERNAL; INSERT INTO t SELECT i, {lost} FROM generate_series(1, 5) AS i"
            ),
        );
        run(&mut elsewhere, "BEGIN; SELECT txid_current()");
        run(&mut client, &format!("UPDATE t SET x = {kept}"));
        let toast: String =
            value(&mut client, "SELECT reltoastrelid::regclass::text FROM pg_class WHERE relname = 't'");
        run(&mut client, &format!("VACUUM {toast}"));
        assert_eq!(value::<i64>(&mut client, &format!("SELECT count(*) FROM {toast}")), 0);
        run(&mut client, "CREATE INDEX t_x ON t USING bloom_filter (x)");
        let is_for_newer: bool =
            value(&mut client, "SELECT indcheckxmin FROM pg_index WHERE indexrelid = 't_x'::regclass");
        assert!(is_for_newer, "older transactions would miss the versions that are left out");
        run(&mut client, "REINDEX INDEX t_x");
        run(&mut elsewhere, "COMMIT");
        run(&mut client, "DROP INDEX t_x; CREATE INDEX t_x ON t USING bloom_filter (x)");
        run(&mut client, "ANALYZE t");
        let ask = format!("SELECT id::text FROM t WHERE x = {kept} ORDER BY id");
        assert_eq!(agree(&mut client, "t_x", &ask), 5);
        assert_eq!(check(&mut client, "t_x"), 5);
    }
}

/// Rows that others have locked are there like all others.
#[test]
fn locked_rows_are_built_from() {
    let mut client = server().database("locked");
    let mut others: Vec<Client> = (0..2).map(|_| server().connect("locked")).collect();
    run(&mut client, &format!("{TABLE} {ROWS}"));
    for other in &mut others {
        run(other, "BEGIN; SELECT FROM t WHERE id % 3 > 0 FOR SHARE");
    }
    build(&mut client);
    for other in &mut others {
        run(other, "ROLLBACK");
    }
    run(&mut client, "ANALYZE t");
    agree(&mut client, "t_x", &each("t", "x", "", &keys()));
    assert_eq!(check(&mut client, "t_x"), 1000);
}

/// A build that fails at a row has let go of its page: here at a deleted one that some may still see, whose value
/// VACUUM has removed from the TOAST table.
#[test]
fn failed_builds_let_go_of_pages() {
    let server = Server::start("autovacuum = off");
    let (mut client, mut elsewhere) = (server.database("failed"), server.database("elsewhere"));
    run(
        &mut client,
        "CREATE TABLE t (id integer, x text); ALTER TABLE t ALTER x SET STORAGE EXTERNAL;
         INSERT INTO t SELECT i, repeat('lost', 1000) FROM generate_series(1, 5) AS i",
    );
    run(&mut elsewhere, "BEGIN; SELECT txid_current()");
    run(&mut client, "DELETE FROM t");
    let toast: String = value(&mut client, "SELECT reltoastrelid::regclass::text FROM pg_class WHERE relname = 't'");
    run(&mut client, &format!("VACUUM {toast}"));
    refused(&mut client, "XX001", "CREATE INDEX ON t USING bloom_filter (x)");
    run(&mut elsewhere, "COMMIT");
    // Who removes a page waits until nobody has it.
    run(&mut client, "VACUUM t");
    assert_eq!(value::<i64>(&mut client, "SELECT pg_relation_size('t')"), 0);
}
