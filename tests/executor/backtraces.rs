//! Errors on their way through the extension: they show no backtrace to the client where the
//! server's environment asks for some, and can't be stopped.
//!
//! The servers have the library as it is built for debugging: only that one has functions that
//! panic, catch errors, and end the session.

use crate::common::files::assert_no_crash;
use crate::common::{Server, run, value};
use postgres::{Client, error::DbError};

/// What a backtrace, or a path of this library, has in it.
const FRAMES: [&str; 6] = [
    "::",
    ".rs:",
    "rustc",
    "0x",
    "libpg_bloom",
    "stack backtrace",
];

/// Has `scripts/server` take the library for debugging, which `make test` builds.
const FOR_DEBUGGING: (&str, &str) = ("PROFILE", "dev");

/// The error that a statement fails with.
fn error(client: &mut Client, sql: &str) -> DbError {
    let error = client.batch_execute(sql).expect_err(sql);
    error
        .as_db_error()
        .unwrap_or_else(|| panic!("{sql}\nno error of the server's: {error:?}"))
        .clone()
}

#[test]
fn no_error_shows_a_backtrace() {
    let server = Server::start_with(
        "",
        &[
            FOR_DEBUGGING,
            ("RUST_BACKTRACE", "full"),
            ("RUST_LIB_BACKTRACE", "1"),
        ],
    );
    let mut client = server.database("backtraces");
    run(
        &mut client,
        "CREATE TABLE large AS
             SELECT bloom_empty(100000000) | (bloom_empty(50000000) || 1) AS f, bloom_empty(100000000) | (bloom_empty(50000000) || 2) AS g;
         CREATE FUNCTION panics() RETURNS void LANGUAGE c AS 'pg_bloom', 'pg_bloom_panic'",
    );
    let cases = [
        // Ours.
        ("22023", "SELECT bloom_empty(-1)"),
        ("42804", "SELECT bloom_from_array(ARRAY[1], 100) @> 'x'::text"),
        ("22P02", "SELECT 'x'::bloom"),
        ("0A000", "SELECT bloom_agg(NULL::point)"),
        // PostgreSQL's within our functions: a cancel in a comparison, one in a build.
        (
            "57014",
            "SET LOCAL statement_timeout = 50; SELECT count(f = g OR f < g) FROM large, generate_series(1, 100000)",
        ),
        (
            "57014",
            "SET LOCAL statement_timeout = 50; SELECT bloom_agg(x) FROM generate_series(1, 100000000) AS x",
        ),
        ("22012", "SELECT bloom_agg(1 / (x - 5)) FROM generate_series(1, 10) AS x"),
        ("22023", "SELECT bloom_from_parquet('\\x', 4294967295)"),
        // A panic.
        ("XX000", "SELECT panics()"),
    ];
    for (state, sql) in cases {
        let error = error(&mut client, sql);
        assert_eq!(error.code().code(), state, "{sql}: {error:?}");
        let texts = [
            Some(error.message()),
            error.detail(),
            error.hint(),
            error.where_(),
            error.file(),
            error.routine(),
        ];
        for text in texts.into_iter().flatten() {
            let found = FRAMES.iter().find(|frame| text.contains(*frame));
            assert_eq!(found, None, "{sql} shows\n{text}");
        }
        assert!(
            error.detail().is_none_or(|detail| detail.lines().count() == 1),
            "{sql}: {error:?}"
        );
    }
    let log = std::fs::read_to_string(server.dir().join("log")).expect("the log can be read");
    assert!(
        log.contains("panicked at") && log.contains("this is a test"),
        "the log doesn't show the panic"
    );
}

/// Code without `unsafe` may catch an error of PostgreSQL's, which has then ended nothing of what
/// was under way: a connection to the server programming interface, for instance, would be taken
/// for that of the function around it.
#[test]
fn a_call_that_catches_an_error_fails() {
    let server = Server::start_with("", &[FOR_DEBUGGING]);
    let mut client = server.database("catching");
    run(
        &mut client,
        "CREATE FUNCTION catches(integer) RETURNS void LANGUAGE c AS 'pg_bloom', 'pg_bloom_catch';
         CREATE FUNCTION around(integer) RETURNS text LANGUAGE plpgsql AS $$
         DECLARE caught text; BEGIN
             BEGIN PERFORM catches($1); EXCEPTION WHEN internal_error THEN caught := SQLERRM; END;
             PERFORM count(*) FROM pg_class;
             RETURN caught;
         END $$;
         CREATE FUNCTION without(integer) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN PERFORM catches($1); RETURN 'caught'; END $$",
    );
    const REFUSED: &str = "an error was caught and not raised again";
    for kind in 0..4 {
        for _ in 0..3 {
            assert_eq!(value::<String>(&mut client, &format!("SELECT around({kind})")), REFUSED);
            assert_eq!(error(&mut client, &format!("SELECT without({kind})")).message(), REFUSED);
        }
    }
    // An error that PL/pgSQL catches in a statement of the extension's is no error of the call
    // around it.
    run(
        &mut client,
        "SELECT bloom_set_create('s', 'text', 1000);
         CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             BEGIN PERFORM catches(0); EXCEPTION WHEN internal_error THEN NULL; END;
             BEGIN PERFORM bloom_empty(-1); EXCEPTION WHEN invalid_parameter_value THEN NULL; END;
             RETURN NEW;
         END $$;
         CREATE TRIGGER fails BEFORE UPDATE ON s FOR EACH ROW EXECUTE FUNCTION fails()",
    );
    assert!(value::<bool>(&mut client, "SELECT bloom_set_add('s', 'x'::text)"));
    assert!(value::<bool>(&mut client, "SELECT bloom_set_contains('s', 'x'::text)"));
    // One that was connected itself is no longer: the call around it goes on.
    run(
        &mut client,
        "CREATE OR REPLACE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             BEGIN PERFORM catches(2); EXCEPTION WHEN internal_error THEN NULL; END;
             RETURN NEW;
         END $$;
         DROP TRIGGER fails ON s;
         CREATE TRIGGER fails AFTER UPDATE ON s FOR EACH ROW EXECUTE FUNCTION fails()",
    );
    assert!(value::<bool>(&mut client, "SELECT bloom_set_add('s', 'y'::text)"));
    assert!(
        value::<i64>(
            &mut client,
            "SELECT count(*) FROM unnest(bloom_set_add_all('s', ARRAY['v', 'w', 'z']))"
        ) == 3
    );
}

/// Calls what ends the session, which says so, unless the client learns first that the connection
/// is closed.
fn end(mut client: Client) {
    let error = client
        .batch_execute("SELECT ends()")
        .expect_err("the session is ended");
    assert!(
        error.is_closed() || error.code().is_some_and(|state| state.code() == "57P01"),
        "{error:?}"
    );
}

/// A fatal error unwinds nothing. What its frames were changing isn't dropped, as it may have one
/// thing twice.
#[test]
fn a_session_that_is_ended_drops_nothing() {
    let server = Server::start_with("", &[FOR_DEBUGGING]);
    let (mut client, mut other) = (server.database("ending"), server.connect("ending"));
    run(
        &mut client,
        "CREATE FUNCTION ends() RETURNS void LANGUAGE c AS 'pg_bloom', 'pg_bloom_end'",
    );
    let ended: i32 = value(&mut client, "SELECT pg_backend_pid()");
    end(client);
    while value(
        &mut other,
        &format!("SELECT count(*) > 0 FROM pg_stat_activity WHERE pid = {ended}"),
    ) {}
    assert_no_crash(&server);
}

/// Nor in a session with temporary tables, for which PostgreSQL aborts the transaction before
/// anything else at the end.
#[test]
fn a_session_with_temporary_tables_drops_nothing_either() {
    let server = Server::start_with("", &[FOR_DEBUGGING]);
    let (mut client, mut other) = (server.database("temporary"), server.connect("temporary"));
    run(
        &mut client,
        "CREATE FUNCTION ends() RETURNS void LANGUAGE c AS 'pg_bloom', 'pg_bloom_end'",
    );
    // The library is loaded, and a function was called, before the session has its first temporary
    // table.
    run(&mut client, "SELECT bloom_empty(10)");
    run(&mut client, "CREATE TEMP TABLE t (i int)");
    let ended: i32 = value(&mut client, "SELECT pg_backend_pid()");
    end(client);
    while value(
        &mut other,
        &format!("SELECT count(*) > 0 FROM pg_stat_activity WHERE pid = {ended}"),
    ) {}
    assert_no_crash(&server);
}
