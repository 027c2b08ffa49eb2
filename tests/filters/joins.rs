//! Aggregates above joins. From PostgreSQL 19 on the planner may aggregate below a join, with a state
//! for each key of the join, and merge these states above it.

use crate::common::{major_version, plan, rows, run};
use crate::server;
use postgres::Client;

/// Makes `fact` with 200,000 rows of 5,000 keys, and of 20, and `filters` with ten filters of each of
/// 2,000 keys.
fn filled(name: &str) -> Client {
    let mut client = server().database(name);
    run(
        &mut client,
        "CREATE TABLE dim (id integer PRIMARY KEY, name text);
         CREATE TABLE hidden (id integer);
         CREATE TABLE fact (key integer, few integer, url text);
         CREATE TABLE filters (key integer, filter bloom, counted counting_bloom);
         INSERT INTO dim SELECT i, 'name ' || i % 7 FROM generate_series(1, 5000) AS i;
         INSERT INTO hidden SELECT i FROM generate_series(1, 5000, 9) AS i;
         INSERT INTO fact SELECT 1 + i % 5000, 1 + i % 20, 'https://example.com/' || i FROM generate_series(1, 200000) AS i;
         INSERT INTO filters SELECT 1 + i % 2000, bloom_agg(i, 100), counting_bloom_agg(i, 100)
             FROM generate_series(1, 20000) AS i GROUP BY i;
         SET max_parallel_workers_per_gather = 0; SET pg_bloom.overfill = ignore",
    );
    run(&mut client, "VACUUM ANALYZE");
    client
}

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
    let mut queries = vec![
        grouped("d.id = f.key", ""),
        grouped("d.id = f.key", "WHERE NOT EXISTS (SELECT FROM hidden AS h WHERE h.id = f.key)"),
    ];
    if table == "fact" {
        queries.push(grouped("d.id = f.few", ""));
    }
    queries
}

/// Names and filters, as checksums of their bytes.
fn made(client: &mut Client, query: &str) -> Vec<(String, String)> {
    let sql = format!("SELECT name, md5(made::text) FROM ({query}) AS q ORDER BY 1");
    rows(client, &sql)
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect()
}

#[test]
fn filters_are_aggregated_above_joins() {
    let mut client = filled("above_joins");
    if major_version(&mut client) < 19 {
        return;
    }
    let counted =
        "SELECT d.name, count(f.url) FROM fact AS f JOIN dim AS d ON d.id = f.key GROUP BY 1";
    let shown = plan(&mut client, "COSTS OFF", counted);
    assert!(shown.contains("Partial"), "PostgreSQL aggregates nothing below a join\n{shown}");
    for (aggregate, table) in AGGREGATES {
        for query in queries(aggregate, table) {
            let shown = plan(&mut client, "COSTS OFF", &query);
            assert!(!shown.contains("Partial"), "{query}\n{shown}");
            run(&mut client, "SET enable_eager_aggregate = off");
            let expected = made(&mut client, &query);
            run(&mut client, "RESET enable_eager_aggregate");
            assert_eq!(expected.len(), 7, "{query}");
            assert_eq!(made(&mut client, &query), expected, "{query}");
        }
    }
}

/// As if the states were small: below joins too the filters have the same bytes.
#[test]
fn states_that_are_made_below_joins_merge_to_the_same_filters() {
    let mut client = filled("below_joins");
    if major_version(&mut client) < 19 {
        return;
    }
    let mut below = 0;
    for (aggregate, table) in AGGREGATES {
        for query in queries(aggregate, table) {
            run(&mut client, "SET enable_eager_aggregate = off");
            let expected = made(&mut client, &query);
            run(
                &mut client,
                "RESET enable_eager_aggregate; SET min_eager_agg_group_size = 1;
                 UPDATE pg_aggregate SET aggtransspace = 128 WHERE aggtransspace < 0 AND aggfnoid::text ~ 'bloom'",
            );
            below += usize::from(plan(&mut client, "COSTS OFF", &query).contains("Partial"));
            assert_eq!(made(&mut client, &query), expected, "{query}");
        }
    }
    assert!(below >= 9, "{below} queries were aggregated below their join");
}
