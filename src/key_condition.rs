//! `filter @=> bloom_key(element)`: a condition on an index over filters.
//!
//! Keys of an index scan don't say of which type an element is. The key is made in the executor,
//! where the expression still says it: so an element may be a parameter, or a column of another
//! table in a join.

use crate::pg::catalog::{self, operators};
use pgrx::pg_sys::{self, Node, Oid};

/// The strategy number of operators that ask a filter for a key.
pub const STRATEGY_CONTAINS: i16 = 2;
/// The support functions that make the key of an element, and those of an array's.
pub const KEY_OF_ELEMENT: i16 = 1;
pub const KEY_OF_ARRAY: i16 = 2;

/// The operator, type and functions of an operator family from which such conditions are made. The
/// conditions are allocated in the current memory context.
pub struct KeyCondition {
    /// The operator `@=>`.
    pub operator: Oid,
    /// The type `bloom_key`.
    key: Oid,
    /// The function `bloom_key(element)`.
    key_of_element: Oid,
    /// The function `bloom_keys(elements)`.
    key_of_array: Oid,
}

impl KeyCondition {
    /// Looks the operator `@=>` and the functions `bloom_key` and `bloom_keys` up in an operator
    /// family; `None` if the family lacks one. `own` is any function of this extension: it tells
    /// the schema of the types.
    pub fn in_operator_family(family: Oid, own: Oid) -> Option<KeyCondition> {
        let [bloom, key] =
            [c"bloom", c"bloom_key"].map(|name| catalog::type_in_schema_of(own, name));
        Some(KeyCondition {
            operator: operators::family_member(family, bloom, key, STRATEGY_CONTAINS)?,
            key,
            key_of_element: operators::family_function(family, bloom, KEY_OF_ELEMENT)?,
            key_of_array: operators::family_function(family, bloom, KEY_OF_ARRAY)?,
        })
    }

    /// Returns the condition `filter @=> bloom_key(asked)` as a new expression in the current
    /// memory context; or, if `is_array`, `filter @=> ANY (bloom_keys(asked))`, whose `asked` is an
    /// array of elements. `collation` is the one under which the query compares the elements.
    ///
    /// # Safety
    /// The nodes must be expressions of a filter and of an element, or of an array of elements.
    pub unsafe fn for_element(
        &self,
        filter: *mut Node,
        asked: *mut Node,
        is_array: bool,
        collation: Oid,
    ) -> *mut Node {
        // SAFETY: promised by the caller.
        unsafe {
            let argument = if is_array { without_domain(asked) } else { asked };
            let (function, result_type) = if is_array {
                (self.key_of_array, pg_sys::get_array_type(self.key))
            } else {
                (self.key_of_element, self.key)
            };
            let arguments = pg_sys::lappend(std::ptr::null_mut(), argument.cast());
            let key = pg_sys::makeFuncExpr(
                function,
                result_type,
                arguments,
                pg_sys::InvalidOid,
                collation,
                pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
            );
            self.for_key(filter, key.cast(), is_array)
        }
    }

    /// Returns the condition `filter @=> key` as a new expression in the current memory context;
    /// or, if `is_array`, `filter @=> ANY (key)`, whose `key` is an array of values of type
    /// `bloom_key`.
    ///
    /// # Safety
    /// The nodes must be expressions of a filter and of a key, or of an array of keys.
    pub unsafe fn for_key(&self, filter: *mut Node, key: *mut Node, is_array: bool) -> *mut Node {
        let operator = self.operator;
        let no_collation = pg_sys::InvalidOid;
        // SAFETY: promised by the caller.
        unsafe {
            if is_array {
                return any_clause(operator, filter, key);
            }
            pg_sys::make_opclause(
                operator,
                pg_sys::BOOLOID,
                false,
                filter.cast(),
                key.cast(),
                no_collation,
                no_collation,
            )
            .cast()
        }
    }
}

/// Returns the condition `left operator ANY (array)` as a new expression in the current memory
/// context.
///
/// # Safety
/// The nodes must be expressions of the operator's types.
unsafe fn any_clause(operator: Oid, left: *mut Node, array: *mut Node) -> *mut Node {
    // SAFETY: promised by the caller; a node may be zeros except for what is set.
    unsafe {
        let clause: *mut pg_sys::ScalarArrayOpExpr =
            pg_sys::palloc0(size_of::<pg_sys::ScalarArrayOpExpr>()).cast();
        (*clause).xpr.type_ = pg_sys::NodeTag::T_ScalarArrayOpExpr;
        (*clause).opno = operator;
        (*clause).opfuncid = operators::function_of(operator);
        (*clause).useOr = true;
        let arguments = pg_sys::lappend(std::ptr::null_mut(), left.cast());
        (*clause).args = pg_sys::lappend(arguments, array.cast());
        // Where it is in the text of the query: unknown.
        (*clause).location = -1;
        clause.cast()
    }
}

/// Returns an expression of a domain as one of the type below the domain, which an argument of a
/// polymorphic function must have. The value stays the same. Any other expression is returned as it
/// is.
///
/// # Safety
/// The node must be an expression.
unsafe fn without_domain(expression: *mut Node) -> *mut Node {
    const NO_TYPE_MODIFIER: i32 = -1;
    // SAFETY: promised by the caller.
    unsafe {
        let sql_type = pg_sys::exprType(expression);
        let base = pg_sys::getBaseType(sql_type);
        if base == sql_type {
            return expression;
        }
        let collation = pg_sys::get_typcollation(base);
        let not_shown = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
        pg_sys::makeRelabelType(expression.cast(), base, NO_TYPE_MODIFIER, collation, not_shown)
            .cast()
    }
}
