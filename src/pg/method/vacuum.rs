//! What VACUUM passes to an access method, and what it gets back.

use super::scan::place;
use crate::pg::memory;
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys;
use std::ffi::c_void;

pub use pgrx::pg_sys::IndexBulkDeleteResult as Counts;
pub use pgrx::pg_sys::IndexVacuumInfo as Vacuum;

/// Rows that are dead to everybody, as VACUUM knows them. CREATE INDEX CONCURRENTLY asks for rows
/// in the same way, to hear which of them an index has: it calls none dead.
pub struct DeadRows {
    has: pg_sys::IndexBulkDeleteCallback,
    state: *mut c_void,
}

impl DeadRows {
    /// # Safety
    /// These must be what PostgreSQL passes to ambulkdelete, and stay so while this is there.
    pub unsafe fn new(has: pg_sys::IndexBulkDeleteCallback, state: *mut c_void) -> DeadRows {
        DeadRows { has, state }
    }

    /// Whether a row is one of them; false for a place where none can be. The caller must not hold
    /// a page lock.
    pub fn has(&self, row: RowId) -> bool {
        let Some(mut place) = place(row) else {
            return false;
        };
        // SAFETY: as `new` was promised.
        self.has
            .is_some_and(|has| unsafe { guarded!(has(&mut place, self.state)) })
    }
}

/// Writes counts where PostgreSQL wants them: into what an earlier pass returned, or into memory of
/// its own.
///
/// # Safety
/// `known` must be null or what an earlier pass returned.
pub unsafe fn write(counts: Counts, known: *mut Counts) -> *mut Counts {
    // SAFETY: promised by the caller.
    match unsafe { known.as_mut() } {
        None => memory::copied(&counts),
        // VACUUM may take several passes.
        Some(known) => {
            *known = Counts {
                tuples_removed: known.tuples_removed + counts.tuples_removed,
                ..counts
            };
            known
        }
    }
}
