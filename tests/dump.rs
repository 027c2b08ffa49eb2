//! Filters that leave a database and come back, by dump, COPY or crash, are the same filters and find the same elements.

mod common;

use common::{KINDS, LAYOUTS, Server, TYPES, column, output, refused, rows, run, sqlstate, value};
use postgres::Client;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Elements of each kind.
const COUNT: usize = 300;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(""))
}

/// A new database with tables of elements of every kind, `elements_<n>`, and of filters of them.
fn source(server: &Server, name: &str) -> Client {
    let mut client = server.database(name);
    run(&mut client, TYPES);
    run(&mut client, "SET pg_bloom.overfill = ignore");
    run(&mut client, "CREATE TABLE filters (kind integer, note text, f bloom)");
    run(&mut client, "CREATE TABLE counting_filters (kind integer, note text, f counting_bloom)");
    for (n, (sql_type, element)) in KINDS.iter().enumerate() {
        let table = format!("elements_{n}");
        run(
            &mut client,
            &format!(
                "CREATE TABLE {table} (x {sql_type});
                 INSERT INTO {table} SELECT {element} FROM generate_series(1, {COUNT}) AS i"
            ),
        );
        for layout in LAYOUTS {
            for size in ["1000000, 0.01", "50, 0.001", "NULL, 0.05"] {
                let build = format!("SELECT {n}, '{layout}, {size}', bloom_agg(x, {size}, '{layout}') FROM {table}");
                run(&mut client, &format!("INSERT INTO filters {build}"));
            }
        }
    }
    for n in 0..KINDS.len() {
        let build = format!("SELECT {n}, 'counting', counting_bloom_agg(x, 1000) FROM elements_{n}");
        run(&mut client, &format!("INSERT INTO counting_filters {build}"));
    }
    run(
        &mut client,
        "INSERT INTO counting_filters
         VALUES (NULL, 'no size', counting_bloom_empty()), (NULL, 'sized', counting_bloom_empty(9)), (NULL, 'none', NULL)",
    );
    run(&mut client, "INSERT INTO filters VALUES (NULL, 'empty', bloom_empty()), (NULL, 'none', NULL)");
    run(
        &mut client,
        "INSERT INTO filters VALUES (NULL, 'sized', bloom_empty(100)), (NULL, 'big', bloom_empty(9999999))",
    );
    client
}

/// All filters, as bytes.
fn filters(client: &mut Client, table: &str) -> Vec<(Option<i32>, String, Option<Vec<u8>>)> {
    rows(client, &format!("SELECT kind, note, f::bytea FROM {table} ORDER BY 1, 2"))
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

/// Asserts that each filter finds all elements of its table.
fn finds_everything(client: &mut Client) {
    for (n, (sql_type, _)) in KINDS.iter().enumerate() {
        let row = &rows(
            client,
            &format!(
                "SELECT count(*), count(*) FILTER (WHERE f @> x AND x <@ f) FROM filters, elements_{n} WHERE kind = {n}"
            ),
        )[0];
        let (asked, found): (i64, i64) = (row.get(0), row.get(1));
        assert_eq!((asked, found), (9 * COUNT as i64, asked), "elements of type {sql_type}");
        let rebuilt: bool = value(
            client,
            &format!(
                "SELECT f = counting_bloom_agg(x, 1000) AND bool_and(f @> x)
                        AND (NOT bool_or(f - x = f) OR (counting_bloom_info(f)).counters_saturated > 0)
                 FROM counting_filters, elements_{n} WHERE kind = {n} GROUP BY f"
            ),
        );
        assert!(rebuilt, "elements of type {sql_type}");
    }
}

/// Asserts that a restored database is like the one it was dumped from, and not by chance.
fn same_after_restore(before: &mut Client, after: &mut Client) {
    let labels = "SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum";
    assert_eq!(value::<String>(before, labels), "perfect,great,good,fair é,bad");
    assert_eq!(value::<String>(after, labels), "perfect,great,good,fair é,bad");
    let by_oid = "SELECT string_agg(enumlabel, ',' ORDER BY oid) FROM pg_enum";
    assert_ne!(
        value::<String>(before, by_oid),
        value::<String>(after, by_oid),
        "the labels' OIDs are in the same order"
    );
    for table in ["filters", "counting_filters"] {
        assert!(filters(before, table) == filters(after, table), "the dump changed a filter");
    }
    finds_everything(after);
    // Enums are found by label and the others by value: elements that were not added are missed by exact filters.
    let exact = "FROM filters WHERE note = 'blocked, 1000000, 0.01' AND kind = ";
    for (n, (sql_type, _)) in KINDS.iter().enumerate() {
        let absent = match *sql_type {
            "mood" => "'unknown'::text".into(),
            "boolean" | "\"char\"" => continue,
            _ => format!("(SELECT x FROM ({}) AS v)", absent(n)),
        };
        let found: bool = value(after, &format!("SELECT f @> {absent} {exact} {n}"));
        assert!(!found, "{sql_type}");
    }
}

/// A query for an element of a kind that is not in its table.
fn absent(kind: usize) -> String {
    format!("SELECT {} AS x FROM (SELECT {}) AS n (i)", KINDS[kind].1, 20_000)
}

#[test]
fn plain_dumps_restore_the_same_filters() {
    let mut before = source(server(), "plain");
    let mut after = server().empty_database("plain_restored", "TEMPLATE template0");
    let dump = output(server().program("pg_dump").arg("plain"));
    feed(server().program("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "plain_restored"]), &dump);
    same_after_restore(&mut before, &mut after);
}

#[test]
fn dumps_as_inserts_restore_the_same_filters() {
    let mut before = source(server(), "inserts");
    let mut after = server().empty_database("inserts_restored", "TEMPLATE template0");
    let dump = output(server().program("pg_dump").args(["--rows-per-insert=100", "inserts"]));
    feed(server().program("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "inserts_restored"]), &dump);
    same_after_restore(&mut before, &mut after);
}

#[test]
fn custom_dumps_restore_the_same_filters() {
    let mut before = source(server(), "custom");
    let mut after = server().empty_database("custom_restored", "TEMPLATE template0");
    let dump = output(server().program("pg_dump").args(["-Fc", "custom"]));
    feed(server().program("pg_restore").args(["--exit-on-error", "-d", "custom_restored"]), &dump);
    same_after_restore(&mut before, &mut after);
}

/// Runs a program with this standard input.
fn feed(command: &mut Command, input: &[u8]) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program runs");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let written = stdin.write_all(input);
    drop(stdin);
    let status = child.wait().expect("the program ends");
    assert!(status.success() && written.is_ok(), "{command:?} failed");
}

/// What depends on functions of the extension; EMPTY stands for a filter.
const USES: &str = "
    CREATE SCHEMA other;
    CREATE TYPE other.pair AS (a integer, b text);
    CREATE TABLE guarded (
        x text CHECK (NOT bloom_from_array(ARRAY['spam'], 100) @> x),
        f bloom DEFAULT bloom_empty(9)
    );
    CREATE TABLE tagged (x integer, f bloom GENERATED ALWAYS AS ('EMPTY'::bloom || x) STORED);
    CREATE INDEX by_filter ON filters (f) WHERE octet_length(f::bytea) < 1000;
    CREATE INDEX by_answer ON filters ((f @> 'great'::mood)) WHERE kind = 11;
    CREATE INDEX by_hash ON filters USING hash (f);
    CREATE MATERIALIZED VIEW pairs AS
        SELECT bloom_agg(ROW(a, b)::other.pair, 99) AS f FROM (VALUES (1, 'x'), (2, 'y')) AS v (a, b);
    CREATE MATERIALIZED VIEW unions AS
        SELECT kind, bloom_union_agg(f) AS f FROM filters WHERE note = 'blocked, 1000000, 0.01' GROUP BY kind;
    CREATE VIEW moods AS SELECT x FROM elements_11 WHERE (SELECT bloom_agg(x) FROM elements_11) @> x;
    INSERT INTO guarded VALUES ('ham');
    INSERT INTO tagged VALUES (42);";

/// The restore works with an empty search path.
#[test]
fn dumps_restore_what_uses_the_functions() {
    let mut before = source(server(), "uses");
    let empty: String = value(&mut before, "SELECT bloom_empty()::text");
    run(&mut before, &USES.replace("EMPTY", &empty));
    let mut after = server().empty_database("uses_restored", "TEMPLATE template0");
    let dump = output(server().program("pg_dump").arg("uses"));
    feed(server().program("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "uses_restored"]), &dump);
    let all = "SELECT (TABLE pairs) @> ROW(2, 'y')::other.pair AND NOT (TABLE pairs) @> ROW(2, 'x')::other.pair
                      AND (SELECT bool_and(f @> x) FROM tagged) AND (SELECT bool_and(f = bloom_empty(9)) FROM guarded)
                      AND (SELECT count(*) FROM moods) = 300";
    assert!(value::<bool>(&mut before, all) && value::<bool>(&mut after, all));
    let unions = "SELECT f::text FROM unions ORDER BY kind";
    assert_eq!(column::<String>(&mut before, unions), column::<String>(&mut after, unions));
    refused(&mut after, "23514", "INSERT INTO guarded VALUES ('spam')");
    let other_kind = "SELECT (TABLE pairs) @> ROW(1, 'x')::public.pair";
    refused(&mut after, "42804", other_kind);
}

/// Values that name objects of the database are kept as identifiers, which a dump replaces by names: a filter of them
/// must be refused or find them nevertheless.
#[test]
fn names_of_objects_are_found_after_a_restore_or_refused() {
    let mut before = server().database("objects");
    run(
        &mut before,
        "CREATE TABLE dropped (); DROP TABLE dropped; CREATE TABLE named (x integer); CREATE TYPE typed AS (a integer)",
    );
    let elements = [
        ("regclass", "'named'"),
        ("regtype", "'typed'"),
        ("regclass[]", "ARRAY['named'::regclass]"),
        ("regproc", "'bloom_union'"),
    ];
    let mut built = Vec::new();
    for (n, (sql_type, element)) in elements.iter().enumerate() {
        run(
            &mut before,
            &format!("CREATE TABLE objects_{n} (x {sql_type}); INSERT INTO objects_{n} VALUES ({element})"),
        );
        match sqlstate(
            &mut before,
            &format!("CREATE TABLE filter_{n} AS SELECT bloom_agg(x, 1000) AS f FROM objects_{n}"),
        )
        .as_str()
        {
            "00000" => built.push(n),
            state => assert_eq!(state, "0A000", "{sql_type}"),
        }
    }
    let mut after = server().empty_database("objects_restored", "TEMPLATE template0");
    let dump = output(server().program("pg_dump").arg("objects"));
    feed(server().program("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "objects_restored"]), &dump);
    built.retain(|n| !value::<bool>(&mut after, &format!("SELECT f @> x FROM filter_{n}, objects_{n}")));
    assert!(
        built.is_empty(),
        "not found after the restore: {:?}",
        built.iter().map(|n| elements[*n].0).collect::<Vec<_>>()
    );
}

#[test]
fn copies_as_text_and_binary_are_the_same_filters() {
    let mut client = source(server(), "copies");
    for table in ["filters", "counting_filters"] {
        let expected = filters(&mut client, table);
        for (n, options) in ["FORMAT text", "FORMAT binary", "FORMAT csv"].iter().enumerate() {
            let copy = format!("{table}_{n}");
            run(&mut client, &format!("CREATE TABLE {copy} (LIKE {table})"));
            let mut bytes = Vec::new();
            let mut reader = client.copy_out(&format!("COPY {table} TO STDOUT ({options})")).expect("COPY starts");
            reader.read_to_end(&mut bytes).expect("COPY can be read");
            drop(reader);
            let mut writer = client.copy_in(&format!("COPY {copy} FROM STDIN ({options})")).expect("COPY starts");
            writer.write_all(&bytes).expect("COPY can be written");
            writer.finish().expect("COPY takes what COPY gave");
            assert!(expected == filters(&mut client, &copy), "{options}");
        }
    }
}

#[test]
fn committed_filters_survive_a_restart_and_a_crash() {
    let server = Server::start("wal_level = minimal\nmax_wal_senders = 0");
    let mut client = source(&server, "crash");
    let expected = filters(&mut client, "filters");
    drop(client);
    server.restart();
    let mut client = server.connect("crash");
    assert!(expected == filters(&mut client, "filters"), "the restart changed a filter");
    run(&mut client, "CREATE TABLE later AS SELECT kind, note, f | f AS f FROM filters WHERE kind > 4");
    let later = filters(&mut client, "later");
    run(&mut client, "BEGIN; UPDATE filters SET f = bloom_empty() WHERE kind > 4");
    server.kill9();
    server.restart();
    let mut client = server.connect("crash");
    assert!(expected == filters(&mut client, "filters"), "the crash changed a filter");
    assert!(later == filters(&mut client, "later"), "the crash changed a filter");
    finds_everything(&mut client);
}
