-- What happens to an index and its table: rewriting, building concurrently, partitions, rights.
SET enable_seqscan = off;
CREATE TABLE log (id integer, k text, kind text, n bigint);
INSERT INTO log SELECT i, md5(i::text), CASE WHEN i % 3 = 0 THEN 'error' ELSE 'info' END, i FROM generate_series(1, 9000) AS i;
CREATE FUNCTION answers() RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', (SELECT count(*) FROM log WHERE k = md5('1')), (SELECT count(*) FROM log WHERE k = md5('9000')),
        (SELECT count(*) FROM log WHERE k = 'absent'), bloom_index_check('log_k'::text::regclass))
$$;
CREATE INDEX CONCURRENTLY log_k ON log USING bloom_filter (k);
SELECT answers();
REINDEX INDEX CONCURRENTLY log_k;
SELECT answers();
VACUUM FULL log;
SELECT answers();
CREATE INDEX log_n ON log (n);
CLUSTER log USING log_n;
SELECT answers();
-- Not by this one: it has no order.
CLUSTER log USING log_k;
ALTER TABLE log ALTER k TYPE varchar(40);
SELECT answers();
ALTER TABLE log ALTER k TYPE text COLLATE "C";
SELECT answers();
ALTER TABLE log SET UNLOGGED;
SELECT answers();
ALTER TABLE log SET LOGGED;
SELECT answers();
UPDATE log SET n = n + 1;
SELECT answers();
BEGIN;
SAVEPOINT s;
INSERT INTO log SELECT i, md5((-i)::text) FROM generate_series(1, 3000) AS i;
ROLLBACK TO s;
INSERT INTO log SELECT i, md5((-i)::text) FROM generate_series(1, 10) AS i;
COMMIT;
SELECT count(*) FROM log WHERE k = ANY (ARRAY[md5('-1'), md5('-10'), md5('-11')]);

-- Partial indexes and those of expressions.
CREATE INDEX log_errors ON log USING bloom_filter (k) WHERE kind = 'error';
CREATE INDEX log_upper ON log USING bloom_filter (upper(k));
SELECT bloom_index_check('log_errors'), bloom_index_check('log_upper');
SELECT id FROM log WHERE upper(k) = upper(md5('77'));
SELECT id FROM log WHERE k = md5('78') AND kind = 'error';
DROP TABLE log;

-- Partitions have their own indexes.
CREATE TABLE parts (day date, k text) PARTITION BY RANGE (day);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');
CREATE INDEX parts_k ON parts USING bloom_filter (k) WITH (pages_per_range = 4);
INSERT INTO parts SELECT '2020-01-01'::date + i % 60, md5(i::text) FROM generate_series(1, 6000) AS i;
SELECT day FROM parts WHERE k = md5('31');
EXPLAIN (COSTS OFF) SELECT day FROM parts WHERE k = 'x';
SELECT pages_per_range, bloom_index_check('parts_1_k_idx') + bloom_index_check('parts_2_k_idx') FROM bloom_index_info('parts_1_k_idx');
SELECT (failure('SELECT bloom_index_check(''parts_k'')')).*;
DROP TABLE parts;

-- One more key than a row has; the index together with another.
CREATE TABLE two (a integer, b text);
INSERT INTO two SELECT i, md5(i::text) FROM generate_series(1, 5000) AS i;
CREATE INDEX two_a ON two USING bloom_filter (a);
CREATE INDEX two_b ON two USING bloom_filter (b);
SELECT a FROM two WHERE a = 5 OR b = md5('6') ORDER BY a;
SELECT a FROM two WHERE a = 5 AND b = md5('5');
SELECT a FROM two WHERE a = 5 AND a = 6;
SELECT a FROM two WHERE a = 5::bigint AND a = 5::smallint;
DROP TABLE two;

-- Only who owns the table may look into its indexes.
CREATE ROLE regress_bloom_reader;
CREATE TABLE owned (k text);
CREATE INDEX owned_k ON owned USING bloom_filter (k);
GRANT SELECT ON owned TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT (failure('SELECT bloom_index_check(''owned_k'')')).*;
SELECT (failure('SELECT bloom_index_info(''owned_k'')')).*;
RESET ROLE;
DROP TABLE owned;
DROP ROLE regress_bloom_reader;

-- Every operator class is valid. One with another equality is not, and no index can have it.
SELECT count(*) FILTER (WHERE amvalidate(o.oid)) = count(*) AS all_valid, count(*) > 25 AS many
FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'bloom_filter';
CREATE FUNCTION same_length(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT length($1) = length($2)';
CREATE OPERATOR ~=~ (LEFTARG = text, RIGHTARG = text, FUNCTION = same_length, COMMUTATOR = ~=~);
CREATE OPERATOR CLASS length_ops FOR TYPE text USING bloom_filter AS OPERATOR 1 ~=~;
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'length_ops';
CREATE TABLE lengths (k text);
SELECT (failure('CREATE INDEX ON lengths USING bloom_filter (k length_ops)')).*;
DROP TABLE lengths;
DROP OPERATOR CLASS length_ops USING bloom_filter;
DROP OPERATOR FAMILY IF EXISTS length_ops USING bloom_filter;
DROP OPERATOR ~=~ (text, text);
DROP FUNCTION same_length, answers;
