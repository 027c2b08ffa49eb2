//! What the planner expects of `@>` and `<@`, against the truth.

use crate::common::{plan, refused, rows, run, value};
use crate::server;
use postgres::Client;

/// A database with a table of 100,000 rows: unique numbers, numbers, some of them frequent, texts of
/// three types, and NULLs.
fn database(name: &str) -> Client {
    let mut client = server().database(name);
    run(
        &mut client,
        "SET default_statistics_target = 1000; SET max_parallel_workers_per_gather = 0;
         CREATE TABLE t AS
         SELECT i AS unique_number, (i % 300 * (i % 7))::bigint AS frequent, 'text ' || i AS label,
           CASE WHEN i % 4 > 0 THEN i END AS sometimes, ('text ' || i)::char(20) AS padded,
           ('name ' || i % 3000)::name AS named
         FROM generate_series(1, 100000) AS i ORDER BY md5(i::text);
         ANALYZE t",
    );
    client
}

/// Rows that the planner expects of the scan of a query.
fn expected_rows(client: &mut Client, sql: &str) -> f64 {
    let plan = plan(client, "COSTS ON", sql);
    let line = plan
        .lines()
        .find(|line| line.contains("Scan") && line.contains(" on t "))
        .unwrap_or_else(|| panic!("no scan in\n{plan}"));
    let rows = line.split("rows=").nth(1).and_then(|rest| rest.split(' ').next());
    rows.and_then(|rows| rows.parse().ok())
        .unwrap_or_else(|| panic!("no rows in {line}"))
}

/// The filter of a part of a column, as a literal.
fn literal(client: &mut Client, column: &str, part: &str) -> String {
    let text: String = value(
        client,
        &format!("SELECT bloom_agg({column}, NULL, 0.001)::text FROM t WHERE {part}"),
    );
    format!("'{text}'::bloom")
}

/// The same of a counting filter.
fn counting_literal(client: &mut Client, column: &str, part: &str) -> String {
    let build =
        format!("SELECT counting_bloom_agg({column}, 100000, 0.001)::text FROM t WHERE {part}");
    format!("'{}'::counting_bloom", value::<String>(client, &build))
}

#[test]
fn expected_rows_are_within_a_factor_of_two() {
    let mut client = database("estimates");
    for column in [
        "unique_number",
        "frequent",
        "label",
        "sometimes",
        "padded",
        "named",
    ] {
        for percent in [1, 10, 50, 99] {
            let part = format!("abs(hashtext({column}::text)) % 100 < {percent}");
            let filter = literal(&mut client, column, &part);
            let counting = counting_literal(&mut client, column, &part);
            for condition in [
                format!("{filter} @> {column}"),
                format!("{column} <@ {filter}"),
                format!("NOT {filter} @> {column}"),
                format!("{counting} @> {column}"),
                format!("{column} <@ {counting}"),
            ] {
                let sql = format!("SELECT * FROM t WHERE {condition}");
                let truth =
                    value::<i64>(&mut client, &format!("SELECT count(*) FROM ({sql}) AS q")) as f64;
                let expected = expected_rows(&mut client, &sql);
                // NOT of NULL is no row, which the planner leaves out of account: so does this.
                if condition.starts_with("NOT") && (column == "sometimes" || truth < 2_000.0) {
                    continue;
                }
                let ratio = expected / truth;
                assert!(
                    (0.5..2.0).contains(&ratio),
                    "{column}, {percent} %: {expected} rows expected, {truth} found: {}",
                    &condition[condition.len() - 30..]
                );
            }
        }
    }
}

#[test]
fn parameters_are_known_to_custom_plans() {
    let mut client = database("parameters");
    run(&mut client, "PREPARE part(bloom) AS SELECT * FROM t WHERE $1 @> unique_number");
    for (limit, least, most) in [(1_000, 500.0, 2_000.0), (50_000, 40_000.0, 60_000.0)] {
        let filter = literal(&mut client, "unique_number", &format!("unique_number <= {limit}"));
        let expected = expected_rows(&mut client, &format!("EXECUTE part({filter})"));
        assert!((least..most).contains(&expected), "{expected} rows for {limit}");
    }
    run(&mut client, "SET plan_cache_mode = force_generic_plan");
    assert_eq!(expected_rows(&mut client, "EXECUTE part(bloom_empty())"), 10_000.0);
}

#[test]
fn what_is_not_known_is_a_tenth() {
    let mut client = database("unknown");
    run(
        &mut client,
        "CREATE TABLE filters AS SELECT bloom_agg(x) AS f FROM generate_series(1, 100) AS x; ANALYZE filters",
    );
    for sql in [
        "SELECT * FROM t WHERE (SELECT f FROM filters) @> unique_number",
        "SELECT * FROM t WHERE unique_number <@ (SELECT f FROM filters)",
        "SELECT * FROM t WHERE bloom_from_array(ARRAY[1, 2]) @> (unique_number + 1)",
    ] {
        let expected = expected_rows(&mut client, sql);
        assert_eq!(expected, 10_000.0, "{sql}");
    }
    let join = plan(&mut client, "COSTS ON", "SELECT * FROM t JOIN filters ON f @> unique_number");
    assert!(join.lines().next().is_some_and(|top| top.contains("rows=10000 ")), "{join}");
    assert_eq!(
        expected_rows(&mut client, "SELECT * FROM t WHERE bloom_empty() @> unique_number"),
        1.0
    );
    // A filter of another kind is an error when it is asked, which it may never be.
    let mistyped = "SELECT * FROM t WHERE bloom_from_array(ARRAY['x']) @> unique_number";
    assert_eq!(expected_rows(&mut client, mistyped), 10_000.0);
    refused(&mut client, "42804", mistyped);
    assert_eq!(rows(&mut client, &format!("{mistyped} AND frequent < -1")).len(), 0);
}

#[test]
fn a_relabelled_column_is_asked_as_what_it_is_in_the_clause() {
    let mut client = server().database("relabelled");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT ('10.0.' || i / 250 || '.' || i % 250)::cidr AS net, ('v' || i)::varchar AS v
         FROM generate_series(1, 5000) AS i;
         ANALYZE t",
    );
    let nets: String = value(
        &mut client,
        "SELECT quote_literal(bloom_agg(net::inet)::text) FROM t WHERE net < '10.0.4.0'",
    );
    let sql = format!("SELECT * FROM t WHERE {nets}::bloom @> net::inet");
    let truth = value::<i64>(&mut client, &format!("SELECT count(*) FROM ({sql}) AS q")) as f64;
    let ratio = expected_rows(&mut client, &sql) / truth;
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    refused(&mut client, "42804", &format!("SELECT * FROM t WHERE {nets}::bloom @> net"));
    let texts: String = value(&mut client, "SELECT quote_literal(bloom_agg(v)::text) FROM t");
    assert!(
        expected_rows(&mut client, &format!("SELECT * FROM t WHERE {texts}::bloom @> v")) > 4_900.0
    );
}

#[test]
fn cheap_conditions_run_first() {
    let mut client = database("costs");
    let sql =
        "SELECT * FROM t WHERE bloom_from_array(ARRAY[1, 2]) @> unique_number AND frequent < 100
               AND bloom_contains_all(bloom_from_array(ARRAY[1, 2]), ARRAY[unique_number])";
    let plan = plan(&mut client, "COSTS OFF", sql);
    let place = |text: &str| plan.find(text).unwrap_or_else(|| panic!("no {text} in\n{plan}"));
    assert!(
        place("frequent <") < place("@>") && place("@>") < place("bloom_contains_all"),
        "{plan}"
    );
}
