//! Types that are not made of others.

use crate::common::{rows, run};
use postgres::Client;

/// How many values of each type there are.
pub const VALUES: usize = 40;

/// A type that is not made of others.
pub struct Leaf {
    pub sql_type: &'static str,
    /// Its key kinds in JSON: in general, and in the layout `parquet`.
    pub kinds: [&'static str; 2],
    /// Values as an expression of the integer i, odd ones among them, and of a number `h` that has
    /// bits of all sorts.
    values: &'static str,
    /// A value x as the writer reads it.
    text: &'static str,
    /// Ranges of it, if PostgreSQL has them and the values ascend with i.
    pub ranges: Option<Ranges>,
}

/// PostgreSQL's own range types of a type.
pub struct Ranges {
    pub range: &'static str,
    pub multirange: &'static str,
    /// PostgreSQL keeps them with their lower bound in them and the upper not.
    pub is_discrete: bool,
}

const fn leaf(
    sql_type: &'static str,
    general: &'static str,
    parquet: &'static str,
    values: &'static str,
    text: &'static str,
) -> Leaf {
    Leaf {
        sql_type,
        kinds: [general, parquet],
        values,
        text,
        ranges: None,
    }
}

const fn ranges(
    leaf: Leaf,
    range: &'static str,
    multirange: &'static str,
    is_discrete: bool,
) -> Leaf {
    Leaf {
        ranges: Some(Ranges { range, multirange, is_discrete }),
        ..leaf
    }
}

const PLAIN: &str = "x::text";
const OWN_HASH: &str = "hashinetextended(x, 0)::text";
const SINCE_1970: &str = "(extract(epoch FROM x) * 1000000)::bigint::text";
const INTERVAL: &str = "format('%s %s %s', (extract(year FROM x) * 12 + extract(month FROM x))::integer, extract(day FROM x),
    (extract(hour FROM x) * 3600000000)::bigint + (extract(minute FROM x) * 60000000)::bigint + extract(microseconds FROM x)::bigint)";
/// As PostgreSQL 16 prints it.
const CHAR: &str = r"CASE WHEN x::integer >= 0 THEN x::text
    ELSE '\' || ((x::integer + 256) >> 6) || ((x::integer + 256) >> 3 & 7) || (x::integer & 7) END";
const TEXT: &str = r#"left('a"é\' || chr(9) || '😀b/ ' || chr(1) || i, i)"#;
const JSONB: &str = r#"CASE i % 5
    WHEN 0 THEN to_jsonb(h)
    WHEN 1 THEN jsonb_build_object('é', i / 8.0, 'zz', NULL, 'b', jsonb_build_array(i * 1e20, true, '{}'::jsonb, '[]'::jsonb), 'a', '-0.10'::numeric)
    WHEN 2 THEN to_jsonb(chr(34) || '\' || chr(8) || chr(12) || chr(10) || chr(13) || chr(9) || chr(1) || chr(127) || '/é😀' || i)
    WHEN 3 THEN jsonb_build_array(i % 2 = 0, NULL, -i, i::text, 1e-7 * i)
    ELSE (SELECT jsonb_object_agg(md5(n::text || i), n) FROM generate_series(1, i) AS n) END"#;

/// Of kind "other".
const fn other(
    sql_type: &'static str,
    kind: &'static str,
    values: &'static str,
    own_hash: &'static str,
) -> Leaf {
    leaf(sql_type, kind, kind, values, own_hash)
}

pub const LEAVES: [Leaf; 29] = [
    leaf("smallint", "integer", "parquet INT32", "(i * 1600 - 32000)::smallint", PLAIN),
    ranges(
        leaf("integer", "integer", "parquet INT32", "i * 50000000 - 1000000000", PLAIN),
        "int4range",
        "int4multirange",
        true,
    ),
    ranges(
        leaf(
            "bigint",
            "integer",
            "parquet INT64",
            "i * 200000000000000001 - 4000000000000000000",
            PLAIN,
        ),
        "int8range",
        "int8multirange",
        true,
    ),
    leaf("text", "text", "text", TEXT, PLAIN),
    leaf("varchar(20)", "text", "text", "chr(i + 200) || '  '", PLAIN),
    leaf("char(9)", "text", "text", "'  é' || i", "rtrim(x::text)"),
    leaf("name", "text", "text", "'nÄme ' || i", PLAIN),
    leaf("\"char\"", "text", "text", "(i * 6 - 125)::\"char\"", CHAR),
    leaf("mood", "text", "text", "(enum_range(NULL::mood))[1 + i % 5]", PLAIN),
    leaf("bytea", "bytea", "bytea", "substr(int8send(h), i % 9)", "encode(x, 'hex')"),
    leaf(
        "real",
        "float",
        "parquet FLOAT",
        "(ARRAY['NaN', '-0', 'Infinity', '-1e-45', (h / 3.0)::real::text])[1 + i % 5]::real",
        "x::float8::text",
    ),
    leaf(
        "double precision",
        "float",
        "parquet DOUBLE",
        "(ARRAY['NaN', '-0', '-Infinity', '5e-324', (h / 7.0)::float8::text])[1 + i % 5]::float8",
        PLAIN,
    ),
    ranges(
        leaf("numeric", "numeric", "numeric", "i * 10.0 ^ (i / 4 - 5)", PLAIN),
        "numrange",
        "nummultirange",
        false,
    ),
    leaf(
        "numeric",
        "numeric",
        "numeric",
        "(ARRAY['NaN', '0.000', '-12.3400', '1e200', '-7e-200', h::text])[1 + i % 6]::numeric",
        PLAIN,
    ),
    leaf("uuid", "uuid", "uuid", "md5(i::text)::uuid", PLAIN),
    ranges(
        leaf("date", "date", "date", "date '0001-03-01 BC' + i * 20000", PLAIN),
        "daterange",
        "datemultirange",
        true,
    ),
    ranges(
        leaf(
            "timestamp",
            "timestamp",
            "timestamp",
            "timestamp '0100-03-01 BC' + i * interval '20000 days 1.000001 s'",
            PLAIN,
        ),
        "tsrange",
        "tsmultirange",
        false,
    ),
    ranges(
        leaf(
            "timestamptz",
            "timestamptz",
            "timestamptz",
            "timestamptz '1900-03-01' + i * interval '2000 days 1.5 s'",
            SINCE_1970,
        ),
        "tstzrange",
        "tstzmultirange",
        false,
    ),
    leaf("boolean", "boolean", "boolean", "i % 2 = 0", "CASE WHEN x THEN 't' ELSE 'f' END"),
    leaf(
        "time",
        "time",
        "time",
        "CASE i WHEN 7 THEN '24:00' ELSE time '00:00' + i * interval '2222.000001 s' END",
        "(extract(epoch FROM x) * 1000000)::bigint::text",
    ),
    leaf(
        "timetz",
        "timetz",
        "timetz",
        "format('%s%s', time '00:00' + i * interval '2222.000001 s', (ARRAY['+02', '-11:30', '+00'])[1 + i % 3])::timetz",
        "(extract(epoch FROM x::time) * 1000000)::bigint || ' ' || -extract(timezone FROM x)",
    ),
    leaf(
        "interval",
        "interval",
        "interval",
        "make_interval(i % 7 - 3, i % 5, 0, i % 3 * -40, i % 2 * -30, 0, i * 1e6 + 0.000001)",
        INTERVAL,
    ),
    leaf(
        "pg_lsn",
        "pg_lsn",
        "pg_lsn",
        "format('%s/%s', to_hex(h % 4294967296), to_hex(i))::pg_lsn",
        "(x - '0/0')::text",
    ),
    leaf("xid8", "xid8", "xid8", "(h::numeric * 2)::text::xid8", PLAIN),
    leaf("jsonb", "jsonb", "jsonb", JSONB, PLAIN),
    other(
        "inet",
        r#"{"other": ["pg_catalog", "inet"]}"#,
        "set_masklen(inet '10.0.0.0' + i, i % 33)",
        OWN_HASH,
    ),
    other(
        "cidr",
        r#"{"other": ["pg_catalog", "cidr"]}"#,
        "set_masklen(cidr '10.0.0.0/8' + i * 256, 24)::cidr",
        OWN_HASH,
    ),
    other(
        "macaddr",
        r#"{"other": ["pg_catalog", "macaddr"]}"#,
        "lpad(to_hex(i), 12, '0')::macaddr",
        "hashmacaddrextended(x, 0)::text",
    ),
    other(
        "oidvector",
        r#"{"other": ["pg_catalog", "oidvector"]}"#,
        "format('%s %s', i, h % 1000)::oidvector",
        "hashoidvectorextended(x, 0)::text",
    ),
];

/// Values of every leaf.
pub struct Pools {
    /// As the reader has them on a line, and in JSON.
    texts: Vec<Vec<(String, String)>>,
}

impl Pools {
    /// Makes them in a table of the database.
    pub fn new(client: &mut Client) -> Pools {
        let types: Vec<String> = LEAVES
            .iter()
            .enumerate()
            .map(|(i, leaf)| format!("c{i} {}", leaf.sql_type))
            .collect();
        let values: Vec<&str> = LEAVES.iter().map(|leaf| leaf.values).collect();
        run(client, &format!("CREATE TABLE pool (n integer PRIMARY KEY, {})", types.join(", ")));
        let numbers = format!(
            "SELECT i, (i::numeric ^ 11 * 7919 % 9223372036854775807)::bigint AS h FROM generate_series(1, {VALUES}) AS i"
        );
        run(
            client,
            &format!(
                "INSERT INTO pool SELECT i, {} FROM ({numbers}) AS numbers",
                values.join(", ")
            ),
        );
        let of_leaf = |(i, leaf): (usize, &Leaf)| {
            let sql = format!(
                "SELECT t, to_json(t)::text FROM (SELECT n, {} AS t FROM (SELECT n, c{i} AS x FROM pool) AS p) AS q ORDER BY n",
                leaf.text
            );
            rows(client, &sql)
                .iter()
                .map(|row| (row.get(0), row.get(1)))
                .collect()
        };
        Pools { texts: LEAVES.iter().enumerate().map(of_leaf).collect() }
    }

    /// A value in SQL.
    pub fn value(leaf: usize, n: usize) -> String {
        format!("(SELECT c{leaf} FROM pool WHERE n = {})", n + 1)
    }

    /// The same as the reader has it on a line.
    pub fn text(&self, leaf: usize, n: usize) -> &str {
        &self.texts[leaf][n].0
    }

    /// The same in JSON.
    pub fn json(&self, leaf: usize, n: usize) -> &str {
        &self.texts[leaf][n].1
    }
}
