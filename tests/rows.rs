//! Rows as elements: a filter of a row type that was altered refuses its rows rather than missing them, and rows that
//! PostgreSQL has no hash of are refused altogether.

mod common;

use common::{Server, column, hashes_rows, refused, run, sqlstate, value};
use postgres::Client;

#[test]
fn altered_row_types_are_refused_and_not_missed() {
    let server = Server::start("");
    let mut client = server.database("rows");
    if !hashes_rows(&mut client) {
        return;
    }
    run(
        &mut client,
        "CREATE TYPE half AS (x integer);
         CREATE TABLE t (a integer, b varchar(9), h half);
         INSERT INTO t VALUES (1, 'x', ROW(7)), (2, NULL, NULL);
         CREATE TABLE filters AS SELECT bloom_agg(t) AS whole, bloom_agg(ARRAY[t]) AS arrays FROM t",
    );
    let all = "SELECT bool_and(whole @> t AND arrays @> ARRAY[t]) FROM filters, t";
    assert!(value::<bool>(&mut client, all));
    // What keeps equal values equal for PostgreSQL's hash is no other kind.
    for harmless in [
        "ALTER TABLE t ALTER a TYPE bigint",
        "ALTER TABLE t ALTER b TYPE text",
        "ALTER TABLE t RENAME b TO c",
        "ALTER TABLE t ADD extra integer; ALTER TABLE t DROP extra",
    ] {
        run(&mut client, harmless);
        assert!(value::<bool>(&mut client, all), "{harmless}");
    }
    for (change, undo) in [
        ("ALTER TABLE t ADD d integer", "ALTER TABLE t DROP d"),
        ("ALTER TABLE t ALTER a TYPE numeric", "ALTER TABLE t ALTER a TYPE integer"),
        (
            "ALTER TABLE t RENAME TO u; CREATE TABLE t (a text, b integer, h half)",
            "DROP TABLE t; ALTER TABLE u RENAME TO t",
        ),
        ("ALTER TYPE half ADD ATTRIBUTE y text CASCADE", "ALTER TYPE half DROP ATTRIBUTE y CASCADE"),
    ] {
        run(&mut client, change);
        run(&mut client, "INSERT INTO t DEFAULT VALUES");
        for probe in ["whole @> t", "t <@ whole", "arrays @> ARRAY[t]", "(whole || t) IS NULL"] {
            assert_eq!(sqlstate(&mut client, &format!("SELECT {probe} FROM filters, t")), "42804", "{change}: {probe}");
        }
        run(&mut client, "DELETE FROM t WHERE a IS NULL");
        run(&mut client, undo);
        assert!(value::<bool>(&mut client, all), "{undo}");
    }
    assert_eq!(
        column::<String>(&mut client, "SELECT (bloom_info(arrays)).key_kind FROM filters"),
        ["public.t[](integer, text, public.half(integer))"]
    );
}

#[test]
fn rows_of_many_columns_have_a_short_name() {
    let server = Server::start("");
    let mut client = server.database("wide");
    if !hashes_rows(&mut client) {
        return;
    }
    let table = |last: &str| {
        let columns: Vec<String> = (0..300).map(|n| format!("c{n} timestamptz")).collect();
        format!("CREATE TABLE wide ({}, last {last})", columns.join(", "))
    };
    run(&mut client, &table("integer"));
    run(
        &mut client,
        "INSERT INTO wide (c7, last) VALUES (now(), 1); CREATE TABLE f AS SELECT bloom_agg(w) AS f FROM wide AS w",
    );
    assert!(value::<bool>(&mut client, "SELECT f @> w FROM f, wide AS w"));
    run(&mut client, &format!("DROP TABLE wide; {}; INSERT INTO wide (last) VALUES (1)", table("numeric")));
    refused(&mut client, "42804", "SELECT f @> w FROM f, wide AS w");
}

/// Each way to hand over the element X.
const WAYS: [&str; 20] = [
    "bloom_agg(X)",
    "bloom_agg(X, 100)",
    "bloom_add(bloom_empty(9), X)",
    "bloom_add_all(bloom_empty(9), ARRAY[X])",
    "bloom_from_array(ARRAY[X])",
    "bloom_shard(X, 8)",
    "bloom_contains(bloom_empty(9), X)",
    "bloom_contained(X, bloom_empty(9))",
    "bloom_contains_any(bloom_empty(9), ARRAY[X])",
    "bloom_contains_all(bloom_empty(9), ARRAY[X])",
    "bloom_present(bloom_empty(9), ARRAY[X])",
    "bloom_absent(bloom_empty(9), ARRAY[X])",
    "bloom_query(bloom_empty(9), X)",
    "counting_bloom_agg(X, 100)",
    "counting_bloom_add(counting_bloom_empty(9), X)",
    "counting_bloom_add_all(counting_bloom_empty(9), ARRAY[X])",
    "counting_bloom_remove(counting_bloom_empty(9), X)",
    "counting_bloom_remove_all(counting_bloom_empty(9), ARRAY[X])",
    "counting_bloom_contains(counting_bloom_empty(9), X)",
    "counting_bloom_contained(X, counting_bloom_empty(9))",
];

/// Elements with rows in them, and what the message calls their type.
const WITH_ROWS: [(&str, &str); 7] = [
    ("ROW(1, '7')::pair", "pair"),
    ("ROW(NULL, NULL)::pair", "pair"),
    ("(SELECT t FROM t)", "t"),
    ("ROW(1, '7')::some_pair", "pair"),
    ("ROW(2, ROW(1, '7'))::nested", "nested"),
    ("ARRAY[ROW(1, '7')::pair]", "pair"),
    ("pairs(ROW(1, '7')::pair, ROW(2, '7')::pair)", "pairs"),
];

/// No version hashes rows of money, which it doesn't hash either. Version 13 hashes none at all.
#[test]
fn rows_without_a_hash_are_refused_in_every_way() {
    let server = Server::start("");
    let mut client = server.database("refused");
    let function = "SELECT count(*) > 0 FROM pg_proc WHERE proname = 'hash_record_extended'";
    let rows_have_a_hash = hashes_rows(&mut client);
    assert_eq!(value::<bool>(&mut client, function), rows_have_a_hash);
    let taking_any: Vec<String> = column(
        &mut client,
        "SELECT DISTINCT proname::text FROM pg_proc JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid
         WHERE deptype = 'e' AND proargtypes::oid[] && ARRAY['anyelement', 'anyarray']::regtype[]::oid[]
             AND NOT proargtypes::oid[] @> ARRAY['internal'::regtype::oid]",
    );
    let untried = taking_any.iter().find(|name| !WAYS.iter().any(|way| way.starts_with(&format!("{name}("))));
    assert!(!taking_any.is_empty() && untried.is_none(), "{untried:?}");
    for last in if rows_have_a_hash { &["money"][..] } else { &["money", "text"] } {
        run(
            &mut client,
            &format!(
                "BEGIN;
                 CREATE TYPE pair AS (a integer, b {last});
                 CREATE DOMAIN some_pair AS pair;
                 CREATE TYPE nested AS (a integer, b pair);
                 CREATE TYPE pairs AS RANGE (subtype = pair);
                 CREATE TABLE t (a integer, b {last});
                 INSERT INTO t VALUES (1, '7');
                 SAVEPOINT made"
            ),
        );
        for (element, sql_type) in WITH_ROWS {
            for way in WAYS {
                let sql = format!("SELECT {}", way.replace('X', element));
                assert_eq!(refusal(&mut client, &sql), of_type(sql_type), "{sql}, rows with {last}");
                run(&mut client, "ROLLBACK TO made");
            }
            let as_hinted = format!("SELECT bloom_agg({element}::text) @> {element}::text");
            assert!(value::<bool>(&mut client, &as_hinted), "{as_hinted}");
        }
        run(&mut client, "ROLLBACK");
    }
}

/// SQLSTATE, message and hint of the error that a statement gives. An array is called by what it is an array of.
fn refusal(client: &mut Client, sql: &str) -> [String; 3] {
    let error = client.batch_execute(sql).expect_err(sql);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}\nno error of the server's: {error:?}"));
    [error.code().code(), &error.message().replace("[]", ""), error.hint().unwrap_or_default()].map(String::from)
}

fn of_type(sql_type: &str) -> [String; 3] {
    [
        "0A000",
        &format!("type {sql_type} cannot be an element of a bloom filter"),
        "The type has no hash operator class. Cast the element to a type that has one, for instance text.",
    ]
    .map(String::from)
}
