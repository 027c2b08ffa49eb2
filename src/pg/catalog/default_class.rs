//! How values of a type are compared and hashed: by its default operator classes.
//!
//! Which class is a type's default can change while values of the type are stored: classes are
//! created and dropped, a support function of a family is replaced, and a type without a class of
//! its own uses that of a type to which a cast `WITHOUT FUNCTION` leads. The type cache notices
//! only some of these changes, so the catalogs are read.

use super::lookup::{self, valid};
use super::operators::{self, equality, family_function, family_member};
use super::{argument_type, qualified_function};
use crate::pg::memory::{self, Context};
use pgrx::pg_sys::{self, Oid};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The support function of a B-tree's operator class that compares two values.
const COMPARE: i16 = pg_sys::BTORDER_PROC as i16;
/// The support function of a hash operator class that takes a seed, and returns 64 bits.
const HASH_EXTENDED: i16 = pg_sys::HASHEXTENDED_PROC as i16;
/// The strategy of `=` in a hash operator class.
const HASH_EQUAL: i16 = pg_sys::HTEqualStrategyNumber as i16;

/// How values of a type are hashed to 64 bits.
pub struct TypeHash {
    pub function: Oid,
    /// The type whose operator class has the function: the type itself, or one to which a cast
    /// `WITHOUT FUNCTION` leads.
    pub class_type: Oid,
    /// Whether the type has this function for as long as it exists: PostgreSQL or one extension has
    /// made the type, its operator class and the function. Otherwise somebody may replace one of
    /// them while hashes are stored.
    pub is_permanent: bool,
}

/// Why values of a type can't be hashed.
pub enum Unhashable {
    /// It has no default operator class with such a function.
    NoFunction,
    /// Its default classes for sorting and for hashing have different operators `=`.
    OtherEquality,
}

/// Returns how values of a type are hashed to 64 bits: by the *extended* hash function of the
/// operator class that is the type's default for hash indexes. Values that the type's `=` holds
/// equal have one hash. `type_oid` must not be a domain.
///
/// Fails if the type has no such class or function, and if its default class for btree indexes has
/// another `=` than the one for hash indexes.
pub fn type_hash(type_oid: Oid) -> Result<TypeHash, Unhashable> {
    let class = default_class(type_oid, pg_sys::HASH_AM_OID).ok_or(Unhashable::NoFunction)?;
    let function = family_function(class.family, class.class_type, HASH_EXTENDED)
        .ok_or(Unhashable::NoFunction)?;

    let equality_of_class =
        family_member(class.family, class.class_type, class.class_type, HASH_EQUAL);
    if equality_of_class.is_none() || equality_of_class != equality(type_oid, type_oid) {
        return Err(Unhashable::OtherEquality);
    }
    Ok(TypeHash {
        function,
        class_type: class.class_type,
        is_permanent: is_of_postgres(type_oid, &class, function)
            || is_of_extension(type_oid, &class, function),
    })
}

/// The default operator class of a type for an access method.
struct DefaultClass {
    oid: Oid,
    family: Oid,
    /// The type that it was made for: the type itself, or one to which a cast `WITHOUT FUNCTION`
    /// leads.
    class_type: Oid,
}

/// Returns the default operator class of a type for an access method; `None` if there is none.
fn default_class(type_oid: Oid, method: Oid) -> Option<DefaultClass> {
    let class = valid(lookup::GetDefaultOpClass(type_oid, method))?;
    let (family, class_type) = operators::operator_class(class);
    Some(DefaultClass { oid: class, family, class_type })
}

/// Returns whether nobody can drop what decides how a type is hashed, since all of it comes with
/// PostgreSQL: the type, its default operator class, the hash function of the class, and, if the
/// class is one for another type, the cast to that type. False if somebody has made the class for
/// the type.
fn is_of_postgres(type_oid: Oid, class: &DefaultClass, function: Oid) -> bool {
    // SAFETY: the function takes any identifier but the invalid one.
    let is_pinned = |catalog, object| {
        object != Oid::INVALID && unsafe { pg_sys::IsPinnedObject(catalog, object) }
    };
    let uses_pinned_class = class.class_type == type_oid
        || is_pinned(pg_sys::CastRelationId, cast_between(type_oid, class.class_type));
    uses_pinned_class
        && is_pinned(pg_sys::TypeRelationId, type_oid)
        && is_pinned(pg_sys::OperatorClassRelationId, class.oid)
        && is_pinned(pg_sys::ProcedureRelationId, function)
}

/// Returns the cast from a type to another one; the invalid identifier if there is none.
fn cast_between(source: Oid, target: Oid) -> Oid {
    let cache = pg_sys::SysCacheIdentifier::CASTSOURCETARGET as i32;
    let column = pg_sys::Anum_pg_cast_oid as i16;
    let source = pg_sys::Datum::from(source);
    let target = pg_sys::Datum::from(target);
    let none = pg_sys::Datum::null();
    // SAFETY: the keys of the cache are two types.
    unsafe { pg_sys::GetSysCacheOid(cache, column, source, target, none, none) }
}

/// Returns whether one extension has a type, an operator class for just this type, and a function
/// that takes just this type. PostgreSQL refuses to drop these while the extension exists.
fn is_of_extension(type_oid: Oid, class: &DefaultClass, function: Oid) -> bool {
    let owner = |catalog, object| {
        // SAFETY: reads the catalog.
        valid(unsafe { pg_sys::getExtensionOfObject(catalog, object) })
    };
    let extension = owner(pg_sys::TypeRelationId, type_oid);
    extension.is_some()
        && class.class_type == type_oid
        && argument_type(function, 0) == Some(type_oid)
        && owner(pg_sys::OperatorClassRelationId, class.oid) == extension
        && owner(pg_sys::ProcedureRelationId, function) == extension
}

/// Returns whether a range type compares its bounds, of type `subtype`, for equality as that type
/// itself does. `range` is the identifier of the range type. A range type may name an operator
/// class by which other bounds are equal; the classes for patterns differ from the default ones
/// only in their order.
pub fn compares_as_its_bounds(range: Oid, subtype: Oid) -> bool {
    // SAFETY: entries of the type cache live as long as the process. The operator class of a range
    // type never changes.
    let own_comparison = unsafe {
        let entry = pg_sys::lookup_type_cache(range, pg_sys::TYPECACHE_RANGE_INFO as i32);
        (*entry).rng_cmp_proc_finfo.fn_oid
    };
    let default_comparison = default_class(subtype, pg_sys::BTREE_AM_OID)
        .and_then(|class| family_function(class.family, class.class_type, COMPARE));

    // The classes for patterns have another order than the default ones, and the same equality.
    let pattern_comparisons = [pg_sys::F_BTTEXT_PATTERN_CMP, pg_sys::F_BTBPCHAR_PATTERN_CMP];
    default_comparison == Some(own_comparison)
        || pattern_comparisons.contains(&own_comparison.to_u32())
}

/// Returns whether a type has a default operator class for hashing or sorting of its own, rather
/// than one for many types, such as the class of all enums.
pub fn has_own_operator_class(type_oid: Oid) -> bool {
    [pg_sys::HASH_AM_OID, pg_sys::BTREE_AM_OID].into_iter().any(|method| {
        default_class(type_oid, method).is_some_and(|class| class.class_type == type_oid)
    })
}

session_locals! {
    /// The functions that this session has called by [`prepared_function`].
    static PREPARED: RefCell<BTreeMap<u32, *mut pg_sys::FmgrInfo>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns an `FmgrInfo`, PostgreSQL's struct for calling a function, prepared for this one. It is
/// allocated at the first call and kept as long as the process: later calls for the same function
/// return the same struct. Raises an error if there is no such function.
pub fn prepared_function(function: Oid) -> *mut pg_sys::FmgrInfo {
    let known = PREPARED.with(|functions| functions.borrow().get(&function.to_u32()).copied());
    if let Some(known) = known {
        return known;
    }
    // SAFETY: the memory lives as long as the process, and has the size of the struct.
    let prepared = unsafe {
        let context = Context::new(pg_sys::TopMemoryContext);
        let prepared = memory::allocate(context, size_of::<pg_sys::FmgrInfo>()).cast();
        pg_sys::fmgr_info_cxt(function, prepared, context.raw());
        prepared
    };
    PREPARED.with(|functions| functions.borrow_mut().insert(function.to_u32(), prepared));
    prepared
}

/// Returns the name of an extended hash function in UTF-8, with its schema and the type that it
/// takes, and without its second argument, the seed:
/// `pg_catalog.hashint8extended(pg_catalog.int8)`. Each part is quoted if it must be, as by
/// [`quoted`](super::quoted).
pub fn hash_function_name(function: Oid) -> String {
    let value_type = argument_type(function, 0)
        .map(super::qualified_name)
        .unwrap_or_default();
    format!("{}({value_type})", qualified_function(function))
}
