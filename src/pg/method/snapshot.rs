//! What is visible to everybody who begins now.

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
    pub(in crate::pg) fn raw(&self) -> pg_sys::Snapshot {
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
