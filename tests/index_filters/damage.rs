//! Damaged files of indexes over filters, and filters that are not a row's own.

use crate::common::asking::check;
use crate::common::damaged::Damaged;
use crate::common::{Random, Server, files, run, value};
use crate::{FILTER, QUESTIONS};
use postgres::Client;
use std::path::{Path, PathBuf};

/// Indexes of one table, each damaged in another way.
const INDEXES: usize = 40;
const PAGE: usize = 8192;
/// What the special space of directory pages, row pages and pages of tiles says:
/// core/src/index/pages.md.
const DIRECTORY: u8 = 2;
const ROWS: u8 = 6;
const TILE: u8 = 5;

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
    if random.below(2) == 0 {
        damage_numbers(random, file)
    } else {
        files::damage(random, file)
    }
}

/// Damages fields of a directory page or a row page, and says how.
fn damage_numbers(random: &mut Random, file: &mut [u8]) -> String {
    let wanted = *random.pick(&[DIRECTORY, ROWS]);
    let pages: Vec<usize> = (0..file.len() / PAGE)
        .filter(|page| file[page * PAGE + PAGE - 3] == wanted)
        .collect();
    let page = *random.pick(&pages);
    let at = page * PAGE + 24 + random.below(if wanted == DIRECTORY { 200 } else { 8000 });
    let before = file[at];
    let others: Vec<u8> = [0, 1, 2, 3, 127, 128, 255]
        .into_iter()
        .filter(|&number| number != before)
        .collect();
    let number = *random.pick(&others);
    file[at] = number;
    format!("byte {} of page {page}, of kind {wanted}, from {before} to {number}", at - page * PAGE)
}

/// Questions that only index `n` is for.
fn questions(random: &mut Random, n: usize) -> Vec<String> {
    let conditions = QUESTIONS.iter().map(|question| {
        let ids = question.replace("SELECT id ", "SELECT id::text AS id ");
        ids.replace('$', &random.below(400).to_string())
            .replace("WHERE ", &format!("WHERE n <> {n} AND "))
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
        run(
            &mut client,
            &format!("CREATE INDEX d{n} ON f USING bloom_filter (seen) WHERE n <> {n}"),
        );
    }
    DAMAGED.live(&server, client, 40);
}

/// Slots of rows that are gone and whose places others have now: the index would find these by
/// filters of those. (Nobody but a test may hide an index from VACUUM, which needs another one to
/// know that the table has some.)
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
    let ready = |is: bool| {
        format!("UPDATE pg_index SET indisready = {is} WHERE indexrelid = 'f_seen'::regclass")
    };
    run(&mut client, &fill(1));
    assert_eq!(check(&mut client, "f_seen"), 21);
    for sql in [
        &ready(false),
        "DELETE FROM f",
        "VACUUM f",
        &ready(true),
        &fill(101),
    ] {
        for statement in sql.split("; ") {
            run(&mut client, statement);
        }
    }
    let error = client
        .query_one("SELECT bloom_index_check('f_seen')", &[])
        .expect_err("rows have two filters");
    let error = error.as_db_error().expect("the server raised it");
    assert_eq!(error.code().code(), "XX002", "{error:?}");
    assert!(error.message().contains("has another filter for row (0,1)"), "{error:?}");
    run(&mut client, "REINDEX INDEX f_seen");
    assert_eq!(check(&mut client, "f_seen"), 21);
}

/// An index of filters of one shape in a row page, and where in its file the states of the slots
/// are.
fn one_shape(server: &Server) -> (Client, PathBuf, usize) {
    let mut client = server.database("places");
    run(
        &mut client,
        "CREATE TABLE f AS SELECT g AS id, bloom_agg('e ' || g * 100 + i, 100) AS seen
             FROM generate_series(1, 20) AS g, generate_series(0, 99) AS i GROUP BY g ORDER BY g;
         CREATE INDEX f_seen ON f USING bloom_filter (seen); CHECKPOINT",
    );
    let path: String = value(&mut client, "SELECT pg_relation_filepath('f_seen')");
    let path = server.dir().join("data").join(path);
    let file = std::fs::read(&path).expect("an index has a file");
    let page = (0..file.len() / PAGE)
        .find(|page| file[page * PAGE + PAGE - 3] == ROWS)
        .expect("a row page");
    assert_eq!(file[page * PAGE + 24], 2, "slot 0 is used");
    (client, path, page * PAGE + 24)
}

/// Changes the file of the index while the server is stopped.
fn changed(
    server: &Server,
    mut client: Client,
    path: &Path,
    change: impl FnOnce(&mut Vec<u8>),
) -> Client {
    run(&mut client, "CHECKPOINT");
    server.stop();
    let mut file = std::fs::read(path).expect("an index has a file");
    change(&mut file);
    std::fs::write(path, file).expect("the file can be written");
    server.restart();
    let mut client = server.connect("places");
    run(&mut client, "SET enable_seqscan = off");
    client
}

/// Rows that the table can't have, and one that it could have.
#[test]
fn a_slot_of_a_row_that_the_table_lacks_is_refused() {
    let server = Server::start("autovacuum = off");
    let (mut client, path, states) = one_shape(&server);
    let row = states + (PAGE - 32) / 7;
    let beyond: u32 = value::<i64>(&mut client, "SELECT pg_relation_size('f') / 8192") as u32;
    let pages = [
        beyond,
        beyond + 1000,
        1 << 17,
        1 << 31,
        u32::MAX - 1,
        u32::MAX,
    ];
    let places = pages
        .map(|page| (page, 1))
        .into_iter()
        .chain([0, 292, u16::MAX].map(|line| (0, line)));
    for (page, line) in places.chain([(0, 200)]) {
        let mut before = Vec::new();
        client = changed(&server, client, &path, |file| {
            before.clone_from(file);
            file[row..row + 4].copy_from_slice(&page.to_le_bytes());
            file[row + 4..row + 6].copy_from_slice(&line.to_le_bytes());
        });
        let damage = format!("slot 0 has row ({page},{line})");
        let lookup = "SELECT id FROM f WHERE seen @> 'e 105'";
        for concurrency in [0, 10] {
            run(&mut client, &format!("SET effective_io_concurrency = {concurrency}"));
            // A row that could be there, and is not, is nothing to a query.
            assert!(
                files::refuses(&mut client, &damage, lookup) || line == 200,
                "{damage}: {lookup}"
            );
        }
        assert!(
            files::refuses(&mut client, &damage, "SELECT bloom_index_check('f_seen')"),
            "{damage}: the check"
        );
        run(&mut client, "VACUUM (INDEX_CLEANUP on) f");
        client = changed(&server, client, &path, |file| *file = before);
        assert_eq!(check(&mut client, "f_seen"), 20);
    }
    files::assert_no_crash(&server);
}

/// Rows that are gone, or were never committed, have slots that the check knows to be right.
#[test]
fn the_check_accepts_slots_of_rows_that_nobody_sees() {
    let server = Server::start("autovacuum = off");
    let (mut client, ..) = one_shape(&server);
    let rows =
        "SELECT g, bloom_from_array(ARRAY['a ' || g], 100) FROM generate_series(1, 200) AS g";
    run(&mut client, "DELETE FROM f WHERE id % 2 = 0");
    assert_eq!(check(&mut client, "f_seen"), 10);
    assert!(
        client
            .batch_execute(&format!("INSERT INTO f {rows}; SELECT 1 / 0"))
            .is_err()
    );
    assert_eq!(check(&mut client, "f_seen"), 10);
    // Reading prunes pages: the lines of these rows are dead then.
    run(&mut client, "SET enable_seqscan = on; SELECT count(*) FROM f");
    let mut other = server.connect("places");
    run(&mut other, &format!("BEGIN; INSERT INTO f {rows}"));
    assert_eq!(check(&mut client, "f_seen"), 10);
    run(&mut other, "ROLLBACK");
    run(&mut client, "VACUUM (INDEX_CLEANUP off, TRUNCATE on) f");
    assert_eq!(check(&mut client, "f_seen"), 10);
    run(&mut client, "VACUUM (INDEX_CLEANUP on, TRUNCATE on) f");
    assert_eq!(check(&mut client, "f_seen"), 10);
}

/// The pages of a tile are looked at before a slot of it is taken.
#[test]
fn an_insert_that_is_refused_takes_no_slot() {
    const INSERT: &str = "INSERT INTO f SELECT 0, seen FROM f WHERE id = 7";
    let server = Server::start("autovacuum = off");
    let (mut client, path, _) = one_shape(&server);
    run(&mut client, INSERT);
    let damages: [fn(&mut [u8]); 2] = [|page| page[PAGE - 8] ^= 1, |page| page[12] ^= 1];
    for damage in damages {
        let mut before = Vec::new();
        let mut damaged = Vec::new();
        client = changed(&server, client, &path, |file| {
            before.clone_from(file);
            file.chunks_mut(PAGE)
                .filter(|page| page[PAGE - 3] == TILE)
                .for_each(damage);
            damaged.clone_from(file);
        });
        for _ in 0..3 {
            assert!(files::refuses(&mut client, "pages of tiles", INSERT));
        }
        run(&mut client, "CHECKPOINT");
        assert!(
            std::fs::read(&path).expect("an index has a file") == damaged,
            "the index was written to"
        );
        client = changed(&server, client, &path, |file| *file = before);
    }
    // A page that a new tile would have.
    client = changed(&server, client, &path, |file| {
        let allocated = u32::from_le_bytes(file[40..44].try_into().expect("four bytes")) as usize;
        file.resize(allocated * PAGE, 0);
        file.extend_from_within(PAGE..2 * PAGE);
    });
    let before = std::fs::read(&path).expect("an index has a file");
    let other =
        "INSERT INTO f SELECT 200, bloom_agg(i::text, 5000) FROM generate_series(1, 5000) AS i";
    assert!(files::refuses(&mut client, "a page that was not allocated", other));
    run(&mut client, "CHECKPOINT");
    assert!(
        std::fs::read(&path).expect("an index has a file") == before,
        "the index was written to"
    );
    files::assert_no_crash(&server);
}
