//! What PostgreSQL reports of changes of relations and operator classes, and of transactions that
//! fail, so that what a session remembers of them can be forgotten. That is no part of the call that may be under way,
//! whose memory is gone after a fatal error.

use crate::pg::call::guard::outside;
use crate::pg::version;
use pgrx::pg_sys::{self, SysCacheIdentifier};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// How often operator classes may have changed since [`version_of_classes`] was first called.
static CHANGES_OF_CLASSES: AtomicU64 = AtomicU64::new(0);
static WATCHES_CLASSES: AtomicBool = AtomicBool::new(false);

/// A number that is another one whenever a type's default operator class, or what is in it, may have
/// changed: classes, their operators and functions, and the casts by which types share them.
pub fn version_of_classes() -> u64 {
    if !WATCHES_CLASSES.swap(true, Ordering::Relaxed) {
        for cache in [
            SysCacheIdentifier::CLAOID,
            SysCacheIdentifier::AMOPSTRATEGY,
            SysCacheIdentifier::AMPROCNUM,
            SysCacheIdentifier::CASTSOURCETARGET,
        ] {
            // SAFETY: the callback takes nothing that must live.
            unsafe {
                pg_sys::CacheRegisterSyscacheCallback(
                    cache as _,
                    Some(classes_changed),
                    pg_sys::Datum::null(),
                )
            };
        }
    }
    known_version_of_classes()
}

/// What [`version_of_classes`] returns, once it was called.
#[inline(always)]
pub fn known_version_of_classes() -> u64 {
    CHANGES_OF_CLASSES.load(Ordering::Relaxed)
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn classes_changed(
    _nothing: pg_sys::Datum,
    _cache: version::CacheNumber,
    _hash: u32,
) {
    CHANGES_OF_CLASSES.fetch_add(1, Ordering::Relaxed);
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
