//! Columns of test files, and their values as Parquet keeps them.

use parquet::basic::Type;
use parquet::bloom_filter::Sbbf;

/// A column: its name, the SQL type of its elements, element number i as SQL, and the same x as
/// Parquet stores it, as bytea.
pub struct Column {
    pub name: &'static str,
    pub sql_type: &'static str,
    pub element: &'static str,
    pub plain: &'static str,
    /// Type and annotation in Parquet's schema.
    pub schema: &'static str,
}

const fn column(
    name: &'static str,
    sql_type: &'static str,
    element: &'static str,
    plain: &'static str,
    schema: &'static str,
) -> Column {
    Column { name, sql_type, element, plain, schema }
}

pub const COLUMNS: [Column; 11] = [
    // Those that it has, then others.
    column(
        "small",
        "smallint",
        "CASE WHEN i < 65536 THEN i - 32768 ELSE i END::integer",
        "int4send(x)",
        "INT32 small (INTEGER(16,true))",
    ),
    column("int", "integer", "(i * 7001 - 5000)::integer", "int4send(x)", "INT32 int"),
    column("big", "bigint", "i * 1000000007 - 5000", "int8send(x)", "INT64 big"),
    column("real", "real", "(i / 8.0)::real", "float4send(x)", "FLOAT real"),
    column("double", "double precision", "i / 8::float8", "float8send(x)", "DOUBLE double"),
    column("text", "text", "'text é ' || i", "convert_to(x, 'UTF8')", "BYTE_ARRAY text (STRING)"),
    column("bytes", "bytea", "decode(lpad(to_hex(i), 32, '0'), 'hex')", "x", "BYTE_ARRAY bytes"),
    column(
        "uuid",
        "uuid",
        "lpad(to_hex(i), 32, '0')::uuid",
        "uuid_send(x)",
        "FIXED_LEN_BYTE_ARRAY(16) uuid (UUID)",
    ),
    column(
        "day",
        "date",
        "date '1990-01-01' + i::integer",
        "int4send(x - date '1970-01-01')",
        "INT32 day (DATE)",
    ),
    column(
        "time",
        "timestamp",
        "timestamp '1990-01-01' + i * interval '1 hour'",
        "int8send((extract(epoch FROM x) * 1000000)::bigint)",
        "INT64 time (TIMESTAMP(MICROS,false))",
    ),
    column(
        "instant",
        "timestamptz",
        "timestamptz '1990-01-01 00:00+00' + i * interval '1 hour'",
        "int8send((extract(epoch FROM x) * 1000000)::bigint)",
        "INT64 instant (TIMESTAMP(MICROS,true))",
    ),
];

/// A value as Parquet's writers hash it: the bytes of what PostgreSQL sends, numbers the other way
/// round.
#[derive(Clone, Debug)]
pub enum Plain {
    Int32(i32),
    Int64(i64),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
}

impl Plain {
    pub fn of(physical: Type, sent: &[u8]) -> Plain {
        match physical {
            Type::INT32 => Plain::Int32(i32::from_be_bytes(sent.try_into().expect("four bytes"))),
            Type::INT64 => Plain::Int64(i64::from_be_bytes(sent.try_into().expect("eight bytes"))),
            Type::FLOAT => Plain::Float(f32::from_be_bytes(sent.try_into().expect("four bytes"))),
            Type::DOUBLE => {
                Plain::Double(f64::from_be_bytes(sent.try_into().expect("eight bytes")))
            }
            _ => Plain::Bytes(sent.to_vec()),
        }
    }

    /// Adds it to a filter of the other program.
    pub fn insert(&self, filter: &mut Sbbf) {
        match self {
            Plain::Int32(x) => filter.insert(x),
            Plain::Int64(x) => filter.insert(x),
            Plain::Float(x) => filter.insert(x),
            Plain::Double(x) => filter.insert(x),
            Plain::Bytes(x) => filter.insert(x.as_slice()),
        }
    }

    /// What the other program answers.
    pub fn is_in(&self, filter: &Sbbf) -> bool {
        match self {
            Plain::Int32(x) => filter.check(x),
            Plain::Int64(x) => filter.check(x),
            Plain::Float(x) => filter.check(x),
            Plain::Double(x) => filter.check(x),
            Plain::Bytes(x) => filter.check(x.as_slice()),
        }
    }
}

/// A filter of a file as it must be after reading: with 0 if it may have -0, and with NaN if it has
/// anything. Nothing but floats needs that.
pub fn completed(theirs: &Sbbf, physical: Type) -> Sbbf {
    let mut filter = theirs.clone();
    let is_empty = theirs.estimated_fpp() == 0.0;
    match physical {
        Type::FLOAT => {
            if theirs.check(&-0f32) {
                filter.insert(&0f32);
            }
            if !is_empty {
                filter.insert(&f32::NAN);
            }
        }
        Type::DOUBLE => {
            if theirs.check(&-0f64) {
                filter.insert(&0f64);
            }
            if !is_empty {
                filter.insert(&f64::NAN);
            }
        }
        _ => {}
    }
    filter
}

/// The physical type of a column.
pub fn physical(column: &Column) -> Type {
    let name = column.schema.split([' ', '(']).next().expect("a type");
    name.parse().expect("a physical type")
}
