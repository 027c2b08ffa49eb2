-- The index over what is in values: members of arrays, windows of text, words, JSON.
\pset null '(null)'
CREATE TABLE notes (id integer, body text, tags integer[], attributes jsonb, words tsvector);
INSERT INTO notes SELECT i, 'request ' || md5(i::text) || ' done', ARRAY[i, i % 7, NULL],
    jsonb_build_object('id', i, 'user', jsonb_build_object('name', 'u' || i, 'roles', ARRAY['r' || i % 5]), 'size', i / 2.0),
    to_tsvector('simple', 'request ' || i || ' done by u' || i) FROM generate_series(1, 20000) AS i;
INSERT INTO notes VALUES (-1, 'ab', '{}', '{}', ''), (-2, '', '{NULL}', '[]', NULL), (-3, NULL, NULL, NULL, 'x:1'),
    (-4, '100%', '{{7000,8000},{9000,1}}', '["tag", {"k": null}]', 'x:1A y:2'), (-5, 'Ünïcode ÄÖ', '{5}', '"tag"', 'y:1 x:2');
CREATE INDEX notes_body ON notes USING bloom_filter (body text_ngram_ops) WITH (pages_per_range = 1);
CREATE INDEX notes_tags ON notes USING bloom_filter (tags);
CREATE INDEX notes_attributes ON notes USING bloom_filter (attributes);
CREATE INDEX notes_words ON notes USING bloom_filter (words);
ANALYZE notes;

-- Which rows a condition finds, and whether by an index. It must be the same by a sequential scan.
CREATE FUNCTION finds(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    query text := 'SELECT string_agg(id::text, '' '' ORDER BY id) FROM notes WHERE ' || condition;
    by_index text;
    by_scan text;
    plan text;
BEGIN
    SET LOCAL enable_seqscan = off;
    EXECUTE query INTO by_index;
    SET LOCAL enable_seqscan = on;
    EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || query INTO plan;
    SET LOCAL enable_bitmapscan = off;
    EXECUTE query INTO by_scan;
    SET LOCAL enable_bitmapscan = on;
    IF by_index IS DISTINCT FROM by_scan THEN
        RETURN format('WRONG: %s by the index, %s by a scan', left(by_index, 60), left(by_scan, 60));
    END IF;
    RETURN format('%s, %s', coalesce(left(by_scan, 40), 'none'), coalesce(substring(plan FROM 'notes_[a-z]+'), 'sequential'));
END $$;

SELECT condition, finds(condition) FROM unnest(ARRAY[
    $$body LIKE '%c4ca4238a0b9%'$$, $$body LIKE 'request c4ca42%done'$$, $$body LIKE '%nowhere%'$$, $$body LIKE '%C4CA42%'$$,
    $$body ILIKE '%C4CA4238%'$$, $$body ILIKE '%NoWhere%'$$, $$body = 'request c4ca4238a0b923820dcc509a6f75849b done'$$,
    $$body ^@ 'request c4ca42'$$, $$body LIKE '%c4ca4238%' AND body LIKE '%3820dcc5%'$$,
    $$body LIKE ANY ('{%c4ca4238%,%c81e728d%,%nowhere%}')$$, $$body LIKE '%ab'$$, $$body LIKE '100\%'$$, $$body LIKE '%\00%'$$,
    $$body LIKE '%nïco%'$$, $$body LIKE ''$$, $$body LIKE NULL$$,
    $$body LIKE '%request%'$$, $$body LIKE '%x_yz_%'$$]) AS condition;
SELECT condition, finds(condition) FROM unnest(ARRAY[
    $$body ~ 'c4ca4238a0b9'$$, $$body ~ '^request (c4ca42|c81e72).*done$'$$, $$body ~ 'nowhere|nobody'$$, $$body ~ 'C4CA4238'$$,
    $$body ~* 'C4CA4238'$$, $$body ~ 'c4ca\d{4}a'$$, $$body SIMILAR TO '%(c4ca4238|c81e728d)%'$$, $$body ~ 'nïco'$$,
    $$body ~ ANY ('{c4ca4238,c81e728d}')$$, $$body ~ 'request'$$, $$body ~ 'x.'$$, $$body ~ ''$$, $$body ~ NULL$$]) AS condition;
SELECT * FROM failure($$SELECT id FROM notes WHERE body ~ '(c4ca4238'$$);
SELECT condition, finds(condition) FROM unnest(ARRAY[
    $$tags @> '{4711}'$$, $$tags @> '{4711,0}'$$, $$tags @> '{4711,5}'$$, $$tags @> '{4711,NULL}'$$, $$tags && '{4711,4712,-7}'$$,
    $$tags && '{}'$$, $$tags @> '{}' AND id < 0$$, $$tags = '{4711,0,NULL}'$$, $$tags = '{}'$$, $$tags = '{NULL}'$$,
    $$tags @> '{{8000}}'$$, $$tags @> '{9000,7000}'$$, $$tags = '{7000,8000,9000,1}'$$, $$tags @> '{99999}'$$, $$tags @> NULL$$]) AS condition;
SELECT condition, finds(condition) FROM unnest(ARRAY[
    $$attributes @> '{"id": 4711}'$$, $$attributes @> '{"id": 4711.000}'$$, $$attributes @> '{"user": {"name": "u4711"}}'$$,
    $$attributes @> '{"user": {"name": "u4711", "roles": ["r1"]}}'$$, $$attributes @> '{"user": {"name": "u4711", "roles": "r1"}}'$$,
    $$attributes @> '{"size": 1.5}'$$, $$attributes @> '{"id": "4711"}'$$, $$attributes @> '{}' AND id < 0$$,
    $$attributes @> '{"user": {}}' AND id < 3$$, $$attributes @> '[]'$$, $$attributes @> '"tag"'$$, $$attributes @> '["tag"]'$$,
    $$attributes @> '[{"k": null}]'$$, $$attributes ? 'tag'$$, $$attributes ? 'k'$$, $$attributes ? 'nobody'$$,
    $$attributes ?| '{nobody,tag}'$$, $$attributes ?| '{}'$$, $$attributes ?& '{id,nobody}'$$, $$attributes ?& '{}' AND id < 0$$,
    $$attributes ?| ARRAY[NULL, 'tag']$$, $$attributes ?& ARRAY[NULL, 'tag']$$, $$attributes = '{}'$$, $$attributes = '"tag"'$$,
    $$attributes = '{"id": 4, "size": 2.0, "user": {"name": "u4", "roles": ["r4"]}}'$$]) AS condition;
-- Expressions of jsonpath, in lax and in strict mode.
SELECT condition, finds(condition) FROM unnest(ARRAY[
    $$attributes @? '$.id ? (@ == 4711)'$$, $$attributes @? '$ ? (@.id == 4711.0)'$$, $$attributes @@ '$.id == 4711'$$,
    $$attributes @@ '4711 == $.id'$$, $$attributes @@ 'strict $.id == 4711'$$, $$attributes @@ '$."id" == 4711'$$,
    $$attributes @? '$.user ? (@.name == "u4711").roles[*] ? (@ == "r1")'$$, $$attributes @? '$.user.roles ? (@ == "r1") ? (@ == "u4711")'$$,
    $$attributes @@ '$.user.name == "u4711" && $.user.roles[*] == "r1"'$$, $$attributes @@ '$.id == 4711 || $.user.name == "u4712"'$$,
    $$attributes @@ '$.id == 4711 && $.size > 7'$$, $$attributes @@ '!(!($.id == 4711) || $.size < 7)'$$,
    $$attributes @@ 'exists($.user ? (@.name == "u4711"))'$$, $$attributes @? '$ ? (exists(@.user.roles[*] ? (@ == "r1")) && @.id == 4711)'$$,
    $$attributes @? '$.user ? (@.name == "u4711" && $.id == 4711)'$$, $$attributes @? '$ ? (@.id == 4711).user.*'$$,
    $$attributes @? '$.id ? (@ == "4711")'$$, $$attributes @? '$ ? (@ == "tag")'$$, $$attributes @? '$[*] ? (@ == "tag")'$$,
    $$attributes @? 'strict $[*] ? (@ == "tag")'$$, $$attributes @? '$[*].k ? (@ == null)'$$, $$attributes @@ '$.flag'$$,
    $$attributes @? '$.id ? (@ == -4711)'$$, $$attributes @? NULL$$]) AS condition;
-- What it can't tell reads the table.
SELECT condition, finds(condition) FROM unnest(ARRAY[
    $$attributes @? '$.id ? (@ > 19998)'$$, $$attributes @? '$.k'$$, $$attributes @? '$[*].k'$$, $$attributes @@ '$.id < 3'$$,
    $$attributes @@ '$.id == 4711 || $.size < 1.5'$$, $$attributes @@ '!($.id != 4711)'$$, $$attributes @@ '$.*.name == "u4711"'$$,
    $$attributes @@ '$.id.double() == 4711'$$, $$attributes @@ '$.user.name.type() == "string" && $.id < 2'$$,
    $$attributes @@ '$.user.name starts with "u4711"'$$, $$attributes @@ '($.id == 4711) is unknown'$$, $$attributes @@ '$.id == $.id && $.id < 2'$$,
    $$attributes @? '($.id == 4711) ? (@ == true)'$$, $$attributes @? '$.id == 4711' AND id < 2$$]) AS condition;
SELECT condition, finds(condition) FROM unnest(ARRAY[
    $$words @@ '4711'$$, $$words @@ '4711 & u4711'$$, $$words @@ '4711 | u4712'$$, $$words @@ '4711 & !u4711'$$,
    $$words @@ '4711 <-> done'$$, $$words @@ 'done <-> 4711'$$, $$words @@ '!request'$$, $$words @@ '!!4711'$$,
    $$words @@ 'u47110 | u4711:*'$$, $$words @@ 'x:A'$$, $$words @@ 'x:B'$$, $$words @@ 'nobody'$$, $$words @@ 'x <-> y'$$,
    $$words @@ '4711 & (nobody | !u7)'$$, $$words @@ ''$$, $$words @@ '4711' AND words @@ 'u4711'$$,
    $$words @@ ANY ('{4711,4712}'::tsquery[])$$, $$words @@ to_tsquery('simple', '4711')$$]) AS condition;

-- Many values in one condition: the scan looks at the rows of ranges itself. Rows that are compared unnecessarily, and pages of
-- which all rows are.
CREATE FUNCTION compares(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    SET LOCAL enable_seqscan = off;
    EXECUTE 'EXPLAIN (FORMAT JSON, ANALYZE, TIMING OFF, COSTS OFF) SELECT FROM notes WHERE ' || condition INTO plan;
    SET LOCAL enable_seqscan = on;
    plan := plan #> '{0,Plan}';
    RETURN format('%s rows, %s in vain, %s', round((plan ->> 'Actual Rows')::numeric), plan ->> 'Rows Removed by Index Recheck',
        CASE plan ->> 'Lossy Heap Blocks' WHEN '0' THEN 'no whole pages' ELSE 'whole pages' END);
END $$;
CREATE TABLE many AS WITH numbers AS (SELECT i * 977 AS i FROM generate_series(0, 19) AS i)
    SELECT 'LIKE ANY' AS name, format('body LIKE ANY (%L)', array_agg('%' || substr(md5(i::text), 5, 12) || '%')) AS condition FROM numbers
    UNION ALL SELECT 'ILIKE ANY', format('body ILIKE ANY (%L)', array_agg('%' || upper(substr(md5(i::text), 5, 12)) || '%')) FROM numbers
    UNION ALL SELECT '= ANY', format('body = ANY (%L)', array_agg('request ' || md5(i::text) || ' done')) FROM numbers
    UNION ALL SELECT 'LIKE ANY, LIKE', format('body LIKE ANY (%L) AND body LIKE %L', array_agg('%' || substr(md5(i::text), 5, 12) || '%'),
        'request%done') FROM numbers
    UNION ALL SELECT '&&', format('tags && %L', array_agg(i)) FROM numbers
    UNION ALL SELECT '&& of equal', format('tags && %L', array_agg(977 + i % 2)) FROM numbers
    UNION ALL SELECT 'jsonb @> ANY', format('attributes @> ANY (%L)', array_agg(jsonb_build_object('id', i))) FROM numbers
    UNION ALL SELECT 'jsonb @?', format('attributes @? %L', '$ ? (' || string_agg('@.id == ' || i, ' || ') || ')') FROM numbers
    UNION ALL SELECT 'jsonb @@', format('attributes @@ %L', '$.size > 1 && (' || string_agg('$.id == ' || i, ' || ') || ')') FROM numbers
    UNION ALL SELECT 'jsonb @@ ANY', format('attributes @@ ANY (%L)', array_agg('$.id == ' || i)) FROM numbers
    UNION ALL SELECT 'jsonb ?|', format('attributes ?| %L', array_agg('key' || i) || '{tag}') FROM numbers
    UNION ALL SELECT '@@', format('words @@ %L', string_agg('u' || i, ' | ')) FROM numbers
    UNION ALL SELECT '@@ with &', format('words @@ %L', '(' || string_agg('u' || i, ' | ') || ') & !977 & done') FROM numbers
    UNION ALL SELECT '@@ of 200', format('words @@ %L', string_agg('u' || i, ' | ')) FROM generate_series(1, 200) AS i;
SELECT name, compares(condition), finds(condition) FROM many;
SET pg_bloom.heap_filter = off;
SELECT name, substring(compares(condition) FROM '[a-z]+ [a-z]+$') AS compares, finds(condition) FROM many WHERE name IN ('LIKE ANY', '&&');
RESET pg_bloom.heap_filter;
DROP TABLE many;
DROP FUNCTION compares;

-- What can't be told by the index is not asked from it, also where the pattern is only known to a generic plan.
SET enable_seqscan = on;
PREPARE by_pattern(text) AS SELECT count(*) FROM notes WHERE body LIKE $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_pattern('%c4ca4238%');
EXECUTE by_pattern('%a%b%');
EXECUTE by_pattern(NULL);
RESET plan_cache_mode;
-- A pattern that ends in an escape character is PostgreSQL's to refuse.
SELECT * FROM failure($$SELECT count(*) FROM notes WHERE body LIKE 'request%\'$$);
SET enable_seqscan = off;
SELECT * FROM failure($$SELECT count(*) FROM notes WHERE body LIKE 'request%\'$$);
RESET enable_seqscan;

-- The index says what it is.
SELECT index, pages_per_range, levels, target_fpr, keys_per_row, keys_per_range BETWEEN keys_per_row AND 200 * keys_per_row AS "distinct",
    overfull_ranges, rows_built, bloom_index_check(index)
    FROM unnest('{notes_body,notes_tags,notes_attributes,notes_words}'::regclass[]) AS index, bloom_index_info(index);

-- Rows that come later, empty tables, updates, options.
INSERT INTO notes SELECT i, 'later ' || md5(i::text), ARRAY[i], jsonb_build_object('later', i), to_tsvector('simple', 'later ' || i)
    FROM generate_series(30001, 32000) AS i;
UPDATE notes SET body = body || ' updated', tags = tags || 77777, attributes = attributes || '{"updated": true}',
    words = words || to_tsvector('simple', 'updated') WHERE id IN (3, 30003);
SELECT condition, finds(condition) FROM unnest(ARRAY[$$body LIKE '%updated%'$$, $$tags @> '{77777}'$$, $$attributes ? 'updated'$$,
    $$attributes @> '{"updated": true}'$$, $$words @@ 'updated'$$, $$body LIKE 'later%'||md5('31000')||'%'$$, $$tags && '{31000}'$$]) AS condition;
SELECT index, bloom_index_check(index) FROM unnest('{notes_body,notes_tags,notes_attributes,notes_words}'::regclass[]) AS index;
CREATE TABLE later (LIKE notes);
CREATE INDEX later_body ON later USING bloom_filter (body text_ngram_ops) WITH (fpr = 0.5, pages_per_range = 2);
CREATE INDEX later_tags ON later USING bloom_filter (tags) WITH (fpr = 0.2);
INSERT INTO later SELECT * FROM notes;
SELECT index, pages_per_range, target_fpr, bloom_index_check(index) FROM unnest('{later_body,later_tags}'::regclass[]) AS index, bloom_index_info(index);
ALTER INDEX later_body SET (fpr = 0.01);
ALTER INDEX later_body RESET (pages_per_range);
REINDEX INDEX later_body;
SELECT pages_per_range, target_fpr, bloom_index_check('later_body') FROM bloom_index_info('later_body');
DROP TABLE later;

-- Operator classes: ours are valid, others must ask what these ask.
SELECT opcname, amvalidate(c.oid) FROM pg_opclass AS c JOIN pg_am ON pg_am.oid = opcmethod
    WHERE amname = 'bloom_filter' AND opcname IN ('array_ops', 'jsonb_ops', 'tsvector_ops', 'text_ngram_ops') ORDER BY 1;
CREATE OPERATOR CLASS not_like_ops FOR TYPE text USING bloom_filter AS OPERATOR 5 !~~, FUNCTION 3 textlike(text, text);
CREATE OPERATOR CLASS other_ops FOR TYPE text USING bloom_filter AS OPERATOR 5 ~~, FUNCTION 3 texteq(text, text);
CREATE OPERATOR CLASS like_ops FOR TYPE text USING bloom_filter AS OPERATOR 5 ~~, FUNCTION 3 textlike(text, text);
SET client_min_messages = warning;
SELECT opcname, amvalidate(c.oid) FROM pg_opclass AS c WHERE opcname IN ('not_like_ops', 'other_ops', 'like_ops') ORDER BY 1;
SELECT * FROM failure('CREATE INDEX ON notes USING bloom_filter (body not_like_ops)');
SELECT * FROM failure('CREATE INDEX ON notes USING bloom_filter (body other_ops)');
CREATE INDEX notes_like ON notes USING bloom_filter (body like_ops);
DROP INDEX notes_like;

-- What can't be in such an index.
CREATE EXTENSION IF NOT EXISTS citext;
CREATE TYPE tone AS ENUM ('low', 'high');
CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE refused (c citext, t tone[], d text COLLATE ignoring, e text[] COLLATE ignoring, n integer[], v varchar(40), m char(10));
SELECT column_and_class, state, replace(message, 'public.', '') AS message FROM unnest(ARRAY['c text_ngram_ops', 't', 'd text_ngram_ops', 'e',
    'n text_ngram_ops', 'n, n', 'm text_ngram_ops', 'c jsonb_ops']) AS column_and_class,
    failure(format('CREATE INDEX ON refused USING bloom_filter (%s)', column_and_class));
SELECT * FROM failure('CREATE INDEX ON refused USING bloom_filter (v text_ngram_ops) WITH (fpr = 0.6)');
SELECT * FROM failure('CREATE INDEX ON refused USING bloom_filter (v) WITH (fpr = 0.2)');
CREATE INDEX refused_v ON refused USING bloom_filter (v text_ngram_ops);
INSERT INTO refused (v) SELECT md5(i::text) FROM generate_series(1, 3000) AS i;
ANALYZE refused;
SET enable_seqscan = off;
SELECT plan_of($$SELECT v FROM refused WHERE v LIKE '%c4ca42%'$$);
SELECT v FROM refused WHERE v LIKE '%c4ca42%';
RESET enable_seqscan;

-- A column that becomes citext keeps its bytes and its index, which goes on to answer what asks about text.
ALTER TABLE refused ALTER v TYPE citext;
INSERT INTO refused (v) VALUES ('Number 47115 of many');
SET enable_seqscan = off;
SELECT plan_of($$SELECT v FROM refused WHERE v::text LIKE '%c4ca42%'$$);
SELECT v FROM refused WHERE v::text LIKE '%r 47115 of%';
RESET enable_seqscan;
SELECT bloom_index_check('refused_v');
REINDEX INDEX refused_v;

-- What isn't known when it is planned counts as a typical lookup, not as a share of the table.
CREATE TABLE lines (id integer, line text, tags text[], attributes jsonb, words tsvector);
ALTER TABLE lines ALTER line SET STORAGE plain;
INSERT INTO lines SELECT i, 'session ' || md5(i::text) || ' of user ' || i % 500 || repeat('-', 300), ARRAY['t' || i, 'common'],
    jsonb_build_object('id', i), to_tsvector('simple', 'w' || i || ' common') FROM generate_series(1, 40000) AS i;
CREATE INDEX ON lines USING bloom_filter (line text_ngram_ops);
CREATE INDEX ON lines USING bloom_filter (tags);
CREATE INDEX ON lines USING bloom_filter (attributes);
CREATE INDEX ON lines USING bloom_filter (words);
VACUUM ANALYZE lines;
CREATE TABLE sought AS SELECT 't' || i * 1000 AS tag, i * 1000 AS id, to_tsquery('simple', 'w' || i * 1000) AS query
    FROM generate_series(1, 20) AS i;
ANALYZE sought;
SET plan_cache_mode = force_generic_plan;
PREPARE by_line(text) AS SELECT id FROM lines WHERE line LIKE $1;
PREPARE by_tags(text[]) AS SELECT id FROM lines WHERE tags && $1;
PREPARE by_attributes(jsonb) AS SELECT id FROM lines WHERE attributes @> $1;
PREPARE by_words(tsquery) AS SELECT id FROM lines WHERE words @@ $1;
SELECT query, (SELECT bool_or(node LIKE '%Bitmap Index Scan%') FROM plan_of(query) AS node) AS by_the_index FROM unnest(ARRAY[$$EXECUTE by_line('%c4ca42%')$$,
    $$EXECUTE by_tags('{t7}')$$, $$EXECUTE by_attributes('{"id": 7}')$$, $$EXECUTE by_words('w7')$$,
    'SELECT count(*) FROM sought JOIN lines ON tags @> ARRAY[tag]',
    $$SELECT count(*) FROM sought JOIN lines ON attributes @> jsonb_build_object('id', sought.id)$$,
    'SELECT count(*) FROM sought JOIN lines ON words @@ query']) AS query;
SELECT count(*) FROM sought JOIN lines ON tags @> ARRAY[tag];
EXECUTE by_words('w7');
RESET plan_cache_mode;
DEALLOCATE ALL;
DROP TABLE refused, notes, lines, sought;
DROP FUNCTION finds;
