//! Many values in one condition: the rows that a scan takes from pages by itself, of every version
//! of a row, in random histories. The oracle is the sequential scan, of the newest snapshot and of
//! an older one.

use crate::common::asking::{Answers, agree, check};
use crate::common::{Random, run};
use crate::{random, server, times};

/// Steps of a history.
const STEPS: usize = 24;
/// Steps that an older snapshot is kept for.
const KEPT: usize = 8;
/// Different values of each column, and rows of the table at the start.
const VALUES: usize = 300;
const ROWS: usize = 600;

/// The columns before those that are indexed are dropped and added.
const TABLE: &str = "
    CREATE TABLE t (gone text, id serial PRIMARY KEY, n integer DEFAULT 0, line text, tags text[], attributes jsonb,
        words tsvector) WITH (fillfactor = 50, autovacuum_enabled = off);
    CREATE INDEX t_line ON t USING bloom_filter (line text_ngram_ops) WITH (pages_per_range = 1);
    CREATE INDEX t_tags ON t USING bloom_filter (tags) WITH (pages_per_range = 2, fpr = 0.1);
    CREATE INDEX t_attributes ON t USING bloom_filter (attributes) WITH (pages_per_range = 1, fpr = 0.1);
    CREATE INDEX t_words ON t USING bloom_filter (words) WITH (pages_per_range = 4, fpr = 0.3);
    CREATE INDEX t_lower ON t USING bloom_filter (lower(line) text_ngram_ops);";

/// The columns of a row, from a number: NULL, short, compressed and out of line.
fn columns(number: &str) -> String {
    let value = format!("(({number}) % {VALUES})");
    let long = |unit: &str, count: usize| {
        format!("(SELECT string_agg({unit}, ' ') FROM generate_series(1, {count}) AS j)")
    };
    format!(
        "CASE ({number}) % 23 WHEN 3 THEN NULL WHEN 4 THEN repeat('Again ' || md5({value}::text) || ' ', 90)
             WHEN 5 THEN {} ELSE 'Request ' || md5({value}::text) || ' done' END,
         CASE ({number}) % 19 WHEN 3 THEN NULL WHEN 4 THEN '{{}}' WHEN 5 THEN array_fill('tag ' || {value}, ARRAY[200])
             WHEN 6 THEN string_to_array({}, ' ') ELSE ARRAY['tag ' || {value}, NULL, 'tag ' || {value} / 2] END,
         CASE ({number}) % 17 WHEN 3 THEN NULL WHEN 4 THEN '[]' WHEN 5 THEN jsonb_build_array({value}, 'key' || {value})
             WHEN 6 THEN jsonb_build_object('v', {value}, 'long', {})
             ELSE jsonb_build_object('v', {value}, 'key' || {value}, true) END,
         CASE ({number}) % 13 WHEN 3 THEN NULL WHEN 4 THEN ''
             ELSE to_tsvector('simple', 'common w' || {value} || ' v' || {value} / 2) END",
        long("md5(({number} + j)::text)", 130).replace("{number}", number),
        long("md5(({number} + j)::text)", 130).replace("{number}", number),
        long("'again ' || md5(({number} + j % 3)::text)", 130).replace("{number}", number),
    )
}

/// Questions with so many values from one on, by the index that answers them.
fn questions(first: usize, many: usize) -> Vec<(&'static str, String)> {
    let of = |what: &str| {
        format!("ARRAY(SELECT {what} FROM generate_series({first}, {}) AS k)", first + many - 1)
    };
    let part = "substr(md5(k::text), 1 + k % 20, 9)";
    let any = |sort: &str| {
        format!("(SELECT string_agg({sort}, ' | ') FROM unnest({}) AS k)::tsquery", of("k"))
    };
    vec![
        ("t_line", format!("line LIKE ANY ({})", of(&format!("'%' || {part} || '%'")))),
        ("t_line", format!("line ILIKE ANY ({})", of(&format!("'%' || upper({part}) || '%'")))),
        ("t_line", format!("line = ANY ({})", of("'Request ' || md5(k::text) || ' done'"))),
        (
            "t_line",
            format!(
                "line LIKE ANY ({}) AND line LIKE '%Request%'",
                of(&format!("'%' || {part} || '%'"))
            ),
        ),
        ("t_lower", format!("lower(line) LIKE ANY ({})", of(&format!("'%' || {part} || '%'")))),
        ("t_tags", format!("tags && {}", of("'tag ' || k"))),
        ("t_tags", format!("tags && {} AND tags @> ARRAY['tag {first}']", of("'tag ' || k"))),
        ("t_attributes", format!("attributes @> ANY ({})", of("jsonb_build_object('v', k)"))),
        ("t_attributes", format!("attributes ?| {}", of("'key' || k"))),
        ("t_words", format!("words @@ {}", any("'w' || k"))),
        (
            "t_words",
            format!("words @@ (({}) && 'common'::tsquery)", any("'w' || k || ' & v' || k / 2")),
        ),
    ]
}

/// Something that happens to the table.
fn change(random: &mut Random) -> String {
    let some = format!("id % {} = {}", 2 + random.below(30), random.below(2));
    let new = format!("id + n + {}", random.below(VALUES));
    let update = format!(
        "UPDATE t SET (line, tags, attributes, words) = (SELECT {}) WHERE {some}",
        columns(&new)
    );
    let insert = format!(
        "INSERT INTO t (line, tags, attributes, words) SELECT {} FROM generate_series(1, {}) AS i",
        columns(&format!("i * 7 + {}", random.below(VALUES))),
        1 + random.below(150)
    );
    match random.below(16) {
        0..3 => format!("UPDATE t SET n = n + 1 WHERE {some}"),
        3..5 => update,
        5..7 => insert,
        7 => format!("DELETE FROM t WHERE {some} AND id % 3 = 0"),
        8 => format!("BEGIN; {update}; UPDATE t SET n = n + 1; {insert}; ROLLBACK"),
        9 => format!(
            "BEGIN; {insert}; SAVEPOINT s; {update}; ROLLBACK TO s; UPDATE t SET n = -1 WHERE {some}; COMMIT"
        ),
        10 => "ALTER TABLE t DROP gone; ALTER TABLE t ADD gone text DEFAULT 'there'".into(),
        11 => format!(
            "ALTER TABLE t ALTER line SET STORAGE {}",
            random.pick(&["EXTERNAL", "MAIN", "EXTENDED"])
        ),
        12 => format!(
            "REINDEX INDEX {}",
            random.pick(&["t_line", "t_tags", "t_attributes", "t_words"])
        ),
        _ => "VACUUM t".into(),
    }
}

#[test]
fn many_values_find_what_a_scan_does_after_any_history() {
    let mut client = server().database("many");
    let mut old = server().connect("many");
    let mut random = random(9);
    run(&mut client, TABLE);
    let (columns, rows) = (columns("i"), format!("generate_series(1, {ROWS}) AS i"));
    run(
        &mut client,
        &format!(
            "INSERT INTO t (line, tags, attributes, words) SELECT {columns} FROM {rows}; ANALYZE t"
        ),
    );
    let mut found = 0;
    for step in 0..times(STEPS) {
        if step % KEPT == 0 {
            run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM t");
        }
        let change = change(&mut random);
        println!("{step}: {change}");
        // What needs the whole table would wait for the older snapshot.
        if change.starts_with("ALTER") || change.starts_with("REINDEX") {
            run(&mut old, "COMMIT");
            change.split("; ").for_each(|statement| run(&mut client, statement));
            run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM t");
        } else {
            change.split("; ").for_each(|statement| run(&mut client, statement));
        }
        let (first, many) = (random.below(VALUES), *random.pick(&[9, 20, 60]));
        for (number, (index, condition)) in questions(first, many).into_iter().enumerate() {
            let sql = format!("SELECT id::text || '/' || n FROM t WHERE {condition} ORDER BY id");
            found += agree(&mut client, index, &sql);
            // Half of them each time, so that each is asked of every older snapshot.
            if (step + number) % 2 == 0 {
                let before = Answers::of_transaction(&mut old, &sql).expect("can be asked");
                before.assert_same(&sql);
            }
        }
        if step % KEPT == KEPT - 1 {
            run(&mut old, "COMMIT");
        }
    }
    for index in ["t_line", "t_tags", "t_attributes", "t_words"] {
        check(&mut client, index);
    }
    assert!(found > 25 * times(STEPS), "{found} rows");
}
