//! Damaged files of indexes over filters, and filters that are not a row's own.

use crate::common::asking::check;
use crate::common::damaged::Damaged;
use crate::common::{Random, Server, files, run};
use crate::{FILTER, QUESTIONS};

/// Indexes of one table, each damaged in another way.
const INDEXES: usize = 40;
const PAGE: usize = 8192;
/// What the special space of directory pages and of row pages says: docs/format.md, section 16.
const DIRECTORY: u8 = 2;
const ROWS: u8 = 6;

const DAMAGED: Damaged = Damaged {
    table: "f",
    indexes: INDEXES,
    questions,
    inserts: &[
        "INSERT INTO f SELECT 100000 + i, made(i), -1 FROM generate_series(1, 1) AS i",
        "INSERT INTO f SELECT 100000 + i, made(i), -1 FROM generate_series(1, 30) AS i",
    ],
    damage,
    is_exact: true,
    may_be_harmless: true,
};

/// Damages anything, or what is hit by that too rarely.
fn damage(random: &mut Random, file: &mut Vec<u8>) -> String {
    if random.below(2) == 0 { damage_numbers(random, file) } else { files::damage(random, file) }
}

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

#[test]
fn damaged_files_are_refused_or_found_by_the_check() {
    let server = Server::start("autovacuum = off\nstatement_timeout = 60s");
    let mut client = server.database("damage");
    run(&mut client, FILTER);
    run(&mut client, "DROP INDEX f_seen; ALTER TABLE f ADD n integer NOT NULL DEFAULT -1");
    run(&mut client, "INSERT INTO f SELECT i, made(i) FROM generate_series(1, 250) AS i");
    for n in 0..INDEXES {
        run(&mut client, &format!("CREATE INDEX d{n} ON f USING bloom_filter (seen) WHERE n <> {n}"));
    }
    DAMAGED.live(&server, client, 40);
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
