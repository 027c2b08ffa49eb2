-- Filter sets: tables of sorted hashes that sessions add to.
SELECT bloom_set_create('seen', 'text', 10000) AS made;
SELECT relkind, pg_get_userbyid(relowner) = current_user AS own, reloptions FROM pg_class WHERE oid = 'seen'::regclass;
SELECT attname, atttypid::regtype AS type, attnotnull FROM pg_attribute WHERE attrelid = 'seen'::regclass AND attnum > 0;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'seen'::regclass AND contype IN ('c', 'p') ORDER BY contype;
SELECT count(*), min(bucket), max(bucket), max(octet_length(hashes)) AS bytes FROM seen;
SELECT hashes FROM seen WHERE bucket = 1500;

-- One element: whether it was new.
SELECT bloom_set_add('seen', 'a') AS a, bloom_set_add('seen', 'a') AS again, bloom_set_add('seen', 'b'::text) AS b,
    bloom_set_add('seen', 'c'::"char"::text) AS c, bloom_set_add('seen', 'c') AS c_again, bloom_set_add('seen', 'd'::char(5)) AS d,
    bloom_set_add('seen', 'd'::varchar) AS d_again, bloom_set_add('seen', '') AS empty, bloom_set_add('seen', NULL) AS nothing;
SELECT x, bloom_set_contains('seen', x) AS found FROM unnest(ARRAY['a', 'b', 'c', 'd', '', 'e', NULL]) AS x;
SELECT bloom_set_contains('seen', 'a') AS literal, bloom_set_contains('seen', 'c'::"char"::text) AS "char";

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

-- It grows, and loses nothing.
SELECT bloom_set_create('numbers', 'integer', 3000, 0.001) AS made;
SELECT cardinality(bloom_set_add_all('numbers', ARRAY(SELECT generate_series(1, 3000)))) AS new;
SELECT count(*) AS lost FROM generate_series(1, 3000) AS i WHERE NOT bloom_set_contains('numbers', i);
SELECT count(*) < 40 AS few FROM generate_series(3001, 13000) AS i WHERE bloom_set_contains('numbers', i);
SELECT bloom_set_present('numbers', a) = ARRAY(SELECT i FROM unnest(a) AS i WHERE bloom_set_contains('numbers', i)) AS present,
    bloom_set_absent('numbers', a) = ARRAY(SELECT i FROM unnest(a) AS i WHERE NOT bloom_set_contains('numbers', i)) AS absent
FROM (SELECT ARRAY(SELECT generate_series(2000, 5000)) AS a) AS asked;
-- Every integer is one of one kind.
SELECT bloom_set_contains('numbers', 7::smallint) AS smallint, bloom_set_contains('numbers', 7::bigint) AS bigint;

-- Elements are removed.
SELECT bloom_set_remove('numbers', 7) AS was_there, bloom_set_remove('numbers', 7) AS again, bloom_set_contains('numbers', 7) AS there,
    bloom_set_remove('numbers', NULL::integer) AS nothing, bloom_set_remove('seen', 'z') AS text, bloom_set_remove('seen', 'c'::"char"::text) AS "char";
SELECT bloom_set_remove_all('numbers', ARRAY[9, 7, NULL, 8, 9]) AS were_there, bloom_set_remove_all('numbers', '{}'::int[]) AS empty,
    bloom_set_remove_all('numbers', NULL::int[]) IS NULL AS nothing;
SELECT bloom_set_add_all('numbers', ARRAY[6, 7, 8, 9, 10]) AS new_again;

-- How full it is.
SELECT element, elements, capacity, target_fpr, current_fpr::numeric(9, 7) AS current_fpr, rows, bytes > 0 AS on_disk, overfull, keep, oldest
FROM bloom_set_info('numbers');
-- An overfull set is reported once in a session, or refused, and then nothing is added. A batch without new elements
-- never fails. The rate grows in proportion.
SET pg_bloom.overfill = 'error';
SELECT * FROM failure($$SELECT bloom_set_add_all('numbers', ARRAY(SELECT generate_series(5001, 9000)))$$);
SELECT elements FROM bloom_set_info('numbers');
SET pg_bloom.overfill = 'ignore';
SELECT count(bloom_set_add_all('numbers', ARRAY(SELECT generate_series(5001, 9000))));
SET pg_bloom.overfill = 'error';
SELECT bloom_set_add_all('numbers', ARRAY(SELECT generate_series(5001, 9000))) AS nothing_new, bloom_set_add('numbers', 1) AS old;
SELECT state FROM failure($$SELECT bloom_set_add_all('numbers', ARRAY(SELECT generate_series(20001, 20100)))$$);
RESET pg_bloom.overfill;
SET client_min_messages = warning;
SELECT cardinality(bloom_set_add_all('numbers', ARRAY(SELECT generate_series(9001, 9100)))) > 90 AS most_are_new;
SELECT cardinality(bloom_set_add_all('numbers', ARRAY(SELECT generate_series(9101, 9200)))) > 90 AS most_are_new;
SELECT round(elements / 100) AS hundreds, current_fpr BETWEEN 0.0016 AND 0.0018 AS in_proportion, overfull FROM bloom_set_info('numbers');
-- It grows from nothing to any size; what was removed is joined again.
SELECT bloom_set_create('grows', 'integer') AS made;
SELECT cardinality(bloom_set_add_all('grows', ARRAY(SELECT generate_series(1, 300000)))) AS new;
SELECT cardinality(bloom_set_absent('grows', ARRAY(SELECT generate_series(1, 300000)))) AS lost,
    cardinality(bloom_set_present('grows', ARRAY(SELECT generate_series(300001, 600000)))) AS wrong;
SELECT elements, capacity, target_fpr, current_fpr < 1e-6 AS sharp, rows BETWEEN 1500 AND 4096 AS rows, overfull FROM bloom_set_info('grows');
SELECT max(octet_length(hashes)) <= 800 AS small FROM grows;
SELECT cardinality(bloom_set_remove_all('grows', ARRAY(SELECT generate_series(11, 300000)))) AS removed;
SELECT bloom_set_expire('grows') AS forgotten, rows, elements FROM bloom_set_info('grows');
SELECT rows, elements, bloom_set_present('grows', ARRAY(SELECT generate_series(1, 300000))) AS present FROM bloom_set_info('grows');

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
-- A call that fails leaves no plan in the session.
SELECT count(*) AS before FROM pg_backend_memory_contexts WHERE name ~ 'Plan' \gset
SELECT count(DISTINCT state) FROM generate_series(1, 50) AS i,
    failure(format($$SELECT bloom_set_create('seen', 'text', 10) -- %s$$, i));
SELECT count(*) - :before < 25 AS freed FROM pg_backend_memory_contexts WHERE name ~ 'Plan';
SELECT name, state, message FROM unnest(ARRAY['', ' ', 'a.b.c.d', 'nowhere.x', '"open', 'x y']) AS name,
    failure(format('SELECT bloom_set_create(%L, ''text'', 10)', name));
\x off

-- What it is made for.
SELECT call, state, message, hint FROM unnest(ARRAY[
    '''n'', ''text'', 0', '''n'', ''text'', -5', '''n'', ''text'', 10, 0', '''n'', ''text'', 10, 0.6', '''n'', ''text'', 9223372036854775807', '''n'', ''text'', 10000000000, 1e-9', '''n'', ''text'', renew => true',
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
ALTER TABLE ambiguous RENAME CONSTRAINT filter_set TO mine;
SELECT bloom_set_add('ambiguous', 1) AS whatever_its_name;
ALTER TABLE ambiguous ADD CONSTRAINT b CHECK (bloom_set_check(bucket, hashes, 'integer', 1, 500, 0.01, NULL, false)) NOT VALID;
SELECT state, detail FROM failure($$SELECT bloom_set_contains('ambiguous', 1)$$);
DROP TABLE ambiguous;

-- Tables that are no such set.
CREATE TABLE by_hand (bucket bigint PRIMARY KEY, hashes bytea NOT NULL);
CREATE TABLE older (shard integer PRIMARY KEY, filter bloom NOT NULL);
CREATE TABLE others (id integer);
CREATE VIEW a_view AS SELECT * FROM seen;
CREATE FOREIGN DATA WRAPPER elsewhere;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER elsewhere;
CREATE FOREIGN TABLE foreign_table (bucket bigint NOT NULL, hashes bytea NOT NULL,
    CHECK (bloom_set_check(bucket, hashes, 'text'::regtype, 1::bigint, NULL::bigint, '0.01'::double precision, NULL::interval, false))) SERVER elsewhere;
CREATE TABLE copied (LIKE seen INCLUDING ALL);
INSERT INTO copied SELECT * FROM seen;
SELECT bloom_set_contains('copied', 'a') AS a_copy, bloom_set_add('copied', 'new one') AS added, bloom_set_contains('seen', 'new one') AS apart;
\x on
SELECT name, f.* FROM unnest(ARRAY['by_hand', 'older', 'others', 'a_view', 'foreign_table', 'seen_pkey', '4294967295']) AS name,
    failure(format('SELECT bloom_set_add(%L, ''a'')', name)) AS f;
ALTER TABLE copied ADD note text;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
ALTER TABLE copied DROP note;
SELECT bloom_set_contains('copied', 'a') AS well_again, bloom_set_add('copied', 'with a dropped column') AS new;
ALTER TABLE copied ALTER hashes DROP NOT NULL;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
ALTER TABLE copied ALTER hashes SET NOT NULL, DROP CONSTRAINT copied_pkey;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
ALTER TABLE copied ADD PRIMARY KEY (bucket) DEFERRABLE;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
ALTER TABLE copied DROP CONSTRAINT copied_pkey, ADD PRIMARY KEY (bucket), DROP CONSTRAINT filter_set;
SELECT * FROM failure($$SELECT bloom_set_contains('copied', 'a')$$);
\x off
DROP TABLE copied, by_hand, older, others;
DROP VIEW a_view;
DROP FOREIGN DATA WRAPPER elsewhere CASCADE;

-- Rows that don't belong there are kept out; a missing one is an error, not another place for its elements.
SELECT state, message FROM unnest(ARRAY[
    'INSERT INTO seen SELECT 100, hashes FROM seen WHERE bucket = 1024', 'INSERT INTO seen SELECT -1, hashes FROM seen WHERE bucket = 1024',
    'UPDATE seen SET hashes = ''\x''', 'UPDATE seen SET hashes = set_byte(hashes, 3, get_byte(hashes, 3) # 1)',
    'UPDATE seen SET hashes = NULL', 'UPDATE seen SET hashes = g.hashes FROM grows AS g WHERE g.bucket = seen.bucket',
    'UPDATE seen SET bucket = bucket + 1024'
]) AS sql, failure(sql);
BEGIN;
DELETE FROM seen WHERE bucket = (SELECT max(bucket) FROM seen);
SELECT bloom_set_contains('seen', 'a') AS others_stay;
\x on
SELECT * FROM failure($$SELECT bloom_set_add_all('seen', ARRAY(SELECT i::text FROM generate_series(1, 9000) AS i))$$);
SELECT * FROM failure($$SELECT bloom_set_present('seen', ARRAY(SELECT i::text FROM generate_series(1, 9000) AS i))$$);
SELECT * FROM failure($$SELECT bloom_set_info('seen')$$);
ROLLBACK;
-- Two rows for the same hashes, and a damaged one.
BEGIN;
SELECT bloom_set_create('once', 'text'), bloom_set_create('twice', 'text');
SELECT cardinality(bloom_set_add_all('twice', ARRAY(SELECT i::text FROM generate_series(1, 150000) AS i))) AS new;
SELECT bloom_set_add('once', 'b') AS new;
INSERT INTO once SELECT t.* FROM twice AS t WHERE t.bucket > 2047 ON CONFLICT DO NOTHING;
SELECT * FROM failure($$SELECT bloom_set_info('once')$$);
SELECT state FROM failure($$SELECT bloom_set_present('once', ARRAY(SELECT i::text FROM generate_series(1, 100) AS i))$$);
SELECT state FROM failure($$SELECT bloom_set_add_all('once', ARRAY(SELECT i::text FROM generate_series(1, 9000) AS i))$$);
ROLLBACK;
-- A row that is damaged in spite of the constraint.
BEGIN;
SELECT set_config('test.constraint', pg_get_constraintdef(oid), true) ~ 'bloom_set_check' AS kept FROM pg_constraint WHERE conrelid = 'seen'::regclass AND contype = 'c';
ALTER TABLE seen DROP CONSTRAINT filter_set;
UPDATE seen SET hashes = set_byte(hashes, 3, get_byte(hashes, 3) # 1);
DO $$ BEGIN EXECUTE 'ALTER TABLE seen ADD CONSTRAINT filter_set ' || current_setting('test.constraint') || ' NOT VALID'; END $$;
SELECT * FROM failure($f$SELECT bloom_set_contains('seen', 'a')$f$);
SELECT state FROM unnest(ARRAY['bloom_set_add(''seen'', ''a'')', 'bloom_set_info(''seen'')', 'bloom_set_expire(''seen'')']) AS call, failure('SELECT ' || call);
ROLLBACK;
-- Rows for buckets that there are not.
BEGIN;
SELECT set_config('test.constraint', pg_get_constraintdef(oid), true) ~ 'bloom_set_check' AS kept FROM pg_constraint WHERE conrelid = 'seen'::regclass AND contype = 'c';
ALTER TABLE seen DROP CONSTRAINT filter_set;
INSERT INTO seen VALUES (0, '\x01'), (-9223372036854775808, '\x01');
DO $$ BEGIN EXECUTE 'ALTER TABLE seen ADD CONSTRAINT filter_set ' || current_setting('test.constraint') || ' NOT VALID'; END $$;
SELECT state, message FROM failure($f$SELECT bloom_set_info('seen')$f$);
DELETE FROM seen WHERE bucket < 0;
SELECT state, message FROM failure($f$SELECT bloom_set_info('seen')$f$);
ROLLBACK;
\x off

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
BEGIN
    DELETE FROM seen WHERE bucket BETWEEN 1500 AND 1600;
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
        outcome($q$SELECT rows > 0 FROM bloom_set_info('seen')$q$)
$$;
SET ROLE regress_bloom_reader;
SELECT * FROM rights();
SELECT message FROM failure($$SELECT bloom_set_contains('seen', 'a')$$);
RESET ROLE;
GRANT SELECT ON seen TO regress_bloom_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON seen TO regress_bloom_writer;
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
GRANT SELECT, INSERT, UPDATE, DELETE ON closed.set TO regress_bloom_writer;
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
CREATE POLICY writing ON seen FOR UPDATE USING (bucket < 1026);
SET ROLE regress_bloom_writer;
SELECT bloom_set_contains('seen', 'a') AS found;
SELECT state, message FROM failure($$SELECT bloom_set_add_all('seen', ARRAY(SELECT 'policy ' || i FROM generate_series(1, 50) AS i))$$);
RESET ROLE;
ALTER TABLE seen DISABLE ROW LEVEL SECURITY;
DROP POLICY reading ON seen;
DROP POLICY writing ON seen;
SELECT cardinality(bloom_set_present('seen', ARRAY(SELECT 'policy ' || i FROM generate_series(1, 50) AS i))) AS stored;
-- Triggers and rules are executed. One that skips a row, or changes it, is found out.
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION other_hashes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.hashes := OLD.hashes; RETURN NEW; END';
CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE counts SET n = n + 1; RETURN NEW; END';
CREATE TABLE counts AS SELECT 0 AS n;
CREATE TRIGGER t BEFORE UPDATE ON seen FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT * FROM failure($$SELECT bloom_set_add('seen', 'skipped')$$);
SELECT bloom_set_contains('seen', 'skipped') AS stored;
DROP TRIGGER t ON seen;
CREATE TRIGGER t BEFORE UPDATE ON seen FOR EACH ROW EXECUTE FUNCTION other_hashes();
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
ALTER TABLE seen ADD CONSTRAINT own CHECK (octet_length(hashes) < 9) NOT VALID;
SELECT state, message FROM failure($$SELECT bloom_set_add('seen', 'forbidden')$$);
ALTER TABLE seen DROP CONSTRAINT own;
CREATE TABLE referring (s bigint REFERENCES seen);
INSERT INTO referring SELECT bucket FROM seen;
SELECT bloom_set_add('seen', 'referred to') AS new;
SELECT state FROM failure($$SELECT bloom_set_add_all('seen', ARRAY(SELECT i::text FROM generate_series(1, 300000) AS i))$$);
DROP TABLE referring, counts;
-- A set in partitions by bucket, and one with triggers of its parent.
SELECT bloom_set_create('sparse', 'text');
CREATE TABLE whole (LIKE sparse INCLUDING ALL) PARTITION BY RANGE (bucket);
CREATE TABLE part_a PARTITION OF whole FOR VALUES FROM (0) TO (1500);
CREATE TABLE part_b PARTITION OF whole FOR VALUES FROM (1500) TO (3000);
CREATE TABLE part_c PARTITION OF whole DEFAULT;
INSERT INTO whole SELECT bucket, hashes FROM sparse;
SELECT cardinality(bloom_set_add_all('whole', ARRAY(SELECT 'part ' || i FROM generate_series(1, 100) AS i))) AS new;
SELECT cardinality(bloom_set_present('whole', ARRAY(SELECT 'part ' || i FROM generate_series(1, 100) AS i))) AS found,
    rows, bytes > 10000 AS on_disk FROM bloom_set_info('whole');
SELECT cardinality(bloom_set_add_all('whole', ARRAY(SELECT i::text FROM generate_series(1, 300000) AS i))) > 290000 AS most_are_new;
SELECT cardinality(bloom_set_absent('whole', ARRAY(SELECT i::text FROM generate_series(1, 300000) AS i))) AS lost;
SELECT bloom_set_expire('whole') AS forgotten, count(*) > 1200 AS split FROM whole;
SELECT state, message FROM failure($$SELECT bloom_set_add_all('part_a', ARRAY(SELECT 'part ' || i FROM generate_series(1, 100) AS i))$$);
CREATE TRIGGER t BEFORE UPDATE ON whole FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT state, message FROM failure($$SELECT bloom_set_add('whole', 'skipped')$$);
DROP TABLE whole, sparse;
-- What an UPDATE returns may not be what is there afterwards: a rule that changes another table, a trigger that changes
-- the row once more.
SELECT bloom_set_create('ruled', 'integer', 1000);
SELECT cardinality(bloom_set_add_all('ruled', ARRAY(SELECT generate_series(1, 500)))) AS new;
CREATE TABLE ruled_before AS SELECT * FROM ruled;
CREATE RULE elsewhere AS ON UPDATE TO ruled DO INSTEAD
    UPDATE ruled_before SET hashes = new.hashes WHERE bucket = new.bucket RETURNING ruled_before.*;
SELECT state, message FROM failure($$SELECT bloom_set_add('ruled', 501)$$);
DROP RULE elsewhere ON ruled;
SELECT bloom_set_add('ruled', 501) AS new;
SELECT bloom_set_contains('ruled', 501) AS found;
CREATE FUNCTION back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ruled SET hashes = old.hashes WHERE bucket = old.bucket AND pg_trigger_depth() < 2;
    RETURN NULL;
END $$;
CREATE TRIGGER back AFTER UPDATE ON ruled FOR EACH ROW EXECUTE FUNCTION back();
SELECT state, message FROM failure($$SELECT bloom_set_add('ruled', 505)$$);
DROP TRIGGER back ON ruled;
-- There must be no other column.
ALTER TABLE ruled ADD note text;
SELECT state, message, detail FROM failure($$SELECT bloom_set_add('ruled', 503)$$);
DROP TABLE ruled, ruled_before;
DROP FUNCTION back;
-- A table that inherits from a set has rows with the same buckets.
CREATE TABLE heir () INHERITS (seen);
INSERT INTO heir SELECT * FROM seen;
SELECT state, message, detail FROM failure($$SELECT bloom_set_contains('seen', 'a')$$);
DROP TABLE heir;
-- Read-only transactions; temporary sets can be added to.
BEGIN READ ONLY;
SELECT state, message FROM unnest(ARRAY['bloom_set_add(''seen'', ''a'')', 'bloom_set_add_all(''seen'', ARRAY[''a''])',
    'bloom_set_create(''n'', ''text'', 10)', 'bloom_set_add(''passing'', 4)', 'bloom_set_contains(''seen'', ''a'')']) AS call,
    failure('SELECT ' || call);
COMMIT;

-- search_path decides nothing: other objects with the extension's names, or PostgreSQL's.
CREATE SCHEMA trap;
CREATE FUNCTION trap.bloom_set_check(bigint, bytea, regtype, bigint, bigint, double precision, interval, boolean) RETURNS boolean
    LANGUAGE sql AS 'SELECT false';
CREATE DOMAIN trap.bytea AS pg_catalog.bytea CHECK (false);
CREATE DOMAIN trap.int8 AS bigint CHECK (false);
CREATE FUNCTION trap.unnest(anyarray) RETURNS SETOF anyelement LANGUAGE sql AS 'SELECT NULL';
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
CREATE INDEX growing_bucket ON growing (bucket);
SELECT count(bloom_set_add_all('growing', ARRAY(SELECT generate_series(i, i + 99)))) FROM generate_series(1, 20000, 100) AS i;
SET enable_seqscan = off;
SELECT count(*) = (SELECT rows FROM bloom_set_info('growing')) AS all_rows FROM generate_series(1000, 5000) AS s, growing AS g WHERE g.bucket = s;
SELECT count(*) AS lost FROM generate_series(1, 20000) AS i WHERE NOT bloom_set_contains('growing', i);
RESET enable_seqscan;
DROP INDEX growing_bucket;
CREATE INDEX ON growing ((bucket + 1));
CREATE INDEX ON growing (bucket) WHERE bucket > 1100;
SELECT bloom_set_add('growing', 30001) AS new, bloom_set_contains('growing', 30001) AS found;

DROP SCHEMA trap, "Other place" CASCADE;
DROP TABLE seen, numbers, "upper", passing, loose, nulls, strict, safe, there, growing;
DROP FUNCTION half, rights, nothing, other_hashes, counted;
REVOKE ALL ON SCHEMA public FROM regress_bloom_reader, regress_bloom_writer;
DROP ROLE regress_bloom_reader, regress_bloom_writer;

-- A set that is far from full neither warns nor refuses, however its elements come.
SELECT bloom_set_create('roomy', 'integer', 20000);
SET pg_bloom.overfill = error;
SELECT cardinality(bloom_set_add_all('roomy', ARRAY(SELECT generate_series(1, 9000)))) > 8900 AS most_are_new;
SELECT count(*) FILTER (WHERE bloom_set_add('roomy', -i)) > 990 AS most_are_new FROM generate_series(1, 1000) AS i;
SELECT sum(cardinality(bloom_set_add_all('roomy', ARRAY(SELECT generate_series(-100 * i - 99, -100 * i))))) > 8900 AS most_are_new
    FROM generate_series(11, 100) AS i;
RESET pg_bloom.overfill;
DROP TABLE roomy, grows;

-- A function in the constraint would have the rights of whoever asks: it is not called. PostgreSQL's own casts are.
CREATE FUNCTION capacity_of_somebody() RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'called as %', current_user; END $$;
SELECT bloom_set_create('sound', 'integer', 1000);
CREATE TABLE bait (LIKE sound, PRIMARY KEY (bucket),
    CHECK (bloom_set_check(bucket, hashes, 'integer', 1, capacity_of_somebody(), 0.01::float8, NULL, false)));
SELECT outcome('SELECT bloom_set_contains(''bait'', 1)');
SELECT substring(pg_get_constraintdef(oid) FROM '''(-?[0-9]+)''::bigint') AS kind FROM pg_constraint WHERE conrelid = 'sound'::regclass AND contype = 'c' \gset
CREATE TABLE cast_set (LIKE sound, PRIMARY KEY (bucket),
    CHECK (bloom_set_check(bucket, hashes, 'integer', :'kind'::bigint, 1000::smallint::bigint, 0.01::numeric::float8, NULL, false)));
INSERT INTO cast_set SELECT * FROM sound;
SELECT bloom_set_add('cast_set', 1) AS new;
SELECT bloom_set_contains('cast_set', 1) AS found;
DROP TABLE sound, bait, cast_set;
DROP FUNCTION capacity_of_somebody;

-- A type of rows that was altered: its elements have other hashes.
CREATE TYPE pair AS (a integer, b integer);
SELECT bloom_set_create('pairs', 'pair', 1000);
SELECT bloom_set_add('pairs', ROW(1, 2)::pair) AS new, bloom_set_contains('pairs', ROW(1, 2)::pair) AS there;
ALTER TYPE pair ADD ATTRIBUTE c integer;
SELECT * FROM failure($$SELECT bloom_set_contains('pairs', ROW(1, 2, 3)::pair)$$);
DROP TABLE pairs;
DROP TYPE pair;

SELECT outcome('SELECT bloom_set_create(''""'', ''integer'', 10)');
