-- How large a filter is: the lookup table, and what bloom_agg allocates.

-- The table's answers to well-known questions. They are those of ClickHouse wherever ClickHouse is right; it has
-- no answer of its own for 0.225 and for anything below 1.09e-4.
SELECT rate, b.* FROM unnest(ARRAY[0.5, 0.4, 0.25, 0.225, 0.15, 0.1, 0.025, 0.01, 0.001, 0.0005, 0.0001, 1e-6,
    1e-9]) rate, bloom_best_practices(rate) b;
SELECT layout, b.* FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, bloom_best_practices(0.01, layout) b;
SELECT bits_per_element, num_hashes, fpr FROM bloom_sizing_table() WHERE bits_per_element IN (2, 3, 8) ORDER BY 1, 2;
-- Rows are whole bits per element without a gap, columns hash counts (parquet has eight always), down to 1e-9
-- (parquet 1e-6).
SELECT layout, count(DISTINCT bits_per_element) = max(bits_per_element) - min(bits_per_element) + 1 AS no_gap,
    min(bits_per_element) AS first_row, min(num_hashes) AS min_hashes,
    min(fpr) <= CASE layout WHEN 'parquet' THEN 1e-6 ELSE 1e-9 END AS reaches,
        count(*) = count(DISTINCT (bits_per_element, num_hashes)) AS one_cell_each
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, bloom_sizing_table(layout) GROUP BY layout
    ORDER BY layout;
SELECT count(*) = (SELECT count(*) FROM bloom_sizing_table('classic')) AS classic_by_default
    FROM bloom_sizing_table();
-- The cells, at three significant digits: in "classic" the textbook's formula, in the others the exact rate of a
-- large filter.
SELECT count(*) > 500 AS many, count(*) FILTER (WHERE abs(fpr / power(1 - exp(-num_hashes / bits_per_element::float8),
    num_hashes) - 1) > 0.00501) AS wrong FROM bloom_sizing_table('classic');
SELECT layout, count(*) FILTER (WHERE abs(fpr / bloom_expected_fpr(50000000, 50000000::bigint * bits_per_element,
    num_hashes, layout) - 1) > 0.00502) AS wrong
FROM unnest(ARRAY['blocked', 'parquet']) layout, bloom_sizing_table(layout) WHERE bits_per_element % 5 = 0
    GROUP BY layout ORDER BY layout;
-- The answer is the smallest row that meets the rate, and in it the smallest hash count that does. (Two bits have
-- 0.400 with two hashes and 0.393 with one: there two are taken, as ClickHouse does.)
CREATE TABLE cells AS SELECT layout, c.* FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout,
    bloom_sizing_table(layout) c;
SELECT layout, count(*) AS rates, count(*) FILTER (WHERE (b.bits_per_element, b.num_hashes, b.fpr) IS DISTINCT
    FROM (s.bits_per_element, s.num_hashes, s.fpr)) AS wrong, count(*) FILTER (WHERE b.fpr > rate) AS not_met
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, (SELECT 0.399 * power(10::float8, -i / 30.0) AS rate
    FROM generate_series(0, 167) i OFFSET 0) r, bloom_best_practices(rate, layout) b,
    LATERAL (SELECT bits_per_element, num_hashes, fpr FROM cells WHERE cells.layout = layout.layout AND fpr <= rate
        ORDER BY bits_per_element, num_hashes LIMIT 1) s
GROUP BY layout ORDER BY layout;

-- bloom_expected_fpr is exact: small cases by hand, counting all ways that the throws can fall.
SELECT what, got, abs(got - truth) < 1e-15 AS exact FROM (VALUES
    (1, 'no elements', bloom_expected_fpr(0, 1000, 5), 0),
    (2, 'one element, one hash', bloom_expected_fpr(1, 8, 1), 1 / 8.0),
    (3, 'two throws into two bits', bloom_expected_fpr(2, 2, 1), (1 + 2) / 2.0 / 2),
    (4, 'two hashes, two bits', bloom_expected_fpr(1, 2, 2), 0.5 * 0.25 + 0.5 * 1),
    (5, 'one bit', bloom_expected_fpr(1, 1, 3), 1),
    (6, 'one block', bloom_expected_fpr(1, 512, 1, 'blocked'), 1 / 512.0),
    (7, 'two blocks', bloom_expected_fpr(1, 1024, 1, 'blocked'), 0.5 / 512.0),
    (8, 'a parquet block', bloom_expected_fpr(1, 256, 8, 'parquet'), power(1 / 32.0, 8)),
    (9, 'two parquet blocks', bloom_expected_fpr(1, 512, 8, 'parquet'), 0.5 * power(1 / 32.0, 8))
) v (i, what, got, truth) ORDER BY i;
-- Larger ones lie above the textbook formula, by as much as it is too kind: for many bits hardly.
SELECT bloom_expected_fpr(100, 1000, 7) / power(1 - exp(-0.7), 7) BETWEEN 1.001 AND 1.05 AS small,
    bloom_expected_fpr(10000000, 100000000, 7) / power(1 - exp(-0.7), 7) BETWEEN 1 AND 1.0001 AS large,
    bloom_expected_fpr(10000000, 100000000, 7, 'blocked') / power(1 - exp(-0.7), 7) BETWEEN 1.05 AND 1.5 AS blocked,
        bloom_expected_fpr(1000000000, 1000000, 5) AS overfull;

-- bloom_parameters is what bloom_agg allocates: compared with filters that were filled until they were dense.
SET pg_bloom.overfill = ignore;
SELECT layout, count(*), count(*) FILTER (WHERE (bloom_info(f)).representation <> 'dense') AS not_dense,
    count(*) FILTER (WHERE p.num_bits <> (bloom_info(f)).num_bits
        OR p.num_hashes <> (bloom_info(f)).num_hashes) AS other_size,
    count(*) FILTER (WHERE p.bytes <> octet_length(f::bytea) OR p.bytes <> (bloom_info(f)).bytes) AS other_bytes,
        count(*) FILTER (WHERE p.fpr > rate) AS rate_not_kept,
    count(*) FILTER (WHERE abs(p.fpr / bloom_expected_fpr(n, p.num_bits, p.num_hashes,
        layout) - 1) > 1e-9) AS other_rate
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[0.1, 0.01, 0.0001]) rate,
    unnest(ARRAY[1, 7, 50, 100, 333, 1000, 4321, 20000]) n, bloom_parameters(n, rate, layout) p,
    LATERAL (SELECT bloom_agg(i, n, rate, layout) AS f FROM generate_series(1, p.bytes / 8 + 1) i) b
GROUP BY layout ORDER BY layout;
RESET pg_bloom.overfill;
-- Its defaults are theirs.
SELECT bloom_parameters(1000) = bloom_parameters(1000, 0.01, 'blocked') AS defaults,
    (bloom_parameters(1000)).bytes AS bytes;

-- Bits an element, at 100 million elements: the least that a layout needs, and at most 1.6 % more; for rates from
-- 0.1 to the smallest.
SELECT layout, rate, p.num_hashes, p.num_bits / 1e8 / least BETWEEN 0.9995 AND 1.0165 AS bits, p.fpr <= rate AS kept
    FROM (VALUES
    ('blocked', 0.01, 9.92), ('blocked', 0.001, 15.55), ('blocked', 0.0001, 22.03), ('blocked', 1e-6, 38.8),
    ('classic', 0.01, 9.59), ('classic', 0.001, 14.38), ('classic', 0.0001, 19.17), ('classic', 1e-6, 28.76),
    ('parquet', 0.01, 10.53), ('parquet', 0.001, 16.89), ('parquet', 0.0001, 26.34), ('parquet', 1e-6, 64.7)
) v (layout, rate, least), bloom_parameters(100000000, rate, layout) p ORDER BY layout, rate DESC;
SELECT p.num_hashes, round(p.num_bits / 1e8) AS bits FROM bloom_parameters(100000000, 1e-9, 'blocked') p;

-- From 64 blocks up (in classic from 1,024 bits) the size is within 2 % of the least that keeps the promise: with 2 %
-- less it would be broken. Below, one block less would break it.
CREATE TABLE sizes AS
SELECT layout, rate, n, p.num_bits, p.num_hashes, p.bytes, p.fpr,
    CASE layout WHEN 'blocked' THEN 512 WHEN 'parquet' THEN 256 ELSE 1 END AS block
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[0.1, 0.025, 0.01, 0.001, 1e-6]) rate,
    (SELECT DISTINCT (power(1.37, i) * 10)::bigint AS n FROM generate_series(0, 50) i) n,
        bloom_parameters(n, rate, layout) p;
ALTER TABLE sizes ADD least bigint, ADD fewer bigint;
UPDATE sizes SET least = CASE layout WHEN 'classic' THEN 1024 ELSE 64 * block END;
UPDATE sizes SET fewer = CASE WHEN num_bits >= least THEN (num_bits * 0.98)::bigint ELSE num_bits - block END;
SELECT layout, num_bits < least AS small, count(*), max(n) AS up_to, count(*) FILTER (WHERE fpr > rate) AS broken,
    count(*) FILTER (WHERE fewer > 0 AND bloom_expected_fpr(n, greatest(fewer, block), num_hashes, layout) <= rate) AS too_large
FROM sizes WHERE n < 10000000 GROUP BY 1, 2 ORDER BY 1, 2;
-- A larger capacity never has a smaller size.
SELECT layout, rate, count(*), count(*) FILTER (WHERE bytes < before) AS smaller
FROM (SELECT layout, rate, p.bytes, lag(p.bytes) OVER (PARTITION BY layout, rate ORDER BY n) AS before
    FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[0.5, 0.01, 1e-6]) rate,
        generate_series(1, 3000) n, bloom_parameters(n, rate, layout) p) s
GROUP BY layout, rate ORDER BY layout, rate;
-- Whatever the size: the promise is kept.
SELECT layout, count(*), min(n) AS from, max(n) AS up_to, count(*) FILTER (WHERE fpr > rate) AS broken FROM sizes
    GROUP BY layout ORDER BY layout;
-- Capacities in the ratio of a power of two have sizes that divide from there up, so their filters merge.
SELECT layout, count(*), count(*) FILTER (WHERE b.num_bits % sizes.num_bits <> 0) AS do_not_divide
FROM sizes, unnest(ARRAY[2, 4, 16]) q, bloom_parameters(n * q, rate, layout) b
    WHERE sizes.num_bits >= least GROUP BY layout ORDER BY layout;

-- bloom_capacity is the way back: what a size holds is at least what the size was made for, and one more would not
-- fit.
SELECT layout, count(*), count(*) FILTER (WHERE bloom_capacity(bytes, rate, layout) < n) AS too_small,
    count(*) FILTER (WHERE (bloom_parameters(bloom_capacity(bytes, rate, layout), rate,
    layout)).bytes > bytes) AS does_not_fit,
    count(*) FILTER (WHERE (bloom_parameters(bloom_capacity(bytes, rate, layout) + 1,
        rate, layout)).bytes <= bytes) AS not_the_largest
FROM sizes GROUP BY layout ORDER BY layout;
SELECT layout, count(*), count(*) FILTER (WHERE bloom_capacity((bloom_parameters(n, 0.01, layout)).bytes, 0.01,
    layout) < n) AS too_small
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, generate_series(1, 2000) n GROUP BY layout
    ORDER BY layout;
-- The same against trying them all.
CREATE TABLE every AS SELECT layout, n, (bloom_parameters(n, 0.01, layout)).bytes
    FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, generate_series(1, 4000) n;
SELECT layout, count(*), count(*) FILTER (WHERE bloom_capacity(b, 0.01, layout) <> (SELECT max(n) FROM every
    WHERE every.layout = layout.layout AND bytes <= b)) AS wrong
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, generate_series(110, 4000, 97) b GROUP BY layout
    ORDER BY layout;

-- The promise is kept by real filters at capacity: the mean of 20 sets of 10,000 is that of the formula, within
-- sampling error (their standard deviation is below 3 %), and the formula's below the promise.
SELECT layout, rate, abs(avg(bloom_fpr(f)) / max(p.fpr) - 1) < 0.02 AS as_computed, max(p.fpr) <= rate AS kept
FROM unnest(ARRAY['blocked', 'classic', 'parquet']) layout, unnest(ARRAY[0.1, 0.01, 0.001]) rate,
    bloom_parameters(10000, rate, layout) p,
    LATERAL (SELECT bloom_agg(set * 10000 + i, 10000, rate, layout) AS f
        FROM generate_series(1, 20) set, generate_series(1, 10000) i GROUP BY set) b
GROUP BY layout, rate ORDER BY layout, rate;
-- Unsized: the smallest power of two of blocks that keeps the rate for what was seen.
SELECT layout, count(*), bool_and(bloom_expected_fpr(n, bits, k, layout) <= 0.01) AS kept,
    bool_and(bits = block OR bloom_expected_fpr(n, bits / 2, k, layout) > 0.01) AS smallest,
    bool_and((bloom_info(f)).capacity >= n) AS capacity
FROM (VALUES ('blocked', 512), ('classic', 1), ('parquet', 256)) l (layout, block),
    unnest(ARRAY[1, 3, 20, 60, 200, 2000, 10000]) n, LATERAL (SELECT bloom_agg(i, NULL, 0.01, layout) AS f
    FROM generate_series(1, n) i) b,
    LATERAL (SELECT (bloom_info(f)).num_bits AS bits, (bloom_info(f)).num_hashes AS k) s
GROUP BY layout ORDER BY layout;

DROP TABLE cells, sizes, every;
