//! The planner's question which condition on an index over filters a call is worth: `filter @> element`,
//! `bloom_contains(filter, element)` and `element <@ filter` become `filter @=> bloom_key(element)`, and
//! `bloom_contains_any(filter, elements)` becomes `filter @=> ANY (bloom_keys(elements))`.
//!
//! Keys of an index scan don't say of which type an element is. The key is made in the executor, where the expression
//! still says it: so an element may be a parameter, or a column of another table in a join. What the index finds is
//! asked again by the condition itself.

use crate::pg::call::Call;
use crate::pg::catalog;
use crate::pg::nodes::argument;
use crate::pg::operators;
use pgrx::pg_sys::{self, Datum};
use std::ffi::CStr;

/// The strategy of operators that ask a filter, and the support functions that make keys: as in `index/rows`.
const ASKS: i16 = 2;
const KEY_OF_ELEMENT: i16 = 1;
const KEY_OF_ARRAY: i16 = 2;

/// What calls are worth a condition: the function, the place of the filter among its arguments, and whether the other
/// is an array.
const ASKING: [(&CStr, i32, bool); 3] =
    [(c"bloom_contains", 0, false), (c"bloom_contained", 1, false), (c"bloom_contains_any", 0, true)];

/// The answer, if argument 0 of a support function is this question; no condition where there is none.
pub fn index_condition(call: &Call) -> Option<Datum> {
    let request = call.internal::<pg_sys::SupportRequestIndexCondition>(0)?;
    // SAFETY: the planner passes a node, which is read as what its tag says.
    let is_condition = unsafe { (*request).type_ == pg_sys::NodeTag::T_SupportRequestIndexCondition };
    // SAFETY: as its tag says.
    is_condition.then(|| unsafe { condition(call, &*request) }.map_or(Datum::null(), Datum::from))
}

/// A list of the condition.
///
/// # Safety
/// The request must be one of the planner's.
unsafe fn condition(call: &Call, request: &pg_sys::SupportRequestIndexCondition) -> Option<*mut pg_sys::List> {
    let own = call.function().ok()?;
    let is_asked = |&&(name, filter, _): &&(&CStr, i32, bool)| {
        filter == request.indexarg && catalog::is_beside(request.funcid, own, name)
    };
    let &(_, filter, is_array) = ASKING.iter().find(is_asked)?;
    let (bloom, key) = (catalog::type_beside(own, c"bloom"), catalog::type_beside(own, c"bloom_key"));
    let operator = operators::family_member(request.opfamily, bloom, key, ASKS)?;
    let number = if is_array { KEY_OF_ARRAY } else { KEY_OF_ELEMENT };
    let make_key = operators::family_function(request.opfamily, bloom, number)?;
    // SAFETY: promised by the caller: the node is the call, whose arguments are expressions. All that is made here is
    // in the planner's memory.
    unsafe {
        let element = argument(request.node, 1 - filter as usize)?;
        let filter = argument(request.node, filter as usize)?;
        #[cfg(feature = "pg13")]
        let is_fixed = pg_sys::is_pseudo_constant_for_index(element, request.index);
        #[cfg(not(feature = "pg13"))]
        let is_fixed = pg_sys::is_pseudo_constant_for_index(request.root, element, request.index);
        if !is_fixed {
            return None;
        }
        let collation = pg_sys::exprInputCollation(request.node);
        let elements = pg_sys::lappend(std::ptr::null_mut(), element.cast());
        let none = pg_sys::InvalidOid;
        let written = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        let result = if is_array { pg_sys::get_array_type(key) } else { key };
        let key = pg_sys::makeFuncExpr(make_key, result, elements, none, collation, written);
        let clause: *mut pg_sys::Node = if is_array {
            let clause: *mut pg_sys::ScalarArrayOpExpr = pg_sys::palloc0(size_of::<pg_sys::ScalarArrayOpExpr>()).cast();
            (*clause).xpr.type_ = pg_sys::NodeTag::T_ScalarArrayOpExpr;
            (*clause).opno = operator;
            (*clause).opfuncid = operators::function_of(operator);
            (*clause).useOr = true;
            (*clause).args = pg_sys::lappend(pg_sys::lappend(std::ptr::null_mut(), filter.cast()), key.cast());
            (*clause).location = -1;
            clause.cast()
        } else {
            pg_sys::make_opclause(operator, pg_sys::BOOLOID, false, filter.cast(), key.cast(), none, none).cast()
        };
        Some(pg_sys::lappend(std::ptr::null_mut(), clause.cast()))
    }
}
