//! What PostgreSQL reports of transactions that fail.

use pgrx::pg_sys;
use std::ffi::c_void;

/// Calls this whenever a transaction of this session fails.
///
/// # Safety
/// It must not use PostgreSQL, which is cleaning up then.
pub unsafe fn watch_aborts(failed: fn()) {
    // SAFETY: the callback gets what it is registered with.
    unsafe { pg_sys::RegisterXactCallback(Some(transaction_ended), failed as *mut c_void) };
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn transaction_ended(event: pg_sys::XactEvent::Type, failed: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        // SAFETY: what `watch_aborts` was given.
        unsafe { std::mem::transmute::<*mut c_void, fn()>(failed)() };
    }
}
