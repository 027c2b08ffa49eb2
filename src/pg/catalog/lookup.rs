//! PostgreSQL's functions that look something up. For what is not there they return an invalid
//! identifier or raise.

use pgrx::pg_sys::{self, Oid};
use std::ffi::c_char;

macro_rules! lookups {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            #[allow(non_snake_case, reason = "PostgreSQL's name")]
            pub fn $name($($argument: $type),*) -> $result {
                // SAFETY: takes no pointers, and reads the catalogs.
                unsafe { pg_sys::$name($($argument),*) }
            }
        )*
    };
}

lookups! {
    getBaseType(oid: Oid) -> Oid;
    get_element_type(oid: Oid) -> Oid;
    get_typ_typrelid(oid: Oid) -> Oid;
    get_typtype(oid: Oid) -> c_char;
    get_typcollation(oid: Oid) -> Oid;
    get_range_subtype(oid: Oid) -> Oid;
    get_range_collation(oid: Oid) -> Oid;
    get_multirange_range(oid: Oid) -> Oid;
    get_collation_isdeterministic(collation: Oid) -> bool;
    get_func_namespace(function: Oid) -> Oid;
    get_func_rettype(function: Oid) -> Oid;
    get_opcode(operator: Oid) -> Oid;
    get_opclass_family(class: Oid) -> Oid;
    get_opclass_input_type(class: Oid) -> Oid;
    get_opfamily_member(family: Oid, left: Oid, right: Oid, strategy: i16) -> Oid;
    get_opfamily_proc(family: Oid, left: Oid, right: Oid, number: i16) -> Oid;
    GetDefaultOpClass(oid: Oid, method: Oid) -> Oid;
    IsBinaryCoercible(from: Oid, to: Oid) -> bool;
    IndexGetRelation(index: Oid, missing_ok: bool) -> Oid;
}

/// Returns the identifier; `None` for the one by which PostgreSQL says that nothing was found.
pub fn valid(oid: Oid) -> Option<Oid> {
    if oid == Oid::INVALID { None } else { Some(oid) }
}
