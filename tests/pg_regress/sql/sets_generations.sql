-- Filter sets that grow, and those that forget.
CREATE FUNCTION later(step interval, name text DEFAULT 'recent') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %I SET since = since - $1, until = until - $1, changed = changed - $1', name) USING step;
    -- What the session remembers of the generations is forgotten with any change of the table.
    EXECUTE format('COMMENT ON TABLE %I IS %L', name, 'later');
    EXECUTE format('ALTER TABLE %I SET (fillfactor = 50)', name);
END $$;

SELECT bloom_set_create('grows', 'integer') AS made;
SELECT attname, atttypid::regtype AS type, attnotnull FROM pg_attribute WHERE attrelid = 'grows'::regclass AND attnum > 0;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'grows'::regclass AND contype IN ('c', 'p') ORDER BY conname;
SELECT generation, since <= clock_timestamp() AS began, until, elements, capacity, round(target_fpr::numeric, 6) AS target_fpr,
    current_fpr, shards, bytes > 0 AS has_bytes FROM bloom_set_generations('grows');
SELECT element, elements, capacity, target_fpr, current_fpr, overfull FROM bloom_set_info('grows');

-- It behaves as a set.
SELECT bloom_set_add('grows', 1) AS a, bloom_set_add('grows', 1) AS again, bloom_set_add('grows', NULL::integer) AS nothing;
SELECT bloom_set_add_all('grows', ARRAY[3, 1, NULL, 2, 3]) AS new, bloom_set_present('grows', ARRAY[1, 2, 3, 4]) AS present,
    bloom_set_absent('grows', ARRAY[1, 2, 3, 4]) AS absent, bloom_set_contains('grows', 4) AS four;
SELECT * FROM failure($$SELECT bloom_set_add('grows', 'a')$$);
SELECT state FROM failure($$SELECT bloom_set_add_all('grows', '{}'::text[])$$);
SELECT state FROM failure($$SELECT bloom_set_contains('grows', 'a')$$);

-- It grows, by the batch that comes and by single elements, and loses nothing.
SELECT cardinality(bloom_set_add_all('grows', ARRAY(SELECT generate_series(1, 30000)))) AS new;
SELECT count(*) FILTER (WHERE bloom_set_add('grows', i)) > 17900 AS most_are_new FROM generate_series(30001, 48000) AS i;
SELECT cardinality(bloom_set_add_all('grows', ARRAY(SELECT generate_series(1, 400000)))) > 350000 AS most_are_new;
SELECT cardinality(bloom_set_absent('grows', ARRAY(SELECT generate_series(1, 400000)))) AS lost;
SELECT count(*) AS lost FROM generate_series(1, 400000, 37) AS i WHERE NOT bloom_set_contains('grows', i);
SELECT count(*) < 3000 AS few FROM unnest(bloom_set_present('grows', ARRAY(SELECT generate_series(1000001, 1300000)))) AS i;
SELECT generation, capacity, shards, until IS NULL AS newest, elements BETWEEN 0.2 * capacity AND 1.2 * capacity AS filled,
    current_fpr < 1.3 * target_fpr AS as_promised FROM bloom_set_generations('grows') ORDER BY generation;
SELECT round(elements, -3) BETWEEN 396000 AND 404000 AS elements, capacity, current_fpr < target_fpr AS as_promised, overfull
FROM (SELECT elements::numeric, capacity, current_fpr, target_fpr, overfull FROM bloom_set_info('grows')) AS s;
SELECT bool_and((bloom_header(filter)).layout = 'blocked') AS blocked, count(*) FILTER (WHERE until IS NULL) = sum(DISTINCT shards) AS rows FROM grows;

-- A transaction that is undone leaves no generation.
BEGIN;
SELECT cardinality(bloom_set_add_all('grows', ARRAY(SELECT generate_series(2000001, 4000000)))) > 1900000 AS most_are_new;
SELECT count(*) FROM bloom_set_generations('grows');
ROLLBACK;
SELECT count(*) FROM bloom_set_generations('grows');
SELECT bloom_set_contains('grows', 7) AS there, cardinality(bloom_set_add_all('grows', ARRAY[2000001, 2000002])) AS new;

-- Forgetting: elements of the last seven days, to the day.
SELECT bloom_set_create('recent', 'text', 7000, 0.01, '7 days') AS made;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'recent'::regclass AND contype = 'c';
SELECT bloom_set_add_all('recent', ARRAY['a', 'b']) AS new;
SELECT later('1 day');
SELECT bloom_set_add_all('recent', ARRAY['b', 'c']) AS new, bloom_set_contains('recent', 'a') AS a;
SELECT later('6 days 12 hours');
SELECT bloom_set_present('recent', ARRAY['a', 'b', 'c']) AS present;
SELECT later('12 hours');
SELECT bloom_set_present('recent', ARRAY['a', 'b', 'c']) AS present;
SELECT elements, capacity, target_fpr, overfull FROM bloom_set_info('recent');
SELECT bloom_set_add_all('recent', ARRAY['b', 'c']) AS new;
SELECT generation, elements, capacity, round(target_fpr::numeric, 5) AS target_fpr FROM bloom_set_generations('recent') ORDER BY generation;
SELECT later('9 days');
SELECT bloom_set_expire('recent') AS dropped, bloom_set_expire('recent') AS dropped_again;
SELECT bloom_set_present('recent', ARRAY['a', 'b', 'c']) AS present, min(generation), max(generation), count(*) FROM recent;
-- Adding drops as well, once the slice is there.
SELECT bloom_set_add('recent', 'd'), later('1 day');
SELECT bloom_set_add('recent', 'e'), later('8 days');
SELECT bloom_set_add('recent', 'f');
SELECT bloom_set_add('recent', 'g');
SELECT min(generation), max(generation), count(*), bloom_set_present('recent', ARRAY['d', 'e', 'f', 'g']) AS present FROM recent;

-- A slice that is full ends early, as long as the rate is kept; then the set is overfull.
SELECT bloom_set_create('burst', 'integer', 100000, 0.01, '7 days') AS made;
SELECT sum(cardinality(bloom_set_add_all('burst', ARRAY(SELECT generate_series(1000 * i + 1, 1000 * i + 1000))))) BETWEEN 99000 AND 100000
    AS most_are_new FROM generate_series(0, 99) AS i;
SELECT count(*) BETWEEN 7 AND 8 AS slices FROM bloom_set_generations('burst');
SELECT round(elements::numeric, -4) AS elements, current_fpr BETWEEN 0.5 * target_fpr AND target_fpr AS as_promised, overfull FROM bloom_set_info('burst');
SELECT cardinality(bloom_set_absent('burst', ARRAY(SELECT generate_series(1, 100000)))) AS lost;
SET client_min_messages = warning;
SELECT sum(cardinality(bloom_set_add_all('burst', ARRAY(SELECT generate_series(1000 * i + 1, 1000 * i + 1000))))) > 95000
    AS most_are_new FROM generate_series(100, 199) AS i;
SELECT count(*) BETWEEN 12 AND 14 AS slices FROM bloom_set_generations('burst');
SELECT current_fpr > target_fpr AS bad, overfull FROM bloom_set_info('burst');
SET pg_bloom.overfill = 'error';
SELECT state, message FROM failure($$SELECT bloom_set_add_all('burst', ARRAY(SELECT generate_series(500001, 501000)))$$);
SELECT bloom_set_add_all('burst', ARRAY[1, 2, 3]) AS old;
RESET pg_bloom.overfill;

-- Renewing: elements that are added again are remembered from then on, and not new.
SELECT bloom_set_create('renewed', 'text', 7000, 0.01, '7 days', true) AS made;
SELECT bloom_set_add_all('renewed', ARRAY['a', 'b']) AS new, later('5 days', 'renewed');
SELECT bloom_set_add_all('renewed', ARRAY['b', 'c']) AS new, bloom_set_add('renewed', 'b') AS again, later('4 days', 'renewed');
SELECT bloom_set_present('renewed', ARRAY['a', 'b', 'c']) AS present;

-- Both: the slices follow what comes.
SELECT bloom_set_create('twofold', 'integer', keep => '7 days') AS made;
SELECT cardinality(bloom_set_add_all('twofold', ARRAY(SELECT generate_series(1, 200000)))) > 199000 AS most_are_new, later('1 day', 'twofold');
SELECT bloom_set_add('twofold', -1) AS a, bloom_set_add('twofold', 7) AS old, later('1 day', 'twofold');
SELECT bloom_set_add('twofold', -2) AS new;
SELECT generation, capacity, round(target_fpr::numeric, 6) AS target_fpr FROM bloom_set_generations('twofold') ORDER BY generation;
SELECT elements > 199000 AS elements, capacity, overfull FROM bloom_set_info('twofold');

-- What can't be made.
SELECT call, state, message, hint FROM unnest(ARRAY[
    $$'n', 'text', keep => '0'$$, $$'n', 'text', keep => '-1 day'$$, $$'n', 'text', keep => '1 month -40 days'$$,
    $$'n', 'text', keep => '1 month -29 days'$$,
    $$'n', 'text', keep => '1000000 years'$$, $$'n', 'text', renew => true$$, $$'n', 'text', 100, renew => true$$,
    $$'n', 'text', fpr => 1e-9$$, $$'n', 'text', 100, 1e-9, '1 day'$$, $$'n', 'text', 0, keep => '1 day'$$,
    $$'n', 'text', 9223372036854775807, 0.01, '1 day'$$, $$'n', 'json'$$
]) AS call, failure('SELECT bloom_set_create(' || call || ')');
SELECT bloom_set_create('months', 'text', 100, 0.5, '1 month'), bloom_set_create('short', 'text', 100, 1e-7, '7 ms'),
    bloom_set_create('strict', 'text', fpr => 1.2e-8), bloom_set_create('nothing', 'text', NULL, NULL, NULL, NULL);
SELECT * FROM failure($$SELECT bloom_set_expire('grows')$$);
SELECT bloom_set_create('plain', 'text', 100);
SELECT * FROM failure($$SELECT bloom_set_expire('plain')$$);
SELECT generation, since, until, elements, capacity, target_fpr, shards FROM bloom_set_generations('plain');
SELECT bloom_set_expire(NULL) IS NULL AS nothing, (SELECT count(*) FROM bloom_set_generations(NULL)) AS none;

-- Rows that don't belong there.
SELECT change, state FROM unnest(ARRAY[
    $$INSERT INTO grows SELECT -1, 0, 91, now(), filter FROM grows WHERE generation = 0 AND shard = 0$$,
    $$INSERT INTO grows SELECT 7, 92, 91, now(), filter FROM grows WHERE generation = 0 AND shard = 0$$,
    $$INSERT INTO grows SELECT 7, 0, 80, now(), filter FROM grows WHERE generation = 0 AND shard = 0$$,
    $$UPDATE grows SET filter = bloom_empty(100) WHERE shard = 0$$,
    $$UPDATE grows SET shards = NULL$$, $$UPDATE grows SET shards = 0 WHERE shard = 0$$
]) AS change, failure(change);

-- What is lost is missed: one row, a generation in the middle, the newest.
BEGIN;
DELETE FROM grows WHERE generation = 0 AND shard = bloom_shard(5, 91);
SELECT * FROM failure($$SELECT bloom_set_contains('grows', 5)$$);
SELECT state FROM failure($$SELECT bloom_set_add('grows', 5)$$);
SELECT state FROM failure($$SELECT bloom_set_info('grows')$$);
ROLLBACK;
BEGIN;
DELETE FROM grows WHERE generation = 1;
SELECT * FROM failure($$SELECT bloom_set_contains('grows', 5)$$);
SELECT state FROM failure($$SELECT bloom_set_add('grows', 5)$$);
ROLLBACK;
BEGIN;
DELETE FROM grows WHERE generation = (SELECT max(generation) FROM grows);
SELECT * FROM failure($$SELECT bloom_set_contains('grows', 5)$$);
SELECT state FROM failure($$SELECT bloom_set_add('grows', 5)$$);
SELECT state FROM failure($$SELECT count(*) FROM bloom_set_generations('grows')$$);
ROLLBACK;
BEGIN;
TRUNCATE grows;
SELECT message FROM failure($$SELECT bloom_set_contains('grows', 5)$$);
ROLLBACK;
SELECT bloom_set_contains('grows', 5) AS five;

-- Rights: who adds makes generations, and drops them only with the right to.
CREATE ROLE adds_only;
GRANT SELECT, UPDATE ON recent TO adds_only;
SET ROLE adds_only;
SELECT * FROM failure($$SELECT bloom_set_add('recent', 'x1')$$);
SELECT bloom_set_contains('recent', 'x1') AS there;
RESET ROLE;
GRANT INSERT ON recent TO adds_only;
SELECT later('9 days');
SET ROLE adds_only;
SELECT bloom_set_add('recent', 'x1') AS new;
SELECT bloom_set_add('recent', 'x2') AS new;
SELECT * FROM failure($$SELECT bloom_set_expire('recent')$$);
RESET ROLE;
SELECT bloom_set_expire('recent') > 5 AS dropped;
GRANT DELETE ON recent TO adds_only;
REVOKE INSERT, UPDATE ON recent FROM adds_only;
SELECT later('9 days');
SET ROLE adds_only;
SELECT bloom_set_expire('recent') AS not_without_a_new_slice;
RESET ROLE;

-- A trigger that keeps rows out is found out.
CREATE FUNCTION nothing_new() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER nothing_new BEFORE INSERT ON recent FOR EACH ROW EXECUTE FUNCTION nothing_new();
SELECT * FROM failure($$SELECT bloom_set_add('recent', 'w')$$);
DROP TRIGGER nothing_new ON recent;
SELECT bloom_set_add('recent', 'w') AS new;

-- A table that is no set, or not any more.
ALTER TABLE twofold ADD other integer;
SELECT state, detail FROM failure($$SELECT bloom_set_contains('twofold', 1)$$);
ALTER TABLE twofold DROP other;
SELECT bloom_set_contains('twofold', 1) AS there;
ALTER TABLE twofold DROP CONSTRAINT twofold_pkey;
SELECT state, detail FROM failure($$SELECT bloom_set_contains('twofold', 1)$$);
ALTER TABLE twofold ADD PRIMARY KEY (shard, generation);
SELECT state, detail FROM failure($$SELECT bloom_set_contains('twofold', 1)$$);
ALTER TABLE twofold DROP CONSTRAINT twofold_pkey, ADD PRIMARY KEY (generation, shard), ALTER changed DROP NOT NULL;
SELECT state, detail FROM failure($$SELECT bloom_set_contains('twofold', 1)$$);
DROP TABLE grows, recent, burst, renewed, twofold, months, short, strict, nothing, plain;
DROP ROLE adds_only;
