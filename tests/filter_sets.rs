//! Filter sets on a real server: many sessions at once, crashes, dumps, replicas, VACUUM.

mod common;

#[path = "filter_sets/clear.rs"]
mod clear;
#[path = "filter_sets/cold.rs"]
mod cold;
#[path = "filter_sets/copies.rs"]
mod copies;
#[path = "filter_sets/crash.rs"]
mod crash;
#[path = "filter_sets/creating.rs"]
mod creating;
#[path = "filter_sets/forgetting.rs"]
mod forgetting;
#[path = "filter_sets/growing.rs"]
mod growing;
#[path = "filter_sets/memory.rs"]
mod memory;
#[path = "filter_sets/policies.rs"]
mod policies;
#[path = "filter_sets/sessions.rs"]
mod sessions;
#[path = "filter_sets/storm.rs"]
mod storm;
#[path = "filter_sets/types.rs"]
mod types;

use common::samples::{KEY_KIND_SAMPLES, Sample, TYPES};
use common::standby::wait_until;
use common::{Random, Server, bound, run, value};
use postgres::Client;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        Server::start(
            "max_connections = 40\nmax_prepared_transactions = 20\ndeadlock_timeout = '50ms'\nwal_level = logical",
        )
    })
}

/// The variable's number, for longer runs.
fn setting(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} must be a number"))
    })
}

/// Waits until the session of this name, in the client's database, waits for a lock.
fn wait_for_waiter(client: &mut Client, name: &str) {
    let sql = format!(
        "SELECT count(*) = 1 FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = '{name}' AND wait_event_type = 'Lock'"
    );
    wait_until("a session waits", || value(client, &sql));
}

/// Adds elements and returns those that were new.
fn add_all(client: &mut impl postgres::GenericClient, set: &str, elements: &[i32]) -> Vec<i32> {
    try_add_all(client, set, elements).unwrap_or_else(|e| panic!("{set}: {e:?}"))
}

fn try_add_all(
    client: &mut impl postgres::GenericClient,
    set: &str,
    elements: &[i32],
) -> Result<Vec<i32>, postgres::Error> {
    client
        .query_one(&format!("SELECT bloom_set_add_all('{set}', $1::integer[])"), &[&elements])
        .map(|row| row.get(0))
}

/// Elements of every key kind: what is new, and what is found, is what the type's own `=` says: so few
/// elements have different hashes.
#[test]
fn elements_of_every_key_kind_behave_as_a_set() {
    let mut client = server().database("types");
    run(&mut client, TYPES);
    for (number, Sample { sql_type, ordinary_value, .. }) in KEY_KIND_SAMPLES.iter().enumerate() {
        let set = format!("set{number}");
        run(
            &mut client,
            &format!(
                "CREATE TABLE t{number} (n integer, x {sql_type});
                 INSERT INTO t{number} SELECT i, {ordinary_value} FROM generate_series(1, 300) AS i;
                 SELECT bloom_set_create('{set}', '{}', 500000, 1e-9)",
                sql_type.replace('\'', "''")
            ),
        );
        let distinct: i64 =
            value(&mut client, &format!("SELECT count(DISTINCT x) FROM t{number} WHERE n <= 200"));
        let batch = format!("ARRAY(SELECT x FROM t{number} WHERE n <= 200 ORDER BY n)");
        if sql_type.ends_with("[]") {
            // An array of arrays is one of more dimensions: they can be added one at a time.
            let one_by_one = format!(
                "SELECT count(*) FROM t{number} WHERE n <= 200 AND bloom_set_add('{set}', x)"
            );
            assert_eq!(value::<i64>(&mut client, &one_by_one), distinct, "{sql_type}");
            let found =
                format!("SELECT count(*) FROM t{number} WHERE bloom_set_contains('{set}', x)");
            assert_eq!(value::<i64>(&mut client, &found), 200, "{sql_type}");
            continue;
        }
        let checks = [
            format!("SELECT cardinality(bloom_set_add_all('{set}', {batch})) = {distinct}"),
            format!("SELECT cardinality(bloom_set_add_all('{set}', {batch})) = 0"),
            format!("SELECT bool_and(bloom_set_contains('{set}', x)) FROM t{number} WHERE n <= 200"),
            format!(
                "SELECT bool_and(bloom_set_contains('{set}', x) = EXISTS (SELECT FROM t{number} o WHERE n <= 200 AND o.x = t.x))
                 FROM t{number} t"
            ),
            format!("SELECT bloom_set_present('{set}', a) = ARRAY(SELECT x FROM t{number} WHERE n <= 200 ORDER BY n)
                 FROM (SELECT {batch} AS a) AS q"),
            format!("SELECT count(*) = 0 FROM t{number} t WHERE n > 200 AND bloom_set_add('{set}', x)
                 AND EXISTS (SELECT FROM t{number} o WHERE o.n < t.n AND o.x = t.x)"),
            format!("SELECT bloom_set_absent('{set}', ARRAY(SELECT x FROM t{number})) = '{{}}'"),
            format!("SELECT element = '{}'::regtype AND elements = (SELECT count(DISTINCT x) FROM t{number})
                 FROM bloom_set_info('{set}')", sql_type.replace('\'', "''")),
            format!("SELECT cardinality(bloom_set_remove_all('{set}', {batch})) = {distinct}"),
            format!("SELECT count(*) = 0 FROM t{number} WHERE bloom_set_remove('{set}', x) AND n <= 200"),
        ];
        for check in checks {
            assert_eq!(
                value::<Option<bool>>(&mut client, &check),
                Some(true),
                "{sql_type}: {check}"
            );
        }
    }
}

/// What a set must answer, and how many of its answers there were.
struct Oracle {
    committed: BTreeSet<i32>,
    savepoint: Option<BTreeSet<i32>>,
    now: BTreeSet<i32>,
}

/// Random calls, transactions and savepoints, against a set of Rust. So few elements are kept as
/// they are.
#[test]
fn random_histories_agree_with_a_set() {
    let mut client = server().database("histories");
    let mut random = Random(19);
    run(&mut client, "SELECT bloom_set_create('s', 'integer', 1000000000, 1e-9)");
    let mut oracle = Oracle {
        committed: BTreeSet::new(),
        savepoint: None,
        now: BTreeSet::new(),
    };
    run(&mut client, "BEGIN");
    for _ in 0..setting("SET_CALLS", 1500) {
        let elements: Vec<i32> = (0..random.below(40)).map(|_| random.below(3000) as i32).collect();
        match random.below(11) {
            0..=2 => {
                let expected: Vec<i32> =
                    elements.iter().copied().filter(|&x| oracle.now.insert(x)).collect();
                assert_eq!(add_all(&mut client, "s", &elements), expected);
            }
            3 => {
                let x = random.below(3000) as i32;
                let is_new: bool = value(&mut client, &format!("SELECT bloom_set_add('s', {x})"));
                assert_eq!(is_new, oracle.now.insert(x));
            }
            9 => {
                let expected: Vec<i32> =
                    elements.iter().copied().filter(|x| oracle.now.remove(x)).collect();
                let sql = "SELECT bloom_set_remove_all('s', $1::integer[])";
                assert_eq!(
                    client
                        .query_one(sql, &[&elements])
                        .expect("a set")
                        .get::<_, Vec<i32>>(0),
                    expected
                );
            }
            10 => {
                let x = random.below(3000) as i32;
                let was_there: bool =
                    value(&mut client, &format!("SELECT bloom_set_remove('s', {x})"));
                assert_eq!(was_there, oracle.now.remove(&x));
            }
            4 | 5 => {
                let row = client
                    .query_one(
                        "SELECT bloom_set_present('s', $1::int[]), bloom_set_absent('s', $1::int[])",
                        &[&elements],
                    )
                    .expect("a set can be asked");
                let (there, not): (Vec<i32>, Vec<i32>) =
                    elements.iter().partition(|x| oracle.now.contains(x));
                assert_eq!((row.get::<_, Vec<i32>>(0), row.get::<_, Vec<i32>>(1)), (there, not));
            }
            6 if oracle.savepoint.is_none() => {
                run(&mut client, "SAVEPOINT s");
                oracle.savepoint = Some(oracle.now.clone());
            }
            6 => {
                let undo = random.below(2) == 0;
                let before = oracle.savepoint.take().expect("there is one");
                if undo {
                    oracle.now = before;
                }
                run(&mut client, if undo { "ROLLBACK TO s; RELEASE s" } else { "RELEASE s" });
            }
            7 => {
                let undo = random.below(2) == 0;
                if undo {
                    oracle.now = oracle.committed.clone();
                } else {
                    oracle.committed = oracle.now.clone();
                }
                oracle.savepoint = None;
                run(&mut client, if undo { "ROLLBACK; BEGIN" } else { "COMMIT; BEGIN" });
            }
            _ => {
                let info = client
                    .query_one("SELECT elements, current_fpr < 1e-9 FROM bloom_set_info('s')", &[]);
                let row = info.expect("a set can be described");
                assert_eq!(
                    (row.get::<_, f64>(0), row.get::<_, bool>(1)),
                    (oracle.now.len() as f64, true)
                );
            }
        }
    }
    assert!(oracle.now.len() > 500);
}

/// In an array, elements with equal bits are as in calls one by one: the first is new, and the
/// others are there. So who removes only what was new to him removes nobody else's.
#[test]
fn of_elements_that_the_set_cannot_tell_apart_one_is_new() {
    let mut client = server().database("apart");
    run(&mut client, "SELECT bloom_set_create('s', 'integer', 1000, 0.1)");
    let all: Vec<i32> = (0..3000).collect();
    let new = add_all(&mut client, "s", &all);
    let elements: f64 = value(&mut client, "SELECT elements FROM bloom_set_info('s')");
    assert!(new.len() < all.len() && new.len() as f64 == elements, "{} of {elements}", new.len());
    let (gone, kept) = new.split_at(new.len() / 2);
    let row = client
        .query_one("SELECT bloom_set_remove_all('s', $1::integer[])", &[&gone])
        .expect("they are removed");
    assert_eq!(row.get::<_, Vec<i32>>(0), gone);
    let absent = client
        .query_one("SELECT bloom_set_absent('s', $1::integer[])", &[&kept])
        .expect("a set can be asked");
    assert!(absent.get::<_, Vec<i32>>(0).is_empty());
}

/// At its capacity a set has its rate, as measured with elements that are not in it, and says so.
#[test]
fn the_rate_is_as_promised() {
    const PROBES: usize = 200_000;
    let mut client = server().database("rates");
    for (capacity, fpr) in [(100_000, 0.01), (30_000, 0.001)] {
        run(
            &mut client,
            &format!(
                "DROP TABLE IF EXISTS s; SELECT bloom_set_create('s', 'integer', {capacity}, {fpr})"
            ),
        );
        let elements: Vec<i32> = (0..capacity).collect();
        let new = elements
            .chunks(5_000)
            .map(|batch| add_all(&mut client, "s", batch).len())
            .sum::<usize>();
        // While a set fills, its rate is lower than in the end.
        let taken = capacity as usize - new;
        assert!(
            (taken as f64) < fpr * f64::from(capacity),
            "{taken} of {capacity} were not returned"
        );
        let found: i64 = value(
            &mut client,
            &format!(
                "SELECT cardinality(bloom_set_present('s', ARRAY(SELECT generate_series({capacity}, {capacity} + {PROBES} - 1))))::bigint"
            ),
        );
        let row = client
            .query_one("SELECT current_fpr, elements, overfull FROM bloom_set_info('s')", &[]);
        let row = row.expect("a set can be described");
        let (rate, estimated): (f64, f64) = (row.get(0), row.get(1));
        println!(
            "capacity {capacity} at {fpr}: {found} of {PROBES} found, rate {rate}, {estimated:.0} elements"
        );
        assert!(
            (found as f64 - PROBES as f64 * rate).abs() < bound(PROBES as f64, rate),
            "{found} at {rate}"
        );
        assert!(rate < fpr && rate > fpr * 0.4);
        assert!((estimated / f64::from(capacity) - 1.0).abs() < 0.02);
        assert!(!row.get::<_, bool>(2));
    }
}

/// Rows stay where they are: single adds leave the table at twice the size of a new one at most,
/// whoever adds and vacuums in the meantime. On a server of its own: as long as another transaction
/// that has changed something is open, anywhere, no old row is removed.
#[test]
fn a_set_does_not_bloat() {
    const SESSIONS: usize = 4;
    let adds = setting("SET_ADDS", 16_000);
    let server = Server::start("");
    let mut client = server.database("bloat");
    let capacity = adds.max(1_000_000);
    run(&mut client, &format!("SELECT bloom_set_create('s', 'bigint', {capacity})"));
    // Dense from the start.
    for from in (0..capacity / 3).step_by(20_000) {
        run(
            &mut client,
            &format!(
                "SELECT count(bloom_set_add_all('s', ARRAY(SELECT generate_series({from}, {from} + 19999)::bigint)))"
            ),
        );
    }
    let filled: i64 = value(&mut client, "SELECT pg_total_relation_size('s')");
    println!("{filled} bytes once it is dense");
    let mut pgbench = server.program("pgbench");
    let script = server.dir().join("adds.sql");
    std::fs::write(
        &script,
        "\\set x random(1, 2000000000)\nSELECT bloom_set_add('s', :x::bigint);\n",
    )
    .expect("can be written");
    let each = adds / SESSIONS;
    pgbench.arg("-f").arg(&script).args([
        "-n",
        "-M",
        "prepared",
        "-c",
        &SESSIONS.to_string(),
        "-j",
        "2",
        "-t",
        &each.to_string(),
        "bloat",
    ]);
    thread::scope(|scope| {
        let adding = scope.spawn(move || common::output(&mut pgbench));
        while !adding.is_finished() {
            run(&mut client, "VACUUM s");
            thread::sleep(Duration::from_millis(300));
        }
        adding.join().expect("all are added");
    });
    let row = client
        .query_one(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 's'",
            &[],
        )
        .expect("there are statistics");
    println!(
        "{} updates, {} of them within their pages",
        row.get::<_, i64>(0),
        row.get::<_, i64>(1)
    );
    run(
        &mut client,
        "CREATE TABLE fresh (LIKE s INCLUDING ALL) WITH (fillfactor = 70); INSERT INTO fresh SELECT * FROM s",
    );
    let (used, fresh): (i64, i64) = (
        value(&mut client, "SELECT pg_total_relation_size('s')"),
        value(&mut client, "SELECT pg_total_relation_size('fresh')"),
    );
    println!("{adds} single adds: {used} bytes, {fresh} in a new table");
    assert!(used <= 2 * fresh, "{used} bytes, {fresh} in a new table");
}

/// Sizes of a set of a million elements: at first, and after each of two times as many batches of
/// so many sessions, with VACUUM between them only.
fn sizes(database: &str, sessions: usize, batches: usize, elements: usize) -> [f64; 3] {
    let server = Server::start("autovacuum = off");
    let mut client = server.database(database);
    run(&mut client, "SELECT bloom_set_create('s', 'integer', 4000000)");
    run(
        &mut client,
        "SELECT count(bloom_set_add_all('s', ARRAY(SELECT generate_series(-1000000, -1))))",
    );
    let mut size = || {
        let size: i64 = value(&mut client, "SELECT pg_relation_size('s')");
        run(&mut client, "VACUUM s");
        size as f64
    };
    let add = |first: usize| {
        thread::scope(|scope| {
            for session in 0..sessions {
                let mut client = server.connect(database);
                scope.spawn(move || {
                    let mut next = (first + session * batches * elements) as i32;
                    for _ in 0..batches {
                        let batch: Vec<i32> = (next..).take(elements).collect();
                        add_all(&mut client, "s", &batch);
                        next += elements as i32;
                    }
                });
            }
        });
    };
    let filled = size();
    add(0);
    let once = size();
    add(sessions * batches * elements);
    let sizes = [filled, once, size()];
    println!(
        "{sizes:?} bytes at first, after {} batches of {elements}, and after as many",
        sessions * batches
    );
    sizes
}

/// A quarter more elements, by batches that each change one row in nine: 1.3 times the size, since
/// old versions are removed from their pages, and a row that is split stays in its page.
#[test]
fn large_batches_leave_few_versions() {
    let [filled, once, twice] = sizes("batches", 1, setting("SET_BATCHES", 40), 500);
    assert!(once <= 1.5 * filled && twice <= 1.25 * once);
}

/// While a call waits for others, PostgreSQL keeps all versions since it began: large batches of
/// eight sessions, which all have rows in common, make a table 13 times as large. What VACUUM finds
/// there is enough from then on.
#[test]
fn large_batches_of_many_sessions_leave_no_more_versions_from_time_to_time() {
    let [filled, once, twice] = sizes("sessions", 8, setting("SET_BATCHES", 12), 500);
    assert!(once <= 25.0 * filled && twice <= 1.5 * once);
}

/// The same with smaller batches: 2.2 times the size.
#[test]
fn batches_of_many_sessions_leave_few_versions() {
    let [filled, once, twice] = sizes("hundred", 8, setting("SET_BATCHES", 30), 100);
    assert!(once <= 8.0 * filled && twice <= 1.5 * once);
}

/// Small batches in a small set: its few rows change all the time.
#[test]
fn small_batches_of_many_sessions_leave_few_versions() {
    const SESSIONS: usize = 8;
    const ELEMENTS: usize = 20;
    let batches = setting("SET_BATCHES", 60);
    let server = Server::start("autovacuum = off");
    let mut client = server.database("small");
    run(&mut client, "SELECT bloom_set_create('s', 'integer', 10000)");
    run(
        &mut client,
        "SELECT count(bloom_set_add_all('s', ARRAY(SELECT generate_series(-5000, -1))))",
    );
    run(&mut client, "VACUUM s");
    let filled: i64 = value(&mut client, "SELECT pg_relation_size('s')");
    thread::scope(|scope| {
        for session in 0..SESSIONS {
            let mut client = server.connect("small");
            scope.spawn(move || {
                let mut random = Random(session as u64);
                for _ in 0..batches {
                    let batch: Vec<i32> =
                        (0..ELEMENTS).map(|_| random.below(10_000) as i32).collect();
                    add_all(&mut client, "s", &batch);
                }
            });
        }
    });
    let used: i64 = value(&mut client, "SELECT pg_relation_size('s')");
    println!("{filled} bytes, {used} after {} batches", SESSIONS * batches);
    // A set of 14 rows grew 180-fold. How many versions are there at once depends on how sessions
    // take turns.
    assert!(used <= 30 * filled, "{filled} bytes, {used} after the batches");
}

/// A connection whose name is the application's, so that it can be found among others.
fn named(database: &str, name: &str) -> Client {
    let mut client = server().connect(database);
    run(&mut client, &format!("SET application_name = '{name}'"));
    client
}
