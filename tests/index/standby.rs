//! A standby reads what the primary has written, has the same bytes, and takes over.

use crate::common::asking::{agree, any, check, each};
use crate::common::followed::Followed;
use crate::common::{Random, column, run};

const TABLES: &str = "
    CREATE TABLE t (id bigint NOT NULL, x text, n integer NOT NULL DEFAULT 0, pad text) WITH (fillfactor = 80);
    ALTER TABLE t ALTER pad SET STORAGE PLAIN;
    CREATE UNIQUE INDEX t_id ON t (id);
    CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 1);
    CREATE UNLOGGED TABLE u (id bigint, x text);
    CREATE INDEX u_x ON u USING bloom_filter (x);
    INSERT INTO u SELECT i, i FROM generate_series(1, 100) AS i;";

const FOLLOWED: Followed = Followed {
    table: "t",
    index: "t_x",
    states: 30,
    more_rows: 400,
    state: "id || x || n",
    change,
    questions,
};

fn change(random: &mut Random, next: &mut usize) -> String {
    let (low, pad) = (random.below(*next), *random.pick(&[10, 10, 300, 2500]));
    match random.below(12) {
        0..5 => {
            *next += 201;
            format!(
                "INSERT INTO t SELECT i, 'key ' || i % 1000, 0, repeat('-', {pad})
                 FROM generate_series({next} - 201, {next} - 1) AS i"
            )
        }
        5 => format!("UPDATE t SET n = n + 1 WHERE id BETWEEN {low} AND {low} + 300"),
        6 => format!("UPDATE t SET x = 'key ' || id + n + 1, n = n + 1 WHERE id BETWEEN {low} AND {low} + 100"),
        7 => format!("DELETE FROM t WHERE id BETWEEN {low} AND {low} + 50"),
        8 => "VACUUM t".into(),
        9 => "REINDEX INDEX CONCURRENTLY t_x".into(),
        10 => "CHECKPOINT".into(),
        _ => "BEGIN; DROP INDEX t_x; CREATE INDEX t_x ON t USING bloom_filter (x) WITH (pages_per_range = 2); COMMIT"
            .into(),
    }
}

/// Lookups of keys, some of which are there.
fn questions(random: &mut Random) -> Vec<String> {
    let keys: Vec<String> = (0..25).map(|_| format!("'key {}'", random.below(1400))).collect();
    vec![each("t", "x", "", &keys), any("t", "x", "", &keys)]
}

#[test]
fn a_standby_finds_the_same_rows_and_takes_over() {
    let (_server, mut client, mut random, next) = FOLLOWED.live(&[TABLES], 3);
    for round in 0..3 {
        FOLLOWED.agree(&mut client, &mut random);
        let from = 2 * next + round * 1000;
        let rows = format!("generate_series({from}, {from} + 999) AS i");
        run(&mut client, &format!("INSERT INTO t SELECT i, 'key ' || i % 1300, 0, '' FROM {rows}"));
    }
    // An unlogged table is empty after a promotion, and can be used.
    assert_eq!(column::<i64>(&mut client, "SELECT count(*) FROM u"), [0]);
    run(&mut client, "INSERT INTO u SELECT i, i FROM generate_series(1, 3000) AS i");
    let keys = ["'5'".into(), "'2999'".into(), "'3001'".into()];
    agree(&mut client, "u_x", &each("u", "x", "", &keys));
    assert_eq!(check(&mut client, "u_x"), 3000);
}
