//! What VACUUM passes to an access method, and what it gets back.

use super::scan::place;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys;
use std::ffi::c_void;

pub struct Vacuum<'r> {
    pub index: Relation<'r>,
    pub table_rows: f64,
    pub is_estimate: bool,
}

/// What an access method returns about an index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub pages: u32,
    /// Rows that the index has.
    pub rows: f64,
    /// Whether that is an estimate, which PostgreSQL doesn't keep.
    pub is_estimate: bool,
    pub removed: f64,
}

/// Rows that are dead to everybody, as VACUUM knows them. CREATE INDEX CONCURRENTLY asks for rows in the same way, to
/// hear which of them an index has: it calls none dead.
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

    /// Whether a row is one of them; false for a place where none can be. The caller must not hold a page lock.
    pub fn has(&self, row: RowId) -> bool {
        let Some(mut place) = place(row) else { return false };
        // SAFETY: as `new` was promised.
        self.has.is_some_and(|has| unsafe { guarded!(has(&mut place, self.state)) })
    }
}

impl<'r> Vacuum<'r> {
    /// # Safety
    /// The index must be open for `'r`.
    pub unsafe fn new(info: &pg_sys::IndexVacuumInfo) -> Vacuum<'r> {
        // SAFETY: promised by the caller.
        let index = unsafe { Relation::new(info.index) };
        Vacuum { index, table_rows: info.num_heap_tuples, is_estimate: info.estimated_count }
    }
}

impl Counts {
    /// Writes the counts where PostgreSQL wants them: into what an earlier pass returned, or into memory of its own.
    ///
    /// # Safety
    /// `known` must be null or what an earlier pass returned.
    pub unsafe fn write(self, known: *mut pg_sys::IndexBulkDeleteResult) -> *mut pg_sys::IndexBulkDeleteResult {
        // SAFETY: promised by the caller; new memory has the size of the result.
        unsafe {
            let result = if known.is_null() {
                pg_sys::palloc0(size_of::<pg_sys::IndexBulkDeleteResult>()).cast()
            } else {
                known
            };
            (*result).num_pages = self.pages;
            (*result).num_index_tuples = self.rows;
            (*result).estimated_count = self.is_estimate;
            // VACUUM may take several passes.
            (*result).tuples_removed += self.removed;
            result
        }
    }
}
