//! What plans read: few pages of the table, all of them when workers share them, and none that the
//! table no longer has.

use crate::common::asking::{Answers, agree, any, check, each};
use crate::common::{Server, plan, rows, run, value};
use postgres::Client;
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("autovacuum = off"))
}

/// Makes `t` with 30,000 different keys on some 500 pages, and one of every kind of plan's
/// settings.
fn filled(name: &str) -> Client {
    let mut client = server().database(name);
    run(
        &mut client,
        "CREATE TABLE t (id integer, x text, common integer, pad text DEFAULT repeat('-', 60));
         INSERT INTO t SELECT i, md5(i::text), i % 40 FROM generate_series(1, 30000) AS i;
         CREATE INDEX t_x ON t USING bloom_filter (x);
         CREATE INDEX t_common ON t USING bloom_filter (common)",
    );
    run(&mut client, "VACUUM ANALYZE t");
    client
}

/// Pages of the table that a query read, those that the scan of the index read included, and those
/// that were left to PostgreSQL, as EXPLAIN counts them.
fn heap_pages(client: &mut Client, sql: &str) -> (i64, i64) {
    const FETCHED: &str = "SELECT pg_stat_get_xact_blocks_fetched('t'::regclass)";
    run(client, "BEGIN");
    let before: i64 = value(client, FETCHED);
    let text = plan(client, "ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF", sql);
    let read = value::<i64>(client, FETCHED) - before;
    run(client, "COMMIT");
    let line = text.lines().find(|line| line.contains("Heap Blocks:"));
    let numbers = line.into_iter().flat_map(|line| line.split('=').skip(1));
    let count = |rest: &str| {
        rest.split(' ')
            .next()
            .and_then(|n| n.parse::<i64>().ok())
            .expect("a number of blocks")
    };
    (read, numbers.map(count).sum())
}

#[test]
fn present_keys_read_their_ranges_and_absent_ones_next_to_nothing() {
    let mut client = filled("pages");
    let (mut present, mut absent) = (0, 0);
    for i in 0..200 {
        let ask = |key: String| format!("SELECT id FROM t WHERE x = md5('{key}')");
        let (read, left) = heap_pages(&mut client, &ask((1 + i * 149).to_string()));
        assert_eq!(left, 1, "key {i} is in one row");
        present += read;
        let (read, left) = heap_pages(&mut client, &ask(format!("none {i}")));
        assert_eq!(left, 0, "key {i} is in no row");
        absent += read;
    }
    // Eight pages of its own range, one of them twice, and seldom another range: 63 at a rate of
    // 0.00002.
    println!("200 present keys read {present} pages, 200 absent ones {absent}");
    assert!((1600..=1900).contains(&present), "200 present keys read {present} pages");
    assert!(absent <= 40, "200 absent keys read {absent} pages");
}

#[test]
fn workers_share_what_the_index_found() {
    let mut client = filled("parallel");
    run(
        &mut client,
        "CREATE INDEX t_sum ON t USING bloom_filter ((common + 0));
         CREATE FUNCTION slow(integer) RETURNS boolean IMMUTABLE PARALLEL SAFE COST 1000 LANGUAGE plpgsql
         AS 'BEGIN RETURN $1 > 0; END'",
    );
    run(&mut client, "ANALYZE t");
    run(
        &mut client,
        "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0; SET enable_seqscan = off",
    );
    for (index, sql) in [
        ("t_sum", "SELECT count(*)::text, sum(id)::text FROM t WHERE common + 0 = 7"),
        ("t_sum", "SELECT count(*)::text FROM t WHERE common + 0 = ANY (ARRAY[1, 2, 3, 77])"),
        ("t_common", "SELECT count(*)::text, sum(id)::text FROM t WHERE common = 7 AND slow(id)"),
        (
            "t_common",
            "SELECT count(*)::text FROM t WHERE common = ANY (ARRAY[1, 2, 3, 77]) AND slow(id)",
        ),
    ] {
        let shown = plan(&mut client, "COSTS OFF", sql);
        let is_by_index = shown.contains(&format!("Index Scan on {index}"));
        assert!(shown.contains("Parallel Bitmap Heap Scan") && is_by_index, "{shown}");
        let answers = Answers::of(&mut client, sql).expect("workers can ask");
        answers.assert_same(sql);
        run(&mut client, "SET enable_seqscan = off; SET enable_bitmapscan = on");
    }
}

#[test]
fn pages_that_the_table_no_longer_has_are_left_out() {
    let mut client = filled("shortened");
    run(&mut client, "DELETE FROM t WHERE id > 9000");
    run(&mut client, "VACUUM t");
    let pages: i64 = value(&mut client, "SELECT pg_relation_size('t') / 8192");
    assert!(pages < 250, "VACUUM left {pages} pages");
    let keys: Vec<String> = [5, 8999, 9001, 9100, 20000, 29999]
        .iter()
        .map(|i| format!("md5('{i}')"))
        .collect();
    // Under SERIALIZABLE the executor reads whatever pages an index names.
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        run(&mut client, &format!("BEGIN ISOLATION LEVEL {level}; SET LOCAL enable_seqscan = off"));
        let found = rows(&mut client, &any("t", "x", "", &keys));
        assert_eq!(found.len(), 2, "{level}");
        run(&mut client, "COMMIT");
    }
    // The table grows again over ranges whose filters have the keys of rows that are gone.
    run(
        &mut client,
        "INSERT INTO t SELECT i, md5('again ' || i), 1 FROM generate_series(1, 12000) AS i",
    );
    let again: Vec<String> = (0..20)
        .map(|i| format!("md5('again {}')", i * 613))
        .chain(keys)
        .collect();
    agree(&mut client, "t_x", &each("t", "x", "", &again));
    assert_eq!(check(&mut client, "t_x"), 21000);
}

/// An index that another session has rebuilt, dropped, or moved, in prepared statements.
#[test]
fn prepared_statements_outlive_what_other_sessions_do() {
    let mut client = filled("prepared");
    let mut other = server().connect("prepared");
    run(&mut client, "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan");
    let ask = client
        .prepare("SELECT id FROM t WHERE x = $1")
        .expect("can be prepared");
    let changes = [
        "REINDEX INDEX t_x",
        "REINDEX INDEX CONCURRENTLY t_x",
        "INSERT INTO t SELECT i, md5(i::text), 1 FROM generate_series(30001, 60000) AS i",
        "VACUUM FULL t",
        "DROP INDEX t_x",
        "CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 1)",
        "ALTER TABLE t ALTER x TYPE varchar(50)",
        "BEGIN; TRUNCATE t; INSERT INTO t SELECT i, md5(i::text), 1 FROM generate_series(1, 60000) AS i; COMMIT",
        "ALTER TABLE t SET UNLOGGED",
        "DELETE FROM t WHERE id % 2 = 1",
        "CLUSTER t USING t_id",
    ];
    run(&mut other, "CREATE INDEX t_id ON t (id)");
    for change in changes {
        run(&mut other, change);
        let last: i32 = value(&mut other, "SELECT max(id) FROM t");
        for id in [2, 600, 29_998, last / 2 * 2] {
            let key = rows(&mut other, &format!("SELECT md5('{id}')"))[0].get::<_, String>(0);
            let found: Vec<i32> = client
                .query(&ask, &[&key])
                .unwrap_or_else(|e| panic!("{change}: {e:?}"))
                .iter()
                .map(|row| row.get(0))
                .collect();
            assert_eq!(found, [id], "after {change}");
        }
        let none = client
            .query(&ask, &[&"none"])
            .unwrap_or_else(|e| panic!("{change}: {e:?}"));
        assert!(none.is_empty());
    }
    check(&mut client, "t_x");
}

/// The most memory that a session's process has had, in kilobytes.
fn peak_kb(client: &mut Client) -> i64 {
    let pid: i32 = value(client, "SELECT pg_backend_pid()");
    let text =
        std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process has a status");
    let line = text
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("it says the peak");
    line.split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number")
}

/// A key that is in every range, 20,000 times: the ranges of all keys together are a bit each.
#[test]
fn many_keys_in_many_ranges_take_little_memory() {
    let mut client = filled("two_indexes");
    run(
        &mut client,
        "CREATE INDEX narrow ON t USING bloom_filter (common) WITH (pages_per_range = 1); DROP INDEX t_common",
    );
    run(&mut client, "SET enable_seqscan = off");
    let query = |key: i32, keys: i32| {
        format!(
            "SELECT count(*) FROM t WHERE common = ANY (ARRAY(SELECT {key} FROM generate_series(1, {keys})))"
        )
    };
    assert!(plan(&mut client, "COSTS OFF", &query(7, 2)).contains("Bitmap Index Scan on narrow"));
    assert_eq!(value::<i64>(&mut client, &query(7, 2)), 750);
    let before = peak_kb(&mut client);
    assert_eq!(value::<i64>(&mut client, &query(8, 20_000)), 750);
    let grown = peak_kb(&mut client) - before;
    assert!(grown < 16_384, "{grown} kB for 20,000 keys");
}

/// What two indexes on a column cost is compared without the table: what each reads of it
/// unnecessarily must count.
#[test]
fn many_keys_take_the_index_for_equality() {
    let mut client = filled("equality_or_windows");
    run(&mut client, "CREATE INDEX t_windows ON t USING bloom_filter (x text_ngram_ops)");
    run(&mut client, "VACUUM ANALYZE t");
    for keys in [
        "md5('none ' || i)",
        "md5((i * 2)::text)",
        "md5((i * 25)::text)",
    ] {
        for count in [100, 1000] {
            let keys = format!(
                "SELECT string_agg(quote_literal({keys}), ', ') FROM generate_series(1, {count}) AS i"
            );
            let keys: String = value(&mut client, &keys);
            let shown = plan(
                &mut client,
                "COSTS OFF",
                &format!("SELECT id FROM t WHERE x = ANY (ARRAY[{keys}])"),
            );
            assert!(!shown.contains("t_windows"), "{shown}");
        }
    }
    // Which is not the one for everything.
    let shown = plan(&mut client, "COSTS OFF", "SELECT id FROM t WHERE x LIKE '%c4ca4238a0b9%'");
    assert!(shown.contains("t_windows"), "{shown}");
}

/// PostgreSQL expects rows for each value that it has no statistics of.
#[test]
fn absent_keys_of_a_column_with_few_values_take_the_index() {
    let mut client = filled("absent_keys");
    run(&mut client, "UPDATE t SET common = id % 500");
    run(&mut client, "VACUUM FULL t");
    run(&mut client, "ANALYZE t");
    let mut takes_index = |keys: &str| {
        let shown = plan(
            &mut client,
            "COSTS OFF",
            &format!("SELECT id FROM t WHERE common = ANY ({keys})"),
        );
        shown.contains("t_common")
    };
    let absent: Vec<String> = (0..2000).map(|i| (1_000_000 + i).to_string()).collect();
    assert!(takes_index(&format!("ARRAY[{}]", absent.join(", "))));
    assert!(
        takes_index(&format!("ARRAY[{}]::bigint[]", absent.join(", "))),
        "of another type of the family"
    );
    let present: Vec<String> = (0..400).map(|i| i.to_string()).collect();
    assert!(!takes_index(&format!("ARRAY[{}]", present.join(", "))), "these are in all ranges");
}

/// PostgreSQL charges nothing for documents that a sequential scan reads out of line.
#[test]
fn documents_take_the_index_unless_most_of_them_match() {
    let mut client = server().database("documents");
    run(
        &mut client,
        "CREATE TABLE d (id integer, members integer[]);
         ALTER TABLE d ALTER members SET STORAGE EXTERNAL;
         INSERT INTO d SELECT g, ARRAY(SELECT g * 1000 + k FROM generate_series(1, 1500) AS k) || -1 || -2 - g % 9
             FROM generate_series(1, 1500) AS g;
         CREATE INDEX d_members ON d USING bloom_filter (members);
         SET max_parallel_workers_per_gather = 0",
    );
    run(&mut client, "VACUUM ANALYZE d");
    let mut takes_index = |condition: &str| {
        let shown =
            plan(&mut client, "COSTS OFF", &format!("SELECT id FROM d WHERE members {condition}"));
        shown.contains("d_members")
    };
    let twenty: Vec<String> = (1..=20).map(|i| (i * 30_000).to_string()).collect();
    assert!(takes_index(&format!("&& ARRAY[{}]", twenty.join(", "))), "each is in two of 1,500");
    assert!(takes_index("@> ARRAY[-4]"), "a ninth of the documents has it");
    assert!(!takes_index("@> ARRAY[-1]"), "all have it");
}

/// A table with 2,000 keys, each in 15 rows, that its owner sees and the role `reader` doesn't: by
/// policies of its own or of its parent, or by a view with a barrier.
fn hidden_keys() -> Client {
    let mut client = server().database("hidden");
    run(
        &mut client,
        "CREATE ROLE reader;
         CREATE TABLE hidden (id integer, x text, owner name DEFAULT current_user);
         INSERT INTO hidden SELECT i, 'key ' || i % 2000 FROM generate_series(1, 30000) AS i;
         CREATE INDEX hidden_x ON hidden USING bloom_filter (x);
         CREATE TABLE behind_view AS SELECT * FROM hidden;
         CREATE INDEX behind_view_x ON behind_view USING bloom_filter (x);
         CREATE TABLE parent (LIKE hidden) PARTITION BY RANGE (id);
         CREATE TABLE part PARTITION OF parent FOR VALUES FROM (0) TO (15001) PARTITION BY RANGE (id);
         CREATE TABLE part_of_part PARTITION OF part DEFAULT;
         CREATE TABLE other_part PARTITION OF parent DEFAULT;
         INSERT INTO parent SELECT * FROM hidden;
         CREATE INDEX ON parent USING bloom_filter (x);
         CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM behind_view WHERE owner = current_user;
         CREATE VIEW over_barrier AS SELECT id, x FROM barrier WHERE id > 0;
         ALTER TABLE hidden ALTER x SET STATISTICS 1;
         ALTER TABLE behind_view ALTER x SET STATISTICS 1;
         ALTER TABLE part_of_part ALTER x SET STATISTICS 1;
         ALTER TABLE other_part ALTER x SET STATISTICS 1;
         ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
         ALTER TABLE parent ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own ON hidden USING (owner = current_user);
         CREATE POLICY own ON parent USING (owner = current_user);
         GRANT SELECT, UPDATE ON hidden, parent, barrier, over_barrier TO reader;
         ANALYZE hidden, behind_view, parent",
    );
    client
}

/// Queries for a key `K` that use an index.
const OF_HIDDEN_KEYS: [&str; 8] = [
    "SELECT FROM hidden WHERE x = 'K'",
    "SELECT FROM hidden WHERE x = ANY ('{K, none 1, none 2}')",
    "UPDATE hidden SET id = 0 WHERE x = 'K'",
    "SELECT FROM parent WHERE x = 'K'",
    "SELECT FROM barrier WHERE x = 'K'",
    "SELECT FROM over_barrier WHERE x = 'K'",
    "WITH c AS MATERIALIZED (SELECT FROM barrier WHERE x = 'K') SELECT FROM c",
    "SELECT FROM pg_class WHERE EXISTS (SELECT FROM (SELECT * FROM barrier WHERE x = 'K' LIMIT 5) AS s)",
];

/// The plan of a query for a key, without the key.
fn plan_for_key(client: &mut Client, sql: &str, key: &str) -> String {
    plan(client, "COSTS ON", &sql.replace('K', key)).replace(key, "K")
}

#[test]
fn plans_don_t_tell_of_keys_that_are_hidden() {
    let mut client = hidden_keys();
    run(
        &mut client,
        "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_material = off",
    );
    for sql in OF_HIDDEN_KEYS {
        let is_by_view = sql.contains("barrier");
        let as_owner = ["key 7", "key -"].map(|key| plan_for_key(&mut client, sql, key));
        assert!(as_owner[0].contains("Bitmap Index Scan"), "{sql}: {}", as_owner[0]);
        // A view's owner is as anybody else who uses it.
        assert_eq!(as_owner[0] == as_owner[1], is_by_view, "{sql}: {}", as_owner.join("\n"));

        run(&mut client, "SET ROLE reader");
        let as_reader = ["key 7", "key -"].map(|key| plan_for_key(&mut client, sql, key));
        assert_eq!(as_reader[0], as_reader[1], "{sql}");
        assert!(as_reader[0].contains("Bitmap Index Scan"), "{sql}: {}", as_reader[0]);
        run(&mut client, "RESET ROLE");
    }
}

/// The total cost of the scan of an index in the plan of a query.
fn index_scan_cost(client: &mut Client, sql: &str) -> f64 {
    let text = plan(client, "COSTS ON", sql);
    let line = text
        .lines()
        .find(|line| line.contains("Bitmap Index Scan"))
        .unwrap_or_else(|| panic!("{sql}\n{text}"));
    let total = line.split("..").nth(1).and_then(|rest| rest.split(' ').next());
    total.and_then(|total| total.parse().ok()).expect("a cost")
}

/// Makes `documents`, whose texts are out of line, with an index by which pages are split.
fn documents(name: &str) -> Client {
    let mut client = server().database(name);
    run(
        &mut client,
        "CREATE TABLE documents (id integer, body text) WITH (autovacuum_enabled = off);
         ALTER TABLE documents ALTER body SET STORAGE EXTERNAL;
         INSERT INTO documents SELECT i, (SELECT string_agg(md5(i || ' ' || j), ' ') FROM generate_series(1, 200) AS j)
             FROM generate_series(1, 1000) AS i;
         CREATE INDEX documents_body ON documents USING bloom_filter (body text_ngram_ops)",
    );
    let is_split: bool = value(
        &mut client,
        "SELECT ranges_per_page IS NOT NULL FROM bloom_index_info('documents_body')",
    );
    assert!(is_split);
    client
}

#[test]
fn costs_of_nothing_are_costs() {
    let mut client = documents("no_costs");
    let sql = "SELECT id FROM documents WHERE body LIKE '%' || md5('7 77') || '%'";
    run(&mut client, "SET enable_seqscan = off");
    run(
        &mut client,
        "BEGIN; SET LOCAL seq_page_cost = 0; SET LOCAL random_page_cost = 0; SET LOCAL cpu_tuple_cost = 0;
         SET LOCAL cpu_operator_cost = 0; SET LOCAL cpu_index_tuple_cost = 0",
    );
    assert_eq!(index_scan_cost(&mut client, sql), 0.0);
    run(&mut client, "COMMIT; DELETE FROM documents");
    run(&mut client, "VACUUM documents");
    assert_eq!(value::<i64>(&mut client, "SELECT pg_relation_size('documents')"), 0);
    assert!(index_scan_cost(&mut client, sql).is_finite());
}

#[test]
fn a_tile_that_every_lookup_probes_costs_one_page() {
    let mut client = server().database("one_tile");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT i AS id, md5(i::text) AS x FROM generate_series(1, 5000) AS i;
         CREATE INDEX t_x ON t USING bloom_filter (x);
         ANALYZE t;
         SET enable_seqscan = off; SET random_page_cost = 1000; SET seq_page_cost = 0",
    );
    let cost = index_scan_cost(&mut client, "SELECT id FROM t WHERE x = md5('77')");
    // A page of the index, and the first one of a range.
    assert!((2000.0..2100.0).contains(&cost), "{cost}");

    // Eight pages of a range are one request: a random page, and seven that follow it.
    let mut cost_with = |random: f64, next: f64| {
        run(&mut client, &format!("SET random_page_cost = {random}; SET seq_page_cost = {next}"));
        index_scan_cost(&mut client, "SELECT id FROM t WHERE x = md5('77')")
    };
    for random in [4.0, 1.5, 1.1] {
        // EXPLAIN rounds costs to two decimals.
        let random_pages = (cost_with(random, 0.0) - cost_with(0.0, 0.0)) / random;
        assert!((1.98..2.1).contains(&random_pages), "{random_pages} at {random}");
        let next_pages = cost_with(random, 1.0) - cost_with(random, 0.0);
        assert!((6.98..7.5).contains(&next_pages), "{next_pages} at {random}");
    }
}

#[test]
fn ranges_that_the_table_no_longer_has_cost_nothing() {
    let mut client = server().database("fewer_ranges");
    run(
        &mut client,
        "CREATE TABLE t (id integer, x text) WITH (autovacuum_enabled = off);
         INSERT INTO t SELECT i, 'every row has these words ' || md5(i::text) FROM generate_series(1, 100000) AS i;
         CREATE INDEX t_x ON t USING bloom_filter (x text_ngram_ops);
         SET enable_seqscan = off",
    );
    let sql = "SELECT id FROM t WHERE x LIKE '%every row has these words%'";
    let before = index_scan_cost(&mut client, sql);
    run(&mut client, "DELETE FROM t WHERE id > 1000");
    run(&mut client, "VACUUM ANALYZE t");
    let after = index_scan_cost(&mut client, sql);
    assert!(after < before / 5.0, "{before} before, {after} after");
}
