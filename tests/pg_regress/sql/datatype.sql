-- The type bloom: a value like any other.
CREATE TABLE filters (name text PRIMARY KEY, f bloom);
INSERT INTO filters VALUES
    ('nothing', bloom_empty()),
    ('no elements', bloom_empty(1000)),
    ('one element', bloom_from_array(ARRAY['a'], 1000)),
    ('sparse', bloom_from_array(ARRAY[1, 2, 3])),
    ('dense', (SELECT bloom_agg(i, 1000) FROM generate_series(1, 1000) i)),
    ('classic', (SELECT bloom_agg(i::text, 1000, 0.001, 'classic') FROM generate_series(1, 1000) i)),
    ('parquet', (SELECT bloom_agg(i, 1000, 0.01, 'parquet') FROM generate_series(1, 1000) i)),
    ('named kind', (SELECT bloom_agg('10.0.0.0'::inet + i, 1000) FROM generate_series(1, 1000) i)),
    ('not there', NULL);

-- The stored form is frozen: a header of 44 bytes, then hashes or bits. These bytes may never change.
SELECT bloom_empty();
SELECT bloom_empty(1000, 0.001, 'classic');
SELECT bloom_from_array(ARRAY[1, 2, 3], 1000);
SELECT bloom_from_array(ARRAY['10.0.0.1'::inet], 1000, 0.01, 'parquet');
SELECT name, octet_length(f::bytea), md5(f::text) FROM filters ORDER BY name;

-- Text is \x and the hexadecimal digits of the stored bytes, as bytea prints them; it reads back as the same filter.
SELECT name, f::text::bloom = f AS same, f::text = f::bytea::text AS as_bytea, upper(substr(f::text, 3)) <> '' AS long
FROM filters ORDER BY name;
SELECT ('\x' || upper(substr(f::text, 3)))::bloom = f AS upper_case FROM filters WHERE name = 'sparse';

-- Binary output, and the casts to and from bytea, which are explicit.
SELECT name, bloom_send(f) = f::bytea AS send, f::bytea::bloom = f AS back FROM filters ORDER BY name;
SELECT castsource::regtype, casttarget::regtype, castcontext FROM pg_cast
WHERE 'bloom'::regtype IN (castsource, casttarget) ORDER BY 1, 2;

-- COPY in text and in binary gives the same filters. (The shell's parent is this psql: a name of our own.)
CREATE TABLE copied (name text PRIMARY KEY, f bloom);
\copy filters to program 'cat > "${TMPDIR:-/tmp}/pg_bloom_copy.$PPID"' binary
\copy copied from program 'cat "${TMPDIR:-/tmp}/pg_bloom_copy.$PPID"' binary
SELECT count(*), count(*) FILTER (WHERE a.f IS NOT DISTINCT FROM b.f) AS same
    FROM filters a JOIN copied b USING (name);
TRUNCATE copied;
\copy filters to program 'cat > "${TMPDIR:-/tmp}/pg_bloom_copy.$PPID"'
\copy copied from program 'cat "${TMPDIR:-/tmp}/pg_bloom_copy.$PPID"'
\! rm -f "${TMPDIR:-/tmp}/pg_bloom_copy.$PPID"
SELECT count(*), count(*) FILTER (WHERE a.f IS NOT DISTINCT FROM b.f) AS same
    FROM filters a JOIN copied b USING (name);

-- Malformed binary is refused on receipt: here a row of one column of two bytes.
CREATE TABLE received (f bloom);
\copy received from program 'printf "PGCOPY\\n\\377\\r\\n\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0\\2\\1\\1\\377\\377"' binary
SELECT count(*) FROM received;

-- Text that is no hexadecimal: 22P02.
SELECT text, outcome(format('SELECT %L::bloom', text)) FROM unnest(ARRAY[
    '', ' ', 'bloom', '\x', '\x0', '\x01', '01', '\xzz', '\X01', 'x01', '\x 01', repeat('\x01', 30)
]) text;
SELECT ''::bloom;
SELECT '\x0102'::bloom;

-- Bytes that are no filter: 22P02 as text, 22P03 as bytea. Each row damages a good filter in one way.
CREATE VIEW damaged AS
SELECT what, bytes FROM bloom_from_array(ARRAY[1, 2, 3], 1000) s, bloom_empty(1000) e,
    (SELECT bloom_agg(i, 1000) AS d FROM generate_series(1, 1000) i) d,
    (SELECT bloom_from_array(ARRAY['10.0.0.1'::inet], 100) AS o) o,
    LATERAL (VALUES
        (1, 'nothing is wrong', s::bytea),
        (2, 'nothing is wrong, dense', d::bytea),
        (3, 'nothing is wrong, named kind', o::bytea),
        (4, 'cut in the header', substr(s::bytea, 1, 43)),
        (5, 'cut in a hash', substr(s::bytea, 1, 67)),
        (6, 'cut in the bits', substr(d::bytea, 1, octet_length(d::bytea) - 1)),
        (7, 'cut in the name', substr(o::bytea, 1, 50)),
        (8, 'a byte more', s::bytea || '\x00'),
        (9, 'a byte more, dense', d::bytea || '\x00'),
        (10, 'version 0', set_byte(s::bytea, 0, 0)),
        (11, 'version 2', set_byte(s::bytea, 0, 2)),
        (12, 'layout 0', set_byte(s::bytea, 1, 0)),
        (13, 'layout 4', set_byte(s::bytea, 1, 4)),
        (14, 'key kind 22', set_byte(s::bytea, 2, 22)),
        (15, 'a parquet kind in another layout', set_byte(s::bytea, 2, 32)),
        (16, 'no kind, but elements', set_byte(s::bytea, 2, 0)),
        (17, 'no kind, but bits', set_byte(d::bytea, 2, 0)),
        (18, 'a kind that needs a name', set_byte(s::bytea, 2, 11)),
        (19, 'a name that the kind does not need', set_byte(o::bytea, 2, 1)),
        (20, 'a name that is not UTF-8', set_byte(o::bytea, 44, 255)),
        (21, 'representation 2', set_byte(s::bytea, 3, 2)),
        (22, 'no hashes', set_byte(s::bytea, 4, 0)),
        (23, 'hash function 2', set_byte(s::bytea, 5, 2)),
        (24, 'no blocks', overlay(s::bytea PLACING '\x0000000000000000' FROM 9)),
        (25, 'blocks without end', overlay(e::bytea PLACING '\xffffffffffffffff' FROM 9)),
        (26, 'base blocks that do not divide', set_byte(s::bytea, 16, 7)),
        (27, 'no base blocks', overlay(s::bytea PLACING '\x0000000000000000' FROM 17)),
        (28, 'no capacity', overlay(s::bytea PLACING '\x0000000000000000' FROM 25)),
        (29, 'a rate of 0', overlay(s::bytea PLACING '\x0000000000000000' FROM 33)),
        (30, 'a rate of NaN', overlay(s::bytea PLACING '\x000000000000f87f' FROM 33)),
        (31, 'a rate of 2', overlay(s::bytea PLACING '\x0000000000000040' FROM 33)),
        (32, 'a rate below 0', set_byte(s::bytea, 39, 191)),
        (33, 'reserved bytes that are used', set_byte(s::bytea, 40, 1)),
        (34, 'hashes out of order', overlay(s::bytea PLACING substr(s::bytea, 53, 8) FROM 45)),
        (35, 'dense bytes called sparse', set_byte(d::bytea, 3, 0)),
        (36, 'sparse bytes called dense', set_byte(s::bytea, 3, 1))
    ) v (i, what, bytes)
ORDER BY i;
SELECT what, outcome(format('SELECT CASE WHEN %L::bloom::bytea = %L THEN ''accepted'' END', bytes, bytes)) AS text,
    outcome(format('SELECT CASE WHEN %L::bytea::bloom::bytea = %L THEN ''accepted'' END', bytes, bytes)) AS bytea
FROM damaged;

-- Whatever the parser accepts can be printed and read again, and no function fails on it in a way of its own:
-- every byte of a small filter, or the first ones of a larger, is replaced by every other value.
CREATE FUNCTION tamper(filter bloom, OUT tried bigint, OUT refused bigint, OUT bad_states text[], OUT changed bigint)
LANGUAGE plpgsql AS $$
DECLARE
    good bytea := filter;
    bytes bytea;
    f bloom;
BEGIN
    tried := 0; refused := 0; changed := 0; bad_states := '{}';
    FOR i IN 0 .. least(octet_length(good), 76) - 1 LOOP
        FOR v IN 0 .. 255 LOOP
            bytes := set_byte(good, i, v);
            tried := tried + 1;
            BEGIN
                f := bytes::bloom;
                IF f::text::bloom::bytea <> bytes OR bloom_send(f) <> bytes THEN
                    changed := changed + 1;
                END IF;
                -- 22023 and 42804 are honest answers to questions that such a filter doesn't fit.
                BEGIN
                    PERFORM bloom_info(f), bloom_cardinality(f), bloom_fpr(f), f | f, f & f, bloom_fold(f, 0.5);
                    PERFORM f & filter, bloom_contains_any(f, ARRAY[1, 2]);
                    -- A union with a filter made for billions is large, as it must be: not here.
                    IF (bloom_info(f)).num_bits < 1e6 THEN
                        PERFORM f | filter, bloom_jaccard(f, filter), bloom_union_cardinality(filter, f);
                    END IF;
                    PERFORM f @> 1, f || 1;
                EXCEPTION WHEN SQLSTATE '22023' OR SQLSTATE '42804' THEN
                    NULL;
                END;
            EXCEPTION
                WHEN SQLSTATE '22P03' THEN refused := refused + 1;
                WHEN OTHERS THEN
                    IF NOT bad_states @> ARRAY[SQLSTATE] THEN bad_states := bad_states || SQLSTATE; END IF;
            END;
        END LOOP;
    END LOOP;
END $$;
SET pg_bloom.overfill = ignore;
SELECT name, tried, refused > 1000 AS refused, bad_states, changed FROM (VALUES
    ('sparse', bloom_from_array(ARRAY[1, 2, 3], 20)),
    ('named kind', bloom_from_array(ARRAY['10.0.0.1'::inet], 20)),
    ('blocked', (SELECT bloom_agg(i, 1000) FROM generate_series(1, 1000) i)),
    ('classic', (SELECT bloom_agg(i, 1000, 0.01, 'classic') FROM generate_series(1, 1000) i)),
    ('parquet', (SELECT bloom_agg(i, 1000, 0.01, 'parquet') FROM generate_series(1, 1000) i))
) v (name, f), tamper(f);
RESET pg_bloom.overfill;

-- Stored out of line and never compressed.
SELECT typlen, typalign, typstorage, typcategory FROM pg_type WHERE oid = 'bloom'::regtype;
SELECT attstorage FROM pg_attribute WHERE attrelid = 'filters'::regclass AND attname = 'f';
CREATE TABLE large AS SELECT bloom_empty(100000) | bloom_from_array(ARRAY[1], 50000) AS f;
SELECT pg_column_size(f) >= octet_length(f::bytea) AS uncompressed, octet_length(f::bytea) > 100000 AS large
    FROM large;

-- Equal means: the same bytes. The order is that of the bytes.
SELECT count(*) AS pairs,
    bool_and((a.f = b.f) = (a.f::bytea = b.f::bytea)) AS eq,
        bool_and((a.f <> b.f) = (a.f::bytea <> b.f::bytea)) AS ne,
    bool_and((a.f < b.f) = (a.f::bytea < b.f::bytea)) AS lt,
        bool_and((a.f <= b.f) = (a.f::bytea <= b.f::bytea)) AS le,
    bool_and((a.f > b.f) = (a.f::bytea > b.f::bytea)) AS gt,
        bool_and((a.f >= b.f) = (a.f::bytea >= b.f::bytea)) AS ge,
    bool_and(bloom_cmp(a.f, b.f) = CASE WHEN a.f::bytea = b.f::bytea THEN 0 WHEN a.f::bytea < b.f::bytea THEN -1
        ELSE 1 END) AS cmp,
    bool_and((bloom_hash(a.f) = bloom_hash(b.f)) = (a.f = b.f)) AS hash,
    bool_and((bloom_hash_extended(a.f, 42) = bloom_hash_extended(b.f, 42)) = (a.f = b.f)) AS hash_extended
FROM filters a, filters b WHERE a.f IS NOT NULL AND b.f IS NOT NULL;
-- PostgreSQL's rule for hash functions: the low half of the extended hash without a seed is the plain hash.
SELECT bool_and(bloom_hash_extended(f, 0)::bit(32) = bloom_hash(f)::bit(32)) AS low_half,
    bool_or(bloom_hash_extended(f, 1) = bloom_hash_extended(f, 0)) AS seed_ignored
FROM filters;
SELECT bloom_empty() = NULL AS eq, bloom_cmp(NULL, bloom_empty()) AS cmp;

-- DISTINCT, GROUP BY, UNION, IN, ORDER BY: every filter twice.
CREATE TABLE twice AS SELECT name, f FROM filters UNION ALL SELECT name, f FROM copied;
SELECT count(*), count(DISTINCT f) FROM twice;
SELECT count(*) FROM (SELECT DISTINCT f FROM twice) d;
SELECT count(*) FROM (SELECT f FROM filters UNION SELECT f FROM copied) u;
SELECT name, count(*) FROM twice GROUP BY name, f HAVING f = bloom_empty() OR f IS NULL ORDER BY name;
SELECT count(*) FROM filters WHERE f IN (SELECT f FROM copied);
SELECT bool_and(f >= before) AS ascending FROM (SELECT f, lag(f) OVER (ORDER BY f) AS before FROM twice) t;

-- Joins by hash and by merging find the same pairs.
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT plan_has('Hash Join', 'SELECT FROM filters JOIN copied USING (f)') AS hash_join;
SELECT count(*) FROM filters JOIN copied USING (f);
RESET enable_mergejoin;
SET enable_hashjoin = off;
SELECT plan_has('Merge Join', 'SELECT FROM filters JOIN copied USING (f)') AS merge_join;
SELECT count(*) FROM filters JOIN copied USING (f);
RESET enable_hashjoin;
RESET enable_nestloop;

-- Indexes: btree (for filters that fit an index entry), unique ones as well, and hash.
CREATE TABLE small AS SELECT i, bloom_from_array(ARRAY[i]) AS f FROM generate_series(1, 200) i;
CREATE UNIQUE INDEX small_btree ON small USING btree (f);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT plan_has('Index Scan', 'SELECT i FROM small WHERE f = bloom_from_array(ARRAY[42])') AS by_btree;
SELECT i FROM small WHERE f = bloom_from_array(ARRAY[42]);
SELECT i FROM small WHERE f = bloom_from_array(ARRAY[201]);
INSERT INTO small SELECT 201, bloom_from_array(ARRAY[42, 42]);
DROP INDEX small_btree;
CREATE INDEX small_hash ON small USING hash (f);
SELECT plan_has('Index Scan', 'SELECT i FROM small WHERE f = bloom_from_array(ARRAY[42])') AS by_hash;
SELECT i FROM small WHERE f = bloom_from_array(ARRAY[42]);
SELECT i FROM small WHERE f = bloom_from_array(ARRAY[201]);
RESET enable_seqscan;
RESET enable_bitmapscan;

-- A table can be replicated by its filters: the whole row, or a unique index on them, as replica identity.
ALTER TABLE small REPLICA IDENTITY FULL;
CREATE UNIQUE INDEX small_identity ON small (f);
ALTER TABLE small ALTER f SET NOT NULL;
ALTER TABLE small REPLICA IDENTITY USING INDEX small_identity;
SELECT relreplident FROM pg_class WHERE oid = 'small'::regclass;

-- Columns of every sort: arrays, composites, domains, defaults, generated columns of it.
CREATE DOMAIN int_filter AS bloom CHECK ((bloom_info(VALUE)).layout = 'blocked');
CREATE TABLE sorts (
    tags text[], f bloom GENERATED ALWAYS AS (bloom_add_all('\x01010000060100000200000000000000020000000000000064000000000000007b14ae47e17a843f00000000',
        tags)) STORED,
    many bloom[] DEFAULT ARRAY[bloom_empty()], d int_filter DEFAULT bloom_empty()
);
INSERT INTO sorts (tags) VALUES (ARRAY['red', 'green']), (ARRAY['blue']);
SELECT tags, f @> 'red' AS red, f @> 'blue' AS blue, many[1] = bloom_empty() AS in_array,
    (d || 'x') @> 'x' AS in_domain FROM sorts;
SELECT outcome($$UPDATE sorts SET d = bloom_empty(10, 0.01, 'classic')$$) AS domain_checks;

DROP VIEW damaged;
DROP FUNCTION tamper;
DROP TABLE filters, copied, received, large, twice, small, sorts;
DROP DOMAIN int_filter;
