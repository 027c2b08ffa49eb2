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
CREATE TEMPORARY VIEW with_parameters AS SELECT * FROM (VALUES
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
) v (i, what, query);
SET plan_cache_mode = force_custom_plan;
SELECT what, outcome(query) FROM with_parameters ORDER BY i;
SET plan_cache_mode = force_generic_plan;
SELECT what, outcome(query) FROM with_parameters ORDER BY i;
RESET plan_cache_mode;
DROP VIEW with_parameters;
DEALLOCATE ALL;
DROP FUNCTION probe_variable, probe_cast_variable;
-- What is cast to citext and from there quietly to text. PostgreSQL drops both conversions when it simplifies the call.
CREATE TABLE words (p text, v varchar(10), n name, g bloom);
INSERT INTO words VALUES ('abc', 'abc', 'abc', bloom_from_array(ARRAY['ABC']));
CREATE VIEW cast_words AS SELECT p::citext AS c, p::citext AS p, g FROM words;
CREATE FUNCTION as_citext(text) RETURNS citext LANGUAGE sql IMMUTABLE AS 'SELECT $1::citext';
CREATE FUNCTION contains_cast(bloom, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 @> $2::citext';
CREATE FUNCTION is_in(bloom) RETURNS SETOF boolean LANGUAGE sql STABLE AS 'SELECT $1 @> p::citext FROM words';
CREATE FUNCTION probe_assigned(given text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN bloom_from_array(ARRAY['ABC']) @> given::citext;
END $$;
PREPARE probe_cast_to(text) AS SELECT g @> $1::citext FROM words;
SELECT c = 'ABC' AS equal, g @> 'ABC' AS found FROM cast_words;
SELECT what, outcome(query) FROM (VALUES
    (1, 'column', 'SELECT g @> p::citext FROM words'),
    (2, 'view', 'SELECT g @> c FROM cast_words'),
    (3, 'view, WHERE', 'SELECT 1 FROM cast_words WHERE g @> c'),
    (4, 'subquery that stays one', 'SELECT g @> c FROM (SELECT * FROM cast_words OFFSET 0) s'),
    (5, 'varchar', 'SELECT g @> v::citext FROM words'),
    (6, 'name', 'SELECT g @> n::citext FROM words'),
    (7, 'domain', 'SELECT g @> p::email FROM words'),
    (8, 'aggregate', 'SELECT bloom_empty(length(max(p))) @> max(p)::citext FROM words'),
    (9, 'function', 'SELECT g @> as_citext(p) FROM words'),
    (10, 'parameter', 'EXECUTE probe_cast_to(''abc'')'),
    (11, 'variable', 'SELECT probe_assigned(''abc'')'),
    (12, 'constant', 'SELECT g @> ''abc''::citext FROM words'),
    (13, '<@', 'SELECT c <@ g FROM cast_words'),
    (14, 'bloom_contains', 'SELECT bloom_contains(g, c) FROM cast_words'),
    (15, 'bloom_query', 'SELECT bloom_query(g, c) FROM cast_words'),
    (16, 'bloom_add', 'SELECT bloom_add(g, c) FROM cast_words'),
    (17, 'bloom_shard', 'SELECT bloom_shard(c, 10) FROM cast_words'),
    (18, 'counting_bloom', 'SELECT counting_bloom_empty(10) @> c FROM cast_words'),
    (19, 'counting_bloom_remove', 'SELECT counting_bloom_remove(counting_bloom_empty(10), c) FROM cast_words'),
    (20, 'array', 'SELECT bloom_contains_any(g, ARRAY[p, p::citext]) FROM words'),
    (21, 'bloom_from_array', 'SELECT bloom_from_array(ARRAY[p, p::citext]) FROM words'),
    (22, 'bloom_add_all', 'SELECT bloom_add_all(g, ARRAY[p, p::citext]) FROM words'),
    (23, 'counting_bloom_add_all',
        'SELECT counting_bloom_add_all(counting_bloom_empty(10), ARRAY[p, p::citext]) FROM words'),
    (24, 'COALESCE', 'SELECT g @> coalesce(p, p::citext) FROM words'),
    (25, 'EXISTS', 'SELECT 1 FROM users WHERE EXISTS (SELECT FROM cast_words WHERE g @> c AND t = p)'),
    (26, 'IN', 'SELECT 1 FROM users WHERE f IN (SELECT g || c FROM cast_words)'),
    (27, '@> ANY of a subquery', 'SELECT g @> ANY (SELECT c FROM cast_words) FROM words'),
    (28, 'JOIN', 'SELECT 1 FROM users u LEFT JOIN cast_words w ON g @> w.c'),
    (29, 'USING', 'SELECT g @> p FROM (SELECT t AS p FROM users) u RIGHT JOIN cast_words USING (p)'),
    (30, 'USING, chosen by both', 'SELECT g @> p FROM (SELECT t AS p FROM users) u FULL JOIN cast_words USING (p)'),
    (31, 'UNION ALL', 'SELECT g @> c FROM (SELECT * FROM cast_words UNION ALL SELECT * FROM cast_words) u'),
    (32, 'CTE', 'WITH w AS (SELECT g @> c FROM cast_words) TABLE w'),
    (33, 'VALUES', 'SELECT * FROM words, LATERAL (VALUES (1, g @> p::citext), (2, true)) v'),
    (34, 'function in FROM', 'SELECT * FROM words, generate_series(1, bloom_shard(p::citext, 10))'),
    (35, 'subquery after a function in FROM',
        'SELECT s.found FROM words, LATERAL generate_series(1, bloom_shard(p, 10)),
            LATERAL (SELECT g @> p::citext AS found) s'),
    (36, 'SQL function in FROM', 'SELECT i.* FROM words, generate_series(1, bloom_shard(p, 10)), is_in(g) i'),
    (37, 'UPDATE', 'UPDATE words SET g = g || p::citext RETURNING 1'),
    (38, 'RETURNING', 'UPDATE words SET g = g RETURNING g @> p::citext'),
    (39, 'ORDER BY', 'SELECT FROM words ORDER BY g @> p::citext'),
    (40, 'after the same with text', 'SELECT g @> p, g @> p::citext FROM words'),
    (41, 'LIMIT', 'SELECT FROM words LIMIT (SELECT bloom_shard(p::citext, 10) FROM words)'),
    (42, 'array as element', 'SELECT g || ARRAY[p, p::citext] FROM words')
) v (i, what, query) ORDER BY i;
-- What was cast to text in the end is text, whatever it was before, and whatever else is in the query.
SELECT what, outcome(query) FROM (VALUES
    (1, 'column', 'SELECT g @> upper(p::citext::text) FROM words'),
    (2, 'view', 'SELECT g @> c::text FROM cast_words'),
    (3, 'view, function', 'SELECT g @> upper(c) FROM cast_words'),
    (4, 'beside it', 'SELECT g @> upper(p) FROM cast_words'),
    (5, 'compared', 'SELECT g @> upper(w.p) FROM words w WHERE w.p::citext = ''ABC'' AND length(w.p::citext) = 3'),
    (6, 'other function', 'SELECT g @> ''ABC'' FROM words WHERE strpos(p::citext, ''a'') = 1'),
    (7, 'CASE', 'SELECT g @> CASE WHEN p::citext = ''ABC'' THEN ''ABC'' ELSE p END FROM words'),
    (8, 'array', 'SELECT bloom_contains_any(g, ARRAY[upper(p), p::citext::text]) FROM words'),
    (9, 'USING', 'SELECT g @> upper(p) FROM (SELECT t AS p FROM users) u RIGHT JOIN cast_words USING (p)'),
    (10, 'layout', 'SELECT bloom_from_array(ARRAY[p], 10, 0.1, replace(''blocked'', p, p)::citext) @> p FROM words'),
    (11, 'bloom_shard', 'SELECT bloom_shard(w.p, 10) = bloom_shard(c::text, 10) FROM words w, cast_words')
) v (i, what, query) ORDER BY i;
-- Where PostgreSQL asks nothing before it simplifies, such an element counts as it is written.
SELECT bloom_agg(p::citext) @> 'abc' AS aggregated, bloom_agg(p::citext) @> 'ABC' AS in_other_letters FROM words;
SELECT g @> ANY (ARRAY[p, p::citext]) AS in_array, contains_cast(g, p) AS in_function FROM words;
ALTER TABLE words ADD shard integer GENERATED ALWAYS AS (bloom_shard(p::citext, 10)) STORED;
SELECT shard = bloom_shard(p, 10) AS generated FROM words;
DEALLOCATE ALL;
DROP VIEW cast_words;
DROP FUNCTION as_citext, contains_cast, is_in, probe_assigned;
DROP TABLE words;
-- The hint says what works: a cast that decides between the letters' cases.
SELECT message, hint FROM failure('SELECT f @> c FROM users');
SELECT f @> c::text AS as_written, f @> lower(c::text) AS in_lower_case FROM users;
SELECT bloom_agg(lower(c::text)) @> 'ann' AS ann, bloom_agg(c::text) @> 'Ann' AS as_written,
    bloom_agg(c::text) @> 'ann' AS not_written FROM users;
-- A call that is folded to a constant can't be seen: its citext counts as it is written.
SELECT made @> 'Bob'::citext AS found, made @> 'BOB'::citext AS not_found
FROM (SELECT bloom_from_array(ARRAY['Bob'], 10, 0.01) AS made) m;

DROP TABLE users;
DROP TYPE citext_range, account;
DROP DOMAIN email;
DROP EXTENSION citext;
