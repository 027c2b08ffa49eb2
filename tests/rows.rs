//! Rows as elements: a filter of a row type that was altered refuses its rows rather than missing them.

mod common;

use common::{Server, column, refused, run, sqlstate, value};

#[test]
fn altered_row_types_are_refused_and_not_missed() {
    let server = Server::start("");
    let mut client = server.database("rows");
    if common::major_version(&mut client) < 14 {
        return refused(&mut client, "0A000", "SELECT bloom_agg(c) FROM pg_class AS c");
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
    if common::major_version(&mut client) < 14 {
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
