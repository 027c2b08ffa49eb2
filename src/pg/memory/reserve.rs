//! What is there when no memory is left: a reserve for Rust's own memory, and one for the error
//! that says so.
//!
//! # Rust's own memory
//!
//! What grows with filters comes from PostgreSQL's memory or from [`pg_bloom_core::memory`], and
//! fails with an error. That leaves names, messages, and the errors themselves. Where Rust gets no
//! memory for these, it ends the process, and with it all sessions; an allocator may neither unwind
//! nor jump. So small requests that the system refuses are served from a reserve: enough to say
//! that there is no memory. It takes address space only, until it is used.
//!
//! # The error
//!
//! pgrx turns an error of PostgreSQL into a panic, and copies it for that into the current memory
//! context. A context that has grown takes its next block of a megabyte or more; if the copy fails
//! for lack of that, so does the copy of *that* error, until PostgreSQL's stack of errors is full,
//! which ends the server. So each session has a reserve that is never written to, and gives it back
//! to the system when an error is raised for lack of memory, before that error is copied. Without
//! memory for the reserve, no function of the extension starts.

use pgrx::{PgSqlErrorCode, pg_sys};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

const RESERVE: usize = 1 << 20;
/// Bytes of the largest request that is served from the reserve.
const SMALL: usize = 64 << 10;

/// The system's allocator, and a reserve, which is all free again once none of it is in use.
struct Reserving {
    reserve: UnsafeCell<[u8; RESERVE]>,
    /// Bytes handed out, in the lower half; allocations in use, in the upper. One number, so that
    /// both change at once.
    state: AtomicUsize,
}

/// One allocation in use.
const ONE: usize = 1 << 32;

#[global_allocator]
static ALLOCATOR: Reserving = Reserving {
    reserve: UnsafeCell::new([0; RESERVE]),
    state: AtomicUsize::new(0),
};

// SAFETY: parts of the reserve are handed out through the atomic state, each to one owner.
unsafe impl Sync for Reserving {}

impl Reserving {
    /// Memory from the reserve; null if the request is too large or nothing is left.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        let base: *mut u8 = self.reserve.get().cast();
        if layout.size() > SMALL {
            return std::ptr::null_mut();
        }
        let end_of = |state: usize| {
            let used = state % ONE;
            let start = used + base.wrapping_add(used).align_offset(layout.align());
            start.checked_add(layout.size()).filter(|&end| end <= RESERVE)
        };
        let next = |state: usize| Some((state / ONE + 1) * ONE + end_of(state)?);
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        let end = before.ok().and_then(end_of);
        end.map_or(std::ptr::null_mut(), |end| base.wrapping_add(end - layout.size()))
    }

    fn is_reserve(&self, pointer: *mut u8) -> bool {
        let base = self.reserve.get() as usize;
        (base..base + RESERVE).contains(&(pointer as usize))
    }

    /// Takes back an allocation; with the last one, all of the reserve is free again.
    #[cold]
    fn give_back(&self) {
        let back = |state: usize| if state / ONE == 1 { 0 } else { state - ONE };
        // Never an error: every state has one after it.
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| Some(back(state)))
            .ok();
    }
}

// SAFETY: memory is the system's or one owner's part of the reserve, as its address tells, aligned
// and large enough.
unsafe impl GlobalAlloc for Reserving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the system's allocator.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { self.take(layout) } else { memory }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if self.is_reserve(pointer) {
            self.give_back();
        } else {
            // SAFETY: it came from the system's allocator, with this layout.
            unsafe { System.dealloc(pointer, layout) };
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.is_reserve(pointer) {
            // SAFETY: it came from the system's allocator, with this layout.
            let memory = unsafe { System.realloc(pointer, layout, size) };
            if !memory.is_null() {
                return memory;
            }
        }
        // SAFETY: the caller promises that the new size is possible with this alignment; both
        // places have as many bytes as are copied, and the old one is given back only once there is
        // a new one.
        unsafe {
            let memory = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !memory.is_null() {
                std::ptr::copy_nonoverlapping(pointer, memory, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            memory
        }
    }
}

/// Three blocks: a large memory context tries 8, 4, 2 and 1 megabytes, and an error may be copied
/// for several callers.
const FOR_ERRORS: Layout = Layout::new::<[u8; 7 << 20]>();

static MEMORY: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Has the reserve ready for errors: PostgreSQL must know of [`give_back`] then. Raises 53200
/// without a reserve.
#[inline(always)]
pub fn require() {
    if MEMORY.load(Ordering::Relaxed).is_null() {
        take();
    }
}

#[cold]
fn take() {
    // SAFETY: the layout has a size.
    let memory = unsafe { System.alloc(FOR_ERRORS) };
    if memory.is_null() {
        let detail = format!("Failed on request of size {}.", FOR_ERRORS.size());
        pgrx::ereport!(ERROR, PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, "out of memory", detail);
    }
    MEMORY.store(memory, Ordering::Relaxed);
}

/// Called by PostgreSQL for each message, also of warnings, while it is being made.
pub(in crate::pg) unsafe extern "C-unwind" fn give_back(_: *mut std::ffi::c_void) {
    // SAFETY: a message is being made.
    if unsafe { pg_sys::geterrcode() }
        != pg_sys::errcodes::PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32
    {
        return;
    }
    let memory = MEMORY.swap(std::ptr::null_mut(), Ordering::Relaxed);
    if !memory.is_null() {
        // SAFETY: from this allocator, with this layout, and no longer known to anybody.
        unsafe { System.dealloc(memory, FOR_ERRORS) };
    }
}
