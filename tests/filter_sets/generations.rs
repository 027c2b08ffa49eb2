//! Sets that grow and sets that forget, step by step: time, sessions that are in each other's way, copies.

use crate::common::standby::{catch_up, follow};
use crate::common::{Random, Server, bound, feed, output, run, sqlstate, state_of, value};
use crate::{add_all, named, server, try_add_all, wait_for_waiter};
use postgres::{Client, IsolationLevel};
use std::collections::BTreeMap;
use std::thread;

/// As if so much time had passed.
fn pass(client: &mut Client, interval: &str) {
    run(
        client,
        &format!(
            "UPDATE s SET since = since - i, until = until - i, changed = changed - i FROM (SELECT '{interval}'::interval AS i) AS t"
        ),
    );
}

/// A month, eight hours at a time: an element is there for seven days after it was new, and eight days later it is not.
#[test]
fn a_set_forgets_after_seven_to_eight_days() {
    const FPR: f64 = 0.001;
    server().database("month");
    let mut random = Random(7);
    // When each element was new, in hours.
    let mut new_at: BTreeMap<i32, u32> = BTreeMap::new();
    let (mut asked, mut wrong) = (0.0, 0.0);
    run(&mut server().connect("month"), &format!("SELECT bloom_set_create('s', 'integer', 14000, {FPR}, '7 days')"));
    for hour in (0..31 * 24).step_by(8) {
        // A session of its own: what one remembers is not when generations began.
        let mut client = server().connect("month");
        let idle = (300..420).contains(&hour);
        let batch: Vec<i32> =
            (0..if idle { 0 } else { random.below(1200) }).map(|_| random.below(20_000) as i32).collect();
        for x in add_all(&mut client, "s", &batch) {
            if let Some(before) = new_at.insert(x, hour) {
                assert!(hour - before >= 7 * 24, "{x} was new at {before} and is at {hour}");
            }
        }
        let all: Vec<i32> = (0..20_000).collect();
        let present: Vec<i32> = client
            .query_one("SELECT bloom_set_present('s', $1::integer[])", &[&all])
            .expect("a set can be asked")
            .get(0);
        let present: std::collections::BTreeSet<i32> = present.into_iter().collect();
        for x in all {
            let age = new_at.get(&x).map(|&at| hour - at);
            if age.is_some_and(|age| age < 7 * 24) {
                assert!(present.contains(&x), "{x} is forgotten after {age:?} hours");
            } else if age.is_none_or(|age| age > 8 * 24) {
                asked += 1.0;
                wrong += f64::from(u8::from(present.contains(&x)));
            }
        }
        let generations: i64 = value(&mut client, "SELECT count(*) FROM bloom_set_generations('s')");
        assert!(generations <= 9, "{generations} generations at {hour}");
        pass(&mut client, "8 hours");
    }
    println!("{wrong} of {asked} that are not there were found");
    assert!(wrong <= FPR * asked + bound(asked, FPR), "{wrong} of {asked}");
    let mut client = server().connect("month");
    let rows: i64 = value(&mut client, "SELECT count(DISTINCT generation) FROM s");
    assert!(rows <= 10, "{rows} generations are kept");
}

/// A set that is full, and two sessions.
fn full(name: &str) -> (Client, Client) {
    let mut first = server().database(name);
    run(&mut first, "SELECT bloom_set_create('s', 'integer', 700000, 0.01, '7 hours')");
    (first, named(name, "second"))
}

/// Time goes on for both sessions: each has a set of its own that it must learn again.
fn slice_ends(client: &mut Client) {
    pass(client, "61 minutes");
    run(client, "ALTER TABLE s SET (fillfactor = 50)");
}

fn newest(client: &mut Client) -> i32 {
    value(client, "SELECT max(generation) FROM s")
}

/// One makes a slice and isn't committed; another adds the same element to the old one, which is the newest that it
/// sees: it waits, and gets nothing that the first got.
#[test]
fn an_element_is_not_new_in_two_slices_while_the_second_is_made() {
    for (round, (end, got)) in [("COMMIT", vec![3]), ("ROLLBACK", vec![2, 3])].into_iter().enumerate() {
        let name = format!("making{round}");
        let (mut first, mut second) = full(&name);
        add_all(&mut first, "s", &[1]);
        slice_ends(&mut first);
        let mut third = named(&name, "third");
        run(&mut first, "BEGIN");
        assert_eq!(add_all(&mut first, "s", &[2]), [2]);
        assert_eq!(newest(&mut first), 1);
        // Others go on adding to the old one.
        assert_eq!(add_all(&mut third, "s", &[1, 4]), [4]);
        assert_eq!(newest(&mut third), 0);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| add_all(&mut second, "s", &[2, 3]));
            wait_for_waiter(&mut third, "second");
            run(&mut first, end);
            assert_eq!(waiting.join().expect("it adds"), got);
        });
        assert!(add_all(&mut third, "s", &[1, 2, 3, 4]).is_empty());
    }
}

/// One has added to a slice and stays; the next is made all the same, and who adds the same element there waits.
#[test]
fn an_element_is_not_new_in_two_slices_while_somebody_adds_to_the_first() {
    for (round, (end, got)) in [("COMMIT", vec![5]), ("ROLLBACK", vec![4, 5])].into_iter().enumerate() {
        let name = format!("staying{round}");
        let (mut first, mut second) = full(&name);
        let mut third = named(&name, "third");
        run(&mut first, "BEGIN");
        assert_eq!(add_all(&mut first, "s", &[4]), [4]);
        run(&mut third, "SET lock_timeout = '1s'; UPDATE s SET since = since - interval '61 minutes' WHERE shard = 0");
        let mut fourth = named(&name, "fourth");
        assert_eq!(add_all(&mut fourth, "s", &[6]), [6]);
        assert_eq!(newest(&mut fourth), 1);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| add_all(&mut second, "s", &[4, 5, 6]));
            wait_for_waiter(&mut third, "second");
            // Who adds others waits neither for the first nor for the one that waits.
            assert_eq!(add_all(&mut third, "s", &[7]), [7]);
            run(&mut first, end);
            assert_eq!(waiting.join().expect("it adds"), got);
        });
        assert!(add_all(&mut third, "s", &[4, 5, 6, 7]).is_empty());
        assert_eq!(newest(&mut third), 1);
    }
}

/// The same of a transaction that is prepared.
#[test]
fn a_prepared_transaction_keeps_what_it_added() {
    let server = Server::start("max_prepared_transactions = 5");
    let mut client = server.database("prepared");
    run(&mut client, "SELECT bloom_set_create('s', 'integer', 7000, 0.01, '7 hours')");
    run(&mut client, "BEGIN");
    add_all(&mut client, "s", &[1]);
    run(&mut client, "PREPARE TRANSACTION 'one'");
    run(&mut client, "UPDATE s SET since = since - interval '61 minutes' WHERE shard = 0 AND bloom_shard(1, 64) <> 0");
    let mut other = server.connect("prepared");
    let apart =
        (2..).find(|&i| value::<bool>(&mut other, &format!("SELECT bloom_shard({i}, 64) <> bloom_shard(1, 64)")));
    assert_eq!(add_all(&mut other, "s", &[apart.expect("there is one")]).len(), 1);
    assert_eq!(newest(&mut other), 1);
    run(&mut other, "SET lock_timeout = '100ms'");
    assert_eq!(state_of(&try_add_all(&mut other, "s", &[1]).expect_err("it waits")), "55P03");
    run(&mut client, "COMMIT PREPARED 'one'");
    assert!(add_all(&mut other, "s", &[1]).is_empty());
}

/// Elements that are renewed are remembered from when they came last, also where nothing was written then.
#[test]
fn an_element_that_came_again_late_in_a_slice_is_remembered_from_then() {
    let mut client = server().database("renewed");
    run(&mut client, "SELECT bloom_set_create('s', 'integer', 7000, 0.01, '7 hours', true)");
    assert_eq!(add_all(&mut client, "s", &[1, 2]), [1, 2]);
    pass(&mut client, "50 minutes");
    let mut later = server().connect("renewed");
    assert!(add_all(&mut later, "s", &[1]).is_empty());
    // It came 50 minutes after the row had changed: after six hours and 55 minutes it is there.
    pass(&mut later, "6 hours 55 minutes");
    let mut latest = server().connect("renewed");
    assert!(value::<bool>(&mut latest, "SELECT bloom_set_contains('s', 1)"));
    pass(&mut latest, "70 minutes");
    let mut last = server().connect("renewed");
    assert!(!value::<bool>(&mut last, "SELECT bloom_set_contains('s', 1)"));
}

/// The same to a session that hasn't seen that slice yet.
#[test]
fn a_session_that_remembers_older_slices_forgets_no_renewed_element_early() {
    let mut old = server().database("remembers");
    run(&mut old, "SELECT bloom_set_create('s', 'integer', 7000, 0.01, '7 hours', true)");
    assert_eq!(add_all(&mut old, "s", &[1]), [1]);
    let session = || server().connect("remembers");
    pass(&mut session(), "61 minutes");
    assert_eq!(add_all(&mut session(), "s", &[2]), [2]);
    pass(&mut session(), "50 minutes");
    assert!(add_all(&mut session(), "s", &[2]).is_empty());
    pass(&mut session(), "6 hours 55 minutes");
    assert!(value::<bool>(&mut old, "SELECT bloom_set_contains('s', 2)"));
}

/// Sessions whose transactions overlap all the time don't keep a set from growing.
#[test]
fn a_set_grows_under_transactions_that_overlap() {
    let mut observer = server().database("overlapping");
    run(&mut observer, "SELECT bloom_set_create('s', 'integer')");
    thread::scope(|scope| {
        for session in 0..6 {
            scope.spawn(move || {
                let mut client = server().connect("overlapping");
                for round in 0..100 {
                    let from = (session * 100 + round) * 300;
                    let mut transaction = client.transaction().expect("can begin");
                    try_add_all(&mut transaction, "s", &(from..from + 300).collect::<Vec<_>>()).expect("it adds");
                    thread::sleep(std::time::Duration::from_millis(5));
                    transaction.commit().expect("can end");
                }
            });
        }
    });
    let rate: f64 = value(&mut observer, "SELECT current_fpr FROM bloom_set_info('s')");
    assert!(rate < 0.01, "{rate}");
    let elements: f64 = value(&mut observer, "SELECT elements FROM bloom_set_info('s')");
    assert!((175_000.0..185_000.0).contains(&elements), "{elements}");
}

/// A snapshot that is older than the newest generation can't see what was added there.
#[test]
fn repeatable_read_fails_where_a_generation_ended() {
    let (mut first, mut second) = full("older");
    add_all(&mut first, "s", &[1]);
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let mut old = second.build_transaction().isolation_level(level).start().expect("can begin");
        let x: i64 = old.query_one("SELECT count(*) FROM s WHERE generation = 0", &[]).expect("can ask").get(0);
        assert!(x > 0);
        slice_ends(&mut first);
        let before = newest(&mut first);
        assert_eq!(add_all(&mut first, "s", &[10 + before]), [10 + before]);
        assert_eq!(newest(&mut first), before + 1);
        let error = try_add_all(&mut old, "s", &[99]).expect_err("its snapshot is older");
        assert_eq!(state_of(&error), "40001");
        old.rollback().expect("can end");
    }
    // It makes one itself, and adds to the one that it sees, more than once.
    slice_ends(&mut first);
    let before = newest(&mut first);
    let mut own =
        second.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().expect("can begin");
    assert_eq!(try_add_all(&mut own, "s", &[1, 100]).expect("it adds"), [100]);
    assert_eq!(try_add_all(&mut own, "s", &[100, 101]).expect("it adds"), [101]);
    own.commit().expect("can end");
    assert_eq!(newest(&mut first), before + 1);
    assert_eq!(add_all(&mut first, "s", &[100, 101, 102]), [102]);
}

/// Generations go where the rows go: a dump, a standby that answers and takes over, a subscriber.
#[test]
fn copies_have_all_generations() {
    let config = "wal_level = logical\nmax_wal_senders = 8";
    let (primary, standby) = (Server::start(config), Server::start(config));
    let mut client = primary.database("copied");
    run(
        &mut client,
        "SELECT bloom_set_create('s', 'integer'), bloom_set_create('forgets', 'integer', 70000, 0.01, '7 days')",
    );
    let all: Vec<i32> = (0..100_000).collect();
    for batch in all.chunks(9000) {
        add_all(&mut client, "s", batch);
    }
    add_all(&mut client, "forgets", &all[..30_000]);
    assert!(newest(&mut client) > 0);
    let lost = |client: &mut Client| -> i32 {
        client.query_one("SELECT cardinality(bloom_set_absent('s', $1::integer[]))", &[&all]).expect("can ask").get(0)
    };
    let dump = output(primary.program("pg_dump").args(["copied"]));
    let mut restored = primary.empty_database("restored", "");
    feed(primary.program("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "restored"]), &dump);
    assert_eq!(lost(&mut restored), 0);
    let info = "SELECT string_agg(g::text, ' ' ORDER BY generation) FROM bloom_set_generations('s') AS g";
    assert_eq!(value::<String>(&mut restored, info), value::<String>(&mut client, info));
    assert_eq!(add_all(&mut restored, "s", &[5, 100_001]), [100_001]);

    follow(&standby, &primary);
    let mut follower = standby.connect("copied");
    catch_up(&mut client, &mut follower);
    assert_eq!(lost(&mut follower), 0);
    assert_eq!(sqlstate(&mut follower, "SELECT bloom_set_add('s', 1)"), "25006");
    // A generation is made while the standby remembers the others.
    let more: Vec<i32> = (200_000..700_000).collect();
    let before = newest(&mut client);
    add_all(&mut client, "s", &more);
    assert!(newest(&mut client) > before);
    catch_up(&mut client, &mut follower);
    assert_eq!(lost(&mut follower), 0);
    let found = follower.query_one("SELECT cardinality(bloom_set_absent('s', $1::integer[]))", &[&more]);
    assert!(found.expect("can ask").get::<_, i32>(0) == 0);
}

/// Large arrays within the capacity, in few or many slices: the rate is as promised. More than that says so.
#[test]
fn large_batches_within_the_capacity_keep_the_rate() {
    const CAPACITY: i32 = 200_000;
    let mut client = server().database("batches");
    for batch in [CAPACITY, CAPACITY / 2, CAPACITY / 3, CAPACITY / 5, CAPACITY / 10, CAPACITY / 24] {
        run(
            &mut client,
            &format!(
                "DROP TABLE IF EXISTS s; SELECT bloom_set_create('s', 'integer', {CAPACITY}, 0.01, '7 days');
                 SET pg_bloom.overfill = error"
            ),
        );
        let all: Vec<i32> = (0..CAPACITY).collect();
        let added: usize = all.chunks(batch as usize).map(|batch| add_all(&mut client, "s", batch).len()).sum();
        let wrong: i64 = value(
            &mut client,
            "SELECT count(*) FROM generate_series(-100000, -1) AS i WHERE bloom_set_contains('s', i)",
        );
        println!("batches of {batch}: {added} added, {wrong} of 100000 found that are not there");
        assert!(wrong as f64 <= 1000.0 + bound(100_000.0, 0.01), "{wrong} in batches of {batch}");
        assert!(!value::<bool>(&mut client, "SELECT overfull FROM bloom_set_info('s')"), "batches of {batch}");
        assert!(value::<i64>(&mut client, "SELECT count(*) FROM bloom_set_generations('s')") <= 24);
    }
    run(&mut client, "DROP TABLE s; SELECT bloom_set_create('s', 'integer', 1000, 0.01, '7 days')");
    assert_eq!(sqlstate(&mut client, "SELECT bloom_set_add_all('s', array(SELECT generate_series(1, 5000)))"), "22023");
}

/// Rows of forgotten generations that somebody has locked are dropped the next time: nobody waits for them.
#[test]
fn dropping_waits_for_nobody() {
    let (mut first, mut second) = full("leftover");
    add_all(&mut first, "s", &[1]);
    for x in 2..8 {
        slice_ends(&mut first);
        assert_eq!(add_all(&mut first, "s", &[x]), [x]);
    }
    slice_ends(&mut first);
    run(&mut second, "BEGIN; SELECT FROM s WHERE generation = 0 AND shard IN (0, 7) FOR UPDATE");
    run(&mut first, "SET lock_timeout = '5s'");
    assert_eq!(add_all(&mut first, "s", &[8]), [8]);
    assert_eq!(sqlstate(&mut first, "SELECT bloom_set_expire('s')"), "00000");
    assert_eq!(value::<i64>(&mut first, "SELECT count(*) FROM s WHERE generation = 0"), 2);
    run(&mut second, "COMMIT");
    slice_ends(&mut first);
    assert_eq!(add_all(&mut first, "s", &[12]), [12]);
    assert_eq!(sqlstate(&mut first, "SELECT bloom_set_expire('s')"), "00000");
    assert_eq!(value::<i64>(&mut first, "SELECT count(*) FROM s WHERE generation = 0"), 0);
}

/// An element that was there when a call began isn't looked for again in rows before those that the call has locked, if
/// its generation is forgotten while the call waits.
#[test]
fn single_calls_do_not_deadlock_when_elements_are_forgotten_meanwhile() {
    let (mut observer, mut adder) = full("forgotten");
    let shards: i32 = value(&mut observer, "SELECT (bloom_set_info('s')).shards");
    // Elements of the first shards, five of each.
    let of = |client: &mut Client, shard: i32| -> Vec<i32> {
        let sql = "SELECT array_agg(i) FROM (SELECT i FROM generate_series(1, 200000) AS i WHERE bloom_shard(i, $1) = $2 LIMIT 5) AS t";
        client.query_one(sql, &[&shards, &shard]).expect("there are some").get(0)
    };
    let (r1, r5, r9) = (of(&mut observer, 1), of(&mut observer, 5), of(&mut observer, 9));
    let (r60, r70) = (of(&mut observer, 60), of(&mut observer, 70));
    add_all(&mut adder, "s", &r1[..1]);
    slice_ends(&mut observer);
    add_all(&mut adder, "s", &r60[..1]);
    let [mut zero, mut one, mut both, mut other] =
        ["zero", "one", "both", "other"].map(|name| named("forgotten", name));
    run(&mut zero, "BEGIN");
    add_all(&mut zero, "s", &r9[..1]);
    run(&mut one, "BEGIN");
    add_all(&mut one, "s", &r70[..1]);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| add_all(&mut both, "s", &[r1[0], r5[0], r9[1]]));
        wait_for_waiter(&mut observer, "both");
        run(
            &mut observer,
            "UPDATE s SET since = since - i, until = until - i, changed = changed - i
             FROM (SELECT '30 days'::interval AS i) AS t WHERE generation = 0;
             UPDATE s SET since = since - '2 hours'::interval WHERE generation = 1 AND shard = 0",
        );
        let mut fresh = named("forgotten", "fresh");
        add_all(&mut fresh, "s", &r60[1..2]);
        assert_eq!(newest(&mut observer), 2);
        let crossing = scope.spawn(|| add_all(&mut other, "s", &[r1[1], r5[1]]));
        wait_for_waiter(&mut observer, "other");
        run(&mut zero, "COMMIT");
        assert_eq!(waiting.join().expect("it adds"), [r5[0], r9[1]]);
        run(&mut one, "COMMIT");
        assert_eq!(crossing.join().expect("it adds"), [r1[1], r5[1]]);
    });
}

/// A session that was idle until all generations that it remembers were forgotten and dropped goes on with the present
/// ones, whether slices follow what comes or not.
#[test]
fn a_session_that_was_idle_for_longer_than_the_set_remembers_goes_on() {
    let mut client = server().database("idle");
    for capacity in ["NULL", "1000"] {
        run(&mut client, &format!("SELECT bloom_set_create('s', 'integer', {capacity}, 0.01, '7 days')"));
        let mut idle = [named("idle", "adds"), named("idle", "asks"), named("idle", "expires")];
        for (x, session) in idle.iter_mut().enumerate() {
            assert_eq!(add_all(session, "s", &[x as i32]), [x as i32]);
        }
        for x in 100..110 {
            pass(&mut client, "25 hours");
            // A session of its own remembers nothing.
            assert_eq!(add_all(&mut server().connect("idle"), "s", &[x]), [x]);
        }
        let [adds, asks, expires] = &mut idle;
        assert_eq!(add_all(adds, "s", &[0, 3, 109]), [0, 3]);
        assert_eq!(value::<Vec<i32>>(asks, "SELECT bloom_set_present('s', ARRAY[0, 1, 3, 109])"), [0, 3, 109]);
        assert_eq!(value::<i32>(expires, "SELECT bloom_set_expire('s')"), 0);
        run(&mut client, "DROP TABLE s");
    }
}

/// One renews an element in the next generation, which it made, and isn't committed. Another, to which the element is
/// forgotten by then, waits, and gets it only if the first rolls back.
#[test]
fn a_renewed_element_is_not_new_to_those_who_do_not_see_that_yet() {
    for (end, got) in [("COMMIT", vec![]), ("ROLLBACK", vec![1])] {
        let name = format!("renewed_{}", end.to_lowercase());
        let mut observer = server().database(&name);
        run(&mut observer, "SELECT bloom_set_create('s', 'integer', 70000, 0.01, '7 hours', true)");
        assert_eq!(add_all(&mut observer, "s", &[1]), [1]);
        for x in 2..8 {
            slice_ends(&mut observer);
            assert_eq!(add_all(&mut server().connect(&name), "s", &[x]), [x]);
        }
        slice_ends(&mut observer);
        let [mut first, mut second] = ["first", "second"].map(|session| named(&name, session));
        run(&mut first, "BEGIN");
        assert!(add_all(&mut first, "s", &[1]).is_empty(), "it is remembered still");
        assert_eq!(newest(&mut first), 7);
        run(
            &mut observer,
            "UPDATE s SET since = since - i, until = until - i, changed = changed - i
             FROM (SELECT '3 hours'::interval AS i) AS t WHERE generation = 0",
        );
        thread::scope(|scope| {
            let waiting = scope.spawn(|| add_all(&mut second, "s", &[1]));
            wait_for_waiter(&mut observer, "second");
            run(&mut first, end);
            assert_eq!(waiting.join().expect("it adds"), got, "{end}");
        });
        assert!(value::<bool>(&mut observer, "SELECT bloom_set_contains('s', 1)"));
    }
}
