//! What PostgreSQL tells of changes of objects and of transactions that fail.

use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::c_void;

/// An object was created.
type Created = fn();
/// An object was altered: its catalog and its identifier.
type Altered = fn(pg_sys::Oid, pg_sys::Oid);

thread_local! {
    static CREATED: Cell<Option<Created>> = const { Cell::new(None) };
    static ALTERED: Cell<Option<Altered>> = const { Cell::new(None) };
    /// Who is told next.
    static NEXT: Cell<pg_sys::object_access_hook_type> = const { Cell::new(None) };
}

/// Calls this whenever a transaction of this session fails.
pub fn watch_aborts(told: fn()) {
    // SAFETY: the callback gets what it is registered with.
    unsafe { pg_sys::RegisterXactCallback(Some(transaction_ended), told as *mut c_void) };
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn transaction_ended(event: pg_sys::XactEvent::Type, told: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        // SAFETY: what `watch_aborts` was given.
        unsafe { std::mem::transmute::<*mut c_void, fn()>(told)() };
    }
}

/// Calls these in this session whenever an object was created or altered.
pub fn watch_objects(created: Option<Created>, altered: Option<Altered>) {
    CREATED.set(created);
    ALTERED.set(altered);
    // SAFETY: set once, when the library is loaded; whoever was there before is called too.
    unsafe {
        NEXT.set(pg_sys::object_access_hook);
        pg_sys::object_access_hook = Some(access);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    part: i32,
    argument: *mut c_void,
) {
    if let Some(next) = NEXT.get() {
        // SAFETY: called as PostgreSQL called us.
        unsafe { next(access, class, object, part, argument) };
    }
    match access {
        pg_sys::ObjectAccessType::OAT_POST_CREATE => CREATED.get().iter().for_each(|told| told()),
        pg_sys::ObjectAccessType::OAT_POST_ALTER => ALTERED.get().iter().for_each(|told| told(class, object)),
        _ => {}
    }
}
