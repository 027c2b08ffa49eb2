//! Writers, readers and somebody who vacuums and rebuilds, all at once on one table, until the
//! server crashes.

use crate::common::asking::{Answers, agree, any, check, each, indexes};
use crate::common::standby::{StopsWhenDropped, is_death, wait_until};
use crate::common::{Random, Server, run, value};
use crate::{random, times};
use postgres::{Client, Error};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Writers at once.
const WRITERS: usize = 3;
/// Crashes, and after the last one a time without.
const CRASHES: usize = 3;
/// Statements of all writers before the first crash; each later one comes after more.
const STATEMENTS: usize = 70;
/// Keys that several writers use, so that bits they need are set by somebody who hasn't committed.
const SHARED_KEYS: usize = 60;

const TABLE: &str = "
    CREATE TABLE t (id bigint NOT NULL, writer integer, x text, n integer NOT NULL DEFAULT 0, pad text)
        WITH (fillfactor = 80);
    ALTER TABLE t ALTER pad SET STORAGE PLAIN;
    CREATE UNIQUE INDEX t_id ON t (id);
    CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 2);
    CREATE INDEX t_like ON t USING bloom_filter ((x || '') text_ngram_ops) WITH (pages_per_range = 2);
    CREATE INDEX t_words ON t USING bloom_filter (to_tsvector('simple', x));";

/// A statement of a writer.
fn change(random: &mut Random, writer: usize, next: &mut usize) -> String {
    let mut insert = |random: &mut Random, rows: usize, pad: usize| {
        let first = *next * WRITERS + writer;
        *next += rows;
        format!(
            "INSERT INTO t SELECT {first} + {WRITERS} * i::bigint, {writer}, CASE (i + {0}) % 3 WHEN 0 THEN 'shared ' || (i + {0}) % {SHARED_KEYS}
                ELSE 'own ' || {first} + {WRITERS} * i END, 0, repeat('-', {pad}) FROM generate_series(0, {rows} - 1) AS i",
            random.below(1000)
        )
    };
    let mine = |random: &mut Random, next: usize| {
        format!(
            "writer = {writer} AND id > {}",
            random.below(next * WRITERS + 1).max(next * WRITERS * 7 / 8)
        )
    };
    match random.below(12) {
        0..3 => insert(random, 1, 10),
        3..5 => insert(random, 100, 50),
        // Wide rows, a page for each three of them: new ranges, and before long new tiles.
        5 => insert(random, 240, 2500),
        6 => format!("BEGIN; {}; ROLLBACK", insert(random, 60, 900)),
        7 => format!(
            "BEGIN; {}; SAVEPOINT s; {}; ROLLBACK TO s; {}; COMMIT",
            insert(random, 3, 10),
            insert(random, 20, 10),
            insert(random, 3, 10)
        ),
        8 => format!("UPDATE t SET n = n + 1 WHERE {}", mine(random, *next)),
        9 => format!("UPDATE t SET x = x || '!' WHERE {} AND length(x) < 20", mine(random, *next)),
        10 => format!(
            "UPDATE t SET x = 'shared ' || id % {SHARED_KEYS} WHERE {}",
            mine(random, *next)
        ),
        _ => format!("DELETE FROM t WHERE {}", mine(random, *next)),
    }
}

/// Writes until told to stop, or the server is gone.
fn write(
    client: &mut Client,
    writer: usize,
    next: &mut usize,
    seed: u64,
    done: &AtomicBool,
    statements: &AtomicUsize,
) -> Result<(), Error> {
    let mut random = Random(seed);
    while !done.load(Ordering::Relaxed) {
        client.batch_execute(&change(&mut random, writer, next))?;
        statements.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Vacuums and rebuilds until told to stop, or the server is gone.
fn rebuild(client: &mut Client, seed: u64, done: &AtomicBool) -> Result<(), Error> {
    const DROP: &str = "DROP INDEX CONCURRENTLY IF EXISTS t_second";
    const CREATE: &str =
        "CREATE INDEX CONCURRENTLY t_second ON t USING bloom_filter (x) WITH (pages_per_range = 1)";
    let mut random = Random(seed);
    while !done.load(Ordering::Relaxed) {
        let of_several = [
            "VACUUM t",
            "CHECKPOINT",
            "REINDEX INDEX CONCURRENTLY t_x",
            "REINDEX INDEX t_x",
            "VACUUM FULL t",
            "CLUSTER t USING t_id",
            DROP,
        ];
        let sql = *random.pick(&of_several);
        client.batch_execute(sql)?;
        if sql == DROP {
            client.batch_execute(CREATE)?;
        }
    }
    Ok(())
}

/// What readers have asked.
#[derive(Default)]
struct Asked {
    questions: AtomicUsize,
    by_index: AtomicUsize,
    /// Rows that were found.
    rows: AtomicUsize,
}

/// Asks until told to stop, or the server is gone.
fn read(client: &mut Client, seed: u64, done: &AtomicBool, answers: &Asked) -> Result<(), Error> {
    let mut random = Random(seed);
    while !done.load(Ordering::Relaxed) {
        let own = format!(
            "SELECT quote_literal(x) FROM t WHERE id % 101 = {} ORDER BY id DESC LIMIT 20",
            random.below(101)
        );
        let mut keys: Vec<String> = client.query(&own, &[])?.iter().map(|row| row.get(0)).collect();
        keys.extend((0..10).map(|_| format!("'shared {}'", random.below(SHARED_KEYS + 5))));
        keys.extend((0..5).map(|_| format!("'own -{}'", random.below(1000))));
        for sql in [each("t", "x", "", &keys), any("t", "x", "", &keys)] {
            let found = Answers::of(client, &sql)?;
            found.assert_same(&sql);
            answers.rows.fetch_add(found.by_scan.len(), Ordering::Relaxed);
            // What was just built may be for later snapshots only.
            answers.questions.fetch_add(1, Ordering::Relaxed);
            answers
                .by_index
                .fetch_add(usize::from(found.used("t_")), Ordering::Relaxed);
        }
        check_index(client)?;
    }
    Ok(())
}

/// Checks the index `t_x`. A name stands for the index that has it when the call begins: if
/// `REINDEX CONCURRENTLY` then gives the name to a new one, the call fails with 55000, because the
/// old one isn't valid any more. The next call is for the new one.
fn check_index(client: &mut Client) -> Result<(), Error> {
    let is_replaced = |error: &Error| {
        let replaced = "index \"t_x_ccold\" is not valid";
        error.as_db_error().is_some_and(|error| error.message() == replaced)
    };
    match client.query("SELECT bloom_index_check('t_x')", &[]) {
        Err(error) if is_replaced(&error) => Ok(()),
        result => result.map(drop),
    }
}

/// What ends without an error, or with the server.
fn ended(result: Result<(), Error>, crashes: bool) {
    if let Err(error) = result {
        assert!(crashes && is_death(&error), "{error:?}");
    }
}

/// One time between crashes. `next` is how many rows each writer has made.
fn round(server: &Server, seed: u64, until: Until, next: &mut [usize; WRITERS], answers: &Asked) {
    let (done, written) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    let Until { statements, crashes } = until;
    let connect = || server.connect("sessions");
    thread::scope(|scope| {
        let stop = StopsWhenDropped(done);
        let mut at_work = Vec::new();
        for (n, next) in next.iter_mut().enumerate() {
            let (mut client, seed) = (connect(), seed + n as u64);
            at_work.push(
                scope.spawn(move || {
                    ended(write(&mut client, n, next, seed, done, written), crashes)
                }),
            );
        }
        for n in 0..2 {
            let mut client = connect();
            at_work
                .push(scope.spawn(move || {
                    ended(read(&mut client, seed + 10 + n, done, answers), crashes)
                }));
        }
        let mut client = connect();
        at_work.push(scope.spawn(move || ended(rebuild(&mut client, seed + 20, done), crashes)));
        wait_until("the writers write", || {
            written.load(Ordering::Relaxed) >= statements
                || at_work.iter().any(|session| session.is_finished())
        });
        if crashes {
            server.kill9();
        }
        drop(stop);
    });
}

/// What ends a time.
struct Until {
    /// So many statements of writers.
    statements: usize,
    /// Whether by a crash.
    crashes: bool,
}

#[test]
fn sessions_at_once_hide_no_row() {
    let server = Server::start(
        "autovacuum_naptime = 1s\nmax_wal_size = 64MB\nmin_parallel_table_scan_size = 0\ndeadlock_timeout = 100ms",
    );
    let mut client = server.database("sessions");
    let mut random = random(2);
    run(&mut client, TABLE);
    let (mut next, answers, mut checked) = ([1; WRITERS], Asked::default(), 0);
    let rounds = times(CRASHES) + 1;
    for n in 1..=rounds {
        let crashes = n < rounds;
        let until = Until { statements: STATEMENTS * (1 + n % 4), crashes };
        round(&server, random.bits() >> 8, until, &mut next, &answers);
        if crashes {
            server.restart();
        }
        client = server.connect("sessions");
        // What a crash interrupts leaves invalid indexes.
        run(&mut client, "DROP INDEX IF EXISTS t_second, t_x_ccnew, t_x_ccold");
        for index in indexes(&mut client, "t") {
            checked += check(&mut client, &index);
        }
        let everything =
            each("t", "x", "", &["'shared 1'".into(), "'shared 2'".into(), "'own 7'".into()]);
        agree(&mut client, "t_x", &everything);
        let like = "SELECT id::text FROM t WHERE x || '' LIKE '%hared 1%' OR x || '' ILIKE '%WN 7%' ORDER BY id";
        agree(&mut client, "t_like", like);
    }
    let rows: i64 = value(&mut client, "SELECT count(*) FROM t");
    let ranges: i64 = value(&mut client, "SELECT pg_relation_size('t') / 8192 / 2");
    let Asked { questions, by_index, rows: found } = answers;
    let (questions, by_index, found) =
        (questions.into_inner(), by_index.into_inner(), found.into_inner());
    println!("{} crashes, {rows} rows in {ranges} ranges, {checked} rows checked", rounds - 1);
    println!("{questions} questions, {by_index} of them by the index, {found} rows found");
    assert!(by_index * 2 > questions);
}
