-- bloom_shard spreads elements over filters when one would be larger than a value can be.
-- Every shard gets its share: 8 shards of 80,000 elements, within five standard errors.
SELECT shards, count(DISTINCT shard) = shards AS all_used, max(shard) - min(shard) + 1 = shards AS in_a_row,
    max(abs(n * shards / 80000.0 - 1)) < 5 * sqrt(shards / 80000.0) AS evenly
FROM (SELECT shards, bloom_shard(i, shards) AS shard, count(*) AS n
    FROM generate_series(1, 80000) i, unnest(ARRAY[1, 2, 7, 8]) shards GROUP BY 1, 2) s GROUP BY shards
    ORDER BY shards;
-- Equal elements have the same shard, whatever their type and form.
SELECT bloom_shard(42, 1000) = bloom_shard(42::smallint, 1000) AS integers,
    bloom_shard('a', 1000) = bloom_shard('a'::char(5), 1000) AS texts,
    bloom_shard('a', 1000) = bloom_shard('a'::"char"::text, 1000) AS "char",
    bloom_shard(1.0, 1000) = bloom_shard(1.00, 1000) AS numerics,
        count(DISTINCT bloom_shard(i, 1000)) > 600 AS others_differ FROM generate_series(1, 1000) i;
-- The shard says nothing about an element's place in a filter: one shard's filter has the rate of any other.
SELECT layout, bloom_fpr(bloom_agg(i, 10000, 0.01, layout)) BETWEEN 0.008 AND 0.011 AS honest
    FROM (SELECT i FROM generate_series(1, 200000) i WHERE bloom_shard(i, 20) = bloom_shard(1, 20) LIMIT 9700) e,
    unnest(ARRAY['blocked', 'classic', 'parquet']) layout GROUP BY layout ORDER BY layout;
-- NULLs, and numbers of shards that can't be.
SELECT bloom_shard(NULL::int, 4) IS NULL AS element, bloom_shard(1, NULL) IS NULL AS shards,
    outcome('SELECT bloom_shard(1, 0)') AS none, outcome('SELECT bloom_shard(1, -1)') AS negative,
    outcome('SELECT bloom_shard(''1''::json, 4)') AS no_element;
