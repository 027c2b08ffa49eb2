//! Filters in tables: what a probe reads of them, and that it reads what is there now.

use crate::common::{LAYOUTS, Server, column, plan, refused, rows, run, value};
use postgres::Client;
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        Server::start(
            "max_worker_processes = 40\nmax_parallel_workers = 32\nshared_buffers = '512MB'",
        )
    })
}

/// A database with a filter in each row of a table: layouts, dense and sparse, in line and out of
/// line, compressed.
fn database(name: &str) -> Client {
    let mut client = server().database(name);
    run(
        &mut client,
        "CREATE TABLE filters (id serial PRIMARY KEY, layout text, elements integer, f bloom);
         CREATE TABLE compressed (id serial PRIMARY KEY, layout text, elements integer, f bloom);
         ALTER TABLE compressed ALTER f SET STORAGE EXTENDED;",
    );
    for layout in LAYOUTS {
        for (elements, capacity) in [
            (20, 1_000),
            (700, 1_000),
            (3_000, 100_000),
            (40_000, 40_000),
            (140_000, 1_000_000),
        ] {
            for table in ["filters", "compressed"] {
                run(
                    &mut client,
                    &format!(
                        "INSERT INTO {table} (layout, elements, f)
                         SELECT '{layout}', {elements}, bloom_agg(x, {capacity}, 0.01, '{layout}')
                         FROM generate_series(1, {elements}) AS x"
                    ),
                );
            }
        }
    }
    client
}

/// Pages that a query touches.
fn pages(client: &mut Client, sql: &str) -> u64 {
    run(client, sql);
    let plan = plan(client, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", sql);
    let line = plan
        .lines()
        .find(|line| line.contains("Buffers: "))
        .unwrap_or_else(|| panic!("no buffers in\n{plan}"));
    line.split(['=', ' '])
        .filter_map(|word| word.parse::<u64>().ok())
        .sum()
}

#[test]
fn one_probe_of_a_large_filter_reads_one_slice() {
    let mut client = server().database("slices");
    run(&mut client, "CREATE TABLE filters (id integer PRIMARY KEY, f bloom)");
    for (id, capacity, layout) in [
        (1, 10_000_000, "blocked"),
        (2, 100_000_000, "blocked"),
        (3, 10_000_000, "parquet"),
        (4, 10_000_000, "classic"),
    ] {
        let elements = capacity / 6;
        run(
            &mut client,
            &format!(
                "INSERT INTO filters SELECT {id}, bloom_agg(x, {capacity}, 0.01, '{layout}')
                 FROM (SELECT generate_series(1, {elements}) AS x) AS elements"
            ),
        );
    }
    run(&mut client, "VACUUM ANALYZE filters");
    let sizes: Vec<i32> =
        column(&mut client, "SELECT octet_length(f::bytea) FROM filters ORDER BY id");
    assert!(sizes[0] > 12_000_000 && sizes[1] > 120_000_000, "{sizes:?}");
    let mut of_probe = |id: i32, element: i32| {
        let probe =
            pages(&mut client, &format!("SELECT f @> {element} FROM filters WHERE id = {id}"));
        probe - pages(&mut client, &format!("SELECT id FROM filters WHERE id = {id}"))
    };
    for element in [1, 1_000_000, -1, -2, -3] {
        let (small, large) = (of_probe(1, element), of_probe(2, element));
        // Start and block: a descent of the TOAST index and one or two chunks each.
        assert!(small <= 14 && large <= 14, "{small} and {large} pages for {element}");
        assert!(of_probe(3, element) <= 14);
        assert!(of_probe(4, element) <= 14 + 7 * 5);
    }
}

#[test]
fn slices_and_whole_values_say_the_same() {
    let mut client = database("same");
    for table in ["filters", "compressed"] {
        // Once for each element, so by slices; then all at once, so by the whole value.
        let probe = client
            .prepare(&format!("SELECT array_agg(f @> $1::integer ORDER BY id) FROM {table}"))
            .expect("a probe can be prepared");
        let elements: Vec<i32> = (1..=2_000).map(|i| i * 97 % 280_000).collect();
        let one_by_one: Vec<Vec<bool>> = elements
            .iter()
            .map(|element| {
                client
                    .query_one(&probe, &[element])
                    .expect("a probe can be executed")
                    .get(0)
            })
            .collect();
        let sql = format!(
            "SELECT array_agg(f @> x ORDER BY id) FROM {table}, generate_series(1, 2000) AS i,
             LATERAL (SELECT i * 97 % 280000 AS x) AS elements GROUP BY i ORDER BY i"
        );
        let at_once: Vec<Vec<bool>> = column(&mut client, &sql);
        assert_eq!(one_by_one, at_once, "{table}");
        let held: Vec<i32> =
            column(&mut client, &format!("SELECT elements FROM {table} ORDER BY id"));
        let mut answers = [0, 0];
        for (element, answered) in elements.iter().zip(&at_once) {
            for (held, answer) in held.iter().zip(answered) {
                assert!(*answer || element > held, "{element} is missed by a filter of {held}");
                answers[usize::from(*answer)] += 1;
            }
        }
        assert!(answers[0] > 10_000 && answers[1] > 3_000, "{answers:?}");
    }
}

#[test]
fn arrays_are_probed_as_their_elements_are() {
    let mut client = database("arrays");
    for elements in [3, 5_000] {
        let wrong: i64 = value(
            &mut client,
            &format!(
                "SELECT count(*) FROM filters, LATERAL (
                   SELECT array_agg(x ORDER BY x) AS xs, array_agg(x ORDER BY x) FILTER (WHERE f @> x) AS found,
                     bool_or(f @> x) AS one, bool_and(f @> x) AS every
                   FROM (SELECT i * 61 AS x FROM generate_series(1, {elements}) AS i) AS elements) AS probes
                 WHERE bloom_present(f, xs) <> coalesce(found, '{{}}')
                    OR bloom_contains_any(f, xs) <> one OR bloom_contains_all(f, xs) <> every"
            ),
        );
        assert_eq!(wrong, 0);
    }
}

#[test]
fn the_header_of_a_large_filter_is_read_from_its_first_slice() {
    let mut client = server().database("headers");
    run(
        &mut client,
        "CREATE TABLE large AS SELECT bloom_agg(x, 10000000) AS f FROM generate_series(1, 2000000) AS x;
         CREATE DOMAIN sized AS bloom CHECK ((bloom_header(VALUE)).capacity = 10000000);
         CREATE TABLE checked (f sized)",
    );
    let bytes: i64 = value(&mut client, "SELECT bytes FROM large, bloom_header(f)");
    assert!(bytes > 12_000_000, "{bytes}");
    let row = pages(&mut client, "SELECT f IS NULL FROM large");
    let header = pages(&mut client, "SELECT bloom_header(f) FROM large");
    let domain = pages(&mut client, "SELECT f::sized IS NULL FROM large");
    let info = pages(&mut client, "SELECT bloom_info(f) FROM large");
    println!(
        "{row} pages for the row, {header} with its header, {domain} by a domain, {info} with all of it"
    );
    // A few pages of the index and one of the table that has the slices.
    assert!(
        header <= row + 10 && domain <= row + 10 && info > 1000,
        "{row}, {header}, {domain}, {info}"
    );
    refused(&mut client, "23514", "INSERT INTO checked SELECT bloom_resize(f, 5000000) FROM large");
}

#[test]
fn a_filter_that_changes_between_probes_is_seen() {
    let mut client = server().database("changes");
    run(
        &mut client,
        "CREATE TABLE one AS SELECT 1 AS id, bloom_agg(x, 100000) AS f FROM generate_series(1, 100000) AS x;
         CREATE FUNCTION check_changes() RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE
           v bloom;
           missed integer := 0;
           found_before integer := 0;
           answer boolean;
         BEGIN
           FOR i IN 1..60 LOOP
             SELECT f INTO v FROM one;
             answer := v @> (1000000 + i);
             found_before := found_before + answer::integer;
             IF (SELECT f @> (1000000 + i) FROM one) <> answer THEN missed := missed + 1000; END IF;
             UPDATE one SET f = bloom_add(f, 1000000 + i);
             SELECT f INTO v FROM one;
             IF NOT v @> (1000000 + i) THEN missed := missed + 1; END IF;
             PERFORM 1 FROM one WHERE NOT f @> (1000000 + i);
             IF FOUND THEN missed := missed + 1; END IF;
           END LOOP;
           IF found_before > 10 THEN RAISE 'found before they were added: %', found_before; END IF;
           RETURN missed;
         END $$",
    );
    for _ in 0..2 {
        run(
            &mut client,
            "UPDATE one SET f = (SELECT bloom_agg(x, 100000) FROM generate_series(1, 100000) AS x)",
        );
        assert_eq!(value::<i32>(&mut client, "SELECT check_changes()"), 0);
    }
    // A procedure that commits between probes.
    run(
        &mut client,
        "DO $$ DECLARE v bloom; BEGIN
           FOR i IN 1..30 LOOP
             UPDATE one SET f = bloom_add(f, 2000000 + i);
             COMMIT;
             SELECT f INTO v FROM one;
             IF NOT v @> (2000000 + i) THEN RAISE 'missed %', i; END IF;
           END LOOP;
         END $$",
    );
    // Prepared statements, by a plan for any value.
    run(
        &mut client,
        "SET plan_cache_mode = force_generic_plan; PREPARE probe(integer) AS SELECT f @> $1 FROM one WHERE id = 1",
    );
    for i in 1..20 {
        run(&mut client, &format!("UPDATE one SET f = bloom_add(f, 3000000 + {i})"));
        assert!(value::<bool>(&mut client, &format!("EXECUTE probe(3000000 + {i})")));
    }
}

#[test]
fn a_constant_is_hashed_for_the_kind_of_each_filter() {
    let mut client = server().database("constants");
    run(
        &mut client,
        "CREATE TABLE mixed AS
         SELECT i, CASE WHEN i % 2 = 0 THEN bloom_agg(x, 10) ELSE bloom_agg(x, 10, 0.01, 'parquet') END AS f
         FROM generate_series(1, 100) AS i, generate_series(1, 5) AS x GROUP BY i",
    );
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM mixed WHERE f @> 5"), 100);
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM mixed WHERE f @> 6"), 0);
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM mixed WHERE f @> 5000000000"), 0);
    run(
        &mut client,
        "INSERT INTO mixed SELECT 101, bloom_agg(x::text, 10) FROM generate_series(1, 5) AS x",
    );
    refused(&mut client, "42804", "SELECT count(*) FROM mixed WHERE f @> 5");
}

#[test]
fn probes_work_wherever_expressions_do() {
    let mut client = server().database("places");
    run(
        &mut client,
        "CREATE TABLE known AS SELECT bloom_agg(x, 300000) AS f FROM generate_series(1, 300000) AS x;
         CREATE TABLE t WITH (parallel_workers = 2) AS SELECT x FROM generate_series(1, 400000) AS x;
         ANALYZE t",
    );
    // A nested loop, a hash join's filter, parallel workers.
    run(
        &mut client,
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2",
    );
    for sql in [
        "SELECT count(*) FROM t, known WHERE f @> x AND x <= 300000",
        "SELECT count(*) FROM t JOIN known ON x <@ f WHERE x <= 300000",
        "SELECT count(*) FROM t WHERE (SELECT f FROM known) @> x AND x <= 300000",
        "SELECT count(*) FROM t WHERE EXISTS (SELECT FROM known WHERE f @> x) AND x <= 300000",
    ] {
        assert_eq!(value::<i64>(&mut client, sql), 300_000, "{sql}");
    }
    let parallel =
        plan(&mut client, "COSTS OFF", "SELECT count(*) FROM t WHERE (SELECT f FROM known) @> x");
    assert!(parallel.contains("Parallel Seq Scan"), "{parallel}");
    // An index expression, a CHECK constraint, a trigger and COPY … WHERE.
    run(&mut client, "SET max_parallel_workers_per_gather = 0");
    let three: String =
        value(&mut client, "SELECT quote_literal(bloom_from_array(ARRAY[1, 2, 3])::text)");
    run(
        &mut client,
        &format!(
            "CREATE TABLE kept (x integer CHECK (NOT bloom_from_array(ARRAY[666, 667]) @> x));
         CREATE INDEX ON kept (({three}::bloom @> x));
         CREATE FUNCTION only_known() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN IF (SELECT f FROM known) @> NEW.x THEN RETURN NEW; END IF; RETURN NULL; END $$;
         CREATE TRIGGER only_known BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION only_known();
         INSERT INTO kept SELECT x FROM t WHERE x NOT IN (666, 667) AND x % 20 < 2"
        ),
    );
    let kept: Vec<i64> = rows(
        &mut client,
        "SELECT count(*) FILTER (WHERE x <= 300000), count(*) FILTER (WHERE x > 300000) FROM kept",
    )[0]
    .iter_values();
    assert_eq!(kept[0], 30_000);
    assert!(kept[1] < 200, "{} false positives", kept[1]);
    refused(&mut client, "23514", "INSERT INTO kept VALUES (666)");
    run(&mut client, "SET enable_seqscan = off");
    let by_index = format!("SELECT count(*) FROM kept WHERE {three}::bloom @> x");
    assert!(plan(&mut client, "COSTS OFF", &by_index).contains("Index"));
    assert_eq!(value::<i64>(&mut client, &by_index), 1);
    run(
        &mut client,
        "DROP TABLE kept; CREATE TABLE copied (x integer);
         CREATE FUNCTION is_known(x integer) RETURNS boolean LANGUAGE plpgsql AS
         $$ BEGIN RETURN (SELECT f FROM known) @> x; END $$",
    );
    let mut writer = client
        .copy_in("COPY copied FROM STDIN WHERE is_known(x)")
        .expect("COPY starts");
    std::io::Write::write_all(&mut writer, b"1\n2\n300000\n-5000\n").expect("rows can be sent");
    writer.finish().expect("COPY ends");
    let copied: Vec<i32> = column(&mut client, "SELECT x FROM copied WHERE x > 0 ORDER BY x");
    assert_eq!(copied, [1, 2, 300_000]);
}

/// The values of a row of counts.
trait Values {
    fn iter_values(&self) -> Vec<i64>;
}

impl Values for postgres::Row {
    fn iter_values(&self) -> Vec<i64> {
        (0..self.len()).map(|i| self.get(i)).collect()
    }
}
