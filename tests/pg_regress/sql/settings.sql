-- The settings: defaults, limits, and who may change them. They are known once the library is loaded.
SELECT bloom_empty() IS NULL AS loads;
SELECT name, setting, unit, vartype, context, min_val, max_val, enumvals, boot_val FROM pg_settings
    WHERE name LIKE 'pg\_bloom.%' ORDER BY name;

-- pg_bloom.default_fpr is the rate of everything for which none is given; what is built already keeps its own.
CREATE TABLE before AS SELECT bloom_from_array(ARRAY[1, 2], 1000) AS f;
SET pg_bloom.default_fpr = 0.001;
SELECT query, outcome(query) FROM unnest(ARRAY[
    'SELECT (bloom_info(bloom_empty())).target_fpr', 'SELECT (bloom_info(bloom_empty(1000))).target_fpr',
        'SELECT (bloom_info(bloom_agg(1))).target_fpr', 'SELECT (bloom_info(bloom_agg(1, 1000))).target_fpr',
    'SELECT (bloom_info(bloom_agg(1, 1000, NULL, ''classic''))).target_fpr',
        'SELECT (bloom_info(bloom_from_array(ARRAY[1], 1000))).target_fpr',
        'SELECT bloom_empty(1000) = bloom_empty(1000, 0.001)',
    'SELECT (bloom_info(f || 3)).target_fpr FROM before',
        'SELECT bloom_parameters(1000) = bloom_parameters(1000, 0.001)',
        'SELECT bloom_capacity(100000) = bloom_capacity(100000, 0.001)',
    'SELECT bloom_agg(1) = bloom_agg(1, NULL, 0.001)'
]) query;
-- A prepared statement follows it.
PREPARE build AS SELECT (bloom_info(bloom_agg(1, 1000))).target_fpr, (bloom_info(bloom_empty(1000))).target_fpr;
EXECUTE build;
SET pg_bloom.default_fpr = 0.5;
EXECUTE build;
DEALLOCATE build;
RESET pg_bloom.default_fpr;
DROP TABLE before;
-- Rates that can't be: below 1e-9, above 0.5, NaN.
SELECT value, outcome(format('SELECT set_config(''pg_bloom.default_fpr'', %L, false)', value)) AS set
    FROM unnest(ARRAY['0', '1', '-1', '9e-10', 'NaN', '1e-9', '0.5', '0.5000001']) value;
RESET pg_bloom.default_fpr;

-- pg_bloom.max_filter_size is at most 511 MB, and for superusers: it protects the server's memory.
SELECT value, outcome(format('SELECT set_config(''pg_bloom.max_filter_size'', %L, false)', value)) AS set
    FROM unnest(ARRAY['0', '512MB', '1GB', '511MB', '1kB']) value;
SET pg_bloom.max_filter_size = '511MB';
SELECT (bloom_info(bloom_empty(400000000))).num_bits > 3.5e9 AS large,
    outcome('SELECT bloom_empty(450000000)') AS too_large;
RESET pg_bloom.max_filter_size;
CREATE ROLE regress_bloom_user;
SET ROLE regress_bloom_user;
SELECT outcome('SELECT set_config(''pg_bloom.max_filter_size'', ''1MB'', false)') AS max_filter_size,
    outcome('SELECT set_config(''pg_bloom.default_fpr'', ''0.1'', false)') AS default_fpr,
    outcome('SELECT set_config(''pg_bloom.overfill'', ''ignore'', false)') AS overfill;
RESET ROLE;
DROP ROLE regress_bloom_user;
RESET pg_bloom.default_fpr;
RESET pg_bloom.overfill;

-- pg_bloom.overfill is one of three words; what they do is in the test "overfill".
SELECT value, outcome(format('SELECT set_config(''pg_bloom.overfill'', %L, false)', value)) AS set
    FROM unnest(ARRAY['warn', 'error', 'ignore', 'WARN', 'off', '']) value;
RESET pg_bloom.overfill;

-- The owner of a database stores settings once the session knows them, or with the right to.
CREATE ROLE regress_bloom_owner;
GRANT CREATE ON SCHEMA public TO regress_bloom_owner;
SELECT current_database() AS app, current_user AS me \gset
ALTER DATABASE :"app" OWNER TO regress_bloom_owner;
\c
SET ROLE regress_bloom_owner;
ALTER DATABASE :"app" SET pg_bloom.default_fpr = 0.001;
ALTER ROLE CURRENT_USER SET pg_bloom.default_fpr = 0.001;
CREATE FUNCTION one_in_a_thousand() RETURNS bloom LANGUAGE sql SET pg_bloom.default_fpr = 0.001 RETURN bloom_empty(10);
SELECT bloom_empty() IS NOT NULL AS loads;
ALTER DATABASE :"app" SET pg_bloom.default_fpr = 0.001;
ALTER ROLE CURRENT_USER SET pg_bloom.default_fpr = 0.001;
CREATE FUNCTION one_in_a_thousand() RETURNS bloom LANGUAGE sql SET pg_bloom.default_fpr = 0.001 RETURN bloom_empty(10);
SELECT (bloom_info(one_in_a_thousand())).target_fpr;
ALTER DATABASE :"app" RESET pg_bloom.default_fpr;
ALTER ROLE CURRENT_USER RESET pg_bloom.default_fpr;
DROP FUNCTION one_in_a_thousand;
RESET ROLE;
GRANT SET ON PARAMETER pg_bloom.default_fpr TO regress_bloom_owner;
\c
SET ROLE regress_bloom_owner;
ALTER DATABASE :"app" SET pg_bloom.default_fpr = 0.001;
ALTER ROLE CURRENT_USER SET pg_bloom.default_fpr = 0.001;
CREATE FUNCTION one_in_a_thousand() RETURNS bloom LANGUAGE sql SET pg_bloom.default_fpr = 0.001 RETURN bloom_empty(10);
RESET ROLE;
ALTER DATABASE :"app" RESET pg_bloom.default_fpr;
ALTER DATABASE :"app" OWNER TO :"me";
REVOKE SET ON PARAMETER pg_bloom.default_fpr FROM regress_bloom_owner;
DROP OWNED BY regress_bloom_owner;
DROP ROLE regress_bloom_owner;
