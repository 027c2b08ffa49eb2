//! A database with elements of every kind and filters of them, and the question whether they are
//! still the same.

use super::{KINDS, LAYOUTS, rows, run, value};
pub use super::{Kind, TYPES};
use postgres::Client;

/// Elements of each kind.
pub const COUNT: usize = 300;

/// Filters of each kind: each layout, sparse, dense and sized for what it saw.
pub const FILTERS: usize = LAYOUTS.len() * SIZES.len();

/// Capacity and rate of the filters; that of 50 is dense, overfull even.
const SIZES: [&str; 3] = ["1000000, 0.01", "50, 0.001", "NULL, 0.05"];

/// More types: every supported version of PostgreSQL has them, or [`MORE_TYPES`] makes them.
const OTHERS: [Kind; 37] = [
    ("cidr", "(inet '10.0.0.0' + i)::cidr"),
    ("macaddr", "('0800' || lpad(to_hex(i), 8, '0'))::macaddr"),
    ("macaddr8", "('08002b01' || lpad(to_hex(i), 8, '0'))::macaddr8"),
    ("pg_lsn", "('A/' || to_hex(i))::pg_lsn"),
    ("time", "time '00:00' + i * interval '61.000001 seconds'"),
    ("timetz", "timetz '00:00+02' + i * interval '61.000001 seconds'"),
    ("oid", "(i * 10000000::bigint)::oid"),
    ("xid", "i::text::xid"),
    ("xid8", "(i * 10000000000)::text::xid8"),
    ("cid", "i::text::cid"),
    ("tid", "format('(%s,%s)', i, 1 + i % 7)::tid"),
    ("oidvector", "format('%s %s', i, i + 1)::oidvector"),
    ("smallint[]", "ARRAY[i, -i]::smallint[]"),
    ("integer[]", "ARRAY[[i, 2], [3, NULL]]"),
    ("bigint[]", "ARRAY[i * -10000000000, i]"),
    ("real[]", "ARRAY[i / 3.0, 'NaN', '-0']::real[]"),
    ("double precision[]", "ARRAY[i / 3.0, 'Infinity', '-0']::float8[]"),
    ("numeric[]", "ARRAY[i / 7.0, -i * 1e20, 'NaN', 1.500]"),
    ("boolean[]", "ARRAY(SELECT (i >> bit) % 2 = 0 FROM generate_series(0, 16) AS bit)"),
    ("bytea[]", "ARRAY[decode(md5(i::text), 'hex'), '', NULL]"),
    ("uuid[]", "ARRAY[md5(i::text)::uuid]"),
    ("date[]", "ARRAY[date '1990-01-01' + i, 'infinity']"),
    ("timestamp[]", "ARRAY[timestamp '1990-01-01' + i * interval '1 hour', '-infinity']"),
    ("timestamptz[]", "ARRAY[timestamptz '1990-01-01 00:00+00' + i * interval '1 hour']"),
    ("name[]", "ARRAY[('name' || i)::name]"),
    ("char(9)[]", "ARRAY['é' || i, 'b ']::char(9)[]"),
    ("\"char\"[]", "ARRAY[(i % 256 - 128)::\"char\", (i / 256)::\"char\"]"),
    ("interval[]", "ARRAY[i * interval '-1 month 30 days', interval '1 mon']"),
    (
        "jsonb[]",
        "ARRAY[jsonb_build_object('a', i / 8.0, 'é', '[1e3, true, null, \"ß\"]'::jsonb), '{}', '-1.50']",
    ),
    ("int8range", "int8range(i * 5000000000, NULL)"),
    ("numrange", "numrange(-i / 3.0, i, '(]')"),
    ("daterange", "daterange('2000-01-01'::date - i, date '2000-01-01' + i)"),
    ("tsrange", "tsrange(timestamp '2000-01-01' + i * interval '1 minute', 'infinity')"),
    (
        "tstzrange",
        "tstzrange(NULL, timestamptz '2000-01-01 00:00+00' + i * interval '1 minute', '[]')",
    ),
    (
        "datemultirange",
        "datemultirange(daterange(NULL, '1999-01-01'), daterange('2000-01-01', date '2000-01-01' + i))",
    ),
    ("tick", "i::text::tick"),
    (
        "wide",
        "ROW(date '1990-01-01' + i, timestamptz '1990-01-01 00:00+00', 'é' || i, i / 8.0, ARRAY[i], (i % 2 = 0, NULL)::half)::wide",
    ),
];

/// Makes the types of [`OTHERS`] that PostgreSQL doesn't have. A `tick` is hashed as what it is cast to.
pub const MORE_TYPES: &str = "
    CREATE TYPE tick;
    CREATE FUNCTION tick_in(cstring) RETURNS tick LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
    CREATE FUNCTION tick_out(tick) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
    CREATE TYPE tick (INPUT = tick_in, OUTPUT = tick_out, LIKE = int8);
    CREATE CAST (tick AS bigint) WITHOUT FUNCTION AS IMPLICIT;
    CREATE TYPE half AS (a boolean, b \"char\");
    CREATE TYPE wide AS (a date, b timestamptz, c varchar, d numeric, e integer[], f half);";

/// Returns the kinds of [`KINDS`] and of [`OTHERS`].
pub fn all_kinds() -> Vec<Kind> {
    KINDS.into_iter().chain(OTHERS).collect()
}

/// Makes tables of elements of these kinds, `elements_<n>`, and one of filters of them.
pub fn fill(client: &mut Client, kinds: &[Kind]) {
    run(client, TYPES);
    run(client, MORE_TYPES);
    run(client, "SET pg_bloom.overfill = ignore");
    run(client, "CREATE TABLE filters (kind integer, note text, f bloom)");
    run(client, "CREATE TABLE counting_filters (kind integer, note text, f counting_bloom)");
    for (n, (sql_type, element)) in kinds.iter().enumerate() {
        let table = format!("elements_{n}");
        run(
            client,
            &format!(
                "CREATE TABLE {table} (x {sql_type});
                 INSERT INTO {table} SELECT {element} FROM generate_series(1, {COUNT}) AS i"
            ),
        );
        for layout in LAYOUTS {
            for size in SIZES {
                let build = format!(
                    "SELECT {n}, '{layout}, {size}', bloom_agg(x, {size}, '{layout}') FROM {table}"
                );
                run(client, &format!("INSERT INTO filters {build}"));
            }
        }
        let build = format!("SELECT {n}, 'counting', counting_bloom_agg(x, 1000) FROM {table}");
        run(client, &format!("INSERT INTO counting_filters {build}"));
    }
    run(
        client,
        "INSERT INTO counting_filters
         VALUES (NULL, 'no size', counting_bloom_empty()), (NULL, 'sized', counting_bloom_empty(9)), (NULL, 'none', NULL)",
    );
    run(client, "INSERT INTO filters VALUES (NULL, 'empty', bloom_empty()), (NULL, 'none', NULL)");
    run(
        client,
        "INSERT INTO filters VALUES (NULL, 'sized', bloom_empty(100)), (NULL, 'big', bloom_empty(9999999))",
    );
}

/// All filters, as bytes.
pub fn filters(client: &mut Client, table: &str) -> Vec<(Option<i32>, String, Option<Vec<u8>>)> {
    rows(client, &format!("SELECT kind, note, f::bytea FROM {table} ORDER BY 1, 2"))
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

/// Asserts that each filter finds all elements of its table. Returns how many answers that were.
pub fn finds_everything(client: &mut Client, kinds: &[Kind]) -> i64 {
    let mut answers = 0;
    for (n, (sql_type, _)) in kinds.iter().enumerate() {
        let row = &rows(
            client,
            &format!(
                "SELECT count(*), count(*) FILTER (WHERE f @> x AND x <@ f) FROM filters, elements_{n} WHERE kind = {n}"
            ),
        )[0];
        let (asked, found): (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(
            (asked, found),
            ((FILTERS * COUNT) as i64, asked),
            "elements of type {sql_type}"
        );
        answers += asked;
        let rebuilt: bool = value(
            client,
            &format!(
                "SELECT f = counting_bloom_agg(x, 1000) AND bool_and(f @> x)
                        AND (NOT bool_or(counting_bloom_remove(f, x) = f) OR (counting_bloom_info(f)).counters_saturated > 0)
                 FROM counting_filters, elements_{n} WHERE kind = {n} GROUP BY f"
            ),
        );
        assert!(rebuilt, "elements of type {sql_type}");
    }
    answers
}
