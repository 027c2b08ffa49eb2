-- bloom_set_clear: a set is empty afterwards, whatever its table had in it.
SELECT bloom_set_create('seen', 'text') AS made;
SELECT cardinality(bloom_set_add_all('seen', ARRAY(SELECT i::text FROM generate_series(1, 200000) AS i))) AS added;
CREATE TABLE at_first AS TABLE seen WITH NO DATA;
-- What a set of these parameters is when it is made.
CREATE VIEW differences AS
    SELECT 'lost' AS what, bucket FROM (TABLE at_first EXCEPT TABLE seen) AS lost
    UNION ALL SELECT 'strange', bucket FROM (TABLE seen EXCEPT TABLE at_first) AS strange;
SELECT bloom_set_create('another', 'text') AS made;
INSERT INTO at_first TABLE another;
SELECT bloom_set_clear('seen');
SELECT elements, rows, overfull FROM bloom_set_info('seen');
TABLE differences;
SELECT bloom_set_contains('seen', '1') AS found, bloom_set_add('seen', '1') AS new, bloom_set_add('seen', '1') AS again;
SELECT pg_typeof(bloom_set_clear('seen')), bloom_set_clear(NULL) IS NULL AS nothing;
SELECT provolatile, proparallel, proisstrict FROM pg_proc WHERE proname = 'bloom_set_clear';

-- A table without any row: the error says what to do.
\x on
TRUNCATE seen;
SELECT * FROM failure($$SELECT bloom_set_contains('seen', 'a')$$);
SELECT call, state, message FROM unnest(ARRAY['bloom_set_add(''seen'', ''a'')', 'bloom_set_add_all(''seen'', ARRAY[''a'', ''b''])',
    'bloom_set_remove(''seen'', ''a'')', 'bloom_set_present(''seen'', ARRAY[''a''])', 'bloom_set_info(''seen'')']) AS call, failure('SELECT ' || call);
SELECT bloom_set_clear('seen');
DELETE FROM seen;
SELECT state, hint FROM failure($$SELECT bloom_set_add('seen', 'a')$$);
SELECT bloom_set_clear('seen');
-- Other rows are there: something else is wrong.
DELETE FROM seen WHERE bucket >= 1025;
SELECT state, message, hint FROM failure($$SELECT bloom_set_info('seen')$$);
SELECT bloom_set_clear('seen');
\x off
SELECT bloom_set_add('seen', 'a') AS new;
CREATE TABLE copied (LIKE seen INCLUDING ALL);
SELECT outcome($$SELECT bloom_set_add('copied', 'a')$$) AS before, bloom_set_clear('copied') AS cleared;
SELECT bloom_set_add('copied', 'a') AS new, elements FROM bloom_set_info('copied');
DROP TABLE copied;

-- Rows that can't be, are damaged, are too many; a set whose rows were split.
BEGIN;
SELECT pg_get_constraintdef(oid) AS its_check FROM pg_constraint WHERE conrelid = 'seen'::regclass AND contype = 'c' \gset
ALTER TABLE seen DROP CONSTRAINT filter_set;
UPDATE seen SET hashes = set_byte(hashes, 3, get_byte(hashes, 3) # 1) WHERE bucket < 1500;
INSERT INTO seen VALUES (0, '\x01'), (-9223372036854775808, '\x01'), (3, '\x');
ALTER TABLE seen ADD CONSTRAINT filter_set :its_check NOT VALID;
SELECT outcome($$SELECT bloom_set_info('seen')$$) AS before;
SELECT bloom_set_clear('seen');
TABLE differences;
COMMIT;
-- Of a table that inherits from it too, as TRUNCATE has it.
CREATE TABLE parent (LIKE seen INCLUDING ALL);
INSERT INTO parent TABLE seen;
CREATE TABLE heir () INHERITS (parent);
INSERT INTO heir TABLE seen;
SELECT outcome($$SELECT bloom_set_contains('parent', 'a')$$) AS before;
SELECT bloom_set_clear('parent');
SELECT bloom_set_contains('parent', 'a') AS found, count(*) AS of_the_heir FROM heir;
DROP TABLE heir, parent;

-- Transactions, savepoints.
SELECT bloom_set_add('seen', 'before') AS new;
BEGIN;
SELECT bloom_set_clear('seen');
SELECT bloom_set_contains('seen', 'before') AS before, bloom_set_add('seen', 'in it') AS new, bloom_set_add('seen', 'in it') AS again;
ROLLBACK;
SELECT bloom_set_present('seen', ARRAY['before', 'in it']);
BEGIN;
SELECT bloom_set_add('seen', 'in it') AS new;
SAVEPOINT s;
SELECT bloom_set_clear('seen');
SELECT bloom_set_add('seen', 'undone') AS new;
SAVEPOINT t;
SELECT bloom_set_clear('seen');
RELEASE t;
SELECT elements FROM bloom_set_info('seen');
ROLLBACK TO s;
SELECT bloom_set_present('seen', ARRAY['before', 'in it', 'undone']);
SELECT bloom_set_clear('seen');
SELECT bloom_set_add('seen', 'after') AS new;
COMMIT;
SELECT bloom_set_present('seen', ARRAY['before', 'in it', 'undone', 'after']);
-- In a function that catches an error afterwards nothing has happened.
DO $$ BEGIN
    PERFORM bloom_set_clear('seen');
    RAISE division_by_zero;
EXCEPTION WHEN division_by_zero THEN NULL;
END $$;
SELECT bloom_set_contains('seen', 'after') AS found;
-- A table that the session is reading, and a read-only transaction.
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'') FROM seen');
BEGIN READ ONLY;
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
COMMIT;
SELECT bloom_set_contains('seen', 'after') AS found;
-- Another warning is due when it is full again.
SELECT bloom_set_create('small', 'integer', 1000);
SELECT cardinality(bloom_set_add_all('small', ARRAY(SELECT generate_series(1, 5000)))) > 4000 AS added;
SELECT bloom_set_clear('small');
SELECT cardinality(bloom_set_add_all('small', ARRAY(SELECT generate_series(1, 5000)))) > 4000 AS added;
DROP TABLE small;

-- The caller's rights: TRUNCATE and INSERT are enough. Without them the table isn't even locked.
CREATE ROLE regress_bloom_owner;
CREATE ROLE regress_bloom_clearer;
GRANT CREATE ON SCHEMA public TO regress_bloom_owner;
SET ROLE regress_bloom_owner;
SELECT bloom_set_create('its_own', 'integer', 1000);
SELECT bloom_set_clear('its_own');
RESET ROLE;
CREATE FUNCTION clear_as(role text, VARIADIC rights text[] DEFAULT '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    REVOKE ALL ON seen FROM regress_bloom_owner, regress_bloom_clearer;
    IF rights <> '{}' THEN
        EXECUTE format('GRANT %s ON seen TO %I', array_to_string(rights, ', '), role);
    END IF;
    EXECUTE format('SET LOCAL ROLE %I', role);
    SELECT outcome('SELECT bloom_set_clear(''seen'')') || ', locks ' || count(*) INTO result FROM pg_locks
    WHERE relation = 'seen'::regclass AND mode = 'AccessExclusiveLock' AND pid = pg_backend_pid();
    RESET ROLE;
    RETURN result;
END $$;
SELECT clear_as('regress_bloom_clearer');
SELECT clear_as('regress_bloom_clearer', 'SELECT', 'INSERT', 'UPDATE', 'DELETE');
SELECT clear_as('regress_bloom_clearer', 'SELECT', 'TRUNCATE', 'UPDATE', 'DELETE');
SELECT bloom_set_contains('seen', 'after') AS found;
SELECT clear_as('regress_bloom_owner', 'INSERT', 'TRUNCATE');
SELECT bloom_set_contains('seen', 'after') AS found;
TABLE differences;
CREATE SCHEMA closed;
SELECT bloom_set_create('closed.set', 'text', 100);
GRANT ALL ON closed.set TO regress_bloom_clearer;
SELECT 'closed.set'::regclass::oid AS closed_set \gset
SET ROLE regress_bloom_clearer;
SELECT state, message FROM failure('SELECT bloom_set_clear(' || :closed_set || ')');
SELECT state, message FROM failure('SELECT bloom_set_clear(''its_own'')');
RESET ROLE;
DROP SCHEMA closed CASCADE;

-- What is no set.
CREATE TABLE no_set (bucket bigint PRIMARY KEY, hashes bytea NOT NULL);
INSERT INTO no_set VALUES (1, '\x');
CREATE VIEW a_view AS SELECT * FROM seen;
SELECT name, state, message FROM unnest(ARRAY['no_set', 'a_view', 'seen_pkey', '4294967295']) AS name,
    failure(format('SELECT bloom_set_clear(%L)', name));
SELECT count(*) AS kept FROM no_set;
DROP TABLE no_set;
DROP VIEW a_view;
-- A table that another refers to.
CREATE TABLE referring (s bigint REFERENCES seen);
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
DROP TABLE referring;

-- Triggers and rules are executed. One that skips a row, stores another, or changes it is found out; the set stays.
SELECT bloom_set_add('seen', 'kept') AS new;
CREATE TABLE log (what text);
CREATE FUNCTION logged() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (TG_OP || ' ' || TG_WHEN); RETURN NEW; END $$;
CREATE TRIGGER a BEFORE TRUNCATE ON seen FOR EACH STATEMENT EXECUTE FUNCTION logged();
CREATE TRIGGER b AFTER TRUNCATE ON seen FOR EACH STATEMENT EXECUTE FUNCTION logged();
CREATE TRIGGER c AFTER INSERT ON seen FOR EACH STATEMENT EXECUTE FUNCTION logged();
BEGIN;
SELECT bloom_set_clear('seen');
TABLE log;
ROLLBACK;
DROP TRIGGER a ON seen; DROP TRIGGER b ON seen; DROP TRIGGER c ON seen;
CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    filled bytea := (SELECT f.hashes FROM filled AS f WHERE f.bucket = 1024);
BEGIN
    CASE TG_ARGV[0]
        WHEN 'skips' THEN IF NEW.bucket = 1500 THEN RETURN NULL; END IF; RETURN NEW;
        WHEN 'changes' THEN IF NEW.bucket = 1024 THEN NEW.hashes := filled; END IF; RETURN NEW;
        WHEN 'inserts' THEN INSERT INTO seen TABLE split; RETURN NULL;
        WHEN 'deletes' THEN DELETE FROM seen WHERE bucket = 1500; RETURN NULL;
        WHEN 'updates' THEN UPDATE seen SET hashes = filled WHERE bucket = 1024 AND hashes <> filled; RETURN NULL;
        WHEN 'raises' THEN RAISE 'not now';
    END CASE;
END $$;
-- Rows of the same form that have something in them.
CREATE TABLE filled (LIKE seen INCLUDING ALL);
SELECT bloom_set_clear('filled');
SELECT cardinality(bloom_set_add_all('filled', ARRAY(SELECT 'x' || i FROM generate_series(1, 9000) AS i))) AS added;
-- A row more, for hashes that have one.
CREATE TABLE larger (LIKE seen INCLUDING ALL);
SELECT bloom_set_clear('larger');
SELECT cardinality(bloom_set_add_all('larger', ARRAY(SELECT i::text FROM generate_series(1, 200000) AS i))) AS added;
CREATE TABLE split AS SELECT bucket, hashes FROM larger WHERE bucket >= 2048;
SELECT count(*) > 0 AS there FROM split;
\x on
CREATE TRIGGER t BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION other('skips');
SELECT * FROM failure('SELECT bloom_set_clear(''seen'')');
DROP TRIGGER t ON seen;
CREATE TRIGGER t BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION other('changes');
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
DROP TRIGGER t ON seen;
CREATE TRIGGER t AFTER TRUNCATE ON seen FOR EACH STATEMENT EXECUTE FUNCTION other('inserts');
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
DROP TRIGGER t ON seen;
CREATE TRIGGER t AFTER INSERT ON seen FOR EACH STATEMENT EXECUTE FUNCTION other('deletes');
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
DROP TRIGGER t ON seen;
CREATE TRIGGER t AFTER INSERT ON seen FOR EACH STATEMENT EXECUTE FUNCTION other('updates');
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
DROP TRIGGER t ON seen;
CREATE TRIGGER t AFTER TRUNCATE ON seen FOR EACH STATEMENT EXECUTE FUNCTION other('raises');
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
DROP TRIGGER t ON seen;
\x off
CREATE RULE r AS ON INSERT TO seen DO INSTEAD NOTHING;
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
DROP RULE r ON seen;
CREATE RULE r AS ON INSERT TO seen DO INSTEAD INSERT INTO at_first VALUES (new.bucket, new.hashes);
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
DROP RULE r ON seen;
CREATE RULE r AS ON INSERT TO seen WHERE new.bucket = 1700 DO ALSO DELETE FROM seen WHERE bucket < 1030;
SELECT state, message FROM failure('SELECT bloom_set_clear(''seen'')');
DROP RULE r ON seen;
SELECT bloom_set_contains('seen', 'kept') AS kept;
-- With a trigger the rows are read back, for which the caller needs a right.
CREATE TRIGGER c AFTER INSERT ON seen FOR EACH STATEMENT EXECUTE FUNCTION logged();
GRANT INSERT ON log TO regress_bloom_clearer;
SELECT clear_as('regress_bloom_clearer', 'INSERT', 'TRUNCATE');
SELECT bloom_set_contains('seen', 'kept') AS kept;
SELECT clear_as('regress_bloom_clearer', 'INSERT', 'TRUNCATE', 'SELECT');
SELECT bloom_set_contains('seen', 'kept') AS kept;
DROP TRIGGER c ON seen;

-- Policies: TRUNCATE ignores them, INSERT doesn't.
SELECT bloom_set_add('seen', 'kept') AS new;
ALTER TABLE seen ENABLE ROW LEVEL SECURITY;
SELECT clear_as('regress_bloom_clearer', 'INSERT', 'TRUNCATE');
CREATE POLICY few ON seen FOR INSERT WITH CHECK (bucket <> 1700);
SELECT clear_as('regress_bloom_clearer', 'INSERT', 'TRUNCATE');
SELECT bloom_set_contains('seen', 'kept') AS kept;
DROP POLICY few ON seen;
CREATE POLICY every ON seen FOR INSERT WITH CHECK (true);
SELECT clear_as('regress_bloom_clearer', 'INSERT', 'TRUNCATE');
SELECT bloom_set_contains('seen', 'kept') AS kept;
TABLE differences;
-- A table whose rows a policy hides isn't one without rows: nobody is told to empty it.
SELECT bloom_set_add('seen', 'kept') AS new;
GRANT SELECT ON seen TO regress_bloom_clearer;
SET ROLE regress_bloom_clearer;
SELECT state, message FROM failure($$SELECT bloom_set_contains('seen', 'kept')$$);
RESET ROLE;
ALTER TABLE seen DISABLE ROW LEVEL SECURITY;
DROP POLICY every ON seen;
SELECT bloom_set_contains('seen', 'kept') AS kept;

-- Partitions, one of which has a trigger of its own.
CREATE TABLE whole (LIKE seen INCLUDING ALL) PARTITION BY RANGE (bucket);
CREATE TABLE part_a PARTITION OF whole FOR VALUES FROM (0) TO (1500);
CREATE TABLE part_b PARTITION OF whole DEFAULT;
SELECT outcome($$SELECT bloom_set_add('whole', 'a')$$) AS before;
SELECT bloom_set_clear('whole');
SELECT cardinality(bloom_set_add_all('whole', ARRAY(SELECT i::text FROM generate_series(1, 9000) AS i))) AS added;
SELECT bloom_set_clear('whole');
SELECT elements, rows FROM bloom_set_info('whole');
CREATE TRIGGER t BEFORE INSERT ON part_b FOR EACH ROW EXECUTE FUNCTION other('skips');
SELECT state, message FROM failure('SELECT bloom_set_clear(''whole'')');
DROP TRIGGER t ON part_b;
CREATE TRIGGER t BEFORE INSERT ON part_a FOR EACH ROW EXECUTE FUNCTION other('changes');
SELECT state, message FROM failure('SELECT bloom_set_clear(''whole'')');
DROP TRIGGER t ON part_a;
-- A part of a set is none.
SELECT state, message FROM failure('SELECT bloom_set_clear(''part_a'')');
DROP TABLE part_b;
SELECT state, message FROM failure('SELECT bloom_set_clear(''whole'')');
DROP TABLE whole;

-- A set that forgets, one of a type that was altered, a temporary one, one under another name.
SELECT bloom_set_create('pg_temp.passing', 'integer', keep => '1 day') IS NOT NULL AS made;
SELECT bloom_set_add('passing', 1) AS new, bloom_set_clear('passing') AS cleared, bloom_set_add('passing', 1) AS new_again;
CREATE TYPE pair AS (a integer, b integer);
SELECT bloom_set_create('pairs', 'pair', 1000);
ALTER TYPE pair ADD ATTRIBUTE c integer;
SELECT bloom_set_clear('pairs');
ALTER TABLE seen RENAME TO "Seen ""before""";
SELECT bloom_set_clear('"Seen ""before"""');
SELECT bloom_set_add('"Seen ""before"""', 'a') AS new;

DROP TABLE "Seen ""before""", another, at_first, its_own, log, filled, larger, split, pairs, passing CASCADE;
DROP TYPE pair;
DROP FUNCTION clear_as, logged, other;
REVOKE ALL ON SCHEMA public FROM regress_bloom_owner;
DROP ROLE regress_bloom_owner, regress_bloom_clearer;
