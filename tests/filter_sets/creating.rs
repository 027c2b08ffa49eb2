//! Sessions that create a set of one name at the same time.

use crate::common::{run, sqlstate, state_of, value};
use crate::{add_all, named, server, wait_for_waiter};
use postgres::IsolationLevel;
use std::thread;

const CREATE: &str =
    "SELECT bloom_set_create('s', 'integer', 1000, if_not_exists => true)::oid::bigint";

/// One session creates a set in a transaction, another one waits for it, and `ending` ends the
/// first one's transaction. Returns the identifiers that both got.
fn created_by_two(name: &str, ending: &str) -> (i64, i64) {
    let mut first = server().database(name);
    run(&mut first, "BEGIN");
    let of_first: i64 = value(&mut first, CREATE);
    add_all(&mut first, "s", &[7]);
    let mut second = named(name, "second");
    thread::scope(|scope| {
        let waiting = scope.spawn(move || value(&mut second, CREATE));
        let mut observer = server().connect(name);
        wait_for_waiter(&mut observer, "second");
        run(&mut first, ending);
        (of_first, waiting.join().expect("the second session ends"))
    })
}

#[test]
fn one_creates_a_set_and_the_other_sees_it() {
    let (of_first, of_second) = created_by_two("created", "COMMIT");
    assert_eq!(of_first, of_second);
    let mut client = server().connect("created");
    assert!(value::<bool>(&mut client, "SELECT bloom_set_contains('s', 7)"));
    // What a transaction creates that is rolled back is created again.
    let (of_first, of_second) = created_by_two("not_created", "ROLLBACK");
    assert_ne!(of_first, of_second);
    let mut client = server().connect("not_created");
    assert_eq!(add_all(&mut client, "s", &[7]), [7]);
}

/// A transaction that keeps an older snapshot is told that the set is there, and can't use it.
#[test]
fn an_older_snapshot_finds_a_set_that_was_created_since() {
    let mut client = server().database("created_since");
    let mut other = server().connect("created_since");
    let mut old = other
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .start()
        .expect("can begin");
    old.query_one("SELECT 1", &[]).expect("it has a snapshot");
    let created: i64 = value(&mut client, CREATE);
    let found = old.query_one(CREATE, &[]).expect("it is there");
    assert_eq!(found.get::<_, i64>(0), created);
    let asked = old.query_one("SELECT bloom_set_contains('s', 1)", &[]);
    assert_eq!(state_of(&asked.expect_err("its rows are newer")), "40001");
}

/// Eight sessions create the same sets, again and again: none fails, and each set is created once.
/// Without `if_not_exists` one succeeds, and the others learn that the name is taken.
#[test]
fn many_sessions_create_the_same_sets() {
    const SESSIONS: usize = 8;
    const SETS: usize = 20;
    let mut client = server().database("creators");
    for is_conditional in [true, false] {
        let states: Vec<String> = thread::scope(|scope| {
            let sessions: Vec<_> = (0..SESSIONS)
                .map(|_| {
                    scope.spawn(move || {
                        let mut client = server().connect("creators");
                        let create = |set: usize| {
                            let create = format!(
                                "SELECT bloom_set_create('{is_conditional}{set}', 'text', if_not_exists => {is_conditional})"
                            );
                            sqlstate(&mut client, &create)
                        };
                        (0..SETS).map(create).collect::<Vec<String>>()
                    })
                })
                .collect();
            sessions
                .into_iter()
                .flat_map(|session| session.join().expect("a session ends"))
                .collect()
        });
        let created = states.iter().filter(|state| *state == "00000").count();
        let taken = states.iter().filter(|state| *state == "42P07").count();
        let expected = if is_conditional {
            (SESSIONS * SETS, 0)
        } else {
            (SETS, (SESSIONS - 1) * SETS)
        };
        assert_eq!((created, taken), expected, "{states:?}");
    }
    let sets: i64 =
        value(&mut client, "SELECT count(*) FROM pg_constraint WHERE conname = 'filter_set'");
    assert_eq!(sets, 2 * SETS as i64);
}
