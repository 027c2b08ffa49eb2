-- int2vector and oidvector are arrays whose subscripts begin at 0 and that have a dimension even if they are empty:
-- what is picked from them is such a vector again.
CREATE TABLE vectors (v int2vector, o oidvector);
INSERT INTO vectors VALUES ('1 2 3', '1 2 3'), ('7 8', '7 8'), ('', ''), ('3 1 3', '3 1 3');
SELECT v, present, pg_typeof(present) AS type, absent, array_lower(present, 1) AS lower, array_ndims(present) AS dimensions,
    present = present::text::int2vector AND absent = absent::text::int2vector AS well_formed
FROM vectors, bloom_from_array('{1,3}'::smallint[]) AS f, bloom_present(f, v) AS present, bloom_absent(f, v) AS absent;
SELECT o, present, pg_typeof(present) AS type, absent, array_lower(present, 1) AS lower, array_ndims(present) AS dimensions,
    present = present::text::oidvector AND absent = absent::text::oidvector AS well_formed
FROM vectors, bloom_from_array('1 3'::oidvector) AS f, bloom_present(f, o) AS present, bloom_absent(f, o) AS absent;
-- Stored, sorted, sent and joined they are as any.
CREATE TABLE picked AS SELECT v, bloom_absent(bloom_from_array('{1,3}'::smallint[]), v) AS a, bloom_absent(bloom_empty(), o) AS b
FROM vectors;
SELECT a, b, count(*), encode(int2vectorsend(a), 'hex') = encode(int2vectorsend(a::text::int2vector), 'hex') AS sent
FROM picked GROUP BY a, b ORDER BY a, b;
-- Of an ordinary array with other bounds it is an ordinary array.
SELECT bloom_present(bloom_from_array('{1,3}'::integer[]), '[0:2]={1,2,3}'::integer[]);
-- A vector is an array of elements for the other functions as well.
SELECT bloom_contains_any(f, v) AS "any", bloom_contains_all(f, v) AS "all", bloom_add_all(f, v) @> 8::smallint AS added,
    bloom_from_array(v) = bloom_from_array(v::smallint[]) AS same
FROM vectors, bloom_from_array('{1,3}'::smallint[]) AS f;
DROP TABLE vectors, picked;
