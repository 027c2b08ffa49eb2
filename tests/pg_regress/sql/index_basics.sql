-- The access method bloom_filter: building, inserting, asking, and looking at what it holds.
SET enable_seqscan = off;

CREATE TABLE spans (id integer, trace_id text);
INSERT INTO spans SELECT i, md5(i::text) FROM generate_series(1, 20000) AS i;
INSERT INTO spans VALUES (0, NULL);
CREATE INDEX spans_trace_id ON spans USING bloom_filter (trace_id);
ANALYZE spans;

EXPLAIN (COSTS OFF) SELECT id FROM spans WHERE trace_id = 'x';
SELECT id FROM spans WHERE trace_id = md5('42');
SELECT id FROM spans WHERE md5('42') = trace_id;
SELECT id FROM spans WHERE trace_id = 'absent';
SELECT id FROM spans WHERE trace_id = ANY (ARRAY[md5('1'), NULL, md5('20000'), md5('1'), 'absent']) ORDER BY id;
SELECT id FROM spans WHERE trace_id IN (md5('7'), md5('8')) AND trace_id IN (md5('8'), md5('9'));
SELECT id FROM spans WHERE trace_id = NULL;
SELECT id FROM spans WHERE trace_id = ANY (NULL::text[]);
SELECT id FROM spans WHERE trace_id = ANY ('{}'::text[]);
SELECT count(*) FROM generate_series(1, 200) AS i WHERE EXISTS (SELECT FROM spans WHERE trace_id = md5(i::text));
SELECT bloom_index_check('spans_trace_id');

-- Rows that come later, in ranges that are there and in new ones.
INSERT INTO spans SELECT i, md5(i::text) FROM generate_series(20001, 60000) AS i;
SELECT id FROM spans WHERE trace_id = md5('60000');
UPDATE spans SET trace_id = 'changed' WHERE id = 5;
SELECT id FROM spans WHERE trace_id = 'changed';
SELECT id FROM spans WHERE trace_id = md5('5');
DELETE FROM spans WHERE id BETWEEN 1 AND 10000;
VACUUM spans;
INSERT INTO spans SELECT i, md5(i::text) FROM generate_series(60001, 70000) AS i;
SELECT bloom_index_check('spans_trace_id') = (SELECT count(trace_id) FROM spans) AS complete;
SELECT pages_per_range, levels, rows_built, target_fpr,
    table_pages = pg_relation_size('spans') / current_setting('block_size')::int AS covered,
    pages = pg_relation_size('spans_trace_id') / current_setting('block_size')::int AS whole,
    elements BETWEEN 60000 AND 80000 AS estimated
FROM bloom_index_info('spans_trace_id');

-- An empty table, and rows that are rolled back.
CREATE TABLE empty (x text);
CREATE INDEX empty_x ON empty USING bloom_filter (x);
SELECT count(*) FROM empty WHERE x = 'a';
BEGIN;
INSERT INTO empty SELECT i::text FROM generate_series(1, 1000) AS i;
ROLLBACK;
INSERT INTO empty VALUES ('a');
SELECT * FROM empty WHERE x = 'a';
SELECT bloom_index_check('empty_x');
TRUNCATE empty;
SELECT * FROM empty WHERE x = 'a';
INSERT INTO empty VALUES ('b');
SELECT * FROM empty WHERE x = 'b';
-- Made and truncated in one transaction: the file stays the same.
BEGIN;
CREATE TABLE fresh (x text);
CREATE INDEX fresh_x ON fresh USING bloom_filter (x);
INSERT INTO fresh SELECT i::text FROM generate_series(1, 5000) AS i;
TRUNCATE fresh;
INSERT INTO fresh SELECT (-i)::text FROM generate_series(1, 5000) AS i;
SELECT bloom_index_check('fresh_x');
COMMIT;
SELECT * FROM fresh WHERE x = '-5000';

-- Unlogged and temporary tables.
CREATE UNLOGGED TABLE unlogged (x text);
CREATE INDEX unlogged_x ON unlogged USING bloom_filter (x);
INSERT INTO unlogged SELECT i::text FROM generate_series(1, 5000) AS i;
SELECT bloom_index_check('unlogged_x');
CREATE TEMP TABLE temporary (x text) ON COMMIT DELETE ROWS;
CREATE INDEX temporary_x ON temporary USING bloom_filter (x);
BEGIN;
INSERT INTO temporary SELECT i::text FROM generate_series(1, 5000) AS i;
SELECT bloom_index_check('temporary_x');
COMMIT;
INSERT INTO temporary VALUES ('a');
SELECT bloom_index_check('temporary_x');

-- Options.
CREATE INDEX wide ON spans USING bloom_filter (trace_id) WITH (fpr = 0.001, pages_per_range = 32);
SELECT pages_per_range, target_fpr FROM bloom_index_info('wide');
SET client_min_messages = notice;
ALTER INDEX wide SET (pages_per_range = 16);
ALTER INDEX wide RENAME TO wider;
RESET client_min_messages;
SELECT pages_per_range, target_fpr FROM bloom_index_info('wider');
REINDEX INDEX wider;
SELECT pages_per_range, target_fpr FROM bloom_index_info('wider');
SELECT (failure('CREATE INDEX ON spans USING bloom_filter (trace_id) WITH (' || options || ')')).*
FROM unnest(ARRAY['fpr = 0', 'fpr = 0.5', 'fpr = ''x''', 'pages_per_range = 0', 'fillfactor = 50']) AS options;

-- What such an index can't be.
SELECT (failure(statement)).* FROM unnest(ARRAY[
    'CREATE INDEX ON spans USING bloom_filter (id, trace_id)',
    'CREATE INDEX ON spans USING bloom_filter (trace_id DESC)',
    'CREATE INDEX ON spans USING bloom_filter (trace_id) INCLUDE (id)',
    'CREATE UNIQUE INDEX ON spans USING bloom_filter (trace_id)',
    'CREATE TABLE excluded (x text, EXCLUDE USING bloom_filter (x WITH =))',
    'CREATE INDEX ON spans USING bloom_filter ((ROW(id, trace_id)))',
    'SELECT bloom_index_info(''spans'')', 'SELECT bloom_index_check(''pg_class_oid_index'')', 'SELECT bloom_index_check(0)'
]) AS statement;

DROP TABLE spans, empty, fresh, unlogged, temporary;
