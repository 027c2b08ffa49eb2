//! Several sessions, step by step: which waits for which, and what each gets.

use crate::common::{plan, refused, run, sqlstate, state_of, value};
use crate::{add_all, named, server, try_add_all, wait_for_waiter};
use pg_bloom_core::hash;
use pg_bloom_core::set::tree;
use postgres::{Client, IsolationLevel};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// The row of an element in a set that is new.
fn bucket_of(x: i32) -> u64 {
    tree::covering(hash::hash(&i64::from(x).to_le_bytes()), tree::FIRST_DEPTH)
}

/// A set `s` for so few elements that rows aren't split, and elements of different rows, in their
/// order.
fn prepare(name: &str) -> (Client, Vec<i32>) {
    let mut client = server().database(name);
    run(&mut client, "SELECT bloom_set_create('s', 'integer', 1000000, 1e-6)");
    let by_bucket: BTreeMap<u64, i32> = (1..=1000).rev().map(|x| (bucket_of(x), x)).collect();
    let elements = by_bucket.into_values().collect();
    (client, elements)
}

/// One session adds `x`, and then another, which waits; `end` ends the first one. What the second
/// then gets.
fn second_gets(name: &str, end: impl FnOnce(Client, &mut Client)) -> Vec<i32> {
    let (mut observer, elements) = prepare(name);
    let (x, other) = (elements[3], elements[1]);
    let (mut first, mut second) = (named(name, "first"), named(name, "second"));
    run(&mut first, "BEGIN");
    assert_eq!(add_all(&mut first, "s", &[x]), [x]);
    thread::scope(|scope| {
        let waiting = scope.spawn(move || add_all(&mut second, "s", &[elements[1], x]));
        wait_for_waiter(&mut observer, "second");
        // A reader waits for nobody, and sees nothing of both.
        assert!(!value::<bool>(&mut observer, &format!("SELECT bloom_set_contains('s', {x})")));
        end(first, &mut observer);
        let mut got = waiting.join().expect("the second session adds");
        assert_eq!(got.remove(0), other);
        assert!(value::<bool>(&mut observer, &format!("SELECT bloom_set_contains('s', {x})")));
        got
    })
}

#[test]
fn an_element_is_new_for_the_one_that_commits() {
    let got = second_gets("committed", |mut first, _| run(&mut first, "COMMIT"));
    assert!(got.is_empty());
    let got = second_gets("rolled_back", |mut first, _| run(&mut first, "ROLLBACK"));
    assert_eq!(got.len(), 1);
    let got = second_gets("terminated", |first, observer| {
        let first_session = "datname = current_database() AND application_name = 'first'";
        run(
            observer,
            &format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {first_session}"
            ),
        );
        drop(first);
    });
    assert_eq!(got.len(), 1);
    let got = second_gets("to_savepoint", |mut first, _| {
        run(&mut first, "SAVEPOINT s; SELECT bloom_set_add('s', -1); ROLLBACK TO s; COMMIT")
    });
    assert!(got.is_empty());
}

/// A batch that fails while it waits leaves nothing behind, not even in the rows before.
#[test]
fn a_batch_that_fails_in_the_middle_leaves_nothing() {
    let (mut observer, elements) = prepare("middle");
    let (mut first, mut second) = (named("middle", "first"), named("middle", "second"));
    run(&mut first, "BEGIN");
    add_all(&mut first, "s", &elements[4..5]);
    run(&mut second, "SET lock_timeout = '50ms'");
    let error = try_add_all(&mut second, "s", &elements).expect_err("it waits too long");
    assert_eq!(state_of(&error), "55P03");
    run(&mut first, "ROLLBACK");
    assert_eq!(value::<f64>(&mut observer, "SELECT elements FROM bloom_set_info('s')"), 0.0);
    assert_eq!(add_all(&mut second, "s", &elements), elements);
}

/// Sessions that call twice in one transaction can deadlock.
#[test]
fn two_calls_in_a_transaction_can_deadlock() {
    let (mut observer, elements) = prepare("circle");
    let (a, b) = (elements[1], elements[5]);
    let (mut first, mut second) = (named("circle", "first"), named("circle", "second"));
    for client in [&mut first, &mut second] {
        run(client, "BEGIN");
    }
    assert_eq!(add_all(&mut first, "s", &[a]), [a]);
    assert_eq!(add_all(&mut second, "s", &[b]), [b]);
    thread::scope(|scope| {
        let finish = |client: &mut Client, x: i32| {
            let result = try_add_all(client, "s", &[x]);
            run(client, if result.is_ok() { "COMMIT" } else { "ROLLBACK" });
            result.map_err(|e| state_of(&e))
        };
        let one: ScopedJoinHandle<'_, _> = scope.spawn(move || finish(&mut first, b));
        wait_for_waiter(&mut observer, "first");
        let other = finish(&mut second, a);
        let one = one.join().expect("the first session ends");
        // The one that was not the victim has both: the other was rolled back.
        match (one, other) {
            (Ok(got), Err(state)) => assert_eq!((got, state.as_str()), (vec![b], "40P01")),
            (Err(state), Ok(got)) => assert_eq!((got, state.as_str()), (vec![a], "40P01")),
            both => panic!("{both:?}"),
        }
    });
    assert_eq!(value::<f64>(&mut observer, "SELECT elements FROM bloom_set_info('s')"), 2.0);
}

/// A transaction that keeps its snapshot neither sees nor changes a row that somebody else changed
/// since.
#[test]
fn repeatable_read_fails_where_a_row_changed() {
    let (mut other, elements) = prepare("repeatable");
    let mut client = server().connect("repeatable");
    for (round, level) in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable]
        .into_iter()
        .enumerate()
    {
        let x = elements[2 * round];
        let far = elements[2 * round + 1];
        let same_row = (1001..)
            .find(|&other| bucket_of(other) == bucket_of(x))
            .expect("there is one");
        let mut transaction = client
            .build_transaction()
            .isolation_level(level)
            .start()
            .expect("can begin");
        let ask = format!("SELECT bloom_set_contains('s', {x})");
        let contains = |t: &mut postgres::Transaction<'_>| {
            t.query_one(&ask, &[]).expect("can ask").get::<_, bool>(0)
        };
        assert!(!contains(&mut transaction));
        assert_eq!(add_all(&mut other, "s", &[x]), [x]);
        assert!(!contains(&mut transaction), "it sees what was committed later");
        // Another row can be changed, and the transaction sees that.
        assert_eq!(add_all(&mut transaction, "s", &[far]), [far]);
        assert_eq!(add_all(&mut transaction, "s", &[far]), []);
        let error = try_add_all(&mut transaction, "s", &[same_row]).expect_err("the row changed");
        assert_eq!(state_of(&error), "40001");
        drop(transaction);
        assert_eq!(add_all(&mut client, "s", &[x, same_row, far]), [same_row, far]);
    }
}

/// Rows that are deleted while a batch waits for them are missing then.
#[test]
fn rows_that_go_while_a_batch_waits_are_missing() {
    for (number, change) in [
        "DELETE FROM s WHERE bucket = $",
        "DELETE FROM s WHERE bucket BETWEEN 1030 AND $",
    ]
    .iter()
    .enumerate()
    {
        let name = format!("gone{number}");
        let (mut observer, elements) = prepare(&name);
        let x = elements[3];
        let mut second = named(&name, "second");
        let mut change_of = |sql: &str| sqlstate(&mut observer, sql);
        assert_eq!(change_of("BEGIN"), "00000");
        assert_eq!(change_of(&change.replace('$', &bucket_of(x).to_string())), "00000");
        thread::scope(|scope| {
            let waiting =
                scope.spawn(move || try_add_all(&mut second, "s", &[x]).map_err(|e| state_of(&e)));
            let mut other = server().connect(&name);
            wait_for_waiter(&mut other, "second");
            run(&mut observer, "COMMIT");
            assert_eq!(waiting.join().expect("it ends"), Err("55000".to_owned()));
        });
    }
}

/// Changes of the table itself are seen at the next call, whatever the session remembers of it.
#[test]
fn a_session_notices_what_becomes_of_the_table() {
    let (mut client, _) = prepare("altered");
    run(
        &mut client,
        "CREATE FUNCTION try(x integer) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN RETURN bloom_set_add('s', x); EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
         PREPARE again AS SELECT bloom_set_add('s', $1::integer)::text",
    );
    let answers = |client: &mut Client, x: i32, expected: &str| {
        assert_eq!(value::<String>(client, &format!("SELECT try({x})")), expected);
        let state = sqlstate(client, &format!("EXECUTE again({x} + 500)"));
        assert_eq!(
            state,
            if expected.len() == 5 && expected != "false" { expected } else { "00000" }
        );
    };
    answers(&mut client, 1, "true");
    answers(&mut client, 1, "false");
    for (change, expected, back) in [
        ("ALTER TABLE s ADD note text", "42809", "ALTER TABLE s DROP note"),
        ("ALTER TABLE s RENAME hashes TO f", "42809", "ALTER TABLE s RENAME f TO hashes"),
        ("CREATE INDEX partial ON s (bucket) WHERE bucket > 0", "true", "DROP INDEX partial"),
        ("CREATE INDEX full_one ON s (bucket)", "true", "REINDEX TABLE CONCURRENTLY s"),
        ("CLUSTER s USING s_pkey", "true", "VACUUM FULL s"),
        ("ALTER TABLE s SET UNLOGGED", "true", "ALTER TABLE s SET LOGGED"),
        ("ALTER TABLE s RENAME TO t; ALTER TABLE t RENAME TO s", "true", "TRUNCATE s"),
    ] {
        run(&mut client, change);
        let x: i32 = value(&mut client, "SELECT 10000 + (random() * 1e6)::integer");
        answers(&mut client, x, expected);
        run(&mut client, back);
    }
    answers(&mut client, 3, "55000");
    run(&mut client, "DROP TABLE s; SELECT bloom_set_create('s', 'text', 10)");
    refused(&mut client, "42804", "SELECT bloom_set_add('s', 1)");
}

/// Two sets are swapped by their names while a batch waits for the one that it means, and that one
/// may be dropped: the batch must not be added to a table that has another name by then. A retry
/// finds the right one.
#[test]
fn a_batch_that_waits_while_sets_are_swapped_is_to_be_retried() {
    for (name, drop, expected) in [
        ("swapped", "", "40001"),
        ("swapped_and_dropped", "DROP TABLE previous", "42P01"),
    ] {
        let (mut observer, elements) = prepare(name);
        run(&mut observer, "SELECT bloom_set_create('next', 'integer', 50000)");
        let x = elements[3];
        let mut second = named(name, "second");
        // It has used the set before.
        assert_eq!(add_all(&mut second, "s", &[elements[5]]), [elements[5]]);
        run(
            &mut observer,
            &format!(
                "BEGIN; ALTER TABLE s RENAME TO previous; ALTER TABLE next RENAME TO s; {drop}"
            ),
        );
        thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                let waited = try_add_all(&mut second, "s", &[x]).map_err(|e| state_of(&e));
                (waited, add_all(&mut second, "s", &[x]))
            });
            let mut other = server().connect(name);
            wait_for_waiter(&mut other, "second");
            run(&mut observer, "COMMIT");
            assert_eq!(waiting.join().expect("it ends"), (Err(expected.to_owned()), vec![x]));
        });
        assert!(value::<bool>(&mut observer, &format!("SELECT bloom_set_contains('s', {x})")));
        if drop.is_empty() {
            assert!(!value::<bool>(
                &mut observer,
                &format!("SELECT bloom_set_contains('previous', {x})")
            ));
        }
    }
}

/// Sessions of one call each, and one that makes the index again and again: none is the victim of a
/// deadlock.
#[test]
fn calls_do_not_deadlock_with_reindex() {
    let (mut client, _) = prepare("made_again");
    thread::scope(|scope| {
        let adders: Vec<_> = (0..2)
            .map(|session| {
                scope.spawn(move || {
                    let mut client = named("made_again", "adder");
                    (0..250)
                        .map(|call| {
                            let first = (call * 2 + session) * 20;
                            let elements: Vec<i32> = (first..first + 20).collect();
                            sqlstate(
                                &mut client,
                                &format!("SELECT bloom_set_add_all('s', ARRAY{elements:?})"),
                            )
                        })
                        .collect::<std::collections::BTreeSet<String>>()
                })
            })
            .collect();
        // Whoever waits looks for a deadlock first: it is to be the call.
        run(&mut client, "SET deadlock_timeout = '10s'");
        while !adders.iter().all(ScopedJoinHandle::is_finished) {
            run(&mut client, "REINDEX TABLE s");
            run(&mut client, "REINDEX INDEX s_pkey");
        }
        for adder in adders {
            let states = adder.join().expect("the session ends");
            assert!(states.iter().eq(["00000"]), "{states:?}");
        }
    });
    assert_eq!(
        value::<i64>(
            &mut client,
            "SELECT count(*) FROM generate_series(0, 9999) AS i WHERE NOT bloom_set_contains('s', i)"
        ),
        0
    );
}

/// What a set is made for comes from its constraint, and rows from the snapshot: both must be of
/// one time.
#[test]
fn a_snapshot_older_than_the_constraint_is_noticed() {
    let mut first = server().database("replaced");
    run(
        &mut first,
        "SELECT bloom_set_create('s', 'integer', 1000000), bloom_set_create('smaller', 'integer', 10000),
            bloom_set_create('larger', 'integer', 100000000)",
    );
    let all: Vec<i32> = (0..1000).collect();
    for set in ["s", "smaller", "larger"] {
        add_all(&mut first, set, &all);
    }
    for other in ["smaller", "larger", "smaller"] {
        let mut second = named("replaced", "second");
        let mut old = second
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .start()
            .expect("can begin");
        old.query_one("SELECT 1", &[]).expect("it has a snapshot");
        let check: String = value(
            &mut first,
            &format!(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{other}'::regclass AND contype = 'c'"
            ),
        );
        run(
            &mut first,
            &format!(
                "BEGIN; LOCK TABLE s; ALTER TABLE s DROP CONSTRAINT filter_set; DELETE FROM s;
                 INSERT INTO s TABLE {other}; ALTER TABLE s ADD CONSTRAINT filter_set {check}; COMMIT"
            ),
        );
        // Not only where a row of the new number is missing: an old one may have it.
        for x in [0, 1, 2, 3, 500] {
            let mut point = old.savepoint("one").expect("can begin");
            let asked = point.query_one("SELECT bloom_set_contains('s', $1::integer)", &[&x]);
            assert_eq!(state_of(&asked.expect_err("its rows are others")), "40001");
            point.rollback().expect("can end");
        }
        let asked =
            old.query_one("SELECT cardinality(bloom_set_absent('s', $1::integer[]))", &[&all]);
        assert_eq!(state_of(&asked.expect_err("its rows are others")), "40001");
        old.rollback().expect("can end");
        assert!(add_all(&mut first, "s", &all).is_empty());
    }
}

/// A set stays one while the index of its primary key is exchanged.
#[test]
fn a_set_is_one_while_its_index_is_made_again_concurrently() {
    let (mut client, elements) = prepare("exchanged");
    add_all(&mut client, "s", &elements);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for name in ["first", "second", "third"] {
            let (mut session, is_over, elements) = (named("exchanged", name), &is_over, &elements);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(sqlstate(&mut session, "SELECT bloom_set_info('s')"), "00000");
                    assert_eq!(
                        sqlstate(&mut session, "SELECT bloom_set_absent('s', ARRAY[1])"),
                        "00000"
                    );
                    assert!(add_all(&mut session, "s", &elements[..3]).is_empty());
                }
            });
        }
        for _ in 0..500 {
            run(&mut client, "REINDEX INDEX CONCURRENTLY s_pkey");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// A set can be asked in a plan whose other parts run in parallel, also by a session that hasn't
/// seen it before.
#[test]
fn a_parallel_plan_can_ask_a_set() {
    let (mut first, _) = prepare("parallel");
    add_all(&mut first, "s", &[1, 2, 10_000]);
    run(
        &mut first,
        "CREATE TABLE numbers AS SELECT i FROM generate_series(1, 100000) AS i; ANALYZE numbers;
         SELECT bloom_set_create('grows', 'integer'); SELECT bloom_set_add_all('grows', ARRAY[1, 2, 10000])",
    );
    for set in ["s", "grows"] {
        let mut client = named("parallel", set);
        run(
            &mut client,
            "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0",
        );
        let sql = format!(
            "SELECT count(*) FILTER (WHERE bloom_set_contains('{set}', n::integer)),
                cardinality(bloom_set_present('{set}', array_agg(n::integer)))
             FROM (SELECT count(*) AS n FROM numbers GROUP BY i % 10) AS t"
        );
        let plan = plan(&mut client, "COSTS OFF", &sql);
        assert!(plan.contains("Gather"), "{plan}");
        let row = client.query_one(&sql, &[]).expect("a set can be asked");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (10, 10));
    }
}
