//! Two reserves for the moment when there is no memory left: one for Rust's own allocations, and
//! one for the error that says so.
//!
//! # Rust's own allocations
//!
//! Memory whose size depends on data comes from PostgreSQL or from [`pg_bloom_core::memory`], and
//! its lack is an error. Other allocations are small: names, messages, errors themselves. If Rust
//! gets no memory for them, it ends the process, and PostgreSQL then restarts all sessions; an
//! allocator may neither unwind nor jump. So small requests that the system refuses are served from
//! a reserve that is large enough to report the error. It takes only address space until it is
//! used.
//!
//! # The error
//!
//! pgrx turns an error of PostgreSQL into a panic, for which it copies the error into the current
//! memory context. A context that has grown takes its next block of a megabyte or more. If the copy
//! fails for lack of memory, so does the copy of *that* error, and so on, until PostgreSQL's stack
//! of errors is full and the server ends. So each session keeps a block of memory that is never
//! written to. When an error is raised for lack of memory, the block is returned to the system
//! before that error is copied. If the block can't be allocated, no function of the extension
//! starts.

use pgrx::{PgSqlErrorCode, pg_sys};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The bytes of the reserve for Rust's own allocations.
const RESERVE_BYTES: usize = 1 << 20;
/// The bytes of the largest request that is served from the reserve.
const MOST_BYTES_OF_REQUEST: usize = 64 << 10;

/// The system's allocator, with a reserve.
///
/// Allocations are taken from the reserve one after the other. It can't be used again piece by
/// piece, but as a whole: once no allocation of it is in use.
struct ReservingAllocator {
    reserve: UnsafeCell<[u8; RESERVE_BYTES]>,
    /// A [`ReserveState`] as one number, so that both of its fields change at once.
    state: AtomicUsize,
}

/// How the reserve is used.
#[derive(Clone, Copy)]
struct ReserveState {
    /// How many bytes from the first one on were handed out.
    used_bytes: usize,
    /// How many allocations are in use.
    allocations: usize,
}

impl ReserveState {
    /// The allocations are above these bits.
    const BITS_OF_BYTES: u32 = 32;

    fn from_number(number: usize) -> ReserveState {
        ReserveState {
            used_bytes: number & ((1 << ReserveState::BITS_OF_BYTES) - 1),
            allocations: number >> ReserveState::BITS_OF_BYTES,
        }
    }

    fn to_number(self) -> usize {
        self.allocations << ReserveState::BITS_OF_BYTES | self.used_bytes
    }
}

#[global_allocator]
static ALLOCATOR: ReservingAllocator = ReservingAllocator {
    reserve: UnsafeCell::new([0; RESERVE_BYTES]),
    state: AtomicUsize::new(0),
};

// SAFETY: the atomic state hands out each part of the reserve to one owner.
unsafe impl Sync for ReservingAllocator {}

impl ReservingAllocator {
    /// Returns memory for an allocation from the reserve, a megabyte that is there for the moment
    /// when the system gives none; null if the request is over 64 kB, or if too little of the
    /// reserve is left. Takes no lock: the state of the reserve is one atomic number.
    #[cold]
    fn take_from_reserve(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MOST_BYTES_OF_REQUEST {
            return std::ptr::null_mut();
        }
        let base: *mut u8 = self.reserve.get().cast();
        loop {
            let number = self.state.load(Ordering::Acquire);
            let state = ReserveState::from_number(number);
            let padding = base.wrapping_add(state.used_bytes).align_offset(layout.align());
            let start = state.used_bytes.saturating_add(padding);
            let end = start.saturating_add(layout.size());
            if end > RESERVE_BYTES {
                return std::ptr::null_mut();
            }

            let next = ReserveState { used_bytes: end, allocations: state.allocations + 1 };
            // Another thread may have changed the state in the meantime: then it is tried again.
            let exchanged = self.state.compare_exchange(
                number,
                next.to_number(),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if exchanged.is_ok() {
                return base.wrapping_add(start);
            }
        }
    }

    /// Returns whether memory is a part of the reserve.
    fn is_of_reserve(&self, pointer: *mut u8) -> bool {
        let base = self.reserve.get() as usize;
        (base..base + RESERVE_BYTES).contains(&(pointer as usize))
    }

    /// Notes that an allocation of the reserve was freed. Its bytes can't be used again by
    /// themselves; when the last allocation is freed, the whole reserve can.
    #[cold]
    fn return_to_reserve(&self) {
        let after_return = |number| {
            let state = ReserveState::from_number(number);
            let allocations = state.allocations - 1;
            let used_bytes = if allocations == 0 { 0 } else { state.used_bytes };
            Some(ReserveState { used_bytes, allocations }.to_number())
        };
        // This can't fail: every state has one after it.
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, after_return)
            .ok();
    }
}

// SAFETY: memory comes from the system's allocator, or is a part of the reserve that one owner has,
// aligned and large enough. Its address tells which.
unsafe impl GlobalAlloc for ReservingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the system's allocator.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { self.take_from_reserve(layout) } else { memory }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if self.is_of_reserve(pointer) {
            self.return_to_reserve();
        } else {
            // SAFETY: it came from the system's allocator, with this layout.
            unsafe { System.dealloc(pointer, layout) };
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.is_of_reserve(pointer) {
            // SAFETY: it came from the system's allocator, with this layout.
            let memory = unsafe { System.realloc(pointer, layout, size) };
            if !memory.is_null() {
                return memory;
            }
        }
        // The system has no memory, or the allocation is a part of the reserve: it is copied to a
        // new place.
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

/// The memory that each session keeps for errors: three blocks of a large memory context, which
/// tries 8, 4, 2 and 1 megabytes, since an error may be copied for several callers.
const FOR_ERRORS: Layout = Layout::new::<[u8; 7 << 20]>();

/// The memory for errors; null if there is none, or if it was returned to the system.
static MEMORY_FOR_ERRORS: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Makes sure that the session has memory for errors. While this is so, [`give_back`] must be
/// registered with PostgreSQL. Raises 53200 if the memory can't be allocated.
#[inline(always)]
pub fn require() {
    if MEMORY_FOR_ERRORS.load(Ordering::Relaxed).is_null() {
        allocate_for_errors();
    }
}

#[cold]
fn allocate_for_errors() {
    // SAFETY: the layout has a size.
    let memory = unsafe { System.alloc(FOR_ERRORS) };
    if memory.is_null() {
        let detail = format!("Failed on request of size {}.", FOR_ERRORS.size());
        pgrx::ereport!(ERROR, PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, "out of memory", detail);
    }
    MEMORY_FOR_ERRORS.store(memory, Ordering::Relaxed);
}

/// Frees the block of memory that the session keeps for errors, if the message that PostgreSQL is
/// making is an error for lack of memory: the error can then be copied. PostgreSQL calls this for
/// each message, as a callback of its error context. Does nothing if the block is freed already.
pub(in crate::pg) unsafe extern "C-unwind" fn give_back(_: *mut std::ffi::c_void) {
    // SAFETY: PostgreSQL calls this while it makes a message.
    let code = unsafe { pg_sys::geterrcode() };
    if code != PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32 {
        return;
    }
    let memory = MEMORY_FOR_ERRORS.swap(std::ptr::null_mut(), Ordering::Relaxed);
    if !memory.is_null() {
        // SAFETY: the memory came from this allocator with this layout, and nothing else points to
        // it any more.
        unsafe { System.dealloc(memory, FOR_ERRORS) };
    }
}
