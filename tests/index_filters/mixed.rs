//! A column with filters of several kinds of elements: an index on it makes no query fail that
//! excludes the others.

use crate::common::{Server, column, run, state_of, value};
use postgres::Client;

/// Filters of text, of `"char"`s, and as many of integers, each told by its name.
const CATALOG: &str = r#"
    CREATE TABLE c (name text, g integer, filter bloom);
    INSERT INTO c SELECT 'url', g, bloom_agg('u' || g * 1000 + i, 1000, 0.001, l)
    FROM unnest(ARRAY['blocked', 'parquet']) AS l, generate_series(1, 100) AS g, generate_series(1, 1000) AS i GROUP BY l, g;
    INSERT INTO c SELECT 'id', g, bloom_agg(g * 1000 + i, 1000, 0.001)
    FROM generate_series(1, 100) AS g, generate_series(1, 1000) AS i GROUP BY g;
    INSERT INTO c SELECT 'few', g, bloom_from_array(ARRAY[g, g + 1]) FROM generate_series(1, 100) AS g;
    INSERT INTO c SELECT 'old', g, bloom_from_array(ARRAY[g, g + 1], 1000, 0.01, 'classic') FROM generate_series(1, 100) AS g;
    INSERT INTO c SELECT 'letter', g, bloom_from_array(ARRAY['a'::"char", chr(97 + g % 26)::"char"], 1000)
    FROM generate_series(1, 100) AS g;
    CREATE TABLE asked (url text);
    INSERT INTO asked SELECT 'u' || i FROM generate_series(7007, 100000, 9001) AS i;
    ANALYZE c; ANALYZE asked;
    CREATE INDEX c_filter ON c USING bloom_filter (filter);"#;

/// Conditions on a filter of text, in all forms.
const CONDITIONS: [&str; 10] = [
    "filter @> 'u77007'",
    "'u77007' <@ filter",
    "filter @> ANY (ARRAY['u77007', 'u5005', NULL])",
    "filter @> ANY ('{u77007,u5005}'::urls)",
    "(filter @> 'u77007' OR filter @> 'u5005')",
    "(filter @> (SELECT 'u' || 77007 OFFSET 0) OR filter @> (SELECT 'u' || 5005 OFFSET 0))",
    "filter @> 'u77007' AND filter @> 'u77008'",
    "bloom_contains(filter, 'u77007')",
    "bloom_contains_any(filter, ARRAY['u77007', 'u5005'])",
    "bloom_contains_all(filter, ARRAY['u77007', 'u77008'])",
];

/// The rows by the index, which must be used, and without it.
fn both(client: &mut Client, query: &str) -> [Result<Vec<i32>, String>; 2] {
    run(client, "SET enable_seqscan = off; SET enable_bitmapscan = on");
    let plan: Vec<String> = column(client, &format!("EXPLAIN (COSTS OFF) {query}"));
    assert!(plan.join("\n").contains("Bitmap Index Scan on c_filter"), "{query}: {plan:#?}");
    let by_index = rows(client, query);
    run(client, "SET enable_seqscan = on; SET enable_bitmapscan = off");
    let by_scan = rows(client, query);
    run(client, "RESET enable_seqscan; RESET enable_bitmapscan");
    [by_index, by_scan]
}

fn rows(client: &mut Client, query: &str) -> Result<Vec<i32>, String> {
    let messages = client.simple_query(query).map_err(|error| state_of(&error))?;
    let row = |message| match message {
        postgres::SimpleQueryMessage::Row(row) => {
            row.get(0).map(|text: &str| text.parse().expect("a number"))
        }
        _ => None,
    };
    let mut rows: Vec<i32> = messages.into_iter().filter_map(row).collect();
    rows.sort_unstable();
    Ok(rows)
}

#[test]
fn an_index_breaks_no_query_that_excludes_other_kinds() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("mixed");
    run(&mut client, "CREATE DOMAIN urls AS text[]");
    run(&mut client, CATALOG);
    for condition in CONDITIONS {
        let [by_index, by_scan] =
            both(&mut client, &format!("SELECT g FROM c WHERE name = 'url' AND {condition}"));
        assert!(by_scan.as_ref().is_ok_and(|rows| rows.contains(&77)), "{condition}: {by_scan:?}");
        assert_eq!(by_index, by_scan, "{condition}");
        let mistake = both(&mut client, &format!("SELECT g FROM c WHERE {condition}"));
        assert_eq!(mistake, [Err("42804".into()), Err("42804".into())], "{condition}");
    }
    let join = "SELECT g FROM asked JOIN c ON name = 'url' AND filter @> url";
    let lateral = "SELECT found.g FROM asked, LATERAL (
        SELECT g FROM c WHERE name = 'url' AND filter @> ANY (ARRAY[url, url || '?']) OFFSET 0) AS found";
    let letters = r#"SELECT g FROM c WHERE name = 'letter' AND filter @> 'a'::"char"::text"#;
    let numbers = "SELECT g FROM c WHERE name IN ('id', 'few', 'old')
        AND (filter @> 77 OR bloom_contains_any(filter, ARRAY[5005, 9, 10]) OR filter @> 31 OR filter @> 41)";
    let by_hand = "SELECT g FROM c WHERE name IN ('few', 'old') AND filter @=> ANY (ARRAY[bloom_key(77), bloom_key(9)])
        UNION ALL SELECT g FROM c WHERE name IN ('few', 'old', 'id') AND filter @=> bloom_key(50)
        UNION ALL SELECT g FROM c, generate_series(1, 5) AS i WHERE name = 'few' AND filter @=> bloom_key(i)";
    for query in [join, lateral, letters, numbers, by_hand] {
        let [by_index, by_scan] = both(&mut client, query);
        assert!(by_scan.as_ref().is_ok_and(|rows| rows.len() > 10), "{query}: {by_scan:?}");
        assert_eq!(by_index, by_scan, "{query}");
    }
}

#[test]
fn parameters_of_kept_plans() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("mixed");
    run(&mut client, CATALOG);
    run(
        &mut client,
        "SET enable_seqscan = off;
         PREPARE one (text) AS SELECT g FROM c WHERE name = 'url' AND filter @> $1;
         PREPARE many (text[]) AS SELECT g FROM c WHERE name = 'url' AND filter @> ANY ($1)",
    );
    for mode in ["force_generic_plan", "force_custom_plan"] {
        run(&mut client, &format!("SET plan_cache_mode = {mode}"));
        for call in ["one('u77007')", "many('{u77007,NULL}')"] {
            assert!(
                rows(&mut client, &format!("EXECUTE {call}")).is_ok_and(|rows| rows.contains(&77)),
                "{mode} {call}"
            );
        }
        for call in ["one(NULL)", "many(NULL)", "many('{}')"] {
            assert_eq!(
                rows(&mut client, &format!("EXECUTE {call}")),
                Ok(Vec::new()),
                "{mode} {call}"
            );
        }
    }
}

/// Rows that are found by the filters' own bits are not asked again as long as all filters are of
/// text; a plan that was made then is made again for the first filter of another kind, also if the
/// index has one from an aborted transaction.
#[test]
fn the_first_filter_of_another_kind() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("mixed");
    run(&mut client, CATALOG);
    run(&mut client, "DELETE FROM c WHERE name <> 'url'");
    run(&mut client, "VACUUM FULL c");
    run(
        &mut client,
        "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan;
         PREPARE one (text) AS SELECT g FROM c WHERE name = 'url' AND filter @> $1;
         PREPARE many (text[]) AS SELECT g FROM c WHERE name = 'url' AND filter @> ANY ($1)",
    );
    let calls = ["one('u77007')", "many('{u77007}')"];
    for call in calls {
        let plan: Vec<String> = column(&mut client, &format!("EXPLAIN (COSTS OFF) EXECUTE {call}"));
        assert!(
            !plan
                .iter()
                .any(|line| line.contains("Filter:") && line.contains("@>")),
            "{plan:#?}"
        );
        assert!(rows(&mut client, &format!("EXECUTE {call}")).is_ok_and(|rows| rows.contains(&77)));
    }
    let mut other = server.connect("mixed");
    let add = "INSERT INTO c VALUES ('id', 1, bloom_from_array(ARRAY[1, 2], 1000))";
    run(&mut other, &format!("BEGIN; {add}; ROLLBACK; {add}"));
    for call in calls {
        assert!(
            rows(&mut client, &format!("EXECUTE {call}")).is_ok_and(|rows| rows.contains(&77)),
            "{call}"
        );
    }
    assert_eq!(value::<i64>(&mut client, "SELECT bloom_index_check('c_filter')"), 201);
}
