//! From a path to a plan.

use super::methods;
use super::parts::integer;
use crate::pg::call::nodes::{items, length, nth};
use pgrx::pg_sys::{self, NodeTag};
use std::ptr::null_mut;

/// The restriction that is asked of many rows at once.
#[derive(Clone, Copy)]
pub struct Chosen {
    pub restriction: *mut pg_sys::RestrictInfo,
    /// Which condition of the provider's it is.
    pub condition: usize,
}

/// What is chosen, as a list.
pub fn chosen_list(chosen: Chosen) -> *mut pg_sys::List {
    // SAFETY: the lists are in the planner's memory.
    unsafe {
        let condition = pg_sys::lappend_int(null_mut(), chosen.condition as i32);
        pg_sys::lappend(pg_sys::lappend(null_mut(), chosen.restriction.cast()), condition.cast())
    }
}

static PATH: methods::Shared<pg_sys::CustomPathMethods> = methods::Shared(pg_sys::CustomPathMethods {
    CustomName: methods::NAME.as_ptr(),
    PlanCustomPath: Some(plan_path),
    ReparameterizeCustomPathByChild: None,
});

/// Methods of paths.
pub fn methods() -> *const pg_sys::CustomPathMethods {
    &PATH.0
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn plan_path(
    _root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: PostgreSQL passes a path of this library.
    unsafe { plan(rel, path, targets, clauses) }
}

/// The plan of a path; `clauses` are the restrictions in the order in which they are asked. Those before ours are asked
/// of rows ahead of time, for which nobody may ever ask: so only such as can't fail, which PostgreSQL calls leakproof.
/// The others are asked after ours.
///
/// # Safety
/// Arguments must be those of PostgreSQL's call.
unsafe fn plan(
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: promised by the caller; the plan is memory for one, all of whose fields may be zero at first.
    unsafe {
        let part = |i| nth((*path).custom_private, i).expect("a path has what was chosen");
        let (ours, condition) = (part(0).cast::<pg_sys::RestrictInfo>(), integer(part(1).cast(), 0));
        let (mut before, mut after, mut is_after) = (null_mut(), null_mut(), false);
        for restriction in items(clauses).map(|item| item.cast::<pg_sys::RestrictInfo>()) {
            let clause: *mut pg_sys::Node = (*restriction).clause.cast();
            if restriction == ours {
                is_after = true;
            } else if (*restriction).pseudoconstant {
                continue;
            } else if is_after || pg_sys::contain_leaked_vars(clause) {
                after = pg_sys::lappend(after, clause.cast());
            } else {
                before = pg_sys::lappend(before, clause.cast());
            }
        }
        assert!(is_after, "restrictions of a table are those of its paths");
        let number_before = length(before) as i32;
        let scan: *mut pg_sys::CustomScan = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast();
        (*scan).scan.plan.type_ = NodeTag::T_CustomScan;
        (*scan).scan.plan.targetlist = targets;
        (*scan).scan.plan.qual = pg_sys::list_concat(before, after);
        (*scan).scan.scanrelid = (*rel).relid;
        (*scan).flags = (*path).flags;
        (*scan).custom_exprs = pg_sys::lappend(null_mut(), (*ours).clause.cast());
        (*scan).custom_private = pg_sys::lappend_int(pg_sys::lappend_int(null_mut(), number_before), condition);
        (*scan).methods = methods::scan();
        scan.cast()
    }
}
