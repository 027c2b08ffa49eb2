-- What is declared citext can't be an element; a cast to text, implicit or not, makes it text.
SELECT count(*) = 0 AS missing FROM pg_available_extensions WHERE name = 'citext' \gset
\if :missing
\quit
\endif
CREATE EXTENSION citext;
CREATE DOMAIN email AS citext;
CREATE TYPE account AS (owner citext, id int);
CREATE TYPE citext_range AS RANGE (subtype = citext);
CREATE TABLE users (c citext, e email, t text, a citext[], r account, f bloom);
INSERT INTO users SELECT name, name, name, ARRAY[name::citext], ROW(name::citext, 1)::account, bloom_from_array(ARRAY['ann', 'Bob'])
    FROM unnest(ARRAY['Ann', 'bob']) name;

-- Refused: where the type stays what it is.
SELECT what, outcome(query) FROM (VALUES
    (1, 'array', 'SELECT bloom_agg(a) FROM users'),
    (2, 'array of a function', 'SELECT bloom_from_array(a) FROM users'),
    (3, 'array to look for', 'SELECT bloom_contains_any(f, a) FROM users'),
    (4, 'array to add', 'SELECT bloom_add_all(f, a) FROM users'),
    (5, 'row', 'SELECT bloom_agg(r) FROM users'),
    (6, 'range', 'SELECT bloom_agg(citext_range(c, c, ''[]'')) FROM users'),
    (7, 'set', 'SELECT bloom_set_create(''s'', ''citext'', 10)'),
    (8, 'index', 'CREATE INDEX ON users USING bloom_filter (c)'),
    (9, 'domain in an index', 'CREATE INDEX ON users USING bloom_filter (e)')
) v (i, what, query) ORDER BY i;
SELECT message, hint FROM failure('SELECT bloom_agg(a) FROM users');
-- Text: by the cast that PostgreSQL makes of it, as in its own citext = text.
SELECT bloom_agg(c) = bloom_agg(t) AS aggregated, bloom_agg(e, 100) = bloom_agg(t, 100) AS domain FROM users;
SELECT t, f @> c AS found, f @> c::text AS same, c <@ f AS commuted, f @> e AS domain, bloom_contains(f, c) AS function,
    bloom_shard(c, 10) = bloom_shard(t, 10) AS shard FROM users ORDER BY t;
SELECT f @> 'Bob'::citext AS found, f @> 'BOB'::citext AS other_letters FROM users LIMIT 1;
-- Letters don't count if elements are folded on both sides.
SELECT bloom_agg(lower(c)) @> lower('ANN'::citext) AS ann FROM users;

DROP TABLE users;
DROP TYPE citext_range, account;
DROP DOMAIN email;
DROP EXTENSION citext;
