//! Memory for the error that says that there is none.
//!
//! pgrx turns an error of PostgreSQL into a panic, and copies it for that into the current memory context. A context
//! that has grown takes its next block of a megabyte or more; if the copy fails for lack of that, so does the copy of
//! *that* error, until PostgreSQL's stack of errors is full, which ends the server. So each session has a reserve,
//! which it gives back to the system when an error is raised for lack of memory, before that error is copied. Where
//! there is no memory for the reserve, no function of the extension starts. The reserve is never written to, so it
//! takes address space only.

use pgrx::{PgSqlErrorCode, pg_sys};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Three blocks: a large memory context tries 8, 4, 2 and 1 megabytes, and an error may be copied for several callers.
const RESERVE: Layout = Layout::new::<[u8; 7 << 20]>();

static MEMORY: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Holds the reserve ready while PostgreSQL is in a function of the extension.
pub struct Ready {
    callback: pg_sys::ErrorContextCallback,
}

/// Takes the callback away again.
pub struct Entered(*mut pg_sys::ErrorContextCallback);

impl Ready {
    /// Not yet entered.
    #[inline(always)]
    pub fn new() -> Ready {
        let callback =
            pg_sys::ErrorContextCallback { previous: std::ptr::null_mut(), callback: None, arg: std::ptr::null_mut() };
        Ready { callback }
    }

    /// From now on, until the result is dropped, which must be before `self` is. Raises 53200 without a reserve.
    ///
    /// # Safety
    /// Both must be variables of one frame on the stack, in this order.
    #[inline(always)]
    pub unsafe fn enter(&mut self) -> Entered {
        if MEMORY.load(Ordering::Relaxed).is_null() {
            take();
        }
        self.callback.callback = Some(give_back);
        // SAFETY: PostgreSQL's list of callbacks is linked through frames of the stack; by the caller's promise this
        // frame takes itself out when it ends. After an error PostgreSQL sets the list itself.
        unsafe {
            self.callback.previous = pg_sys::error_context_stack;
            pg_sys::error_context_stack = &mut self.callback;
        }
        Entered(self.callback.previous)
    }
}

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: what was there before, whose frame is below this one.
        unsafe { pg_sys::error_context_stack = self.0 };
    }
}

/// Gets the reserve, or raises the error for lack of memory.
#[cold]
fn take() {
    // SAFETY: the layout has a size.
    let memory = unsafe { System.alloc(RESERVE) };
    if memory.is_null() {
        let detail = format!("Failed on request of size {}.", RESERVE.size());
        pgrx::ereport!(ERROR, PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, "out of memory", detail);
    }
    MEMORY.store(memory, Ordering::Relaxed);
}

/// Called by PostgreSQL for each message, also of warnings, while it is being made.
unsafe extern "C-unwind" fn give_back(_: *mut std::ffi::c_void) {
    // SAFETY: a message is being made.
    if unsafe { pg_sys::geterrcode() } != pg_sys::errcodes::PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32 {
        return;
    }
    let memory = MEMORY.swap(std::ptr::null_mut(), Ordering::Relaxed);
    if !memory.is_null() {
        // SAFETY: from this allocator, with this layout, and no longer known to anybody.
        unsafe { System.dealloc(memory, RESERVE) };
    }
}
