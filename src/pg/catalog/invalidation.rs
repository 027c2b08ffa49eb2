//! What PostgreSQL reports of changes of relations, and of transactions that fail, so that what a
//! session remembers of them can be forgotten. That is no part of the call that may be under way,
//! whose memory is gone after a fatal error.

use crate::pg::call::guard::outside;
use pgrx::pg_sys;
use std::ffi::c_void;

/// Calls `changed` with the identifier of each relation whose definition changed, or an invalid one
/// when any may have.
///
/// # Safety
/// It must not use PostgreSQL, which may be reading catalogs then.
pub unsafe fn watch_relations(changed: fn(pg_sys::Oid)) {
    // SAFETY: the callback gets what it is registered with.
    unsafe {
        pg_sys::CacheRegisterRelcacheCallback(
            Some(relation_changed),
            pg_sys::Datum::from(changed as usize),
        )
    };
}

/// Has all sessions plan their statements about a table again, once this transaction is committed.
pub fn plan_again(table: pg_sys::Oid) {
    // SAFETY: raises an error for a table that isn't there.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(table) };
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn relation_changed(changed: pg_sys::Datum, relation: pg_sys::Oid) {
    // SAFETY: what `watch_relations` registered.
    let changed: fn(pg_sys::Oid) = unsafe { std::mem::transmute(changed.value()) };
    outside(|| changed(relation));
}

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
        let failed: fn() = unsafe { std::mem::transmute::<*mut c_void, fn()>(failed) };
        outside(failed);
    }
}
