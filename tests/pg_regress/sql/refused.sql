-- Types that can't be elements are refused with 0A000, whatever way they come: a wrong answer would be worse.
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN mood_domain AS mood;
CREATE FUNCTION by_size(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp(abs(a), abs(b))';
CREATE OPERATOR CLASS by_size FOR TYPE int USING btree AS FUNCTION 1 by_size(int, int);
CREATE TYPE sizes AS RANGE (subtype = int, subtype_opclass = by_size);
CREATE TYPE with_name AS (n regclass);
-- A row and an enum with an equality of their own, by a hash operator class.
CREATE TYPE caseless AS (t text);
CREATE FUNCTION same(caseless, caseless) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT lower($1.t) = lower($2.t)';
CREATE FUNCTION hash(caseless) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT hashtext(lower($1.t))';
CREATE FUNCTION hash(caseless, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT hashtextextended(lower($1.t), $2)';
CREATE OPERATOR = (LEFTARG = caseless, RIGHTARG = caseless, FUNCTION = same, HASHES);
CREATE OPERATOR CLASS caseless DEFAULT FOR TYPE caseless USING hash
    AS OPERATOR 1 =, FUNCTION 1 hash(caseless), FUNCTION 2 hash(caseless, bigint);
CREATE TYPE any_case AS ENUM ('a', 'A');
CREATE FUNCTION same(any_case, any_case) RETURNS bool LANGUAGE sql IMMUTABLE
    AS 'SELECT lower($1::text) = lower($2::text)';
CREATE FUNCTION hash(any_case) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT hashtext(lower($1::text))';
CREATE FUNCTION hash(any_case, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT hashtextextended(lower($1::text), $2)';
CREATE OPERATOR = (LEFTARG = any_case, RIGHTARG = any_case, FUNCTION = same, HASHES);
CREATE OPERATOR CLASS any_case DEFAULT FOR TYPE any_case USING hash
    AS OPERATOR 1 =, FUNCTION 1 hash(any_case), FUNCTION 2 hash(any_case, bigint);
CREATE TYPE with_filter AS (f bloom);
CREATE TYPE with_json AS (j json);
CREATE DOMAIN filter_domain AS bloom;
CREATE DOMAIN json_domain AS json;

CREATE TABLE refused (i int GENERATED ALWAYS AS IDENTITY, why text, value text);
INSERT INTO refused (why, value) VALUES
    ('no hash', $$'1'::json$$),
    ('no hash', $$'1'::json_domain$$),
    ('no hash', $$'(1,2)'::point$$),
    ('no hash', $$'(1,2),(3,4)'::box$$),
    ('no hash', $$'<(1,2),3>'::circle$$),
    ('no hash', $$'(1,2,3,4)'::polygon$$),
    ('no hash', $$'a b'::tsvector$$),
    ('no hash', $$'$.a'::jsonpath$$),
    ('no hash', $$B'101'$$),
    ('no hash', $$B'101'::varbit$$),
    ('no hash', $$1::money$$),
    ('no hash', $$'1:2:'::pg_snapshot$$),
    ('no hash', $$xmlelement(name x)$$),
    ('no hash inside', $$ARRAY['1'::json]$$),
    ('no hash inside', $$ARRAY['(1,2)'::point]$$),
    ('no hash inside', $$ARRAY['1'::json_domain]$$),
    ('no hash inside', $$ROW('1')::with_json$$),
    ('equal by another operator', $$sizes(1, 2)$$),
    ('equal by another operator', $$ARRAY[sizes(1, 2)]$$),
    ('equal by another operator', $$ROW('A')::caseless$$),
    ('equal by another operator', $$'A'::any_case$$),
    ('name', $$'pg_class'::regclass$$),
    ('name inside', $$ARRAY['pg_class'::regclass]$$),
    ('name inside', $$ROW('pg_class')::with_name$$),
    ('anonymous row', $$ROW(1, 2)$$),
    ('anonymous row', $$ROW('a')$$),
    ('anonymous row', $$(SELECT r FROM (VALUES (1, 'a')) r)$$),
    ('anonymous row', $$ARRAY[ROW(1, 2)]$$),
    ('filter', $$bloom_empty()$$),
    ('filter', $$bloom_empty()::filter_domain$$),
    ('filter', $$bloom_from_array(ARRAY[1])$$),
    ('filter inside', $$ARRAY[bloom_empty()]$$),
    ('filter inside', $$ARRAY[bloom_empty()::filter_domain]$$),
    ('filter inside', $$ROW(bloom_empty())::with_filter$$),
    ('filter inside', $$ARRAY[ROW(bloom_empty())::with_filter]$$);

-- In each way that an element is given. ("&" with a filter of itself, "|" and "@>" of filters are other operators:
-- here they would be a merge, and there is no filter that contains another.)
CREATE FUNCTION by_all_ways(value text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(DISTINCT outcome(format(way, value)), ', ') FROM unnest(ARRAY[
        'SELECT bloom_empty() @> %s', 'SELECT %s <@ bloom_empty()', 'SELECT bloom_contains(bloom_empty(), %s)',
            'SELECT bloom_query(bloom_empty(), %s)',
        'SELECT bloom_add(bloom_empty(), %s)', 'SELECT bloom_empty() || %s',
        'SELECT bloom_agg(%s)', 'SELECT bloom_agg(%s, 10)', 'SELECT bloom_agg(%s, 10, 0.01)',
            'SELECT bloom_agg(%s, 10, 0.01, ''classic'')',
        'SELECT bloom_agg(x) FROM (SELECT %s) s (x)', 'SELECT bloom_agg(x) OVER () FROM (SELECT %s) s (x)'
    ]) way
$$;
SELECT why, value, by_all_ways(value) FROM refused ORDER BY i;

-- Also by arrays of them, where they have arrays, and also when the array is empty or there are no rows.
SELECT type, outcome(format('SELECT bloom_contains_any(bloom_empty(), ''{}''::%s[])', type)) AS "any",
    outcome(format('SELECT bloom_contains_all(bloom_empty(), ''{}''::%s[])', type)) AS "all",
    outcome(format('SELECT bloom_add_all(bloom_empty(), ''{}''::%s[])', type)) AS add_all,
        outcome(format('SELECT bloom_from_array(''{}''::%s[])', type)) AS from_array
FROM unnest(ARRAY['json', 'point', 'json_domain', 'sizes', 'with_name', 'with_json', 'with_filter',
    'bloom', 'filter_domain']) type;
-- Enums themselves, and arrays given as a whole of them, are fine: they count by their labels.
SELECT bloom_empty() || 'sad'::mood @> 'sad'::mood_domain AS enum,
    bloom_from_array(ARRAY['sad'::mood]) @> 'sad' AS elements,
    bloom_contains_any(bloom_empty() || 'sad', ARRAY['happy', 'sad']::mood[]) AS "any";

-- The message says what to do instead.
SELECT DISTINCT ON (message COLLATE "C", hint COLLATE "C") why, message, hint
FROM refused, failure(format('SELECT bloom_empty() || %s', value))
    WHERE why <> 'no hash' AND why <> 'no hash inside' OR value ~ 'json|point'
    ORDER BY message COLLATE "C", hint COLLATE "C", why COLLATE "C";

-- A type that cannot even be guessed is PostgreSQL's error.
SELECT outcome($$SELECT bloom_contains_any(bloom_empty(), '{a}')$$) AS untyped_array,
    outcome($$SELECT bloom_from_array(NULL)$$) AS untyped_null;

DROP TABLE refused;
DROP FUNCTION by_all_ways;
DROP DOMAIN json_domain, filter_domain, mood_domain;
DROP TYPE with_json, with_filter, with_name, sizes, mood;
DROP OPERATOR FAMILY by_size USING btree;
DROP FUNCTION by_size(int, int);
