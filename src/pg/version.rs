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

/// Returns the name of the encoding with this number; empty if no encoding has the number.
pub fn encoding_name(encoding: i32) -> &'static str {
    #[cfg(feature = "before_pg17")]
    use pg_sys::pg_encoding_to_char;
    #[cfg(not(feature = "before_pg17"))]
    use pg_sys::pg_encoding_to_char_private as pg_encoding_to_char;
    // SAFETY: the function takes any number; names are static C strings.
    let name = unsafe { CStr::from_ptr(pg_encoding_to_char(encoding)) };
    name.to_str().unwrap_or_default()
}

/// Returns how many items an array is expected to have, as far as the planner can tell.
///
/// # Safety
/// `root` must be the root of a query that is being planned, and `array` an expression in the
/// query.
pub unsafe fn array_length(root: *mut pg_sys::PlannerInfo, array: *mut pg_sys::Node) -> f64 {
    #[cfg(feature = "before_pg17")]
    let _ = root;
    // SAFETY: the caller promises an expression of a query that is being planned.
    unsafe {
        #[cfg(feature = "before_pg17")]
        return pg_sys::estimate_array_length(array).into();
        #[cfg(not(feature = "before_pg17"))]
        return pg_sys::estimate_array_length(root, array);
    }
}

/// Returns a relation's file, and the subtransaction of this transaction in which the relation got
/// the file; 0 if that was before this transaction.
pub fn file(relation: &pg_sys::RelationData) -> (Locator, pg_sys::SubTransactionId) {
    #[cfg(feature = "before_pg16")]
    return (relation.rd_node, relation.rd_firstRelfilenodeSubid);
    #[cfg(not(feature = "before_pg16"))]
    return (relation.rd_locator, relation.rd_firstRelfilelocatorSubid);
}

/// Counts a scan of a relation in the statistics that this session will report.
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

/// Returns whether a user may maintain a table, for instance by VACUUM: the owner may and, from
/// PostgreSQL 17 on, each user with the right MAINTAIN.
pub fn may_maintain(table: Oid, user: Oid) -> bool {
    // SAFETY: the functions read the catalogs, and take any identifiers.
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

/// Sets a search_path without schemas that other users can write to, for functions that run as
/// another user. Does nothing before PostgreSQL 17, which has no such path.
///
/// # Safety
/// The caller must have begun a nesting level of settings, and must end it.
pub unsafe fn restrict_search_path() {
    #[cfg(not(feature = "before_pg17"))]
    // SAFETY: the setting ends with the nesting level, as the caller promises.
    unsafe {
        pg_sys::RestrictSearchPath()
    };
}

/// Returns whether VACUUM may remove rows that a snapshot sees, so that a scan must check the age
/// of its snapshot: whether `old_snapshot_threshold` is set, which exists before PostgreSQL 17.
/// Panics outside of a session's thread.
pub fn may_snapshots_be_too_old() -> bool {
    crate::pg::call::guard::require_session();
    // SAFETY: a setting is read in the session's thread.
    #[cfg(feature = "before_pg17")]
    return unsafe { pg_sys::old_snapshot_threshold >= 0 };
    #[cfg(not(feature = "before_pg17"))]
    false
}

/// Whether a session can have at most one lock of a page, even if all are share locks.
pub const LOCKS_A_PAGE_ONCE: bool = cfg!(not(feature = "before_pg19"));

/// Returns column `i` of a row descriptor, counted from 0, dropped columns included.
///
/// # Safety
/// The descriptor must have more than `i` columns, and stay as it is for `'a`.
pub unsafe fn attribute<'a>(
    descriptor: pg_sys::TupleDesc,
    i: usize,
) -> &'a pg_sys::FormData_pg_attribute {
    // SAFETY: the caller promises that there is such a column. Since version 18 the full rows
    // follow an array of compact ones.
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

/// Returns copies of all columns of a row descriptor, in their order, dropped ones included. They
/// are copies since PostgreSQL changes its own while it reads rows: it notes where a column begins.
///
/// # Safety
/// The descriptor must exist as long as the iterator.
pub unsafe fn attributes(
    descriptor: pg_sys::TupleDesc,
) -> impl Iterator<Item = pg_sys::FormData_pg_attribute> {
    // SAFETY: the caller promises the descriptor, which has `natts` columns.
    unsafe { (0..(*descriptor).natts as usize).map(move |i| *attribute(descriptor, i)) }
}

/// Locks a pinned page: exclusively, or as a share lock if `is_exclusive` is false. Waits until
/// other sessions allow it. Before version 19, a session that has locked the page waits for itself
/// forever.
///
/// # Safety
/// The page must be pinned. From version 19 on, this session must have no lock of the page.
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
    // SAFETY: the page is pinned and not locked yet, as the caller promises.
    unsafe { LockBuffer(buffer, mode as _) };
}

/// Gives back the lock of a page; the page stays pinned.
///
/// # Safety
/// This session must have the page locked.
pub unsafe fn unlock(buffer: pg_sys::Buffer) {
    // SAFETY: the page is locked by this session, as the caller promises.
    unsafe {
        #[cfg(feature = "before_pg19")]
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as _);
        #[cfg(not(feature = "before_pg19"))]
        pg_sys::UnlockBuffer(buffer);
    }
}

/// Returns the datum by which a handler function returns the description of its access method:
/// PostgreSQL 19 keeps a pointer to the description, and older versions free a copy.
pub fn returned(routine: &'static pg_sys::IndexAmRoutine) -> pg_sys::Datum {
    #[cfg(feature = "before_pg19")]
    return super::memory::copied(routine).into();
    #[cfg(not(feature = "before_pg19"))]
    std::ptr::from_ref(routine).into()
}

/// Begins a scan of an index of a table that finds where rows are, whether a snapshot sees them or
/// not. `num_keys` is the number of scan keys, the comparisons that `index_rescan` gets.
///
/// # Safety
/// Both relations must be open until `index_endscan`, and the scan must not read the rows.
pub unsafe fn begin_index_scan(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    num_keys: i32,
) -> pg_sys::IndexScanDesc {
    let snapshot = &raw mut pg_sys::SnapshotAnyData;
    // SAFETY: the caller promises open relations.
    unsafe {
        #[cfg(feature = "before_pg18")]
        return pg_sys::index_beginscan(table, index, snapshot, num_keys, 0);
        #[cfg(all(feature = "before_pg19", not(feature = "before_pg18")))]
        return pg_sys::index_beginscan(table, index, snapshot, null_mut(), num_keys, 0);
        #[cfg(not(feature = "before_pg19"))]
        return pg_sys::index_beginscan(table, index, snapshot, null_mut(), num_keys, 0, 0);
    }
}

/// Counts a search of an index for EXPLAIN, which shows it from PostgreSQL 18 on.
///
/// # Safety
/// The scan must have begun, and not ended.
pub unsafe fn count_search(scan: pg_sys::IndexScanDesc) {
    #[cfg(feature = "before_pg18")]
    let _ = scan;
    #[cfg(not(feature = "before_pg18"))]
    // SAFETY: the caller promises a scan, whose counters are null unless EXPLAIN counts.
    if let Some(counts) = unsafe { (*scan).instrument.as_mut() } {
        counts.nsearches += 1;
    }
}

/// Whether EXPLAIN lets an extension say what the nodes of a plan did.
pub const EXPLAINS_SCANS: bool = cfg!(not(feature = "before_pg18"));

/// Removes from a plan which rights to its tables the user needs, so that the executor checks none.
/// The planner does the same for tables below a parent, if the query names the parent.
///
/// # Safety
/// The plan must be the planner's, and `tables` all entries of its range table.
pub unsafe fn drop_required_rights(
    plan: *mut pg_sys::PlannedStmt,
    tables: impl Iterator<Item = *mut pg_sys::Node>,
) {
    // Before PostgreSQL 16 the rights are in the tables.
    #[cfg(feature = "before_pg16")]
    let _ = plan;
    // SAFETY: the caller promises the planner's nodes, each of which has the struct of its tag.
    unsafe {
        for table in tables {
            let table: *mut pg_sys::RangeTblEntry = table.cast();
            #[cfg(feature = "before_pg16")]
            {
                (*table).requiredPerms = 0;
            }
            #[cfg(not(feature = "before_pg16"))]
            {
                (*table).perminfoindex = 0;
            }
        }
        #[cfg(not(feature = "before_pg16"))]
        {
            (*plan).permInfos = null_mut();
        }
    }
}

/// Copies the rights that a query needs from the parser's state, which has noted them for each
/// table, into the query, where the planner reads them. Before PostgreSQL 16 they are in the
/// tables.
///
/// # Safety
/// The state must be the parser's, and the query be about tables that were added to the state.
pub unsafe fn take_rights(query: *mut pg_sys::Query, state: *mut pg_sys::ParseState) {
    #[cfg(feature = "before_pg16")]
    let _ = (query, state);
    #[cfg(not(feature = "before_pg16"))]
    // SAFETY: the caller promises valid structs of the parser.
    unsafe {
        (*query).rteperminfos = (*state).p_rteperminfos;
    }
}

/// Checks, by the executor's own function, in which other extensions take part, that the user may
/// read these columns of a table. Raises 42501 otherwise.
///
/// # Safety
/// The item must be a table that was added to the parser's state. The set must have the columns'
/// numbers as the parser notes them, minus `FirstLowInvalidHeapAttributeNumber`.
pub unsafe fn require_rights(
    state: *mut pg_sys::ParseState,
    item: *mut pg_sys::ParseNamespaceItem,
    columns: *mut pg_sys::Bitmapset,
) {
    // SAFETY: the caller promises valid structs of the parser, and a set of columns.
    unsafe {
        let table = (*item).p_rte;
        let tables = pg_sys::lappend(null_mut(), table.cast());
        #[cfg(feature = "before_pg16")]
        {
            // The rights are in the table, and not in the state.
            let _ = state;
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

/// Plans a query, as the server plans a client's. `text` stands for the text of the query in the
/// logs of other extensions. Raises the errors of planning. The query is changed and can't be used
/// again.
///
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
    // SAFETY: the query is one of the parser's, as the caller promises, and the text a C string.
    unsafe {
        #[cfg(feature = "before_pg19")]
        return guard(|| pg_plan_query(query, text, 0, null_mut()));
        #[cfg(not(feature = "before_pg19"))]
        return guard(|| pg_plan_query(query, text, 0, null_mut(), null_mut()));
    }
}

/// Executes a query to its end, after `ExecutorStart`. PostgreSQL sends the rows to the receiver
/// that the query has.
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
    // SAFETY: the caller promises a query that was started, and the guard around this call.
    unsafe {
        #[cfg(feature = "before_pg18")]
        ExecutorRun(query, forward, 0, true);
        #[cfg(not(feature = "before_pg18"))]
        ExecutorRun(query, forward, 0);
    }
}

/// Returns the header of a row (a composite value) that a function has got as a datum, as
/// PostgreSQL's own functions get it: in the datum itself, or in a copy of the row in the current
/// memory context.
///
/// From 18.7, 17.12, 16.16 and 15.20 on, the server has a function for that, which raises an error
/// for a row whose type was altered after the row was made. The library may run on an older or a
/// newer server than the one that it was built for, so the function is looked up by its name, once
/// in a process. A server without it takes rows as they are.
///
/// # Safety
/// The datum must be a whole, aligned row.
pub unsafe fn row_header(datum: pg_sys::Datum) -> pg_sys::HeapTupleHeader {
    type GetHeader = unsafe extern "C" fn(pg_sys::Datum) -> pg_sys::HeapTupleHeader;
    static SERVER_FUNCTION: OnceLock<Option<GetHeader>> = OnceLock::new();
    // SAFETY: PostgreSQL's function of this name has this argument. The caller promises a row.
    unsafe {
        let find_in_server = || {
            transmute::<*mut c_void, Option<GetHeader>>(libc::dlsym(
                libc::RTLD_DEFAULT,
                c"DatumGetHeapTupleHeader".as_ptr(),
            ))
        };
        match *SERVER_FUNCTION.get_or_init(find_in_server) {
            Some(get_header) => guarded!(get_header(datum)),
            None => datum.cast_mut_ptr(),
        }
    }
}
