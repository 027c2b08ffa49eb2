//! What EXPLAIN shows.

use super::private_lists::Conditions;
use crate::pg::call::guard::Entry;
use pgrx::pg_sys;
use std::ffi::CStr;

const LABEL: &CStr = c"Bloom Filter";
const REMOVED: &CStr = c"Rows Removed by Bloom Filter";

/// Adds our condition, and how many rows it rejected.
///
/// # Safety
/// `state` must be that of a Bloom Scan.
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn explain(
    state: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    explained: *mut pg_sys::ExplainState,
) {
    // SAFETY: PostgreSQL calls this.
    unsafe { Entry::new() }.run(|| {
        // SAFETY: PostgreSQL passes the state and what it writes to.
        unsafe {
            let plan = (*state).ss.ps.plan;
            let names = pg_sys::set_deparse_context_plan((*explained).deparse_cxt, plan, ancestors);
            let text = pg_sys::deparse_expression(Conditions::of(plan.cast()).ours, names, (*explained).verbose, false);
            pg_sys::ExplainPropertyText(LABEL.as_ptr(), text, explained);
            let counters = (*state).ss.ps.instrument;
            if !(*explained).analyze || counters.is_null() {
                return;
            }
            let (removed, loops) = ((*counters).nfiltered2, (*counters).nloops);
            if removed > 0.0 || (*explained).format != pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
                let average = if loops > 0.0 { removed / loops } else { 0.0 };
                pg_sys::ExplainPropertyFloat(REMOVED.as_ptr(), std::ptr::null(), average, 0, explained);
            }
        }
    })
}
