//! ILIKE in every kind of locale: what a locale takes for equal has the same windows, though the
//! index knows none; and a character that some locale converts to an ASCII letter or from one is
//! found as that locale finds it.

use crate::common::asking::agree_by_part;
use crate::common::{column, run, value};
use crate::{server, times};
use pg_bloom_core::conditions::text::{Encoding, LetterCase, each_window, like};
use postgres::Client;
use std::collections::{BTreeSet, HashSet};

/// The languages with rules of their own, and some without.
const COLLATIONS: &str = "SELECT quote_ident(collname) FROM pg_collation
    WHERE collencoding IN (-1, 6) AND collisdeterministic AND (collprovider = 'b'
        OR collname IN ('C', 'C.utf8', 'en_US.utf8', 'und-x-icu', 'tr-x-icu', 'lt-x-icu', 'el-x-icu', 'nl-x-icu'))
    ORDER BY 1";
/// Marks that are written over or under a letter.
const MARKS: &str = "ARRAY['', U&'\\0300', U&'\\0301', U&'\\0307', U&'\\0323']";
/// All characters with two cases are below.
const LAST: usize = 0x1_FFFF;
const LAST_OF_ALL: usize = 0x10_FFFF;

/// Makes a table of texts, each with a character that the collation may convert to an ASCII letter
/// or from one, and marks behind it.
fn prepare(client: &mut Client, collation: &str) -> i64 {
    let last = if times(1) > 1 { LAST_OF_ALL } else { LAST };
    let case = |function: &str| format!("{function}('q' || chr(i) || 'z' COLLATE {collation})");
    let (lower, upper) = (case("lower"), case("upper"));
    run(
        client,
        &format!(
            "DROP TABLE IF EXISTS odd;
             CREATE TABLE odd (id serial, t text COLLATE {collation}, pad text DEFAULT repeat('-', 700));
             ALTER TABLE odd ALTER pad SET STORAGE PLAIN;
             WITH characters AS MATERIALIZED (
                 SELECT i FROM generate_series(1, {last}) AS i
                 WHERE i NOT BETWEEN 55296 AND 57343 AND i NOT IN (36, 37, 92, 95) AND (i BETWEEN 32 AND 126
                    OR {lower} ~ 'q.*[a-yA-Y].*z' OR {upper} ~ 'Q.*[a-yA-Y].*Z'))
             INSERT INTO odd (t) SELECT 'qw' || chr(i) || mark || other || 'zy'
             FROM characters, unnest({MARKS}) AS mark, unnest(ARRAY['', U&'\\0307']) AS other
             -- What is beside a text must not have its windows.
             ORDER BY md5(i || mark || other);
             CREATE INDEX odd_t ON odd USING bloom_filter (t text_ngram_ops) WITH (pages_per_range = 1, fpr = 0.0001);
             ANALYZE odd"
        ),
    );
    value(client, "SELECT count(*) FROM odd WHERE t !~ '^[ -~]*$'")
}

#[test]
fn ilike_finds_what_each_locale_does() {
    let mut client =
        server().empty_database("locales", "ENCODING UTF8 LOCALE 'C.UTF-8' TEMPLATE template0");
    run(&mut client, "CREATE EXTENSION pg_bloom");
    let collations: Vec<String> = column(&mut client, COLLATIONS);
    assert!(collations.len() > 1, "there is C, and one of UTF-8");
    for collation in &collations {
        let others = prepare(&mut client, collation);
        for (pattern, i) in ["t", "lower(t)", "upper(t)", "initcap(t)", "lower(upper(t))"]
            .into_iter()
            .zip(0..)
        {
            let one_of = if times(1) > 1 { 1 } else { 15 };
            // What isn't ASCII is left out of every other pattern, as somebody without such keys
            // would write it.
            let pattern = format!(
                "'%' || CASE WHEN id % 2 = 0 THEN {pattern} ELSE regexp_replace({pattern}, '[^ -~]+', '%', 'g') END || '%'"
            );
            let sql = format!(
                "SELECT p || ': ' || coalesce((SELECT string_agg(id::text, ',' ORDER BY id) FROM odd WHERE t ILIKE p), 'none')
                 FROM (SELECT DISTINCT {pattern} AS p FROM odd WHERE (id + {i}) % {one_of} = 0 OR t LIKE 'qwI%' ORDER BY p) AS patterns"
            );
            agree_by_part(&mut client, "odd_t", &sql);
        }
        println!("{collation}: {others} texts with other letters");
    }
    let in_ascii: Vec<String> =
        column(&mut client, "SELECT t FROM odd WHERE t ~ '^[ -~]*$' LIMIT 1");
    assert_eq!(in_ascii.len(), 1);
}

/// Whether a text may be ILIKE a pattern, by the windows of both.
fn may_match(text: &str, pattern: &str) -> bool {
    let mut has = BTreeSet::new();
    each_window(text.as_bytes(), Encoding::Utf8, |window| has.extend(window.hashes()));
    let condition = like(pattern.as_bytes(), Encoding::Utf8, LetterCase::Ignored);
    condition.slots(1, &mut |hash| Ok::<_, ()>(u128::from(has.contains(&hash)))) == Ok(1)
}

/// All characters that may have case, or with `SOAK` all of Unicode: each in a text and, if it has
/// case, with marks behind it.
#[test]
fn what_each_locale_takes_for_equal_has_the_same_windows() {
    let mut client =
        server().empty_database("windows", "ENCODING UTF8 LOCALE 'C.UTF-8' TEMPLATE template0");
    let all = "SELECT quote_ident(collname) FROM pg_collation WHERE collencoding IN (-1, 6) AND collisdeterministic AND collprovider <> 'd'";
    let is_long = times(1) > 1;
    let collations: Vec<String> = column(&mut client, if is_long { all } else { COLLATIONS });
    let last = if is_long { LAST_OF_ALL } else { LAST };
    // What a pair has depends on no collation: most collations have the same.
    let mut looked_at = HashSet::new();
    for collation in &collations {
        let sql = format!(
            "SELECT text || E'\\n' || pattern FROM (
                SELECT t, p, t ILIKE p AS forth, p ILIKE t AS back FROM (
                    SELECT ('qwe' || c || mark || 'rty') COLLATE {collation} AS t
                    FROM (SELECT chr(i) COLLATE {collation} AS c FROM generate_series(1, {last}) AS i
                        WHERE i NOT BETWEEN 55296 AND 57343 AND i NOT IN (10, 37, 92, 95)) AS characters,
                        unnest({MARKS}) AS mark
                    WHERE lower(c) <> c OR upper(c) <> c
                ) AS texts, LATERAL (VALUES (lower(t)), (upper(t)), (initcap(t)), (lower(upper(t))), (upper(lower(t)))) AS other (p)
                WHERE p <> t
            ) AS pairs, LATERAL (VALUES (t, p, forth), (p, t, back)) AS way (text, pattern, matches) WHERE matches"
        );
        let pairs: Vec<String> = column(&mut client, &sql);
        for pair in pairs.iter().filter(|pair| looked_at.insert(pair.as_str().to_owned())) {
            let (text, pattern) = pair.split_once('\n').expect("a text and a pattern");
            assert!(may_match(text, pattern), "{text:?} ILIKE {pattern:?} COLLATE {collation}");
        }
        println!("{collation}: {} matches", pairs.len());
        let has_only_ascii = ["\"C\"", "\"POSIX\"", "ucs_basic"].contains(&collation.as_str());
        assert!(has_only_ascii || pairs.len() > 10_000, "{} matches in {collation}", pairs.len());
    }
}
