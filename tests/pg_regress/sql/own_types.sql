-- Types that users make. What they are hashed by follows from operator classes and casts, which come and go, so it is
-- part of their kind: an older filter is refused where its elements would not be found.
CREATE TYPE tick;
CREATE FUNCTION tick_in(cstring) RETURNS tick LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
CREATE FUNCTION tick_out(tick) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
CREATE TYPE tick (INPUT = tick_in, OUTPUT = tick_out, LIKE = int8);
CREATE CAST (tick AS bigint) WITHOUT FUNCTION AS IMPLICIT;
CREATE DOMAIN tick_domain AS tick;
CREATE TYPE tick_row AS (t tick, "a@b" tick[]);
CREATE TYPE tick_range AS RANGE (SUBTYPE = tick);

CREATE TABLE filters AS SELECT bloom_from_array(ARRAY['1', '2']::tick[]) AS f,
    bloom_from_array(ARRAY['1', '2']::tick_domain[]) AS d,
    bloom_agg(ARRAY[x]) AS a, bloom_agg(ROW(x, NULL)::tick_row) AS r, bloom_agg(tick_range(x, NULL)) AS g
FROM (VALUES ('1'::tick), ('2')) AS v (x);
SELECT (bloom_header(x)).key_kind
FROM filters, unnest(ARRAY[f, d, a, r, g]) AS x;
SELECT 1 FROM bloom_set_create('ticks', 'tick');
SELECT bloom_set_add_all('ticks', ARRAY['1', '2']::tick[]);
CREATE VIEW found AS SELECT outcome('SELECT f @> ''1''::tick FROM filters') AS f,
    outcome('SELECT d @> ''1''::tick_domain FROM filters') AS d,
    outcome('SELECT a @> ARRAY[''1''::tick] FROM filters') AS a,
    outcome('SELECT r @> ROW(''1'', NULL)::tick_row FROM filters') AS r,
    outcome('SELECT g @> tick_range(''1'', NULL) FROM filters') AS g,
    outcome('SELECT bloom_contains_all(f, ARRAY[''1'', ''2'']::tick[]) FROM filters') AS "all",
    outcome('SELECT bloom_add(f, ''1''::tick) = f FROM filters') AS add,
    outcome('SELECT f | bloom_from_array(ARRAY[''1''::tick]) = f FROM filters') AS union,
    outcome('SELECT f @=> bloom_key(''1''::tick) FROM filters') AS key,
    outcome('SELECT bloom_set_contains(''ticks'', ''1''::tick)') AS set,
    outcome('SELECT bloom_set_add(''ticks'', ''1''::tick)') AS set_add;
SELECT * FROM found;

-- A class of its own: the hash may be another one, and here it is.
CREATE FUNCTION tick_eq(tick, tick) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int8eq';
CREATE FUNCTION tick_lt(tick, tick) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int8lt';
CREATE FUNCTION tick_cmp(tick, tick) RETURNS integer LANGUAGE internal IMMUTABLE STRICT AS 'btint8cmp';
CREATE FUNCTION tick_hash(tick) RETURNS integer LANGUAGE internal IMMUTABLE STRICT AS 'hashint8';
CREATE FUNCTION tick_hash(tick, bigint) RETURNS bigint LANGUAGE internal IMMUTABLE STRICT AS 'hashfloat8extended';
CREATE FUNCTION "other Hash"(tick, bigint) RETURNS bigint LANGUAGE internal IMMUTABLE STRICT AS 'hashint8extended';
CREATE OPERATOR = (FUNCTION = tick_eq, LEFTARG = tick, RIGHTARG = tick, HASHES);
CREATE OPERATOR < (FUNCTION = tick_lt, LEFTARG = tick, RIGHTARG = tick);
CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING hash
    AS OPERATOR 1 =, FUNCTION 1 tick_hash(tick), FUNCTION 2 tick_hash(tick, bigint);
-- Two equalities, one for btree and one for hash: the hash follows one of them only.
SELECT * FROM failure('SELECT bloom_from_array(ARRAY[''1''::tick])') \gx
CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING btree
    AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 tick_cmp(tick, tick);
SELECT * FROM found;
SELECT * FROM failure('SELECT f @> ''1''::tick FROM filters') \gx
SELECT * FROM failure('SELECT a @> ARRAY[''1''::tick] FROM filters') \gx
SELECT * FROM failure('SELECT r @> ROW(''1'', NULL)::tick_row FROM filters') \gx
SELECT * FROM failure('SELECT g @> tick_range(''1'', NULL) FROM filters') \gx
SELECT * FROM failure('SELECT bloom_set_contains(''ticks'', ''1''::tick)') \gx

-- Another function in the class.
ALTER OPERATOR FAMILY tick_ops USING hash DROP FUNCTION 2 (tick, tick);
SELECT * FROM found;
ALTER OPERATOR FAMILY tick_ops USING hash ADD FUNCTION 2 (tick, tick) "other Hash"(tick, bigint);
SELECT * FROM found;
SELECT (bloom_header(bloom_from_array(ARRAY['1']::tick[]))).key_kind;

-- Without the class all is as it was.
DROP OPERATOR FAMILY tick_ops USING hash;
DROP OPERATOR FAMILY tick_ops USING btree;
SELECT * FROM found;
-- Nor is anything found by way of another type.
DROP CAST (tick AS bigint);
SELECT * FROM found;
CREATE CAST (tick AS float8) WITHOUT FUNCTION AS IMPLICIT;
SELECT * FROM found;
DROP CAST (tick AS float8);
CREATE CAST (tick AS bigint) WITHOUT FUNCTION AS IMPLICIT;
SELECT * FROM found;
-- A session's plans notice as well.
CREATE FUNCTION planned() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT f @> '1'::tick FROM filters); END $$;
CREATE FUNCTION planned(x tick) RETURNS bigint LANGUAGE plpgsql
    AS $$ BEGIN RETURN (SELECT count(*) FROM filters WHERE f @> x); END $$;
SELECT planned(), planned('1'), planned('2');
CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING btree
    AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 tick_cmp(tick, tick);
CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING hash
    AS OPERATOR 1 =, FUNCTION 1 tick_hash(tick), FUNCTION 2 tick_hash(tick, bigint);
SELECT outcome('SELECT planned()'), outcome('SELECT planned(''1'')');

-- Arrays of a built-in type, too, may get an equality of their own.
SELECT (bloom_header(f)).key_kind, f @> ARRAY['A', 'b'] AS found
FROM (SELECT bloom_agg(ARRAY['A', 'b'])) AS v (f);
CREATE FUNCTION any_case(text[], text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT lower($1::text) = lower($2::text)';
CREATE FUNCTION any_case(text[]) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT hashtext(lower($1::text))';
CREATE FUNCTION any_case(text[], bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT hashtextextended(lower($1::text), $2)';
CREATE OPERATOR === (FUNCTION = any_case, LEFTARG = text[], RIGHTARG = text[], HASHES);
CREATE OPERATOR CLASS any_case DEFAULT FOR TYPE text[] USING hash
    AS OPERATOR 1 ===, FUNCTION 1 any_case(text[]), FUNCTION 2 any_case(text[], bigint);
SELECT * FROM failure('SELECT bloom_agg(ARRAY[''A''])') \gx
SELECT (bloom_header(bloom_agg(ARRAY['A']::varchar[]))).key_kind;
DROP OPERATOR FAMILY any_case USING hash;

-- Indexes. A column of ticks is hashed as bigint is where the operator class of bigint compares it.
DROP OPERATOR FAMILY tick_ops USING hash;
DROP OPERATOR FAMILY tick_ops USING btree;
CREATE TABLE t AS SELECT i::text::tick AS x, i::text::money AS m, i::bit(20) AS b, ARRAY[i::text::tick] AS a
FROM generate_series(1, 5000) AS i;
CREATE INDEX t_x ON t USING bloom_filter (x);
-- CREATE INDEX names what is in public with its schema from PostgreSQL 17 on, where it has a search_path of its own.
CREATE FUNCTION failure_without_schema(query text, OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE sql AS $$
    SELECT state, replace(message, 'public.', ''), replace(detail, 'public.', ''), replace(hint, 'public.', '')
    FROM failure(query)
$$;
SET enable_seqscan = off;
SELECT plan_has('Bitmap Index Scan', 'SELECT * FROM t WHERE x = ''4711''::tick::bigint');
SELECT x FROM t WHERE x = '4711'::tick::bigint;
-- A class for the type itself has to name the function, which is there as long as the index then.
CREATE OPERATOR CLASS tick_by_default FOR TYPE tick USING bloom_filter AS OPERATOR 1 = (bigint, bigint);
SELECT * FROM failure_without_schema('CREATE INDEX ON t USING bloom_filter (x tick_by_default)') \gx
SELECT * FROM failure_without_schema('CREATE INDEX ON t USING bloom_filter (a)') \gx
CREATE OPERATOR CLASS money_ops DEFAULT FOR TYPE money USING bloom_filter
    AS OPERATOR 1 =, FUNCTION 4 hashint8extended(bigint, bigint);
CREATE OPERATOR CLASS bit_ops DEFAULT FOR TYPE bit USING bloom_filter
    AS OPERATOR 1 =, FUNCTION 4 hashtextextended(text, bigint);
SELECT opcname, amvalidate(oid) FROM pg_opclass WHERE opcname IN ('money_ops', 'bit_ops') AND opcmethod =
    (SELECT oid FROM pg_am WHERE amname = 'bloom_filter') ORDER BY 1;
CREATE INDEX t_m ON t USING bloom_filter (m);
CREATE INDEX t_b ON t USING bloom_filter (b);
SELECT plan_has('Bitmap Index Scan', 'SELECT * FROM t WHERE m = 4711::text::money');
SELECT m FROM t WHERE m = 4711::text::money;
SELECT plan_has('Bitmap Index Scan', 'SELECT * FROM t WHERE b = 4711::bit(20)');
SELECT b FROM t WHERE b = 4711::bit(20);
SELECT bloom_index_check('t_m'), bloom_index_check('t_b');
SELECT outcome('ALTER OPERATOR FAMILY money_ops USING bloom_filter DROP FUNCTION 4 (money, money)') AS function,
    outcome('DROP OPERATOR FAMILY money_ops USING bloom_filter') AS family;
SELECT * FROM failure('ALTER OPERATOR FAMILY text_ops USING bloom_filter ADD FUNCTION 4 (text, text)
    hashtextextended(text, bigint)') \gx
SELECT * FROM failure('CREATE OPERATOR CLASS sneaky FOR TYPE text USING bloom_filter FAMILY text_ops
    AS FUNCTION 4 hashtextextended(text, bigint)') \gx
-- Functions that can't hash the type.
CREATE FUNCTION wrong(money, bigint) RETURNS integer LANGUAGE internal IMMUTABLE STRICT AS 'hashint8';
DO $$
DECLARE
    wrong text;
BEGIN
    FOREACH wrong IN ARRAY ARRAY['wrong(money, bigint)', 'hashint8(bigint)', 'hashint4extended(integer, bigint)',
        'hashtextextended(text, bigint)', 'float84mul(float8, real)']
    LOOP
        EXECUTE format('CREATE OPERATOR CLASS wrong FOR TYPE money USING bloom_filter AS OPERATOR 1 =, FUNCTION 4 %s', wrong);
        RAISE WARNING '%: %, %', wrong, (SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'wrong'),
            (failure_without_schema('CREATE INDEX ON t USING bloom_filter (m wrong)')).message;
        DROP OPERATOR FAMILY wrong USING bloom_filter;
    END LOOP;
END $$;

RESET enable_seqscan;
DROP VIEW found;
DROP FUNCTION failure_without_schema;
DROP TABLE t, filters, ticks;
DROP TYPE tick CASCADE;
DROP OPERATOR FAMILY money_ops USING bloom_filter;
DROP OPERATOR FAMILY bit_ops USING bloom_filter;
DROP OPERATOR FAMILY tick_by_default USING bloom_filter;
