//! Damaged files, of indexes over elements.

use crate::common::asking::{any, check, each};
use crate::common::damaged::Damaged;
use crate::common::files::{assert_no_crash, damage, refuses};
use crate::common::{Random, Server, rows, run, value};
use postgres::Client;
use std::path::PathBuf;

/// Indexes of one table, each damaged in another way.
const INDEXES: usize = 48;

const DAMAGED: Damaged = Damaged {
    table: "t",
    indexes: INDEXES,
    questions,
    inserts: &[
        "INSERT INTO t SELECT 100000 + i, md5(i::text), -1, '' FROM generate_series(1, 1) AS i",
        "INSERT INTO t SELECT 100000 + i, md5(i::text), -1, repeat('-', 10) FROM generate_series(1, 30) AS i",
        "INSERT INTO t SELECT 100000 + i, md5(i::text), -1, repeat('-', 2500) FROM generate_series(1, 300) AS i",
    ],
    damage,
    is_exact: false,
    may_be_harmless: false,
};

/// Every row is in each of the indexes, and only that query uses index `n` that says `n <> …`.
fn questions(random: &mut Random, n: usize) -> Vec<String> {
    let keys: Vec<String> = (0..60).map(|_| format!("md5('{}')", random.below(4200))).collect();
    let condition = format!(" AND n <> {n}");
    vec![any("t", "x", &condition, &keys), each("t", "x", &condition, &keys[..12])]
}

#[test]
fn damaged_files_are_refused_or_found_by_the_check() {
    let server = Server::start("autovacuum = off\nstatement_timeout = 60s");
    let mut client = server.database("damage");
    run(
        &mut client,
        "CREATE TABLE t (id bigint, x text, n integer NOT NULL DEFAULT -1, pad text) WITH (autovacuum_enabled = off);
         ALTER TABLE t ALTER pad SET STORAGE PLAIN;
         INSERT INTO t SELECT i, md5((i % 4000)::text), -1, repeat('-', 2500) FROM generate_series(1, 3600) AS i",
    );
    for n in 0..INDEXES {
        let options = format!("WITH (pages_per_range = 1) WHERE n <> {n}");
        run(&mut client, &format!("CREATE INDEX d{n} ON t USING bloom_filter (x) {options}"));
    }
    DAMAGED.live(&server, client, 4);
}

/// A table for each kind of index, the index of each, and a lookup by it. That over keys has three levels; that over
/// parts has just got a tile, most pages of which have no bits.
const TABLES: [(&str, &str, &str); 3] = [
    ("over_keys", "over_keys_x", "SELECT id FROM over_keys WHERE x = 'x 77'"),
    ("over_parts", "over_parts_tags", "SELECT id FROM over_parts WHERE tags @> ARRAY['t 77']"),
    ("over_filters", "over_filters_seen", "SELECT id FROM over_filters WHERE seen @> 'e 7700'"),
];

fn made_tables(client: &mut Client) {
    run(
        client,
        "CREATE TABLE over_keys (id integer, x text, pad text) WITH (autovacuum_enabled = off);
         ALTER TABLE over_keys ALTER pad SET STORAGE PLAIN;
         CREATE INDEX over_keys_x ON over_keys USING bloom_filter (x) WITH (pages_per_range = 1);
         INSERT INTO over_keys SELECT i, 'x ' || i, repeat('-', 7900) FROM generate_series(1, 17000) AS i;
         CREATE TABLE over_parts (id integer, tags text[]) WITH (autovacuum_enabled = off);
         CREATE INDEX over_parts_tags ON over_parts USING bloom_filter (tags);
         INSERT INTO over_parts SELECT i, ARRAY['t ' || i, 'all'] FROM generate_series(1, 45000) AS i;
         DO $$ DECLARE place tid; BEGIN
             LOOP
                 INSERT INTO over_parts VALUES (0, ARRAY['none', 'all']) RETURNING ctid INTO place;
                 EXIT WHEN (place::text::point)[0] >= 72 * 8;
             END LOOP;
         END $$;
         CREATE TABLE over_filters AS SELECT g AS id, bloom_agg('e ' || g * 100 + i, 100) AS seen
             FROM generate_series(1, 300) AS g, generate_series(0, 99) AS i GROUP BY g;
         CREATE INDEX over_filters_seen ON over_filters USING bloom_filter (seen);
         SET enable_seqscan = off",
    );
}

fn file_of(server: &Server, client: &mut Client, index: &str) -> PathBuf {
    let path: String = value(client, &format!("SELECT pg_relation_filepath('{index}')"));
    server.dir().join("data").join(path)
}

/// Changes the file of each index while the server is stopped.
fn changed(server: &Server, mut client: Client, change: impl Fn(&mut Vec<u8>)) -> Client {
    run(&mut client, "CHECKPOINT");
    let paths = TABLES.map(|(_, index, _)| file_of(server, &mut client, index));
    server.stop();
    for path in &paths {
        let mut file = std::fs::read(path).expect("an index has a file");
        change(&mut file);
        std::fs::write(path, file).expect("the file can be written");
    }
    server.restart();
    let mut client = server.connect("pages");
    run(&mut client, "SET enable_seqscan = off");
    client
}

/// A bit of the metapage, "pages allocated" or pages per range, decides where INSERT writes and how much.
#[test]
fn a_flipped_bit_of_the_first_page_is_refused_and_nothing_is_written() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("pages");
    made_tables(&mut client);
    // Bytes of the file, and which of their bits.
    for (at, bit) in [(42, 1 << 5), (40, 1 << 1), (43, 1 << 6), (53, 1 << 4), (36, 1 << 3), (64, 1 << 7), (72, 1 << 1)]
    {
        let flip = |file: &mut Vec<u8>| file[at] ^= bit;
        client = changed(&server, client, flip);
        for (table, index, lookup) in TABLES {
            let path = file_of(&server, &mut client, index);
            let before = std::fs::read(&path).expect("an index has a file");
            let insert = format!("INSERT INTO {table} SELECT * FROM {table} LIMIT 100");
            for sql in [&insert, lookup, &format!("SELECT bloom_index_check('{index}')"), &insert] {
                assert!(refuses(&mut client, &format!("bit {bit} of byte {at} of {index}"), sql), "{sql} succeeds");
            }
            run(&mut client, "CHECKPOINT");
            assert!(std::fs::read(&path).expect("an index has a file") == before, "{index} was written to");
        }
        client = changed(&server, client, flip);
        for (_, index, lookup) in TABLES {
            assert!(!rows(&mut client, lookup).is_empty(), "{index} was right before");
            check(&mut client, index);
        }
    }
    assert_no_crash(&server);
}

/// After a crash the file may lack pages that were allocated and never written to.
#[test]
fn a_file_that_ends_before_its_allocated_pages_goes_on_to_work() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("pages");
    made_tables(&mut client);
    let lengths = std::cell::RefCell::new(Vec::new());
    client = changed(&server, client, |file| {
        let last = file.chunks(8192).rposition(|page| page.iter().any(|&byte| byte != 0)).expect("a metapage");
        lengths.borrow_mut().push((file.len(), (last + 1) * 8192));
        file.truncate((last + 1) * 8192);
    });
    let lengths = lengths.into_inner();
    assert!(lengths.iter().any(|(before, after)| after < before), "no file had pages without bits: {lengths:?}");
    for (table, index, lookup) in TABLES {
        assert!(!rows(&mut client, lookup).is_empty());
        let before = check(&mut client, index);
        run(&mut client, &format!("INSERT INTO {table} SELECT * FROM {table} LIMIT 500"));
        assert!(check(&mut client, index) > before);
    }
}
