//! Counting filters in a server: sets that shrink against a plain multiset, and damaged values that
//! do no harm.

use crate::common::damage::{damage, hex};
use crate::common::{Random, column, run, sqlstate, value};
use crate::server;
use postgres::Client;
use std::collections::BTreeMap;

/// Errors that functions may give for a filter that was accepted.
const REFUSALS: [&str; 3] = ["22023", "42804", "54000"];

/// A multiset and the filter of it in a table, both changed in the same way.
struct Shrinking<'a> {
    client: &'a mut Client,
    /// How often each element was added and not yet removed.
    left: BTreeMap<i32, usize>,
    /// The SQL expression of element i.
    element: &'static str,
    /// How often the filter of what is left was one that is dense.
    dense: usize,
}

impl Shrinking<'_> {
    fn update(&mut self, change: &str) {
        run(self.client, &format!("UPDATE shrinking SET f = {change}"));
    }

    fn step(&mut self, random: &mut Random, adding: bool) {
        let i = random.below(80) as i32;
        let element = format!("(SELECT {} FROM (SELECT {i}) AS v (i))", self.element);
        let there = self.left.entry(i).or_default();
        if adding {
            *there += 1;
            self.update(&format!("f || {element}"));
        } else if *there > 0 {
            *there -= 1;
            self.update(&format!("counting_bloom_remove(f, {element})"));
        }
        self.left.retain(|_, copies| *copies > 0);
    }

    /// Asserts that everything that is left is found, and that the filter's bits are those of a
    /// build of it.
    fn check(&mut self) {
        let left: Vec<i32> = self.left.keys().copied().collect();
        let sql = format!(
            "SELECT count(*) FILTER (WHERE f @> x AND x <@ f), bool_and(counters_saturated = 0),
                    f::bloom | bloom_agg(x, 300) = f::bloom,
                    (bloom_info(f::bloom)).bits_set = (bloom_info(bloom_agg(x, 300))).bits_set,
                    (bloom_info(bloom_agg(x, 300))).representation = 'dense', f::bloom = bloom_agg(x, 300)
             FROM shrinking LEFT JOIN (SELECT {} AS x FROM unnest($1::integer[]) AS t (i)) AS elements ON true,
                 counting_bloom_info(f)
             GROUP BY f",
            self.element
        );
        let row = self
            .client
            .query_one(&sql, &[&left])
            .unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}"));
        assert_eq!(row.get::<_, i64>(0), left.len() as i64, "not all of {left:?} are found");
        assert!(row.get::<_, bool>(1), "a counter is saturated, which this test does not expect");
        assert!(
            row.get::<_, bool>(2) && (left.is_empty() || row.get::<_, bool>(3)),
            "other bits for {left:?}"
        );
        assert!(!row.get::<_, bool>(4) || row.get::<_, bool>(5), "another filter for {left:?}");
        self.dense += usize::from(row.get::<_, bool>(4));
    }
}

#[test]
fn a_table_of_a_shrinking_set_has_the_filter_of_what_is_left() {
    let mut client = server().database("shrinking");
    run(&mut client, "SET pg_bloom.overfill = error");
    let mut random = Random(5);
    for element in [
        "i",
        "'url é ' || i",
        "inet '10.0.0.0' + i",
        "ARRAY[i, NULL]",
    ] {
        run(&mut client, "DROP TABLE IF EXISTS shrinking");
        run(&mut client, "CREATE TABLE shrinking AS SELECT counting_bloom_empty(300) AS f");
        let mut set = Shrinking {
            client: &mut client,
            left: BTreeMap::new(),
            element,
            dense: 0,
        };
        for phase in [80, 20, 60, 5] {
            for _ in 0..200 {
                let adding = random.below(100) < phase;
                set.step(&mut random, adding);
            }
            set.check();
        }
        assert!(set.dense > 0, "{element}");
        for (i, copies) in std::mem::take(&mut set.left) {
            for _ in 0..copies {
                set.update(&format!(
                    "counting_bloom_remove(f, (SELECT {element} FROM (SELECT {i}) AS v (i)))"
                ));
            }
        }
        set.check();
        assert!(
            value::<bool>(&mut client, "SELECT f = counting_bloom_empty(300) FROM shrinking"),
            "{element}"
        );
    }
}

/// A large stored filter is probed by slices or remembered, and says the same as one that is passed
/// whole.
#[test]
fn slices_and_whole_values_say_the_same() {
    let mut client = server().database("slices");
    run(
        &mut client,
        "CREATE TABLE stored (id integer, f counting_bloom);
         INSERT INTO stored SELECT 1, counting_bloom_agg(i, 60000) FROM generate_series(1, 60000) AS i;
         INSERT INTO stored SELECT 2, counting_bloom_remove(f, 17) FROM stored;
         INSERT INTO stored SELECT 3, counting_bloom_agg(inet '10.0.0.0' + i, 60000) FROM generate_series(1, 60000) AS i",
    );
    let length: i32 = value(&mut client, "SELECT octet_length(f::bytea) FROM stored WHERE id = 1");
    assert!(length > 200_000);
    // Each query has a call site of its own, so it asks for slices first.
    for i in [1, 17, 18, 59_999, 60_001, 70_000] {
        let by_slices: Vec<bool> =
            column(&mut client, &format!("SELECT f @> {i} FROM stored WHERE id < 3 ORDER BY id"));
        // Adding a copy makes a value that is passed whole, and removing it again is the same
        // filter.
        let whole = format!(
            "SELECT counting_bloom_remove(f || {i}, {i}) @> {i} FROM stored WHERE id < 3 ORDER BY id"
        );
        assert_eq!(by_slices, column::<bool>(&mut client, &whole), "{i}");
        assert!(i > 60_000 || by_slices == [true, i != 17], "{i}");
    }
    let many =
        "SELECT count(*) FROM generate_series(1, 60000) AS i, stored WHERE id = 2 AND f @> i";
    assert_eq!(value::<i64>(&mut client, many), 59_999);
    let other = "SELECT count(*) FROM generate_series(1, 60000) AS i, stored WHERE id = 3 AND f @> inet '10.0.0.0' + i";
    assert_eq!(value::<i64>(&mut client, other), 60_000);
    assert_eq!(sqlstate(&mut client, "SELECT f @> 1 FROM stored WHERE id = 3"), "42804");
}

/// Values to be damaged: mostly counting filters, and some of the other type.
const SEEDS: &str = "
    SELECT f::bytea FROM (VALUES
        (counting_bloom_empty()), (counting_bloom_empty(10)), (counting_bloom_empty(100, 0.1)),
        (counting_bloom_empty(40, 0.1) || 1 || 2 || 2), (counting_bloom_empty(40) || 'a' || 'b'),
        (counting_bloom_empty(100, 0.2) || inet '::1' || inet '10.0.0.1'), (counting_bloom_empty(1, 0.5) || '{}'::jsonb),
        (counting_bloom_add_all(counting_bloom_empty(60), ARRAY(SELECT i % 9 FROM generate_series(1, 200) AS i))),
        (counting_bloom_add_all(counting_bloom_empty(9, 0.5), ARRAY(SELECT i::float8 FROM generate_series(1, 200) AS i)))
    ) AS seeds (f)
    UNION ALL
    SELECT f::bytea FROM (VALUES (bloom_empty()), (bloom_empty(100)), (bloom_from_array(ARRAY[1, 2, 3], 1000)),
        (bloom_from_array(ARRAY(SELECT generate_series(1, 60)), 60))) AS others (f)";

/// What is done with each filter f that was accepted, beside a filter g. Each must end, in a value
/// or a refusal.
const USES: [&str; 22] = [
    "counting_bloom_info(f)",
    "counting_bloom_cardinality(f)",
    "bloom_info(f::bloom)",
    "f::bloom | f::bloom",
    "f @> 1",
    "counting_bloom_count(f, 1)",
    "counting_bloom_count(f, 'a'::text)",
    "'x'::text <@ f",
    "inet '::1' <@ f",
    "f || 5",
    "f || 'x'::text",
    "counting_bloom_info(counting_bloom_remove(f || inet '10.0.0.1', inet '10.0.0.1'))",
    "counting_bloom_remove(f, 2)",
    "counting_bloom_remove(f, 'a'::text)",
    "counting_bloom_remove(f, NULL::integer)",
    "counting_bloom_add_all(f, ARRAY(SELECT generate_series(1, 50)))",
    "counting_bloom_remove_all(f, ARRAY(SELECT generate_series(1, 50)))",
    "counting_bloom_remove_all(f, ARRAY['a', NULL, 'b'])",
    "counting_bloom_info(f + g)",
    "(counting_bloom_hash(f), counting_bloom_hash_extended(f, 7), counting_bloom_cmp(f, g), f < g, f >= g)",
    "(SELECT counting_bloom_union_agg(h) FROM unnest(ARRAY[f, g, f, NULL]) AS h)",
    "(SELECT count(*) FROM (SELECT h FROM unnest(ARRAY[f, g, f]) AS h GROUP BY h) AS groups)",
];

/// Makes the function `try(given, g)` for a type of `given`. It returns what happened: first how
/// the value was received, then the errors and wrong answers of what was done with it.
fn make_try(client: &mut Client, argument: &str) {
    let uses: String = USES
        .iter()
        .map(|sql| {
            let shown = sql.replace('\'', "''");
            format!(
                "BEGIN ok := ({sql}) IS NULL;
                 EXCEPTION WHEN OTHERS THEN found := found || (SQLSTATE || ' for {shown}'); END;\n"
            )
        })
        .collect();
    run(
        client,
        &format!(
            "CREATE FUNCTION try(given {argument}, g counting_bloom) RETURNS text[] LANGUAGE plpgsql AS $body$
             DECLARE f counting_bloom; ok boolean; found text[] := ARRAY['accepted'];
             BEGIN
                 BEGIN f := given::counting_bloom;
                 EXCEPTION WHEN OTHERS THEN RETURN ARRAY['refused ' || SQLSTATE]; END;
                 IF f::text::counting_bloom <> f OR f::bytea::counting_bloom <> f OR counting_bloom_send(f) <> f::bytea
                     OR lower(given::text) <> f::text THEN
                     found := found || 'XX000 for a round trip'::text;
                 END IF;
                 IF f::bloom::text::bloom <> f::bloom OR (f + f)::bytea::counting_bloom <> f + f
                     OR (f + f)::bloom <> f::bloom OR f + counting_bloom_empty() <> f THEN
                     found := found || 'XX000 for a sum with itself or with nothing'::text;
                 END IF;
                 BEGIN
                     IF f + g <> g + f OR (f + g)::bloom <> f::bloom | g::bloom THEN
                         found := found || 'XX000 for a sum'::text;
                     END IF;
                 EXCEPTION WHEN OTHERS THEN found := found || (SQLSTATE || ' for a sum');
                 END;
                 {uses}
                 RETURN found;
             END $body$"
        ),
    );
}

/// A value to be tried.
fn hostile(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = random.pick(seeds).clone();
    (0..random.below(4)).for_each(|_| damage(random, &mut bytes, seeds));
    bytes
}

/// Tries values in batches: each is refused with `state` or has harmless uses, and neither is rare.
fn try_all(database: &str, argument: &str, state: &str, seed: u64) {
    let mut client = server().database(database);
    run(
        &mut client,
        "SET statement_timeout = '20min'; SET pg_bloom.max_filter_size = '1MB'; SET pg_bloom.overfill = ignore",
    );
    make_try(&mut client, argument);
    let pid: i32 = value(&mut client, "SELECT pg_backend_pid()");
    let seeds: Vec<Vec<u8>> = column(&mut client, SEEDS);
    let partners: Vec<Vec<u8>> = seeds.iter().filter(|seed| seed[3] == 2).cloned().collect();
    let mut random = Random(seed);
    let mut fates: BTreeMap<String, usize> = BTreeMap::new();
    let sql = format!(
        "SELECT try(v::{argument}, $2::bytea::counting_bloom) FROM unnest($1::text[]) WITH ORDINALITY AS t (v, n) ORDER BY n"
    );
    for _ in 0..40 {
        let values: Vec<String> = (0..250).map(|_| hex(&hostile(&mut random, &seeds))).collect();
        let partner: &Vec<u8> = random.pick(&partners);
        let answers = client.query(&sql, &[&values, partner]).expect("errors are caught");
        assert_eq!(answers.len(), values.len());
        for (answer, value) in answers.iter().zip(&values) {
            let report: Vec<String> = answer.get(0);
            let (fate, errors) = report.split_first().expect("something happened");
            assert!(
                *fate == format!("refused {state}") || fate == "accepted",
                "{value} was {fate}"
            );
            let wrong: Vec<_> = errors.iter().filter(|e| !REFUSALS.contains(&&e[..5])).collect();
            assert!(wrong.is_empty(), "{value} was accepted and gave {wrong:?}");
            *fates.entry(fate.clone()).or_default() += 1;
        }
    }
    assert_eq!(value::<i32>(&mut client, "SELECT pg_backend_pid()"), pid);
    assert!(fates.len() == 2 && fates.values().all(|&n| n > 1000), "{fates:?}");
}

#[test]
fn hostile_bytea_is_refused_or_harmless() {
    try_all("hostile_bytea", "bytea", "22P03", 1);
}

#[test]
fn hostile_text_is_refused_or_harmless() {
    try_all("hostile_text", "text", "22P02", 2);
}
