//! Sets grow by whatever comes, from whatever sessions: nothing of how full one is depends on what
//! a session remembers.

use crate::common::{bound, run, sqlstate, value};
use crate::{add_all, named, server};
use postgres::{Client, IsolationLevel};
use std::thread;

/// How many of these elements, none of which was added, are found.
fn found(client: &mut Client, set: &str, from: i32, count: i32) -> f64 {
    let sql = format!(
        "SELECT cardinality(bloom_set_present('{set}', ARRAY(SELECT generate_series({from}, {from} + {count} - 1))))"
    );
    f64::from(value::<i32>(client, &sql))
}

/// An array of any size is added whole after any history, and the rate is what the set says, far
/// below the promise.
#[test]
fn a_large_array_after_small_ones_keeps_the_rate() {
    let mut client = server().database("large");
    run(
        &mut client,
        "SELECT bloom_set_create('g', 'int4', fpr => 0.001); SET pg_bloom.overfill = error",
    );
    for batch in (0..120_000).collect::<Vec<i32>>().chunks(1000) {
        assert_eq!(add_all(&mut client, "g", batch).len(), 1000);
    }
    let large: Vec<i32> = (120_000..720_000).collect();
    assert!(add_all(&mut client, "g", &large).len() >= 599_998);
    assert!(found(&mut client, "g", 1_000_000, 500_000) <= 2.0);
    // With two loads in a transaction, under each level of isolation, while transactions of any age
    // are open.
    run(&mut client, "SELECT bloom_set_create('k', 'int4', 2000000, 0.001, '7 days')");
    let mut old = named("large", "old");
    run(&mut old, "BEGIN; SELECT bloom_set_contains('k', 1)");
    let levels = [
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::Serializable,
    ];
    for (level, base) in levels.into_iter().zip([0, 200_000, 400_000]) {
        let mut transaction = client
            .build_transaction()
            .isolation_level(level)
            .start()
            .expect("can begin");
        let loads: [Vec<i32>; 2] = [
            (base..base + 1000).collect(),
            (base + 1000..base + 100_000).collect(),
        ];
        for load in loads {
            assert!(add_all(&mut transaction, "k", &load).len() * 1000 >= load.len() * 998);
        }
        transaction.commit().expect("nobody else writes");
    }
    let row = client
        .query_one("SELECT elements, current_fpr, overfull FROM bloom_set_info('k')", &[])
        .expect("a set");
    let (elements, rate): (f64, f64) = (row.get(0), row.get(1));
    assert!(elements > 290_000.0 && rate < 0.001 && !row.get::<_, bool>(2));
    let wrong = found(&mut client, "k", 10_000_000, 200_000);
    assert!(
        (wrong - 200_000.0 * rate).abs() < bound(200_000.0, rate),
        "{wrong} of 200000 at {rate}"
    );
}

/// Two hundred connections, each of which calls once; half of them pool theirs and discard what
/// they remember.
#[test]
fn two_hundred_connections_that_each_call_once_keep_the_rate() {
    let mut client = server().database("once");
    run(
        &mut client,
        "SELECT bloom_set_create('g', 'int4', 250000, 0.01); SELECT bloom_set_create('grows', 'int4')",
    );
    thread::scope(|scope| {
        for part in 0..4 {
            scope.spawn(move || {
                let mut pooled = server().connect("once");
                for call in 0..50 {
                    let from = (part * 50 + call) * 1000;
                    let batch: Vec<i32> = (from..from + 1000).collect();
                    let mut fresh = server().connect("once");
                    let session = if call % 2 == 0 { &mut fresh } else { &mut pooled };
                    assert!(add_all(session, "g", &batch).len() >= 950);
                    assert_eq!(add_all(session, "grows", &batch).len(), 1000);
                    run(session, "DISCARD ALL");
                }
            });
        }
    });
    for (set, promise) in [("g", 0.01), ("grows", 1e-6)] {
        let rate: f64 =
            value(&mut client, &format!("SELECT current_fpr FROM bloom_set_info('{set}')"));
        let wrong = found(&mut client, set, 1_000_000, 200_000);
        assert!(
            rate <= promise && wrong <= 200_000.0 * rate + bound(200_000.0, rate),
            "{wrong} of 200000, {rate}"
        );
        let lost = format!(
            "SELECT cardinality(bloom_set_absent('{set}', ARRAY(SELECT generate_series(0, 199999))))"
        );
        assert_eq!(value::<i32>(&mut client, &lost), 0);
    }
}

/// Adds arrays of so many elements, each in a transaction, a hundred in each session, until that is
/// refused. Returns how many elements the set has then.
fn elements_when_refused(database: &str, batch: i32) -> i64 {
    let mut client = named(database, "adder");
    run(
        &mut client,
        "CREATE OR REPLACE PROCEDURE fill(next integer, batch integer) LANGUAGE plpgsql AS $$
         BEGIN
            FOR i IN 1 .. 100 LOOP
                IF batch = 1 THEN
                    PERFORM bloom_set_add('s', next);
                ELSE
                    PERFORM bloom_set_add_all('s', ARRAY(SELECT generate_series(next, next + batch - 1)));
                END IF;
                next := next + batch;
                COMMIT;
            END LOOP;
         END $$",
    );
    for session in 0..2000 {
        let mut client = named(database, "adder");
        run(&mut client, "SET pg_bloom.overfill = error");
        if sqlstate(&mut client, &format!("CALL fill({}, {batch})", session * 100 * batch))
            == "22023"
        {
            return value::<f64>(&mut client, "SELECT elements FROM bloom_set_info('s')") as i64;
        }
    }
    panic!("no addition was refused");
}

/// However it is filled, a set with a capacity refuses elements before it has twice as many, and
/// not before it has its capacity. Rows of a small set have few elements each, so it is counted.
#[test]
fn a_set_refuses_elements_before_it_has_twice_its_capacity() {
    let mut client = server().database("refusing");
    // 5,243 is the capacity of those near it whose rate is reached last, with 2^20 hashes.
    for (capacity, fpr, batches) in [
        (1, 0.01, &[1, 2][..]),
        (10, 0.01, &[1, 5]),
        (100, 0.01, &[1, 10, 100]),
        (500, 0.01, &[1, 5, 50, 100]),
        (1000, 0.001, &[1, 10, 100]),
        (5243, 0.01, &[1, 100]),
        (20_000, 0.01, &[100]),
    ] {
        for &batch in batches {
            run(
                &mut client,
                &format!(
                    "DROP TABLE IF EXISTS s; SELECT bloom_set_create('s', 'integer', {capacity}, {fpr})"
                ),
            );
            let elements = elements_when_refused("refusing", batch);
            println!("{elements} elements of {capacity} at {fpr}, by arrays of {batch}");
            // A batch is refused whole.
            let least = (capacity + 1 - i64::from(batch)).max(0);
            assert!(
                (least..=2 * capacity).contains(&elements),
                "{elements} elements of {capacity} at {fpr}, by arrays of {batch}"
            );
        }
    }
}

/// A set that is fuller than promised warns in every session, or fails if the setting says so; a
/// set of any other size does neither, whichever elements come.
#[test]
fn an_overfull_set_is_noticed_by_a_session_that_calls_once() {
    let mut client = server().database("overfull");
    run(
        &mut client,
        "SELECT bloom_set_create('g', 'int4', 100000, 0.01); SET pg_bloom.overfill = ignore",
    );
    // 2^24 is the least power of two above 10^7.
    for (count, is_full) in [
        (90_000, false),
        (160_000, false),
        (200_000, true),
        (400_000, true),
    ] {
        add_all(&mut client, "g", &(0..count).collect::<Vec<i32>>());
        let mut once = named("overfull", "once");
        run(&mut once, "SET pg_bloom.overfill = error");
        let result =
            crate::try_add_all(&mut once, "g", &(1_000_000..1_002_000).collect::<Vec<i32>>());
        assert_eq!(result.is_err(), is_full, "{count}: {result:?}");
        if !is_full {
            run(
                &mut once,
                "SELECT bloom_set_remove_all('g', ARRAY(SELECT generate_series(1000000, 1001999)))",
            );
        }
    }
    // The rate grows in proportion: 2.4 times the promise for four times the capacity.
    let rate: f64 = value(&mut client, "SELECT current_fpr FROM bloom_set_info('g')");
    assert!((0.02..0.025).contains(&rate), "{rate}");
}
