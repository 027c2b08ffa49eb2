//! Operator classes and families, as the catalogs have them.

pub use super::lookup::get_opcode as function_of;
use pg_bloom_core::memory::List;
pub use pgrx::pg_sys::FormData_pg_amop as FamilyOperator;

use super::lookup::{self, valid};
use crate::pg::catalog;
use crate::pg::value::encoding::utf8_of;
use pgrx::pg_sys::{self, Oid};

/// Returns the operator family of an operator class, and the type that the class is declared for.
/// Raises an error for an unknown class.
pub fn operator_class(class: Oid) -> (Oid, Oid) {
    (lookup::get_opclass_family(class), lookup::get_opclass_input_type(class))
}

/// Returns copies of all operators of an operator family, rows of `pg_amop`: those that search an
/// index and those that order its rows.
pub fn family_operators(family: Oid) -> List<FamilyOperator> {
    let cache = pg_sys::SysCacheIdentifier::AMOPSTRATEGY as i32;
    let family = pg_sys::Datum::from(family);
    let none = pg_sys::Datum::null();
    let mut operators = List::new();
    // SAFETY: the list has `n_members` members, each a row of pg_amop, until it is released.
    unsafe {
        let list = pg_sys::SearchSysCacheList(cache, 1, family, none, none);
        let members = (*list).members.as_ptr();
        for i in 0..(*list).n_members as usize {
            let tuple = &raw mut (**members.add(i)).tuple;
            operators.push(*pg_sys::GETSTRUCT(tuple).cast::<FamilyOperator>());
        }
        pg_sys::ReleaseCatCacheList(list);
    }
    operators
}

/// Returns whether an operator is in its family to search an index, rather than to order its rows.
pub fn is_for_search(operator: &FamilyOperator) -> bool {
    operator.amoppurpose as u8 == pg_sys::AMOP_SEARCH
}

/// Returns the operator of a family that compares these two types, by its strategy, the operator's
/// number in the family; `None` if there is none.
pub fn family_member(family: Oid, left: Oid, right: Oid, strategy: i16) -> Option<Oid> {
    valid(lookup::get_opfamily_member(family, left, right, strategy))
}

/// Returns the number (*strategy*) of an operator in an operator family, and the type on the
/// operator's right side. `None` if the family doesn't have the operator for searching an index.
pub fn strategy_and_right_type(family: Oid, operator: Oid) -> Option<(i16, Oid)> {
    let is_for_ordering = false;
    let mut strategy = 0;
    let mut left = Oid::INVALID;
    let mut right = Oid::INVALID;
    // SAFETY: both functions read the catalog. The second one fills in the variables, since the
    // first one has found the operator in the family.
    unsafe {
        if pg_sys::get_op_opfamily_strategy(operator, family) == 0 {
            return None;
        }
        pg_sys::get_op_opfamily_properties(
            operator,
            family,
            is_for_ordering,
            &mut strategy,
            &mut left,
            &mut right,
        );
    }
    Some((strategy as i16, right))
}

/// Returns the support function of an operator family for a type, by its number, which the access
/// method gives a meaning; `None` if there is none.
pub fn family_function(family: Oid, declared: Oid, number: i16) -> Option<Oid> {
    valid(lookup::get_opfamily_proc(family, declared, declared, number))
}

/// Returns the operator `=` between two types, from the default operator class of the left one: of
/// its class for sorting or, if that has none, of its class for hashing. `None` if neither has one.
pub fn equality(left: Oid, right: Oid) -> Option<Oid> {
    equality_by(left, right, pg_sys::BTREE_AM_OID, pg_sys::BTEqualStrategyNumber as i16).or_else(
        || equality_by(left, right, pg_sys::HASH_AM_OID, pg_sys::HTEqualStrategyNumber as i16),
    )
}

/// Returns the operator with this number (*strategy*) between two types, from the left type's
/// default operator class for an access method such as btree; `None` if there is no such class or
/// operator.
fn equality_by(left: Oid, right: Oid, method: Oid, strategy: i16) -> Option<Oid> {
    let class = valid(lookup::GetDefaultOpClass(left, method))?;
    let (family, declared) = operator_class(class);
    // The class may be declared for another type to which the left one is converted, such as text
    // for varchar. A right side of the same type is then converted, too.
    let right_declared = if right == left { declared } else { right };
    family_member(family, declared, right_declared, strategy)
}

/// Returns an operator as users write it, with the types that it compares: `= (integer, bigint)`.
pub fn display(operator: &FamilyOperator) -> String {
    // SAFETY: the name is null, or a C string in the current memory context.
    let name = unsafe { utf8_of(pg_sys::get_opname(operator.amopopr)) };
    let name = name.unwrap_or_else(|| operator.amopopr.to_u32().to_string());
    let left = catalog::display_name(operator.amoplefttype);
    let right = catalog::display_name(operator.amoprighttype);
    format!("{name} ({left}, {right})")
}
