//! Filters that leave a database and come back, by dump, COPY or crash, are the same filters and
//! find the same elements.

mod common;

use common::corpus::{self, filters};
use common::samples::{KEY_KIND_SAMPLES, Sample};
use common::{Server, column, feed, output, refused, run, sqlstate, value};
use postgres::Client;
use std::io::{Read, Write};
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(""))
}

/// A new database with elements of every kind and filters of them.
fn source(server: &Server, name: &str) -> Client {
    let mut client = server.database(name);
    corpus::fill(&mut client, &KEY_KIND_SAMPLES);
    client
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
    corpus::finds_everything(after, &KEY_KIND_SAMPLES);
    // Enums are found by label and the others by value: elements that were not added are missed by
    // exact filters.
    let exact = "FROM filters WHERE note = 'blocked, 1000000, 0.01' AND kind = ";
    for (n, Sample { sql_type, ordinary_value, .. }) in KEY_KIND_SAMPLES.iter().enumerate() {
        let absent = match *sql_type {
            "mood" => "'unknown'::text".into(),
            "boolean" => continue,
            _ => format!("(SELECT {ordinary_value} FROM (SELECT 20000) AS n (i))"),
        };
        let found: bool = value(after, &format!("SELECT f @> {absent} {exact} {n}"));
        assert!(!found, "{sql_type}");
    }
}

#[test]
fn plain_dumps_restore_the_same_filters() {
    let mut before = source(server(), "plain");
    let mut after = server().empty_database("plain_restored", "TEMPLATE template0");
    let dump = output(server().program("pg_dump").arg("plain"));
    feed(
        server().program("psql").args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "plain_restored",
        ]),
        &dump,
    );
    same_after_restore(&mut before, &mut after);
}

#[test]
fn dumps_as_inserts_restore_the_same_filters() {
    let mut before = source(server(), "inserts");
    let mut after = server().empty_database("inserts_restored", "TEMPLATE template0");
    let dump = output(server().program("pg_dump").args(["--rows-per-insert=100", "inserts"]));
    feed(
        server().program("psql").args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "inserts_restored",
        ]),
        &dump,
    );
    same_after_restore(&mut before, &mut after);
}

#[test]
fn custom_dumps_restore_the_same_filters() {
    let mut before = source(server(), "custom");
    let mut after = server().empty_database("custom_restored", "TEMPLATE template0");
    let dump = output(server().program("pg_dump").args(["-Fc", "custom"]));
    feed(
        server()
            .program("pg_restore")
            .args(["--exit-on-error", "-d", "custom_restored"]),
        &dump,
    );
    same_after_restore(&mut before, &mut after);
}

/// What compares filters by an `=` that a dump can't name is left out by the restore; what the FAQ
/// says to write in its place is there. That is PostgreSQL's, for the types of every extension.
#[test]
fn comparisons_that_name_no_operator_are_not_restored() {
    let mut before = server().database("comparisons");
    run(
        &mut before,
        "CREATE TABLE kept (f bloom, g bloom, same integer GENERATED ALWAYS AS (CASE WHEN f = g THEN 1 ELSE 0 END) STORED,
            CHECK ((f = g) IS NOT TRUE), CHECK (NOT coalesce(f = g, f IS NULL AND g IS NULL)), CHECK (f IN (g, g)));
         CREATE VIEW kept_view AS SELECT CASE WHEN a.f = b.g THEN NULL ELSE a.f END AS f
            FROM kept AS a JOIN kept AS b ON a.f = b.f GROUP BY 1;
         CREATE FUNCTION on_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
         CREATE TRIGGER kept_trigger BEFORE UPDATE ON kept FOR EACH ROW
            WHEN ((OLD.f = NEW.f) IS NOT TRUE) EXECUTE FUNCTION on_change();

         CREATE TABLE lost_distinct (f bloom, g bloom, CHECK (f IS DISTINCT FROM g));
         CREATE TABLE lost_nullif (f bloom, g bloom, CHECK (NULLIF(f, g) IS NOT NULL));
         CREATE TABLE lost_case (f bloom, g bloom, same integer GENERATED ALWAYS AS (CASE f WHEN g THEN 1 ELSE 0 END) STORED);
         CREATE VIEW lost_using AS SELECT f FROM kept JOIN (SELECT f FROM kept) AS other USING (f);
         CREATE TRIGGER lost_trigger BEFORE UPDATE ON kept FOR EACH ROW
            WHEN (OLD.f IS DISTINCT FROM NEW.f) EXECUTE FUNCTION on_change();
         CREATE POLICY lost_policy ON kept USING (f IS DISTINCT FROM g);
         CREATE INDEX lost_index ON kept ((f IS DISTINCT FROM g))",
    );
    let dump = output(server().program("pg_dump").arg("comparisons"));
    let mut after = server().empty_database("comparisons_restored", "TEMPLATE template0");
    feed(
        server()
            .program("psql")
            .args(["-X", "-q", "-d", "comparisons_restored"]),
        &dump,
    );
    let names = "SELECT name::text FROM (
            SELECT relname FROM pg_class UNION SELECT tgname FROM pg_trigger UNION SELECT polname FROM pg_policy
        ) AS object (name) WHERE name ~ '^(kept|lost)' ORDER BY name";
    let all = [
        "kept",
        "kept_trigger",
        "kept_view",
        "lost_case",
        "lost_distinct",
        "lost_index",
        "lost_nullif",
        "lost_policy",
        "lost_trigger",
        "lost_using",
    ];
    assert_eq!(column::<String>(&mut before, names), all);
    assert_eq!(column::<String>(&mut after, names), all[..3]);
}

/// As by tools that keep a database's schema in a file.
#[test]
fn a_set_restored_without_its_rows_is_cleared() {
    let mut before = server().database("schema_only");
    run(&mut before, "SELECT bloom_set_create('crawled', 'text')");
    let dump = output(server().program("pg_dump").args(["--schema-only", "schema_only"]));
    let mut after = server().empty_database("schema_only_restored", "TEMPLATE template0");
    feed(
        server().program("psql").args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "schema_only_restored",
        ]),
        &dump,
    );
    assert_eq!(sqlstate(&mut after, "SELECT bloom_set_add('crawled', 'a')"), "55000");
    run(&mut after, "SELECT bloom_set_clear('crawled')");
    let add =
        "SELECT array_agg(bloom_set_add('crawled', x)) FROM (VALUES ('a'), ('b'), ('a')) AS v (x)";
    assert_eq!(value::<Vec<bool>>(&mut after, add), [true, true, false]);
}

#[test]
fn dumps_from_latin1_restore_into_utf8() {
    let mut before =
        server().empty_database("latin1", "ENCODING LATIN1 LOCALE 'C' TEMPLATE template0");
    run(
        &mut before,
        "CREATE EXTENSION pg_bloom;
         CREATE TYPE street AS ENUM ('Straße', 'plain');
         ALTER TYPE street ADD VALUE 'Allée' BEFORE 'Straße'",
    );
    run(
        &mut before,
        "CREATE TABLE words (x text, s street, a text[]);
         INSERT INTO words SELECT 'é' || i, CASE WHEN i % 2 = 0 THEN 'Allée' ELSE 'Straße' END::street, ARRAY['ü' || i]
         FROM generate_series(1, 500) AS i;
         CREATE TABLE found (layout text, size text, x bloom, s bloom, a bloom);",
    );
    for layout in common::LAYOUTS {
        for size in ["1000000, 0.01", "500, 0.01", "NULL, 0.01"] {
            let builds = ["x", "s", "a"]
                .map(|x| format!("bloom_agg({x}, {size}, '{layout}')"))
                .join(", ");
            run(
                &mut before,
                &format!("INSERT INTO found SELECT '{layout}', '{size}', {builds} FROM words"),
            );
        }
    }
    let all = "SELECT count(*) FROM found AS f, words AS w WHERE f.x @> w.x AND f.s @> w.s AND f.s @> w.s::text AND f.a @> w.a";
    assert_eq!(value::<i64>(&mut before, all), 9 * 500);
    let digest = "SELECT md5(string_agg(md5(f::text), ',' ORDER BY layout, size)) FROM found AS f";
    let digest_before: String = value(&mut before, digest);
    let dump = output(server().program("pg_dump").arg("latin1"));
    assert!(dump.contains(&0xE9), "the dump is not in LATIN1");
    let mut after =
        server().empty_database("latin1_restored", "ENCODING UTF8 LOCALE 'C' TEMPLATE template0");
    feed(
        server().program("psql").args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "latin1_restored",
        ]),
        &dump,
    );
    assert_eq!(value::<String>(&mut after, digest), digest_before);
    assert_eq!(value::<i64>(&mut after, all), 9 * 500);
    let exact = "SELECT bool_or(x @> 'è1'::text OR s @> 'Allee'::text) FROM found WHERE size LIKE '1000000%'";
    assert!(!value::<bool>(&mut after, exact));
}

/// What depends on functions of the extension. EMPTY stands for a filter, and MOOD for the number of
/// that type in the corpus.
const USES: &str = "
    CREATE SCHEMA other;
    CREATE TYPE other.span AS RANGE (subtype = integer);
    CREATE TYPE public.span AS RANGE (subtype = integer);
    CREATE TABLE guarded (
        x text CHECK (NOT bloom_from_array(ARRAY['spam'], 100) @> x),
        f bloom DEFAULT bloom_empty(9)
    );
    CREATE TABLE tagged (x integer, f bloom GENERATED ALWAYS AS ('EMPTY'::bloom || x) STORED);
    CREATE INDEX by_filter ON filters (f) WHERE octet_length(f::bytea) < 1000;
    CREATE INDEX by_answer ON filters ((f @> 'great'::mood)) WHERE kind = MOOD;
    CREATE INDEX by_hash ON filters USING hash (f);
    CREATE MATERIALIZED VIEW spans AS
        SELECT bloom_agg(other.span(a, b), 99) AS f FROM (VALUES (1, 3), (2, 4)) AS v (a, b);
    CREATE MATERIALIZED VIEW unions AS
        SELECT kind, bloom_union_agg(f) AS f FROM filters WHERE note = 'blocked, 1000000, 0.01' GROUP BY kind;
    CREATE VIEW moods AS SELECT x FROM elements_MOOD WHERE (SELECT bloom_agg(x) FROM elements_MOOD) @> x;
    INSERT INTO guarded VALUES ('ham');
    INSERT INTO tagged VALUES (42);";

/// The same of rows, where the server hashes them.
const USES_OF_ROWS: &str = "
    CREATE TYPE other.pair AS (a integer, b text);
    CREATE MATERIALIZED VIEW pairs AS
        SELECT bloom_agg(ROW(a, b)::other.pair, 99) AS f FROM (VALUES (1, 'x'), (2, 'y')) AS v (a, b);";

/// The restore works with an empty search path.
#[test]
fn dumps_restore_what_uses_the_functions() {
    let mut before = source(server(), "uses");
    let empty: String = value(&mut before, "SELECT bloom_empty()::text");
    let mood = KEY_KIND_SAMPLES
        .iter()
        .position(|sample| sample.sql_type == "mood")
        .expect("an enum is a sample");
    let uses = USES.replace("EMPTY", &empty).replace("MOOD", &mood.to_string());
    run(&mut before, &uses);
    run(&mut before, USES_OF_ROWS);
    let mut after = server().empty_database("uses_restored", "TEMPLATE template0");
    let dump = output(server().program("pg_dump").arg("uses"));
    feed(
        server()
            .program("psql")
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "uses_restored"]),
        &dump,
    );
    let all = "SELECT (TABLE spans) @> other.span(2, 4) AND NOT (TABLE spans) @> other.span(2, 3)
                      AND (SELECT bool_and(f @> x) FROM tagged) AND (SELECT bool_and(f = bloom_empty(9)) FROM guarded)
                      AND (SELECT count(*) FROM moods) = 300";
    assert!(value::<bool>(&mut before, all) && value::<bool>(&mut after, all));
    let unions = "SELECT f::text FROM unions ORDER BY kind";
    assert_eq!(column::<String>(&mut before, unions), column::<String>(&mut after, unions));
    refused(&mut after, "23514", "INSERT INTO guarded VALUES ('spam')");
    refused(&mut after, "42804", "SELECT (TABLE spans) @> public.span(1, 3)");
    let rows = "SELECT (TABLE pairs) @> ROW(2, 'y')::other.pair AND NOT (TABLE pairs) @> ROW(2, 'x')::other.pair";
    assert!(value::<bool>(&mut before, rows) && value::<bool>(&mut after, rows));
    refused(&mut after, "42804", "SELECT (TABLE pairs) @> ROW(1, 'x')::public.pair");
}

/// Values that name objects of the database are kept as identifiers, which a dump replaces by
/// names: a filter of them must be refused or find them nevertheless.
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
            &format!(
                "CREATE TABLE objects_{n} (x {sql_type}); INSERT INTO objects_{n} VALUES ({element})"
            ),
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
    feed(
        server().program("psql").args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "objects_restored",
        ]),
        &dump,
    );
    built.retain(|n| {
        !value::<bool>(&mut after, &format!("SELECT f @> x FROM filter_{n}, objects_{n}"))
    });
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
            let mut reader = client
                .copy_out(&format!("COPY {table} TO STDOUT ({options})"))
                .expect("COPY starts");
            reader.read_to_end(&mut bytes).expect("COPY can be read");
            drop(reader);
            let mut writer = client
                .copy_in(&format!("COPY {copy} FROM STDIN ({options})"))
                .expect("COPY starts");
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
    run(
        &mut client,
        "CREATE TABLE later AS SELECT kind, note, f | f AS f FROM filters WHERE kind > 4",
    );
    let later = filters(&mut client, "later");
    run(&mut client, "BEGIN; UPDATE filters SET f = bloom_empty() WHERE kind > 4");
    server.kill9();
    server.restart();
    let mut client = server.connect("crash");
    assert!(expected == filters(&mut client, "filters"), "the crash changed a filter");
    assert!(later == filters(&mut client, "later"), "the crash changed a filter");
    corpus::finds_everything(&mut client, &KEY_KIND_SAMPLES);
}
