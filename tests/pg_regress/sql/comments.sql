-- What the extension consists of, and that every object says what it is.

-- Every object has a comment. Types of arrays are none of ours, although members from PostgreSQL 18 on.
CREATE VIEW members AS
SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object,
    obj_description(objid, classid::regclass::name) AS comment
FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension
    WHERE extname = 'pg_bloom') AND deptype = 'e'
    AND NOT EXISTS (SELECT FROM pg_type t WHERE classid = 'pg_type'::regclass AND t.oid = objid AND t.typelem <> 0);
SELECT object AS without_comment FROM members WHERE coalesce(comment, '') = '' ORDER BY object COLLATE "C";
SELECT count(*) > 100 AS many, obj_description(oid, 'pg_extension') IS NOT NULL AS extension
    FROM members, pg_extension WHERE extname = 'pg_bloom' GROUP BY oid;
SELECT DISTINCT classid::regclass::text AS catalog FROM members ORDER BY 1;

-- The functions that users call.
SELECT p.oid::regprocedure AS function, p.prokind AS kind, pg_get_function_result(p.oid) AS result
FROM members JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
WHERE comment !~ '^internal' AND proname !~ '^(counting_)?bloom_(eq|ne|lt|le|gt|ge|cmp|hash|hash_extended|in|out|recv|send|to_bytea|from_bytea)$'
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- All are parallel safe but those of sets and the two that look at an index, which are volatile as well; the others are
-- immutable, except for those whose result depends on the default rate; strict, except for those that skip NULLs.
SELECT count(*) FILTER (WHERE proparallel <> 's') AS not_parallel_safe,
    count(*) FILTER (WHERE provolatile = 'v') AS volatile, count(*)
    FILTER (WHERE prosecdef OR proleakproof) AS privileged
FROM members JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid;
SELECT proname AS stable, count(*) FROM members JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    WHERE provolatile = 's' GROUP BY proname ORDER BY proname COLLATE "C";
SELECT proname AS not_strict, count(*) FROM members JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    WHERE NOT proisstrict AND prokind = 'f' GROUP BY proname ORDER BY proname COLLATE "C";
-- The operators, which know their commutators, negators and estimators.
SELECT o.oid::regoperator AS operator, o.oprcom::regoperator AS commutator, o.oprnegate::regoperator AS negator,
    o.oprrest AS restrict, o.oprjoin AS join, o.oprcanhash AS hashes, o.oprcanmerge AS merges
FROM members JOIN pg_operator o ON classid = 'pg_operator'::regclass AND objid = o.oid
    ORDER BY o.oid::regoperator::text COLLATE "C";
-- Anyone who may create objects in a database may install it, and it can be moved.
SELECT trusted, relocatable, superuser, requires FROM pg_available_extension_versions
    WHERE name = 'pg_bloom' AND installed;

DROP VIEW members;
