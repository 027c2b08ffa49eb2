//! Sets grow by whatever comes, from whatever sessions: nothing of how full one is depends on what
//! a session remembers.

use crate::common::{bound, run, value};
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

/// Rows of a small set have few elements each, so it takes more of them to know.
#[test]
fn a_small_set_that_gets_single_elements_is_noticed() {
    let mut client = server().database("small");
    run(
        &mut client,
        "SELECT bloom_set_create('g', 'int4', 1000, 0.01); SET pg_bloom.overfill = error",
    );
    let add = "SELECT count(*) FROM generate_series($1::integer, $1 + 99) AS i WHERE bloom_set_add('g', i)";
    let refused = (0..100).find(|i| client.query_one(add, &[&(i * 100)]).is_err());
    // 2^17 hashes have 1 % with 1,311 elements.
    assert!(refused.is_some_and(|i| (13..80).contains(&i)), "refused after {refused:?} hundreds");
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
