//! Further ways to scan a table, for the planner to choose from.

use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

/// Adds paths to those that PostgreSQL found for a plain table with conditions.
///
/// # Safety
/// All are what the planner passes to `set_rel_pathlist_hook`.
pub type Adder = unsafe fn(*mut pg_sys::PlannerInfo, *mut pg_sys::RelOptInfo, *mut pg_sys::RangeTblEntry);

thread_local! {
    static ADDERS: RefCell<Vec<Adder>> = const { RefCell::new(Vec::new()) };
    /// Which other library is asked before.
    static NEXT: Cell<pg_sys::set_rel_pathlist_hook_type> = const { Cell::new(None) };
}

/// Asks this one from now on as well: called when the library is loaded.
pub fn define(adder: Adder) {
    ADDERS.with_borrow_mut(|adders| {
        if adders.is_empty() {
            // SAFETY: whoever was there before is called too.
            unsafe {
                NEXT.set(pg_sys::set_rel_pathlist_hook);
                pg_sys::set_rel_pathlist_hook = Some(add_paths);
            }
        }
        adders.push(adder);
    });
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn add_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    number: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: called as PostgreSQL called us, with the table that it plans.
    unsafe {
        if let Some(next) = NEXT.get() {
            guarded!(next(root, rel, number, entry));
        }
        if is_plain_table(&*rel, &*entry) {
            ADDERS.with_borrow(|adders| adders.iter().for_each(|add| add(root, rel, entry)));
        }
    }
}

/// Whether this is a table with conditions, or a partition, that may be scanned as it is: no parent of others, which
/// shows the indexes of its partitions, and no sample.
fn is_plain_table(rel: &pg_sys::RelOptInfo, entry: &pg_sys::RangeTblEntry) -> bool {
    matches!(rel.reloptkind, pg_sys::RelOptKind::RELOPT_BASEREL | pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL)
        && entry.rtekind == pg_sys::RTEKind::RTE_RELATION
        && matches!(entry.relkind as u8, b'r' | b'm')
        && !entry.inh
        && entry.tablesample.is_null()
        && !rel.baserestrictinfo.is_null()
}
