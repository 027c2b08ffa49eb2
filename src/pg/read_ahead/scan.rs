//! The executor's side: reading ahead and handing out.

use super::asked::Asked;
use super::batch::Batch;
use super::provider::MOST_ROWS;
use super::{parts, raw};
use crate::pg::call::error::raise;
use crate::pg::call::interrupt::check_for_interrupts;
use pgrx::pg_sys;

/// The state of a scan in an execution: PostgreSQL's, and behind it ours, which it doesn't see.
#[repr(C)]
pub struct Scan {
    state: pg_sys::CustomScanState,
    own: Option<Own>,
}

struct Own {
    batch: Batch,
    asked: Asked,
    /// Conditions that are asked of a row before ours; null for none.
    before: *mut pg_sys::ExprState,
    /// Rows to read in the next batch: few at first, as no more may be wanted.
    size: usize,
    is_end: bool,
}

impl Scan {
    /// # Safety
    /// `state` must be one that this library made, and not in use.
    pub unsafe fn of<'a>(state: *mut pg_sys::CustomScanState) -> &'a mut Scan {
        // SAFETY: promised by the caller.
        unsafe { &mut *state.cast::<Scan>() }
    }

    fn own(&mut self) -> &mut Own {
        self.own.as_mut().expect("the scan was prepared")
    }

    /// Prepares the scan. PostgreSQL has prepared it for rows that it keeps otherwise than the table does: what
    /// depends on that is prepared again.
    pub fn begin(&mut self, estate: *mut pg_sys::EState) {
        // SAFETY: the state is that of a plan of this library, with its table open; memory is that of the query.
        unsafe {
            let scan: *mut pg_sys::ScanState = &mut self.state.ss;
            let state: *mut pg_sys::PlanState = &mut (*scan).ps;
            let table = (*scan).ss_currentRelation;
            (*state).subPlan = std::ptr::null_mut();
            pg_sys::ExecInitScanTupleSlot(estate, scan, (*table).rd_att, pg_sys::table_slot_callbacks(table));
            pg_sys::ExecAssignScanProjectionInfo(scan);
            let custom: *mut pg_sys::CustomScan = (*state).plan.cast();
            let (before, after) = parts::others(custom);
            let before = pg_sys::ExecInitQual(before, state);
            let asked = Asked::new(custom, state);
            (*state).qual = pg_sys::ExecInitQual(after, state);
            let batch = Batch::new(estate, table);
            let own = Own { batch, asked, before, size: 1, is_end: false };
            std::ptr::write(&mut self.own, Some(own));
        }
    }

    /// The next row that is in question, or null.
    ///
    /// # Safety
    /// `scan` must be the state of a prepared scan. An error jumps out of this.
    #[inline(always)]
    pub unsafe fn next(scan: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: promised by the caller. Other parts of PostgreSQL look for the current row in the scan's slot.
        unsafe {
            let own = (*scan.cast::<Scan>()).own.as_mut().unwrap_unchecked();
            let slot = match own.batch.next() {
                Some(slot) => slot,
                None => fill(scan),
            };
            if !slot.is_null() {
                (*scan).ss_ScanTupleSlot = slot;
            }
            slot
        }
    }

    /// Whether a row that another transaction has changed in the meantime still is what is looked for.
    ///
    /// # Safety
    /// As [`Scan::next`].
    pub unsafe fn recheck(scan: *mut pg_sys::ScanState, slot: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: promised by the caller.
        unsafe {
            let own = (*scan.cast::<Scan>()).own.as_mut().unwrap_unchecked();
            let context = (*scan).ps.ps_ExprContext;
            raw::passes(own.before, context, slot) && raw::passes(own.asked.expression, context, slot)
        }
    }

    fn fill(&mut self) -> *mut pg_sys::TupleTableSlot {
        let scan = self.table_scan();
        let context = self.state.ss.ps.ps_ExprContext;
        let mut removed = (0, 0);
        let own = self.own();
        let slot = loop {
            if own.is_end {
                own.batch.clear();
                break std::ptr::null_mut();
            }
            // SAFETY: the scan is of the table that all was prepared for; the closure owns nothing.
            let read = unsafe {
                let Own { batch, asked, before, size, .. } = &mut *own;
                raw::guarded(|| batch.read(scan, *size, asked.column, *before, context))
            };
            own.is_end = read.is_end;
            own.size = (own.size * 2).min(MOST_ROWS);
            let Own { batch, asked, .. } = &mut *own;
            // SAFETY: the context is that of the scan.
            let rejected = batch.choose(|elements, answers| unsafe { asked.ask(context, elements, answers) });
            let rejected = rejected.unwrap_or_else(|error| raise(error));
            removed = (removed.0 + read.rejected, removed.1 + rejected + read.nulls);
            if let Some(slot) = own.batch.next() {
                break slot;
            }
            check_for_interrupts();
        };
        self.count(removed);
        slot
    }

    /// Counts rows for EXPLAIN: those removed by other conditions, and by ours.
    fn count(&mut self, (others, ours): (usize, usize)) {
        // SAFETY: null, or where the scan is counted.
        if let Some(counters) = unsafe { self.state.ss.ps.instrument.as_mut() } {
            counters.nfiltered1 += others as f64;
            counters.nfiltered2 += ours as f64;
        }
    }

    /// The scan of the table, which is begun with the first row.
    fn table_scan(&mut self) -> pg_sys::TableScanDesc {
        let scan = &mut self.state.ss;
        if scan.ss_currentScanDesc.is_null() {
            use pg_sys::ScanOptions as Options;
            let flags = Options::SO_TYPE_SEQSCAN
                | Options::SO_ALLOW_STRAT
                | Options::SO_ALLOW_SYNC
                | Options::SO_ALLOW_PAGEMODE;
            let (none, no_scan) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: the table is open, as sequential scans of PostgreSQL itself begin.
            unsafe {
                let (table, snapshot) = (scan.ss_currentRelation, (*scan.ps.state).es_snapshot);
                let begin = (*(*table).rd_tableam).scan_begin.expect("tables can be scanned");
                scan.ss_currentScanDesc = guarded!(begin(table, snapshot, 0, none, no_scan, flags));
            }
        }
        scan.ss_currentScanDesc
    }

    /// Scans a part of the table, as all processes of a query do that share this.
    pub fn share(&mut self, shared: pg_sys::ParallelTableScanDesc) {
        let scan = &mut self.state.ss;
        // SAFETY: the table is open, and what is shared was prepared for it.
        scan.ss_currentScanDesc = unsafe { pg_sys::table_beginscan_parallel(scan.ss_currentRelation, shared) };
    }

    /// Begins again.
    pub fn rescan(&mut self) {
        let own = self.own();
        own.batch.clear();
        own.asked.forget();
        (own.size, own.is_end) = (1, false);
        let scan = &mut self.state.ss;
        // SAFETY: the state is prepared; the scan is null or one that was begun.
        unsafe {
            let table = scan.ss_currentScanDesc;
            if !table.is_null() {
                let rescan = (*(*(*table).rs_rd).rd_tableam).scan_rescan.expect("scans can be repeated");
                guarded!(rescan(table, std::ptr::null_mut(), false, false, false, false));
            }
            pg_sys::ExecScanReScan(scan);
        }
    }

    /// Ends the scan.
    pub fn end(&mut self) {
        self.own().batch.clear();
        let table = self.state.ss.ss_currentScanDesc;
        if !table.is_null() {
            self.state.ss.ss_currentScanDesc = std::ptr::null_mut();
            // SAFETY: the scan was begun.
            unsafe {
                let end = (*(*(*table).rs_rd).rd_tableam).scan_end.expect("scans can be ended");
                guarded!(end(table));
            }
        }
    }
}

/// Reads the next batch and hands out the first of its rows.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn fill(scan: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: called by `Scan::next`, which was promised the state of a scan.
    unsafe { Scan::of(scan.cast()) }.fill()
}
