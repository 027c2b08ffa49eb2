//! Damaged files of indexes: each question is answered or fails with an error that names the block and says REINDEX.
//! An answer that lacks a row is one that `bloom_index_check` finds. No session dies, and REINDEX mends everything.

use crate::asking::{agree, any, each};
use crate::common::{Random, Server, run, value};
use crate::{random, times};
use postgres::Client;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Indexes of one table, each damaged in another way.
const INDEXES: usize = 48;
/// Bytes of a page, of PostgreSQL's header and of the special space.
const PAGE: usize = 8192;
const HEADER: usize = 24;
const SPECIAL: usize = 8;

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

/// A number that code may be wrong about.
fn odd_number(random: &mut Random) -> u32 {
    match random.below(3) {
        0 => *random.pick(&[0, 1, 2, 127, 128, 0xFFFF, i32::MAX as u32, 1 << 31, u32::MAX - 1, u32::MAX]),
        1 => random.below(300) as u32,
        _ => random.bits() as u32,
    }
}

/// Damages the file of an index in one of many ways, and says how.
fn damage(random: &mut Random, file: &mut Vec<u8>) -> String {
    let pages = file.len() / PAGE;
    // The metapage is one of many, and what matters most.
    let page = if random.below(3) == 0 { 0 } else { random.below(pages) };
    let (start, end) = (page * PAGE, (page + 1) * PAGE);
    let payload = start + HEADER..end - SPECIAL;
    let somewhere = |random: &mut Random, from: usize, to: usize| from + random.below(to - from);
    match random.below(12) {
        0 => {
            let at = somewhere(random, payload.start, payload.end);
            file[at] ^= 1 << random.below(8);
            format!("a bit of page {page}")
        }
        1 => {
            let at = somewhere(random, end - SPECIAL, end);
            file[at] = random.bits() as u8;
            format!("special space of page {page}")
        }
        2 => {
            let at = somewhere(random, start, start + HEADER);
            file[at] ^= 1 << random.below(8);
            format!("header of page {page}")
        }
        3 => {
            file[start..end].fill(0);
            format!("page {page} zeroed")
        }
        4 => {
            let other = random.below(pages);
            (0..PAGE).for_each(|i| file.swap(start + i, other * PAGE + i));
            format!("pages {page} and {other} swapped")
        }
        5 => {
            let left = random.below(pages);
            file.truncate(left * PAGE);
            format!("truncated to {left} of {pages} pages")
        }
        6 => {
            file[start..end].iter_mut().for_each(|byte| *byte = random.bits() as u8);
            format!("page {page} random")
        }
        7 => {
            file[payload.clone()].iter_mut().for_each(|byte| *byte = random.bits() as u8);
            format!("payload of page {page} random")
        }
        8 => {
            let other = random.below(pages);
            file.copy_within(start..end, other * PAGE);
            format!("page {page} copied over {other}")
        }
        9 => {
            file[payload.clone()].fill(0);
            format!("payload of page {page} zeroed")
        }
        // Fields of the metapage, and of its first runs.
        10 => {
            let field = random.below(16);
            let number = odd_number(random);
            file[HEADER + 4 * field..][..4].copy_from_slice(&number.to_le_bytes());
            format!("field {field} of the metapage is {number}")
        }
        _ => {
            let field = 16 + random.below(25);
            let number = odd_number(random);
            file[HEADER + 4 * field..][..4].copy_from_slice(&number.to_le_bytes());
            format!("field {field} of the metapage, in a run, is {number}")
        }
    }
}

/// What a statement did: nothing wrong, or an error that is as it should be.
fn refuses(client: &mut Client, damage: &str, sql: &str) -> bool {
    let Err(error) = client.simple_query(sql) else { return false };
    let error = error.as_db_error().unwrap_or_else(|| panic!("{damage}: {sql}: the session died: {error:?}"));
    let (state, hint) = (error.code().code(), error.hint().unwrap_or_default());
    let said = format!("{} / {}", error.message(), error.detail().unwrap_or_default());
    // XX001 is what PostgreSQL says of a page whose header is impossible, and of one behind the end of the file.
    assert!(["XX001", "XX002"].contains(&state), "{damage}: {sql}: {state} {said}");
    // The check names the row that it misses.
    let names = said.contains("block") || said.contains("misses row");
    assert!(names, "{damage}: {sql}: no block is named: {said}");
    assert!(state == "XX001" || hint.contains("REINDEX"), "{damage}: {sql}: {said}: hint {hint}");
    true
}

/// The rows that a query finds; nothing if it is refused.
fn found(client: &mut Client, damage: &str, sql: &str) -> Option<Vec<String>> {
    if refuses(client, damage, sql) {
        return None;
    }
    Some(crate::common::column(client, sql))
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
    let log = std::fs::read_to_string(server.dir().join("log")).expect("the server has a log");
    for sign in ["PANIC", "TRAP", "terminated by signal", "was not properly shut down"] {
        assert!(!log.contains(sign), "the log has {sign}");
    }
    println!("{} files: {outcomes:?}", times(1) * INDEXES);
    // With checksums, which PostgreSQL 18 has unless told otherwise, no damage is harmless.
    let has_checksums: String = value(&mut client, "SHOW data_checksums");
    let expected = if has_checksums == "on" { 2 } else { 3 };
    assert!(outcomes.len() == expected, "not every outcome was seen: {outcomes:?}");
}
