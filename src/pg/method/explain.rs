//! What EXPLAIN (ANALYZE) shows of scans of the extension's indexes.
//!
//! PostgreSQL calls a hook for each node of a plan that it explains, before the plan's execution
//! ends. A node that scans an index then still has its scan, and with it the counts of all its
//! executions in this process. Executions in parallel workers are counted by their workers, which
//! have ended: of these PostgreSQL has kept only how many there were.
//!
//! The kinds of scans are those that PostgreSQL makes for an access method with amgetbitmap only.

use super::scan::ScanCounts;
use crate::pg::call::guard::Entry;
use crate::pg::storage::relation::Relation;
use pgrx::pg_sys::{self, NodeTag};
use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null;

/// Shows what a scan did.
type Show = fn(scan: &ExecutedScan, output: &mut ExplainOutput);

session_locals! {
    /// What another library has PostgreSQL call for each node.
    static NEXT_HOOK: OnceCell<pg_sys::explain_per_node_hook_type> = const { OnceCell::new() };
    static SHOW: OnceCell<Show> = const { OnceCell::new() };
}

/// All executions of a node of a plan that scans an index.
pub struct ExecutedScan<'e> {
    pub index: Relation<'e>,
    /// What those in this process did.
    pub counts: ScanCounts,
    /// How many searches parallel workers have made, which `counts` doesn't have.
    pub searches_of_workers: u64,
}

/// Where EXPLAIN writes.
pub struct ExplainOutput {
    state: *mut pg_sys::ExplainState,
}

/// Has EXPLAIN (ANALYZE) call `show` for each node that scans an index of the extension's. Panics
/// the second time: this library would then call itself as its next hook.
pub fn define(show: Show) {
    // SAFETY: the session's hook; the one that was set before is called by ours.
    unsafe {
        NEXT_HOOK
            .with(|next| next.set(pg_sys::explain_per_node_hook))
            .expect("defined once");
        SHOW.with(|kept| kept.set(show)).expect("defined once");
        pg_sys::explain_per_node_hook = Some(explain_node);
    }
}

/// Shows what scans of the extension's indexes did. PostgreSQL calls this for each node of a plan
/// that it explains. Calls the hook of another library first, if there is one.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn explain_node(
    node: *mut pg_sys::PlanState,
    ancestors: *mut pg_sys::List,
    relationship: *const c_char,
    plan_name: *const c_char,
    state: *mut pg_sys::ExplainState,
) {
    // SAFETY: PostgreSQL calls this with a node of a plan that is being explained.
    unsafe { Entry::new() }.run(|| unsafe {
        if let Some(next) = NEXT_HOOK.with(|next| next.get().copied().flatten()) {
            guarded!(next(node, ancestors, relationship, plan_name, state));
        }
        if (*state).analyze
            && let Some(scan) = executed_scan(node)
            && let Some(show) = SHOW.with(|show| show.get().copied())
        {
            show(&scan, &mut ExplainOutput { state });
        }
    });
}

/// Returns what all scans of a node of an executed plan did together, if the node scans an index of
/// this extension; `None` for any other node, and where the node's fields contradict each other, as
/// in a PostgreSQL whose nodes were changed.
///
/// # Safety
/// The node must be one of a plan that was executed, and whose execution has not ended.
unsafe fn executed_scan<'e>(node: *mut pg_sys::PlanState) -> Option<ExecutedScan<'e>> {
    // SAFETY: promised by the caller; the node is read as what its tag says.
    unsafe {
        if (*node).type_ != NodeTag::T_BitmapIndexScanState {
            return None;
        }
        let node = &*node.cast::<pg_sys::BitmapIndexScanState>();
        let scan = node.biss_ScanDesc.as_ref()?;
        if scan.indexRelation.is_null() || scan.indexRelation != node.biss_RelationDesc {
            return None;
        }
        let index = Relation::new(scan.indexRelation);
        if !index.is_own() {
            return None;
        }
        let counts = *scan.opaque.cast::<ScanCounts>().as_ref()?;
        let searches_of_workers = searches_of_workers(node.biss_SharedInfo);
        Some(ExecutedScan { index, counts, searches_of_workers })
    }
}

/// Returns how many index searches parallel workers have made for a node of a plan, by PostgreSQL's
/// own count in shared memory; 0 where no worker could execute the node.
///
/// # Safety
/// The pointer must be that of the node: null where no worker could execute it.
unsafe fn searches_of_workers(shared: *mut pg_sys::SharedIndexScanInstrumentation) -> u64 {
    if shared.is_null() {
        return 0;
    }
    // SAFETY: promised by the caller; there are as many workers as it says. They may still be at
    // work, so their numbers are read without a reference.
    unsafe {
        let workers = (&raw const (*shared).winstrument).cast::<pg_sys::IndexScanInstrumentation>();
        let count = (*shared).num_workers.max(0) as usize;
        (0..count).map(|i| (*workers.add(i)).nsearches).sum()
    }
}

impl ExplainOutput {
    /// Returns whether people read it, not programs.
    pub fn is_text(&self) -> bool {
        // SAFETY: EXPLAIN is writing.
        unsafe { (*self.state).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT }
    }

    /// Writes a text, which must be ASCII without a zero byte.
    pub fn text(&mut self, label: &CStr, value: &str) {
        let value = CString::new(value).unwrap_or_default();
        // SAFETY: EXPLAIN is writing; it copies both.
        unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), self.state) };
    }

    /// Writes a number.
    pub fn count(&mut self, label: &CStr, count: u64) {
        // SAFETY: EXPLAIN is writing; it copies the label, and the number has no unit.
        unsafe { pg_sys::ExplainPropertyUInteger(label.as_ptr(), null(), count, self.state) };
    }

    /// Writes what `write` does as a group of its own, where the format has groups.
    pub fn group(&mut self, label: &CStr, write: impl FnOnce(&mut ExplainOutput)) {
        let (label, is_labeled) = (label.as_ptr(), true);
        // SAFETY: EXPLAIN is writing. After an error it writes nothing more.
        unsafe { pg_sys::ExplainOpenGroup(label, label, is_labeled, self.state) };
        write(self);
        // SAFETY: as above.
        unsafe { pg_sys::ExplainCloseGroup(label, label, is_labeled, self.state) };
    }
}
