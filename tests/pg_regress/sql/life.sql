-- The extension's life: moved, dropped, created again, by others than superusers.
CREATE TABLE kept AS SELECT bloom_from_array(ARRAY['a', 'b']) AS f, bloom_agg(i, 1000) AS g
    FROM generate_series(1, 1000) i;

-- In another schema: everything works there, stored filters as before, and refusals as well.
CREATE SCHEMA elsewhere;
ALTER EXTENSION pg_bloom SET SCHEMA elsewhere;
SELECT extnamespace::regnamespace AS schema FROM pg_extension WHERE extname = 'pg_bloom';
SELECT outcome('SELECT bloom_empty()') AS not_in_the_path;
SELECT f OPERATOR(elsewhere.@>) 'a' AS found, f OPERATOR(elsewhere.@>) 'c' AS absent,
    elsewhere.bloom_cardinality(f) AS cardinality FROM kept;
SELECT elsewhere.bloom_agg(i) OPERATOR(elsewhere.@>) 2 AS found,
    elsewhere.bloom_agg(i, 10, 0.01, 'classic') OPERATOR(elsewhere.@>) 4 AS absent FROM generate_series(1, 3) i;
SELECT outcome('SELECT elsewhere.bloom_agg(f) FROM kept') AS filter,
    outcome('SELECT elsewhere.bloom_agg(ARRAY[f]) FROM kept') AS inside;
SET search_path = elsewhere;
SELECT bloom_union_agg(f | f) @> 'b' AS found, count(DISTINCT f) FROM public.kept;
RESET search_path;
-- A type called bloom of somebody else is no filter of ours.
CREATE TYPE bloom AS (x int);
SELECT outcome('SELECT elsewhere.bloom_empty() OPERATOR(elsewhere.||) ROW(1)::public.bloom OPERATOR(elsewhere.@>) ROW(1)::public.bloom')
    = 'true' AS another_type_of_that_name;
DROP TYPE bloom;
ALTER EXTENSION pg_bloom SET SCHEMA public;
DROP SCHEMA elsewhere;
SELECT f @> 'a' AS found, f @> 'c' AS absent FROM kept;

-- A type that moves takes another name, and filters of its elements refuse it rather than answering wrongly.
CREATE SCHEMA elsewhere;
CREATE TYPE steps AS RANGE (subtype = int8);
CREATE TABLE ranges AS SELECT bloom_from_array(ARRAY[steps(1, 2)]) AS f;
SELECT f @> steps(1, 2) AS before FROM ranges;
ALTER TYPE steps SET SCHEMA elsewhere;
SELECT outcome('SELECT f @> ''[1,2)''::elsewhere.steps FROM ranges') AS after_moving;
ALTER TYPE elsewhere.steps SET SCHEMA public;
SELECT f @> '[1,2)'::steps AS back, f @> '[1,3)'::steps AS absent FROM ranges;
DROP TABLE ranges;
DROP TYPE steps;
DROP SCHEMA elsewhere;

-- Dropped and created again, in a transaction that is undone. Columns hold it back.
SELECT outcome('DROP EXTENSION pg_bloom') AS with_columns;
BEGIN;
DROP EXTENSION pg_bloom CASCADE;
SELECT to_regtype('bloom') IS NULL AS type_gone, (SELECT count(*) FROM pg_proc
    WHERE proname LIKE 'bloom\_%') AS functions, (SELECT count(*) FROM pg_attribute
    WHERE attrelid = 'kept'::regclass AND attname IN ('f', 'g')) AS columns;
CREATE EXTENSION pg_bloom;
SELECT bloom_from_array(ARRAY['a', 'b']) @> 'a' AS found, bloom_agg(i, 1000) @> 1001 AS absent
    FROM generate_series(1, 1000) i;
DROP EXTENSION pg_bloom;
CREATE SCHEMA apart;
CREATE EXTENSION pg_bloom SCHEMA apart;
SELECT apart.bloom_from_array(ARRAY['a', 'b']) OPERATOR(apart.@>) 'a' AS found;
ROLLBACK;
SELECT f @> 'a' AS found, f @> 'c' AS absent, bloom_cardinality(g) BETWEEN 950 AND 1050 AS dense FROM kept;

-- Trusted: whoever may create objects in the database may create it; others may not.
BEGIN;
DROP EXTENSION pg_bloom CASCADE;
CREATE ROLE regress_bloom_owner;
CREATE ROLE regress_bloom_other;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO regress_bloom_owner', current_database()); END $$;
CREATE SCHEMA owned AUTHORIZATION regress_bloom_owner;
SET ROLE regress_bloom_other;
SAVEPOINT before;
CREATE EXTENSION pg_bloom;
ROLLBACK TO before;
SET ROLE regress_bloom_owner;
CREATE EXTENSION pg_bloom SCHEMA owned;
SELECT owned.bloom_agg(i) OPERATOR(owned.@>) 1 AS found FROM generate_series(1, 3) i;
DROP EXTENSION pg_bloom;
ROLLBACK;
RESET ROLE;

-- There already.
CREATE EXTENSION IF NOT EXISTS pg_bloom;
CREATE EXTENSION pg_bloom;
DROP TABLE kept;
