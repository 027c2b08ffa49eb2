-- A rate above the promise: a build warns, with both counts and both rates, if filters of exactly its capacity had that
-- rate with a probability of less than one in a billion.
SELECT octet_length(bloom_agg(i, 1000)::bytea) FROM generate_series(1, 3000) i;
SELECT octet_length(bloom_agg(i, 1000, 0.001, 'classic')::bytea) FROM generate_series(1, 2000) i;
SELECT octet_length(bloom_agg(i, 1000, 0.05, 'parquet')::bytea) FROM generate_series(1, 4000) i;
-- A full one can't tell how many there are.
SELECT octet_length(bloom_agg(i, 2, 0.1, 'classic')::bytea) FROM generate_series(1, 1000) i;

-- So does everything that fills a filter.
CREATE TABLE f AS SELECT bloom_agg(i, 1000) AS a, (SELECT bloom_agg(i, 1000)
    FROM generate_series(1001, 2000) i) AS b, (SELECT bloom_agg(i, 8250) FROM generate_series(1, 8250) i) AS large
    FROM generate_series(1, 1000) i;
SELECT bloom_from_array(array_agg(i), 1000) IS NULL AS from_array FROM generate_series(1, 2000) i;
SELECT bloom_add_all(a, array_agg(i)) IS NULL AS add_all FROM f, generate_series(1001, 2000) i GROUP BY a;
SELECT a | b IS NULL AS union FROM f;
SELECT bloom_union_agg(g) IS NULL AS union_agg FROM f, LATERAL (VALUES (a), (b)) v (g);
SELECT b || 1 || 2 IS NULL AS add FROM (SELECT bloom_add_all(bloom_empty(9), array_agg(i)) AS b FROM generate_series(1, 200) i) v;
-- A full small filter merged into a full large one: the number of elements is within capacity, but not how full it
-- is.
SELECT a | large IS NULL AS spread FROM f;

-- No warning: at capacity, within chance, by repeated elements, without a capacity, as a list, by what is in the filter
-- already, by an intersection, and by asking.
SELECT bloom_agg(i, 1000) IS NULL AS at_capacity FROM generate_series(1, 1000) i;
SELECT bloom_agg(i, 1000) IS NULL AS within_chance FROM generate_series(1, 1040) i;
SELECT bloom_agg(i % 1000, 1000) IS NULL AS repeated FROM generate_series(1, 100000) i;
SELECT bloom_agg(i) IS NULL AS unsized FROM generate_series(1, 10000) i;
SELECT bloom_agg(i, NULL, rate) IS NULL AS unsized_at_a_high_rate, bloom_from_array(array_agg(i), NULL, rate) IS NULL AS from_array
    FROM unnest(ARRAY[0.5, 0.4, 0.1]) rate, generate_series(1, 3000) i GROUP BY rate;
SELECT bloom_agg(i, 100, 1e-9) IS NULL AS list FROM generate_series(1, 150) i;
SELECT bloom_empty(1) || 1 || 2 IS NULL AS list_of_two;
SELECT a || 1 IS NULL AS there_already, bloom_add_all(a, ARRAY[1, 2, 3]) IS NULL AS all_there FROM f;
SELECT a & b IS NULL AS intersection, bloom_union_cardinality(a, b) IS NULL AS cardinality, a @> 1 AS asking FROM f;

-- Of many sets at capacity none warns, at 115 % of a large one each does.
SET pg_bloom.overfill = error;
SELECT layout, capacity, count(*) FILTER (WHERE outcome(format('SELECT bloom_agg(i, %s, 0.01, %L) IS NULL FROM generate_series(%s, %s) i',
    capacity, layout, set * 10000, set * 10000 + capacity - 1)) = '22023') AS at_capacity,
    count(*) FILTER (WHERE outcome(format('SELECT bloom_agg(i, 50000, 0.01, %L) IS NULL FROM generate_series(%s, %s) i',
        layout, set * 100000, set * 100000 + 57500 - 1)) = 'false') AS far_over
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[51, 1600]) capacity, generate_series(1, 40) set
    GROUP BY layout, capacity ORDER BY layout, capacity;
RESET pg_bloom.overfill;

-- One warning for each call and statement, not for each group, row or frame.
SELECT count(f) AS groups FROM (SELECT bloom_agg(i, 20) AS f FROM generate_series(1, 20000) i GROUP BY i % 200 OFFSET 0) f;
SELECT count(f) AS groups FROM (SELECT bloom_agg(i, 20) AS f FROM generate_series(1, 20000) i GROUP BY i % 200 OFFSET 0) f;
SELECT count(f) AS rows FROM (SELECT bloom_from_array(ARRAY(SELECT generate_series(n, n + 100)), 20) AS f
    FROM generate_series(1, 50) n OFFSET 0) v;
-- Two calls are two.
SELECT count(f) AS f, count(g) AS g FROM (SELECT bloom_agg(i, 20) AS f, counting_bloom_agg(i, 21) AS g
    FROM generate_series(1, 5000) i GROUP BY i % 50 OFFSET 0) v;
-- A call in PL/pgSQL lives for the transaction: in each statement that the client sends it warns once more.
CREATE FUNCTION fill(f bloom) RETURNS bloom LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..300 LOOP f := f || i; END LOOP;
    RETURN f;
END $$;
BEGIN;
SELECT fill(bloom_empty(20)) IS NULL AS first;
SELECT fill(bloom_empty(20)) IS NULL AS second;
COMMIT;
-- So does a prepared statement each time.
PREPARE p AS SELECT bloom_agg(i, 20) IS NULL AS prepared FROM generate_series(1, 200) i GROUP BY i % 2;
EXECUTE p;
EXECUTE p;
DEALLOCATE p;
-- And after one that failed.
SELECT 1 / count(f) FILTER (WHERE f IS NULL) FROM (SELECT bloom_agg(i, 20) AS f FROM generate_series(1, 200) i OFFSET 0) v;
SELECT bloom_agg(i, 20) IS NULL AS again FROM generate_series(1, 200) i;
DROP FUNCTION fill;
SET pg_bloom.overfill = error;

-- With pg_bloom.overfill = error it fails instead: 22023, with the same text.
\x on
SELECT * FROM failure('SELECT bloom_agg(i, 1000) FROM generate_series(1, 3000) i');
SELECT * FROM failure('SELECT a | large FROM f');
\x off
SELECT outcome('SELECT bloom_from_array(array_agg(i), 1000) IS NULL FROM generate_series(1, 2000) i') AS from_array,
    outcome('SELECT bloom_add_all(a, array_agg(i)) IS NULL FROM f, generate_series(1001, 2000) i GROUP BY a') AS add_all,
    outcome('SELECT a | b IS NULL FROM f') AS union,
        outcome('SELECT bloom_union_agg(g) IS NULL FROM f, LATERAL (VALUES (a), (b)) v (g)') AS union_agg,
        outcome('SELECT bloom_add(a, 1) IS NULL FROM (SELECT bloom_add_all(bloom_empty(9), ARRAY(SELECT generate_series(2, 200))) AS a) v') AS add,
    outcome('SELECT bloom_agg(i, 10) OVER () IS NULL FROM generate_series(1, 200) i') AS window;

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
