//! Scans of tables.

use crate::pg::call::guard::{Entry, guard, is_unwinding, raw, require_session};
use crate::pg::call::{Result, SqlValue, raise};
use crate::pg::memory::{Context, in_context};
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

/// How many rows the table and the index have after CREATE INDEX.
pub use pgrx::pg_sys::IndexBuildResult as TupleCounts;

/// An index that CREATE INDEX or REINDEX is about to fill, and its table.
pub struct NewIndex<'r> {
    table: Relation<'r>,
    index: Relation<'r>,
    info: *mut pg_sys::IndexInfo,
}

impl<'r> NewIndex<'r> {
    /// Wraps the arguments with which PostgreSQL calls `ambuild`, the function by which an access
    /// method builds an index.
    ///
    /// # Safety
    /// The arguments must be those of a call of `ambuild` by PostgreSQL, and valid for `'r`.
    pub unsafe fn from_ambuild(
        table: pg_sys::Relation,
        index: pg_sys::Relation,
        info: *mut pg_sys::IndexInfo,
    ) -> NewIndex<'r> {
        // SAFETY: PostgreSQL has opened both relations for `'r`, as the caller promises.
        unsafe {
            NewIndex {
                table: Relation::new(table),
                index: Relation::new(index),
                info,
            }
        }
    }

    /// Returns the table of the index.
    pub fn table(&self) -> Relation<'r> {
        self.table
    }

    /// Returns the index, which has no pages yet.
    pub fn index(&self) -> Relation<'r> {
        self.index
    }

    /// Returns whether the index is built by CREATE INDEX CONCURRENTLY, while others change its
    /// table, and will then be validated.
    pub fn is_concurrent(&self) -> bool {
        // SAFETY: the struct is valid, as the caller of `new` has promised.
        unsafe { (*self.info).ii_Concurrent }
    }

    /// Scans the table for the build of an index: calls `found` with each row that the index must
    /// have and with the value of its column, `None` for NULL, and returns how many rows the table
    /// has. The rows come in the order of the table's pages. A chain of heap-only tuples, versions
    /// of one row with equal values, comes once, with the place of its first version. The value
    /// exists until `found` returns, as does the current memory then. If `found` fails, its error
    /// is raised.
    pub fn scan_table(&self, mut found: impl FnMut(RowId, Option<SqlValue>) -> Result<()>) -> f64 {
        // SAFETY: no scan was begun.
        unsafe { self.visit_rows(None, &mut found) }
    }

    /// Calls `found` with each row that the index must have, and with the value of its column,
    /// `None` for NULL. Returns how many rows the table has. The table's access method does the
    /// scan.
    ///
    /// `begun_scan` is a scan of the table that the caller has begun with a snapshot, and perhaps
    /// limited to some pages: only its rows come, and it is ended here. With `None` the access
    /// method begins a scan of its own, of all rows. If `found` fails, its error is raised.
    ///
    /// # Safety
    /// `begun_scan` must be a scan of this table that hasn't ended.
    unsafe fn visit_rows(&self, begun_scan: Option<pg_sys::TableScanDesc>, found: VisitRow) -> f64 {
        // PostgreSQL takes a scan that is passed to it for one of a process in a parallel build:
        // such a scan may begin at any page, and its progress is not the progress of the build.
        let allow_sync = begun_scan.is_some();
        let reports_progress = begun_scan.is_none();
        let any_visible = false;
        let first_page = 0;
        let page_count = pg_sys::InvalidBlockNumber;

        let table = self.table.raw();
        let index = self.index.raw();
        let info = self.info;
        let begun_scan = begun_scan.unwrap_or(std::ptr::null_mut());
        // SAFETY: the caller promises the scan. The access method of a table has the function, and
        // the closure and the memory of the call exist until the scan ends.
        unsafe {
            let mut state = ScanState { found, memory: Context::new(pg_sys::CurrentMemoryContext) };
            let state = (&raw mut state).cast();
            let scan = self
                .table
                .table_method()
                .index_build_range_scan
                .expect("tables can be scanned");
            let visit = Some(build_callback as _);
            guarded!(scan(
                table,
                index,
                info,
                allow_sync,
                any_visible,
                reports_progress,
                first_page,
                page_count,
                visit,
                state,
                begun_scan
            ))
        }
    }
}

/// A snapshot that sees all that is committed now, kept until this is dropped, for no longer than a
/// relation is open.
pub struct Latest<'r>(pg_sys::Snapshot, PhantomData<&'r ()>);

impl<'r> Latest<'r> {
    /// Takes the snapshot. `_while_open` is a relation that stays open as long as the result is
    /// used.
    pub fn take(_while_open: Relation<'r>) -> Latest<'r> {
        // SAFETY: there is a transaction, since a statement is running.
        Latest(unsafe { pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot()) }, PhantomData)
    }
}

impl Drop for Latest<'_> {
    fn drop(&mut self) {
        if !is_unwinding() {
            // SAFETY: `take` has registered the snapshot once. After an error PostgreSQL gives it
            // back itself.
            unsafe { pg_sys::UnregisterSnapshot(self.0) };
        }
    }
}

/// Scans a table to check an index: calls `found` with each row that the snapshot sees and that the
/// index must have, and with the value of its column, `None` for NULL. If `pages` is given, only
/// rows of these pages come, in a table of the access method `heap`. If `found` fails, its error is
/// raised.
///
/// Panics for an index of another table, and for pages of another access method.
pub fn scan_for_check(
    table: Relation,
    index: Relation,
    snapshot: &Latest<'_>,
    pages: Option<Range<u32>>,
    mut found: impl FnMut(RowId, Option<SqlValue>) -> Result<()>,
) {
    assert_eq!(index.own().table(), table.oid(), "the table of the index");
    assert!(pages.is_none() || table.is_heap(), "pages of the access method heap");
    let flags = pg_sys::ScanOptions::SO_TYPE_SEQSCAN
        | pg_sys::ScanOptions::SO_ALLOW_STRAT
        | pg_sys::ScanOptions::SO_ALLOW_PAGEMODE;
    // SAFETY: both relations are open. A scan of heap may be limited to some pages before it
    // begins. A scan that is passed on is ended there. An index that is built concurrently is built
    // from a snapshot, as this one is checked.
    unsafe {
        let info = guard(|| raw::BuildIndexInfo(index.raw()));
        (*info).ii_Concurrent = true;
        let begin = table.table_method().scan_begin.expect("tables can be scanned");
        let no_keys = std::ptr::null_mut();
        let not_parallel = std::ptr::null_mut();
        let scan = guarded!(begin(table.raw(), snapshot.0, 0, no_keys, not_parallel, flags));
        if let Some(Range { start, end }) = pages {
            pg_sys::heap_setscanlimits(scan, start, end - start);
        }
        NewIndex { table, index, info }.visit_rows(Some(scan), &mut found);
    }
}

/// What a scan passes on to [`build_callback`].
struct ScanState<'f> {
    found: VisitRow<'f>,
    /// The memory in which `found` runs: an access method may have another one, which ends with a
    /// row.
    memory: Context<'f>,
}

/// A function that gets a row's place, and the value of the index's column.
type VisitRow<'f> = &'f mut dyn FnMut(RowId, Option<SqlValue>) -> Result<()>;

/// Calls the function `found` of a scan with a row and the value of its column. PostgreSQL calls
/// this for each row of a scan of the table that builds or checks an index. If `found` fails, its
/// error is raised, which ends the scan.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn build_callback(
    _index: pg_sys::Relation,
    place: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    nulls: *mut bool,
    _is_alive: bool,
    state: *mut c_void,
) {
    // SAFETY: PostgreSQL calls this with the place of a row, a value for the one column, and the
    // state that `visit_rows` has passed.
    unsafe { Entry::new() }.run(|| unsafe {
        let value = if *nulls { None } else { Some(SqlValue { datum: *values }) };
        let ScanState { found, memory } = &mut *state.cast::<ScanState<'_>>();
        in_context(*memory, || found(row_at(place), value)).unwrap_or_else(|error| raise(error));
    });
}

/// Returns the row that PostgreSQL's struct of a place points to.
///
/// # Safety
/// `place` must point to a valid struct.
pub unsafe fn row_at(place: pg_sys::ItemPointer) -> RowId {
    // SAFETY: the caller promises a valid struct.
    let pg_sys::ItemPointerData { ip_blkid: block, ip_posid: line } = unsafe { *place };
    RowId {
        page: u32::from(block.bi_hi) << 16 | u32::from(block.bi_lo),
        line,
    }
}

/// Returns the bytes of memory that a command such as CREATE INDEX may use, `maintenance_work_mem`.
/// Panics in another thread than the session's.
pub fn maintenance_memory() -> usize {
    require_session();
    // SAFETY: the setting, in kilobytes, is read in the session's thread.
    unsafe { pg_sys::maintenance_work_mem as usize * 1024 }
}
