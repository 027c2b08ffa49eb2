//! PostgreSQL's memory contexts, and Rust's own memory.
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

/// A memory context of PostgreSQL that exists for `'c`: memory that is freed as a whole when the
/// context ends.
#[derive(Clone, Copy)]
pub struct Context<'c>(pg_sys::MemoryContext, PhantomData<&'c ()>);

impl Context<'_> {
    /// Wraps a memory context.
    ///
    /// # Safety
    /// `context` must be a memory context that exists as long as the result or a copy of it is
    /// used.
    pub unsafe fn new(context: pg_sys::MemoryContext) -> Self {
        Context(context, PhantomData)
    }

    /// Returns PostgreSQL's own pointer.
    pub fn raw(self) -> pg_sys::MemoryContext {
        self.0
    }
}

/// The bytes of a cache line of the processor.
const CACHE_LINE_BYTES: usize = 64;

/// Allocates `len` bytes in a memory context, which are not written yet. Raises an error if there
/// is no memory, or for more than a gigabyte.
pub fn allocate(context: Context<'_>, len: usize) -> *mut u8 {
    // SAFETY: the context exists.
    unsafe { pg_sys::MemoryContextAlloc(context.raw(), len).cast() }
}

/// Returns a copy of a struct in the current memory context. Data to which the struct points isn't
/// copied. Raises an error if there is no memory.
pub fn copied<T: Copy>(thing: &T) -> *mut T {
    const { assert!(align_of::<T>() <= pg_sys::MAXIMUM_ALIGNOF as usize) };
    // SAFETY: the allocation has the size of the struct, and the greatest alignment that PostgreSQL
    // gives.
    unsafe {
        let copy: *mut T = pg_sys::palloc(size_of::<T>()).cast();
        copy.write(*thing);
        copy
    }
}

/// Allocates `len` bytes of which the byte at `prefix` begins a cache line. Returns the beginning
/// of the allocation, which is to be freed, and the first of the `len` bytes.
///
/// Raises an error if there is no memory, or for more than a gigabyte.
pub fn allocate_aligned(context: Context<'_>, len: usize, prefix: usize) -> (*mut u8, *mut u8) {
    let allocated = allocate(context, len.saturating_add(CACHE_LINE_BYTES));
    // Less than a cache line is skipped, so `len` bytes follow.
    let skipped = allocated.wrapping_add(prefix).align_offset(CACHE_LINE_BYTES);
    (allocated, allocated.wrapping_add(skipped))
}

/// Something that is dropped when its memory context ends, unless the process is ending.
#[repr(transparent)]
struct DroppedWithContext<T>(ManuallyDrop<T>);

impl<T> Drop for DroppedWithContext<T> {
    fn drop(&mut self) {
        if !is_process_ending() {
            // SAFETY: it is dropped only here.
            outside(|| unsafe { ManuallyDrop::drop(&mut self.0) });
        }
    }
}

/// Moves a thing into a memory context, which drops it when it ends. Returns a pointer to it.
#[allow(
    clippy::disallowed_methods,
    reason = "the thing borrows nothing that could end before the context"
)]
pub fn keep<T: 'static>(context: Context<'_>, thing: T) -> *mut T {
    PgMemoryContexts::For(context.raw())
        .leak_and_drop_on_delete(DroppedWithContext(ManuallyDrop::new(thing)))
        .cast()
}

/// Runs `body` with `context` as the current memory, and returns its result.
///
/// # Safety
/// What `body` allocates in the current memory must not be used after the context has ended.
pub unsafe fn in_context<T>(context: Context<'_>, body: impl FnOnce() -> T) -> T {
    // SAFETY: the context exists. After an error PostgreSQL sets the current memory itself.
    unsafe {
        let before = pg_sys::MemoryContextSwitchTo(context.raw());
        with_end(body, || pg_sys::MemoryContextSwitchTo(before))
    }
}

/// Runs `body` with a new memory context as the current memory, which is freed afterwards, and
/// returns its result. After an error PostgreSQL frees it.
///
/// # Safety
/// What `body` allocates in the current memory must not be used afterwards.
pub unsafe fn in_scratch<T: 'static>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the new context is a child of the current one, and `in_context` sets that back. The
    // caller promises that nothing in it is used after it is deleted.
    unsafe {
        let own = pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            c"pg_bloom scratch".as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        let result = in_context(Context::new(own), body);
        pg_sys::MemoryContextDelete(own);
        result
    }
}
