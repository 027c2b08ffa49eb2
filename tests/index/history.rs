//! Random histories of one table, with crashes. After each step questions are asked both ways.

use crate::actions::{Actions, KEYS};
use crate::common::asking::{agree, any, check, each, indexes};
use crate::common::{Random, Server, column, run, value};
use crate::{random, times};
use postgres::Client;

/// Steps of a history.
const STEPS: usize = 72;
/// Steps from one crash to the next.
const CRASH_EVERY: usize = 23;

/// The table: `x` is what changes its type, more indexes are on expressions of `id` and `n`, two of
/// them partial, three over parts.
const TABLE: &str = "
    CREATE TABLE t (id bigint NOT NULL, x integer, n integer NOT NULL DEFAULT 0, pad text)
        WITH (fillfactor = 60, autovacuum_enabled = off);
    ALTER TABLE t ALTER pad SET STORAGE PLAIN;
    CREATE UNIQUE INDEX t_id ON t (id);
    CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 1);
    CREATE INDEX t_md5 ON t USING bloom_filter (md5(id::text)) WITH (pages_per_range = 1, fpr = 0.001);
    CREATE INDEX t_part ON t USING bloom_filter ((id::text)) WHERE id % 3 = 0;
    CREATE INDEX t_like ON t USING bloom_filter (('key ' || md5(id::text)) text_ngram_ops) WITH (pages_per_range = 1);
    CREATE INDEX t_array ON t USING bloom_filter ((ARRAY[id, n])) WITH (pages_per_range = 1);
    CREATE INDEX t_json ON t USING bloom_filter ((('{\"id\": ' || id || '}')::jsonb)) WHERE n < 50;";

/// Keys of rows that are there and others: numbers, of which both `x` and `id` are made.
fn keys(client: &mut Client, random: &mut Random, of: &str) -> Vec<String> {
    let there = format!(
        "SELECT ({of})::text FROM t WHERE x IS NOT NULL ORDER BY md5(id::text || '{}') LIMIT 20",
        random.bits()
    );
    let mut keys: Vec<String> = column(client, &there);
    keys.extend((0..12).map(|_| random.below(KEYS).to_string()));
    keys.extend((0..4).map(|_| (KEYS + random.below(KEYS)).to_string()));
    keys
}

/// Asks for keys of all three indexes.
fn ask(client: &mut Client, random: &mut Random, key_type: &str) -> usize {
    let cast =
        |keys: Vec<String>| keys.iter().map(|k| format!("'{k}'::{key_type}")).collect::<Vec<_>>();
    let xs = cast(keys(client, random, "x"));
    let questions = [each("t", "x", "", &xs), any("t", "x", "", &xs)];
    let ids = keys(client, random, "id");
    let digests: Vec<String> = ids.iter().map(|id| format!("md5('{id}')")).collect();
    let texts: Vec<String> = ids.iter().map(|id| format!("'{id}'::text")).collect();
    // Without such an index each of these reads the whole table.
    let some: Vec<String> = ids.iter().step_by(3).cloned().collect();
    let all = [
        ("t_x", questions[0].clone()),
        ("t_x", questions[1].clone()),
        ("t_md5", each("t", "md5(id::text)", "", &digests)),
        ("t_part", each("t", "id::text", " AND id % 3 = 0", &texts)),
        ("t_like", with("'key ' || md5(id::text) LIKE '%' || left(md5(k::text), 9) || '%'", &some)),
        ("t_array", with("ARRAY[id, n] @> ARRAY[k::bigint]", &some)),
        (
            "t_json",
            with(
                "('{\"id\": ' || id || '}')::jsonb @> jsonb_build_object('id', k) AND n < 50",
                &some,
            ),
        ),
    ];
    let mut answers = 0;
    for (index, sql) in all {
        answers += agree(client, index, &sql);
    }
    answers
}

/// A query for each of these numbers `k`: which rows of the table meet a condition with it?
fn with(condition: &str, numbers: &[String]) -> String {
    format!(
        "SELECT k || ': ' || coalesce((SELECT string_agg(id::text, ',' ORDER BY id) FROM t WHERE {condition}), 'none')
         FROM unnest('{{{}}}'::integer[]) WITH ORDINALITY AS key (k, i) ORDER BY i",
        numbers.join(",")
    )
}

/// Asserts that each index finds every row that it should have.
fn verify(client: &mut Client) -> i64 {
    let mut rows = 0;
    for index in indexes(client, "t") {
        rows += check(client, &index);
    }
    rows
}

/// A crash in the middle of a transaction that has changed the table and not committed.
fn crash(server: &Server, client: &mut Client, actions: &mut Actions) {
    let mut other = server.connect("history");
    run(&mut other, &format!("BEGIN; {}", actions.insert(300)));
    run(client, &actions.insert(50));
    server.kill9();
    server.restart();
    *client = server.connect("history");
}

#[test]
fn a_random_history_hides_no_row() {
    let server = Server::start(
        "wal_consistency_checking = 'generic'\nautovacuum = off\nmax_wal_size = 64MB\nmin_parallel_table_scan_size = 0",
    );
    let mut client = server.database("history");
    let mut random = random(1);
    run(&mut client, TABLE);
    let mut actions = Actions::new(Random(random.bits()));
    let (mut answers, mut checked, mut crashes) = (0, 0, 0);
    for step in 1..=times(STEPS) {
        if step % CRASH_EVERY == 0 {
            println!("{step}: crash");
            crash(&server, &mut client, &mut actions);
            crashes += 1;
        } else {
            actions.step(&mut client, step);
        }
        answers += ask(&mut client, &mut random, actions.key_type());
        checked += verify(&mut client);
    }
    let rows: i64 = value(&mut client, "SELECT count(*) FROM t");
    println!(
        "{rows} rows in the end, {crashes} crashes, {answers} answers, {checked} rows checked; {}",
        actions.said()
    );
}
