//! What differs between PostgreSQL's major versions by its name or its signature.
//!
//! A condition asks whether the version is *older* than a change (features `before_…` of
//! Cargo.toml), so that a new major version gets the newest code: if that lacks a name, it doesn't
//! compile, rather than going on without a check.

use super::call::guard::guard;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::OnceLock;

#[cfg(not(feature = "before_pg16"))]
pub use pg_sys::{InitMaterializedSRF as begin_set, RelFileLocator as Locator};
/// What begins the set that a function returns, by the only name that 15.0 has, and a relation's
/// file.
#[cfg(feature = "before_pg16")]
pub use pg_sys::{RelFileNode as Locator, SetSingleFuncCall as begin_set};

/// The number of one of PostgreSQL's caches of catalogs, as its callbacks get it.
#[cfg(not(feature = "before_pg19"))]
pub use pg_sys::SysCacheIdentifier::Type as CacheNumber;
#[cfg(feature = "before_pg19")]
pub use std::ffi::c_int as CacheNumber;

/// The name of an encoding; empty for a number that is none's.
pub fn encoding_name(encoding: i32) -> &'static str {
    #[cfg(feature = "before_pg17")]
    use pg_sys::pg_encoding_to_char;
    #[cfg(not(feature = "before_pg17"))]
    use pg_sys::pg_encoding_to_char_private as pg_encoding_to_char;
    // SAFETY: takes any number; names are static C strings.
    let name = unsafe { CStr::from_ptr(pg_encoding_to_char(encoding)) };
    name.to_str().unwrap_or_default()
}

/// How many items an array has, as far as the planner can tell.
///
/// # Safety
/// `root` must be that of a query that is being planned, and `array` an expression in it.
pub unsafe fn array_length(root: *mut pg_sys::PlannerInfo, array: *mut pg_sys::Node) -> f64 {
    #[cfg(feature = "before_pg17")]
    let _ = root;
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "before_pg17")]
        return pg_sys::estimate_array_length(array).into();
        #[cfg(not(feature = "before_pg17"))]
        return pg_sys::estimate_array_length(root, array);
    }
}

/// A relation's file, and the subtransaction of this transaction in which it got that; 0 for none.
pub fn file(relation: &pg_sys::RelationData) -> (Locator, pg_sys::SubTransactionId) {
    #[cfg(feature = "before_pg16")]
    return (relation.rd_node, relation.rd_firstRelfilenodeSubid);
    #[cfg(not(feature = "before_pg16"))]
    return (relation.rd_locator, relation.rd_firstRelfilelocatorSubid);
}

pub fn count_scan(statistics: &mut pg_sys::PgStat_TableStatus) {
    #[cfg(feature = "before_pg16")]
    let scans = &mut statistics.t_counts.t_numscans;
    #[cfg(not(feature = "before_pg16"))]
    let scans = &mut statistics.counts.numscans;
    *scans += 1;
}

/// Lets the user cancel a VACUUM, and waits as its cost-based delay says, which is off outside of
/// VACUUM.
pub fn vacuum_delay_point() {
    // SAFETY: checks for interrupts, and looks at what this session has spent.
    unsafe {
        #[cfg(feature = "before_pg18")]
        pg_sys::vacuum_delay_point();
        #[cfg(not(feature = "before_pg18"))]
        pg_sys::vacuum_delay_point(false);
    }
}

/// Whether a user may maintain a table: who has the owner's rights, or MAINTAIN, which there is
/// from PostgreSQL 17 on.
pub fn may_maintain(table: Oid, user: Oid) -> bool {
    // SAFETY: reads the catalogs.
    unsafe {
        #[cfg(feature = "before_pg16")]
        let is_owner = pg_sys::pg_class_ownercheck(table, user);
        #[cfg(not(feature = "before_pg16"))]
        let is_owner = pg_sys::object_ownercheck(pg_sys::RelationRelationId, table, user);
        #[cfg(feature = "before_pg17")]
        return is_owner;
        #[cfg(not(feature = "before_pg17"))]
        return is_owner
            || pg_sys::pg_class_aclcheck(table, user, u64::from(pg_sys::ACL_MAINTAIN))
                == pg_sys::AclResult::ACLCHECK_OK;
    }
}

/// Sets a safe search_path for functions that run as another user, as PostgreSQL 17 and later do.
///
/// # Safety
/// At a nesting level of settings that the caller ends.
pub unsafe fn restrict_search_path() {
    #[cfg(not(feature = "before_pg17"))]
    // SAFETY: promised by the caller.
    unsafe {
        pg_sys::RestrictSearchPath()
    };
}

/// Whether rows that a snapshot sees may be removed, which a scan must notice
/// (`old_snapshot_threshold`, until 16).
pub fn may_snapshots_be_too_old() -> bool {
    crate::pg::call::guard::require_session();
    // SAFETY: reads a setting.
    #[cfg(feature = "before_pg17")]
    return unsafe { pg_sys::old_snapshot_threshold >= 0 };
    #[cfg(not(feature = "before_pg17"))]
    false
}

/// Whether a session has one lock of a page at most, even of those that are shared.
pub const LOCKS_A_PAGE_ONCE: bool = cfg!(not(feature = "before_pg19"));

/// # Safety
/// The descriptor must have as many, and stay as it is for `'a`.
pub unsafe fn attribute<'a>(
    descriptor: pg_sys::TupleDesc,
    i: usize,
) -> &'a pg_sys::FormData_pg_attribute {
    // SAFETY: promised by the caller; since version 18 the full rows come after the compact ones.
    unsafe {
        #[cfg(feature = "before_pg18")]
        return &*(*descriptor).attrs.as_ptr().add(i);
        #[cfg(not(feature = "before_pg18"))]
        {
            let compact = (*descriptor).compact_attrs.as_ptr();
            let rows: *const pg_sys::FormData_pg_attribute =
                compact.add((*descriptor).natts as usize).cast();
            &*rows.add(i)
        }
    }
}

/// Copies of all columns of a descriptor: PostgreSQL notes in its own where a row has a value.
///
/// # Safety
/// The descriptor must be there while the iterator is.
pub unsafe fn attributes(
    descriptor: pg_sys::TupleDesc,
) -> impl Iterator<Item = pg_sys::FormData_pg_attribute> {
    // SAFETY: promised by the caller; it has as many columns as it says.
    unsafe { (0..(*descriptor).natts as usize).map(move |i| *attribute(descriptor, i)) }
}

/// Locks a pinned page, for sharing or for changes. Before version 19 a process that has it locked
/// waits for itself.
///
/// # Safety
/// From version 19 on this process must have no lock of the page.
pub unsafe fn lock(buffer: pg_sys::Buffer, is_exclusive: bool) {
    #[cfg(feature = "before_pg19")]
    use pg_sys::{BUFFER_LOCK_EXCLUSIVE, BUFFER_LOCK_SHARE, LockBuffer};
    // Since version 19 LockBuffer is in the headers only.
    #[cfg(not(feature = "before_pg19"))]
    use pg_sys::{
        BufferLockMode::{BUFFER_LOCK_EXCLUSIVE, BUFFER_LOCK_SHARE},
        LockBufferInternal as LockBuffer,
    };
    let mode = if is_exclusive { BUFFER_LOCK_EXCLUSIVE } else { BUFFER_LOCK_SHARE };
    // SAFETY: promised by the caller.
    unsafe { LockBuffer(buffer, mode as _) };
}

/// # Safety
/// This process must have it.
pub unsafe fn unlock(buffer: pg_sys::Buffer) {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "before_pg19")]
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as _);
        #[cfg(not(feature = "before_pg19"))]
        pg_sys::UnlockBuffer(buffer);
    }
}

/// The description of an access method for its handler to return: version 19 keeps the pointer,
/// older ones free it.
pub fn returned(routine: &'static pg_sys::IndexAmRoutine) -> pg_sys::Datum {
    #[cfg(feature = "before_pg19")]
    return super::memory::copied(routine).into();
    #[cfg(not(feature = "before_pg19"))]
    std::ptr::from_ref(routine).into()
}

/// Counts a search of an index for EXPLAIN, which shows it from PostgreSQL 18 on.
///
/// # Safety
/// The scan must be one that was begun.
pub unsafe fn count_search(scan: pg_sys::IndexScanDesc) {
    #[cfg(feature = "before_pg18")]
    let _ = scan;
    #[cfg(not(feature = "before_pg18"))]
    // SAFETY: promised by the caller; null, or where EXPLAIN counts.
    if let Some(counts) = unsafe { (*scan).instrument.as_mut() } {
        counts.nsearches += 1;
    }
}

/// Whether EXPLAIN lets an extension say what the nodes of a plan did.
pub const EXPLAINS_SCANS: bool = cfg!(not(feature = "before_pg18"));

/// Lets the executor check no rights to the tables of a plan, as the planner does for what is below
/// a parent.
///
/// # Safety
/// The plan must be the planner's, and these its tables.
pub unsafe fn check_no_rights(
    plan: *mut pg_sys::PlannedStmt,
    tables: impl Iterator<Item = *mut pg_sys::Node>,
) {
    let tables = tables.map(|table| table.cast::<pg_sys::RangeTblEntry>());
    #[cfg(feature = "before_pg16")]
    let _rights_are_in_the_tables = plan;
    // SAFETY: promised by the caller.
    #[cfg(feature = "before_pg16")]
    tables.for_each(|table| unsafe { (*table).requiredPerms = 0 });
    // SAFETY: promised by the caller.
    #[cfg(not(feature = "before_pg16"))]
    unsafe {
        tables.for_each(|table| (*table).perminfoindex = 0);
        (*plan).permInfos = null_mut();
    }
}

/// Gives a query the rights that the parser noted with its tables, which the planner reads.
///
/// # Safety
/// Both must be the parser's.
pub unsafe fn take_rights(query: *mut pg_sys::Query, state: *mut pg_sys::ParseState) {
    #[cfg(feature = "before_pg16")]
    let _in_the_tables = (query, state);
    #[cfg(not(feature = "before_pg16"))]
    // SAFETY: promised by the caller.
    unsafe {
        (*query).rteperminfos = (*state).p_rteperminfos;
    }
}

/// Raises the executor's error unless the user may read these columns of a table.
///
/// # Safety
/// The item must be the parser's, in this state, and the set one of numbers as the parser notes
/// columns.
pub unsafe fn require_rights(
    state: *mut pg_sys::ParseState,
    item: *mut pg_sys::ParseNamespaceItem,
    columns: *mut pg_sys::Bitmapset,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let table = (*item).p_rte;
        let tables = pg_sys::lappend(null_mut(), table.cast());
        #[cfg(feature = "before_pg16")]
        {
            let _in_the_tables = state;
            (*table).selectedCols = columns;
            pg_sys::ExecCheckRTPerms(tables, true);
        }
        #[cfg(not(feature = "before_pg16"))]
        {
            (*(*item).p_perminfo).selectedCols = columns;
            pg_sys::ExecCheckPermissions(tables, (*state).p_rteperminfos, true);
        }
    }
}

/// # Safety
/// The query must be one that the parser could have made.
pub unsafe fn plan(query: *mut pg_sys::Query, text: &std::ffi::CStr) -> *mut pg_sys::PlannedStmt {
    use pg_sys::{ParamListInfo, PlannedStmt, Query};
    unsafe extern "C" {
        fn pg_plan_query(
            query: *mut Query,
            text: *const c_char,
            options: i32,
            parameters: ParamListInfo,
            #[cfg(not(feature = "before_pg19"))] explain: *mut c_void,
        ) -> *mut PlannedStmt;
    }
    let text = text.as_ptr();
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "before_pg19")]
        return guard(|| pg_plan_query(query, text, 0, null_mut()));
        #[cfg(not(feature = "before_pg19"))]
        return guard(|| pg_plan_query(query, text, 0, null_mut(), null_mut()));
    }
}

/// Runs a query that was started, to its end: PostgreSQL sends the rows to the receiver that the
/// query has.
///
/// # Safety
/// The query must be valid, started, and not run yet. The call must be within
/// [`crate::pg::call::guard::guard`].
pub unsafe fn executor_run(query: *mut pg_sys::QueryDesc) {
    unsafe extern "C" {
        fn ExecutorRun(
            query: *mut pg_sys::QueryDesc,
            direction: i32,
            most: u64,
            #[cfg(feature = "before_pg18")] is_once: bool,
        );
    }
    let forward = pg_sys::ScanDirection::ForwardScanDirection;
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "before_pg18")]
        ExecutorRun(query, forward, 0, true);
        #[cfg(not(feature = "before_pg18"))]
        ExecutorRun(query, forward, 0);
    }
}

/// The row that a datum is, as functions of PostgreSQL take one: since 18.7, 17.12, 16.16 and 15.20
/// they refuse one of a type that was altered since, and mark those that were stored before. The
/// server decides, not what the library was built for: an older one has no such function, and the
/// datum is the row.
///
/// # Safety
/// The datum must be a whole, aligned row.
pub unsafe fn row(datum: pg_sys::Datum) -> pg_sys::HeapTupleHeader {
    type Function = unsafe extern "C" fn(pg_sys::Datum) -> pg_sys::HeapTupleHeader;
    static FUNCTION: OnceLock<Option<Function>> = OnceLock::new();
    // SAFETY: PostgreSQL's function of this name has these arguments. The datum is promised by the
    // caller.
    unsafe {
        let find = || {
            transmute::<*mut c_void, Option<Function>>(libc::dlsym(
                libc::RTLD_DEFAULT,
                c"DatumGetHeapTupleHeader".as_ptr(),
            ))
        };
        match *FUNCTION.get_or_init(find) {
            Some(function) => guarded!(function(datum)),
            None => datum.cast_mut_ptr(),
        }
    }
}
