//! Random pairs of filters and everything that can be done with them, against the sets that they
//! were made of.

mod common;

use common::{LAYOUTS, Server, rows, run, value};

/// Pairs of sets, and for each so many calls as there are lines in [`PROPERTIES`] and more.
const PAIRS: usize = 5000;

/// What must be true of a = filter of the set s, b = filter of the set t, both of one size;
/// `either` is the filter of both sets, x an element of s, and n, fpr and l the parameters of the
/// filters.
const PROPERTIES: [&str; 32] = [
    "bloom_contains_all(a, s) AND bloom_contains_all(b, t)",
    "a @> x AND x <@ a AND bloom_contains(a, x)",
    "(bloom_query(a, x)).contains AND (bloom_query(a, x)).confidence = 1 - bloom_fpr(a)",
    "bloom_contains_any(a, s || t) AND NOT bloom_contains_any(a, '{}'::integer[])",
    "bloom_present(a, s) = s AND bloom_absent(a, s) = '{}' AND bloom_present(bloom_empty(), s) = '{}'",
    "bloom_present(a, s || t) = ARRAY(SELECT e FROM unnest(s || t) WITH ORDINALITY AS u (e, n) WHERE a @> e ORDER BY n)",
    "bloom_absent(a, s || t) = ARRAY(SELECT e FROM unnest(s || t) WITH ORDINALITY AS u (e, n) WHERE NOT a @> e ORDER BY n)",
    "a | b = either AND b | a = either AND bloom_union(a, b) = either",
    "(SELECT bloom_union_agg(f) FROM unnest(ARRAY[a, NULL, b, a]) AS f) = either",
    "bloom_add_all(a, t) = either AND bloom_add_all(b, s) = either",
    "(SELECT bloom_agg(e, n, fpr, l) FROM unnest(t || s) AS e) = either",
    "(SELECT bloom_agg(e, n, fpr, l ORDER BY e DESC) FROM unnest(s) AS e) = a",
    "a || x = a AND bloom_add(b, x) @> x AND (b || x) | a = either",
    "a | a = a AND a & a = a AND a & b = b & a AND bloom_intersection(a, b) = a & b",
    "(SELECT bool_and(a & b @> e) IS NOT FALSE FROM unnest(s) AS e WHERE e = ANY (t))",
    "(SELECT bloom_intersection_agg(f) FROM unnest(ARRAY[a, b, NULL, a]) AS f) = a & b",
    "a & either = a AND either & b = b",
    "a | bloom_empty() = a AND bloom_empty() | b = b AND a | bloom_empty(n, fpr, l) = a",
    "bloom_contains_all(bloom_fold(a, 0.5), s) AND bloom_fold(bloom_fold(a, 0.1), 0.1) = bloom_fold(a, 0.1)",
    "bloom_fpr(bloom_fold(either, 0.5)) <= greatest(0.5, bloom_fpr(either))",
    "a::text::bloom = a AND a::bytea::bloom = a AND bloom_send(b) = b::bytea",
    "(a = b) = (a::bytea = b::bytea) AND (a < b) = (a::bytea < b::bytea) AND (a >= b) = (a::bytea >= b::bytea)",
    "(a <> b) = NOT a = b AND (a > b) = (b < a) AND (a <= b) = (b >= a) AND bloom_cmp(a, b) = -bloom_cmp(b, a)",
    "a <> b OR bloom_hash(a) = bloom_hash(b) AND bloom_hash_extended(a, 5) = bloom_hash_extended(b, 5)",
    "bloom_cardinality(a) <= bloom_cardinality(either) AND bloom_fpr(a) <= bloom_fpr(either)",
    "(bloom_info(a)).representation = 'dense' OR bloom_cardinality(a) = cardinality(s)",
    "(bloom_info(a)).representation = 'sparse'
        OR abs(bloom_cardinality(a) - cardinality(s)) <= 6 * sqrt(cardinality(s)) + 0.1 * cardinality(s) + 3",
    "bloom_union_cardinality(a, b) = bloom_cardinality(either)",
    "bloom_intersection_cardinality(a, b) BETWEEN 0 AND least(bloom_cardinality(a), bloom_cardinality(b))",
    "bloom_jaccard(a, b) BETWEEN 0 AND 1 AND bloom_jaccard(a, a) = 1",
    "(bloom_info(a)).num_bits = (bloom_parameters(n, fpr, l)).num_bits
        AND (bloom_info(a)).num_hashes = (bloom_parameters(n, fpr, l)).num_hashes",
    // A filter of twice or four times as many bits, which is what so many bytes hold. Classic
    // filters of few bits have sizes that need not divide.
    "CASE WHEN l = 'classic' AND (bloom_info(a)).num_bits < 1024 THEN true
        ELSE bloom_contains_all(a | bloom_empty(bloom_capacity(44 + (bloom_info(a)).num_bits / 4, fpr, l), fpr, l), s)
            AND bloom_contains_all(bloom_empty(bloom_capacity(44 + (bloom_info(a)).num_bits / 2, fpr, l), fpr, l) | a, s)
        END",
];

#[test]
fn random_filters_are_the_sets_they_were_made_of() {
    let server = Server::start("");
    let mut client = server.database("filter_properties");
    run(
        &mut client,
        "SELECT setseed(0.5); SET pg_bloom.overfill = ignore; SET statement_timeout = '20min'",
    );
    let layouts = LAYOUTS.map(|layout| format!("'{layout}'")).join(", ");
    run(
        &mut client,
        &format!(
            "CREATE TABLE sets AS SELECT i, n, fpr, l, s, t, s[1 + (random() * (cardinality(s) - 1))::integer] AS x FROM (
                SELECT i, (20 + exp(random() * 7))::bigint AS n, 10 ^ (-0.5 - random() * 5.4) AS fpr,
                    (ARRAY[{layouts}])[1 + i % 3] AS l, exp(random() * 6.5)::integer AS p, exp(random() * 6.5)::integer AS q
                FROM generate_series(1, {PAIRS}) AS i) AS sizes,
             LATERAL (SELECT array_agg(DISTINCT e) AS s FROM (SELECT (random() * 3000)::integer AS e
                      FROM generate_series(1, greatest(1, least(p, n * 1.2))::integer)) AS e) AS first,
             LATERAL (SELECT array_agg(DISTINCT e) AS t FROM (SELECT (random() * 3000)::integer AS e
                      FROM generate_series(1, greatest(1, least(q, n * 1.2))::integer)) AS e) AS second;
             CREATE TABLE filters AS SELECT *, bloom_from_array(s, n, fpr, l) AS a, bloom_from_array(t, n, fpr, l) AS b,
                bloom_from_array(s || t, n, fpr, l) AS either FROM sets"
        ),
    );
    let mut failures = Vec::new();
    for property in PROPERTIES {
        let sql = format!(
            "SELECT i, n::text, fpr::text, l FROM filters WHERE ({property}) IS NOT TRUE ORDER BY i"
        );
        let found = rows(&mut client, &sql);
        if let Some(first) = found.first() {
            let [n, fpr, l]: [String; 3] = [1, 2, 3].map(|i| first.get(i));
            failures.push(format!(
                "{} of {PAIRS}, the first with ({n}, {fpr}, {l}): {property}",
                found.len()
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Both representations were there, and filters of elements in common.
    let sparse: i64 = value(
        &mut client,
        "SELECT count(*) FROM filters WHERE (bloom_info(a)).representation = 'sparse'",
    );
    let common: i64 = value(&mut client, "SELECT count(*) FROM filters WHERE s && t");
    assert!(
        (500..PAIRS as i64 - 500).contains(&sparse) && common > 500,
        "{sparse} sparse, {common} with elements in common"
    );
}
