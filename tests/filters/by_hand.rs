//! The functions of the aggregates, called by hand as Citus calls them to spread an aggregate over
//! nodes: see `tests/distributed/by_hand.c`. What they remember of a call ends with the row, and no
//! expression tells them about types.

use crate::common::{LAYOUTS, Server, output, refused, run, value};
use postgres::Client;
use std::path::Path;
use std::process::Command;

/// Compiles the aggregates and makes them known to a new database.
fn database(server: &Server) -> Client {
    let pg_config = std::env::var("PG_CONFIG").unwrap_or_else(|_| "pg_config".into());
    let headers = output(Command::new(pg_config).arg("--includedir-server"));
    let headers = String::from_utf8(headers).expect("the path is UTF-8");
    let library = server.dir().join("by_hand.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/distributed/by_hand.c");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-I",
        headers.trim_end(),
        "-o",
    ]);
    output(compiler.arg(&library).arg(source));
    let mut client = server.database("by_hand");
    let declarations = "
        CREATE FUNCTION partial_state_transition(internal, oid, anyelement) RETURNS internal AS 'LIBRARY' LANGUAGE c;
        CREATE FUNCTION partial_state_final(internal) RETURNS bytea AS 'LIBRARY' LANGUAGE c;
        CREATE AGGREGATE partial_state(oid, anyelement) (
            SFUNC = partial_state_transition, STYPE = internal, FINALFUNC = partial_state_final);
        CREATE FUNCTION merge_states_transition(internal, oid, bytea, anyelement) RETURNS internal
            AS 'LIBRARY' LANGUAGE c;
        CREATE FUNCTION merge_states_final(internal, oid, bytea, anyelement) RETURNS anyelement
            AS 'LIBRARY' LANGUAGE c;
        CREATE AGGREGATE merge_states(oid, bytea, anyelement) (
            SFUNC = merge_states_transition, STYPE = internal, FINALFUNC = merge_states_final, FINALFUNC_EXTRA);
        CREATE TABLE visits AS
            SELECT i % 5 AS node, i % 3 AS class, 'https://example.com/' || i AS url, chr(33 + i / 7 % 90) AS mark
            FROM generate_series(1, 20000) AS i;";
    run(
        &mut client,
        &declarations.replace("LIBRARY", library.to_str().expect("the path is UTF-8")),
    );
    client
}

/// A query for whether states made per node and merged are, for each class, the filter of all its
/// rows.
fn same_as_whole(aggregate: &str, arguments: &str, argument: &str) -> String {
    let name = aggregate.split('(').next().expect("a signature has a name");
    format!(
        "SELECT bool_and(merged = whole) AND count(*) > 0
         FROM (SELECT class, merge_states('{aggregate}'::regprocedure, state, NULL::bloom) AS merged
               FROM (SELECT class, partial_state('{aggregate}'::regprocedure, {argument}) AS state
                     FROM visits GROUP BY node, class) AS states
               GROUP BY class) AS a
         JOIN (SELECT class, {name}({arguments}) AS whole FROM visits GROUP BY class) AS b USING (class)"
    )
}

#[test]
fn states_made_and_merged_by_hand_are_the_filter_of_the_whole() {
    let server = Server::start("work_mem = '64kB'");
    let mut client = database(&server);
    run(&mut client, "SET pg_bloom.overfill = ignore");
    for classes in ["class", "0"] {
        run(&mut client, &format!("UPDATE visits SET class = {classes}"));
        for layout in LAYOUTS {
            let arguments = format!("mark, 50::bigint, 0.01::float8, '{layout}'::text");
            let aggregate = "bloom_agg(text, bigint, float8, text)";
            let query = same_as_whole(aggregate, &arguments, &format!("ROW({arguments})"));
            assert!(value::<bool>(&mut client, &query), "{layout}, {classes}");
        }
        let query = same_as_whole("bloom_agg(text)", "url", "url");
        assert!(value::<bool>(&mut client, &query), "unsized, {classes}");
    }
}

/// Parameters that live too short would be those of another group.
#[test]
fn groups_with_parameters_of_their_own_keep_them() {
    let server = Server::start("");
    let mut client = database(&server);
    run(&mut client, "SET pg_bloom.overfill = ignore");
    let arguments = "mark, 10 * (1 + class)::bigint, 0.01::float8";
    let query =
        same_as_whole("bloom_agg(text, bigint, float8)", arguments, &format!("ROW({arguments})"));
    assert!(value::<bool>(&mut client, &query));
    let mixed = "ROW(mark, 10 * (1 + class)::bigint)";
    let one_group = format!(
        "SELECT partial_state('bloom_agg(text, bigint)'::regprocedure, {mixed}) FROM visits"
    );
    refused(&mut client, "22023", &one_group);
}

#[test]
fn filters_are_merged_by_hand() {
    let server = Server::start("");
    let mut client = database(&server);
    run(
        &mut client,
        "CREATE TABLE filters AS SELECT node, class, bloom_agg(url, 20000 << class) AS f FROM visits GROUP BY 1, 2;
         INSERT INTO filters VALUES (1, 1, NULL), (7, 1, NULL), (7, 2, bloom_empty())",
    );
    let merged = "SELECT merge_states('bloom_union_agg(bloom)'::regprocedure, state, NULL::bloom)
                         = (SELECT bloom_union_agg(f) FROM filters)
                  FROM (SELECT partial_state('bloom_union_agg(bloom)'::regprocedure, f) AS state
                        FROM filters GROUP BY node ORDER BY node DESC) AS states";
    assert!(value::<bool>(&mut client, merged));
    let nothing =
        "SELECT merge_states('bloom_agg(text)'::regprocedure, NULL, NULL::bloom) = bloom_empty()";
    assert!(value::<bool>(&mut client, nothing));
}

/// Several arguments come as a row, in which a string has no collation: its bytes are compared.
#[test]
fn strings_without_a_collation_are_compared_by_their_bytes() {
    let server = Server::start("work_mem = '64kB'");
    let mut client = database(&server);
    run(&mut client, "SET pg_bloom.overfill = ignore");
    for (aggregate, arguments) in [
        ("bloom_agg(text, bigint)", "url, 5000::bigint"),
        ("bloom_agg(text, bigint, float8)", "url, 5000::bigint, 0.001::float8"),
        ("bloom_agg(text, bigint, float8)", "url, NULL::bigint, 0.001::float8"),
        (
            "bloom_agg(text, bigint, float8, text)",
            "url, 5000::bigint, 0.01::float8, 'classic'::text",
        ),
        ("counting_bloom_agg(text, bigint, float8)", "url, 5000::bigint, 0.001::float8"),
    ] {
        let result = if aggregate.starts_with("counting") {
            "NULL::counting_bloom"
        } else {
            "NULL::bloom"
        };
        let query = same_as_whole(aggregate, arguments, &format!("ROW({arguments})"));
        assert!(value::<bool>(&mut client, &query.replace("NULL::bloom", result)), "{aggregate}");
    }
}

/// A query's own call says which collation its string has, or that it has none.
#[test]
fn a_query_s_own_string_without_a_collation_is_refused() {
    let server = Server::start("");
    let mut client = server.database("own");
    run(
        &mut client,
        "CREATE TABLE words AS SELECT 'a' COLLATE \"C\" AS c, 'b' COLLATE \"POSIX\" AS p",
    );
    for call in [
        "bloom_agg(c || p)",
        "bloom_agg(c || p, 10)",
        "bloom_agg(c || p) OVER ()",
        "bloom_from_array(ARRAY[c, p])",
        "bloom_empty() @> (c || p)",
        "counting_bloom_agg(c || p, 10)",
    ] {
        refused(&mut client, "42P22", &format!("SELECT {call} FROM words"));
    }
}

/// Nothing tells a polymorphic function called by hand what its argument is: an error, not a guess.
#[test]
fn elements_of_unknown_type_are_refused() {
    let server = Server::start("");
    let mut client = database(&server);
    refused(&mut client, "42P18", "SELECT partial_state('bloom_agg(anyelement)'::regprocedure, 1)");
}
