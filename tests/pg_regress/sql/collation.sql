-- Under a nondeterministic collation values with different bytes are equal: such text is refused with 0A000.
SELECT count(*) = 0 AS missing FROM pg_collation WHERE collprovider = 'i' \gset
\if :missing
\quit
\endif
CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION exact (provider = icu, locale = 'und');
CREATE DOMAIN folded AS text COLLATE ignore_case;
CREATE TYPE tag AS (name text COLLATE ignore_case);
CREATE TYPE exact_tag AS (name text COLLATE exact);
CREATE TYPE folded_range AS RANGE (subtype = text, collation = ignore_case);
CREATE TYPE exact_range AS RANGE (subtype = text, collation = exact);
CREATE TABLE words (n text COLLATE ignore_case, v varchar COLLATE ignore_case, c char(5) COLLATE ignore_case,
    e text COLLATE exact, layout text COLLATE "C", f bloom);
INSERT INTO words SELECT w, w, w, w, 'blocked', bloom_from_array(ARRAY['Ann'])
    FROM unnest(ARRAY['ann', 'ANN', 'bob']) w;
SELECT count(DISTINCT n) AS nondeterministic, count(DISTINCT e) AS exact FROM words;

SELECT what, outcome(query) FROM (VALUES
    (1, '@>', 'SELECT f @> n FROM words'),
    (2, '<@', 'SELECT n <@ f FROM words'),
    (3, '||', 'SELECT f || n FROM words'),
    (4, 'bloom_add', 'SELECT bloom_add(f, n) FROM words'),
    (5, 'bloom_query', 'SELECT bloom_query(f, n) FROM words'),
    (6, 'varchar', 'SELECT f @> v FROM words'),
    (7, 'char(5)', 'SELECT f @> c FROM words'),
    (8, 'explicit', 'SELECT f @> ''ann'' COLLATE ignore_case FROM words'),
    (9, 'explicit, over another', 'SELECT f @> e COLLATE ignore_case FROM words'),
    (10, 'domain', 'SELECT f @> ''ann''::folded FROM words'),
    (11, 'expression', 'SELECT f @> (''x'' || n) FROM words'),
    (12, 'aggregate', 'SELECT bloom_agg(n) FROM words'),
    (13, 'aggregate, capacity', 'SELECT bloom_agg(v, 10) FROM words'),
    (14, 'aggregate, rate', 'SELECT bloom_agg(c, 10, 0.1) FROM words'),
    (15, 'aggregate, layout', 'SELECT bloom_agg(n, 10, 0.1, ''classic'') FROM words'),
    (16, 'aggregate, groups', 'SELECT bloom_agg(n) FROM words GROUP BY e LIMIT 1'),
    (17, 'window', 'SELECT bloom_agg(n) OVER () FROM words'),
    (18, 'bloom_from_array', 'SELECT bloom_from_array(array_agg(n)) FROM words'),
    (19, 'bloom_add_all', 'SELECT bloom_add_all(bloom_empty(), array_agg(n)) FROM words'),
    (20, 'bloom_contains_any', 'SELECT bloom_contains_any(f, ARRAY[n]) FROM words'),
    (21, 'bloom_contains_all', 'SELECT bloom_contains_all(f, ARRAY[''ann''] COLLATE ignore_case) FROM words'),
    (22, 'array as element', 'SELECT bloom_empty() || ARRAY[n] FROM words'),
    (23, 'composite', 'SELECT bloom_empty() || ROW(''a'')::tag'),
    (24, 'array of composites', 'SELECT bloom_agg(ARRAY[ROW(n)::tag]) FROM words'),
    (25, 'range', 'SELECT bloom_empty() || folded_range(''a'', ''b'')'),
    (26, 'array of domain', 'SELECT bloom_empty() || ARRAY[''a''::folded]'),
    (27, 'ANY', 'SELECT f @> ANY (ARRAY[n]) FROM words'),
    (28, 'elements of ANY', 'SELECT n <@ ANY (ARRAY[f]) FROM words')
) v (i, what, query) ORDER BY i;
-- What decides is the element's own collation, not that of the arguments beside it.
SELECT what, outcome(query) FROM (VALUES
    (1, 'aggregate', 'SELECT bloom_agg(n, 10, 0.1, ''blocked'' COLLATE "C") FROM words'),
    (2, 'aggregate, column', 'SELECT bloom_agg(n, 10, 0.1, layout) FROM words'),
    (3, 'window', 'SELECT bloom_agg(n, 10, 0.1, ''blocked'' COLLATE "C") OVER () FROM words'),
    (4, 'one window of two',
        'SELECT bloom_agg(e, 10, 0.1, ''blocked'') OVER w, bloom_agg(n, 10, 0.1, ''blocked'' COLLATE "C") OVER w
         FROM words WINDOW w AS ()'),
    (5, 'bloom_from_array', 'SELECT bloom_from_array(ARRAY[n], 10, 0.1, ''blocked'' COLLATE "C") FROM words'),
    (6, 'exact', 'SELECT bloom_agg(e, 10, 0.1, ''blocked'' COLLATE ignore_case) @> ''bob'' FROM words'),
    (7, 'exact, column', 'SELECT bloom_agg(e, 10, 0.1, layout) @> ''bob'' FROM words'),
    (8, 'exact, window', 'SELECT bloom_agg(e, 10, 0.1, layout) OVER () @> ''bob'' FROM words'),
    (9, 'exact array', 'SELECT bloom_from_array(ARRAY[e], 10, 0.1, layout) @> ''ann'' FROM words')
) v (i, what, query) ORDER BY i;
-- Where the collations within the element disagree, none is known: PostgreSQL's own "=" gives the same 42P22.
SELECT outcome('SELECT f @> (n || layout) FROM words') AS expression,
    outcome('SELECT bloom_agg(n || layout) FROM words') AS aggregate,
    outcome('SELECT bloom_agg(e || layout) OVER () FROM words') AS "window",
    outcome('SELECT bloom_from_array(ARRAY[e || layout]) FROM words') AS "array";
-- What collates another way, or not at all, works as before.
SELECT what, outcome(query) FROM (VALUES
    (1, 'deterministic', 'SELECT bloom_agg(e) @> ''bob'' FROM words'),
    (2, 'deterministic, absent', 'SELECT bloom_agg(e) @> ''Bob'' FROM words'),
    (3, 'explicit', 'SELECT bloom_agg(n COLLATE "C") @> ''ANN'' FROM words'),
    (4, 'explicit, absent', 'SELECT bloom_agg(n COLLATE "C") @> ''Ann'' FROM words'),
    (5, 'another collation of one value', 'SELECT bloom_agg(e) @> ''bob'' COLLATE "C" FROM words'),
    (6, 'length', 'SELECT bloom_agg(length(n)) @> 3 FROM words'),
    (7, 'bytes', 'SELECT bloom_agg(convert_to(n, ''UTF8'')) @> ''ANN''::bytea FROM words'),
    (8, 'range', 'SELECT bloom_empty() || exact_range(''a'', ''b'') @> exact_range(''a'', ''b'')'),
    (9, 'array', 'SELECT bloom_empty() || ARRAY[e] @> ARRAY[''ann''] FROM words LIMIT 1')
) v (i, what, query) ORDER BY i;
SELECT outcome('SELECT bloom_empty() || ROW(''a'')::exact_tag @> ROW(''a'')::exact_tag')
    = 'true' AS composite;
-- The message.
SELECT message, hint FROM failure('SELECT f @> n FROM words');

DROP TABLE words;
DROP TYPE folded_range, exact_range, tag, exact_tag;
DROP DOMAIN folded;
DROP COLLATION ignore_case, exact;
