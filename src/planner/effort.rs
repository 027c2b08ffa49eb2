//! What the estimates of one planning of a statement may cost. The planner asks for one estimate after another: for `x
//! <@ ANY (array)` as many as the array has filters, each of which could be asked about every value in the statistics.

use pgrx::pg_sys;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// Units of work that one planning has for estimates: a value of the statistics that is read, a probe, or
/// [`BYTES_PER_UNIT`]. They take from 20 to 100 ns, so all of them a tenth of a second.
const MOST: u64 = 2_000_000;
/// Bytes of a filter that are counted in the time of a probe.
const BYTES_PER_UNIT: u64 = 32;

/// The planning that was asked for an estimate last, and the units that its estimates took.
static PLANNING: AtomicPtr<pg_sys::PlannerGlobal> = AtomicPtr::new(ptr::null_mut());
static SPENT: AtomicU64 = AtomicU64::new(0);

/// What is left for the estimates of the current planning.
#[derive(Clone, Copy)]
pub struct Effort(());

impl Effort {
    /// That of the planning with this root; `None` if nothing is left.
    ///
    /// # Safety
    /// `root` must be that of a query that is being planned.
    pub unsafe fn of(root: *mut pg_sys::PlannerInfo) -> Option<Effort> {
        // SAFETY: promised by the caller; all queries of a statement share what is global. The callback's memory goes
        // with the context that calls it.
        unsafe {
            let planning = (*root).glob;
            if planning.is_null() || (*root).planner_cxt.is_null() {
                return None;
            }
            if PLANNING.load(Relaxed) != planning {
                let size = size_of::<pg_sys::MemoryContextCallback>();
                let callback: *mut pg_sys::MemoryContextCallback =
                    pg_sys::MemoryContextAllocZero((*root).planner_cxt, size).cast();
                (*callback).func = Some(forget);
                (*callback).arg = planning.cast();
                pg_sys::MemoryContextRegisterResetCallback((*root).planner_cxt, callback);
                PLANNING.store(planning, Relaxed);
                SPENT.store(0, Relaxed);
            }
        }
        (SPENT.load(Relaxed) < MOST).then_some(Effort(()))
    }

    /// Spends this many units, even if fewer are left.
    pub fn spend(self, units: usize) {
        SPENT.fetch_add(units as u64, Relaxed);
    }

    /// Spends what it costs to count the bits of this many bytes, if that much is left.
    pub fn spend_on_bytes(self, bytes: usize) -> bool {
        let units = bytes as u64 / BYTES_PER_UNIT;
        let there = SPENT.load(Relaxed).saturating_add(units) <= MOST;
        if there {
            SPENT.fetch_add(units, Relaxed);
        }
        there
    }
}

/// The memory of a planning is freed: another may get its address.
unsafe extern "C-unwind" fn forget(planning: *mut c_void) {
    // It may be another's by now.
    PLANNING.compare_exchange(planning.cast(), ptr::null_mut(), Relaxed, Relaxed).ok();
}
