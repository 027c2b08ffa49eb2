//! A standby finds the rows that the primary has written, has the same bytes, and takes over.

use crate::common::asking::{agree, check};
use crate::common::followed::Followed;
use crate::common::{Random, column, run};
use crate::{FILTER, QUESTIONS};

const FOLLOWED: Followed = Followed {
    table: "f",
    index: "f_seen",
    states: 20,
    more_rows: 40,
    state: "id || md5(seen::bytea)",
    change,
    questions,
};

fn change(random: &mut Random, next: &mut usize) -> String {
    let low = random.below(*next);
    match random.below(12) {
        0..5 => {
            *next += 21;
            format!(
                "INSERT INTO f SELECT i, made(i) FROM generate_series({next} - 20, {next}) AS i"
            )
        }
        5..8 => format!(
            "UPDATE f SET seen = bloom_add(seen, 'e {low}') WHERE id BETWEEN {low} AND {low} + 20"
        ),
        8 => format!("DELETE FROM f WHERE id BETWEEN {low} AND {low} + 15"),
        9 => "VACUUM f".into(),
        10 => "REINDEX INDEX CONCURRENTLY f_seen".into(),
        _ => "CHECKPOINT".into(),
    }
}

/// A query that returns texts.
fn questions(random: &mut Random) -> Vec<String> {
    let ids = random
        .pick(&QUESTIONS)
        .replace("SELECT id ", "SELECT id::text AS id ");
    vec![ids.replace('$', &random.below(400).to_string())]
}

#[test]
fn a_standby_finds_the_same_rows_and_takes_over() {
    let tables = [
        FILTER,
        "INSERT INTO f SELECT i, made(i) FROM generate_series(-300, -1) AS i",
        "CREATE UNLOGGED TABLE u (LIKE f); CREATE INDEX u_seen ON u USING bloom_filter (seen)",
        "INSERT INTO u SELECT i, made(i) FROM generate_series(1, 30) AS i",
    ];
    let (_server, mut client, mut random, _) = FOLLOWED.live(&tables, 30);
    for round in 0..3 {
        (0..10).for_each(|_| FOLLOWED.agree(&mut client, &mut random));
        let from = 1_000_000 + round * 100;
        run(
            &mut client,
            &format!(
                "INSERT INTO f SELECT i, made(i) FROM generate_series({from}, {from} + 99) AS i"
            ),
        );
        run(&mut client, "VACUUM f");
    }
    // An unlogged table is empty after a promotion, and can be used.
    assert_eq!(column::<i64>(&mut client, "SELECT count(*) FROM u"), [0]);
    run(&mut client, "INSERT INTO u SELECT i, made(i) FROM generate_series(1, 60) AS i");
    agree(&mut client, "u_seen", "SELECT id::text FROM u WHERE seen @> 'e 40' ORDER BY id");
    assert_eq!(check(&mut client, "u_seen"), 60);
}
