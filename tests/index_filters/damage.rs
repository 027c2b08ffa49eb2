//! Damaged files: each question is answered or fails with an error that names the block and says REINDEX. An answer
//! that is wrong is one that `bloom_index_check` finds. No session dies, and REINDEX mends everything.

use crate::common::asking::{agree, check};
use crate::common::files::{assert_no_crash, damage, found, refuses};
use crate::common::{Random, Server, column, random, run, times, value};
use crate::{FILTER, QUESTIONS};
use postgres::Client;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Indexes of one table, each damaged in another way.
const INDEXES: usize = 40;
const PAGE: usize = 8192;
/// What the special space of directory pages and of row pages says: docs/format.md, section 16.
const DIRECTORY: u8 = 2;
const ROWS: u8 = 6;

/// Damages fields of a directory page or a row page, and says how.
fn damage_numbers(random: &mut Random, file: &mut [u8]) -> String {
    let wanted = *random.pick(&[DIRECTORY, ROWS]);
    let pages: Vec<usize> = (0..file.len() / PAGE).filter(|page| file[page * PAGE + PAGE - 3] == wanted).collect();
    let page = *random.pick(&pages);
    let at = page * PAGE + 24 + random.below(if wanted == DIRECTORY { 200 } else { 8000 });
    let before = file[at];
    let others: Vec<u8> = [0, 1, 2, 3, 127, 128, 255].into_iter().filter(|&number| number != before).collect();
    let number = *random.pick(&others);
    file[at] = number;
    format!("byte {} of page {page}, of kind {wanted}, from {before} to {number}", at - page * PAGE)
}

/// Questions that only index `n` is for.
fn questions(random: &mut Random, n: usize) -> Vec<String> {
    let conditions = QUESTIONS.iter().map(|question| {
        let ids = question.replace("SELECT id ", "SELECT id::text AS id ");
        ids.replace('$', &random.below(400).to_string()).replace("WHERE ", &format!("WHERE n <> {n} AND "))
    });
    conditions.collect()
}

/// A question and its rows.
type Asked = (String, Vec<String>);

/// What became of a damaged index.
fn outcome(client: &mut Client, asked: &[Asked], n: usize, damage: &str) -> &'static str {
    let check = format!("SELECT bloom_index_check('d{n}')");
    let mut outcome = "unharmed";
    run(client, "SET enable_seqscan = off; SET enable_bitmapscan = on");
    for (sql, there) in asked {
        match found(client, damage, sql) {
            None => outcome = "refused",
            Some(found) if found == *there => {}
            Some(found) => {
                let is_found = refuses(client, damage, &check);
                assert!(is_found, "{damage}: the check finds nothing wrong: {sql}: {found:?}, not {there:?}");
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

/// Inserts into one damaged index, which grows by that, or fails. (Nobody but a test may do that.)
fn insert(client: &mut Client, n: usize, damage: &str) {
    run(
        client,
        &format!(
            "UPDATE pg_index SET indisready = (indexrelid = 'd{n}'::regclass) WHERE indrelid = 'f'::regclass
                AND indisready <> (indexrelid = 'd{n}'::regclass)"
        ),
    );
    for rows in [1, 30] {
        let sql = format!("INSERT INTO f SELECT 100000 + i, made(i), -1 FROM generate_series(1, {rows}) AS i");
        refuses(client, damage, &sql);
    }
    refuses(client, damage, "VACUUM f");
}

#[test]
fn damaged_files_are_refused_or_found_by_the_check() {
    let server = Server::start("autovacuum = off\nstatement_timeout = 60s");
    let mut client = server.database("damage");
    let mut random = random(40);
    run(&mut client, FILTER);
    run(&mut client, "DROP INDEX f_seen; ALTER TABLE f ADD n integer NOT NULL DEFAULT -1");
    run(&mut client, "INSERT INTO f SELECT i, made(i) FROM generate_series(1, 250) AS i");
    for n in 0..INDEXES {
        run(&mut client, &format!("CREATE INDEX d{n} ON f USING bloom_filter (seen) WHERE n <> {n}"));
    }
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..times(1) {
        let paths: Vec<PathBuf> = (0..INDEXES)
            .map(|n| value::<String>(&mut client, &format!("SELECT pg_relation_filepath('d{n}')")))
            .map(|path| server.dir().join("data").join(path))
            .collect();
        let mut asked: Vec<Vec<Asked>> = Vec::new();
        for n in 0..INDEXES {
            let with_rows = |sql: String| (column(&mut client, &sql), sql);
            let all = questions(&mut random, n).into_iter().map(with_rows);
            asked.push(all.map(|(rows, sql)| (sql, rows)).collect());
        }
        server.stop();
        let damages: Vec<String> = paths
            .iter()
            .map(|path| {
                let mut file = std::fs::read(path).expect("an index has a file");
                let is_of_numbers = random.below(2) == 0;
                let said =
                    if is_of_numbers { damage_numbers(&mut random, &mut file) } else { damage(&mut random, &mut file) };
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
        run(&mut client, "UPDATE pg_index SET indisready = true WHERE indrelid = 'f'::regclass");
        (0..INDEXES).for_each(|n| run(&mut client, &format!("REINDEX INDEX d{n}")));
        run(&mut client, "DELETE FROM f WHERE id > 100000");
        for n in 0..INDEXES {
            for sql in questions(&mut random, n) {
                agree(&mut client, &format!("d{n}"), &sql);
            }
        }
    }
    assert_no_crash(&server);
    println!("{} files: {outcomes:?}", times(1) * INDEXES);
    // With checksums, which PostgreSQL 18 has unless told otherwise, hardly any damage is harmless.
    let has_checksums: String = value(&mut client, "SHOW data_checksums");
    let expected = if has_checksums == "on" { 2 } else { 3 };
    assert!(outcomes.len() >= expected, "not every outcome was seen: {outcomes:?}");
}

/// Slots of rows that are gone and whose places others have now: the index would find these by filters of those.
/// (Nobody but a test may hide an index from VACUUM, which needs another one to know that the table has some.)
#[test]
fn the_check_sees_filters_that_are_not_the_rows_own() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("others");
    run(&mut client, FILTER);
    run(&mut client, "CREATE INDEX f_id ON f (id)");
    // Rows without a filter, and with one that has no slot, as well.
    let fill = |first: usize| {
        format!(
            "INSERT INTO f SELECT i, made(i) FROM generate_series({first}, {first} + 20) AS i; INSERT INTO f VALUES (-1)"
        )
    };
    let ready = |is: bool| format!("UPDATE pg_index SET indisready = {is} WHERE indexrelid = 'f_seen'::regclass");
    run(&mut client, &fill(1));
    assert_eq!(check(&mut client, "f_seen"), 21);
    for sql in [&ready(false), "DELETE FROM f", "VACUUM f", &ready(true), &fill(101)] {
        for statement in sql.split("; ") {
            run(&mut client, statement);
        }
    }
    let error = client.query_one("SELECT bloom_index_check('f_seen')", &[]).expect_err("rows have two filters");
    let error = error.as_db_error().expect("the server raised it");
    assert_eq!(error.code().code(), "XX002", "{error:?}");
    assert!(error.message().contains("has another filter for row (0,1)"), "{error:?}");
    run(&mut client, "REINDEX INDEX f_seen");
    assert_eq!(check(&mut client, "f_seen"), 21);
}
