-- Estimates against the truth: within 2 % from a tenth to one and a half of a capacity of 100,000, and exact when
-- sparse.
SET pg_bloom.overfill = ignore;
CREATE TABLE counts AS
SELECT layout, n, f FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout,
    unnest(ARRAY[0, 1, 1000, 10000, 25000, 50000, 75000, 100000, 125000, 150000]) n,
    LATERAL (SELECT bloom_agg(i, 100000, 0.01, layout) AS f FROM generate_series(1, n) i) s;
SELECT counts.layout, count(*), count(*) FILTER (WHERE abs(bloom_cardinality(f) - n) > 0.02 * n) AS wrong,
    count(*) FILTER (WHERE representation = 'sparse') AS sparse,
    count(*) FILTER (WHERE representation = 'sparse' AND bloom_cardinality(f) = n) AS exact
FROM counts, bloom_info(f) GROUP BY counts.layout ORDER BY counts.layout;

-- Right after merges across sizes: any two and any three of these, by operator and by aggregate.
CREATE TABLE parts AS
SELECT layout, capacity, first, last, f FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout,
    (VALUES (25000, 1, 20000), (50000, 10001, 40000), (100000, 30001, 45000), (200000, 1, 100), (400000, 5001, 30000))
        v (capacity, first, last),
    LATERAL (SELECT bloom_agg(i, capacity, 0.01, layout) AS f FROM generate_series(first, last) i) s;
CREATE FUNCTION distinct_of(VARIADIC parts parts[]) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(DISTINCT i) FROM unnest(parts) p, generate_series(p.first, p.last) i
$$;
SELECT a.layout, count(*), count(*) FILTER (WHERE abs(bloom_cardinality(a.f | b.f) / truth - 1) > 0.02) AS wrong
FROM parts a JOIN parts b ON a.layout = b.layout AND a.capacity < b.capacity, distinct_of(a, b) truth
GROUP BY a.layout ORDER BY a.layout;
SELECT a.layout, count(*), count(*) FILTER (WHERE abs(bloom_cardinality(a.f | b.f | c.f) / truth - 1) > 0.02) AS wrong,
    count(*) FILTER (WHERE bloom_cardinality(c.f | a.f | b.f) <> bloom_cardinality(a.f | b.f | c.f)) AS by_order
FROM parts a JOIN parts b ON a.layout = b.layout AND a.capacity < b.capacity
    JOIN parts c ON a.layout = c.layout AND b.capacity < c.capacity, distinct_of(a, b, c) truth
GROUP BY a.layout ORDER BY a.layout;
SELECT layout, abs(bloom_cardinality(bloom_union_agg(f)) / 45000 - 1) < 0.02 AS all_of_them
FROM parts GROUP BY layout ORDER BY layout;
-- Filters built without a capacity have sizes of their own, and merge as well.
SELECT layout, abs(bloom_cardinality(bloom_union_agg(f)) / 45000 - 1) < 0.02 AS unsized
FROM (SELECT layout, (SELECT bloom_agg(i, NULL, 0.01, layout) FROM generate_series(first, last) i) AS f
    FROM parts WHERE first <> 1 OR last > 100) s GROUP BY layout ORDER BY layout;

-- A merge with a much smaller filter that holds little takes nothing away: what was known stays known.
SELECT layout, n, count(*), count(*) FILTER (WHERE abs(bloom_cardinality(f | small) / n - 1) > 0.02) AS wrong,
    count(*) FILTER (WHERE bloom_intersection_cardinality(f, small) = 'NaN') AS unknown_intersections
FROM counts, unnest(ARRAY[50000, 25000, 12500, 6250, 3125]) capacity, unnest(ARRAY[0, 1, 3]) held,
    LATERAL (SELECT bloom_empty(capacity, 0.01, layout) | bloom_agg(i, capacity, 0.01, layout) AS small
        FROM generate_series(1, held) i) s
WHERE n IN (50000, 100000) GROUP BY layout, n ORDER BY layout, n;

-- Intersections and the Jaccard index, within the error that the reference states: for u elements in the union, half
-- the root of u up to capacity and the root of u up to twice of it; here up to four standard errors.
SELECT a.layout, count(*), count(*) FILTER (WHERE abs(u - truth) > 4 * error) AS wrong_unions,
    count(*) FILTER (WHERE abs(i - both_truth) > 4 * error) AS wrong_intersections,
    count(*) FILTER (WHERE abs(j - both_truth / truth) > 4 * error / truth) AS wrong_indexes
FROM counts a JOIN LATERAL (SELECT shift, bloom_agg(i + shift, 100000, 0.01, a.layout) AS f
        FROM unnest(ARRAY[0, 500, 25000, 50000, 100000]) shift, generate_series(1, a.n) i GROUP BY shift) b ON true,
    LATERAL (SELECT (n + least(shift, n))::float8 AS truth, greatest(n - shift, 0)::float8 AS both_truth) t,
    LATERAL (SELECT sqrt(truth) * CASE WHEN truth <= 100000 THEN 0.5 ELSE 1 END AS error) e,
    bloom_union_cardinality(a.f, b.f) u, bloom_intersection_cardinality(a.f, b.f) i, bloom_jaccard(a.f, b.f) j
WHERE n IN (25000, 50000, 100000) GROUP BY a.layout ORDER BY a.layout;

-- A saturated filter says so, and makes saturated unions; there is nothing to tell an intersection from.
SELECT i.layout, saturated, cardinality, fill_ratio, current_fpr, bloom_union_cardinality(f, other) AS union,
    bloom_intersection_cardinality(f, other) AS intersection, bloom_jaccard(f, other) AS jaccard
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout,
    LATERAL (SELECT bloom_agg(i, 10, 0.1, layout) AS f FROM generate_series(1, 50000) i) s,
    LATERAL (SELECT bloom_from_array(ARRAY[1], 10, 0.1, layout) AS other) o, bloom_info(f) i ORDER BY i.layout;

RESET pg_bloom.overfill;
DROP FUNCTION distinct_of;
DROP TABLE counts, parts;
