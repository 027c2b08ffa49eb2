//! Tells the planner which condition on an index over filters a call is equivalent to.
//!
//! | call | condition |
//! |---|---|
//! | `filter @> element`, `bloom_contains(filter, element)`, `element <@ filter` | `filter @=> bloom_key(element)` |
//! | `bloom_contains_any(filter, elements)` | `filter @=> ANY (bloom_keys(elements))` |
//! | `bloom_contains_all(filter, constants)` | that of each of the first elements, all of which must hold |
//!
//! What the index finds is rechecked by the condition itself. Operators of the operator class, which are those for
//! `text` and `"char"`, never come here: `index/filters/cost` has them.

use crate::key_condition::KeyCondition;
use crate::pg::call::nodes::argument;
use crate::pg::call::{Call, Element};
use crate::pg::catalog;
use crate::pg::value::array;
use pgrx::pg_sys::{self, Datum};
use std::ffi::CStr;

/// How many elements of an array are looked up if all of them must be there. The condition itself probes for the
/// others in what the index finds.
const MOST_OF_ALL: usize = 4;

/// What a call asks a filter for.
#[derive(Clone, Copy, PartialEq)]
enum Asks {
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

/// Answers the planner's request, if argument 0 of a support function is one; without a condition if there is none.
///
/// # Safety
/// Argument 0 must be a node.
pub unsafe fn index_condition(call: &Call) -> Option<Datum> {
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
    let keys = KeyCondition::of(request.opfamily, own)?;
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
        let collation = pg_sys::exprInputCollation(request.node);
        for element in elements {
            let clause = match asks {
                Asks::Any => keys.of_any(filter, element, collation),
                Asks::Element | Asks::All => keys.of_element(filter, element, collation),
            };
            conditions = pg_sys::lappend(conditions, clause.cast());
        }
        (!conditions.is_null()).then_some(conditions)
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
