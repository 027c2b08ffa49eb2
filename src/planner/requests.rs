//! The planner's requests that support functions answer: for the cost of a call, where what counts
//! is whether a filter comes from a column; for the number of rows that a call returns; and for a
//! condition on an index over filters that a call is equivalent to:
//!
//! | call | condition |
//! |---|---|
//! | `filter @> element`, `bloom_contains(filter, element)`, `element <@ filter` | `filter @=> bloom_key(element)` |
//! | `bloom_contains_any(filter, elements)` | `filter @=> ANY (bloom_keys(elements))` |
//! | `bloom_contains_all(filter, constants)` | that of each of the first elements, all of which must hold |
//!
//! What the index finds is rechecked by the condition itself. Operators of the operator class,
//! which is that for `text`, never come here: `index/filters/cost` has them.

use super::statistics;
use crate::filter_type::FilterType;
use crate::key_condition::KeyCondition;
use crate::pg::call::nodes::{argument, column};
use crate::pg::call::{Call, Element};
use crate::pg::value::array;
use crate::pg::{catalog, version};
use pgrx::pg_sys::{self, Datum};
use std::ffi::CStr;

/// Rows to expect of a key, as the script declares for `bloom_find`.
const ROWS_OF_KEY: f64 = 3.0;

/// Answers the planner's request for the cost of a call, if argument 0 of a support function is one
/// and the filter comes from a column whose filters are out of line: `fetch`, for so many pages, is
/// added to what was declared.
///
/// # Safety
/// Argument 0 must be a node.
pub unsafe fn cost(call: &Call, fetch: fn(f64) -> f64) -> Option<Datum> {
    // SAFETY: promised by the caller: a request has the query's root, null outside of one, and the
    // call, null if it isn't known. It is the answer as well. A setting of the process is read.
    unsafe {
        let request: *mut pg_sys::SupportRequestCost =
            request(call, pg_sys::NodeTag::T_SupportRequestCost)?;
        let (root, node) = ((*request).root, (*request).node);
        if root.is_null() || node.is_null() {
            return None;
        }
        let is_filter = |column: *mut pg_sys::Var| {
            let is_own = |of: FilterType| statistics::is_own(call, (*column).vartype, of);
            is_own(FilterType::Bloom) || is_own(FilterType::CountingBloom)
        };
        let of_filters = |i| column(argument(node, i)?).filter(|&column| is_filter(column));
        let variable = (0..2).find_map(of_filters)?;
        let fetching = fetch(toast_pages(root, variable)?);
        (*request).per_tuple =
            catalog::function_cost((*request).funcid) * pg_sys::cpu_operator_cost + fetching;
        (*request).startup = 0.0;
        Some(Datum::from(request))
    }
}

/// Answers the request for the number of rows that `bloom_find_all` returns, if argument 0 of a
/// support function is one and the keys are argument 2 of a known call.
///
/// # Safety
/// Argument 0 must be a node.
pub unsafe fn rows(call: &Call) -> Option<Datum> {
    // SAFETY: as for the request for the cost.
    unsafe {
        let request: *mut pg_sys::SupportRequestRows =
            request(call, pg_sys::NodeTag::T_SupportRequestRows)?;
        if (*request).root.is_null() || (*request).node.is_null() {
            return None;
        }
        let keys = argument((*request).node, 2)?;
        (*request).rows = (ROWS_OF_KEY * version::array_length((*request).root, keys)).max(1.0);
        Some(Datum::from(request))
    }
}

/// Argument 0 of a support function, if it is a request of this sort.
///
/// # Safety
/// It must be a node, and `T` what a node with this tag is.
unsafe fn request<T>(call: &Call, tag: pg_sys::NodeTag) -> Option<*mut T> {
    let node = call.internal::<pg_sys::Node>(0)?;
    // SAFETY: promised by the caller.
    unsafe { (*node).type_ == tag }.then_some(node.cast())
}

/// Pages of the TOAST table of a column's table for each of its rows, if the column's values are
/// out of line: by the statistics they are as wide in the table as a pointer then, and no filter is
/// so small.
///
/// # Safety
/// `root` must be that of a query that is being planned, and `variable` a column in it.
unsafe fn toast_pages(root: *mut pg_sys::PlannerInfo, variable: *mut pg_sys::Var) -> Option<f64> {
    /// Bytes of the smallest filter.
    const SMALLEST: i32 = 48;
    // SAFETY: promised by the caller. The arrays have as many items as the root says; the planner
    // has the table locked, and a TOAST table goes with its table.
    unsafe {
        let number = usize::try_from((*variable).varno).ok()?;
        if (*variable).varlevelsup != 0
            || number == 0
            || number >= (*root).simple_rel_array_size as usize
        {
            return None;
        }
        let (entry, relation) =
            (*(*root).simple_rte_array.add(number), *(*root).simple_rel_array.add(number));
        if entry.is_null()
            || relation.is_null()
            || (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION
        {
            return None;
        }
        if pg_sys::get_attavgwidth((*entry).relid, (*variable).varattno) >= SMALLEST {
            return None;
        }
        let toast = catalog::toast_table((*entry).relid)?;
        let toast = pg_sys::table_open(toast, pg_sys::AccessShareLock as i32);
        let pages =
            pg_sys::RelationGetNumberOfBlocksInFork(toast, pg_sys::ForkNumber::MAIN_FORKNUM);
        pg_sys::table_close(toast, pg_sys::AccessShareLock as i32);
        let rows = (*relation).tuples.max(1.0);
        (pages > 0).then_some(f64::from(pages) / rows)
    }
}

/// Elements of an array that are looked up if all must be there. The condition itself probes for
/// the others.
const MOST_OF_ALL: usize = 4;

#[derive(Clone, Copy)]
enum Asks {
    Element,
    /// Any element of an array.
    Any,
    /// All elements of an array.
    All,
}

/// What calls are worth a condition: the function, the place of the filter among its arguments, and
/// what it asks for.
const ASKING: [(&CStr, i32, Asks); 4] = [
    (c"bloom_contains", 0, Asks::Element),
    (c"bloom_contained", 1, Asks::Element),
    (c"bloom_contains_any", 0, Asks::Any),
    (c"bloom_contains_all", 0, Asks::All),
];

/// Answers the planner's request, if argument 0 of a support function is one and there is a
/// condition, by a list.
///
/// # Safety
/// Argument 0 must be a node.
pub unsafe fn index_condition(call: &Call) -> Option<Datum> {
    let own = call.function().ok()?;
    // SAFETY: promised by the caller: the node of a request is the call, whose arguments are
    // expressions, in the planner's memory.
    unsafe {
        let tag = pg_sys::NodeTag::T_SupportRequestIndexCondition;
        let request: &pg_sys::SupportRequestIndexCondition = &*request(call, tag)?;
        let is_asked = |&&(name, filter, _): &&(&CStr, i32, Asks)| {
            filter == request.indexarg && catalog::is_beside(request.funcid, own, name)
        };
        let &(_, filter, asks) = ASKING.iter().find(is_asked)?;
        let keys = KeyCondition::of(request.opfamily, own)?;
        let asked = argument(request.node, 1 - filter as usize)?;
        let filter = argument(request.node, filter as usize)?;
        if !pg_sys::is_pseudo_constant_for_index(request.root, asked, request.index) {
            return None;
        }
        let collation = pg_sys::exprInputCollation(request.node);
        let clauses = match asks {
            Asks::Element => vec![keys.of_element(filter, asked, false, collation)],
            Asks::Any => vec![keys.of_element(filter, asked, true, collation)],
            Asks::All => {
                let constants = constants_of(asked).into_iter();
                constants
                    .map(|element| keys.of_element(filter, element, false, collation))
                    .collect()
            }
        };
        let append = |list, clause: *mut pg_sys::Node| pg_sys::lappend(list, clause.cast());
        let conditions = clauses.into_iter().fold(std::ptr::null_mut(), append);
        (!conditions.is_null()).then_some(Datum::from(conditions))
    }
}

/// The first elements of a constant array that are not NULL, as constants.
///
/// # Safety
/// The node must be an expression of an array type.
unsafe fn constants_of(node: *mut pg_sys::Node) -> Vec<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; a node is read as what its tag says.
    unsafe {
        let constant: *const pg_sys::Const = node.cast();
        if (*node).type_ != pg_sys::NodeTag::T_Const || (*constant).constisnull {
            return Vec::new();
        }
        let array = (*constant).constvalue;
        let whole: *const pg_sys::ArrayType = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast();
        let element_type = (*whole).elemtype;
        let storage = catalog::storage(element_type);
        let collation = pg_sys::get_typcollation(element_type);
        let constant = |element: Element| {
            let (length, datum) = (i32::from(storage.len), element.datum);
            pg_sys::makeConst(element_type, -1, collation, length, datum, false, storage.by_value)
                .cast()
        };
        array::elements_of(array)
            .into_iter()
            .take(MOST_OF_ALL)
            .map(constant)
            .collect()
    }
}
