//! Every operator class: values that equality is hard for are found by values of every type that
//! they can be compared with, by the index as by a sequential scan.

use crate::common::asking::{Answers, agree, check};
use crate::common::samples::{FURTHER_TYPES, Sample, TYPES, all_samples};
use crate::common::{Server, column, major_version, rows, run, sqlstate, value};
use postgres::Client;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Ordinary values of each type: as many before the index is made as after.
const ORDINARY: usize = 120;

/// Types that have no operator class, or are refused although one takes them.
const NOT_INDEXED: [&str; 6] = ["pair", "xid", "cid", "tid", "oidvector", "wide"];

/// Pairs of column and key of different types for which the index must be used, where PostgreSQL
/// has both.
const CROSS: [(&str, &str); 14] = [
    ("smallint", "integer"),
    ("smallint", "bigint"),
    ("integer", "smallint"),
    ("integer", "bigint"),
    ("bigint", "smallint"),
    ("bigint", "integer"),
    ("real", "double precision"),
    ("double precision", "real"),
    ("text", "varchar(20)"),
    ("varchar(20)", "text"),
    ("char(12)", "char(40)"),
    ("inet", "cidr"),
    ("label", "text"),
    ("small", "bigint"),
];

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("timezone = 'UTC'\nautovacuum = off"))
}

/// A session in a new database that has the types of all samples.
fn session(database: &str) -> Client {
    let mut client = server().database(database);
    run(&mut client, TYPES);
    run(&mut client, FURTHER_TYPES);
    client
}

/// Returns the samples of all types that can be indexed.
fn indexed_samples() -> Vec<Sample> {
    all_samples()
        .filter(|sample| !NOT_INDEXED.contains(&sample.sql_type))
        .collect()
}

/// Makes the table `v<n>` of values, with the index `v<n>_x`, and `keys<n>` to ask for.
fn fill(client: &mut Client, n: usize, sample: &Sample, version: i32) {
    let Sample { sql_type, ordinary_value, .. } = sample;
    let edge_values = sample.edge_values(version);
    assert!(!edge_values.is_empty(), "{sql_type} has no edge values");
    let listed: Vec<String> = edge_values
        .iter()
        .map(|edge_value| format!("(({edge_value})::{sql_type})"))
        .collect();
    let listed = listed.join(", ");
    let batch = |first: usize| {
        format!(
            "INSERT INTO v{n} (x, pad) SELECT * FROM (VALUES {listed}) AS e (x), repeat('-', 500) AS pad;
             INSERT INTO v{n} (x, pad) SELECT {ordinary_value}, repeat('-', 500)
             FROM generate_series({first}, {}) AS i;
             INSERT INTO v{n} (x) VALUES (NULL)",
            first + ORDINARY / 2 - 1
        )
    };
    let last = ORDINARY + 40;
    run(
        client,
        &format!(
            "CREATE TABLE v{n} (id serial, x {sql_type}, pad text);
             {};
             CREATE INDEX v{n}_x ON v{n} USING bloom_filter (x) WITH (pages_per_range = 1);
             {};
             CREATE TABLE keys{n} AS SELECT x AS k FROM (VALUES {listed}) AS e (x)
             UNION ALL SELECT ({ordinary_value})::{sql_type} FROM generate_series(1, {last}, 9) AS i UNION ALL SELECT NULL",
            batch(1),
            batch(1 + ORDINARY / 2),
        ),
    );
}

/// Edges as constants, on both sides of `=` and in arrays.
fn ask_for_constants(client: &mut Client, n: usize, sample: &Sample, version: i32) {
    let index = format!("v{n}_x");
    if sample.sql_type == "boolean" {
        // `x = true` is simplified to `x`, which older versions don't take for a condition of an
        // index that isn't theirs.
        return;
    }
    let all: Vec<String> = sample
        .edge_values(version)
        .iter()
        .map(|edge_value| format!("({edge_value})::{}", sample.sql_type))
        .collect();
    for key in &all {
        let sql = format!("SELECT id::text FROM v{n} WHERE x = {key} ORDER BY id");
        assert!(agree(client, &index, &sql) >= 2, "{sql}");
        agree(client, &index, &format!("SELECT id::text FROM v{n} WHERE {key} = x ORDER BY id"));
    }
    let array = format!("ARRAY[{}, NULL]", all.join(", "));
    // An array of arrays is one of their elements, so that only a sublink can ask for several.
    if !sample.sql_type.contains('[') && sample.sql_type != "labels" {
        agree(
            client,
            &index,
            &format!("SELECT id::text FROM v{n} WHERE x = ANY ({array}) ORDER BY id"),
        );
    }
    agree(
        client,
        &index,
        &format!("SELECT id::text FROM v{n} WHERE x IN ({}) ORDER BY id", all.join(", ")),
    );
}

/// Whether `x = k` exists for a column of this sample and keys of that one, and can be computed: a
/// negative number is no oid.
fn comparable(client: &mut Client, n: usize, m: usize) -> bool {
    client
        .query(&format!("SELECT count(*) FROM v{n}, keys{m} WHERE x = k"), &[])
        .is_ok()
}

#[test]
fn every_type_is_found_by_every_type_it_can_be_compared_with() {
    let mut client = session("types");
    let version = major_version(&mut client);
    let samples = indexed_samples();
    for (n, sample) in samples.iter().enumerate() {
        fill(&mut client, n, sample, version);
    }
    let (mut answers, mut crossed) = (0, BTreeSet::new());
    for (n, sample) in samples.iter().enumerate() {
        ask_for_constants(&mut client, n, sample, version);
        let stored: i64 = value(&mut client, &format!("SELECT count(x) FROM v{n}"));
        assert_eq!(
            check(&mut client, &format!("v{n}_x")),
            stored,
            "rows checked of type {}",
            sample.sql_type
        );
        for (m, key) in samples.iter().enumerate() {
            if !comparable(&mut client, n, m) {
                assert_ne!(n, m);
                continue;
            }
            let sql = format!(
                "SELECT coalesce(k::text, 'NULL') || ': ' || coalesce((SELECT string_agg(id::text, ',' ORDER BY id) FROM v{n} WHERE x = k), 'none')
                 FROM keys{m}"
            );
            let asked =
                Answers::of(&mut client, &sql).unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}"));
            asked.assert_same(&sql);
            answers += asked.by_scan.len();
            let is_used = asked.used(&format!("v{n}_x"));
            assert!(is_used || n != m, "the index of {} is not used", sample.sql_type);
            if is_used && n != m {
                crossed.insert((sample.sql_type, key.sql_type));
            }
        }
    }
    for pair in CROSS {
        assert!(crossed.contains(&pair), "an index of {} is not used for {}", pair.0, pair.1);
    }
    println!(
        "{} types, {} pairs of different ones by the index, {answers} answers",
        samples.len(),
        crossed.len()
    );
}

#[test]
fn every_operator_class_has_a_sample() {
    let mut client = session("classes");
    let classes = rows(
        &mut client,
        "SELECT opcname::text, opcintype::regtype::text, opcdefault FROM pg_opclass JOIN pg_am ON pg_am.oid = opcmethod
         WHERE amname = 'bloom_filter' AND opcname NOT IN ('bloom_ops', 'text_ngram_ops', 'tsvector_ops')",
    );
    assert!(classes.len() >= 28, "there are {} operator classes", classes.len());
    let samples: Vec<String> = indexed_samples()
        .iter()
        .map(|sample| {
            value::<String>(&mut client, &format!("SELECT '{}'::regtype::text", sample.sql_type))
        })
        .collect();
    for class in &classes {
        let (name, of, is_default): (String, String, bool) =
            (class.get(0), class.get(1), class.get(2));
        let is_sampled = match of.as_str() {
            "anyarray" => samples.iter().any(|s| s.ends_with("[]")),
            "anyenum" => samples.iter().any(|s| s == "mood"),
            "anyrange" => samples.iter().any(|s| s.ends_with("range")),
            "anymultirange" => samples.iter().any(|s| s.ends_with("multirange")),
            of => samples.iter().any(|s| s == of),
        };
        assert!(is_sampled, "no sample of {of}, which operator class {name} is for");
        assert!(is_default, "operator class {name} is not the default one of {of}");
    }
    // PostgreSQL's own opinion of them.
    let invalid: Vec<String> = column(
        &mut client,
        "SELECT opcname::text FROM pg_opclass JOIN pg_am ON pg_am.oid = opcmethod
         WHERE amname = 'bloom_filter' AND NOT amvalidate(pg_opclass.oid)",
    );
    assert_eq!(invalid, [""; 0], "operator classes that amvalidate finds fault with");
}

/// All other samples are indexed by the tests above.
#[test]
fn samples_that_are_not_indexed_are_refused() {
    let mut client = session("not_indexed");
    for (n, sql_type) in NOT_INDEXED.iter().enumerate() {
        run(&mut client, &format!("CREATE TABLE v{n} (x {sql_type})"));
        let state = sqlstate(&mut client, &format!("CREATE INDEX ON v{n} USING bloom_filter (x)"));
        assert!(["42704", "0A000"].contains(&state.as_str()), "{sql_type}: {state}");
    }
}

/// Labels of enums can be renamed, and added: an index keeps the values' identifiers.
#[test]
fn renamed_and_added_labels_are_found() {
    let mut client = server().database("labels");
    run(
        &mut client,
        "CREATE TYPE mood AS ENUM ('good', 'bad');
         CREATE TABLE v (id serial, x mood, pad text DEFAULT repeat('-', 900));
         INSERT INTO v (x) SELECT 'good' FROM generate_series(1, 100);
         INSERT INTO v (x) SELECT 'bad' FROM generate_series(1, 100);
         CREATE INDEX v_x ON v USING bloom_filter (x) WITH (pages_per_range = 1);
         ALTER TYPE mood RENAME VALUE 'good' TO 'well'",
    );
    run(&mut client, "ALTER TYPE mood ADD VALUE 'good' BEFORE 'bad'");
    run(&mut client, "INSERT INTO v (x) SELECT 'good' FROM generate_series(1, 50)");
    for (label, rows) in [("well", 100), ("bad", 100), ("good", 50)] {
        let sql = format!("SELECT id::text FROM v WHERE x = '{label}' ORDER BY id");
        assert_eq!(agree(&mut client, "v_x", &sql), rows);
    }
    assert_eq!(check(&mut client, "v_x"), 250);
}
