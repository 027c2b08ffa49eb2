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
-- The thousand rows of a minute may be in as many ranges, for all that the planner knows.
SELECT plan_of('SELECT * FROM spans WHERE minute = 7');
SELECT plan_of(format('SELECT * FROM spans WHERE trace = ANY (%L)', array_agg(md5((i * 97)::text))))
FROM generate_series(1, 1000) AS i;
-- Not for a question that it has no answer to.
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
