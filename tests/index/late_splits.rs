//! Pages that are split only when documents come, while other sessions write: an index is made
//! meanwhile, and a standby follows.

use crate::common::asking::{agree, check};
use crate::common::followed::Followed;
use crate::common::standby::StopsWhenDropped;
use crate::common::{Random, run, value};
use crate::{random, server, times};
use postgres::Client;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Indexes that are made while others write.
const BUILDS: usize = 4;

/// Short texts, so that the first pages are whole.
const TABLES: &str = "
    CREATE FUNCTION document(n bigint) RETURNS text IMMUTABLE LANGUAGE sql AS
        $$ SELECT string_agg('Word ' || md5((n % 60 * 1000 + j)::text), ' ') FROM generate_series(1, 70) AS j $$;
    CREATE TABLE t (id bigint, n integer DEFAULT 0, body text) WITH (fillfactor = 70);
    ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
    CREATE INDEX t_id ON t (id);
    INSERT INTO t SELECT -i, 0, 'Short ' || md5(i::text) FROM generate_series(1, 1000) AS i;";
const INDEX: &str = "CREATE INDEX t_body ON t USING bloom_filter (body text_ngram_ops)";
const RANGES: &str = "SELECT coalesce((bloom_index_info('t_body')).ranges_per_page, 0)";

fn change(random: &mut Random, next: &mut usize) -> String {
    let (rows, low) = (1 + random.below(40), random.below(*next));
    match random.below(9) {
        0..4 => {
            *next += rows;
            format!(
                "INSERT INTO t SELECT i, 0, document(i) FROM generate_series({} - {rows}, {next} - 1) AS i",
                *next
            )
        }
        4 => format!("UPDATE t SET body = document(id + 7) WHERE id BETWEEN {low} AND {low} + 9"),
        5 => format!("UPDATE t SET n = n + 1 WHERE id BETWEEN {low} AND {low} + 30"),
        6 => format!("DELETE FROM t WHERE id BETWEEN {low} AND {low} + 9"),
        7 => "VACUUM t".into(),
        _ => "REINDEX INDEX CONCURRENTLY t_body".into(),
    }
}

fn questions(random: &mut Random) -> Vec<String> {
    let word = |random: &mut Random| format!("md5(({} * 1000 + 7)::text)", random.below(60));
    let (like, ilike) = (word(random), word(random));
    vec![
        // It is always there.
        format!(
            "SELECT id::text FROM t WHERE body LIKE '%' || md5('{}') || '%' ORDER BY 1",
            1 + random.below(1000)
        ),
        format!(
            "SELECT id::text || '/' || n FROM t WHERE body LIKE '%' || substr({like}, 3, 12) || '%' ORDER BY 1"
        ),
        format!(
            "SELECT id::text || '/' || n FROM t WHERE body ILIKE '%WORD ' || {ilike} || '%' ORDER BY 1"
        ),
    ]
}

#[test]
fn a_standby_follows_a_split() {
    const FOLLOWED: Followed = Followed {
        table: "t",
        index: "t_body",
        states: 8,
        more_rows: 40,
        state: "id || body || n",
        change,
        questions,
    };
    let (_server, mut client, mut random, next) =
        FOLLOWED.live(&[TABLES, "ALTER TABLE t ADD pad text", INDEX], 5);
    FOLLOWED.agree(&mut client, &mut random);
    // More pages than a tile has ranges: the last one may be of whole pages, if there were few
    // documents before.
    let rows = "i, 0, document(i), repeat('-', 300)";
    run(
        &mut client,
        &format!("INSERT INTO t SELECT {rows} FROM generate_series({next}, {next} + 2400) AS i"),
    );
    assert!(value::<i32>(&mut client, RANGES) > 1);
    FOLLOWED.agree(&mut client, &mut random);
}

/// Writes until told to stop, whatever becomes of the index. Writers change rows of their own,
/// since statements that change the same rows can deadlock.
fn write(client: &mut Client, writer: usize, mut random: Random, done: &AtomicBool) {
    let mut next = 1;
    let own = format!("WHERE id % 2 = {writer} AND id");
    while !done.load(Ordering::Relaxed) {
        let sql = change(&mut random, &mut next).replace("WHERE id", &own);
        if !sql.starts_with("REINDEX") {
            run(client, &sql);
        }
    }
}

#[test]
fn an_index_is_made_while_documents_come() {
    let mut client = server().database("late");
    let mut random = random(34);
    run(&mut client, TABLES);
    for build in 0..times(BUILDS) {
        run(&mut client, "DELETE FROM t WHERE id > 0");
        run(&mut client, "VACUUM t");
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let _stops = StopsWhenDropped(&done);
            for writer in 0..2 {
                let (seed, mut client, done) =
                    (Random(random.bits()), server().connect("late"), &done);
                scope.spawn(move || write(&mut client, writer, seed, done));
            }
            run(&mut client, &INDEX.replace("INDEX", "INDEX CONCURRENTLY"));
            check(&mut client, "t_body");
            run(&mut client, "REINDEX INDEX CONCURRENTLY t_body");
            check(&mut client, "t_body");
        });
        println!("build {build}: {} ranges of a page", value::<i32>(&mut client, RANGES));
        for sql in (0..6).flat_map(|_| questions(&mut random)) {
            agree(&mut client, "t_body", &sql);
        }
        check(&mut client, "t_body");
        run(&mut client, "DROP INDEX t_body");
    }
}
