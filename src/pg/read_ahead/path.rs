//! The planner's side: which scans are worth reading ahead.

use super::methods;
use super::parts::{called, column};
use super::plan::{self, Chosen};
use super::provider::{self, Provider, provider};
use super::scan_paths;
use crate::pg::call::nodes::{items, nth};
use pgrx::pg_sys::{self, NodeTag};
use std::ffi::CStr;

/// Rows of a table from which on it is worth it.
const LEAST_ROWS: f64 = 10_000.0;
/// Bytes of a constant from which on it doesn't fit into the cache that is next to the processor.
const LEAST_BYTES: usize = 1 << 20;
/// What is left of the cost of reading a row: enough to be chosen instead of the plain scan, and no more.
const SHARE: f64 = 0.999;

/// Reads ahead for these conditions from now on: called once, when the library is loaded.
pub fn define(who: Provider) {
    provider::set(who);
    methods::register();
    scan_paths::define(add_paths);
}

unsafe fn add_paths(_root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo, entry: *mut pg_sys::RangeTblEntry) {
    // SAFETY: the planner's, of a plain table.
    unsafe {
        let is_wanted = || provider().is_some_and(|provider| (provider.is_wanted)());
        if (*rel).tuples < LEAST_ROWS || !is_wanted() {
            return;
        }
        let Some(chosen) = worthy_restriction(&*rel) else { return };
        if !is_heap((*entry).relid) {
            return;
        }
        if let Some(scan) = sequential_scan((*rel).pathlist) {
            pg_sys::add_path(rel, path(scan, chosen));
        }
        if let Some(scan) = sequential_scan((*rel).partial_pathlist) {
            pg_sys::add_partial_path(rel, path(scan, chosen));
        }
    }
}

/// Whether the table's rows are where PostgreSQL itself keeps them.
unsafe fn is_heap(table: pg_sys::Oid) -> bool {
    // SAFETY: the planner has the table locked.
    unsafe {
        let table = pg_sys::table_open(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        let is_heap = std::ptr::eq((*table).rd_tableam, pg_sys::GetHeapamTableAmRoutine());
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        is_heap
    }
}

/// The plain sequential scan among paths. It isn't there if another one is cheaper.
unsafe fn sequential_scan(paths: *mut pg_sys::List) -> Option<*mut pg_sys::Path> {
    // SAFETY: a list of paths.
    unsafe {
        items(paths).map(|path| path.cast::<pg_sys::Path>()).find(|&path| {
            (*path).type_ == NodeTag::T_Path
                && (*path).pathtype == NodeTag::T_SeqScan
                && (*path).param_info.is_null()
                && (*path).pathkeys.is_null()
        })
    }
}

/// A path that reads ahead, in place of a scan.
unsafe fn path(scan: *mut pg_sys::Path, chosen: Chosen) -> *mut pg_sys::Path {
    // SAFETY: memory for a path, all of whose fields may be zero at first.
    unsafe {
        let path: *mut pg_sys::CustomPath = pg_sys::palloc0(size_of::<pg_sys::CustomPath>()).cast();
        (*path).path = *scan;
        (*path).path.type_ = NodeTag::T_CustomPath;
        (*path).path.pathtype = NodeTag::T_CustomScan;
        (*path).path.total_cost = (*scan).startup_cost + ((*scan).total_cost - (*scan).startup_cost) * SHARE;
        (*path).flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        (*path).custom_private = plan::chosen_list(chosen);
        (*path).methods = plan::methods();
        path.cast()
    }
}

/// A restriction of the table that is worth it, if all of them may be asked of rows ahead of time.
unsafe fn worthy_restriction(rel: &pg_sys::RelOptInfo) -> Option<Chosen> {
    let is_worthy = |restriction: *mut pg_sys::RestrictInfo| {
        // SAFETY: a restriction of the table. One that is behind a security barrier would be asked before that.
        unsafe {
            if (*restriction).pseudoconstant || (*restriction).security_level > rel.baserestrict_min_security {
                return None;
            }
            let (condition, fixed) = condition((*restriction).clause.cast(), rel.relid)?;
            is_worthy(fixed).then_some(Chosen { restriction, condition })
        }
    };
    // SAFETY: a list of restrictions.
    let is_volatile = |restriction: *mut pg_sys::RestrictInfo| unsafe {
        pg_sys::contain_volatile_functions((*restriction).clause.cast())
    };
    // SAFETY: as above.
    let each = || unsafe { items(rel.baserestrictinfo) }.map(|item| item.cast::<pg_sys::RestrictInfo>());
    each().find_map(is_worthy).filter(|_| !each().any(is_volatile))
}

/// Whether an argument may be large, and is the same for the whole scan.
unsafe fn is_worthy(fixed: *mut pg_sys::Node) -> bool {
    // SAFETY: an expression; a constant that is not NULL is of variable length, as the functions are declared.
    unsafe {
        if (*fixed).type_ == NodeTag::T_Const {
            let constant: *mut pg_sys::Const = fixed.cast();
            return !(*constant).constisnull && pg_sys::toast_raw_datum_size((*constant).constvalue) >= LEAST_BYTES;
        }
        !pg_sys::contain_var_clause(fixed) && !pg_sys::contain_subplans(fixed)
    }
}

/// What a call asks, if that is a condition on a column of this table: which one of the provider's, and its fixed
/// argument.
unsafe fn condition(clause: *mut pg_sys::Node, table: pg_sys::Index) -> Option<(usize, *mut pg_sys::Node)> {
    // SAFETY: an expression.
    unsafe {
        let called = called(clause)?;
        let which = condition_of_function(called.function)?;
        let fixed = provider()?.conditions[which].fixed;
        let column = column(nth(called.arguments, 1 - fixed)?)?;
        let is_of_table = i64::from((*column).varno) == i64::from(table) && (*column).varlevelsup == 0;
        (is_of_table && (*column).varattno > 0).then_some((which, nth(called.arguments, fixed)?))
    }
}

/// Which condition a SQL function is. Only of functions with likely names the C function is looked up.
fn condition_of_function(function: pg_sys::Oid) -> Option<usize> {
    let provider = provider()?;
    // SAFETY: the name is null or a C string; the function exists, as it has a name.
    unsafe {
        let name = pg_sys::get_func_name(function);
        if name.is_null() {
            return None;
        }
        let name = CStr::from_ptr(name).to_bytes();
        if !provider.names.iter().any(|start| name.starts_with(start.as_bytes())) {
            return None;
        }
        let mut info = pg_sys::FmgrInfo::default();
        pg_sys::fmgr_info(function, &mut info);
        provider.conditions.iter().position(|condition| condition.is(&info))
    }
}
