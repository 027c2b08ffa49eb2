//! What an aggregate's state has in a memory context: the payload of a filter that is being built,
//! and lists that grow.
//!
//! ```text
//! | unused | memory | length | block 0 | block 1 | …
//!                            ▲ a cache line begins
//! ```
//!
//! In a stored value blocks begin where the header ends, and nearly always lie on two cache lines
//! each. While bits are set each is on one: half as many misses. The payload is copied behind its
//! header when the filter is finished.

use super::tag::ALIGNMENT;
use crate::pg::call::{Call, Result};
use crate::pg::memory::{self, Context};
use pg_bloom_core::filter::merging::List;
use pg_bloom_core::interrupt;
use pgrx::pg_sys;
use std::ops::{Deref, DerefMut};

/// The memory of an aggregate, for what its states have. Errors: 55000 outside an aggregate.
pub fn aggregate_memory(call: &Call) -> Result<Context<'static>> {
    // SAFETY: states are gone with it, and what they have is used by nobody else.
    Ok(unsafe { Context::new(call.require_aggregate()?.raw()) })
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Prefix {
    memory: *mut u8,
    len: usize,
}

/// A payload, which lives until it is freed.
pub struct Payload {
    first: *mut u8,
}

impl Payload {
    pub fn zeroed_in(context: Context<'static>, len: usize) -> Payload {
        let (memory, prefix) = memory::allocate_aligned(
            context,
            len.saturating_add(size_of::<Prefix>()),
            size_of::<Prefix>(),
        );
        // SAFETY: the allocation has room for the prefix and, on a cache line of its own, `len`
        // bytes.
        unsafe {
            prefix.cast::<Prefix>().write(Prefix { memory, len });
            let first = prefix.add(size_of::<Prefix>());
            interrupt::write_zeros(std::slice::from_raw_parts_mut(first.cast(), len));
            Payload { first }
        }
    }

    #[inline(always)]
    fn prefix(&self) -> Prefix {
        // SAFETY: it was written when the payload was made.
        unsafe { *self.first.sub(size_of::<Prefix>()).cast() }
    }

    pub fn free(self) {
        // SAFETY: what `zeroed_in` got from palloc, and this was its only owner.
        unsafe { pg_sys::pfree(self.prefix().memory.cast()) };
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: as many bytes were written, and the payload is borrowed.
        unsafe { std::slice::from_raw_parts(self.first, self.prefix().len) }
    }
}

impl DerefMut for Payload {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and the payload is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.prefix().len) }
    }
}

/// Items, which live until they are freed. Nothing is dropped, so no item may need it.
pub struct PgList<T> {
    context: Context<'static>,
    /// Dangling as long as there is no room.
    items: *mut T,
    len: usize,
    room: usize,
}

impl<T> PgList<T> {
    pub fn new_in(context: Context<'static>, room: usize) -> PgList<T> {
        const { assert!(!std::mem::needs_drop::<T>() && align_of::<T>() <= ALIGNMENT) };
        let mut list = PgList { context, items: std::ptr::dangling_mut(), len: 0, room: 0 };
        if room > 0 {
            list.grow(room);
        }
        list
    }

    #[inline(never)]
    fn grow(&mut self, room: usize) {
        let bytes = room.saturating_mul(size_of::<T>());
        // SAFETY: the context outlives the list; repalloc keeps the items. Both raise an error
        // where memory is short.
        self.items = unsafe {
            if self.room == 0 {
                pg_sys::MemoryContextAllocHuge(self.context.raw(), bytes).cast()
            } else {
                pg_sys::repalloc_huge(self.items.cast(), bytes).cast()
            }
        };
        self.room = room;
    }
}

impl<T> Deref for PgList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: that many items were written.
        unsafe { std::slice::from_raw_parts(self.items, self.len) }
    }
}

impl<T> DerefMut for PgList<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the list is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.items, self.len) }
    }
}

impl<T> List<T> for PgList<T> {
    #[inline]
    fn push(&mut self, item: T) {
        if self.len == self.room {
            self.grow((self.room * 2).max(4));
        }
        // SAFETY: there is room for another item after `len` ones.
        unsafe { self.items.add(self.len).write(item) };
        self.len += 1;
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn free(self) {
        if self.room > 0 {
            // SAFETY: it came from palloc, and this was its only owner.
            unsafe { pg_sys::pfree(self.items.cast()) };
        }
    }
}
