//! The calls by which VACUUM has an access method remove dead rows: their arguments and results.

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
    /// Wraps arguments of the function `ambulkdelete`.
    ///
    /// # Safety
    /// The arguments must be PostgreSQL's to `ambulkdelete`, and valid as long as the result.
    pub unsafe fn new(has: pg_sys::IndexBulkDeleteCallback, state: *mut c_void) -> DeadRows {
        DeadRows { has, state }
    }

    /// Returns whether a row is dead; false for a place where no row can be. The caller must not
    /// hold a page lock.
    pub fn has(&self, row: RowId) -> bool {
        let Some(mut place) = place(row) else {
            return false;
        };
        // SAFETY: the function and its state are valid, as the caller of `new` has promised.
        self.has
            .is_some_and(|has| unsafe { guarded!(has(&mut place, self.state)) })
    }
}

/// Returns the counts of a pass of VACUUM over an index as PostgreSQL reads them. If an earlier
/// pass of this VACUUM has returned a struct, `earlier`, they are written there, and its removed
/// rows are added to those of this pass. If `earlier` is null, they are in a new struct in the
/// current memory context.
///
/// # Safety
/// `earlier` must be null or the result of an earlier pass.
pub unsafe fn write(counts: Counts, earlier: *mut Counts) -> *mut Counts {
    // SAFETY: the caller promises null or a valid struct.
    match unsafe { earlier.as_mut() } {
        None => memory::copied(&counts),
        Some(earlier) => {
            *earlier = Counts {
                tuples_removed: earlier.tuples_removed + counts.tuples_removed,
                ..counts
            };
            earlier
        }
    }
}
