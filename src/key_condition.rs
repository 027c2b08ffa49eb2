//! `filter @=> bloom_key(element)`: a condition on an index over filters.
//!
//! Keys of an index scan don't say of which type an element is. The key is made in the executor,
//! where the expression still says it: so an element may be a parameter, or a column of another
//! table in a join.

use crate::pg::catalog::{self, operators};
use pgrx::pg_sys::{self, Node, Oid};

/// The strategy of operators that ask a filter.
pub const ASKS: i16 = 2;
/// The support functions that make the key of an element, and those of an array's.
pub const KEY_OF_ELEMENT: i16 = 1;
pub const KEY_OF_ARRAY: i16 = 2;

/// What an operator family has for such conditions, which are made in the memory of the call.
pub struct KeyCondition {
    /// `@=>`.
    pub operator: Oid,
    /// The type `bloom_key`, and its functions.
    key: Oid,
    key_of_element: Oid,
    key_of_array: Oid,
}

impl KeyCondition {
    /// Those of a family; `own` is a function of this extension.
    pub fn of(family: Oid, own: Oid) -> Option<KeyCondition> {
        let [bloom, key] = [c"bloom", c"bloom_key"].map(|name| catalog::type_beside(own, name));
        Some(KeyCondition {
            operator: operators::family_member(family, bloom, key, ASKS)?,
            key,
            key_of_element: operators::family_function(family, bloom, KEY_OF_ELEMENT)?,
            key_of_array: operators::family_function(family, bloom, KEY_OF_ARRAY)?,
        })
    }

    /// `filter @=> bloom_key(element)`, or `filter @=> ANY (bloom_keys(elements))`.
    ///
    /// # Safety
    /// The nodes must be expressions of a filter and of an element, or of an array of elements.
    pub unsafe fn of_element(
        &self,
        filter: *mut Node,
        asked: *mut Node,
        is_array: bool,
        collation: Oid,
    ) -> *mut Node {
        // SAFETY: promised by the caller.
        unsafe {
            let (mut argument, given) = (asked, pg_sys::exprType(asked));
            let base = pg_sys::getBaseType(given);
            // Arguments of a polymorphic function are of the type that their domain is over.
            if is_array && base != given {
                let cast = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
                argument = pg_sys::makeRelabelType(
                    asked.cast(),
                    base,
                    -1,
                    pg_sys::get_typcollation(base),
                    cast,
                )
                .cast();
            }
            let (function, result) = if is_array {
                (self.key_of_array, pg_sys::get_array_type(self.key))
            } else {
                (self.key_of_element, self.key)
            };
            let written = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
            let arguments = pg_sys::lappend(std::ptr::null_mut(), argument.cast());
            let key = pg_sys::makeFuncExpr(
                function,
                result,
                arguments,
                pg_sys::InvalidOid,
                collation,
                written,
            );
            self.of_key(filter, key.cast(), is_array)
        }
    }

    /// `filter @=> key`, or `filter @=> ANY (keys)`.
    ///
    /// # Safety
    /// The nodes must be expressions of a filter and of a key, or of an array of keys.
    pub unsafe fn of_key(&self, filter: *mut Node, key: *mut Node, is_array: bool) -> *mut Node {
        let (operator, none) = (self.operator, pg_sys::InvalidOid);
        let (left, right) = (filter.cast(), key.cast());
        // SAFETY: promised by the caller; a node is zeros except for what is set.
        unsafe {
            if !is_array {
                return pg_sys::make_opclause(
                    operator,
                    pg_sys::BOOLOID,
                    false,
                    left,
                    right,
                    none,
                    none,
                )
                .cast();
            }
            let clause: *mut pg_sys::ScalarArrayOpExpr =
                pg_sys::palloc0(size_of::<pg_sys::ScalarArrayOpExpr>()).cast();
            (*clause).xpr.type_ = pg_sys::NodeTag::T_ScalarArrayOpExpr;
            (*clause).opno = operator;
            (*clause).opfuncid = operators::function_of(operator);
            (*clause).useOr = true;
            (*clause).args =
                pg_sys::lappend(pg_sys::lappend(std::ptr::null_mut(), filter.cast()), key.cast());
            (*clause).location = -1;
            clause.cast()
        }
    }
}
