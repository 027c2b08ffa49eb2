//! What the catalogs say about types.
//!
//! | module | what it is for |
//! |---|---|
//! | [`lookup`] | PostgreSQL's functions that may be given any identifier |
//! | [`operators`] | operator classes and families |
//! | [`default_class`] | how values of a type are compared and hashed: its default operator classes |
//! | [`definition`] | what a table has beside its columns |
//! | [`invalidation`] | what changed since, and which transactions failed |
//! | [`owner`] | rights, and running a table's expressions as its owner |

pub mod default_class;
pub mod definition;
pub mod invalidation;
pub mod lookup;
pub mod operators;
pub mod owner;

pub use self::lookup::get_func_namespace as namespace_of_function;
/// The type that a function returns. Raises an error for an unknown function.
pub use self::lookup::get_func_rettype as result_type;
/// The collation that a type has by itself; invalid if its values don't compare by one.
pub use self::lookup::get_typcollation as collation;
/// The type under all domains.
pub use self::lookup::getBaseType as base_type;

use self::lookup::valid;
use super::value::encoding;
use pgrx::pg_sys;
use std::ffi::CStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Bytes; -1 for a variable length, -2 for a C string.
    pub len: i16,
    /// Whether a datum is the value itself.
    pub by_value: bool,
    /// `c`, `s`, `i` or `d`.
    pub align: std::ffi::c_char,
}

impl Storage {
    pub fn of(column: &pg_sys::FormData_pg_attribute) -> Storage {
        Storage {
            len: column.attlen,
            by_value: column.attbyval,
            align: column.attalign,
        }
    }
}

/// The sort of a type, with the types that it is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Enum,
    Domain(pg_sys::Oid),
    Array(pg_sys::Oid),
    /// A range over this type with this collation.
    Range(pg_sys::Oid, pg_sys::Oid),
    /// A multirange of this type of ranges.
    Multirange(pg_sys::Oid),
    Composite,
    /// A row whose columns only its value knows.
    AnonymousRow,
    /// A string type that is no part of PostgreSQL: citext or its like, which compares by rules of
    /// its own.
    ForeignString,
    /// A name of an object in the database, kept as its identifier: regclass and its like, aclitem.
    ObjectName,
    Base,
}

pub fn storage(oid: pg_sys::Oid) -> Storage {
    let mut storage = Storage { len: 0, by_value: false, align: 0 };
    // SAFETY: the function fills in all three, or raises an error for an unknown type.
    unsafe {
        pg_sys::get_typlenbyvalalign(
            oid,
            &mut storage.len,
            &mut storage.by_value,
            &mut storage.align,
        )
    };
    storage
}

pub fn is_type(oid: pg_sys::Oid) -> bool {
    // SAFETY: the cache has rows of pg_type.
    unsafe { with_row(pg_sys::SysCacheIdentifier::TYPEOID, oid, |_: &pg_sys::FormData_pg_type| ()) }
        .is_some()
}

/// The type that a function declares for argument `i`, if it has so many.
pub fn argument_type(function: pg_sys::Oid, i: usize) -> Option<pg_sys::Oid> {
    let (mut types, mut count) = (std::ptr::null_mut(), 0);
    // SAFETY: the function sets both, to an array of that many types, or raises an error for an
    // unknown function.
    unsafe {
        pg_sys::get_func_signature(function, &mut types, &mut count);
        (i < count as usize).then(|| *types.add(i))
    }
}

/// The name of a function and the types that it takes, as users write them.
pub fn function_signature(function: pg_sys::Oid) -> String {
    // SAFETY: the result is a C string in the memory of this call.
    unsafe { encoding::utf8_of(pg_sys::format_procedure(function)) }.unwrap_or_default()
}

/// Whether a function computes an aggregate's states or its result, from the aggregate's arguments
/// or by their types.
pub fn is_function_of_aggregate(function: pg_sys::Oid, aggregate: pg_sys::Oid) -> bool {
    let is_one = |row: &pg_sys::FormData_pg_aggregate| {
        [
            row.aggtransfn,
            row.aggfinalfn,
            row.aggmtransfn,
            row.aggminvtransfn,
            row.aggmfinalfn,
        ]
        .contains(&function)
    };
    // SAFETY: the cache has rows of pg_aggregate.
    unsafe { with_row(pg_sys::SysCacheIdentifier::AGGFNOID, aggregate, is_one) }.unwrap_or(false)
}

/// What a call of a function costs by its declaration, in units of `cpu_operator_cost`; zero for an
/// unknown one.
pub fn function_cost(function: pg_sys::Oid) -> f64 {
    let cost = |row: &pg_sys::FormData_pg_proc| f64::from(row.procost);
    // SAFETY: the cache has rows of pg_proc.
    unsafe { with_row(pg_sys::SysCacheIdentifier::PROCOID, function, cost) }.unwrap_or(0.0)
}

/// The table in which a table's values are out of line, if it has one.
pub fn toast_table(table: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let toast = |row: &pg_sys::FormData_pg_class| row.reltoastrelid;
    // SAFETY: the cache has rows of pg_class.
    unsafe { with_row(pg_sys::SysCacheIdentifier::RELOID, table, toast) }.and_then(valid)
}

/// What `read` makes of the fixed columns of a catalog's row.
///
/// # Safety
/// `Row` must be what the rows of the cache are, and its key an object identifier.
unsafe fn with_row<Row, T>(
    cache: pg_sys::SysCacheIdentifier::Type,
    key: pg_sys::Oid,
    read: impl FnOnce(&Row) -> T,
) -> Option<T> {
    // SAFETY: reads the catalog; a tuple begins with its fixed columns, and is given back.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache as i32, pg_sys::Datum::from(key));
        if tuple.is_null() {
            return None;
        }
        let result = read(&*pg_sys::GETSTRUCT(tuple).cast());
        pg_sys::ReleaseSysCache(tuple);
        Some(result)
    }
}

pub fn element_type(oid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    valid(lookup::get_element_type(oid))
}

/// Whether values of a type that a function declares are arrays.
pub fn is_array(declared: pg_sys::Oid) -> bool {
    [pg_sys::ANYARRAYOID, pg_sys::ANYCOMPATIBLEARRAYOID].contains(&declared)
        || element_type(declared).is_some()
}

/// Whether a type stands for others, as `anyarray` does.
pub fn is_polymorphic(oid: pg_sys::Oid) -> bool {
    lookup::get_typtype(oid) as u8 == b'p'
}

pub fn shape(oid: pg_sys::Oid) -> Shape {
    if oid == pg_sys::RECORDOID {
        return Shape::AnonymousRow;
    }
    // An oidvector compares by a function of its own.
    if let Some(element) = element_type(oid).filter(|_| oid != pg_sys::OIDVECTOROID) {
        return Shape::Array(element);
    }
    match lookup::get_typtype(oid) as u8 {
        b'e' => Shape::Enum,
        b'd' => Shape::Domain(base_type(oid)),
        b'c' => Shape::Composite,
        b'r' => Shape::Range(lookup::get_range_subtype(oid), lookup::get_range_collation(oid)),
        b'm' => Shape::Multirange(lookup::get_multirange_range(oid)),
        _ if is_foreign_string(oid) => Shape::ForeignString,
        _ if is_object_name(oid) => Shape::ObjectName,
        _ => Shape::Base,
    }
}

fn is_foreign_string(oid: pg_sys::Oid) -> bool {
    let (mut category, mut preferred) = (0, false);
    // SAFETY: the function fills in both, or raises an error for an unknown type.
    unsafe { pg_sys::get_type_category_preferred(oid, &mut category, &mut preferred) };
    category as u8 == b'S' && oid.to_u32() >= pg_sys::FirstNormalObjectId
}

fn is_object_name(oid: pg_sys::Oid) -> bool {
    [
        pg_sys::REGPROCOID,
        pg_sys::REGPROCEDUREOID,
        pg_sys::REGOPEROID,
        pg_sys::REGOPERATOROID,
        pg_sys::REGCLASSOID,
        pg_sys::REGCOLLATIONOID,
        pg_sys::REGTYPEOID,
        pg_sys::REGROLEOID,
        pg_sys::REGNAMESPACEOID,
        pg_sys::REGCONFIGOID,
        pg_sys::REGDICTIONARYOID,
        pg_sys::ACLITEMOID,
    ]
    .contains(&oid)
}

/// The schema-qualified name of a type, in UTF-8, as the catalogs have it, each part [`quoted`].
pub fn qualified_name(oid: pg_sys::Oid) -> String {
    let name = |row: &pg_sys::FormData_pg_type| qualified(row.typnamespace, &row.typname);
    // SAFETY: the cache has rows of pg_type.
    unsafe { with_row(pg_sys::SysCacheIdentifier::TYPEOID, oid, name) }
        .unwrap_or_else(|| oid.to_u32().to_string())
}

/// The schema-qualified name of a function, without its arguments, as [`qualified_name`] writes it.
pub fn qualified_function(oid: pg_sys::Oid) -> String {
    let name = |row: &pg_sys::FormData_pg_proc| qualified(row.pronamespace, &row.proname);
    // SAFETY: the cache has rows of pg_proc.
    unsafe { with_row(pg_sys::SysCacheIdentifier::PROCOID, oid, name) }
        .unwrap_or_else(|| oid.to_u32().to_string())
}

/// A schema and a name in it, each [`quoted`]. Schemas of temporary objects are `pg_temp`.
fn qualified(schema: pg_sys::Oid, name: &pg_sys::NameData) -> String {
    // SAFETY: reads the catalog; the name of a schema is null or a C string in the memory of this
    // call.
    let schema = unsafe {
        if pg_sys::isAnyTempNamespace(schema) {
            Some("pg_temp".to_owned())
        } else {
            encoding::utf8_of(pg_sys::get_namespace_name(schema))
        }
    };
    format!("{}.{}", quoted(&schema.unwrap_or_default()), quoted(&encoding::name(name)))
}

/// A name, quoted as in SQL if it is not of lower-case letters, digits and underscores; reserved
/// words don't matter.
pub fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// The name of a type as users write it.
pub fn display_name(oid: pg_sys::Oid) -> String {
    // SAFETY: the result is a C string in the memory of this call.
    unsafe { encoding::utf8_of(pg_sys::format_type_be(oid)) }.unwrap_or_default()
}

/// Whether a collation compares by bytes; values without one do.
pub fn is_deterministic(collation: pg_sys::Oid) -> bool {
    collation == pg_sys::InvalidOid || lookup::get_collation_isdeterministic(collation)
}

/// Whether a function has this name and is in the schema of another one.
pub fn is_beside(function: pg_sys::Oid, other: pg_sys::Oid, name: &CStr) -> bool {
    // SAFETY: reads the catalog; the result is null or a C string in the memory of this call.
    let is_named = unsafe {
        let own = pg_sys::get_func_name(function);
        !own.is_null() && CStr::from_ptr(own) == name
    };
    is_named && namespace_of_function(function) == namespace_of_function(other)
}

pub fn type_beside(function: pg_sys::Oid, name: &CStr) -> pg_sys::Oid {
    let (cache, column) =
        (pg_sys::SysCacheIdentifier::TYPENAMENSP as i32, pg_sys::Anum_pg_type_oid as i16);
    let (name, schema) =
        (pg_sys::Datum::from(name.as_ptr()), pg_sys::Datum::from(namespace_of_function(function)));
    let none = pg_sys::Datum::null();
    // SAFETY: reads the catalog; the name is a C string.
    unsafe { pg_sys::GetSysCacheOid(cache, column, name, schema, none, none) }
}
