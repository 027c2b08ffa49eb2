//! Sessions that are cancelled, time out and go back, while the table and its indexes are made
//! again; sessions that ask before they add, under SERIALIZABLE.

use crate::common::{Random, Server, bound, run, state_of, value};
use crate::{server, setting, try_add_all};
use pg_bloom_core::hash;
use pg_bloom_core::set::tree;
use postgres::{Client, GenericClient, IsolationLevel, NoTls};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const SESSIONS: usize = 6;

/// A set that they add to.
struct Storm {
    database: &'static str,
    /// What follows the type of its elements where it is made.
    made_for: &'static str,
    /// The share of elements that may be taken for old ones.
    fpr: f64,
    /// Elements that all sessions choose from.
    universe: usize,
    /// Elements of a batch.
    sizes: &'static [usize],
    transactions: usize,
    /// Whether they remove elements as well. Then rows are joined, too, and no element may be taken
    /// for another.
    removes: bool,
    /// Whether some transactions call twice, since they go back to a savepoint. Without them
    /// nothing deadlocks.
    calls_twice: bool,
}

/// What a session may be told: cancelled, timed out, or changed since its snapshot was taken; and
/// if some go back to savepoints, so that they call twice, 40P01. Whoever waits for a row of what
/// was undone waits for the end of that transaction, which may itself wait: any of these sessions
/// can be the one that finds the deadlock.
const EXPECTED: [&str; 3] = ["57014", "40001", "40P01"];
/// Each makes something again, and may do so at any time.
const CHANGES: [&str; 10] = [
    "REINDEX TABLE CONCURRENTLY s",
    "VACUUM s",
    "VACUUM FULL s",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS by_hashes ON s (hashes)",
    "REINDEX INDEX CONCURRENTLY s_pkey",
    "CREATE INDEX IF NOT EXISTS by_hash ON s USING hash (hashes)",
    "CLUSTER s USING s_pkey",
    "DROP INDEX CONCURRENTLY IF EXISTS by_hashes",
    "DROP INDEX IF EXISTS by_hash",
    "ALTER TABLE s ALTER hashes SET STORAGE EXTERNAL",
];

/// What the transactions of a session did that were committed.
#[derive(Default)]
struct Committed {
    added: BTreeSet<i32>,
    /// How often each element was new, less how often it was removed.
    got: BTreeMap<i32, i64>,
    failed: usize,
}

/// Adds or removes elements, and returns those that were new, or that were there.
fn change(
    client: &mut impl GenericClient,
    removes: bool,
    batch: &[i32],
) -> Result<Vec<i32>, postgres::Error> {
    if !removes {
        return try_add_all(client, "s", batch);
    }
    client
        .query_one("SELECT bloom_set_remove_all('s', $1::integer[])", &[&batch])
        .map(|row| row.get(0))
}

/// One transaction: whether it is to be committed, and what was new in it.
fn transaction(
    client: &mut Client,
    random: &mut Random,
    removes: bool,
    batch: &[i32],
    calls_twice: bool,
) -> Result<Option<Vec<i32>>, postgres::Error> {
    let levels = [
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::Serializable,
    ];
    let level = if random.below(8) == 0 {
        *random.pick(&levels)
    } else {
        IsolationLevel::ReadCommitted
    };
    let mut transaction = client.build_transaction().isolation_level(level).start()?;
    if random.below(6) == 0 {
        transaction
            .batch_execute(&format!("SET LOCAL statement_timeout = {}", 1 + random.below(10)))?;
    }
    if random.below(6) == 0 && calls_twice {
        let mut savepoint = transaction.savepoint("undone")?;
        change(&mut savepoint, removes, batch)?;
        savepoint.rollback()?;
    }
    let new = change(&mut transaction, removes, batch)?;
    if random.below(6) == 0 {
        // In two phases, while others wait.
        let name = format!("t{}", random.bits());
        transaction.batch_execute(&format!("PREPARE TRANSACTION '{name}'"))?;
        drop(transaction);
        let undo = random.below(3) == 0;
        let end = format!("{} PREPARED '{name}'", if undo { "ROLLBACK" } else { "COMMIT" });
        // It may be cancelled until it is done.
        while client
            .batch_execute(&end)
            .is_err_and(|error| state_of(&error) != "42704")
        {}
        return Ok((!undo).then_some(new));
    }
    if random.below(5) == 0 {
        transaction.rollback().map(|()| None)
    } else {
        transaction.commit().map(|()| Some(new))
    }
}

/// Adds batches, and says what became of them. A transaction that fails is one that did nothing.
fn work(server: &Server, storm: &Storm, seed: u64, transactions: usize) -> Committed {
    let mut client = server.connect(storm.database);
    let mut random = Random(seed);
    let mut committed = Committed::default();
    for _ in 0..transactions {
        let elements = *random.pick(storm.sizes);
        let batch: Vec<i32> = (0..elements).map(|_| random.below(storm.universe) as i32).collect();
        let removes = storm.removes && random.below(2) == 0;
        match transaction(&mut client, &mut random, removes, &batch, storm.calls_twice) {
            Ok(None) => {}
            Ok(Some(new)) => {
                let asked: BTreeSet<i32> = batch.iter().copied().collect();
                assert!(new.iter().all(|x| asked.contains(x)));
                for x in new {
                    *committed.got.entry(x).or_default() += if removes { -1 } else { 1 };
                }
                if !removes {
                    committed.added.extend(asked);
                }
            }
            Err(error) => {
                assert!(
                    EXPECTED[..2 + usize::from(storm.calls_twice)]
                        .contains(&state_of(&error).as_str()),
                    "{error:?}"
                );
                committed.failed += 1;
                // A ROLLBACK may be cancelled as well.
                while client.batch_execute("ROLLBACK").is_err() {}
            }
        }
    }
    committed
}

#[test]
fn nothing_is_lost_or_given_twice_while_the_table_is_made_again_and_sessions_are_cancelled() {
    let mut client = weather(&Storm {
        database: "storm",
        made_for: "20000, 1e-6",
        fpr: 1e-6,
        universe: 20_000,
        sizes: &[1, 5, 50, 300],
        transactions: 100,
        removes: false,
        calls_twice: true,
    });
    // Each index has all rows.
    for scan in ["seqscan", "indexscan"] {
        run(
            &mut client,
            &format!("RESET ALL; SET enable_{scan} = off; SET enable_bitmapscan = off"),
        );
        let all = "SELECT count(*) = max(rows) FROM bloom_set_info('s'), generate_series(1, 5000) AS i, s WHERE bucket = i";
        assert!(value::<bool>(&mut client, all), "{scan}");
    }
}

/// The same while rows are split, by arrays of every size.
#[test]
fn nothing_is_lost_or_given_twice_while_a_set_grows() {
    let mut client = weather(&Storm {
        database: "growing",
        made_for: "fpr => 1e-6",
        fpr: 1e-6,
        universe: 600_000,
        sizes: &[1, 50, 3000, 40_000],
        transactions: 30,
        removes: false,
        calls_twice: false,
    });
    // How many elements are added, and so how many rows there are, depends on how many transactions
    // are cancelled. A set begins with 1,024 rows.
    let rows: i32 = value(&mut client, "SELECT rows FROM bloom_set_info('s')");
    assert!(rows > 1024, "no row was split");
}

/// The same of a set that forgets, but nothing so soon.
#[test]
fn nothing_is_lost_or_given_twice_in_a_set_that_forgets() {
    weather(&Storm {
        database: "forgetting",
        made_for: "35000, 1e-4, '10 days', true",
        fpr: 1e-4,
        universe: 30_000,
        sizes: &[1, 50, 300, 2000],
        transactions: 50,
        removes: false,
        calls_twice: true,
    });
}

/// Elements are removed as well, and rows joined: those added and not removed are there, by the
/// truth table.
#[test]
fn nothing_is_lost_or_given_twice_while_elements_are_removed_and_rows_joined() {
    weather(&Storm {
        database: "removing",
        made_for: "1000000000, 1e-9",
        fpr: 0.0,
        universe: 250_000,
        sizes: &[1, 50, 3000, 100_000],
        transactions: 30,
        removes: true,
        calls_twice: false,
    });
}

/// One of those at work, also if it fails.
struct Working<'a>(&'a AtomicUsize);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds to a set from many sessions, and checks it. Returns a client for its database.
fn weather(storm: &Storm) -> Client {
    let server = server();
    let mut client = server.database(storm.database);
    run(&mut client, &format!("SELECT bloom_set_create('s', 'integer', {})", storm.made_for));
    let at_work = AtomicUsize::new(SESSIONS);
    let (done, changes) = thread::scope(|scope| {
        let at_work = &at_work;
        let workers: Vec<_> = (0..SESSIONS)
            .map(|session| {
                scope.spawn(move || {
                    let _working = Working(at_work);
                    work(
                        server,
                        storm,
                        session as u64,
                        setting("SET_TRANSACTIONS", storm.transactions),
                    )
                })
            })
            .collect();
        let changer = scope.spawn(move || {
            let mut client = server.connect(storm.database);
            let changed = CHANGES
                .iter()
                .cycle()
                .take_while(|_| at_work.load(Ordering::Relaxed) > 0);
            let mut both = |change: &str| {
                run(&mut client, change);
                run(&mut client, "SELECT bloom_set_expire('s')");
            };
            changed.map(|change| both(change)).count()
        });
        let mut random = Random(77);
        while at_work.load(Ordering::Relaxed) > 0 {
            thread::sleep(Duration::from_millis(20 + random.below(100) as u64));
            let cancel = format!(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = '{}'
                 AND query LIKE '%bloom\\_set\\_%\\_all%' AND pid <> pg_backend_pid() LIMIT 1",
                storm.database
            );
            run(&mut client, &cancel);
        }
        let done: Vec<Committed> = workers
            .into_iter()
            .map(|worker| worker.join().expect("a session ends"))
            .collect();
        (done, changer.join().expect("everything can be made again"))
    });
    let added: BTreeSet<i32> = done.iter().flat_map(|done| &done.added).copied().collect();
    let mut given: BTreeMap<i32, i64> = BTreeMap::new();
    for (&x, &times) in done.iter().flat_map(|done| &done.got) {
        *given.entry(x).or_default() += times;
    }
    assert!(
        given.values().all(|times| (0..=1).contains(times)),
        "an element was new for two sessions"
    );
    given.retain(|_, times| *times == 1);
    let failed: usize = done.iter().map(|done| done.failed).sum();
    println!(
        "{} elements; {failed} transactions failed; {changes} times something was made again",
        added.len()
    );
    if storm.removes {
        let all: Vec<i32> = (0..storm.universe as i32).collect();
        let there = client.query_one("SELECT bloom_set_present('s', $1::integer[])", &[&all]);
        let there: Vec<i32> = there.expect("a set can be asked").get(0);
        assert!(
            there.iter().eq(given.keys()),
            "{} are there, {} should be",
            there.len(),
            given.len()
        );
        let elements: f64 = value(&mut client, "SELECT elements FROM bloom_set_info('s')");
        assert_eq!(elements, given.len() as f64);
        return client;
    }
    let taken = added.len() - given.len();
    assert!(
        (taken as f64) <= added.len() as f64 * storm.fpr + bound(added.len() as f64, storm.fpr),
        "{taken} were lost"
    );
    let added: Vec<i32> = added.into_iter().collect();
    let lost =
        client.query_one("SELECT cardinality(bloom_set_absent('s', $1::integer[]))", &[&added]);
    assert_eq!(lost.expect("a set can be asked").get::<_, i32>(0), 0);
    client
}

/// Two sessions ask for an element each, and add the one that the other asked for. One after the
/// other, the second would have found its element: so not both are committed.
#[test]
fn serializable_sessions_that_ask_and_add_crosswise_are_not_both_committed() {
    let mut client = server().database("crosswise");
    run(&mut client, "SELECT bloom_set_create('s', 'integer', 100000)");
    let url = server().dir().to_str().expect("a path of ASCII").to_owned();
    let connect = || {
        let mut config = postgres::Config::new();
        config
            .host_path(&url)
            .user("postgres")
            .dbname("crosswise")
            .connect(NoTls)
            .expect("can connect")
    };
    let (mut one, mut other) = (connect(), connect());
    let asked = [
        "SELECT bloom_set_contains('s', $1::integer)",
        "SELECT cardinality(bloom_set_present('s', ARRAY[$1::integer])) > 0",
        "SELECT elements > 1e9 OR $1::integer < 0 FROM bloom_set_info('s')",
    ];
    for (round, ask) in asked.iter().cycle().take(30).enumerate() {
        let (a, b) = (2 * round as i32, 2 * round as i32 + 1);
        let level = IsolationLevel::Serializable;
        let mut first = one
            .build_transaction()
            .isolation_level(level)
            .start()
            .expect("can begin");
        let mut second = other
            .build_transaction()
            .isolation_level(level)
            .start()
            .expect("can begin");
        for (transaction, x) in [(&mut first, a), (&mut second, b)] {
            assert!(!transaction.query_one(*ask, &[&x]).expect("can ask").get::<_, bool>(0));
        }
        // Neither waits for the other, unless both elements have one row.
        let row =
            |x: i32| tree::covering(hash::hash(&i64::from(x).to_le_bytes()), tree::FIRST_DEPTH);
        if row(a) == row(b) {
            continue;
        }
        let mut results = vec![try_add_all(&mut first, "s", &[b]).map(drop)];
        results.push(try_add_all(&mut second, "s", &[a]).map(drop));
        results.push(first.commit());
        results.push(second.commit());
        let failures: Vec<String> = results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .map(state_of)
            .collect();
        assert!(failures.iter().any(|state| state == "40001"), "{ask}: {failures:?}");
        // After an error COMMIT undoes: it is no error of its own.
        assert!(
            failures.iter().all(|state| state == "40001" || state == "25P02"),
            "{ask}: {failures:?}"
        );
    }
}
