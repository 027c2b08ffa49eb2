//! Builds and checks that fail give back all of their memory: an error of PostgreSQL unwinds Rust's
//! frames.

use crate::common::{run, sqlstate, value};
use crate::server;
use postgres::Client;

/// Failures before memory is measured: what is kept for the next time is there then.
const WARM_UP: usize = 3;
/// Memory may grow in one round, as by blocks of an allocator that are used again. What leaks does
/// so in each.
const ROUNDS: usize = 3;
const FAILURES: usize = 10;
/// If errors jumped over frames, each statement would leak at least twice as much.
const MOST_KB: i64 = 100;

/// Kilobytes that the session's process has allocated for itself. `Private_Dirty` would also count
/// the shared buffers that no other process has used yet.
fn private_kb(client: &mut Client) -> i64 {
    let pid: i32 = value(client, "SELECT pg_backend_pid()");
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .expect("the process has a memory map");
    let line = text
        .lines()
        .find(|line| line.starts_with("Anonymous:"))
        .expect("it says what is allocated");
    line.split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number")
}

#[test]
fn failures_leak_nothing() {
    let mut client = server().database("failures");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT i AS id, md5(i::text) AS key FROM generate_series(1, 50000) AS i;
         CREATE TABLE f AS SELECT i AS id, bloom_from_array(ARRAY[i], 1000) AS filter FROM generate_series(1, 20000) AS i;
         CREATE FUNCTION of_key(id integer, key text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
            $$BEGIN IF id = 50000 THEN RAISE 'the last one' USING ERRCODE = '22012'; END IF; RETURN key; END$$;
         CREATE FUNCTION of_filter(id integer, filter bloom) RETURNS bloom IMMUTABLE LANGUAGE plpgsql AS
            $$BEGIN IF id = 20000 THEN RAISE 'the last one' USING ERRCODE = '22012'; END IF; RETURN filter; END$$;
         CREATE INDEX checked ON f USING bloom_filter (of_filter(-id, filter));
         CREATE OR REPLACE FUNCTION of_filter(id integer, filter bloom) RETURNS bloom IMMUTABLE LANGUAGE plpgsql AS
            $$BEGIN IF abs(id) = 20000 THEN RAISE 'the last one' USING ERRCODE = '22012'; END IF; RETURN filter; END$$;",
    );
    for statement in [
        "CREATE INDEX failing ON t USING bloom_filter (key) WHERE of_key(id, key) <> ''",
        "CREATE INDEX failing ON t USING bloom_filter (of_key(id, key))",
        "CREATE INDEX CONCURRENTLY failing ON t USING bloom_filter (of_key(id, key))",
        "CREATE INDEX failing ON f USING bloom_filter (of_filter(id, filter))",
        "SELECT bloom_index_check('checked')",
    ] {
        let fail = |client: &mut Client, times| {
            for _ in 0..times {
                assert_eq!(sqlstate(client, statement), "22012", "{statement}");
                run(client, "DROP INDEX IF EXISTS failing");
            }
        };
        fail(&mut client, WARM_UP);
        let rounds = (0..ROUNDS).map(|_| {
            let before = private_kb(&mut client);
            fail(&mut client, FAILURES);
            private_kb(&mut client) - before
        });
        let grown: Vec<i64> = rounds.collect();
        println!("{statement}: {grown:?} kB more in rounds of {FAILURES} failures");
        let least = grown.iter().min().expect("there are rounds");
        assert!(
            *least < MOST_KB,
            "{statement}: {grown:?} kB more in rounds of {FAILURES} failures"
        );
    }
}
