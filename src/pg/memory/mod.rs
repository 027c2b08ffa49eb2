//! Memory for filters.
//!
//! | module | what it is for |
//! |---|---|
//! | [`reserve`] | Rust's own allocations, and memory for the error that says that there is none |
//! | [`temporary_file`] | a file that ends with a memory context |

pub mod reserve;
pub mod temporary_file;

use crate::pg::call::guard::{is_process_ending, outside, with_end};
use pgrx::{PgMemoryContexts, pg_sys};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// A memory context that is there for `'c`.
#[derive(Clone, Copy)]
pub struct Context<'c>(pg_sys::MemoryContext, PhantomData<&'c ()>);

impl Context<'_> {
    /// # Safety
    /// It must be a memory context that is there while this or a copy of it is in use.
    pub unsafe fn new(context: pg_sys::MemoryContext) -> Self {
        Context(context, PhantomData)
    }

    pub fn raw(self) -> pg_sys::MemoryContext {
        self.0
    }
}

/// Bytes.
const CACHE_LINE: usize = 64;

/// `len` bytes in a memory context, not written yet; more than a gigabyte is refused with an error.
pub fn allocate(context: Context<'_>, len: usize) -> *mut u8 {
    // SAFETY: the context is there; the function raises an error where there is no memory.
    unsafe { pg_sys::MemoryContextAlloc(context.raw(), len).cast() }
}

/// A copy of this, without what it points to, in the current memory.
pub fn copied<T: Copy>(thing: &T) -> *mut T {
    const { assert!(align_of::<T>() <= pg_sys::MAXIMUM_ALIGNOF as usize) };
    // SAFETY: new memory of the size of the copy, aligned for anything of PostgreSQL's.
    unsafe {
        let copy: *mut T = pg_sys::palloc(size_of::<T>()).cast();
        copy.write(*thing);
        copy
    }
}

/// Memory for `len` bytes, where the byte at `prefix` begins a cache line: what was allocated, and
/// the first byte.
pub fn allocate_aligned(context: Context<'_>, len: usize, prefix: usize) -> (*mut u8, *mut u8) {
    let memory = allocate(context, len.saturating_add(CACHE_LINE));
    // Less than an alignment from the start: `len` bytes follow it.
    (memory, memory.wrapping_add(memory.wrapping_add(prefix).align_offset(CACHE_LINE)))
}

/// What is dropped with a memory context, unless the process ends.
#[repr(transparent)]
struct Kept<T>(ManuallyDrop<T>);

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if !is_process_ending() {
            // SAFETY: dropped here only.
            outside(|| unsafe { ManuallyDrop::drop(&mut self.0) });
        }
    }
}

/// Keeps this until the memory context ends, which drops it.
#[allow(clippy::disallowed_methods, reason = "what it keeps borrows nothing")]
pub fn keep<T: 'static>(context: Context<'_>, thing: T) -> *mut T {
    PgMemoryContexts::For(context.raw())
        .leak_and_drop_on_delete(Kept(ManuallyDrop::new(thing)))
        .cast()
}

/// Runs `work` with its memory coming from `context`.
///
/// # Safety
/// What `work` makes in the current memory must not be used when the context has ended.
pub unsafe fn in_context<T>(context: Context<'_>, work: impl FnOnce() -> T) -> T {
    // SAFETY: the context is there. After an error PostgreSQL sets the context itself.
    unsafe {
        let before = pg_sys::MemoryContextSwitchTo(context.raw());
        with_end(work, || pg_sys::MemoryContextSwitchTo(before))
    }
}

/// Runs `work` in memory of its own, which is freed at the end; after an error PostgreSQL does
/// that.
///
/// # Safety
/// What `work` makes in the current memory must not be used afterwards.
pub unsafe fn in_scratch<T: 'static>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the context is a child of the current one, which is restored; the caller promises the
    // rest.
    unsafe {
        let own = pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            c"pg_bloom scratch".as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        let result = in_context(Context::new(own), work);
        pg_sys::MemoryContextDelete(own);
        result
    }
}
