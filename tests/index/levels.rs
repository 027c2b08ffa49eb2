//! An index that has grown to all of its levels: over more than 16,384 ranges, each a page with one
//! row.

use crate::common::asking::{agree, any, check, each};
use crate::common::standby::{assert_same_pages, catch_up, follow, wait_until};
use crate::common::{Server, run, value};
use postgres::Client;
use std::thread;
use std::time::Duration;

const TABLE: &str = "
    CREATE TABLE wide (id bigint, x text, tags text[], pad text) WITH (autovacuum_enabled = off);
    ALTER TABLE wide ALTER pad SET STORAGE PLAIN;
    CREATE INDEX wide_x ON wide USING bloom_filter (x) WITH (pages_per_range = 1);
    CREATE INDEX wide_tags ON wide USING bloom_filter (tags) WITH (pages_per_range = 1);";
const INDEXES: [&str; 2] = ["wide_x", "wide_tags"];

fn insert(client: &mut Client, first: u32, last: u32) {
    run(
        client,
        &format!(
            "INSERT INTO wide SELECT i, 'key ' || i % 15000, ARRAY['tag ' || i % 16000, 'all'], repeat('-', 7900)
             FROM generate_series({first}, {last}) AS i"
        ),
    );
}

/// Asserts that what is there is found, in an index of three levels. Returns how many rows there
/// are.
fn finds_all(client: &mut Client) -> i64 {
    let keys: Vec<String> = (0..40).map(|i| format!("'key {}'", i * 379)).collect();
    for sql in [each("wide", "x", "", &keys), any("wide", "x", "", &keys)] {
        agree(client, "wide_x", &sql);
    }
    for i in [3, 999, 15_555] {
        agree(
            client,
            "wide_tags",
            &format!("SELECT id::text FROM wide WHERE tags @> '{{tag {i}}}' ORDER BY id"),
        );
    }
    let rows: i64 = value(client, "SELECT count(*) FROM wide");
    for index in INDEXES {
        assert_eq!(check(client, index), rows);
        assert_eq!(
            value::<i32>(client, &format!("SELECT levels FROM bloom_index_info('{index}')")),
            3
        );
    }
    rows
}

#[test]
fn all_levels_survive_and_are_followed() {
    let config = "wal_level = replica\nmax_wal_senders = 5\nwal_consistency_checking = 'generic'";
    let (primary, standby) = (Server::start(config), Server::start(config));
    let mut client = primary.database("levels");
    run(&mut client, TABLE);
    insert(&mut client, 1, 16_300);
    follow(&standby, &primary);
    insert(&mut client, 16_301, 17_000);
    let mut on_standby = standby.connect("levels");
    catch_up(&mut client, &mut on_standby);
    finds_all(&mut client);
    finds_all(&mut on_standby);
    INDEXES
        .iter()
        .for_each(|index| assert_same_pages(&mut client, &mut on_standby, index));
    // It dies while it writes.
    thread::scope(|scope| {
        let mut writer = primary.connect("levels");
        scope.spawn(move || {
            let insert = |i: u32| {
                let sql = format!(
                    "INSERT INTO wide SELECT {i}, 'key {i}', '{{tag {i}}}', repeat('-', 7900)"
                );
                writer.batch_execute(&sql).is_ok()
            };
            (17_001..20_000).map(insert).take_while(|is_there| *is_there).count()
        });
        wait_until("some rows are there", || {
            value::<i64>(&mut client, "SELECT count(*) FROM wide") > 17_050
        });
        thread::sleep(Duration::from_millis(20));
        primary.kill9();
    });
    assert!(value::<bool>(&mut on_standby, "SELECT pg_promote()"));
    assert!(finds_all(&mut on_standby) > 17_000);
    primary.restart();
    let mut client = primary.connect("levels");
    assert!(finds_all(&mut client) > 17_050);
}
