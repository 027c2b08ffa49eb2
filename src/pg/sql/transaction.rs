//! Subtransactions, snapshots, and what a transaction may do.

use crate::pg::call::error::Result;
use crate::pg::call::guard::{require_session, with_end};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How a subtransaction ends, and with what result.
pub enum Ending<T> {
    /// Its changes and locks are kept.
    Commit(T),
    /// Its changes are undone, and its locks are released.
    Rollback(T),
}

/// Runs `statements` in a subtransaction, while connected to the interface for statements, and
/// returns its result. `statements` decides how the subtransaction ends; if it fails or panics, the
/// subtransaction is rolled back.
///
/// Fails if `statements` fails.
///
/// # Safety
/// Nothing that `statements` opens may be left open, and nothing may be used afterwards that only
/// its locks protect.
#[allow(clippy::disallowed_methods, reason = "what is caught here is raised again")]
pub unsafe fn in_subtransaction<T>(statements: impl FnOnce() -> Result<Ending<T>>) -> Result<T> {
    // SAFETY: these are PostgreSQL's own steps for a block with exceptions in PL/pgSQL. The
    // subtransaction must be ended here after an error, too: if nobody ended it, PostgreSQL would
    // take it for a savepoint of the client.
    unsafe {
        let memory_before = pg_sys::CurrentMemoryContext;
        let owner_before = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::CurrentMemoryContext = memory_before;

        let result = catch_unwind(AssertUnwindSafe(statements));
        if matches!(result, Ok(Ok(Ending::Commit(_)))) {
            pg_sys::ReleaseCurrentSubTransaction();
        } else {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::CurrentMemoryContext = memory_before;
        pg_sys::CurrentResourceOwner = owner_before;

        match result.unwrap_or_else(|panic| resume_unwind(panic))? {
            Ending::Commit(value) | Ending::Rollback(value) => Ok(value),
        }
    }
}

/// Runs `statements` with a new active snapshot, and returns its result. The snapshot sees what the
/// transaction has done so far, and what is committed now; under REPEATABLE READ and SERIALIZABLE,
/// what was committed when the transaction began. A statement that is executed with
/// [`Sees::CallingQuery`](super::statement::Sees) uses this snapshot.
pub fn with_new_snapshot<T>(statements: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: a statement is running, so there is a transaction. After an error PostgreSQL removes
    // the snapshot itself.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        with_end(statements, || pg_sys::PopActiveSnapshot())
    }
}

/// Raises an error if the server is in recovery or the transaction may only read. `what` names what
/// is refused, as the name of a command would.
pub fn require_writable(what: &CStr) {
    // SAFETY: both functions raise an error or return.
    unsafe {
        pg_sys::PreventCommandDuringRecovery(what.as_ptr());
        pg_sys::PreventCommandIfReadOnly(what.as_ptr());
    }
}

/// Returns whether all queries of the transaction see what was committed when it began: its level
/// of isolation is REPEATABLE READ or SERIALIZABLE.
pub fn has_one_snapshot() -> bool {
    require_session();
    // SAFETY: this reads a variable of the session.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Returns whether the query's snapshot surely sees what a committed transaction wrote: all
/// transactions that were open when the snapshot was taken began later.
pub fn snapshot_is_after(transaction: u32) -> bool {
    let Some(snapshot) = snapshot() else {
        return false;
    };
    // SAFETY: an active snapshot is valid.
    let oldest_open = unsafe { (*snapshot).xmin }.into_inner();
    precedes(transaction, oldest_open)
}

/// Returns the snapshot of the query that calls the function, which exists as long as the call;
/// `None` outside of queries.
pub(in crate::pg) fn snapshot() -> Option<pg_sys::Snapshot> {
    // SAFETY: this reads variables of the session.
    unsafe {
        if pg_sys::ActiveSnapshotSet() {
            Some(pg_sys::GetActiveSnapshot())
        } else {
            None
        }
    }
}

/// Returns whether transaction `a` began before transaction `b`. Their numbers wrap around.
pub fn precedes(a: u32, b: u32) -> bool {
    // SAFETY: this compares numbers.
    unsafe { pg_sys::TransactionIdPrecedes(a.into(), b.into()) }
}
