//! From a path to a plan.

use super::scan::{self, CallbackTable};
use super::{condition, private_lists};
use crate::pg::call::guard::Entry;
use crate::pg::call::nodes::{items, length, nth};
use pgrx::pg_sys::{self, NodeTag};
use std::ptr::null_mut;

// SAFETY: functions and a name.
static PATH: CallbackTable<pg_sys::CustomPathMethods> = unsafe {
    CallbackTable::new(pg_sys::CustomPathMethods {
        CustomName: scan::NAME.as_ptr(),
        PlanCustomPath: Some(plan),
        ReparameterizeCustomPathByChild: None,
    })
};

pub fn methods() -> *const pg_sys::CustomPathMethods {
    PATH.table()
}

/// The plan of a path; `clauses` are the restrictions in the order in which PostgreSQL evaluates them.
///
/// A column can't fail as an element, nor can probing for it. Of the conditions before it, those that may fail are
/// evaluated after it, since no one may ever ask for a row that was read ahead. Any other element may fail unless the
/// conditions before it protect it: all of them are evaluated before it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn plan(
    _root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: PostgreSQL calls this.
    unsafe { Entry::new() }.run(|| {
        // SAFETY: PostgreSQL passes a path of this library; the plan is memory for one, and its fields may be zero at
        // first.
        unsafe {
            let part = |i| nth((*path).custom_private, i).expect("a path has what was chosen");
            let (ours, condition): (*mut pg_sys::RestrictInfo, _) =
                (part(0).cast(), private_lists::number(part(1).cast(), 0));
            let (_, element) = condition::sides((*ours).clause.cast(), condition as usize);
            let is_column = condition::is_column(element);
            let (mut before, mut after, mut is_after) = (null_mut(), null_mut(), false);
            for restriction in items(clauses).map(|item| item.cast::<pg_sys::RestrictInfo>()) {
                let clause = (*restriction).clause;
                if restriction == ours {
                    is_after = true;
                } else if (*restriction).pseudoconstant {
                    continue;
                } else if is_after || is_column && pg_sys::contain_leaked_vars(clause.cast()) {
                    after = pg_sys::lappend(after, clause.cast());
                } else {
                    before = pg_sys::lappend(before, clause.cast());
                }
            }
            assert!(is_after, "restrictions of a table are those of its paths");
            let numbers = pg_sys::lappend_int(null_mut(), length(before) as i32);
            let scan: *mut pg_sys::CustomScan = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast();
            (*scan).scan.plan.type_ = NodeTag::T_CustomScan;
            (*scan).scan.plan.targetlist = targets;
            (*scan).scan.plan.qual = pg_sys::list_concat(before, after);
            (*scan).scan.scanrelid = (*rel).relid;
            (*scan).flags = (*path).flags;
            (*scan).custom_exprs = pg_sys::lappend(null_mut(), (*ours).clause.cast());
            (*scan).custom_private = pg_sys::lappend_int(numbers, condition);
            (*scan).methods = scan::methods();
            scan.cast()
        }
    })
}
