//! Tells the planner which condition on an index over filters a call is equivalent to.
//!
//! | call | condition |
//! |---|---|
//! | `filter @> element`, `bloom_contains(filter, element)`, `element <@ filter` | `filter @=> bloom_key(element)` |
//! | `bloom_contains_any(filter, elements)` | `filter @=> ANY (bloom_keys(elements))` |
//! | `bloom_contains_all(filter, constants)` | that of each of the first elements, all of which must hold |
//!
//! Keys of an index scan don't say of which type an element is. The key is made in the executor, where the expression
//! still says it: so an element may be a parameter, or a column of another table in a join. What the index finds is
//! rechecked by the condition itself.

use crate::pg::call::nodes::argument;
use crate::pg::call::{Call, Element};
use crate::pg::catalog;
use crate::pg::catalog::operators;
use crate::pg::value::array;
use pgrx::pg_sys::{self, Datum};
use std::ffi::CStr;

/// The strategy of operators that ask a filter, and the support functions that make keys: as in `index/validate`, which
/// this room may not use.
const ASKS: i16 = 2;
const KEY_OF_ELEMENT: i16 = 1;
const KEY_OF_ARRAY: i16 = 2;

/// How many elements of an array are looked up if all of them must be there. The condition itself probes for the
/// others in what the index finds.
const MOST_OF_ALL: usize = 4;

/// What a call asks a filter for.
#[derive(Clone, Copy, PartialEq)]
enum Asks {
    /// One element.
    Element,
    /// Any element of an array.
    Any,
    /// All elements of an array.
    All,
}

/// What calls are worth a condition: the function, the place of the filter among its arguments, and what it asks for.
const ASKING: [(&CStr, i32, Asks); 4] = [
    (c"bloom_contains", 0, Asks::Element),
    (c"bloom_contained", 1, Asks::Element),
    (c"bloom_contains_any", 0, Asks::Any),
    (c"bloom_contains_all", 0, Asks::All),
];

/// The answer, if argument 0 of a support function is this question; no condition where there is none.
pub fn index_condition(call: &Call) -> Option<Datum> {
    let request = call.internal::<pg_sys::SupportRequestIndexCondition>(0)?;
    // SAFETY: the planner passes a node, which is read as what its tag says.
    let is_condition = unsafe { (*request).type_ == pg_sys::NodeTag::T_SupportRequestIndexCondition };
    // SAFETY: as its tag says.
    let conditions = is_condition.then(|| unsafe { condition(call.function().ok()?, &*request) })?;
    Some(conditions.map_or(Datum::null(), Datum::from))
}

/// A list of the conditions. `own` is a function of this extension.
///
/// # Safety
/// The request must be one of the planner's.
unsafe fn condition(own: pg_sys::Oid, request: &pg_sys::SupportRequestIndexCondition) -> Option<*mut pg_sys::List> {
    let is_asked = |&&(name, filter, _): &&(&CStr, i32, Asks)| {
        filter == request.indexarg && catalog::is_beside(request.funcid, own, name)
    };
    let &(_, filter, asks) = ASKING.iter().find(is_asked)?;
    let (bloom, key_type) = (catalog::type_beside(own, c"bloom"), catalog::type_beside(own, c"bloom_key"));
    let operator = operators::family_member(request.opfamily, bloom, key_type, ASKS)?;
    let number = if asks == Asks::Any { KEY_OF_ARRAY } else { KEY_OF_ELEMENT };
    let make_key = operators::family_function(request.opfamily, bloom, number)?;
    // SAFETY: promised by the caller: the node is the call, whose arguments are expressions. All that is made here is
    // in the planner's memory.
    unsafe {
        let asked = argument(request.node, 1 - filter as usize)?;
        let filter = argument(request.node, filter as usize)?;
        if !pg_sys::is_pseudo_constant_for_index(request.root, asked, request.index) {
            return None;
        }
        let elements = if asks == Asks::All { constants_of(asked, MOST_OF_ALL) } else { vec![asked] };
        let mut conditions = std::ptr::null_mut();
        for element in elements {
            let key = key_of(request, make_key, key_type, element, asks);
            let clause = if asks == Asks::Any { is_any(operator, filter, key) } else { is(operator, filter, key) };
            conditions = pg_sys::lappend(conditions, clause.cast());
        }
        (!conditions.is_null()).then_some(conditions)
    }
}

/// The call that makes a key of an element, or the keys of an array.
///
/// # Safety
/// The request must be one of the planner's, and the element an expression of it.
unsafe fn key_of(
    request: &pg_sys::SupportRequestIndexCondition,
    make_key: pg_sys::Oid,
    key_type: pg_sys::Oid,
    element: *mut pg_sys::Node,
    asks: Asks,
) -> *mut pg_sys::FuncExpr {
    // SAFETY: promised by the caller.
    unsafe {
        let element = if asks == Asks::Any { of_base_type(element) } else { element };
        let result = if asks == Asks::Any { pg_sys::get_array_type(key_type) } else { key_type };
        let arguments = pg_sys::lappend(std::ptr::null_mut(), element.cast());
        let collation = pg_sys::exprInputCollation(request.node);
        let written = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        pg_sys::makeFuncExpr(make_key, result, arguments, pg_sys::InvalidOid, collation, written)
    }
}

/// An expression as one of the type that its domain is over, as arguments of a polymorphic function are.
///
/// # Safety
/// It must be a valid one.
unsafe fn of_base_type(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: promised by the caller.
    unsafe {
        let given = pg_sys::exprType(node);
        let base = pg_sys::getBaseType(given);
        if base == given {
            return node;
        }
        let cast = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
        pg_sys::makeRelabelType(node.cast(), base, -1, pg_sys::get_typcollation(base), cast).cast()
    }
}

/// `filter operator key`.
///
/// # Safety
/// The nodes must be expressions of the operator's types.
unsafe fn is(operator: pg_sys::Oid, filter: *mut pg_sys::Node, key: *mut pg_sys::FuncExpr) -> *mut pg_sys::Node {
    let none = pg_sys::InvalidOid;
    // SAFETY: promised by the caller.
    unsafe { pg_sys::make_opclause(operator, pg_sys::BOOLOID, false, filter.cast(), key.cast(), none, none).cast() }
}

/// `filter operator ANY (keys)`.
///
/// # Safety
/// As of [`is`].
unsafe fn is_any(operator: pg_sys::Oid, filter: *mut pg_sys::Node, keys: *mut pg_sys::FuncExpr) -> *mut pg_sys::Node {
    // SAFETY: promised by the caller; a node is zeros except for what is set.
    unsafe {
        let clause: *mut pg_sys::ScalarArrayOpExpr = pg_sys::palloc0(size_of::<pg_sys::ScalarArrayOpExpr>()).cast();
        (*clause).xpr.type_ = pg_sys::NodeTag::T_ScalarArrayOpExpr;
        (*clause).opno = operator;
        (*clause).opfuncid = operators::function_of(operator);
        (*clause).useOr = true;
        (*clause).args = pg_sys::lappend(pg_sys::lappend(std::ptr::null_mut(), filter.cast()), keys.cast());
        (*clause).location = -1;
        clause.cast()
    }
}

/// The first elements of a constant array that are not NULL, as constants.
///
/// # Safety
/// The node must be an expression of an array type.
unsafe fn constants_of(node: *mut pg_sys::Node, most: usize) -> Vec<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; a node is read as what its tag says.
    unsafe {
        if (*node).type_ != pg_sys::NodeTag::T_Const || (*node.cast::<pg_sys::Const>()).constisnull {
            return Vec::new();
        }
        let array = (*node.cast::<pg_sys::Const>()).constvalue;
        let element_type = array::element_type(array);
        let storage = catalog::storage(element_type);
        let collation = pg_sys::get_typcollation(element_type);
        let elements = array::elements_of(array).into_iter().take(most);
        let constant = |element: Element| {
            let (length, datum) = (i32::from(storage.len), element.datum);
            pg_sys::makeConst(element_type, -1, collation, length, datum, false, storage.by_value).cast()
        };
        elements.map(constant).collect()
    }
}
