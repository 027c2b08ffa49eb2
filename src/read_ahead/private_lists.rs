//! What is in paths and plans.
//!
//! ```text
//! path.custom_private  our restriction, and a list of which condition it is
//! plan.qual            the other conditions, in their order; the first `before` of them are evaluated before ours
//! plan.custom_exprs    ours
//! plan.custom_private  before, and which condition ours is
//! ```

use crate::pg::call::nodes::nth;
use pgrx::pg_sys;
use std::ptr::null_mut;

/// What a path has: our restriction, and which condition it is.
///
/// # Safety
/// The restriction must be one of the planner's.
pub unsafe fn chosen(restriction: *mut pg_sys::RestrictInfo, number: usize) -> *mut pg_sys::List {
    // SAFETY: the lists are in the planner's memory.
    unsafe {
        let number = pg_sys::lappend_int(null_mut(), number as i32);
        pg_sys::lappend(pg_sys::lappend(null_mut(), restriction.cast()), number.cast())
    }
}

/// Number `i` of a list of them.
///
/// # Safety
/// The list must have it.
pub unsafe fn number(list: *mut pg_sys::List, i: usize) -> i32 {
    // SAFETY: promised by the caller.
    unsafe { (*(*list).elements.add(i)).int_value }
}

/// The conditions of a plan.
pub struct Conditions {
    /// Those evaluated before ours, and after it.
    pub before: *mut pg_sys::List,
    pub after: *mut pg_sys::List,
    /// Ours, and its number.
    pub ours: *mut pg_sys::Node,
    pub number: usize,
}

impl Conditions {
    /// # Safety
    /// `scan` must be a plan made here.
    pub unsafe fn of(scan: *mut pg_sys::CustomScan) -> Conditions {
        // SAFETY: promised by the caller: there are at least as many conditions.
        unsafe {
            let (others, numbers) = ((*scan).scan.plan.qual, (*scan).custom_private);
            let before = number(numbers, 0);
            Conditions {
                before: pg_sys::list_truncate(pg_sys::list_copy(others), before),
                after: pg_sys::list_copy_tail(others, before),
                ours: nth((*scan).custom_exprs, 0).expect("a plan has its condition"),
                number: number(numbers, 1) as usize,
            }
        }
    }
}
