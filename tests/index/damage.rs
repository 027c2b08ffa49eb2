//! Damaged files, of indexes over elements.

use crate::common::asking::{any, check, each};
use crate::common::damaged::Damaged;
use crate::common::files::{assert_no_crash, damage, refuses};
use crate::common::{Random, Server, column, rows, run, sqlstate, value};
use pg_bloom_core::index::chain::sign;
use pg_bloom_core::index::page::PageSize;
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
    vec![
        any("t", "x", &condition, &keys),
        each("t", "x", &condition, &keys[..5]),
    ]
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

/// A table for each kind of index, the index of each, and a lookup by it. That over keys has three
/// levels; that over parts has just got a tile, most pages of which have no bits.
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

/// Changes the file of each index of the tables while the server is stopped.
fn changed(server: &Server, client: Client, change: impl Fn(&mut Vec<u8>)) -> Client {
    changed_files(server, client, &TABLES.map(|(_, index, _)| index), change)
}

/// Changes the files of indexes while the server is stopped.
fn changed_files(
    server: &Server,
    mut client: Client,
    indexes: &[&str],
    change: impl Fn(&mut Vec<u8>),
) -> Client {
    run(&mut client, "CHECKPOINT");
    let paths: Vec<PathBuf> = indexes
        .iter()
        .map(|index| file_of(server, &mut client, index))
        .collect();
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

/// Asserts that an index refuses all of these and is not written to.
fn refuses_all(
    server: &Server,
    client: &mut Client,
    index: &str,
    damage: &str,
    statements: &[&str],
) {
    let path = file_of(server, client, index);
    run(client, "CHECKPOINT");
    let before = std::fs::read(&path).expect("an index has a file");
    for sql in statements {
        assert!(refuses(client, damage, sql), "{damage}: {sql} succeeds");
    }
    run(client, "CHECKPOINT");
    assert!(
        std::fs::read(&path).expect("an index has a file") == before,
        "{damage}: {index} was written to"
    );
}

/// A bit of the metapage, "pages allocated" or pages per range, decides where INSERT writes and how
/// much.
#[test]
fn a_flipped_bit_of_the_first_page_is_refused_and_nothing_is_written() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("pages");
    made_tables(&mut client);
    // Bytes of the file, and which of their bits.
    let bits = [
        (42, 1 << 5),
        (40, 1 << 1),
        (43, 1 << 6),
        (53, 1 << 4),
        (36, 1 << 3),
        (64, 1 << 7),
        (72, 1 << 1),
    ];
    let mut before: Option<(usize, u8)> = None;
    for (at, bit) in bits {
        // The one before is as it was again.
        client = changed(&server, client, |file| {
            before
                .into_iter()
                .chain([(at, bit)])
                .for_each(|(at, bit)| file[at] ^= bit);
        });
        before = Some((at, bit));
        for (table, index, lookup) in TABLES {
            let insert = format!("INSERT INTO {table} SELECT * FROM {table} LIMIT 100");
            let check = format!("SELECT bloom_index_check('{index}')");
            let damage = format!("bit {bit} of byte {at} of {index}");
            refuses_all(&server, &mut client, index, &damage, &[&insert, lookup, &check, &insert]);
        }
    }
    client =
        changed(&server, client, |file| before.into_iter().for_each(|(at, bit)| file[at] ^= bit));
    for (_, index, lookup) in TABLES {
        assert!(!rows(&mut client, lookup).is_empty(), "{index} was right before");
        check(&mut client, index);
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
        let last = file
            .chunks(8192)
            .rposition(|page| page.iter().any(|&byte| byte != 0))
            .expect("a metapage");
        lengths.borrow_mut().push((file.len(), (last + 1) * 8192));
        file.truncate((last + 1) * 8192);
    });
    let lengths = lengths.into_inner();
    assert!(
        lengths.iter().any(|(before, after)| after < before),
        "no file had pages without bits: {lengths:?}"
    );
    for (table, index, lookup) in TABLES {
        assert!(!rows(&mut client, lookup).is_empty());
        let before = check(&mut client, index);
        run(&mut client, &format!("INSERT INTO {table} SELECT * FROM {table} LIMIT 500"));
        assert!(check(&mut client, index) > before);
    }
}

/// Numbers of the first page that agree with each other, and have the right checksum.
#[test]
fn forged_numbers_are_refused_and_nothing_is_written() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("pages");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT i AS id, 'x ' || i AS x FROM generate_series(1, 5000) AS i;
         CREATE INDEX t_x ON t USING bloom_filter (x); SET enable_seqscan = off; CHECKPOINT",
    );
    // The pages of the tile that is the only one with those that were allocated; pages per range;
    // keys per range; rows. Places in the file, and what is there.
    let pages = 2_000_000u32;
    let forgeries: [&[(usize, u32)]; 5] = [
        &[(100, pages), (40, pages + 1)],
        &[(72, 0)],
        &[(72, 1025)],
        &[(76, u32::MAX)],
        &[(60, 1 << 31)],
    ];
    let sound = std::fs::read(file_of(&server, &mut client, "t_x")).expect("an index has a file");
    assert_eq!(sound[52..56], [20, 0, 0, 0], "one run");
    for forged in forgeries {
        client = changed_files(&server, client, &["t_x"], |file| {
            for (at, number) in forged {
                file[*at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
            sign(&mut file[..8192], PageSize::DEFAULT);
        });
        let statements = [
            "INSERT INTO t VALUES (0, 'another')",
            "SELECT id FROM t WHERE x = 'x 77'",
            "SELECT bloom_index_check('t_x')",
            "SELECT bloom_index_info('t_x')",
        ];
        refuses_all(&server, &mut client, "t_x", &format!("{forged:?}"), &statements);
        client = changed_files(&server, client, &["t_x"], |file| {
            file[..8192].copy_from_slice(&sound[..8192])
        });
        check(&mut client, "t_x");
    }
    assert_no_crash(&server);
}

/// An index whose next row needs a new tile, which has a slot in a tile that is there: the pages of
/// both are looked at before the first page is written.
#[test]
fn an_insert_that_is_refused_adds_no_tile() {
    const INSERT: &str = "INSERT INTO t SELECT 0, 'another', repeat('-', 7900)";
    let server = Server::start("autovacuum = off");
    let mut client = server.database("pages");
    // With so many ranges the tiles of level 0 are full, and the next is below one of level 1.
    run(
        &mut client,
        "CREATE TABLE t (id integer, x text, pad text) WITH (autovacuum_enabled = off);
         ALTER TABLE t ALTER pad SET STORAGE PLAIN;
         CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 1);
         INSERT INTO t SELECT i, 'x ' || i, repeat('-', 7900) FROM generate_series(1, 136 + 128 * 5) AS i",
    );
    let allocated =
        |file: &[u8]| u32::from_le_bytes(file[40..44].try_into().expect("four bytes")) as usize;
    let sound = std::cell::RefCell::new(Vec::new());
    client = changed_files(&server, client, &["t_x"], |file| {
        *sound.borrow_mut() = file.clone();
        file.resize(allocated(file) * 8192, 0);
        file.extend_from_within(8192..2 * 8192);
    });
    refuses_all(&server, &mut client, "t_x", "a page that was not allocated", &[INSERT, INSERT]);
    let kind = |page: &[u8]| page[8189];
    client = changed_files(&server, client, &["t_x"], |file| {
        file.clone_from(&sound.borrow());
        let pages = file.chunks_mut(8192).filter(|page| kind(page) == 4);
        assert!(pages.map(|page| page[8185] ^= 1).count() > 0, "there is a level 1");
    });
    refuses_all(&server, &mut client, "t_x", "pages of level 1", &[INSERT, INSERT]);
    client = changed_files(&server, client, &["t_x"], |file| file.clone_from(&sound.borrow()));
    run(&mut client, INSERT);
    assert_eq!(check(&mut client, "t_x"), 136 + 128 * 5 + 1);
    assert_no_crash(&server);
}

/// The first key far into a table makes the tiles of all that is before it, which the user can
/// cancel.
#[test]
fn a_jump_can_be_cancelled() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("pages");
    // The function cancels the statement right before the index gets the key.
    run(
        &mut client,
        "CREATE FUNCTION key_of(x text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
             RETURN CASE WHEN x = 'cancel' AND pg_cancel_backend(pg_backend_pid()) THEN 'cancelled' ELSE x END;
         END $$;
         CREATE TABLE t (id integer, x text, pad text) WITH (autovacuum_enabled = off);
         ALTER TABLE t ALTER pad SET STORAGE PLAIN;
         INSERT INTO t SELECT i, 'x ' || i, repeat('-', 7900) FROM generate_series(1, 1500) AS i;
         CREATE INDEX t_x ON t USING bloom_filter (key_of(x)) WITH (pages_per_range = 1) WHERE id > 1500",
    );
    let size = |client: &mut Client| value::<i64>(client, "SELECT pg_relation_size('t_x')");
    let info =
        |client: &mut Client| value::<String>(client, "SELECT bloom_index_info('t_x')::text");
    let before = (size(&mut client), info(&mut client));
    assert_eq!(
        sqlstate(&mut client, "INSERT INTO t VALUES (1501, 'cancel', repeat('-', 7900))"),
        "57014"
    );
    assert_eq!((size(&mut client), info(&mut client)), before, "tiles were made");
    run(
        &mut client,
        "INSERT INTO t VALUES (1501, 'far', repeat('-', 7900)); SET enable_seqscan = off",
    );
    assert_eq!(
        column::<i32>(&mut client, "SELECT id FROM t WHERE key_of(x) = 'far' AND id > 1500"),
        [1501]
    );
    assert_eq!(check(&mut client, "t_x"), 1);
}

/// PostgreSQL leaves the hole of a page out of its log: bits in it would be lost. Queries don't
/// look at headers.
#[test]
fn the_check_finds_a_header_by_which_bits_would_be_lost() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("pages");
    made_tables(&mut client);
    let is_tile = |page: &[u8]| matches!(page[8189], 3..=7);
    for (_, index, lookup) in TABLES {
        let found: Vec<i32> = column(&mut client, lookup);
        let flip = |file: &mut Vec<u8>| {
            let page = file
                .chunks_mut(8192)
                .rfind(|page| is_tile(page))
                .expect("a page of a tile");
            // The page begins with a hole that has its bits.
            page[13] ^= 1;
        };
        client = changed_files(&server, client, &[index], flip);
        let state = sqlstate(&mut client, &format!("SELECT bloom_index_check('{index}')"));
        // With checksums, which newer versions have, PostgreSQL refuses such a page itself.
        if value::<String>(&mut client, "SHOW data_checksums") == "on" {
            assert_eq!(state, "XX001");
        } else {
            assert_eq!((state.as_str(), column::<i32>(&mut client, lookup)), ("XX002", found));
        }
        client = changed_files(&server, client, &[index], flip);
        check(&mut client, index);
    }
    assert_no_crash(&server);
}

/// PostgreSQL's functions look at an array before they read it. So does the index where it reads
/// the rows of a range.
#[test]
fn a_damaged_array_in_the_table_is_an_error() {
    /// One dimension, no NULL, integers: three from 1 on, of which the second is 7.
    const SEVENTH: [i32; 8] = [1, 0, 23, 3, 1, 0, 7, 77];
    let server = Server::start("autovacuum = off");
    let mut client = server.database("pages");
    run(
        &mut client,
        "CREATE TABLE t (a integer[]);
         INSERT INTO t SELECT ARRAY[0, i, 77] FROM generate_series(1, 300) AS i;
         CREATE INDEX t_a ON t USING bloom_filter (a)",
    );
    let ask =
        "SELECT count(*) FROM t WHERE a && ARRAY[7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]";
    let bytes: Vec<u8> = SEVENTH.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let at = std::cell::Cell::new(0);
    for (place, value) in [
        (3, 0x40),
        (0, 7),
        (12, 200),
        (15, 0x70),
        (7, 0x10),
        (15, 0xf0),
    ] {
        client = changed_files(&server, client, &["t"], |file| {
            if at.get() == 0 {
                at.set(
                    file.windows(bytes.len())
                        .position(|window| window == bytes)
                        .expect("the row is there"),
                );
            }
            file[at.get()..][..bytes.len()].copy_from_slice(&bytes);
            file[at.get() + place] = value;
        });
        let state = sqlstate(&mut client, ask);
        assert!(["XX001", "54000"].contains(&state.as_str()), "{state} for {value} at {place}");
    }
    assert_no_crash(&server);
}

/// A long length is read where it is aligned. Where damage has made one elsewhere, PostgreSQL looks
/// at the row.
#[test]
fn a_long_length_that_is_not_aligned_ends_no_session() {
    /// The first column, and behind it the short length of the second, which is 8 zero bytes.
    const ROW: [u8; 10] = [b'x', 19, 0, 0, 0, 0, 0, 0, 0, 0];
    let server = Server::start("autovacuum = off");
    let mut client = server.database("pages");
    run(
        &mut client,
        "CREATE TABLE t (c \"char\", b bytea);
         INSERT INTO t VALUES ('x', '\\x0000000000000000');
         CREATE INDEX t_b ON t USING bloom_filter (b)",
    );
    let mut client = changed_files(&server, client, &["t"], |file| {
        let at = file
            .windows(ROW.len())
            .position(|window| window == ROW)
            .expect("the row is there");
        // Five bytes, four of which say so.
        file[at + 1] = 5 << 2;
    });
    // A page with another checksum is none for 18, unless told so.
    run(&mut client, "SET ignore_checksum_failure = on");
    let found = client
        .query_one("SELECT count(*) FROM t WHERE b = '\\x0000000000000000'", &[])
        .expect("a row");
    assert_eq!(found.get::<_, i64>(0), 0);
    assert_no_crash(&server);
}
