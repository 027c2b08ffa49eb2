-- NULLs and nothing: every rule.
\pset null NULL

-- NULL capacity means: size for what is seen. A NULL layout is the default. So is a NULL rate in aggregates; functions
-- have forms without a rate for that, and those with one refuse it.
SELECT (bloom_info(bloom_empty(NULL))).capacity, (bloom_info(bloom_empty(NULL))).target_fpr,
    (bloom_info(bloom_empty(NULL))).layout;
SELECT capacity, target_fpr, layout FROM bloom_info(bloom_empty(10, layout => NULL));
SELECT capacity, target_fpr, layout FROM (SELECT bloom_agg(1, 10, NULL, NULL) AS f) v, bloom_info(f);
SELECT query, state, message FROM unnest(ARRAY['bloom_empty(10, NULL, NULL)', 'bloom_from_array(ARRAY[1], 10, NULL)',
    'bloom_parameters(10, NULL)', 'bloom_capacity(10, NULL)', 'counting_bloom_empty(10, NULL)']) query, failure('SELECT ' || query);

-- NULL elements are skipped by every way of adding: the filter comes back as it was, never NULL.
CREATE TABLE one AS SELECT bloom_from_array(ARRAY[1], 100) AS f, bloom_from_array(ARRAY['a'], 100) AS t;
SELECT bloom_add(f, NULL::int) = f AS add, (f || NULL::int) = f AS concatenate, bloom_add(t, NULL) = t AS add_untyped,
    (t || NULL) = t AS concatenate_untyped, bloom_add(t, NULL::text) = t AS add_text,
        bloom_add(t, NULL::"char"::text) = t AS add_char,
    bloom_add_all(f, ARRAY[NULL, NULL]::int[]) = f AS add_all, bloom_add_all(f, NULL::int[]) = f AS no_array,
    bloom_add_all(f, '{}'::int[]) = f AS empty_array
FROM one;
SELECT bloom_add_all(f, ARRAY[NULL, 2, NULL]) = f || 2 AS others_are_added,
    bloom_from_array(ARRAY[NULL, 1, NULL], 100) = f AS from_array,
        bloom_from_array(ARRAY[NULL::int], 100) = bloom_empty(100) AS only_nulls
FROM one;
-- A NULL gives an empty filter no kind, so it takes elements of any.
SELECT bloom_empty() || NULL = bloom_empty() AS untyped, (bloom_empty() || NULL::int || 'a') @> 'a' AS takes_text,
    (bloom_from_array(ARRAY[NULL::int], 10) || 'a') @> 'a' AS after_array;
-- In aggregates as well: rows whose element is NULL are ignored, except for the size that they ask for.
SELECT bloom_agg(x, 100) = f AS skipped, bloom_agg(x) = bloom_from_array(ARRAY[1]) AS skipped_unsized
FROM one, (VALUES (NULL), (1), (NULL)) v (x) GROUP BY f;
SELECT bloom_agg(x) = bloom_empty() AS only_nulls, bloom_agg(x, 100) = bloom_empty(100) AS only_nulls_sized,
    bloom_agg(x, 100) || 'a' @> 'a' AS takes_text
FROM (VALUES (NULL::int), (NULL)) v (x);

-- A NULL filter gives NULL.
SELECT bloom_add(NULL, 1) IS NULL AS add, NULL::bloom || 1 IS NULL AS concatenate,
    bloom_add_all(NULL, ARRAY[1]) IS NULL AS add_all;
SELECT NULL::bloom @> 1 AS contains, 1 <@ NULL::bloom AS contained, NULL::bloom @> 'a' AS text,
    bloom_contains(NULL, 'a'::"char"::text) AS "char",
    bloom_contains_any(NULL, ARRAY[1]) AS "any", bloom_contains_all(NULL, ARRAY[1]) AS "all",
    bloom_contains_any(NULL, '{}'::int[]) AS any_empty, bloom_contains_all(NULL, '{}'::int[]) AS all_empty;
SELECT * FROM bloom_query(NULL, 1);
SELECT NULL::bloom | f AS left, f | NULL AS right, bloom_intersection(NULL, f) AS intersection, f & NULL AS and,
    bloom_fold(NULL, 0.5) AS fold,
    bloom_fold(f, NULL) AS fold_by, bloom_union_cardinality(f, NULL) AS union_cardinality,
    bloom_intersection_cardinality(NULL, f) AS intersection_cardinality, bloom_jaccard(f, NULL) AS jaccard
FROM one;
SELECT bloom_cardinality(NULL) AS cardinality, bloom_fpr(NULL) AS fpr, bloom_info(NULL) IS NULL AS info,
    NULL::bytea::bloom AS from_bytea, NULL::bloom::bytea AS to_bytea, NULL::text::bloom AS from_text;

-- A NULL probe gives NULL.
SELECT f @> NULL::int AS contains, NULL::int <@ f AS contained, t @> NULL AS untyped, NULL <@ t AS untyped_contained,
    t @> NULL::"char"::text AS "char", bloom_contains(t, NULL::text) AS text
FROM one;
SELECT q.* FROM one, bloom_query(f, NULL::int) q;
SELECT bloom_contains_any(f, NULL::int[]) AS "any", bloom_contains_all(f, NULL::int[]) AS "all" FROM one;

-- NULLs in an array that is asked for are skipped; an empty array has no element that is found, and none that isn't.
SELECT bloom_contains_any(f, '{}'::int[]) AS "any", bloom_contains_all(f, '{}'::int[]) AS "all",
    bloom_contains_any(f, ARRAY[NULL::int]) AS any_null, bloom_contains_all(f, ARRAY[NULL::int]) AS all_null,
    bloom_contains_any(f, ARRAY[NULL, 1]) AS any_found, bloom_contains_all(f, ARRAY[NULL, 1]) AS all_found,
    bloom_contains_any(f, ARRAY[NULL, 2]) AS any_absent, bloom_contains_all(f, ARRAY[NULL, 2]) AS all_absent
FROM one;

-- No rows: bloom_agg and bloom_union_agg give bloom_empty(), bloom_intersection_agg gives NULL.
SELECT bloom_agg(x) = bloom_empty() AS agg, bloom_agg(x, 100) = bloom_empty() AS capacity,
    bloom_agg(x, 100, 0.1) = bloom_empty() AS rate,
    bloom_agg(x, 100, 0.1, 'classic') = bloom_empty() AS layout, bloom_agg(x::text) = bloom_empty() AS text,
        bloom_agg(x::text::"char"::text) = bloom_empty() AS "char"
FROM (SELECT 1 AS x WHERE false) nothing;
SELECT bloom_union_agg(f) = bloom_empty() AS union, bloom_intersection_agg(f) AS intersection FROM one WHERE false;
SELECT count(*) FROM (VALUES ('a'), ('b')) v (url) WHERE NOT (SELECT bloom_union_agg(t) FROM one WHERE false) @> url;
SELECT bloom_agg(x) OVER (ORDER BY x ROWS BETWEEN 2 PRECEDING AND 2 PRECEDING) = bloom_empty() AS empty_frame
FROM generate_series(1, 3) x;

-- NULL filters are skipped by the aggregates; nothing but NULLs is nothing.
SELECT bloom_union_agg(g) = bloom_from_array(ARRAY[1, 2], 100) AS union,
    bloom_cardinality(bloom_intersection_agg(g)) AS nothing_in_both
FROM (VALUES (NULL), (bloom_from_array(ARRAY[1], 100)), (NULL), (bloom_from_array(ARRAY[2], 100))) v (g);
SELECT bloom_intersection_agg(g) = f AS intersection FROM one,
    (VALUES (NULL), (bloom_from_array(ARRAY[1], 100)), (NULL)) v (g) GROUP BY f;
SELECT bloom_union_agg(g) = bloom_empty() AS union, bloom_intersection_agg(g) AS intersection
    FROM (VALUES (NULL::bloom), (NULL)) v (g);

-- NULL parameters of the sizing functions.
SELECT bloom_parameters(NULL) IS NULL AS parameters, bloom_capacity(NULL) AS capacity,
    bloom_best_practices(NULL) IS NULL AS best_practices,
    bloom_expected_fpr(NULL, 1000, 5) AS expected_fpr;
SELECT count(*) FROM bloom_sizing_table(NULL);
-- A NULL array gives no filter.
SELECT bloom_from_array(NULL::int[]) AS from_array;

DROP TABLE one;
