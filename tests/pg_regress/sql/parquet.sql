-- Exchange with Parquet files.
SET pg_bloom.overfill = ignore;

-- What is written is a header and the bits, which may never change: one block of the elements 1 to 5 of each type.
CREATE TABLE written AS
SELECT sql_type, (SELECT bloom_to_parquet(f) FROM CAST(outcome(format(
    'SELECT bloom_from_array(array_agg(%s), 5, 0.1, ''parquet'') FROM generate_series(1, 5) i', element)) AS bloom) f) AS bytes
FROM (VALUES ('smallint', 'i::smallint'), ('integer', 'i'), ('bigint', 'i::bigint'), ('real', 'i::real'),
    ('double precision', 'i::float8'), ('text', 'i::text'), ('bytea', 'i::text::bytea'), ('uuid', 'md5(i::text)::uuid'),
    ('date', 'date ''2000-01-01'' + i'), ('timestamp without time zone', 'timestamp ''2000-01-01'' + i * interval ''1 s'''),
    ('timestamp with time zone', 'timestamptz ''2000-01-01 00:00+00'' + i * interval ''1 s''')) types (sql_type, element);
SELECT sql_type, substr(bytes, 1, 15) AS header, substr(bytes, 16) AS bits FROM written ORDER BY sql_type COLLATE "C";

-- Read again each has its kind, the elements, and the capacity of its size. Except for floats it is written as it was.
SELECT sql_type, (bloom_info(f)).key_kind, summary(f) = summary(bloom_from_parquet(bytes, 'integer')) AS "an INT32",
    bloom_to_parquet(f) = bytes AS same
FROM written, bloom_from_parquet(bytes, sql_type::regtype) f ORDER BY sql_type COLLATE "C";
SELECT summary(bloom_from_parquet(bytes, 'integer')), bloom_contains_all(bloom_from_parquet(bytes, 'integer'), '{1,2,3,4,5}'::int[]) AS all_found
FROM written WHERE sql_type = 'integer';

-- What is full has the rate that it has, up to a half.
SELECT blocks, held, (bloom_info(f)).capacity, round((bloom_info(f)).target_fpr::numeric, 3) AS fpr,
    round((bloom_info(f)).current_fpr::numeric, 3) AS now
FROM (VALUES (1, 1), (1, 20), (1, 60), (16, 100), (16, 1000), (16, 10000)) v (blocks, held), LATERAL (SELECT
    bloom_from_parquet(bloom_to_parquet(bloom_agg(i, capacity, 0.01, 'parquet')), 'integer') AS f
    FROM generate_series(1, held) i, bloom_capacity(44 + 32 * blocks, 0.01, 'parquet') capacity GROUP BY capacity) b
ORDER BY 1, 2;

-- A type may be a domain or an enum; what has no form in Parquet is refused, and so is what is no type.
CREATE DOMAIN percent AS integer;
CREATE TYPE colour AS ENUM ('red', 'green');
SELECT (bloom_info(bloom_from_parquet(bytes, 'percent'))).key_kind AS domain,
    (bloom_info(bloom_from_parquet(bytes, 'colour'))).key_kind AS enum,
    (bloom_info(bloom_from_parquet(bytes, 'varchar(10)'::regtype))).key_kind AS varchar
FROM written WHERE sql_type = 'integer';
SELECT t AS type, outcome(format('SELECT bloom_from_parquet(bytes, %s) FROM written LIMIT 1', t)) AS state FROM unnest(ARRAY[
    '''numeric''', '''boolean''', '''inet''', '''integer[]''', '''bloom''', '''time''', '''record''', '''internal''',
    '0::regtype', '4000000000::regtype', '''nothing''']) t ORDER BY t COLLATE "C";
\x on
SELECT * FROM failure('SELECT bloom_from_parquet(bytes, ''numeric'') FROM written LIMIT 1');
SELECT * FROM failure('SELECT bloom_from_parquet(bytes, 4000000000::regtype) FROM written LIMIT 1');
\x off

-- Other layouts, and kinds that Parquet doesn't have.
\x on
SELECT * FROM failure('SELECT bloom_to_parquet(bloom_from_array(ARRAY[1]))');
SELECT * FROM failure('SELECT bloom_to_parquet(bloom_from_array(ARRAY[1.5], 10, 0.1, ''parquet''))');
SELECT * FROM failure('SELECT bloom_to_parquet(bloom_from_array(ARRAY[inet ''::1''], 10, 0.1, ''parquet''))');
\x off
SELECT outcome('SELECT bloom_to_parquet(bloom_from_array(ARRAY[1], 10, 0.01, ''classic''))') AS classic,
    outcome('SELECT bloom_to_parquet(bloom_empty(100))') AS empty,
    outcome('SELECT bloom_to_parquet(bloom_from_array(ARRAY[true], 10, 0.01, ''parquet''))') AS boolean;

-- Without a size it is one block of nothing; a sparse one is written dense.
SELECT bloom_to_parquet(bloom_empty()) = bloom_to_parquet(bloom_empty(NULL, 0.1, 'parquet')) AS same,
    octet_length(bloom_to_parquet(bloom_empty())) AS bytes,
    (bloom_info(bloom_from_parquet(bloom_to_parquet(bloom_empty()), 'text'))).bits_set;
SELECT (bloom_info(f)).representation, octet_length(f::bytea) AS stored, octet_length(bloom_to_parquet(f)) AS written,
    (bloom_info(bloom_from_parquet(bloom_to_parquet(f), 'bigint'))).representation AS again
FROM bloom_from_array(ARRAY[1, 2]::bigint[], 1000, 0.01, 'parquet') f;

-- Bytes after a filter are refused, unless they are said to follow it.
SELECT sql_type, bool_and(bloom_from_parquet(bytes, t) = bloom_from_parquet(bytes || rest, t, true)) AS same,
    string_agg(DISTINCT outcome(format('SELECT bloom_from_parquet(%L, %L)', bytes || rest, t)), ' ') AS without
FROM written, LATERAL (SELECT sql_type::regtype) AS of_type (t), (VALUES ('\x00'::bytea), ('PAR1')) AS more (rest)
GROUP BY sql_type ORDER BY sql_type COLLATE "C";
SELECT * FROM failure($$SELECT bloom_from_parquet('\x15401c1c00001c1c00001c1c000000ff', 'integer', true)$$);
SELECT bloom_from_parquet(bytes, 'integer', NULL) IS NULL AS strict FROM written LIMIT 1;

-- Malformed bytes: 22P03.
\x on
SELECT * FROM failure($$SELECT bloom_from_parquet('', 'integer')$$);
SELECT * FROM failure($$SELECT bloom_from_parquet('\x15401c1c00001c1c00001c1c000000', 'integer')$$);
SELECT * FROM failure($$SELECT bloom_from_parquet('\x15401c1c00001c1c00001c1c00', 'integer')$$);
SELECT * FROM failure($$SELECT bloom_from_parquet('\x15421c1c00001c1c00001c1c000000', 'integer')$$);
SELECT * FROM failure($$SELECT bloom_from_parquet('\x15401c2c00001c1c00001c1c000000', 'integer')$$);
SELECT * FROM failure($$SELECT bloom_from_parquet('\x15401c1c00002c1c000000', 'integer')$$);
SELECT * FROM failure($$SELECT bloom_from_parquet(bloom_empty()::bytea, 'integer')$$);
\x off
-- Fields in another order, and fields that are unknown, are read.
SELECT left(header, 8) AS start, (bloom_info(bloom_from_parquet(decode(header || bits, 'hex'), 'integer'))).bits_set
FROM (VALUES ('15401c1c00001c1c00001c1c000000'), ('4c1c00000c061c00000c041c000005024000'), ('15401c1c00001c1c00001c1c0000' || '1803616263' || '00')) v (header),
    repeat('01', 32) bits;

-- -0 is 0, and NaN is NaN, whoever wrote it: a file with -0 only, and one with a NaN of another sign.
SELECT kind, bloom_from_parquet(bytes, kind::regtype) @> 0::float8 AS zero, bloom_from_parquet(bytes, kind::regtype) @> '-0'::real AS "-0",
    bloom_from_parquet(bytes, kind::regtype) @> 'NaN'::real AS nan, bloom_from_parquet(bytes, kind::regtype) @> 1::real AS one
FROM (VALUES ('real', '\x00000080'::bytea), ('double precision', '\x0000000000000080'), ('real', '\x0000c0ff'), ('real', '\x0000803f')) v (kind, plain),
    bloom_to_parquet(bloom_from_array(ARRAY[plain], 10000, 0.01, 'parquet')) bytes;
-- Ours may be asked for either by a program that hashes the bytes.
SELECT x, bloom_from_parquet(bloom_to_parquet(bloom_from_array(ARRAY[x], 10000, 0.01, 'parquet')), 'bytea')
        @> '\x0000000000000080'::bytea AS "-0",
    bloom_from_parquet(bloom_to_parquet(bloom_from_array(ARRAY[x], 10000, 0.01, 'parquet')), 'bytea')
        @> '\x000000000000f8ff'::bytea AS "-NaN"
FROM unnest(ARRAY[0, '-0', 'NaN', 1]::float8[]) x;

-- Those of files merge with each other, with ours of a power of two of blocks, and with ours of the capacity that they
-- say.
SELECT bloom_contains_all(f | g | h, ARRAY(SELECT generate_series(1, 3000))) AS merged
FROM (SELECT bloom_from_parquet(bloom_to_parquet(bloom_from_array(array_agg(i), NULL, 0.01, 'parquet')), 'integer') AS f
        FROM generate_series(1, 1000) i) f,
    LATERAL (SELECT bloom_from_array(array_agg(i), NULL, 0.01, 'parquet') AS g FROM generate_series(1001, 2000) i) g,
    LATERAL (SELECT bloom_agg(i, (bloom_info(f)).capacity * 64, 0.01, 'parquet') AS h FROM generate_series(2001, 3000) i) h;

-- NULLs.
SELECT bloom_to_parquet(NULL) IS NULL AS filter, bloom_from_parquet(NULL, 'integer') IS NULL AS bytes,
    bloom_from_parquet(bloom_to_parquet(bloom_empty()), NULL) IS NULL AS type;

DROP TABLE written;
DROP DOMAIN percent;
DROP TYPE colour;
