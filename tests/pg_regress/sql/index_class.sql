-- Elements are hashed as the operator class compares them, whatever the type of the column is.
SET enable_seqscan = off;
CREATE EXTENSION IF NOT EXISTS citext;

-- text with the operator class of char(n): blanks at the end don't count
CREATE TABLE padded (t text, v varchar);
INSERT INTO padded VALUES ('a', 'a'), ('a  ', 'a  '), ('b', 'b');
CREATE INDEX padded_t ON padded USING bloom_filter (t bpchar_ops);
CREATE INDEX padded_v ON padded USING bloom_filter (v bpchar_ops);
INSERT INTO padded VALUES ('a ', 'a ');
EXPLAIN (COSTS OFF) SELECT count(*) FROM padded WHERE t::bpchar = 'a'::bpchar;
SELECT count(*) FROM padded WHERE t::bpchar = 'a    '::bpchar;
SELECT count(*) FROM padded WHERE v::bpchar = 'a'::bpchar;
SELECT bloom_index_check('padded_t'), bloom_index_check('padded_v');

-- a column that gets another type with the same bytes keeps its index, which still answers for the class's type
CREATE TABLE changed (t text, o oid);
INSERT INTO changed SELECT i, i FROM generate_series(1, 500) AS i;
CREATE INDEX changed_t ON changed USING bloom_filter (t);
CREATE INDEX changed_o ON changed USING bloom_filter (o);
ALTER TABLE changed ALTER t TYPE citext, ALTER o TYPE regclass;
INSERT INTO changed VALUES ('ABC', 'pg_class');
EXPLAIN (COSTS OFF) SELECT count(*) FROM changed WHERE t::text = 'ABC';
SELECT count(*) FROM changed WHERE t::text = 'ABC';
SELECT count(*) FROM changed WHERE t = 'abc';
SELECT count(*) FROM changed WHERE o = 'pg_class'::regclass;
SELECT bloom_index_check('changed_t'), bloom_index_check('changed_o');
REINDEX TABLE changed;
VACUUM FULL changed;
SELECT bloom_index_check('changed_t'), bloom_index_check('changed_o');
TRUNCATE changed;

-- a new one is refused: it would answer no condition on the column
SELECT state, replace(message, 'public.', '') AS message, hint FROM failure('CREATE INDEX ON changed USING bloom_filter (t)');
DROP TABLE padded, changed;

-- an index whose build failed
CREATE TABLE unbuilt (k integer);
INSERT INTO unbuilt VALUES (0);
CREATE INDEX CONCURRENTLY unbuilt_k ON unbuilt USING bloom_filter ((1 / k));
SELECT bloom_index_info('unbuilt_k');
SELECT bloom_index_check('unbuilt_k');
DROP TABLE unbuilt;
