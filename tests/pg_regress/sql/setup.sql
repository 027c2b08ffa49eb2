-- Prepares the database for the other tests, which all need it: it always runs, and first.
CREATE EXTENSION pg_bloom;

-- What a user's configuration could change in the results. Time zone and date style are those of pg_regress.
DO $$
DECLARE
    setting text;
BEGIN
    FOREACH setting IN ARRAY ARRAY[
        'bytea_output = ''hex''', 'extra_float_digits = 1', 'client_min_messages = ''warning'''
    ] LOOP
        EXECUTE format('ALTER DATABASE %I SET %s', current_database(), setting);
    END LOOP;
END $$;

-- The one value that a query gives, as text; for one that fails, the SQLSTATE.
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE query INTO result;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;

-- What a query fails with.
CREATE FUNCTION failure(query text, OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
DECLARE
    ignored text;
BEGIN
    EXECUTE query INTO ignored;
    state := '00000';
    message := 'gives ' || coalesce(left(ignored, 60), 'NULL');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;

-- Whether the plan of a query has a node of this type. Plans are never printed: they differ between versions.
CREATE FUNCTION plan_has(node text, query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || query INTO plan;
    RETURN plan::text LIKE '%"Node Type": "' || node || '"%';
END $$;

-- The nodes of a plan, with the indexes and their conditions. What differs between versions is left out.
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || query INTO plan;
    RETURN QUERY
    WITH RECURSIVE nodes (place, node) AS (
        SELECT ARRAY[]::bigint[], plan -> 0 -> 'Plan'
        UNION ALL
        SELECT place || i, child FROM nodes, json_array_elements(node -> 'Plans') WITH ORDINALITY AS c (child, i)
    )
    SELECT repeat('  ', cardinality(place)) || (node ->> 'Node Type')
        || coalesce(' ' || nullif(node ->> 'Join Type', 'Inner'), '')
        || coalesce(' on ' || coalesce(node ->> 'Index Name', node ->> 'Relation Name'), '')
        || coalesce(': ' || (node ->> 'Index Cond'), '')
    FROM nodes ORDER BY place;
END $$;

-- The header of a filter that the tests often ask for, on one line.
CREATE FUNCTION summary(filter bloom) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT format('%s, %s, capacity %s at %s, %s bits, %s hashes, kind %s', layout, representation,
        coalesce(capacity::text, 'none'), target_fpr, num_bits, num_hashes, coalesce(key_kind, 'none'))
    FROM bloom_info(filter)
$$;

-- The stored hash of a filter's only element, as a number prints it.
CREATE FUNCTION stored_hash(filter bloom) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(lpad(to_hex(get_byte(bytes, octet_length(bytes) - i)), 2, '0'), '' ORDER BY i)
    FROM CAST(filter AS bytea) bytes, generate_series(1, 8) i
$$;
