//! Reading ahead: nobody can tell a query that fetches memory ahead for its probes from one that
//! doesn't, whatever is probed, in whatever plan, and however its rows are asked for. Each statement
//! here runs with the setting on and off, and must give the same rows or the same error, and have
//! the same effects.

use crate::common::{Random, Server, plan, random, run, times, value};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use std::sync::OnceLock;
use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering};
use std::thread;
use std::time::Duration;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("max_worker_processes = 12"))
}

/// The message that a call site sends to those who ask for it when it begins to read ahead.
const REPORT: &str = "reading ahead in a sequential scan that probes a bloom filter";

/// A connection that counts the call sites that read ahead.
struct Session {
    client: Client,
    reports: Arc<AtomicUsize>,
}

impl Session {
    fn connect(database: &str) -> Session {
        let reports = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reports);
        let client = Config::new()
            .host_path(server().dir())
            .user("postgres")
            .dbname(database)
            .notice_callback(move |notice| {
                counted.fetch_add(usize::from(notice.message() == REPORT), Ordering::Relaxed);
            })
            .connect(NoTls)
            .expect("the server accepts connections");
        let mut session = Session { client, reports };
        session.run(
            "SET client_min_messages = debug1; SET max_parallel_workers_per_gather = 0;
             SET synchronize_seqscans = off",
        );
        session
    }

    fn run(&mut self, sql: &str) {
        run(&mut self.client, sql);
    }

    /// What `ask` gives, and how many call sites read ahead meanwhile.
    fn counted<T>(&mut self, ask: impl FnOnce(&mut Client) -> T) -> (T, usize) {
        let before = self.reports.load(Ordering::Relaxed);
        let outcome = ask(&mut self.client);
        (outcome, self.reports.load(Ordering::Relaxed) - before)
    }

    /// Asserts that `ask` gives the same with and without reading ahead, and that nothing is read
    /// ahead without. Returns what it gives, and how many call sites read ahead.
    fn same_of<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        mut ask: impl FnMut(&mut Client) -> T,
    ) -> (T, usize) {
        self.run("SET pg_bloom.read_ahead = off");
        let (expected, without) = self.counted(&mut ask);
        assert_eq!(without, 0, "{what}");
        self.run("SET pg_bloom.read_ahead = on");
        let (found, with) = self.counted(&mut ask);
        assert!(expected == found, "{what}\n{expected:.300?}\n{found:.300?}");
        (found, with)
    }

    /// The same for statements, any transaction of which is rolled back at the end.
    fn same(&mut self, sql: &str) -> (String, usize) {
        self.same_of(sql, |client| {
            let answer = answer(client, sql);
            run(client, "ROLLBACK");
            answer
        })
    }

    /// The same for statements that must read ahead.
    fn same_ahead(&mut self, sql: &str) -> String {
        let (answer, ahead) = self.same(sql);
        assert!(ahead > 0, "{sql}\n{answer:.300}");
        answer
    }

    /// The same for statements that must not.
    fn same_not_ahead(&mut self, sql: &str) -> String {
        let (answer, ahead) = self.same(sql);
        assert_eq!(ahead, 0, "{sql}\n{answer:.300}");
        answer
    }
}

/// What a client sees of statements: rows as text, or the error.
fn answer(client: &mut Client, sql: &str) -> String {
    match client.simple_query(sql) {
        Ok(messages) => messages.iter().map(shown).collect::<Vec<_>>().join("\n"),
        Err(error) => shown_error(&error),
    }
}

fn shown(message: &SimpleQueryMessage) -> String {
    match message {
        SimpleQueryMessage::Row(row) => {
            let values = (0..row.len()).map(|i| row.get(i).unwrap_or("NULL"));
            values.collect::<Vec<_>>().join("|")
        }
        SimpleQueryMessage::CommandComplete(rows) => format!("{rows} rows"),
        _ => String::new(),
    }
}

fn shown_error(error: &postgres::Error) -> String {
    let error = error
        .as_db_error()
        .unwrap_or_else(|| panic!("no error of the server: {error}"));
    let state = error.code().code();
    format!("{state} {} {:?} {:?}", error.message(), error.detail(), error.hint())
}

/// Columns of elements, by their number `i`, and whether filters are probed for values of the
/// column as they are on a page.
#[rustfmt::skip]
const COLUMNS: [(&str, &str, bool); 21] = [
    ("int2", "(i % 30000)::smallint", true),
    ("int4", "i::integer", true),
    ("int8", "i::bigint * 4294967296", true),
    ("sometimes", "CASE WHEN i % 3 > 0 THEN i END", true),
    ("label", "'label ' || i", true),
    ("long", "repeat(md5(i::text), 1 + i % 100)", true),
    ("short", "('v' || i)::varchar(20)", true),
    // A function casts it to text.
    ("padded", "('p' || i)::char(12)", false),
    ("domain", "i::small", true),
    ("bytes", "convert_to('b' || i, 'UTF8')", true),
    ("real", "i::real / 2", true),
    ("double", "i::double precision / 3", true),
    ("number", "i::numeric / 10", true),
    ("id", "md5(i::text)::uuid", true),
    ("day", "date '2000-01-01' + i", true),
    ("moment", "timestamptz '2000-01-01 00:00:00+00' + i * interval '1 minute'", true),
    ("json", "jsonb_build_object('i', i, 'text', 'x' || i)", false),
    ("list", "ARRAY[i, i + 1]", false),
    ("span", "int4range(i, i + 10)", false),
    ("address", "'10.0.0.0'::inet + i", false),
    ("row", "ROW(i, 'r' || i)::pair", false),
];
/// Types that filters of Parquet files have.
const OF_PARQUET: [&str; 8] = [
    "int2", "int4", "int8", "label", "real", "double", "id", "moment",
];
const ROWS: usize = 3_000;

/// A database with a table `t` of all columns, a table `filters`, and `large(filter)`, which spreads
/// a filter of bits to more than a megabyte.
fn database(name: &str) -> Session {
    server().database(name);
    let mut session = Session::connect(name);
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(name, element, _)| format!("{element} AS c_{name}"))
        .collect();
    session.run(&format!(
        "SET client_min_messages = error;
         CREATE TYPE pair AS (a integer, b text); CREATE DOMAIN small AS integer;
         CREATE TABLE t AS SELECT i AS n, {} FROM generate_series(1, {ROWS}) AS i; ANALYZE t;
         CREATE TABLE filters (of text, what text, f bloom, c counting_bloom);
         CREATE FUNCTION large(f bloom) RETURNS bloom LANGUAGE plpgsql AS $$
         DECLARE
             hint text;
         BEGIN
             RETURN bloom_resize(f, 900000);
         EXCEPTION WHEN invalid_parameter_value THEN
             GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
             RETURN bloom_resize(f, substring(hint FROM 'capacity (\\d+)')::bigint);
         END $$;
         SET client_min_messages = debug1",
        columns.join(", ")
    ));
    session
}

/// Adds filters of every fifth element of a column.
fn fill(session: &mut Session, column: &str) {
    let parquet = if OF_PARQUET.contains(&column) {
        format!("large(bloom_agg(c_{column}, 700, 0.01, 'parquet'))")
    } else {
        "NULL::bloom".into()
    };
    session.run(&format!(
        "SET client_min_messages = error;
         INSERT INTO filters SELECT '{column}', what, f, c FROM (
             SELECT bloom_agg(c_{column}, 1000000) AS sparse, bloom_agg(c_{column}, 700, 0.01) AS small,
               large(bloom_agg(c_{column}, 700, 0.01)) AS large,
               large(bloom_agg(c_{column}, 700, 0.01, 'classic')) AS classic, {parquet} AS parquet,
               counting_bloom_agg(c_{column}, 250000) AS counting
             FROM t WHERE n % 5 = 0) AS built,
         LATERAL (VALUES ('sparse', sparse, NULL), ('small', small, NULL), ('large', large, counting),
           ('classic', classic, NULL), ('parquet', parquet, NULL), ('none', NULL, NULL),
           ('empty', bloom_empty(1000), counting_bloom_empty(10))) AS v (what, f, c);
         SET client_min_messages = debug1"
    ));
}

#[test]
fn elements_of_all_kinds_and_filters_of_all_forms() {
    let mut session = database("kinds");
    for (number, (column, _, is_in_place)) in COLUMNS.into_iter().enumerate() {
        fill(&mut session, column);
        let whats = [
            "sparse", "small", "large", "classic", "parquet", "none", "empty",
        ];
        for (other, what) in whats.into_iter().enumerate() {
            let of_column = format!("FROM filters WHERE of = '{column}' AND what = '{what}'");
            let has_filter = what != "none" && (what != "parquet" || OF_PARQUET.contains(&column));
            let is_large = matches!(what, "large" | "classic" | "parquet") && has_filter;

            let filter = format!("(SELECT f {of_column})");
            let found = session.same(&format!("SELECT n FROM t WHERE {filter} @> c_{column}"));
            assert_eq!(found.1 > 0, is_large && is_in_place, "{column}, {what}");
            let least = if has_filter && what != "empty" { ROWS / 8 } else { 0 };
            assert!(found.0.lines().count() > least, "{column}, {what}: {found:?}");

            // One of the other ways to probe.
            let counting = format!("(SELECT c {of_column})");
            let other_ways = [
                format!("SELECT n FROM t WHERE c_{column} <@ {filter}"),
                format!("SELECT n FROM t WHERE bloom_contains({filter}, c_{column})"),
                format!("SELECT sum(n) FROM t WHERE NOT {filter} @> c_{column}"),
                format!("SELECT sum(n) FROM t WHERE {counting} @> c_{column}"),
                format!("SELECT sum(n) FROM t WHERE c_{column} <@ {counting}"),
            ];
            session.same(&other_ways[(number + other) % other_ways.len()]);
        }
    }

    // Each filter for a scan of its own, by its value in the row outside, some until one is found.
    for column in ["int4", "int8", "sometimes", "label", "long"] {
        for inner in [
            format!("SELECT sum(n) FROM t WHERE f @> c_{column}"),
            format!("SELECT n FROM t WHERE f @> c_{column} AND n > 40 LIMIT 1"),
        ] {
            let each = format!(
                "SELECT what, ({inner}) FROM filters, generate_series(1, 3) WHERE of = '{column}'"
            );
            session.same(&each);
        }
    }
}

/// Filters that need hashes of another form than the one before, while the scan is begun again
/// among rows that were hashed for that.
#[test]
fn filters_in_turn_that_keep_numbers_in_different_widths() {
    let mut session = database("widths");
    fill(&mut session, "int4");
    let found = session.same_ahead(
        "SELECT g, (SELECT n FROM t WHERE f @> c_int4 AND n > g LIMIT 1)
         FROM (SELECT g, f | f AS f
               FROM generate_series(40, 60) AS g
               JOIN filters ON of = 'int4' AND what = CASE g % 2 WHEN 0 THEN 'large' ELSE 'parquet' END
               ORDER BY g OFFSET 0) AS q",
    );
    for number in 40..60 {
        let line = format!("{number}|{}", number / 5 * 5 + 5);
        assert!(found.contains(&line), "{line} in {found}");
    }
}

#[test]
fn filters_of_every_origin() {
    let mut session = database("origins");
    fill(&mut session, "label");
    let large = "(SELECT f FROM filters WHERE what = 'large')";
    for filter in [
        large,
        "(SELECT large(f) FROM filters WHERE what = 'small')",
        "(SELECT f | bloom_empty() FROM filters WHERE what = 'large')",
        "(SELECT bloom_union_agg(f) FROM filters WHERE what IN ('large', 'none'))",
    ] {
        session.same_ahead(&format!("SELECT n FROM t WHERE {filter} @> c_label"));
    }
    // Merged for each row.
    let merged = format!("bloom_union({large}, bloom_empty())");
    session.same_ahead(&format!("SELECT n FROM t WHERE n % 21 = 0 AND {merged} @> c_label"));

    let constant: String =
        value(&mut session.client, "SELECT quote_literal(f) FROM filters WHERE what = 'large'");
    session.same_ahead(&format!("SELECT n FROM t WHERE {constant}::bloom @> c_label"));
    let small: String =
        value(&mut session.client, "SELECT quote_literal(f) FROM filters WHERE what = 'small'");
    session.same_not_ahead(&format!("SELECT n FROM t WHERE {small}::bloom @> c_label"));

    // Generic and custom plans.
    for mode in ["force_generic_plan", "force_custom_plan"] {
        session.run(&format!("SET plan_cache_mode = {mode}"));
        for (argument, is_large) in [(&*constant, true), ("NULL", false), (&*small, false)] {
            let sql = format!(
                "PREPARE p(bloom) AS SELECT n FROM t WHERE $1 @> c_label;
                 EXECUTE p({argument}); EXECUTE p({argument}); DEALLOCATE p"
            );
            let (found, ahead) = session.same(&sql);
            assert_eq!(ahead > 0, is_large, "{argument:.20}");
            assert_eq!(found.lines().count() > 2 * ROWS / 8, argument != "NULL");
        }
    }

    // Functions of PL/pgSQL, whose variables are parameters, and which change them.
    session.run(
        "SET plan_cache_mode = force_generic_plan;
         CREATE FUNCTION loops() RETURNS SETOF bigint LANGUAGE plpgsql AS $$
         DECLARE filter bloom; r record; total bigint;
         BEGIN
             FOR i IN 1..8 LOOP
                 SELECT f INTO filter FROM filters ORDER BY what OFFSET i % 7 LIMIT 1;
                 SELECT sum(n) INTO total FROM t WHERE filter @> c_label;
                 RETURN NEXT total;
                 FOR r IN SELECT n FROM t WHERE filter @> c_label LIMIT 100 LOOP
                     filter := NULL;
                     RETURN NEXT r.n;
                 END LOOP;
             END LOOP;
         END $$",
    );
    assert!(session.same_ahead("SELECT loops()").lines().count() > 500);

    // A function that executes one plan several times at once.
    session.run(
        "CREATE FUNCTION nested(depth integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
         DECLARE r record; filter bloom := (SELECT large(f) FROM filters WHERE what = 'small');
         BEGIN
             FOR r IN SELECT n FROM t WHERE filter @> c_label AND n > 500 * depth LIMIT 100 LOOP
                 RETURN NEXT depth || ' ' || r.n;
                 IF r.n % 50 = 0 AND depth < 3 THEN
                     RETURN QUERY SELECT nested(depth + 1);
                 END IF;
             END LOOP;
         END $$",
    );
    assert!(session.same_ahead("SELECT nested(0)").lines().count() > 1000);
}

#[test]
fn plans_of_all_shapes() {
    let mut session = database("shapes");
    fill(&mut session, "int4");
    fill(&mut session, "label");
    session.run(
        "SET client_min_messages = error;
         CREATE FUNCTION costly(integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql COST 100000 AS
             'BEGIN RETURN $1 % 7 > 0; END';
         ALTER TABLE t ADD COLUMN added integer DEFAULT 5; ALTER TABLE t DROP COLUMN c_bytes;
         INSERT INTO t (n, c_int4, added) SELECT i, i, i FROM generate_series(3001, 3300) AS i;
         CREATE TEMPORARY TABLE own AS SELECT * FROM t; CREATE MATERIALIZED VIEW m AS TABLE t;
         CREATE TABLE parts (n integer, c_int4 integer) PARTITION BY RANGE (n);
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (11000);
         CREATE TABLE part_2 (c_int4 integer, n integer);
         ALTER TABLE parts ATTACH PARTITION part_2 FOR VALUES FROM (11000) TO (100000);
         INSERT INTO parts SELECT i, i FROM generate_series(1, 22000) AS i; ANALYZE;
         SET client_min_messages = debug1",
    );
    let from_filters =
        |what| format!("(SELECT f FROM filters WHERE of = 'int4' AND what = '{what}')");
    // Merged, so that the value is in memory, and not read in slices first.
    let in_memory = "(SELECT f | bloom_empty() FROM filters WHERE of = 'int4' AND what = 'large')";
    let large = format!("{in_memory} @> c_int4");
    for query in [
        // Conditions that are evaluated before and after.
        format!("SELECT n FROM t WHERE {large} AND n % 2 = 0 AND costly(n) AND c_sometimes > 9"),
        format!("SELECT n FROM t WHERE {large} AND {} @> c_int4", from_filters("classic")),
        format!(
            "SELECT n FROM t WHERE {large} AND (n IN (SELECT i * 3 FROM generate_series(1, 999) AS i) OR n < 9)"
        ),
        format!("SELECT n FROM t WHERE {large} LIMIT 1"),
        format!("SELECT n FROM t WHERE n % 9 = 0 OR NOT ({large} AND n % 2 = 0)"),
        format!("SELECT n FROM t WHERE {large} AND random() >= 0"),
        // Rows, expressions, columns of the system, columns that were added and dropped.
        format!("SELECT t FROM t WHERE {large}"),
        format!("SELECT * FROM t WHERE {large} ORDER BY c_label LIMIT 50"),
        format!(
            "SELECT ctid, xmin, cmin, tableoid::regclass, n * 2 + added, c_label || c_row::text FROM t WHERE {large}"
        ),
        format!("SELECT n, added FROM t WHERE {in_memory} @> added"),
        // Joins, and scans that are repeated.
        format!(
            "SELECT a.n, b.n FROM t AS a JOIN t AS b USING (c_id) WHERE {}",
            large.replace("c_int4", "a.c_int4")
        ),
        format!(
            "SELECT g, s FROM generate_series(1, 4) AS g, LATERAL (SELECT sum(n) AS s FROM t WHERE {large} AND n > g OFFSET 0) AS q"
        ),
        format!(
            "SELECT g, (SELECT n FROM t WHERE {large} AND n > g * 200 LIMIT 1) FROM generate_series(0, 12) AS g"
        ),
        format!(
            "SELECT g, EXISTS (SELECT FROM t WHERE {large} AND n = g * 100) FROM generate_series(0, 12) AS g"
        ),
        format!(
            "WITH q AS (SELECT n FROM t WHERE {large}) SELECT count(*), sum(n) FROM q WHERE n > (SELECT avg(n) FROM q)"
        ),
        format!("SELECT n FROM t WHERE {large} UNION ALL SELECT n FROM m WHERE {large}"),
        format!("SELECT n, tableoid::regclass FROM parts WHERE {large}"),
        format!("SELECT n FROM own WHERE {large}"),
        format!("SELECT count(*), sum(n) FROM m WHERE {large}"),
        format!(
            "SELECT n FROM (SELECT n, c_int4 FROM t OFFSET 0) AS q WHERE {large} UNION SELECT n FROM t WHERE {large}"
        ),
    ] {
        assert!(session.same_ahead(&query).lines().count() > 1);
    }
    for query in [
        format!("SELECT n FROM t WHERE n < 0 AND {large}"),
        // Elements that are no columns, and filters that are.
        format!("SELECT n FROM t WHERE {in_memory} @> (c_int4 + 1)"),
        "SELECT n FROM t JOIN filters ON f @> c_int4 AND of = 'int4'".into(),
        "SELECT of, what FROM filters WHERE f @> of OR of = 'int4'".into(),
        format!("SELECT n FROM t WHERE CASE WHEN n % 2 = 0 THEN {in_memory} END @> c_int4"),
        // Scans that are not sequential, and calls that are no conditions.
        format!("SELECT n FROM t TABLESAMPLE BERNOULLI (30) REPEATABLE (1) WHERE {large}"),
        format!("SELECT n FROM (SELECT n, c_int4 FROM t OFFSET 0) AS q WHERE {large}"),
        format!("SELECT n, {large} FROM t"),
        // An element of another kind.
        "SELECT n FROM t WHERE (SELECT f FROM filters WHERE of = 'label' AND what = 'large') @> c_int4".into(),
    ] {
        session.same_not_ahead(&query);
    }
    session.run("SET jit_above_cost = 0; SET jit = on");
    session.same_ahead(&format!("SELECT sum(n) FROM t WHERE {large}"));
}

#[test]
fn cursors_and_changes() {
    let mut session = database("cursors");
    fill(&mut session, "int4");
    let large = "(SELECT large(f) FROM filters WHERE what = 'small') @> c_int4";
    let scan = format!("SELECT n FROM t WHERE {large}");
    for statements in [
        format!("DECLARE c CURSOR FOR {scan}; FETCH 3 FROM c; MOVE 500 IN c; FETCH 40 FROM c; FETCH ALL FROM c"),
        format!("DECLARE c CURSOR FOR {scan}; FETCH 45 FROM c; FETCH BACKWARD 40 FROM c; FETCH 50 FROM c; FETCH BACKWARD ALL FROM c"),
        format!("DECLARE c SCROLL CURSOR FOR {scan}; FETCH 45 FROM c; FETCH BACKWARD 40 FROM c; FETCH LAST FROM c;
                 FETCH ABSOLUTE 100 FROM c; FETCH PRIOR FROM c"),
        format!("DECLARE c NO SCROLL CURSOR FOR {scan}; FETCH 5 FROM c; FETCH BACKWARD 1 FROM c"),
        format!("DECLARE c CURSOR WITH HOLD FOR {scan}; FETCH 2 FROM c; COMMIT; FETCH 40 FROM c; CLOSE c"),
        format!("DECLARE c CURSOR FOR SELECT * FROM t WHERE {large}; MOVE 7 IN c;
                 UPDATE t SET n = -n WHERE CURRENT OF c RETURNING n; MOVE 60 IN c; DELETE FROM t WHERE CURRENT OF c RETURNING n;
                 FETCH 3 FROM c; MOVE BACKWARD 9 IN c; DELETE FROM t WHERE CURRENT OF c RETURNING n;
                 MOVE ALL IN c; DELETE FROM t WHERE CURRENT OF c"),
        format!("DECLARE c CURSOR FOR {scan} FOR UPDATE; MOVE 40 IN c; UPDATE t SET n = -n WHERE CURRENT OF c RETURNING n; FETCH 3 FROM c"),
        // Rows that the same session changes while the scan is at their page.
        format!("DECLARE c CURSOR FOR {scan}; MOVE 30 IN c; UPDATE t SET c_int4 = 5; FETCH ALL FROM c; SELECT count(*) FROM t WHERE {large}"),
        format!("DECLARE c CURSOR FOR {scan}; MOVE 30 IN c; DELETE FROM t WHERE n % 2 = 0; FETCH ALL FROM c; FETCH BACKWARD ALL FROM c"),
        format!("UPDATE t SET n = -n WHERE {large} RETURNING n, c_label; SELECT sum(n) FROM t"),
        format!("DELETE FROM t WHERE {large} AND n % 2 = 0 RETURNING t; SELECT sum(n) FROM t"),
        format!("INSERT INTO t SELECT * FROM t WHERE {large}; SELECT sum(n) FROM t"),
        format!("UPDATE t SET n = g FROM generate_series(1, 900) AS g WHERE t.n = g AND {large} RETURNING n"),
        format!("SELECT n FROM t WHERE {large} FOR SHARE"),
        format!("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; {scan};
                 SELECT count(*), min(locktype), max(locktype) FROM pg_locks WHERE mode = 'SIReadLock'"),
    ] {
        session.same_ahead(&format!("BEGIN; {statements}"));
    }
}

/// A row that another session changes while it is waited for is probed again.
#[test]
fn rows_that_change_meanwhile_are_probed_again() {
    let mut setup = database("meanwhile");
    fill(&mut setup, "int4");
    setup.run("CREATE TABLE changed AS SELECT n, c_int4 AS x, 0 AS y FROM t WHERE n < 100");
    let probe = "(SELECT large(f) FROM filters WHERE what = 'small') @> x";
    for statement in [
        format!("UPDATE changed SET y = 1 WHERE {probe} AND y = 0 RETURNING n"),
        format!("DELETE FROM changed WHERE {probe} AND y = 0 RETURNING n"),
        format!("SELECT n FROM changed WHERE {probe} AND y = 0 FOR UPDATE"),
    ] {
        let answers = ["on", "off"].map(|setting| {
            // One row leaves the set, one stays in it with another element, one leaves by another
            // condition.
            setup.run(
                "BEGIN; UPDATE changed SET x = 1 WHERE n = 20; UPDATE changed SET x = 5 WHERE n = 30;
                 UPDATE changed SET y = 7 WHERE n = 40",
            );
            let mut second = Session::connect("meanwhile");
            second.run(&format!("SET pg_bloom.read_ahead = {setting}"));
            let pid: i32 = value(&mut second.client, "SELECT pg_backend_pid()");
            let sql = format!("BEGIN; {statement}; ROLLBACK");
            let waiting =
                thread::spawn(move || second.counted(|client| answer(client, &sql)));

            let waits = format!("SELECT count(*) FROM pg_locks WHERE pid = {pid} AND NOT granted");
            while value::<i64>(&mut setup.client, &waits) == 0 && !waiting.is_finished() {
                thread::sleep(Duration::from_millis(5));
            }
            setup.run("COMMIT");
            let (answer, ahead) = waiting.join().expect("the other session is well");
            assert_eq!(ahead > 0, setting == "on", "{statement}");
            setup.run("UPDATE changed SET x = n, y = 0 WHERE n IN (20, 30, 40)");
            answer
        });
        // In the table they move while they change.
        let [found, without] = answers.each_ref().map(|answer| {
            let mut lines: Vec<&str> = answer.lines().collect();
            lines.sort_unstable();
            lines
        });
        assert_eq!(found, without, "{statement}");
        assert!(found.contains(&"30"), "{statement}: {found:?}");
        assert!(!found.contains(&"20") && !found.contains(&"40"), "{statement}: {found:?}");
    }
}

#[test]
fn workers_read_ahead() {
    let mut session = database("workers");
    fill(&mut session, "int4");
    session.run(
        "ALTER TABLE t SET (parallel_workers = 2); SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
         SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off",
    );
    let sum = "SELECT count(*), sum(n) FROM t WHERE (SELECT f FROM filters WHERE what = 'large') @> c_int4";
    let shown = plan(&mut session.client, "ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF", sum);
    assert!(shown.contains("Workers Launched: 2"), "{shown}");
    assert!(shown.contains("Parallel Seq Scan on t"), "{shown}");
    session.same_ahead(sum);
    // The scan is repeated by new workers.
    let repeated = format!("SELECT ({sum} OFFSET g * 0) FROM generate_series(1, 3) AS g")
        .replace("count(*), ", "");
    assert!(plan(&mut session.client, "COSTS OFF", &repeated).contains("Parallel Seq Scan"));
    session.same_ahead(&repeated);
}

/// Plans show nothing of it, and no rows are barred from probes that a sequential scan would bar.
#[test]
fn plans_are_the_same() {
    let mut session = database("same_plans");
    fill(&mut session, "int4");
    session.run(
        "CREATE ROLE barred; GRANT SELECT ON t, filters TO barred; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
         CREATE POLICY p ON t USING (n % 2 = 1);
         CREATE VIEW v WITH (security_barrier) AS SELECT * FROM t WHERE n < 999; GRANT SELECT ON v TO barred",
    );
    let filter = "(SELECT f FROM filters WHERE what = 'large')";
    for role in ["postgres", "barred"] {
        session.run(&format!("SET ROLE {role}"));
        for table in ["t", "v"] {
            let sql = format!("SELECT n FROM {table} WHERE {filter} @> c_int4");
            session.same(&sql);
            let (shown, _) = session.same(&format!("EXPLAIN (VERBOSE) {sql}"));
            assert!(shown.contains("Seq Scan on public.t"), "{shown}");
            session.same(&format!("EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF) {sql}"));
        }
    }
    session.run(
        "RESET ROLE; REVOKE EXECUTE ON FUNCTION bloom_contains(bloom, anyelement) FROM public; SET ROLE barred",
    );
    let (denied, _) = session.same(&format!("SELECT n FROM t WHERE {filter} @> c_int4"));
    assert!(denied.starts_with("42501"), "{denied}");
    session.run("RESET ROLE; DROP OWNED BY barred; DROP ROLE barred");
}

/// A database for statements of random parts, whose conditions and filters count in sequences how
/// often they are evaluated.
fn counting_database(name: &str) -> Session {
    let mut session = database(name);
    fill(&mut session, "int4");
    fill(&mut session, "label");
    session.run(
        "CREATE SEQUENCE conditions; CREATE SEQUENCE evaluated_filters; CREATE TABLE sink (n integer);
         CREATE FUNCTION noted(boolean) RETURNS boolean LANGUAGE plpgsql COST 1 AS
             'BEGIN PERFORM nextval(''conditions''); RETURN $1; END';
         CREATE FUNCTION noted_late(boolean) RETURNS boolean LANGUAGE plpgsql COST 100000 AS
             'BEGIN PERFORM nextval(''conditions''); RETURN $1; END';
         CREATE FUNCTION noted(bloom) RETURNS bloom LANGUAGE plpgsql AS
             'BEGIN PERFORM nextval(''evaluated_filters''); RETURN $1; END';
         CREATE FUNCTION fails_at(integer, integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql COST 100000 AS
             $$BEGIN IF $1 = $2 THEN RAISE EXCEPTION 'row %', $1; END IF; RETURN true; END$$",
    );
    session
}

/// A condition of random parts, one of which is a probe of column `c_int4` or `c_label`.
fn random_condition(random: &mut Random) -> String {
    let column = *random.pick(&["c_int4", "c_int4", "c_label", "c_sometimes"]);
    let of = if column == "c_label" { "label" } else { "int4" };
    let select =
        |what: &str| format!("SELECT f FROM filters WHERE of = '{of}' AND what = '{what}'");
    let filter = match random.below(12) {
        0..=2 => format!("({})", select("large")),
        3..=5 => format!("(SELECT large(f) FROM ({}) AS q)", select("small")),
        6 => format!("(SELECT noted(f) FROM ({}) AS q)", select("classic")),
        7 => format!("(SELECT noted(large(f)) FROM ({}) AS q)", select("small")),
        8 => format!("({})", select(random.pick(&["none", "empty", "sparse", "small"]))),
        9 => format!("(SELECT f FROM filters WHERE of = '{of}' AND f IS NOT NULL)"),
        10 => "(SELECT f FROM filters WHERE of = 'double' AND what = 'large')".into(),
        _ => format!("(SELECT f | bloom_empty() FROM ({}) AS q)", select("large")),
    };
    let divisor = random.below(400);
    let probe = match random.below(8) {
        0 => format!("{column} <@ {filter}"),
        1 => format!("bloom_contains({filter}, {column})"),
        2 => format!("NOT {filter} @> {column}"),
        3 => format!("({filter} @> {column} OR n % 13 = 0)"),
        4 => format!("{filter} @> (1000 / (n - {divisor}))"),
        _ => format!("{filter} @> {column}"),
    };

    let mut conditions = vec![probe];
    for _ in 0..random.below(4) {
        let number = random.below(400);
        let other = match random.below(10) {
            0 => "n % 2 = 0".into(),
            1 => format!("n > {number}"),
            2 => format!("10 / (n - {number}) < 11"),
            3 => format!("fails_at(n, {number})"),
            4 => format!("noted(n % 3 <> {})", number % 3),
            5 => format!("noted_late(n % 3 <> {})", number % 3),
            6 => "n < 0".into(),
            7 => "(SELECT i FROM generate_series(1, 2) AS i) < n".into(),
            8 => "c_label LIKE '%7%'".into(),
            _ => "(n < 300 OR c_sometimes IS NULL)".into(),
        };
        conditions.insert(random.below(conditions.len() + 1), other);
    }
    conditions.join(" AND ")
}

/// Statements that ask for rows that meet a condition in one of many ways. All may fail.
fn random_statements(random: &mut Random, condition: &str) -> String {
    let limit = *random.pick(&[1, 2, 7, 40, 333]);
    let scan = format!("SELECT n FROM t WHERE {condition}");
    let function = |returns: &str, language: &str, body: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION pg_temp.f() RETURNS {returns} LANGUAGE {language} AS $f${body}$f$"
        )
    };
    match random.below(16) {
        0 => scan,
        1 => format!("{scan} LIMIT {limit}"),
        2 => format!("SELECT EXISTS ({scan})"),
        3 => format!("SELECT count(*), sum(n) FROM t WHERE {condition}"),
        4 => format!("SELECT n FROM t WHERE {condition} GROUP BY n LIMIT 1"),
        5 => format!(
            "SELECT n % 10, count(*) FROM t WHERE {condition} GROUP BY 1 ORDER BY 1 LIMIT 1"
        ),
        6 => format!("WITH q AS MATERIALIZED ({scan}) SELECT EXISTS (SELECT FROM q)"),
        7 => format!("WITH q AS MATERIALIZED ({scan}) SELECT n FROM q LIMIT {limit}"),
        8 => {
            let body = format!(
                "DECLARE r integer; BEGIN {} ; RETURN r; END",
                scan.replacen("n FROM", "n INTO r FROM", 1)
            );
            format!("BEGIN; {}; SELECT pg_temp.f()", function("integer", "plpgsql", &body))
        }
        9 => {
            let body = format!(
                "DECLARE r record; BEGIN FOR r IN {scan} LOOP IF r.n > {limit} THEN RETURN r.n; END IF; END LOOP; RETURN 0; END"
            );
            format!("BEGIN; {}; SELECT pg_temp.f()", function("integer", "plpgsql", &body))
        }
        10 => format!("BEGIN; {}; SELECT pg_temp.f()", function("integer", "sql", &scan)),
        11 => format!(
            "BEGIN; {}; SELECT pg_temp.f() LIMIT {limit}",
            function("SETOF integer", "sql", &scan)
        ),
        12 => format!(
            "BEGIN; DECLARE c CURSOR FOR {scan}; FETCH {limit} FROM c; MOVE 40 IN c; FETCH BACKWARD 30 FROM c; FETCH 50 FROM c"
        ),
        13 => format!(
            "SELECT g, (SELECT n FROM t WHERE {condition} AND n > g LIMIT 1) FROM generate_series(0, 90, 30) AS g"
        ),
        14 => format!("BEGIN; UPDATE t SET n = -n WHERE {condition} RETURNING n"),
        _ => format!("BEGIN; INSERT INTO sink {scan}; SELECT count(*), sum(n) FROM sink"),
    }
}

/// What `ask` gives, and how often conditions and filters were evaluated.
fn with_evaluations(
    client: &mut Client,
    ask: impl FnOnce(&mut Client) -> String,
) -> (String, String) {
    run(client, "SELECT setval('conditions', 1), setval('evaluated_filters', 1)");
    let outcome = ask(client);
    run(client, "ROLLBACK");
    let counts =
        "SELECT c.last_value || ' ' || f.last_value FROM conditions AS c, evaluated_filters AS f";
    (outcome, value(client, counts))
}

#[test]
fn statements_at_random() {
    let mut session = counting_database("random");
    let mut random = random(41);
    let rounds = times(900);
    let (mut ahead, mut failed) = (0, 0);
    for _ in 0..rounds {
        let condition = random_condition(&mut random);
        let statements = random_statements(&mut random, &condition);
        let ((outcome, _), reports) = session.same_of(&statements, |client| {
            with_evaluations(client, |client| answer(client, &statements))
        });
        ahead += usize::from(reports > 0);
        failed += usize::from(
            outcome.get(5..6) == Some(" ") && outcome.ends_with(')') || outcome.ends_with("None"),
        );
    }
    assert!(ahead > rounds / 4 && failed > rounds / 10, "{ahead} and {failed} of {rounds}");
}

/// Portals with a limit on rows, as asyncpg's cursors and JDBC's fetch size have them.
#[test]
fn portals_at_random() {
    let mut session = counting_database("portals");
    let mut random = random(42);
    let rounds = times(300);
    let mut ahead = 0;
    for _ in 0..rounds {
        let condition = random_condition(&mut random);
        let limits: Vec<i32> = (0..4).map(|_| *random.pick(&[1, 2, 5, 31, 500])).collect();
        let (_, reports) = session.same_of(&condition, |client| {
            with_evaluations(client, |client| fetched_in_parts(client, &condition, &limits))
        });
        ahead += usize::from(reports > 0);
    }
    assert!(ahead > rounds / 4, "{ahead} of {rounds}");
}

/// The first rows that meet a condition, so many at a time, and the error that ended them.
fn fetched_in_parts(client: &mut Client, condition: &str, limits: &[i32]) -> String {
    let mut parts = Vec::new();
    let mut fetch = || -> Result<(), postgres::Error> {
        let mut transaction = client.transaction()?;
        let portal = transaction.bind(&format!("SELECT n FROM t WHERE {condition}"), &[])?;
        for &limit in limits {
            let rows = transaction.query_portal(&portal, limit)?;
            parts.push(format!("{:?}", rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>()));
        }
        Ok(())
    };
    if let Err(error) = fetch() {
        parts.push(shown_error(&error));
    }
    parts.join("\n")
}
