-- The index USING bloom_filter as SQL shows it: what it is, what it finds, what is known about it.
SELECT amname, amhandler, amtype, obj_description(oid, 'pg_am') FROM pg_am WHERE amname = 'bloom_filter';
SELECT property, pg_indexam_has_property(oid, property)
FROM pg_am, unnest(ARRAY['can_order', 'can_unique', 'can_multi_col', 'can_exclude', 'can_include']) WITH ORDINALITY AS p (property, i)
WHERE amname = 'bloom_filter' ORDER BY i;

CREATE TABLE spans (id integer, trace text, note text);
CREATE INDEX spans_trace ON spans USING bloom_filter (trace);
SELECT pg_get_indexdef('spans_trace'::regclass);
SELECT property, pg_index_has_property('spans_trace'::regclass, property)
FROM unnest(ARRAY['clusterable', 'index_scan', 'bitmap_scan', 'backward_scan']) WITH ORDINALITY AS p (property, i) ORDER BY i;
SELECT property, pg_index_column_has_property('spans_trace'::regclass, 1, property)
FROM unnest(ARRAY['asc', 'orderable', 'distance_orderable', 'returnable', 'search_array', 'search_nulls'])
    WITH ORDINALITY AS p (property, i) ORDER BY i;

-- Everything below is by the index.
SET enable_seqscan = off;
SELECT count(*) FROM spans WHERE trace = md5('7');
SELECT bloom_index_check('spans_trace');
INSERT INTO spans SELECT i, md5(i::text), repeat('-', 100) FROM generate_series(1, 5000) AS i;
INSERT INTO spans VALUES (-1, NULL, 'nothing'), (-2, '', 'empty'), (-3, md5('7'), 'again');
SELECT plan_has('Bitmap Index Scan', $$SELECT FROM spans WHERE trace = 'a'$$);
SELECT id FROM spans WHERE trace = md5('7') ORDER BY id;
SELECT id FROM spans WHERE md5('7') = trace ORDER BY id;
SELECT id FROM spans WHERE trace = '' ORDER BY id;
SELECT id FROM spans WHERE trace = 'none' ORDER BY id;
SELECT id FROM spans WHERE trace = NULL ORDER BY id;
SELECT id FROM spans WHERE trace IN (md5('7'), md5('4000'), 'none', md5('7')) ORDER BY id;
SELECT id FROM spans WHERE trace = ANY (ARRAY[md5('1'), NULL, md5('5000'), 'none']) ORDER BY id;
SELECT id FROM spans WHERE trace = ANY ('{}') ORDER BY id;
SELECT id FROM spans WHERE trace = ANY (NULL::text[]) ORDER BY id;
SELECT id FROM spans WHERE trace = ANY (ARRAY[NULL::text]) ORDER BY id;
SELECT id FROM spans WHERE trace = md5('7') AND trace = md5('8') ORDER BY id;
SELECT id FROM spans WHERE trace = md5('7') AND trace = ANY (ARRAY[md5('7'), md5('8')]) ORDER BY id;
SELECT id FROM spans WHERE trace = md5('7') OR trace = md5('8') ORDER BY id;
SELECT id FROM spans WHERE trace = md5('7') AND id > 0 ORDER BY id;
SELECT id FROM spans WHERE trace = (SELECT md5('9')) ORDER BY id;
SELECT k, (SELECT count(*) FROM spans WHERE trace = k) FROM unnest(ARRAY[md5('7'), NULL, 'none', md5('8')]) AS k ORDER BY k;

-- Changes, and changes that were not.
UPDATE spans SET note = 'HOT' WHERE id = 7;
UPDATE spans SET trace = 'new' WHERE id = 8;
DELETE FROM spans WHERE id = 9;
BEGIN;
INSERT INTO spans VALUES (10001, 'rolled back');
SELECT id FROM spans WHERE trace = 'rolled back';
ROLLBACK;
SELECT id, note FROM spans WHERE trace = md5('7') ORDER BY id;
SELECT id FROM spans WHERE trace IN ('new', md5('8'), md5('9'), 'rolled back') ORDER BY id;
VACUUM spans;
SELECT bloom_index_check('spans_trace') = (SELECT count(trace) FROM spans) AS all_checked;
REINDEX INDEX spans_trace;
SELECT id FROM spans WHERE trace IN ('new', md5('8'), md5('9'), 'rolled back') ORDER BY id;

TRUNCATE spans;
SELECT count(*) FROM spans WHERE trace = md5('7');
SELECT bloom_index_check('spans_trace');

-- Expressions, parts of a table, domains, collations.
CREATE TABLE pages (id integer, url varchar(200), lang text COLLATE "C");
INSERT INTO pages SELECT i, 'https://Example.com/' || i, CASE i % 3 WHEN 0 THEN 'en' ELSE 'de' END FROM generate_series(1, 3000) AS i;
CREATE INDEX pages_lower ON pages USING bloom_filter (lower(url));
CREATE INDEX pages_en ON pages USING bloom_filter (url) WHERE lang = 'en';
ANALYZE pages;
SELECT plan_of($$SELECT FROM pages WHERE lower(url) = 'x'$$);
SELECT plan_of($$SELECT FROM pages WHERE url = 'x' AND lang = 'en'$$);
SELECT plan_has('Bitmap Index Scan', $$SELECT FROM pages WHERE url = 'x'$$) AS whole_table;
SELECT id FROM pages WHERE lower(url) = 'https://example.com/300';
SELECT id FROM pages WHERE url = 'https://Example.com/300' AND lang = 'en';
SELECT id FROM pages WHERE url = 'https://Example.com/301' AND lang = 'en';
SELECT bloom_index_check('pages_lower') AS all, bloom_index_check('pages_en') AS english;
CREATE INDEX pages_lang ON pages USING bloom_filter (lang);
SELECT count(*) FROM pages WHERE lang = 'en';

-- Beside what other indexes need.
CREATE INDEX CONCURRENTLY pages_id ON pages USING bloom_filter (id) WITH (fpr = 0.001, pages_per_range = 2);
REINDEX INDEX CONCURRENTLY pages_id;
SELECT id, url FROM pages WHERE id = 1234::bigint;
CREATE TABLE like_pages (LIKE pages INCLUDING ALL);
SELECT replace(pg_get_indexdef(indexrelid), 'public.', '') FROM pg_index WHERE indrelid = 'like_pages'::regclass ORDER BY 1;
ALTER INDEX pages_id RENAME TO pages_number;
ALTER TABLE pages ALTER id TYPE text;
SELECT url FROM pages WHERE id = '1234';
SELECT bloom_index_check('pages_number');
DROP TABLE spans, pages, like_pages;
