//! Damaged files of indexes: each question is answered or fails with an error that names the block and says REINDEX.
//! An answer that lacks a row is one that `bloom_index_check` finds. No session dies, and REINDEX mends everything.

use crate::common::asking::{agree, any, each};
use crate::common::files::{assert_no_crash, damage, found, refuses};
use crate::common::{Random, Server, run, value};
use crate::{random, times};
use postgres::Client;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Indexes of one table, each damaged in another way.
const INDEXES: usize = 48;
/// Every row is in each of the indexes, and only that query uses index `n` that says `n <> …`.
fn fill(client: &mut Client) {
    run(
        client,
        "CREATE TABLE t (id bigint, x text, n integer NOT NULL DEFAULT -1, pad text) WITH (autovacuum_enabled = off);
         ALTER TABLE t ALTER pad SET STORAGE PLAIN;
         INSERT INTO t SELECT i, md5((i % 4000)::text), -1, repeat('-', 2500) FROM generate_series(1, 3600) AS i",
    );
    for n in 0..INDEXES {
        run(
            client,
            &format!("CREATE INDEX d{n} ON t USING bloom_filter (x) WITH (pages_per_range = 1) WHERE n <> {n}"),
        );
    }
}

/// Questions for index `n`, of which the first is one for every key.
fn questions(random: &mut Random, n: usize) -> [String; 2] {
    let keys: Vec<String> = (0..60).map(|_| format!("md5('{}')", random.below(4200))).collect();
    let condition = format!(" AND n <> {n}");
    [any("t", "x", &condition, &keys), each("t", "x", &condition, &keys[..12])]
}

/// A question and its rows.
type Asked = (String, Vec<String>);

/// What became of a damaged index. The answers are from before it was damaged: to plan a sequential scan PostgreSQL
/// looks at the index as well.
fn outcome(client: &mut Client, asked: &[Asked], n: usize, damage: &str) -> &'static str {
    let check = format!("SELECT bloom_index_check('d{n}')");
    let mut outcome = "unharmed";
    for (sql, there) in asked {
        run(client, "SET enable_seqscan = off; SET enable_bitmapscan = on");
        match found(client, damage, sql) {
            None => outcome = "refused",
            Some(found) if found == *there => {}
            Some(found) => {
                assert!(found.len() <= there.len(), "{damage}: rows that nobody asked for");
                assert!(refuses(client, damage, &check), "{damage}: the check finds nothing wrong: {sql}");
                outcome = "found by the check";
            }
        }
    }
    if outcome == "unharmed" && refuses(client, damage, &check) {
        outcome = "found by the check";
    }
    refuses(client, damage, &format!("SELECT bloom_index_info('d{n}')"));
    outcome
}

/// Makes index `n` the only one that rows are inserted into. (Nobody but a test may do that.)
fn only(client: &mut Client, n: usize) {
    run(
        client,
        &format!(
            "UPDATE pg_index SET indisready = (indexrelid = 'd{n}'::regclass) WHERE indrelid = 't'::regclass
                AND indisready <> (indexrelid = 'd{n}'::regclass)"
        ),
    );
}

/// Inserts into damaged indexes, which grow by that, or fail.
fn insert(client: &mut Client, n: usize, damage: &str) {
    only(client, n);
    for (rows, pad) in [(1, 0), (30, 10), (300, 2500)] {
        let sql = format!(
            "INSERT INTO t SELECT 100000 + i, md5(i::text), -1, repeat('-', {pad}) FROM generate_series(1, {rows}) AS i"
        );
        refuses(client, damage, &sql);
    }
    refuses(client, damage, "VACUUM t");
}

#[test]
fn damaged_files_are_refused_or_found_by_the_check() {
    let server = Server::start("autovacuum = off\nstatement_timeout = 60s");
    let mut client = server.database("damage");
    let mut random = random(4);
    fill(&mut client);
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..times(1) {
        let paths: Vec<PathBuf> = (0..INDEXES)
            .map(|n| value::<String>(&mut client, &format!("SELECT pg_relation_filepath('d{n}')")))
            .map(|path| server.dir().join("data").join(path))
            .collect();
        let mut ask = |n| {
            questions(&mut random, n).map(|sql| {
                let there = crate::common::column(&mut client, &sql);
                (sql, there)
            })
        };
        let asked: Vec<[Asked; 2]> = (0..INDEXES).map(&mut ask).collect();
        server.stop();
        let damages: Vec<String> = paths
            .iter()
            .map(|path| {
                let mut file = std::fs::read(path).expect("an index has a file");
                let said = damage(&mut random, &mut file);
                std::fs::write(path, file).expect("the file can be written");
                said
            })
            .collect();
        server.restart();
        client = server.connect("damage");
        for (n, damage) in damages.iter().enumerate() {
            let outcome = outcome(&mut client, &asked[n], n, damage);
            println!("index {n}: {damage}: {outcome}");
            *outcomes.entry(outcome).or_default() += 1;
        }
        for (n, damage) in damages.iter().enumerate() {
            insert(&mut client, n, damage);
        }
        run(&mut client, "UPDATE pg_index SET indisready = true WHERE indrelid = 't'::regclass");
        (0..INDEXES).for_each(|n| run(&mut client, &format!("REINDEX INDEX d{n}")));
        run(&mut client, "DELETE FROM t WHERE id > 100000");
        for n in 0..INDEXES {
            for sql in questions(&mut random, n) {
                agree(&mut client, &format!("d{n}"), &sql);
            }
        }
    }
    assert_no_crash(&server);
    println!("{} files: {outcomes:?}", times(1) * INDEXES);
    // With checksums, which PostgreSQL 18 has unless told otherwise, no damage is harmless.
    let has_checksums: String = value(&mut client, "SHOW data_checksums");
    let expected = if has_checksums == "on" { 2 } else { 3 };
    assert!(outcomes.len() == expected, "not every outcome was seen: {outcomes:?}");
}
