//! Reports of PostgreSQL that a relation or an operator class has changed or that a transaction has
//! failed, so that a session can forget what it keeps about these.
//!
//! A report may come while a call of the extension is under way, but isn't part of the call: after
//! a fatal error, the memory of the call is gone.

use crate::pg::call::guard::outside;
use crate::pg::version;
use pgrx::pg_sys::{self, SysCacheIdentifier};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Has `changed` called, as long as the process lives, with the identifier of each relation whose
/// definition has changed, and with the invalid identifier when any relation may have changed.
///
/// # Safety
/// `changed` must not call PostgreSQL, which may be reading catalogs at that time.
pub unsafe fn watch_relations(changed: fn(pg_sys::Oid)) {
    // SAFETY: the callback gets the function with which it is registered here.
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

/// Returns a number that grows whenever the default operator class of a type may have changed, or
/// an operator or function of a class, or a cast by which a type uses the class of another type.
/// The first call begins to watch these.
pub fn version_of_classes() -> u64 {
    if !WATCHES_CLASSES.swap(true, Ordering::Relaxed) {
        for cache in [
            SysCacheIdentifier::CLAOID,
            SysCacheIdentifier::AMOPSTRATEGY,
            SysCacheIdentifier::AMPROCNUM,
            SysCacheIdentifier::CASTSOURCETARGET,
        ] {
            // SAFETY: the callback uses none of its arguments.
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

/// Returns the same number as [`version_of_classes`], which must have been called before, without
/// checking whether it was.
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
    // SAFETY: the function takes any identifier, and raises an error for one that isn't a table's.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(table) };
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn relation_changed(changed: pg_sys::Datum, relation: pg_sys::Oid) {
    // SAFETY: `watch_relations` has registered a function of this type.
    let changed: fn(pg_sys::Oid) = unsafe { std::mem::transmute(changed.value()) };
    outside(|| changed(relation));
}

/// Has `failed` called, as long as the process lives, whenever a transaction of this session fails.
///
/// # Safety
/// `failed` must not call PostgreSQL, which is cleaning up at that time.
pub unsafe fn watch_aborts(failed: fn()) {
    // SAFETY: the callback gets the function with which it is registered here.
    unsafe { pg_sys::RegisterXactCallback(Some(transaction_ended), failed as *mut c_void) };
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn transaction_ended(event: pg_sys::XactEvent::Type, failed: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        // SAFETY: `watch_aborts` has registered a function of this type.
        let failed: fn() = unsafe { std::mem::transmute::<*mut c_void, fn()>(failed) };
        outside(failed);
    }
}
