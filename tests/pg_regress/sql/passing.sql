-- Errors of users' code pass through the extension with all that they have: their codes, those that PostgreSQL doesn't know
-- included, their contexts, and the names of objects.
CREATE FUNCTION passed(statement text) RETURNS TABLE (state text, message text, detail text, hint text, constraint_name text,
    context text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT, constraint_name = CONSTRAINT_NAME, context = PG_EXCEPTION_CONTEXT;
    context := split_part(context, E'\n', 1);
    RETURN NEXT;
END $$;
CREATE FUNCTION odd(i integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF i = 5 THEN
        RAISE EXCEPTION 'größe' USING ERRCODE = 'P0042', CONSTRAINT = 'five', DETAIL = 'It is five.', HINT = 'Give another.';
    END IF;
    RETURN i;
END $$;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM odd(5); END';
CREATE TABLE numbers AS SELECT i, i::text AS t FROM generate_series(1, 20000) AS i;
ANALYZE numbers;
SELECT bloom_set_create('guarded', 'integer', 10);
\x on
-- An index on an expression, and a row that is added to one.
SELECT * FROM passed('CREATE INDEX ON numbers USING bloom_filter (odd(i))');
CREATE TABLE added (i integer);
CREATE INDEX ON added USING bloom_filter (odd(i));
SELECT state, context FROM passed('INSERT INTO added VALUES (5)');
-- A scan that reads ahead: the element, a condition, and what is selected.
SELECT * FROM passed('SELECT count(*) FROM numbers WHERE (SELECT bloom_agg(i) FROM numbers) @> odd(i)');
SELECT * FROM passed('SELECT count(*) FROM numbers WHERE (SELECT bloom_agg(i) FROM numbers) @> i AND odd(i) > 0');
SELECT * FROM passed('SELECT odd(i) FROM numbers WHERE (SELECT bloom_agg(i) FROM numbers) @> i');
-- A query that starts: partitions are chosen by a function that is stable.
CREATE FUNCTION odd_now(i integer) RETURNS integer STABLE LANGUAGE plpgsql AS 'BEGIN RETURN odd(i); END';
CREATE TABLE parts (i integer) PARTITION BY RANGE (i);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (4);
CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (4) TO (9);
SET plan_cache_mode = force_generic_plan;
PREPARE start_fails(integer) AS SELECT * FROM parts WHERE i = odd_now($1);
SELECT * FROM passed('EXECUTE start_fails(5)');
DEALLOCATE start_fails;
RESET plan_cache_mode;
-- A trigger and a constraint of a set.
CREATE TRIGGER refuse BEFORE UPDATE ON guarded FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT * FROM passed('SELECT bloom_set_add(''guarded'', 1)');
DROP TRIGGER refuse ON guarded;
ALTER TABLE guarded ADD CONSTRAINT mine CHECK (bucket > 10000) NOT VALID;
SELECT state, message, constraint_name FROM passed('SELECT bloom_set_add(''guarded'', 1)');
\x off
DROP TABLE numbers, guarded, added, parts;
DROP FUNCTION passed, odd, odd_now, refuse;
