//! A standby reads what the primary has written, has the same bytes, and takes over.

use crate::common::asking::{Answers, agree, any, check, each, indexes};
use crate::common::standby::{
    StopsWhenDropped, assert_same_pages, catch_up, follow, index_is_gone, is_behind, is_death, wait_until,
};
use crate::common::{Random, Server, column, refused, run, state_of, value};
use crate::{random, times};
use postgres::{Client, Error};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// States of the table that are seen on the standby.
const STATES: usize = 30;

const TABLES: &str = "
    CREATE TABLE t (id bigint NOT NULL, x text, n integer NOT NULL DEFAULT 0, pad text) WITH (fillfactor = 80);
    ALTER TABLE t ALTER pad SET STORAGE PLAIN;
    CREATE UNIQUE INDEX t_id ON t (id);
    CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 1);
    CREATE UNLOGGED TABLE u (id bigint, x text);
    CREATE INDEX u_x ON u USING bloom_filter (x);
    INSERT INTO u SELECT i, i FROM generate_series(1, 100) AS i;";

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
        let (low, pad) = (random.below(*next), *random.pick(&[10, 10, 300, 2500]));
        let insert = format!(
            "INSERT INTO t SELECT i, 'key ' || i % 1000, 0, repeat('-', {pad}) FROM generate_series({next}, {next} + 200) AS i"
        );
        let sql = match random.below(12) {
            0..5 => {
                *next += 201;
                insert
            }
            5 => format!("UPDATE t SET n = n + 1 WHERE id BETWEEN {low} AND {low} + 300"),
            6 => format!("UPDATE t SET x = 'key ' || id + n + 1, n = n + 1 WHERE id BETWEEN {low} AND {low} + 100"),
            7 => format!("DELETE FROM t WHERE id BETWEEN {low} AND {low} + 50"),
            8 => "VACUUM t".into(),
            9 => "REINDEX INDEX CONCURRENTLY t_x".into(),
            10 => "CHECKPOINT".into(),
            _ => {
                "BEGIN; DROP INDEX t_x; CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 2); COMMIT"
                    .into()
            }
        };
        client.batch_execute(&sql)?;
        statements += 1;
    }
    Ok(statements)
}

/// Keys of which some are there.
fn keys(random: &mut Random) -> Vec<String> {
    (0..25).map(|_| format!("'key {}'", random.below(1400))).collect()
}

/// Asks the standby while the primary writes. Returns how many states and rows it saw.
fn read(client: &mut Client, random: &mut Random, mut goes_on: impl FnMut(usize) -> bool) -> (usize, usize) {
    let (mut states, mut answers) = (std::collections::BTreeSet::new(), 0);
    let (mut questions, mut by_index) = (0, 0);
    while goes_on(states.len()) {
        let keys = keys(random);
        for sql in [each("t", "x", "", &keys), any("t", "x", "", &keys)] {
            let found = match Answers::of_standby(client, &sql, "t_x") {
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
            by_index += usize::from(found.used("t_x"));
        }
        let state = "SELECT md5(string_agg(id || x || n, ',' ORDER BY id)) FROM t";
        states.insert(value::<Option<String>>(client, state));
        if states.len() % 4 == 0 {
            match client.query_one("SELECT bloom_index_check('t_x')", &[]) {
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
    run(&mut on_primary, TABLES);
    follow(&standby, &primary);
    let mut on_standby = standby.connect("followed");
    catch_up(&mut on_primary, &mut on_standby);
    let (mut random, mut next) = (random(3), 1);

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
    assert!(states >= STATES);
    println!("{states} states and {answers} rows seen on the standby");

    catch_up(&mut on_primary, &mut on_standby);
    for index in indexes(&mut on_primary, "t") {
        assert_same_pages(&mut on_primary, &mut on_standby, &index);
    }
    refused(&mut on_standby, "25006", "REINDEX INDEX t_x");

    // The primary dies while it writes.
    let (done, unlimited) = (&AtomicBool::new(false), &AtomicUsize::new(usize::MAX / 8));
    thread::scope(|scope| {
        let _stop = StopsWhenDropped(done);
        let (writer, next_row, seed) = (&mut on_primary, &mut next, random.bits());
        let before: i64 = value(&mut on_standby, "SELECT coalesce(max(id), 0) FROM t");
        let writing = scope.spawn(move || write(writer, seed, next_row, done, unlimited));
        wait_until("the standby sees more", || {
            writing.is_finished() || value::<i64>(&mut on_standby, "SELECT coalesce(max(id), 0) FROM t") > before + 400
        });
        primary.kill9();
        let error = writing.join().expect("the writer ends").expect_err("its server is gone");
        assert!(is_death(&error), "{error:?}");
    });
    assert!(value::<bool>(&mut on_standby, "SELECT pg_promote()"));
    after_promotion(&mut on_standby, &mut random, next * 2);
}

/// The new primary finds everything, and is written to.
fn after_promotion(client: &mut Client, random: &mut Random, first: usize) {
    for round in 0..3 {
        let keys = keys(random);
        for sql in [each("t", "x", "", &keys), any("t", "x", "", &keys)] {
            // A crash may have come between the steps of REINDEX CONCURRENTLY; the index by its name is valid.
            agree(client, "t_x", &sql);
        }
        for index in indexes(client, "t") {
            check(client, &index);
        }
        let from = first + round * 1000;
        run(
            client,
            &format!(
                "INSERT INTO t SELECT i, 'key ' || i % 1300, 0, '' FROM generate_series({from}, {from} + 999) AS i"
            ),
        );
    }
    // An unlogged table is empty after a promotion, and can be used.
    assert_eq!(column::<i64>(client, "SELECT count(*) FROM u"), [0]);
    run(client, "INSERT INTO u SELECT i, i FROM generate_series(1, 3000) AS i");
    let keys = ["'5'".into(), "'2999'".into(), "'3001'".into()];
    agree(client, "u_x", &each("u", "x", "", &keys));
    assert_eq!(check(client, "u_x"), 3000);
}
