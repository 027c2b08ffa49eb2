-- More elements than a filter was made for: a build whose estimate is over capacity by more than 5 % or four
-- standard errors, whichever is more, warns, with both counts and the rate that it has now.
SELECT octet_length(bloom_agg(i, 1000)::bytea) FROM generate_series(1, 3000) i;
SELECT octet_length(bloom_agg(i, 1000, 0.001, 'classic')::bytea) FROM generate_series(1, 2000) i;
SELECT octet_length(bloom_agg(i, 1000, 0.05, 'parquet')::bytea) FROM generate_series(1, 4000) i;
-- A sparse filter, as one of so low a rate still is, counts exactly. A full one can't tell how many there are.
SELECT octet_length(bloom_agg(i, 1000, 1e-9)::bytea) FROM generate_series(1, 1060) i;
SELECT octet_length(bloom_agg(i, 2, 0.1, 'classic')::bytea) FROM generate_series(1, 1000) i;

-- So does everything that fills a filter: each of these gives one warning.
CREATE TABLE f AS SELECT bloom_agg(i, 1000) AS a, (SELECT bloom_agg(i, 1000)
    FROM generate_series(1001, 2000) i) AS b, (SELECT bloom_agg(i, 8250) FROM generate_series(1, 8250) i) AS large
    FROM generate_series(1, 1000) i;
SELECT bloom_from_array(array_agg(i), 1000) IS NULL AS from_array FROM generate_series(1, 2000) i;
SELECT bloom_add_all(a, array_agg(i)) IS NULL AS add_all FROM f, generate_series(1001, 2000) i GROUP BY a;
SELECT a | b IS NULL AS union FROM f;
SELECT bloom_union_agg(g) IS NULL AS union_agg FROM f, LATERAL (VALUES (a), (b)) v (g);
SELECT bloom_empty(1) || 1 || 2 IS NULL AS add;
-- A full small filter merged into a full large one: the number of elements is within capacity, but not how full it
-- is.
SELECT a | large IS NULL AS spread FROM f;

-- No warning: at capacity, within the tolerance, by repeated elements, without a capacity, by what is in the
-- filter already, by an intersection, and by asking.
SELECT bloom_agg(i, 1000) IS NULL AS at_capacity FROM generate_series(1, 1000) i;
SELECT bloom_agg(i, 1000) IS NULL AS within_tolerance FROM generate_series(1, 1040) i;
SELECT bloom_agg(i % 1000, 1000) IS NULL AS repeated FROM generate_series(1, 100000) i;
SELECT bloom_agg(i) IS NULL AS unsized FROM generate_series(1, 10000) i;
SELECT a || 1 IS NULL AS there_already, bloom_add_all(a, ARRAY[1, 2, 3]) IS NULL AS all_there FROM f;
SELECT a & b IS NULL AS intersection, bloom_union_cardinality(a, b) IS NULL AS cardinality, a @> 1 AS asking FROM f;

-- The limit: 105 % where that is more than four standard errors. Of many sets at capacity none warns, at 110 % of
-- a large one each does.
SET pg_bloom.overfill = error;
SELECT layout, count(*) FILTER (WHERE outcome(format('SELECT bloom_agg(i, 1000, 0.01, %L) IS NULL FROM generate_series(%s, %s) i',
    layout, set * 10000, set * 10000 + 999)) = '22023') AS at_capacity,
    count(*) FILTER (WHERE outcome(format('SELECT bloom_agg(i, 50000, 0.01, %L) IS NULL FROM generate_series(%s, %s) i',
        layout, set * 100000, set * 100000 + 55000 - 1)) = 'false') AS far_over
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, generate_series(1, 40) set GROUP BY layout
    ORDER BY layout;
SELECT n, outcome(format('SELECT bloom_agg(i, 100000) IS NULL FROM generate_series(1, %s) i', n))
    FROM unnest(ARRAY[100000, 104000, 106000]) n;
SELECT n, outcome(format('SELECT bloom_agg(i, 1000, 1e-9) IS NULL FROM generate_series(1, %s) i', n)) AS sparse
    FROM unnest(ARRAY[1000, 1050, 1051]) n;

-- With pg_bloom.overfill = error it fails instead: 22023, with the same text.
\x on
SELECT * FROM failure('SELECT bloom_agg(i, 1000) FROM generate_series(1, 3000) i');
SELECT * FROM failure('SELECT a | large FROM f');
\x off
SELECT outcome('SELECT bloom_from_array(array_agg(i), 1000) IS NULL FROM generate_series(1, 2000) i') AS from_array,
    outcome('SELECT bloom_add_all(a, array_agg(i)) IS NULL FROM f, generate_series(1001, 2000) i GROUP BY a') AS add_all,
    outcome('SELECT a | b IS NULL FROM f') AS union,
        outcome('SELECT bloom_union_agg(g) IS NULL FROM f, LATERAL (VALUES (a), (b)) v (g)') AS union_agg,
        outcome('SELECT bloom_empty(1) || 1 || 2 IS NULL') AS add,
    outcome('SELECT bloom_agg(i, 10) OVER () IS NULL FROM generate_series(1, 20) i') AS window;

-- With ignore nothing is said, and bloom_info tells the truth all the same.
SET pg_bloom.overfill = ignore;
SELECT capacity, round(cardinality::numeric / 3000, 1) AS cardinality, target_fpr, current_fpr > 0.03 AS rate_is_up,
    saturated FROM (SELECT bloom_info(bloom_agg(i, 1000)) AS info
    FROM generate_series(1, 3000) i) i, LATERAL (SELECT (info).*) c;
SELECT capacity, cardinality, current_fpr, saturated, fill_ratio
    FROM (SELECT bloom_info(bloom_agg(i, 2, 0.1, 'classic')) AS info
    FROM generate_series(1, 1000) i) i, LATERAL (SELECT (info).*) c;
-- Nothing is lost by it: an overfull filter has more false positives and no false negative.
SELECT count(*) FILTER (WHERE i <= 3000 AND NOT f @> i) AS missing,
    count(*) FILTER (WHERE i > 3000 AND f @> i) BETWEEN 800 AND 1100 AS absent_found
FROM (SELECT bloom_agg(i, 1000) AS f FROM generate_series(1, 3000) i) f, generate_series(1, 6000) i;
RESET pg_bloom.overfill;
DROP TABLE f;
