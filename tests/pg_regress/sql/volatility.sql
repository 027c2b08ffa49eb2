-- With a rate, what makes a filter is immutable; without one the default rate decides, so it is stable.
CREATE FUNCTION volatility(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE f oid;
BEGIN
    -- A view depends on the function that the parser chose.
    EXECUTE format('CREATE TEMP VIEW chosen AS SELECT (%s) IS NULL AS x', call);
    SELECT p.oid INTO STRICT f FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
        WHERE r.ev_class = 'chosen'::regclass AND proname ~ '^(counting_)?bloom_';
    DROP VIEW chosen;
    RETURN CASE (SELECT provolatile FROM pg_proc WHERE oid = f) WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' END;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;

-- Every form that somebody may write: literals with and without a type, NULLs, by place and by name, arguments left
-- out.
SELECT call, volatility(call), outcome('SELECT (' || call || ') IS NOT NULL') FROM unnest(ARRAY[
    'bloom_empty()', 'bloom_empty(100)', 'bloom_empty(''100'')', 'bloom_empty(NULL)', 'bloom_empty(100::smallint)',
    'bloom_empty(capacity => 100)', 'bloom_empty(100, layout => ''classic'')', 'bloom_empty(capacity => 100, layout => ''classic'')',
    'bloom_empty(layout => ''classic'', capacity => 100)', 'bloom_empty(layout => ''classic'')',
    'bloom_empty(100, 0.01)', 'bloom_empty(100, ''0.01'')', 'bloom_empty(100, 0.01::real)', 'bloom_empty(100, 0.01::float8)',
    'bloom_empty(100, 1e-2::numeric)', 'bloom_empty(NULL, 0.01)', 'bloom_empty(100, 1)', 'bloom_empty(100, fpr => 0.01)',
    'bloom_empty(capacity => 100, fpr => ''0.01'')', 'bloom_empty(fpr => 0.01, capacity => 100)', 'bloom_empty(fpr => 0.01)',
    'bloom_empty(100, 0.01, ''classic'')', 'bloom_empty(100, 0.01, NULL)', 'bloom_empty(''100'', ''0.01'', ''classic'')',
    'bloom_empty(100, 0.01, layout => ''classic'')', 'bloom_empty(100, layout => ''classic'', fpr => 0.01)',
    'bloom_empty(100, NULL)', 'bloom_empty(100, NULL, ''classic'')', 'bloom_empty(100, NULL::float8)', 'bloom_empty(NULL, NULL, NULL)',
    'bloom_empty(100, fpr => NULL)', 'bloom_empty(100, ''classic'')', 'bloom_empty(100, 0.01, ''classic'', 1)',
    'bloom_empty(100, NULL::bloom_optional_fpr)', 'bloom_empty(100, 0.01::bloom_optional_fpr)',

    'bloom_from_array(ARRAY[1])', 'bloom_from_array(''{1}''::int[])', 'bloom_from_array(''{1}'')', 'bloom_from_array(NULL::text[])',
    'bloom_from_array(ARRAY[1], 100)', 'bloom_from_array(ARRAY[1], ''100'')', 'bloom_from_array(ARRAY[1], NULL)',
    'bloom_from_array(ARRAY[1], capacity => 100)', 'bloom_from_array(elements => ARRAY[1])',
    'bloom_from_array(ARRAY[1], layout => ''classic'')', 'bloom_from_array(ARRAY[1], 100, layout => ''classic'')',
    'bloom_from_array(ARRAY[1], fpr => 0.01)', 'bloom_from_array(ARRAY[1], fpr => ''0.01'', layout => ''classic'')',
    'bloom_from_array(ARRAY[1], fpr => NULL)', 'bloom_from_array(ARRAY[1], 100, 0.01)', 'bloom_from_array(ARRAY[1], 100, ''0.01'')',
    'bloom_from_array(ARRAY[1], NULL, 0.01)', 'bloom_from_array(ARRAY[1], capacity => NULL, fpr => 0.01)',
    'bloom_from_array(ARRAY[1], 100, 0.01, ''blocked'')', 'bloom_from_array(ARRAY[1], ''100'', ''0.01'', NULL)',
    'bloom_from_array(ARRAY[1], 100, fpr => 0.01, layout => ''classic'')', 'bloom_from_array(ARRAY[1], 100, 0.5::real, ''classic''::name)',
    'bloom_from_array(ARRAY[1], 100, NULL)', 'bloom_from_array(ARRAY[1], 100, NULL, ''classic'')',
    'bloom_from_array(ARRAY[1], NULL, NULL, NULL)', 'bloom_from_array(NULL::int[], 100, NULL)', 'bloom_from_array(NULL::int[], 100, 0.01)',

    'bloom_parameters(100)', 'bloom_parameters(100, 0.01)', 'bloom_parameters(100, ''0.01'', ''classic'')',
    'bloom_parameters(100, layout => ''classic'')', 'bloom_parameters(100, NULL)', 'bloom_parameters(NULL, 0.01)',
    'bloom_capacity(10000)', 'bloom_capacity(10000, 0.01)', 'bloom_capacity(10000, ''0.01'', ''classic'')',
    'bloom_capacity(10000, layout => ''classic'')', 'bloom_capacity(10000, NULL)', 'bloom_capacity(NULL, 0.01)',
    'counting_bloom_empty()', 'counting_bloom_empty(100)', 'counting_bloom_empty(100, 0.01)', 'counting_bloom_empty(100, ''0.01'')',
    'counting_bloom_empty(capacity => 100, fpr => 0.01)', 'counting_bloom_empty(100, fpr => NULL)',
    'counting_bloom_empty(100, NULL)', 'counting_bloom_empty(100, NULL::float8)'
]) call;

-- A parameter without a type is a rate.
PREPARE untyped AS SELECT bloom_empty($1, $2, $3), bloom_from_array($4::text[], $5, $6, $7), bloom_parameters($8, $9),
    bloom_capacity($10, $11), counting_bloom_empty($12, $13);
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'untyped';
DEALLOCATE untyped;

-- A NULL rate: what to do.
\x on
SELECT * FROM failure('SELECT bloom_empty(100, NULL)');
\x off
-- The form that takes the default follows it, the other doesn't.
SET pg_bloom.default_fpr = 0.125;
SELECT call, (bloom_info(f)).target_fpr FROM (VALUES ('bloom_empty()', bloom_empty()), ('(100)', bloom_empty(100)),
    ('(100, 0.01)', bloom_empty(100, 0.01)), ('array', bloom_from_array(ARRAY[1])), ('100', bloom_from_array(ARRAY[1], 100)),
    ('layout', bloom_from_array(ARRAY[1], layout => 'classic')), ('fpr', bloom_from_array(ARRAY[1], fpr => 0.01)),
    ('100, 0.01', bloom_from_array(ARRAY[1], 100, 0.01)), ('NULL, 0.01', bloom_from_array(ARRAY[1], NULL, 0.01))) v (call, f);
RESET pg_bloom.default_fpr;

-- Generated columns, expression indexes, partial indexes, and partition keys take them.
CREATE TABLE posts (id int, tags text[], words bloom GENERATED ALWAYS AS (bloom_from_array(tags, 100, 0.01, 'blocked')) STORED,
    CHECK (bloom_from_array(tags, 100, 0.01) @> 'a'));
CREATE INDEX by_filter ON posts (bloom_from_array(tags, 100, 0.01));
CREATE INDEX by_answer ON posts (id) WHERE bloom_from_array(ARRAY[1, 3], 100, 0.01) @> id;
INSERT INTO posts SELECT i, ARRAY['a', i::text] FROM generate_series(1, 5) i;
SELECT id FROM posts WHERE words @> '3';
SET enable_seqscan = off;
SELECT id FROM posts WHERE bloom_from_array(tags, 100, 0.01) = bloom_from_array(ARRAY['4', 'a'], 100, 0.01);
SELECT id FROM posts WHERE bloom_from_array(ARRAY[1, 3], 100, 0.01) @> id ORDER BY id;
RESET enable_seqscan;
SELECT outcome('CREATE INDEX ON posts (bloom_from_array(tags, 100))') AS index,
    outcome('CREATE TABLE g (tags text[], f bloom GENERATED ALWAYS AS (bloom_from_array(tags)) STORED)') AS generated;

-- Constants are folded, so a filter is built once: the plan has its result and no function.
CREATE FUNCTION is_folded(call text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE format('EXPLAIN (VERBOSE, FORMAT JSON) SELECT id FROM posts WHERE (%s) IS DISTINCT FROM nullif(id, 1)::text', call)
        INTO plan;
    RETURN plan->0->'Plan'->>'Filter' !~ 'bloom_';
END $$;
SELECT call, is_folded('(' || call || ')::text') FROM unnest(ARRAY[
    'bloom_empty()', 'bloom_empty(10)', 'bloom_empty(10, 0.01)', 'bloom_empty(10, 0.01, ''classic'')',
    'bloom_from_array(ARRAY[1, 3])', 'bloom_from_array(ARRAY[1, 3], 10)', 'bloom_from_array(ARRAY[1, 3], 10, 0.01)',
    'bloom_from_array(ARRAY[1, 3], NULL, 0.01, ''parquet'')', 'bloom_capacity(1000)', 'bloom_capacity(1000, 0.5)',
    'counting_bloom_empty(10)', 'counting_bloom_empty(10, 0.01)', 'bloom_from_array(ARRAY[id], 10, 0.01)'
]) call;
-- So does a parameter in a plan made for its value.
PREPARE asked(bloom, int[]) AS SELECT id FROM posts WHERE bloom_from_array($2, 10, 0.01) | $1 @> id ORDER BY id;
EXECUTE asked(bloom_from_array(ARRAY[2], 10, 0.01), ARRAY[4]);
DEALLOCATE asked;
DROP FUNCTION is_folded(text);
DROP TABLE posts;
DROP FUNCTION volatility(text);
