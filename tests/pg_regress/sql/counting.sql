-- Counting filters: sets that shrink. What is left is found, what was removed is not, and the cast gives the filter of
-- what is left.
CREATE TABLE c AS SELECT counting_bloom_agg(i, 1000) AS f FROM generate_series(1, 1000) i;

-- Added, asked, removed: by function and by operator, with untyped literals too.
SELECT f @> 'a' AS found, 'a' <@ f AS reversed, f @> 'c' AS absent, g @> 'a' AS removed, g @> 'b' AS left_over
    FROM (SELECT counting_bloom_empty(100) || 'a' || 'b' AS f) v, counting_bloom_remove(f, 'a') g;
SELECT counting_bloom_contains(f, 1) AS contains, counting_bloom_contained(1, f) AS contained,
    counting_bloom_add(f, 5000) = f || 5000 AS add,
    counting_bloom_union(f, f) = f + f AS sum FROM c;
SELECT count(*) FILTER (WHERE f @> i) AS found, count(*) FILTER (WHERE i <@ g) AS after_removal
    FROM (SELECT f, counting_bloom_remove_all(f, ARRAY(SELECT generate_series(1, 500))) AS g FROM c) v,
    generate_series(1, 1000) i WHERE i > 500;
-- Of the removed ones only false positives are left: half full, that is far below 1 %.
SELECT count(*) FILTER (WHERE g @> i) < 10 AS few FROM (SELECT counting_bloom_remove_all(f,
    ARRAY(SELECT generate_series(1, 500))) AS g FROM c) v, generate_series(1, 500) i;

-- Copies are counted: an element is there until it was removed as often as it was added.
SELECT n, g @> 'x' AS found FROM (SELECT counting_bloom_empty(100) || 'x' || 'x' || 'x' AS f) three,
    LATERAL (SELECT counting_bloom_remove(f, 'x') AS one_less) one,
    LATERAL (SELECT counting_bloom_remove(one_less, 'x') AS two_less) two,
    LATERAL (VALUES (0, f), (1, one_less), (2, two_less), (3, counting_bloom_remove(two_less, 'x')),
        (4, counting_bloom_remove_all(f, ARRAY['x', 'x', 'x', 'x']))) v (n, g);
-- From 15 copies on their number isn't known: they stay forever.
SELECT n, f = counting_bloom_empty(100) AS emptied, f @> 'x' AS found FROM unnest(ARRAY[14, 15, 16, 1000]) n,
    LATERAL (SELECT counting_bloom_remove_all(counting_bloom_agg('x', 100),
        ARRAY(SELECT 'x' FROM generate_series(1, n))) AS f FROM generate_series(1, n)) v;

-- Removing what is surely not there changes nothing; removing everything leaves the empty filter.
SELECT counting_bloom_remove(f, -1) = f AS absent, counting_bloom_remove_all(f, ARRAY[-1, -2, NULL]) = f AS absent_ones,
    counting_bloom_remove_all(f, ARRAY(SELECT generate_series(1000, 1, -1))) = counting_bloom_empty(1000) AS everything
    FROM c;
SELECT counting_bloom_remove(f, 1) = f AS nothing_left, f @> 1 AS nothing_in_it
    FROM (VALUES (counting_bloom_empty(10)), (counting_bloom_empty())) v (f);
-- What became empty takes elements of another kind again.
SELECT counting_bloom_remove(counting_bloom_empty(10) || 1, 1) || 'a' @> 'a' AS another_kind;

-- The cast to bloom: the very filter that bloom_agg gives for what is left, where that is dense.
SELECT f::bloom = (SELECT bloom_agg(i, 1000) FROM generate_series(1, 1000) i) AS all,
    counting_bloom_remove_all(f, ARRAY(SELECT generate_series(1, 500)))::bloom
        = (SELECT bloom_agg(i, 1000) FROM generate_series(501, 1000) i) AS half FROM c;
-- Where bloom_agg would keep a list of hashes, the cast is dense: the same bits, and the same answers.
SELECT representation, bits_set = (SELECT bits_set FROM bloom_info(few)) AS same_bits, f::bloom | few = f::bloom AS same
    FROM (SELECT counting_bloom_agg(i, 1000) AS f, bloom_agg(i, 1000) AS few FROM generate_series(1, 50) i) v,
    bloom_info(f::bloom);
SELECT counting_bloom_empty(1000)::bloom = bloom_empty(1000) AS empty, counting_bloom_empty()::bloom = bloom_empty() AS no_size;
CREATE TABLE b (f bloom);
INSERT INTO b SELECT f FROM c;
SELECT b.f = c.f::bloom AS by_assignment FROM b, c;
SELECT (f + g)::bloom = f::bloom | g::bloom AS sum FROM c, (SELECT counting_bloom_agg(i, 1000) AS g
    FROM generate_series(501, 900) i) v;

-- The sum, and its aggregate.
SELECT f + g = g + f AS commutative, (f + g) + f = f + (g + f) AS associative, f + counting_bloom_empty() = f AS identity,
    f + counting_bloom_empty(1000) = f AS empty, counting_bloom_remove(f + g, 7) @> 7 AS one_left,
    counting_bloom_remove_all(f + g, ARRAY[7, 7]) @> 7 AS none_left
    FROM (SELECT counting_bloom_agg(i, 1000) AS f, counting_bloom_agg(i + 5, 1000) AS g FROM generate_series(1, 20) i) v;
SELECT counting_bloom_union_agg(g) = f AS parts FROM c, (SELECT counting_bloom_agg(i, 1000) AS g FROM generate_series(1, 1000) i
    GROUP BY i % 7) parts GROUP BY f;

-- NULLs and nothing, as for bloom: NULL elements are skipped, a NULL filter or probe gives NULL.
SELECT f || NULL::int = f AS add, counting_bloom_remove(f, NULL::int) = f AS remove,
    counting_bloom_add_all(f, NULL::int[]) = f AS add_all,
    counting_bloom_remove_all(f, '{}'::int[]) = f AS remove_all, f @> NULL::int IS NULL AS probe,
    NULL::counting_bloom || 1 IS NULL AND counting_bloom_remove(NULL, 1) IS NULL AND NULL::counting_bloom @> 1 IS NULL AS no_filter,
    f + NULL IS NULL AS sum FROM c;
SELECT counting_bloom_agg(NULL::text, 1000) = counting_bloom_empty(1000) AS only_nulls,
    counting_bloom_agg(i, 1000, NULL) = counting_bloom_agg(i, 1000) AS default_rate,
    counting_bloom_union_agg(NULL) = counting_bloom_empty() AS no_filters FROM generate_series(1, 3) i;
SELECT counting_bloom_agg(i, 1000) = counting_bloom_empty() AS no_rows, counting_bloom_union_agg(f) = counting_bloom_empty()
    AS no_filters FROM c, generate_series(1, 0) i;

-- All ways of giving an element.
SELECT counting_bloom_agg('a', 9) = counting_bloom_empty(9) || 'a' AS literal,
    counting_bloom_agg('a'::"char"::text, 9) = counting_bloom_empty(9) || 'a'::"char"::text AS "char",
    counting_bloom_agg('a'::name, 9, 0.1) = counting_bloom_empty(9, 0.1) || 'a' AS name,
    counting_bloom_agg(1::smallint, 9) = counting_bloom_empty(9) || 1::bigint AS integers,
    counting_bloom_remove(counting_bloom_empty(9) || 'a'::"char"::text, 'a') = counting_bloom_empty(9) AS removed_as_text,
    counting_bloom_agg(inet '::1', 9) @> inet '::1' AS inet;
-- Over a window, where one state gives many filters.
SELECT i, f @> 2 AS running FROM (SELECT i, counting_bloom_agg(i, 9) OVER (ORDER BY i) AS f FROM generate_series(1, 3) i) v
    ORDER BY i DESC;

-- Every error, with what to do.
\x on
SELECT query, state, message, detail, hint FROM unnest(ARRAY[
    'SELECT counting_bloom_empty(NULL)', 'SELECT counting_bloom_agg(1, NULL)', 'SELECT counting_bloom_empty(0)',
    'SELECT counting_bloom_agg(1, 10, 2)', 'SELECT counting_bloom_empty(100000000)', 'SELECT counting_bloom_empty() || 1',
    'SELECT f @> ''a'' FROM c', 'SELECT f || ''a'' FROM c', 'SELECT counting_bloom_remove(f, ''a'') FROM c',
    'SELECT counting_bloom_remove_all(f, ARRAY[''a'']) FROM c', 'SELECT f + (counting_bloom_empty(1000) || ''a'') FROM c',
    'SELECT f + counting_bloom_empty(4000) FROM c', 'SELECT f + counting_bloom_empty(1000, 0.001) FROM c',
    'SELECT f || f FROM c', 'SELECT counting_bloom_remove(f, f) FROM c', 'SELECT counting_bloom_agg(f, 10) FROM c',
    'SELECT bloom_agg(ARRAY[f]) FROM c', 'SELECT counting_bloom_agg(''1''::json, 10)',
    'SELECT counting_bloom_agg(i, i) FROM generate_series(1, 3) i',
    'SELECT f::bytea::bloom FROM c', 'SELECT bloom_empty(9)::bytea::counting_bloom',
    'SELECT f::text::bloom FROM c', 'SELECT ''x''::counting_bloom', 'SELECT ''\x01''::counting_bloom',
    'SELECT ''\x01''::bytea::counting_bloom'
]) query, failure(query);
\x off
-- There is no minus. PostgreSQL's hint differs between its versions.
SELECT state, message FROM failure('SELECT f - 1 FROM c');

-- More than it was made for: a warning with both counts, or an error, by setting; removing is no reason for one.
SELECT octet_length(counting_bloom_agg(i, 1000)::bytea) FROM generate_series(1, 3000) i;
SELECT f + g IS NULL AS sum FROM c, (SELECT counting_bloom_agg(i, 1000) AS g FROM generate_series(1001, 2000) i) v;
SELECT counting_bloom_add_all(f, array_agg(i)) IS NULL AS add_all FROM c, generate_series(1001, 2000) i GROUP BY f;
SELECT f + f IS NULL AS the_same_again, counting_bloom_agg(i % 100, 100) IS NULL AS repeated FROM c, generate_series(1, 500) i
    GROUP BY f;
SET pg_bloom.overfill = error;
\x on
SELECT * FROM failure('SELECT counting_bloom_agg(i, 1000) FROM generate_series(1, 3000) i');
\x off
RESET pg_bloom.overfill;
-- Larger than pg_bloom.max_filter_size: counters take four times the bytes of bits.
SET pg_bloom.max_filter_size = '4kB';
SELECT query, outcome(query) FROM unnest(ARRAY['SELECT counting_bloom_empty(1000)', 'SELECT counting_bloom_agg(1, 1000)',
    'SELECT f + f IS NULL FROM c', 'SELECT bloom_empty(1000) IS NULL', 'SELECT counting_bloom_remove(f, 1) @> 2 FROM c']) query;
RESET pg_bloom.max_filter_size;

-- What is in it.
\x on
SELECT format_version, key_kind, capacity, target_fpr, num_counters, num_hashes, counters_saturated,
    round(cardinality::numeric / 1000, 1) AS thousands, round(copies::numeric / 1000, 1) AS thousands_of_copies,
    current_fpr BETWEEN 0.0001 AND 0.01 AS rate, bytes, bytes = octet_length(f::bytea) AS same,
    counters_set = (bloom_info(f::bloom)).bits_set AS as_many_bits, fill_ratio = (bloom_info(f::bloom)).fill_ratio AS fill
    FROM c, counting_bloom_info(f);
SELECT i.* FROM counting_bloom_info(counting_bloom_empty()) i;
\x off
SELECT round(counting_bloom_cardinality(f)::numeric, -2) AS distinct, round(counting_bloom_cardinality(f + f)::numeric, -2) AS
    still, round((counting_bloom_info(f + f)).copies::numeric, -2) AS copies,
    (counting_bloom_info(f + f + f + f + f + f + f + f)).copies IS NULL AS too_many_to_tell FROM c;

-- Text, bytes, and the operator classes.
SELECT f::text::counting_bloom = f AS "text", f::bytea::counting_bloom = f AS bytea, counting_bloom_send(f) = f::bytea AS send,
    left(f::text, 18) AS start FROM c;
SELECT count(DISTINCT g) AS distinct, min(counting_bloom_cmp(f, g)) AS least, bool_and((f = g) = NOT (f <> g)) AS negator,
    bool_and((f < g) = (g > f) AND (f <= g) = (g >= f)) AS commutators
    FROM c, LATERAL (VALUES (f), (counting_bloom_remove(f, 1)), (f), (f || 1)) v (g);
SELECT count(*) FROM (SELECT g FROM c, LATERAL (VALUES (f), (counting_bloom_remove(f, 1)), (f)) v (g) GROUP BY g) groups;
CREATE TABLE kept (id int, f counting_bloom UNIQUE);
INSERT INTO kept SELECT 1, counting_bloom_agg(i, 30) FROM generate_series(1, 20) i;
SELECT outcome('INSERT INTO kept SELECT 2, f FROM kept') AS twice;
SELECT a.f = b.f AS joined FROM kept a JOIN kept b ON a.f = b.f;
ALTER TABLE kept DROP CONSTRAINT kept_f_key;

-- Stored out of line: probes read slices, or remember the whole.
INSERT INTO kept SELECT 3, counting_bloom_agg(i, 100000) FROM generate_series(1, 50000) i;
SELECT attstorage FROM pg_attribute WHERE attrelid = 'kept'::regclass AND attname = 'f';
SELECT f @> 1 AS found, f @> -1 AS absent FROM kept ORDER BY id;
SELECT count(*) FILTER (WHERE f @> i AND i <= 50000) AS found, count(*) FILTER (WHERE f @> i AND i > 50000) < 50 AS few_others
    FROM generate_series(1, 60000) i, kept WHERE id = 3;
UPDATE kept SET f = counting_bloom_remove(f, 7) WHERE id = 3;
SELECT f @> 7 AS removed, f @> 8 AS still FROM kept WHERE id = 3;
DROP TABLE c, b, kept;

-- How many copies of an element there are: never too few, up to 15.
SELECT n, counting_bloom_count(f, 'x') AS x, counting_bloom_count(f, 'y'::text) AS y,
    counting_bloom_count(counting_bloom_remove(f, 'x'), 'x') AS one_less
FROM unnest(ARRAY[1, 2, 14, 15, 16, 100]) AS n,
    LATERAL (SELECT counting_bloom_agg('x', 100) AS f FROM generate_series(1, n)) AS v;
SELECT counting_bloom_count(f, 3::smallint) AS smallint, counting_bloom_count(f, 3::bigint) AS bigint,
    counting_bloom_count(f + f, 3) AS of_the_sum, counting_bloom_count(f, NULL::integer) IS NULL AS no_element,
    counting_bloom_count(NULL, 3) IS NULL AS no_filter, pg_typeof(counting_bloom_count(f, 3)) AS type
FROM (SELECT counting_bloom_agg(i % 10, 100) AS f FROM generate_series(1, 40) AS i) AS v;
SELECT counting_bloom_count(counting_bloom_empty(100), 'x') AS empty, counting_bloom_count(counting_bloom_empty(), 1) AS no_size;
SELECT call, state, message, hint FROM unnest(ARRAY['f, ''a''', 'f, ARRAY[1]', 'f, 1.5', 'f, ''{}''::json']) AS call,
    failure('SELECT counting_bloom_count(' || call || ') FROM (SELECT counting_bloom_empty(10) || 1 AS f) AS v');
-- In a table, read by slices and then whole: the count is zero where the filter says no.
CREATE TABLE counted AS SELECT counting_bloom_agg(i / 3, 40000) AS f FROM generate_series(0, 119999) AS i;
SELECT octet_length(f::bytea) > 100000 AS out_of_line FROM counted;
SELECT counting_bloom_count(f, 7) FROM counted;
SELECT min(n), count(*) FILTER (WHERE n > 3) < 60 AS few_too_many FROM (SELECT counting_bloom_count(f, i) AS n FROM counted,
    generate_series(0, 39999, 10) AS i) AS counts;
SELECT bool_and((counting_bloom_count(f, i) > 0) = (f @> i)) AS as_probed FROM counted, generate_series(36000, 43999) AS i;
ALTER TABLE counted ALTER f SET STORAGE EXTENDED;
UPDATE counted SET f = counting_bloom_remove(f, 7);
SELECT counting_bloom_count(f, 7) AS one_less, counting_bloom_count(f, 8) AS as_before FROM counted;
DROP TABLE counted;
