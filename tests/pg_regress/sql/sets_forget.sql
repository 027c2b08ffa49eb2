-- Filter sets that forget. Time can't be set here: rows are moved by the clock in tests/filter_sets/forgetting.rs.
SELECT bloom_set_create('recent', 'text', 7000, 0.01, '7 days') AS made;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'recent'::regclass AND contype = 'c';
SELECT bloom_set_add_all('recent', ARRAY['a', 'b']) AS new, bloom_set_add_all('recent', ARRAY['b', 'c']) AS new_too;
SELECT bloom_set_present('recent', ARRAY['a', 'b', 'c', 'd']) AS present, bloom_set_remove('recent', 'c') AS was_there;
SELECT elements, capacity, target_fpr, overfull, keep, oldest BETWEEN now() - interval '1 day' AND now() AS today FROM bloom_set_info('recent');
SELECT bloom_set_expire('recent') AS forgotten;
SELECT bloom_set_create('renewed', 'text', keep => '1 mon -2 days', renew => true) AS made;
SELECT bloom_set_add_all('renewed', ARRAY['a', 'b']) AS new, bloom_set_add('renewed', 'b') AS again;
SELECT keep, elements FROM bloom_set_info('renewed');

-- What can't be made.
SELECT call, state, message, hint FROM unnest(ARRAY[
    $$keep => '0'$$, $$keep => '-1 day'$$, $$keep => '1 month -30 days'$$, $$keep => '1 month -31 days'$$,
    $$keep => '7 ms'$$, $$keep => '1000000 years'$$, $$renew => true$$, $$capacity => 100, renew => true$$,
    $$capacity => 0, keep => '1 day'$$, $$capacity => 9223372036854775807, keep => '1 day'$$
]) AS call, failure('SELECT bloom_set_create(''n'', ''text'', ' || call || ')');
SELECT bloom_set_create('months', 'text', 100, 0.5, '1 month'), bloom_set_create('short', 'text', 100, 1e-7, '8 ms'),
    bloom_set_create('long', 'text', 100, keep => '9999 years'), bloom_set_create('strict', 'text', fpr => 1e-8),
    bloom_set_create('nothing', 'text', NULL, NULL, NULL, NULL);
SELECT bloom_set_add('long', 'a') AS new, bloom_set_contains('long', 'a') AS there, keep FROM bloom_set_info('long');
SELECT bloom_set_expire('strict') AS never_forgets, bloom_set_expire(NULL) IS NULL AS nothing;
DROP TABLE recent, renewed, months, short, long, strict, nothing;
