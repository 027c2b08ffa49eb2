-- What is in a filter: estimates against the truth.
SET pg_bloom.overfill = ignore;
CREATE TABLE filters AS
SELECT layout, name, n, f FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, LATERAL (VALUES
    ('empty', 0, bloom_empty(10000, 0.01, layout)),
    ('sparse', 20, (SELECT bloom_agg(i, 10000, 0.01, layout) FROM generate_series(1, 20) i)),
    ('half', 5000, (SELECT bloom_agg(i, 10000, 0.01, layout) FROM generate_series(1, 5000) i)),
    ('full', 10000, (SELECT bloom_agg(i, 10000, 0.01, layout) FROM generate_series(1, 10000) i)),
    ('overfull', 30000, (SELECT bloom_agg(i, 10000, 0.01, layout) FROM generate_series(1, 30000) i)),
    ('spread', 10000, (SELECT bloom_agg(i, 10000, 0.01, layout)
        FROM generate_series(1, 10000) i) | bloom_empty(80000, 0.01, layout))
) v (name, n, f);

-- bloom_info, column by column.
\x on
SELECT i.* FROM bloom_info(bloom_from_array(ARRAY['a', 'b'], 1000)) i;
SELECT i.* FROM bloom_info(bloom_empty()) i;
SELECT format_version, i.layout, key_kind, representation, capacity, target_fpr, num_bits, num_hashes, saturated,
    bytes FROM filters, bloom_info(f) i WHERE filters.layout = 'parquet' AND name = 'full';
\x off
-- It agrees with the functions, the bytes and itself.
SELECT count(*), bool_and(i.layout = filters.layout) AS layout,
    bool_and(i.cardinality = bloom_cardinality(f)) AS cardinality, bool_and(i.current_fpr = bloom_fpr(f)) AS fpr,
    bool_and(i.bytes = octet_length(f::bytea)) AS bytes,
    bool_and(i.fill_ratio = i.bits_set::float8 / i.num_bits) AS fill_ratio,
        bool_and(i.saturated = (i.bits_set = i.num_bits)) AS saturated,
        bool_and((i.key_kind IS NULL) = (n = 0)) AS key_kind
FROM filters, bloom_info(f) i;
-- bits_set is the number of ones after the header; of a sparse filter, that of its dense form. Spread over so many
-- times its blocks, a filter has so many times the ones.
CREATE FUNCTION ones(bytes bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT sum(length(replace(get_byte(bytes, i)::bit(8)::text, '0', '')))
        FROM generate_series(44, octet_length(bytes) - 1) i
$$;
SELECT layout, name, bits_set = ones(f::bytea) AS dense, (SELECT ones((f | bloom_empty(80000, 0.01,
    filters.layout))::bytea)) / bits_set AS times_spread
FROM filters, LATERAL (SELECT bits_set FROM bloom_info(f)) i WHERE name IN ('half', 'full', 'overfull')
    ORDER BY layout, n;
SELECT layout, bits_set, q AS times, ones(spread::bytea) = q * bits_set AS sparse
FROM filters, LATERAL (SELECT bits_set, num_bits FROM bloom_info(f)) i,
    LATERAL (SELECT f | bloom_empty(40000, 0.01, filters.layout) AS spread) s,
    LATERAL (SELECT (bloom_info(spread)).num_bits / num_bits AS q) q
WHERE name = 'sparse' ORDER BY layout;

-- bloom_cardinality is exact for a sparse filter and within 2 % here; spreading a filter changes nothing about it.
SELECT layout, name, n, CASE WHEN n < 100 THEN bloom_cardinality(f) = n
    ELSE abs(bloom_cardinality(f) / n - 1) < 0.02 END AS right FROM filters ORDER BY layout, name;
SELECT a.layout, bloom_cardinality(a.f) = bloom_cardinality(b.f) AS same FROM filters a JOIN filters b USING (layout)
    WHERE a.name = 'full' AND b.name = 'spread' ORDER BY 1;
SELECT bloom_cardinality(bloom_empty()) AS nothing, bloom_cardinality(bloom_agg(i, 2, 0.1, 'classic')) AS full
    FROM generate_series(1, 1000) i;

-- bloom_fpr is the rate that probing shows: 20,000 absent elements, five standard errors. For a sparse filter it
-- is n / 2^64.
SELECT layout, name, found = 0 AS none,
    abs(found / 20000.0 - bloom_fpr(f)) <= 5 * sqrt(bloom_fpr(f) / 20000) AS as_measured,
    bloom_fpr(f) > (bloom_info(f)).target_fpr * 1.1 AS over_target
FROM filters, LATERAL (SELECT count(*) AS found FROM generate_series(1, 20000) i WHERE f @> -i) p
    ORDER BY layout, name;
SELECT layout, bloom_fpr(f) = 20 / power(2::float8, 64) AS sparse FROM filters WHERE name = 'sparse' ORDER BY layout;
-- It is the mean over blocks of fill^k, here computed from the bytes of a blocked filter.
SELECT abs(bloom_fpr(f) / (SELECT avg(power(ones('\x' || decode(repeat('00', 44), 'hex') || substr(f::bytea,
    45 + b::int * 64, 64)) / 512.0::float8, num_hashes)) FROM generate_series(0,
    num_bits / 512 - 1) b) - 1) < 1e-9 AS blocked
FROM filters, LATERAL (SELECT num_bits, num_hashes FROM bloom_info(f)) i WHERE layout = 'blocked' AND name = 'full';

-- Two filters: elements in either, elements in both, and their share. Sets of 10,000 that overlap by every tenth;
-- 3 % of the union is the tolerance.
CREATE TABLE pairs AS
SELECT layout, tenths, a, b FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout,
    unnest(ARRAY[0, 1, 5, 9, 10]) tenths,
    LATERAL (SELECT bloom_agg(i, 10000, 0.01, layout) AS a, bloom_agg(i + 10000 - tenths * 1000, 10000, 0.01,
        layout) AS b FROM generate_series(1, 10000) i) s;
SELECT layout, tenths, abs(bloom_union_cardinality(a, b) - (20000 - tenths * 1000)) < 600 AS union,
    abs(bloom_intersection_cardinality(a, b) - tenths * 1000) < 600 AS intersection,
    abs(bloom_jaccard(a, b) - tenths / (20 - tenths)::float8) < 0.05 AS jaccard,
    bloom_union_cardinality(a, b) = bloom_union_cardinality(b, a) AND bloom_intersection_cardinality(a,
        b) = bloom_intersection_cardinality(b, a) AND bloom_jaccard(a, b) = bloom_jaccard(b, a) AS symmetric
FROM pairs ORDER BY layout, tenths;
-- By inclusion and exclusion, not by the bits of a & b, which have many of other elements.
SELECT layout, bloom_cardinality(a & b) > 1000 AS bits_in_common,
    bloom_intersection_cardinality(a, b) < 500 AS elements_in_common FROM pairs WHERE tenths = 0 ORDER BY layout;
-- Sparse ones are counted exactly; filters of different sizes by what they have in common.
SELECT bloom_union_cardinality(a, b) AS union, bloom_intersection_cardinality(a, b) AS intersection,
    bloom_jaccard(a, b) AS jaccard, bloom_jaccard(a, a) AS same, bloom_jaccard(a, c) AS none
FROM (SELECT bloom_from_array(ARRAY[1, 2, 3], 100) AS a, bloom_from_array(ARRAY[3, 4], 100) AS b,
    bloom_from_array(ARRAY[5], 100) AS c) s;
SELECT layout, abs(bloom_union_cardinality(a.f, b.f) / 10000 - 1) < 0.03 AS union,
    abs(bloom_intersection_cardinality(a.f, b.f) / 5000 - 1) < 0.1 AS intersection,
    abs(bloom_jaccard(a.f, b.f) - 0.5) < 0.05 AS jaccard
FROM filters a JOIN (SELECT layout, bloom_agg(i, 80000, 0.01, layout) AS f
    FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, generate_series(1, 10000) i
    GROUP BY layout) b USING (layout) WHERE a.name = 'half' ORDER BY layout;
-- At the ends: empty filters are the same; a full one knows nothing.
SELECT bloom_jaccard(bloom_empty(), bloom_empty()) AS empty, bloom_jaccard(bloom_empty(), f) AS one_empty,
    bloom_union_cardinality(f, bloom_empty()) AS union, bloom_intersection_cardinality(f,
    bloom_empty()) AS intersection
FROM filters WHERE layout = 'blocked' AND name = 'sparse';
SELECT bloom_union_cardinality(f, f) AS union, bloom_intersection_cardinality(f, f) AS intersection,
    bloom_jaccard(f, f) AS jaccard FROM (SELECT bloom_agg(i, 2, 0.1, 'classic') AS f
    FROM generate_series(1, 1000) i) f;

RESET pg_bloom.overfill;
DROP TABLE filters, pairs;
DROP FUNCTION ones;
