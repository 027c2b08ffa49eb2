//! The planner's requests for the cost of a call, and what a filter from a column means for that, and for the number of
//! rows that a call returns.

use super::statistics;
use crate::filter_type::{Bloom, CountingBloom, FilterType};
use crate::pg::call::Call;
use crate::pg::call::nodes::argument;
use crate::pg::{catalog, version};
use pgrx::pg_sys;

/// Rows to expect of a key, as the script declares for `bloom_find`.
const ROWS_OF_KEY: f64 = 3.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredColumn {
    /// Pages of the TOAST table for a row, on average.
    pub pages: f64,
    /// What the function costs by declaration.
    pub function: f64,
}

/// Answers the planner's request for the cost of a call, if argument 0 of a support function is one and the filter
/// comes from a column of a table whose filters are out of line: as `per_call` says.
///
/// # Safety
/// Argument 0 must be a node.
pub unsafe fn answer(call: &Call, per_call: impl FnOnce(StoredColumn) -> f64) -> Option<pg_sys::Datum> {
    let request = call.internal::<pg_sys::SupportRequestCost>(0)?;
    // SAFETY: the planner passes a node, which is read as what its tag says, with the query's root, null outside of
    // one, and the call, null if it isn't known. The request is the answer as well.
    unsafe {
        if (*request).type_ != pg_sys::NodeTag::T_SupportRequestCost {
            return None;
        }
        let (root, node) = ((*request).root, (*request).node);
        if root.is_null() || node.is_null() {
            return None;
        }
        let variable = (0..2).find_map(|i| filter_variable(call, argument(node, i)?))?;
        let function = catalog::function_cost((*request).funcid);
        (*request).per_tuple = per_call(StoredColumn { pages: toast_pages(root, variable)?, function });
        (*request).startup = 0.0;
        Some(pg_sys::Datum::from(request))
    }
}

/// Answers the request for the number of rows that `bloom_find_all` returns, if argument 0 of a support function is one
/// and the keys are argument 2 of a known call.
///
/// # Safety
/// Argument 0 must be a node.
pub unsafe fn answer_rows(call: &Call) -> Option<pg_sys::Datum> {
    let request = call.internal::<pg_sys::SupportRequestRows>(0)?;
    // SAFETY: as for the request for the cost: a node, which is read as what its tag says.
    unsafe {
        let is_asked = (*request).type_ == pg_sys::NodeTag::T_SupportRequestRows;
        if !is_asked || (*request).root.is_null() || (*request).node.is_null() {
            return None;
        }
        let keys = argument((*request).node, 2)?;
        (*request).rows = (ROWS_OF_KEY * version::array_length((*request).root, keys)).max(1.0);
    }
    Some(pg_sys::Datum::from(request))
}

/// The column that an expression is, if that has filters.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn filter_variable(call: &Call, mut node: *mut pg_sys::Node) -> Option<*mut pg_sys::Var> {
    // SAFETY: promised by the caller; each node is read as what its tag says.
    unsafe {
        while (*node).type_ == pg_sys::NodeTag::T_RelabelType {
            node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        if (*node).type_ != pg_sys::NodeTag::T_Var {
            return None;
        }
        let variable: *mut pg_sys::Var = node.cast();
        let is_filter = |name| statistics::is_own(call, (*variable).vartype, name);
        (is_filter(Bloom::NAME) || is_filter(CountingBloom::NAME)).then_some(variable)
    }
}

/// Pages of the TOAST table of a column's table for each of its rows, if the column's values are out of line: by the
/// statistics they are as wide in the table as a pointer then, and no filter is so small.
///
/// # Safety
/// `root` must be that of a query that is being planned, and `variable` a column in it.
unsafe fn toast_pages(root: *mut pg_sys::PlannerInfo, variable: *mut pg_sys::Var) -> Option<f64> {
    /// Bytes of the smallest filter.
    const SMALLEST: i32 = 48;
    // SAFETY: promised by the caller. The arrays have as many items as the root says; the planner has the table locked,
    // and a TOAST table goes with its table.
    unsafe {
        let number = usize::try_from((*variable).varno).ok()?;
        if (*variable).varlevelsup != 0 || number == 0 || number >= (*root).simple_rel_array_size as usize {
            return None;
        }
        let (entry, relation) = (*(*root).simple_rte_array.add(number), *(*root).simple_rel_array.add(number));
        if entry.is_null() || relation.is_null() || (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION {
            return None;
        }
        if pg_sys::get_attavgwidth((*entry).relid, (*variable).varattno) >= SMALLEST {
            return None;
        }
        let toast = catalog::toast_table((*entry).relid)?;
        let toast = pg_sys::table_open(toast, pg_sys::AccessShareLock as i32);
        let pages = pg_sys::RelationGetNumberOfBlocksInFork(toast, pg_sys::ForkNumber::MAIN_FORKNUM);
        pg_sys::table_close(toast, pg_sys::AccessShareLock as i32);
        let rows = (*relation).tuples.max(1.0);
        (pages > 0).then_some(f64::from(pages) / rows)
    }
}
