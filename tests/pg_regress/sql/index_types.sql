-- Every operator class: what was inserted is found, by each type of its family, before and after it was built.
SET enable_seqscan = off;

-- A table of values of a type, half of them there when the index is built; then each is looked for, as each type.
CREATE FUNCTION found(type text, value text, asked text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    missed bigint;
    kind text;
    scan text;
    result text := '';
BEGIN
    EXECUTE format('CREATE TEMP TABLE here (i integer, x %s)', type);
    EXECUTE format('INSERT INTO here SELECT i, %s FROM generate_series(1, 2000) AS i', value);
    EXECUTE 'CREATE INDEX here_x ON here USING bloom_filter (x)';
    EXECUTE format('INSERT INTO here SELECT i, %s FROM generate_series(2001, 4000) AS i', value);
    EXECUTE 'ANALYZE here';
    FOREACH kind IN ARRAY asked LOOP
        EXECUTE format('EXPLAIN (FORMAT json) SELECT FROM here WHERE x = (SELECT x::%1$s FROM here LIMIT 1)', kind) INTO scan;
        EXECUTE format('SET enable_bitmapscan = on; CREATE TEMP TABLE answer AS SELECT i, (SELECT count(*) FROM here WHERE x = v::%1$s) AS n
            FROM (SELECT i, %2$s AS v FROM generate_series(1, 4000, 37) AS i) AS s', kind, value);
        EXECUTE 'SELECT count(*) FROM answer WHERE n = 0' INTO missed;
        DROP TABLE answer;
        result := result || format('%s: %s%s; ', kind, CASE WHEN scan ~ 'here_x' THEN 'index' ELSE 'no index' END,
            CASE WHEN missed > 0 THEN format(', %s missed', missed) END);
    END LOOP;
    EXECUTE 'SELECT bloom_index_check(''here_x'')' INTO missed;
    DROP TABLE here;
    RETURN result || missed;
END $$;

SELECT type, found(type, value, asked) FROM (VALUES
    ('smallint', 'i::smallint', '{smallint,integer,bigint}'::text[]),
    ('integer', 'i', '{smallint,integer,bigint}'),
    ('bigint', 'i::bigint', '{smallint,integer,bigint}'),
    ('real', '(i / 8.0)::real', '{real,double precision}'),
    ('double precision', 'i / 8.0::float8', '{real,double precision}'),
    ('numeric', 'i / 8.0', '{numeric}'),
    ('text', 'i::text', '{text,varchar,name}'),
    ('varchar(10)', 'i::text', '{text,varchar}'),
    ('char(10)', 'i::text', '{char(10),char(20)}'),
    ('name', 'i::text::name', '{name,text}'),
    ('"char"', 'chr(32 + i % 90)::"char"', '{"\"char\""}'),
    ('bytea', 'i::text::bytea', '{bytea}'),
    ('uuid', 'md5(i::text)::uuid', '{uuid}'),
    ('boolean', 'i % 2 = 0', '{boolean}'),
    ('date', '''2000-01-01''::date + i', '{date}'),
    ('time', '''00:00''::time + i * interval ''1 s''', '{time}'),
    ('timetz', '''00:00+02''::timetz + i * interval ''1 s''', '{timetz}'),
    ('timestamp', '''2000-01-01''::timestamp + i * interval ''1 s''', '{timestamp}'),
    ('timestamptz', '''2000-01-01''::timestamptz + i * interval ''1 s''', '{timestamptz}'),
    ('interval', 'i * interval ''1 day''', '{interval}'),
    ('inet', '''10.0.0.0''::inet + i', '{inet}'),
    ('cidr', '(''10.0.0.0''::inet + i)::cidr', '{inet,cidr}'),
    ('macaddr', 'left(md5(i::text), 12)::macaddr', '{macaddr}'),
    ('macaddr8', 'left(md5(i::text), 16)::macaddr8', '{macaddr8}'),
    ('oid', 'i::oid', '{oid}'),
    ('pg_lsn', '(''0/'' || i)::pg_lsn', '{pg_lsn}'),
    ('xid8', 'i::text::xid8', '{xid8}'),
    ('jsonb', 'jsonb_build_object(''a'', i)', '{jsonb}'),
    ('text[]', 'ARRAY[i::text, NULL]', '{text[]}'),
    ('varchar[]', 'ARRAY[i::varchar]', '{varchar[]}'),
    ('int4range', 'int4range(i, i + 5)', '{int4range}')
) AS t (type, value, asked);

-- int4range(1, 6) and '[1,5]' are equal, as are 1.0 and 1.00, one month and thirty days.
CREATE TABLE equal (r int4range, n numeric, i interval, f double precision, c char(5));
CREATE INDEX ON equal USING bloom_filter (r);
CREATE INDEX ON equal USING bloom_filter (n);
CREATE INDEX ON equal USING bloom_filter (i);
CREATE INDEX ON equal USING bloom_filter (f);
CREATE INDEX ON equal USING bloom_filter (c);
INSERT INTO equal VALUES ('[1,5]', 1.0, '1 month', '-0', 'a'), (NULL, 'NaN', '24:00', 'NaN', '');
SELECT (SELECT count(*) FROM equal WHERE r = int4range(1, 6)) AS range, (SELECT count(*) FROM equal WHERE n = 1.000) AS numeric,
    (SELECT count(*) FROM equal WHERE i = '30 days') AS interval, (SELECT count(*) FROM equal WHERE i = '1 day') AS day,
    (SELECT count(*) FROM equal WHERE f = 0) AS zero, (SELECT count(*) FROM equal WHERE f = 'NaN') AS nan,
    (SELECT count(*) FROM equal WHERE c = 'a  ') AS blanks, (SELECT count(*) FROM equal WHERE c = '   ') AS only_blanks;
DROP TABLE equal;

-- Values of an enum may be renamed.
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE moods (m mood);
CREATE INDEX moods_m ON moods USING bloom_filter (m);
INSERT INTO moods VALUES ('sad'), ('ok');
ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';
ALTER TYPE mood ADD VALUE 'happy';
INSERT INTO moods VALUES ('happy');
SELECT m FROM moods WHERE m = 'blue';
SELECT m FROM moods WHERE m = ANY ('{happy,ok}');
SELECT bloom_index_check('moods_m');

-- What can't be in an index.
CREATE EXTENSION IF NOT EXISTS citext;
CREATE TYPE pair AS (a integer, b integer);
CREATE TYPE moodrange AS RANGE (subtype = mood);
CREATE TABLE refused (c citext, p pair, ps pair[], ms mood[], mr moodrange, r regclass, j json, v oidvector,
    d text COLLATE "C");
-- From PostgreSQL 17 on an index is built with a search path of its own.
SELECT state, replace(message, 'public.', '') AS message, replace(detail, 'public.', '') AS detail, hint
    FROM unnest('{c,p,ps,ms,mr,r,j,v}'::text[]) AS c,
        failure(format('CREATE INDEX ON refused USING bloom_filter (%s)', c));
CREATE INDEX ON refused USING bloom_filter (lower(c::text));
DROP TABLE refused, moods;
DROP TYPE moodrange, mood, pair;
DROP FUNCTION found;
