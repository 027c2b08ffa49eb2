//! Where there is no more memory a statement fails with 53200, and nothing else happens: the
//! session goes on, and all others.

use crate::common::{Server, refused, rows, run, sqlstate, value};
use postgres::Client;
use std::collections::BTreeMap;

/// Filters of 40 MB: two of bits, one of counters; and a long array.
const LARGE: &str = "
    SET pg_bloom.overfill = ignore; SET max_parallel_workers_per_gather = 0; SET jit = off; SET statement_timeout = '60s';
    CREATE UNLOGGED TABLE large AS
    SELECT empty | (bloom_empty(16500000) || 1) AS f, empty | (bloom_empty(16500000) || 2) AS g,
           counting_bloom_empty(8000000) || 1 AS c, ARRAY(SELECT generate_series(1, 500000)) AS many
    FROM (SELECT bloom_empty(33000000) AS empty) AS e;";

/// The process of a session, which can be told how much address space it may have; by another
/// session, since the server's user may not be ours.
struct Process {
    pid: i32,
    other: Client,
}

impl Process {
    fn of(client: &mut Client, other: Client) -> Process {
        Process { pid: value(client, "SELECT pg_backend_pid()"), other }
    }

    fn is_that_of(&self, client: &mut Client) -> bool {
        value::<i32>(client, "SELECT pg_backend_pid()") == self.pid
    }

    /// Allows so many bytes more than it has now.
    fn allow(&mut self, more: u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))
            .expect("Linux tells about processes");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmSize:"))
            .expect("the number is there");
        let now: u64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|n| n.parse().ok())
            .expect("it is a number");
        self.set(&(now * 1024 + more).to_string());
    }

    fn allow_all(&mut self) {
        self.set("unlimited");
    }

    /// Sets the soft limit: that may be raised again.
    fn set(&mut self, limit: &str) {
        let program = format!("prlimit --pid {} --as={limit}:", self.pid);
        run(&mut self.other, &format!("COPY (SELECT 1) TO PROGRAM '{program} && cat >/dev/null'"));
    }
}

/// An argument of this type, of a table that joins [`LARGE`]'s with numbers n.
fn argument(argument_type: &str) -> Option<&'static str> {
    Some(match argument_type {
        "bloom" => "f",
        "counting_bloom" => "c",
        "anyelement" | "integer" => "n",
        "text" => "'x'::text",
        "anyarray" => "many",
        "bigint" => "33000000::bigint",
        "double precision" => "0.01::float8",
        "bytea" => "f::bytea",
        "cstring" => "bloom_out(f)",
        "regtype" | "oid" => "'integer'::regtype",
        _ => return None,
    })
}

/// A call of every function and aggregate of the extension that SQL can call.
fn calls(client: &mut Client) -> Vec<String> {
    let functions = rows(
        client,
        "SELECT p.proname::text, p.prokind = 'a', ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) AS t)
         FROM pg_proc AS p JOIN pg_depend AS d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
         WHERE p.oid >= 16384 AND NOT 'internal'::regtype = ANY (p.proargtypes) AND p.prorettype <> 'internal'::regtype
         ORDER BY 1, 3",
    );
    let mut calls = Vec::new();
    for function in functions {
        let (name, is_aggregate, types): (String, bool, Vec<String>) =
            (function.get(0), function.get(1), function.get(2));
        // The value is one of the type that the function is for.
        let of_counting = name.starts_with("counting_bloom");
        let arguments: Option<Vec<&str>> = types
            .iter()
            .enumerate()
            .map(|(i, t)| match t.as_str() {
                "bloom" if i == 1 => Some("g"),
                "bytea" if of_counting => Some("c::bytea"),
                "cstring" if of_counting => Some("bloom_out(bloom(c))"),
                "bigint" if of_counting => Some("8000000::bigint"),
                t => argument(t),
            })
            .collect();
        let Some(arguments) = arguments else { continue };
        let call = format!("{name}({})", arguments.join(", "));
        if is_aggregate {
            calls.push(format!("SELECT {call} IS NULL FROM large, generate_series(1, 3) AS n"));
        } else {
            calls.push(format!(
                "SELECT count(*) FROM large, generate_series(1, 1) AS n, LATERAL {call} AS r WHERE r IS NULL"
            ));
        }
    }
    calls
}

#[test]
fn every_function_fails_with_an_error_or_works() {
    let server = Server::start("");
    let mut client = server.database("exhaustion");
    run(&mut client, LARGE);
    let mut bystander = server.connect("exhaustion");
    let mut process = Process::of(&mut client, server.connect("exhaustion"));
    let started: String = value(&mut bystander, "SELECT pg_postmaster_start_time()::text");

    let mut calls = calls(&mut client);
    assert!(calls.len() > 90, "{} functions", calls.len());
    for sql in [
        "f & g",
        "f | g",
        "bloom_fold(f, 0.5)",
        "f || 5",
        "c + c",
        "f::text",
        "c::text",
        "f = g",
        "bloom_from_array(many)",
        "bloom_from_array(many, 33000000)",
        "bloom_add_all(bloom_from_array(many, 33000000), ARRAY(SELECT -x FROM unnest(many) AS x))",
        "bloom_cardinality(bloom_from_array(many, 33000000, 0.01, 'classic'))",
        "bloom_info(bloom_from_array(many, 33000000, 0.01, 'classic'))",
        "bloom_union_cardinality(bloom_from_array(many, 33000000), bloom_from_array(many, 16500000))",
        "bloom_from_array(many, 33000000) | bloom_from_array(many, 16500000)",
        "bloom_contains_all(f, many)",
        "bloom_empty(10, 0.01, repeat(repeat('x', 1000), 33000))",
        "(repeat(repeat('x', 1000), 33000))::bloom",
        "(SELECT bloom_agg(x) FROM unnest(many) AS x)",
        "(SELECT bloom_agg(x, 25000000) FROM unnest(many) AS x)",
        "(SELECT bloom_agg(x) FROM (SELECT bloom_agg(x) OVER (ORDER BY x / 350000) FROM unnest(many) AS x) AS x)",
        "(SELECT bloom_union_agg(h) FROM (VALUES (f), (g), (f)) AS v (h))",
        "(SELECT bloom_intersection_agg(h) FROM (VALUES (f), (g), (f)) AS v (h))",
        "(SELECT counting_bloom_union_agg(h) FROM (VALUES (c), (c)) AS v (h))",
    ] {
        calls.push(format!("SELECT ({sql}) IS NULL FROM large"));
    }
    run(&mut client, "SET work_mem = '1GB'");
    let mut ended = BTreeMap::new();
    for (number, sql) in calls.iter().enumerate() {
        // What makes a table makes it again.
        run(&mut client, "BEGIN");
        let expected = sqlstate(&mut client, sql);
        run(&mut client, "ROLLBACK");
        assert!(!expected.starts_with("XX"), "{expected}: {sql}");
        for megabytes in [8, 50].into_iter().take(1 + number % 2) {
            run(&mut client, "BEGIN");
            process.allow(megabytes << 20);
            let found = sqlstate(&mut client, sql);
            process.allow_all();
            run(&mut client, "ROLLBACK");
            assert!(
                found == "53200" || found == expected,
                "{found}, not {expected}, with {megabytes} MB: {sql}"
            );
            assert!(process.is_that_of(&mut client), "another session: {sql}");
            *ended.entry(found).or_insert(0) += 1;
        }
    }
    println!("{} calls with one limit or two: {ended:?}", calls.len());
    assert!(ended["53200"] > 80 && ended["00000"] > 15, "{ended:?}");
    let restarted: String = value(&mut bystander, "SELECT pg_postmaster_start_time()::text");
    assert_eq!(started, restarted);
    for sql in [
        "SELECT bloom_fold(f, 0.5) FROM large",
        "SELECT f & g FROM large",
    ] {
        // The session from before may have kept memory that it no longer uses.
        let mut client = server.connect("exhaustion");
        let mut process = Process::of(&mut client, server.connect("exhaustion"));
        process.allow(50 << 20);
        refused(&mut client, "53200", sql);
    }
}

/// Errors are small, and there must be memory to report them.
#[test]
fn errors_are_told_with_no_memory_at_all() {
    let server = Server::start("");
    let mut client = server.database("nothing");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT bloom_agg(x, 3000) AS f FROM generate_series(1, 3000) AS x",
    );
    let mut process = Process::of(&mut client, server.connect("nothing"));
    let statements = [
        ("22023", "SELECT bloom_empty(10, 0.01, 'nonsense')"),
        ("42804", "SELECT f @> 'x'::text FROM t"),
        ("22P02", "SELECT 'nonsense'::bloom"),
        ("00000", "SELECT f @> 5, f || 7, bloom_info(f), f | f FROM t"),
        ("00000", "SELECT bloom_agg(x) FROM generate_series(1, 20000) AS x"),
        ("00000", "SELECT bloom_from_array(ARRAY(SELECT generate_series(1, 20000)))"),
        ("22012", "SELECT bloom_agg(1 / (x - 1000)) FROM generate_series(1, 20000) AS x"),
    ];
    for (state, sql) in statements {
        assert_eq!(sqlstate(&mut client, sql), state, "{sql}");
        for kilobytes in [0, 8, 16, 32, 64, 128, 256, 1024] {
            process.allow(kilobytes << 10);
            let found = sqlstate(&mut client, sql);
            process.allow_all();
            assert!(
                found == "53200" || found == state,
                "{found}, not {state}, with {kilobytes} kB: {sql}"
            );
            assert!(process.is_that_of(&mut client), "another session: {sql}");
        }
    }
}

/// An error for lack of memory is copied, which needs memory: whatever is left when it is raised,
/// it must be enough.
#[test]
fn errors_are_told_wherever_the_memory_ends() {
    let server = Server::start("");
    let mut client = server.database("copied");
    run(
        &mut client,
        "SELECT bloom_set_create('s', 'text', 1000000);
         CREATE TABLE t AS SELECT i::text AS x FROM generate_series(1, 100000) AS i; ANALYZE t",
    );
    let calls = [
        "SELECT cardinality(bloom_set_add_all('s', array_agg(i::text))) FROM generate_series(1, 100000) AS i",
        "SELECT cardinality(bloom_set_absent('s', array_agg(i::text))) FROM generate_series(1, 100000) AS i",
        "SELECT count(bloom_from_array(ARRAY[i], 100000)) FROM generate_series(1, 100) AS i GROUP BY i % 2",
        "CREATE INDEX ON t USING bloom_filter (x)",
    ];
    let mut refused = 0;
    for step in 0..20 {
        for sql in calls {
            let mut client = server.connect("copied");
            let mut process = Process::of(&mut client, server.connect("copied"));
            run(&mut client, "SET work_mem = '1GB'");
            // Every other session loads the library with the memory that is left.
            if step % 2 == 0 {
                run(&mut client, "SELECT bloom_set_add('s', 'x')");
            }
            run(&mut client, "BEGIN");
            process.allow((2 << 20) + step * 1_400_000);
            let found = sqlstate(&mut client, sql);
            process.allow_all();
            run(&mut client, "ROLLBACK");
            // 58P01: the library can't be loaded.
            assert!(
                ["53200", "00000", "58P01"].contains(&found.as_str()),
                "{found} with {step} steps: {sql}"
            );
            assert!(process.is_that_of(&mut client), "another session: {sql}");
            refused += usize::from(found == "53200");
            let again = sqlstate(&mut client, "SELECT bloom_set_contains('s', 'x')");
            assert_eq!(again, "00000", "after {sql} with {step} steps");
        }
    }
    assert!(refused > 15, "{refused} calls had too little memory");
}

/// What is asked where the stack ends, with an answer that is always the same: the table is
/// [`DEEP`].
const QUESTIONS: [&str; 11] = [
    "SELECT count(*) FROM t WHERE body ~ 'a1d0c6e83f02.*q|zzz 77'",
    "SELECT count(*) FROM t WHERE body LIKE '%request 77%'",
    "SELECT count(*) FROM t WHERE body ILIKE '%REQUEST 77%'",
    "SELECT count(*) FROM t WHERE body = 'no such row'",
    "SELECT count(*) FROM t WHERE many @> ARRAY[77, 78]",
    "SELECT count(*) FROM t WHERE document @> '{\"a\": [{\"b\": 77}]}'",
    "SELECT count(*) FROM filters WHERE f @> 77",
    "SELECT bloom_cardinality(bloom_agg(many)) FROM t",
    "SELECT bloom_cardinality(bloom_union_agg(f)) FROM filters",
    "SELECT count(*) FROM unnest(bloom_set_absent('deep', ARRAY[1, 2, 77]))",
    "SELECT count(*) FROM bloom_find(NULL::t, 'i', 77)",
];

/// Tables with an index of each kind.
const DEEP: &str = "
    CREATE TABLE t AS SELECT i, 'id ' || i % 50 || ' request ' || i AS body, ARRAY[i, i + 1] AS many,
        jsonb_build_object('a', jsonb_build_array(jsonb_build_object('b', i))) AS document FROM generate_series(1, 3000) AS i;
    CREATE TABLE filters AS SELECT i % 20 AS g, bloom_agg(i) AS f FROM t GROUP BY 1;
    CREATE INDEX t_ngrams ON t USING bloom_filter (body text_ngram_ops);
    CREATE INDEX t_body ON t USING bloom_filter (body);
    CREATE INDEX t_many ON t USING bloom_filter (many);
    CREATE INDEX t_document ON t USING bloom_filter (document);
    CREATE INDEX t_i ON t USING bloom_filter (i);
    CREATE INDEX filters_f ON filters USING bloom_filter (f);
    SELECT bloom_set_create('deep', 'integer');
    SELECT bloom_set_add_all('deep', ARRAY[1, 2, 3]);
    VACUUM ANALYZE t, filters;";

/// PostgreSQL asks in many places how deep the stack is. Each error passes what is under way: a
/// call that was left without an end would be in the way of the next one at the same place of the
/// stack.
#[test]
fn the_stack_may_end_anywhere() {
    let mut client = crate::server().database("deep");
    for sql in DEEP.split_inclusive(';') {
        run(&mut client, sql);
    }
    run(
        &mut client,
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET max_stack_depth = '2MB'",
    );
    for (number, question) in QUESTIONS.iter().enumerate() {
        let (name, least) = (format!("deep_{number}"), "SET max_stack_depth = '100kB'");
        run(
            &mut client,
            &format!(
                "CREATE FUNCTION {name}(n integer) RETURNS double precision LANGUAGE plpgsql AS $$
                 BEGIN IF n = 0 THEN RETURN ({question}); END IF; RETURN {name}(n - 1); END $$"
            ),
        );
        let ask = |depth: usize| format!("SELECT {name}({depth})");
        let answer: f64 = value(&mut client, &ask(0));
        run(&mut client, least);
        let shallow = (1..200)
            .find(|&depth| sqlstate(&mut client, &ask(depth)) == "54001")
            .expect("the stack ends");
        // What calls itself takes some of the kilobytes; the others are what the question takes.
        let mut states = BTreeMap::<String, usize>::new();
        let mut limit = 100;
        while states.get("00000").is_none_or(|&answers| answers < 10) {
            run(&mut client, &format!("SET max_stack_depth = '{limit}kB'"));
            for _ in 0..2 {
                let state = match client.query(&ask(shallow + 15), &[]) {
                    Ok(rows) => {
                        assert_eq!(rows[0].get::<_, f64>(0), answer, "{question} at {limit} kB");
                        "00000".into()
                    }
                    Err(error) => crate::common::state_of(&error),
                };
                *states.entry(state).or_default() += 1;
            }
            limit += 1;
            assert!(limit < 1000, "{question}: {states:?}");
        }
        println!("{question}: {states:?}");
        assert_eq!(states.len(), 2, "{question}: {states:?}");
        assert!(states["54001"] > 20, "{question}: {states:?}");
        run(&mut client, "SET max_stack_depth = '2MB'");
    }
}

/// Raises an error with long texts.
const LONG_ERROR: &str = "
    CREATE FUNCTION long_error() RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE long text := repeat(repeat('x', 1000), 1000);
    BEGIN RAISE EXCEPTION USING MESSAGE = long, DETAIL = long, HINT = long, ERRCODE = '23514'; END $$;";

/// Asserts that a statement that raises it does so or says that there is no memory, however much a
/// session has, which goes on.
fn fails_by_the_long_error_or_for_lack_of_memory(server: &Server, sql: &str) {
    let mut states = BTreeMap::<String, usize>::new();
    for more in (0..200 << 20).step_by(1 << 19) {
        let mut client = server.connect("long");
        let mut process = Process::of(&mut client, server.connect("long"));
        // The libraries are loaded.
        run(&mut client, "SELECT bloom_empty(); DO $$ BEGIN END $$");
        process.allow(more);
        for _ in 0..2 {
            *states.entry(sqlstate(&mut client, sql)).or_default() += 1;
        }
        process.allow_all();
        assert!(process.is_that_of(&mut client), "another session with {more} bytes");
        assert_eq!(sqlstate(&mut client, sql), "23514", "after {more} bytes");
        if states.get("23514").is_some_and(|&whole| whole >= 6) {
            break;
        }
    }
    println!("{sql}: {states:?}");
    assert_eq!(states.keys().collect::<Vec<_>>(), ["23514", "53200"]);
}

/// An error passes Rust as a copy of it. If there is no memory for that, another passes, and
/// nothing is left under way.
#[test]
fn an_error_that_cannot_be_copied_is_another_one() {
    let server = Server::start("log_min_messages = panic");
    let mut client = server.database("long");
    run(&mut client, LONG_ERROR);
    run(
        &mut client,
        "SELECT bloom_set_create('s', 'text', 1000);
         CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM long_error(); END $$;
         CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON s FOR EACH ROW EXECUTE FUNCTION fails()",
    );
    // A function of SQL leaves its frame in PostgreSQL's list of what it calls for each message.
    // The names of an index are looked up in few schemas from 17 on.
    run(
        &mut client,
        "CREATE FUNCTION constant() RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT 'x' $$;
         CREATE TABLE t (x text);
         INSERT INTO t VALUES ('a');
         CREATE INDEX t_x ON t USING bloom_filter ((x || constant()));
         CREATE OR REPLACE FUNCTION constant() RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT public.long_error() $$",
    );
    for sql in [
        "SELECT bloom_set_add('s', 'x'::text)",
        "SELECT bloom_index_check('t_x')",
    ] {
        assert_eq!(sqlstate(&mut client, sql), "23514", "{sql}");
        fails_by_the_long_error_or_for_lack_of_memory(&server, sql);
    }
}
