//! Scans of tables with a condition `column operator ANY (array)`.
//!
//! PostgreSQL asks the support function of an operator which condition on an index it is worth, and what it costs, but
//! not so where the operator is one of `ANY`. Both is made up for here, once PostgreSQL has found its own ways to scan
//! a table: sequential scans get the costs that they have, and a bitmap scan of the index is added.

use super::nodes::{items, nth};
use super::scan_paths;
use pgrx::pg_sys::{self, NodeTag};
use std::cell::Cell;

/// Who knows such indexes.
#[derive(Clone, Copy)]
pub struct Provider {
    /// Whether an index is one of them.
    pub is_own: unsafe fn(&pg_sys::IndexOptInfo) -> bool,
    /// Conditions on the index, all of which hold where that of the array does. The request is about an expression of
    /// `ANY`, and an index of one's own.
    pub conditions: unsafe fn(&pg_sys::SupportRequestIndexCondition) -> Option<*mut pg_sys::List>,
}

thread_local! {
    static PROVIDER: Cell<Option<Provider>> = const { Cell::new(None) };
}

/// Asks for such scans from now on: called once, when the library is loaded.
pub fn define(provider: Provider) {
    PROVIDER.set(Some(provider));
    scan_paths::define(add_paths);
}

unsafe fn add_paths(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo, _entry: *mut pg_sys::RangeTblEntry) {
    // SAFETY: the planner's, of a plain table. All lists are of what their names say.
    unsafe {
        for restriction in items((*rel).baserestrictinfo).map(|item| item.cast::<pg_sys::RestrictInfo>()) {
            let Some(array) = any_of_array(restriction) else { continue };
            let clauses: Vec<_> = items((*rel).indexlist)
                .map(|item| item.cast::<pg_sys::IndexOptInfo>())
                .filter_map(|index| Some((index, clause(root, rel, restriction, array, index)?)))
                .collect();
            if !clauses.is_empty() {
                add_cost(root, rel, array);
            }
            for (index, clause) in clauses {
                add_bitmap_scan(root, rel, index, clause);
            }
        }
    }
}

/// The expression of a restriction, if it is one of `ANY`.
unsafe fn any_of_array(restriction: *mut pg_sys::RestrictInfo) -> Option<*mut pg_sys::ScalarArrayOpExpr> {
    // SAFETY: a restriction has an expression, which is read as what its tag says.
    unsafe {
        let array: *mut pg_sys::ScalarArrayOpExpr = (*restriction).clause.cast();
        let is_any = (*array).xpr.type_ == NodeTag::T_ScalarArrayOpExpr && (*array).useOr;
        (is_any && !(*restriction).pseudoconstant).then_some(array)
    }
}

/// What the restriction is worth on an index, if that is one to be asked, and may be.
unsafe fn clause(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    restriction: *mut pg_sys::RestrictInfo,
    array: *mut pg_sys::ScalarArrayOpExpr,
    index: *mut pg_sys::IndexOptInfo,
) -> Option<*mut pg_sys::IndexClause> {
    // SAFETY: nodes of the planner; an index has a column. A node is zeros but for what is set.
    unsafe {
        let provider = PROVIDER.get()?;
        let is_usable = (*index).amhasgetbitmap
            && (provider.is_own)(&*index)
            && ((*index).indpred.is_null() || (*index).predOK)
            && is_promotable(rel, restriction)
            && pg_sys::match_index_to_operand(nth((*array).args, 0)?, 0, index);
        if !is_usable {
            return None;
        }
        let family = *(*index).opfamily;
        let clause: *mut pg_sys::IndexClause = pg_sys::palloc0(size_of::<pg_sys::IndexClause>()).cast();
        (*clause).type_ = NodeTag::T_IndexClause;
        (*clause).rinfo = restriction;
        if pg_sys::op_in_opfamily((*array).opno, family) {
            if !is_fixed(root, nth((*array).args, 1)?, index) {
                return None;
            }
            (*clause).indexquals = pg_sys::lappend(std::ptr::null_mut(), restriction.cast());
            return Some(clause);
        }
        let request = pg_sys::SupportRequestIndexCondition {
            type_: NodeTag::T_SupportRequestIndexCondition,
            root,
            funcid: super::operators::function_of((*array).opno),
            node: array.cast(),
            indexarg: 0,
            index,
            indexcol: 0,
            opfamily: family,
            indexcollation: *(*index).indexcollations,
            lossy: true,
        };
        for condition in items((provider.conditions)(&request)?) {
            (*clause).indexquals = pg_sys::lappend((*clause).indexquals, restriction_of(restriction, condition).cast());
        }
        (*clause).lossy = true;
        Some(clause)
    }
}

/// Whether an expression has one value in a scan of an index.
///
/// # Safety
/// All must be nodes of the planner.
pub unsafe fn is_fixed(
    root: *mut pg_sys::PlannerInfo,
    node: *mut pg_sys::Node,
    index: *mut pg_sys::IndexOptInfo,
) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg13")]
        {
            let _ = root;
            pg_sys::is_pseudo_constant_for_index(node, index)
        }
        #[cfg(not(feature = "pg13"))]
        pg_sys::is_pseudo_constant_for_index(root, node, index)
    }
}

/// Whether a restriction may be asked before those that hide rows.
unsafe fn is_promotable(rel: *mut pg_sys::RelOptInfo, restriction: *mut pg_sys::RestrictInfo) -> bool {
    // SAFETY: nodes of the planner.
    unsafe { (*restriction).security_level <= (*rel).baserestrict_min_security || (*restriction).leakproof }
}

/// Adds to sequential scans what they cost beyond what PostgreSQL expects: it has asked what the operator's function
/// costs, without saying of which column.
unsafe fn add_cost(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    array: *mut pg_sys::ScalarArrayOpExpr,
) {
    // SAFETY: nodes of the planner, and lists of paths.
    unsafe {
        let Some(cost) = cost_beyond(root, array) else { return };
        for scan in sequential_scans((*rel).pathlist) {
            (*rel).pathlist = pg_sys::list_delete_ptr((*rel).pathlist, scan.cast());
            (*scan).total_cost += cost * (*rel).tuples;
            pg_sys::add_path(rel, scan);
        }
        for scan in sequential_scans((*rel).partial_pathlist) {
            (*rel).partial_pathlist = pg_sys::list_delete_ptr((*rel).partial_pathlist, scan.cast());
            (*scan).total_cost += cost * (*rel).tuples * ((*scan).rows / (*rel).rows).min(1.0);
            pg_sys::add_partial_path(rel, scan);
        }
    }
}

/// What an expression of `ANY` costs for a row beyond what PostgreSQL expects, if it is more.
unsafe fn cost_beyond(root: *mut pg_sys::PlannerInfo, array: *mut pg_sys::ScalarArrayOpExpr) -> Option<f64> {
    // SAFETY: nodes of the planner. The operator's second argument is only to be there.
    unsafe {
        let (column, elements) = (nth((*array).args, 0)?, nth((*array).args, 1)?);
        let element_type = pg_sys::get_base_element_type(pg_sys::exprType(elements));
        let none = pg_sys::InvalidOid;
        let element = pg_sys::makeNullConst(element_type, -1, none);
        let one =
            pg_sys::make_opclause((*array).opno, pg_sys::BOOLOID, false, column.cast(), element.cast(), none, none);
        let cost_of = |node| {
            let mut cost = pg_sys::QualCost::default();
            pg_sys::cost_qual_eval_node(&mut cost, node, root);
            cost.per_tuple
        };
        #[cfg(any(feature = "pg13", feature = "pg14", feature = "pg15", feature = "pg16"))]
        let length = f64::from(pg_sys::estimate_array_length(elements));
        #[cfg(not(any(feature = "pg13", feature = "pg14", feature = "pg15", feature = "pg16")))]
        let length = pg_sys::estimate_array_length(root, elements);
        // As PostgreSQL does: half of the elements are asked for until one is found.
        let beyond = cost_of(one.cast()) * length / 2.0 - cost_of(array.cast());
        (beyond > 0.0).then_some(beyond)
    }
}

/// The plain sequential scans among paths.
unsafe fn sequential_scans(paths: *mut pg_sys::List) -> Vec<*mut pg_sys::Path> {
    // SAFETY: a list of paths.
    unsafe {
        let is_sequential =
            |path: &*mut pg_sys::Path| (**path).type_ == NodeTag::T_Path && (**path).pathtype == NodeTag::T_SeqScan;
        items(paths).map(|path| path.cast::<pg_sys::Path>()).filter(is_sequential).collect()
    }
}

/// Adds a bitmap scan of an index.
unsafe fn add_bitmap_scan(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    clause: *mut pg_sys::IndexClause,
) {
    // SAFETY: nodes of the planner.
    unsafe {
        let clauses = pg_sys::lappend(std::ptr::null_mut(), clause.cast());
        let (none, outer) = (std::ptr::null_mut(), (*rel).lateral_relids);
        let forwards = pg_sys::ScanDirection::ForwardScanDirection;
        let scan: *mut pg_sys::Path =
            pg_sys::create_index_path(root, index, clauses, none, none, none, forwards, false, outer, 1.0, false)
                .cast();
        pg_sys::add_path(rel, pg_sys::create_bitmap_heap_path(root, rel, scan, outer, 1.0, 0).cast());
        if (*rel).consider_parallel && outer.is_null() {
            pg_sys::create_partial_bitmap_paths(root, rel, scan);
        }
    }
}

/// A restriction like this one with another expression.
unsafe fn restriction_of(like: *mut pg_sys::RestrictInfo, expression: *mut pg_sys::Node) -> *mut pg_sys::RestrictInfo {
    // SAFETY: a copy of a node. What is known of its expression is found out again where it is negative.
    unsafe {
        let restriction: *mut pg_sys::RestrictInfo = pg_sys::palloc(size_of::<pg_sys::RestrictInfo>()).cast();
        restriction.write(*like);
        (*restriction).clause = expression.cast();
        (*restriction).eval_cost.startup = -1.0;
        (*restriction).norm_selec = -1.0;
        (*restriction).outer_selec = -1.0;
        restriction
    }
}
