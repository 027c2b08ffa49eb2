-- Merging filters: union is a commutative, idempotent monoid with bloom_empty() as its identity, bit for bit.
SET pg_bloom.overfill = ignore;

-- For each layout filters of sizes that may be merged, of many fills: sparse, dense, over capacity, spread, folded,
-- intersected; with and without a size. "1000" is what 1,280 bytes of bits hold, which is about that, and so on: sizes
-- that divide in all layouts.
CREATE TABLE filters AS
SELECT layout, name, lo, hi, f
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, LATERAL (SELECT bloom_capacity(44 + 1280, 0.01, layout) AS c1,
    bloom_capacity(44 + 2560, 0.01, layout) AS c2, bloom_capacity(44 + 5120, 0.01, layout) AS c4,
    bloom_capacity(44 + 10240, 0.01, layout) AS c8) c, LATERAL (VALUES
    ('empty', 1, 0, bloom_empty()),
    ('empty 1000', 1, 0, bloom_empty(c1, 0.01, layout)),
    ('empty 4000', 1, 0, bloom_empty(c4, 0.01, layout)),
    ('sparse 1000', 1, 10, (SELECT bloom_agg(i, c1, 0.01, layout) FROM generate_series(1, 10) i)),
    ('sparse 1000, another', 6, 20, (SELECT bloom_agg(i, c1, 0.01, layout) FROM generate_series(6, 20) i)),
    ('sparse 4000', 11, 30, (SELECT bloom_agg(i, c4, 0.01, layout) FROM generate_series(11, 30) i)),
    ('nearly dense 1000', 1, 150, (SELECT bloom_agg(i, c1, 0.01, layout) FROM generate_series(1, 150) i)),
    ('dense 1000', 1, 1000, (SELECT bloom_agg(i, c1, 0.01, layout) FROM generate_series(1, 1000) i)),
    ('dense 2000', 501, 2500, (SELECT bloom_agg(i, c2, 0.01, layout) FROM generate_series(501, 2500) i)),
    ('overfull 1000', 1, 3000, (SELECT bloom_agg(i, c1, 0.01, layout) FROM generate_series(1, 3000) i)),
    ('spread', 1, 1000, (SELECT bloom_agg(i, c1, 0.01, layout)
        FROM generate_series(1, 1000) i) | bloom_empty(c4, 0.01, layout)),
    ('dense 8000', 2000, 9999, (SELECT bloom_agg(i, c8, 0.01, layout) FROM generate_series(2000, 9999) i))
) v (name, lo, hi, f);
SELECT layout, count(*), count(DISTINCT f), count(*) FILTER (WHERE (bloom_info(f)).representation = 'dense') AS dense,
    count(DISTINCT (bloom_info(f)).num_bits) AS sizes
FROM filters GROUP BY layout ORDER BY layout;

-- Commutative, idempotent, with an identity: both operations, by function and by operator.
SELECT a.layout, count(*) AS pairs,
    count(*) FILTER (WHERE a.f | b.f <> b.f | a.f) AS union_not_commutative,
        count(*) FILTER (WHERE a.f & b.f <> b.f & a.f) AS intersection_not_commutative,
    count(*) FILTER (WHERE a.f | b.f <> bloom_union(a.f, b.f) OR a.f & b.f <> bloom_intersection(a.f,
        b.f)) AS operators_differ,
    count(*) FILTER (WHERE (a.f | b.f) | b.f <> a.f | b.f OR (a.f & b.f) & b.f <> a.f & b.f) AS again_changes
FROM filters a JOIN filters b USING (layout) GROUP BY a.layout ORDER BY a.layout;
SELECT count(*), count(*) FILTER (WHERE f | f <> f) AS union_not_idempotent,
    count(*) FILTER (WHERE f & f <> f) AS intersection_not_idempotent,
    count(*) FILTER (WHERE f | bloom_empty() <> f OR bloom_empty() | f <> f) AS no_identity,
    count(*) FILTER (WHERE bloom_cardinality(f & bloom_empty()) <> 0) AS not_absorbed
FROM filters;
-- Associative, over all triples.
SELECT a.layout, count(*) AS triples,
    count(*) FILTER (WHERE (a.f | b.f) | c.f <> a.f | (b.f | c.f)) AS union_not_associative,
    count(*) FILTER (WHERE (a.f & b.f) & c.f <> a.f & (b.f & c.f)) AS intersection_not_associative
FROM filters a JOIN filters b USING (layout) JOIN filters c USING (layout) GROUP BY a.layout ORDER BY a.layout;

-- No element is lost: what is in one of them is in the union, what is in both in the intersection. And not
-- everything else is in them.
SELECT layout, count(*) FILTER (WHERE i BETWEEN 1 AND 9999 AND NOT u @> i) AS missing_in_union,
    count(*) FILTER (WHERE i BETWEEN 2000 AND 2500 AND NOT n @> i) AS missing_in_intersection,
    count(*) FILTER (WHERE i > 9999 AND u @> i) BETWEEN 1 AND 4000 AS union_absent,
        count(*) FILTER (WHERE i NOT BETWEEN 2000 AND 2500 AND n @> i) BETWEEN 1 AND 1000 AS intersection_absent
FROM (SELECT layout, bloom_union_agg(f) AS u FROM filters WHERE hi < 3000 OR name = 'dense 8000' GROUP BY layout) u
    JOIN (SELECT a.layout, a.f & b.f AS n FROM filters a JOIN filters b USING (layout)
        WHERE a.name = 'dense 2000' AND b.name = 'dense 8000') n USING (layout),
    generate_series(1, 20000) i
GROUP BY layout ORDER BY layout;
SELECT count(*) AS pairs, sum((SELECT count(*) FROM generate_series(a.lo, a.hi) i
    WHERE NOT (a.f | b.f) @> i)) AS missing_of_first,
    sum((SELECT count(*) FROM generate_series(greatest(a.lo, b.lo), least(a.hi, b.hi)) i
        WHERE NOT (a.f & b.f) @> i)) AS missing_of_both
FROM filters a JOIN filters b USING (layout) WHERE a.hi <= 1000 AND b.hi <= 2500;

-- A result is sparse only where both are, at one size.
SELECT a.name AS a, b.name AS b, (bloom_info(a.f | b.f)).representation AS union,
    (bloom_info(a.f & b.f)).representation AS intersection
FROM filters a JOIN filters b USING (layout) WHERE layout = 'blocked' AND a.name < b.name
    AND a.name || b.name ~ '^(sparse (1|4)000|nearly dense 1000|sparse 1000, another){2}$' ORDER BY 1, 2;
-- The header is that of the larger.
SELECT name, summary(f | (SELECT f FROM filters WHERE name = 'dense 2000' AND layout = 'classic')) FROM filters
    WHERE layout = 'classic' AND name IN ('empty', 'sparse 1000', 'dense 8000') ORDER BY name;
SELECT summary(bloom_empty(1000, 0.010) | bloom_empty(999, 0.01)) AS by_capacity,
    summary(bloom_empty(5000, 0.01) & bloom_empty(10000, 0.01)) AS by_size;

-- The aggregates are the operators, in any order, and skip NULLs.
CREATE FUNCTION union_of(VARIADIC filters bloom[]) RETURNS bloom LANGUAGE plpgsql AS $$
DECLARE
    f bloom;
    result bloom := bloom_empty();
BEGIN
    FOREACH f IN ARRAY filters LOOP result := result | f; END LOOP;
    RETURN result;
END $$;
SELECT layout, bloom_union_agg(f ORDER BY name) = union_of(VARIADIC array_agg(f ORDER BY name)) AS union,
    bloom_union_agg(f ORDER BY md5(name)) = bloom_union_agg(f
        ORDER BY name DESC) AS any_order, bloom_union_agg(DISTINCT f) = bloom_union_agg(f) AS "distinct",
    bloom_intersection_agg(f ORDER BY name) = bloom_intersection_agg(f ORDER BY md5(name)) AS intersection_any_order,
    bloom_union_agg(f) = bloom_union_agg(f) FILTER (WHERE name <> 'dense 8000') AS depends_on_all
FROM filters GROUP BY layout ORDER BY layout;
SELECT layout, bloom_intersection_agg(f) = (SELECT a.f & b.f & c.f FROM filters a, filters b, filters c
    WHERE (a.layout, b.layout, c.layout) = (layouts.layout, layouts.layout, layouts.layout)
        AND (a.name, b.name, c.name) = ('dense 1000', 'dense 2000', 'overfull 1000')) AS three
FROM filters layouts WHERE name IN ('dense 1000', 'dense 2000', 'overfull 1000') GROUP BY layout ORDER BY layout;
-- Over windows as well.
SELECT count(*), bool_and(f = (SELECT bloom_union_agg(g.f) FROM filters g
    WHERE g.layout = w.layout AND g.name <= w.name)) AS same
FROM (SELECT layout, name, bloom_union_agg(f) OVER (PARTITION BY layout ORDER BY name) AS f FROM filters) w;

-- With a capacity, the union over any partition of a set is the build over the whole: sparse, dense and in
-- between; serial here, in parallel below.
CREATE TABLE elements AS SELECT i, md5(i::text) AS t FROM generate_series(1, 6000) i;
SELECT layout, capacity, parts, bloom_union_agg(f) = (SELECT bloom_agg(t, capacity, 0.01, layout)
    FROM elements) AS same, bloom_union_agg(f) FILTER (WHERE part > 0) = (SELECT bloom_agg(t, capacity, 0.01, layout)
    FROM elements) AS without_one
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[2000, 6000, 50000, 1000000]) capacity,
    unnest(ARRAY[2, 7, 100]) parts,
    LATERAL (SELECT i % parts AS part, bloom_agg(t, capacity, 0.01, layout) AS f FROM elements GROUP BY 1) p
GROUP BY layout, capacity, parts ORDER BY layout, capacity, parts;
-- Elements may be in several parts.
SELECT bloom_union_agg(f) = (SELECT bloom_agg(t, 6000) FROM elements) AS overlapping
    FROM (SELECT bloom_agg(t, 6000) AS f FROM elements, generate_series(0, 4) part
    WHERE i BETWEEN part * 1000 AND part * 1000 + 2000 GROUP BY part) p;
-- Without a capacity sizes are powers of two, and so always merge. (Small ones fill a larger one as much as they
-- are full themselves.)
SELECT layout, count(DISTINCT (bloom_info(f)).num_bits) > 3 AS many_sizes, (SELECT count(*) FROM elements
    WHERE i <= 4095 AND NOT bloom_union_agg(f) @> i) AS missing, (SELECT count(*) FROM elements
    WHERE bloom_union_agg(f) @> -i) BETWEEN 1 AND 5999 AS absent_ones_found
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, generate_series(0, 11) n,
    LATERAL (SELECT bloom_agg(i, NULL, 0.01, layout) AS f FROM elements WHERE i BETWEEN 2 ^ n AND 2 ^ (n + 1) - 1) b
GROUP BY layout ORDER BY layout;
-- Capacities in the ratio of a power of two always merge from 64 blocks up, in classic from 1,024 bits.
SELECT layout, count(*), count(*)
    FILTER (WHERE outcome(format('SELECT bloom_cardinality(bloom_empty(%s, %s, %L) | bloom_empty(%s, %s, %L))', n,
    rate, layout, n * 2 ^ e, rate, layout)) <> '0') AS refused
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[8000, 9999, 12345, 99999, 123456]) n,
    generate_series(1, 6) e, unnest(ARRAY[0.1, 0.01, 0.001]) rate
GROUP BY layout ORDER BY layout;

-- In parallel.
CREATE TABLE parts AS SELECT i % 50 AS part, bloom_agg(t, 6000, 0.01, 'classic') AS c, bloom_agg(t, 100000) AS b,
    bloom_agg(t) AS unsized FROM elements GROUP BY 1;
CREATE TABLE serial AS SELECT bloom_union_agg(c) AS c, bloom_union_agg(b) AS b, bloom_union_agg(unsized) AS unsized,
    bloom_intersection_agg(b) AS n FROM parts;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT plan_has('Gather', 'SELECT bloom_union_agg(c), bloom_intersection_agg(b) FROM parts') AS parallel;
SELECT s.c = p.c AS classic, s.b = p.b AS blocked, s.unsized = p.unsized AS unsized, s.n = p.n AS intersection,
    s.c = (SELECT bloom_agg(t, 6000, 0.01, 'classic') FROM elements) AS whole
FROM serial s, (SELECT bloom_union_agg(c) AS c, bloom_union_agg(b) AS b, bloom_union_agg(unsized) AS unsized,
    bloom_intersection_agg(b) AS n FROM parts) p;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;

-- bloom_fold halves a filter while its present rate stays at or under the one given, and loses nothing.
CREATE TABLE folds AS
SELECT layout, rate, f, bloom_fold(f, rate) AS folded
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[0.001, 0.01, 0.1, 0.5]) rate,
    LATERAL (SELECT bloom_agg(i, 32000, 0.001, layout) AS f FROM generate_series(1, 5000) i) b;
SELECT layout, rate, (bloom_info(f)).num_bits / (bloom_info(folded)).num_bits AS times,
    bloom_fpr(folded) <= rate AS kept, octet_length(folded::bytea) < octet_length(f::bytea) AS smaller,
    (SELECT count(*) FROM generate_series(1, 5000) i WHERE NOT folded @> i) AS missing,
        bloom_fold(folded, rate) = folded AS again, abs(bloom_cardinality(folded) / 5000 - 1) < 0.1 AS cardinality
FROM folds ORDER BY layout, rate;
-- One more half would be too much: the rate of a filter folded by hand, that is, built at the next smaller size
-- from the same elements.
SELECT layout, rate, bloom_expected_fpr(5000, (bloom_info(folded)).num_bits / 2, (bloom_info(folded)).num_hashes,
    layout) > rate * 0.9 AS no_further
FROM folds WHERE (bloom_info(folded)).representation = 'dense'
    AND (bloom_info(folded)).num_bits / 2 / CASE layout WHEN 'blocked' THEN 512 WHEN 'parquet' THEN 256
    ELSE 1 END % 2 = 0 ORDER BY layout, rate;
-- A filter folded back from a larger size is the one built at the smaller: spreading and folding are inverse.
SELECT count(*), count(*) FILTER (WHERE substr((bloom_fold(a.f | b.f, bloom_fpr(a.f) * 1.0000001))::bytea,
    45) = substr(a.f::bytea, 45)) AS same_bits
FROM filters a JOIN filters b USING (layout) WHERE a.name = 'dense 1000' AND b.name = 'empty 4000';
-- What is full, or below the rate already, stays as it is.
SELECT bloom_fold(f, 0.001) = f AS full_already, bloom_fold(bloom_empty(), 0.5) = bloom_empty() AS nothing
    FROM filters WHERE name = 'overfull 1000' AND layout = 'blocked';

RESET pg_bloom.overfill;
DROP TABLE filters, elements, parts, serial, folds;
DROP FUNCTION union_of;
