//! What PostgreSQL calls.

use super::provider::provider;
use super::scan::Scan;
use super::{parts, raw};
use pgrx::pg_sys::{self, NodeTag};
use std::ffi::{CStr, c_void};

/// What EXPLAIN calls such a scan.
pub const NAME: &CStr = c"Bloom Scan";

/// A table of function pointers and a name.
pub struct Shared<T>(pub T);

// SAFETY: they are never written.
unsafe impl<T> Sync for Shared<T> {}

static SCAN: Shared<pg_sys::CustomScanMethods> =
    Shared(pg_sys::CustomScanMethods { CustomName: NAME.as_ptr(), CreateCustomScanState: Some(create) });

static EXECUTION: Shared<pg_sys::CustomExecMethods> = Shared(pg_sys::CustomExecMethods {
    CustomName: NAME.as_ptr(),
    BeginCustomScan: Some(begin),
    ExecCustomScan: Some(execute),
    EndCustomScan: Some(end),
    ReScanCustomScan: Some(rescan),
    MarkPosCustomScan: None,
    RestrPosCustomScan: None,
    EstimateDSMCustomScan: Some(estimate_shared),
    InitializeDSMCustomScan: Some(initialize_shared),
    ReInitializeDSMCustomScan: Some(initialize_shared_again),
    InitializeWorkerCustomScan: Some(initialize_worker),
    ShutdownCustomScan: None,
    ExplainCustomScan: Some(explain),
});

/// Makes plans known by name, as parallel workers are given them.
pub fn register() {
    // SAFETY: the methods stay where they are.
    unsafe { pg_sys::RegisterCustomScanMethods(&SCAN.0) };
}

/// Methods of plans.
pub fn scan() -> *const pg_sys::CustomScanMethods {
    &SCAN.0
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn create(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: memory for the state. PostgreSQL's part may be zero at first; ours is written when the scan begins.
    unsafe {
        let state: *mut pg_sys::CustomScanState = pg_sys::palloc0(size_of::<Scan>()).cast();
        (*state).ss.ps.type_ = NodeTag::T_CustomScanState;
        (*state).methods = &EXECUTION.0;
        state.cast()
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn begin(state: *mut pg_sys::CustomScanState, estate: *mut pg_sys::EState, _flags: i32) {
    // SAFETY: PostgreSQL passes a state of this library.
    unsafe { Scan::of(state) }.begin(estate);
}

/// Owns nothing, so that errors may jump over it.
unsafe extern "C-unwind" fn execute(state: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: PostgreSQL passes a state of this library, whose first part is that of any scan.
    unsafe { raw::scan(state.cast(), Some(next), Some(recheck)) }
}

unsafe extern "C-unwind" fn next(scan: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: ExecScan passes what it was given.
    unsafe { Scan::next(scan) }
}

unsafe extern "C-unwind" fn recheck(scan: *mut pg_sys::ScanState, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: as above.
    unsafe { Scan::recheck(scan, slot) }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn end(state: *mut pg_sys::CustomScanState) {
    // SAFETY: PostgreSQL passes a state of this library.
    unsafe { Scan::of(state) }.end();
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn rescan(state: *mut pg_sys::CustomScanState) {
    // SAFETY: PostgreSQL passes a state of this library.
    unsafe { Scan::of(state) }.rescan();
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn estimate_shared(
    state: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    // SAFETY: PostgreSQL passes a state of this library, with its table open.
    unsafe { pg_sys::table_parallelscan_estimate((*state).ss.ss_currentRelation, (*(*state).ss.ps.state).es_snapshot) }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn initialize_shared(
    state: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    // SAFETY: as above; there is as much memory as was asked for.
    unsafe {
        let (table, snapshot) = ((*state).ss.ss_currentRelation, (*(*state).ss.ps.state).es_snapshot);
        pg_sys::table_parallelscan_initialize(table, shared.cast(), snapshot);
        Scan::of(state).share(shared.cast());
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn initialize_shared_again(
    state: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    // SAFETY: as above; the memory was initialized.
    unsafe {
        let table = (*state).ss.ss_currentRelation;
        let again = (*(*table).rd_tableam).parallelscan_reinitialize.expect("parallel scans can be repeated");
        guarded!(again(table, shared.cast()));
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn initialize_worker(
    state: *mut pg_sys::CustomScanState,
    _contents: *mut pg_sys::shm_toc,
    shared: *mut c_void,
) {
    // SAFETY: as above; the leader initialized the memory.
    unsafe { Scan::of(state) }.share(shared.cast());
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn explain(
    state: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    explained: *mut pg_sys::ExplainState,
) {
    let Some(provider) = provider() else { return };
    // SAFETY: PostgreSQL passes a state of this library and what it writes to.
    unsafe {
        let plan = (*state).ss.ps.plan;
        let names = pg_sys::set_deparse_context_plan((*explained).deparse_cxt, plan, ancestors);
        let clause = parts::ours(plan.cast());
        let text = pg_sys::deparse_expression(clause, names, (*explained).verbose, false);
        pg_sys::ExplainPropertyText(provider.label.as_ptr(), text, explained);
        let counters = (*state).ss.ps.instrument;
        if !(*explained).analyze || counters.is_null() {
            return;
        }
        let (removed, loops) = ((*counters).nfiltered2, (*counters).nloops);
        if removed > 0.0 || (*explained).format != pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            let average = if loops > 0.0 { removed / loops } else { 0.0 };
            pg_sys::ExplainPropertyFloat(provider.removed.as_ptr(), std::ptr::null(), average, 0, explained);
        }
    }
}
