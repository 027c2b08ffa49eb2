//! Damaged files, of indexes over elements.

use crate::common::asking::{any, each};
use crate::common::damaged::Damaged;
use crate::common::files::damage;
use crate::common::{Random, Server, run};

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
