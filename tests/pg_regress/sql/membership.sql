-- Probing a filter. false is certain; true is wrong at the filter's rate.
CREATE TABLE f AS SELECT
    bloom_agg('https://example.org/' || i) AS urls, bloom_agg(i, 1000, 0.001, 'classic') AS ids,
    bloom_agg(md5(i::text)::uuid, 1000, 0.05, 'parquet') AS uuids
FROM generate_series(1, 1000) i;

-- The operators, their functions and both directions say the same; nothing that was added is missing.
SELECT count(*),
    count(*) FILTER (WHERE NOT urls @> ('https://example.org/' || i)) AS urls_missing,
    count(*) FILTER (WHERE NOT ids @> i) AS ids_missing, count(*)
        FILTER (WHERE NOT uuids @> md5(i::text)::uuid) AS uuids_missing
FROM f, generate_series(1, 1000) i;
SELECT count(*),
    bool_and((urls @> u) = (u <@ urls) AND (urls @> u) = bloom_contains(urls, u) AND (urls @> u) = bloom_contained(u,
        urls)
        AND (urls @> u) = (bloom_query(urls, u)).contains) AS texts_agree,
    bool_and((ids @> i) = (i <@ ids) AND (ids @> i) = bloom_contains(ids, i) AND (ids @> i) = bloom_contained(i, ids)
        AND (ids @> i) = (bloom_query(ids, i)).contains) AS integers_agree,
    bool_or(urls @> u) AND bool_or(ids @> i) AND bool_or(NOT urls @> u) AND bool_or(NOT ids @> i) AS both_answers
FROM f, generate_series(1, 3000) i, LATERAL (SELECT 'https://example.org/' || i AS u) u;

-- Absent elements are found about as often as bloom_fpr says: within five standard errors in 100,000.
SELECT abs(urls_found - urls_rate) < 5 * sqrt(urls_rate / 100000) AS urls,
    abs(ids_found - ids_rate) < 5 * sqrt(ids_rate / 100000) AS ids,
    abs(uuids_found - uuids_rate) < 5 * sqrt(uuids_rate / 100000) AS uuids
FROM (SELECT bloom_fpr(urls) AS urls_rate, avg((urls @> ('https://example.com/' || i))::int)::float8 AS urls_found,
        bloom_fpr(ids) AS ids_rate, avg((ids @> (i + 1000))::int)::float8 AS ids_found,
        bloom_fpr(uuids) AS uuids_rate, avg((uuids @> md5('absent' || i)::uuid)::int)::float8 AS uuids_found
    FROM f, generate_series(1, 100000) i GROUP BY urls, ids, uuids) rates;

-- Untyped literals are text.
SELECT urls @> 'https://example.org/1' AS found, urls @> 'https://example.org/0' AS absent,
    'https://example.org/2' <@ urls AS contained, 'https://example.org/-2' <@ urls AS contained_absent,
    bloom_contains(urls, 'https://example.org/3') AS function,
        (bloom_query(urls, 'https://example.org/3')).contains AS query
FROM f;
SELECT ids @> '1' FROM f;

-- Prepared statements: parameters of a type, and of none, by plans for the value and for any value.
PREPARE by_type(text) AS SELECT urls @> $1 FROM f;
PREPARE untyped AS SELECT urls @> $1, bloom_contains(urls, $1) FROM f;
PREPARE by_integer(int) AS SELECT ids @> $1, $1 <@ ids FROM f;
PREPARE by_array(int[]) AS SELECT bloom_contains_any(ids, $1), bloom_contains_all(ids, $1) FROM f;
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'untyped';
SET plan_cache_mode = force_custom_plan;
EXECUTE by_type('https://example.org/1');
EXECUTE by_type('https://example.org/0');
EXECUTE untyped('https://example.org/1');
EXECUTE by_integer(1000);
EXECUTE by_integer(-1000);
SET plan_cache_mode = force_generic_plan;
EXECUTE by_type('https://example.org/1');
EXECUTE by_type('https://example.org/0');
EXECUTE untyped('https://example.org/1');
EXECUTE by_integer(1000);
EXECUTE by_integer(-1000);
EXECUTE by_array('{1,2,-3}');
EXECUTE by_array('{}');
RESET plan_cache_mode;
DEALLOCATE ALL;

-- A prepared statement asks whatever filter the table holds by then.
CREATE TABLE changing AS SELECT bloom_from_array(ARRAY[1]) AS f;
PREPARE ask(int) AS SELECT f @> $1 FROM changing;
EXECUTE ask(2);
UPDATE changing SET f = f || 2;
EXECUTE ask(2);
UPDATE changing SET f = bloom_from_array(ARRAY['2']);
EXECUTE ask(2);
UPDATE changing SET f = bloom_empty();
EXECUTE ask(2);
DEALLOCATE ask;
DROP TABLE changing;

-- In WHERE, joins, functions, index expressions and constraints.
SELECT count(*) FROM f, generate_series(-1000, 1000) i WHERE ids @> i AND i > 0;
SELECT count(*) BETWEEN 0 AND 10 AS few FROM f, generate_series(-1000, 1000) i WHERE ids @> i AND i <= 0;
CREATE FUNCTION seen(f bloom, id int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN f @> id; END $$;
SELECT count(*) FILTER (WHERE seen(ids, i)) AS found FROM f, generate_series(1, 100) i;
CREATE TABLE allowed (id int CHECK (bloom_from_array(ARRAY[1, 2, 3]) @> id));
INSERT INTO allowed VALUES (1), (3), (NULL);
INSERT INTO allowed VALUES (4);
DROP TABLE allowed;
DROP FUNCTION seen;

-- Any and all of an array: what the elements one by one give. Empty arrays and NULLs are in the test "nulls".
SELECT bloom_contains_any(ids, ARRAY[1, 2]) AS any_of_both, bloom_contains_all(ids, ARRAY[1, 2]) AS all_of_both,
    bloom_contains_any(ids, ARRAY[1, -2]) AS any_of_one, bloom_contains_all(ids, ARRAY[1, -2]) AS all_of_one,
    bloom_contains_any(ids, ARRAY[-1, -2]) AS any_of_none, bloom_contains_all(ids, ARRAY[-1, -2]) AS all_of_none,
    bloom_contains_any(urls, ARRAY['x', 'https://example.org/7']) AS texts,
        bloom_contains_all(urls, ARRAY['x', 'https://example.org/7']) AS all_texts
FROM f;
SELECT count(*), bool_and(bloom_contains_any(ids, a) = (SELECT bool_or(ids @> x) FROM unnest(a) x)
    AND bloom_contains_all(ids, a) = (SELECT bool_and(ids @> x) FROM unnest(a) x)) AS agree,
    bool_or(bloom_contains_any(ids, a)) AND NOT bool_and(bloom_contains_any(ids, a)) AS any_both_ways,
    bool_or(bloom_contains_all(ids, a)) AND NOT bool_and(bloom_contains_all(ids, a)) AS all_both_ways
FROM f, generate_series(1, 500) i, LATERAL (SELECT array_agg((i * 37 + j * 300) % 2000) AS a
    FROM generate_series(1, 3) j) a;
SELECT bloom_contains_any(ids, ARRAY[[1, 2], [3, -4]]) AS two_dimensions,
    bloom_contains_all(ids, '[7:8]={1,2}'::smallint[]) AS smallints FROM f;

-- bloom_query tells how sure the answer is: 1 for no, 1 - bloom_fpr(filter) for yes.
SELECT (bloom_query(ids, 1)).contains, (bloom_query(ids, 1)).confidence = 1 - bloom_fpr(ids) AS confidence,
    (bloom_query(ids, 1)).confidence BETWEEN 0.999 AND 0.9999 AS about,
        (bloom_query(urls, 'https://example.org/1')).confidence = 1 - bloom_fpr(urls) AS text
FROM f;
SELECT q.* FROM f, bloom_query(ids, -1) q;
SELECT q.* FROM f, bloom_query(urls, 'absent') q;
SELECT * FROM bloom_query(bloom_from_array(ARRAY['x'::"char"]), 'x'::"char"::text);
SELECT * FROM bloom_query(bloom_empty(), 1);
SELECT contains, round(confidence::numeric, 6) AS confidence FROM bloom_query(bloom_from_array(ARRAY[1, 2, 3]), 2);

-- An array is one element. Where its members were meant, the hint names the functions for them.
SELECT bloom_cardinality(bloom_empty(100) || ARRAY['x', 'y']) AS one, (bloom_empty(100) || ARRAY['x', 'y']) @> ARRAY['x', 'y'] AS found;
SELECT (bloom_empty(100) || ARRAY['x', 'y']) @> 'x';
SELECT bloom_from_array(ARRAY['x', 'y']) @> ARRAY['x'];
SELECT bloom_from_array(ARRAY[1, 2]) || ARRAY[3];
SELECT bloom_from_array(ARRAY[1, 2]) @> ARRAY['x'];
SELECT counting_bloom_add(counting_bloom_agg(1, 100), ARRAY[3]);

DROP TABLE f;
