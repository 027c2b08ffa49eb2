//! Aggregates above joins. From PostgreSQL 19 on the planner may aggregate below a join, with a state
//! for each key of the join, and merge these states above it.

use crate::common::{Random, major_version, plan, random, rows, run, times, value};
use crate::server;
use postgres::Client;
use std::path::Path;

/// Whether the planner may aggregate below joins. If not, that is printed.
fn aggregates_below_joins(client: &mut Client) -> bool {
    let version = major_version(client);
    if version < 19 {
        println!("skipped: PostgreSQL {version} never aggregates below joins");
    }
    version >= 19
}

/// Makes `fact` with 200,000 rows of 5,000 keys, and of 20, `filters` with ten filters of each of
/// 2,000 keys, and tables to join them with: in `dim` a key has one row, in `links` none to three.
/// `None` before PostgreSQL 19.
fn filled(name: &str) -> Option<Client> {
    let mut client = server().database(name);
    if !aggregates_below_joins(&mut client) {
        return None;
    }
    run(
        &mut client,
        "CREATE TABLE dim (id integer PRIMARY KEY, name text);
         CREATE TABLE hidden (id integer);
         CREATE TABLE links (id integer, name text);
         CREATE TABLE fact (key integer, few integer, url text);
         CREATE TABLE filters (key integer, few integer, filter bloom, counted counting_bloom);
         INSERT INTO dim SELECT i, 'name ' || i % 7 FROM generate_series(1, 5000) AS i;
         INSERT INTO hidden SELECT i FROM generate_series(1, 5000, 9) AS i;
         INSERT INTO links SELECT i, 'link ' || (i + n) % 5 FROM generate_series(1, 6000) AS i, generate_series(1, i % 4) AS n;
         INSERT INTO fact SELECT 1 + i % 5000, 1 + i % 20, 'https://example.com/' || i FROM generate_series(1, 200000) AS i;
         INSERT INTO filters SELECT 1 + i % 2000, 1 + i % 20, bloom_agg(i, 100), counting_bloom_agg(i, 100)
             FROM generate_series(1, 20000) AS i GROUP BY i;
         SET max_parallel_workers_per_gather = 0; SET pg_bloom.overfill = ignore",
    );
    run(&mut client, "VACUUM ANALYZE");
    Some(client)
}

/// Makes states look small to the planner, as those of a database that was upgraded from 18 do, and
/// aggregates below a join whenever it can.
const BELOW: &str = "SET min_eager_agg_group_size = 0;
    UPDATE pg_aggregate SET aggtransspace = 128 WHERE aggtransspace < 0 AND aggfnoid::text ~ 'bloom'";

/// The aggregates, with their table.
const AGGREGATES: [(&str, &str); 7] = [
    ("bloom_agg(f.url)", "fact"),
    ("bloom_agg(f.url, 100000)", "fact"),
    ("bloom_agg(f.few, 1000, 0.001, 'classic')", "fact"),
    ("counting_bloom_agg(f.url, 1000)", "fact"),
    ("bloom_union_agg(f.filter)", "filters"),
    ("bloom_intersection_agg(f.filter)", "filters"),
    ("counting_bloom_union_agg(f.counted)", "filters"),
];

/// Queries that group an aggregate by what a join adds.
fn queries(aggregate: &str, table: &str) -> Vec<String> {
    let grouped = |join: &str, condition: &str| {
        format!(
            "SELECT d.name, {aggregate} AS made FROM {table} AS f JOIN dim AS d ON {join} {condition} GROUP BY 1"
        )
    };
    vec![
        grouped("d.id = f.key", ""),
        grouped("d.id = f.key", "WHERE NOT EXISTS (SELECT FROM hidden AS h WHERE h.id = f.key)"),
        grouped("d.id = f.few", ""),
    ]
}

/// A file of the repository.
fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(path).expect("the file can be read")
}

/// The query whose plan docs/reference.md shows, and the lines of that plan.
fn example_of_the_page() -> (String, Vec<String>) {
    let page = file("docs/reference.md");
    let (_, rest) = page
        .split_once("\n=> EXPLAIN (COSTS OFF) ")
        .expect("the page has a plan");
    let (query, rest) = rest.split_once(";\n").expect("the statement ends");
    let (printed, _) = rest.split_once("\n(").expect("the plan ends");
    // After the heading and its underline. psql puts a blank before each line.
    let lines = printed.lines().skip(2);
    (query.to_owned(), lines.map(|line| line[1..].to_owned()).collect())
}

/// The rows of a query, as checksums, in an order of their own.
fn made(client: &mut Client, query: &str) -> Vec<String> {
    let sql = format!("SELECT md5(q::text) FROM ({query}) AS q ORDER BY 1");
    rows(client, &sql).iter().map(|row| row.get(0)).collect()
}

/// The same without aggregates below joins.
fn made_above(client: &mut Client, query: &str) -> Vec<String> {
    run(client, "SET enable_eager_aggregate = off");
    let made = made(client, query);
    run(client, "RESET enable_eager_aggregate");
    made
}

/// The SSPACE of each aggregate of the extension, in the order of the script.
fn spaces(client: &mut Client) -> String {
    value(
        client,
        "SELECT string_agg(concat_ws(' ', name, spaces), ', ' ORDER BY name) FROM (
             SELECT proname::text AS name, string_agg(aggtransspace::text, ' ' ORDER BY aggfnoid::oid) AS spaces
             FROM pg_aggregate JOIN pg_proc AS p ON p.oid = aggfnoid JOIN pg_depend ON objid = p.oid
             WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_bloom')
                 AND classid = 'pg_proc'::regclass AND deptype = 'e' GROUP BY 1) AS q",
    )
}

const SPACES_BEFORE_19: &str = "bloom_agg 128 128 128 128 128 128 128 128, \
    bloom_intersection_agg 512, bloom_union_agg 512, \
    counting_bloom_agg 1024 1024 1024 1024, counting_bloom_union_agg 1024";
const SPACES: &str = "bloom_agg -1 -1 -1 -1 -1 -1 -1 -1, \
    bloom_intersection_agg -1, bloom_union_agg -1, \
    counting_bloom_agg -1 -1 -1 -1, counting_bloom_union_agg -1";

#[test]
fn states_are_called_unbounded_from_19_on() {
    let mut client = server().database("spaces");
    let expected = if major_version(&mut client) < 19 { SPACES_BEFORE_19 } else { SPACES };
    assert_eq!(spaces(&mut client), expected);
}

/// As docs/reference.md says, for a database that `pg_upgrade` moved.
#[test]
fn the_last_statement_of_the_script_calls_them_so_later_too() {
    let mut client = server().database("upgraded_spaces");
    if !aggregates_below_joins(&mut client) {
        return;
    }
    run(
        &mut client,
        "UPDATE pg_aggregate SET aggtransspace = CASE
             WHEN aggfnoid::text ~ 'counting' THEN 1024 WHEN aggfnoid::text ~ '(union|intersection)_agg' THEN 512 ELSE 128 END
         WHERE aggfnoid::text ~ 'bloom_'",
    );
    assert_eq!(spaces(&mut client), SPACES_BEFORE_19);
    let script = file("sql/pg_bloom.sql");
    let (_, last) = script
        .rsplit_once("\n\n-- ")
        .expect("the last statement has a comment");
    run(&mut client, &format!("-- {last}"));
    assert_eq!(spaces(&mut client), SPACES);
}

/// Other extensions' aggregates, and those of users, keep theirs.
#[test]
fn creating_the_extension_changes_no_other_aggregate() {
    let mut client = server().empty_database("others", "");
    let others =
        "SELECT md5(string_agg(a::text, ' ' ORDER BY aggfnoid::oid)) FROM pg_aggregate AS a
        WHERE aggfnoid::text !~ 'bloom_'";
    run(
        &mut client,
        "CREATE AGGREGATE total(integer) (SFUNC = int4_sum, STYPE = bigint, SSPACE = 77, COMBINEFUNC = int8pl)",
    );
    let before: String = value(&mut client, others);
    run(&mut client, "CREATE EXTENSION pg_bloom");
    assert_eq!(value::<String>(&mut client, others), before);
}

#[test]
fn filters_are_aggregated_above_joins() {
    let Some(mut client) = filled("above_joins") else {
        return;
    };
    let counted =
        "SELECT d.name, count(f.url) FROM fact AS f JOIN dim AS d ON d.id = f.key GROUP BY 1";
    let shown = plan(&mut client, "COSTS OFF", counted);
    assert!(shown.contains("Partial"), "PostgreSQL aggregates nothing below a join\n{shown}");
    let (query, lines) = example_of_the_page();
    assert_eq!(plan(&mut client, "COSTS OFF", &query), lines.join("\n"), "docs/reference.md");
    run(&mut client, "SET min_eager_agg_group_size = 0");
    for (aggregate, table) in AGGREGATES {
        for query in queries(aggregate, table) {
            let shown = plan(&mut client, "COSTS OFF", &query);
            assert!(!shown.contains("Partial"), "{query}\n{shown}");
            let expected = made_above(&mut client, &query);
            assert_eq!(expected.len(), 7, "{query}");
            assert_eq!(made(&mut client, &query), expected, "{query}");
        }
    }
}

#[test]
fn states_that_are_made_below_joins_merge_to_the_same_filters() {
    let Some(mut client) = filled("below_joins") else {
        return;
    };
    run(&mut client, BELOW);
    let mut below = 0;
    for (aggregate, table) in AGGREGATES {
        for query in queries(aggregate, table) {
            let expected = made_above(&mut client, &query);
            below += usize::from(plan(&mut client, "COSTS OFF", &query).contains("Partial"));
            assert_eq!(made(&mut client, &query), expected, "{query}");
        }
    }
    assert!(below >= 9, "{below} queries were aggregated below their join");
}

/// A query that groups one to three aggregates, and a count, over joins.
fn random_query(random: &mut Random) -> String {
    let (_, table) = *random.pick(&AGGREGATES);
    let of_table: Vec<&str> = AGGREGATES
        .iter()
        .filter(|(_, its)| *its == table)
        .map(|(aggregate, _)| *aggregate)
        .collect();
    let mut selected = vec!["count(*)"];
    for _ in 0..1 + random.below(3) {
        selected.push(*random.pick(&of_table));
    }
    let key = *random.pick(&["f.key", "f.few", "f.key % 300"]);
    let joined = *random.pick(&["dim", "links"]);
    let from = match random.below(4) {
        0 => format!("{joined} AS d LEFT JOIN {table} AS f ON d.id = {key}"),
        1 => format!("{table} AS f LEFT JOIN {joined} AS d ON d.id = {key}"),
        2 => format!(
            "{table} AS f JOIN {joined} AS d ON d.id = {key} JOIN links AS other ON other.id = d.id + 1"
        ),
        _ => format!("{table} AS f JOIN {joined} AS d ON d.id = {key}"),
    };
    let condition = random.pick(&[
        "true",
        "NOT EXISTS (SELECT FROM hidden AS h WHERE h.id = f.key)",
        "NOT EXISTS (SELECT FROM hidden AS h WHERE h.id = d.id)",
        "NOT EXISTS (SELECT FROM links AS h WHERE h.id = f.few AND h.name = d.name)",
        "EXISTS (SELECT FROM hidden AS h WHERE h.id = d.id)",
        "f.key IN (SELECT id FROM hidden)",
        "f.key < 700",
    ]);
    let group = random.pick(&["d.name", "d.id", "f.few", "d.name, f.few"]);
    let having = random.pick(&["true", "true", "count(*) > 50"]);
    format!(
        "SELECT {group}, {} FROM {from} WHERE {condition} GROUP BY {group} HAVING {having}",
        selected.join(", ")
    )
}

#[test]
fn random_queries_have_the_same_filters_above_and_below_joins() {
    let Some(mut client) = filled("random_joins") else {
        return;
    };
    // Fewer rows of more queries.
    run(
        &mut client,
        "DELETE FROM fact WHERE key > 1500; DELETE FROM filters WHERE key % 3 = 0; ANALYZE",
    );
    run(&mut client, BELOW);
    let mut random = random(66);
    let (queries, mut below, mut rows) = (times(180), 0, 0);
    for _ in 0..queries {
        let query = random_query(&mut random);
        let expected = made_above(&mut client, &query);
        rows += expected.len();
        let shown = plan(&mut client, "COSTS OFF", &query);
        below += usize::from(shown.contains("Partial"));
        assert_eq!(made(&mut client, &query), expected, "{query}\n{shown}");
    }
    println!("{queries} queries, {below} aggregated below a join, {rows} groups");
    assert!(below * 4 >= queries && rows > queries, "{below} of {queries}, {rows} groups");
}
