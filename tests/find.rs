//! `bloom_find` and `bloom_find_all` return exactly the rows of the query on the parent, for
//! exactly the callers who may run that query, whatever the tables below the parent look like.

mod common;

#[path = "find/concurrently.rs"]
mod concurrently;
#[path = "find/memory.rs"]
mod memory;
#[path = "find/standby.rs"]
mod standby;

use common::standby::{catch_up, follow};
use common::{
    Random, Server, column, random, refused, run, sqlstate, sqlstate_within, times, value,
};
use postgres::Client;

/// Steps of a history.
const STEPS: usize = 80;
/// Distinct keys.
const KEYS: usize = 40;

/// A partitioned table, an inheritance parent and a plain table, with a foreign server that is this
/// one.
const TABLES: &str = "
    CREATE TABLE p (gone text, at integer, id text, u integer, gone_too date) PARTITION BY RANGE (at);
    CREATE TABLE p_default PARTITION OF p DEFAULT;
    CREATE TABLE h (id varchar(60), at integer, u integer);
    CREATE TABLE plain (id char(40), at integer, u bigint);
    ALTER TABLE p DROP gone, DROP gone_too;
    CREATE TABLE remote (at integer, id text, u integer);";

/// The same rows, of the query and of the function?
fn assert_same(client: &mut Client, table: &str, condition: &str, call: &str) -> usize {
    let by_query = format!(
        "SELECT t.tableoid::regclass || t::text FROM {table} AS t WHERE {condition} ORDER BY 1"
    );
    let without = format!("SELECT t::text FROM {table} AS t WHERE {condition} ORDER BY 1");
    let by_function = format!("SELECT t::text FROM {call} AS t ORDER BY 1");
    let wanted: Vec<String> = column(client, &without);
    let found: Vec<String> = column(client, &by_function);
    if wanted != found {
        let sources: Vec<String> = column(client, &by_query);
        panic!("{call}\nfound {found:?}\ninstead of {sources:?}");
    }
    found.len()
}

/// Compares lookups of each column of each table. Returns how many rows were found.
fn compare(client: &mut Client, random: &mut Random) -> usize {
    let mut rows = 0;
    for table in ["p", "h", "plain"] {
        {
            let n = random.below(KEYS + 4);
            rows += assert_same(
                client,
                table,
                &format!("id = 'key {n}'"),
                &format!("bloom_find(NULL::{table}, 'id', 'key {n}')"),
            );
            let cast = *random.pick(&["integer", "bigint", "smallint", "numeric"]);
            {
                let call = format!("bloom_find(NULL::{table}, 'u', {n}::{cast})");
                rows += assert_same(client, table, &format!("u = {n}::{cast}"), &call);
            }
            let texts = format!("'{{key {n}, NULL, key {}, \"key 3\", key {n}}}'", n / 2);
            let call = format!("bloom_find_all(NULL::{table}, 'id', {texts})");
            rows += assert_same(client, table, &format!("id = ANY ({texts})"), &call);
            let numbers = format!("ARRAY[{n}, NULL, {}, 7]::bigint[]", n / 3);
            let call = format!("bloom_find_all(NULL::{table}, 'u', {numbers})");
            rows += assert_same(client, table, &format!("u = ANY ({numbers})"), &call);
        }
    }
    rows
}

/// The tables below the parents, and these.
fn tables(client: &mut Client, condition: &str) -> Vec<String> {
    column(
        client,
        &format!(
            "SELECT c.oid::regclass::text FROM pg_class AS c LEFT JOIN pg_inherits ON inhrelid = c.oid
             WHERE relnamespace = 'public'::regnamespace AND relname !~ 'remote' AND ({condition}) ORDER BY 1"
        ),
    )
}

fn picked(client: &mut Client, random: &mut Random, condition: &str) -> String {
    let all = tables(client, condition);
    if all.is_empty() { "nothing".into() } else { random.pick(&all).clone() }
}

/// One statement that changes something.
fn action(client: &mut Client, random: &mut Random, step: usize) -> String {
    const LEAF: &str = "relkind = 'r'";
    let (from, n) = (random.below(20) * 100, random.below(KEYS));
    let leaf = picked(client, random, LEAF);
    let partition = picked(client, random, "inhparent = 'p'::regclass AND relname <> 'p_default'");
    match random.below(24) {
        0 => format!("CREATE TABLE p{step} PARTITION OF p FOR VALUES FROM ({from}) TO ({})", from + 100),
        1 => format!(
            "CREATE TABLE p{step} (u integer, x{step} text, id text, at integer);
             ALTER TABLE p{step} DROP x{step};
             INSERT INTO p{step} SELECT {n}, 'key {n}', {from} + i % 50 FROM generate_series(1, 300) AS i;
             CREATE INDEX ON p{step} USING bloom_filter (id) WITH (pages_per_range = 1);
             ALTER TABLE p ATTACH PARTITION p{step} FOR VALUES FROM ({from}) TO ({})",
            from + 100
        ),
        2 => format!(
            "CREATE TABLE p{step} PARTITION OF p FOR VALUES FROM ({from}) TO ({}) PARTITION BY HASH (u);
             CREATE TABLE p{step}_0 PARTITION OF p{step} FOR VALUES WITH (MODULUS 2, REMAINDER 0);
             CREATE TABLE p{step}_1 (id text, u integer, at integer);
             ALTER TABLE p{step} ATTACH PARTITION p{step}_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
            from + 100
        ),
        3 => format!("ALTER TABLE p DETACH PARTITION {partition}"),
        4 => format!("DROP TABLE {partition}"),
        5 => format!(
            "CREATE FOREIGN TABLE p{step} PARTITION OF p FOR VALUES FROM ({from}) TO ({}) SERVER self
                OPTIONS (table_name 'remote');
             DELETE FROM remote; INSERT INTO remote SELECT {from}, 'key ' || i, i FROM generate_series(1, 20) AS i",
            from + 100
        ),
        6 | 7 => format!("CREATE TABLE h{step} (more text) INHERITS ({})", picked(client, random, "relname ~ '^h'")),
        8 => format!("ALTER TABLE {} NO INHERIT h", picked(client, random, "inhparent = 'h'::regclass")),
        9 => format!(
            "CREATE TABLE h{step} (u integer, y text, at integer, id varchar(60)); ALTER TABLE h{step} INHERIT h"
        ),
        10 => format!("CREATE INDEX ON {leaf} USING bloom_filter (id) WITH (pages_per_range = 1)"),
        11 => format!("CREATE INDEX ON {leaf} USING bloom_filter (u) WITH (pages_per_range = 1)"),
        12 => format!("CREATE INDEX ON {leaf} USING bloom_filter (id) WHERE u < 10"),
        13 => format!("CREATE INDEX ON {leaf} USING bloom_filter ((lower(id)))"),
        14 => format!("CREATE INDEX ON {leaf} USING bloom_filter (id COLLATE \"C\")"),
        15 => format!(
            "CREATE INDEX ON {leaf} USING bloom_filter ((id::text) text_ngram_ops); CREATE INDEX ON {leaf} (id)"
        ),
        16 => format!("DROP INDEX IF EXISTS {}", picked(client, random, "relkind = 'i'")),
        17 => format!(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{}'::regclass AND NOT indisprimary",
            picked(client, random, "relkind = 'i'")
        ),
        18 => "CREATE INDEX ON p USING bloom_filter (u)".into(),
        19 => format!("ALTER TABLE {} ADD more{step} integer DEFAULT 5", random.pick(&["p", "h", "plain"])),
        20 => format!("UPDATE {leaf} SET id = 'key {n}', u = {n} WHERE u % 7 = {}", random.below(7)),
        21 => format!("DELETE FROM {leaf} WHERE u = {n}"),
        22 => format!("ALTER TABLE {} ALTER u TYPE {}", random.pick(&["p", "h"]), random.pick(&["bigint", "integer"])),
        _ => format!("TRUNCATE {leaf}"),
    }
}

/// More rows everywhere, by COPY's way and in small pieces.
fn insert(client: &mut Client, random: &mut Random) {
    let table = *random.pick(&["p", "h", "plain"]);
    let table = if table == "h" {
        picked(client, random, "relkind = 'r' AND relname ~ '^h'")
    } else {
        table.into()
    };
    let count = 1 + random.below(400);
    let first = random.below(KEYS);
    let sql = format!(
        "INSERT INTO {table} (id, at, u)
         SELECT 'key ' || ({first} + i) % {KEYS}, i * 37 % 2100, ({first} + i) % {KEYS} FROM generate_series(1, {count}) AS i"
    );
    // A foreign partition may have been dropped on the other side.
    sqlstate(client, &sql);
}

#[test]
fn rows_are_those_of_the_query_in_random_histories() {
    let server = Server::start("max_prepared_transactions = 0");
    let mut client = server.database("find");
    run(&mut client, TABLES);
    let host: String = value(&mut client, "SHOW unix_socket_directories");
    run(&mut client, "CREATE EXTENSION postgres_fdw");
    let port: String = value(&mut client, "SHOW port");
    run(
        &mut client,
        &format!(
            "CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{host}', port '{port}', dbname 'find');
             CREATE USER MAPPING FOR CURRENT_USER SERVER self"
        ),
    );
    let mut reader = server.connect("find");
    let standby = Server::start("");
    follow(&standby, &server);
    let mut on_standby = standby.connect("find");
    let mut random = random(4711);
    let (mut rows, mut done) = (0, 0);
    for step in 0..times(STEPS) {
        run(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT");
        let sql = action(&mut client, &mut random, step);
        done += usize::from(client.batch_execute(&format!("BEGIN; {sql}; COMMIT")).is_ok());
        sqlstate(&mut client, "ROLLBACK");
        // The transaction sees its own rows.
        run(&mut client, "BEGIN");
        insert(&mut client, &mut random);
        if sqlstate(&mut client, "SELECT") == "00000" {
            rows += compare(&mut client, &mut random);
        }
        run(&mut client, "COMMIT");
        rows += compare(&mut client, &mut random);
        rows += compare(&mut reader, &mut random);
        run(&mut reader, "COMMIT");
        catch_up(&mut client, &mut on_standby);
        rows += compare(&mut on_standby, &mut random);
    }
    println!("{rows} rows, {done} steps");
    assert!(rows > 10 * times(STEPS) && done > times(STEPS) / 2, "{rows} rows, {done} steps");
}

#[test]
fn rights_are_those_of_the_query() {
    let server = Server::start("");
    let mut client = server.database("rights");
    run(
        &mut client,
        "CREATE ROLE reader; CREATE ROLE other; CREATE SCHEMA hidden;
         CREATE TABLE t (id integer, secret text) PARTITION BY LIST (id);
         CREATE TABLE hidden.t1 PARTITION OF t DEFAULT;
         CREATE INDEX ON t USING bloom_filter (id);
         INSERT INTO t VALUES (1, 'one');
         CREATE VIEW v AS SELECT * FROM bloom_find(NULL::t, 'id', 1);
         CREATE VIEW view_of_t AS SELECT * FROM t;
         CREATE FUNCTION definer() RETURNS bigint LANGUAGE sql SECURITY DEFINER
             AS 'SELECT count(*) FROM bloom_find(NULL::public.t, ''id'', 1)';
         GRANT SELECT ON v TO reader; GRANT SELECT (id) ON t TO other; SET ROLE reader",
    );
    let call = "SELECT * FROM bloom_find(NULL::t, 'id', 1)";
    for sql in [
        call,
        "SELECT * FROM bloom_find(NULL::t, 'id', NULL)",
        "SELECT * FROM v",
    ] {
        refused(&mut client, "42501", sql);
    }
    assert_eq!(value::<i64>(&mut client, "SELECT definer()"), 1);
    run(&mut client, "SET ROLE other");
    refused(&mut client, "42501", call);
    run(
        &mut client,
        "RESET ROLE; GRANT SELECT (secret) ON t TO other; GRANT SELECT ON t TO reader; SET ROLE other",
    );
    // Neither rights to partitions are needed, nor to their schemas.
    assert_eq!(
        value::<String>(&mut client, "SELECT secret FROM bloom_find(NULL::t, 'id', 1)"),
        "one"
    );
    refused(&mut client, "42501", "SELECT * FROM hidden.t1");
    for table in ["t", "hidden.t1"] {
        run(&mut client, &format!("RESET ROLE; ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"));
        assert_eq!(
            value::<i64>(&mut client, "SELECT count(*) FROM bloom_find(NULL::t, 'id', 1)"),
            1
        );
        run(&mut client, "SET ROLE reader");
        refused(&mut client, "0A000", call);
        run(
            &mut client,
            &format!("RESET ROLE; ALTER TABLE {table} DISABLE ROW LEVEL SECURITY; SET ROLE reader"),
        );
    }
    for (state, arguments) in [
        ("42804", "1, 'id', 1"),
        ("42809", "NULL::view_of_t, 'id', 1"),
        ("42703", "NULL::t, 'nothing', 1"),
        ("42703", "NULL::t, 'ctid', 1"),
        ("22004", "NULL::t, NULL, 1"),
        ("22P02", "NULL::t, 'id', 'x'"),
        ("42883", "NULL::t, 'id', point '(1,2)'"),
    ] {
        refused(&mut client, state, &format!("SELECT * FROM bloom_find({arguments})"));
    }
}

#[test]
fn temporary_tables_of_other_sessions_are_left_out_and_anyone_can_cancel() {
    let server = Server::start("");
    let mut client = server.database("others");
    run(&mut client, "CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 1000) AS i");
    let mut other = server.connect("others");
    run(&mut other, "CREATE TEMPORARY TABLE mine () INHERITS (t); INSERT INTO mine VALUES (5)");
    let count = "SELECT count(*) FROM bloom_find(NULL::t, 'id', 5)";
    assert_eq!((value::<i64>(&mut client, count), value::<i64>(&mut other, count)), (1, 2));
    run(&mut client, "INSERT INTO t SELECT 5 FROM generate_series(1, 3000000)");
    assert_eq!(
        sqlstate_within(&mut client, 20, "SELECT count(*) FROM bloom_find(NULL::t, 'id', 5)"),
        "57014"
    );
}

#[test]
fn serializable_transactions_notice_what_they_did_not_find() {
    let server = Server::start("");
    let mut client = server.database("serializable");
    run(
        &mut client,
        "CREATE TABLE t (id integer) PARTITION BY LIST (id); CREATE TABLE t1 PARTITION OF t DEFAULT;
         CREATE INDEX ON t USING bloom_filter (id); INSERT INTO t SELECT generate_series(10, 5000)",
    );
    let mut other = server.connect("serializable");
    for (session, absent) in [(&mut client, 1), (&mut other, 2)] {
        run(session, "BEGIN ISOLATION LEVEL SERIALIZABLE");
        assert_eq!(
            value::<i64>(
                session,
                &format!("SELECT count(*) FROM bloom_find(NULL::t, 'id', {absent})")
            ),
            0
        );
    }
    run(&mut client, "INSERT INTO t VALUES (2)");
    let states = [
        sqlstate(&mut other, "INSERT INTO t VALUES (1)"),
        sqlstate(&mut client, "COMMIT"),
        sqlstate(&mut other, "COMMIT"),
    ];
    assert!(states.contains(&"40001".to_owned()), "{states:?}");
}
