//! Stored filters that don't fit into the server's memory: whatever is announced before it is read,
//! and whether anything may be, probes for many elements give the same answers.

use crate::common::{
    LAYOUTS, Random, Server, column, random, rows, run, state_of, value, with_buffers,
};
use postgres::Client;
use std::sync::OnceLock;

/// Buffers for a third of a filter below.
const BUFFERS: &str = "400kB";

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&with_buffers(BUFFERS)))
}

/// Elements of a filter that has bits: the numbers from 1 on.
const ELEMENTS: usize = 300_000;

/// Elements that a call probes a filter for: too few for it to fetch the whole filter.
const PROBED: usize = 100;

/// Makes a table with a large filter of each layout, and one that is a list of hashes. `word` is
/// what its kind of table needs after CREATE.
fn make(client: &mut Client, table: &str, word: &str, tablespace: &str) {
    run(client, &format!("CREATE {word} TABLE {table} (name text, f bloom) {tablespace}"));
    let filters = LAYOUTS.iter().map(|&layout| (layout, layout, ELEMENTS)).chain([(
        "list",
        "blocked",
        ELEMENTS / 5,
    )]);
    for (name, layout, elements) in filters {
        run(
            client,
            &format!(
                "INSERT INTO {table} SELECT '{name}', bloom_agg(x, 1000000, 0.01, '{layout}')
                 FROM generate_series(1, {elements}) AS x"
            ),
        );
    }
}

/// Reads whole filters, so that pages of others leave the buffers.
fn evict(client: &mut Client, table: &str) {
    rows(client, &format!("SELECT md5(bloom_send(f)) FROM {table}"));
}

/// Returns an array of numbers, of which half are in a filter that has bits.
fn some(random: &mut Random) -> String {
    let numbers: Vec<String> = (0..PROBED)
        .map(|_| (1 + random.below(2 * ELEMENTS)).to_string())
        .collect();
    format!("ARRAY[{}]", numbers.join(", "))
}

/// Returns which elements of an array a filter may have, when it is probed for all of them.
fn present(client: &mut Client, table: &str, name: &str, array: &str) -> Vec<i32> {
    value(client, &format!("SELECT bloom_present(f, {array}) FROM {table} WHERE name = '{name}'"))
}

/// Compares probes for an array with probes for one element after the other.
fn ask(client: &mut Client, table: &str, random: &mut Random) {
    let names: Vec<String> = column(client, &format!("SELECT name FROM {table} ORDER BY name"));
    for name in names {
        let array = some(random);
        let one_by_one: Vec<i32> = column(
            client,
            &format!(
                "SELECT x FROM {table}, unnest({array}) WITH ORDINALITY AS elements (x, i)
                 WHERE name = '{name}' AND f @> x ORDER BY i"
            ),
        );
        evict(client, table);
        assert_eq!(present(client, table, &name, &array), one_by_one, "{table}, {name}");
        evict(client, table);
        let absent: i32 = value(
            client,
            &format!(
                "SELECT cardinality(bloom_absent(f, {array})) FROM {table} WHERE name = '{name}'"
            ),
        );
        assert_eq!(absent as usize, PROBED - one_by_one.len(), "{table}, {name}");
        evict(client, table);
        let any_and_all = rows(
            client,
            &format!(
                "SELECT bloom_contains_any(f, {array}), bloom_contains_all(f, {array})
                 FROM {table} WHERE name = '{name}'"
            ),
        );
        assert_eq!(any_and_all[0].get::<_, bool>(0), !one_by_one.is_empty());
        assert_eq!(any_and_all[0].get::<_, bool>(1), one_by_one.len() == PROBED);
    }
}

fn make_tablespaces(client: &mut Client) {
    for (name, concurrency) in [("without", 0), ("with_much", 1000)] {
        run(
            client,
            &format!(
                "CREATE TABLESPACE {name} LOCATION '' WITH (effective_io_concurrency = {concurrency})"
            ),
        );
    }
}

/// Returns how often the index of a table's TOAST table was searched while a filter was probed for
/// an array: once for the start of the filter, once for each slice, and once for each slice that was
/// announced.
fn searches(client: &mut Client, table: &str, name: &str, array: &str) -> i64 {
    let searches_so_far = |client: &mut Client| -> i64 {
        run(client, "SELECT pg_stat_force_next_flush()");
        let sql =
            "SELECT idx_scan FROM pg_stat_all_indexes JOIN pg_class AS t ON relid = t.reltoastrelid
            WHERE t.oid = $1::text::regclass";
        client
            .query_one(sql, &[&table])
            .expect("a TOAST table has an index")
            .get(0)
    };
    let before = searches_so_far(client);
    present(client, table, name, array);
    searches_so_far(client) - before
}

/// Searches of the TOAST index if nothing is announced.
const WITHOUT_ANNOUNCEMENTS: i64 = 1 + PROBED as i64;

#[test]
fn slices_on_disk_are_announced_whatever_the_answers_are() {
    let mut client = server().database("cold");
    let mut random = random(77);
    make_tablespaces(&mut client);
    run(&mut client, "SET temp_buffers = '800kB'");
    let tables = [
        ("usual", "", ""),
        ("unlogged", "UNLOGGED", ""),
        ("temporary", "TEMPORARY", ""),
        ("quiet", "", "TABLESPACE without"),
        ("loud", "", "TABLESPACE with_much"),
    ];
    for (table, word, tablespace) in tables {
        make(&mut client, table, word, tablespace);
        for concurrency in [0, 1, 16, 1000] {
            run(&mut client, &format!("SET effective_io_concurrency = {concurrency}"));
            ask(&mut client, table, &mut random);

            evict(&mut client, table);
            let searches = searches(&mut client, table, "blocked", &some(&mut random));
            let announced = searches - WITHOUT_ANNOUNCEMENTS;
            let is_turned_off = table == "quiet" || (concurrency == 0 && table != "loud");
            // The first slice is read before anything is announced. If the last slice of a group
            // happens to be in memory, some of the next group aren't announced either.
            let expected =
                if is_turned_off { 0..=0 } else { PROBED as i64 / 2..=PROBED as i64 - 1 };
            assert!(expected.contains(&announced), "{table}, {concurrency}: {announced}");
        }
    }
}

#[test]
fn slices_in_memory_are_not_announced() {
    let server = Server::start("shared_buffers = 64MB\nautovacuum = off");
    let mut client = server.database("warm");
    let mut random = random(78);
    make(&mut client, "t", "", "");
    run(&mut client, "SET effective_io_concurrency = 16");
    for _ in 0..3 {
        let array = some(&mut random);
        assert_eq!(searches(&mut client, "t", "blocked", &array), WITHOUT_ANNOUNCEMENTS);
    }

    // The same server without these pages in memory.
    server.restart();
    let mut client = server.connect("warm");
    run(&mut client, "SET effective_io_concurrency = 16");
    let array = some(&mut random);
    assert!(searches(&mut client, "t", "blocked", &array) > WITHOUT_ANNOUNCEMENTS);
    assert_eq!(searches(&mut client, "t", "blocked", &array), WITHOUT_ANNOUNCEMENTS);
}

/// Small filters are of few pages, and no part of a compressed one can be fetched alone.
#[test]
fn small_and_compressed_filters_are_not_announced() {
    let mut client = server().database("small");
    make(&mut client, "others", "", "");
    run(
        &mut client,
        "SET effective_io_concurrency = 16;
         CREATE TABLE small AS SELECT 'small' AS name, bloom_agg(x, 90000) AS f
             FROM generate_series(1, 60000) AS x;
         CREATE TABLE compressed (name text, f bloom);
         ALTER TABLE compressed ALTER f SET STORAGE EXTENDED;
         INSERT INTO compressed SELECT 'compressed', bloom_agg(x, 5000000, 0.5)
             FROM generate_series(1, 120000) AS x",
    );
    let sizes = "SELECT octet_length(f::bytea), pg_column_size(f) FROM small UNION ALL
        SELECT octet_length(f::bytea), pg_column_size(f) FROM compressed";
    let sizes: Vec<[i32; 2]> = rows(&mut client, sizes)
        .iter()
        .map(|row| [row.get(0), row.get(1)])
        .collect();
    assert!((90_000..131_072).contains(&sizes[0][0]), "{sizes:?}");
    assert!(sizes[1][1] < sizes[1][0] * 9 / 10, "{sizes:?}");

    evict(&mut client, "others");
    assert_eq!(searches(&mut client, "small", "small", "ARRAY[1, 2, 3, -1, 700000]"), 6);
    // A compressed filter is fetched once.
    evict(&mut client, "others");
    let array = some(&mut random(79));
    assert_eq!(searches(&mut client, "compressed", "compressed", &array), 1);
}

/// A filter that a snapshot sees stays in the TOAST table, whoever deletes its row.
#[test]
fn a_filter_is_deleted_after_the_statement_began() {
    let mut client = server().database("deleted");
    let mut other = server().connect("deleted");
    make(&mut client, "t", "", "");
    make(&mut client, "others", "", "");
    let array = some(&mut random(80));
    run(&mut client, "SET effective_io_concurrency = 16");
    let query = format!("SELECT bloom_present(f, {array}) FROM t");
    let expected: Vec<Vec<i32>> = column(&mut client, &query);

    run(&mut client, &format!("BEGIN; DECLARE c CURSOR FOR {query}"));
    let first: Vec<Vec<i32>> = column(&mut client, "FETCH 1 FROM c");
    run(&mut other, "DELETE FROM t");
    run(&mut other, "VACUUM t");
    evict(&mut other, "others");
    let later: Vec<Vec<i32>> = column(&mut client, "FETCH ALL FROM c");
    assert_eq!([first, later].concat(), expected);
    run(&mut client, "COMMIT");

    // The lock of the TOAST table is given back after each use.
    run(&mut client, "CREATE TABLE again AS SELECT * FROM others");
    evict(&mut client, "others");
    run(&mut client, "BEGIN");
    let toast_locks = "SELECT count(*) FROM pg_locks JOIN pg_class AS c ON c.oid = relation
        WHERE pid = pg_backend_pid() AND relnamespace = 'pg_toast'::regnamespace";
    assert_eq!(present(&mut client, "again", "blocked", &array).len(), expected[0].len());
    assert_eq!(value::<i64>(&mut client, toast_locks), 0);
    run(&mut client, "COMMIT");
}

#[test]
fn a_cancelled_probe_leaves_nothing_behind() {
    let mut client = server().database("cancelled");
    make(&mut client, "t", "", "");
    run(&mut client, "INSERT INTO t SELECT name, f FROM t, generate_series(1, 9)");
    let array = some(&mut random(81));
    let query = format!("SELECT sum(cardinality(bloom_present(f, {array}))) FROM t");
    run(&mut client, "SET effective_io_concurrency = 0");
    let expected: i64 = value(&mut client, &query);
    run(&mut client, "SET effective_io_concurrency = 16");

    let mut cancelled = 0;
    for milliseconds in (1..=40).rev() {
        run(&mut client, &format!("SET statement_timeout = {milliseconds}"));
        if let Err(error) = client.batch_execute(&query) {
            assert_eq!(state_of(&error), "57014");
            cancelled += 1;
        }
    }
    assert!(cancelled > 0);
    run(&mut client, "SET statement_timeout = 0");
    assert_eq!(value::<i64>(&mut client, &query), expected);
}
