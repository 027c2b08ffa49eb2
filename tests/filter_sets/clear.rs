//! `bloom_set_clear` beside other sessions: who waits, and what each gets; snapshots that are
//! older; two phases.

use crate::common::{refused, run, sqlstate, state_of, value};
use crate::{add_all, named, server, try_add_all, wait_for_waiter};
use postgres::{Client, IsolationLevel};
use std::thread;

/// A set `s` with the elements 1 to 100.
fn prepare(name: &str) -> Client {
    let mut client = server().database(name);
    run(&mut client, "SELECT bloom_set_create('s', 'integer', 1000000, 1e-6)");
    let elements: Vec<i32> = (1..=100).collect();
    assert_eq!(add_all(&mut client, "s", &elements), elements);
    client
}

/// Clears the set in a transaction, lets another session wait for it with this statement, and ends
/// the transaction. Returns the SQLSTATE of the statement and, if that is 00000, its result.
fn waited(name: &str, statement: &str, ending: &str) -> (String, Option<String>) {
    let mut first = prepare(name);
    run(&mut first, "BEGIN; SELECT bloom_set_clear('s')");
    let mut second = named(name, "second");
    thread::scope(|scope| {
        let waiting = scope.spawn(move || match second.query_one(statement, &[]) {
            Ok(row) => ("00000".to_owned(), row.get(0)),
            Err(error) => (state_of(&error), None),
        });
        let mut observer = server().connect(name);
        wait_for_waiter(&mut observer, "second");
        run(&mut first, ending);
        waiting.join().expect("the second session ends")
    })
}

#[test]
fn a_session_that_waits_finds_the_set_empty_or_as_it_was() {
    let add = "SELECT bloom_set_add('s', 7)::text";
    let remove = "SELECT bloom_set_remove_all('s', ARRAY[7, 8])::text";
    let ask = "SELECT bloom_set_contains('s', 7)::text";
    let clear = "SELECT bloom_set_clear('s')::text";
    let expected = |text: &str| ("00000".to_owned(), Some(text.to_owned()));

    assert_eq!(waited("add_then_commit", add, "COMMIT"), expected("true"));
    assert_eq!(waited("add_then_rollback", add, "ROLLBACK"), expected("false"));
    assert_eq!(waited("remove_then_commit", remove, "COMMIT"), expected("{}"));
    assert_eq!(waited("remove_then_rollback", remove, "ROLLBACK"), expected("{7,8}"));
    // The snapshot of a query that only asks is older than the rows, so that it sees none: it is to
    // be asked again.
    assert_eq!(waited("ask_then_commit", ask, "COMMIT"), ("40001".to_owned(), None));
    assert_eq!(waited("ask_then_rollback", ask, "ROLLBACK"), expected("true"));
    assert_eq!(waited("clear_then_commit", clear, "COMMIT"), expected(""));
    assert_eq!(waited("clear_then_rollback", clear, "ROLLBACK"), expected(""));
    for name in ["clear_then_commit", "clear_then_rollback"] {
        let mut client = server().connect(name);
        assert_eq!(value::<f64>(&mut client, "SELECT elements FROM bloom_set_info('s')"), 0.0);
    }
}

/// A call that waits for transactions that have added something removes that, too, unless it is
/// cancelled.
#[test]
fn clearing_waits_for_those_who_add() {
    let mut first = prepare("adders");
    let mut second = named("adders", "second");
    run(&mut first, "BEGIN");
    add_all(&mut first, "s", &[1000]);
    run(&mut second, "SET lock_timeout = '50ms'");
    refused(&mut second, "55P03", "SELECT bloom_set_clear('s')");
    assert!(value::<bool>(&mut second, "SELECT bloom_set_contains('s', 1)"));
    run(&mut second, "RESET lock_timeout");
    thread::scope(|scope| {
        let waiting = scope.spawn(move || sqlstate(&mut second, "SELECT bloom_set_clear('s')"));
        let mut observer = server().connect("adders");
        wait_for_waiter(&mut observer, "second");
        run(&mut first, "COMMIT");
        assert_eq!(waiting.join().expect("the second session ends"), "00000");
    });
    assert_eq!(add_all(&mut first, "s", &[1, 1000]), [1, 1000]);
}

/// A snapshot that is older than the rows sees none of them, and none of those before. That is an
/// error: the answer is never "no".
#[test]
fn an_older_snapshot_gets_an_error() {
    let mut client = prepare("older");
    let mut other = server().connect("older");
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let mut old = other
            .build_transaction()
            .isolation_level(level)
            .start()
            .expect("can begin");
        old.query_one("SELECT 1", &[]).expect("it has a snapshot");
        run(&mut client, "SELECT bloom_set_clear('s')");
        add_all(&mut client, "s", &[7, 8, 9]);
        for call in [
            "bloom_set_contains('s', 7)",
            "bloom_set_contains('s', 70)",
            "bloom_set_present('s', ARRAY[7, 70])",
            "bloom_set_absent('s', ARRAY[7, 70])",
            "bloom_set_info('s')",
            "bloom_set_add('s', 7)",
            "bloom_set_add_all('s', ARRAY[7, 70])",
            "bloom_set_remove('s', 7)",
        ] {
            let mut point = old.savepoint("one").expect("can begin");
            let result = point.query_one(&format!("SELECT {call}::text"), &[]);
            let error = result.expect_err("it sees no row");
            assert_eq!(state_of(&error), "40001", "{call}");
        }
        // Cleared in this transaction, as by TRUNCATE, it is there again.
        old.query_one("SELECT bloom_set_clear('s')", &[])
            .expect("it is emptied");
        assert_eq!(add_all(&mut old, "s", &[7, 70]), [7, 70]);
        let found = old.query_one("SELECT bloom_set_present('s', ARRAY[7, 8, 70])", &[]);
        assert_eq!(found.expect("a set").get::<_, Vec<i32>>(0), [7, 70]);
        old.commit().expect("nobody else did anything");
        assert_eq!(add_all(&mut client, "s", &[7, 8, 70]), [8]);
    }
    // Truncated and not made a set again, it has no rows for whatever snapshot.
    let mut old = other
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .start()
        .expect("can begin");
    old.query_one("SELECT 1", &[]).expect("it has a snapshot");
    run(&mut client, "TRUNCATE s");
    let error = try_add_all(&mut old, "s", &[7]).expect_err("it has no rows");
    assert_eq!(state_of(&error), "55000");
}

/// Two transactions each read what the other one changes: one after the other, the second would
/// have seen it.
#[test]
fn serializable_transactions_see_a_set_that_is_cleared() {
    let mut client = prepare("serializable");
    run(&mut client, "CREATE TABLE noted (x integer)");
    let (mut one, mut other) = (server().connect("serializable"), server().connect("serializable"));
    let level = IsolationLevel::Serializable;
    let mut clearing = one
        .build_transaction()
        .isolation_level(level)
        .start()
        .expect("can begin");
    let noted = clearing
        .query_one("SELECT count(*) FROM noted", &[])
        .expect("a table");
    assert_eq!(noted.get::<_, i64>(0), 0);
    let mut asking = other
        .build_transaction()
        .isolation_level(level)
        .start()
        .expect("can begin");
    let found = asking
        .query_one("SELECT bloom_set_contains('s', 7)", &[])
        .expect("a set");
    assert!(found.get::<_, bool>(0));
    asking.execute("INSERT INTO noted VALUES (7)", &[]).expect("a table");
    asking.commit().expect("it is the first");
    let cleared = clearing
        .query_one("SELECT bloom_set_clear('s')", &[])
        .map(drop)
        .and_then(|()| clearing.commit());
    assert_eq!(state_of(&cleared.expect_err("it did not see what was noted")), "40001");
    assert!(value::<bool>(&mut client, "SELECT bloom_set_contains('s', 7)"));
}

#[test]
fn a_set_is_cleared_in_two_phases() {
    let mut client = prepare("phases");
    for (ending, is_empty) in [("ROLLBACK", false), ("COMMIT", true)] {
        run(
            &mut client,
            "BEGIN; SELECT bloom_set_clear('s'); SELECT bloom_set_add('s', -1); PREPARE TRANSACTION 'cleared'",
        );
        let mut second = named("phases", "second");
        run(&mut second, "SET lock_timeout = '50ms'");
        refused(&mut second, "55P03", "SELECT bloom_set_contains('s', 1)");
        run(&mut client, &format!("{ending} PREPARED 'cleared'"));
        let there: Vec<i32> = value(&mut second, "SELECT bloom_set_present('s', ARRAY[-1, 1])");
        assert_eq!(there, [if is_empty { -1 } else { 1 }]);
    }
}

/// A session knows the tree of a large set; another one makes it small.
#[test]
fn a_session_that_knows_a_large_set_finds_the_rows_of_a_small_one() {
    let mut client = server().database("shrunk");
    run(&mut client, "SELECT bloom_set_create('s', 'integer', fpr => 1e-8)");
    let mut other = server().connect("shrunk");
    for _ in 0..2 {
        run(&mut other, "SELECT bloom_set_clear('s')");
        let grow =
            "SELECT cardinality(bloom_set_add_all('s', ARRAY(SELECT generate_series(1, 400000))))";
        assert_eq!(value::<i32>(&mut client, grow), 400_000);
        run(&mut other, "SELECT bloom_set_clear('s')");
        let few: Vec<i32> = (1..=1000).collect();
        assert_eq!(add_all(&mut client, "s", &few), few);
        let absent =
            "SELECT cardinality(bloom_set_absent('s', ARRAY(SELECT generate_series(1, 2000))))";
        assert_eq!(value::<i32>(&mut client, absent), 1000);
    }
}
