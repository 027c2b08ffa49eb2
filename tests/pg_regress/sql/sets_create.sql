-- bloom_set_create: what a set can be made for, and sets that are there already.
\x on
SELECT rate, state, message, hint FROM unnest(ARRAY['1e-12', '0', '-0.1', '0.6', 'NaN', 'Infinity']) AS rate,
    failure(format('SELECT bloom_set_create(''n'', ''text'', 10, %L)', rate));
\x off

SELECT bloom_set_create('seen', 'text', 1000, 0.001, '7 days', true) AS made;
SELECT bloom_set_add('seen', 'a') AS new;
SET client_min_messages = notice;
\set VERBOSITY verbose
\set SHOW_CONTEXT never
SELECT bloom_set_create('seen', 'text', 1000, 0.001, '7 days', true, if_not_exists => true) AS there;
\set VERBOSITY default
SELECT bloom_set_create('seen', 'text', 1000, 0.001, '168 hours', true, true) AS as_long;
SELECT bloom_set_create('other', 'text', if_not_exists => true) AS made, bloom_set_create('other', 'text', if_not_exists => true) AS there;
SELECT bloom_set_create('other', 'text', 10000000000, 0.01, if_not_exists => true) AS by_the_defaults;
SET pg_bloom.default_fpr = 0.5;
SELECT state, detail FROM failure('SELECT bloom_set_create(''other'', ''text'', if_not_exists => true)');
RESET pg_bloom.default_fpr;
SELECT bloom_set_contains('seen', 'a') AS kept, elements FROM bloom_set_info('seen');
-- By whatever name: one is of a schema, and one is found by search_path.
CREATE SCHEMA elsewhere;
SELECT bloom_set_create('elsewhere.seen', 'text', 1000, 0.001, '7 days', true, true) AS made;
SET search_path = elsewhere, public;
SELECT bloom_set_create('"seen"', 'text', 1000, 0.001, '7 days', true, true) AS there, bloom_set_contains('seen', 'a') AS another;
RESET search_path;
DROP SCHEMA elsewhere CASCADE;
-- A set that was renamed, emptied or damaged is there all the same.
ALTER TABLE other RENAME TO renamed;
TRUNCATE renamed;
SELECT bloom_set_create('renamed', 'text', if_not_exists => true) AS there, outcome($$SELECT bloom_set_contains('renamed', 'a')$$) AS empty;

-- Made for something else, or no set.
\x on
SELECT * FROM failure('SELECT bloom_set_create(''seen'', ''text'', 1000, 0.001, ''7 days'', true)');
SELECT * FROM failure('SELECT bloom_set_create(''seen'', ''text'', 1000, 0.001, ''7 days'', true, false)');
SELECT * FROM failure('SELECT bloom_set_create(''seen'', ''text'', 1000, 0.001, ''7 days'', true, NULL)');
SELECT * FROM failure('SELECT bloom_set_create(''seen'', ''integer'', 1000, 0.001, ''7 days'', true, true)');
\x off
SELECT parameters, state, message, detail FROM unnest(ARRAY[
    '''text'', 1001, 0.001, ''7 days'', true', '''text'', NULL, 0.001, ''7 days'', true', '''text'', 1000, 0.002, ''7 days'', true',
    '''text'', 1000, NULL, ''7 days'', true', '''text'', 1000, 0.001, ''8 days'', true', '''text'', 1000, 0.001, NULL, false',
    '''text'', 1000, 0.001, ''7 days'', false', '''varchar'', 1000, 0.001, ''7 days'', true'
]) AS parameters, failure('SELECT bloom_set_create(''seen'', ' || parameters || ', if_not_exists => true)');
CREATE TYPE pair AS (a integer, b integer);
SELECT bloom_set_create('pairs', 'pair', 1000);
SELECT bloom_set_create('pairs', 'pair', 1000, if_not_exists => true);
ALTER TYPE pair ADD ATTRIBUTE c integer;
SELECT state, message, detail FROM failure('SELECT bloom_set_create(''pairs'', ''pair'', 1000, if_not_exists => true)');
CREATE TABLE a_table (bucket bigint PRIMARY KEY, hashes bytea NOT NULL);
CREATE VIEW a_view AS SELECT * FROM seen;
CREATE SEQUENCE a_sequence;
CREATE TYPE a_type AS ENUM ('a');
SELECT name, state, message FROM unnest(ARRAY['a_table', 'a_view', 'a_sequence', 'a_type', 'seen_pkey']) AS name,
    failure(format('SELECT bloom_set_create(%L, ''text'', if_not_exists => true)', name));
-- The parameters must be ones that a set can have.
SELECT parameters, state, message FROM unnest(ARRAY['''text'', 0', '''text'', 1000, 0.001, renew => true', '''json''', 'NULL']) AS parameters,
    failure('SELECT bloom_set_create(''seen'', ' || parameters || ', if_not_exists => true)');

-- Whoever may use the schema may ask; to make one, a right is needed.
CREATE ROLE regress_bloom_maker;
-- As in a new database of PostgreSQL 15 and later.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
SET ROLE regress_bloom_maker;
SELECT bloom_set_create('seen', 'text', 1000, 0.001, '7 days', true, true) AS there;
SELECT state, message FROM failure('SELECT bloom_set_create(''its_own'', ''text'', if_not_exists => true)');
RESET ROLE;
BEGIN READ ONLY;
SELECT state, message FROM failure('SELECT bloom_set_create(''seen'', ''text'', 1000, 0.001, ''7 days'', true, true)');
COMMIT;

RESET client_min_messages;
DROP TABLE seen, renamed, pairs, a_table CASCADE;
DROP SEQUENCE a_sequence;
DROP TYPE a_type, pair;
DROP ROLE regress_bloom_maker;
