//! An index over a column of filters hides no row: whatever happened to the table, its scans give
//! what sequential scans give, and `bloom_index_check` agrees.
//!
//! | file | what it does |
//! |---|---|
//! | `standby` | a standby reads the same, has the same bytes, and takes over |
//! | `attack` | elements of every kind, filters of every shape, questions of every form |
//! | `crash` | unlogged and temporary tables, `wal_level = minimal`, prepared transactions |
//! | `mixed` | filters of several kinds of elements in a column |
//! | `damage` | damaged files: an error, or an answer of which the check says that it is wrong |

#[path = "index_filters/attack.rs"]
mod attack;
mod common;
#[path = "index_filters/crash.rs"]
mod crash;
#[path = "index_filters/damage.rs"]
mod damage;
#[path = "index_filters/mixed.rs"]
mod mixed;
#[path = "index_filters/standby.rs"]
mod standby;

use common::{Random, Server, column, run, value};
use postgres::Client;
use std::thread;

/// Filters of all shapes and layouts, with the elements `e 0` to `e 399` and others.
const FILTER: &str = "
    CREATE FUNCTION made(seed integer) RETURNS bloom LANGUAGE sql VOLATILE AS $$
        SELECT CASE seed % 7
            WHEN 0 THEN bloom_agg(x, 1500)
            WHEN 1 THEN bloom_agg(x, 40)
            WHEN 2 THEN bloom_agg(x, 1500, 0.01, 'classic')
            WHEN 3 THEN bloom_agg(x, 1500, 0.01, 'parquet')
            WHEN 4 THEN bloom_agg(x, 1000000)
            WHEN 5 THEN bloom_agg(x)
            ELSE bloom_agg(x, 1500) END
        FROM (SELECT 'e ' || (seed * 31 + i) % 400 AS x FROM generate_series(0, seed % 40) AS i
              UNION SELECT 'other ' || seed || ' ' || i FROM generate_series(0, 1 + seed % 1400) AS i) AS elements
    $$;
    CREATE TABLE f (id integer, seen bloom);
    CREATE INDEX f_seen ON f USING bloom_filter (seen);";

/// Questions, each of which returns identifiers in their order.
const QUESTIONS: [&str; 4] = [
    "SELECT id FROM f WHERE seen @> 'e $' ORDER BY id",
    "SELECT id FROM f WHERE bloom_contains(seen, 'e $') ORDER BY id",
    "SELECT id FROM f WHERE seen @> ANY (ARRAY['e $', 'e 399', NULL]) ORDER BY id",
    "SELECT id FROM f WHERE bloom_contains_any(seen, ARRAY['e $', 'e 7']) AND seen @> 'e 7' ORDER BY id",
];

/// Asserts that both ways to ask give the same, in the transaction that the client may be in, and
/// that one is by an index.
fn agree(client: &mut Client, question: &str) {
    assert!(compare(client, question), "no index is used: {question}");
}

/// Asserts that both ways to ask give the same. Returns whether one is by an index.
fn compare(client: &mut Client, question: &str) -> bool {
    run(client, "SET enable_seqscan = off; SET enable_bitmapscan = on");
    let plan: Vec<String> = column(client, &format!("EXPLAIN (COSTS OFF) {question}"));
    let by_index: Vec<i32> = column(client, question);
    run(client, "SET enable_seqscan = on; SET enable_bitmapscan = off");
    let by_table: Vec<i32> = column(client, question);
    run(client, "RESET enable_seqscan; RESET enable_bitmapscan");
    assert_eq!(by_index, by_table, "{question}");
    plan.join("\n").contains("Bitmap Index Scan")
}

fn ask_all(client: &mut Client, random: &mut Random) {
    for question in QUESTIONS {
        agree(client, &question.replace('$', &random.below(400).to_string()));
    }
}

fn check(client: &mut Client) {
    let counts = "SELECT bloom_index_check('f_seen') = (SELECT count(seen) FROM f)";
    assert!(value::<bool>(client, counts), "all rows are there");
}

#[test]
fn histories_with_crashes() {
    let server = Server::start(
        "autovacuum = off\nmax_prepared_transactions = 2\nmin_parallel_table_scan_size = 0",
    );
    let mut client = server.database("filters");
    run(&mut client, FILTER);
    let mut random = Random(20);
    let mut next = 0;
    for round in 0..40 {
        let many = 1 + random.below(40);
        let add = format!(
            "INSERT INTO f SELECT i, made(i) FROM generate_series({next}, {next} + {many}) AS i"
        );
        match random.below(12) {
            0..4 => run(&mut client, &add),
            4 => {
                run(&mut client, &format!("BEGIN; {add}; ROLLBACK"));
                run(&mut client, "VACUUM f");
            }
            5 => run(&mut client, &format!("DELETE FROM f WHERE id % 4 = {}", random.below(4))),
            6 | 7 => {
                let only = format!("id % 5 = {}", random.below(5));
                run(
                    &mut client,
                    &format!("UPDATE f SET seen = bloom_add(seen, 'e {round}') WHERE {only}"),
                );
            }
            8 => run(&mut client, "VACUUM f"),
            9 => run(&mut client, "REINDEX INDEX CONCURRENTLY f_seen"),
            10 => run(&mut client, "UPDATE f SET id = id WHERE id % 3 = 0"),
            _ => {
                run(&mut client, &format!("BEGIN; {add}"));
                server.kill9();
                server.restart();
                client = server.connect("filters");
            }
        }
        next += many as i32 + 1;
        ask_all(&mut client, &mut random);
        check(&mut client);
    }
    assert!(value::<i64>(&mut client, "SELECT count(*) FROM f") > 0);
}

/// Writers, somebody who vacuums and rebuilds, and readers whose snapshots see one state of the
/// table, twice over.
#[test]
fn sessions_at_once_and_a_crash() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("filters");
    run(&mut client, FILTER);
    run(&mut client, "INSERT INTO f SELECT i, made(i) FROM generate_series(1, 200) AS i");
    thread::scope(|scope| {
        for writer in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect("filters");
                for i in 0..25 {
                    let first = 1000 + 100_000 * writer + i * 100;
                    run(
                        &mut client,
                        &format!("INSERT INTO f SELECT i, made(i) FROM generate_series({first}, {first} + 9) AS i"),
                    );
                    run(&mut client, &format!("DELETE FROM f WHERE id BETWEEN {first} - 300 AND {first} - 200"));
                }
            });
        }
        scope.spawn(|| {
            let mut client = server.connect("filters");
            for i in 0..25 {
                run(
                    &mut client,
                    if i % 3 == 2 { "REINDEX INDEX CONCURRENTLY f_seen" } else { "VACUUM f" },
                );
            }
        });
        for reader in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect("filters");
                let mut random = Random(reader);
                let mut by_index = 0;
                for _ in 0..20 {
                    run(&mut client, "BEGIN ISOLATION LEVEL REPEATABLE READ");
                    for question in QUESTIONS {
                        // One that was just built may be for later snapshots only.
                        let question = question.replace('$', &random.below(400).to_string());
                        by_index += usize::from(compare(&mut client, &question));
                    }
                    run(&mut client, "COMMIT");
                }
                assert!(by_index > 40, "{by_index} of 80 questions were asked of the index");
            });
        }
    });
    server.kill9();
    server.restart();
    let mut client = server.connect("filters");
    check(&mut client);
    ask_all(&mut client, &mut Random(5));
}

/// Where a bitmap has no room for each row, all rows of its pages are asked again.
#[test]
fn pages_of_a_lossy_bitmap() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("filters");
    run(
        &mut client,
        "CREATE TABLE f (id integer, seen bloom, pad text);
         ALTER TABLE f ALTER pad SET STORAGE PLAIN;
         INSERT INTO f SELECT i, bloom_from_array(ARRAY['all', 'e ' || i % 400], 1000), repeat('-', 2500)
         FROM generate_series(1, 6000) AS i;
         INSERT INTO f SELECT i, bloom_agg('e ' || j, 300), repeat('-', 2500)
         FROM generate_series(6001, 6300) AS i, generate_series(1, 300) AS j GROUP BY i;
         CREATE INDEX f_seen ON f USING bloom_filter (seen);
         SET work_mem = '64kB'; SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off",
    );
    let questions = [
        "seen @> 'all'",
        "seen @> 'e 7'",
        "seen @> 'all' AND seen @> 'e 7'",
        "seen @> 'e 7' OR seen @> 'all'",
    ];
    for question in questions {
        agree(&mut client, &format!("SELECT id FROM f WHERE {question} ORDER BY id"));
    }
    run(&mut client, "SET enable_seqscan = off");
    let plan: Vec<String> =
        column(&mut client, "EXPLAIN (ANALYZE, COSTS OFF) SELECT id FROM f WHERE seen @> 'all'");
    assert!(plan.join("\n").contains("lossy="), "{plan:?}");
}
