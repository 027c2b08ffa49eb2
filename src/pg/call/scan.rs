//! The sequential scan that evaluates a call.
//!
//! A function isn't told by which node of a plan it is called. Three facts lead to a scan:
//!
//! - The executor keeps the state of a query, call sites included, in one memory context, which
//!   ends with the query.
//! - When it has prepared a query, [`start_query`] leaves a [`QueryNote`] in that memory, which has
//!   the plan's sequential scans. A call site finds the note in the list of callbacks that each
//!   memory context has.
//! - A condition of a scan is an expression that the plan's node points to. If the call evaluates
//!   it, the call site points to the same expression.
//!
//! ```text
//! FmgrInfo of the call site ── fn_mcxt ──▶ memory of the query ── reset_cbs ──▶ QueryNote
//!        │ fn_expr                                                                │ scans
//!        ▼                                                                        ▼
//! seen @> url  ◀── qual ── SeqScan of table 1 ◀── plan ── SeqScanState of table 1 ◀── …
//! ```
//!
//! So what a call site remembers of a scan ends together with the scan, and is of the same
//! execution: a recursive function executes one plan several times at once, each time with memory
//! and call sites of its own.

use super::Call;
use super::guard::{Entry, guard, raw};
use super::nodes::{argument, column, items};
use crate::pg::version;
use pgrx::pg_sys::{self, NodeTag};
use std::cell::OnceCell;
use std::ffi::c_void;

session_locals! {
    /// What another library has PostgreSQL call when a query starts.
    static NEXT_HOOK: OnceCell<pg_sys::ExecutorStart_hook_type> = const { OnceCell::new() };
}

/// A note in the memory of a query that is being executed: its sequential scans.
#[repr(C)]
struct QueryNote {
    /// A callback that does nothing, and by which the note is found. It is the first field, so that
    /// both have the same address.
    callback: pg_sys::MemoryContextCallback,
    /// The scans by the numbers of their tables in the plan, which scans each of its tables once;
    /// null for a table without a sequential scan. The first number is 1, the last one `tables`.
    scans: *mut *mut pg_sys::ScanState,
    tables: usize,
}

/// Returns the argument of the callbacks of notes, which tells them from the callbacks of others: an
/// address that nobody else has.
fn argument_of_notes() -> *mut c_void {
    static ADDRESS: u8 = 0;
    (&raw const ADDRESS).cast_mut().cast()
}

/// Has calls find their scans, in queries that start from now on. Panics the second time: this
/// library would then call itself as its next hook.
pub fn define() {
    // SAFETY: the session's hook; the one that was set before is called by ours.
    unsafe {
        NEXT_HOOK
            .with(|next| next.set(pg_sys::ExecutorStart_hook))
            .expect("defined once");
        pg_sys::ExecutorStart_hook = Some(start_query);
    }
}

/// Prepares a query for execution, as PostgreSQL or another library's hook does, and then notes the
/// query's sequential scans, if its plan may call functions of extensions.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn start_query(query: *mut pg_sys::QueryDesc, flags: i32) {
    // SAFETY: PostgreSQL calls this with a query that is to be prepared. Preparing sets its state,
    // unless another library's hook does something else.
    unsafe { Entry::new() }.run(|| unsafe {
        match NEXT_HOOK.with(|next| next.get().copied().flatten()) {
            Some(next) => guarded!(next(query, flags)),
            None => guard(|| raw::standard_ExecutorStart(query, flags)),
        }

        let is_prepared = !(*query).planstate.is_null();
        if is_prepared && may_call_extension((*query).plannedstmt) {
            leave_note((*query).planstate);
        }
    });
}

/// Returns whether a plan may call functions of extensions. A plan lists the functions on which it
/// depends, except for PostgreSQL's own; in a parallel worker the list is missing.
///
/// # Safety
/// The plan must be valid.
unsafe fn may_call_extension(plan: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: the caller promises a plan; the number of a worker is a variable of the session.
    unsafe {
        let is_worker = pg_sys::ParallelWorkerNumber >= 0;
        is_worker || !(*plan).invalItems.is_null()
    }
}

/// Leaves a note of all sequential scans of a query in the memory context of its execution, so that
/// a function that the query calls finds the scan whose row it gets: see [`find_note`]. `root` is
/// the topmost node of the query's plan.
///
/// A memory context has no field for notes of extensions, but a list of callbacks. So the note
/// begins with a callback, which does nothing, and is registered in that list. It ends with the
/// context.
///
/// # Safety
/// The plan's state must be that of a query that has just been prepared.
unsafe fn leave_note(root: *mut pg_sys::PlanState) {
    // SAFETY: the note and its list are in the query's memory, and so end with the list of
    // callbacks. `add_scan` owns nothing and can't panic.
    unsafe {
        let query = (*root).state;
        let memory = (*query).es_query_cxt;
        let tables = (*query).es_range_table_size as usize;
        // Tables are numbered from 1; place 0 stays empty.
        let bytes_of_scans = (tables + 1) * size_of::<*mut pg_sys::ScanState>();

        let note: *mut QueryNote =
            pg_sys::MemoryContextAllocZero(memory, size_of::<QueryNote>()).cast();
        (*note).tables = tables;
        (*note).scans = pg_sys::MemoryContextAllocZero(memory, bytes_of_scans).cast();
        guard(|| add_scan(root, note.cast()));

        (*note).callback.func = Some(do_nothing);
        (*note).callback.arg = argument_of_notes();
        pg_sys::MemoryContextRegisterResetCallback(memory, &raw mut (*note).callback);
    }
}

/// Adds a node of a plan to a note if it is a sequential scan, and then those below it. Returns
/// false, by which PostgreSQL goes on.
unsafe extern "C" fn add_scan(node: *mut pg_sys::PlanState, note: *mut c_void) -> bool {
    // SAFETY: PostgreSQL passes a valid node, and the note that `leave_note` made.
    unsafe {
        if (*node).type_ == NodeTag::T_SeqScanState {
            let table = (*(*node).plan.cast::<pg_sys::Scan>()).scanrelid as usize;
            let noted: *mut QueryNote = note.cast();
            if table <= (*noted).tables {
                *(*noted).scans.add(table) = node.cast();
            }
        }
        raw::planstate_tree_walker(node, add_scan, note)
    }
}

unsafe extern "C-unwind" fn do_nothing(_mark: *mut c_void) {}

/// Returns the list of a query's sequential scans that [`leave_note`] has left in the memory context
/// of the query's execution. Returns `None` for another memory context, and for that of a query
/// without such a note.
///
/// The note is one of the callbacks that the context has: the one with [`argument_of_notes`].
///
/// # Safety
/// The memory context must be valid.
unsafe fn find_note(memory: pg_sys::MemoryContext) -> Option<*mut QueryNote> {
    // SAFETY: a memory context has a linked list of its callbacks. Only `leave_note` registers such
    // with this argument, and each is the first field of a note.
    unsafe {
        let mut callback = (*memory).reset_cbs;
        while !callback.is_null() {
            if (*callback).arg == argument_of_notes() {
                let note: *mut QueryNote = callback.cast();
                return Some(note);
            }
            callback = (*callback).next;
        }
    }
    None
}

/// A sequential scan that PostgreSQL is executing.
#[derive(Clone, Copy)]
pub struct SequentialScan {
    state: *mut pg_sys::ScanState,
}

/// A column of the table that a sequential scan reads.
#[derive(Clone, Copy)]
pub struct ScannedColumn {
    pub scan: SequentialScan,
    /// The number of the column in the table, counted from 1.
    pub number: usize,
}

impl ScannedColumn {
    /// Returns the table's column that argument `i` of a call is, and the sequential scan that
    /// reads the table, if the scan evaluates the call for each row: `WHERE f(column, 5)`.
    ///
    /// Returns `None` if the argument isn't a plain column, if another argument depends on a
    /// column, or if the call isn't a condition of WHERE, alone or in AND, OR and NOT. Also returns
    /// `None` for other scans, and in queries that started before [`define`] was called.
    ///
    /// # Safety
    /// The result must only be used during calls of this call site, and be kept no longer than what
    /// the call site remembers.
    pub unsafe fn of_argument(call: &Call, i: usize) -> Option<ScannedColumn> {
        let expression = call.expression()?;
        let memory = call.site_context().ok()?.raw();
        // SAFETY: the expression is the one that is being executed, and the memory the call site's.
        // If a query left a note in it, its plan is there too.
        unsafe {
            if !matches!((*expression).type_, NodeTag::T_OpExpr | NodeTag::T_FuncExpr) {
                return None;
            }
            let column = column(argument(expression, i)?)?;
            let table = usize::try_from((*column).varno).ok()?;
            let number = usize::try_from((*column).varattno).ok()?;
            if number == 0 || has_other_columns(expression, i) {
                return None;
            }

            // The call site is in the memory of its query, where `leave_note` has noted all scans.
            let note = &*find_note(memory)?;
            if table > note.tables {
                return None;
            }
            let state = *note.scans.add(table);
            if state.is_null() {
                return None;
            }
            // The call must be a part of the scan's own conditions, not of a node above the scan.
            let conditions = (*(*state).ps.plan).qual;
            let is_condition = items(conditions).any(|condition| contains(condition, expression));
            is_condition.then_some(ScannedColumn { scan: SequentialScan { state }, number })
        }
    }
}

/// Returns whether an argument of a call other than argument `i` has a column in it.
///
/// # Safety
/// The call must be a valid expression.
unsafe fn has_other_columns(call: *mut pg_sys::Node, i: usize) -> bool {
    // SAFETY: the caller promises an expression.
    unsafe {
        (0..)
            .map_while(|other| argument(call, other).map(|node| (other, node)))
            .any(|(other, node)| other != i && pg_sys::contain_var_clause(node))
    }
}

/// Returns whether a condition is this expression, or has it within AND, OR and NOT.
///
/// # Safety
/// The condition must be a valid expression.
unsafe fn contains(condition: *mut pg_sys::Node, expression: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller promises an expression; the node is read as what its tag says.
    unsafe {
        if (*condition).type_ == NodeTag::T_BoolExpr {
            let parts = (*condition.cast::<pg_sys::BoolExpr>()).args;
            return items(parts).any(|part| contains(part, expression));
        }
        condition == expression
    }
}

impl SequentialScan {
    fn table(self) -> pg_sys::Relation {
        // SAFETY: the scan is being executed, as the caller of `of_argument` promised, and so its
        // table is open.
        unsafe { (*self.state).ss_currentRelation }
    }

    /// Returns whether the table has PostgreSQL's own access method, `heap`.
    pub fn is_of_heap(self) -> bool {
        // SAFETY: the table is open.
        unsafe { std::ptr::eq((*self.table()).rd_tableam, pg_sys::GetHeapamTableAmRoutine()) }
    }

    /// Returns the columns of the table, also those that were dropped.
    pub fn columns(self) -> impl Iterator<Item = pg_sys::FormData_pg_attribute> {
        // SAFETY: the table is open, and locked against changes of its columns.
        unsafe { version::attributes((*self.table()).rd_att) }
    }

    /// Returns where the access method keeps the progress of the scan. It is null before the first
    /// row.
    #[inline(always)]
    pub fn progress(self) -> pg_sys::TableScanDesc {
        // SAFETY: the scan is being executed, as the caller of `of_argument` promised.
        unsafe { (*self.state).ss_currentScanDesc }
    }
}
