//! The planner's requests that support functions answer: for the cost of a call that has a filter
//! as an argument; for the number of rows that a call returns; and for a condition on an index over
//! filters that finds the rows for which a call is true.
//!
//! | call | condition |
//! |---|---|
//! | `filter @> element`, `bloom_contains(filter, element)`, `element <@ filter` | `filter @=> bloom_key(element)` |
//! | `bloom_contains_any(filter, elements)` | `filter @=> ANY (bloom_keys(elements))` |
//! | `bloom_contains_all(filter, constants)` | that of each of the first elements, all of which must hold |
//!
//! PostgreSQL evaluates the call itself for the rows that the index finds. The operator of the
//! operator class, which is that for `text`, needs no request: `index/filters/cost` has it.
//!
//! A request is a node that PostgreSQL makes for one call of a support function. The function
//! writes a cost or a number of rows into the node and returns the node, or it returns a list of
//! conditions.

use super::statistics;
use crate::filter_type::FilterType;
use crate::key_condition::KeyCondition;
use crate::pg::call::nodes::{argument, column};
use crate::pg::call::{Call, SqlValue};
use crate::pg::value::array;
use crate::pg::{catalog, version};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{self, Datum, NodeTag};
use std::ffi::CStr;

/// Rows to expect of a key, as the script declares for `bloom_find`.
const ROWS_OF_KEY: f64 = 3.0;
/// Bytes of the smallest filter.
const SMALLEST_FILTER: i32 = 48;
/// The most elements of an array that are looked up if all must be in a filter. The call itself
/// probes the filters that have these for the other elements.
const MOST_LOOKED_UP: usize = 4;

/// Answers the planner's request for the cost of calling a function that has a filter as one of its
/// first two arguments. A *request* is argument 0 of this support function: a node whose type says
/// what PostgreSQL asks for. The cost is written into it, and the node is returned.
///
/// The cost is the function's declared cost, which is in units of `cpu_operator_cost`, plus what
/// `cost_of_fetching` returns for the mean number of TOAST pages of a filter.
///
/// `None` if argument 0 is a request for something else, or if the filter isn't a column whose
/// values are stored out of line: the planner then uses the declared cost alone.
///
/// # Safety
/// Argument 0 must be a node.
pub unsafe fn answer_cost_request(call: &Call, cost_of_fetching: fn(f64) -> f64) -> Option<Datum> {
    // SAFETY: the caller promises a node, and the tag says that it is this request: a request has
    // the query's root, null outside of a query, and the call, null if the planner doesn't know it.
    // A setting of the session is read.
    unsafe {
        let request: *mut pg_sys::SupportRequestCost =
            request_with_tag(call, NodeTag::T_SupportRequestCost)?;
        let root = (*request).root;
        let node = (*request).node;
        if root.is_null() || node.is_null() {
            return None;
        }

        let filter = (0..2).find_map(|i| filter_column(call, node, i))?;
        let pages = toast_pages(root, filter)?;

        // What the function was declared to cost, in units of cpu_operator_cost.
        let operators = catalog::function_cost((*request).funcid);
        (*request).per_tuple = operators * pg_sys::cpu_operator_cost + cost_of_fetching(pages);
        (*request).startup = 0.0;
        Some(Datum::from(request))
    }
}

/// Returns argument `i` of a call, an expression, if it is a column of type `bloom` or
/// `counting_bloom`; otherwise `None`.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn filter_column(
    call: &Call,
    node: *mut pg_sys::Node,
    i: usize,
) -> Option<*mut pg_sys::Var> {
    // SAFETY: the caller promises an expression.
    let (column, column_type) = unsafe {
        let column = column(argument(node, i)?)?;
        (column, (*column).vartype)
    };
    let is_of_filters = statistics::is_own(call, column_type, FilterType::Bloom)
        || statistics::is_own(call, column_type, FilterType::CountingBloom);
    is_of_filters.then_some(column)
}

/// Answers the planner's request for the number of rows that a call of `bloom_find_all` returns: 3
/// for each key of the array in argument 2 of that call. A *request* is argument 0 of this support
/// function: a node whose type says what PostgreSQL asks for. The number is written into it, and
/// the node is returned.
///
/// `None` if argument 0 is a request for something else, or if the planner doesn't know the call's
/// arguments.
///
/// # Safety
/// Argument 0 must be a node.
pub unsafe fn answer_rows_request(call: &Call) -> Option<Datum> {
    // SAFETY: the caller promises a node, and the tag says that it is this request: a request has
    // the query's root, null outside of a query, and the call, null if the planner doesn't know it.
    unsafe {
        let request: *mut pg_sys::SupportRequestRows =
            request_with_tag(call, NodeTag::T_SupportRequestRows)?;
        let root = (*request).root;
        let node = (*request).node;
        if root.is_null() || node.is_null() {
            return None;
        }

        let keys = version::array_length(root, argument(node, 2)?);
        (*request).rows = (ROWS_OF_KEY * keys).max(1.0);
        Some(Datum::from(request))
    }
}

/// Returns argument 0 of a support function, the planner's request, if it is a node with this tag,
/// which says what PostgreSQL asks for.
///
/// # Safety
/// Argument 0 must be a node, and `T` the type of nodes with this tag.
unsafe fn request_with_tag<T>(call: &Call, tag: NodeTag) -> Option<*mut T> {
    let node = call.internal::<pg_sys::Node>(0)?;
    // SAFETY: the caller promises a node.
    let has_tag = unsafe { (*node).type_ == tag };
    has_tag.then_some(node.cast())
}

/// Returns how many TOAST pages the values of a column have for each row of the column's table.
/// They are estimated as all pages of the table's TOAST table, divided by the number of rows.
/// `None` if the values of this column aren't stored there, or if it isn't a column of a table.
///
/// Whether they are is told by the column's mean width in PostgreSQL's statistics. A value in the
/// TOAST table has the width of the pointer to it, which is less than any filter has; a wider one
/// is stored in the table itself.
///
/// # Safety
/// `root` must be that of a query that is being planned, and `column` a column in the query.
unsafe fn toast_pages(root: *mut pg_sys::PlannerInfo, column: *mut pg_sys::Var) -> Option<f64> {
    // SAFETY: the caller promises a column of a query that is being planned. The planner has the
    // table locked, and its TOAST table is kept as long as the table.
    unsafe {
        let table = PlannedTable::of_column(root, column)?;
        // A column whose values are wider than a pointer has filters in the table itself.
        if pg_sys::get_attavgwidth(table.oid, (*column).varattno) >= SMALLEST_FILTER {
            return None;
        }

        let toast = catalog::toast_table(table.oid)?;
        let toast = pg_sys::table_open(toast, pg_sys::AccessShareLock as i32);
        let pages =
            pg_sys::RelationGetNumberOfBlocksInFork(toast, pg_sys::ForkNumber::MAIN_FORKNUM);
        pg_sys::table_close(toast, pg_sys::AccessShareLock as i32);

        let pages_per_row = f64::from(pages) / table.rows.max(1.0);
        (pages > 0).then_some(pages_per_row)
    }
}

/// A table in a query that is being planned.
struct PlannedTable {
    oid: pg_sys::Oid,
    /// How many rows the planner expects in the table.
    rows: f64,
}

impl PlannedTable {
    /// Returns the table that a column belongs to, with the number of rows that the planner expects
    /// in it. `None` for a column of something else, such as a subquery, or of a query around the
    /// one that is planned.
    ///
    /// # Safety
    /// `root` must be that of a query that is being planned, and `column` a column in the query.
    unsafe fn of_column(
        root: *mut pg_sys::PlannerInfo,
        column: *mut pg_sys::Var,
    ) -> Option<PlannedTable> {
        // SAFETY: the caller promises a column of a query that is being planned. Both arrays have
        // as many items as the root says, and tables are numbered from 1.
        unsafe {
            let number = usize::try_from((*column).varno).ok()?;
            // Special numbers, such as OUTER_VAR of PostgreSQL, stand for no table.
            let is_in_arrays = 0 < number && number < (*root).simple_rel_array_size as usize;
            if (*column).varlevelsup != 0 || !is_in_arrays {
                return None;
            }

            let entry = *(*root).simple_rte_array.add(number);
            let relation = *(*root).simple_rel_array.add(number);
            if entry.is_null() || relation.is_null() {
                return None;
            }
            let is_table = (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION;
            is_table.then_some(PlannedTable { oid: (*entry).relid, rows: (*relation).tuples })
        }
    }
}

/// A function with two arguments, a filter and what it is probed for, whose calls are true only for
/// filters that an index over filters can find.
struct ProbingFunction {
    name: &'static CStr,
    /// Which argument the filter is, 0 or 1. The other one is an element or an array.
    filter_argument: usize,
    needed: NeededElements,
}

impl ProbingFunction {
    /// Returns which argument the filter is probed for.
    fn probed_argument(&self) -> usize {
        1 - self.filter_argument
    }
}

/// Which elements must be in the filter for a call to be true.
#[derive(Clone, Copy)]
enum NeededElements {
    /// The argument.
    One,
    /// Any element of the argument, an array.
    Any,
    /// All elements of the argument, an array.
    All,
}

const PROBING_FUNCTIONS: [ProbingFunction; 4] = [
    ProbingFunction {
        name: c"bloom_contains",
        filter_argument: 0,
        needed: NeededElements::One,
    },
    ProbingFunction {
        name: c"bloom_contained",
        filter_argument: 1,
        needed: NeededElements::One,
    },
    ProbingFunction {
        name: c"bloom_contains_any",
        filter_argument: 0,
        needed: NeededElements::Any,
    },
    ProbingFunction {
        name: c"bloom_contains_all",
        filter_argument: 0,
        needed: NeededElements::All,
    },
];

/// Answers the planner's request for conditions by which an index over a column of filters finds
/// the rows for which a call is true. A *request* is argument 0 of this support function: a node
/// whose type says what PostgreSQL asks for.
///
/// The answer is a list of conditions, all of which must hold. For `bloom_contains(column,
/// element)` it has one: `column @=> bloom_key(element)`. For `bloom_contains_all(column, array)`
/// it has such a condition for each of the first elements. PostgreSQL evaluates the call itself for
/// the rows that the index finds, so the conditions may be true for more rows than the call.
///
/// `None` if argument 0 is a request for something else; if an index can't find the rows of this
/// call; or if the element or the array isn't the same for all rows of the scan.
///
/// # Safety
/// Argument 0 must be a node.
pub unsafe fn answer_index_request(call: &Call) -> Option<Datum> {
    // This support function: as any function of the extension, it tells the schema of the others.
    let own_function = call.function().ok()?;
    // SAFETY: the caller promises a node, and the tag says that it is this request: the node of a
    // request is the call, whose arguments are expressions, in the planner's memory.
    unsafe {
        let request: &pg_sys::SupportRequestIndexCondition =
            &*request_with_tag(call, NodeTag::T_SupportRequestIndexCondition)?;
        let indexed_argument = usize::try_from(request.indexarg).ok()?;
        // The indexed column must be the argument of the call that is the filter.
        let function = PROBING_FUNCTIONS.iter().find(|candidate| {
            candidate.filter_argument == indexed_argument
                && catalog::is_in_schema_of(request.funcid, own_function, candidate.name)
        })?;
        let key_condition = KeyCondition::in_operator_family(request.opfamily, own_function)?;

        let filter = argument(request.node, function.filter_argument)?;
        let probed_for = argument(request.node, function.probed_argument())?;
        if !pg_sys::is_pseudo_constant_for_index(request.root, probed_for, request.index) {
            return None;
        }

        // Each of these becomes a condition: an element that must be in the filter, or an array of
        // which any element must be.
        let looked_up = match function.needed {
            NeededElements::One | NeededElements::Any => List::from([probed_for]),
            NeededElements::All => first_constants(probed_for),
        };
        let is_array = matches!(function.needed, NeededElements::Any);
        let collation = pg_sys::exprInputCollation(request.node);

        let mut conditions = std::ptr::null_mut();
        for element_or_array in looked_up {
            let condition =
                key_condition.for_element(filter, element_or_array, is_array, collation);
            conditions = pg_sys::lappend(conditions, condition.cast());
        }
        // PostgreSQL's empty list is a null pointer.
        let has_conditions = !conditions.is_null();
        has_conditions.then_some(Datum::from(conditions))
    }
}

/// Returns the first elements of a constant array that aren't NULL, up to [`MOST_LOOKED_UP`], as
/// constants. Returns none for a NULL, and for an array whose value isn't known when the query is
/// planned.
///
/// # Safety
/// The node must be an expression of an array type.
unsafe fn first_constants(node: *mut pg_sys::Node) -> List<*mut pg_sys::Node> {
    // SAFETY: the caller promises an expression of an array type; a node is read as what its tag
    // says.
    unsafe {
        let constant: *const pg_sys::Const = node.cast();
        if (*node).type_ != NodeTag::T_Const || (*constant).constisnull {
            return List::new();
        }

        let array = (*constant).constvalue;
        let header: *const pg_sys::ArrayType =
            pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast();
        let element_type = (*header).elemtype;
        array::elements_of(array)
            .into_iter()
            .take(MOST_LOOKED_UP)
            .map(|element| constant_of(element_type, element))
            .collect()
    }
}

/// Returns a constant with this element as its value, with the default collation of the type,
/// allocated by `palloc`.
///
/// # Safety
/// The element must be of this type.
unsafe fn constant_of(element_type: pg_sys::Oid, element: SqlValue) -> *mut pg_sys::Node {
    let storage = catalog::storage(element_type);
    // SAFETY: the caller promises an element of the constant's type.
    unsafe {
        let constant = pg_sys::makeConst(
            element_type,
            -1,
            pg_sys::get_typcollation(element_type),
            storage.len.into(),
            element.datum,
            false,
            storage.by_value,
        );
        constant.cast()
    }
}
