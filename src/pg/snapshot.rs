//! What is visible: to everybody who begins now, to a function that changes tables, to the query that calls one.

use pgrx::pg_sys;

/// A snapshot that is kept while it is in use.
pub struct Latest(pg_sys::Snapshot);

impl Latest {
    /// Takes one.
    pub fn take() -> Latest {
        // SAFETY: there is a transaction, since a statement is running.
        Latest(unsafe { pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot()) })
    }

    /// What PostgreSQL calls it.
    pub(super) fn raw(&self) -> pg_sys::Snapshot {
        self.0
    }
}

impl Drop for Latest {
    fn drop(&mut self) {
        // After an error PostgreSQL gives it back itself.
        if !std::thread::panicking() {
            // SAFETY: registered by `take`, once.
            unsafe { pg_sys::UnregisterSnapshot(self.0) };
        }
    }
}

/// Runs `work` with a snapshot that has everything committed so far (in REPEATABLE READ: when the transaction began)
/// and what the transaction did itself before. Afterwards others see what `work` did, as after a statement.
pub fn with_latest<T>(work: impl FnOnce(pg_sys::Snapshot) -> T) -> T {
    // SAFETY: within a transaction. After an error PostgreSQL removes the snapshot.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let result = work(pg_sys::GetActiveSnapshot());
        pg_sys::PopActiveSnapshot();
        pg_sys::CommandCounterIncrement();
        result
    }
}

/// Runs `work` with the snapshot of the query that calls the function.
pub fn with_current<T>(work: impl FnOnce(pg_sys::Snapshot) -> T) -> T {
    // SAFETY: within a transaction, as in `with_latest`.
    unsafe {
        if pg_sys::ActiveSnapshotSet() {
            return work(pg_sys::GetActiveSnapshot());
        }
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let result = work(pg_sys::GetActiveSnapshot());
        pg_sys::PopActiveSnapshot();
        result
    }
}

/// Whether the transaction keeps the snapshot that it began with: REPEATABLE READ and SERIALIZABLE.
pub fn is_of_transaction() -> bool {
    // SAFETY: reads a global of the process.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}
