//! Eight sessions that add overlapping batches and sometimes roll back, and a server that is killed
//! while they do.

use crate::common::{Random, Server, bound, column, rows, run, value};
use crate::setting;
use postgres::{Client, Config, NoTls};
use std::path::Path;
use std::thread;
use std::time::Duration;

const SESSIONS: usize = 8;
/// Elements that all of them choose from.
const UNIVERSE: usize = 60_000;
const FPR: f64 = 0.01;
/// The database of each set, and what it is made for: as many as there are; growing; forgetting.
const SETS: [(&str, &str); 3] = [
    ("crash", "60000, 0.01"),
    ("crash_growing", "fpr => 0.01"),
    ("crash_forgetting", "56000, 0.01, '7 hours'"),
];

/// What became of a session's work.
#[derive(Default)]
struct Done {
    committed: usize,
    rolled_back: usize,
    lost_connection: bool,
}

/// Adds batches until the connection is gone, or as often as told. In one transaction with each
/// batch go its elements to `added`, and those that were new to `got`: tables know what was
/// committed.
fn work(directory: &Path, database: &str, session: usize, seed: u64, transactions: usize) -> Done {
    let mut done = Done::default();
    let Ok(mut client) = Config::new()
        .host_path(directory)
        .user("postgres")
        .dbname(database)
        .connect(NoTls)
    else {
        return Done { lost_connection: true, ..done };
    };
    let mut random = Random(seed);
    for _ in 0..transactions {
        let batch: Vec<i32> = (0..1 + random.below(60))
            .map(|_| random.below(UNIVERSE) as i32)
            .collect();
        let undo = random.below(5) == 0;
        match transaction(&mut client, session as i32, &batch, undo) {
            Ok(()) if undo => done.rolled_back += 1,
            Ok(()) => done.committed += 1,
            Err(error) => {
                // The server is gone, or says that it goes: 57P01 to 57P03. Whatever else it says
                // is wrong.
                let state = error
                    .code()
                    .map_or("gone".to_owned(), |state| state.code().to_owned());
                assert!(state == "gone" || state.starts_with("57P"), "{error:?}");
                done.lost_connection = true;
                break;
            }
        }
    }
    done
}

fn transaction(
    client: &mut Client,
    session: i32,
    batch: &[i32],
    undo: bool,
) -> Result<(), postgres::Error> {
    let mut transaction = client.transaction()?;
    // One call in a transaction: more may deadlock.
    transaction.execute(
        "WITH new AS MATERIALIZED (SELECT unnest(bloom_set_add_all('seen', $1::integer[])) AS x)
         INSERT INTO got SELECT $2::integer, x FROM new",
        &[&batch, &session],
    )?;
    transaction.execute("INSERT INTO added SELECT unnest($1::integer[])", &[&batch])?;
    if undo { transaction.rollback() } else { transaction.commit() }
}

#[test]
fn each_new_element_goes_to_one_committed_session_and_nothing_is_lost() {
    thread::scope(|scope| {
        for (database, made_for) in SETS {
            scope.spawn(move || crash_again_and_again(database, made_for));
        }
    });
}

fn crash_again_and_again(database: &str, made_for: &str) {
    let rounds = setting("SET_ROUNDS", 5);
    let transactions = setting("SET_TRANSACTIONS", 60);
    let server =
        Server::start("max_connections = 40\nautovacuum_naptime = 1\ndeadlock_timeout = '200ms'");
    let mut client = server.database(database);
    run(
        &mut client,
        &format!(
            "CREATE TABLE got (session integer NOT NULL, x integer NOT NULL); CREATE TABLE added (x integer NOT NULL);
             SELECT bloom_set_create('seen', 'integer', {made_for})"
        ),
    );
    let (mut committed, mut rolled_back, mut crashes) = (0, 0, 0);
    for round in 0..rounds {
        let directory = server.dir();
        // All but the last round end by kill -9: of one session, which ends all of them, or of the
        // server.
        let kill = (round + 1 < rounds).then_some(round % 2);
        let done: Vec<Done> = thread::scope(|scope| {
            let workers: Vec<_> = (0..SESSIONS)
                .map(|session| {
                    let seed = (round * SESSIONS + session) as u64;
                    let transactions = if kill.is_some() { usize::MAX } else { transactions };
                    scope.spawn(move || work(directory, database, session, seed, transactions))
                })
                .collect();
            if let Some(kill) = kill {
                thread::sleep(Duration::from_millis(setting("SET_MILLISECONDS", 900) as u64));
                if kill == 0 {
                    kill_a_session(&mut client, database);
                } else {
                    server.kill9();
                }
            }
            workers
                .into_iter()
                .map(|worker| worker.join().expect("a session ends"))
                .collect()
        });
        committed += done.iter().map(|done| done.committed).sum::<usize>();
        rolled_back += done.iter().map(|done| done.rolled_back).sum::<usize>();
        if kill.is_some() {
            crashes += 1;
            assert!(done.iter().all(|done| done.lost_connection));
            server.restart_after_crash();
            client = server.connect(database);
        }
        check(&mut client);
    }
    println!("{committed} transactions committed, {rolled_back} rolled back, {crashes} crashes");
    assert!(committed > SESSIONS * transactions / 2 && rolled_back > 0);
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(value::<i64>(&mut client, deadlocks), 0);
}

/// Kills one session of the workers with SIGKILL.
fn kill_a_session(client: &mut Client, database: &str) {
    let others = format!(
        "SELECT pid FROM pg_stat_activity
         WHERE datname = '{database}' AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    );
    let pids: Vec<i32> = column(client, &others);
    let pid = pids.first().expect("sessions are at work");
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(killed.expect("kill runs").success());
}

fn check(client: &mut Client) {
    let twice = rows(client, "SELECT x FROM got GROUP BY x HAVING count(*) > 1");
    assert!(twice.is_empty(), "{} elements were new for two sessions", twice.len());
    let lost: i64 =
        value(client, "SELECT count(*) FROM added WHERE NOT bloom_set_contains('seen', x)");
    assert_eq!(lost, 0, "elements were lost");
    let strangers: i64 =
        value(client, "SELECT count(*) FROM got WHERE x NOT IN (SELECT x FROM added)");
    assert_eq!(strangers, 0);
    let distinct: i64 = value(client, "SELECT count(DISTINCT x) FROM added");
    let taken = distinct - value::<i64>(client, "SELECT count(*) FROM got");
    println!("{distinct} elements, of which {taken} were new for nobody");
    assert!(
        (taken as f64) <= distinct as f64 * FPR + bound(distinct as f64, FPR),
        "{taken} of {distinct}"
    );
}
