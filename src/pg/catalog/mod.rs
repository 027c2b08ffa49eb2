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

/// How values of a type are stored in a row or an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Bytes; -1 for a variable length, -2 for a C string.
    pub len: i16,
    /// Whether a datum is the value itself.
    pub by_value: bool,
    /// The alignment as a letter of the catalogs: `c`, `s`, `i` or `d` for 1, 2, 4 or 8 bytes.
    pub align: std::ffi::c_char,
}

impl Storage {
    /// Returns how the values of a table's column are stored.
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
pub enum TypeKind {
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

/// Returns how values of a type are stored: their length, their alignment, and whether a datum is
/// the value itself. Raises an error for an unknown type.
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

/// Returns whether a type has this identifier. No type has it once the type is dropped.
pub fn is_type(oid: pg_sys::Oid) -> bool {
    // SAFETY: the cache has rows of pg_type.
    unsafe { with_row(pg_sys::SysCacheIdentifier::TYPEOID, oid, |_: &pg_sys::FormData_pg_type| ()) }
        .is_some()
}

/// Returns the type that a function declares for argument `i`, counted from 0; `None` if the
/// function has fewer arguments. Raises an error for an unknown function.
pub fn argument_type(function: pg_sys::Oid, i: usize) -> Option<pg_sys::Oid> {
    let mut types = std::ptr::null_mut();
    let mut count = 0;
    // SAFETY: `get_func_signature` sets `types` to an array of `count` types, or raises an error.
    unsafe {
        pg_sys::get_func_signature(function, &mut types, &mut count);
        if i < count as usize { Some(*types.add(i)) } else { None }
    }
}

/// Returns the name of a function and the types of its arguments as users write them, such as
/// `lower(text)`.
pub fn function_signature(function: pg_sys::Oid) -> String {
    // SAFETY: the result is a C string in the memory of this call.
    unsafe { encoding::utf8_of(pg_sys::format_procedure(function)) }.unwrap_or_default()
}

/// Returns whether a function is one of an aggregate's own: its transition or final function, or
/// one of these for moving windows. The functions that combine, serialize and deserialize states
/// don't count, since they aren't called with the aggregate's arguments.
pub fn is_function_of_aggregate(function: pg_sys::Oid, aggregate: pg_sys::Oid) -> bool {
    let has_function = |row: &pg_sys::FormData_pg_aggregate| {
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
    unsafe { with_row(pg_sys::SysCacheIdentifier::AGGFNOID, aggregate, has_function) }
        .unwrap_or(false)
}

/// Returns the cost of a call of a function as it is declared, in units of `cpu_operator_cost`;
/// zero for an unknown function.
pub fn function_cost(function: pg_sys::Oid) -> f64 {
    let cost = |row: &pg_sys::FormData_pg_proc| f64::from(row.procost);
    // SAFETY: the cache has rows of pg_proc.
    unsafe { with_row(pg_sys::SysCacheIdentifier::PROCOID, function, cost) }.unwrap_or(0.0)
}

/// Returns the TOAST table of a table, in which its long values are stored; `None` if it has none.
pub fn toast_table(table: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let toast = |row: &pg_sys::FormData_pg_class| row.reltoastrelid;
    // SAFETY: the cache has rows of pg_class.
    unsafe { with_row(pg_sys::SysCacheIdentifier::RELOID, table, toast) }.and_then(valid)
}

/// Calls `read` with the fixed columns of a catalog's row, which a cache finds by its key, and
/// returns the result; `None` if there is no such row.
///
/// # Safety
/// `Row` must be the struct of the rows in the cache, and the key of the cache an object
/// identifier.
unsafe fn with_row<Row, T>(
    cache: pg_sys::SysCacheIdentifier::Type,
    key: pg_sys::Oid,
    read: impl FnOnce(&Row) -> T,
) -> Option<T> {
    // SAFETY: the tuple begins with the fixed columns, which have the struct that the caller names,
    // and stays until it is released.
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

/// Returns the type of the elements of an array type; `None` for a type that isn't one.
pub fn element_type(oid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    valid(lookup::get_element_type(oid))
}

/// Returns whether a function takes arrays if it declares an argument with this type.
pub fn is_array(declared: pg_sys::Oid) -> bool {
    [pg_sys::ANYARRAYOID, pg_sys::ANYCOMPATIBLEARRAYOID].contains(&declared)
        || element_type(declared).is_some()
}

/// Returns whether a type stands for others, as `anyarray` does.
pub fn is_polymorphic(oid: pg_sys::Oid) -> bool {
    lookup::get_typtype(oid) as u8 == b'p'
}

/// Returns whether a type is made of others, and of which ones. Raises an error for an unknown
/// type.
pub fn type_kind(oid: pg_sys::Oid) -> TypeKind {
    if oid == pg_sys::RECORDOID {
        return TypeKind::AnonymousRow;
    }
    // An oidvector is an array, but is compared by a function of its own.
    if oid != pg_sys::OIDVECTOROID
        && let Some(element) = element_type(oid)
    {
        return TypeKind::Array(element);
    }
    match lookup::get_typtype(oid) as u8 {
        b'e' => TypeKind::Enum,
        b'd' => TypeKind::Domain(base_type(oid)),
        b'c' => TypeKind::Composite,
        b'r' => TypeKind::Range(lookup::get_range_subtype(oid), lookup::get_range_collation(oid)),
        b'm' => TypeKind::Multirange(lookup::get_multirange_range(oid)),
        _ if is_foreign_string(oid) => TypeKind::ForeignString,
        _ if is_object_name(oid) => TypeKind::ObjectName,
        _ => TypeKind::Base,
    }
}

/// Returns whether a type is a string that doesn't come with PostgreSQL, such as citext.
fn is_foreign_string(oid: pg_sys::Oid) -> bool {
    let mut category = 0;
    let mut is_preferred = false;
    // SAFETY: the function fills in both variables, or raises an error for an unknown type.
    unsafe { pg_sys::get_type_category_preferred(oid, &mut category, &mut is_preferred) };
    let is_string = category as u8 == b'S';
    is_string && oid.to_u32() >= pg_sys::FirstNormalObjectId
}

/// Returns whether values of a type are shown as names of objects in the database and stored as the
/// objects' identifiers, such as `regclass`. A dump restores the names, with other identifiers.
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

/// Returns the name of a type with its schema, in UTF-8, as the catalogs have it and each part
/// [`quoted`]: `pg_catalog.int4`. For an unknown type it is the identifier's digits.
pub fn qualified_name(oid: pg_sys::Oid) -> String {
    let name = |row: &pg_sys::FormData_pg_type| qualified(row.typnamespace, &row.typname);
    // SAFETY: the cache has rows of pg_type.
    unsafe { with_row(pg_sys::SysCacheIdentifier::TYPEOID, oid, name) }
        .unwrap_or_else(|| oid.to_u32().to_string())
}

/// Returns the name of a function with its schema and without its arguments, in UTF-8, each part
/// [`quoted`]. For an unknown function it is the identifier's digits.
pub fn qualified_function(oid: pg_sys::Oid) -> String {
    let name = |row: &pg_sys::FormData_pg_proc| qualified(row.pronamespace, &row.proname);
    // SAFETY: the cache has rows of pg_proc.
    unsafe { with_row(pg_sys::SysCacheIdentifier::PROCOID, oid, name) }
        .unwrap_or_else(|| oid.to_u32().to_string())
}

/// Returns a schema and a name in it, each [`quoted`], with a dot between them. Each session has a
/// schema of its own for temporary objects; all of these are written as `pg_temp`.
fn qualified(schema: pg_sys::Oid, name: &pg_sys::NameData) -> String {
    // SAFETY: the name of a schema is null, or a C string in the current memory context.
    let schema_name = unsafe {
        if pg_sys::isAnyTempNamespace(schema) {
            Some("pg_temp".to_owned())
        } else {
            encoding::utf8_of(pg_sys::get_namespace_name(schema))
        }
    };
    let schema_name = quoted(&schema_name.unwrap_or_default());
    let name = quoted(&encoding::name(name));
    format!("{schema_name}.{name}")
}

/// Returns a name as it is if it has only lower-case letters, digits and underscores and begins
/// with no digit; other names are put between double quotes, as in SQL. Reserved words aren't
/// quoted.
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

/// Returns the name of a type as users write it, such as `integer`, with its schema only if the
/// search_path doesn't find the type.
pub fn display_name(oid: pg_sys::Oid) -> String {
    // SAFETY: the result is a C string in the memory of this call.
    unsafe { encoding::utf8_of(pg_sys::format_type_be(oid)) }.unwrap_or_default()
}

/// Returns whether values of a type are stored as those of another type are, so that PostgreSQL
/// takes them for such values: varchar for text, arrays for anyarray, or the type itself.
pub fn is_stored_as(oid: pg_sys::Oid, other: pg_sys::Oid) -> bool {
    lookup::IsBinaryCoercible(oid, other)
}

/// Returns whether texts are equal under a collation only if their bytes are. True for the invalid
/// identifier, which values without a collation have.
pub fn is_deterministic(collation: pg_sys::Oid) -> bool {
    collation == pg_sys::InvalidOid || lookup::get_collation_isdeterministic(collation)
}

/// Returns whether a function has this name and is in the same schema as another one.
pub fn is_in_schema_of(function: pg_sys::Oid, other: pg_sys::Oid, name: &CStr) -> bool {
    // SAFETY: reads the catalog; the result is null or a C string in the memory of this call.
    let is_named = unsafe {
        let own = pg_sys::get_func_name(function);
        !own.is_null() && CStr::from_ptr(own) == name
    };
    is_named && namespace_of_function(function) == namespace_of_function(other)
}

/// Returns the type with this name in the schema of a function; the invalid identifier if there is
/// none.
pub fn type_in_schema_of(function: pg_sys::Oid, name: &CStr) -> pg_sys::Oid {
    let cache = pg_sys::SysCacheIdentifier::TYPENAMENSP as i32;
    let column = pg_sys::Anum_pg_type_oid as i16;
    let name = pg_sys::Datum::from(name.as_ptr());
    let schema = pg_sys::Datum::from(namespace_of_function(function));
    let none = pg_sys::Datum::null();
    // SAFETY: the keys of the cache are a name, as a C string, and a schema.
    unsafe { pg_sys::GetSysCacheOid(cache, column, name, schema, none, none) }
}
