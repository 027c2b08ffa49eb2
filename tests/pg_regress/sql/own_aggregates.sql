-- Aggregates that users make of the extension's functions.
SELECT bloom_empty(100)::text AS nothing, counting_bloom_empty(100)::text AS counting_nothing \gset
CREATE AGGREGATE collected(anyelement) (SFUNC = bloom_add, STYPE = bloom, INITCOND = :'nothing');
CREATE AGGREGATE is_among(text ORDER BY text) (
    SFUNC = bloom_add, STYPE = bloom, INITCOND = :'nothing', FINALFUNC = bloom_contains);
CREATE AGGREGATE in_all(bloom) (SFUNC = bloom_contained, STYPE = boolean, INITCOND = 'true');
CREATE AGGREGATE sliding(integer) (
    SFUNC = counting_bloom_add, STYPE = counting_bloom, INITCOND = :'counting_nothing',
    MSFUNC = counting_bloom_add, MINVFUNC = counting_bloom_remove, MSTYPE = counting_bloom,
    MINITCOND = :'counting_nothing');

CREATE TABLE probes AS SELECT chr(96 + i) AS word, i % 2 = 0 AS is_even FROM generate_series(1, 10) i;

-- A direct argument is another for each group, also where the aggregated argument is a constant.
SELECT word, is_among(word) WITHIN GROUP (ORDER BY 'c'::text) AS is_c FROM probes GROUP BY word ORDER BY word LIMIT 4;
SELECT bool_and(found = (word = 'c')) AS as_expected, count(*)
FROM (SELECT word, is_among(word) WITHIN GROUP (ORDER BY 'c'::text) AS found FROM probes GROUP BY word) g;
SELECT bool_and(found) AS found
FROM (SELECT word, is_among(word) WITHIN GROUP (ORDER BY word) AS found FROM probes GROUP BY word) g;
SELECT is_even, is_among('c') WITHIN GROUP (ORDER BY word) AS c, is_among('d') WITHIN GROUP (ORDER BY word) AS d
FROM probes GROUP BY is_even ORDER BY is_even;
SELECT is_among('c') WITHIN GROUP (ORDER BY word) AS c, is_among('z') WITHIN GROUP (ORDER BY word) AS z FROM probes;

-- The state as the element, which no argument of the aggregate is.
SELECT in_all(f) AS "true", in_all(g) AS "false"
FROM (SELECT bloom_from_array(ARRAY[true, i = 1]) AS f, bloom_from_array(ARRAY[i = 1]) AS g
      FROM generate_series(1, 2) i) v;

-- As aggregates and as windows, also where the same function serves elements of several types.
SELECT collected(word) @> 'j' AS word, collected(is_even) @> true AS is_even, collected(7) @> 7 AS constant FROM probes;
SELECT count(*) AS rows,
    bool_and(words @> word AND flags @> is_even AND lists @> ARRAY[word] AND NOT words @> 'z'::text) AS "all"
FROM (SELECT *, collected(word) OVER w AS words, collected(is_even) OVER w AS flags,
          collected(ARRAY[word]) OVER w AS lists
      FROM probes WINDOW w AS (ORDER BY word)) v;
SELECT i, sliding(i) OVER w @> i AS this, sliding(i) OVER w @> i - 1 AS previous, sliding(i) OVER w @> i - 2 AS gone
FROM generate_series(1, 4) i WINDOW w AS (ORDER BY i ROWS 1 PRECEDING) ORDER BY i;

-- A parameter of a moving window that changes from row to row is seen.
SELECT outcome('SELECT bloom_agg(word, ascii(word)) OVER (ORDER BY word) FROM probes');

DROP TABLE probes;
DROP AGGREGATE collected(anyelement);
DROP AGGREGATE is_among(text ORDER BY text);
DROP AGGREGATE in_all(bloom);
DROP AGGREGATE sliding(integer);

-- Functions of several aggregates put together: each notices that the state is another's.
CREATE AGGREGATE mixed_1(bloom) (SFUNC = bloom_union_agg_transition, STYPE = internal, FINALFUNC = bloom_agg_final);
CREATE AGGREGATE mixed_2(bloom) (
    SFUNC = bloom_union_agg_transition, STYPE = internal, FINALFUNC = counting_bloom_agg_final);
CREATE AGGREGATE mixed_3(counting_bloom) (
    SFUNC = counting_bloom_union_agg_transition, STYPE = internal, FINALFUNC = bloom_union_agg_final);
SELECT aggregate, state, message, hint
FROM (VALUES ('mixed_1(bloom_empty(10))'), ('mixed_2(bloom_empty(10))'), ('mixed_3(counting_bloom_empty(10))')) AS t
        (aggregate),
    failure('SELECT ' || aggregate);
