-- Every error: its SQLSTATE, and a message that says what was wrong with which value and what to do.
\x on
-- Rates: 22023 unless from 1e-9 (parquet 1e-6) to 0.5: an error, never a
-- silent floor.
SELECT rate, layout, state, message, detail, hint
FROM (VALUES ('0', 'blocked'), ('1', 'blocked'), ('-0.01', 'blocked'), ('2', 'classic'), ('NaN', 'blocked'),
    ('Infinity', 'blocked'), ('-Infinity', 'parquet'),
        ('9e-10', 'blocked'), ('9e-10', 'classic'), ('9e-7', 'parquet'), ('0.5000000000000001', 'classic')) v (rate, layout),
    failure(format('SELECT bloom_empty(10, %L, %L)', rate, layout));
\x off
-- So it is wherever a rate is given; at the limits it works.
CREATE TABLE rates AS
SELECT rate, layout, NOT (rate::float8 <= 0.5 AND rate::float8 >= CASE layout WHEN 'parquet'
    THEN 1e-6 ELSE 1e-9 END) AS bad
FROM unnest(ARRAY['0', '1', '-0.01', '2', 'NaN', 'Infinity', '-Infinity', '9e-10', '1e-9', '9e-7', '1e-6', '0.5',
    '0.5000000000000001', '0.999']) rate,
    unnest(ARRAY['blocked', 'classic', 'parquet']) layout;
SELECT way, count(*) FILTER (WHERE bad) AS bad, count(*) FILTER (WHERE bad AND state = '22023') AS refused,
    count(*) FILTER (WHERE NOT bad) AS good, count(*) FILTER (WHERE NOT bad AND state = '00000') AS accepted
FROM rates, unnest(ARRAY[
        'SELECT bloom_empty(1, %1$L, %2$L)', 'SELECT bloom_empty(NULL, %1$L, %2$L)',
            'SELECT bloom_agg(1, 1, %1$L, %2$L)', 'SELECT bloom_agg(1, NULL, %1$L, %2$L)',
        'SELECT bloom_from_array(ARRAY[1], 1, %1$L, %2$L)', 'SELECT bloom_parameters(10, %1$L, %2$L)',
            'SELECT bloom_capacity(1000000, %1$L, %2$L)',
        'SELECT bloom_best_practices(%1$L, %2$L)', 'SELECT bloom_fold(bloom_empty(100, 0.01, %2$L), %1$L)',
        'SELECT bloom_fold(bloom_empty(NULL, 0.01, %2$L), %1$L)', 'SELECT bloom_parameters(NULL, %1$L, %2$L)'
    ]) way, failure(format(way, rate, layout))
GROUP BY way ORDER BY way COLLATE "C";
SELECT way, count(*) FILTER (WHERE bad AND state = '22023') = count(*) FILTER (WHERE bad) AS refused,
    count(*) FILTER (WHERE NOT bad AND state = '00000') = count(*) FILTER (WHERE NOT bad) AS accepted
FROM rates, unnest(ARRAY['SELECT counting_bloom_empty(10, %L)', 'SELECT counting_bloom_agg(1, 10, %L)']) way,
    failure(format(way, rate)) WHERE layout = 'blocked' GROUP BY way ORDER BY way COLLATE "C";
-- A stored filter has such a rate, too: 0.5, the number after it, 1, 1e-9, the number before it, NaN.
SELECT rate, outcome(format('SELECT (%L::bytea)::bloom', overlay(bloom_empty(10, 0.5)::bytea PLACING rate FROM 33))) AS outcome
FROM unnest(ARRAY['\x000000000000e03f', '\x010000000000e03f', '\x000000000000f03f', '\x95d626e80b2e113e', '\x94d626e80b2e113e',
    '\x000000000000f87f']::bytea[]) rate;

-- Capacities: 22023 below 1, 54000 for what no value could hold, both before anything is allocated.
\x on
SELECT capacity, state, message, detail, hint
FROM (VALUES (0), (-1), (-9223372036854775808), (1000000000), (1000000000000000), (9223372036854775807)) v (capacity),
    failure(format('SELECT bloom_empty(%s)', capacity));
\x off
SELECT way, string_agg(outcome(format(way, capacity)), ', ' ORDER BY capacity) AS "below 1 and too large"
FROM unnest(ARRAY['SELECT bloom_agg(1, %s)', 'SELECT bloom_agg(''a'', %s, 0.01)',
    'SELECT bloom_agg(''a''::"char"::text, %s, 0.01, ''classic'')', 'SELECT bloom_agg(x, %s) FROM generate_series(1, 10) x',
        'SELECT bloom_from_array(ARRAY[1], %s)', 'SELECT bloom_from_array(''{}''::int[], %s, 0.01, ''parquet'')',
            'SELECT bloom_agg(1, %s) OVER ()']) way,
    (VALUES (0), (-1), (1000000000000), (9223372036854775807)) v (capacity)
GROUP BY way ORDER BY way COLLATE "C";

-- Layouts: exactly the three names.
SELECT layout, state, message, hint FROM unnest(ARRAY['Blocked', '', 'sbbf', 'blocked ']) layout,
    failure(format('SELECT bloom_empty(10, 0.01, %L)', layout));
SELECT outcome('SELECT bloom_agg(1, 10, 0.01, ''x'')') AS agg,
    outcome('SELECT bloom_from_array(ARRAY[1], 10, 0.01, ''x'')') AS from_array,
    outcome('SELECT bloom_parameters(10, 0.01, ''x'')') AS parameters,
        outcome('SELECT bloom_capacity(1000, 0.01, ''x'')') AS capacity,
    outcome('SELECT bloom_best_practices(0.01, ''x'')') AS best_practices,
        outcome('SELECT count(*) FROM bloom_sizing_table(''x'')') AS sizing_table,
    outcome('SELECT bloom_expected_fpr(10, 1000, 5, ''x'')') AS expected_fpr;

-- Parameters of an aggregate that differ from row to row: 22023.
\x on
SELECT state, message, detail, hint FROM failure('SELECT bloom_agg(i, i) FROM generate_series(1, 3) i');
\x off
SELECT query, outcome(query) FROM unnest(ARRAY[
    'SELECT bloom_agg(i, 10, i / 10.0::float8) FROM generate_series(1, 3) i',
    'SELECT bloom_agg(i, 10, 0.01, l) FROM (VALUES (1, ''blocked''), (2, ''classic'')) v (i, l)',
    'SELECT bloom_agg(i, 10, 0.01, l) FROM (VALUES (1, ''blocked''), (2, ''x'')) v (i, l)',
    'SELECT bloom_agg(i, c) FROM (VALUES (1, 10), (2, NULL)) v (i, c)',
    'SELECT bloom_agg(i, c) FROM (VALUES (1, NULL), (2, 10)) v (i, c)',
    'SELECT bloom_agg(i, c) FROM (VALUES (1, 10), (NULL, 20)) v (i, c)',
    'SELECT bloom_agg(i, NULL, r) FROM (VALUES (1, 0.01), (2, 0.02)) v (i, r)',
    'SELECT bloom_agg(i, 10, 0.01, l) FROM (VALUES (1, ''blocked''), (2, ''classic''), (3, ''blocked'')) v (i, l)',
    'SELECT bloom_agg(i, 10 + i) OVER () FROM generate_series(1, 3) i'
]) query;
-- The default written out is no difference.
SELECT bloom_agg(i, 10, r, l) = bloom_agg(i, 10) AS same FROM (VALUES (1, 0.01, NULL), (2, NULL, 'blocked')) v (i, r,
    l);

-- Filters that can't be merged: 22023, whatever operation. The message names it and both, and a capacity that fits
-- both.
\x on
SELECT why, state, message, detail, hint FROM (VALUES
    (1, 'layouts', 'SELECT bloom_empty(100) | bloom_empty(100, 0.01, ''classic'')'),
    (2, 'rates', 'SELECT bloom_empty(100) | bloom_empty(100, 0.0001)'),
    (3, 'sizes', 'SELECT bloom_empty(10000) | bloom_empty(15000)'),
    (4, 'kinds', 'SELECT bloom_from_array(ARRAY[1]) | bloom_from_array(ARRAY[''a''])'),
    (5, 'kinds by name', 'SELECT bloom_from_array(ARRAY[''::1''::inet]) | bloom_from_array(ARRAY[''::1/128''::cidr])')
) v (i, why, query), failure(query) ORDER BY i;
\x off
CREATE TABLE pairs (why text, a bloom, b bloom);
INSERT INTO pairs VALUES
    ('layouts', bloom_empty(100), bloom_empty(100, 0.01, 'classic')),
    ('rates', bloom_empty(100), bloom_empty(100, 0.0001)),
    ('sizes', bloom_empty(10000), bloom_empty(15000)),
    ('sizes, dense', (SELECT bloom_agg(i, 10000) FROM generate_series(1, 10000) i), (SELECT bloom_agg(i, 15000)
        FROM generate_series(1, 15000) i)),
    ('kinds', bloom_from_array(ARRAY[1]), bloom_from_array(ARRAY['a']));
SELECT way, string_agg(outcome(format(way, why)), ', ' ORDER BY pairs.ctid) AS outcomes
FROM pairs, unnest(ARRAY[
        'SELECT a | b FROM pairs WHERE why = %L', 'SELECT b | a FROM pairs WHERE why = %L',
            'SELECT bloom_union(a, b) FROM pairs WHERE why = %L',
        'SELECT a & b FROM pairs WHERE why = %L', 'SELECT bloom_intersection(b, a) FROM pairs WHERE why = %L',
        'SELECT bloom_union_agg(f) FROM pairs, LATERAL (VALUES (a), (b)) v (f) WHERE why = %L',
            'SELECT bloom_intersection_agg(f) FROM pairs, LATERAL (VALUES (b), (a)) v (f) WHERE why = %L',
        'SELECT bloom_union_cardinality(a, b) FROM pairs WHERE why = %L',
            'SELECT bloom_intersection_cardinality(a, b) FROM pairs WHERE why = %L',
            'SELECT bloom_jaccard(a, b) FROM pairs WHERE why = %L'
    ]) way
GROUP BY way ORDER BY way COLLATE "C";
SELECT DISTINCT split_part(message, ' with ', 1) AS start FROM unnest(ARRAY['bloom_union(a, b)',
    'bloom_intersection(a, b)', 'bloom_union_agg(f)', 'bloom_intersection_agg(f)', 'bloom_union_cardinality(a, b)',
    'bloom_intersection_cardinality(a, b)', 'bloom_jaccard(a, b)']) call,
    failure(format('SELECT %s FROM pairs, LATERAL (VALUES (a), (b)) v (f) WHERE why = ''sizes''', call)) ORDER BY 1;

-- Kinds that differ: 42804, naming both and the cast.
\x on
SELECT state, message, detail, hint FROM failure('SELECT bloom_from_array(ARRAY[1, 2]) @> ''1''');
\x off

-- Larger than pg_bloom.max_filter_size: 54000, however a filter comes to be.
CREATE TABLE stored AS SELECT bloom_agg(i, 5000) AS f, bloom_from_array(ARRAY[1], 5000) AS small,
    bloom_from_array(ARRAY[1], 10000) AS other FROM generate_series(1, 5000) i;
SET pg_bloom.max_filter_size = '2kB';
\x on
SELECT state, message, detail, hint FROM failure('SELECT bloom_empty(5000)');
\x off
SELECT query, outcome(query) FROM unnest(ARRAY[
    'SELECT bloom_empty(5000)', 'SELECT bloom_agg(1, 5000)', 'SELECT bloom_from_array(ARRAY[1], 5000)',
    'SELECT bloom_agg(i) FROM generate_series(1, 5000) i',
        'SELECT bloom_from_array(array_agg(i)) FROM generate_series(1, 5000) i',
        'SELECT bloom_add_all(bloom_empty(), array_agg(i)) FROM generate_series(1, 5000) i',
    'SELECT bloom_add_all(small, array_agg(i)) FROM stored, generate_series(1, 5000) i GROUP BY small',
        'SELECT bloom_union_agg(g) FROM stored, LATERAL (VALUES (small), (other)) v (g)',
        'SELECT small | other FROM stored'
]) query;
-- What is stored can still be read, and what is small is still made.
SELECT f @> 1 AS found, f @> -1 AS absent, round(bloom_cardinality(f)::numeric / 5000, 1) AS cardinality,
    f::text::bloom = f AS "text", f::bytea::bloom = f AS bytea FROM stored;
SELECT bloom_cardinality(bloom_empty(500) || 1) AS small, bloom_cardinality(bloom_agg(i)) AS unsized
    FROM generate_series(1, 8) i;
RESET pg_bloom.max_filter_size;

-- Sizing functions.
SELECT query, state, message, hint FROM unnest(ARRAY[
    'SELECT bloom_parameters(0)', 'SELECT bloom_parameters(9223372036854775807)', 'SELECT bloom_capacity(-1)',
        'SELECT bloom_capacity(0)', 'SELECT bloom_capacity(100)',
    'SELECT bloom_expected_fpr(-1, 1000, 5)', 'SELECT bloom_expected_fpr(10, 0, 5)',
        'SELECT bloom_expected_fpr(10, -1, 5)', 'SELECT bloom_expected_fpr(10, 1000, 0)',
        'SELECT bloom_expected_fpr(10, 1000, 65)',
    'SELECT bloom_expected_fpr(10, 511, 5, ''blocked'')', 'SELECT bloom_expected_fpr(10, 1024, 7, ''parquet'')'
]) query, failure(query);

-- The function that was called is named, and the hint has another one; or what to do with an array of no known type.
CREATE TABLE analysed AS SELECT i FROM generate_series(1, 1000) i;
ANALYZE analysed;
SELECT query, state, message, hint FROM unnest(ARRAY[
    'SELECT bloom_contains_any(bloom_agg(ARRAY[i]), ARRAY[1, 2]) FROM generate_series(1, 3) i',
    'SELECT bloom_contains_all(bloom_agg(ARRAY[i]), ARRAY[1, 2]) FROM generate_series(1, 3) i',
    'SELECT bloom_present(bloom_agg(i), ARRAY[''a'']) FROM generate_series(1, 3) i',
    'SELECT bloom_absent(bloom_agg(i), ARRAY[1.5]) FROM generate_series(1, 3) i',
    'SELECT bloom_contains(bloom_agg(i), ARRAY[1, 2]) FROM generate_series(1, 3) i',
    'SELECT bloom_from_array(histogram_bounds) FROM pg_stats WHERE tablename = ''analysed''',
    'SELECT bloom_contains_any(bloom_empty(), histogram_bounds) FROM pg_stats WHERE tablename = ''analysed'''
]) query, failure(query);
SELECT round(bloom_cardinality(bloom_from_array(histogram_bounds::text::integer[]))) BETWEEN 90 AND 110 AS counted FROM pg_stats WHERE tablename = 'analysed';
DROP TABLE analysed;

-- The functions of aggregates are for the executor only: PostgreSQL lets nobody pass a value of type internal, not
-- even NULL; the newest releases say that there is no such function.
SELECT query, outcome(query) IN ('0A000', '42883') AS refused FROM unnest(ARRAY[
    'SELECT bloom_agg_transition(NULL, 1)', 'SELECT bloom_agg_transition(NULL, ''a'', 10)',
        'SELECT bloom_agg_transition(NULL, ''a''::"char"::text, 10, 0.01)',
        'SELECT bloom_agg_transition(NULL, 1, 10, 0.01, ''classic'')',
    'SELECT bloom_agg_combine(NULL, NULL)', 'SELECT bloom_agg_serialise(NULL)',
        'SELECT bloom_agg_deserialise(bloom_empty()::bytea, NULL)', 'SELECT bloom_agg_final(NULL)',
    'SELECT bloom_union_agg_transition(NULL, bloom_empty())', 'SELECT bloom_union_agg_combine(NULL, NULL)'
]) query;

-- A hint names functions and settings that are there.
SELECT DISTINCT word AS names_nothing FROM unnest(ARRAY[
        'SELECT bloom_empty(1000000000)', 'SELECT bloom_empty(0)', 'SELECT bloom_empty(10, 2)',
            'SELECT bloom_empty() || bloom_empty()', 'SELECT bloom_empty(10000) | bloom_empty(15000)',
        'SELECT bloom_agg(i, i) FROM generate_series(1, 3) i', 'SELECT bloom_parameters(9223372036854775807)',
            'SELECT bloom_capacity(0)', 'SELECT ''''::bloom'
    ]) query, failure(query), regexp_matches(hint, '(?:pg_)?bloom[_.]\w+', 'g') m (words), unnest(words) word
WHERE NOT EXISTS (SELECT FROM pg_proc WHERE proname = word) AND current_setting(word, true) IS NULL;

DROP TABLE rates, pairs, stored;
