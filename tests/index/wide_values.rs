//! Wide values far apart, in a table that was empty when its index was made: the index stays small,
//! as its page promises, and a value with many keys is written page by page.

use crate::common::asking::{agree, check};
use crate::common::{run, value};
use crate::server;
use postgres::Client;

/// Pages of the table that have no value, between wide ones.
const EMPTY_PAGES: u32 = 3000;
/// A tile is for so many pages at most: that of a wide value has room for more than its page.
const MOST_PAGES_OF_TILE: u32 = 1024;
/// The page promises that the index of pages without a key takes at most a tenth of their bytes.
const MOST_SHARE: f64 = 0.1;

/// `document(n, words)` is a text whose words are in no other document.
const FUNCTION: &str = "
    CREATE FUNCTION document(n integer, words integer) RETURNS text IMMUTABLE LANGUAGE sql AS
        $$ SELECT string_agg(md5(n || ':' || j), ' ') FROM generate_series(1, words) AS j $$";
const TABLE: &str = "
    CREATE TABLE t (id bigint, pad text, body text) WITH (autovacuum_enabled = off);
    ALTER TABLE t ALTER pad SET STORAGE PLAIN, ALTER body SET STORAGE EXTERNAL;
    CREATE INDEX t_body ON t USING bloom_filter (body text_ngram_ops);
    INSERT INTO t SELECT -i, '', 'Short ' || i FROM generate_series(1, 10) AS i";

fn table(database: &str) -> Client {
    let mut client = server().database(database);
    run(&mut client, FUNCTION);
    run(&mut client, TABLE);
    client
}

/// Adds pages without a value, each of which has this number of rows.
fn add_empty_pages(client: &mut Client, rows_per_page: u32) {
    let pad_bytes = 7800 / rows_per_page - 40;
    let rows = EMPTY_PAGES * rows_per_page;
    run(
        client,
        &format!(
            "INSERT INTO t (id, pad) SELECT i, repeat('-', {pad_bytes}) FROM generate_series(1, {rows}) AS i"
        ),
    );
}

fn index_bytes(client: &mut Client) -> i64 {
    value(client, "SELECT pg_relation_size('t_body')")
}

/// Runs a statement that adds a wide value behind the empty pages. The index must not grow by more
/// than it may.
fn assert_grows_little(client: &mut Client, statement: &str) {
    let before = index_bytes(client);
    run(client, statement);
    let page: i64 =
        value(client, "SELECT max((ctid::text::point)[0]::bigint) FROM t WHERE body IS NOT NULL");
    assert!(page + 1 >= i64::from(EMPTY_PAGES), "the value is on page {page}");
    let grown = index_bytes(client) - before;
    let most = MOST_SHARE * f64::from(EMPTY_PAGES + MOST_PAGES_OF_TILE) * 8192.0;
    assert!(
        grown as f64 <= most,
        "{statement}: the index grew by {grown} bytes, at most {most} are promised"
    );
    check(client, "t_body");
}

/// Fills the pages that were skipped: what is there later is found as well.
fn assert_finds_later_values(client: &mut Client) {
    run(client, "UPDATE t SET body = document(id::integer, 20) WHERE id > 0 AND id % 970 = 0");
    check(client, "t_body");
    for word in ["970:3", "1940:20", "1:1", "0:2900"] {
        let sql = format!(
            "SELECT id::text FROM t WHERE body LIKE '%' || md5('{word}') || '%' ORDER BY 1"
        );
        agree(client, "t_body", &sql);
    }
}

/// A row on a page that was just begun says little about the pages before it.
#[test]
fn a_first_wide_value_after_vacuumed_pages() {
    let mut client = table("wide_vacuumed");
    add_empty_pages(&mut client, 1);
    run(&mut client, "INSERT INTO t (id) VALUES (0)");
    run(&mut client, "DELETE FROM t WHERE id > 0");
    run(&mut client, "VACUUM t");
    assert_grows_little(&mut client, "UPDATE t SET body = document(0, 3000) WHERE id = 0");
    assert_finds_later_values(&mut client);
}

#[test]
fn a_first_wide_value_after_rows_without_one() {
    let mut client = table("wide_first");
    add_empty_pages(&mut client, 10);
    assert_grows_little(&mut client, "INSERT INTO t VALUES (0, '', document(0, 30000))");
    assert_finds_later_values(&mut client);
}

#[test]
fn a_wide_value_far_behind_another_one() {
    let mut client = table("wide_far");
    run(&mut client, "INSERT INTO t VALUES (0, '', document(1, 30000))");
    add_empty_pages(&mut client, 1);
    assert_grows_little(&mut client, "INSERT INTO t VALUES (0, '', document(0, 3000))");
    assert_finds_later_values(&mut client);
}

#[test]
fn a_wide_value_far_behind_pages_that_are_split() {
    let mut client = table("wide_split");
    run(
        &mut client,
        "INSERT INTO t SELECT 0, '', document(i, 100) FROM generate_series(1, 600) AS i",
    );
    let ranges_per_page: i32 =
        value(&mut client, "SELECT (bloom_index_info('t_body')).ranges_per_page");
    assert!(ranges_per_page > 1, "pages are split");
    add_empty_pages(&mut client, 10);
    assert_grows_little(&mut client, "INSERT INTO t VALUES (0, '', document(0, 3000))");
    assert_finds_later_values(&mut client);
}

/// Wide documents of a type whose index has several levels.
#[test]
fn a_wide_document_far_behind_another_one() {
    let mut client = table("wide_jsonb");
    run(
        &mut client,
        "DROP INDEX t_body;
         DELETE FROM t;
         ALTER TABLE t ALTER body TYPE jsonb USING NULL;
         CREATE INDEX t_body ON t USING bloom_filter (body);
         INSERT INTO t VALUES (0, '', to_jsonb(string_to_array(document(1, 30000), ' ')))",
    );
    add_empty_pages(&mut client, 1);
    assert_grows_little(
        &mut client,
        "INSERT INTO t VALUES (0, '', to_jsonb(string_to_array(document(0, 3000), ' ')))",
    );
    for word in ["0:2900", "1:29000", "2:1"] {
        agree(
            &mut client,
            "t_body",
            &format!("SELECT id::text FROM t WHERE body ? md5('{word}') ORDER BY 1"),
        );
    }
}

/// Pages of the index are written once for a value, however many keys it has: its WAL is little more
/// than that of the pages.
#[test]
fn a_value_with_many_keys_is_written_page_by_page() {
    /// Every two characters are a key.
    const CHARACTERS: u32 = 400_000;
    const INSERT: &str = "INSERT INTO t SELECT n, body FROM documents WHERE n = 2";
    let mut client = server().database("wide_pages");
    run(
        &mut client,
        &format!(
            "CREATE TABLE documents AS
                 SELECT n, string_agg(chr(19968 + (hashint8extended(i, n) & 16383)::integer), '') AS body
                 FROM generate_series(1, {CHARACTERS}) AS i, generate_series(1, 2) AS n GROUP BY n;
             CREATE TABLE t (n integer, body text);
             ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
             INSERT INTO t SELECT n, body FROM documents WHERE n = 1;
             CREATE INDEX t_body ON t USING bloom_filter (body text_ngram_ops)"
        ),
    );
    // The first reader of new rows notes that they are visible: PostgreSQL 19 writes WAL for that.
    run(&mut client, "VACUUM documents");
    let with_index = wal_of(&mut client, INSERT);
    check(&mut client, "t_body");
    agree(
        &mut client,
        "t_body",
        "SELECT n::text FROM t
         WHERE body LIKE '%' || (SELECT substr(body, 77777, 12) FROM documents WHERE n = 2) || '%'",
    );
    let size = index_bytes(&mut client);
    assert!(size > 20 * 8192, "the index has {size} bytes");
    run(&mut client, "DROP INDEX t_body");
    let without_index = wal_of(&mut client, INSERT);
    let wal_of_index = with_index - without_index;
    assert!(wal_of_index < 2 * size, "{wal_of_index} bytes of WAL for an index of {size}");
}

/// Returns how many bytes of WAL a statement writes. Other tests write to the same server, so this is
/// what PostgreSQL counts for the statement.
fn wal_of(client: &mut Client, statement: &str) -> i64 {
    const WAL_OF: &str =
        "CREATE OR REPLACE FUNCTION wal_of(statement text) RETURNS bigint LANGUAGE plpgsql AS
         $$ DECLARE plan json; BEGIN
             EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT JSON) ' || statement INTO plan;
             RETURN plan -> 0 -> 'Plan' ->> 'WAL Bytes';
         END $$";
    run(client, WAL_OF);
    run(client, "CHECKPOINT");
    value(client, &format!("SELECT wal_of('{statement}')"))
}
