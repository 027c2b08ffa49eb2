-- bloom_find and bloom_find_all: the rows of all tables below one that have a key, and what they refuse.
CREATE TABLE orders (gone date, day integer NOT NULL, id bigint, note text) PARTITION BY RANGE (day);
ALTER TABLE orders DROP gone;
CREATE TABLE orders_1 PARTITION OF orders FOR VALUES FROM (1) TO (10);
-- Columns in another order, and partitions below it.
CREATE TABLE orders_2 (note text, id bigint, more boolean, day integer NOT NULL) PARTITION BY LIST (day);
ALTER TABLE orders_2 DROP more;
CREATE TABLE orders_2a PARTITION OF orders_2 FOR VALUES IN (10, 11);
CREATE TABLE orders_2b PARTITION OF orders_2 DEFAULT;
ALTER TABLE orders ATTACH PARTITION orders_2 FOR VALUES FROM (10) TO (20);
CREATE TABLE orders_rest PARTITION OF orders DEFAULT;
CREATE INDEX ON orders_1 USING bloom_filter (id);
CREATE INDEX ON orders_2 USING bloom_filter (id);
INSERT INTO orders SELECT i % 30, i, 'order ' || i FROM generate_series(1, 3000) AS i;
INSERT INTO orders VALUES (11, 4711, 'again'), (2, 4711, 'first'), (25, 4711, NULL), (3, NULL, 'no id');

SELECT * FROM bloom_find(NULL::orders, 'id', 4711) ORDER BY day;
SELECT note FROM bloom_find(NULL::orders, 'id', 777);
SELECT count(*) FROM bloom_find(NULL::orders, 'id', 10000);
-- Several keys, some of them twice, absent or NULL. The order is that of the tables.
SELECT id, note FROM bloom_find_all(NULL::orders, 'id', '{777, NULL, 4711, 777, 10000}') ORDER BY id, note;
SELECT count(*) FROM bloom_find_all(NULL::orders, 'id', (SELECT array_agg(id) FROM orders WHERE day = 7));
-- Another column has no index: the tables are read.
SELECT day, id FROM bloom_find(NULL::orders, 'note', 'order 30');
-- A part of the tables, a join, and a function in the list of results.
SELECT note FROM bloom_find(NULL::orders_2, 'id', 4711);
SELECT w.name, o.day FROM (VALUES ('a', 1), ('b', 2), ('none', -1)) AS w (name, key), bloom_find(NULL::orders, 'id', w.key) AS o
ORDER BY w.name;
SELECT bloom_find(NULL::orders, 'id', 1);
-- Keys of other types of the family, and text as an untyped literal.
SELECT note FROM bloom_find(NULL::orders, 'id', 5::smallint);
SELECT note FROM bloom_find(NULL::orders, 'id', '5'::text);
SELECT note FROM bloom_find(NULL::orders, 'id', 5.0);
SELECT count(*) FROM bloom_find(NULL::orders, 'id', 5.5);
SELECT note FROM bloom_find_all(NULL::orders, 'id', ARRAY['5', '6']) ORDER BY note;
-- No key is equal to NULL, and none is in an empty array.
SELECT count(*) FROM bloom_find(NULL::orders, 'id', NULL::bigint);
SELECT count(*) FROM bloom_find_all(NULL::orders, 'id', NULL::bigint[]);
SELECT count(*) FROM bloom_find_all(NULL::orders, 'id', '{}');
SELECT count(*) FROM bloom_find_all(NULL::orders, 'id', '{NULL}');
-- Rows of this transaction, and those that it deleted.
BEGIN;
INSERT INTO orders VALUES (4, 10000, 'mine');
DELETE FROM orders WHERE id = 4711 AND day = 2;
SELECT note FROM bloom_find_all(NULL::orders, 'id', '{10000, 4711}') ORDER BY note;
ROLLBACK;
-- In functions, prepared, and for a cursor that goes back.
CREATE FUNCTION note_of(key bigint) RETURNS text LANGUAGE sql STABLE
    AS 'SELECT note FROM bloom_find(NULL::orders, ''id'', key)';
SELECT note_of(5), note_of(-5);
PREPARE found(bigint) AS SELECT note FROM bloom_find(NULL::orders, 'id', $1) ORDER BY note;
EXECUTE found(4711);
EXECUTE found(6);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT note FROM bloom_find_all(NULL::orders, 'id', '{1, 2}');
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;

-- The planner expects a few rows of each key: a join takes another way for many.
CREATE TABLE owners AS SELECT i AS id, 'owner ' || i AS name FROM generate_series(1, 20000) AS i;
ALTER TABLE owners ADD PRIMARY KEY (id);
VACUUM ANALYZE owners;
CREATE FUNCTION expected(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        IF line ~ 'Function Scan' THEN
            RETURN substring(line FROM 'rows=[0-9]+');
        END IF;
    END LOOP;
END $$;
SELECT expected('SELECT FROM bloom_find(NULL::orders, ''id'', 4711)') AS one,
    expected('SELECT FROM bloom_find_all(NULL::orders, ''id'', ''{1, 2, 3, 4}'')') AS four,
    expected('SELECT FROM bloom_find_all(NULL::orders, ''id'', ''{}'')') AS none,
    expected('SELECT FROM bloom_find_all(NULL::orders, ''id'', (SELECT array_agg(id) FROM owners))') AS unknown;
SET enable_mergejoin = off;
PREPARE joined(bigint[]) AS SELECT count(name) FROM bloom_find_all(NULL::orders, 'id', $1) JOIN owners USING (id);
CREATE FUNCTION join_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'Join|Nested Loop' THEN
            RETURN substring(line FROM 'Hash Join|Nested Loop');
        END IF;
    END LOOP;
END $$;
SELECT join_of('EXECUTE joined(''{1, 2}'')') AS few,
    join_of(format('EXECUTE joined(%L)', (SELECT array_agg(i) FROM generate_series(1, 20000) AS i))) AS many;
RESET enable_mergejoin;
DROP TABLE owners;
DROP FUNCTION expected, join_of;

-- Inheritance: the parent has rows of its own, and a child has columns more.
CREATE TABLE animals (name text, legs integer);
CREATE TABLE birds (wings integer) INHERITS (animals);
CREATE INDEX ON birds USING bloom_filter (name);
INSERT INTO animals VALUES ('dog', 4), ('bat', 2);
INSERT INTO birds VALUES ('owl', 2, 2), ('bat', 2, 2);
SELECT * FROM bloom_find(NULL::animals, 'name', 'bat');
SELECT * FROM bloom_find(NULL::birds, 'name', 'bat');

-- A foreign table alone, and below another one.
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE far_animals (legs integer, name text) SERVER files OPTIONS (program 'echo 8,spider; echo 2,owl', format 'csv');
SELECT * FROM bloom_find(NULL::far_animals, 'name', 'spider');
ALTER FOREIGN TABLE far_animals INHERIT animals;
SELECT * FROM bloom_find(NULL::animals, 'name', 'owl');
SELECT * FROM bloom_find_all(NULL::animals, 'name', '{spider, dog}') ORDER BY name;

-- Materialized views have rows, views don't.
CREATE MATERIALIZED VIEW materialized AS SELECT id, note FROM orders WHERE day = 5;
CREATE INDEX ON materialized USING bloom_filter (id);
SELECT * FROM bloom_find(NULL::materialized, 'id', 35);

-- One that was never filled is refused as in a query, whether its index has the key or not.
CREATE MATERIALIZED VIEW unfilled AS SELECT id, note FROM orders WHERE day = 5 WITH NO DATA;
CREATE INDEX ON unfilled USING bloom_filter (id);
SELECT state, message, hint FROM unnest(ARRAY[
    '* FROM unfilled WHERE id = 35', '* FROM bloom_find(NULL::unfilled, ''id'', 35)',
    '* FROM bloom_find_all(NULL::unfilled, ''id'', ''{35, 36}'')', '* FROM bloom_find_all(NULL::unfilled, ''id'', ''{}'')'
]) WITH ORDINALITY AS a (query, i), failure('SELECT ' || query) ORDER BY i;
DROP MATERIALIZED VIEW unfilled;

-- A NULL among texts is none of them, whatever the setting says that arrays are read by.
SET array_nulls = off;
CREATE TABLE nothing AS SELECT 1 AS id, 'NULL' AS word, '2026-11-24'::date AS day;
CREATE INDEX ON nothing USING bloom_filter (word);
SELECT count(*) FROM bloom_find_all(NULL::nothing, 'word', ARRAY['other', NULL]);
SELECT count(*) FROM nothing WHERE word = ANY (ARRAY['other', NULL]);
SELECT count(*) FROM bloom_find_all(NULL::nothing, 'word', ARRAY['NULL', 'a,b', '"', '\', '{}', '']);
SELECT count(*) FROM bloom_find_all(NULL::nothing, 'id', ARRAY[' 1 ', NULL]);
SELECT count(*) FROM bloom_find_all(NULL::nothing, 'day', ARRAY[['24 Nov 2026', NULL], ['yesterday', 'today']]);
SELECT state, message FROM failure('SELECT FROM bloom_find_all(NULL::nothing, ''id'', ARRAY[''1'', ''one''])');
RESET array_nulls;
DROP TABLE nothing;

-- What is refused, in which words.
CREATE VIEW v AS SELECT * FROM orders;
CREATE TYPE pair AS (a integer, b text);
\x on
SELECT failure.* FROM unnest(ARRAY[
    'NULL::v, ''id'', 1', 'NULL::pair, ''a'', 1', 'NULL::integer, ''id'', 1',
    'NULL::orders, ''nothing'', 1', 'NULL::orders, ''ctid'', 1', 'NULL::orders, ''gone'', 1', 'NULL::orders, ''ID'', 1',
    'NULL::orders, NULL, 1', 'NULL::orders, ''id'', ''x''', 'NULL::orders, ''id'', ''99999999999999999999'''
]) WITH ORDINALITY AS a (arguments, i), failure('SELECT * FROM bloom_find(' || arguments || ')') ORDER BY i;
\x off
-- The parser's own errors. What it hints at depends on the version.
CREATE TABLE points (p point, j json);
SELECT state, message FROM unnest(ARRAY[
    '(NULL::orders, ''id'', point ''(1,2)'')', '(NULL::orders, ''id'', true)', '(NULL::orders, ''note'', 1)',
    '(NULL::points, ''p'', point ''(1,2)'')', '(NULL::points, ''j'', ''{}'')', '_all(NULL::points, ''j'', ''{}'')',
    '_all(NULL::orders, ''id'', ARRAY[true])'
]) WITH ORDINALITY AS a (arguments, i), failure('SELECT * FROM bloom_find' || arguments) ORDER BY i;

-- Rights: to all columns of the table that is named, and no other.
CREATE ROLE bloom_finder;
GRANT SELECT (day, id) ON orders TO bloom_finder;
SET ROLE bloom_finder;
SELECT state, message FROM failure('SELECT * FROM bloom_find(NULL::orders, ''id'', 1)');
RESET ROLE;
GRANT SELECT (note) ON orders TO bloom_finder;
SET ROLE bloom_finder;
SELECT * FROM bloom_find(NULL::orders, 'id', 1);
SELECT state, message FROM failure('SELECT * FROM bloom_find(NULL::orders_1, ''id'', 1)');
RESET ROLE;

-- Row-level security, of the table or of one below it, for whom it applies to.
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON orders USING (id % 2 = 0);
SELECT count(*) FROM bloom_find(NULL::orders, 'id', 1);
SET ROLE bloom_finder;
\x on
SELECT * FROM failure('SELECT * FROM bloom_find(NULL::orders, ''id'', 1)');
RESET ROLE;
ALTER TABLE orders DISABLE ROW LEVEL SECURITY;
ALTER TABLE orders_rest ENABLE ROW LEVEL SECURITY;
SET ROLE bloom_finder;
SELECT * FROM failure('SELECT * FROM bloom_find(NULL::orders, ''id'', 1)');
\x off
RESET ROLE;

DROP EXTENSION file_fdw CASCADE;
DROP TABLE orders, animals, points CASCADE;
DROP TYPE pair;
DROP FUNCTION note_of;
DROP ROLE bloom_finder;
-- An operator = that gives no boolean is refused, as in WHERE.
CREATE SCHEMA odd;
CREATE FUNCTION odd.says(integer, integer) RETURNS text LANGUAGE sql AS $$SELECT 'no'$$;
CREATE OPERATOR odd.= (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = odd.says);
CREATE TABLE odd.numbers AS SELECT 3 AS k;
SET search_path = odd, pg_catalog, public;
SELECT * FROM bloom_find(NULL::odd.numbers, 'k', 3);
RESET search_path;
DROP SCHEMA odd CASCADE;
-- A key under a collation that is not the column's: a query would compare by that one.
CREATE COLLATION by_letter (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE letters (k text, n text COLLATE by_letter);
INSERT INTO letters VALUES ('a', 'a'), ('A', 'A');
SELECT k FROM bloom_find(NULL::letters, 'k', 'A' COLLATE "C");
SELECT k FROM bloom_find(NULL::letters, 'n', 'A') ORDER BY k COLLATE "C";
SELECT k FROM bloom_find_all(NULL::letters, 'n', ARRAY['A'] COLLATE by_letter) ORDER BY k COLLATE "C";
SELECT k FROM bloom_find(NULL::letters, 'k', 'A' COLLATE by_letter);
SELECT k FROM bloom_find_all(NULL::letters, 'k', ARRAY['A'] COLLATE by_letter);
SELECT k FROM bloom_find(NULL::letters, 'n', 'A' COLLATE "C");
SELECT z.k FROM letters AS q, bloom_find(NULL::letters, 'k', q.n) AS z;
DROP TABLE letters;
DROP COLLATION by_letter;
