//! Scans of tables.

use crate::pg::call::guard::{Entry, guard, is_unwinding, raw, require_session};
use crate::pg::call::{Element, Result, raise};
use crate::pg::memory::{Context, in_context};
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

pub use pgrx::pg_sys::IndexBuildResult as Built;

pub struct Wanted<'r> {
    table: Relation<'r>,
    index: Relation<'r>,
    info: *mut pg_sys::IndexInfo,
}

impl<'r> Wanted<'r> {
    /// # Safety
    /// These must be what PostgreSQL passes to ambuild, and stay so for `'r`.
    pub unsafe fn new(
        table: pg_sys::Relation,
        index: pg_sys::Relation,
        info: *mut pg_sys::IndexInfo,
    ) -> Wanted<'r> {
        // SAFETY: promised by the caller.
        let (table, index) = unsafe { (Relation::new(table), Relation::new(index)) };
        Wanted { table, index, info }
    }

    pub fn table(&self) -> Relation<'r> {
        self.table
    }

    /// The index, which has no pages yet.
    pub fn index(&self) -> Relation<'r> {
        self.index
    }

    /// Whether the index is built while others change its table, and is then validated.
    pub fn is_concurrent(&self) -> bool {
        // SAFETY: as `new` was promised.
        unsafe { (*self.info).ii_Concurrent }
    }

    /// Calls `found` with each row that the index must have, and the value of its column, as
    /// ambuild has to: in the order of the table's pages, a chain of heap-only tuples at its first
    /// row. Returns how many rows the table has.
    pub fn scan(&self, mut found: impl FnMut(RowId, Option<Element>) -> Result<()>) -> f64 {
        // SAFETY: no scan is given.
        unsafe { self.scan_by(std::ptr::null_mut(), &mut found) }
    }

    /// Does the same by a scan that is given, if one is. It is ended here.
    ///
    /// # Safety
    /// `rows` must be null or a scan of the table.
    unsafe fn scan_by(&self, rows: pg_sys::TableScanDesc, found: Found) -> f64 {
        let info = self.info;
        // To PostgreSQL a scan that is given is that of a process of a parallel build: it begins
        // where it likes, and its progress is not that of the build.
        let is_given = !rows.is_null();
        let (allow_sync, progress) = (is_given, !is_given);
        let (first_page, page_count) = (0, pg_sys::InvalidBlockNumber);
        // SAFETY: promised by the caller; the access method of a table has the function, and the
        // closure and the memory of the call are there until the scan ends.
        unsafe {
            let mut state: State = (found, Context::new(pg_sys::CurrentMemoryContext));
            let state = (&raw mut state).cast();
            let scan = self
                .table
                .table_method()
                .index_build_range_scan
                .expect("tables can be scanned");
            let (table, index, visit) =
                (self.table.raw(), self.index.raw(), Some(build_callback as _));
            guarded!(scan(
                table, index, info, allow_sync, false, progress, first_page, page_count, visit,
                state, rows
            ))
        }
    }
}

/// What is visible to all that begin now: a snapshot, kept while it is in use, for no longer than a
/// relation is open.
pub struct Latest<'r>(pg_sys::Snapshot, PhantomData<&'r ()>);

impl<'r> Latest<'r> {
    pub fn take(_while_open: Relation<'r>) -> Latest<'r> {
        // SAFETY: there is a transaction, since a statement is running.
        Latest(unsafe { pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot()) }, PhantomData)
    }
}

impl Drop for Latest<'_> {
    fn drop(&mut self) {
        if !is_unwinding() {
            // SAFETY: registered by `take`, once; after an error PostgreSQL gives it back itself.
            unsafe { pg_sys::UnregisterSnapshot(self.0) };
        }
    }
}

/// Calls `found` with each row that an index must have by a snapshot, and its value: of these pages
/// of a table of the access method `heap`, or of all pages.
pub fn scan_for_check(
    table: Relation,
    index: Relation,
    snapshot: &Latest<'_>,
    pages: Option<Range<u32>>,
    mut found: impl FnMut(RowId, Option<Element>) -> Result<()>,
) {
    assert_eq!(index.own().table(), table.oid(), "the table of the index");
    assert!(pages.is_none() || table.is_heap(), "pages of the access method heap");
    let flags = pg_sys::ScanOptions::SO_TYPE_SEQSCAN
        | pg_sys::ScanOptions::SO_ALLOW_STRAT
        | pg_sys::ScanOptions::SO_ALLOW_PAGEMODE;
    // SAFETY: both relations are open. A scan of heap may be limited to some pages before it begins.
    // A scan that is passed on is ended there. An index that is built concurrently is built from a
    // snapshot, as this one is checked.
    unsafe {
        let info = guard(|| raw::BuildIndexInfo(index.raw()));
        (*info).ii_Concurrent = true;
        let begin = table.table_method().scan_begin.expect("tables can be scanned");
        let (no_keys, not_parallel) = (std::ptr::null_mut(), std::ptr::null_mut());
        let rows = guarded!(begin(table.raw(), snapshot.0, 0, no_keys, not_parallel, flags));
        if let Some(Range { start, end }) = pages {
            pg_sys::heap_setscanlimits(rows, start, end - start);
        }
        Wanted { table, index, info }.scan_by(rows, &mut found);
    }
}

/// What is called with each row, and the memory of the call to do it in: that of an access method
/// may end with the row.
type State<'f> = (Found<'f>, Context<'f>);

type Found<'f> = &'f mut dyn FnMut(RowId, Option<Element>) -> Result<()>;

/// An error of the closure is raised: it must end the scan, which PostgreSQL then cleans up after.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn build_callback(
    _index: pg_sys::Relation,
    place: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    nulls: *mut bool,
    _is_alive: bool,
    state: *mut c_void,
) {
    // SAFETY: PostgreSQL calls this; the scan passes a place, a value for the one column, and the
    // closure.
    unsafe { Entry::new() }.run(|| unsafe {
        let value = if *nulls { None } else { Some(Element { datum: *values }) };
        let (found, memory) = &mut *state.cast::<State<'_>>();
        in_context(*memory, || found(row_at(place), value)).unwrap_or_else(|error| raise(error));
    });
}

/// # Safety
/// The place must be there.
pub unsafe fn row_at(place: pg_sys::ItemPointer) -> RowId {
    // SAFETY: promised by the caller.
    let pg_sys::ItemPointerData { ip_blkid: block, ip_posid: line } = unsafe { *place };
    RowId {
        page: u32::from(block.bi_hi) << 16 | u32::from(block.bi_lo),
        line,
    }
}

pub fn maintenance_memory() -> usize {
    require_session();
    // SAFETY: reads a setting, in kilobytes.
    unsafe { pg_sys::maintenance_work_mem as usize * 1024 }
}
