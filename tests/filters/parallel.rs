//! Whatever plan runs an aggregate, the result is the same filter, byte for byte.

use crate::common::samples::{KEY_KIND_SAMPLES, TYPES};
use crate::common::{LAYOUTS, Random, Server, column, plan, refused, rows, run, value};
use postgres::Client;
use std::sync::OnceLock;

/// Parallel plans for everything that can have one.
const PARALLEL: &str = "
    SET max_parallel_workers_per_gather = 2;
    SET parallel_setup_cost = 0;
    SET parallel_tuple_cost = 0;
    SET min_parallel_table_scan_size = 0;";

/// The ways to run a parallel plan.
const MODES: [&str; 3] = [
    "SET parallel_leader_participation = on",
    "SET parallel_leader_participation = off",
    "SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')",
];

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("max_worker_processes = 40\nmax_parallel_workers = 32"))
}

/// Two sessions in a new database that these statements fill: one with serial plans, one with
/// parallel ones.
fn sessions(database: &str, fill: &str) -> (Client, Client) {
    let mut serial = server().database(database);
    run(&mut serial, "SET max_parallel_workers_per_gather = 0; SET pg_bloom.overfill = ignore");
    run(&mut serial, TYPES);
    run(&mut serial, fill);
    // Outside the transaction of what came before.
    run(&mut serial, "VACUUM ANALYZE");
    let mut parallel = server().connect(database);
    run(&mut parallel, "SET pg_bloom.overfill = ignore");
    run(&mut parallel, PARALLEL);
    (serial, parallel)
}

fn texts(client: &mut Client, sql: &str) -> Vec<String> {
    rows(client, &format!("SELECT q::text FROM ({sql}) AS q ORDER BY 1"))
        .iter()
        .map(|row| row.get(0))
        .collect()
}

/// Asserts that a query has a parallel plan with partial aggregates, and the rows of its serial
/// plan in every mode.
fn same_rows(serial: &mut Client, parallel: &mut Client, sql: &str) {
    let plan_of_serial = plan(serial, "COSTS OFF", sql);
    assert!(!plan_of_serial.contains("Gather"), "{sql}\n{plan_of_serial}");
    let expected = texts(serial, sql);
    assert!(!expected.is_empty(), "{sql}");
    for mode in MODES {
        run(parallel, mode);
        let plan = plan(parallel, "COSTS OFF", sql);
        assert!(plan.contains("Gather") && plan.contains("Partial "), "{mode}\n{sql}\n{plan}");
        let found = texts(parallel, sql);
        assert_eq!(found.len(), expected.len(), "{mode}\n{sql}");
        let differing = found.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(differing, None, "number of the first row that differs\n{mode}\n{sql}");
    }
}

/// A build with each of these arguments, as columns of a query.
fn builds(arguments: &[&str]) -> String {
    let builds: Vec<String> = arguments
        .iter()
        .map(|arguments| format!("bloom_agg({arguments})"))
        .collect();
    builds.join(", ")
}

/// A table of 8,000 rows with a column for each of [`KEY_KIND_SAMPLES`]: x0, x1, …
fn table_of_every_key_kind() -> String {
    let columns: Vec<String> = KEY_KIND_SAMPLES
        .iter()
        .enumerate()
        .map(|(n, sample)| format!("{} AS x{n}", sample.ordinary_value))
        .collect();
    format!(
        "CREATE TABLE t WITH (parallel_workers = 2) AS
         SELECT i, {} FROM (SELECT i % 6000 AS i FROM generate_series(1, 8000) AS i) AS numbers;",
        columns.join(", ")
    )
}

#[test]
fn builds_of_every_key_kind_are_the_same() {
    let (mut serial, mut parallel) = sessions("kinds", &table_of_every_key_kind());
    let columns: Vec<usize> = (0..KEY_KIND_SAMPLES.len()).collect();
    for columns in columns.chunks(6) {
        let builds: Vec<String> = columns
            .iter()
            .map(|n| {
                format!(
                    "bloom_agg(x{n}), bloom_agg(x{n}, 1000), bloom_agg(x{n}, 6000, 0.001), bloom_agg(x{n}, 10000000),
                     bloom_agg(x{n}, 6000, 0.01, 'classic'), bloom_agg(x{n}, NULL, NULL, 'parquet'),
                     counting_bloom_agg(x{n}, 1000), counting_bloom_agg(x{n}, 6000, 0.001)"
                )
            })
            .collect();
        same_rows(&mut serial, &mut parallel, &format!("SELECT {} FROM t", builds.join(", ")));
    }
}

#[test]
fn workers_are_really_used() {
    let (_, mut parallel) = sessions("workers", &table_of_every_key_kind());
    run(&mut parallel, MODES[1]);
    for aggregate in [
        "bloom_agg(i)",
        "bloom_agg(i, 20000)",
        "bloom_agg(x6, 20000, 0.01, 'classic')",
        "counting_bloom_agg(x6, 20000)",
    ] {
        let sql = format!("SELECT {aggregate} FROM t");
        let plan = plan(&mut parallel, "ANALYZE", &sql);
        let parts = [
            "Finalize Aggregate",
            "Workers Launched: 2",
            "Partial Aggregate",
            "Parallel Seq Scan",
        ];
        assert!(parts.iter().all(|part| plan.contains(part)), "{sql}\n{plan}");
    }
}

#[test]
fn builds_of_groups_are_the_same() {
    let (mut serial, mut parallel) = sessions(
        "groups",
        "CREATE TABLE t WITH (parallel_workers = 2) AS
         SELECT i % 5 AS few, i % 300 AS many, CASE WHEN i % 3 > 0 THEN i / 2 END AS x, i % 2 AS bit
         FROM generate_series(1, 20000) AS i",
    );
    let builds = builds(&[
        "x",
        "x, 5",
        "x, 1000",
        "x, 1000000, 0.001",
        "x, NULL, 0.1",
        "x, 10000, 0.02, 'parquet'",
    ]);
    let counting =
        "counting_bloom_agg(x, 30), counting_bloom_agg(bit, 10, 0.1), counting_bloom_agg(x, 5000)";
    for group in ["few", "many", "bit, few"] {
        same_rows(
            &mut serial,
            &mut parallel,
            &format!("SELECT {group}, {builds} FROM t GROUP BY {group}"),
        );
        same_rows(
            &mut serial,
            &mut parallel,
            &format!("SELECT {group}, {counting} FROM t GROUP BY {group}"),
        );
    }
    let both = "SELECT few, bloom_agg(x, 100) FILTER (WHERE bit = 1) AS a, bloom_agg(x) AS b FROM t GROUP BY few";
    same_rows(&mut serial, &mut parallel, both);
}

/// The rows of groups with different parameters follow one another, in one session and in workers.
#[test]
fn groups_with_their_own_parameters_have_the_filters_of_these() {
    let (mut serial, mut parallel) = sessions(
        "parameters",
        "CREATE TABLE t WITH (parallel_workers = 2) AS
         SELECT i AS x, i % 9 AS k, nullif(i % 9, 0) * 1000 AS capacity, 0.01 / (1 + i % 9) AS fpr,
             (ARRAY['blocked', 'classic', 'parquet'])[1 + i % 3] AS layout
         FROM generate_series(1, 20000) AS i",
    );
    let grouped: Vec<String> = column(
        &mut serial,
        "SELECT md5(bloom_send(bloom_agg(x, capacity, fpr, layout)))
         FROM t GROUP BY k, capacity, fpr, layout ORDER BY k",
    );
    let queries: Vec<String> = column(
        &mut serial,
        "SELECT DISTINCT ON (k) format('SELECT md5(bloom_send(bloom_agg(x, %L, %s, %L))) FROM t WHERE k = %s',
             capacity, fpr, layout, k)
         FROM t ORDER BY k",
    );
    let with_constants: Vec<String> =
        queries.iter().map(|query| value(&mut serial, query)).collect();
    assert_eq!(grouped, with_constants);

    let filters = "bloom_agg(x, capacity, fpr, layout), counting_bloom_agg(x, 1 + k, fpr::float8)";
    let sql = format!("SELECT k, {filters} FROM t GROUP BY k, capacity, fpr, layout");
    same_rows(&mut serial, &mut parallel, &sql);
}

#[test]
fn builds_of_nothing_but_nulls_are_the_same() {
    let (mut serial, mut parallel) = sessions(
        "nulls",
        "CREATE TABLE t WITH (parallel_workers = 2) AS
         SELECT i % 4 AS g, NULL::text AS never, CASE WHEN i % 4 = 0 THEN i::text END AS seldom
         FROM generate_series(1, 20000) AS i",
    );
    let builds = builds(&[
        "never",
        "never, 1000",
        "seldom",
        "seldom, 1000",
        "seldom, 1000000",
    ]);
    let builds =
        format!("{builds}, counting_bloom_agg(never, 1000), counting_bloom_agg(seldom, 1000)");
    same_rows(&mut serial, &mut parallel, &format!("SELECT {builds} FROM t"));
    same_rows(&mut serial, &mut parallel, &format!("SELECT g, {builds} FROM t GROUP BY g"));
    same_rows(&mut serial, &mut parallel, &format!("SELECT {builds} FROM t WHERE g * 1 < 0"));
    let empty: bool = value(
        &mut parallel,
        "SELECT bloom_agg(never) = bloom_empty() AND bloom_agg(never, 9) = bloom_empty(9) FROM t",
    );
    assert!(empty);
}

/// Filters of three layouts and two kinds; sparse and dense, of three sizes that divide each other,
/// empty and NULL.
const FILTERS: &str = "
    CREATE TABLE filters (layout text, kind text, f bloom) WITH (parallel_workers = 2, fillfactor = 10);
    INSERT INTO filters
    SELECT layout, kind, CASE kind
        WHEN 'inet' THEN bloom_agg(inet '10.0.0.0' + x, 8000 << n % 3, 0.01, layout)
        ELSE bloom_agg(x, 8000 << n % 3, 0.01, layout)
    END
    FROM unnest(ARRAY['blocked', 'classic', 'parquet']) AS layout, unnest(ARRAY['integer', 'inet']) AS kind,
         generate_series(1, 60) AS n, generate_series(1, CASE n % 4 WHEN 0 THEN 6000 ELSE 20 END) AS j,
         LATERAL (SELECT (n * 37 + j * 11) % 30000 AS x) AS element
    GROUP BY layout, kind, n;
    INSERT INTO filters
    SELECT layout, kind, f
    FROM unnest(ARRAY['blocked', 'classic', 'parquet']) AS layout, unnest(ARRAY['integer', 'inet']) AS kind,
         LATERAL (VALUES (NULL::bloom), (bloom_empty()), (bloom_empty(4000, 0.01, layout))) AS v (f);";

#[test]
fn unions_and_intersections_are_the_same() {
    let (mut serial, mut parallel) = sessions("merges", FILTERS);
    for aggregate in ["bloom_union_agg", "bloom_intersection_agg"] {
        let grouped =
            format!("SELECT layout, kind, {aggregate}(f) FROM filters GROUP BY layout, kind");
        same_rows(&mut serial, &mut parallel, &grouped);
        for filter in [
            "f",
            "bloom_union(f, bloom_empty(8000, 0.01, 'classic'))",
            "nullif(f, f)",
        ] {
            let sql = format!(
                "SELECT {aggregate}({filter}) FROM filters WHERE layout = 'classic' AND kind = 'inet'"
            );
            same_rows(&mut serial, &mut parallel, &sql);
        }
    }
    let dense: i64 = value(
        &mut serial,
        "SELECT count(*) FROM filters, bloom_info(f) WHERE representation = 'dense'",
    );
    let sparse: i64 = value(
        &mut serial,
        "SELECT count(*) FROM filters, bloom_info(f) WHERE representation = 'sparse'",
    );
    assert!(dense >= 60 && sparse >= 200, "{dense} dense filters and {sparse} sparse ones");
}

/// Sizes of which two can be merged only where a third is there are merged by whatever process gets
/// them.
#[test]
fn sizes_that_do_not_divide_are_merged_in_every_plan() {
    // Of 32, 48, 64, 96 and 192 blocks; in every group there is one of 192.
    let (mut serial, mut parallel) = sessions(
        "sizes",
        "CREATE TABLE filters (g integer, f bloom) PARTITION BY HASH (f);
         CREATE TABLE f0 PARTITION OF filters FOR VALUES WITH (MODULUS 3, REMAINDER 0) WITH (parallel_workers = 2, fillfactor = 10);
         CREATE TABLE f1 PARTITION OF filters FOR VALUES WITH (MODULUS 3, REMAINDER 1) WITH (parallel_workers = 2, fillfactor = 10);
         CREATE TABLE f2 PARTITION OF filters FOR VALUES WITH (MODULUS 3, REMAINDER 2) WITH (parallel_workers = 2, fillfactor = 10);
         INSERT INTO filters
         SELECT n % 4, bloom_agg((n * 7 + j) % 5000, bloom_capacity(44 + 64 * blocks))
         FROM generate_series(1, 200) AS n,
             LATERAL (SELECT (ARRAY[32, 48, 64, 96])[1 + n % 5 % 4] AS blocks) AS size,
             generate_series(1, CASE n % 3 WHEN 0 THEN 900 ELSE 20 END) AS j
         GROUP BY n, blocks;
         INSERT INTO filters
         SELECT g, bloom_agg(g * 10 + j, bloom_capacity(44 + 64 * 192)) FROM generate_series(0, 3) AS g, generate_series(1, 9) AS j
         GROUP BY g",
    );
    run(&mut parallel, "SET enable_partitionwise_aggregate = on");
    let mut partitionwise = server().connect("sizes");
    run(
        &mut partitionwise,
        "SET enable_partitionwise_aggregate = on; SET max_parallel_workers_per_gather = 0",
    );
    run(&mut partitionwise, "SET pg_bloom.overfill = ignore");
    let sizes: i64 =
        value(&mut serial, "SELECT count(DISTINCT (bloom_header(f)).num_bits) FROM filters");
    assert_eq!(sizes, 5);
    for sql in [
        "SELECT bloom_union_agg(f), bloom_intersection_agg(f) FROM filters",
        "SELECT g, bloom_union_agg(f), bloom_intersection_agg(f) FROM filters GROUP BY g",
    ] {
        same_rows(&mut serial, &mut parallel, sql);
        assert!(plan(&mut partitionwise, "COSTS OFF", sql).contains("Partial"), "{sql}");
        assert!(texts(&mut serial, sql) == texts(&mut partitionwise, sql), "partitionwise\n{sql}");
    }
    // Without it they can't be, in any plan.
    let sql =
        "SELECT bloom_union_agg(f) FROM filters WHERE (bloom_header(f)).num_bits <> 192 * 512";
    for client in [&mut serial, &mut parallel, &mut partitionwise] {
        refused(client, "22023", sql);
    }
}

/// Counting filters of two kinds, with each element one to forty times; empty, of no size and NULL.
const COUNTING_FILTERS: &str = "
    CREATE TABLE filters (kind text, f counting_bloom) WITH (parallel_workers = 2, fillfactor = 10);
    INSERT INTO filters
    SELECT kind, CASE kind
        WHEN 'inet' THEN counting_bloom_agg(inet '10.0.0.0' + x, 500) ELSE counting_bloom_agg(x, 500)
    END
    FROM unnest(ARRAY['integer', 'inet']) AS kind, generate_series(1, 60) AS n, generate_series(1, 100) AS j,
         LATERAL (SELECT (n * 37 + j * j) % 700 AS x) AS element
    GROUP BY kind, n;
    INSERT INTO filters
    SELECT kind, f FROM unnest(ARRAY['integer', 'inet', 'neither']) AS kind,
         (VALUES (NULL::counting_bloom), (counting_bloom_empty()), (counting_bloom_empty(500))) AS v (f);";

#[test]
fn sums_of_counting_filters_are_the_same() {
    let (mut serial, mut parallel) = sessions("sums", COUNTING_FILTERS);
    same_rows(
        &mut serial,
        &mut parallel,
        "SELECT kind, counting_bloom_union_agg(f) FROM filters GROUP BY kind",
    );
    for filter in ["f", "f + counting_bloom_empty(500)", "nullif(f, f)"] {
        let sql =
            format!("SELECT counting_bloom_union_agg({filter}) FROM filters WHERE kind = 'inet'");
        same_rows(&mut serial, &mut parallel, &sql);
    }
    let saturated: bool = value(
        &mut serial,
        "SELECT counters_saturated BETWEEN 100 AND counters_set - 100
         FROM (SELECT counting_bloom_union_agg(f) AS f FROM filters WHERE kind = 'inet') AS sum, counting_bloom_info(f)",
    );
    assert!(saturated);
}

#[test]
fn aggregates_over_partitions_are_the_same() {
    let (mut serial, mut parallel) = sessions(
        "partitions",
        "CREATE TABLE t (g integer, x text) PARTITION BY HASH (g);
         CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 0);
         CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 1);
         CREATE TABLE t2 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 2);
         INSERT INTO t SELECT i % 11, nullif(i % 9000, 0) || ' x' FROM generate_series(1, 20000) AS i",
    );
    let mut partitionwise = server().connect("partitions");
    run(
        &mut partitionwise,
        "SET enable_partitionwise_aggregate = on; SET max_parallel_workers_per_gather = 0",
    );
    run(&mut partitionwise, "SET pg_bloom.overfill = ignore");
    run(&mut parallel, "SET enable_partitionwise_aggregate = on");
    let builds = builds(&[
        "x",
        "x, 100",
        "x, 9000",
        "x, 1000000",
        "x, 9000, 0.001, 'classic'",
        "x, NULL, 0.2, 'parquet'",
    ]);
    let builds = format!("{builds}, counting_bloom_agg(x, 9000), counting_bloom_agg(x, 100, 0.2)");
    for sql in [
        format!("SELECT {builds} FROM t"),
        format!("SELECT g % 2, {builds} FROM t GROUP BY g % 2"),
        format!("SELECT g, {builds} FROM t GROUP BY g"),
    ] {
        let plan = plan(&mut partitionwise, "COSTS OFF", &sql);
        assert!(plan.matches("Aggregate").count() >= 3, "{sql}\n{plan}");
        assert!(
            texts(&mut serial, &sql) == texts(&mut partitionwise, &sql),
            "partitionwise\n{sql}"
        );
        for mode in MODES {
            run(&mut parallel, mode);
            assert!(texts(&mut serial, &sql) == texts(&mut parallel, &sql), "{mode}\n{sql}");
        }
    }
}

#[test]
fn a_build_is_the_union_of_the_builds_of_any_partition() {
    let (mut serial, _) = sessions(
        "identity",
        "CREATE TABLE t AS SELECT CASE WHEN i % 50 > 0 THEN i * 7 % 4001 END AS x, i FROM generate_series(1, 9000) AS i",
    );
    let mut random = Random(7);
    for round in 0..60 {
        let layout = LAYOUTS[round % LAYOUTS.len()];
        let capacity = *random.pick(&[1, 30, 400, 4000, 50000, 10_000_000]);
        let fpr = *random.pick(&[0.2, 0.01, 1e-5]);
        let (rows, pieces, seed) =
            (random.below(9000) + 1, random.below(40) + 1, random.bits() as u32);
        // The square makes pieces of very different sizes.
        let same: bool = value(
            &mut serial,
            &format!(
                "WITH pieces AS (
                     SELECT bloom_agg(x, {capacity}, {fpr}, '{layout}') AS f
                     FROM (SELECT x, abs(hashint8extended(i, {seed}) % {pieces}) AS n FROM t WHERE i <= {rows}) AS rows
                     GROUP BY n * n / {pieces}
                 )
                 SELECT bloom_agg(x, {capacity}, {fpr}, '{layout}') = (SELECT bloom_union_agg(f) FROM pieces)
                 FROM t WHERE i <= {rows}"
            ),
        );
        assert!(
            same,
            "capacity {capacity}, rate {fpr}, layout {layout}, {rows} rows, {pieces} pieces, seed {seed}"
        );
    }
}

#[test]
fn parameters_that_differ_between_workers_are_refused() {
    let (mut serial, mut parallel) = sessions(
        "differing",
        "CREATE TABLE t (p integer, x integer) PARTITION BY LIST (p);
         CREATE TABLE t0 PARTITION OF t FOR VALUES IN (0) WITH (parallel_workers = 0);
         CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1) WITH (parallel_workers = 0);
         INSERT INTO t SELECT i % 2, i FROM generate_series(1, 5000) AS i",
    );
    let mut partitionwise = server().connect("differing");
    run(
        &mut partitionwise,
        "SET enable_partitionwise_aggregate = on; SET max_parallel_workers_per_gather = 0",
    );
    run(&mut parallel, "SET enable_partitionwise_aggregate = on");
    let cases = [
        ("22023", "bloom_agg(x, CASE p WHEN 0 THEN 1000 ELSE 2000 END)"),
        ("22023", "bloom_agg(x, CASE p WHEN 0 THEN 1000 END)"),
        ("22023", "bloom_agg(x, CASE p WHEN 0 THEN 1000000 ELSE 2000000 END)"),
        ("22023", "bloom_agg(x, 1000, CASE p WHEN 0 THEN 0.01 ELSE 0.02 END)"),
        ("22023", "bloom_agg(x, NULL, CASE p WHEN 0 THEN 0.01 ELSE 0.02 END)"),
        ("22023", "bloom_agg(x, 1000, 0.01, CASE p WHEN 0 THEN 'blocked' ELSE 'classic' END)"),
        ("22023", "bloom_agg(CASE p WHEN 0 THEN x END, CASE p WHEN 0 THEN 1000 ELSE 2000 END)"),
        ("22023", "bloom_union_agg(CASE p WHEN 0 THEN bloom_empty(1000) ELSE bloom_empty(1100) END)"),
        ("22023", "bloom_intersection_agg(CASE p WHEN 0 THEN bloom_empty(1000) ELSE bloom_empty(1000, 0.1) END)"),
        ("22023", "counting_bloom_agg(x, CASE p WHEN 0 THEN 1000 ELSE 4000 END)"),
        ("22023", "counting_bloom_agg(x, CASE p WHEN 0 THEN 1000 ELSE 1001 END)"),
        ("22023", "counting_bloom_agg(x, 1000, CASE p WHEN 0 THEN 0.01 ELSE 0.011 END)"),
        (
            "22023",
            "counting_bloom_union_agg(CASE p WHEN 0 THEN counting_bloom_empty(9) ELSE counting_bloom_empty(9000) END)",
        ),
        (
            "42804",
            "counting_bloom_union_agg(
                 CASE p WHEN 0 THEN counting_bloom_empty(9) || x ELSE counting_bloom_empty(9) || 'x' END)",
        ),
        ("42804", "bloom_union_agg(CASE p WHEN 0 THEN bloom_add(bloom_empty(9), x) ELSE bloom_empty(9) || 'x' END)"),
        ("42804", "bloom_intersection_agg(CASE p WHEN 0 THEN bloom_empty(9) || x ELSE bloom_empty(9) || 'x' END)"),
    ];
    for (state, aggregate) in cases {
        let sql = format!("SELECT {aggregate} FROM t");
        refused(&mut serial, state, &sql);
        assert!(plan(&mut partitionwise, "COSTS OFF", &sql).contains("Partial Aggregate"));
        refused(&mut partitionwise, state, &sql);
        for mode in MODES {
            run(&mut parallel, mode);
            assert!(plan(&mut parallel, "COSTS OFF", &sql).contains("Gather"));
            refused(&mut parallel, state, &sql);
        }
    }
}

/// PostgreSQL refuses it, for any long value; a computed one has no temporary table behind it. The
/// page of questions says so.
#[test]
fn a_filter_in_a_temporary_table_is_probed_by_a_copy() {
    let fill = "CREATE TABLE urls AS SELECT 'https://example.com/' || i AS url FROM generate_series(1, 20000) AS i";
    let (_, mut client) = sessions("temporary", fill);
    run(
        &mut client,
        "CREATE TEMPORARY TABLE wanted AS SELECT bloom_agg(url, 20000) AS f FROM urls",
    );
    run(&mut client, "SET parallel_leader_participation = off");
    let probed = |filter: &str| {
        format!("SELECT count(*) FROM urls WHERE (SELECT {filter} FROM wanted) @> url")
    };
    let plan = plan(&mut client, "COSTS OFF", &probed("f"));
    assert!(plan.contains("Gather"), "{plan}");
    // "cannot access temporary tables during a parallel operation"
    refused(&mut client, "25000", &probed("f"));
    assert_eq!(value::<i64>(&mut client, &probed("f::bytea::bloom")), 20_000);
}
