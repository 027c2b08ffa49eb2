//! The executor's side: reading ahead and handing out; and what EXPLAIN shows of that.

use super::batch::Batch;
use super::condition::{ProbeState, evaluate};
use crate::pg::call::guard::{Entry, guard, raw};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::nodes::nth;
use crate::pg::version;
use pgrx::pg_sys::{self, CustomScanState, NodeTag};
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

/// What EXPLAIN calls such a scan.
pub const NAME: &CStr = c"Bloom Scan";

pub const METHODS: &pg_sys::CustomScanMethods = &pg_sys::CustomScanMethods {
    CustomName: NAME.as_ptr(),
    CreateCustomScanState: Some(create),
};

const EXECUTION: &pg_sys::CustomExecMethods = &pg_sys::CustomExecMethods {
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
};

/// The state of a scan, which PostgreSQL passes to all functions below: its own, and behind it
/// ours. All of it may be zero until the scan begins.
#[repr(C)]
struct Scan {
    state: CustomScanState,
    batch: Batch,
    /// The conditions before ours, and ours, for a row that has changed.
    again: *mut pg_sys::ExprState,
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn create(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: PostgreSQL calls this. Memory for the state, which may be zero at first.
    unsafe { Entry::new() }.run(|| unsafe {
        let state: *mut CustomScanState = pg_sys::palloc0(size_of::<Scan>()).cast();
        (*state).ss.ps.type_ = NodeTag::T_CustomScanState;
        (*state).methods = EXECUTION;
        state.cast()
    })
}

/// Prepares the scan: what PostgreSQL prepared for virtual rows is prepared again for the table's
/// own.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn begin(
    state: *mut CustomScanState,
    estate: *mut pg_sys::EState,
    _flags: i32,
) {
    // SAFETY: PostgreSQL calls this with the state of a plan of this library, with its table open,
    // in memory of the query.
    unsafe { Entry::new() }.run(|| unsafe {
        let own: *mut Scan = state.cast();
        let scan = &raw mut (*state).ss;
        let state = &raw mut (*scan).ps;
        let table = (*scan).ss_currentRelation;
        (*state).subPlan = null_mut();
        version::init_scan_slot(estate, scan, table);
        pg_sys::ExecAssignScanProjectionInfo(scan);
        let plan: *mut pg_sys::CustomScan = (*state).plan.cast();
        let (ours, others) = (condition(plan), (*plan).scan.plan.qual);
        // A plan must keep this form: a worker may have another version of the library than the
        // session that planned.
        let [count, number] =
            [0, 1].map(|i| (*(*(*plan).custom_private).elements.add(i)).int_value);
        let before = pg_sys::list_truncate(pg_sys::list_copy(others), count);
        let prepared = pg_sys::ExecInitQual(before, state);
        // This also checks that the user may call the function.
        (*own).again =
            pg_sys::ExecInitQual(pg_sys::lappend(pg_sys::list_copy(before), ours.cast()), state);
        (*state).qual = pg_sys::ExecInitQual(pg_sys::list_copy_tail(others, count), state);
        (*own).batch =
            Batch::new(estate, table, prepared, ProbeState::new(ours, number as usize, state));
    });
}

/// Our condition of a plan.
///
/// # Safety
/// It must be one made here.
unsafe fn condition(plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: promised by the caller.
    unsafe { nth((*plan).custom_exprs, 0).expect("a plan has its condition") }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn execute(state: *mut CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: PostgreSQL calls this. The first part of the state is that of any scan.
    unsafe { Entry::new() }
        .run(|| unsafe { guard(|| raw::ExecScan(state.cast(), Some(next), Some(recheck))) })
}

/// The next row that may be wanted, or null. A guard would take too long for each row: only `fill`
/// calls PostgreSQL.
unsafe extern "C-unwind" fn next(scan: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: ExecScan passes the state. Other parts of PostgreSQL look for the current row in the
    // scan's slot.
    unsafe {
        let slot = (*scan.cast::<Scan>()).batch.next().unwrap_or_else(|| fill(scan));
        if !slot.is_null() {
            (*scan).ss_ScanTupleSlot = slot;
        }
        slot
    }
}

/// Reads batches until one has rows to hand out. Returns the first of these, or null.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn fill(scan: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: PostgreSQL calls this by way of `next`, which has nothing to drop. The scan of the
    // table is begun with the first row, as PostgreSQL's own.
    unsafe { Entry::new() }.run(|| unsafe {
        let own = &mut *scan.cast::<Scan>();
        let scan = &mut own.state.ss;
        if scan.ss_currentScanDesc.is_null() {
            use pg_sys::ScanOptions as Of;
            let flags = Of::SO_TYPE_SEQSCAN
                | Of::SO_ALLOW_STRAT
                | Of::SO_ALLOW_SYNC
                | Of::SO_ALLOW_PAGEMODE;
            let (table, snapshot) = (scan.ss_currentRelation, (*scan.ps.state).es_snapshot);
            let begin = (*(*table).rd_tableam).scan_begin.expect("tables can be scanned");
            scan.ss_currentScanDesc =
                guarded!(begin(table, snapshot, 0, null_mut(), null_mut(), flags));
        }
        while !own.batch.is_end {
            let (rejected, removed) = own.batch.fill(scan.ss_currentScanDesc);
            if let Some(counters) = scan.ps.instrument.as_mut() {
                counters.nfiltered1 += rejected as f64;
                counters.nfiltered2 += removed as f64;
            }
            if let Some(slot) = own.batch.next() {
                return slot;
            }
            check_for_interrupts();
        }
        own.batch.clear();
        null_mut()
    })
}

/// Whether a row that another transaction has changed in the meantime is still wanted.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn recheck(
    scan: *mut pg_sys::ScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: PostgreSQL's ExecScan calls this with the state and a row of its table.
    unsafe { Entry::new() }.run(|| unsafe {
        let context = (*scan).ps.ps_ExprContext;
        (*context).ecxt_scantuple = slot;
        evaluate((*scan.cast::<Scan>()).again, context, &mut false).value() != 0
    })
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn rescan(state: *mut CustomScanState) {
    // SAFETY: PostgreSQL calls this for a scan that has begun; that of the table may have.
    unsafe { Entry::new() }.run(|| unsafe {
        let own = &mut *state.cast::<Scan>();
        own.batch.restart();
        let table = own.state.ss.ss_currentScanDesc;
        if !table.is_null() {
            let rescan = (*(*(*table).rs_rd).rd_tableam)
                .scan_rescan
                .expect("scans can be repeated");
            guarded!(rescan(table, null_mut(), false, false, false, false));
        }
        pg_sys::ExecScanReScan(&mut own.state.ss);
    });
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn end(state: *mut CustomScanState) {
    // SAFETY: as `rescan`.
    unsafe { Entry::new() }.run(|| unsafe {
        let own = &mut *state.cast::<Scan>();
        own.batch.clear();
        let table = std::mem::replace(&mut own.state.ss.ss_currentScanDesc, null_mut());
        if !table.is_null() {
            let end = (*(*(*table).rs_rd).rd_tableam).scan_end.expect("scans can be ended");
            guarded!(end(table));
        }
    });
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn estimate_shared(
    state: *mut CustomScanState,
    _context: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    // SAFETY: PostgreSQL calls this while the table is open.
    unsafe { Entry::new() }.run(|| unsafe {
        pg_sys::table_parallelscan_estimate(
            (*state).ss.ss_currentRelation,
            (*(*state).ss.ps.state).es_snapshot,
        )
    })
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn initialize_shared(
    state: *mut CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    // SAFETY: PostgreSQL calls this while the table is open, with as much memory as was asked for.
    unsafe { Entry::new() }.run(|| unsafe {
        let scan = &mut (*state).ss;
        let table = scan.ss_currentRelation;
        pg_sys::table_parallelscan_initialize(table, shared.cast(), (*scan.ps.state).es_snapshot);
        scan.ss_currentScanDesc = version::begin_parallel_scan(table, shared.cast());
    });
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn initialize_shared_again(
    state: *mut CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    // SAFETY: PostgreSQL calls this while the table is open; the memory was initialized.
    unsafe { Entry::new() }.run(|| unsafe {
        let table = (*state).ss.ss_currentRelation;
        let again = (*(*table).rd_tableam)
            .parallelscan_reinitialize
            .expect("parallel scans can be repeated");
        guarded!(again(table, shared.cast()));
    });
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn initialize_worker(
    state: *mut CustomScanState,
    _contents: *mut pg_sys::shm_toc,
    shared: *mut c_void,
) {
    // SAFETY: PostgreSQL calls this while the table is open; the leader initialized the memory.
    unsafe { Entry::new() }.run(|| unsafe {
        let scan = &mut (*state).ss;
        scan.ss_currentScanDesc =
            version::begin_parallel_scan(scan.ss_currentRelation, shared.cast());
    });
}

/// Adds our condition, and how many rows it rejected.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn explain(
    state: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    explained: *mut pg_sys::ExplainState,
) {
    // SAFETY: PostgreSQL calls this with the state and what it writes to.
    unsafe { Entry::new() }.run(|| unsafe {
        let plan = (*state).ss.ps.plan;
        let names = pg_sys::set_deparse_context_plan((*explained).deparse_cxt, plan, ancestors);
        let text =
            pg_sys::deparse_expression(condition(plan.cast()), names, (*explained).verbose, false);
        pg_sys::ExplainPropertyText(c"Bloom Filter".as_ptr(), text, explained);
        let counters = (*state).ss.ps.instrument;
        if !(*explained).analyze || counters.is_null() {
            return;
        }
        let (removed, loops) = ((*counters).nfiltered2, (*counters).nloops);
        if removed > 0.0 || (*explained).format != pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            let average = if loops > 0.0 { removed / loops } else { 0.0 };
            let label = c"Rows Removed by Bloom Filter".as_ptr();
            pg_sys::ExplainPropertyFloat(label, null(), average, 0, explained);
        }
    });
}
