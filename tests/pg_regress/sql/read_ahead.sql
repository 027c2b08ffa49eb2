-- Scans that read rows ahead to ask a filter of many at once: their plans, what EXPLAIN shows, and the setting.
CREATE TABLE visits AS
    SELECT i AS id, CASE WHEN i % 10 > 0 THEN 'user ' || i END AS name FROM generate_series(1, 20000) AS i;
CREATE TABLE few AS SELECT * FROM visits LIMIT 9000;
CREATE TABLE filters AS SELECT 1 AS id, bloom_agg(name, 2000000) AS f FROM visits WHERE id <= 2000;
INSERT INTO filters SELECT 2, bloom_resize(bloom_agg(name), 2000000) FROM visits WHERE id <= 2000;
ANALYZE visits; ANALYZE few; ANALYZE filters;
CREATE FUNCTION known() RETURNS bloom STABLE LANGUAGE plpgsql AS
    'BEGIN RETURN (SELECT f FROM filters WHERE id = 2); END';
-- The plan of a query; with numbers of rows after it was executed.
CREATE FUNCTION shown(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
        RETURN NEXT regexp_replace(line, '\(actual rows=(\d+)(\.00)? loops=1\)', '(\1 rows)');
    END LOOP;
END $$;
SET max_parallel_workers_per_gather = 0;

SELECT shown($$SELECT * FROM visits WHERE known() @> name$$);
SELECT shown($$SELECT * FROM visits WHERE name <@ known()$$);
SELECT shown($$SELECT * FROM visits AS v WHERE bloom_contains(known(), name) AND id > 5 AND name LIKE '%7'$$);
SELECT shown($$SELECT upper(name) FROM visits WHERE known() @> name LIMIT 3$$, 'COSTS OFF, VERBOSE');
SELECT shown($$UPDATE visits SET id = 0 WHERE known() @> name$$);
SELECT shown($$SELECT * FROM visits WHERE known() @> name AND id <= 1500$$,
    'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT shown($$SELECT * FROM visits WHERE known() @> name LIMIT 5$$,
    'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT json -> 0 -> 'Plan' ->> 'Custom Plan Provider' AS provider, json -> 0 -> 'Plan' ->> 'Bloom Filter' AS filter,
    json -> 0 -> 'Plan' ->> 'Filter' AS other
FROM (SELECT string_agg(line, '')::json AS json
      FROM shown($$SELECT * FROM visits WHERE known() @> name AND id > 5$$, 'FORMAT JSON') AS line) AS plan;

-- Elements that are expressions: if all rows are read. What protects them is evaluated before.
SELECT shown($$SELECT * FROM visits WHERE known() @> upper(name)$$);
SELECT shown($$SELECT * FROM visits WHERE known() @> ('user ' || 30000 / (id - 7)) AND name LIKE 'user%' AND id <> 7$$);
SELECT shown($$SELECT * FROM visits WHERE known() @> upper(name) LIMIT 3$$);
SELECT shown($$SELECT count(*) FROM visits WHERE known() @> upper(name) LIMIT 3$$);
SELECT shown($$SELECT v.* FROM visits AS v, filters AS o WHERE known() @> upper(v.name)$$);

-- Off, for few rows, for small constants, for what changes from row to row.
SET pg_bloom.read_ahead = off;
SELECT shown($$SELECT * FROM visits WHERE known() @> name$$);
RESET pg_bloom.read_ahead;
SELECT shown($$SELECT * FROM few WHERE known() @> name$$);
SELECT line ~ '^Seq Scan' AS plain
    FROM shown(format('SELECT * FROM visits WHERE %L::bloom @> name', (SELECT bloom_agg(name) FROM few))) AS line
    LIMIT 1;
SELECT line ~ '^Custom Scan' AS ahead
    FROM shown(format('SELECT * FROM visits WHERE %L::bloom @> name', known())) AS line LIMIT 1;
SELECT shown($$SELECT * FROM visits WHERE known() @> name AND random() < 2$$);
SELECT shown($$SELECT * FROM visits WHERE known() @> (name || random())$$);
SELECT shown($$SELECT * FROM visits WHERE NOT known() @> name$$);
SELECT shown($$SELECT * FROM visits TABLESAMPLE SYSTEM (50) WHERE known() @> name$$);

-- What is found, NULLs, and what can't be asked.
SELECT count(*), min(id), max(id) FROM visits WHERE known() @> name AND id <= 2000;
SELECT count(*) FROM visits WHERE (SELECT NULL::bloom) @> name;
SELECT count(*) FROM visits WHERE (SELECT bloom_empty()) @> name;
SELECT id FROM visits WHERE known() @> name LIMIT 12;
SELECT count(*) FROM visits WHERE known() @> id;
SELECT count(*), min(id), max(id) FROM visits WHERE known() @> ('user ' || id) AND id <= 2000;
SELECT count(*) FROM visits WHERE known() @> ('user ' || 2000 / (id - 7)) AND id <> 7;
SELECT count(*) FROM visits WHERE known() @> ('user ' || 2000 / (id - 7));
UPDATE visits SET name = NULL;
SELECT count(*) FROM visits WHERE known() @> name;

DROP TABLE visits, few, filters;
DROP FUNCTION known, shown;
