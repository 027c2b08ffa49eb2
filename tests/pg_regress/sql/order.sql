-- Aggregates over filters don't depend on the order in which these come, even where two of them can't be merged yet.
SET pg_bloom.overfill = ignore;
-- Sizes of 64, 96 and 192 blocks (classic: 2,048, 3,072 and 6,144 bits): the first two can be merged with the third
-- only.
CREATE TABLE sizes AS
SELECT layout, size,
    bloom_capacity(44 + CASE layout WHEN 'blocked' THEN 64 WHEN 'classic' THEN 4 ELSE 32 END * size, 0.01, layout) AS capacity
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[64, 96, 192]) size;
CREATE TABLE filters AS
SELECT layout, size, form, CASE form
    WHEN 'list' THEN (SELECT bloom_agg(i, capacity, 0.01, layout) FROM generate_series(size, size + 5) i)
    WHEN 'bits' THEN (SELECT bloom_agg(i, capacity, 0.01, layout) FROM generate_series(1, capacity::int) i)
    ELSE bloom_empty(capacity, 0.01, layout) END AS f
FROM sizes, unnest(ARRAY['list', 'bits', 'empty']) form;
SELECT layout, string_agg(DISTINCT (bloom_header(f)).num_bits::text, ' ') AS bits FROM filters GROUP BY layout ORDER BY layout;

-- Every choice of forms, in every order: the filter that | and & give in an order that works.
CREATE TABLE results AS
SELECT layout, x, y, z,
    (SELECT bloom_union_agg(f ORDER BY o) FROM unnest(ARRAY[x, y, z], p) u (f, o)) AS either,
    (SELECT bloom_intersection_agg(f ORDER BY o) FROM unnest(ARRAY[x, y, z], p) u (f, o)) AS "all"
FROM (SELECT a.layout, a.f AS x, b.f AS y, c.f AS z FROM filters a JOIN filters b USING (layout) JOIN filters c USING (layout)
    WHERE (a.size, b.size, c.size) = (64, 96, 192)) s,
    (VALUES (ARRAY[1, 2, 3]), (ARRAY[1, 3, 2]), (ARRAY[2, 1, 3]), (ARRAY[2, 3, 1]), (ARRAY[3, 1, 2]), (ARRAY[3, 2, 1])) v (p);
SELECT layout, count(*), count(*) FILTER (WHERE either <> z | x | y) AS other_union, count(*) FILTER (WHERE "all" <> z & x & y)
    AS other_intersection, count(DISTINCT either) AS unions
FROM results GROUP BY layout ORDER BY layout;

-- Without the third there is an error that names the two, and a capacity that would have fitted.
\x on
SELECT aggregate, state, message, detail, hint FROM unnest(ARRAY['bloom_union_agg', 'bloom_intersection_agg']) aggregate,
    failure(format('SELECT %s(f ORDER BY size) FROM filters WHERE layout = ''blocked'' AND form = ''bits'' AND size < 192', aggregate));
-- What no size can fix is an error at once: another layout, other hashes, another kind.
SELECT aggregate, state, message, detail FROM unnest(ARRAY['bloom_union_agg', 'bloom_intersection_agg']) aggregate,
    unnest(ARRAY['bloom_empty(100, 0.01, ''classic'')', 'bloom_empty(100, 0.0001)', 'bloom_empty(100) || ''a''']) other,
    failure(format('SELECT %s(f) FROM (VALUES (bloom_empty(100) || 1), (%s)) v (f)', aggregate, other));
\x off

-- As a window, each frame for itself.
SELECT size, bloom_union_agg(f) OVER w = f AS one, bloom_intersection_agg(f) OVER w = f AS of_one
FROM filters WHERE layout = 'blocked' AND form = 'bits' WINDOW w AS (ORDER BY size ROWS CURRENT ROW) ORDER BY size;
SELECT size, bloom_contains_all(bloom_union_agg(f) OVER w, ARRAY(SELECT generate_series(1, 100))) AS found
FROM filters WHERE layout = 'blocked' AND form = 'bits' AND size <> 96
WINDOW w AS (ORDER BY size ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) ORDER BY size;

-- Nothing, and filters of no size.
SELECT bloom_union_agg(f) = bloom_empty() AS nothing, bloom_intersection_agg(f) IS NULL AS none FROM filters WHERE size = 0;
SELECT bloom_union_agg(f) = bloom_empty(NULL, 0.02, 'classic') AS no_size FROM
    (VALUES (bloom_empty()), (bloom_empty(NULL, 0.02, 'classic'))) v (f);
SELECT bloom_union_agg(g) = f AS identity, bloom_intersection_agg(g) = f & bloom_empty() AS absorbed
FROM filters, LATERAL (VALUES (f), (bloom_empty()), (NULL)) v (g) WHERE layout = 'parquet' AND size = 96 AND form = 'bits' GROUP BY f;

RESET pg_bloom.overfill;
DROP TABLE sizes, filters, results;
