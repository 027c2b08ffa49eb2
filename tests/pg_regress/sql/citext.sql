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
