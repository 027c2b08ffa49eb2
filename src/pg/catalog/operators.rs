//! Operator classes and families, as the catalogs have them.

pub use super::lookup::get_opcode as function_of;
pub use pgrx::pg_sys::FormData_pg_amop as FamilyOperator;

use super::lookup::{self, valid};
use crate::pg::catalog;
use crate::pg::value::encoding::utf8_of;
use pgrx::pg_sys::{self, Oid};

/// The family and the declared type of an operator class. Raises an error for an unknown one.
pub fn operator_class(class: Oid) -> (Oid, Oid) {
    (lookup::get_opclass_family(class), lookup::get_opclass_input_type(class))
}

pub fn family_operators(family: Oid) -> Vec<FamilyOperator> {
    let cache = pg_sys::SysCacheIdentifier::AMOPSTRATEGY as i32;
    let none = pg_sys::Datum::null();
    // SAFETY: reads the catalog; the list has as many members as it says, each a row of pg_amop.
    unsafe {
        let list = pg_sys::SearchSysCacheList(cache, 1, pg_sys::Datum::from(family), none, none);
        let members = (*list).members.as_ptr();
        let row =
            |i| *pg_sys::GETSTRUCT(&raw mut (**members.add(i)).tuple).cast::<FamilyOperator>();
        let operators = (0..(*list).n_members as usize).map(row).collect();
        pg_sys::ReleaseCatCacheList(list);
        operators
    }
}

pub fn is_for_search(operator: &FamilyOperator) -> bool {
    operator.amoppurpose as u8 == pg_sys::AMOP_SEARCH
}

pub fn family_member(family: Oid, left: Oid, right: Oid, strategy: i16) -> Option<Oid> {
    valid(lookup::get_opfamily_member(family, left, right, strategy))
}

/// The strategy of an operator with which a family looks values up, and the type on its right.
pub fn properties(family: Oid, operator: Oid) -> Option<(i16, Oid)> {
    let (mut strategy, mut left, mut right) = (0, Oid::INVALID, Oid::INVALID);
    // SAFETY: both read the catalog; the second raises an error for an operator that is not in the
    // family.
    unsafe {
        if pg_sys::get_op_opfamily_strategy(operator, family) == 0 {
            return None;
        }
        pg_sys::get_op_opfamily_properties(
            operator,
            family,
            false,
            &mut strategy,
            &mut left,
            &mut right,
        );
    }
    Some((strategy as i16, right))
}

pub fn family_function(family: Oid, of: Oid, number: i16) -> Option<Oid> {
    valid(lookup::get_opfamily_proc(family, of, of, number))
}

/// The equality of two types: that of the default operator class of the left one for sorting, or
/// else for hashing.
pub fn equality(left: Oid, right: Oid) -> Option<Oid> {
    [(pg_sys::BTREE_AM_OID, 3), (pg_sys::HASH_AM_OID, 1)]
        .into_iter()
        .find_map(|(method, strategy)| {
            let (family, declared) =
                operator_class(valid(lookup::GetDefaultOpClass(left, method))?);
            let other = if right == left { declared } else { right };
            family_member(family, declared, other, strategy)
        })
}

/// The name of an operator as users write it, with the types that it compares.
pub fn display(operator: &FamilyOperator) -> String {
    // SAFETY: reads the catalog; the result is a C string in the memory of this call, or null.
    let name = unsafe { utf8_of(pg_sys::get_opname(operator.amopopr)) };
    let name = name.unwrap_or_else(|| operator.amopopr.to_u32().to_string());
    let [left, right] = [operator.amoplefttype, operator.amoprighttype].map(catalog::display_name);
    format!("{name} ({left}, {right})")
}
