//! Types that can be indexed, and values of them.

/// Values of a type.
pub struct Sample {
    /// The first version of PostgreSQL that has the type.
    pub since: i32,
    pub sql_type: &'static str,
    /// An expression of the integer `i`, with many values or with few.
    pub ordinary: &'static str,
    /// What equality is hard for: expressions, which are cast to the type.
    pub edges: &'static [&'static str],
}

const fn sample(
    sql_type: &'static str,
    ordinary: &'static str,
    edges: &'static [&'static str],
) -> Sample {
    Sample { since: 13, sql_type, ordinary, edges }
}

/// Makes the types of [`SAMPLES`] that PostgreSQL doesn't have, besides those of `common::TYPES`.
pub const MORE_TYPES: &str = "
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
const TIMESTAMPS: &[&str] = &[
    "'infinity'",
    "'-infinity'",
    "'epoch'",
    "'4713-02-01 BC'",
    "'2000-01-01 12:00:00.000001'",
    "'1999-12-31 23:59:59.9'",
];

/// At least one type of each operator class, and those that only a polymorphic one takes.
pub const SAMPLES: [Sample; 55] = [
    sample("smallint", "(i % 30000)::smallint", INTEGERS),
    sample("integer", "i", INTEGERS),
    sample("bigint", "CASE WHEN i % 2 = 0 THEN i ELSE i * 1000000007::bigint END", INTEGERS),
    sample("real", "(i / 4.0)::real", FLOATS),
    sample(
        "double precision",
        "CASE WHEN i % 2 = 0 THEN i / 4.0::float8 ELSE i / 7.0::float8 END",
        FLOATS,
    ),
    sample(
        "numeric",
        "i / 100.0",
        &[
            "1", "1.0", "1.00", "100", "1e2", "0", "-0.000", "'NaN'", "1e130", "1e-130", "-1.5",
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
    sample("varchar", "'text é ' || i", &["''", "'a'", "'a '", LONG]),
    sample("varchar(20)", "('text é ' || i)::varchar(20)", &["''", "'a'", "'a '"]),
    sample("char(12)", "('char ' || i)::char(12)", &["''", "'a'", "'a  '", "' a'"]),
    sample("char(40)", "('char ' || i)::char(40)", &["''", "'a'", "'a  '", "' a'"]),
    sample("name", "('text ' || i)::name", &["''", "'a'", "'a '", "repeat('n', 63)"]),
    sample("\"char\"", "chr(33 + i % 90)::\"char\"", &["''", "'a'", "'\\200'", "'\\377'"]),
    sample("mood", "(enum_range(NULL::mood))[1 + i % 4]", &["'great'", "'fair é'"]),
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
    sample("timestamp", "timestamp '1990-01-01' + i * interval '1 hour'", TIMESTAMPS),
    sample("timestamptz", "timestamptz '1990-01-01 00:00+00' + i * interval '1 hour'", TIMESTAMPS),
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
    sample("pg_lsn", "('A/' || to_hex(i))::pg_lsn", &["'0/0'", "'FFFFFFFF/FFFFFFFF'"]),
    sample("xid8", "(i * 10000000000)::text::xid8", &["'0'", "'18446744073709551615'"]),
    sample(
        "jsonb",
        "jsonb_build_object('id', i, 'a', i / 8.0)",
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
    sample("smallint[]", "ARRAY[i % 1000, -i % 1000]::smallint[]", &["'{}'", "'{0,-1}'"]),
    sample("bigint[]", "ARRAY[i * -10000000000, i]", &["'{}'", "'{0,-1}'"]),
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
    sample("varchar(9)[]", "ARRAY['a', i::text]::varchar(9)[]", &["'{}'", "'{\"\"}'", "'{a,b}'"]),
    sample("char(9)[]", "ARRAY['é' || i, 'b ']::char(9)[]", &["'{}'", "'{a,b}'", "'{\"a \",b}'"]),
    sample(
        "double precision[]",
        "ARRAY[i / 3.0, 'Infinity', '-0']::float8[]",
        &["'{}'", "'{NaN}'", "'{-NaN}'", "'{-0}'", "'{0}'"],
    ),
    sample(
        "numeric[]",
        "ARRAY[i / 7.0, -i * 1e20, 'NaN', 1.500]",
        &["'{}'", "'{1}'", "'{1.00}'", "'{NaN}'"],
    ),
    sample(
        "jsonb[]",
        "ARRAY[jsonb_build_object('a', i / 8.0), '[1e3, true, null]'::jsonb]",
        &["'{}'", "'{\"1\"}'", "'{\"1.0\"}'", "'{NULL}'"],
    ),
    sample("uuid[]", "ARRAY[md5(i::text)::uuid]", &["'{}'"]),
    sample(
        "timestamptz[]",
        "ARRAY[timestamptz '1990-01-01 00:00+00' + i * interval '1 hour']",
        &["'{}'", "'{infinity}'"],
    ),
    sample(
        "interval[]",
        "ARRAY[i * interval '-1 month 30 days', interval '1 mon']",
        &["'{1 mon}'", "'{30 days}'"],
    ),
    sample("inet[]", "ARRAY[inet '10.0.0.0' + i]", &["'{}'", "'{10.0.0.1}'", "'{10.0.0.1/32}'"]),
    sample(
        "int4range",
        "int4range(i, i + 5)",
        &[
            "'empty'", "'[1,5)'", "'[1,4]'", "'(0,5)'", "'(,)'", "'[1,)'", "'[5,5)'",
        ],
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
        "tstzrange",
        "tstzrange(NULL, timestamptz '2000-01-01 00:00+00' + i * interval '1 minute', '[]')",
        &["'empty'", "'[,infinity]'", "'[,infinity)'"],
    ),
    sample("textrange", "textrange('a' || i, 'b')", &["'empty'", "'[a,b]'", "'[a,b)'"]),
    Sample {
        since: 14,
        sql_type: "int4multirange",
        ordinary: "int4multirange(int4range(i, i + 5), int4range(i + 10, NULL))",
        edges: &[
            "'{}'",
            "'{[1,3),[3,5)}'",
            "'{[1,5)}'",
            "'{[1,4]}'",
            "'{(,)}'",
        ],
    },
    Sample {
        since: 14,
        sql_type: "datemultirange",
        ordinary: "datemultirange(daterange(NULL, '1999-01-01'), daterange('2000-01-01', date '2000-01-01' + i))",
        edges: &[
            "'{}'",
            "'{[2000-01-01,2000-01-02]}'",
            "'{[2000-01-01,2000-01-03)}'",
        ],
    },
    sample("label", "('text é ' || i)::label", &["''", "'a'", "'a '"]),
    sample("small", "i::small", INTEGERS),
    sample("labels", "ARRAY['a', i::text]::labels", &["'{}'", "'{a,b}'"]),
];

/// Edges that older versions don't know, with the first that does.
pub const LATER_EDGES: [(i32, &str, &str); 3] = [
    (14, "numeric", "'Infinity'"),
    (14, "numeric", "'-Infinity'"),
    (17, "interval", "'infinity'"),
];
