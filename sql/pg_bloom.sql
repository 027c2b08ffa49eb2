-- pg_bloom: Bloom filters as a data type.
--
-- Sections: type, build, aggregates, membership, merge, what is in it, sizing, sets that change, Parquet, casts, operator
-- classes; then counting filters, with the same sections as far as they have them; then index; last, what depends on the
-- version of PostgreSQL.
-- Each C function is a Rust function of src/, in the file of that name: see src/lib.rs.
--
-- An element is given as anyelement; the forms for text let the parser resolve an untyped literal (f @> 'x'). A "char",
-- which both could be for, is ambiguous: users cast it to text.

\echo Use "CREATE EXTENSION pg_bloom" to load this file. \quit

-- ---------------------------------------------------------------------------------------------------------------
-- type
-- ---------------------------------------------------------------------------------------------------------------

CREATE TYPE bloom;

CREATE FUNCTION bloom_in(cstring) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_in(cstring) IS 'input of type bloom: \x and hexadecimal digits';

CREATE FUNCTION bloom_out(bloom) RETURNS cstring
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_out(bloom) IS 'output of type bloom';

CREATE FUNCTION bloom_recv(internal) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_recv(internal) IS 'binary input of type bloom';

CREATE FUNCTION bloom_send(bloom) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_send(bloom) IS 'binary output of type bloom';

-- External storage: the bits of a good filter can't be compressed, and a probe can then read just a slice.
CREATE TYPE bloom (
    INPUT = bloom_in,
    OUTPUT = bloom_out,
    RECEIVE = bloom_recv,
    SEND = bloom_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = double,
    STORAGE = external
);
COMMENT ON TYPE bloom IS
    'a set of elements, kept as a Bloom filter: never a false negative, and false positives at a known rate';

-- Functions with a rate exist twice: with double precision, IMMUTABLE, and with this domain over it, STABLE, whose
-- default is pg_bloom.default_fpr. The parser prefers double precision wherever the arguments up to the rate are given,
-- for untyped literals and parameters too, and takes the other form where they are left out.
CREATE DOMAIN bloom_optional_fpr AS double precision;
COMMENT ON DOMAIN bloom_optional_fpr IS 'a false positive rate, or NULL for pg_bloom.default_fpr';

-- ---------------------------------------------------------------------------------------------------------------
-- build
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION bloom_empty() RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_empty() IS
    'an empty filter without a size: merged with any other, it gives the other; adding to it gives it a size';

CREATE FUNCTION bloom_empty(capacity bigint, fpr bloom_optional_fpr DEFAULT NULL, layout text DEFAULT NULL)
    RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_empty(bigint, bloom_optional_fpr, text) IS
    'an empty filter with the given capacity, at the default false positive rate';

CREATE FUNCTION bloom_empty(capacity bigint, fpr double precision, layout text DEFAULT NULL) RETURNS bloom
    AS 'MODULE_PATHNAME', 'bloom_empty_at_fpr' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_empty(bigint, double precision, text) IS
    'an empty filter with the given capacity and false positive rate';

CREATE FUNCTION bloom_from_array(
    elements anyarray, capacity bigint DEFAULT NULL, fpr bloom_optional_fpr DEFAULT NULL, layout text DEFAULT NULL
) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_from_array(anyarray, bigint, bloom_optional_fpr, text) IS
    'a filter of the elements of an array, sized for them unless a capacity is given';

CREATE FUNCTION bloom_from_array(elements anyarray, capacity bigint, fpr double precision, layout text DEFAULT NULL)
    RETURNS bloom
    AS 'MODULE_PATHNAME', 'bloom_from_array_at_fpr' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_from_array(anyarray, bigint, double precision, text) IS
    'a filter of the elements of an array at the given false positive rate, sized for them if the capacity is NULL';

-- Not STRICT: a NULL element is skipped, and the filter is returned unchanged.

CREATE FUNCTION bloom_add(filter bloom, element anyelement) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_add(bloom, anyelement) IS
    'the filter with an element added; a filter without a size gets one for 53 elements at the default rate';

CREATE FUNCTION bloom_add(filter bloom, element text) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_add(bloom, text) IS
    'the filter with an element added; a filter without a size gets one for 53 elements at the default rate';

CREATE FUNCTION bloom_add_all(filter bloom, elements anyarray) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_add_all(bloom, anyarray) IS 'the filter with the elements of an array added';

CREATE OPERATOR || (FUNCTION = bloom_add, LEFTARG = bloom, RIGHTARG = anyelement);
COMMENT ON OPERATOR || (bloom, anyelement) IS
    'the filter with an element added; a filter without a size gets one for 53 elements at the default rate';

CREATE OPERATOR || (FUNCTION = bloom_add, LEFTARG = bloom, RIGHTARG = text);
COMMENT ON OPERATOR || (bloom, text) IS
    'the filter with an element added; a filter without a size gets one for 53 elements at the default rate';

-- A set that is too large for one value is spread over filters in many rows.

CREATE FUNCTION bloom_shard(element anyelement, shards integer) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_shard(anyelement, integer) IS
    'which of the given number of filters an element belongs to, from 0; independent of the bits that it sets in them';

CREATE FUNCTION bloom_shard(element text, shards integer) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_shard(text, integer) IS
    'which of the given number of filters an element belongs to, from 0; independent of the bits that it sets in them';

-- ---------------------------------------------------------------------------------------------------------------
-- aggregates
-- ---------------------------------------------------------------------------------------------------------------

-- Only the executor can call the functions of aggregates. Their state is a structure in the memory of the aggregate:
-- see src/aggregate/mod.rs.

CREATE FUNCTION bloom_agg_transition(state internal, element anyelement) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_transition(internal, anyelement) IS 'internal: adds a row to the state of bloom_agg';

CREATE FUNCTION bloom_agg_transition(state internal, element anyelement, capacity bigint) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_transition(internal, anyelement, bigint) IS
    'internal: adds a row to the state of bloom_agg';

CREATE FUNCTION bloom_agg_transition(state internal, element anyelement, capacity bigint, fpr double precision)
    RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_transition(internal, anyelement, bigint, double precision) IS
    'internal: adds a row to the state of bloom_agg';

CREATE FUNCTION bloom_agg_transition(state internal, element anyelement, capacity bigint, fpr double precision, layout text)
    RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_transition(internal, anyelement, bigint, double precision, text) IS
    'internal: adds a row to the state of bloom_agg';

CREATE FUNCTION bloom_agg_transition(state internal, element text) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_transition(internal, text) IS 'internal: adds a row to the state of bloom_agg';

CREATE FUNCTION bloom_agg_transition(state internal, element text, capacity bigint) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_transition(internal, text, bigint) IS
    'internal: adds a row to the state of bloom_agg';

CREATE FUNCTION bloom_agg_transition(state internal, element text, capacity bigint, fpr double precision)
    RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_transition(internal, text, bigint, double precision) IS
    'internal: adds a row to the state of bloom_agg';

CREATE FUNCTION bloom_agg_transition(state internal, element text, capacity bigint, fpr double precision, layout text)
    RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_transition(internal, text, bigint, double precision, text) IS
    'internal: adds a row to the state of bloom_agg';

CREATE FUNCTION bloom_agg_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_combine(internal, internal) IS 'internal: merges two states of bloom_agg';

CREATE FUNCTION bloom_agg_serialise(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_serialise(internal) IS 'internal: serialises the state of bloom_agg';

CREATE FUNCTION bloom_agg_deserialise(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_deserialise(bytea, internal) IS 'internal: deserialises the state of bloom_agg';

CREATE FUNCTION bloom_agg_final(internal) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_agg_final(internal) IS 'internal: makes the filter that bloom_agg returns';

CREATE AGGREGATE bloom_agg(element anyelement) (
    SFUNC = bloom_agg_transition,
    STYPE = internal,
    SSPACE = 128,
    FINALFUNC = bloom_agg_final,
    COMBINEFUNC = bloom_agg_combine,
    SERIALFUNC = bloom_agg_serialise,
    DESERIALFUNC = bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(anyelement) IS 'a filter of the elements, sized for them';

CREATE AGGREGATE bloom_agg(element anyelement, capacity bigint) (
    SFUNC = bloom_agg_transition,
    STYPE = internal,
    SSPACE = 128,
    FINALFUNC = bloom_agg_final,
    COMBINEFUNC = bloom_agg_combine,
    SERIALFUNC = bloom_agg_serialise,
    DESERIALFUNC = bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(anyelement, bigint) IS 'a filter of the elements with the given capacity';

CREATE AGGREGATE bloom_agg(element anyelement, capacity bigint, fpr double precision) (
    SFUNC = bloom_agg_transition,
    STYPE = internal,
    SSPACE = 128,
    FINALFUNC = bloom_agg_final,
    COMBINEFUNC = bloom_agg_combine,
    SERIALFUNC = bloom_agg_serialise,
    DESERIALFUNC = bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(anyelement, bigint, double precision) IS
    'a filter of the elements with the given capacity and false positive rate';

CREATE AGGREGATE bloom_agg(element anyelement, capacity bigint, fpr double precision, layout text) (
    SFUNC = bloom_agg_transition,
    STYPE = internal,
    SSPACE = 128,
    FINALFUNC = bloom_agg_final,
    COMBINEFUNC = bloom_agg_combine,
    SERIALFUNC = bloom_agg_serialise,
    DESERIALFUNC = bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(anyelement, bigint, double precision, text) IS
    'a filter of the elements with the given capacity, false positive rate and layout';

CREATE AGGREGATE bloom_agg(element text) (
    SFUNC = bloom_agg_transition,
    STYPE = internal,
    SSPACE = 128,
    FINALFUNC = bloom_agg_final,
    COMBINEFUNC = bloom_agg_combine,
    SERIALFUNC = bloom_agg_serialise,
    DESERIALFUNC = bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(text) IS 'a filter of the elements, sized for them';

CREATE AGGREGATE bloom_agg(element text, capacity bigint) (
    SFUNC = bloom_agg_transition,
    STYPE = internal,
    SSPACE = 128,
    FINALFUNC = bloom_agg_final,
    COMBINEFUNC = bloom_agg_combine,
    SERIALFUNC = bloom_agg_serialise,
    DESERIALFUNC = bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(text, bigint) IS 'a filter of the elements with the given capacity';

CREATE AGGREGATE bloom_agg(element text, capacity bigint, fpr double precision) (
    SFUNC = bloom_agg_transition,
    STYPE = internal,
    SSPACE = 128,
    FINALFUNC = bloom_agg_final,
    COMBINEFUNC = bloom_agg_combine,
    SERIALFUNC = bloom_agg_serialise,
    DESERIALFUNC = bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(text, bigint, double precision) IS
    'a filter of the elements with the given capacity and false positive rate';

CREATE AGGREGATE bloom_agg(element text, capacity bigint, fpr double precision, layout text) (
    SFUNC = bloom_agg_transition,
    STYPE = internal,
    SSPACE = 128,
    FINALFUNC = bloom_agg_final,
    COMBINEFUNC = bloom_agg_combine,
    SERIALFUNC = bloom_agg_serialise,
    DESERIALFUNC = bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(text, bigint, double precision, text) IS
    'a filter of the elements with the given capacity, false positive rate and layout';

-- ---------------------------------------------------------------------------------------------------------------
-- membership
-- ---------------------------------------------------------------------------------------------------------------

-- What the planner expects a stored filter to cost: see src/planner/mod.rs.
CREATE FUNCTION bloom_probe_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_probe_support(internal) IS
    'internal: the cost of asking a stored filter for one element';

CREATE FUNCTION bloom_whole_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_whole_support(internal) IS 'internal: the cost of reading a whole stored filter';

CREATE FUNCTION bloom_contains(filter bloom, element anyelement) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5
    SUPPORT bloom_probe_support;
COMMENT ON FUNCTION bloom_contains(bloom, anyelement) IS
    'whether the element may be in the filter; false is certain';

CREATE FUNCTION bloom_contained(element anyelement, filter bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5
    SUPPORT bloom_probe_support;
COMMENT ON FUNCTION bloom_contained(anyelement, bloom) IS
    'whether the element may be in the filter; false is certain';

CREATE FUNCTION bloom_contains(filter bloom, element text) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5
    SUPPORT bloom_probe_support;
COMMENT ON FUNCTION bloom_contains(bloom, text) IS 'whether the element may be in the filter; false is certain';

CREATE FUNCTION bloom_contained(element text, filter bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5
    SUPPORT bloom_probe_support;
COMMENT ON FUNCTION bloom_contained(text, bloom) IS 'whether the element may be in the filter; false is certain';

-- How many rows the planner expects of them: see src/planner/mod.rs.
CREATE FUNCTION bloom_contains_selectivity(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_contains_selectivity(internal, oid, internal, integer) IS
    'restriction selectivity of filter @> element';

CREATE FUNCTION bloom_contained_selectivity(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_contained_selectivity(internal, oid, internal, integer) IS
    'restriction selectivity of element <@ filter';

CREATE FUNCTION bloom_join_selectivity(internal, oid, internal, smallint, internal) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_join_selectivity(internal, oid, internal, smallint, internal) IS
    'join selectivity of filter @> element and element <@ filter';

CREATE OPERATOR @> (
    FUNCTION = bloom_contains, LEFTARG = bloom, RIGHTARG = anyelement,
    COMMUTATOR = <@, RESTRICT = bloom_contains_selectivity, JOIN = bloom_join_selectivity
);
COMMENT ON OPERATOR @> (bloom, anyelement) IS 'may contain';

CREATE OPERATOR <@ (
    FUNCTION = bloom_contained, LEFTARG = anyelement, RIGHTARG = bloom,
    COMMUTATOR = @>, RESTRICT = bloom_contained_selectivity, JOIN = bloom_join_selectivity
);
COMMENT ON OPERATOR <@ (anyelement, bloom) IS 'may be in';

CREATE OPERATOR @> (
    FUNCTION = bloom_contains, LEFTARG = bloom, RIGHTARG = text,
    COMMUTATOR = <@, RESTRICT = bloom_contains_selectivity, JOIN = bloom_join_selectivity
);
COMMENT ON OPERATOR @> (bloom, text) IS 'may contain';

CREATE OPERATOR <@ (
    FUNCTION = bloom_contained, LEFTARG = text, RIGHTARG = bloom,
    COMMUTATOR = @>, RESTRICT = bloom_contained_selectivity, JOIN = bloom_join_selectivity
);
COMMENT ON OPERATOR <@ (text, bloom) IS 'may be in';

CREATE FUNCTION bloom_contains_any(filter bloom, elements anyarray) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION bloom_contains_any(bloom, anyarray) IS
    'whether any element of an array may be in the filter; false for an empty array';

CREATE FUNCTION bloom_contains_all(filter bloom, elements anyarray) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION bloom_contains_all(bloom, anyarray) IS
    'whether every element of an array may be in the filter; true for an empty array';

CREATE FUNCTION bloom_present(filter bloom, elements anyarray) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION bloom_present(bloom, anyarray) IS
    'the elements of an array that may be in the filter, in order and without NULLs';

CREATE FUNCTION bloom_absent(filter bloom, elements anyarray) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION bloom_absent(bloom, anyarray) IS
    'the elements of an array that are certainly not in the filter, in order and without NULLs';

CREATE FUNCTION bloom_query(filter bloom, element anyelement, OUT contains boolean, OUT confidence double precision)
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION bloom_query(bloom, anyelement) IS
    'whether the element may be in the filter, and how certain that is: 1 for no, 1 - bloom_fpr(filter) for yes';

CREATE FUNCTION bloom_query(filter bloom, element text, OUT contains boolean, OUT confidence double precision)
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION bloom_query(bloom, text) IS
    'whether the element may be in the filter, and how certain that is: 1 for no, 1 - bloom_fpr(filter) for yes';

-- ---------------------------------------------------------------------------------------------------------------
-- merge
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION bloom_union(a bloom, b bloom) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_union(bloom, bloom) IS 'a filter of the elements that are in either filter';

CREATE OPERATOR | (FUNCTION = bloom_union, LEFTARG = bloom, RIGHTARG = bloom, COMMUTATOR = |);
COMMENT ON OPERATOR | (bloom, bloom) IS 'union';

CREATE FUNCTION bloom_intersection(a bloom, b bloom) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_intersection(bloom, bloom) IS
    'a filter of the elements that are in both filters; its rate may be higher than that of one built from them';

CREATE OPERATOR & (FUNCTION = bloom_intersection, LEFTARG = bloom, RIGHTARG = bloom, COMMUTATOR = &);
COMMENT ON OPERATOR & (bloom, bloom) IS 'intersection';

-- An aggregate keeps filters apart until the end if neither size divides the other, so that its result doesn't depend
-- on their order.

CREATE FUNCTION bloom_union_agg_transition(internal, bloom) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_union_agg_transition(internal, bloom) IS
    'internal: merges a filter into the state of bloom_union_agg';

CREATE FUNCTION bloom_union_agg_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_union_agg_combine(internal, internal) IS
    'internal: merges two states of bloom_union_agg';

CREATE FUNCTION bloom_union_agg_final(internal) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_union_agg_final(internal) IS 'internal: makes the filter that bloom_union_agg returns';

CREATE FUNCTION bloom_intersection_agg_transition(internal, bloom) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_intersection_agg_transition(internal, bloom) IS
    'internal: merges a filter into the state of bloom_intersection_agg';

CREATE FUNCTION bloom_intersection_agg_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_intersection_agg_combine(internal, internal) IS
    'internal: merges two states of bloom_intersection_agg';

CREATE FUNCTION bloom_intersection_agg_final(internal) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_intersection_agg_final(internal) IS
    'internal: makes the filter that bloom_intersection_agg returns';

CREATE FUNCTION bloom_merge_agg_serialise(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_merge_agg_serialise(internal) IS
    'internal: serialises the state of an aggregate over filters';

CREATE FUNCTION bloom_merge_agg_deserialise(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_merge_agg_deserialise(bytea, internal) IS
    'internal: deserialises the state of an aggregate over filters';

CREATE AGGREGATE bloom_union_agg(filter bloom) (
    SFUNC = bloom_union_agg_transition,
    STYPE = internal,
    SSPACE = 512,
    FINALFUNC = bloom_union_agg_final,
    COMBINEFUNC = bloom_union_agg_combine,
    SERIALFUNC = bloom_merge_agg_serialise,
    DESERIALFUNC = bloom_merge_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_union_agg(bloom) IS 'the union of filters, the same in any order';

CREATE AGGREGATE bloom_intersection_agg(filter bloom) (
    SFUNC = bloom_intersection_agg_transition,
    STYPE = internal,
    SSPACE = 512,
    FINALFUNC = bloom_intersection_agg_final,
    COMBINEFUNC = bloom_intersection_agg_combine,
    SERIALFUNC = bloom_merge_agg_serialise,
    DESERIALFUNC = bloom_merge_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_intersection_agg(bloom) IS 'the intersection of filters, the same in any order';

CREATE FUNCTION bloom_fold(filter bloom, fpr double precision) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_fold(bloom, double precision) IS
    'the filter, halved for as long as its present false positive rate stays at or below fpr';

-- Not STRICT: without a capacity, a list is sized for its elements.
CREATE FUNCTION bloom_resize(filter bloom, capacity bigint) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_resize(bloom, bigint) IS
    'the filter with another capacity: any while it is a list of hashes, one whose size divides evenly once it is bits';

-- ---------------------------------------------------------------------------------------------------------------
-- what is in it
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION bloom_info(
    filter bloom,
    OUT format_version integer,
    OUT layout text,
    OUT key_kind text,
    OUT representation text,
    OUT capacity bigint,
    OUT target_fpr double precision,
    OUT num_bits bigint,
    OUT num_hashes integer,
    OUT bits_set bigint,
    OUT fill_ratio double precision,
    OUT cardinality double precision,
    OUT current_fpr double precision,
    OUT saturated boolean,
    OUT bytes bigint
)
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION bloom_info(bloom) IS 'what a filter is, what it was made for, and how full it is';

CREATE FUNCTION bloom_header(
    filter bloom,
    OUT format_version integer,
    OUT layout text,
    OUT key_kind text,
    OUT representation text,
    OUT capacity bigint,
    OUT target_fpr double precision,
    OUT num_bits bigint,
    OUT num_hashes integer,
    OUT bytes bigint
)
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
    SUPPORT bloom_probe_support;
COMMENT ON FUNCTION bloom_header(bloom) IS
    'what a filter is and what it was made for; reads only the start of a large stored filter';

CREATE FUNCTION bloom_cardinality(filter bloom) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION bloom_cardinality(bloom) IS 'estimated number of distinct elements';

CREATE FUNCTION bloom_fpr(filter bloom) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION bloom_fpr(bloom) IS 'the false positive rate that the filter has now';

CREATE FUNCTION bloom_union_cardinality(a bloom, b bloom) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_union_cardinality(bloom, bloom) IS
    'estimated number of distinct elements in either filter';

CREATE FUNCTION bloom_intersection_cardinality(a bloom, b bloom) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_intersection_cardinality(bloom, bloom) IS
    'estimated number of distinct elements in both filters, by inclusion and exclusion';

CREATE FUNCTION bloom_jaccard(a bloom, b bloom) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_jaccard(bloom, bloom) IS
    'estimated share of the elements of either filter that are in both';

-- ---------------------------------------------------------------------------------------------------------------
-- sizing
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION bloom_best_practices(
    max_fpr double precision, layout text DEFAULT 'classic',
    OUT bits_per_element integer, OUT num_hashes integer, OUT fpr double precision
)
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_best_practices(double precision, text) IS
    'bits per element and number of hashes for the given false positive rate, from the lookup table';

CREATE FUNCTION bloom_sizing_table(
    layout text DEFAULT 'classic',
    OUT bits_per_element integer, OUT num_hashes integer, OUT fpr double precision
) RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 1000;
COMMENT ON FUNCTION bloom_sizing_table(text) IS
    'the lookup table: the false positive rate for each number of bits per element and of hashes';

CREATE FUNCTION bloom_parameters(
    capacity bigint, fpr bloom_optional_fpr DEFAULT NULL, layout text DEFAULT NULL,
    OUT num_bits bigint, OUT num_hashes integer, OUT bytes bigint, OUT fpr double precision
)
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_parameters(bigint, bloom_optional_fpr, text) IS
    'what bloom_agg allocates for the given capacity, and its false positive rate at capacity';

CREATE FUNCTION bloom_parameters(
    capacity bigint, fpr double precision, layout text DEFAULT NULL,
    OUT num_bits bigint, OUT num_hashes integer, OUT bytes bigint, OUT fpr double precision
)
    AS 'MODULE_PATHNAME', 'bloom_parameters_at_fpr' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_parameters(bigint, double precision, text) IS
    'what bloom_agg allocates for these arguments, and its false positive rate at capacity';

CREATE FUNCTION bloom_capacity(bytes bigint, fpr bloom_optional_fpr DEFAULT NULL, layout text DEFAULT NULL)
    RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_capacity(bigint, bloom_optional_fpr, text) IS
    'the largest capacity whose filter fits in the given number of bytes at the default false positive rate';

CREATE FUNCTION bloom_capacity(bytes bigint, fpr double precision, layout text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bloom_capacity_at_fpr' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_capacity(bigint, double precision, text) IS
    'the largest capacity whose filter fits in the given number of bytes at the given false positive rate';

CREATE FUNCTION bloom_expected_fpr(
    elements bigint, num_bits bigint, num_hashes integer, layout text DEFAULT 'classic'
) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_expected_fpr(bigint, bigint, integer, text) IS
    'the false positive rate of a filter with the given numbers of distinct elements, bits and hashes';

-- ---------------------------------------------------------------------------------------------------------------
-- sets that change
-- ---------------------------------------------------------------------------------------------------------------

-- Tables of sorted hashes: see docs/sets.md. Not parallel: workers can't read temporary tables.

CREATE FUNCTION bloom_set_check(
    bucket bigint, hashes bytea, element regtype, kind bigint,
    capacity bigint, fpr double precision, keep interval, renew boolean
) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_set_check(
    bigint, bytea, regtype, bigint, bigint, double precision, interval, boolean
) IS
    'whether a row belongs to a filter set that was made for this: the constraint of its table';

CREATE FUNCTION bloom_set_create(
    name text,
    element regtype,
    capacity bigint DEFAULT NULL,
    fpr double precision DEFAULT NULL,
    keep interval DEFAULT NULL,
    renew boolean DEFAULT false,
    if_not_exists boolean DEFAULT false
) RETURNS regclass
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION bloom_set_create(text, regtype, bigint, double precision, interval, boolean, boolean) IS
    'makes a table that is a set of elements of that type, which grows, and may forget them after some time';

CREATE FUNCTION bloom_set_add(set regclass, element anyelement) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION bloom_set_add(regclass, anyelement) IS
    'adds an element to a filter set; whether it surely was not in it before';

CREATE FUNCTION bloom_set_add(set regclass, element text) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION bloom_set_add(regclass, text) IS
    'adds an element to a filter set; whether it surely was not in it before';

CREATE FUNCTION bloom_set_add_all(set regclass, elements anyarray) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION bloom_set_add_all(regclass, anyarray) IS
    'adds the elements of an array to a filter set; those that surely were not in it before, each once';

CREATE FUNCTION bloom_set_remove(set regclass, element anyelement) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION bloom_set_remove(regclass, anyelement) IS
    'removes an element from a filter set; whether it was in it';

CREATE FUNCTION bloom_set_remove(set regclass, element text) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION bloom_set_remove(regclass, text) IS
    'removes an element from a filter set; whether it was in it';

CREATE FUNCTION bloom_set_remove_all(set regclass, elements anyarray) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION bloom_set_remove_all(regclass, anyarray) IS
    'removes the elements of an array from a filter set; those that were in it, each once';

CREATE FUNCTION bloom_set_contains(set regclass, element anyelement) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION bloom_set_contains(regclass, anyelement) IS
    'whether an element may be in a filter set: false is certain';

CREATE FUNCTION bloom_set_contains(set regclass, element text) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION bloom_set_contains(regclass, text) IS
    'whether an element may be in a filter set: false is certain';

CREATE FUNCTION bloom_set_present(set regclass, elements anyarray) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION bloom_set_present(regclass, anyarray) IS
    'the elements of an array that may be in a filter set';

CREATE FUNCTION bloom_set_absent(set regclass, elements anyarray) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION bloom_set_absent(regclass, anyarray) IS
    'the elements of an array that surely are not in a filter set';

CREATE FUNCTION bloom_set_info(
    set regclass,
    OUT element regtype,
    OUT elements double precision,
    OUT capacity bigint,
    OUT target_fpr double precision,
    OUT current_fpr double precision,
    OUT rows integer,
    OUT bytes bigint,
    OUT overfull boolean,
    OUT keep interval,
    OUT oldest timestamptz
) RETURNS record
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 100000;
COMMENT ON FUNCTION bloom_set_info(regclass) IS
    'what a filter set was made for, and how full it is; checks all its rows';

CREATE FUNCTION bloom_set_clear(set regclass) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION bloom_set_clear(regclass) IS
    'makes a filter set empty, whatever its table has in it';

CREATE FUNCTION bloom_set_expire(set regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 100000;
COMMENT ON FUNCTION bloom_set_expire(regclass) IS
    'drops the hashes that a filter set has forgotten, and joins small rows; how many hashes these were';

-- ---------------------------------------------------------------------------------------------------------------
-- Parquet
-- ---------------------------------------------------------------------------------------------------------------

-- The bytes of a filter in a Parquet file are its header and bits: bloom_filter_length bytes from bloom_filter_offset
-- on, two fields of the column chunk. Writers may leave the length out.

CREATE FUNCTION bloom_to_parquet(filter bloom) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_to_parquet(bloom) IS
    'a filter of layout parquet as Parquet files store it: header and bits';

CREATE FUNCTION bloom_from_parquet(bytes bytea, element_type regtype, more_follows boolean DEFAULT false) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_from_parquet(bytea, regtype, boolean) IS
    'a filter from the header and bits in a Parquet file, of a column whose elements have the given type';

-- ---------------------------------------------------------------------------------------------------------------
-- casts
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION bloom_from_bytea(bytes bytea) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_from_bytea(bytea) IS 'a filter from its stored bytes, which are checked';

CREATE FUNCTION bloom_to_bytea(filter bloom) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_to_bytea(bloom) IS 'the stored bytes of a filter';

CREATE CAST (bytea AS bloom) WITH FUNCTION bloom_from_bytea(bytea);
COMMENT ON CAST (bytea AS bloom) IS 'a filter from its stored bytes, which are checked';

CREATE CAST (bloom AS bytea) WITH FUNCTION bloom_to_bytea(bloom);
COMMENT ON CAST (bloom AS bytea) IS 'the stored bytes of a filter';

-- ---------------------------------------------------------------------------------------------------------------
-- operator classes
-- ---------------------------------------------------------------------------------------------------------------

-- By the stored bytes: two filters are equal if and only if they are the same filter. The order has no other meaning.

CREATE FUNCTION bloom_eq(a bloom, b bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_eq(bloom, bloom) IS 'equal';

CREATE FUNCTION bloom_ne(a bloom, b bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_ne(bloom, bloom) IS 'not equal';

CREATE FUNCTION bloom_lt(a bloom, b bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_lt(bloom, bloom) IS 'less than';

CREATE FUNCTION bloom_le(a bloom, b bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_le(bloom, bloom) IS 'less than or equal';

CREATE FUNCTION bloom_gt(a bloom, b bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_gt(bloom, bloom) IS 'greater than';

CREATE FUNCTION bloom_ge(a bloom, b bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_ge(bloom, bloom) IS 'greater than or equal';

CREATE FUNCTION bloom_cmp(a bloom, b bloom) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_cmp(bloom, bloom) IS 'less, equal or greater, as -1, 0 or 1';

CREATE FUNCTION bloom_hash(filter bloom) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_hash(bloom) IS 'hash of a filter';

CREATE FUNCTION bloom_hash_extended(filter bloom, seed bigint) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_hash_extended(bloom, bigint) IS '64-bit hash of a filter';

CREATE OPERATOR = (
    FUNCTION = bloom_eq, LEFTARG = bloom, RIGHTARG = bloom,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel,
    HASHES, MERGES
);
COMMENT ON OPERATOR = (bloom, bloom) IS 'equal';

CREATE OPERATOR <> (
    FUNCTION = bloom_ne, LEFTARG = bloom, RIGHTARG = bloom,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
COMMENT ON OPERATOR <> (bloom, bloom) IS 'not equal';

CREATE OPERATOR < (
    FUNCTION = bloom_lt, LEFTARG = bloom, RIGHTARG = bloom,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
COMMENT ON OPERATOR < (bloom, bloom) IS 'less than';

CREATE OPERATOR <= (
    FUNCTION = bloom_le, LEFTARG = bloom, RIGHTARG = bloom,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
COMMENT ON OPERATOR <= (bloom, bloom) IS 'less than or equal';

CREATE OPERATOR > (
    FUNCTION = bloom_gt, LEFTARG = bloom, RIGHTARG = bloom,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
COMMENT ON OPERATOR > (bloom, bloom) IS 'greater than';

CREATE OPERATOR >= (
    FUNCTION = bloom_ge, LEFTARG = bloom, RIGHTARG = bloom,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel
);
COMMENT ON OPERATOR >= (bloom, bloom) IS 'greater than or equal';

CREATE OPERATOR CLASS bloom_ops DEFAULT FOR TYPE bloom USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 bloom_cmp(bloom, bloom);
COMMENT ON OPERATOR CLASS bloom_ops USING btree IS 'filters by their stored bytes';
COMMENT ON OPERATOR FAMILY bloom_ops USING btree IS 'filters by their stored bytes';

CREATE OPERATOR CLASS bloom_ops DEFAULT FOR TYPE bloom USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 bloom_hash(bloom),
    FUNCTION 2 bloom_hash_extended(bloom, bigint);
COMMENT ON OPERATOR CLASS bloom_ops USING hash IS 'filters by their stored bytes';
COMMENT ON OPERATOR FAMILY bloom_ops USING hash IS 'filters by their stored bytes';

-- ---------------------------------------------------------------------------------------------------------------
-- counting filters: type
-- ---------------------------------------------------------------------------------------------------------------

-- A second type, for sets that shrink: each bit becomes a counter of four bits. Functions that only copy or compare the
-- stored bytes are the C functions of bloom.

CREATE TYPE counting_bloom;

CREATE FUNCTION counting_bloom_in(cstring) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_in(cstring) IS 'input of type counting_bloom: \x and hexadecimal digits';

CREATE FUNCTION counting_bloom_out(counting_bloom) RETURNS cstring
    AS 'MODULE_PATHNAME', 'bloom_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_out(counting_bloom) IS 'output of type counting_bloom';

CREATE FUNCTION counting_bloom_recv(internal) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_recv(internal) IS 'binary input of type counting_bloom';

CREATE FUNCTION counting_bloom_send(counting_bloom) RETURNS bytea
    AS 'MODULE_PATHNAME', 'bloom_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_send(counting_bloom) IS 'binary output of type counting_bloom';

CREATE TYPE counting_bloom (
    INPUT = counting_bloom_in,
    OUTPUT = counting_bloom_out,
    RECEIVE = counting_bloom_recv,
    SEND = counting_bloom_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = double,
    STORAGE = external
);
COMMENT ON TYPE counting_bloom IS
    'a multiset of elements that can be removed again, kept as a counting Bloom filter';

-- ---------------------------------------------------------------------------------------------------------------
-- counting filters: build
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION counting_bloom_empty() RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_empty() IS
    'an empty counting filter without a size: added to any other, it gives the other one';

CREATE FUNCTION counting_bloom_empty(capacity bigint, fpr bloom_optional_fpr DEFAULT NULL) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_empty(bigint, bloom_optional_fpr) IS
    'an empty counting filter with the given capacity, at the default false positive rate';

CREATE FUNCTION counting_bloom_empty(capacity bigint, fpr double precision) RETURNS counting_bloom
    AS 'MODULE_PATHNAME', 'counting_bloom_empty_at_fpr' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_empty(bigint, double precision) IS
    'an empty counting filter with the given capacity and false positive rate';

-- Not STRICT: a NULL element is skipped, and the filter is returned unchanged.

CREATE FUNCTION counting_bloom_add(filter counting_bloom, element anyelement) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION counting_bloom_add(counting_bloom, anyelement) IS
    'the filter with one more copy of an element';

CREATE FUNCTION counting_bloom_add(filter counting_bloom, element text) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION counting_bloom_add(counting_bloom, text) IS 'the filter with one more copy of an element';

CREATE FUNCTION counting_bloom_remove(filter counting_bloom, element anyelement) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION counting_bloom_remove(counting_bloom, anyelement) IS
    'the filter with one copy of an element removed; unchanged if the element is certainly not in it';

CREATE FUNCTION counting_bloom_remove(filter counting_bloom, element text) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION counting_bloom_remove(counting_bloom, text) IS
    'the filter with one copy of an element removed; unchanged if the element is certainly not in it';

CREATE FUNCTION counting_bloom_add_all(filter counting_bloom, elements anyarray) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION counting_bloom_add_all(counting_bloom, anyarray) IS
    'the filter with one more copy of each element of an array';

CREATE FUNCTION counting_bloom_remove_all(filter counting_bloom, elements anyarray) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION counting_bloom_remove_all(counting_bloom, anyarray) IS
    'the filter with one copy of each element of an array removed, in order';

-- Removing has no operator: if there were one named -, PostgreSQL would take the untyped operand of $1 - 'a'::text for
-- a filter rather than jsonb, or report that the operator is ambiguous.

CREATE OPERATOR || (FUNCTION = counting_bloom_add, LEFTARG = counting_bloom, RIGHTARG = anyelement);
COMMENT ON OPERATOR || (counting_bloom, anyelement) IS 'the filter with one more copy of an element';

CREATE OPERATOR || (FUNCTION = counting_bloom_add, LEFTARG = counting_bloom, RIGHTARG = text);
COMMENT ON OPERATOR || (counting_bloom, text) IS 'the filter with one more copy of an element';

-- ---------------------------------------------------------------------------------------------------------------
-- counting filters: aggregates
-- ---------------------------------------------------------------------------------------------------------------

-- Their state is a structure in the memory of the aggregate: see src/aggregate/counting_agg.rs.

CREATE FUNCTION counting_bloom_agg_transition(state internal, element anyelement, capacity bigint)
    RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_agg_transition(internal, anyelement, bigint) IS
    'internal: adds a row to the state of counting_bloom_agg';

CREATE FUNCTION counting_bloom_agg_transition(state internal, element anyelement, capacity bigint, fpr double precision)
    RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_agg_transition(internal, anyelement, bigint, double precision) IS
    'internal: adds a row to the state of counting_bloom_agg';

CREATE FUNCTION counting_bloom_agg_transition(state internal, element text, capacity bigint)
    RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_agg_transition(internal, text, bigint) IS
    'internal: adds a row to the state of counting_bloom_agg';

CREATE FUNCTION counting_bloom_agg_transition(state internal, element text, capacity bigint, fpr double precision)
    RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_agg_transition(internal, text, bigint, double precision) IS
    'internal: adds a row to the state of counting_bloom_agg';

CREATE FUNCTION counting_bloom_agg_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_agg_combine(internal, internal) IS
    'internal: adds two states of counting_bloom_agg';

CREATE FUNCTION counting_bloom_agg_serialise(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_agg_serialise(internal) IS
    'internal: serialises the state of an aggregate of counting filters';

CREATE FUNCTION counting_bloom_agg_deserialise(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_agg_deserialise(bytea, internal) IS
    'internal: deserialises the state of an aggregate of counting filters';

CREATE FUNCTION counting_bloom_agg_final(internal) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_agg_final(internal) IS
    'internal: makes the filter that an aggregate of counting filters returns';

CREATE AGGREGATE counting_bloom_agg(element anyelement, capacity bigint) (
    SFUNC = counting_bloom_agg_transition,
    STYPE = internal,
    SSPACE = 1024,
    FINALFUNC = counting_bloom_agg_final,
    COMBINEFUNC = counting_bloom_agg_combine,
    SERIALFUNC = counting_bloom_agg_serialise,
    DESERIALFUNC = counting_bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE counting_bloom_agg(anyelement, bigint) IS
    'a counting filter of the elements with the given capacity';

CREATE AGGREGATE counting_bloom_agg(element anyelement, capacity bigint, fpr double precision) (
    SFUNC = counting_bloom_agg_transition,
    STYPE = internal,
    SSPACE = 1024,
    FINALFUNC = counting_bloom_agg_final,
    COMBINEFUNC = counting_bloom_agg_combine,
    SERIALFUNC = counting_bloom_agg_serialise,
    DESERIALFUNC = counting_bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE counting_bloom_agg(anyelement, bigint, double precision) IS
    'a counting filter of the elements with the given capacity and false positive rate';

CREATE AGGREGATE counting_bloom_agg(element text, capacity bigint) (
    SFUNC = counting_bloom_agg_transition,
    STYPE = internal,
    SSPACE = 1024,
    FINALFUNC = counting_bloom_agg_final,
    COMBINEFUNC = counting_bloom_agg_combine,
    SERIALFUNC = counting_bloom_agg_serialise,
    DESERIALFUNC = counting_bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE counting_bloom_agg(text, bigint) IS
    'a counting filter of the elements with the given capacity';

CREATE AGGREGATE counting_bloom_agg(element text, capacity bigint, fpr double precision) (
    SFUNC = counting_bloom_agg_transition,
    STYPE = internal,
    SSPACE = 1024,
    FINALFUNC = counting_bloom_agg_final,
    COMBINEFUNC = counting_bloom_agg_combine,
    SERIALFUNC = counting_bloom_agg_serialise,
    DESERIALFUNC = counting_bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE counting_bloom_agg(text, bigint, double precision) IS
    'a counting filter of the elements with the given capacity and false positive rate';

-- ---------------------------------------------------------------------------------------------------------------
-- counting filters: membership
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION counting_bloom_contains(filter counting_bloom, element anyelement) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5
    SUPPORT bloom_probe_support;
COMMENT ON FUNCTION counting_bloom_contains(counting_bloom, anyelement) IS
    'whether the element may be in the filter; false is certain';

CREATE FUNCTION counting_bloom_contained(element anyelement, filter counting_bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5
    SUPPORT bloom_probe_support;
COMMENT ON FUNCTION counting_bloom_contained(anyelement, counting_bloom) IS
    'whether the element may be in the filter; false is certain';

CREATE FUNCTION counting_bloom_contains(filter counting_bloom, element text) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5
    SUPPORT bloom_probe_support;
COMMENT ON FUNCTION counting_bloom_contains(counting_bloom, text) IS
    'whether the element may be in the filter; false is certain';

CREATE FUNCTION counting_bloom_contained(element text, filter counting_bloom) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5
    SUPPORT bloom_probe_support;
COMMENT ON FUNCTION counting_bloom_contained(text, counting_bloom) IS
    'whether the element may be in the filter; false is certain';

CREATE FUNCTION counting_bloom_count(filter counting_bloom, element anyelement) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION counting_bloom_count(counting_bloom, anyelement) IS
    'how many copies of the element are in the filter, never too few: 15 is 15 or more';

CREATE FUNCTION counting_bloom_count(filter counting_bloom, element text) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION counting_bloom_count(counting_bloom, text) IS
    'how many copies of the element are in the filter, never too few: 15 is 15 or more';

CREATE FUNCTION counting_bloom_contains_selectivity(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_contains_selectivity(internal, oid, internal, integer) IS
    'restriction selectivity of counting filter @> element';

CREATE FUNCTION counting_bloom_contained_selectivity(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_contained_selectivity(internal, oid, internal, integer) IS
    'restriction selectivity of element <@ counting filter';

CREATE OPERATOR @> (
    FUNCTION = counting_bloom_contains, LEFTARG = counting_bloom, RIGHTARG = anyelement,
    COMMUTATOR = <@, RESTRICT = counting_bloom_contains_selectivity, JOIN = bloom_join_selectivity
);
COMMENT ON OPERATOR @> (counting_bloom, anyelement) IS 'may contain';

CREATE OPERATOR <@ (
    FUNCTION = counting_bloom_contained, LEFTARG = anyelement, RIGHTARG = counting_bloom,
    COMMUTATOR = @>, RESTRICT = counting_bloom_contained_selectivity, JOIN = bloom_join_selectivity
);
COMMENT ON OPERATOR <@ (anyelement, counting_bloom) IS 'may be in';

CREATE OPERATOR @> (
    FUNCTION = counting_bloom_contains, LEFTARG = counting_bloom, RIGHTARG = text,
    COMMUTATOR = <@, RESTRICT = counting_bloom_contains_selectivity, JOIN = bloom_join_selectivity
);
COMMENT ON OPERATOR @> (counting_bloom, text) IS 'may contain';

CREATE OPERATOR <@ (
    FUNCTION = counting_bloom_contained, LEFTARG = text, RIGHTARG = counting_bloom,
    COMMUTATOR = @>, RESTRICT = counting_bloom_contained_selectivity, JOIN = bloom_join_selectivity
);
COMMENT ON OPERATOR <@ (text, counting_bloom) IS 'may be in';

-- ---------------------------------------------------------------------------------------------------------------
-- counting filters: merge
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION counting_bloom_union(a counting_bloom, b counting_bloom) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION counting_bloom_union(counting_bloom, counting_bloom) IS
    'the sum of two counting filters: every copy of an element in either';

CREATE OPERATOR + (
    FUNCTION = counting_bloom_union, LEFTARG = counting_bloom, RIGHTARG = counting_bloom, COMMUTATOR = +
);
COMMENT ON OPERATOR + (counting_bloom, counting_bloom) IS 'sum';

CREATE FUNCTION counting_bloom_union_agg_transition(internal, counting_bloom) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_union_agg_transition(internal, counting_bloom) IS
    'internal: adds a filter to the state of counting_bloom_union_agg';

CREATE FUNCTION counting_bloom_union_agg_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_union_agg_combine(internal, internal) IS
    'internal: adds two states of counting_bloom_union_agg';

CREATE AGGREGATE counting_bloom_union_agg(filter counting_bloom) (
    SFUNC = counting_bloom_union_agg_transition,
    STYPE = internal,
    SSPACE = 1024,
    FINALFUNC = counting_bloom_agg_final,
    COMBINEFUNC = counting_bloom_union_agg_combine,
    SERIALFUNC = counting_bloom_agg_serialise,
    DESERIALFUNC = counting_bloom_agg_deserialise,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE counting_bloom_union_agg(counting_bloom) IS
    'the sum of counting filters: every copy of an element in any of them';

-- ---------------------------------------------------------------------------------------------------------------
-- counting filters: what is in it
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION counting_bloom_info(
    filter counting_bloom,
    OUT format_version integer,
    OUT key_kind text,
    OUT capacity bigint,
    OUT target_fpr double precision,
    OUT num_counters bigint,
    OUT num_hashes integer,
    OUT counters_set bigint,
    OUT counters_saturated bigint,
    OUT fill_ratio double precision,
    OUT cardinality double precision,
    OUT copies double precision,
    OUT current_fpr double precision,
    OUT bytes bigint
)
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION counting_bloom_info(counting_bloom) IS
    'what a counting filter is, what it was made for, how full it is, and how many of its counters are saturated';

CREATE FUNCTION counting_bloom_cardinality(filter counting_bloom) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
    SUPPORT bloom_whole_support;
COMMENT ON FUNCTION counting_bloom_cardinality(counting_bloom) IS 'estimated number of distinct elements';

-- ---------------------------------------------------------------------------------------------------------------
-- counting filters: casts
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION counting_bloom_to_bloom(filter counting_bloom) RETURNS bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION counting_bloom_to_bloom(counting_bloom) IS
    'a filter of the elements that are left: one bit per counter';

CREATE FUNCTION counting_bloom_from_bytea(bytes bytea) RETURNS counting_bloom
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_from_bytea(bytea) IS
    'a counting filter from its stored bytes, which are checked';

CREATE FUNCTION counting_bloom_to_bytea(filter counting_bloom) RETURNS bytea
    AS 'MODULE_PATHNAME', 'bloom_to_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_to_bytea(counting_bloom) IS 'the stored bytes of a counting filter';

CREATE CAST (counting_bloom AS bloom) WITH FUNCTION counting_bloom_to_bloom(counting_bloom) AS ASSIGNMENT;
COMMENT ON CAST (counting_bloom AS bloom) IS 'a filter of the elements that are left: one bit per counter';

CREATE CAST (bytea AS counting_bloom) WITH FUNCTION counting_bloom_from_bytea(bytea);
COMMENT ON CAST (bytea AS counting_bloom) IS 'a counting filter from its stored bytes, which are checked';

CREATE CAST (counting_bloom AS bytea) WITH FUNCTION counting_bloom_to_bytea(counting_bloom);
COMMENT ON CAST (counting_bloom AS bytea) IS 'the stored bytes of a counting filter';

-- ---------------------------------------------------------------------------------------------------------------
-- counting filters: operator classes
-- ---------------------------------------------------------------------------------------------------------------

-- By the stored bytes, as those of bloom.

CREATE FUNCTION counting_bloom_eq(a counting_bloom, b counting_bloom) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bloom_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_eq(counting_bloom, counting_bloom) IS 'equal';

CREATE FUNCTION counting_bloom_ne(a counting_bloom, b counting_bloom) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bloom_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_ne(counting_bloom, counting_bloom) IS 'not equal';

CREATE FUNCTION counting_bloom_lt(a counting_bloom, b counting_bloom) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bloom_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_lt(counting_bloom, counting_bloom) IS 'less than';

CREATE FUNCTION counting_bloom_le(a counting_bloom, b counting_bloom) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bloom_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_le(counting_bloom, counting_bloom) IS 'less than or equal';

CREATE FUNCTION counting_bloom_gt(a counting_bloom, b counting_bloom) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bloom_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_gt(counting_bloom, counting_bloom) IS 'greater than';

CREATE FUNCTION counting_bloom_ge(a counting_bloom, b counting_bloom) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bloom_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_ge(counting_bloom, counting_bloom) IS 'greater than or equal';

CREATE FUNCTION counting_bloom_cmp(a counting_bloom, b counting_bloom) RETURNS integer
    AS 'MODULE_PATHNAME', 'bloom_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_cmp(counting_bloom, counting_bloom) IS 'less, equal or greater, as -1, 0 or 1';

CREATE FUNCTION counting_bloom_hash(filter counting_bloom) RETURNS integer
    AS 'MODULE_PATHNAME', 'bloom_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_hash(counting_bloom) IS 'hash of a counting filter';

CREATE FUNCTION counting_bloom_hash_extended(filter counting_bloom, seed bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bloom_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION counting_bloom_hash_extended(counting_bloom, bigint) IS '64-bit hash of a counting filter';

CREATE OPERATOR = (
    FUNCTION = counting_bloom_eq, LEFTARG = counting_bloom, RIGHTARG = counting_bloom,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel,
    HASHES, MERGES
);
COMMENT ON OPERATOR = (counting_bloom, counting_bloom) IS 'equal';

CREATE OPERATOR <> (
    FUNCTION = counting_bloom_ne, LEFTARG = counting_bloom, RIGHTARG = counting_bloom,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
COMMENT ON OPERATOR <> (counting_bloom, counting_bloom) IS 'not equal';

CREATE OPERATOR < (
    FUNCTION = counting_bloom_lt, LEFTARG = counting_bloom, RIGHTARG = counting_bloom,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
COMMENT ON OPERATOR < (counting_bloom, counting_bloom) IS 'less than';

CREATE OPERATOR <= (
    FUNCTION = counting_bloom_le, LEFTARG = counting_bloom, RIGHTARG = counting_bloom,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
COMMENT ON OPERATOR <= (counting_bloom, counting_bloom) IS 'less than or equal';

CREATE OPERATOR > (
    FUNCTION = counting_bloom_gt, LEFTARG = counting_bloom, RIGHTARG = counting_bloom,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
COMMENT ON OPERATOR > (counting_bloom, counting_bloom) IS 'greater than';

CREATE OPERATOR >= (
    FUNCTION = counting_bloom_ge, LEFTARG = counting_bloom, RIGHTARG = counting_bloom,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel
);
COMMENT ON OPERATOR >= (counting_bloom, counting_bloom) IS 'greater than or equal';

CREATE OPERATOR CLASS counting_bloom_ops DEFAULT FOR TYPE counting_bloom USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 counting_bloom_cmp(counting_bloom, counting_bloom);
COMMENT ON OPERATOR CLASS counting_bloom_ops USING btree IS 'counting filters by their stored bytes';
COMMENT ON OPERATOR FAMILY counting_bloom_ops USING btree IS 'counting filters by their stored bytes';

CREATE OPERATOR CLASS counting_bloom_ops DEFAULT FOR TYPE counting_bloom USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 counting_bloom_hash(counting_bloom),
    FUNCTION 2 counting_bloom_hash_extended(counting_bloom, bigint);
COMMENT ON OPERATOR CLASS counting_bloom_ops USING hash IS 'counting filters by their stored bytes';
COMMENT ON OPERATOR FAMILY counting_bloom_ops USING hash IS 'counting filters by their stored bytes';

-- ---------------------------------------------------------------------------------------------------------------
-- index
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION bloom_filter_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_filter_handler(internal) IS 'internal: the index access method bloom_filter';

CREATE ACCESS METHOD bloom_filter TYPE INDEX HANDLER bloom_filter_handler;
COMMENT ON ACCESS METHOD bloom_filter IS 'index access method: a Bloom filter for each range of table pages, for = on large tables';

-- Each operator is the usual equality of its types, which the hash of elements follows. Types in one family can be
-- compared with each other.

CREATE OPERATOR FAMILY integer_ops USING bloom_filter;
COMMENT ON OPERATOR FAMILY integer_ops USING bloom_filter IS '= of smallint, integer and bigint, in any combination';

CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE smallint USING bloom_filter FAMILY integer_ops AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS int2_ops USING bloom_filter IS '= of smallint';

CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE integer USING bloom_filter FAMILY integer_ops AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS int4_ops USING bloom_filter IS '= of integer';

CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE bigint USING bloom_filter FAMILY integer_ops AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS int8_ops USING bloom_filter IS '= of bigint';

ALTER OPERATOR FAMILY integer_ops USING bloom_filter ADD
    OPERATOR 1 = (smallint, integer),
    OPERATOR 1 = (smallint, bigint),
    OPERATOR 1 = (integer, smallint),
    OPERATOR 1 = (integer, bigint),
    OPERATOR 1 = (bigint, smallint),
    OPERATOR 1 = (bigint, integer);

CREATE OPERATOR FAMILY float_ops USING bloom_filter;
COMMENT ON OPERATOR FAMILY float_ops USING bloom_filter IS '= of real and double precision, in any combination';

CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE real USING bloom_filter FAMILY float_ops AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS float4_ops USING bloom_filter IS '= of real';

CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE double precision USING bloom_filter FAMILY float_ops AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS float8_ops USING bloom_filter IS '= of double precision';

ALTER OPERATOR FAMILY float_ops USING bloom_filter ADD
    OPERATOR 1 = (real, double precision),
    OPERATOR 1 = (double precision, real);

CREATE OPERATOR FAMILY text_ops USING bloom_filter;
COMMENT ON OPERATOR FAMILY text_ops USING bloom_filter IS '= of text, varchar and name, in any combination';

CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING bloom_filter FAMILY text_ops AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS text_ops USING bloom_filter IS '= of text and varchar';

CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name USING bloom_filter FAMILY text_ops AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS name_ops USING bloom_filter IS '= of name';

ALTER OPERATOR FAMILY text_ops USING bloom_filter ADD
    OPERATOR 1 = (text, name),
    OPERATOR 1 = (name, text);

CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE character USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS bpchar_ops USING bloom_filter IS '= of char(n)';
COMMENT ON OPERATOR FAMILY bpchar_ops USING bloom_filter IS '= of char(n)';

CREATE OPERATOR CLASS char_ops DEFAULT FOR TYPE "char" USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS char_ops USING bloom_filter IS '= of "char"';
COMMENT ON OPERATOR FAMILY char_ops USING bloom_filter IS '= of "char"';

CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS bytea_ops USING bloom_filter IS '= of bytea';
COMMENT ON OPERATOR FAMILY bytea_ops USING bloom_filter IS '= of bytea';

CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS uuid_ops USING bloom_filter IS '= of uuid';
COMMENT ON OPERATOR FAMILY uuid_ops USING bloom_filter IS '= of uuid';

CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS numeric_ops USING bloom_filter IS '= of numeric';
COMMENT ON OPERATOR FAMILY numeric_ops USING bloom_filter IS '= of numeric';

CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE boolean USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS bool_ops USING bloom_filter IS '= of boolean';
COMMENT ON OPERATOR FAMILY bool_ops USING bloom_filter IS '= of boolean';

CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS date_ops USING bloom_filter IS '= of date';
COMMENT ON OPERATOR FAMILY date_ops USING bloom_filter IS '= of date';

CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS time_ops USING bloom_filter IS '= of time';
COMMENT ON OPERATOR FAMILY time_ops USING bloom_filter IS '= of time';

CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS timetz_ops USING bloom_filter IS '= of timetz';
COMMENT ON OPERATOR FAMILY timetz_ops USING bloom_filter IS '= of timetz';

CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS timestamp_ops USING bloom_filter IS '= of timestamp';
COMMENT ON OPERATOR FAMILY timestamp_ops USING bloom_filter IS '= of timestamp';

CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS timestamptz_ops USING bloom_filter IS '= of timestamptz';
COMMENT ON OPERATOR FAMILY timestamptz_ops USING bloom_filter IS '= of timestamptz';

CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS interval_ops USING bloom_filter IS '= of interval';
COMMENT ON OPERATOR FAMILY interval_ops USING bloom_filter IS '= of interval';

CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS inet_ops USING bloom_filter IS '= of inet and cidr';
COMMENT ON OPERATOR FAMILY inet_ops USING bloom_filter IS '= of inet and cidr';

CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS macaddr_ops USING bloom_filter IS '= of macaddr';
COMMENT ON OPERATOR FAMILY macaddr_ops USING bloom_filter IS '= of macaddr';

CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8 USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS macaddr8_ops USING bloom_filter IS '= of macaddr8';
COMMENT ON OPERATOR FAMILY macaddr8_ops USING bloom_filter IS '= of macaddr8';

CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS oid_ops USING bloom_filter IS '= of oid';
COMMENT ON OPERATOR FAMILY oid_ops USING bloom_filter IS '= of oid';

CREATE OPERATOR CLASS pg_lsn_ops DEFAULT FOR TYPE pg_lsn USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS pg_lsn_ops USING bloom_filter IS '= of pg_lsn';
COMMENT ON OPERATOR FAMILY pg_lsn_ops USING bloom_filter IS '= of pg_lsn';

CREATE OPERATOR CLASS xid8_ops DEFAULT FOR TYPE xid8 USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS xid8_ops USING bloom_filter IS '= of xid8';
COMMENT ON OPERATOR FAMILY xid8_ops USING bloom_filter IS '= of xid8';

CREATE OPERATOR CLASS enum_ops DEFAULT FOR TYPE anyenum USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS enum_ops USING bloom_filter IS '= of enums';
COMMENT ON OPERATOR FAMILY enum_ops USING bloom_filter IS '= of enums';

CREATE OPERATOR CLASS range_ops DEFAULT FOR TYPE anyrange USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS range_ops USING bloom_filter IS '= of ranges';
COMMENT ON OPERATOR FAMILY range_ops USING bloom_filter IS '= of ranges';

CREATE OPERATOR CLASS multirange_ops DEFAULT FOR TYPE anymultirange USING bloom_filter AS OPERATOR 1 =;
COMMENT ON OPERATOR CLASS multirange_ops USING bloom_filter IS '= of multiranges';
COMMENT ON OPERATOR FAMILY multirange_ops USING bloom_filter IS '= of multiranges';

-- Over what is in values. The support function says which parts a value has: it is that of an operator which asks for
-- them.

CREATE OPERATOR CLASS array_ops DEFAULT FOR TYPE anyarray USING bloom_filter AS
    OPERATOR 1 =,
    OPERATOR 3 @>,
    OPERATOR 4 &&,
    FUNCTION 3 arrayoverlap(anyarray, anyarray);
COMMENT ON OPERATOR CLASS array_ops USING bloom_filter IS '@>, && and = of arrays, by their members';
COMMENT ON OPERATOR FAMILY array_ops USING bloom_filter IS '@>, && and = of arrays, by their members';

CREATE OPERATOR CLASS jsonb_ops DEFAULT FOR TYPE jsonb USING bloom_filter AS
    OPERATOR 1 =,
    OPERATOR 3 @>,
    OPERATOR 9 ? (jsonb, text),
    OPERATOR 10 ?| (jsonb, text[]),
    OPERATOR 11 ?& (jsonb, text[]),
    OPERATOR 14 @? (jsonb, jsonpath),
    OPERATOR 15 @@ (jsonb, jsonpath),
    FUNCTION 3 jsonb_contains(jsonb, jsonb);
COMMENT ON OPERATOR CLASS jsonb_ops USING bloom_filter IS '@>, ?, ?|, ?&, @?, @@ and = of jsonb, by what is in it';
COMMENT ON OPERATOR FAMILY jsonb_ops USING bloom_filter IS '@>, ?, ?|, ?&, @?, @@ and = of jsonb, by what is in it';

CREATE OPERATOR CLASS tsvector_ops DEFAULT FOR TYPE tsvector USING bloom_filter AS
    OPERATOR 8 @@ (tsvector, tsquery),
    FUNCTION 3 ts_match_vq(tsvector, tsquery);
COMMENT ON OPERATOR CLASS tsvector_ops USING bloom_filter IS '@@ of tsvector, by its words';
COMMENT ON OPERATOR FAMILY tsvector_ops USING bloom_filter IS '@@ of tsvector, by its words';

CREATE OPERATOR CLASS text_ngram_ops FOR TYPE text USING bloom_filter AS
    OPERATOR 1 =,
    OPERATOR 5 ~~,
    OPERATOR 6 ~~*,
    OPERATOR 7 ^@,
    OPERATOR 12 ~,
    OPERATOR 13 ~*,
    FUNCTION 3 textlike(text, text);
COMMENT ON OPERATOR CLASS text_ngram_ops USING bloom_filter IS 'LIKE, ILIKE, ~, ~*, ^@ and = of text, by what is in it';
COMMENT ON OPERATOR FAMILY text_ngram_ops USING bloom_filter IS 'LIKE, ILIKE, ~, ~*, ^@ and = of text, by what is in it';

-- Over a column of filters. Keys of an index scan don't say of which type an element is: those of text do, for others the
-- support function of the operator makes a key of the element.

CREATE TYPE bloom_key;

CREATE FUNCTION bloom_key_in(cstring) RETURNS bloom_key
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_key_in(cstring) IS 'internal: refuses to read a bloom_key from text';

CREATE FUNCTION bloom_key_out(bloom_key) RETURNS cstring
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_key_out(bloom_key) IS 'internal: I/O';

CREATE TYPE bloom_key (
    INPUT = bloom_key_in,
    OUTPUT = bloom_key_out,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = int4,
    STORAGE = extended
);
COMMENT ON TYPE bloom_key IS 'an element as what an index over filters is asked for: its hash and its kind';

CREATE FUNCTION bloom_key(value anyelement) RETURNS bloom_key
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bloom_key(anyelement) IS 'internal: an element as what an index over filters is asked for';

CREATE FUNCTION bloom_keys(elements anyarray) RETURNS bloom_key[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION bloom_keys(anyarray) IS 'internal: elements as what an index over filters is asked for';

CREATE FUNCTION bloom_contains_key(filter bloom, key bloom_key) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bloom_contains_key(bloom, bloom_key) IS
    'internal: whether the element of the key may be in the filter';

CREATE OPERATOR @=> (
    FUNCTION = bloom_contains_key, LEFTARG = bloom, RIGHTARG = bloom_key,
    RESTRICT = bloom_contains_selectivity, JOIN = bloom_join_selectivity
);
COMMENT ON OPERATOR @=> (bloom, bloom_key) IS 'internal: what @> becomes for an index over filters';

CREATE OPERATOR CLASS bloom_ops DEFAULT FOR TYPE bloom USING bloom_filter AS
    OPERATOR 2 @> (bloom, text),
    OPERATOR 2 @=> (bloom, bloom_key),
    FUNCTION 1 (bloom, bloom) bloom_key(anyelement),
    FUNCTION 2 (bloom, bloom) bloom_keys(anyarray);
COMMENT ON OPERATOR CLASS bloom_ops USING bloom_filter IS '@> of a column of filters';
COMMENT ON OPERATOR FAMILY bloom_ops USING bloom_filter IS '@> of a column of filters';

CREATE FUNCTION bloom_index_info(
    index regclass,
    OUT pages bigint,
    OUT table_pages bigint,
    OUT pages_per_range integer,
    OUT ranges bigint,
    OUT levels integer,
    OUT rows_built bigint,
    OUT elements double precision,
    OUT bits_per_element double precision,
    OUT target_fpr double precision,
    OUT current_fpr double precision,
    OUT overfull_ranges bigint,
    OUT pages_per_lookup double precision,
    OUT filters bigint,
    OUT slots bigint,
    OUT always_probed bigint,
    OUT keys_per_row double precision,
    OUT keys_per_range double precision,
    OUT ranges_per_page integer
)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION bloom_index_info(regclass) IS 'what an index USING bloom_filter was made for, and what it holds';

CREATE FUNCTION bloom_find(base anyelement, "column" name, key anycompatible) RETURNS SETOF anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 3;
COMMENT ON FUNCTION bloom_find(anyelement, name, anycompatible) IS
    'the rows of a table and all its partitions or children that have a key; give NULL::table as base';

CREATE FUNCTION bloom_find_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_find_support(internal) IS 'internal: how many rows bloom_find_all returns';

CREATE FUNCTION bloom_find_all(base anyelement, "column" name, keys anycompatiblearray) RETURNS SETOF anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 100
    SUPPORT bloom_find_support;
COMMENT ON FUNCTION bloom_find_all(anyelement, name, anycompatiblearray) IS
    'the rows of a table and all its partitions or children that have one of these keys; give NULL::table as base';

CREATE FUNCTION bloom_index_check(index regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION bloom_index_check(regclass) IS
    'looks for every row in an index USING bloom_filter: how many there are, or an error with the first that is missed';

-- ---------------------------------------------------------------------------------------------------------------
-- what depends on the version of PostgreSQL
-- ---------------------------------------------------------------------------------------------------------------

-- From 19 on the planner may aggregate below a join, with a state for each key of the join. The states of the
-- aggregates above grow, so that may take as much memory as all rows. A negative SSPACE, as that of array_agg, rules it
-- out. It also makes hash aggregates count 8 kB for a state, so older versions keep the size at which a state begins.
-- CREATE AGGREGATE takes constants only, and there is no ALTER for it.
UPDATE pg_catalog.pg_aggregate SET aggtransspace = -1
WHERE pg_catalog.current_setting('server_version_num')::integer >= 190000
    AND aggtransspace > 0
    AND aggfnoid::oid IN (
        SELECT d.objid FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
        WHERE e.extname = 'pg_bloom' AND d.deptype = 'e'
            AND d.classid = 'pg_catalog.pg_proc'::regclass::oid AND d.refclassid = 'pg_catalog.pg_extension'::regclass::oid);
