-- bloom_resize: from a list to any capacity, from bits to sizes that divide. bloom_header: what a value's start tells.
SET pg_bloom.overfill = ignore;
CREATE TABLE lists AS
SELECT layout, n, ARRAY(SELECT generate_series(1, n)) AS elements,
    bloom_empty(100000, 0.01, layout) | (SELECT bloom_agg(i, 100000, 0.01, layout) FROM generate_series(1, n) i) AS f
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[0, 1, 30, 2000]) n;

-- Whatever capacity, a list becomes the filter that a build with it gives; without one, that of an unsized build.
SELECT layout, count(*), count(*) FILTER (WHERE bloom_resize(f, c) <> bloom_from_array(elements, c, 0.01, layout)) AS other,
    count(*) FILTER (WHERE (bloom_header(bloom_resize(f, c))).representation = 'dense') BETWEEN 1 AND 20 AS some_dense
FROM lists, unnest(ARRAY[1, 7, 100, 1000, 2000, 12345, 100000, 10000000, NULL]) c GROUP BY layout ORDER BY layout;
SELECT layout, bloom_resize(bloom_empty(NULL, 0.02, layout), 1000) = bloom_empty(1000, 0.02, layout) AS first_size,
    bloom_resize(bloom_empty(NULL, 0.02, layout), NULL) = bloom_empty(NULL, 0.02, layout) AS none_yet
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout ORDER BY layout;

-- Bits are folded to the build at the smaller size, or spread: nothing is lost, and estimates stay what they were.
CREATE TABLE bits AS
SELECT layout, (SELECT bloom_agg(i, 20000, 0.01, layout) FROM generate_series(1, 20000) i) AS f,
    (SELECT bloom_agg(i, 5000, 0.01, layout) FROM generate_series(1, 20000) i) AS quarter
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout;
SELECT layout, bloom_resize(f, 5000) = quarter AS folded, bloom_resize(bloom_resize(f, 80000), 20000) = f AS there_and_back,
    summary(bloom_resize(f, 80000)) = summary(f | bloom_empty(80000, 0.01, layout)) AS spread_header,
    bloom_cardinality(bloom_resize(f, 80000)) = bloom_cardinality(f) AS cardinality,
    abs(bloom_fpr(bloom_resize(f, 80000)) / bloom_fpr(f) - 1) < 1e-9 AS rate,
    bloom_contains_all(bloom_resize(f, 80000), ARRAY(SELECT generate_series(1, 20000))) AS all_found,
    bloom_resize(f, 80000) = f | bloom_empty(80000, 0.01, layout) AS merged
FROM bits ORDER BY layout;

-- What can't be: neither size divides the other, no capacity for bits, one that can't be, one too large.
\x on
SELECT query, state, message, detail, hint FROM unnest(ARRAY[
    'SELECT bloom_resize(f, 30000) FROM bits WHERE layout = ''blocked''',
    'SELECT bloom_resize(f, NULL) FROM bits WHERE layout = ''blocked''',
    'SELECT bloom_resize(f, 0) FROM bits WHERE layout = ''blocked''',
    'SELECT bloom_resize(f, 1000000000) FROM lists WHERE layout = ''blocked'' AND n = 1'
]) query, failure(query);
\x off
-- The capacity that the hint names works.
SELECT layout, c, outcome(format('SELECT (bloom_header(bloom_resize(f, %s))).capacity = %1$s FROM bits WHERE layout = %L',
    substring(hint FROM 'capacity (\d+)'), layout)) AS works
FROM bits, unnest(ARRAY[12000, 30000, 130000]) c,
    failure(format('SELECT bloom_resize(f, %s) FROM bits WHERE layout = %L', c, layout)) WHERE state <> '00000'
ORDER BY layout, c;
SELECT bloom_resize(NULL, 100) IS NULL AS no_filter, bloom_resize(NULL, NULL) IS NULL AS nothing;
-- Smaller than the elements need: overfull, as a build would be.
SET pg_bloom.overfill = error;
SELECT layout, outcome(format('SELECT bloom_resize(f, 5000) FROM bits WHERE layout = %L', layout)) AS overfull
FROM bits ORDER BY layout;
SET pg_bloom.overfill = ignore;

-- bloom_header has the columns of bloom_info that need no look at the elements, of every sort of value.
CREATE TABLE headers (f bloom);
INSERT INTO headers SELECT f FROM lists UNION ALL SELECT f FROM bits UNION ALL SELECT bloom_resize(f, 80000) FROM bits
    UNION ALL SELECT bloom_empty() UNION ALL SELECT bloom_from_array(ARRAY['::1'::inet])
    UNION ALL SELECT bloom_agg(i::text, NULL, 0.1) FROM generate_series(1, 30000) i UNION ALL SELECT NULL;
SELECT count(*), count(*) FILTER (WHERE (h.format_version, h.layout, h.key_kind, h.representation, h.capacity, h.target_fpr,
    h.num_bits, h.num_hashes, h.bytes) IS DISTINCT FROM (i.format_version, i.layout, i.key_kind, i.representation, i.capacity,
    i.target_fpr, i.num_bits, i.num_hashes, i.bytes)) AS differ
FROM headers, bloom_header(f) h, bloom_info(f) i;
CREATE TABLE compressed (f bloom);
ALTER TABLE compressed ALTER f SET STORAGE EXTENDED;
INSERT INTO compressed SELECT f | bloom_empty() FROM headers;
INSERT INTO compressed SELECT (bloom_empty(8000) | bloom_empty(32000)) | bloom_empty(4096000);
SELECT count(*) FILTER (WHERE pg_column_size(f) < bytes) > 0 AS some_compressed,
    count(*) FILTER (WHERE bytes <> octet_length(f::bytea)) AS other_length FROM compressed, bloom_header(f);

RESET pg_bloom.overfill;
DROP TABLE lists, bits, headers, compressed;
