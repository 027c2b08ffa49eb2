//! The planner's side: which scans are worth reading ahead, and from a path to a plan.

use super::condition;
use super::scan;
use crate::pg::call::guard::Entry;
use crate::pg::call::nodes::{column, items, length, nth};
use crate::settings;
use pgrx::pg_sys::{self, NodeTag};
use std::cell::OnceCell;
use std::ptr::null_mut;

/// Rows of a table from which on it is worth it.
const LEAST_ROWS: f64 = 10_000.0;
/// Bytes of a constant filter from which on it doesn't fit into the cache that is next to the
/// processor.
const LEAST_BYTES: usize = 1 << 20;
/// What is left of the cost of reading a row: enough to be chosen instead of the plain scan, and no
/// more.
const SHARE: f64 = 0.999;

const METHODS: &pg_sys::CustomPathMethods = &pg_sys::CustomPathMethods {
    CustomName: scan::NAME.as_ptr(),
    PlanCustomPath: Some(plan),
    ReparameterizeCustomPathByChild: None,
};

session_locals! {
    static NEXT: OnceCell<pg_sys::set_rel_pathlist_hook_type> = const { OnceCell::new() };
}

/// Lets sequential scans read ahead from now on. Panics the second time: this library would be its
/// own `NEXT`.
pub fn define() {
    // SAFETY: the library that was there before is called too; the methods stay where they are.
    unsafe {
        // Parallel workers are given plans by name.
        pg_sys::RegisterCustomScanMethods(scan::METHODS);
        NEXT.with(|next| next.set(pg_sys::set_rel_pathlist_hook))
            .expect("defined once");
        pg_sys::set_rel_pathlist_hook = Some(add_paths);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn add_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    number: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: PostgreSQL calls this with the relation that it plans.
    unsafe { Entry::new() }.run(|| unsafe {
        if let Some(next) = NEXT.with(|next| next.get().copied().flatten()) {
            guarded!(next(root, rel, number, entry));
        }
        let (scan, partial) =
            (sequential_scan((*rel).pathlist), sequential_scan((*rel).partial_pathlist));
        if (*rel).tuples < LEAST_ROWS || scan.or(partial).is_none() || !settings::READ_AHEAD.get() {
            return;
        }
        let Some(chosen) = worthy_restriction(root, &*rel) else {
            return;
        };
        if let Some(scan) = scan {
            pg_sys::add_path(rel, path(scan, chosen));
        }
        if let Some(partial) = partial {
            pg_sys::add_partial_path(rel, path(partial, chosen));
        }
    });
}

/// The plain sequential scan among paths, unless another one is cheaper. Only tables and partitions
/// have one: samples, parents of other tables and all else that a query names have paths of other
/// kinds.
unsafe fn sequential_scan(paths: *mut pg_sys::List) -> Option<*mut pg_sys::Path> {
    // SAFETY: a list of paths.
    unsafe {
        items(paths).map(|path| path.cast::<pg_sys::Path>()).find(|&path| {
            (*path).type_ == NodeTag::T_Path
                && (*path).pathtype == NodeTag::T_SeqScan
                && (*path).param_info.is_null()
        })
    }
}

/// A path that reads ahead, in place of a scan.
unsafe fn path(scan: *mut pg_sys::Path, chosen: *mut pg_sys::List) -> *mut pg_sys::Path {
    // SAFETY: memory for a path, all of whose fields may be zero at first.
    unsafe {
        let path: *mut pg_sys::CustomPath = pg_sys::palloc0(size_of::<pg_sys::CustomPath>()).cast();
        (*path).path = *scan;
        (*path).path.type_ = NodeTag::T_CustomPath;
        (*path).path.pathtype = NodeTag::T_CustomScan;
        (*path).path.total_cost =
            (*scan).startup_cost + ((*scan).total_cost - (*scan).startup_cost) * SHARE;
        (*path).flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        (*path).custom_private = chosen;
        (*path).methods = METHODS;
        path.cast()
    }
}

/// A restriction of the table that is worth it, if all of them may be evaluated for rows ahead of
/// time.
unsafe fn worthy_restriction(
    root: *mut pg_sys::PlannerInfo,
    rel: &pg_sys::RelOptInfo,
) -> Option<*mut pg_sys::List> {
    // SAFETY: a list of restrictions of the table. One behind a security barrier would be evaluated
    // before that.
    unsafe {
        let each = || items(rel.baserestrictinfo).map(|item| item.cast::<pg_sys::RestrictInfo>());
        let worthy = each().find_map(|restriction| {
            if (*restriction).pseudoconstant
                || (*restriction).security_level > rel.baserestrict_min_security
            {
                return None;
            }
            let clause: *mut pg_sys::Node = (*restriction).clause.cast();
            let number = condition::number(clause)?;
            let (filter, element) = condition::sides(clause, number);
            // Evaluating a column or the whole row can't fail.
            let is_safe = column(element).is_some()
                || !pg_sys::contain_subplans(element) && is_read_to_end(root);
            (is_safe && is_worthy(filter)).then(|| {
                let number: *mut pg_sys::Integer = pg_sys::makeInteger(number as i32);
                pg_sys::lappend(pg_sys::lappend(null_mut(), restriction.cast()), number.cast())
            })
        });
        worthy.filter(|_| {
            !each().any(|other| pg_sys::contain_volatile_functions((*other).clause.cast()))
        })
    }
}

/// Whether a filter may be large, and is the same for the whole scan.
unsafe fn is_worthy(filter: *mut pg_sys::Node) -> bool {
    // SAFETY: an expression; a constant that is not NULL is of variable length, as the functions
    // are declared.
    unsafe {
        if (*filter).type_ == NodeTag::T_Const {
            let constant: *mut pg_sys::Const = filter.cast();
            return !(*constant).constisnull
                && pg_sys::toast_raw_datum_size((*constant).constvalue) >= LEAST_BYTES;
        }
        !pg_sys::contain_var_clause(filter) && !pg_sys::contain_subplans(filter)
    }
}

/// Whether all rows of this query's only table will be read, so that an expression that fails fails
/// the query anyway.
unsafe fn is_read_to_end(mut root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: the planner's state of a query, and those of the queries around it.
    unsafe {
        while !root.is_null() {
            let query = &*(*root).parse;
            if pg_sys::bms_num_members((*root).all_baserels) > 1 {
                return false;
            }
            if query.hasAggs || !query.groupClause.is_null() {
                return true;
            }
            if (*root).tuple_fraction > 0.0 || !query.limitCount.is_null() {
                return false;
            }
            root = (*root).parent_root;
        }
    }
    true
}

/// The plan of a path; `clauses` are the restrictions in the order in which PostgreSQL evaluates
/// them.
///
/// A column can't fail as an element, nor can probing for it. Of the conditions before it, those
/// that may fail are evaluated after it, since no one may ever ask for a row that was read ahead.
/// Any other element may fail unless the conditions before it protect it: all of them are evaluated
/// before it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn plan(
    _root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: PostgreSQL calls this with a path of this library; the plan is memory for one, and
    // its fields may be zero at first.
    unsafe { Entry::new() }.run(|| unsafe {
        let part = |i| nth((*path).custom_private, i).expect("a path has what was chosen");
        let ours: *mut pg_sys::RestrictInfo = part(0).cast();
        let number = (*part(1).cast::<pg_sys::Integer>()).ival;
        let (_, element) = condition::sides((*ours).clause.cast(), number as usize);
        let is_column = column(element).is_some();
        let (mut before, mut after, mut is_after) = (null_mut(), null_mut(), false);
        for restriction in items(clauses).map(|item| item.cast::<pg_sys::RestrictInfo>()) {
            let clause = (*restriction).clause;
            if restriction == ours {
                is_after = true;
            } else if (*restriction).pseudoconstant {
                continue;
            } else if is_after || is_column && pg_sys::contain_leaked_vars(clause.cast()) {
                after = pg_sys::lappend(after, clause.cast());
            } else {
                before = pg_sys::lappend(before, clause.cast());
            }
        }
        assert!(is_after, "restrictions of a table are those of its paths");
        let scan: *mut pg_sys::CustomScan = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast();
        (*scan).scan.plan.type_ = NodeTag::T_CustomScan;
        (*scan).scan.plan.targetlist = targets;
        let before_ours = pg_sys::lappend_int(null_mut(), length(before) as i32);
        (*scan).custom_private = pg_sys::lappend_int(before_ours, number);
        (*scan).scan.plan.qual = pg_sys::list_concat(before, after);
        (*scan).scan.scanrelid = (*rel).relid;
        (*scan).flags = (*path).flags;
        (*scan).custom_exprs = pg_sys::lappend(null_mut(), (*ours).clause.cast());
        (*scan).methods = scan::METHODS;
        scan.cast()
    })
}
