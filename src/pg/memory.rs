//! Memory for filters.
//!
//! Each element touches a random cache line of its filter, so a filter of many megabytes costs a miss of the page table
//! an element as well, which can take longer than the miss of the cache. Large allocations therefore ask the kernel for
//! huge pages, of 2 MB where others have 4 kB. Where it gives them only on request, a probe of 12 MB took 7 % less
//! time.

use pgrx::pg_sys;

/// Allocations from this many bytes on ask for huge pages.
const LARGE_BYTES: usize = 4 << 20;
/// What the kernel's advice must be aligned to, at least.
const PAGE_BYTES: usize = 4 << 10;
/// Bytes of a huge page on most CPUs.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Bytes of a cache line.
const CACHE_LINE_BYTES: usize = 64;

/// `len` bytes in a memory context, not written yet; more than a gigabyte is refused with an error.
pub fn allocate(context: pg_sys::MemoryContext, len: usize) -> *mut u8 {
    // SAFETY: the context is there, as everywhere in this folder; the function raises an error where there is no
    // memory.
    let pointer: *mut u8 = unsafe { pg_sys::MemoryContextAlloc(context, len).cast() };
    prefer_huge_pages(pointer, len);
    pointer
}

/// Memory for `len` bytes of which those from `prefix` on are to be on cache lines of their own, and on huge pages if
/// they are many: what was allocated, and the first of the bytes.
pub fn allocate_aligned(context: pg_sys::MemoryContext, len: usize, prefix: usize) -> (*mut u8, *mut u8) {
    let is_large = len >= LARGE_BYTES;
    let alignment = if is_large { HUGE_PAGE_BYTES } else { CACHE_LINE_BYTES };
    let room = prefix + alignment + (len - prefix).next_multiple_of(alignment);
    // SAFETY: as in `allocate`; the first byte is less than an alignment from the start, and `len` bytes follow it.
    unsafe {
        let memory: *mut u8 = pg_sys::MemoryContextAlloc(context, room).cast();
        let first = memory.add(memory.wrapping_add(prefix).align_offset(alignment));
        prefer_huge_pages(first.add(prefix), (len - prefix).next_multiple_of(alignment));
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

/// Asks for huge pages behind these bytes, if they are many. They take no more memory than bytes that are all written
/// to.
#[cfg(target_os = "linux")]
pub fn prefer_huge_pages(pointer: *mut u8, len: usize) {
    if len < LARGE_BYTES {
        return;
    }
    let skip = pointer.align_offset(PAGE_BYTES);
    let whole_pages = (len - skip) / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: whole pages within the allocation; the advice doesn't change what is in them. Where the kernel has no
    // such pages or larger ones, it says so and does nothing: nothing depends on it.
    unsafe { libc::madvise(pointer.add(skip).cast(), whole_pages, libc::MADV_HUGEPAGE) };
}

/// Elsewhere the kernel decides.
#[cfg(not(target_os = "linux"))]
pub fn prefer_huge_pages(_pointer: *mut u8, _len: usize) {}
