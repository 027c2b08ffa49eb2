//! A scan that reads rows ahead answers as a plain one does: whatever is asked, of what, in
//! whatever plan.

use crate::common::{Server, plan, random, run, value};
use postgres::{Client, SimpleQueryMessage};
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("max_worker_processes = 12"))
}

/// Columns of elements, by their number `i`.
const COLUMNS: [(&str, &str); 20] = [
    ("int2", "(i % 30000)::smallint"),
    ("int4", "i::integer"),
    ("int8", "i::bigint * 4294967296"),
    ("sometimes", "CASE WHEN i % 3 > 0 THEN i END"),
    ("label", "'label ' || i"),
    ("long", "repeat(md5(i::text), 1 + i % 100)"),
    ("short", "('v' || i)::varchar(20)"),
    ("domain", "i::small"),
    ("bytes", "convert_to('b' || i, 'UTF8')"),
    ("real", "i::real / 2"),
    ("double", "i::double precision / 3"),
    ("number", "i::numeric / 10"),
    ("id", "md5(i::text)::uuid"),
    ("day", "date '2000-01-01' + i"),
    ("moment", "timestamptz '2000-01-01 00:00:00+00' + i * interval '1 minute'"),
    ("json", "jsonb_build_object('i', i, 'text', 'x' || i)"),
    ("list", "ARRAY[i, i + 1]"),
    ("span", "int4range(i, i + 10)"),
    ("address", "'10.0.0.0'::inet + i"),
    ("row", "ROW(i, 'r' || i)::pair"),
];
const ROWS: usize = 12_000;

/// A database with a table `t` of all columns and a table `filters`: of each column sparse ones,
/// small ones and large ones in each layout, counting ones, empty ones and NULL.
fn database(name: &str) -> Client {
    let mut client = server().database(name);
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(name, element)| format!("{element} AS c_{name}"))
        .collect();
    run(
        &mut client,
        &format!(
            "SET max_parallel_workers_per_gather = 0; CREATE TYPE pair AS (a integer, b text);
             CREATE DOMAIN small AS integer;
             CREATE TABLE t AS SELECT i AS n, {} FROM generate_series(1, {ROWS}) AS i; ANALYZE t;
             CREATE TABLE filters (of text, what text, f bloom, c counting_bloom)",
            columns.join(", ")
        ),
    );
    client
}

/// Filters of every fifth element of a column.
fn fill(client: &mut Client, column: &str) {
    run(
        client,
        &format!(
            "INSERT INTO filters SELECT '{column}', what, f, c FROM (
                 SELECT bloom_agg(c_{column}, 1000000) AS sparse, bloom_agg(c_{column}) AS small,
                   bloom_resize(bloom_agg(c_{column}), 2000000) AS large,
                   bloom_agg(c_{column}, 3000, 0.01, 'classic') AS classic,
                   counting_bloom_agg(c_{column}, 3000) AS counting
                 FROM t WHERE n % 5 = 0) AS built,
             LATERAL (VALUES ('sparse', sparse, counting), ('small', small, NULL), ('large', large, NULL),
               ('classic', classic, NULL), ('none', NULL, NULL), ('empty', bloom_empty(1000), counting_bloom_empty(10)))
               AS v (what, f, c)"
        ),
    );
}

/// What a client sees of statements: rows as text, or the error.
fn answer(client: &mut Client, sql: &str) -> String {
    match client.simple_query(sql) {
        Ok(messages) => {
            let row = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => (0..row.len())
                    .map(|i| row.get(i).unwrap_or("NULL"))
                    .collect::<Vec<_>>()
                    .join("|"),
                SimpleQueryMessage::CommandComplete(rows) => format!("{rows} rows"),
                _ => String::new(),
            };
            messages.iter().map(row).collect::<Vec<_>>().join("\n")
        }
        Err(error) => {
            let error = error
                .as_db_error()
                .unwrap_or_else(|| panic!("no error of the server: {error}"));
            format!(
                "{} {} {:?} {:?}",
                error.code().code(),
                error.message(),
                error.detail(),
                error.hint()
            )
        }
    }
}

/// Asserts that statements give the same with and without reading ahead. Returns that.
fn same(client: &mut Client, sql: &str) -> String {
    run(client, "SET pg_bloom.read_ahead = off");
    let expected = answer(client, sql);
    run(client, "ROLLBACK; SET pg_bloom.read_ahead = on");
    let found = answer(client, sql);
    assert!(expected == found, "{sql}\n{expected:.300}\n{found:.300}");
    run(client, "ROLLBACK");
    found
}

/// The same for a query, which must read ahead if it may.
fn same_query(client: &mut Client, sql: &str) -> String {
    let found = same(client, sql);
    assert!(reads_ahead(client, sql), "{}", plan(client, "COSTS OFF", sql));
    run(client, "SET pg_bloom.read_ahead = off");
    assert!(!reads_ahead(client, sql));
    run(client, "SET pg_bloom.read_ahead = on");
    found
}

fn reads_ahead(client: &mut Client, sql: &str) -> bool {
    plan(client, "COSTS OFF", sql).contains("Custom Scan (Bloom Scan) on ")
}

#[test]
fn elements_of_all_kinds_and_filters_of_all_forms() {
    let mut client = database("kinds");
    for (n, (column, _)) in COLUMNS.into_iter().enumerate() {
        fill(&mut client, column);
        for (m, what) in ["sparse", "small", "large", "classic", "none", "empty"]
            .into_iter()
            .enumerate()
        {
            let filter =
                format!("(SELECT f FROM filters WHERE of = '{column}' AND what = '{what}')");
            let found =
                same_query(&mut client, &format!("SELECT n FROM t WHERE {filter} @> c_{column}"));
            let least = if matches!(what, "none" | "empty") { 0 } else { ROWS / 8 };
            assert!(found.lines().count() > least, "{column}, {what}: {found}");
            let counting = filter.replace("SELECT f", "SELECT c");
            // Each of the other ways to ask, of some columns.
            let other_ways = [
                format!("SELECT n FROM t WHERE c_{column} <@ {filter}"),
                format!("SELECT n FROM t WHERE bloom_contains({filter}, c_{column})"),
                format!("SELECT sum(n) FROM t WHERE {counting} @> c_{column}"),
                format!("SELECT sum(n) FROM t WHERE c_{column} <@ {counting}"),
            ];
            same_query(&mut client, &other_ways[(n + m) % other_ways.len()]);
        }
    }
    // Each filter for a scan of its own, by its value in the row outside.
    for column in ["int4", "sometimes", "label", "long"] {
        let inner = format!("SELECT sum(n) FROM t WHERE f @> c_{column}");
        same_query(
            &mut client,
            &format!("SELECT what, ({inner}) FROM filters WHERE of = '{column}'"),
        );
    }
}

#[test]
fn filters_of_every_origin() {
    let mut client = database("origins");
    fill(&mut client, "label");
    let large = "(SELECT f FROM filters WHERE what = 'large')";
    let built = "(SELECT bloom_agg('label ' || i, 2000000) FROM generate_series(1, 300000) AS i)";
    same_query(&mut client, &format!("SELECT n FROM t WHERE {built} @> c_label"));
    // Without reading ahead these are merged for each row, of which a fifth is found.
    for merged in [
        format!("{large} | bloom_from_array(ARRAY['a'], 2000000)"),
        format!("bloom_union({large}, bloom_empty())"),
    ] {
        same_query(
            &mut client,
            &format!("SELECT n FROM t WHERE n % 21 = 0 AND ({merged}) @> c_label"),
        );
    }
    let constant: String =
        value(&mut client, "SELECT quote_literal(f) FROM filters WHERE what = 'large'");
    same_query(&mut client, &format!("SELECT n FROM t WHERE {constant}::bloom @> c_label"));
    let small: String =
        value(&mut client, "SELECT quote_literal(f) FROM filters WHERE what = 'small'");
    let sql = format!("SELECT n FROM t WHERE {small}::bloom @> c_label");
    same(&mut client, &sql);
    assert!(!reads_ahead(&mut client, &sql), "a small constant is not worth it");
    // Generic and custom plans.
    for mode in ["force_generic_plan", "force_custom_plan"] {
        run(&mut client, &format!("SET plan_cache_mode = {mode}"));
        for (what, argument) in [
            ("large", constant.clone()),
            ("NULL", "NULL".into()),
            ("small", small.clone()),
        ] {
            let prepared = "PREPARE p(bloom) AS SELECT n FROM t WHERE $1 @> c_label";
            let sql =
                format!("{prepared}; EXECUTE p({argument}); EXECUTE p({argument}); DEALLOCATE p");
            let found = same(&mut client, &sql);
            assert_eq!(found.lines().count() > 4000, what != "NULL", "{what}");
        }
    }
    run(&mut client, "SET plan_cache_mode = force_generic_plan");
    // Functions of PL/pgSQL, whose variables are parameters, and which change them.
    run(
        &mut client,
        "CREATE FUNCTION loops() RETURNS SETOF bigint LANGUAGE plpgsql AS $$
         DECLARE filter bloom; r record; total bigint;
         BEGIN
             FOR i IN 1..8 LOOP
                 SELECT f INTO filter FROM filters ORDER BY what OFFSET i % 6 LIMIT 1;
                 SELECT sum(n) INTO total FROM t WHERE filter @> c_label;
                 RETURN NEXT total;
                 FOR r IN SELECT n FROM t WHERE filter @> c_label LIMIT 100 LOOP
                     filter := NULL;
                     RETURN NEXT r.n;
                 END LOOP;
             END LOOP;
         END $$",
    );
    assert!(same(&mut client, "SELECT loops()").lines().count() > 500);
    // The function is altered after the plan was made.
    run(
        &mut client,
        "PREPARE p(bloom) AS SELECT sum(n) FROM t WHERE $1 @> c_label;
         CREATE ROLE asks; GRANT SELECT ON t, filters TO asks",
    );
    let execute = format!("EXECUTE p({constant})");
    let before = answer(&mut client, &execute);
    for change in [
        "SECURITY DEFINER",
        "SECURITY INVOKER SET work_mem = '1MB'",
        "RESET ALL",
        "RENAME TO other",
    ] {
        run(&mut client, &format!("ALTER FUNCTION bloom_contains(bloom, text) {change}"));
        assert_eq!(answer(&mut client, &execute), before, "{change}");
    }
    run(&mut client, "ALTER FUNCTION other(bloom, text) RENAME TO bloom_contains");
    run(&mut client, "REVOKE EXECUTE ON FUNCTION bloom_contains(bloom, text) FROM public");
    let denied = format!("SET ROLE asks; SELECT n FROM t WHERE {large} @> c_label");
    assert!(same(&mut client, &denied).starts_with("42501"));
    run(&mut client, "RESET ROLE; DROP OWNED BY asks; DROP ROLE asks");
}

#[test]
fn plans_of_all_shapes() {
    let mut client = database("shapes");
    fill(&mut client, "int4");
    fill(&mut client, "label");
    let f =
        |what| format!("(SELECT f FROM filters WHERE of = 'int4' AND what = '{what}') @> c_int4");
    let large = f("large");
    run(
        &mut client,
        "CREATE FUNCTION costly(integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql COST 100000 AS
         'BEGIN RETURN $1 % 7 > 0; END';
         ALTER TABLE t ADD COLUMN added integer DEFAULT 5; ALTER TABLE t DROP COLUMN c_bytes;
         CREATE TEMPORARY TABLE own AS SELECT * FROM t; ANALYZE own; CREATE MATERIALIZED VIEW m AS TABLE t; ANALYZE m;
         CREATE TABLE parts (n integer, c_int4 integer) PARTITION BY RANGE (n);
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (11000);
         CREATE TABLE part_2 (c_int4 integer, n integer);
         ALTER TABLE parts ATTACH PARTITION part_2 FOR VALUES FROM (11000) TO (100000);
         INSERT INTO parts SELECT i, i FROM generate_series(1, 22000) AS i; ANALYZE parts",
    );
    for query in [
        // Conditions that are asked before and after.
        format!("SELECT n FROM t WHERE {large} AND n % 2 = 0 AND costly(n) AND c_sometimes > 9"),
        format!("SELECT n FROM t WHERE n < 0 AND {large}"),
        // One that fails for a row that nobody asks for.
        format!("SELECT n FROM t WHERE {large} AND 1 / (n - 21) < 5 LIMIT 4"),
        format!("SELECT n FROM t WHERE {large} AND {}", f("classic")),
        format!(
            "SELECT n FROM t WHERE {large} AND (n IN (SELECT i * 3 FROM generate_series(1, 999) AS i) OR n < 9)"
        ),
        format!(
            "SELECT n FROM t WHERE {large} AND costly((SELECT max(n) + t.n FROM filters AS x, t AS y WHERE y.n < 3))"
        ),
        // Rows, expressions, columns of the system, columns that were added.
        format!("SELECT t FROM t WHERE {large}"),
        format!("SELECT * FROM t WHERE {large} ORDER BY c_label LIMIT 50"),
        format!(
            "SELECT ctid, xmin, cmin, tableoid::regclass, n * 2 + added, c_label || c_row::text FROM t WHERE {large}"
        ),
        format!("SELECT added FROM t WHERE (SELECT bloom_agg(5)) @> added AND {large}"),
        // Limits.
        format!("SELECT n FROM t WHERE {large} LIMIT 1"),
        format!("SELECT n FROM t WHERE {large} OFFSET 77 LIMIT 3"),
        // Joins, and scans that are repeated.
        format!(
            "SELECT a.n, b.n FROM t AS a JOIN t AS b USING (c_uuid) WHERE {}",
            large.replace("c_int4", "a.c_int4")
        )
        .replace("c_uuid", "c_id"),
        format!(
            "SELECT g, s FROM generate_series(1, 4) AS g, LATERAL (SELECT sum(n) AS s FROM t WHERE {large} AND n > g OFFSET 0) AS q"
        ),
        format!(
            "SELECT g, (SELECT n FROM t WHERE {large} AND n > g * 1000 LIMIT 1) FROM generate_series(0, 12) AS g"
        ),
        format!(
            "SELECT g, EXISTS (SELECT FROM t WHERE {large} AND n = g) FROM generate_series(0, 12) AS g"
        ),
        format!(
            "WITH q AS (SELECT n FROM t WHERE {large}) SELECT count(*), sum(n) FROM q WHERE n > (SELECT avg(n) FROM q)"
        ),
        format!("SELECT n FROM t WHERE {large} UNION ALL SELECT n FROM m WHERE {large}"),
        format!("SELECT n, tableoid::regclass FROM parts WHERE {large}"),
        format!("SELECT n FROM own WHERE {large}"),
        format!("SELECT count(*), sum(n) FROM m WHERE {large}"),
    ] {
        assert!(!same_query(&mut client, &query).is_empty());
    }
    // An element of another kind, one that fails.
    let other = "SELECT n FROM t WHERE (SELECT f FROM filters WHERE of = 'label' AND what = 'large') @> c_int4";
    assert!(same_query(&mut client, other).starts_with("42804"));
    // What is no such scan.
    for query in [
        format!("SELECT n FROM t WHERE {large} AND random() >= 0"),
        format!("SELECT n FROM t WHERE {}", large.replace("@> c_int4", "@> (c_int4 + (random() * 0)::integer)")),
        format!(
            "SELECT n FROM t WHERE {} AND n < 50",
            large.replace("@> c_int4", "@> (SELECT max(y.n) + t.n FROM t AS y WHERE y.n < t.n % 9)::integer")
        ),
        format!("SELECT n FROM t TABLESAMPLE BERNOULLI (30) REPEATABLE (1) WHERE {large}"),
        format!("SELECT n FROM (SELECT n, c_int4 FROM t OFFSET 0) AS q WHERE {large}"),
        "SELECT n FROM t JOIN filters ON f @> c_int4 AND of = 'int4'".into(),
        "SELECT n FROM t WHERE NOT (SELECT f FROM filters WHERE of = 'int4' AND what = 'large') @> c_int4".into(),
        "SELECT n FROM t WHERE CASE WHEN n > 0 THEN (SELECT bloom_agg(random())) END @> 0.5::float8".into(),
        format!("SELECT n FROM t TABLESAMPLE SYSTEM (100) WHERE {large}"),
    ] {
        same(&mut client, &query);
        assert!(!reads_ahead(&mut client, &query), "{query}");
    }
    // An index that is better is used.
    run(&mut client, "CREATE INDEX ON t (n)");
    assert!(!reads_ahead(&mut client, &format!("SELECT * FROM t WHERE n = 7 AND {large}")));
}

#[test]
fn rows_that_are_barred_are_not_asked_for() {
    let mut client = database("barriers");
    fill(&mut client, "int4");
    let large = "(SELECT f FROM filters WHERE what = 'large')";
    run(
        &mut client,
        "CREATE ROLE barred; GRANT SELECT ON t, filters TO barred; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
         CREATE POLICY p ON t USING (n % 2 = 1); CREATE VIEW v WITH (security_barrier) AS SELECT * FROM t WHERE n < 999",
    );
    let in_view = format!("SELECT n FROM v WHERE {large} @> c_int4");
    same(&mut client, &in_view);
    assert!(!reads_ahead(&mut client, &in_view));
    run(&mut client, "SET ROLE barred");
    let sql = format!("SELECT n FROM t WHERE {large} @> c_int4");
    assert!(same(&mut client, &sql).lines().count() > 1000);
    assert!(!reads_ahead(&mut client, &sql));
    // A policy that itself asks comes first.
    run(
        &mut client,
        "RESET ROLE; DROP POLICY p ON t;
         CREATE POLICY p ON t USING ((SELECT f FROM filters WHERE what = 'large') @> c_int4); SET ROLE barred",
    );
    assert!(
        same_query(&mut client, "SELECT n FROM t WHERE n % 3 = 0")
            .lines()
            .count()
            > 700
    );
    run(&mut client, "RESET ROLE; DROP OWNED BY barred; DROP ROLE barred");
}

#[test]
fn cursors_and_changes() {
    let mut client = database("cursors");
    fill(&mut client, "int4");
    let large = "(SELECT f FROM filters WHERE what = 'large') @> c_int4";
    let scan = format!("SELECT n FROM t WHERE {large}");
    for statements in [
        format!("BEGIN; DECLARE c CURSOR FOR {scan}; FETCH 3 FROM c; MOVE 500 IN c; FETCH 40 FROM c; FETCH ALL FROM c; ROLLBACK"),
        format!("BEGIN; DECLARE c SCROLL CURSOR FOR {scan}; FETCH 45 FROM c; FETCH BACKWARD 40 FROM c; FETCH LAST FROM c;
                 FETCH ABSOLUTE 100 FROM c; FETCH PRIOR FROM c; ROLLBACK"),
        format!("BEGIN; DECLARE c NO SCROLL CURSOR FOR {scan}; FETCH 5 FROM c; FETCH BACKWARD 1 FROM c"),
        format!("BEGIN; DECLARE c CURSOR WITH HOLD FOR {scan}; FETCH 2 FROM c; COMMIT; FETCH 40 FROM c; CLOSE c"),
        // The row of a cursor is the one handed out last, whatever was read ahead.
        format!("BEGIN; DECLARE c CURSOR FOR SELECT * FROM t WHERE {large}; MOVE 7 IN c;
                 UPDATE t SET n = -n WHERE CURRENT OF c RETURNING n; MOVE 60 IN c; DELETE FROM t WHERE CURRENT OF c RETURNING n;
                 FETCH 3 FROM c; MOVE ALL IN c; DELETE FROM t WHERE CURRENT OF c"),
        format!("BEGIN; DECLARE c CURSOR FOR {scan} FOR UPDATE; MOVE 40 IN c;
                 UPDATE t SET n = -n WHERE CURRENT OF c RETURNING n; FETCH 3 FROM c; ROLLBACK"),
        format!("BEGIN; UPDATE t SET n = -n WHERE {large} RETURNING n, c_label; SELECT sum(n) FROM t; ROLLBACK"),
        format!("BEGIN; DELETE FROM t WHERE {large} AND n % 2 = 0 RETURNING t; SELECT sum(n) FROM t; ROLLBACK"),
        format!("BEGIN; INSERT INTO t SELECT * FROM t WHERE {large}; SELECT sum(n) FROM t; ROLLBACK"),
        format!("BEGIN; UPDATE t SET n = g FROM generate_series(1, 900) AS g WHERE t.n = g AND {large} RETURNING n; ROLLBACK"),
        format!("BEGIN; SELECT n FROM t WHERE {large} FOR SHARE; ROLLBACK"),
        format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {scan}; SELECT count(*) > 0 FROM pg_locks WHERE mode = 'SIReadLock'; COMMIT"),
    ] {
        same(&mut client, &statements);
    }
    assert!(reads_ahead(&mut client, &format!("UPDATE t SET n = -n WHERE {large}")));
    assert!(reads_ahead(&mut client, &format!("DELETE FROM t WHERE {large}")));
}

/// Elements that are no columns.
const EXPRESSIONS: [&str; 27] = [
    "lower(c_label)",
    "c_label || n",
    "c_label || c_sometimes",
    "n::text",
    "c_int4 + 1",
    "c_int8 / 4294967296 % 77",
    "coalesce(c_sometimes, -1)",
    "nullif(c_int4, 5)",
    "CASE WHEN n % 4 > 0 THEN 1000 / (n % 4) END",
    "md5(c_long)",
    "substr(c_long, n % 200)",
    "repeat(c_long, 40)",
    "c_short::varchar(3)",
    "c_list[2]",
    "c_list || n",
    "(c_row).b",
    "ROW(n, c_label)::pair",
    "c_json -> 'i'",
    "c_json ->> 'text'",
    "date_trunc('day', c_moment)",
    "upper(c_span)",
    "quoted(c_label)",
    "shout(c_sometimes)",
    "ctid",
    "tableoid",
    "q",
    "(SELECT max(i) FROM generate_series(1, 3) AS i) + n",
];

/// Functions for [`EXPRESSIONS`], and a filter of every fifth element of each, by its number.
fn expressions(name: &str) -> Client {
    let mut client = database(name);
    run(
        &mut client,
        "CREATE FUNCTION quoted(text) RETURNS text STABLE LANGUAGE plpgsql AS 'BEGIN RETURN quote_ident($1); END';
         CREATE FUNCTION shout(integer) RETURNS text IMMUTABLE LANGUAGE sql AS
             'SELECT CASE WHEN count(*) > 0 THEN $1 || ''!'' END FROM generate_series(1, $1 % 3)';
         CREATE TABLE q AS SELECT n, c_label, c_int4 FROM t; ANALYZE q; CREATE TABLE of_expressions (of integer, f bloom)",
    );
    for (i, element) in EXPRESSIONS.iter().enumerate() {
        let table = if *element == "q" { "q" } else { "t" };
        run(
            &mut client,
            &format!(
                "INSERT INTO of_expressions SELECT {i}, bloom_agg({element}, 1000000) FROM {table} WHERE n % 5 = 0"
            ),
        );
    }
    client
}

#[test]
fn elements_that_are_expressions() {
    let mut client = expressions("expressions");
    for (i, element) in EXPRESSIONS.iter().enumerate() {
        let f = format!("(SELECT f FROM of_expressions WHERE of = {i})");
        let table = if *element == "q" { "q" } else { "t" };
        let found = same_query(
            &mut client,
            &format!("SELECT n, c_label FROM {table} WHERE {f} @> ({element})"),
        );
        assert!(found.lines().count() > 1500, "{element}: {found}");
        same_query(
            &mut client,
            &format!("SELECT sum(n) FROM {table} WHERE ({element}) <@ {f} AND c_int4 % 3 > 0"),
        );
        let function =
            format!("SELECT n FROM {table} WHERE bloom_contains({f}, {element}) ORDER BY c_label");
        same_query(&mut client, &function);
        let small = format!("SELECT n FROM {table} WHERE {f} @> ({element}) LIMIT 40");
        same(&mut client, &small);
        assert!(
            reads_ahead(&mut client, &small) == matches!(*element, "ctid" | "tableoid" | "q"),
            "{element}"
        );
    }
    // What is asked changes with the row outside, with a parameter, in a loop.
    let f = "(SELECT f FROM of_expressions WHERE of = 4)";
    for sql in [
        format!("SELECT g, (SELECT sum(n) FROM t WHERE {f} @> (c_int4 + g)) FROM generate_series(1, 7) AS g"),
        format!("SELECT g, (SELECT sum(n) FROM t WHERE {f} @> nullif(c_int4 + g, 6)) FROM generate_series(0, 3) AS g"),
        "SELECT of, s FROM of_expressions, LATERAL (SELECT sum(n) AS s FROM t WHERE f @> (c_int4 + of) OFFSET 0) AS x
             WHERE of IN (4, 6, 7)"
            .into(),
        format!("WITH x AS MATERIALIZED (SELECT n FROM t WHERE {f} @> (c_int4 + 3)) SELECT sum(n) FROM x"),
    ] {
        assert!(!same_query(&mut client, &sql).is_empty());
    }
    run(&mut client, "SET plan_cache_mode = force_generic_plan");
    let prepared = format!("PREPARE p(integer) AS SELECT n FROM t WHERE {f} @> (c_int4 + $1)");
    same(
        &mut client,
        &format!("{prepared}; EXECUTE p(1); EXECUTE p(NULL); EXECUTE p(2); DEALLOCATE p"),
    );
}

/// Queries of random parts: conditions of all sorts around one that reads ahead.
#[test]
fn conditions_at_random() {
    let mut client = expressions("random");
    let mut random = random(41);
    let others = [
        "n % 2 = 0",
        "c_sometimes > 70",
        "c_sometimes IS NULL",
        "c_label LIKE '%7%'",
        "quoted(c_label) <> 'x'",
        "n IN (SELECT i * 3 FROM generate_series(1, 3000) AS i)",
        "(n < 400 OR n > 9000)",
        "n % 1000 = 7",
        "n < 0",
    ];
    let shown = [
        "n",
        "count(*), sum(n)",
        "ctid, tableoid::regclass, c_label",
        "t",
        "n ORDER BY c_long LIMIT 9",
        "n LIMIT 9",
    ];
    run(&mut client, "SET jit = on");
    for n in 0..crate::common::times(150) {
        // Some plans are compiled.
        run(
            &mut client,
            &format!("SET jit_above_cost = {}", if n % 10 == 0 { 0 } else { 100_000 }),
        );
        let i = random.below(EXPRESSIONS.len() - 4);
        let element = EXPRESSIONS[i];
        let (columns, end) = random
            .pick(&shown)
            .split_once(' ')
            .filter(|(_, end)| end.contains("LIMIT"))
            .unwrap_or_default();
        let columns = if columns.is_empty() { *random.pick(&shown[..4]) } else { columns };
        let mut conditions = vec![format!(
            "(SELECT f FROM of_expressions WHERE of = {i}) @> ({element})"
        )];
        for _ in 0..random.below(4) {
            conditions.insert(random.below(conditions.len() + 1), (*random.pick(&others)).into());
        }
        same(
            &mut client,
            &format!("SELECT {columns} FROM t WHERE {} {end}", conditions.join(" AND ")),
        );
    }
}

#[test]
fn elements_that_fail() {
    let mut client = expressions("failing");
    run(
        &mut client,
        "CREATE FUNCTION odd(integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS
             $$BEGIN IF $1 % 2 = 0 THEN RAISE EXCEPTION 'row %', $1; END IF; RETURN $1; END$$;
         CREATE FUNCTION is_odd(integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql COST 2 AS
             'BEGIN RETURN $1 % 2 = 1; END';
         CREATE FUNCTION first_one() RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE found integer;
         BEGIN
             SELECT n INTO found FROM t WHERE (SELECT f FROM of_expressions WHERE of = 100) @> (1 / (n - 2));
             RETURN found;
         END $$;
         INSERT INTO of_expressions SELECT 100, bloom_agg(i, 1000000) FROM generate_series(-20, 20) AS i;
         CREATE ROLE hidden_from; GRANT SELECT ON t, of_expressions TO hidden_from",
    );
    let f = "(SELECT f FROM of_expressions WHERE of = 100)";
    // They fail, and with the same row, if nothing protects them; others are protected.
    for (sql, state) in [
        (format!("SELECT sum(n) FROM t WHERE {f} @> (9 / (n % 50))"), "22012"),
        (format!("SELECT n FROM t WHERE {f} @> odd(n) AND n < 5000"), "P0001 row 2 "),
        (format!("SELECT n FROM t WHERE n > 5000 AND {f} @> odd(n)"), "P0001 row 5002 "),
        (format!("SELECT n FROM t WHERE {f} @> (9 / (n % 50)) AND n % 50 <> 0"), ""),
        (format!("SELECT n FROM t WHERE is_odd(n) AND {f} @> odd(n)"), ""),
        (format!("SELECT n FROM t WHERE {f} @> (9 / (n % 50)) AND n < 0"), ""),
        (format!("SELECT n FROM t WHERE {f} @> (9 / nullif(n % 50, 0))"), ""),
        ("SELECT n FROM t WHERE (SELECT NULL::bloom) @> odd(n)".into(), "P0001 row 2 "),
    ] {
        let found = same_query(&mut client, &sql);
        let fails = found.starts_with("22012") || found.starts_with("P0001");
        assert!(found.starts_with(state) && fails != state.is_empty(), "{sql}: {found}");
    }
    // Nobody may ask for the row that fails.
    for sql in [
        format!("SELECT n FROM t WHERE {f} @> (9 / (n - 21)) LIMIT 4"),
        format!("SELECT EXISTS (SELECT FROM t WHERE {f} @> (9 / (n - 21)))"),
        format!(
            "SELECT min(g) FROM generate_series(1, 3) AS g WHERE EXISTS (SELECT FROM t WHERE {f} @> (9 / (n - 21)) AND n > g)"
        ),
        format!(
            "SELECT a.n FROM t AS a JOIN generate_series(1, 3) AS g ON a.n > g WHERE {f} @> (9 / (a.n - 21)) LIMIT 4"
        ),
        format!(
            "SELECT n FROM (SELECT n FROM t WHERE {f} @> (9 / (n - 21)) OFFSET 0) AS x LIMIT 4"
        ),
        format!(
            "WITH x AS MATERIALIZED (SELECT n FROM t WHERE {f} @> (9 / (n - 21))) SELECT n FROM x LIMIT 4"
        ),
    ] {
        assert!(!same(&mut client, &sql).starts_with("22012"), "{sql}");
    }
    let limited = format!("SELECT n FROM t WHERE {f} @> (9 / (n - 21)) LIMIT 4");
    assert!(!reads_ahead(&mut client, &limited));
    assert!(reads_ahead(
        &mut client,
        &format!("SELECT count(*) FROM t WHERE {f} @> (9 / (n - 21)) LIMIT 4")
    ));
    same(
        &mut client,
        &format!(
            "BEGIN; DECLARE c CURSOR FOR SELECT n FROM t WHERE {f} @> (9 / (n - 21)); FETCH 15 FROM c"
        ),
    );
    assert!(!same(&mut client, "SELECT first_one()").starts_with("22012"));
    // Of rows that are barred nothing is revealed.
    run(
        &mut client,
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (is_odd(n));
         CREATE VIEW v WITH (security_barrier) AS SELECT * FROM t WHERE is_odd(n); GRANT SELECT ON v TO hidden_from",
    );
    for role in ["postgres", "hidden_from"] {
        run(&mut client, &format!("SET ROLE {role}"));
        for table in ["v", "t"] {
            let sql = format!("SELECT count(*) FROM {table} WHERE {f} @> odd(n)");
            let is_barred = table == "v" || role == "hidden_from";
            assert_eq!(same(&mut client, &sql).starts_with("P0001"), !is_barred, "{role}, {table}");
            assert_eq!(reads_ahead(&mut client, &sql), !is_barred, "{role}, {table}");
        }
    }
    run(&mut client, "RESET ROLE; DROP OWNED BY hidden_from; DROP ROLE hidden_from");
}

#[test]
fn expressions_in_all_tables_and_statements() {
    let mut client = expressions("statements");
    run(
        &mut client,
        "CREATE ACCESS METHOD other TYPE TABLE HANDLER heap_tableam_handler;
         CREATE TABLE o USING other AS SELECT n, c_int4 FROM t;
         CREATE TABLE parts (n integer, c_int4 integer) PARTITION BY RANGE (n);
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (11000);
         CREATE TABLE part_2 (dropped text, c_int4 integer, n integer); ALTER TABLE part_2 DROP COLUMN dropped;
         ALTER TABLE parts ATTACH PARTITION part_2 FOR VALUES FROM (11000) TO (100000);
         INSERT INTO parts SELECT i, i FROM generate_series(1, 22000) AS i;
         CREATE TABLE heir (extra text) INHERITS (q); INSERT INTO heir SELECT i, 'l', i FROM generate_series(1, 11000) AS i;
         CREATE VIEW plain AS SELECT n, c_int4 + 0 AS c_int4 FROM t; ANALYZE",
    );
    let is_in = "(SELECT f FROM of_expressions WHERE of = 4) @> (c_int4 + 1)";
    for table in ["o", "parts", "q", "plain"] {
        same_query(&mut client, &format!("SELECT n, c_int4 FROM {table} WHERE {is_in}"));
        same_query(
            &mut client,
            &format!("SELECT count(*) FROM {table} WHERE {is_in} AND n % 7 = 0"),
        );
    }
    let whole = "SELECT n, q, tableoid::regclass FROM q WHERE (SELECT f FROM of_expressions WHERE of = 25) @> q";
    same_query(&mut client, whole);
    let scan = format!("SELECT n FROM t WHERE {is_in}");
    for fraction in ["0.1", "1"] {
        run(&mut client, &format!("SET cursor_tuple_fraction = {fraction}"));
        for statements in [
            format!("BEGIN; DECLARE c SCROLL CURSOR FOR {scan}; FETCH 45 FROM c; FETCH BACKWARD 40 FROM c; FETCH LAST FROM c;
                     FETCH ABSOLUTE 100 FROM c; FETCH PRIOR FROM c; ROLLBACK"),
            format!("BEGIN; DECLARE c NO SCROLL CURSOR FOR {scan}; FETCH 5 FROM c; FETCH BACKWARD 1 FROM c"),
            format!("BEGIN; DECLARE c CURSOR WITH HOLD FOR {scan}; FETCH 2 FROM c; COMMIT; FETCH 40 FROM c; CLOSE c"),
            format!("BEGIN; DECLARE c CURSOR FOR SELECT * FROM t WHERE {is_in}; MOVE 7 IN c;
                     UPDATE t SET n = -n WHERE CURRENT OF c RETURNING n; MOVE 60 IN c;
                     DELETE FROM t WHERE CURRENT OF c RETURNING n; FETCH 3 FROM c; MOVE ALL IN c; ROLLBACK"),
            format!("BEGIN; DECLARE c CURSOR FOR {scan} FOR UPDATE; MOVE 40 IN c;
                     UPDATE t SET n = -n WHERE CURRENT OF c RETURNING n; FETCH 3 FROM c; ROLLBACK"),
        ] {
            same(&mut client, &statements);
        }
    }
    for statement in [
        format!("UPDATE t SET n = -n WHERE {is_in} RETURNING n, c_label"),
        format!("DELETE FROM t WHERE {is_in} AND n % 2 = 0 RETURNING t"),
        format!("INSERT INTO t SELECT * FROM t WHERE {is_in} RETURNING n"),
        format!("UPDATE parts SET n = 22001 - n WHERE {is_in} RETURNING n, tableoid::regclass"),
    ] {
        same(&mut client, &format!("BEGIN; {statement}; SELECT sum(n) FROM t; ROLLBACK"));
        assert!(reads_ahead(&mut client, &statement), "{statement}");
    }
    // Tables of other servers.
    let foreign: i64 =
        value(&mut client, "SELECT count(*) FROM pg_available_extensions WHERE name = 'file_fdw'");
    if foreign == 1 {
        run(
            &mut client,
            "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
             CREATE FOREIGN TABLE numbers (c_int4 integer) SERVER files OPTIONS (program 'seq 20000'); ANALYZE numbers",
        );
        let sql = format!("SELECT sum(c_int4) FROM numbers WHERE {is_in}");
        same(&mut client, &sql);
        assert!(!reads_ahead(&mut client, &sql));
    }
}
