//! What statements that fail or are cancelled leave behind: nothing. And how soon a cancel is
//! obeyed: at once.

use crate::common::{LAYOUTS, Server, refused, rows, run, sqlstate, sqlstate_within, times, value};
use postgres::{Client, NoTls};
use std::sync::OnceLock;
use std::time::Instant;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("max_wal_size = '4GB'\nautovacuum = off"))
}

/// One of the numbers that Linux reports of a session's process, in kilobytes.
fn memory(client: &mut Client, name: &str) -> u64 {
    let pid: i32 = value(client, "SELECT pg_backend_pid()");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .expect("Linux tells about processes");
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .expect("the number is there");
    line.split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("it is a number")
}

/// Statements that fail, each with its SQLSTATE: every operation, at the start and with memory in
/// hand.
fn failures(round: usize) -> Vec<(&'static str, String)> {
    let layout = LAYOUTS[round % LAYOUTS.len()];
    let many = 2000 + round % 500;
    vec![
        ("22P02", "SELECT '\\x01'::bloom".into()),
        (
            "22P02",
            format!(
                "SELECT (substr(f::text, 1, {}) || 'zz')::bloom FROM filled",
                100 + round % 5000 * 2
            ),
        ),
        ("22P03", format!("SELECT substr(f::bytea, 1, {})::bloom FROM filled", 30 + round % 9000)),
        ("22P03", "SELECT set_byte(f::bytea, 1, 7)::bloom FROM filled".into()),
        ("42804", "SELECT f @> 'x'::text FROM filled".into()),
        ("42804", "SELECT f || 'x'::text FROM filled".into()),
        (
            "42804",
            format!(
                "SELECT bloom_add_all(f, ARRAY(SELECT 'x' || generate_series(1, {many}))) FROM filled"
            ),
        ),
        ("42804", "SELECT f | bloom_from_array(ARRAY['x'], 20000) FROM filled".into()),
        (
            "22023",
            "SELECT f & bloom_from_array(ARRAY[1], 20000, 0.3, 'classic') FROM filled".into(),
        ),
        (
            "22023",
            format!(
                "SELECT bloom_union_agg(g) FROM (SELECT f AS g FROM filled UNION ALL
                           SELECT bloom_from_array(ARRAY[1], {}, 0.3)) AS u",
                200 + round % 50
            ),
        ),
        (
            "22023",
            format!(
                "SELECT bloom_agg(x, 10, 0.01, '{layout}') FROM generate_series(1, {many}) AS x"
            ),
        ),
        (
            "22023",
            format!(
                "SELECT bloom_from_array(ARRAY(SELECT generate_series(1, {many})), 10, 0.5, '{layout}')"
            ),
        ),
        ("22023", "SELECT bloom_fold(f, 0) FROM filled".into()),
        ("22023", format!("SELECT bloom_agg(x, 1000 + x) FROM generate_series(1, {many}) AS x")),
        ("54000", format!("SELECT bloom_agg(x, 100000000) FROM generate_series(1, {many}) AS x")),
        ("54000", "SELECT bloom_agg(x, NULL, 1e-6) FROM generate_series(1, 60000) AS x".into()),
        ("54000", "SELECT bloom_empty(9000000000000000000)".into()),
        ("0A000", "SELECT bloom_agg(f) FROM filled".into()),
        (
            "0A000",
            format!(
                "SELECT bloom_agg(p) FROM (SELECT point(x, 1) AS p FROM generate_series(1, {many}) AS x) AS t"
            ),
        ),
        ("22012", format!("SELECT bloom_agg(x / ({many} - x)) FROM generate_series(1, 3000) AS x")),
    ]
}

/// Statements that take long enough to be cancelled.
const LONG: [&str; 8] = [
    "SELECT bloom_agg(x) FROM many",
    "SELECT bloom_agg(x, 2000000) FROM many",
    "SELECT bloom_agg(x, 2000000, 0.001, 'classic') FROM many",
    "SELECT bloom_agg(x::text) FROM many",
    "SELECT bloom_union_agg(f) FROM filled, generate_series(1, 100000)",
    "SELECT count(bloom_fold(f, 0.5)) FROM filled, generate_series(1, 100000)",
    "SELECT count(f::text::bloom) FROM filled, generate_series(1, 100000)",
    "SELECT count(*) FROM filled, many WHERE f @> x",
];

/// How many statements fail, and how many of them because they are cancelled.
const FAILING: usize = 3_000;
const CANCELLED: usize = 600;

#[test]
fn failing_statements_leave_no_memory_behind() {
    let mut client = server().database("memory");
    run(
        &mut client,
        "CREATE TABLE many AS SELECT generate_series(1, 1000000) AS x; ANALYZE many;
         CREATE TABLE filled AS SELECT bloom_agg(x, 20000) AS f FROM generate_series(1, 20000) AS x;
         SET client_min_messages = error; SET max_parallel_workers_per_gather = 0;
         SET work_mem = '1MB'; SET pg_bloom.max_filter_size = '200kB'; SET pg_bloom.overfill = error",
    );
    let (mut tried, mut cancelled, mut wrong) = (0, 0, Vec::new());
    let mut first_level = 0;
    for round in 0.. {
        if tried >= times(FAILING) {
            break;
        }
        for (state, sql) in failures(round) {
            let found = sqlstate(&mut client, &sql);
            if found != state {
                wrong.push(format!("{found}, not {state}, from {sql}"));
            }
            tried += 1;
        }
        if cancelled < times(CANCELLED) {
            run(
                &mut client,
                "SET pg_bloom.max_filter_size = '10MB'; SET pg_bloom.overfill = ignore",
            );
            for (i, sql) in LONG.iter().enumerate() {
                let found = sqlstate_within(&mut client, 1 + (round + i) % 7, sql);
                if found != "57014" {
                    wrong.push(format!("{found}, not cancelled, from {sql}"));
                }
                (tried, cancelled) = (tried + 1, cancelled + 1);
            }
            run(
                &mut client,
                "SET pg_bloom.max_filter_size = '200kB'; SET pg_bloom.overfill = error",
            );
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // The first rounds fill the caches of catalogs and plans. After that the level goes up and
        // down by some megabytes, as the allocator and pages of 2 MB have it; it was the same after
        // 30,000 statements.
        if round == 60 {
            first_level = memory(&mut client, "RssAnon:");
        }
    }
    let last_level = memory(&mut client, "RssAnon:");
    println!(
        "{tried} failing statements, {cancelled} of them cancelled: {first_level} kB after 1,708, {last_level} kB after all"
    );
    assert!(cancelled >= times(CANCELLED));
    assert!(last_level < first_level + 8192, "{first_level} kB grew to {last_level} kB");
    let files: i64 = value(
        &mut client,
        "SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql\\_tmp' || pg_backend_pid() || '.%'",
    );
    assert_eq!(files, 0);
}

/// What may not be allocated: sizes that somebody claims.
#[test]
fn sizes_are_checked_before_memory_is_asked_for() {
    let mut client = server().database("claims");
    run(&mut client, "SELECT bloom_empty(5); SET pg_bloom.max_filter_size = '511MB'");
    let before = memory(&mut client, "VmHWM:");
    for sql in [
        "SELECT bloom_empty(9000000000000000000)",
        "SELECT bloom_empty(9223372036854775807, 1e-9, 'classic')",
        "SELECT bloom_empty(1000000000, 0.001)",
        "SELECT bloom_agg(x, 9000000000000000000) FROM generate_series(1, 10) AS x",
        "SELECT bloom_agg(x, 1000000000, 0.001, 'classic') FROM generate_series(1, 10) AS x",
        "SELECT bloom_from_array(ARRAY[1, 2], 5000000000)",
    ] {
        let error = client.batch_execute(sql).expect_err(sql);
        let error = error.as_db_error().expect("an error of the server's");
        assert_eq!(error.code().code(), "54000", "{sql}");
        assert!(
            error
                .hint()
                .is_some_and(|hint| hint.starts_with("Use a smaller capacity")),
            "{sql}: {error:?}"
        );
    }
    // 2^40 blocks, and as many as a 511 MB filter has, in values of 44 bytes that claim to be
    // dense.
    for blocks in ["0000000000010000", "ffff7f0000000000"] {
        let value =
            format!("0101020106010000{blocks}{blocks}e8030000000000007b14ae47e17a843f00000000");
        refused(&mut client, "22P02", &format!("SELECT '\\x{value}'::bloom"));
        refused(&mut client, "22P03", &format!("SELECT '\\x{value}'::bytea::bloom"));
    }
    let grown = memory(&mut client, "VmHWM:") - before;
    assert!(grown < 20_000, "{grown} kB");
}

/// The processor's time that a process has used, in hundredths of a second: other load on the
/// machine doesn't count.
fn processor_time(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    // utime and stime.
    [11, 12]
        .iter()
        .map(|&field| fields[field].parse::<u64>().expect("a number of ticks"))
        .sum()
}

/// How often a statement that is cancelled would do the operation if it were not.
const REPEATED: usize = 100_000;
/// How often an operation is cancelled again that went on for long.
const MORE_CANCELS: usize = 2;

/// Cancels an operation that is done again and again, at two points of its way. Returns the most of
/// the processor's time that it took after it was told.
fn cancel(client: &mut Client, pid: i32, operation: &str, from: &str) -> u64 {
    let started = Instant::now();
    rows(client, &format!("SELECT ({operation}) IS NULL FROM {from}"));
    let duration = started.elapsed();
    // PostgreSQL 19 would not evaluate what `count` is of: it can't be null.
    let sql = format!(
        "SELECT bool_and(({operation}) IS NULL) FROM {from}, generate_series(1, {REPEATED}) AS again"
    );
    let cancelled = [35, 70].map(|hundredth| {
        let token = client.cancel_token();
        let wait = duration * hundredth / 100;
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(wait);
            // The signal comes soon after: what the statement does until then counts too.
            token.cancel_query(NoTls).expect("the server takes a cancel");
            processor_time(pid)
        });
        let error = client
            .query(&sql, &[])
            .expect_err("the statement is far too long to end");
        assert_eq!(crate::common::state_of(&error), "57014", "{sql}");
        let ended = processor_time(pid);
        ended - canceller.join().expect("the cancel was sent").min(ended)
    });
    cancelled.into_iter().max().unwrap_or_default()
}

#[test]
fn the_longest_operations_can_be_cancelled_at_once() {
    let mut client = server().database("cancels");
    // A tenth of the size of the largest filters, with the bits of a few elements and with those of
    // no size before.
    run(
        &mut client,
        "SET pg_bloom.max_filter_size = '511MB'; SET pg_bloom.overfill = ignore; SET max_parallel_workers_per_gather = 0;
         CREATE UNLOGGED TABLE large (layout text, f bloom, g bloom);
         SELECT bloom_set_create('few_rows', 'integer', 1000)",
    );
    for layout in ["blocked", "classic"] {
        run(
            &mut client,
            &format!(
                "WITH c AS (SELECT bloom_capacity(50 << 20, 0.01, '{layout}') / 2 AS half),
                      e AS (SELECT bloom_empty(half * 2, 0.01, '{layout}') | bloom_empty(half, 0.01, '{layout}') AS f FROM c)
                 INSERT INTO large SELECT '{layout}', f || 1, f || 2 FROM e"
            ),
        );
    }
    let bytes: i64 = value(&mut client, "SELECT min((bloom_info(f)).bytes) FROM large");
    assert!(bytes > 48 << 20, "{bytes}");
    let operations = [
        // PostgreSQL itself copies all that is printed to make text of it, and doesn't look up in
        // the meantime.
        ("print", "bloom_out(f)"),
        ("print and parse", "bloom_in(bloom_out(f))"),
        ("bytea and back", "f::bytea::bloom"),
        ("send", "length(bloom_send(f))"),
        ("union", "f | g"),
        ("intersection", "f & g"),
        ("fold", "bloom_fold(f, 0.5)"),
        ("cardinality", "bloom_cardinality(f)"),
        ("jaccard", "bloom_jaccard(f, g)"),
        ("rate", "bloom_fpr(f)"),
        ("info", "bloom_info(f)"),
        ("hash", "bloom_hash_extended(f, 3)"),
        ("compare", "bloom_cmp(f, g) + bloom_cmp(f, f)"),
        ("add", "f || 3"),
        ("add many", "bloom_add_all(f, ARRAY(SELECT generate_series(1, 500000)))"),
        ("probe with many", "bloom_contains_all(f, ARRAY(SELECT 1 + 0 * generate_series(1, 500000)))"),
        ("probe by rows", "(SELECT count(*) FROM generate_series(1, 500000) AS x WHERE f @> x)"),
        ("add many to a set", "bloom_set_add_all('few_rows', ARRAY(SELECT generate_series(1, 600000)))"),
        ("ask a set for many", "bloom_set_absent('few_rows', ARRAY(SELECT generate_series(1, 600000)))"),
        ("union of rows", "(SELECT bloom_union_agg(h) FROM (VALUES (f), (g), (f)) AS v (h))"),
        (
            "build",
            "(SELECT bloom_agg(x, c, 0.01, layout)
              FROM (SELECT (bloom_info(f)).capacity AS c OFFSET 0) AS s, generate_series(1, 600000) AS x)",
        ),
    ];
    let pid: i32 = value(&mut client, "SELECT pg_backend_pid()");
    // What PostgreSQL itself needs for one pass over such a value says how fast this machine is.
    let before = processor_time(pid);
    rows(&mut client, "SELECT md5(f::bytea) FROM large WHERE layout = 'blocked'");
    let soon = processor_time(pid) - before;
    println!("md5 of a value takes {soon} hundredths of a second");
    let mut slow = Vec::new();
    // In the other layouts only what works on blocks differs.
    let others = ["union", "fold", "cardinality", "build"];
    for (layout, (name, sql)) in operations.iter().map(|operation| ("blocked", operation)).chain(
        operations
            .iter()
            .filter(|(name, _)| others.contains(name))
            .map(|operation| ("classic", operation)),
    ) {
        let from = format!("(SELECT * FROM large WHERE layout = '{layout}' OFFSET 0) AS large");
        // On a busy machine the signal itself may come late. What doesn't look for it goes on for
        // long each time.
        let mut longest = cancel(&mut client, pid, sql, &from);
        for _ in 0..MORE_CANCELS {
            if longest > soon / 2 {
                longest = longest.min(cancel(&mut client, pid, sql, &from));
            }
        }
        println!("{layout:8} {name:16} went on for {longest} hundredths of a second");
        if longest > soon / 2 {
            slow.push(format!("{layout} {name}: {longest}"));
        }
    }
    assert!(
        slow.is_empty(),
        "md5 takes {soon} hundredths of a second; more than half of that took {slow:?}"
    );
}
