//! Sets that don't fit into the server's memory: whatever is announced before it is read, and
//! whether anything may be, calls give the same answers.

use crate::add_all;
use crate::common::standby::{catch_up, follow, wait_until};
use crate::common::{
    Random, Server, fed, random, refused, run, sqlstate, state_of, times, value, with_buffers,
};
use postgres::Client;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Buffers for a third of the sets below.
const BUFFERS: &str = "400kB";

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&with_buffers(BUFFERS)))
}

/// Elements of a set: half of the numbers below twice as many. They take some 130 pages.
const ELEMENTS: i32 = 100_000;

/// Makes a set of even numbers that takes none for another.
fn make(client: &mut Client, set: &str) -> BTreeSet<i32> {
    run(client, &format!("SELECT bloom_set_create('{set}', 'integer', 1000000000, 1e-9)"));
    fill(client, set)
}

fn fill(client: &mut Client, set: &str) -> BTreeSet<i32> {
    let elements: Vec<i32> = (0..ELEMENTS).map(|i| 2 * i).collect();
    assert_eq!(add_all(client, set, &elements).len(), elements.len());
    elements.into_iter().collect()
}

fn some(random: &mut Random, count: usize) -> Vec<i32> {
    (0..count)
        .map(|_| random.below(2 * ELEMENTS as usize) as i32)
        .collect()
}

fn call(client: &mut Client, function: &str, set: &str, elements: &[i32]) -> Vec<i32> {
    client
        .query_one(&format!("SELECT {function}('{set}', $1::integer[])"), &[&elements])
        .unwrap_or_else(|e| panic!("{function} of {set}: {e:?}"))
        .get(0)
}

/// Checks what a set says of few and of many elements.
fn ask(client: &mut Client, set: &str, has: &BTreeSet<i32>, random: &mut Random) {
    for count in [1, 2, 10, 1000, 5000] {
        let elements = some(random, count);
        let (present, absent): (Vec<i32>, Vec<i32>) =
            elements.iter().partition(|element| has.contains(element));
        assert_eq!(call(client, "bloom_set_present", set, &elements), present, "{set}");
        assert_eq!(call(client, "bloom_set_absent", set, &elements), absent, "{set}");
    }
}

/// Adds elements and removes some, and checks which of them were new or there.
fn change(client: &mut Client, set: &str, has: &mut BTreeSet<i32>, random: &mut Random) {
    for count in [1, 10, 1000] {
        let elements = some(random, count);
        let new: Vec<i32> = elements
            .iter()
            .copied()
            .filter(|&element| has.insert(element))
            .collect();
        assert_eq!(call(client, "bloom_set_add_all", set, &elements), new, "{set}");

        let elements = some(random, count);
        let there: Vec<i32> = elements
            .iter()
            .copied()
            .filter(|element| has.remove(element))
            .collect();
        assert_eq!(call(client, "bloom_set_remove_all", set, &elements), there, "{set}");
    }
}

fn check(client: &mut Client, set: &str, has: &BTreeSet<i32>) {
    let sql = format!("SELECT elements::bigint FROM bloom_set_info('{set}')");
    assert_eq!(value::<i64>(client, &sql), has.len() as i64, "{set}");
}

#[test]
fn answers_agree_whatever_may_be_announced() {
    let mut client = server().database("cold");
    let mut random = random(74);
    run(&mut client, "SET temp_buffers = '800kB'");
    for (name, concurrency) in [("without", 0), ("with_much", 1000)] {
        run(
            &mut client,
            &format!(
                "CREATE TABLESPACE {name} LOCATION '' WITH (effective_io_concurrency = {concurrency})"
            ),
        );
    }
    run(&mut client, "SELECT bloom_set_create('usual', 'integer', 1000000000, 1e-9)");
    let others = [
        ("unlogged", "CREATE UNLOGGED TABLE unlogged (LIKE usual INCLUDING ALL)"),
        ("temporary", "CREATE TEMPORARY TABLE temporary (LIKE usual INCLUDING ALL)"),
        ("quiet", "CREATE TABLE quiet (LIKE usual INCLUDING ALL) TABLESPACE without"),
        ("loud", "CREATE TABLE loud (LIKE usual INCLUDING ALL) TABLESPACE with_much"),
        (
            "divided",
            "CREATE TABLE divided (LIKE usual INCLUDING ALL) PARTITION BY RANGE (bucket);
             CREATE TABLE divided_1 PARTITION OF divided FOR VALUES FROM (0) TO (1500);
             CREATE TABLE divided_2 PARTITION OF divided DEFAULT TABLESPACE without",
        ),
    ];
    for (set, statement) in others {
        run(&mut client, &format!("{statement}; SELECT bloom_set_clear('{set}')"));
    }
    for set in ["usual"].into_iter().chain(others.map(|(set, _)| set)) {
        let mut has = fill(&mut client, set);
        for concurrency in [0, 1, 16, 1000] {
            run(&mut client, &format!("SET effective_io_concurrency = {concurrency}"));
            for _ in 0..times(1) {
                ask(&mut client, set, &has, &mut random);
                change(&mut client, set, &mut has, &mut random);
            }
            let setting: String = value(&mut client, "SHOW effective_io_concurrency");
            assert_eq!(setting, concurrency.to_string());
        }
        check(&mut client, set, &has);
    }
}

/// Returns what `auto_explain` says of the statement that read the rows of the second of two calls
/// in a session, while `effective_io_concurrency` has this value.
fn reading(server: &Server, concurrency: i32) -> String {
    let ask = "SELECT bloom_set_present('s', ARRAY(SELECT generate_series(1, 20000)))";
    let script = format!(
        "SET effective_io_concurrency = {concurrency}; {ask};
         LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;
         SET auto_explain.log_nested_statements = on; SET auto_explain.log_settings = on;
         SET client_min_messages = log; {ask};"
    );
    let mut psql = server.program("psql");
    psql.args(["--no-psqlrc", "--quiet", "--dbname", "plans"]);
    let result = fed(&mut psql, script.as_bytes());
    let log = String::from_utf8_lossy(&result.stderr);
    let statement = log
        .split("Query Text: ")
        .find(|plan| plan.starts_with("SELECT s.bucket, s.hashes"))
        .unwrap_or_else(|| panic!("no rows were read: {log}"));
    statement.to_owned()
}

/// Only rows that aren't in memory are read by way of a bitmap, whose pages PostgreSQL announces:
/// at least 16, unless none must be.
#[test]
fn rows_on_disk_are_announced_and_those_in_memory_are_not() {
    let is_by_bitmap = |plan: &str| plan.contains("Bitmap Heap Scan on s");
    let has_setting = |plan: &str, concurrency: i32| {
        plan.contains(&format!("effective_io_concurrency = '{concurrency}'"))
    };

    let mut client = server().database("plans");
    make(&mut client, "s");
    let default: String = value(
        &mut client,
        "SELECT boot_val FROM pg_settings WHERE name = 'effective_io_concurrency'",
    );
    for concurrency in [1, 15, 16, 17, 200] {
        let plan = reading(server(), concurrency);
        assert!(is_by_bitmap(&plan), "{concurrency}: {plan}");
        // The default, 1 or 16, isn't shown.
        let raised = concurrency.max(16);
        let is_shown = raised.to_string() != default;
        assert_eq!(has_setting(&plan, raised), is_shown, "{concurrency}: {plan}");
    }
    let plan = reading(server(), 0);
    assert!(has_setting(&plan, 0), "{plan}");

    let with_memory = Server::start("autovacuum = off");
    make(&mut with_memory.database("plans"), "s");
    let plan = reading(&with_memory, 1);
    assert!(plan.contains("Index Scan using s_pkey"), "{plan}");
    assert!(!has_setting(&plan, 16), "{plan}");
}

/// Calls lock the table, so that nobody shortens it between announcing pages and reading them. What
/// a session remembers of a table that is shortened later doesn't matter.
#[test]
fn a_set_is_shortened_between_calls() {
    let mut client = server().database("shortened");
    let mut other = server().connect("shortened");
    let mut random = random(75);
    let mut has = make(&mut client, "s");
    ask(&mut client, "s", &has, &mut random);
    let size = |client: &mut Client| value::<i64>(client, "SELECT pg_relation_size('s')");
    let full = size(&mut other);

    // Rows become smaller, and move to the front.
    let removed: Vec<i32> = has.iter().copied().filter(|element| element % 10 != 0).collect();
    assert_eq!(call(&mut other, "bloom_set_remove_all", "s", &removed), removed);
    has.retain(|element| element % 10 == 0);
    ask(&mut client, "s", &has, &mut random);
    run(&mut other, "SELECT bloom_set_expire('s')");
    run(&mut other, "VACUUM FULL s");
    assert!(size(&mut other) < full / 2);
    ask(&mut client, "s", &has, &mut random);
    change(&mut client, "s", &mut has, &mut random);

    run(&mut other, "SELECT bloom_set_clear('s')");
    has.clear();
    ask(&mut client, "s", &has, &mut random);
    change(&mut client, "s", &mut has, &mut random);

    // A set of the same name, and none.
    run(&mut other, "DROP TABLE s");
    let has = make(&mut other, "s");
    ask(&mut client, "s", &has, &mut random);
    run(&mut other, "DROP TABLE s");
    let missing = "SELECT bloom_set_present('s', ARRAY[1, 2, 3])";
    refused(&mut client, "42P01", missing);
}

/// A set that is dropped waits for those who ask it, and those who come later don't find it.
#[test]
fn a_set_is_dropped_while_others_ask() {
    let mut client = server().database("dropped");
    make(&mut client, "s");
    let readers: Vec<_> = (0..2)
        .map(|number| {
            std::thread::spawn(move || {
                let mut reader = server().connect("dropped");
                let mut random = Random(number);
                loop {
                    let elements = some(&mut random, 1000);
                    let sql = "SELECT bloom_set_present('s', $1::integer[])";
                    if let Err(error) = reader.query_one(sql, &[&elements]) {
                        return state_of(&error);
                    }
                }
            })
        })
        .collect();
    wait_until("both readers ask", || {
        let asking = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%bloom_set_present%'
            AND datname = 'dropped' AND pid <> pg_backend_pid()";
        value::<i64>(&mut client, asking) == 2
    });
    run(&mut client, "DROP TABLE s");
    for reader in readers {
        let state = reader.join().expect("a reader ends with an error of the server");
        assert_eq!(state, "42P01");
    }
}

#[test]
fn a_cancelled_call_leaves_nothing_behind() {
    let mut client = server().database("cancelled");
    let has = make(&mut client, "s");
    run(&mut client, "SET effective_io_concurrency = 2");
    let settings = "SELECT string_agg(name || setting, ' ' ORDER BY name) FROM pg_settings
        WHERE name LIKE 'enable%' OR name IN ('jit', 'effective_io_concurrency')";
    let before: String = value(&mut client, settings);

    let query = format!(
        "SELECT cardinality(bloom_set_present('s', ARRAY(SELECT generate_series(0, {}))))",
        2 * ELEMENTS
    );
    let mut cancelled = 0;
    for milliseconds in (1..=40).rev() {
        run(&mut client, &format!("SET statement_timeout = {}", milliseconds * 5));
        if let Err(error) = client.batch_execute(&query) {
            assert_eq!(state_of(&error), "57014");
            cancelled += 1;
        }
        assert_eq!(value::<String>(&mut client, settings), before);
    }
    assert!(cancelled > 0);
    run(&mut client, "SET statement_timeout = 0");
    assert_eq!(value::<i32>(&mut client, &query), has.len() as i32);

    // A call that fails for damaged rows after it has read them.
    run(
        &mut client,
        "DO $$ DECLARE its_check text := pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'filter_set';
         BEGIN
             ALTER TABLE s DROP CONSTRAINT filter_set;
             UPDATE s SET hashes = 'damaged' WHERE bucket % 4 = 0;
             EXECUTE 'ALTER TABLE s ADD CONSTRAINT filter_set ' || its_check || ' NOT VALID';
         END $$",
    );
    assert_eq!(sqlstate(&mut client, &query), "XX001");
    assert_eq!(value::<String>(&mut client, settings), before);
}

#[test]
fn a_standby_reads_a_set_that_changes() {
    let primary = Server::start(&format!("{}\nwal_level = replica", with_buffers(BUFFERS)));
    let mut client = primary.database("followed");
    let mut has = make(&mut client, "s");
    let standby = Server::start(&with_buffers(BUFFERS));
    follow(&standby, &primary);
    let mut reader = standby.connect("followed");
    let mut random = random(76);
    for concurrency in [0, 1, 16] {
        run(&mut reader, &format!("SET effective_io_concurrency = {concurrency}"));
        change(&mut client, "s", &mut has, &mut random);
        run(&mut client, "VACUUM s");
        catch_up(&mut client, &mut reader);
        ask(&mut reader, "s", &has, &mut random);
    }
}
