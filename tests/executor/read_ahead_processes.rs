//! Scans that read rows ahead with other processes: parallel workers, sessions that change the
//! rows, and who cancels.

use crate::common::{plan, rows, run, sqlstate_within, value};
use crate::server;
use postgres::Client;
use std::thread;
use std::time::Duration;

const ASKED: &str = "(SELECT f FROM stored) @> x";
const ASKED_OF_EXPRESSION: &str = "(SELECT f FROM stored) @> nullif(x + 0, 7)";

/// A table of a row for each number, and a filter of the even ones.
fn database(name: &str, numbers: usize) -> Client {
    let mut client = server().database(name);
    run(
        &mut client,
        &format!(
            "CREATE TABLE t WITH (parallel_workers = 2) AS SELECT i AS n, i AS x, 0 AS y FROM generate_series(1, {numbers}) AS i;
             CREATE TABLE stored AS SELECT bloom_agg(x, 2000000) AS f FROM t WHERE n % 2 = 0; ANALYZE t"
        ),
    );
    client
}

#[test]
fn workers_share_a_scan() {
    let mut client = database("shared_scans", 200_000);
    run(
        &mut client,
        "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0",
    );
    for asked in [ASKED, ASKED_OF_EXPRESSION] {
        workers_share(&mut client, asked);
    }
}

/// Workers are given plans as text, and may have loaded another version of the library than the
/// session that planned.
#[test]
fn plans_have_the_form_of_the_first_release() {
    drop(database("plans_as_text", 20_000));
    let mut psql = server().program("psql");
    psql.args(["-X", "-v", "ON_ERROR_STOP=1", "-d", "plans_as_text"]);
    let sql = format!(
        "SET client_min_messages = log; SET debug_pretty_print = off; SET debug_print_plan = on;
         SELECT count(*) FROM t WHERE y < 1 AND {ASKED}"
    );
    let printed = psql.arg("-c").arg(sql).output().expect("psql runs");
    let printed = String::from_utf8_lossy(&printed.stderr).into_owned();
    // How many conditions come before the one that is probed, and which of its arguments is the
    // filter.
    assert!(printed.contains(":custom_private (i 1 0)"), "{printed}");
}

fn workers_share(client: &mut Client, asked: &str) {
    let sum = format!("SELECT count(*) || ' ' || sum(n) FROM t WHERE {asked}");
    let shown = plan(client, "ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF", &sum);
    for part in [
        "Workers Launched: 2",
        "Parallel Custom Scan (Bloom Scan) on t",
        "Rows Removed by Bloom Filter: 3",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let parallel: String = value(client, &sum);
    run(client, "SET parallel_leader_participation = off");
    assert_eq!(value::<String>(client, &sum), parallel);
    // The scan is repeated by new workers.
    let repeated = format!(
        "SELECT (SELECT count(*) || ' ' || sum(n) FROM t WHERE {asked} OFFSET g * 0) FROM generate_series(1, 3) AS g"
    );
    assert!(plan(client, "COSTS OFF", &repeated).contains("Parallel Custom Scan"));
    for row in rows(client, &repeated) {
        assert_eq!(row.get::<_, String>(0), parallel);
    }
    run(client, "SET max_parallel_workers = 0");
    assert_eq!(value::<String>(client, &sum), parallel);
    run(client, "SET max_parallel_workers_per_gather = 0; SET pg_bloom.read_ahead = off");
    assert_eq!(value::<String>(client, &sum), parallel);
    run(
        client,
        "RESET max_parallel_workers; RESET pg_bloom.read_ahead; RESET parallel_leader_participation;
         SET max_parallel_workers_per_gather = 2",
    );
}

/// A row that another session changes while it is waited for is asked again.
#[test]
fn rows_that_change_meanwhile_are_asked_again() {
    let mut first = database("changed_meanwhile", 10_000);
    for (ahead, asked) in [
        ("on", ASKED),
        ("on", ASKED_OF_EXPRESSION),
        ("off", ASKED_OF_EXPRESSION),
    ] {
        for (statement, changed) in [
            (
                format!("UPDATE t SET y = 1 WHERE {asked} AND n < 100 AND y = 0 RETURNING n"),
                "y = 1",
            ),
            (format!("DELETE FROM t WHERE {asked} AND n < 100 RETURNING n"), "true"),
            (format!("SELECT n FROM t WHERE {asked} AND n < 100 AND y = 0 FOR UPDATE"), "true"),
        ] {
            // One row leaves the set, one stays in it with another element, one leaves by another
            // condition.
            run(
                &mut first,
                "BEGIN; UPDATE t SET x = 1 WHERE n = 20; UPDATE t SET x = 4 WHERE n = 30; UPDATE t SET y = 7 WHERE n = 40",
            );
            let mut second = server().connect("changed_meanwhile");
            let pid: i32 = value(&mut second, "SELECT pg_backend_pid()");
            let session = thread::spawn(move || {
                run(&mut second, &format!("SET pg_bloom.read_ahead = {ahead}; BEGIN"));
                let shown = plan(&mut second, "COSTS OFF", &statement);
                assert_eq!(shown.contains("Bloom Scan"), ahead == "on", "{shown}");
                let found: Vec<i32> =
                    rows(&mut second, &statement).iter().map(|row| row.get(0)).collect();
                run(&mut second, "ROLLBACK");
                found
            });
            let waits = format!("SELECT count(*) FROM pg_locks WHERE pid = {pid} AND NOT granted");
            while value::<i64>(&mut first, &waits) == 0 && !session.is_finished() {
                thread::sleep(Duration::from_millis(5));
            }
            run(&mut first, "COMMIT");
            let found = session.join().expect("the other session is well");
            let stays = changed == "true" && !found.contains(&40) || changed == "y = 1";
            assert!(found.contains(&30) && !found.contains(&20), "{ahead}: {found:?}");
            assert!(stays || found.contains(&40), "{ahead}: {found:?}");
            run(&mut first, "UPDATE t SET x = n, y = 0 WHERE n IN (20, 30, 40)");
        }
    }
}

#[test]
fn scans_can_be_cancelled() {
    let mut client = database("cancelled_scans", 20_000);
    let sql = format!(
        "SELECT count((SELECT count(*) FROM t WHERE {ASKED} AND n > g)) FROM generate_series(1, 1000000) AS g"
    );
    run(&mut client, "SET max_parallel_workers_per_gather = 0");
    assert!(plan(&mut client, "COSTS OFF", &sql).contains("Bloom Scan"));
    assert_eq!(sqlstate_within(&mut client, 300, &sql), "57014");
    // All that was open is closed: nothing complains, and the next one works.
    assert_eq!(
        value::<i64>(&mut client, &format!("SELECT count(*) FROM t WHERE {ASKED} AND n % 2 = 0")),
        10_000
    );
}
