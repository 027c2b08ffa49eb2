//! The functions that the planner calls, where they are not expected: as estimators of operators
//! over other types, about filters that can't be asked, thousands of times in one statement. And
//! what they say a stored filter costs.

use crate::common::{Random, column, plan, refused, rows, run, value};
use crate::server;
use postgres::Client;

/// Types of every way of keeping values, and an expression of `i` for each.
const TYPES: [(&str, &str); 26] = [
    ("bool", "i % 2 = 0"),
    ("\"char\"", "chr(33 + i % 90)::\"char\""),
    ("int2", "i::int2"),
    ("int4", "i"),
    ("int8", "i::int8 * 1000000007"),
    ("float4", "i / 3::float4"),
    ("float8", "i / 3::float8"),
    ("oid", "i::oid"),
    ("regclass", "'pg_class'::regclass"),
    ("name", "('n' || i)::name"),
    ("text", "'text ' || i"),
    ("bytea", "decode(md5(i::text), 'hex')"),
    ("uuid", "md5(i::text)::uuid"),
    ("numeric", "i / 7.0"),
    ("timestamptz", "'epoch'::timestamptz + i * interval '1 hour'"),
    ("interval", "i * interval '1 hour'"),
    ("inet", "inet '10.0.0.0' + i"),
    ("jsonb", "jsonb_build_array(i)"),
    ("json", "json_build_array(i)"),
    ("int4[]", "ARRAY[i, NULL]"),
    ("point", "point(i, i)"),
    ("int4range", "int4range(i, i + 3)"),
    ("tid", "('(' || i || ',1)')::tid"),
    ("pair", "ROW(i, 'x')::pair"),
    ("bloom", "bloom_from_array(ARRAY[i], 10, 0.1)"),
    ("counting_bloom", "counting_bloom_empty(10, 0.1) || i"),
];

const ESTIMATORS: [&str; 4] = [
    "bloom_contains_selectivity",
    "bloom_contained_selectivity",
    "counting_bloom_contains_selectivity",
    "counting_bloom_contained_selectivity",
];

/// The name of the operator with this estimator.
fn operator(estimator: usize) -> String {
    "@".repeat(estimator + 3)
}

/// Functions without SUPPORT that take one filter, return none and cost more than a probe. Exports
/// to Parquet are left out, which no query has in its conditions.
const WITHOUT_SUPPORT: &str = "
    SELECT oid::regprocedure::text FROM pg_proc
    WHERE prokind = 'f' AND procost >= 10 AND prosupport = 0 AND proname <> 'bloom_to_parquet'
        AND prorettype NOT IN ('bloom'::regtype, 'counting_bloom'::regtype)
        AND (SELECT count(*) FROM unnest(proargtypes) AS argument
            WHERE argument IN ('bloom'::regtype, 'counting_bloom'::regtype)) = 1";

#[test]
fn functions_of_one_filter_say_what_reading_it_costs() {
    let mut client = server().database("support");
    assert_eq!(column::<String>(&mut client, WITHOUT_SUPPORT), Vec::<String>::new());
}

#[test]
fn estimators_of_operators_over_any_types_are_harmless() {
    let mut client = server().database("foreign_types");
    run(&mut client, "CREATE TYPE pair AS (a int, b text); CREATE DOMAIN filter AS bloom");
    let columns: Vec<String> = TYPES
        .iter()
        .enumerate()
        .map(|(n, (_, value))| format!("{value} AS c{n}"))
        .collect();
    run(
        &mut client,
        &format!(
            "CREATE TABLE t AS SELECT {} FROM generate_series(1, 300) AS i;
             INSERT INTO t SELECT FROM generate_series(1, 30); ANALYZE t",
            columns.join(", ")
        ),
    );
    let types: Vec<&str> = TYPES.iter().map(|(sql_type, _)| *sql_type).collect();
    let pairs: Vec<(&str, &str)> = types
        .iter()
        .map(|&t| (t, t))
        .chain(types.iter().flat_map(|&t| {
            [
                ("bloom", t),
                (t, "bloom"),
                ("counting_bloom", t),
                (t, "counting_bloom"),
            ]
        }))
        .collect();
    let mut made = std::collections::BTreeSet::new();
    for (left, right) in pairs.into_iter().filter(|&pair| made.insert(pair)) {
        run(
            &mut client,
            &format!(
                "CREATE FUNCTION odd({left}, {right}) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END'"
            ),
        );
        for (n, estimator) in ESTIMATORS.iter().enumerate() {
            let sql = format!(
                "CREATE OPERATOR {} (FUNCTION = odd, LEFTARG = {left}, RIGHTARG = {right}, RESTRICT = {estimator},
                     JOIN = bloom_join_selectivity)",
                operator(n)
            );
            run(&mut client, &sql);
        }
    }
    let pid: i32 = value(&mut client, "SELECT pg_backend_pid()");
    let (mut plans, mut shares) = (0, std::collections::BTreeSet::new());
    for &(left, right) in &made {
        let place =
            |t: &str| types.iter().position(|&other| other == t).expect("it is one of them");
        let (left, right) = (place(left), place(right));
        let constant =
            |n: usize| format!("(SELECT {} FROM generate_series(7, 7) AS i)", TYPES[n].1);
        let literal = |client: &mut Client, n: usize| -> String {
            let text: String = value(client, &format!("SELECT {}::text", constant(n)));
            format!("'{text}'::{}", TYPES[n].0)
        };
        let (a, b) = (literal(&mut client, left), literal(&mut client, right));
        for n in 0..ESTIMATORS.len() {
            let op = operator(n);
            for condition in [
                format!("{a} {op} c{right}"),
                format!("c{left} {op} {b}"),
                format!("NULL::{} {op} c{right}", TYPES[left].0),
                format!("c{left} {op} NULL::{}", TYPES[right].0),
                format!("{a} {op} {b}"),
                format!("c{left} {op} c{right}"),
                format!("c{left} {op} {}", constant(right)),
                format!("c{left} {op} ANY (ARRAY[{b}, {b}, NULL])"),
                format!("{a} {op} coalesce(c{right}, {b})"),
            ] {
                // An array of arrays is another thing.
                if condition.contains("ANY") && TYPES[right].0.ends_with("[]") {
                    continue;
                }
                let lines = column::<String>(
                    &mut client,
                    &format!("EXPLAIN SELECT FROM t WHERE {condition}"),
                );
                let line = lines
                    .iter()
                    .find(|line| line.contains("rows="))
                    .expect("a plan has rows");
                shares.insert(
                    line.split("rows=")
                        .nth(1)
                        .and_then(|rest| rest.split(' ').next())
                        .map(str::to_owned),
                );
                plans += 1;
            }
            let join = format!("SELECT FROM t AS x JOIN t AS y ON x.c{left} {op} y.c{right}");
            column::<String>(&mut client, &format!("EXPLAIN {join}"));
        }
    }
    assert_eq!(value::<i32>(&mut client, "SELECT pg_backend_pid()"), pid);
    println!("{plans} plans, rows {shares:?}");
    assert!(
        plans > 3_000 && shares.len() > 3,
        "the estimators were not asked: {plans} plans, rows {shares:?}"
    );
}

#[test]
fn estimators_of_odd_operators_are_harmless() {
    let mut client = server().database("odd_operators");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT i AS a, bloom_from_array(ARRAY[i], 10, 0.1) AS f FROM generate_series(1, 300) AS i; ANALYZE t;
         CREATE FUNCTION odd(int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
         CREATE FUNCTION odd(bloom) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
         CREATE OPERATOR @@@ (FUNCTION = odd, RIGHTARG = int, RESTRICT = bloom_contains_selectivity);
         CREATE OPERATOR @@@ (FUNCTION = odd, RIGHTARG = bloom, RESTRICT = counting_bloom_contained_selectivity)",
    );
    for condition in [
        "@@@ 1",
        "@@@ a",
        "@@@ f",
        "@@@ bloom_empty()",
        "@@@ NULL::bloom",
    ] {
        column::<String>(&mut client, &format!("EXPLAIN SELECT FROM t WHERE {condition}"));
    }
    // A domain over the type is one; a type of the same name elsewhere is not.
    run(
        &mut client,
        "CREATE DOMAIN filter AS bloom; CREATE SCHEMA other; CREATE DOMAIN other.bloom AS bigint;
         CREATE FUNCTION odd(other.bloom, int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
         CREATE OPERATOR @@@ (FUNCTION = odd, LEFTARG = other.bloom, RIGHTARG = int, RESTRICT = bloom_contains_selectivity)",
    );
    let literal: String =
        value(&mut client, "SELECT bloom_agg(i)::text FROM generate_series(1, 150) AS i");
    let known =
        plan(&mut client, "COSTS ON", &format!("SELECT FROM t WHERE '{literal}'::filter @> a"));
    assert!(known.contains("rows=14") || known.contains("rows=15"), "{known}");
    let other = plan(&mut client, "COSTS ON", "SELECT FROM t WHERE 1::bigint::other.bloom @@@ a");
    assert!(other.contains("rows=30 "), "{other}");
}

#[test]
fn damaged_filters_are_no_error_of_the_planner() {
    let mut client = server().database("damaged_statistics");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 1000) AS i; ANALYZE t;
         CREATE FUNCTION raw_bloom(bytea) RETURNS bloom LANGUAGE internal IMMUTABLE STRICT AS 'byteasend';
         CREATE FUNCTION raw_counting(bytea) RETURNS counting_bloom LANGUAGE internal IMMUTABLE STRICT AS 'byteasend'",
    );
    let mut random = Random(5);
    for (function, make) in [
        ("raw_bloom", "bloom_agg(i, 500, 0.1, 'classic')::bytea"),
        ("raw_bloom", "bloom_agg(i, 5000)::bytea"),
        ("raw_counting", "counting_bloom_agg(i, 500)::bytea"),
    ] {
        let good: Vec<u8> =
            value(&mut client, &format!("SELECT {make} FROM generate_series(1, 500) AS i"));
        for round in 0..100 {
            let mut bytes = good.clone();
            match round {
                // The header, mostly.
                0..90 => (0..1 + random.below(3))
                    .for_each(|_| bytes[random.below(48)] = random.bits() as u8),
                90 => bytes.clear(),
                _ => bytes.truncate(random.below(good.len())),
            }
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let filter = format!("{function}('\\x{hex}'::bytea)");
            for condition in [format!("{filter} @> a"), format!("a <@ {filter}")] {
                column::<String>(
                    &mut client,
                    &format!("EXPLAIN (SUMMARY ON) SELECT FROM t WHERE {condition}"),
                );
            }
        }
    }
}

/// A type whose hash counts how often it is called.
const COUNTED: &str = "
    CREATE TYPE counted;
    CREATE FUNCTION counted_in(cstring) RETURNS counted LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
    CREATE FUNCTION counted_out(counted) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
    CREATE TYPE counted (INPUT = counted_in, OUTPUT = counted_out, LIKE = int4);
    CREATE FUNCTION counted_eq(counted, counted) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
    CREATE FUNCTION counted_lt(counted, counted) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
    CREATE FUNCTION counted_cmp(counted, counted) RETURNS integer LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
    CREATE FUNCTION counted_hash(counted) RETURNS integer LANGUAGE internal IMMUTABLE STRICT AS 'hashint4';
    CREATE OPERATOR = (FUNCTION = counted_eq, LEFTARG = counted, RIGHTARG = counted, HASHES);
    CREATE OPERATOR < (FUNCTION = counted_lt, LEFTARG = counted, RIGHTARG = counted);
    CREATE SEQUENCE probes;
    CREATE FUNCTION counted_hash_extended(counted, bigint) RETURNS bigint LANGUAGE plpgsql AS
        'BEGIN RETURN nextval(''probes'') * 0 + $1::text::bigint; END';
    CREATE OPERATOR CLASS counted_ops DEFAULT FOR TYPE counted USING hash AS OPERATOR 1 =,
        FUNCTION 1 counted_hash(counted), FUNCTION 2 counted_hash_extended(counted, bigint);
    CREATE OPERATOR CLASS counted_ops DEFAULT FOR TYPE counted USING btree AS OPERATOR 1 <, OPERATOR 3 =,
        FUNCTION 1 counted_cmp(counted, counted);";

#[test]
fn the_work_for_a_filter_in_a_plan_is_bounded() {
    let mut client = server().database("bounded");
    run(&mut client, COUNTED);
    // Ten thousand common values, and as many bounds of a histogram.
    run(
        &mut client,
        "SET default_statistics_target = 10000;
         CREATE TABLE t AS SELECT (i % 40000 / CASE WHEN i % 40000 < 20000 THEN 2 ELSE 1 END)::text::counted AS c
         FROM generate_series(1, 100000) AS i;
         ANALYZE t;
         CREATE TABLE filters AS SELECT ARRAY(SELECT bloom_from_array(ARRAY[i]::text[]::counted[], 10, 0.1)
             FROM generate_series(1, 2000) AS i) AS a",
    );
    let statistics =
        "SELECT array_length(most_common_vals::text::text[], 1) + array_length(histogram_bounds::text::text[], 1)
        FROM pg_stats WHERE tablename = 't'";
    assert_eq!(value::<i32>(&mut client, statistics), 20_001);
    let mut probes = |filters: usize| -> i64 {
        let array: String =
            value(&mut client, &format!("SELECT quote_literal(a[1:{filters}]::text) FROM filters"));
        let before: i64 = value(&mut client, "SELECT last_value FROM probes");
        let expected = plan(
            &mut client,
            "COSTS ON",
            &format!("SELECT FROM t WHERE c <@ ANY ({array}::bloom[])"),
        );
        assert!(expected.contains("Seq Scan"), "{expected}");
        value::<i64>(&mut client, "SELECT last_value FROM probes") - before
    };
    let (one, ten, many) = (probes(1), probes(10), probes(2000));
    println!("{one}, {ten}, {many} probes");
    assert!((500..=3_200).contains(&one), "{one} probes for one filter");
    assert!(ten <= 10 * one, "{ten} probes for ten filters, {one} for one");
    assert!(many <= 2_000 * one, "{many} probes for 2,000 filters, {one} for one");
    // Another planning asks as much.
    assert_eq!(probes(1), one);
}

/// Costs of a plan's first line: `cost=0.00..12.50`.
fn total_cost(client: &mut Client, sql: &str) -> f64 {
    let plan = plan(client, "COSTS ON", sql);
    let cost = plan
        .split("..")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .and_then(|cost| cost.parse().ok());
    cost.unwrap_or_else(|| panic!("no cost in {plan}"))
}

/// A table of 20,000 filters of 12 kB each, all of the same bytes except for an element.
const STORED: &str = "
    CREATE TABLE stored (id int, seen bloom);
    INSERT INTO stored SELECT i, f || -i FROM generate_series(1, 20000) AS i,
        (SELECT bloom_agg(-j, 9600) AS f FROM generate_series(30000, 39000) AS j) AS s;
    ANALYZE stored;";

#[test]
fn probes_of_stored_filters_cost_what_toast_costs() {
    let mut client = server().database("costs");
    run(&mut client, STORED);
    let bytes: i64 = value(
        &mut client,
        "SELECT avg(octet_length(seen::bytea))::bigint FROM stored WHERE id < 10",
    );
    assert!((11_000..13_000).contains(&bytes), "{bytes}");
    let all = total_cost(&mut client, "SELECT id FROM stored");
    let toast: i64 = value(
        &mut client,
        "SELECT pg_relation_size(reltoastrelid) / 8192 FROM pg_class WHERE relname = 'stored'",
    );
    let probe = |client: &mut Client, condition: &str| {
        total_cost(client, &format!("SELECT id FROM stored WHERE {condition}"))
    };
    run(&mut client, "SET max_parallel_workers_per_gather = 0");
    let filter: String = value(
        &mut client,
        "SELECT quote_literal(bloom_from_array(ARRAY[1], 10)::text) || '::bloom'",
    );
    for condition in [
        "seen @> 5",
        "5 <@ seen",
        "bloom_contains(seen, id)",
        "bloom_contains_any(seen, ARRAY[1, 2])",
        "bloom_fpr(seen) > 0.5",
    ] {
        let cost = probe(&mut client, condition) - all;
        assert!(cost > toast as f64, "{condition}: {cost} for {toast} pages");
    }
    for condition in [
        format!("{filter} @> id"),
        format!("id <@ {filter}"),
        format!("bloom_contains({filter}, id)"),
    ] {
        let cost = probe(&mut client, &condition) - all;
        assert!(cost < 1_000.0, "{condition}: {cost}");
    }
    // Filters that are in line cost nothing to fetch.
    run(
        &mut client,
        "CREATE TABLE small AS SELECT id, bloom_from_array(ARRAY[id]) AS seen FROM stored; ANALYZE small",
    );
    let cost = total_cost(&mut client, "SELECT id FROM small WHERE seen @> 5");
    assert!(cost < 1_000.0, "{cost}");
    // Large filters are asked by slices: a probe costs the same for any size.
    run(
        &mut client,
        "CREATE TABLE large AS SELECT i AS id, bloom_agg(j, 100000 * i) AS f FROM generate_series(1, 2) AS i,
             generate_series(1, 60000) AS j GROUP BY i;
         ANALYZE large",
    );
    let large = total_cost(&mut client, "SELECT id FROM large WHERE f @> 5");
    let whole = total_cost(&mut client, "SELECT id FROM large WHERE bloom_fpr(f) > 0.5");
    assert!(large < 25.0 && whole > 50.0, "{large} and {whole}");
}

#[test]
fn stored_filters_are_asked_in_parallel() {
    let mut client = server().database("workers");
    run(&mut client, STORED);
    let ask = "SELECT id FROM stored WHERE seen @> -12345";
    let changed = "SELECT count(*) FROM pg_settings
                   WHERE setting <> boot_val
                       AND (name LIKE '%cost' OR name LIKE 'min_parallel%' OR name = 'max_parallel_workers_per_gather')";
    assert_eq!(value::<i64>(&mut client, changed), 0, "settings that costs depend on");
    // PostgreSQL counts a table's own pages to decide how many workers may share it, and not those
    // of its TOAST table. This one is too small by default, whatever a probe costs, and says itself
    // how many it is worth.
    let own_pages = "SELECT pg_relation_size('stored') < pg_size_bytes(current_setting('min_parallel_table_scan_size'))";
    assert!(value::<bool>(&mut client, own_pages));
    let single = plan(&mut client, "COSTS OFF", ask);
    assert!(!single.contains("Gather"), "{single}");
    let cost = total_cost(&mut client, ask);
    run(&mut client, "ALTER TABLE stored SET (parallel_workers = 2)");
    let shared = plan(&mut client, "COSTS OFF", ask);
    let less = total_cost(&mut client, ask);
    assert!(less < 0.7 * cost, "{less} and {cost}");
    assert!(shared.contains("Workers Planned: 2"), "{shared}");
    let answer = column::<i32>(&mut client, ask);
    run(&mut client, "SET max_parallel_workers_per_gather = 0");
    let (mut alone, mut together) = (column::<i32>(&mut client, ask), answer);
    alone.sort_unstable();
    together.sort_unstable();
    assert!(alone.contains(&12_345) && alone == together);
    refused(&mut client, "42804", "SELECT id FROM stored WHERE seen @> 'x'");
    assert_eq!(rows(&mut client, "SELECT FROM stored WHERE id = 7 AND seen @> -7").len(), 1);
}
