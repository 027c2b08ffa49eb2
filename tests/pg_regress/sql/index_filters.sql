-- The access method bloom_filter over a column of filters: which of them may have an element?
SET enable_seqscan = off;

CREATE TABLE segments (id integer, seen bloom);
INSERT INTO segments SELECT i, bloom_agg('trace ' || (i * 1000 + j), 1000, 0.01)
FROM generate_series(1, 200) AS i, generate_series(1, 1000) AS j GROUP BY i;
INSERT INTO segments SELECT i, bloom_agg('trace ' || (i * 1000 + j), 1000, 0.01, 'classic')
FROM generate_series(201, 220) AS i, generate_series(1, 1000) AS j GROUP BY i;
INSERT INTO segments SELECT i, bloom_agg('trace ' || (i * 1000 + j), 1000, 0.01, 'parquet')
FROM generate_series(221, 240) AS i, generate_series(1, 1000) AS j GROUP BY i;
INSERT INTO segments SELECT i, bloom_agg('trace ' || (i * 1000 + j), 1000000)
FROM generate_series(241, 260) AS i, generate_series(1, 10) AS j GROUP BY i;
INSERT INTO segments VALUES (0, NULL), (-1, bloom_empty()), (-2, bloom_empty(1000));
CREATE INDEX segments_seen ON segments USING bloom_filter (seen);
ANALYZE segments;

-- Each operator and function has a plan.
EXPLAIN (COSTS OFF) SELECT id FROM segments WHERE seen @> 'trace 42500';
EXPLAIN (COSTS OFF) SELECT id FROM segments WHERE 'trace 42500' <@ seen;
EXPLAIN (COSTS OFF) SELECT id FROM segments WHERE seen @> ANY (ARRAY['trace 42500', 'trace 43500']);
EXPLAIN (COSTS OFF) SELECT id FROM segments WHERE bloom_contains(seen, 'trace 42500');
EXPLAIN (COSTS OFF) SELECT id FROM segments WHERE bloom_contains_any(seen, ARRAY['trace 42500', 'trace 43500']);
EXPLAIN (COSTS OFF) SELECT id FROM segments WHERE bloom_contains_all(seen, ARRAY['trace 42500', NULL, 'trace 42501']);
EXPLAIN (COSTS OFF) SELECT id FROM segments WHERE bloom_contains_all(seen, ARRAY[1, 2, 3, 4, 5, 6]);
EXPLAIN (COSTS OFF) SELECT id FROM segments WHERE seen @> 42;
EXPLAIN (COSTS OFF) SELECT id FROM segments WHERE seen @> 42::numeric AND seen @> 43::numeric;
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) AS x, segments WHERE seen @> x;

-- Any element of an array of any type. Of ANY, PostgreSQL asks no support function: it answers the same from all rows.
CREATE TABLE spans (id integer, part integer, seen bloom) PARTITION BY LIST (part);
CREATE TABLE spans_even PARTITION OF spans FOR VALUES IN (0);
CREATE TABLE spans_odd PARTITION OF spans FOR VALUES IN (1);
INSERT INTO spans SELECT i, i % 2, bloom_agg(i * 1000 + j, 2000, 0.0001)
FROM generate_series(1, 60) AS i, generate_series(1, 2000) AS j GROUP BY i;
CREATE INDEX ON spans USING bloom_filter (seen);
ANALYZE spans;
EXPLAIN (COSTS OFF) SELECT id FROM spans WHERE bloom_contains_any(seen, ARRAY[42500, 43999, NULL]);
SELECT id FROM spans WHERE seen @> ANY (ARRAY[42500, 43999, NULL]) ORDER BY id;
EXPLAIN (COSTS OFF) SELECT id FROM spans_even WHERE id < 30 AND bloom_contains_any(seen, ARRAY[17001::bigint]);
PREPARE any_of(integer[]) AS SELECT id FROM spans_even WHERE bloom_contains_any(seen, $1) ORDER BY id;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE any_of(ARRAY[42500]);
EXECUTE any_of(ARRAY[42500, 10500]);
EXECUTE any_of('{}');
EXECUTE any_of(NULL);
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) SELECT w.i, s.id FROM generate_series(20, 22) AS w (i),
    LATERAL (SELECT id FROM spans_even WHERE bloom_contains_any(seen, ARRAY[w.i * 1000 + 1]) OFFSET 0) AS s;
SELECT w.i, s.id FROM generate_series(20, 22) AS w (i),
    LATERAL (SELECT id FROM spans_even WHERE bloom_contains_any(seen, ARRAY[w.i * 1000 + 1]) OFFSET 0) AS s ORDER BY 1, 2;
CREATE DOMAIN ids AS integer[];
CREATE DOMAIN few_ids AS ids CHECK (cardinality(VALUE) < 9);
EXPLAIN (COSTS OFF) SELECT id FROM spans_even WHERE bloom_contains_any(seen, '{42500}'::few_ids);
SELECT id FROM spans WHERE bloom_contains_any(seen, '{42500, 17001}'::few_ids) ORDER BY id;
PREPARE any_of_ids(ids) AS SELECT id FROM spans WHERE bloom_contains_any(seen, $1) ORDER BY id;
SET plan_cache_mode = force_generic_plan;
EXECUTE any_of_ids('{42500}');
RESET plan_cache_mode;
-- Of these each filter is read.
SET enable_seqscan = on;
EXPLAIN (COSTS OFF) SELECT id FROM spans_even WHERE seen @> ALL (ARRAY[42500, 42501]);
EXPLAIN (COSTS OFF) SELECT id FROM spans_even WHERE NOT seen @> ANY (ARRAY[42500]);
EXPLAIN (COSTS OFF) SELECT id FROM spans_even WHERE seen @> ANY (ARRAY[42500, random()::integer]);
SELECT id FROM spans WHERE seen @> ANY (ARRAY['42500']);
-- A sample stays one.
SET enable_seqscan = off;
SELECT id FROM spans_even TABLESAMPLE SYSTEM (0) WHERE seen @> ANY (ARRAY[42500]);
SELECT id FROM spans_even TABLESAMPLE SYSTEM (100) WHERE seen @> ANY (ARRAY[42500]);
DROP TABLE spans;
DEALLOCATE any_of_ids;
DROP DOMAIN few_ids, ids;

-- Every element is found in its filter, whatever that is.
SELECT count(*) FROM generate_series(1, 260) AS i
WHERE EXISTS (SELECT FROM segments WHERE seen @> ('trace ' || (i * 1000 + 5)) AND id = i);
SELECT count(*) FROM generate_series(1, 260) AS i
WHERE EXISTS (SELECT FROM segments WHERE bloom_contains(seen, 'trace ' || (i * 1000 + 5)) AND id = i);
SELECT count(*) FROM generate_series(1, 260) AS i
WHERE EXISTS (SELECT FROM segments WHERE bloom_contains_any(seen, ARRAY['no', NULL, 'trace ' || (i * 1000 + 5)]) AND id = i);
SELECT count(*) FROM generate_series(1, 260) AS i
WHERE EXISTS (SELECT FROM segments WHERE seen @> ANY (ARRAY['no', NULL, 'trace ' || (i * 1000 + 5)]) AND id = i);
SELECT id FROM segments WHERE seen @> NULL::text;
SELECT id FROM segments WHERE seen @> ANY ('{}'::text[]);
SELECT id FROM segments WHERE bloom_contains_any(seen, '{}'::text[]);
SELECT id FROM segments WHERE bloom_contains_all(seen, ARRAY['trace 42500', NULL, 'trace 42501']);
SELECT id FROM segments WHERE bloom_contains_all(seen, ARRAY['trace 42500', 'trace 43500']);
SELECT count(*) FROM segments WHERE bloom_contains_all(seen, '{}'::text[]);
PREPARE all_of(text[]) AS SELECT id FROM segments WHERE bloom_contains_all(seen, $1) ORDER BY id;
EXPLAIN (COSTS OFF) EXECUTE all_of(ARRAY['trace 42500']);
EXECUTE all_of(ARRAY['trace 42500', 'trace 42501', 'trace 42502', 'trace 42503', 'trace 42504', 'trace 43500']);
SET plan_cache_mode = force_generic_plan;
EXECUTE all_of(ARRAY['trace 42500']);
RESET plan_cache_mode;

-- It answers exactly as a sequential scan does.
CREATE TABLE answers AS
SELECT x, array_agg(id ORDER BY id) AS ids FROM generate_series(1, 300) AS x, segments WHERE seen @> ('trace ' || x * 997)
GROUP BY x;
SET enable_seqscan = on;
SET enable_bitmapscan = off;
SELECT count(*) FROM (
    SELECT x, array_agg(id ORDER BY id) AS ids FROM generate_series(1, 300) AS x, segments
    WHERE seen @> ('trace ' || x * 997) GROUP BY x
    EXCEPT SELECT * FROM answers) AS missing;
SET enable_seqscan = off;
RESET enable_bitmapscan;

-- Another kind is an error for rows that are visible.
SELECT id FROM segments WHERE seen @> 42;
SELECT id FROM segments WHERE bloom_contains_any(seen, '{}'::integer[]);
CREATE TABLE numbers (id integer, seen bloom);
CREATE INDEX numbers_seen ON numbers USING bloom_filter (seen);
INSERT INTO numbers VALUES (1, bloom_from_array(ARRAY['a text']));
DELETE FROM numbers;
INSERT INTO numbers SELECT i, bloom_from_array(ARRAY[i, i + 1], 100) FROM generate_series(1, 500) AS i;
SELECT id FROM numbers WHERE seen @> 42 ORDER BY id;
SELECT id FROM numbers WHERE seen @> 42::smallint AND seen @> 41::bigint;
SELECT id FROM numbers WHERE bloom_contains_any(seen, ARRAY[77, 499]) ORDER BY id;
PREPARE ask(bigint) AS SELECT id FROM numbers WHERE seen @> $1 ORDER BY id;
SET plan_cache_mode = force_generic_plan;
EXECUTE ask(42);
EXECUTE ask(NULL);
RESET plan_cache_mode;

-- Filters that are merged into, rows that go, slots that are used again.
UPDATE numbers SET seen = bloom_add(seen, 100000 + id);
SELECT id FROM numbers WHERE seen @> 100042;
SELECT bloom_index_check('numbers_seen'), filters > 500 AS old_ones FROM bloom_index_info('numbers_seen');
VACUUM numbers;
SELECT slots FROM bloom_index_info('numbers_seen') \gset before_
DELETE FROM numbers WHERE id % 2 = 0;
VACUUM numbers;
INSERT INTO numbers SELECT i, bloom_from_array(ARRAY[i, i + 1, 7], 100) FROM generate_series(501, 700) AS i;
SELECT bloom_index_check('numbers_seen'), slots <= :before_slots AS used_again
FROM bloom_index_info('numbers_seen');
SELECT id FROM numbers WHERE seen @> 600 ORDER BY id;
BEGIN;
DELETE FROM numbers;
INSERT INTO numbers VALUES (0, bloom_from_array(ARRAY[600]));
SELECT id FROM numbers WHERE seen @> 600 ORDER BY id;
ROLLBACK;
SELECT id FROM numbers WHERE seen @> 600 ORDER BY id;
SELECT id FROM numbers WHERE seen @> 42 ORDER BY id;
REINDEX INDEX numbers_seen;
REINDEX INDEX CONCURRENTLY numbers_seen;
CREATE INDEX CONCURRENTLY numbers_too ON numbers USING bloom_filter (seen) WHERE id > 100;
SELECT bloom_index_check('numbers_seen'), bloom_index_check('numbers_too');
TRUNCATE numbers;
SELECT id FROM numbers WHERE seen @> 600;
SELECT bloom_index_check('segments_seen'), filters, always_probed, pages_per_range, levels FROM bloom_index_info('segments_seen');

-- Unlogged, temporary, an expression.
CREATE UNLOGGED TABLE unlogged AS SELECT * FROM segments;
CREATE INDEX unlogged_seen ON unlogged USING bloom_filter (seen);
CREATE TEMP TABLE temporary AS SELECT * FROM segments;
CREATE INDEX temporary_seen ON temporary USING bloom_filter (bloom_union(seen, seen));
INSERT INTO temporary SELECT * FROM segments;
SELECT bloom_index_check('unlogged_seen'), bloom_index_check('temporary_seen');
SELECT count(*) FROM temporary WHERE bloom_union(seen, seen) @> 'trace 42500' AND id = 42;

-- What can't be.
CREATE INDEX ON segments USING bloom_filter (seen) WITH (fpr = 0.01);
CREATE INDEX ON segments USING bloom_filter (seen, id);
CREATE OPERATOR CLASS strange_ops FOR TYPE bloom USING bloom_filter AS
    OPERATOR 2 @> (bloom, text), FUNCTION 1 (bloom, bloom) bloom_key(anyelement);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'strange_ops';
CREATE INDEX ON segments USING bloom_filter (seen strange_ops);
SELECT amvalidate(oid) FROM pg_opclass
WHERE opcname = 'bloom_ops' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'bloom_filter');
CREATE TABLE keys (k bloom_key);
INSERT INTO keys VALUES ('\x00');
DROP OPERATOR FAMILY strange_ops USING bloom_filter;
DROP TABLE segments, answers, numbers, unlogged, temporary, keys;
