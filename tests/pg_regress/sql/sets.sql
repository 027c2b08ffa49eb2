-- Filter sets: tables of small filters that sessions add to.
SELECT bloom_set_create('seen', 'text', 10000) AS made;
SELECT relkind, pg_get_userbyid(relowner) = current_user AS own, reloptions FROM pg_class WHERE oid = 'seen'::regclass;
SELECT attname, atttypid::regtype AS type, attnotnull FROM pg_attribute WHERE attrelid = 'seen'::regclass AND attnum > 0;
SELECT count(*), min(shard), max(shard), bool_and(summary(filter) = (SELECT summary(filter) FROM seen WHERE shard = 0)) AS alike,
    max(octet_length(filter::bytea)) AS bytes FROM seen;
SELECT summary(filter) FROM seen WHERE shard = 3;

-- One element: whether it was new.
SELECT bloom_set_add('seen', 'a') AS a, bloom_set_add('seen', 'a') AS again, bloom_set_add('seen', 'b'::text) AS b,
    bloom_set_add('seen', 'c'::"char") AS c, bloom_set_add('seen', 'c') AS c_again, bloom_set_add('seen', 'd'::char(5)) AS d,
    bloom_set_add('seen', 'd'::varchar) AS d_again, bloom_set_add('seen', '') AS empty, bloom_set_add('seen', NULL) AS nothing;
SELECT x, bloom_set_contains('seen', x) AS found FROM unnest(ARRAY['a', 'b', 'c', 'd', '', 'e', NULL]) AS x;
SELECT bloom_set_contains('seen', 'a') AS literal, bloom_set_contains('seen', 'c'::"char") AS "char";

-- Arrays: those that were new, each once, in their order. What is one of them and what is NULL.
SELECT bloom_set_add_all('seen', ARRAY['z', 'a', NULL, 'y', 'z', 'x', 'y']) AS new;
SELECT bloom_set_add_all('seen', ARRAY['z', 'a', NULL, 'y', 'z', 'x', 'y']) AS none;
SELECT bloom_set_add_all('seen', '{}'::text[]) AS empty, bloom_set_add_all('seen', ARRAY[NULL]::text[]) AS nulls,
    bloom_set_add_all('seen', NULL::text[]) IS NULL AS nothing, bloom_set_add_all(NULL, ARRAY['a']) IS NULL AS nowhere;
SELECT bloom_set_present('seen', ARRAY['w', 'z', NULL, 'a', 'z']) AS present,
    bloom_set_absent('seen', ARRAY['w', 'z', NULL, 'a', 'z', 'w']) AS absent,
    bloom_set_present('seen', NULL::text[]) IS NULL AS nothing, bloom_set_absent('seen', '{}'::text[]) AS empty;
SELECT bloom_set_add_all('seen', ARRAY[['m', 'n'], ['m', 'a']]) AS of_two_dimensions,
    pg_typeof(bloom_set_present('seen', ARRAY['a']::varchar[])) AS type;

-- A set behaves as one filter of all its elements does, and each row as a filter of its own.
SELECT bloom_set_create('numbers', 'integer', 3000, 0.001) AS made;
SELECT cardinality(bloom_set_add_all('numbers', ARRAY(SELECT generate_series(1, 3000)))) > 2990 AS most_are_new;
SELECT count(*) AS lost FROM generate_series(1, 3000) AS i WHERE NOT bloom_set_contains('numbers', i);
SELECT count(*) AS lost FROM generate_series(1, 3000) AS i JOIN numbers ON shard = bloom_shard(i, (bloom_set_info('numbers')).shards)
    WHERE NOT filter @> i;
SELECT count(*) < 40 AS few FROM generate_series(3001, 13000) AS i WHERE bloom_set_contains('numbers', i);
SELECT bloom_set_present('numbers', a) = ARRAY(SELECT i FROM unnest(a) AS i WHERE bloom_set_contains('numbers', i)) AS present,
    bloom_set_absent('numbers', a) = ARRAY(SELECT i FROM unnest(a) AS i WHERE NOT bloom_set_contains('numbers', i)) AS absent
FROM (SELECT ARRAY(SELECT generate_series(2000, 5000)) AS a) AS asked;
-- Every integer is one of one kind.
SELECT bloom_set_contains('numbers', 7::smallint) AS smallint, bloom_set_contains('numbers', 7::bigint) AS bigint;

-- How full it is.
SELECT element, round(elements / 100) AS hundreds, capacity, target_fpr, current_fpr BETWEEN 0.0001 AND 0.001 AS as_promised,
    shards, bytes > 0 AS on_disk, overfull FROM bloom_set_info('numbers');
-- An overfull set is reported once in a session, or refused. A batch without new elements never fails.
SET pg_bloom.overfill = 'error';
SELECT * FROM failure($$SELECT bloom_set_add_all('numbers', ARRAY(SELECT generate_series(5001, 9000)))$$);
SELECT count(*) FROM generate_series(5001, 9000) AS i WHERE bloom_set_contains('numbers', i) HAVING count(*) > 40;
SET pg_bloom.overfill = 'ignore';
SELECT count(bloom_set_add_all('numbers', ARRAY(SELECT generate_series(5001, 9000))));
SET pg_bloom.overfill = 'error';
SELECT bloom_set_add_all('numbers', ARRAY(SELECT generate_series(5001, 9000))) AS nothing_new, bloom_set_add('numbers', 1) AS old;
SELECT state FROM failure($$SELECT count(*) FILTER (WHERE bloom_set_add('numbers', i)) FROM generate_series(20001, 20100) AS i$$);
RESET pg_bloom.overfill;
SELECT cardinality(bloom_set_add_all('numbers', ARRAY(SELECT generate_series(9001, 9100)))) > 50 AS most_are_new;
SELECT cardinality(bloom_set_add_all('numbers', ARRAY(SELECT generate_series(9101, 9200)))) > 50 AS most_are_new;
SELECT round(elements / 1000) AS thousands, current_fpr > 0.005 AS bad, overfull FROM bloom_set_info('numbers');

-- Names: quoted as identifiers are, in the schema named or the first of search_path.
CREATE SCHEMA "Other place";
SELECT bloom_set_create('"Other place"."Set ""of"" numbers"', 'int', 10) AS made,
    bloom_set_create('UPPER', 'int', 10) AS folded, bloom_set_create('pg_temp.passing', 'int', 10)::text ~ 'passing$' AS temporary;
SET search_path = "Other place", public;
SELECT bloom_set_create('first', 'text', 10) AS made, relnamespace::regnamespace FROM pg_class WHERE oid = '"Other place"."Set ""of"" numbers"'::regclass;
RESET search_path;
SELECT bloom_set_add('"Other place".first', 'x') AS new, bloom_set_add('passing', 3) AS temporary;
\x on
SELECT * FROM failure($$SELECT bloom_set_create('seen', 'text', 10)$$);
SELECT name, state, message FROM unnest(ARRAY['', ' ', 'a.b.c.d', 'nowhere.x', '"open', 'x y']) AS name,
    failure(format('SELECT bloom_set_create(%L, ''text'', 10)', name));
\x off

-- What it is made for.
SELECT call, state, message, hint FROM unnest(ARRAY[
    '''n'', ''text'', 0', '''n'', ''text'', -5', '''n'', ''text'', 10, 0', '''n'', ''text'', 10, 0.6', '''n'', ''text'', 9223372036854775807',
    'NULL, ''text'', 10', '''n'', NULL, 10', '''n'', ''json'', 10', '''n'', ''bloom'', 10', '''n'', ''record'', 10',
    '''n'', ''anyelement'', 10', '''n'', 999999, 10', '''n'', ''regclass'', 10', '''n'', ''point'', 10'
]) AS call, failure('SELECT bloom_set_create(' || call || ')');
SET pg_bloom.default_fpr = 0.2;
SELECT bloom_set_create('loose', 'text', 10), bloom_set_create('nulls', 'text', 10, NULL), bloom_set_create('strict', 'text', 10, 1e-9);
RESET pg_bloom.default_fpr;
SELECT target_fpr FROM unnest(ARRAY['loose', 'nulls', 'strict']) AS s, bloom_set_info(s);

-- Elements of another kind, also where there are none.
SELECT call, state, message, hint FROM unnest(ARRAY[
    'bloom_set_add(''seen'', 1)', 'bloom_set_add_all(''seen'', ARRAY[1])', 'bloom_set_add_all(''seen'', ''{}''::int[])',
    'bloom_set_contains(''numbers'', ''a'')', 'bloom_set_present(''numbers'', ARRAY[1.5])', 'bloom_set_absent(''numbers'', ''{}''::text[])',
    'bloom_set_add(''numbers'', ARRAY[1])', 'bloom_set_add(''seen'', ''{}''::json)', 'bloom_set_add(''seen'', bloom_empty())',
    'bloom_set_add(''seen'', ''a'' COLLATE "nowhere")'
]) AS call, failure('SELECT ' || call);

-- In a set of arrays an array is one element.
SELECT bloom_set_create('arrays', 'int[]', 10);
SELECT bloom_set_add('arrays', ARRAY[1, 2]) AS new, bloom_set_add('arrays', ARRAY[1, 2]) AS again;
SELECT call, state, hint FROM unnest(ARRAY['bloom_set_add_all(''arrays'', ARRAY[1])', 'bloom_set_absent(''arrays'', ARRAY[1])',
    'bloom_add_all(bloom_empty(10) || ARRAY[1], ARRAY[1])', 'bloom_set_add(''arrays'', 1)']) AS call, failure('SELECT ' || call);
DROP TABLE arrays;

-- Two constraints that don't agree.
SELECT bloom_set_create('ambiguous', 'integer', 1000);
ALTER TABLE ambiguous ADD CONSTRAINT a CHECK (bloom_set_check(shard, filter, 'integer', 64, 1000, 0.01)) NOT VALID;
SELECT bloom_set_add('ambiguous', 1) AS the_same_twice;
ALTER TABLE ambiguous ADD CONSTRAINT b CHECK (bloom_set_check(shard, filter, 'integer', 32, 500, 0.01)) NOT VALID;
SELECT state, detail FROM failure($$SELECT bloom_set_contains('ambiguous', 1)$$);
DROP TABLE ambiguous;

-- Tables that are no such set.
CREATE TABLE by_hand (shard integer PRIMARY KEY, filter bloom NOT NULL);
CREATE TABLE others (id integer);
CREATE VIEW a_view AS SELECT * FROM seen;
CREATE FOREIGN DATA WRAPPER elsewhere;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER elsewhere;
CREATE FOREIGN TABLE foreign_table (shard integer NOT NULL, filter bloom NOT NULL,
    CHECK (bloom_set_check(shard, filter, 'text'::regtype, 64, '10000'::bigint, '0.01'::double precision))) SERVER elsewhere;
CREATE TABLE copied (LIKE seen INCLUDING ALL);
INSERT INTO copied SELECT * FROM seen;
SELECT bloom_set_contains('copied', 'a') AS a_copy, bloom_set_add('copied', 'new one') AS added, bloom_set_contains('seen', 'new one') AS apart;
\x on
SELECT name, f.* FROM unnest(ARRAY['by_hand', 'others', 'a_view', 'foreign_table', 'seen_pkey', '4294967295']) AS name,
    failure(format('SELECT bloom_set_add(%L, ''a'')', name)) AS f;
ALTER TABLE copied ADD note text;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
ALTER TABLE copied DROP note;
SELECT bloom_set_contains('copied', 'a') AS well_again, bloom_set_add('copied', 'with a dropped column') AS new;
ALTER TABLE copied ALTER filter DROP NOT NULL;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
ALTER TABLE copied ALTER filter SET NOT NULL, DROP CONSTRAINT copied_pkey;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
ALTER TABLE copied ADD PRIMARY KEY (shard) DEFERRABLE;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
ALTER TABLE copied DROP CONSTRAINT copied_pkey, ADD PRIMARY KEY (shard), DROP CONSTRAINT filter_set;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
\x off
DROP TABLE copied, by_hand, others;
DROP VIEW a_view;
DROP FOREIGN DATA WRAPPER elsewhere CASCADE;

-- Rows that don't belong there are kept out; a missing one is an error, not another place for its elements.
SELECT state, message FROM unnest(ARRAY[
    'INSERT INTO seen SELECT 100, filter FROM seen WHERE shard = 0', 'INSERT INTO seen SELECT -1, filter FROM seen WHERE shard = 0',
    'UPDATE seen SET filter = bloom_empty()', 'UPDATE seen SET filter = bloom_from_array(ARRAY[''a''], 100)',
    'UPDATE seen SET filter = NULL', 'UPDATE seen SET filter = filter || 1'
]) AS sql, failure(sql);
BEGIN;
UPDATE seen SET filter = filter || 'by hand'::text WHERE shard = bloom_shard('by hand'::text, (bloom_set_info('seen')).shards);
SELECT bloom_set_contains('seen', 'by hand') AS by_hand;
ROLLBACK;
BEGIN;
DELETE FROM seen WHERE shard = (SELECT max(shard) FROM seen);
SELECT bloom_set_contains('seen', 'a') AS others_stay;
\x on
SELECT * FROM failure($$SELECT bloom_set_add_all('seen', ARRAY(SELECT i::text FROM generate_series(1, 200) AS i))$$);
SELECT * FROM failure($$SELECT bloom_set_info('seen')$$);
\x off
ROLLBACK;

-- A call sees those before it, also in one statement; a query asks as of its start. ROLLBACK undoes all.
BEGIN;
SELECT x, bloom_set_add('seen', x) AS new FROM unnest(ARRAY['p', 'q', 'p']) WITH ORDINALITY AS u (x, n) ORDER BY n;
SAVEPOINT s;
SELECT bloom_set_add('seen', 'r') AS new, bloom_set_contains('seen', 'r') AS at_its_start;
ROLLBACK TO s;
SELECT bloom_set_contains('seen', 'r') AS r, bloom_set_contains('seen', 'q') AS q;
ROLLBACK;
SELECT bloom_set_present('seen', ARRAY['p', 'q', 'r']);
-- A failure in the middle of a batch leaves nothing.
CREATE FUNCTION half(VARIADIC text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE n integer := (bloom_set_info('seen')).shards;
BEGIN
    DELETE FROM seen WHERE shard = n / 2;
    RETURN bloom_set_add_all('seen', $1);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    RETURN ARRAY[SQLERRM];
END $$;
SELECT half(VARIADIC ARRAY(SELECT 'half ' || i FROM generate_series(1, 100) AS i));
SELECT bloom_set_present('seen', ARRAY(SELECT 'half ' || i FROM generate_series(1, 100) AS i));

-- The caller's rights.
CREATE ROLE regress_bloom_reader;
CREATE ROLE regress_bloom_writer;
GRANT USAGE ON SCHEMA public TO regress_bloom_reader, regress_bloom_writer;
-- As in a new database of PostgreSQL 15 and later.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE FUNCTION rights() RETURNS TABLE (add text, add_all text, contains text, present text, info text) LANGUAGE sql AS $$
    SELECT outcome($q$SELECT bloom_set_add('seen', 'a')$q$), outcome($q$SELECT bloom_set_add_all('seen', ARRAY['a'])$q$),
        outcome($q$SELECT bloom_set_contains('seen', 'a')$q$), outcome($q$SELECT bloom_set_present('seen', ARRAY['a'])$q$),
        outcome($q$SELECT shards > 0 FROM bloom_set_info('seen')$q$)
$$;
SET ROLE regress_bloom_reader;
SELECT * FROM rights();
SELECT message FROM failure($$SELECT bloom_set_contains('seen', 'a')$$);
RESET ROLE;
GRANT SELECT ON seen TO regress_bloom_reader;
GRANT SELECT (shard, filter), UPDATE (filter) ON seen TO regress_bloom_writer;
SET ROLE regress_bloom_reader;
SELECT * FROM rights();
RESET ROLE;
SET ROLE regress_bloom_writer;
SELECT * FROM rights();
SELECT state FROM failure($$SELECT bloom_set_create('public.mine', 'text', 10)$$);
RESET ROLE;
-- The right to use the schema is needed even if the set is named by its identifier.
CREATE SCHEMA closed;
SELECT bloom_set_create('closed.set', 'text', 100);
GRANT SELECT, UPDATE ON closed.set TO regress_bloom_writer;
SELECT 'closed.set'::regclass::oid AS closed_set \gset
GRANT USAGE ON SCHEMA closed TO regress_bloom_writer;
SET ROLE regress_bloom_writer;
SELECT bloom_set_add(:closed_set, 'a') AS new;
RESET ROLE;
REVOKE USAGE ON SCHEMA closed FROM regress_bloom_writer;
SET ROLE regress_bloom_writer;
SELECT state, message FROM unnest(ARRAY['bloom_set_add', 'bloom_set_contains']) AS f, failure(format('SELECT %s(%s, ''b'')', f, :closed_set));
RESET ROLE;
DROP SCHEMA closed CASCADE;

-- Row-level security: a row that a policy hides is an error, never an absent element.
ALTER TABLE seen ENABLE ROW LEVEL SECURITY;
SELECT bloom_set_contains('seen', 'a') AS of_the_owner;
SET ROLE regress_bloom_reader;
\x on
SELECT * FROM failure($$SELECT bloom_set_contains('seen', 'a')$$);
RESET ROLE;
-- A policy that lets all be read and only some be changed.
CREATE POLICY reading ON seen FOR SELECT USING (true);
CREATE POLICY writing ON seen FOR UPDATE USING (shard < 2);
SET ROLE regress_bloom_writer;
SELECT bloom_set_contains('seen', 'a') AS found;
SELECT state FROM failure($$SELECT bloom_set_add_all('seen', ARRAY(SELECT 'policy ' || i FROM generate_series(1, 50) AS i))$$);
RESET ROLE;
ALTER TABLE seen DISABLE ROW LEVEL SECURITY;
DROP POLICY reading ON seen;
DROP POLICY writing ON seen;
SELECT cardinality(bloom_set_present('seen', ARRAY(SELECT 'policy ' || i FROM generate_series(1, 50) AS i))) AS stored;
-- Triggers and rules are executed. One that skips a row, or changes it, is found out.
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION other_filter() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.filter := NEW.filter || ''more''::text; RETURN NEW; END';
CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE counts SET n = n + 1; RETURN NEW; END';
CREATE TABLE counts AS SELECT 0 AS n;
CREATE TRIGGER t BEFORE UPDATE ON seen FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT * FROM failure($$SELECT bloom_set_add('seen', 'skipped')$$);
SELECT bloom_set_contains('seen', 'skipped') AS stored;
DROP TRIGGER t ON seen;
CREATE TRIGGER t BEFORE UPDATE ON seen FOR EACH ROW EXECUTE FUNCTION other_filter();
SELECT state, message FROM failure($$SELECT bloom_set_add('seen', 'changed')$$);
DROP TRIGGER t ON seen;
CREATE TRIGGER t BEFORE UPDATE ON seen FOR EACH ROW EXECUTE FUNCTION counted();
SELECT bloom_set_add('seen', 'counted') AS new, bloom_set_add('seen', 'counted') AS again;
SELECT n FROM counts;
DROP TRIGGER t ON seen;
CREATE RULE r AS ON UPDATE TO seen DO INSTEAD NOTHING;
SELECT state FROM failure($$SELECT bloom_set_add('seen', 'by a rule')$$);
DROP RULE r ON seen;
\x off
-- Constraints and foreign keys of its own are checked.
ALTER TABLE seen ADD CONSTRAINT own CHECK (NOT filter @> 'forbidden'::text);
SELECT state, message FROM failure($$SELECT bloom_set_add('seen', 'forbidden')$$);
SELECT bloom_set_add('seen', 'not forbidden') AS new;
ALTER TABLE seen DROP CONSTRAINT own;
CREATE TABLE referring (s integer REFERENCES seen);
INSERT INTO referring SELECT shard FROM seen;
SELECT bloom_set_add('seen', 'referred to') AS new;
DROP TABLE referring, counts;
-- A generated column can't be changed.
CREATE TABLE generated (shard integer PRIMARY KEY, filter bloom NOT NULL GENERATED ALWAYS AS (bloom_empty(157, 0.01) || 'x'::text) STORED,
    CONSTRAINT filter_set CHECK (bloom_set_check(shard, filter, 'text'::regtype, 64, '10000'::bigint, '0.01'::double precision)));
INSERT INTO generated SELECT generate_series(0, 63);
SELECT bloom_set_contains('generated', 'x') AS found;
SELECT state, message FROM failure($$SELECT bloom_set_add('generated', 'y')$$);
DROP TABLE generated;
-- A partition by a key over the filters: its bounds are checked.
CREATE TABLE above (shard integer NOT NULL, filter bloom NOT NULL) PARTITION BY LIST ((filter @> 'secret'::text));
ALTER TABLE above ATTACH PARTITION seen FOR VALUES IN (false);
SELECT state, message FROM failure($$SELECT bloom_set_add('seen', 'secret')$$);
SELECT bloom_set_add('seen', 'no secret') AS new;
ALTER TABLE above DETACH PARTITION seen;
DROP TABLE above;
-- A set in partitions by shard, and one with triggers of its parent.
CREATE TABLE whole (LIKE seen INCLUDING ALL) PARTITION BY RANGE (shard);
CREATE TABLE part_a PARTITION OF whole FOR VALUES FROM (0) TO (20);
CREATE TABLE part_b PARTITION OF whole FOR VALUES FROM (20) TO (64);
INSERT INTO whole SELECT shard, filter FROM seen;
SELECT cardinality(bloom_set_add_all('whole', ARRAY(SELECT 'part ' || i FROM generate_series(1, 100) AS i))) AS new,
    bloom_set_contains('whole', 'a') AS a;
SELECT cardinality(bloom_set_present('whole', ARRAY(SELECT 'part ' || i FROM generate_series(1, 100) AS i))) AS found,
    shards, bytes > 10000 AS on_disk FROM bloom_set_info('whole');
SELECT state, message FROM failure($$SELECT bloom_set_add_all('part_a', ARRAY(SELECT 'part ' || i FROM generate_series(1, 100) AS i))$$);
CREATE TRIGGER t BEFORE UPDATE ON whole FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT state, message FROM failure($$SELECT bloom_set_add('whole', 'skipped')$$);
DROP TABLE whole;
-- What an UPDATE returns may not be what is there afterwards: a rule that changes another table, a trigger that changes
-- the row once more.
SELECT bloom_set_create('ruled', 'integer', 1000);
SELECT cardinality(bloom_set_add_all('ruled', ARRAY(SELECT generate_series(1, 500)))) AS new;
CREATE TABLE ruled_before AS SELECT * FROM ruled;
CREATE RULE elsewhere AS ON UPDATE TO ruled DO INSTEAD
    UPDATE ruled_before SET filter = new.filter WHERE shard = new.shard RETURNING ruled_before.*;
SELECT state, message FROM failure($$SELECT bloom_set_add('ruled', 501)$$);
DROP RULE elsewhere ON ruled;
SELECT bloom_set_add('ruled', 501) AS new;
SELECT bloom_set_contains('ruled', 501) AS found;
CREATE FUNCTION back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ruled SET filter = old.filter WHERE shard = old.shard AND pg_trigger_depth() < 2;
    RETURN NULL;
END $$;
CREATE TRIGGER back AFTER UPDATE ON ruled FOR EACH ROW EXECUTE FUNCTION back();
SELECT state, message FROM failure($$SELECT bloom_set_add('ruled', 502)$$);
DROP TRIGGER back ON ruled;
-- A constraint that somebody wrote, with other constants.
ALTER TABLE ruled DROP CONSTRAINT filter_set,
    ADD CHECK (bloom_set_check(shard, filter, 'int'::regtype, 64, 1000, 0.01));
SELECT bloom_set_add('ruled', 502) AS new, element, shards, capacity, target_fpr FROM bloom_set_info('ruled');
-- There must be no other column.
ALTER TABLE ruled ADD note text;
SELECT state, message, detail FROM failure($$SELECT bloom_set_add('ruled', 503)$$);
DROP TABLE ruled, ruled_before;
DROP FUNCTION back;
-- A table that inherits from a set has rows with the same shards.
CREATE TABLE heir () INHERITS (seen);
INSERT INTO heir SELECT * FROM seen;
SELECT state, message FROM failure($$SELECT bloom_set_contains('seen', 'a')$$);
DROP TABLE heir;
-- Read-only transactions; temporary sets can be added to.
BEGIN READ ONLY;
SELECT state, message FROM unnest(ARRAY['bloom_set_add(''seen'', ''a'')', 'bloom_set_add_all(''seen'', ARRAY[''a''])',
    'bloom_set_create(''n'', ''text'', 10)', 'bloom_set_add(''passing'', 4)', 'bloom_set_contains(''seen'', ''a'')']) AS call,
    failure('SELECT ' || call);
COMMIT;

-- search_path decides nothing: other objects with the extension's names, or PostgreSQL's.
CREATE SCHEMA trap;
CREATE FUNCTION trap.bloom_set_check(integer, bloom, regtype, integer, bigint, double precision) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE DOMAIN trap.bloom AS public.bloom CHECK (false);
CREATE DOMAIN trap.int4 AS integer CHECK (false);
CREATE FUNCTION trap.generate_series(integer, integer) RETURNS SETOF integer LANGUAGE sql AS 'SELECT -1';
SET search_path = trap, pg_catalog, public;
SELECT bloom_set_create('public.safe', 'text', 100000) AS made;
SELECT bloom_set_add('public.safe', 'a') AS new, bloom_set_contains('public.safe', 'a') AS found;
RESET search_path;
-- With the extension in another schema sets go on.
ALTER EXTENSION pg_bloom SET SCHEMA "Other place";
SELECT "Other place".bloom_set_add('safe', 'b') AS new, "Other place".bloom_set_contains('safe', 'a') AS found,
    "Other place".bloom_set_create('there', 'text', 10);
ALTER EXTENSION pg_bloom SET SCHEMA public;
SELECT bloom_set_add('there', 'b') AS new, bloom_set_contains('safe', 'b') AS found;

-- The type of the elements can't go without the set.
CREATE TYPE mark AS ENUM ('a', 'b');
SELECT bloom_set_create('marks', 'mark', 100);
SELECT bloom_set_add('marks', 'a'::mark) AS new, bloom_set_contains('marks', 'b'::mark) AS other, element FROM bloom_set_info('marks');
SELECT state FROM failure('DROP TYPE mark');
DROP TABLE marks;
DROP TYPE mark;

-- An index more, which new rows on other pages must be in.
SELECT bloom_set_create('growing', 'integer', 20000);
CREATE INDEX growing_shard ON growing (shard);
SELECT count(bloom_set_add_all('growing', ARRAY(SELECT generate_series(i, i + 99)))) FROM generate_series(1, 20000, 100) AS i;
SET enable_seqscan = off;
SELECT count(*) AS rows, count(DISTINCT g.shard) AS shards FROM generate_series(0, 100) AS s, growing AS g WHERE g.shard = s;
SELECT count(*) AS lost FROM generate_series(1, 20000) AS i WHERE NOT bloom_set_contains('growing', i);
RESET enable_seqscan;
DROP INDEX growing_shard;
CREATE INDEX ON growing ((shard + 1));
CREATE INDEX ON growing (shard) WHERE shard > 0;
SELECT bloom_set_add('growing', 30001) AS new, bloom_set_contains('growing', 30001) AS found;

DROP SCHEMA trap, "Other place" CASCADE;
DROP TABLE seen, numbers, "upper", passing, loose, nulls, strict, safe, there, growing;
DROP FUNCTION half, rights, nothing, other_filter, counted;
REVOKE ALL ON SCHEMA public FROM regress_bloom_reader, regress_bloom_writer;
DROP ROLE regress_bloom_reader, regress_bloom_writer;

-- An overfull set refuses each new element, also in a session that adds only a few.
SELECT bloom_set_create('brimful', 'integer', 20000);
SET pg_bloom.overfill = ignore;
SELECT cardinality(bloom_set_add_all('brimful', ARRAY(SELECT generate_series(1, 80000)))) > 50000 AS many;
\c -
SET pg_bloom.overfill = error;
SELECT count(*) FILTER (WHERE result = 'true') AS accepted, count(*) FILTER (WHERE result = '22023') > 50 AS refused
FROM (SELECT outcome(format('SELECT bloom_set_add(''brimful'', %s)', -i)) AS result FROM generate_series(1, 300) AS i OFFSET 0) AS s;
DROP TABLE brimful;

-- A function in the constraint would have the rights of whoever asks: it is not called. PostgreSQL's own casts are.
CREATE FUNCTION shards_of_somebody() RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'called as %', current_user; END $$;
SELECT bloom_set_create('sound', 'integer', 1000);
CREATE TABLE bait (LIKE sound, PRIMARY KEY (shard),
    CHECK (bloom_set_check(shard, filter, 'integer', shards_of_somebody(), 1000::bigint, 0.01::float8)));
SELECT outcome('SELECT bloom_set_contains(''bait'', 1)');
CREATE TABLE cast_set (LIKE sound, PRIMARY KEY (shard),
    CHECK (bloom_set_check(shard, filter, 'integer', 64, 1000::smallint::bigint, 0.01::numeric::float8)));
INSERT INTO cast_set SELECT * FROM sound;
SELECT bloom_set_add('cast_set', 1) AS new;
SELECT bloom_set_contains('cast_set', 1) AS found;
DROP TABLE sound, bait, cast_set;
DROP FUNCTION shards_of_somebody;

SELECT outcome('SELECT bloom_set_create(''""'', ''integer'', 10)');
SELECT bloom_set_create('before', 'integer', 10);
BEGIN;
ALTER TYPE bloom RENAME TO blossom;
SELECT outcome('SELECT bloom_set_contains(''before'', 1)');
ROLLBACK;
DROP TABLE before;
