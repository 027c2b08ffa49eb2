//! Tables and indexes that don't fit into the server's memory: whatever is announced before it is
//! read, and whether anything may be, lookups find the same rows.

use crate::common::asking::{Answers, agree, any, check, each};
use crate::common::standby::{catch_up, follow, wait_until};
use crate::common::{
    Random, Server, column, major_version, rows, run, sqlstate, value, with_buffers,
};
use crate::{random, times};
use postgres::Client;
use std::sync::OnceLock;

/// Buffers for a tenth of the tables below.
const BUFFERS: &str = "1MB";

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&with_buffers(BUFFERS)))
}

/// Rows of a table.
const ROWS: usize = 8_000;

/// Makes a table with an index of each kind. `word` is what its kind of table needs after CREATE.
fn make(client: &mut Client, table: &str, word: &str, tablespace: &str) {
    run(
        client,
        &format!(
            "CREATE {word} TABLE {table} (id integer, x text, body text, f bloom) {tablespace};
             ALTER TABLE {table} ALTER body SET STORAGE PLAIN;
             INSERT INTO {table} SELECT i, md5(i::text), repeat(md5((i / 3)::text), 10),
                 CASE WHEN i % 10 = 0 THEN bloom_from_array(ARRAY[i, -i], 10) END
               FROM generate_series(1, {ROWS}) AS i;
             CREATE INDEX {table}_x ON {table} USING bloom_filter (x) {tablespace};
             CREATE INDEX {table}_body ON {table} USING bloom_filter (body text_ngram_ops) {tablespace};
             CREATE INDEX {table}_f ON {table} USING bloom_filter (f) {tablespace};
             ANALYZE {table}"
        ),
    );
}

/// Asks each index of a table for few and for many keys, some of which are there.
fn ask(client: &mut Client, table: &str, random: &mut Random) {
    let keys = |random: &mut Random, count| -> Vec<String> {
        (0..count)
            .map(|_| format!("md5('{}')", random.below(ROWS * 5 / 4)))
            .collect()
    };
    let few = keys(random, 5);
    let many = keys(random, 100);
    agree(client, &format!("{table}_x"), &each(table, "x", "", &few));
    agree(client, &format!("{table}_x"), &any(table, "x", "", &many));

    let part = |random: &mut Random| {
        format!("'%' || substr(md5('{}'), 3, 12) || '%'", random.below(ROWS / 2))
    };
    let one = part(random);
    let index = format!("{table}_body");
    agree(client, &index, &format!("SELECT id::text FROM {table} WHERE body LIKE {one}"));
    let parts: Vec<String> = (0..15).map(|_| part(random)).collect();
    let parts = parts.join(", ");
    agree(
        client,
        &index,
        &format!("SELECT id::text FROM {table} WHERE body LIKE ANY (ARRAY[{parts}])"),
    );

    let element = random.below(ROWS);
    agree(
        client,
        &format!("{table}_f"),
        &format!("SELECT id::text FROM {table} WHERE f @> {element}"),
    );
}

fn check_all(client: &mut Client, table: &str) {
    assert_eq!(check(client, &format!("{table}_x")), ROWS as i64);
    assert_eq!(check(client, &format!("{table}_body")), ROWS as i64);
    check(client, &format!("{table}_f"));
}

#[test]
fn lookups_agree_whatever_may_be_announced() {
    let mut client = server().database("cold");
    let mut random = random(71);
    run(&mut client, "SET temp_buffers = '800kB'");
    for (name, concurrency) in [("without", 0), ("with_much", 1000)] {
        run(
            &mut client,
            &format!(
                "CREATE TABLESPACE {name} LOCATION '' WITH (effective_io_concurrency = {concurrency})"
            ),
        );
    }
    let kinds = [
        ("usual", "", ""),
        ("unlogged", "UNLOGGED", ""),
        ("temporary", "TEMPORARY", ""),
        ("quiet", "", "TABLESPACE without"),
        ("loud", "", "TABLESPACE with_much"),
    ];
    for (table, word, tablespace) in kinds {
        make(&mut client, table, word, tablespace);
        for concurrency in [0, 1, 16, 1000] {
            run(&mut client, &format!("SET effective_io_concurrency = {concurrency}"));
            for _ in 0..times(1) {
                ask(&mut client, table, &mut random);
            }
        }
        check_all(&mut client, table);
    }
}

/// PostgreSQL shortens no table that a transaction has locked, so pages that are announced are there
/// when they are read. What a session remembers of a table that was shortened later doesn't matter.
#[test]
fn a_table_is_shortened_between_lookups() {
    let mut client = server().database("shortened");
    let mut other = server().connect("shortened");
    make(&mut client, "t", "", "");
    let keys: Vec<String> = (0..40).map(|i| format!("md5('{}')", i * ROWS / 40)).collect();
    let size = |client: &mut Client| value::<i64>(client, "SELECT pg_relation_size('t')");
    let full = size(&mut other);
    run(&mut client, "SET enable_seqscan = off; SET effective_io_concurrency = 16");

    let query = format!("SELECT id FROM t WHERE x = ANY (ARRAY[{}])", keys.join(", "));
    run(&mut client, &format!("BEGIN; DECLARE c CURSOR FOR {query}; FETCH 1 FROM c"));
    run(&mut other, &format!("DELETE FROM t WHERE id > {}", ROWS / 2));
    let seen = rows(&mut client, "FETCH ALL FROM c").len();
    assert_eq!(seen, 38);
    run(&mut client, "COMMIT");

    // Sessions that are just starting may keep rows from being removed.
    wait_until("the table is shorter", || {
        run(&mut other, "VACUUM t");
        size(&mut other) < full * 2 / 3
    });
    agree(&mut client, "t_x", &any("t", "x", "", &keys));
    agree(&mut client, "t_x", &each("t", "x", "", &keys));
    run(&mut client, "TRUNCATE t");
    assert_eq!(agree(&mut client, "t_x", &any("t", "x", "", &keys)), 0);

    // A table of the same name.
    run(&mut other, "DROP TABLE t");
    make(&mut other, "t", "", "");
    agree(&mut client, "t_x", &each("t", "x", "", &keys));
}

/// A table that is dropped waits for those who read it, and those who come later don't find it.
#[test]
fn a_table_is_dropped_while_others_ask() {
    let mut client = server().database("dropped");
    make(&mut client, "t", "", "");
    let keys: Vec<String> = (0..200).map(|i| format!("md5('{}')", i * ROWS / 200)).collect();
    let query = format!(
        "SET enable_seqscan = off; SELECT id FROM t WHERE x = ANY (ARRAY[{}])",
        keys.join(", ")
    );
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let query = query.clone();
            std::thread::spawn(move || {
                let mut reader = server().connect("dropped");
                loop {
                    match reader.batch_execute(&query) {
                        Ok(()) => {}
                        Err(error) => return error.code().map(|code| code.code().to_owned()),
                    }
                }
            })
        })
        .collect();
    wait_until("both readers ask", || {
        let asking = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%FROM t WHERE x%'
            AND datname = 'dropped' AND pid <> pg_backend_pid()";
        value::<i64>(&mut client, asking) == 2
    });
    run(&mut client, "DROP TABLE t");
    for reader in readers {
        let state = reader.join().expect("a reader ends with an error of the server");
        assert_eq!(state.as_deref(), Some("42P01"));
    }
}

#[test]
fn a_cancelled_lookup_leaves_nothing_behind() {
    let mut client = server().database("cancelled");
    make(&mut client, "t", "", "");
    let query = "SELECT count(*) FROM t WHERE x = ANY (ARRAY(SELECT md5(i::text) FROM generate_series(1, 200000) AS i))";
    run(&mut client, "SET enable_seqscan = off; SET effective_io_concurrency = 1000");
    let mut cancelled = 0;
    for milliseconds in (1..=40).rev() {
        let milliseconds = milliseconds * 5;
        run(&mut client, &format!("SET statement_timeout = {milliseconds}"));
        match client.batch_execute(query) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.code().map(|code| code.code()), Some("57014"));
                cancelled += 1;
            }
        }
    }
    assert!(cancelled > 0);
    run(&mut client, "SET statement_timeout = 0");
    assert_eq!(column::<i64>(&mut client, query), [ROWS as i64]);
    check_all(&mut client, "t");

    // An error in the transaction of a lookup.
    assert_eq!(sqlstate(&mut client, "SELECT 1 / (id - id) FROM t WHERE x = md5('77')"), "22012");
}

#[test]
fn a_standby_reads_a_table_that_is_shortened() {
    let primary = Server::start(&format!("{}\nwal_level = replica", with_buffers(BUFFERS)));
    let mut client = primary.database("followed");
    make(&mut client, "t", "", "");
    let standby = Server::start(&with_buffers(BUFFERS));
    follow(&standby, &primary);
    let mut reader = standby.connect("followed");
    let mut random = random(72);
    for concurrency in [0, 1, 16] {
        run(&mut reader, &format!("SET effective_io_concurrency = {concurrency}"));
        run(&mut client, &format!("DELETE FROM t WHERE id > {}", ROWS / 2));
        run(&mut client, "VACUUM t");
        catch_up(&mut client, &mut reader);
        let keys: Vec<String> =
            (0..100).map(|_| format!("md5('{}')", random.below(ROWS))).collect();
        let answers = Answers::of(&mut reader, &any("t", "x", "", &keys)).expect("can be asked");
        answers.assert_same("on a standby");
        assert!(answers.used("t_x"));
        run(
            &mut client,
            &format!(
                "INSERT INTO t SELECT i, md5(i::text), repeat(md5((i / 3)::text), 10)
                 FROM generate_series({}, {ROWS}) AS i",
                ROWS / 2 + 1
            ),
        );
        catch_up(&mut client, &mut reader);
        ask(&mut reader, "t", &mut random);
    }
}

/// Where the operating system doesn't read ahead.
#[test]
fn lookups_agree_without_the_cache_of_the_operating_system() {
    let mut client = server().database("direct");
    if major_version(&mut client) < 16 {
        return;
    }
    // A file system in memory may refuse this.
    let server = Server::start_with(
        &format!("{}\ndebug_io_direct = 'data'", with_buffers(BUFFERS)),
        &[("TMPDIR", "/var/tmp")],
    );
    let mut client = server.database("direct");
    let mut random = random(73);
    run(&mut client, "SET temp_buffers = '800kB'");
    for (table, word) in [("usual", ""), ("temporary", "TEMPORARY")] {
        make(&mut client, table, word, "");
        for concurrency in [0, 1, 16] {
            run(&mut client, &format!("SET effective_io_concurrency = {concurrency}"));
            ask(&mut client, table, &mut random);
        }
        check_all(&mut client, table);
    }
}
