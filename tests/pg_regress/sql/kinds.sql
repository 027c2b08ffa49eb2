-- Key kinds: what may meet in one filter, and that equal elements are found whatever their type is.
CREATE TYPE letter AS ENUM ('z', 'a', 'b');
CREATE TYPE other_letter AS ENUM ('b', 'a');
CREATE DOMAIN whole AS integer;
CREATE DOMAIN word AS varchar(10);
CREATE TYPE span AS (a integer, b bigint);
CREATE TYPE other_span AS (a integer, b bigint);
CREATE DOMAIN short_word AS word CHECK (length(VALUE) < 5);

-- A value of every type, and another one. Types of one kind have the same two values here; those of different
-- kinds have the same bytes where that can be (text and bytea, dates and numbers), so that nothing but the kind
-- tells them apart.
CREATE TABLE types (i int, kind text, type text, value text, other text);
INSERT INTO types SELECT row_number() OVER (), kind, type, value, other FROM (VALUES
    ('integer', 'smallint', '42', '43'),
    ('integer', 'integer', '42', '43'),
    ('integer', 'bigint', '42', '43'),
    ('integer', 'whole', '42', '43'),
    ('text', 'untyped', 'a', 'b'),
    ('text', 'text', 'a', 'b'),
    ('text', 'varchar', 'a', 'b'),
    ('text', 'varchar(3)', 'a', 'b'),
    ('text', 'char(3)', 'a', 'b'),
    ('text', 'bpchar', 'a', 'b'),
    ('text', 'name', 'a', 'b'),
    ('text', 'letter', 'a', 'b'),
    ('text', 'other_letter', 'a', 'b'),
    ('text', 'short_word', 'a', 'b'),
    ('bytea', 'bytea', 'a', 'b'),
    ('float', 'real', '42', '43'),
    ('float', 'double precision', '42', '43'),
    ('numeric', 'numeric', '42', '43'),
    ('numeric', 'numeric(6, 2)', '42', '43'),
    ('uuid', 'uuid', '00000000-0000-0000-0000-000000000042', '00000000-0000-0000-0000-000000000043'),
    ('date', 'date', '2001-02-03', '2001-02-04'),
    ('timestamp', 'timestamp', '2001-02-03', '2001-02-04'),
    ('timestamptz', 'timestamptz', '2001-02-03 00:00+00', '2001-02-04 00:00+00'),
    ('boolean', 'boolean', 'yes', 'no'),
    ('other', 'inet', '10.0.0.0', '10.0.0.1'),
    ('other', 'cidr', '10.0.0.0/32', '10.0.0.1/32'),
    ('other', 'macaddr', '01:02:03:04:05:06', '01:02:03:04:05:07'),
    ('other', 'oid', '42', '43'),
    ('time', 'time', '00:00:42', '00:00:43'),
    ('timetz', 'timetz', '00:00:42+00', '00:00:43+00'),
    ('interval', 'interval', '42 seconds', '43 seconds'),
    ('pg_lsn', 'pg_lsn', '0/2A', '0/2B'),
    ('xid8', 'xid8', '42', '43'),
    ('jsonb', 'jsonb', '{"a": [1, null]}', '{"a": [1, 2]}'),
    ('array of integer', 'integer[]', '{42}', '{43}'),
    ('array of integer', 'bigint[]', '{42}', '{43}'),
    ('array of integer', 'whole[]', '{42}', '{43}'),
    ('array of text', 'text[]', '{a}', '{b}'),
    ('array of text', 'char(3)[]', '{a}', '{b}'),
    ('array of text', 'letter[]', '{a}', '{b}'),
    ('array of pg_catalog.oid', 'oid[]', '{42}', '{43}'),
    ('public.span(a integer, b integer)', 'span', '(42,1)', '(43,1)'),
    ('public.other_span(a integer, b integer)', 'other_span', '(42,1)', '(43,1)'),
    ('array of public.span(a integer, b integer)', 'span[]', '{"(42,1)"}', '{"(43,1)"}'),
    ('pg_catalog.int4range of integer', 'int4range', '[42,43)', '[43,44)'),
    ('pg_catalog.int8range of integer', 'int8range', '[42,43)', '[43,44)')
) v (kind, type, value, other);

-- A typed value, as SQL.
CREATE FUNCTION typed(type text, value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE type WHEN 'untyped' THEN quote_literal(value) ELSE format('CAST(%L AS %s)', value, type) END
$$;

-- What a filter of an element of one type says to an element of another: + found, - not found, . refused as of
-- another kind (42804), and any other SQLSTATE as it is.
CREATE FUNCTION ask(question text, layout text, added text, asked text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text := outcome(format(replace(question, 'FILTER', '(bloom_empty(100, 0.01, %3$L) || %1$s)'), added, asked,
        layout));
BEGIN
    RETURN CASE answer WHEN 'true' THEN '+' WHEN 't' THEN '+' WHEN 'false' THEN '-' WHEN 'f' THEN '-' WHEN '42804'
        THEN '.' ELSE ' ' || answer END;
END $$;

-- The matrix: one row for each type added, one character for each type asked, in the same order. Every kind finds
-- its own types' elements and refuses all others.
SELECT a.i, a.kind, a.type,
    string_agg(ask('SELECT FILTER @> %2$s', 'blocked', typed(a.type, a.value), typed(b.type, b.value)), ''
        ORDER BY b.i) AS asked
FROM types a, types b GROUP BY a.i, a.kind, a.type ORDER BY a.i;
-- Another value is not found, and the same types are refused.
SELECT a.i, a.kind, a.type,
    string_agg(ask('SELECT FILTER @> %2$s', 'blocked', typed(a.type, a.value), typed(b.type, b.other)), ''
        ORDER BY b.i) AS asked
FROM types a, types b GROUP BY a.i, a.kind, a.type ORDER BY a.i;
-- The kind has the name that the documentation gives it; "other" shows its type's, with the schema.
SELECT DISTINCT kind, outcome(format('SELECT (bloom_info(bloom_empty() || %s)).key_kind',
    typed(type, value))) AS shown
FROM types WHERE kind <> 'other' ORDER BY 1, 2;
SELECT type, outcome(format('SELECT (bloom_info(bloom_empty() || %s)).key_kind', typed(type, value))) AS shown
FROM types WHERE kind = 'other' ORDER BY type;

-- Every other way to bring a filter and an element together follows the matrix.
CREATE TABLE ways (way text, question text);
INSERT INTO ways VALUES
    ('<@', 'SELECT %2$s <@ FILTER'),
    ('bloom_contains', 'SELECT bloom_contains(FILTER, %2$s)'),
    ('bloom_query', 'SELECT (bloom_query(FILTER, %2$s)).contains'),
    ('bloom_contains_any', 'SELECT bloom_contains_any(FILTER, (SELECT array_agg(x) FROM (VALUES (%2$s)) v (x)))'),
    ('bloom_contains_all', 'SELECT bloom_contains_all(FILTER, (SELECT array_agg(x) FROM (VALUES (%2$s)) v (x)))'),
    ('column', 'SELECT FILTER @> x FROM (VALUES (%2$s)) v (x)'),
    ('bloom_add', 'SELECT bloom_add(FILTER, %2$s) = FILTER'),
    ('||', 'SELECT FILTER || %2$s = FILTER'),
    ('bloom_add_all', 'SELECT bloom_add_all(FILTER, (SELECT array_agg(x) FROM (VALUES (%2$s)) v (x))) = FILTER'),
    ('bloom_agg', 'SELECT FILTER | bloom_agg(x, 100) = FILTER FROM (VALUES (%2$s)) v (x)'),
    ('bloom_from_array', 'SELECT FILTER | bloom_from_array(array_agg(x), 100) = FILTER FROM (VALUES (%2$s)) v (x)'),
    ('|', 'SELECT FILTER | (bloom_empty(100) || %2$s) = FILTER'),
    ('&', 'SELECT FILTER & (bloom_empty(100) || %2$s) = FILTER'),
    ('bloom_union_agg', 'SELECT bloom_union_agg(f) = FILTER FROM (VALUES (FILTER), (bloom_empty(100) || %2$s)) v (f)'),
    ('bloom_intersection_agg', 'SELECT bloom_intersection_agg(f) = FILTER FROM (VALUES (FILTER), (bloom_empty(100) || %2$s)) v (f)'),
    ('bloom_jaccard', 'SELECT bloom_jaccard(FILTER, bloom_empty(100) || %2$s) = 1'),
    ('bloom_union_cardinality', 'SELECT bloom_union_cardinality(FILTER, bloom_empty(100) || %2$s) = 1'),
    ('bloom_intersection_cardinality', 'SELECT bloom_intersection_cardinality(FILTER, bloom_empty(100) || %2$s) = 1');
-- Arrays of arrays are arrays of their elements: those types have no arrays of their own to ask with.
SELECT way, count(*) AS pairs, count(*) FILTER (WHERE answer = '+') AS found,
    count(*) FILTER (WHERE answer = '-') AS not_found,
    count(*) FILTER (WHERE answer <> CASE WHEN NOT same_kind THEN '.' WHEN same_value THEN '+' ELSE '-' END) AS wrong
FROM (SELECT way, a.kind = b.kind AND (a.kind <> 'other' OR a.type = b.type) AS same_kind, same_value,
        ask(question, 'blocked', typed(a.type, a.value), typed(b.type,
            CASE WHEN same_value THEN b.value ELSE b.other END)) AS answer
    FROM ways, types a, types b, (VALUES (true), (false)) v (same_value)
    WHERE NOT (way ~ 'array|_all|_any' AND b.type ~ '\[\]')) asked
GROUP BY way ORDER BY way COLLATE "C";

-- Layout "parquet" has the kinds of Parquet: text and bytea are one, integers and floating point numbers of each
-- width are asked for by those of the other.
SELECT a.i, a.type, outcome(format('SELECT (bloom_info(bloom_empty(NULL, layout => ''parquet'') || %s)).key_kind',
    typed(a.type, a.value))) AS kind,
    string_agg(ask('SELECT FILTER @> %2$s', 'parquet', typed(a.type, a.value), typed(b.type, b.value)), ''
        ORDER BY b.i) AS asked
FROM types a, types b GROUP BY a.i, a.type, a.value ORDER BY a.i;
-- A number that the narrow type doesn't have is not in its filter, and cannot be added.
SELECT f @> 1::bigint AS found, f @> 2::bigint AS absent, f @> 4294967297 AS too_large, f @> -4294967295 AS too_small,
    outcome('SELECT bloom_empty(10, 0.01, ''parquet'') || 1 || 4294967297') AS adding
FROM (SELECT bloom_empty(10, 0.01, 'parquet') || 1 AS f) f;
SELECT f @> 0.5::float8 AS found, f @> 0.1::float8 AS no_real, f @> 0.1::real::float8 AS real_as_double,
    f @> 1e300::float8 AS too_large, f @> 'NaN'::float8 AS nan,
    outcome('SELECT bloom_empty(10, 0.01, ''parquet'') || 0.5::real || 0.1::float8') AS adding
FROM (SELECT bloom_empty(10, 0.01, 'parquet') || 0.5::real || 0.1::real || 'NaN'::real AS f) f;

-- The hash is XXH64 with seed 0: these are published test vectors.
SELECT stored_hash(bloom_empty() || ''::bytea) AS empty, stored_hash(bloom_empty() || 'a'::bytea) AS a,
    stored_hash(bloom_empty() || 'abc'::bytea) AS abc;
-- It is taken over the canonical bytes that the documentation promises: here written out, and hashed as a bytea.
CREATE FUNCTION little(bytes bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT decode(string_agg(encode(substr(bytes, i, 1), 'hex'), '' ORDER BY i DESC), 'hex')
        FROM generate_series(1, octet_length(bytes)) i
$$;
CREATE FUNCTION canonical(type text, value text, bytes text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    same boolean;
BEGIN
    EXECUTE format('SELECT stored_hash(bloom_empty() || %s) = stored_hash(bloom_empty() || (%s)::bytea)',
        typed(type, value), bytes) INTO same;
    RETURN same;
END $$;
SELECT type, value, canonical(type, value, bytes) FROM (VALUES
    ('smallint', '-2', 'little(int8send(-2))'),
    ('integer', '2147483647', 'little(int8send(2147483647))'),
    ('bigint', '-9223372036854775808', 'little(int8send(-9223372036854775808))'),
    ('text', 'naïve', $$convert_to('naïve', 'UTF8')$$),
    ('text', '', $$''$$),
    ('text', 'a  ', $$'a  '$$),
    ('char(10)', 'a  ', $$'a'$$),
    ('char(3)', '', $$''$$),
    ('name', 'a', $$'a'$$),
    ('letter', 'z', $$'z'$$),
    ('bytea', '\x00ff', $$'\x00ff'$$),
    ('real', '1.5', 'little(float8send(1.5))'),
    ('double precision', '-0', 'little(float8send(0))'),
    ('double precision', '0.1', 'little(float8send(0.1))'),
    ('double precision', '-Infinity', $$little(float8send('-Infinity'))$$),
    ('numeric', '1.0', $$'1'$$),
    ('numeric', '1e2', $$'100'$$),
    ('numeric', '-0.0', $$'0'$$),
    ('numeric', '-12.3400', $$'-12.34'$$),
    ('numeric', '1e-20', $$'0.00000000000000000001'$$),
    ('numeric', '1e30', $$'1000000000000000000000000000000'$$),
    ('numeric', 'NaN', $$'NaN'$$),
    ('uuid', '12345678-9abc-def0-1234-56789abcdef0', $$'\x123456789abcdef0123456789abcdef0'$$),
    ('date', '1970-01-01', 'little(int4send(0))'),
    ('date', '2000-01-01', 'little(int4send(10957))'),
    ('date', '1969-12-31', 'little(int4send(-1))'),
    ('date', 'infinity', 'little(int4send(2147483647))'),
    ('date', '-infinity', 'little(int4send(-2147483648))'),
    ('timestamp', '1970-01-01 00:00:00.000001', 'little(int8send(1))'),
    ('timestamp', '1969-12-31 23:59:59', 'little(int8send(-1000000))'),
    ('timestamp', 'infinity', 'little(int8send(9223372036854775807))'),
    ('timestamptz', '1970-01-01 01:00:01+01', 'little(int8send(1000000))'),
    ('timestamptz', '-infinity', 'little(int8send(-9223372036854775808))'),
    ('boolean', 'true', $$'\x01'$$),
    ('boolean', 'false', $$'\x00'$$),
    ('inet', '10.0.0.1', $$little(int8send(hashinetextended('10.0.0.1', 0)))$$),
    ('time', '00:00:01', $$'\x40420f0000000000'$$),
    ('time', '24:00', $$'\x0060d71d14000000'$$),
    ('timetz', '00:00:01+02', $$'\x40420f0000000000e0e3ffff'$$),
    ('interval', '1 day', $$'\x0060d71d140000000000000000000000'$$),
    ('interval', '-1 microsecond', $$'\xffffffffffffffffffffffffffffffff'$$),
    ('interval', '1000000 years', $$'\x0000c035349ba7af0100000000000000'$$),
    ('pg_lsn', '16/B374D848', $$'\x48d874b316000000'$$),
    ('xid8', '18446744073709551615', $$'\xffffffffffffffff'$$),
    ('jsonb', ' {"b": [1, 2.50, null], "a": "é\u0001\n\\", "": {"é": true}} ',
        $$convert_to(E'{"":{"é":true},"a":"é\\u0001\\n\\\\","b":[1,2.5,null]}', 'UTF8')$$),
    ('jsonb', '1e3', $$'1000'$$),
    ('jsonb', '[]', $$'[]'$$),
    ('integer[]', '{}', $$'\x00000000'$$),
    ('smallint[]', '{1,NULL}', $$'\x010000000200000001000000010800000000000000010000000000000000'$$),
    ('text[]', '[0:0][2:3]={{é,""}}',
        $$'\x0200000001000000000000000200000002000000010200000000000000c3a9010000000000000000'$$),
    ('letter[]', '{z}', $$'\x0100000001000000010000000101000000000000007a'$$),
    ('span', '(1,)', $$'\x010800000000000000010000000000000000'$$),
    ('span[]', '{"(,)",NULL}', $$'\x01000000020000000100000001000000'$$),
    ('int4range', 'empty', $$'\x01'$$),
    ('int4range', '[1,5]', $$'\x0201080000000000000001000000000000000108000000000000000600000000000000'$$),
    ('numrange', '(1.50,2.0]', $$'\x04010300000000000000312e3501010000000000000032'$$),
    ('numrange', '(,)', $$'\x18'$$),
    ('numrange', '[1,)', $$'\x1201010000000000000031'$$)
) v (type, value, bytes);
SELECT bool_and(outcome(format('SELECT canonical(''numeric'', %1$L, $q$%1$L$q$)', value)) = 'true') AS infinities
FROM unnest(ARRAY['Infinity', '-Infinity']) value;

-- Equal elements are found however they are written; what "=" says is the truth. Each row: a type, and lists of
-- writings; the members of one list are equal, those of different lists are not.
CREATE TABLE writings (type text, groups text[]);
INSERT INTO writings VALUES
    ('double precision', '{"0,-0", "NaN,nan", "1,1e0,1.0", Infinity, -Infinity, 1e-300, 0.1, 0.10000000149011612}'),
    ('real', '{"0,-0", "NaN,nan", "1,1e0,1.0", "0.1,0.10000000149011612", 0.2}'),
    ('numeric', '{"1,1.0,1.00,1e0,10e-1,0001", "0,-0,0.000,0e10", "100,1e2,100.0", -1, "0.1,1e-1,.10", NaN, 1e-20, 1e131071}'),
    ('char(5)', '{"a,a ,a  ", "\" a\"", "", b}'),
    ('text', '{a, "a ", A, á, "", " "}'),
    ('boolean', '{"t,true,yes,1", "f,no,off"}'),
    ('uuid', '{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,A0EEBC999C0B4EF8BB6D6BB9BD380A11", 00000000-0000-0000-0000-000000000000}'),
    ('date', '{"2001-02-03,3 Feb 2001", "1970-01-01,epoch", infinity, -infinity, 5874897-12-31, 4714-11-24 BC, 2000-01-01}'),
    ('timestamp', '{"2001-02-03,2001-02-03 00:00", "1970-01-01,epoch", infinity, -infinity, 294276-12-31 23:59:59.999999, 4714-11-24 BC, 2000-01-01}'),
    ('timestamptz', '{"2001-02-03 12:00+00,2001-02-03 13:00+01,2001-02-03 07:00 America/New_York", infinity, -infinity, 294276-12-31 23:59:59.999999+00, 4714-11-24 00:00+00 BC}'),
    ('time', '{"12:00,12:00:00,12:00:00.0", 12:00:00.000001, 00:00, 24:00}'),
    ('timetz', '{"12:00+00,12:00Z", 13:00+01}'),
    ('interval', '{"1 day,24 hours", "1 month,30 days,720:00", "0,0 days", 1 second, -1 day}'),
    ('inet', '{"10.0.0.1,10.0.0.1/32", 10.0.0.1/24, ::1, "::ffff:10.0.0.1"}'),
    ('cidr', '{"10.0.0.0/8,10/8", 10.0.0.0/9}'),
    ('jsonb', '{}'),
    ('pg_lsn', '{"0/10,0/0010", 1/10}');
CREATE TABLE written AS
SELECT type, g, w AS value FROM writings, unnest(groups) WITH ORDINALITY AS u (list, g),
    regexp_split_to_table(list, ',') w;
-- Lists whose members have commas of their own.
INSERT INTO written VALUES
    ('jsonb', 1, '{"a": 1, "b": [1, 2]}'), ('jsonb', 1, '{"b":[1,2.0],"a":1.00}'),
        ('jsonb', 1, '{"a": 0, "b": [1, 2], "a": 1}'),
    ('jsonb', 2, '{"a": 1, "b": [2, 1]}'), ('jsonb', 3, '1'), ('jsonb', 3, '1.0'), ('jsonb', 4, '"1"'),
        ('jsonb', 5, 'null'), ('jsonb', 6, '{}'), ('jsonb', 7, '[]'),
    ('integer[]', 1, '{1,2}'), ('integer[]', 1, ' { 1 , 02 } '), ('integer[]', 2, '{2,1}'), ('integer[]', 3, '{}'),
        ('integer[]', 4, '{{1,2}}'), ('integer[]', 5, '{1,NULL}'),
    ('integer[]', 5, '{1,null}'), ('integer[]', 6, '[2:3]={1,2}'),
    ('double precision[]', 1, '{0,NaN}'), ('double precision[]', 1, '{-0,nan}'), ('double precision[]', 2, '{1,NaN}'),
    ('numeric[]', 1, '{1.0,100}'), ('numeric[]', 1, '{1.00,1e2}'), ('numeric[]', 2, '{1.01,100}'),
    ('char(5)[]', 1, '{a,b}'), ('char(5)[]', 1, '{"a ","b  "}'), ('char(5)[]', 2, '{" a",b}'),
    ('text[]', 1, '{a,b}'), ('text[]', 1, '{"a","b"}'), ('text[]', 2, '{"a ",b}'), ('text[]', 3, '{"a,b"}'),
        ('text[]', 4, '{"",NULL}'), ('text[]', 5, '{"",""}'),
    ('interval[]', 1, '{1 day}'), ('interval[]', 1, '{24:00}'), ('interval[]', 2, '{25:00}'),
    ('int4range', 1, '[1,3]'), ('int4range', 1, '(0,4)'), ('int4range', 1, '[1,4)'), ('int4range', 2, 'empty'),
        ('int4range', 2, '(1,2)'), ('int4range', 2, '[5,5)'), ('int4range', 3, '[1,)'), ('int4range', 4, '(,)'),
    ('numrange', 1, '[1.0,2.0)'), ('numrange', 1, '[1,2.00)'), ('numrange', 2, '[1,2]'),
    ('tsrange', 1, '[2001-01-01,2002-01-01)'), ('tsrange', 2, '[2001-01-01,infinity)'),
        ('tsrange', 3, '[2001-01-01,)'),
    ('daterange', 1, '[2001-01-01,2001-01-31]'), ('daterange', 1, '[2001-01-01,2001-02-01)'),
        ('daterange', 2, '[2001-01-01,2001-02-01]');
CREATE TABLE answers AS
SELECT type, a.value AS added, b.value AS asked, a.g = b.g AS listed_as_equal, answer = '+' AS found,
    outcome(format('SELECT %s = %s', typed(type, a.value), typed(type, b.value)))::boolean AS equal
FROM written a JOIN written b USING (type), LATERAL ask('SELECT FILTER @> %2$s', 'blocked', typed(type, a.value),
    typed(type, b.value)) answer;
SELECT type, count(*) AS pairs, count(*) FILTER (WHERE equal) AS equal,
    count(*) FILTER (WHERE equal AND NOT found) AS missing,
    count(*) FILTER (WHERE equal <> listed_as_equal) AS listed_wrongly
FROM answers GROUP BY type ORDER BY type;
-- What is not equal is not found.
SELECT type, added, asked FROM answers WHERE found AND NOT equal AND added < asked COLLATE "C"
    ORDER BY type, added COLLATE "C", asked COLLATE "C";
-- A NaN with other bits is the same NaN.
SELECT bloom_empty() || 'NaN'::float8 @> ('Infinity'::float8 - 'Infinity'::float8) AS double,
    bloom_empty() || 'NaN'::float8 @> ('Infinity'::real - 'Infinity'::real) AS real;

-- Between the types of one kind.
SELECT f @> -1::smallint AS smallint, f @> -1 AS integer, f @> -1::bigint AS bigint,
    f @> 4294967295 AS not_by_its_bits, f @> 65535 AS nor_these
FROM (SELECT bloom_empty() || -1::smallint AS f) f;
SELECT f @> 0.1::real AS real, f @> 0.1::real::float8 AS as_double, f @> 0.1::float8 AS not_equal
    FROM (SELECT bloom_empty() || 0.1::real AS f) f;
SELECT f @> 'a'::char(1) AS char_1, f @> 'a'::char(20) AS char_20, f @> 'a'::text AS text,
    f @> 'a   '::text AS text_with_blanks, f @> 'a'::name AS name, f @> 'a'::"char"::text AS "char",
    f @> 'a'::letter AS enum
FROM (SELECT bloom_empty() || 'a'::char(5) AS f) f;
SELECT f @> ''::text AS text, f @> ''::char(3) AS char_3, f @> ''::"char"::text AS "char", f @> ''::name AS name,
    f @> ' ' AS blank, f @> ' '::char(1) AS blank_char
FROM (SELECT bloom_empty() || '' AS f) f;

-- No setting of the session changes an element.
CREATE TABLE asked AS SELECT i, typed(type, value) AS value,
    CAST(outcome(format('SELECT bloom_empty(100) || %s', typed(type, value))) AS bloom) AS f FROM types;
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'German';
SET IntervalStyle = 'iso_8601';
SET extra_float_digits = 0;
SET bytea_output = 'escape';
SELECT count(*), count(*) FILTER (WHERE outcome(format('SELECT %L::bloom @> %s', f, value)) = 'true') AS found
    FROM asked;
RESET ALL;

-- Large elements: inline, compressed and out of line, the same element.
CREATE TABLE large (storage text, t text, b bytea, j jsonb, a int[], n numeric);
CREATE FUNCTION fill_large(storage text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE large ALTER t SET STORAGE %1$s, ALTER b SET STORAGE %1$s, ALTER j SET STORAGE %1$s, ALTER a SET STORAGE %1$s',
        storage);
    INSERT INTO large SELECT storage, repeat('ab', 1000000), convert_to(repeat('xyz', 1000000), 'UTF8'),
        jsonb_build_array(repeat('j', 3000000)),
        array_agg(i), repeat('9', 100000)::numeric FROM generate_series(1, 500000) i;
    INSERT INTO large SELECT storage, string_agg(md5(i::text), ''), convert_to(string_agg(md5(i::text), ''), 'UTF8'),
        jsonb_agg(md5(i::text)), array_agg(i * 7919), 1 / 3.0::numeric(1000, 900)
        FROM generate_series(1, 60000) i;
END $$;
SELECT fill_large('extended'), fill_large('external'), fill_large('main');
SELECT storage, count(*) FILTER (WHERE pg_column_size(t) < octet_length(t) / 10) AS compressed,
    count(*) FILTER (WHERE NOT g.ft @> t) AS texts_missing, count(*) FILTER (WHERE NOT g.fb @> b) AS byteas_missing,
        count(*) FILTER (WHERE NOT g.fj @> j) AS jsonb_missing,
    count(*) FILTER (WHERE NOT g.fa @> a) AS arrays_missing,
        count(*) FILTER (WHERE NOT g.fn @> n) AS numerics_missing,
    count(*) FILTER (WHERE g.ft @> (t || 'x') OR g.fb @> (b || '\x00') OR g.fa @> (a || 1)
        OR g.fj @> (j || '1')) AS others_found
FROM large, (SELECT bloom_agg(t) AS ft, bloom_agg(b) AS fb, bloom_agg(j) AS fj, bloom_agg(a) AS fa, bloom_agg(n) AS fn
    FROM large WHERE storage = 'external') g
GROUP BY storage ORDER BY storage;
SELECT bloom_cardinality(bloom_agg(t)) AS texts, bloom_cardinality(bloom_agg(b)) AS byteas,
    bloom_cardinality(bloom_agg(j)) AS jsonb, bloom_cardinality(bloom_agg(a)) AS arrays FROM large;
-- Nothing that a table does to short values matters either.
CREATE TABLE short AS SELECT 'x'::text AS t, 'y'::bytea AS b, 1.50::numeric AS n;
SELECT bloom_empty() || 'x' @> t AS text, bloom_empty() || 'y'::bytea @> b AS bytea,
    bloom_empty() || 1.5 @> n AS numeric FROM short;

-- Enums are their labels, wherever they were sorted; a label that gets another name is another element.
SELECT f @> 'a' AS text, f @> 'a'::other_letter AS other_enum, f @> 'z'::letter AS other_label
    FROM (SELECT bloom_empty() || 'a'::letter AS f) f;
CREATE TYPE letter_range AS RANGE (subtype = letter);
CREATE TYPE rated AS (l letter, n int);
SELECT f @> ARRAY['z', 'a'] AS text, f @> ARRAY['a', 'z']::letter[] AS other_order, g @> letter_range('z', 'a') AS range,
    h @> ROW('a', 1)::rated AS row, h @> ROW('z', 1)::rated AS other_row
FROM (SELECT bloom_empty() || ARRAY['z', 'a']::letter[] AS f, bloom_empty() || letter_range('z', 'a') AS g,
    bloom_empty() || ROW('a', 1)::rated AS h) f;
CREATE TABLE letters AS SELECT bloom_agg(l) AS f, bloom_agg(ARRAY[l]) AS g FROM (VALUES ('a'::letter), ('b')) v (l);
SELECT f @> 'b'::letter AS before FROM letters;
ALTER TYPE letter RENAME VALUE 'b' TO 'c';
SELECT f @> 'c'::letter AS after, f @> 'b' AS by_the_old_name, g @> ARRAY['c']::letter[] AS array_after FROM letters;

-- Domains count as what they are over, also in arrays given as a whole.
SELECT bloom_from_array(ARRAY[42]::whole[]) @> 42 AS array_of_domain,
    bloom_from_array(ARRAY[42]) @> 42::whole AS asked_by_domain,
    bloom_contains_any(bloom_empty() || 'a', ARRAY['a']::short_word[]) AS "any";

-- Composite types.
CREATE TYPE pair AS (n numeric, t text);
CREATE TYPE nested AS (p pair, a int[]);
CREATE DOMAIN some_pair AS pair;
CREATE TABLE pairs (n numeric, t text);
INSERT INTO pairs VALUES (1.50, 'a'), (2, NULL);
SELECT what, answer = expected AS as_promised FROM (VALUES
    ('same', 'true', $$SELECT bloom_empty() || ROW(1, 'a')::pair @> ROW(1, 'a')::pair$$),
    ('equal', 'true', $$SELECT bloom_empty() || ROW(1.50, 'a')::pair @> ROW(1.5, 'a')::pair$$),
    ('other', 'false', $$SELECT bloom_empty() || ROW(1, 'a')::pair @> ROW(1, 'b')::pair$$),
    ('NULL inside', 'true', $$SELECT bloom_empty() || ROW(1, NULL)::pair @> ROW(1, NULL)::pair$$),
    ('NULL is not empty', 'false', $$SELECT bloom_empty() || ROW(1, NULL)::pair @> ROW(1, '')::pair$$),
    ('nested', 'true', $$SELECT bloom_empty() || ROW(ROW(1, 'a'), '{1}')::nested @> ROW(ROW(1.0, 'a'), '{1}')::nested$$),
    ('nested, other', 'false', $$SELECT bloom_empty() || ROW(ROW(1, 'a'), '{1}')::nested @> ROW(ROW(1.0, 'a'), '{2}')::nested$$),
    ('domain', 'true', $$SELECT bloom_empty() || ROW(1, 'a')::some_pair @> ROW(1.0, 'a')::pair$$),
    ('another type', '42804', $$SELECT bloom_empty() || ROW(1.5, 'a')::pair @> p FROM pairs p$$),
    ('rows of a table', '2', $$SELECT count(*) FILTER (WHERE f @> p) FROM pairs p, (SELECT bloom_agg(q) AS f FROM pairs q) b$$),
    ('array', 'true', $$SELECT bloom_empty() || ARRAY[ROW(1, 'a')::pair] @> ARRAY[ROW(1.0, 'a')::pair]$$),
    ('elements of an array', 'true', $$SELECT bloom_from_array(ARRAY[ROW(1, 'a')::pair]) @> ROW(1.0, 'a')::pair$$)
) v (what, expected, query), LATERAL outcome(query) answer;
-- Multiranges.
SELECT what, answer = expected AS as_promised
FROM (VALUES
    ('equal', 'true', $$SELECT bloom_empty() || '{[1,3],[5,6]}'::int4multirange @> '{[5,7),[1,4)}'::int4multirange$$),
    ('other', 'false', $$SELECT bloom_empty() || '{[1,3],[5,6]}'::int4multirange @> '{[1,6]}'::int4multirange$$)
) v (what, expected, query), LATERAL outcome(query) answer;

DROP TABLE types, ways, writings, written, answers, asked, large, short, letters, pairs;
DROP FUNCTION typed, ask, little, canonical, fill_large;
DROP DOMAIN whole, short_word, word, some_pair;
DROP TYPE letter_range, rated, letter, other_letter, nested, pair, span, other_span;
