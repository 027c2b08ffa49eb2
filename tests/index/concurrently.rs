//! CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY tell PostgreSQL which rows an index was built
//! from, and are given the others: rows that came in the meantime, and those that there was no
//! memory for.

use crate::common::asking::check;
use crate::common::standby::StopsWhenDropped;
use crate::common::{Random, run, sqlstate, value};
use crate::{random, server, times};
use postgres::Client;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Indexes that are made while others write.
const BUILDS: usize = 7;

/// Writes until told to stop: rows that stay, rows that don't, rows that move within their page and
/// to others. Writers change rows of their own, since statements that change the same rows can
/// deadlock.
fn write(client: &mut Client, writer: usize, mut random: Random, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let (from, salt) = (random.below(4000), random.below(1 << 20));
        let own = format!("id % 3 = {writer} AND id BETWEEN {from} AND {from}");
        let sql = match random.below(5) {
            0 => "INSERT INTO t SELECT -i, 'late ' || random(), '-' FROM generate_series(1, 50) AS i".into(),
            1 => "BEGIN; INSERT INTO t SELECT -i, 'none ' || random(), '-' FROM generate_series(1, 50) AS i; ROLLBACK"
                .into(),
            2 => format!("UPDATE t SET x = 'new ' || {salt} || ' ' || id WHERE {own} + 30"),
            3 => format!("UPDATE t SET note = note || '-' WHERE {own} + 30"),
            _ => format!("DELETE FROM t WHERE {own} + 3"),
        };
        run(client, &sql);
    }
}

/// Runs a statement that another session cancels after that time, and that must not fail in another
/// way.
fn run_or_give_up(client: &mut Client, other: &mut Client, limit: Duration, sql: &str) {
    let pid: i32 = value(client, "SELECT pg_backend_pid()");
    let state = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(limit);
            run(other, &format!("SELECT pg_cancel_backend({pid})"));
        });
        sqlstate(client, sql)
    });
    assert!(["00000", "57014"].contains(&state.as_str()), "{state}: {sql}");
}

#[test]
fn rows_that_come_meanwhile() {
    let mut client = server().database("in_between");
    run(
        &mut client,
        "CREATE TABLE t (id integer, x text, note text) WITH (fillfactor = 70);
         INSERT INTO t SELECT i, 'first ' || i, repeat('-', 80) FROM generate_series(1, 4000) AS i;
         CREATE INDEX t_id ON t (id);
         CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 1);
         CREATE INDEX t_even ON t USING bloom_filter (x) WHERE id % 2 = 0",
    );
    let mut other = server().connect("in_between");
    let (done, mut random) = (AtomicBool::new(false), random(18));
    thread::scope(|scope| {
        let _stops = StopsWhenDropped(&done);
        for writer in 0..2 {
            let seed = Random(random.below(1 << 30) as u64);
            let mut client = server().connect("in_between");
            let done = &done;
            scope.spawn(move || write(&mut client, writer, seed, done));
        }
        for _ in 0..times(BUILDS) {
            run(&mut client, "CREATE INDEX CONCURRENTLY t_new ON t USING bloom_filter (lower(x))");
            assert!(check(&mut client, "t_new") > 0);
            // One that was given up leaves nothing behind that the next could take for its own.
            let limit = Duration::from_millis(1 + random.below(60) as u64);
            run_or_give_up(&mut client, &mut other, limit, "REINDEX INDEX CONCURRENTLY t_new");
            run(&mut client, "REINDEX TABLE CONCURRENTLY t");
            for index in ["t_new", "t_x", "t_even"] {
                assert!(check(&mut client, index) > 0);
            }
            run(&mut client, "DROP INDEX CONCURRENTLY t_new");
            let left = "SELECT coalesce(string_agg(format('DROP INDEX %s', indexrelid::regclass), ';'), '')
                        FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisvalid";
            let left: String = value(&mut client, left);
            run(&mut client, &left);
        }
    });
}

/// A page each, of more pages than the rows of are remembered.
#[test]
fn rows_that_there_is_no_memory_for() {
    const ROWS: i64 = 9000;
    let mut client = server().database("many_pages");
    run(
        &mut client,
        &format!(
            "CREATE TABLE t (x text, pad text);
             ALTER TABLE t ALTER pad SET STORAGE PLAIN;
             INSERT INTO t SELECT 'key ' || i, repeat('-', 6000) FROM generate_series(1, {ROWS}) AS i;
             SET maintenance_work_mem = '1MB'"
        ),
    );
    run(&mut client, "CREATE INDEX CONCURRENTLY t_x ON t USING bloom_filter (x)");
    assert_eq!(check(&mut client, "t_x"), ROWS);
    run(&mut client, "REINDEX INDEX CONCURRENTLY t_x");
    assert_eq!(check(&mut client, "t_x"), ROWS);
}

/// The expression of an index is evaluated once for each row that the index is given.
#[test]
fn no_row_is_given_twice() {
    let mut client = server().database("once");
    run(
        &mut client,
        "CREATE SEQUENCE calls;
         CREATE FUNCTION counted(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
             'BEGIN PERFORM nextval(''public.calls''); RETURN $1; END';
         CREATE TABLE t (x text);
         INSERT INTO t SELECT 'key ' || i FROM generate_series(1, 1000) AS i",
    );
    run(&mut client, "CREATE INDEX CONCURRENTLY t_x ON t USING bloom_filter (counted(x))");
    assert_eq!(value::<i64>(&mut client, "SELECT last_value FROM calls"), 1000);
    run(&mut client, "REINDEX INDEX CONCURRENTLY t_x");
    assert_eq!(value::<i64>(&mut client, "SELECT last_value FROM calls"), 2000);
    assert_eq!(check(&mut client, "t_x"), 1000);
}
