-- Building filters. Asking for every element that went in gives the truth to compare with: none may be missing.
CREATE TABLE words AS SELECT i, 'word ' || i AS w, i % 10 AS grp FROM generate_series(1, 5000) i;
ANALYZE words;

-- bloom_empty() has neither elements nor size; with arguments it has the size of a filter for that many.
SELECT summary(bloom_empty()) AS nothing;
SELECT summary(bloom_empty(1000)) AS capacity;
SELECT summary(bloom_empty(1000, 0.001)) AS rate;
SELECT summary(bloom_empty(1000, 0.001, 'classic')) AS classic;
SELECT summary(bloom_empty(1000, layout => 'parquet')) AS parquet;
SELECT summary(bloom_empty(NULL, 0.25, 'classic')) AS unsized;
SELECT bloom_empty() @> 1 AS integer, bloom_empty() @> 'x' AS text, bloom_empty(1000) @> now() AS sized;

-- bloom_agg, in all its forms: nothing is missing, and few absent elements are found.
CREATE VIEW forms AS
SELECT '(element)' AS form, bloom_agg(w) AS text, bloom_agg(i) AS integer FROM words
UNION ALL SELECT '(element, capacity)', bloom_agg(w, 5000), bloom_agg(i, 5000) FROM words
UNION ALL SELECT '(element, capacity, fpr)', bloom_agg(w, 5000, 0.001), bloom_agg(i, 5000, 0.001) FROM words
UNION ALL SELECT '(element, capacity, fpr, layout) ' || layout, bloom_agg(w, 5000, 0.05, layout),
    bloom_agg(i, 5000, 0.05, layout)
    FROM words, unnest(ARRAY['blocked', 'classic', 'parquet']) layout GROUP BY layout;
SELECT form, summary(text) FROM forms ORDER BY form COLLATE "C";
SELECT form, summary(integer) FROM forms ORDER BY form COLLATE "C";
SELECT form,
    count(*) FILTER (WHERE NOT text @> w) AS texts_missing, count(*)
        FILTER (WHERE NOT integer @> i) AS integers_missing
FROM (SELECT * FROM forms OFFSET 0) f, words GROUP BY form ORDER BY form COLLATE "C";
-- 50,000 absent elements: the rate is at most the promise and five standard errors, and not zero.
SELECT form, rate <= target + 5 * sqrt(target * (1 - target) / 50000) AS kept, rate > target / 10 AS not_nothing
FROM (SELECT form, avg((text @> ('absent ' || i))::int + (integer @> -i)::int) / 2 AS rate,
    max((bloom_info(text)).target_fpr) AS target
    FROM (SELECT * FROM forms OFFSET 0) f, generate_series(1, 50000) i GROUP BY form) measured
ORDER BY form COLLATE "C";
DROP VIEW forms;

-- NULL capacity, rate and layout are the defaults: the same bytes as without them.
SELECT bloom_agg(w, NULL) = bloom_agg(w) AS capacity, bloom_agg(w, NULL, NULL) = bloom_agg(w) AS rate,
    bloom_agg(w, NULL, NULL, NULL) = bloom_agg(w) AS layout,
        bloom_agg(w, 5000, NULL, NULL) = bloom_agg(w, 5000) AS sized,
    bloom_agg(w, 5000, 0.01, 'blocked') = bloom_agg(w, 5000) AS named
FROM words;
SELECT bloom_empty(NULL, layout => NULL) = bloom_empty() AS empty,
    bloom_from_array(ARRAY[1, 2], NULL, layout => NULL) = bloom_from_array(ARRAY[1, 2]) AS from_array;

-- Untyped literals are text. A "char" could be meant for text or for any other type: PostgreSQL asks for a cast.
SELECT state, message FROM failure('SELECT bloom_agg(''x''::"char")');
SELECT state, message FROM failure('SELECT bloom_empty() @> ''x''::"char"');
SELECT bloom_agg(c) @> 'x' AS x, bloom_agg(c) @> 'y'::text AS y, bloom_agg(c, 10) @> 'x'::"char"::text AS as_char,
    bloom_agg(c, 10, 0.01, 'classic') @> 'z' AS z
FROM (VALUES ('x'::"char"::text), ('y')) v (c);
SELECT bloom_agg('x') @> 'x' AS text, bloom_agg('x') @> 'X' AS other, bloom_agg('x', 10, 0.1) @> 'x' AS sized;

-- A filter is a set: neither order nor repetition changes a byte, in no layout, with and without a capacity.
SELECT layout, capacity,
    bloom_agg(i, capacity, 0.01, layout ORDER BY i) = bloom_agg(i, capacity, 0.01, layout
        ORDER BY i DESC) AS reversed,
    bloom_agg(i, capacity, 0.01, layout ORDER BY i) = bloom_agg(i, capacity, 0.01, layout
        ORDER BY md5(i::text)) AS shuffled,
    bloom_agg(DISTINCT i, capacity, 0.01, layout) = bloom_agg(i, capacity, 0.01, layout) AS "distinct",
    bloom_agg(i, capacity, 0.01, layout) = bloom_agg(i + 1, capacity, 0.01, layout) AS other_set
FROM (SELECT i FROM words UNION ALL SELECT i FROM words WHERE grp < 5) twice,
    unnest(ARRAY['blocked', 'classic', 'parquet']) layout, (VALUES (NULL), (5000), (1000000)) c (capacity)
GROUP BY layout, capacity ORDER BY layout, capacity;

-- bloom_from_array is bloom_agg over the array's elements; bloom_add, || and bloom_add_all are the same, step by
-- step.
SELECT layout, capacity,
    bloom_from_array(array_agg(w), capacity, 0.01, layout) = bloom_agg(w, capacity, 0.01, layout) AS from_array,
    bloom_add_all(bloom_empty(capacity, 0.01, layout), array_agg(w)) = bloom_agg(w, capacity, 0.01, layout) AS add_all
FROM words, unnest(ARRAY['blocked', 'classic', 'parquet']) layout, (VALUES (NULL), (5000), (1000000)) c (capacity)
GROUP BY layout, capacity ORDER BY layout, capacity;
WITH RECURSIVE steps AS (
    SELECT 0 AS i, bloom_empty(500) AS added, bloom_empty(500) AS concatenated, bloom_empty(500) AS by_tens
    UNION ALL
    SELECT steps.i + 1, bloom_add(added, w), concatenated || w,
        CASE WHEN steps.i % 10 = 0 THEN bloom_add_all(by_tens, ARRAY(SELECT w FROM words
            WHERE words.i BETWEEN steps.i + 1 AND steps.i + 10)) ELSE by_tens END
    FROM steps JOIN words ON words.i = steps.i + 1 WHERE steps.i < 500
)
SELECT i, added = built AS added, concatenated = built AS concatenated, by_tens = built AS by_tens,
    (bloom_info(added)).representation
FROM steps, LATERAL (SELECT coalesce(bloom_agg(w, 500), bloom_empty(500)) AS built FROM words
    WHERE words.i <= steps.i) b
WHERE i IN (10, 100, 300, 400, 500) ORDER BY i;
-- A filter that has no size takes one with its first elements; adding what is there already changes nothing.
SELECT summary(bloom_empty() || 1) AS first, (bloom_empty() || 1) = bloom_from_array(ARRAY[1]) AS as_built,
    (bloom_empty() || 1 || 1) = (bloom_empty() || 1) AS again,
        (bloom_empty() || 1 || 2) = (bloom_empty() || 1) AS another;
SELECT (bloom_empty() || 1 || 2::smallint || 3::bigint) = bloom_from_array(ARRAY[3, 2, 1]) AS any_width;
-- Arrays of every dimension, with bounds of their own; domains over arrays.
CREATE DOMAIN numbers AS int[];
SELECT bloom_from_array(ARRAY[[1, 2], [3, 4]]) = bloom_from_array(ARRAY[1, 2, 3, 4]) AS two_dimensions,
    bloom_from_array('[5:6]={1,2}'::int[]) = bloom_from_array(ARRAY[1, 2]) AS bounds,
    bloom_from_array('{1,2}'::numbers) = bloom_from_array(ARRAY[1, 2]) AS domain,
    bloom_from_array('{}'::int[]) = bloom_empty() AS empty, bloom_from_array('{}'::int[],
        10) = bloom_empty(10) AS empty_sized;
DROP DOMAIN numbers;

-- Without a capacity a filter has a power of two of blocks, so it can be merged with any other such.
SELECT n, log(2, blocks) = round(log(2, blocks)) AS power_of_two, (bloom_info(f)).capacity >= n AS fits, missing
FROM (VALUES (1), (10), (100), (1000), (5000)) v (n),
    LATERAL (SELECT bloom_agg(w) AS f FROM words WHERE i <= n) b,
    LATERAL (SELECT (bloom_info(f)).num_bits / 512.0 AS blocks) s,
    LATERAL (SELECT count(*) FILTER (WHERE NOT f @> w) AS missing FROM words WHERE i <= n) m
ORDER BY n;

-- A small set stays a list of hashes, whatever the capacity: it costs what it holds, and is exact.
SELECT n, (bloom_info(f)).representation, octet_length(f::bytea) AS bytes, bloom_fpr(f) < 1e-15 AS exact
FROM (VALUES (0), (1), (10), (1000)) v (n), LATERAL (SELECT bloom_agg(i, 10000000) AS f FROM words WHERE i <= n) b
    ORDER BY n;

-- GROUP BY, HAVING, FILTER, and ROLLUP, each against the same set built otherwise.
CREATE TABLE by_group AS SELECT grp, count(*), bloom_agg(w, 500) AS f FROM words GROUP BY grp;
SELECT count(*), bool_and(f = (SELECT bloom_agg(w, 500) FROM words WHERE words.grp = by_group.grp)) AS same
    FROM by_group;
SELECT count(*) FILTER (WHERE NOT f @> w AND words.grp = by_group.grp) AS missing,
    count(*) FILTER (WHERE f @> w AND words.grp <> by_group.grp) BETWEEN 1 AND 45000 * 0.012 AS few_of_other_groups
FROM by_group, words;
SELECT grp FROM words GROUP BY grp HAVING bloom_agg(w, 500) @> 'word 42' AND bloom_agg(i) @> 42;
SELECT bloom_agg(w, 500) FILTER (WHERE grp = 3) = (SELECT f FROM by_group WHERE grp = 3) AS filter,
    bloom_agg(w, 500) FILTER (WHERE grp = 10) = bloom_empty() AS filter_of_nothing
FROM words;
SELECT count(*), bool_and(f = CASE WHEN grp IS NULL THEN (SELECT bloom_agg(i) FROM words)
    ELSE (SELECT bloom_agg(i) FROM words WHERE words.grp = r.grp) END) AS same
FROM (SELECT grp, bloom_agg(i) AS f FROM words GROUP BY ROLLUP (grp)) r;
-- By hashing and by sorting.
SET enable_hashagg = off;
SELECT count(*), bool_and(f = sorted) AS same
FROM by_group JOIN (SELECT grp, bloom_agg(w, 500) AS sorted FROM words GROUP BY grp) s USING (grp);
RESET enable_hashagg;

-- Groups with parameters of their own.
SELECT grp, summary(bloom_agg(i, 100 + grp, 0.01 + grp / 100.0::float8)) FROM words WHERE i <= 30 AND grp < 3
    GROUP BY grp ORDER BY grp;

-- Window frames: the filter of each frame is that of its rows, sparse and dense, growing and moving.
SELECT count(*), bool_and(f = (SELECT bloom_agg(j, 100) FROM generate_series(greatest(i - 2, 1), i) j)) AS same,
    bool_or(f @> (i - 3)) AS left_behind
FROM (SELECT i, bloom_agg(i, 100) OVER (ORDER BY i ROWS 2 PRECEDING) AS f FROM words WHERE i <= 100) w;
SELECT count(*), bool_and(f = (SELECT bloom_agg(j) FROM generate_series(1, i) j)) AS same
FROM (SELECT i, bloom_agg(i) OVER (ORDER BY i) AS f FROM words WHERE i <= 600) w;
SET pg_bloom.overfill = ignore;
SELECT count(*), bool_and(f = (SELECT bloom_agg(j, 50, 0.1, 'classic') FROM generate_series(1, i) j)) AS same,
    bool_or((bloom_info(f)).representation = 'dense') AS dense
FROM (SELECT i, bloom_agg(i, 50, 0.1, 'classic') OVER (ORDER BY i) AS f FROM words WHERE i <= 200) w;
RESET pg_bloom.overfill;
SELECT count(DISTINCT f) FROM (SELECT bloom_agg(w, 500) OVER (PARTITION BY grp) AS f FROM words) w;
SELECT count(*) FROM (SELECT bloom_agg(w, 500) OVER (PARTITION BY grp) AS f FROM words) w
    WHERE f IN (SELECT f FROM by_group);

-- Subqueries and lateral: an anti-join by filter keeps what is surely new, and the elements that are known go.
SELECT count(*) FILTER (WHERE i <= 5000) AS known, count(*) FILTER (WHERE i > 5000) BETWEEN 4900 AND 5000 AS new
FROM (SELECT i FROM generate_series(1, 10000) i WHERE NOT (SELECT bloom_agg(w, 5000) FROM words) @> ('word ' || i)) t;
SELECT g, f @> g AS own, f @> (g + 10) AS second, f @> (g + 20) AS third
FROM generate_series(1, 3) g, LATERAL (SELECT bloom_agg(i) AS f
    FROM (SELECT i FROM words WHERE grp = g ORDER BY i LIMIT 2) first) b;
SELECT sum((SELECT bloom_cardinality(bloom_agg(x)) FROM generate_series(1, n) x)) FROM generate_series(1, 8) n;

-- Parallel workers give the same bytes.
CREATE FUNCTION all_builds() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT md5(bloom_agg(w)::text || bloom_agg(i)::text || bloom_agg(w, 5000)::text || bloom_agg(i, 100000)::text
        || bloom_agg(i, 5000, 0.001, 'classic')::text || bloom_agg(w, 5000, 0.05, 'parquet')::text) FROM words
$$;
CREATE TABLE serial AS SELECT * FROM all_builds() AS builds;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT plan_has('Gather', 'SELECT bloom_agg(w), bloom_agg(i, 5000, 0.001, ''classic'') FROM words') AS parallel;
SELECT builds = all_builds() AS same FROM serial;
SELECT count(*), bool_and(f = g) AS same
FROM by_group JOIN (SELECT grp, bloom_agg(w, 500) AS g FROM words GROUP BY grp) p USING (grp);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;

DROP FUNCTION all_builds;
DROP TABLE words, by_group, serial;
