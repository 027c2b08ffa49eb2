//! The rate holds for elements that are alike: small numbers, runs of bits, equal halves, values
//! that differ in one place. A hash that folds, rotates or adds its parts makes such elements one.

use crate::common::{bound, rows, run};
use crate::server;

/// Elements that are added, and as many that are asked for and were not.
const COUNT: i32 = 10_000;

/// A type, and distinct values of it as an expression of the integer i from 1 to 2 · [`COUNT`],
/// which `h` has in both halves of its 64 bits.
type Family = (&'static str, &'static str);

/// What the tests make for these.
const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'glad');
    CREATE TYPE pair AS (a integer, b integer);
    CREATE TYPE halves AS (a bigint, b bigint);
    CREATE TYPE flags AS (a boolean, b boolean, c boolean, rest boolean[]);
    CREATE TYPE nested AS (p pair, q pair);
    CREATE TYPE moods AS RANGE (subtype = mood);
    CREATE TYPE floats AS RANGE (subtype = float8);
    CREATE TYPE pairs AS RANGE (subtype = pair);
    CREATE FUNCTION bits(i integer, n integer) RETURNS boolean[] LANGUAGE sql IMMUTABLE AS
        'SELECT array_agg((i >> bit) % 2 = 1 ORDER BY bit) FROM generate_series(0, n - 1) AS bit';";

const FAMILIES: [Family; 70] = [
    // Numbers, texts and days.
    ("integer", "i"),
    ("bigint", "h"),
    ("bigint", "h * 4096"),
    ("double precision", "i"),
    ("double precision", "i / 65536.0"),
    ("numeric", "h"),
    ("numeric", "i * 1e-20"),
    ("text", "i::text"),
    ("text", "repeat(chr(97 + i % 26), 1 + i / 26)"),
    ("bytea", "int8send(h)"),
    ("uuid", "(lpad(to_hex(h), 16, '0') || lpad(to_hex(h), 16, '0'))::uuid"),
    ("date", "date '2000-01-01' + i"),
    ("timestamp", "timestamp '2000-01-01' + i * interval '1 second'"),
    ("timestamptz", "timestamptz '2000-01-01 00:00+00' + i * interval '1 microsecond'"),
    // Times and intervals.
    ("time", "time '00:00' + i * interval '1 microsecond'"),
    ("time", "time '00:00' + i * interval '1 second'"),
    ("timetz", "format('%s+%s', time '00:00' + i / 16 * interval '1 second', i % 16)::timetz"),
    ("timetz", "timetz '00:00+02' + i * interval '1 second'"),
    ("interval", "i * interval '1 microsecond'"),
    ("interval", "i * interval '1 day'"),
    ("interval", "(h * interval '1 microsecond')"),
    ("interval", "make_interval(months => i / 200, secs => i % 200)"),
    // Identifiers and addresses.
    ("pg_lsn", "format('%s/%s', to_hex(i), to_hex(i))::pg_lsn"),
    ("pg_lsn", "format('0/%s', to_hex(i))::pg_lsn"),
    ("xid8", "h::text::xid8"),
    ("oid", "i::oid"),
    ("xid", "i::text::xid"),
    ("cid", "(i * 65536::bigint % 4294967295)::text::cid"),
    ("tid", "format('(%s,%s)', i / 200, 1 + i % 200)::tid"),
    ("tid", "format('(%s,%s)', i, i)::tid"),
    ("oidvector", "format('%s %s', i / 200, i % 200)::oidvector"),
    ("oidvector", "format('%s %s', i, i)::oidvector"),
    ("inet", "inet '10.0.0.0' + i"),
    ("inet", "inet '::' + h"),
    ("inet", "set_masklen(inet '10.0.0.0' + i / 16, 16 + i % 16)"),
    ("cidr", "set_masklen(cidr '10.0.0.0/8' + i * 256, 24)::cidr"),
    ("macaddr", "lpad(to_hex(i), 12, '0')::macaddr"),
    ("macaddr", "(lpad(to_hex(i), 6, '0') || lpad(to_hex(i), 6, '0'))::macaddr"),
    ("macaddr8", "lpad(to_hex(h), 16, '0')::macaddr8"),
    // jsonb.
    (
        "jsonb",
        "(SELECT jsonb_object_agg('flag' || n, flag) FROM unnest(bits(i, 20)) WITH ORDINALITY AS f (flag, n))",
    ),
    ("jsonb", "to_jsonb(bits(i, 20))"),
    (
        "jsonb",
        "(SELECT jsonb_agg((ARRAY['true', 'false', 'null'])[1 + i / (3 ^ n)::integer % 3]::jsonb) FROM generate_series(0, 11) AS n)",
    ),
    ("jsonb", "jsonb_build_array(i, i)"),
    ("jsonb", "jsonb_build_array(i / 200, i % 200)"),
    ("jsonb", "jsonb_build_object('a', jsonb_build_object('b', i), 'c', i)"),
    ("jsonb", "jsonb_build_object('k' || i / 200, 'k' || i % 200)"),
    ("jsonb", "to_jsonb(array_fill(0, ARRAY[40]) || i || array_fill(0, ARRAY[40]))"),
    // Arrays.
    ("bigint[]", "ARRAY[h]"),
    ("bigint[]", "ARRAY[h, h]"),
    ("integer[]", "ARRAY[i / 200, i % 200]"),
    ("integer[]", "array_fill(0, ARRAY[40]) || i || array_fill(0, ARRAY[40])"),
    ("integer[]", "array_fill(i, ARRAY[8])"),
    ("integer[]", "array_fill(7, ARRAY[1 + i % 20], ARRAY[i])"),
    ("boolean[]", "bits(i, 20)"),
    (
        "mood[]",
        "ARRAY(SELECT (enum_range(NULL::mood))[1 + (i >> 2 * n) % 4] FROM generate_series(0, 8) AS n ORDER BY n)",
    ),
    ("text[]", "ARRAY[repeat('a', i / 200), repeat('a', i % 200)]"),
    ("inet[]", "ARRAY[inet '10.0.0.0' + i, inet '10.0.0.0' + i]"),
    // Rows.
    ("pair", "ROW(i, i)::pair"),
    ("pair", "ROW(i / 200, i % 200)::pair"),
    ("halves", "ROW(h, h)::halves"),
    ("flags", "ROW(i % 2 = 0, i / 2 % 2 = 0, i / 4 % 2 = 0, bits(i / 8, 14))::flags"),
    ("nested", "ROW(ROW(i % 16, i / 16 % 16), ROW(i / 256 % 16, i / 4096))::nested"),
    // Ranges.
    ("int8range", "int8range(h, NULL)"),
    ("int4range", "int4range(i, i + 1)"),
    ("int4range", "int4range(i / 200, 1000 + i % 200)"),
    ("numrange", "numrange(i, i, '[]')"),
    ("floats", "floats(-i, i)"),
    ("tsrange", "tsrange(timestamp '2000-01-01' + i * interval '1 day', NULL)"),
    ("pairs", "pairs(ROW(i, i)::pair, ROW(i, i + 1)::pair)"),
    ("daterange", "daterange(date '2000-01-01' - i, date '2000-01-01' + i)"),
];

/// Ranges of several parts.
const MULTIRANGES: [Family; 2] = [
    ("int4multirange", "int4multirange(int4range(i, i + 1), int4range(i + 5, i + 6))"),
    ("int8multirange", "int8multirange(int8range(h, h + 1))"),
];

#[test]
fn elements_that_are_alike_have_the_promised_rate() {
    let mut client = server().database("structured");
    run(&mut client, TYPES);
    let multiranges = &MULTIRANGES[..];
    let mut missed = Vec::new();
    for (sql_type, element) in FAMILIES.iter().chain(multiranges) {
        let row = &rows(
            &mut client,
            &format!(
                "WITH elements AS MATERIALIZED (
                     SELECT i, ({element})::{sql_type} AS x
                     FROM (SELECT i, i::bigint << 32 | i AS h FROM generate_series(1, 2 * {COUNT}) AS i) AS numbers),
                 filters AS (
                     SELECT bloom_agg(x, {COUNT}, 0.01) AS percent, bloom_agg(x, {COUNT}, 0.001) AS permille,
                         bloom_agg(x, 10000000) AS exact
                     FROM elements WHERE i <= {COUNT})
                 SELECT (SELECT count(DISTINCT x::text) FROM elements), max(bloom_cardinality(exact)),
                     count(*) FILTER (WHERE i <= {COUNT} AND NOT (percent @> x AND permille @> x AND exact @> x)),
                     count(*) FILTER (WHERE i > {COUNT} AND percent @> x),
                     count(*) FILTER (WHERE i > {COUNT} AND permille @> x),
                     count(*) FILTER (WHERE i > {COUNT} AND exact @> x)
                 FROM elements, filters"
            ),
        )[0];

        let [distinct, lost, percent, permille, exact] =
            [0, 2, 3, 4, 5].map(|column| row.get::<_, i64>(column) as f64);
        let (count, cardinality) = (f64::from(COUNT), row.get::<_, f64>(1));
        let at_most = |rate: f64| count * rate + bound(count, rate);
        let as_promised =
            lost == 0.0 && percent <= at_most(0.01) && permille <= at_most(0.001) && exact == 0.0;
        if !as_promised || (distinct, cardinality) != (2.0 * count, count) {
            missed.push(format!(
                "{element} of type {sql_type}: of {distinct} {cardinality} were added, {lost} are lost, {percent}, {permille} \
                 and {exact} others found"
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
