//! Sessions that each add only what isn't there yet, at once: with locks on the keys' hashes, and
//! under SERIALIZABLE.

use crate::common::asking::check;
use crate::common::{Random, run, state_of, value};
use crate::{server, times};
use std::thread;

/// Sessions at once, and batches of each.
const SESSIONS: usize = 4;
const BATCHES: usize = 12;
/// Keys of a batch, of so many in all.
const BATCH: usize = 40;
const KEYS: usize = 900;

const TABLE: &str = "
    CREATE TABLE pages (url text NOT NULL, pad text DEFAULT repeat('-', 300));
    CREATE INDEX pages_url ON pages USING bloom_filter (url) WITH (pages_per_range = 1);
    ALTER DATABASE %s SET enable_seqscan = off;";

/// Adds batches by each session. `begin` comes before, and what fails with 40001 is tried again.
fn add(database: &str, begin: &str) -> usize {
    let mut client = server().database(database);
    run(&mut client, &TABLE.replace("%s", database));
    let again: usize = thread::scope(|scope| {
        let session = |n: usize| {
            let mut client = server().connect(database);
            let mut random = Random(n as u64);
            let mut again = 0;
            // Fewer would not meet.
            for _ in 0..times(BATCHES).max(BATCHES) {
                let found: Vec<String> =
                    (0..BATCH).map(|_| format!("'url {}'", random.below(KEYS))).collect();
                let found = found.join(", ");
                let sql = format!(
                    "{}; INSERT INTO pages (url) SELECT DISTINCT u FROM unnest(ARRAY[{found}]) AS u
                     WHERE NOT EXISTS (SELECT FROM pages AS p WHERE p.url = u); COMMIT",
                    begin.replace("%s", &found)
                );
                while let Err(error) = client.batch_execute(&sql) {
                    assert_eq!(state_of(&error), "40001", "{error:?}");
                    run(&mut client, "ROLLBACK");
                    again += 1;
                }
            }
            again
        };
        let sessions: Vec<_> = (0..SESSIONS).map(|n| scope.spawn(move || session(n))).collect();
        sessions
            .into_iter()
            .map(|session| session.join().expect("a session ends"))
            .sum()
    });
    let twice: i64 = value(&mut client, "SELECT count(*) - count(DISTINCT url) FROM pages");
    assert_eq!(twice, 0, "rows that are there twice");
    let there: i64 = value(&mut client, "SELECT count(*) FROM pages");
    assert!(there > KEYS as i64 / 2, "{there} rows");
    assert_eq!(check(&mut client, "pages_url"), there);
    again
}

#[test]
fn locks_on_hashes_keep_duplicates_out() {
    let begin = "BEGIN; SELECT pg_advisory_xact_lock(1, b) FROM (
        SELECT DISTINCT (hashtextextended(u, 0) & 255)::integer AS b FROM unnest(ARRAY[%s]) AS u ORDER BY 1) AS buckets";
    assert_eq!(add("locked", begin), 0);
}

#[test]
fn serializable_transactions_keep_duplicates_out() {
    let again = add("serialised", "BEGIN ISOLATION LEVEL SERIALIZABLE");
    println!("{again} transactions were tried again");
    assert!(again > 0, "no transaction saw another one");
}
