-- When the planner takes an index USING bloom_filter: where it reads few ranges, and not where a key is in most of them.
SELECT count(set_config(name, 'off', false)) <= 2 AS set FROM pg_settings WHERE name IN ('enable_memoize', 'jit');
SET max_parallel_workers_per_gather = 0;
CREATE TABLE spans AS
SELECT i AS id, md5(i::text) AS trace, i % 100 AS service, (i * 7919::bigint % 100003 / 20)::integer AS host,
    (i * 104729::bigint % 100019 / 20)::integer AS other_host, CASE WHEN i % 100 > 0 THEN md5('n' || i) END AS parent, i / 1000 AS minute
FROM generate_series(1, 100000) AS i;
CREATE INDEX spans_trace ON spans USING bloom_filter (trace);
CREATE INDEX spans_service ON spans USING bloom_filter (service);
CREATE INDEX spans_host ON spans USING bloom_filter (host);
CREATE INDEX spans_plus ON spans USING bloom_filter ((host + 0));
CREATE INDEX spans_other ON spans USING bloom_filter ((other_host + 0));
CREATE INDEX spans_parent ON spans USING bloom_filter (parent);
CREATE INDEX spans_minute ON spans USING bloom_filter (minute);
CREATE INDEX spans_id ON spans (id);
VACUUM ANALYZE spans;

-- Few ranges.
SELECT plan_of($$SELECT * FROM spans WHERE trace = 'a'$$);
SELECT plan_of($$SELECT * FROM spans WHERE 'a' = trace$$);
SELECT plan_of($$SELECT * FROM spans WHERE trace = 'a'::varchar$$);
SELECT plan_of($$SELECT * FROM spans WHERE trace IN ('a', 'b', 'c')$$);
SELECT plan_of($$SELECT * FROM spans WHERE trace = ANY (ARRAY['a', NULL])$$);
SELECT plan_of($$SELECT * FROM spans WHERE trace = 'a' AND service = 1$$);
SELECT plan_of($$SELECT * FROM spans WHERE trace = 'a' ORDER BY id LIMIT 1$$);
SELECT plan_of($$SELECT * FROM spans WHERE host = 7$$);
SELECT plan_of($$SELECT * FROM spans WHERE host = 7::bigint$$);
SELECT plan_of($$SELECT * FROM spans WHERE host = ANY ('{7,8}'::bigint[])$$);
SELECT plan_of($$UPDATE spans SET minute = 0 WHERE trace = 'a'$$);

-- Parameters.
PREPARE one(text) AS SELECT * FROM spans WHERE trace = $1;
PREPARE many(text[]) AS SELECT * FROM spans WHERE trace = ANY ($1);
SET plan_cache_mode = force_generic_plan;
SELECT plan_of($$EXECUTE one('a')$$);
SELECT plan_of($$EXECUTE many('{a,b}')$$);
RESET plan_cache_mode;
EXECUTE one(md5('77'));
SELECT id FROM spans WHERE trace = ANY (ARRAY[md5('77'), md5('99999'), 'none']) ORDER BY id;

-- In other bitmaps: both of its own and of B-trees.
SELECT plan_of($$SELECT * FROM spans WHERE trace = 'a' OR id = 5$$);
SELECT plan_of($$SELECT * FROM spans WHERE trace = 'a' OR parent = 'b'$$);
-- Both on expressions, whose ranges PostgreSQL reads whole.
SELECT line FROM plan_of($$SELECT * FROM spans WHERE host + 0 = 7 AND other_host + 0 = 9$$) AS line ORDER BY trim(line) COLLATE "C";

-- Within nested loops.
CREATE TABLE few AS SELECT md5((i * 1000)::text) AS trace FROM generate_series(1, 10) AS i UNION ALL SELECT 'none';
ANALYZE few;
SELECT plan_of('SELECT * FROM few JOIN spans USING (trace)');
SELECT plan_of('SELECT * FROM few LEFT JOIN spans USING (trace)');
SELECT plan_of('SELECT * FROM few WHERE EXISTS (SELECT FROM spans WHERE spans.trace = few.trace)');
SELECT plan_of('SELECT * FROM few WHERE NOT EXISTS (SELECT FROM spans WHERE spans.trace = few.trace)');
SELECT plan_of('SELECT trace, (SELECT count(*) FROM spans WHERE spans.trace = few.trace) FROM few');
SELECT count(*) AS joined FROM few JOIN spans USING (trace);
SELECT * FROM few WHERE NOT EXISTS (SELECT FROM spans WHERE spans.trace = few.trace);

-- Not where most ranges have the key, or any of the keys.
SELECT plan_of('SELECT * FROM spans WHERE service = 3');
-- The thousand rows of a minute are side by side, which the bits of the index tell.
SELECT plan_of('SELECT * FROM spans WHERE minute = 7');
-- Blocks of equal keys in any order: the correlation is low, and each key is in few ranges.
CREATE TABLE blocks AS SELECT b * 7919 % 1009 AS batch, md5(i::text) AS pad FROM generate_series(0, 299) AS b, generate_series(1, 500) AS i;
CREATE INDEX blocks_batch ON blocks USING bloom_filter (batch);
CREATE INDEX blocks_plus ON blocks USING bloom_filter ((batch + 0));
VACUUM ANALYZE blocks;
SELECT abs(correlation) < 0.5 AS low FROM pg_stats WHERE tablename = 'blocks' AND attname = 'batch';
SELECT plan_of('SELECT * FROM blocks WHERE batch = 7919 % 1009');
SELECT plan_of('SELECT * FROM blocks WHERE batch + 0 = 7919 % 1009');
-- The same in an index that grew with its table.
CREATE TABLE grown (LIKE blocks) WITH (autovacuum_enabled = off);
CREATE INDEX grown_batch ON grown USING bloom_filter (batch);
INSERT INTO grown SELECT * FROM blocks;
ANALYZE grown;
SELECT plan_of('SELECT * FROM grown WHERE batch = 7919 % 1009');
-- Without statistics a key is expected to have a handful of rows, also in a temporary table.
CREATE TABLE fresh WITH (autovacuum_enabled = off) AS SELECT md5(i::text) AS trace, i FROM generate_series(1, 100000) AS i;
CREATE INDEX fresh_trace ON fresh USING bloom_filter (trace);
CREATE INDEX fresh_lower ON fresh USING bloom_filter (lower(trace));
SELECT plan_of($$SELECT * FROM fresh WHERE trace = 'a'$$);
SELECT plan_of($$SELECT * FROM fresh WHERE lower(trace) = 'a'$$);
CREATE TEMPORARY TABLE passing AS SELECT * FROM fresh;
CREATE INDEX passing_trace ON passing USING bloom_filter (trace);
SELECT plan_of($$SELECT * FROM passing WHERE trace = 'a'$$);
-- Small partitions with neighbouring rows of a key.
CREATE TABLE parts (day integer, trace integer, pad text) PARTITION BY LIST (day);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT 1 + i % 2, i / 12, repeat('-', 90) FROM generate_series(1, 6000) AS i;
CREATE INDEX parts_trace ON parts USING bloom_filter (trace);
VACUUM ANALYZE parts;
SELECT plan_of('SELECT * FROM parts WHERE trace = 77');
SET random_page_cost = 1.1;
SELECT plan_of('SELECT * FROM parts WHERE trace = 77');
RESET random_page_cost;
-- Without the heap filter PostgreSQL compares the rows itself, with the same answer.
SET enable_seqscan = off;
SET pg_bloom.heap_filter = off;
SELECT i FROM fresh WHERE trace IN (md5('7'), md5('99999'), 'none') ORDER BY i;
SET pg_bloom.heap_filter = on;
SELECT i FROM fresh WHERE trace IN (md5('7'), md5('99999'), 'none') ORDER BY i;
RESET pg_bloom.heap_filter;
RESET enable_seqscan;
DROP TABLE blocks, grown, fresh, passing, parts;
SELECT plan_of(format('SELECT * FROM spans WHERE trace = ANY (%L)', array_agg(md5((i * 97)::text))))
FROM generate_series(1, 1000) AS i;
-- Not for a condition that it can't answer.
SELECT plan_of('SELECT * FROM spans WHERE parent IS NULL');
SELECT plan_of($$SELECT * FROM spans WHERE trace <> 'a'$$);
SELECT plan_of($$SELECT * FROM spans WHERE trace > 'a'$$);
SELECT plan_of($$SELECT * FROM spans WHERE trace LIKE 'a%'$$);
SELECT plan_of($$SELECT * FROM spans WHERE NOT trace = 'a'$$);
SELECT plan_of($$SELECT * FROM spans WHERE trace = ALL (ARRAY['a', 'b'])$$);
SELECT plan_of('SELECT * FROM spans WHERE host = 7.0');
SELECT plan_of('SELECT * FROM spans ORDER BY trace LIMIT 1');
SELECT plan_of('SELECT count(*) FROM spans');
-- Not for a table of a few pages.
CREATE INDEX ON few USING bloom_filter (trace);
SELECT plan_of($$SELECT * FROM few WHERE trace = 'a'$$);
-- Not where a B-tree has the answer in fewer pages.
CREATE INDEX spans_btree ON spans (trace);
SELECT plan_of($$SELECT * FROM spans WHERE trace = 'a'$$);
DROP INDEX spans_btree;

-- Partitions have indexes of their own; one that is attached keeps the one it has.
CREATE TABLE logs (day integer, trace text) PARTITION BY LIST (day);
CREATE TABLE logs_1 PARTITION OF logs FOR VALUES IN (1);
CREATE TABLE logs_2 PARTITION OF logs FOR VALUES IN (2);
CREATE TABLE logs_3 (day integer, trace text);
CREATE INDEX logs_3_own ON logs_3 USING bloom_filter (trace);
CREATE INDEX logs_trace ON logs USING bloom_filter (trace);
ALTER TABLE logs ATTACH PARTITION logs_3 FOR VALUES IN (3);
INSERT INTO logs SELECT 1 + i % 3, md5(i::text) FROM generate_series(1, 90000) AS i;
VACUUM ANALYZE logs;
SELECT plan_of($$SELECT * FROM logs WHERE trace = 'a'$$);
SELECT plan_of($$SELECT * FROM logs WHERE trace = 'a' AND day = 2$$);
SELECT * FROM logs WHERE trace IN (md5('1'), md5('2'), md5('90000'), 'none') ORDER BY day;
SELECT inhrelid::regclass, bloom_index_check(inhrelid::regclass) FROM pg_inherits WHERE inhparent = 'logs_trace'::regclass ORDER BY 1;
DROP TABLE spans, few, logs;
