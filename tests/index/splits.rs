//! Pages that are split among ranges, since their texts are out of line: in random histories, with
//! an older snapshot. The oracle is the sequential scan.

use crate::common::asking::{Answers, agree, check};
use crate::common::{Random, run, value};
use crate::{random, server, times};
use std::collections::BTreeSet;

/// Steps of a history.
const STEPS: usize = 18;
/// Steps that an older snapshot is kept for.
const KEPT: usize = 6;
/// Different texts, and rows of the table at the start.
const TEXTS: usize = 90;
const ROWS: usize = 200;

const TABLE: &str = "
    CREATE TABLE t (gone text, id serial PRIMARY KEY, n integer DEFAULT 0, body text)
        WITH (fillfactor = 60, autovacuum_enabled = off);
    ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
    CREATE INDEX t_n ON t (n)";

/// The same text as other columns, each with an index of its own.
const PARTS: &str = "
    ALTER TABLE t ADD words tsvector GENERATED ALWAYS AS (to_tsvector('simple', body)) STORED,
        ADD members text[] GENERATED ALWAYS AS (string_to_array(body, ' ')) STORED,
        ADD document jsonb GENERATED ALWAYS AS (('[\"' || replace(body, ' ', '\",\"') || '\"]')::jsonb) STORED;
    CREATE INDEX t_words ON t USING bloom_filter (words);
    CREATE INDEX t_members ON t USING bloom_filter (members);
    CREATE INDEX t_document ON t USING bloom_filter (document)";

/// The text of a row, from a number: mostly some kilobytes, but also NULL, empty, short and long.
fn body(number: &str) -> String {
    let n = format!("(({number}) % {TEXTS})");
    format!(
        "CASE {n} % 11 WHEN 3 THEN NULL WHEN 4 THEN '' WHEN 5 THEN 'Short ' || md5({n}::text)
             ELSE (SELECT string_agg('Word ' || md5(({n} * 1000 + j)::text), ' ')
                   FROM generate_series(1, CASE {n} % 7 WHEN 1 THEN 900 ELSE 60 + {n} END) AS j) END"
    )
}

/// Something that happens to the table; statements that need the whole table to themselves begin
/// with a capital of SQL.
fn change(random: &mut Random) -> String {
    let some = format!("id % {} = {}", 2 + random.below(20), random.below(2));
    let update = format!(
        "UPDATE t SET body = {} WHERE {some}",
        body(&format!("id + {}", random.below(TEXTS)))
    );
    let insert = format!(
        "INSERT INTO t (body) SELECT {} FROM generate_series(1, {}) AS i",
        body(&format!("i * 7 + {}", random.below(TEXTS))),
        1 + random.below(80)
    );
    match random.below(18) {
        // In its page, and not: of a column that an index is on.
        0..3 => format!("UPDATE t SET gone = 'new' WHERE {some}"),
        3 => format!("UPDATE t SET n = n + 1 WHERE {some}"),
        4..7 => update,
        7..9 => insert,
        9 => format!("DELETE FROM t WHERE {some}"),
        10 => format!("BEGIN; {update}; {insert}; ROLLBACK"),
        11 => {
            format!(
                "BEGIN; {insert}; SAVEPOINT s; {update}; ROLLBACK TO s; UPDATE t SET n = -1 WHERE {some}; COMMIT"
            )
        }
        12 => "ALTER TABLE t DROP gone; ALTER TABLE t ADD gone text DEFAULT 'there'".into(),
        13 => (*random.pick(&["REINDEX INDEX t_body", "REINDEX INDEX CONCURRENTLY t_body"])).into(),
        14 => (*random.pick(&["VACUUM FULL t", "CLUSTER t USING t_pkey"])).into(),
        _ => "VACUUM t".into(),
    }
}

/// Conditions, and the index that each takes.
fn conditions(random: &mut Random) -> Vec<(&'static str, String)> {
    let word = format!("md5(({} * 1000 + {})::text)", random.below(TEXTS), 1 + random.below(70));
    let many =
        "ARRAY(SELECT '%' || substr(md5(k::text), 1, 12) || '%' FROM generate_series(1, 20) AS k)";
    vec![
        ("t_body", format!("body LIKE '%' || substr({word}, 3, 12) || '%'")),
        ("t_body", format!("body ILIKE '%word ' || upper(substr({word}, 1, 9)) || '%'")),
        ("t_body", format!("body ~ ('Word ' || substr({word}, 1, 8) || '[0-9a-f]*( |$)')")),
        ("t_body", format!("body LIKE ANY ({many})")),
        ("t_body", format!("body = 'Short ' || md5('{}')", 5 + 11 * random.below(8))),
    ]
}

/// The same of the columns that have its words.
fn conditions_on_parts(random: &mut Random) -> Vec<(&'static str, String)> {
    let word = format!("md5(({} * 1000 + {})::text)", random.below(TEXTS), 1 + random.below(70));
    vec![
        ("t_words", format!("words @@ {word}::tsquery")),
        (
            "t_words",
            format!(
                "words @@ ('short & ' || md5('{}') || ' | ' || {word})::tsquery",
                5 + 11 * random.below(8)
            ),
        ),
        ("t_members", format!("members @> ARRAY['Word', {word}]")),
        ("t_members", format!("members && ARRAY[{word}, 'Short']")),
        ("t_document", format!("document @> to_jsonb(ARRAY[{word}])")),
        ("t_document", format!("document ? {word}")),
    ]
}

const INDEX: &str = "CREATE INDEX t_body ON t USING bloom_filter (body text_ngram_ops)";
const RANGES: &str = "SELECT (bloom_index_info('t_body')).ranges_per_page";

fn insert(rows: usize) -> String {
    format!("INSERT INTO t (body) SELECT {} FROM generate_series(1, {rows}) AS i", body("i"))
}

#[test]
fn documents_are_found_in_parts_of_pages_after_any_history() {
    history(&[&insert(ROWS), INDEX], STEPS, 31, conditions);
}

/// The indexes of other columns split their pages as well, if these have documents when the index
/// is made.
#[test]
fn words_of_documents_are_found_in_parts_of_pages_after_any_history() {
    history(&[&insert(ROWS), INDEX, PARTS], STEPS / 2, 35, conditions_on_parts);
}

/// Its first page is whole, and has a tile to itself.
#[test]
fn documents_are_found_after_any_history_of_an_index_on_an_empty_table() {
    history(&[INDEX, &insert(ROWS)], STEPS / 3, 32, conditions);
}

/// The pages of its first tiles are whole, those of later ones split.
#[test]
fn documents_are_found_after_any_history_that_begins_with_short_texts() {
    let short =
        "INSERT INTO t (body) SELECT 'Short ' || md5(i::text) FROM generate_series(1, 1000) AS i";
    history(&[short, INDEX, &insert(ROWS)], STEPS / 3, 33, conditions);
}

fn history(
    begin: &[&str],
    steps: usize,
    seed: u64,
    conditions: impl Fn(&mut Random) -> Vec<(&'static str, String)>,
) {
    let database = format!("splits_{seed}");
    let mut client = server().database(&database);
    let mut old = server().connect(&database);
    let mut random = random(seed);
    run(&mut client, TABLE);
    begin.iter().for_each(|statement| run(&mut client, statement));
    run(&mut client, "ANALYZE t");
    let asked: BTreeSet<&str> =
        conditions(&mut random).into_iter().map(|(index, _)| index).collect();
    for index in &asked {
        let ranges: i32 = value(&mut client, &RANGES.replace("t_body", index));
        assert!(ranges > 2, "{ranges} ranges of {index}");
    }
    let mut found = 0;
    for step in 0..times(steps) {
        if step % KEPT == 0 {
            run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM t");
        }
        let change = change(&mut random);
        println!("{step}: {change}");
        let needs_all = ["ALTER", "REINDEX", "VACUUM FULL", "CLUSTER"]
            .iter()
            .any(|what| change.starts_with(what));
        if needs_all {
            run(&mut old, "COMMIT");
        }
        change.split("; ").for_each(|statement| run(&mut client, statement));
        if needs_all {
            run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM t");
        }
        for (index, condition) in conditions(&mut random) {
            let sql = format!("SELECT id::text || '/' || n FROM t WHERE {condition} ORDER BY id");
            found += agree(&mut client, index, &sql);
            Answers::of_transaction(&mut old, &sql)
                .expect("can be asked")
                .assert_same(&sql);
        }
        if step % KEPT == KEPT - 1 {
            run(&mut old, "COMMIT");
        }
    }
    asked.iter().for_each(|index| _ = check(&mut client, index));
    assert!(found > 6 * times(steps), "{found} rows");
}

/// Whoever needs a tile first decides how the pages after it are divided; after TRUNCATE it is
/// decided again.
#[test]
fn sessions_that_fill_an_empty_table_together_decide_once() {
    const SESSIONS: usize = 6;
    let mut client = server().database("together");
    run(&mut client, TABLE);
    run(&mut client, INDEX);
    for documents in [true, false, true] {
        run(&mut client, "TRUNCATE t");
        std::thread::scope(|scope| {
            for session in 0..SESSIONS {
                let mut own = server().connect("together");
                scope.spawn(move || {
                    for row in 0..40 {
                        let n = (session * 100 + row).to_string();
                        let body =
                            if documents { body(&n) } else { format!("'Short ' || md5('{n}')") };
                        run(&mut own, &format!("INSERT INTO t (body) VALUES ({body})"));
                    }
                });
            }
        });
        let ranges: Option<i32> = client.query_one(RANGES, &[]).expect("an index").get(0);
        assert_eq!(ranges.is_some(), documents, "{ranges:?} ranges of a page");
        check(&mut client, "t_body");
        for n in [0, 539, 215, 5] {
            let sql = format!(
                "SELECT id::text FROM t WHERE body LIKE '%' || substr(md5(({n} * 1000 + 7)::text), 2, 15) || '%' ORDER BY id"
            );
            agree(&mut client, "t_body", &sql);
        }
    }
}

/// Sessions that wait for room add up to 512 pages at once, and a row on the last of them says
/// little about the others.
#[test]
fn one_row_after_many_empty_pages_does_not_decide() {
    let mut client = server().database("empty_pages");
    run(&mut client, TABLE);
    run(&mut client, INDEX);
    run(
        &mut client,
        &format!("INSERT INTO t (body) SELECT {} FROM generate_series(6, 75) AS i", body("i")),
    );
    run(
        &mut client,
        "INSERT INTO t (n) SELECT 0 FROM generate_series(1, 80000); DELETE FROM t WHERE id BETWEEN 71 AND 80069",
    );
    run(&mut client, "VACUUM t");
    let pages: i64 = value(&mut client, "SELECT pg_relation_size('t') / 8192");
    assert!(pages > 512, "{pages} pages");
    run(&mut client, "UPDATE t SET body = 'Short ' || md5('row') WHERE id = 80070");
    let at: i64 =
        value(&mut client, "SELECT (ctid::text::point)[0]::bigint FROM t WHERE id = 80070");
    assert_eq!(at, pages - 1);
    let ranges: Option<i32> = client.query_one(RANGES, &[]).expect("an index").get(0);
    assert!(ranges.is_some());
    check(&mut client, "t_body");
}

/// A row of 40 MB, more by `SOAK`, beside those of a byte: built, and added one by one.
#[test]
fn rows_of_any_size_are_found() {
    let mut client = server().database("any_size");
    let lines = times(60) * 62_000;
    let last = format!("md5('{lines}')");
    run(
        &mut client,
        &format!(
            "CREATE TABLE t (id integer, body text);
             ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
             INSERT INTO t SELECT 1, string_agg(md5(i::text), ' ') FROM generate_series(1, {lines}) AS i;
             INSERT INTO t SELECT i, chr(i) FROM generate_series(40, 99) AS i;
             INSERT INTO t VALUES (100, ''), (101, NULL), (102, 'the only one ' || {last});
             CREATE TABLE added (LIKE t INCLUDING STORAGE);
             CREATE INDEX added_body ON added USING bloom_filter (body text_ngram_ops);
             INSERT INTO added SELECT * FROM t;
             CREATE INDEX t_body ON t USING bloom_filter (body text_ngram_ops)"
        ),
    );
    for table in ["t", "added"] {
        for (pattern, rows) in [
            (last.as_str(), 2),
            ("'only one ' || md5('1')", 0),
            ("'only one'", 1),
        ] {
            let sql = format!(
                "SELECT id::text FROM {table} WHERE body LIKE '%' || {pattern} || '%' ORDER BY 1"
            );
            assert_eq!(agree(&mut client, &format!("{table}_body"), &sql), rows, "{sql}");
        }
    }
}

/// Where few rows are on a page, most ranges of a page that is split for many would have no rows,
/// but bits.
#[test]
fn an_index_stays_small_when_rows_become_wide() {
    let mut client = server().database("wide");
    run(
        &mut client,
        "CREATE FUNCTION document(n integer) RETURNS text LANGUAGE sql AS
             $$ SELECT string_agg(md5(n || ' ' || i), ' ') FROM generate_series(1, 300) AS i $$;
         CREATE TABLE wide (id integer, body text, note text) WITH (autovacuum_enabled = off);
         ALTER TABLE wide ALTER body SET STORAGE EXTERNAL;
         CREATE TABLE roomy (LIKE wide INCLUDING STORAGE) WITH (fillfactor = 10, autovacuum_enabled = off);
         INSERT INTO wide SELECT i, document(i), '' FROM generate_series(1, 300) AS i;
         CREATE INDEX wide_body ON wide USING bloom_filter (body text_ngram_ops);
         CREATE INDEX roomy_body ON roomy USING bloom_filter (body text_ngram_ops);
         INSERT INTO wide SELECT i, document(i), repeat('-', 1900) FROM generate_series(301, 600) AS i;
         INSERT INTO roomy SELECT i, document(i), '' FROM generate_series(1, 300) AS i",
    );
    for table in ["wide", "roomy"] {
        let index = format!("{table}_body");
        let share: f64 = value(
            &mut client,
            &format!(
                "SELECT pg_relation_size('{index}')::float8 / (SELECT sum(octet_length(body)) FROM {table})"
            ),
        );
        assert!(share < 0.6, "the index of {table} is {share} of its text");
        check(&mut client, &index);
        for n in [7, 299, 301, 599] {
            let sql =
                format!("SELECT id::text FROM {table} WHERE body LIKE '%' || md5('{n} 77') || '%'");
            agree(&mut client, &index, &sql);
        }
    }
}
