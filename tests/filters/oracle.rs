//! Filters against sets: whatever way a filter is built, it finds all of the set, and of the rest
//! no more than it says.

use crate::common::{LAYOUTS, Random, bound, column, plan, rows, run, value};
use crate::server;
use postgres::Client;
use std::collections::HashSet;
use std::io::{Read, Write};

fn database(name: &str) -> Client {
    let mut client = server().database(name);
    run(&mut client, "SET pg_bloom.overfill = ignore");
    client
}

/// A type of elements: its name, and how an element is written, given its number and a random
/// number that chooses between ways to write it. Elements with different numbers are different,
/// those with the same are equal.
type Kind = (&'static str, fn(u64, u64) -> String);

fn zeros(n: u64) -> String {
    "0".repeat(n as usize % 4)
}

const KINDS: [Kind; 13] = [
    ("text", |n, _| {
        if n == 0 {
            String::new()
        } else {
            format!("é{n} ß{}", "x".repeat(n as usize % 300))
        }
    }),
    ("char(30)", |n, r| format!("{n}{}", " ".repeat(r as usize % 9))),
    ("bigint", |n, _| format!("{}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64)),
    ("integer", |n, _| format!("{}", i64::from(n as u32) - 700)),
    ("numeric", |n, r| match (n, r % 3) {
        (0, _) => "NaN".into(),
        (_, 0) => format!("{n}e-2"),
        (_, 1) => format!("000{}.{:02}", n / 100, n % 100),
        _ => format!("{}.{:02}{}", n / 100, n % 100, zeros(r / 3)),
    }),
    ("uuid", |n, r| {
        let text = format!(
            "{:032x}",
            u128::from(n).wrapping_mul(0x1234_5678_9ABC_DEF0_1357_9BDF_0246_8ACF)
        );
        if r.is_multiple_of(2) { text } else { text.to_uppercase() }
    }),
    ("bytea", |n, _| {
        if n == 0 {
            "\\x".into()
        } else {
            format!("\\x{n:08x}{}", "00ff".repeat(n as usize % 50))
        }
    }),
    ("double precision", |n, r| match (n, r % 2) {
        (0, 0) => "-0".into(),
        (1, _) => "NaN".into(),
        (_, 0) => format!("{}e-3", n * 1000),
        _ => format!("{n}"),
    }),
    ("timestamptz", |n, r| {
        let zone = r % 12;
        format!(
            "2020-01-{:02} {:02}:{:02}:00+{zone:02}",
            1 + (n / 60 + zone) / 24,
            (n / 60 + zone) % 24,
            n % 60
        )
    }),
    ("date", |n, _| format!("J{}", 2_450_000 + n)),
    ("inet", |n, r| {
        format!("10.1.{}.{}{}", n / 256, n % 256, if r.is_multiple_of(2) { "" } else { "/32" })
    }),
    ("jsonb", |n, r| match r % 2 {
        0 => format!(r#"{{"a": {n}, "b": "é"}}"#),
        _ => format!(r#"{{"b":"é","a":{n}.{}0}}"#, zeros(r / 2)),
    }),
    ("interval", |n, r| {
        if r.is_multiple_of(2) {
            format!("{n} days")
        } else {
            format!("{} hours", n * 24)
        }
    }),
];

/// Functions for the ways of [`WAYS`], and tables for elements of a type.
fn prepare(client: &mut Client, kind: &str) {
    run(
        client,
        &format!(
            "CREATE OR REPLACE FUNCTION add_each(filter bloom, elements anyarray) RETURNS bloom LANGUAGE plpgsql AS $$
             BEGIN
                 FOR i IN 1 .. cardinality(elements) LOOP
                     IF i % 2 = 0 THEN filter := bloom_add(filter, elements[i]);
                     ELSE filter := filter || elements[i];
                     END IF;
                 END LOOP;
                 RETURN filter;
             END $$;
             DROP TABLE IF EXISTS present, asked, built;
             CREATE TABLE present (piece integer, x {kind});
             CREATE TABLE asked (n integer, x {kind});
             CREATE TABLE built (way integer, f bloom);"
        ),
    );
}

/// Ways to build the filter of the table `present`; $ stands for capacity, rate and layout.
const WAYS: [&str; 8] = [
    "SELECT bloom_agg(x, $) FROM present",
    "SELECT bloom_agg(DISTINCT x, $) FROM present",
    "SELECT bloom_agg(x, $ ORDER BY piece, x DESC) FROM present",
    "SELECT bloom_from_array(array_agg(x), $) FROM present",
    "SELECT bloom_add_all(bloom_empty($), array_agg(x)) FROM present",
    "SELECT add_each(bloom_empty($), array_agg(x)) FROM present",
    "SELECT bloom_union_agg(f) FROM (SELECT bloom_agg(x, $) AS f FROM present GROUP BY piece) AS pieces",
    "SELECT a | b FROM (SELECT bloom_agg(x, $) FILTER (WHERE piece < 5) AS a, bloom_agg(x, $) AS b FROM present) AS f",
];

/// Those of [`WAYS`] that give the same filter without a capacity too.
const WAYS_WITHOUT_CAPACITY: [usize; 5] = [0, 1, 2, 3, 4];

struct Case {
    /// Numbers of the elements that are added.
    present: HashSet<i32>,
    /// Numbers of all elements that are asked for.
    numbers: usize,
    arguments: String,
    capacity: Option<usize>,
}

/// Fills the tables: `count` elements, and as many others to probe for.
fn fill(client: &mut Client, random: &mut Random, kind: &Kind, count: usize) -> Case {
    let numbers = 2 * count + 10;
    let mut present = HashSet::new();
    let (mut texts, mut pieces) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let n = random.below(numbers);
        present.insert(n as i32);
        texts.push(Some(kind.1(n as u64, random.bits() >> 8)));
    }
    texts.extend([None, None]);
    texts.iter().for_each(|_| pieces.push(random.below(10) as i32));
    let sql = format!(
        "INSERT INTO present SELECT p, x::{} FROM unnest($1::integer[], $2::text[]) AS t (p, x)",
        kind.0
    );
    client.execute(&sql, &[&pieces, &texts]).expect("elements are loaded");
    let asked: Vec<String> = (0..numbers).map(|n| kind.1(n as u64, random.bits() >> 8)).collect();
    let sql = format!(
        "INSERT INTO asked SELECT n - 1, x::{} FROM unnest($1::text[]) WITH ORDINALITY AS t (x, n)",
        kind.0
    );
    client.execute(&sql, &[&asked]).expect("elements are loaded");
    let distinct: i64 = value(client, "SELECT count(DISTINCT x) FROM present");
    assert_eq!(
        distinct,
        present.len() as i64,
        "{}: the oracle and PostgreSQL count differently",
        kind.0
    );
    let capacity = Some(*random.pick(&[count / 3 + 1, count + 1, 2 * count + 1, 100_000]))
        .filter(|_| random.below(4) > 0);
    let arguments = format!(
        "{}, {}, '{}'",
        capacity.map_or("NULL".into(), |n| n.to_string()),
        random.pick(&["0.2", "0.03", "0.001"]),
        random.pick(&LAYOUTS)
    );
    Case { present, numbers, arguments, capacity }
}

/// Builds the filter in every way. Returns the number of ways.
fn build(client: &mut Client, case: &Case) -> usize {
    let ways: Vec<usize> = if case.capacity.is_some() {
        (0..WAYS.len()).collect()
    } else {
        WAYS_WITHOUT_CAPACITY.into()
    };
    for way in &ways {
        let sql = WAYS[*way].replace('$', &case.arguments);
        run(client, &format!("INSERT INTO built SELECT {way}, ({sql})"));
    }
    ways.len()
}

fn check(client: &mut Client, kind: &str, case: &Case) {
    let ways = build(client, case);
    let what =
        format!("{kind}, {} distinct elements, arguments {}", case.present.len(), case.arguments);
    let different: Vec<i32> = column(
        client,
        "SELECT way FROM built WHERE f <> (SELECT f FROM built WHERE way = 0) OR f IS NULL ORDER BY way",
    );
    assert!(
        different.is_empty(),
        "{what}: the ways {different:?} give another filter than bloom_agg"
    );
    copy_there_and_back(client);
    let (copies, same): (i64, bool) = {
        let row = &rows(
            client,
            "SELECT count(*), bool_and(f = (SELECT f FROM built WHERE way = 0)) FROM copied",
        )[0];
        (row.get(0), row.get(1))
    };
    assert!(same && copies == 2 * ways as i64, "{what}: COPY changed a filter");
    let found: Vec<i32> = column(client, "SELECT n FROM asked, built WHERE way = 0 AND f @> x");
    let found: HashSet<i32> = found.into_iter().collect();
    let missed: Vec<_> = case.present.difference(&found).collect();
    assert!(missed.is_empty(), "{what}: did not find {missed:?}");
    check_counts(client, &what, case, found.len() - case.present.len());
}

/// Compares false positives and the estimate of the number of elements with the truth.
fn check_counts(client: &mut Client, what: &str, case: &Case, false_positives: usize) {
    let row = rows(
        client,
        "SELECT current_fpr, cardinality, representation FROM built, bloom_info(f) WHERE way = 0",
    );
    let (fpr, cardinality, representation): (f64, f64, &str) =
        (row[0].get(0), row[0].get(1), row[0].get(2));
    let distinct = case.present.len() as f64;
    let absent = case.numbers as f64 - distinct;
    let distance = (false_positives as f64 - absent * fpr).abs();
    // Counts of less than one are no normal distribution: they may be 4.5 off.
    assert!(
        distance <= bound(absent, fpr).max(4.5),
        "{what}: {false_positives} false positives of {absent} at {fpr}"
    );
    if representation == "sparse" {
        assert_eq!(cardinality, distinct, "{what}");
    } else if case.capacity.is_none_or(|capacity| capacity >= case.present.len()) {
        assert!(
            (cardinality - distinct).abs() <= cardinality_bound(distinct),
            "{what}: estimated {cardinality}"
        );
    }
}

/// Up to capacity and a rate of 0.2 the estimate's standard error is less than half the root of the
/// number, in every layout: by linear counting it is sqrt(m (exp(kn/m) - 1 - kn/m)) / k.
fn cardinality_bound(elements: f64) -> f64 {
    4.5 * 0.5 * elements.sqrt()
}

/// Copies the filters to another table, twice: as text and in binary form.
fn copy_there_and_back(client: &mut Client) {
    run(client, "DROP TABLE IF EXISTS copied; CREATE TABLE copied (way integer, f bloom)");
    for format in ["text", "binary"] {
        let mut bytes = Vec::new();
        let mut reader = client
            .copy_out(&format!("COPY built TO STDOUT (FORMAT {format})"))
            .expect("COPY starts");
        reader.read_to_end(&mut bytes).expect("COPY can be read");
        drop(reader);
        let mut writer = client
            .copy_in(&format!("COPY copied FROM STDIN (FORMAT {format})"))
            .expect("COPY starts");
        writer.write_all(&bytes).expect("COPY can be written");
        writer.finish().expect("COPY takes what COPY gave");
    }
}

#[test]
fn every_way_of_building_gives_the_filter_of_the_set() {
    let mut client = database("ways");
    let mut random = Random(1);
    for kind in &KINDS {
        for count in [0, 1, 40, 400, 3000] {
            prepare(&mut client, kind.0);
            let case = fill(&mut client, &mut random, kind, count);
            check(&mut client, kind.0, &case);
        }
    }
}

#[test]
fn the_switch_from_sparse_to_dense_depends_on_the_set_alone() {
    let mut client = database("switch");
    run(&mut client, "CREATE TABLE t (n integer, x text)");
    for (round, arguments) in LAYOUTS
        .iter()
        .flat_map(|l| ["20, 0.05", "90, 0.01", "700, 0.2"].map(|a| (l, a)))
        .enumerate()
    {
        let arguments = format!("{}, '{}'", arguments.1, arguments.0);
        // A sparse filter takes eight bytes per element, after a header of 44 bytes.
        let most: i64 = value(
            &mut client,
            &format!("SELECT (bytes - 44) / 8 FROM bloom_parameters({arguments})"),
        );
        for elements in [most / 2, most - 1, most, most + 1, most + 2]
            .into_iter()
            .filter(|&n| n > 0)
        {
            run(&mut client, "TRUNCATE t");
            // Each element up to five times, in an order of its own.
            let repeated = format!(
                "generate_series(1, {elements}) AS i, generate_series(0, (i * 7 + {round}) % 5) AS j"
            );
            run(
                &mut client,
                &format!(
                    "INSERT INTO t SELECT i * 31 % 97 + j * 41 % 89, 'x' || i FROM {repeated}"
                ),
            );
            let built = format!(
                "SELECT (bloom_info(f)).representation FROM (
                     SELECT bloom_agg(x, {arguments}) AS f FROM t UNION
                     SELECT bloom_agg(x, {arguments} ORDER BY n, x) FROM t UNION
                     SELECT bloom_agg(x, {arguments} ORDER BY x) FROM t UNION
                     SELECT bloom_agg(DISTINCT x, {arguments}) FROM t UNION
                     SELECT bloom_from_array(array_agg(x), {arguments}) FROM t UNION
                     SELECT bloom_union_agg(g) FROM (SELECT bloom_agg(x, {arguments}) AS g FROM t GROUP BY n % 7) AS pieces UNION
                     SELECT bloom_union_agg(bloom_empty({arguments}) || x) FROM t
                 ) AS builds"
            );
            let expected = if elements <= most { "sparse" } else { "dense" };
            assert_eq!(
                column::<String>(&mut client, &built),
                [expected],
                "{elements} elements, arguments {arguments}"
            );
        }
    }
}

#[test]
fn at_capacity_the_rate_is_the_promised_one() {
    const ELEMENTS: i64 = 100_000;
    const ABSENT: i64 = 400_000;
    let mut client = database("promise");
    for layout in LAYOUTS {
        for rate in [0.1, 0.01, 0.001] {
            let row = &rows(
                &mut client,
                &format!(
                    "WITH built AS MATERIALIZED (
                         SELECT bloom_agg(i, {ELEMENTS}, {rate}, '{layout}') AS f FROM generate_series(1, {ELEMENTS}) AS i
                     )
                     SELECT count(*) FILTER (WHERE i > 0 AND f @> i), count(*) FILTER (WHERE i <= 0 AND f @> i),
                            (SELECT bloom_fpr(f) FROM built), (SELECT bloom_cardinality(f) FROM built)
                     FROM built, generate_series({}, {ELEMENTS}) AS i",
                    1 - ABSENT
                ),
            )[0];
            let (found, false_positives): (i64, i64) = (row.get(0), row.get(1));
            let (fpr, cardinality): (f64, f64) = (row.get(2), row.get(3));
            assert_eq!(found, ELEMENTS, "{layout} {rate}");
            let (trials, wrong) = (ABSENT as f64, false_positives as f64);
            assert!(
                (wrong - trials * fpr).abs() <= bound(trials, fpr),
                "{layout} {rate}: {wrong} at bloom_fpr {fpr}"
            );
            assert!(
                wrong <= trials * rate + bound(trials, rate),
                "{layout}: {wrong} where {rate} was promised"
            );
            let (elements, allowed) = (ELEMENTS as f64, cardinality_bound(ELEMENTS as f64));
            assert!(
                (cardinality - elements).abs() <= allowed,
                "{layout} {rate}: estimated {cardinality}"
            );
        }
    }
}

#[test]
fn hashed_groups_that_spill_are_the_same_as_sorted_ones() {
    let mut client = database("spill");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT i * 7919 % 20000 AS g, nullif(i % 1000, 3) AS x, 'text ' || i % 31 AS y
         FROM generate_series(1, 100000) AS i;
         ANALYZE t;
         SET max_parallel_workers_per_gather = 0;
         SET work_mem = '64kB';",
    );
    let filters = "SELECT g, bloom_agg(x) AS a, bloom_agg(x, 100) AS b, bloom_agg(y, 1, 0.1) AS c,
                          bloom_union_agg(CASE WHEN x < 500 THEN bloom_empty(64) || x END) AS d
                   FROM t GROUP BY g";
    for (table, on, off, shown) in [
        ("hashed", "hashagg", "sort", "Disk Usage"),
        ("sorted", "sort", "hashagg", "GroupAggregate"),
    ] {
        run(&mut client, &format!("SET enable_{on} = on; SET enable_{off} = off"));
        let plan = plan(&mut client, "ANALYZE", filters);
        assert!(plan.contains(shown), "{plan}");
        run(&mut client, &format!("CREATE TABLE {table} AS {filters}"));
    }
    run(&mut client, "RESET enable_sort; RESET enable_hashagg; RESET work_mem");
    let differing: i64 = value(
        &mut client,
        "SELECT count(*) FROM hashed AS h FULL JOIN sorted AS s USING (g)
         WHERE (h.a, h.b, h.c, h.d) IS DISTINCT FROM (s.a, s.b, s.c, s.d)",
    );
    let groups: i64 =
        value(&mut client, "SELECT count(*) FROM sorted WHERE a IS NOT NULL AND d IS NOT NULL");
    assert_eq!((differing, groups), (0, 20000));
}

#[test]
fn moving_windows_give_the_filter_of_each_frame() {
    let mut client = database("windows");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT i, nullif(i * i % 400, 1) AS x, i % 3 AS p FROM generate_series(1, 500) AS i",
    );
    for arguments in ["x", "x, 100", "x, 1000", "x, 100, 0.1, 'classic'"] {
        for (frame, rows) in [
            ("ORDER BY i", "o.i <= t.i"),
            ("PARTITION BY p ORDER BY i", "o.i <= t.i AND o.p = t.p"),
            (
                "ORDER BY i ROWS BETWEEN 250 PRECEDING AND 1 FOLLOWING",
                "o.i BETWEEN t.i - 250 AND t.i + 1",
            ),
        ] {
            let differing: i64 = value(
                &mut client,
                &format!(
                    "SELECT count(*) FROM (SELECT *, bloom_agg({arguments}) OVER ({frame}) AS f FROM t) AS t
                     WHERE f <> (SELECT bloom_agg({}) FROM t AS o WHERE {rows})",
                    arguments.replacen('x', "o.x", 1)
                ),
            );
            assert_eq!(differing, 0, "bloom_agg({arguments}) OVER ({frame})");
        }
    }
}

/// Some CPUs hash eight short texts of a dense state at once: those that still wait belong to the
/// filter as well.
#[test]
fn short_texts_that_wait_for_others_are_in_the_filter() {
    let mut client = database("short_texts");
    run(
        &mut client,
        "CREATE TABLE words AS SELECT i, left(md5(i::text) || md5((-i)::text) || 'éü' || md5(''), i * 7 % 77) || (i % 40) AS x
         FROM generate_series(1, 700) AS i;
         INSERT INTO words SELECT i, NULL FROM generate_series(1, 700, 13) AS i",
    );
    for (capacity, layout) in [1, 20, 500]
        .into_iter()
        .flat_map(|n| LAYOUTS.map(|layout| (n, layout)))
    {
        let built = format!("{capacity}, 0.01, '{layout}'");
        let wrong = format!(
            "SELECT count(*) FROM (
                 SELECT bloom_agg(x, {built}) OVER w AS filter, array_agg(x) OVER w AS elements
                 FROM words WINDOW w AS (ORDER BY i, x)
             ) AS prefixes WHERE filter::bytea <> bloom_from_array(elements, {built})::bytea"
        );
        assert_eq!(value::<i64>(&mut client, &wrong), 0, "{built}");
        let all: bool = value(
            &mut client,
            &format!(
                "SELECT bloom_agg(x, {built})::bytea = bloom_from_array(array_agg(x), {built})::bytea FROM words"
            ),
        );
        assert!(all, "{built}");
    }
}

#[test]
fn grouping_sets_give_the_filter_of_each_group() {
    let mut client = database("sets");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT i % 7 AS a, i % 5 AS b, i * i % 900 AS x FROM generate_series(1, 4000) AS i",
    );
    for (arguments, hashed) in [
        ("x", "on"),
        ("x", "off"),
        ("x, 900", "on"),
        ("x, 900", "off"),
        ("x, 9", "off"),
    ] {
        run(&mut client, &format!("SET enable_hashagg = {hashed}"));
        let (groups, differing) = {
            let row = &rows(
                &mut client,
                &format!(
                    "SELECT count(*), count(*) FILTER (WHERE f <> (
                         SELECT bloom_agg({arguments}) FROM t WHERE a = coalesce(g.a, a) AND b = coalesce(g.b, b)))
                     FROM (SELECT a, b, bloom_agg({arguments}) AS f FROM t GROUP BY CUBE (a, b)) AS g"
                ),
            )[0];
            (row.get::<_, i64>(0), row.get::<_, i64>(1))
        };
        assert_eq!(
            (groups, differing),
            (1 + 7 + 5 + 35, 0),
            "bloom_agg({arguments}), enable_hashagg {hashed}"
        );
    }
}
