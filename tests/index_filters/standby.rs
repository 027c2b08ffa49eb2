//! A standby finds the rows that the primary has written, has the same bytes, and takes over.

use crate::common::asking::{Answers, agree, check, indexes};
use crate::common::standby::{
    StopsWhenDropped, assert_same_pages, catch_up, follow, index_is_gone, is_behind, is_death, wait_until,
};
use crate::common::{Random, Server, column, random, refused, run, state_of, times, value};
use crate::{FILTER, QUESTIONS};
use postgres::{Client, Error};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// States of the table that are seen on the standby.
const STATES: usize = 20;

/// Changes the table until told to stop, or the server is gone: some statements for each look at it.
fn write(
    client: &mut Client,
    seed: u64,
    next: &mut usize,
    done: &AtomicBool,
    seen: &AtomicUsize,
) -> Result<usize, Error> {
    let mut random = Random(seed);
    let mut statements = 0;
    while !done.load(Ordering::Relaxed) {
        if statements > 4 * (seen.load(Ordering::Relaxed) + 1) || is_behind(client)? {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        let low = random.below(*next);
        let sql = match random.below(12) {
            0..5 => {
                *next += 21;
                format!("INSERT INTO f SELECT i, made(i) FROM generate_series({next} - 20, {next}) AS i")
            }
            5..8 => {
                format!("UPDATE f SET seen = bloom_add(seen, 'e {low}') WHERE id BETWEEN {low} AND {low} + 20")
            }
            8 => format!("DELETE FROM f WHERE id BETWEEN {low} AND {low} + 15"),
            9 => "VACUUM f".into(),
            10 => "REINDEX INDEX CONCURRENTLY f_seen".into(),
            _ => "CHECKPOINT".into(),
        };
        client.batch_execute(&sql)?;
        statements += 1;
    }
    Ok(statements)
}

/// A question, whose rows are texts.
fn question(random: &mut Random) -> String {
    let ids = random.pick(&QUESTIONS).replace("SELECT id ", "SELECT id::text AS id ");
    ids.replace('$', &random.below(400).to_string())
}

/// Asks the standby while the primary writes. Returns how many states and rows it saw.
fn read(client: &mut Client, random: &mut Random, mut goes_on: impl FnMut(usize) -> bool) -> (usize, usize) {
    let (mut states, mut answers) = (std::collections::BTreeSet::new(), 0);
    let (mut questions, mut by_index) = (0, 0);
    while goes_on(states.len()) {
        let sql = question(random);
        let found = match Answers::of_standby(client, &sql, "f_seen") {
            Err(error) if index_is_gone(&error) => {
                run(client, "ROLLBACK");
                continue;
            }
            found => found.expect("a standby can be asked"),
        };
        let Some(found) = found else { continue };
        found.assert_same(&sql);
        answers += found.by_scan.len();
        // What was just built may be for later snapshots only.
        questions += 1;
        by_index += usize::from(found.used("f_seen"));
        let state = "SELECT md5(string_agg(id || md5(seen::bytea), ',' ORDER BY id)) FROM f";
        states.insert(value::<Option<String>>(client, state));
        if states.len() % 4 == 0 {
            match client.query_one("SELECT bloom_index_check('f_seen')", &[]) {
                // It was replaced between the look at its name and its lock.
                Err(error) => assert_eq!(state_of(&error), "42P01", "{error:?}"),
                Ok(row) => assert!(row.get::<_, i64>(0) >= 0),
            }
        }
    }
    assert!(by_index * 2 > questions, "only {by_index} of {questions} questions were asked of the index");
    (states.len(), answers)
}

#[test]
fn a_standby_finds_the_same_rows_and_takes_over() {
    let config = "wal_level = replica\nmax_wal_senders = 5\nwal_consistency_checking = 'all'\nmax_wal_size = 64MB\n\
        max_standby_streaming_delay = -1";
    let (primary, standby) = (Server::start(config), Server::start(config));
    let mut on_primary = primary.database("followed");
    run(&mut on_primary, FILTER);
    run(&mut on_primary, "INSERT INTO f SELECT i, made(i) FROM generate_series(-300, -1) AS i");
    run(&mut on_primary, "CREATE UNLOGGED TABLE u (LIKE f); CREATE INDEX u_seen ON u USING bloom_filter (seen)");
    run(&mut on_primary, "INSERT INTO u SELECT i, made(i) FROM generate_series(1, 30) AS i");
    follow(&standby, &primary);
    let mut on_standby = standby.connect("followed");
    catch_up(&mut on_primary, &mut on_standby);
    let (mut random, mut next) = (random(30), 1);

    let (done, seen) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    let (states, answers) = thread::scope(|scope| {
        let stop = StopsWhenDropped(done);
        let (writer, next, seed) = (&mut on_primary, &mut next, random.bits());
        let writing =
            scope.spawn(move || write(writer, seed, next, done, seen).expect("the primary can be written to"));
        let found = read(&mut on_standby, &mut random, |states| {
            seen.fetch_add(1, Ordering::Relaxed);
            states < times(STATES) && !writing.is_finished()
        });
        drop(stop);
        println!("{} statements on the primary", writing.join().expect("the writer ends"));
        found
    });
    assert!(states >= STATES && answers > 0);
    println!("{states} states and {answers} rows seen on the standby");

    for index in indexes(&mut on_primary, "f") {
        assert_same_pages(&mut on_primary, &mut on_standby, &index);
    }
    refused(&mut on_standby, "25006", "REINDEX INDEX f_seen");

    // The primary dies while it writes.
    let (done, unlimited) = (&AtomicBool::new(false), &AtomicUsize::new(usize::MAX / 8));
    thread::scope(|scope| {
        let _stop = StopsWhenDropped(done);
        let (writer, next_row, seed) = (&mut on_primary, &mut next, random.bits());
        let before: i32 = value(&mut on_standby, "SELECT coalesce(max(id), 0) FROM f");
        let writing = scope.spawn(move || write(writer, seed, next_row, done, unlimited));
        wait_until("the standby sees more", || {
            writing.is_finished() || value::<i32>(&mut on_standby, "SELECT coalesce(max(id), 0) FROM f") > before + 40
        });
        primary.kill9();
        let error = writing.join().expect("the writer ends").expect_err("its server is gone");
        assert!(is_death(&error), "{error:?}");
    });
    assert!(value::<bool>(&mut on_standby, "SELECT pg_promote()"));
    after_promotion(&mut on_standby, &mut random);
}

/// The new primary finds everything, and is written to.
fn after_promotion(client: &mut Client, random: &mut Random) {
    for round in 0..3 {
        for _ in 0..10 {
            // A crash may have come between the steps of REINDEX CONCURRENTLY; the index by its name is valid.
            agree(client, "f_seen", &question(random));
        }
        for index in indexes(client, "f") {
            check(client, &index);
        }
        let from = 1_000_000 + round * 100;
        run(client, &format!("INSERT INTO f SELECT i, made(i) FROM generate_series({from}, {from} + 99) AS i"));
        run(client, "VACUUM f");
    }
    // An unlogged table is empty after a promotion, and can be used.
    assert_eq!(column::<i64>(client, "SELECT count(*) FROM u"), [0]);
    run(client, "INSERT INTO u SELECT i, made(i) FROM generate_series(1, 60) AS i");
    agree(client, "u_seen", "SELECT id::text FROM u WHERE seen @> 'e 40' ORDER BY id");
    assert_eq!(check(client, "u_seen"), 60);
}
