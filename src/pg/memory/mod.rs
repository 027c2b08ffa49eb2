//! Memory for filters.
//!
//! | module | what it is for |
//! |---|---|
//! | [`allocator`] | Rust's own allocations |
//! | [`reserve`] | memory for the error that says that there is none |
//! | [`temporary_file`] | a file that ends with a memory context |

pub mod allocator;
pub mod reserve;
pub mod temporary_file;

use pgrx::pg_sys;

/// Bytes of a cache line, which a processor reads at once.
pub const CACHE_LINE: usize = 64;

/// `len` bytes in a memory context, not written yet; more than a gigabyte is refused with an error.
pub fn allocate(context: pg_sys::MemoryContext, len: usize) -> *mut u8 {
    // SAFETY: the context is there, as everywhere in this folder; the function raises an error where there is no
    // memory.
    unsafe { pg_sys::MemoryContextAlloc(context, len).cast() }
}

/// Memory for `len` bytes, where the byte at `prefix` begins a cache line: what was allocated, and the first byte.
pub fn allocate_aligned(context: pg_sys::MemoryContext, len: usize, prefix: usize) -> (*mut u8, *mut u8) {
    // SAFETY: as in `allocate`; the first byte is less than an alignment from the start, and `len` bytes follow it.
    unsafe {
        let memory: *mut u8 = pg_sys::MemoryContextAlloc(context, len + CACHE_LINE).cast();
        let first = memory.add(memory.wrapping_add(prefix).align_offset(CACHE_LINE));
        (memory, first)
    }
}

/// Runs `work` with its memory coming from `context`.
///
/// # Safety
/// `context` must be a memory context that is there.
pub unsafe fn in_context<T>(context: pg_sys::MemoryContext, work: impl FnOnce() -> T) -> T {
    // SAFETY: promised by the caller. After an error PostgreSQL sets the context itself.
    unsafe {
        let before = pg_sys::MemoryContextSwitchTo(context);
        let result = work();
        pg_sys::MemoryContextSwitchTo(before);
        result
    }
}

/// Memory of its own while this is there: what is allocated in the current context is freed with it.
pub struct Scratch {
    own: pg_sys::MemoryContext,
    before: pg_sys::MemoryContext,
}

impl Scratch {
    /// From now on.
    pub fn new() -> Scratch {
        // SAFETY: a context below the current one, which becomes the current one.
        unsafe {
            let before = pg_sys::CurrentMemoryContext;
            let own = pg_sys::AllocSetContextCreateInternal(
                before,
                c"pg_bloom scratch".as_ptr(),
                pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            pg_sys::MemoryContextSwitchTo(own);
            Scratch { own, before }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After an error PostgreSQL frees it with the context above.
        if !std::thread::panicking() {
            // SAFETY: made by `new`, and nothing in it is used any more.
            unsafe {
                pg_sys::MemoryContextSwitchTo(self.before);
                pg_sys::MemoryContextDelete(self.own);
            }
        }
    }
}
