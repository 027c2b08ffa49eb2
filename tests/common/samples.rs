//! Types and values of them, for the tests that do the same with every type.
//!
//! | tests | types |
//! |---|---|
//! | of dumps, sets, parallel plans and indexes over filters | those of [`KEY_KIND_SAMPLES`] |
//! | of crashes, standbys, upgrades and hashes, by `corpus` | all that filters can be made of |
//! | of indexes, in `tests/index/types.rs` | all that can be indexed |

/// A type, and values of it.
#[derive(Clone, Copy)]
pub struct Sample {
    pub sql_type: &'static str,
    /// An expression of the integer `i`, whose values are distinct if the type has so many. It is
    /// valid for `i` from 1 to 300, and in [`KEY_KIND_SAMPLES`] from 0 to 20,000.
    pub ordinary_value: &'static str,
    /// Expressions of values that equality is hard for, to be cast to the type. A type that can be
    /// indexed has at least one.
    edge_values: &'static [&'static str],
}

/// An edge value that older versions of PostgreSQL don't have.
struct LaterEdge {
    /// The first major version that has it.
    since: i32,
    sql_type: &'static str,
    edge_value: &'static str,
}

const LATER_EDGES: [LaterEdge; 1] =
    [LaterEdge { since: 17, sql_type: "interval", edge_value: "'infinity'" }];

impl Sample {
    /// Returns the edge values that a major version of PostgreSQL has, as expressions to be cast to
    /// the type.
    pub fn edge_values(&self, major_version: i32) -> Vec<&'static str> {
        let mut edge_values = self.edge_values.to_vec();
        for later in &LATER_EDGES {
            if later.sql_type == self.sql_type && major_version >= later.since {
                edge_values.push(later.edge_value);
            }
        }
        edge_values
    }
}

const fn sample(
    sql_type: &'static str,
    ordinary_value: &'static str,
    edge_values: &'static [&'static str],
) -> Sample {
    Sample { sql_type, ordinary_value, edge_values }
}

/// Makes the types of [`KEY_KIND_SAMPLES`] that PostgreSQL doesn't have. The labels' order is not
/// the one that they were added in.
pub const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('great', 'bad');
    ALTER TYPE mood ADD VALUE 'good' BEFORE 'bad';
    ALTER TYPE mood ADD VALUE 'perfect' BEFORE 'great';
    ALTER TYPE mood ADD VALUE 'fair é' AFTER 'good';
    CREATE TYPE pair AS (a integer, b text);";

/// Makes the types of [`FURTHER_SAMPLES`] that PostgreSQL doesn't have. A `tick` is hashed as what
/// it is cast to.
pub const FURTHER_TYPES: &str = "
    CREATE TYPE tick;
    CREATE FUNCTION tick_in(cstring) RETURNS tick LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
    CREATE FUNCTION tick_out(tick) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
    CREATE TYPE tick (INPUT = tick_in, OUTPUT = tick_out, LIKE = int8);
    CREATE CAST (tick AS bigint) WITHOUT FUNCTION AS IMPLICIT;
    CREATE TYPE half AS (a boolean, b \"char\");
    CREATE TYPE wide AS (a date, b timestamptz, c varchar, d numeric, e integer[], f half);
    CREATE DOMAIN label AS text CHECK (length(VALUE) < 100000);
    CREATE DOMAIN small AS integer;
    CREATE DOMAIN labels AS text[];
    CREATE TYPE textrange AS RANGE (SUBTYPE = text, COLLATION = \"C\");";

/// Text that is stored out of line, and text that is stored compressed.
const LONG: &str = "(SELECT string_agg(md5(j::text), '') FROM generate_series(1, 500) AS j)";
const COMPRESSED: &str = "repeat('é', 5000)";

const INTEGERS: &[&str] = &["0", "-1", "1", "32767", "-32768"];
const FLOATS: &[&str] = &[
    "'NaN'",
    "'-NaN'",
    "'0'",
    "'-0'",
    "'Infinity'",
    "'-Infinity'",
    "'0.1'",
    "'1e-40'",
    "'3e38'",
    "'16777217'",
];
const FLOAT_ARRAYS: &[&str] = &["'{}'", "'{NaN}'", "'{-NaN}'", "'{-0}'", "'{0}'"];
const TIMESTAMPS: &[&str] = &[
    "'infinity'",
    "'-infinity'",
    "'epoch'",
    "'4713-02-01 BC'",
    "'2000-01-01 12:00:00.000001'",
    "'1999-12-31 23:59:59.9'",
];

/// One type or several of each key kind. `tests/filters/kinds.rs` fails if a kind has none.
pub const KEY_KIND_SAMPLES: [Sample; 28] = [
    sample("smallint", "(i % 30000)::smallint", INTEGERS),
    sample("integer", "i", INTEGERS),
    // Every second value is one of integer, too.
    sample("bigint", "CASE WHEN i % 2 = 0 THEN i ELSE i * 1000000007::bigint END", INTEGERS),
    sample("real", "(i / 4.0)::real", FLOATS),
    // Every second value is one of real, too.
    sample(
        "double precision",
        "CASE WHEN i % 2 = 0 THEN (i + 1) / 4.0::float8 ELSE i / 7.0::float8 END",
        FLOATS,
    ),
    sample(
        "numeric",
        "i / 100.0",
        &[
            "1",
            "1.0",
            "1.00",
            "100",
            "1e2",
            "0",
            "-0.000",
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
            "1e130",
            "1e-130",
            "-1.5",
        ],
    ),
    sample(
        "text",
        "'text é ' || i",
        &[
            "''",
            "'a'",
            "'a '",
            "' a'",
            "'é'",
            "'\u{65}\u{301}'",
            LONG,
            COMPRESSED,
        ],
    ),
    sample("varchar(20)", "('text é ' || i)::varchar(20)", &["''", "'a'", "'a '"]),
    sample("char(12)", "('char ' || i)::char(12)", &["''", "'a'", "'a  '", "' a'"]),
    sample("name", "('name' || i)::name", &["''", "'a'", "'a '", "repeat('n', 63)"]),
    sample("mood", "(enum_range(NULL::mood))[1 + i % 5]", &["'great'", "'fair é'"]),
    sample("bytea", "decode(md5(i::text), 'hex')", &["'\\x'", "'\\x00'", "'\\x0000'", "'\\xff'"]),
    sample(
        "uuid",
        "md5(i::text)::uuid",
        &[
            "'00000000-0000-0000-0000-000000000000'",
            "'{FFFFFFFF-ffffffff-ffffffff-ffffffff}'",
        ],
    ),
    sample(
        "date",
        "date '1990-01-01' + i",
        &[
            "'infinity'",
            "'-infinity'",
            "'epoch'",
            "'4713-01-01 BC'",
            "'2000-01-01'",
        ],
    ),
    sample("timestamp", "timestamp '1990-01-01' + i * interval '1 hour'", TIMESTAMPS),
    sample("timestamptz", "timestamptz '1990-01-01 00:00+00' + i * interval '1 hour'", TIMESTAMPS),
    sample("boolean", "i % 2 = 0", &["true", "false"]),
    sample(
        "inet",
        "inet '10.0.0.0' + i",
        &[
            "'10.0.0.1'",
            "'10.0.0.1/32'",
            "'10.0.0.1/24'",
            "'10.0.0.0/24'",
            "'::1'",
            "'::ffff:10.0.0.1'",
        ],
    ),
    sample(
        "jsonb",
        "jsonb_build_object('id', i)",
        &[
            "'{\"a\": 1, \"bb\": 2}'",
            "'{\"bb\": 2, \"a\": 1}'",
            "'{\"a\": 1.0, \"bb\": 2.00}'",
            "'{\"a\": 1, \"a\": 2}'",
            "'{}'",
            "'[]'",
            "'null'",
            "'1'",
            "'1.0'",
            "'1e0'",
            "'\"1\"'",
            "'[1, [2, {}], \"é\\\\u0000x\"]'",
            "'-0.0'",
            "'0'",
            "'[[]]'",
        ],
    ),
    sample(
        "text[]",
        "ARRAY['a', i::text, NULL]",
        &[
            "'{}'",
            "'{\"\"}'",
            "'{NULL}'",
            "'{\"a,b\"}'",
            "'{a,b}'",
            "'{{a},{b}}'",
        ],
    ),
    sample(
        "interval",
        "i * interval '1 minute'",
        &[
            "'0'",
            "'1 mon'",
            "'30 days'",
            "'720:00'",
            "'1 day'",
            "'24:00'",
            "'-1 mon 30 days'",
            "'178000000 years'",
        ],
    ),
    sample(
        "int4range",
        "int4range(i, i + 5)",
        &[
            "'empty'", "'[1,5)'", "'[1,4]'", "'(0,5)'", "'(,)'", "'[1,)'", "'[5,5)'",
        ],
    ),
    sample("pair", "ROW(i, 'text ' || i)::pair", &[]),
    sample(
        "time",
        "time '00:00' + i * interval '61.000001 seconds'",
        &["'00:00'", "'24:00'", "'23:59:60'"],
    ),
    sample(
        "timetz",
        "timetz '00:00+02' + i * interval '61.000001 seconds'",
        &["'00:00+00'", "'01:00+01'", "'24:00-01'", "'00:00-01'"],
    ),
    sample("pg_lsn", "('A/' || to_hex(i))::pg_lsn", &["'0/0'", "'FFFFFFFF/FFFFFFFF'"]),
    sample("xid8", "(i * 10000000000)::text::xid8", &["'0'", "'18446744073709551615'"]),
    sample(
        "int4multirange",
        "int4multirange(int4range(i, i + 5), int4range(i + 10, NULL))",
        &[
            "'{}'",
            "'{[1,3),[3,5)}'",
            "'{[1,5)}'",
            "'{[1,4]}'",
            "'{(,)}'",
        ],
    ),
];

/// Further types of these kinds.
pub const FURTHER_SAMPLES: [Sample; 42] = [
    sample("varchar", "'text é ' || i", &["''", "'a'", "'a '", LONG]),
    sample("char(40)", "('char ' || i)::char(40)", &["''", "'a'", "'a  '", "' a'"]),
    sample("\"char\"", "chr(33 + i % 90)::\"char\"", &["''", "'a'", "'\\200'", "'\\377'"]),
    sample(
        "cidr",
        "(inet '10.0.0.0' + i)::cidr",
        &["'10.0.0.0/24'", "'10/24'", "'10.0.0.0/32'", "'::/0'"],
    ),
    sample(
        "macaddr",
        "('0800' || lpad(to_hex(i), 8, '0'))::macaddr",
        &[
            "'08:00:2b:01:02:03'",
            "'08002b010203'",
            "'ff-ff-ff-ff-ff-ff'",
        ],
    ),
    sample(
        "macaddr8",
        "('08002b01' || lpad(to_hex(i), 8, '0'))::macaddr8",
        &["'08:00:2b:01:02:03'", "'08002bfffe010203'"],
    ),
    sample("oid", "(i * 10000000::bigint)::oid", &["0", "'4294967295'", "'-1'"]),
    sample("xid", "i::text::xid", &[]),
    sample("cid", "i::text::cid", &[]),
    sample("tid", "format('(%s,%s)', i, 1 + i % 7)::tid", &[]),
    sample("oidvector", "format('%s %s', i, i + 1)::oidvector", &[]),
    sample("smallint[]", "ARRAY[i, -i]::smallint[]", &["'{}'", "'{0,-1}'"]),
    sample(
        "integer[]",
        "ARRAY[[i, 2], [3, NULL]]",
        &[
            "'{}'",
            "'{NULL}'",
            "'{1,2,3,4}'",
            "'{{1,2},{3,4}}'",
            "'{{1},{2},{3},{4}}'",
            "'[0:1]={1,2}'",
            "'{1,2}'",
        ],
    ),
    sample("bigint[]", "ARRAY[i * -10000000000, i]", &["'{}'", "'{0,-1}'"]),
    sample("real[]", "ARRAY[i / 3.0, 'NaN', '-0']::real[]", FLOAT_ARRAYS),
    sample("double precision[]", "ARRAY[i / 3.0, 'Infinity', '-0']::float8[]", FLOAT_ARRAYS),
    sample(
        "numeric[]",
        "ARRAY[i / 7.0, -i * 1e20, 'NaN', 1.500]",
        &["'{}'", "'{1}'", "'{1.00}'", "'{NaN}'"],
    ),
    sample(
        "boolean[]",
        "ARRAY(SELECT (i >> bit) % 2 = 0 FROM generate_series(0, 16) AS bit)",
        &["'{}'", "'{true}'", "'{true,true}'", "'{NULL,false}'"],
    ),
    sample(
        "bytea[]",
        "ARRAY[decode(md5(i::text), 'hex'), '', NULL]",
        &["'{}'", "'{\"\"}'", "'{\"\\\\x00\"}'"],
    ),
    sample("uuid[]", "ARRAY[md5(i::text)::uuid]", &["'{}'"]),
    sample(
        "date[]",
        "ARRAY[date '1990-01-01' + i, 'infinity']",
        &["'{}'", "'{infinity}'", "'{-infinity}'"],
    ),
    sample(
        "timestamp[]",
        "ARRAY[timestamp '1990-01-01' + i * interval '1 hour', '-infinity']",
        &["'{}'", "'{infinity}'", "'{-infinity}'"],
    ),
    sample(
        "timestamptz[]",
        "ARRAY[timestamptz '1990-01-01 00:00+00' + i * interval '1 hour']",
        &["'{}'", "'{infinity}'"],
    ),
    sample(
        "name[]",
        "ARRAY[('name' || i)::name]",
        &["'{}'", "'{\"\"}'", "'{a,b}'", "'{\"a \",b}'"],
    ),
    sample("varchar(9)[]", "ARRAY['a', i::text]::varchar(9)[]", &["'{}'", "'{\"\"}'", "'{a,b}'"]),
    sample("char(9)[]", "ARRAY['é' || i, 'b ']::char(9)[]", &["'{}'", "'{a,b}'", "'{\"a \",b}'"]),
    sample(
        "\"char\"[]",
        "ARRAY[(i % 256 - 128)::\"char\", (i / 256)::\"char\"]",
        &["'{}'", "'{\"\"}'", "'{a,NULL}'"],
    ),
    // Intervals of 0 in many forms, which are all equal.
    sample(
        "interval[]",
        "ARRAY[i * interval '-1 month 30 days', interval '1 mon']",
        &["'{1 mon}'", "'{30 days}'"],
    ),
    sample("inet[]", "ARRAY[inet '10.0.0.0' + i]", &["'{}'", "'{10.0.0.1}'", "'{10.0.0.1/32}'"]),
    sample(
        "jsonb[]",
        "ARRAY[jsonb_build_object('a', i / 8.0, 'é', '[1e3, true, null, \"ß\"]'::jsonb), '{}', '-1.50']",
        &["'{}'", "'{\"1\"}'", "'{\"1.0\"}'", "'{NULL}'"],
    ),
    sample("int8range", "int8range(i * 5000000000, NULL)", &["'empty'", "'[1,5)'", "'[1,4]'"]),
    sample(
        "numrange",
        "numrange(-i / 3.0, i, '(]')",
        &[
            "'empty'",
            "'[1.0,2]'",
            "'[1.00,2.0]'",
            "'[1,2)'",
            "'(,1.50]'",
        ],
    ),
    sample(
        "daterange",
        "daterange('2000-01-01'::date - i, date '2000-01-01' + i)",
        &[
            "'[2000-01-01,2000-01-02]'",
            "'[2000-01-01,2000-01-03)'",
            "'[,infinity]'",
        ],
    ),
    sample(
        "tsrange",
        "tsrange(timestamp '2000-01-01' + i * interval '1 minute', 'infinity')",
        &["'empty'", "'[,infinity]'", "'[,infinity)'"],
    ),
    sample(
        "tstzrange",
        "tstzrange(NULL, timestamptz '2000-01-01 00:00+00' + i * interval '1 minute', '[]')",
        &["'empty'", "'[,infinity]'", "'[,infinity)'"],
    ),
    sample("textrange", "textrange('a' || i, 'b')", &["'empty'", "'[a,b]'", "'[a,b)'"]),
    sample(
        "datemultirange",
        "datemultirange(daterange(NULL, '1999-01-01'), daterange('2000-01-01', date '2000-01-01' + i))",
        &[
            "'{}'",
            "'{[2000-01-01,2000-01-02]}'",
            "'{[2000-01-01,2000-01-03)}'",
        ],
    ),
    sample("tick", "i::text::tick", &["'0'", "'-1'", "'4294967296'"]),
    sample(
        "wide",
        "ROW(date '1990-01-01' + i, timestamptz '1990-01-01 00:00+00', 'é' || i, i / 8.0, ARRAY[i], (i % 2 = 0, NULL)::half)::wide",
        &[],
    ),
    sample("label", "('text é ' || i)::label", &["''", "'a'", "'a '"]),
    sample("small", "i::small", INTEGERS),
    sample("labels", "ARRAY['a', i::text]::labels", &["'{}'", "'{a,b}'"]),
];

/// Returns the samples of all types. They need [`TYPES`] and [`FURTHER_TYPES`].
pub fn all_samples() -> impl Iterator<Item = Sample> {
    KEY_KIND_SAMPLES.into_iter().chain(FURTHER_SAMPLES)
}
