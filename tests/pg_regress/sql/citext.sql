-- citext compares by rules of its own, but the parser makes a text of it quietly. It is refused with 0A000
-- wherever that shows.
SELECT count(*) = 0 AS missing FROM pg_available_extensions WHERE name = 'citext' \gset
\if :missing
\quit
\endif
CREATE EXTENSION citext;
CREATE DOMAIN email AS citext;
CREATE TYPE account AS (owner citext, id int);
CREATE TYPE citext_range AS RANGE (subtype = citext);
CREATE TABLE users (c citext, e email, t text, f bloom);
INSERT INTO users SELECT name, name, name, bloom_from_array(ARRAY['ann', 'Bob'])
    FROM unnest(ARRAY['Ann', 'bob']) name;

-- Columns.
SELECT what, outcome(query) FROM (VALUES
    (1, '@>', 'SELECT f @> c FROM users'),
    (2, '<@', 'SELECT c <@ f FROM users'),
    (3, 'bloom_contains', 'SELECT bloom_contains(f, c) FROM users'),
    (4, 'bloom_query', 'SELECT bloom_query(f, c) FROM users'),
    (5, 'bloom_add', 'SELECT bloom_add(f, c) FROM users'),
    (6, '||', 'SELECT f || c FROM users'),
    (7, 'WHERE', 'SELECT count(*) FROM users WHERE f @> c'),
    (8, 'domain', 'SELECT f @> e FROM users'),
    (9, 'expression', 'SELECT f @> coalesce(c, e) FROM users'),
    (10, 'subquery', 'SELECT f @> (SELECT max(c) FROM users) FROM users'),
    (11, 'parameter', 'SELECT bloom_contains(f, v) FROM users, LATERAL (SELECT c AS v OFFSET 0) o')
) v (i, what, query) ORDER BY i;
-- Aggregates.
SELECT what, outcome(query) FROM (VALUES
    (1, 'element', 'SELECT bloom_agg(c) FROM users'),
    (2, 'capacity', 'SELECT bloom_agg(c, 10) FROM users'),
    (3, 'rate', 'SELECT bloom_agg(c, 10, 0.1) FROM users'),
    (4, 'layout', 'SELECT bloom_agg(c, 10, 0.1, ''classic'') FROM users'),
    (5, 'DISTINCT', 'SELECT bloom_agg(DISTINCT c) FROM users'),
    (6, 'ORDER BY', 'SELECT bloom_agg(c ORDER BY c) FROM users'),
    (7, 'domain', 'SELECT bloom_agg(e) FROM users'),
    (8, 'GROUP BY', 'SELECT bloom_agg(c) FROM users GROUP BY t'),
    (9, 'FILTER', 'SELECT bloom_agg(c) FILTER (WHERE true) FROM users'),
    (10, 'HAVING', 'SELECT 1 FROM users HAVING bloom_agg(c) IS NOT NULL'),
    (11, 'window', 'SELECT bloom_agg(c) OVER () FROM users'),
    (12, 'window, capacity', 'SELECT bloom_agg(c, 10) OVER (ORDER BY t) FROM users')
) v (i, what, query) ORDER BY i;
-- Arrays, ranges and composites of it.
SELECT what, outcome(query) FROM (VALUES
    (1, 'bloom_from_array', 'SELECT bloom_from_array(array_agg(c)) FROM users'),
    (2, 'bloom_add_all', 'SELECT bloom_add_all(bloom_empty(), array_agg(c)) FROM users'),
    (3, 'bloom_contains_any', 'SELECT bloom_contains_any(bloom_empty(), ARRAY[''a''::citext])'),
    (4, 'bloom_contains_all', 'SELECT bloom_contains_all(bloom_empty(), ''{}''::email[])'),
    (5, 'array as element', 'SELECT bloom_empty() || ARRAY[''a''::citext]'),
    (6, 'range', 'SELECT bloom_empty() || citext_range(''a'', ''b'')'),
    (7, 'composite', 'SELECT bloom_empty() || ROW(''a'', 1)::account'),
    (8, 'array of composites', 'SELECT bloom_agg(ARRAY[ROW(c, 1)::account]) FROM users')
) v (i, what, query) ORDER BY i;
-- Arrays that the parser makes arrays of text, and branches that it makes text.
ALTER TABLE users ADD cs citext[], ADD fs bloom[];
UPDATE users SET cs = ARRAY[c], fs = ARRAY[f];
SELECT what, outcome(query) FROM (VALUES
    (1, '@> ANY', 'SELECT f @> ANY (cs) FROM users'),
    (2, '@> ALL', 'SELECT f @> ALL (cs) FROM users'),
    (3, '<@ ANY', 'SELECT c <@ ANY (fs) FROM users'),
    (4, '@> ANY of an array of columns', 'SELECT f @> ANY (ARRAY[t, c]) FROM users'),
    (5, '@> ANY of domains', 'SELECT f @> ANY (ARRAY[e]) FROM users'),
    (6, '@> ANY of a subquery', 'SELECT f @> ANY (SELECT c) FROM users'),
    (7, '<@ ANY of a subquery', 'SELECT c <@ ANY (SELECT f) FROM users'),
    (8, 'COALESCE', 'SELECT f @> coalesce(t, c) FROM users'),
    (9, 'CASE', 'SELECT f @> CASE WHEN t > ''a'' THEN c ELSE t END FROM users'),
    (10, 'ELSE', 'SELECT f @> CASE t WHEN ''a'' THEN t ELSE c END FROM users'),
    (11, 'GREATEST', 'SELECT f @> greatest(t, e) FROM users'),
    (12, 'NULLIF', 'SELECT f @> nullif(c, ''x'') FROM users'),
    (13, 'nested', 'SELECT f @> coalesce(t, CASE WHEN t > ''a'' THEN c END) FROM users'),
    (14, 'row', 'SELECT ROW(f, 1) = ROW(f || c, 1) FROM users'),
    (15, 'bloom_contains_any', 'SELECT bloom_contains_any(f, ARRAY[t, c]) FROM users'),
    (16, 'bloom_from_array', 'SELECT bloom_from_array(ARRAY[t, c]) FROM users'),
    (17, 'bloom_shard', 'SELECT bloom_shard(coalesce(t, c), 8) FROM users'),
    (18, 'counting_bloom', 'SELECT counting_bloom_empty() @> coalesce(t, c) FROM users'),
    (19, 'aggregate', 'SELECT bloom_agg(coalesce(t, c)) FROM users'),
    (20, 'computed before', 'SELECT bloom_agg(coalesce(t, c)) FROM users GROUP BY coalesce(t, c)'),
    (21, 'window, computed before', 'SELECT bloom_agg(coalesce(t, c)) OVER (ORDER BY coalesce(t, c)) FROM users'),
    (22, 'collation', 'SELECT f @> (c COLLATE "C") FROM users'),
    (23, 'collation, whose cast PostgreSQL drops', 'SELECT f @> (c::text COLLATE "C") FROM users')
) v (i, what, query) ORDER BY i;
-- What was cast is text.
SELECT what, outcome(query) FROM (VALUES
    (1, '@> ANY', 'SELECT f @> ANY (cs::text[]) FROM users'),
    (2, '<@ ANY', 'SELECT c::text <@ ANY (fs) FROM users'),
    (3, '<@ ANY, found', 'SELECT lower(c::text) <@ ANY (fs) FROM users'),
    (4, 'COALESCE', 'SELECT f @> coalesce(t, c::text) FROM users'),
    (5, 'CASE', 'SELECT f @> CASE WHEN c = ''ANN'' THEN t ELSE ''ann'' END FROM users'),
    (6, 'computed before', 'SELECT bloom_agg(c::text) @> ''Ann'' FROM users GROUP BY c::text ORDER BY c::text'),
    (7, 'window', 'SELECT bloom_agg(c::text) OVER (ORDER BY t DESC) @> ''bob'' FROM users')
) v (i, what, query) ORDER BY i;
-- Aggregates that users make of the extension's functions, as aggregates and as windows.
SELECT bloom_empty(100)::text AS nothing, counting_bloom_empty(100)::text AS counting_nothing \gset
CREATE AGGREGATE collected(text) (SFUNC = bloom_add, STYPE = bloom, INITCOND = :'nothing');
CREATE AGGREGATE is_among(text ORDER BY text) (
    SFUNC = bloom_add, STYPE = bloom, INITCOND = :'nothing', FINALFUNC = bloom_contains);
CREATE AGGREGATE sliding(text) (
    SFUNC = counting_bloom_add, STYPE = counting_bloom, INITCOND = :'counting_nothing',
    MSFUNC = counting_bloom_add, MINVFUNC = counting_bloom_remove, MSTYPE = counting_bloom,
    MINITCOND = :'counting_nothing');
SELECT what, outcome(query) FROM (VALUES
    (1, 'aggregate', 'SELECT collected(c) FROM users'),
    (2, 'aggregate, cast', 'SELECT collected(c::text) @> ''bob'' FROM users'),
    (3, 'window', 'SELECT collected(c) OVER () FROM users'),
    (4, 'window, cast', 'SELECT collected(c::text) OVER () @> ''bob'' FROM users'),
    (5, 'window, another', 'SELECT collected(t) OVER w, collected(c) OVER w FROM users WINDOW w AS ()'),
    (6, 'window, other functions', 'SELECT collected(t) OVER w @> ''bob'', max(c) OVER w FROM users WINDOW w AS ()'),
    (7, 'moving window', 'SELECT sliding(c) OVER (ORDER BY t ROWS 1 PRECEDING) FROM users'),
    (8, 'moving window, cast',
        'SELECT sliding(c::text) OVER (ORDER BY t DESC ROWS CURRENT ROW) @> ''bob'' FROM users'),
    (9, 'ordered set', 'SELECT is_among(''bob'') WITHIN GROUP (ORDER BY c) FROM users'),
    (10, 'ordered set, cast', 'SELECT is_among(''bob'') WITHIN GROUP (ORDER BY c::text) FROM users'),
    (11, 'ordered set, direct', 'SELECT is_among(c) WITHIN GROUP (ORDER BY t) FROM users GROUP BY c'),
    (12, 'ordered set, direct, cast',
        'SELECT is_among(c::text) WITHIN GROUP (ORDER BY t) FROM users GROUP BY c ORDER BY c')
) v (i, what, query) ORDER BY i;
DROP AGGREGATE collected(text);
DROP AGGREGATE is_among(text ORDER BY text);
DROP AGGREGATE sliding(text);
-- Parameters, in a plan for any value and in one for these values, where they are constants of type text.
PREPARE probe(citext) AS SELECT f @> $1 FROM users;
PREPARE probe_cast(citext) AS SELECT f @> lower($1::text) FROM users;
PREPARE probe_function(citext) AS SELECT count(*) FROM users WHERE bloom_contains(f, coalesce($1, t));
PREPARE probe_left(citext) AS SELECT count(*) FROM users WHERE $1 <@ f;
PREPARE probe_query(citext) AS SELECT bloom_query(f, $1) FROM users;
PREPARE adding(citext) AS SELECT f || $1 FROM users;
PREPARE counting(citext) AS SELECT counting_bloom_empty(10 + length(t)) @> $1 FROM users;
PREPARE sharding(citext) AS SELECT bloom_shard($1, length(t)) FROM users;
PREPARE in_subquery(citext) AS SELECT (SELECT bool_or(f @> $1) FROM users u WHERE u.t = users.t) FROM users;
PREPARE probe_text(text, citext) AS SELECT f @> $1 FROM users WHERE $2 = c;
CREATE FUNCTION probe_variable(given citext) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    found boolean;
BEGIN
    SELECT f @> given INTO found FROM users LIMIT 1;
    RETURN found;
END $$;
CREATE FUNCTION probe_cast_variable(given citext) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    found boolean;
BEGIN
    SELECT f @> lower(given::text) INTO found FROM users LIMIT 1;
    RETURN found;
END $$;
SET plan_cache_mode = force_custom_plan;
SELECT what, outcome(query) FROM (VALUES
    (1, 'operator', 'EXECUTE probe(''ann'')'),
    (2, 'cast', 'EXECUTE probe_cast(''ANN'')'),
    (3, 'function', 'EXECUTE probe_function(''ann'')'),
    (4, 'text beside citext', 'EXECUTE probe_text(''ann'', ''ANN'')'),
    (5, 'variable', 'SELECT probe_variable(''ann'')'),
    (6, 'variable, cast', 'SELECT probe_cast_variable(''ANN'')'),
    (7, '<@', 'EXECUTE probe_left(''ann'')'),
    (8, 'bloom_query', 'EXECUTE probe_query(''ann'')'),
    (9, '||', 'EXECUTE adding(''ann'')'),
    (10, 'counting_bloom', 'EXECUTE counting(''ann'')'),
    (11, 'bloom_shard', 'EXECUTE sharding(''ann'')'),
    (12, 'subquery', 'EXECUTE in_subquery(''ann'')')
) v (i, what, query) ORDER BY i;
SET plan_cache_mode = force_generic_plan;
SELECT what, outcome(query) FROM (VALUES
    (1, 'operator', 'EXECUTE probe(''ann'')'),
    (2, 'cast', 'EXECUTE probe_cast(''ANN'')'),
    (3, 'function', 'EXECUTE probe_function(''ann'')'),
    (4, 'text beside citext', 'EXECUTE probe_text(''ann'', ''ANN'')'),
    (5, 'variable', 'SELECT probe_variable(''ann'')'),
    (6, 'variable, cast', 'SELECT probe_cast_variable(''ANN'')'),
    (7, '<@', 'EXECUTE probe_left(''ann'')'),
    (8, 'bloom_query', 'EXECUTE probe_query(''ann'')'),
    (9, '||', 'EXECUTE adding(''ann'')'),
    (10, 'counting_bloom', 'EXECUTE counting(''ann'')'),
    (11, 'bloom_shard', 'EXECUTE sharding(''ann'')'),
    (12, 'subquery', 'EXECUTE in_subquery(''ann'')')
) v (i, what, query) ORDER BY i;
RESET plan_cache_mode;
DEALLOCATE ALL;
DROP FUNCTION probe_variable, probe_cast_variable;
-- The hint says what works: a cast that decides between the letters' cases.
SELECT message, hint FROM failure('SELECT f @> c FROM users');
SELECT f @> c::text AS as_written, f @> lower(c::text) AS in_lower_case FROM users;
SELECT bloom_agg(lower(c::text)) @> 'ann' AS ann, bloom_agg(c::text) @> 'Ann' AS as_written,
    bloom_agg(c::text) @> 'ann' AS not_written FROM users;
-- A constant is folded to text before it can be seen: it counts as it is written.
SELECT f @> 'Bob'::citext AS found, f @> 'BOB'::citext AS not_found FROM users LIMIT 1;

DROP TABLE users;
DROP TYPE citext_range, account;
DROP DOMAIN email;
DROP EXTENSION citext;
