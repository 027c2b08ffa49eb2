//! Damaged pages of a table: lookups of other keys that are on them give what they gave before, and
//! the check of an index ends.

use crate::common::files::assert_no_crash;
use crate::common::{Server, column, run, sqlstate, value};
use postgres::Client;
use std::path::PathBuf;

const PAGE: usize = 8192;
const PAGE_HEADER: usize = 24;
const LINE: usize = 4;
/// Where a page says how far its lines go.
const LOWER: usize = 12;
/// Where a row says on which line its next version is, and where its columns begin.
const NEXT_LINE: usize = 16;
const FIRST_COLUMN: usize = 22;
/// Where the text begins in rows of the table.
const TEXT: usize = 32;

/// The flags of a line that stands for another one.
const REDIRECT: u32 = 2;

/// What a line pointer says: where its row begins, its flags and the bytes of its row.
#[derive(Clone, Copy)]
struct Line {
    start: u32,
    flags: u32,
    length: u32,
}

fn line(page: &[u8], number: usize) -> Line {
    let at = PAGE_HEADER + (number - 1) * LINE;
    let bits = u32::from_le_bytes(page[at..at + LINE].try_into().expect("four bytes"));
    Line {
        start: bits & 0x7FFF,
        flags: bits >> 15 & 3,
        length: bits >> 17,
    }
}

fn write_line(page: &mut [u8], number: usize, Line { start, flags, length }: Line) {
    let at = PAGE_HEADER + (number - 1) * LINE;
    page[at..at + LINE].copy_from_slice(&(start | flags << 15 | length << 17).to_le_bytes());
}

/// Makes a row's next version the one on this line.
fn lead(page: &mut [u8], from: usize, to: u16) {
    let at = line(page, from).start as usize + NEXT_LINE;
    page[at..at + 2].copy_from_slice(&to.to_le_bytes());
}

/// A table whose first page has rows that were updated there, some of them in the transaction that
/// inserted them; and its sound first page.
struct Table {
    server: Server,
    path: PathBuf,
    sound: Vec<u8>,
    /// The lines of the three versions of row 1000, and those that stand for rows 2001 and 2002,
    /// whose first versions VACUUM has removed.
    versions: [usize; 3],
    redirects: [usize; 2],
}

/// A way to damage a page.
type Change = Box<dyn Fn(&mut [u8])>;

/// Keys that rows of the first page have beside the damaged ones: of rows never updated, updated
/// once, and updated and vacuumed.
const KEYS: [&str; 4] = ["plain 3", "updated 15", "vacuumed 35", "last"];

impl Table {
    fn make() -> (Table, Client) {
        let server = Server::start("autovacuum = off\nignore_checksum_failure = on");
        let mut client = server.database("damaged");
        for sql in [
            "CREATE TABLE t (id integer, n integer, x text, tags text[]) WITH (autovacuum_enabled = off);
             CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 1);
             CREATE INDEX t_tags ON t USING bloom_filter (tags) WITH (pages_per_range = 1);
             CREATE FUNCTION add(i integer, x text) RETURNS void LANGUAGE sql AS
                 'INSERT INTO t VALUES (i, 0, x, ARRAY[x])';
             SELECT add(i, 'plain ' || i) FROM generate_series(1, 9) AS i;
             SELECT add(i, 'updated ' || i) FROM generate_series(10, 19) AS i;
             SELECT add(i, 'vacuumed ' || i) FROM generate_series(30, 39) AS i;
             SELECT add(2001, 'redirect 1'), add(2002, 'redirect 2')",
            "UPDATE t SET n = 1 WHERE id IN (2001, 2002) OR x LIKE 'vacuumed%'",
            "VACUUM t",
            "UPDATE t SET n = 1 WHERE x LIKE 'updated%'",
            "SELECT add(9999, 'last')",
            "BEGIN;
             SELECT add(1000, 'thrice');
             UPDATE t SET n = 1 WHERE id = 1000;
             UPDATE t SET n = 2 WHERE id = 1000;
             COMMIT",
            "ANALYZE t",
            "CHECKPOINT",
        ] {
            run(&mut client, sql);
        }
        assert_eq!(value::<i64>(&mut client, "SELECT pg_relation_size('t')"), PAGE as i64);
        let path: String = value(&mut client, "SELECT pg_relation_filepath('t')");
        let path = server.dir().join("data").join(path);
        let sound = std::fs::read(&path).expect("the table has a file");
        let lines = (usize::from(u16::from_le_bytes([sound[LOWER], sound[LOWER + 1]]))
            - PAGE_HEADER)
            / LINE;
        let versions = [lines - 2, lines - 1, lines];
        let redirects: Vec<usize> = (1..=lines)
            .filter(|&number| line(&sound, number).flags == REDIRECT)
            .collect();
        let redirects = redirects[redirects.len() - 2..].try_into().expect("two lines");
        (Table { server, path, sound, versions, redirects }, client)
    }

    /// Starts the server with another first page of the table.
    fn damaged(&self, damage: impl FnOnce(&mut [u8])) -> Client {
        self.server.stop();
        let mut page = self.sound.clone();
        damage(&mut page);
        std::fs::write(&self.path, page).expect("the file can be written");
        self.server.restart();
        let mut client = self.server.connect("damaged");
        run(
            &mut client,
            "SET client_min_messages = error; SET statement_timeout = '30s'; SET enable_seqscan = off",
        );
        client
    }
}

/// Asserts that lookups of keys by both indexes find the one row that has each.
fn assert_found(client: &mut Client, damage: &str) {
    for key in KEYS {
        let ids: Vec<i32> = column(client, &format!("SELECT id FROM t WHERE x = '{key}'"));
        assert_eq!(ids.len(), 1, "{damage}: {key}");
        // So many alternatives are compared here, not by PostgreSQL.
        let others: String = (0..10).map(|i| format!(", 'none {i}'")).collect();
        let sql = format!("SELECT id FROM t WHERE tags && ARRAY['{key}'{others}]");
        assert_eq!(column::<i32>(client, &sql), ids, "{damage}: {sql}");
    }
}

/// PostgreSQL's own function follows the chain without end, under the lock of the page.
#[test]
fn a_chain_that_leads_back_into_itself_is_left() {
    let (table, _) = Table::make();
    let [first, second, third] = table.versions;
    for (from, to) in [
        (first, first),
        (second, first),
        (second, second),
        (third, first),
    ] {
        let damage = format!("row version {from} leads to {to}");
        let mut client = table.damaged(|page| {
            lead(page, from, to as u16);
            if from == third {
                // It was updated too, it now says, by the same transaction.
                let [second, third] = [second, third].map(|at| line(page, at).start as usize);
                page.copy_within(second + 4..second + 8, third + 4);
                page.copy_within(second + 18..second + 20, third + 18);
                page.copy_within(second + 20..second + 22, third + 20);
            }
        });
        assert_found(&mut client, &damage);
        for index in ["t_x", "t_tags"] {
            let check = format!("SELECT bloom_index_check('{index}')");
            assert_eq!(sqlstate(&mut client, &check), "XX001", "{damage}: {check}");
        }
    }
    let mut client = table.damaged(|_| ());
    assert_found(&mut client, "none");
    for index in ["t_x", "t_tags"] {
        let check = format!("SELECT bloom_index_check('{index}')");
        assert_eq!(value::<i64>(&mut client, &check), 33);
    }
    assert_no_crash(&table.server);
}

#[test]
fn rows_that_nobody_can_read_hide_no_other_row() {
    let (table, _) = Table::make();
    let [first, second, _] = table.versions;
    let [redirect, other_redirect] = table.redirects;
    let to_nowhere = |from: usize, to: u16| move |page: &mut [u8]| lead(page, from, to);
    let redirected = |to: usize| {
        move |page: &mut [u8]| {
            let line = Line { start: to as u32, ..line(page, redirect) };
            write_line(page, redirect, line);
        }
    };
    let moved = |number: usize, start: u32, length: u32| {
        move |page: &mut [u8]| write_line(page, number, Line { start, flags: 1, length })
    };
    let written = |number: usize, at: usize, bytes: &'static [u8]| {
        move |page: &mut [u8]| {
            let start = line(page, number).start as usize + at;
            page[start..start + bytes.len()].copy_from_slice(bytes);
        }
    };
    let damages: [(&str, Change); 17] = [
        ("a version leads to line 0", Box::new(to_nowhere(first, 0))),
        ("a version leads behind the last line", Box::new(to_nowhere(first, 250))),
        ("a version leads behind any line", Box::new(to_nowhere(first, 292))),
        ("a version leads out of the page", Box::new(to_nowhere(second, u16::MAX))),
        ("a version leads to another row", Box::new(to_nowhere(second, 3))),
        ("a redirect leads to itself", Box::new(redirected(redirect))),
        ("a redirect leads to another", Box::new(redirected(other_redirect))),
        ("a redirect leads to line 0", Box::new(redirected(0))),
        ("a redirect leads behind the last line", Box::new(redirected(260))),
        ("a redirect leads out of the page", Box::new(redirected(0x7FFF))),
        ("a redirect leads to another row", Box::new(redirected(3))),
        ("a row begins out of the page", Box::new(moved(second, 0x7FF8, 40))),
        ("a row ends out of the page", Box::new(moved(second, 8168, 0x7FFF))),
        ("columns begin out of the row", Box::new(written(second, FIRST_COLUMN, &[248]))),
        ("columns begin at an odd place", Box::new(written(second, FIRST_COLUMN, &[25]))),
        (
            "a text is longer than the page",
            Box::new(written(second, TEXT, &[0xFC, 0xFF, 0xFF, 0xFF])),
        ),
        (
            "the page has fewer lines",
            Box::new(move |page| {
                let lower = (PAGE_HEADER + (first - 1) * LINE) as u16;
                page[LOWER..LOWER + 2].copy_from_slice(&lower.to_le_bytes());
            }),
        ),
    ];
    for (damage, change) in damages {
        let mut client = table.damaged(change);
        assert_found(&mut client, damage);
        for index in ["t_x", "t_tags"] {
            let state = sqlstate(&mut client, &format!("SELECT bloom_index_check('{index}')"));
            // Rows behind the last line are gone, those that no line leads to are not.
            let is_refused = damage != "the page has fewer lines";
            let expected = if is_refused { "XX001" } else { "00000" };
            assert_eq!(state, expected, "{damage}");
        }
    }
    assert_no_crash(&table.server);
}
