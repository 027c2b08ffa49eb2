//! What EXPLAIN (ANALYZE) shows of scans of an index, from PostgreSQL 18 on. Its numbers are compared
//! with what else tells them: buffers, rows, single executions, the table.

use crate::common::{column, fed, major_version, plan, random, rows, run, sqlstate, value};
use crate::server;
use postgres::Client;
use std::collections::BTreeMap;
use std::path::Path;

/// Execution is shown without what differs each time.
const ANALYZE: &str = "ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF";

/// Whether PostgreSQL lets an extension say what a node did. If not, that is asserted.
fn explains(client: &mut Client) -> bool {
    let explains = major_version(client) >= 18;
    if !explains {
        let shown = plan(client, ANALYZE, "SELECT * FROM t WHERE x = 'x 7'");
        assert!(shown.contains("Bitmap Index Scan") && !shown.contains("Bloom"), "{shown}");
    }
    explains
}

/// Makes `t` with 40,000 rows on some 560 pages: unique texts, frequent numbers, lines of text.
fn filled(name: &str) -> Client {
    let mut client = server().database(name);
    run(
        &mut client,
        "CREATE TABLE t (id integer, x text, common integer, line text);
         INSERT INTO t SELECT i, 'x ' || i, i / 500, 'session ' || md5(i::text) || ' closed'
             FROM generate_series(1, 40000) AS i;
         CREATE INDEX t_x ON t USING bloom_filter (x) WITH (fpr = 0.01);
         CREATE INDEX t_common ON t USING bloom_filter (common);
         CREATE INDEX t_line ON t USING bloom_filter (line text_ngram_ops);
         CREATE FUNCTION explained(query text) RETURNS jsonb LANGUAGE plpgsql AS
         $$ DECLARE plan json;
         BEGIN
             EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS, FORMAT JSON) ' || query INTO plan;
             RETURN plan;
         END $$;
         SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0",
    );
    run(&mut client, "VACUUM ANALYZE t");
    client
}

/// The numbers of the node that scans an index, those in its group `Bloom Filter` by their own
/// names.
type Numbers = BTreeMap<String, i64>;

/// Executes a query, whose plan must scan this index by one node, and returns that node's numbers.
fn numbers(client: &mut Client, index: &str, query: &str) -> Numbers {
    let sql = "SELECT n.key, round(n.value::text::numeric)::bigint
        FROM jsonb_path_query(explained($1), 'strict $.** ? (@.\"Index Name\" == $name)', jsonb_build_object('name', $2::text)) AS node,
            LATERAL (SELECT * FROM jsonb_each(node) UNION ALL SELECT * FROM jsonb_each(node -> 'Bloom Filter')) AS n
        WHERE jsonb_typeof(n.value) = 'number'";
    let found = client
        .query(sql, &[&query, &index])
        .unwrap_or_else(|e| panic!("{query}\nfailed: {e:?}"));
    let mut numbers = Numbers::new();
    for row in found {
        let before = numbers.insert(row.get(0), row.get(1));
        assert_eq!(before, None, "{query}\nhas more than one node");
    }
    assert!(numbers.contains_key("Rows Given"), "{query}\nhas no such node: {numbers:?}");
    numbers
}

/// The line that is shown to people of the only scan in a plan.
fn line(shown: &str) -> &str {
    let mut lines = shown
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Bloom Filter: "));
    let line = lines.next().unwrap_or_else(|| panic!("no line in\n{shown}"));
    assert_eq!(lines.next(), None, "{shown}");
    line
}

/// The names that both indexes' numbers have in JSON, with those in the line.
const NAMES: [(&str, &str); 8] = [
    ("Ranges", "ranges"),
    ("Ranges Read", "ranges_read"),
    ("Ranges Read for Nothing", "for_nothing"),
    ("Index Pages", "index_pages"),
    ("Table Pages", "table_pages"),
    ("Rows Hashed", "rows_hashed"),
    ("Rows Given", "rows_given"),
    ("Pages Given", "pages_given"),
];

#[test]
fn numbers_agree_with_buffers_and_rows() {
    let mut client = filled("explain_numbers");
    if !explains(&mut client) {
        return;
    }
    let mut random = random(66);
    let (mut matching, mut for_nothing) = (0, 0);
    for _ in 0..100 {
        // A third are absent.
        let key = 1 + random.below(60_000);
        let query = format!("SELECT * FROM t WHERE x = 'x {key}'");
        let numbers = numbers(&mut client, "t_x", &query);
        let is_present = i64::from(key <= 40_000);
        assert_eq!(numbers["Actual Rows"], is_present, "{query}: {numbers:?}");
        assert_eq!(numbers["Rows Given"], is_present, "{query}: {numbers:?}");
        assert_eq!(numbers["Pages Given"], 0, "{query}: {numbers:?}");
        assert_eq!(numbers["Ranges"], numbers["Ranges Read"], "{query}: {numbers:?}");
        let useful = numbers["Ranges Read"] - numbers["Ranges Read for Nothing"];
        assert_eq!(useful, is_present, "{query}: {numbers:?}");
        let buffers = numbers["Shared Hit Blocks"] + numbers["Shared Read Blocks"];
        let pages = numbers["Index Pages"] + numbers["Table Pages"];
        assert_eq!(pages, buffers, "{query}: {numbers:?}");
        // A range has eight pages, except for the last one.
        let most = 8 * numbers["Ranges"];
        assert!((most - 7..=most).contains(&numbers["Table Pages"]) || most == 0, "{numbers:?}");
        let shown = plan(&mut client, ANALYZE, &query);
        let expected: Vec<String> = NAMES
            .iter()
            .filter(|(label, name)| numbers[*label] > 0 || *name == "ranges")
            .map(|(label, name)| format!("{name}={}", numbers[*label]))
            .collect();
        assert_eq!(line(&shown), expected.join(" "), "{shown}");
        assert!(!shown.contains("Unrestricted") && !shown.contains("Not Counted"), "{shown}");
        matching += numbers["Ranges"];
        for_nothing += numbers["Ranges Read for Nothing"];
    }
    // 70 ranges and a rate of 0.01: 0.7 for each key.
    println!("{matching} ranges, {for_nothing} of them for nothing");
    assert!((20..=150).contains(&for_nothing), "{for_nothing} ranges were read for nothing");
}

#[test]
fn all_rows_of_the_pages_that_are_read_are_hashed() {
    let mut client = filled("explain_hashed");
    if !explains(&mut client) {
        return;
    }
    let pages = "(SELECT array_agg(DISTINCT (ctid::text::point)[0]::integer / 8) FROM t WHERE common = 7)::integer[]";
    let of_ranges =
        format!("SELECT count(*) FROM t WHERE (ctid::text::point)[0]::integer / 8 = ANY ({pages})");
    let expected: i64 = value(&mut client, &of_ranges);
    let numbers = numbers(&mut client, "t_common", "SELECT * FROM t WHERE common = 7");
    assert_eq!(numbers["Rows Given"], 500, "{numbers:?}");
    assert_eq!(numbers["Ranges Read for Nothing"], 0, "{numbers:?}");
    assert_eq!(numbers["Rows Hashed"], expected, "{numbers:?}");
}

#[test]
fn without_the_heap_filter_pages_are_given() {
    let mut client = filled("explain_pages");
    if !explains(&mut client) {
        return;
    }
    run(&mut client, "SET pg_bloom.heap_filter = off");
    let numbers = numbers(&mut client, "t_x", "SELECT * FROM t WHERE x = 'x 7'");
    assert_eq!(numbers["Pages Given"], 8 * numbers["Ranges"], "{numbers:?}");
    for label in [
        "Ranges Read",
        "Ranges Read for Nothing",
        "Table Pages",
        "Rows Hashed",
        "Rows Given",
    ] {
        assert_eq!(numbers[label], 0, "{label}: {numbers:?}");
    }
}

#[test]
fn executions_of_a_nested_loop_are_added() {
    let mut client = filled("explain_loops");
    if !explains(&mut client) {
        return;
    }
    run(
        &mut client,
        "CREATE TABLE keys AS SELECT 'x ' || i * 777 AS key FROM generate_series(1, 90) AS i; ANALYZE keys;
         SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off",
    );
    let mut sums = Numbers::new();
    for key in column::<String>(&mut client, "SELECT key FROM keys") {
        let query = format!("SELECT * FROM t WHERE x = '{key}'");
        for (label, number) in numbers(&mut client, "t_x", &query) {
            *sums.entry(label).or_default() += number;
        }
    }
    let joined =
        numbers(&mut client, "t_x", "SELECT * FROM keys JOIN t ON t.x = keys.key OFFSET 0");
    assert_eq!(joined["Actual Loops"], 90, "{joined:?}");
    assert_eq!(joined["Index Searches"], 90, "{joined:?}");
    for (label, _) in NAMES {
        assert_eq!(joined[label], sums[label], "{label}");
    }
    assert!(sums["Rows Given"] > 40 && sums["Ranges"] > sums["Rows Given"], "{sums:?}");
}

#[test]
fn a_scan_that_is_never_executed_has_no_line() {
    let mut client = filled("explain_never");
    if !explains(&mut client) {
        return;
    }
    run(
        &mut client,
        "CREATE TABLE nothing (key text);
         SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off",
    );
    let query = "SELECT * FROM nothing JOIN t ON t.x = nothing.key";
    let shown = plan(&mut client, ANALYZE, query);
    assert!(
        shown.contains("Bitmap Index Scan on t_x (never executed)") && !shown.contains("Bloom"),
        "{shown}"
    );
    let numbers = numbers(&mut client, "t_x", query);
    assert!(NAMES.iter().all(|(label, _)| numbers[*label] == 0), "{numbers:?}");
    // Not executed at all: nothing to say.
    let shown = plan(&mut client, "COSTS OFF", "SELECT * FROM t WHERE x = 'x 7'");
    assert!(!shown.contains("Bloom"), "{shown}");
}

#[test]
fn each_of_two_indexes_has_numbers_of_its_own() {
    let mut client = filled("explain_and");
    if !explains(&mut client) {
        return;
    }
    run(&mut client, "SET pg_bloom.heap_filter = off; DROP INDEX t_line");
    let query = "SELECT * FROM t WHERE x = 'x 7' OR common = 50";
    let shown = plan(&mut client, ANALYZE, query);
    assert!(shown.contains("BitmapOr"), "{shown}");
    let of_key = numbers(&mut client, "t_x", query);
    let of_number = numbers(&mut client, "t_common", query);
    let alone = numbers(&mut client, "t_common", "SELECT * FROM t WHERE common = 50");
    assert_eq!(of_key["Pages Given"], 8 * of_key["Ranges"], "{of_key:?}");
    for (label, _) in NAMES {
        assert_eq!(of_number[label], alone[label], "{label} of\n{shown}");
    }
    // Two keys that neither index narrows down to few pages.
    run(
        &mut client,
        "CREATE TABLE two AS SELECT i % 1000 AS a, i % 997 AS b, repeat('-', 500) AS pad FROM generate_series(1, 60000) AS i;
         CREATE INDEX two_a ON two USING bloom_filter (a) WITH (pages_per_range = 1);
         CREATE INDEX two_b ON two USING bloom_filter (b) WITH (pages_per_range = 1)",
    );
    run(&mut client, "VACUUM ANALYZE two");
    let query = "SELECT * FROM two WHERE a = 7 AND b = 7";
    let shown = plan(&mut client, ANALYZE, query);
    assert!(shown.contains("BitmapAnd"), "{shown}");
    for (index, column) in [("two_a", "a"), ("two_b", "b")] {
        let own = numbers(&mut client, index, query);
        let alone = numbers(&mut client, index, &format!("SELECT * FROM two WHERE {column} = 7"));
        for (label, _) in NAMES {
            assert_eq!(own[label], alone[label], "{index}: {label} of\n{shown}");
        }
    }
}

#[test]
fn a_pattern_that_restricts_nothing_is_called_so() {
    let mut client = filled("explain_unrestricted");
    if !explains(&mut client) {
        return;
    }
    let pages: i64 = value(&mut client, "SELECT pg_relation_size('t') / 8192");
    run(
        &mut client,
        "SET plan_cache_mode = force_generic_plan; PREPARE lines (text) AS SELECT * FROM t WHERE line LIKE $1",
    );
    for query in ["EXECUTE lines('%ab%')", "EXECUTE lines('%')"] {
        let numbers = numbers(&mut client, "t_line", query);
        assert_eq!(numbers["Unrestricted Searches"], 1, "{query}: {numbers:?}");
        assert_eq!(numbers["Pages Given"], pages, "{query}: {numbers:?}");
        assert_eq!(numbers["Ranges"], 0, "{query}: {numbers:?}");
        let shown = plan(&mut client, ANALYZE, query);
        assert_eq!(line(&shown), format!("pages_given={pages}"), "{shown}");
        assert!(shown.contains("  Unrestricted Searches: 1"), "{shown}");
    }
    let query = "EXECUTE lines('%' || md5('4711') || '%')";
    let numbers = numbers(&mut client, "t_line", query);
    assert_eq!(numbers["Unrestricted Searches"], 0, "{numbers:?}");
    assert!((1..20).contains(&numbers["Ranges"]), "{numbers:?}");
    assert_eq!(numbers["Ranges"], numbers["Pages Given"], "{numbers:?}");
    assert_eq!(numbers["Shared Hit Blocks"], numbers["Index Pages"], "{numbers:?}");
}

#[test]
fn rows_are_hashed_for_many_patterns() {
    let mut client = filled("explain_patterns");
    if !explains(&mut client) {
        return;
    }
    let query = "SELECT * FROM t WHERE line LIKE ANY (ARRAY(SELECT '%' || md5((i * 700)::text) || '%' FROM generate_series(1, 30) AS i))";
    let numbers = numbers(&mut client, "t_line", query);
    assert_eq!(numbers["Rows Given"], 30, "{numbers:?}");
    assert_eq!(numbers["Ranges"], numbers["Ranges Read"], "{numbers:?}");
    assert_eq!(numbers["Table Pages"], numbers["Ranges"], "{numbers:?}");
    let useful = numbers["Ranges"] - numbers["Ranges Read for Nothing"];
    assert!((25..=30).contains(&useful), "{numbers:?}");
    let rows_of_page = numbers["Rows Hashed"] / numbers["Table Pages"];
    assert!((40..120).contains(&rows_of_page), "{numbers:?}");
    let buffers = numbers["Shared Hit Blocks"] + numbers["Shared Read Blocks"];
    assert_eq!(numbers["Index Pages"] + numbers["Table Pages"], buffers, "{numbers:?}");
}

#[test]
fn an_index_over_filters_has_no_ranges() {
    let mut client = filled("explain_filters");
    if !explains(&mut client) {
        return;
    }
    run(
        &mut client,
        "CREATE TABLE segments AS SELECT i AS id, bloom_agg(x) AS seen FROM t, LATERAL (VALUES (id / 100)) AS v (i) GROUP BY i;
         CREATE INDEX segments_seen ON segments USING bloom_filter (seen)",
    );
    run(&mut client, "VACUUM ANALYZE segments");
    let query = "SELECT id FROM segments WHERE seen @> 'x 4711'::text";
    let numbers = numbers(&mut client, "segments_seen", query);
    assert!((1..20).contains(&numbers["Rows Given"]), "{numbers:?}");
    assert_eq!(numbers["Index Pages"], numbers["Shared Hit Blocks"], "{numbers:?}");
    assert!(!numbers.contains_key("Ranges"), "{numbers:?}");
    let (pages, given) = (numbers["Index Pages"], numbers["Rows Given"]);
    let shown = plan(&mut client, ANALYZE, query);
    assert_eq!(line(&shown), format!("index_pages={pages} rows_given={given}"), "{shown}");
}

#[test]
fn searches_of_workers_are_not_counted() {
    let mut client = filled("explain_parallel");
    if !explains(&mut client) {
        return;
    }
    run(
        &mut client,
        "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;
         SET pg_bloom.heap_filter = off;
         CREATE FUNCTION slow(integer) RETURNS boolean IMMUTABLE PARALLEL SAFE COST 1000 LANGUAGE plpgsql
         AS 'BEGIN RETURN $1 > 0; END'",
    );
    let query = "SELECT count(*) FROM t WHERE common = 7 AND slow(id)";
    let shown = plan(&mut client, "COSTS OFF", query);
    assert!(shown.contains("Parallel Bitmap Heap Scan"), "{shown}");
    // The leader makes the bitmap if there are no workers, and a worker if the leader waits for them.
    run(&mut client, "SET max_parallel_workers = 0");
    let of_leader = numbers(&mut client, "t_common", query);
    assert_eq!(of_leader["Worker Searches Not Counted"], 0, "{of_leader:?}");
    assert!(of_leader["Ranges"] > 0, "{of_leader:?}");
    run(&mut client, "RESET max_parallel_workers; SET parallel_leader_participation = off");
    let of_worker = executed_by_workers(&mut client, "t_common", query);
    assert_eq!(of_worker["Index Searches"], 1, "{of_worker:?}");
    assert!(NAMES.iter().all(|(label, _)| of_worker[*label] == 0), "{of_worker:?}");
    let shown = plan(&mut client, ANALYZE, query);
    assert!(
        shown.contains("Worker Searches Not Counted: 1") && !shown.contains("Bloom Filter:"),
        "{shown}"
    );
    // Whoever made it: all numbers or none.
    run(&mut client, "RESET parallel_leader_participation");
    for _ in 0..20 {
        let shown = numbers(&mut client, "t_common", query);
        let is_counted = shown["Worker Searches Not Counted"] == 0;
        for (label, _) in NAMES {
            let expected = if is_counted { of_leader[label] } else { 0 };
            assert_eq!(shown[label], expected, "{label} of {shown:?}");
        }
    }
}

/// The numbers of a query of which workers made all searches: another query may have all workers for
/// a moment.
fn executed_by_workers(client: &mut Client, index: &str, query: &str) -> Numbers {
    for _ in 0..100 {
        let numbers = numbers(client, index, query);
        if numbers["Worker Searches Not Counted"] == numbers["Index Searches"] {
            return numbers;
        }
    }
    panic!("no worker executed {query}");
}

#[test]
fn a_nested_loop_of_workers_counts_what_the_leader_did() {
    let mut client = filled("explain_workers");
    if !explains(&mut client) {
        return;
    }
    run(
        &mut client,
        "CREATE TABLE keys AS SELECT 'x ' || i * 7 AS key, repeat('-', 500) AS pad FROM generate_series(1, 2000) AS i; ANALYZE keys;
         SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off;
         SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0",
    );
    let query = "SELECT count(*) FROM keys JOIN t ON t.x = keys.key";
    let shown = plan(&mut client, "COSTS OFF", query);
    assert!(shown.contains("Gather") && shown.contains("Parallel Seq Scan on keys"), "{shown}");
    let mut by_both = 0;
    for _ in 0..10 {
        let numbers = numbers(&mut client, "t_x", query);
        assert_eq!(numbers["Index Searches"], 2000, "{numbers:?}");
        // Each of these keys is in one row.
        let by_leader = numbers["Index Searches"] - numbers["Worker Searches Not Counted"];
        assert_eq!(numbers["Rows Given"], by_leader, "{numbers:?}");
        assert!(numbers["Ranges"] >= by_leader, "{numbers:?}");
        by_both += i64::from(by_leader > 0 && by_leader < 2000);
    }
    println!("{by_both} of 10 were executed by the leader and by workers");
}

#[test]
fn auto_explain_shows_it_too() {
    let mut client = filled("explain_auto");
    if !explains(&mut client) {
        return;
    }
    let script = "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
         SET client_min_messages = log; SET enable_seqscan = off;
         SELECT id FROM t WHERE x = 'x 7';
         BEGIN; DECLARE c CURSOR FOR SELECT id FROM t WHERE x IN ('x 7', 'x 8', 'x 9'); FETCH 1 FROM c; COMMIT;";
    let mut psql = server().program("psql");
    psql.args(["--no-psqlrc", "--quiet", "--dbname", "explain_auto"]);
    let result = fed(&mut psql, script.as_bytes());
    let log = String::from_utf8_lossy(&result.stderr);
    let shown: Vec<&str> = log
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Bloom Filter: "))
        .collect();
    assert_eq!(shown.len(), 2, "{log}");
    assert!(shown[0].ends_with("rows_given=1") && shown[1].ends_with("rows_given=3"), "{log}");
}

/// `pg_overexplain` of PostgreSQL's contrib uses the same hook.
#[test]
fn another_librarys_hook_is_called_as_well() {
    let mut client = filled("explain_hooks");
    if !explains(&mut client) {
        return;
    }
    let query = "SELECT * FROM t WHERE x = 'x 7'";
    for is_first in [false, true] {
        let mut client = server().connect("explain_hooks");
        run(&mut client, "SET enable_seqscan = off");
        if !is_first {
            // This loads the extension's library.
            run(&mut client, query);
        }
        assert_eq!(sqlstate(&mut client, "LOAD 'pg_overexplain'"), "00000");
        run(&mut client, query);
        let shown = plan(&mut client, &format!("{ANALYZE}, DEBUG"), query);
        assert!(shown.contains("Disabled Nodes:"), "{is_first}: {shown}");
        assert!(line(&shown).ends_with("rows_given=1"), "{is_first}: {shown}");
    }
}

#[test]
fn other_formats_are_well_formed() {
    let mut client = filled("explain_formats");
    if !explains(&mut client) {
        return;
    }
    let query = "SELECT * FROM t WHERE x = 'x 7'";
    let xml = rows(&mut client, &format!("EXPLAIN ({ANALYZE}, FORMAT XML) {query}"));
    assert_eq!(xml.len(), 1);
    let yaml = plan(&mut client, &format!("{ANALYZE}, FORMAT YAML"), query);
    assert!(yaml.contains("Bloom Filter: \n") && yaml.contains(" Rows Given: 1\n"), "{yaml}");
    run(
        &mut client,
        "CREATE FUNCTION explained_as_xml(query text) RETURNS text LANGUAGE plpgsql AS
         $$ DECLARE plan text;
         BEGIN
             EXECUTE 'EXPLAIN (ANALYZE, FORMAT XML) ' || query INTO plan;
             RETURN plan;
         END $$",
    );
    let xml: String = client
        .query_one("SELECT explained_as_xml($1)", &[&query])
        .expect("a plan as XML")
        .get(0);
    let group = xml
        .split("<Bloom-Filter>")
        .nth(1)
        .and_then(|rest| rest.split("</Bloom-Filter>").next());
    assert!(group.is_some_and(|group| group.contains("<Rows-Given>1</Rows-Given>")), "{xml}");
}

/// The code of the blocks of a section of docs/index.md that are SQL, or what psql prints for it.
fn blocks(section: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = section;
    while let Some((_, fenced)) = rest.split_once("\n```") {
        let (block, after) = fenced.split_once("\n```\n").expect("a block is closed");
        blocks.push(block.split_once('\n').expect("a block has a language"));
        rest = after;
    }
    blocks
}

#[test]
fn the_page_has_what_is_printed() {
    let mut client = filled("explain_page");
    if !explains(&mut client) {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/index.md");
    let page = std::fs::read_to_string(path).expect("the page can be read");
    let (_, rest) = page
        .split_once("\n### What a scan did")
        .expect("the page has the section");
    let (section, _) = rest.split_once("\n## ").expect("a section follows");
    let (mut script, mut expected) = (String::new(), String::new());
    for (language, code) in blocks(section) {
        match language {
            "sql" => script += &format!("{code}\n"),
            "console" => {
                let is_typed = |line: &&str| line.starts_with("=> ") || line.starts_with("-> ");
                for line in code.lines().take_while(is_typed) {
                    script += &format!("{}\n", &line[3..]);
                }
                for line in code.lines().skip_while(is_typed) {
                    expected += &format!("{line}\n");
                }
            }
            other => panic!("a block of {other}"),
        }
    }
    assert!(
        expected
            .lines()
            .filter(|line| line.contains(" Bloom Filter: "))
            .count()
            >= 5
    );
    let mut psql = server().program("psql");
    psql.args(["--no-psqlrc", "--quiet", "--dbname", "explain_page"]);
    let result = fed(&mut psql, script.as_bytes());
    let printed: String = String::from_utf8_lossy(&result.stdout)
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    assert_eq!(printed, expected, "{}", String::from_utf8_lossy(&result.stderr));
}
