-- What an index USING bloom_filter refuses, in which words.
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TYPE pair AS (a integer, b text);
CREATE TABLE things (i integer, t text, p pair, ps pair[], ms mood[], j json, b bloom);
-- From version 17 on indexes are made without the schema public in search_path, so that its types are named with it.
CREATE FUNCTION refused(definition text, OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE sql AS $$
    SELECT state, replace(message, 'public.', ''), replace(detail, 'public.', ''), hint
    FROM failure('CREATE INDEX ON things USING bloom_filter ' || definition)
$$;
\x on
SELECT refused.* FROM unnest(ARRAY[
    '(i, t)', '(i) INCLUDE (t)', '(i DESC)', '(i NULLS FIRST)',
    '(p)', '(ps)', '(ms)', '(j)',
    '(i) WITH (fpr = 0)', '(i) WITH (fpr = 0.5)', '(i) WITH (fpr = infinity)', '(i) WITH (fpr = little)', '(i) WITH (pages_per_range = 0)',
    '(i) WITH (pages_per_range = 2000000)', '(i) WITH (capacity = 1000)'
]) WITH ORDINALITY AS d (definition, i), refused(definition) ORDER BY i;
SELECT * FROM failure('CREATE UNIQUE INDEX ON things USING bloom_filter (i)');
SELECT * FROM failure('ALTER TABLE things ADD EXCLUDE USING bloom_filter (i WITH =)');

-- The functions that inspect an index.
CREATE INDEX things_i ON things USING bloom_filter (i);
CREATE INDEX things_btree ON things (i);
SELECT * FROM failure('SELECT bloom_index_check(''things'')');
SELECT * FROM failure('SELECT bloom_index_check(''things_btree'')');
SELECT * FROM failure('SELECT bloom_index_info(''things'')');
SELECT * FROM failure('SELECT bloom_index_info(''things_btree'')');
SELECT * FROM failure('SELECT bloom_index_info(4294967295::oid::regclass)');
SELECT * FROM failure('SELECT bloom_index_check(4294967295::oid::regclass)');
CREATE TABLE parted (i integer) PARTITION BY RANGE (i);
CREATE INDEX parted_i ON parted USING bloom_filter (i);
SELECT * FROM failure('SELECT bloom_index_check(''parted_i'')');
SELECT * FROM failure('SELECT bloom_index_info(''parted_i'')');
\x off
SELECT bloom_index_check(NULL) IS NULL AS nothing, bloom_index_info(NULL) IS NULL AS no_row;

-- Both are for the owner of the table.
CREATE ROLE bloom_reader;
GRANT SELECT ON things TO bloom_reader;
SET ROLE bloom_reader;
SELECT state, message FROM failure('SELECT bloom_index_check(''things_i'')');
SELECT state, message FROM failure('SELECT bloom_index_info(''things_i'')');
RESET ROLE;

-- A table that Citus has in shards has an empty index of its own, which must not look healthy: its catalog by
-- another hand.
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass);
SELECT bloom_index_check('things_i') >= 0 AS of_other_tables;
INSERT INTO pg_dist_partition VALUES ('things');
\x on
SELECT * FROM failure('SELECT bloom_index_check(''things_i'')');
SELECT state FROM failure('SELECT bloom_index_info(''things_i'')');
\x off
DROP TABLE pg_catalog.pg_dist_partition;
RESET allow_system_table_mods;

-- A change of an option is for the next REINDEX.
ALTER INDEX things_i SET (fpr = 0.001);
SELECT target_fpr AS before FROM bloom_index_info('things_i');
REINDEX INDEX things_i;
SELECT target_fpr AS after FROM bloom_index_info('things_i');
ALTER INDEX things_i RENAME TO things_number;
SELECT pg_get_indexdef('things_number'::regclass);

DROP TABLE things, parted;
DROP TYPE pair, mood;
DROP ROLE bloom_reader;
