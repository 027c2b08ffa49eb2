-- pg_bloom.max_filter_size: nothing may grow beyond it. A filter that exists may be larger, and is read, asked, changed
-- and merged at its own size: a result is refused if it is larger than the limit and than every filter that it is made
-- of.
SET pg_bloom.overfill = ignore;
-- Large and small bits, a list of a large and of a small size, a long list and one that nearly is bits; with counters.
CREATE TABLE t AS
SELECT layout, (SELECT bloom_agg(i, 80000, 0.01, layout) FROM generate_series(1, 80000) i) AS large,
    (SELECT bloom_agg(i, 10000, 0.01, layout) FROM generate_series(1, 10000) i) AS small,
    (SELECT bloom_agg(i, 80000, 0.01, layout) FROM generate_series(1, 10) i) AS list,
    (SELECT bloom_agg(i, 80000, 0.01, layout) FROM generate_series(1, 9000) i) AS long,
    (SELECT bloom_agg(i, 80000, 0.01, layout) FROM generate_series(5001, 14000) i) AS longer,
    (SELECT counting_bloom_agg(i, 80000) FROM generate_series(1, 9000) i) AS counting
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout;
SELECT layout, (bloom_header(large)).bytes > 65536 AS large, (bloom_header(small)).bytes < 65536 AS small,
    (bloom_header(list)).bytes < 200 AS list, (bloom_header(long)).bytes BETWEEN 65536 AND (bloom_header(large)).bytes AS long,
    (bloom_header(long | longer)).representation AS both FROM t ORDER BY layout;
SET pg_bloom.max_filter_size = '64kB';
CREATE TABLE tries (i serial, expected text, query text);
INSERT INTO tries (expected, query) VALUES
    -- What makes a filter.
    ('54000', 'bloom_empty(80000, 0.01, layout)'),
    ('54000', 'bloom_from_array(ARRAY[1], 80000, 0.01, layout)'),
    ('54000', '(SELECT bloom_agg(i, 80000, 0.01, layout) FROM generate_series(1, 3) i)'),
    ('54000', '(SELECT bloom_agg(i, NULL, 0.01, layout) FROM generate_series(1, 80000) i)'),
    ('54000', 'counting_bloom_empty(80000)'),
    -- Reading.
    ('ok', 'large'), ('ok', 'large::text::bloom'), ('ok', 'large::bytea::bloom'), ('ok', 'bloom_cardinality(large)'),
    ('ok', 'bloom_info(large)'), ('ok', 'large @> 1'), ('ok', 'bloom_union_cardinality(large, long)'),
    ('ok', 'counting::text::counting_bloom'), ('ok', 'counting_bloom_info(counting)'),
    -- Adding: at its own size, as long as a list grows within the limit.
    ('ok', 'large || -1'), ('ok', 'bloom_add(large, -1)'), ('ok', 'bloom_add_all(large, ARRAY[-1, -2])'),
    ('ok', 'small || -1'), ('ok', 'list || -1'), ('ok', 'long || 1'),
    ('54000', 'long || -1'), ('54000', 'bloom_add_all(long, ARRAY[-1, -2])'),
    ('54000', 'bloom_add_all(list, ARRAY(SELECT generate_series(1, 20000)))'),
    ('54000', 'bloom_add_all(bloom_empty(), ARRAY(SELECT generate_series(1, 80000)))'),
    ('ok', 'counting || -1'), ('ok', 'counting_bloom_add_all(counting, ARRAY[-1, -2])'),
    ('ok', 'counting_bloom_remove(counting, 1)'), ('ok', 'counting_bloom_remove_all(counting, ARRAY[1, 2])'),
    -- Merging, in either order.
    ('ok', 'large | large'), ('ok', 'large | small'), ('ok', 'small | large'), ('ok', 'large | list'), ('ok', 'list | large'),
    ('ok', 'list | list'), ('ok', 'long | list'), ('54000', 'list | small'), ('54000', 'small | list'), ('54000', 'long | longer'),
    ('ok', 'large & large'), ('ok', 'large & small'), ('ok', 'small & large'), ('ok', 'list & small'), ('ok', 'small & list'),
    ('ok', 'long & large'), ('ok', 'counting + counting'),
    ('ok', 'agg large small'), ('ok', 'agg small large'), ('ok', 'agg list small large'), ('ok', 'agg small list large'),
    ('ok', 'agg large list small'), ('ok', 'agg long longer large'), ('ok', 'agg large long longer'), ('ok', 'agg long longer long large'),
    ('54000', 'agg list small'), ('54000', 'agg small list'), ('54000', 'agg long longer'), ('54000', 'agg small long list longer'),
    ('ok', 'all large small'), ('ok', 'all small large'), ('ok', 'all list small large'), ('ok', 'all small list'),
    ('ok', '(SELECT counting_bloom_union_agg(f) FROM unnest(ARRAY[counting, counting]) f)'),
    -- Other sizes, other forms.
    ('ok', 'bloom_fold(large, 0.01)'), ('ok', 'bloom_fold(large, 0.5)'), ('ok', 'bloom_fold(long, 0.01)'),
    ('ok', 'bloom_resize(large, 80000)'), ('ok', 'bloom_resize(large, 40000)'), ('ok', 'bloom_resize(list, 80000)'),
    ('ok', 'bloom_resize(list, 100)'), ('ok', 'bloom_resize(long, 10000)'),
    ('54000', 'bloom_resize(large, 160000)'), ('54000', 'bloom_resize(small, 80000)'), ('54000', 'bloom_resize(list, 160000)'),
    ('ok', 'counting::bloom'), ('ok', 'counting_bloom_to_bloom(counting) | counting::bloom');
-- The aggregates take filters in the order in which they are named.
UPDATE tries SET query = format('(SELECT bloom_%s_agg(f ORDER BY o) FROM unnest(ARRAY[%s]) WITH ORDINALITY u (f, o))',
    CASE split_part(query, ' ', 1) WHEN 'agg' THEN 'union' ELSE 'intersection' END,
    array_to_string((string_to_array(query, ' '))[2:], ', ')) WHERE query ~ '^(agg|all) ';
SELECT layout, count(*), count(*) FILTER (WHERE expected = 'ok') AS allowed,
    string_agg(format('%s is %s, not %s', query, found, expected), E'\n' ORDER BY i) FILTER (WHERE found <> expected) AS wrong
FROM t, tries, LATERAL (SELECT outcome(format('SELECT ''ok'' FROM t WHERE layout = %L AND (%s) IS NOT NULL', layout, query))
    AS found) f
GROUP BY layout ORDER BY layout;
-- Parquet: what is written from bits has their size, from a list that of the bits; what is read is made.
SELECT outcome('SELECT octet_length(bloom_to_parquet(large)) > 65536 FROM t WHERE layout = ''parquet''') AS bits,
    outcome('SELECT bloom_to_parquet(list) FROM t WHERE layout = ''parquet''') AS list,
    outcome('SELECT bloom_from_parquet(bloom_to_parquet(large), ''integer'') FROM t WHERE layout = ''parquet''') AS read_again;
-- A hint says to raise the setting only where that helps.
SELECT hint FROM failure('SELECT bloom_empty(80000)');
SET pg_bloom.max_filter_size = '511MB';
SELECT hint FROM failure('SELECT bloom_empty(1000000000)');
RESET pg_bloom.max_filter_size;
RESET pg_bloom.overfill;
DROP TABLE t, tries;
