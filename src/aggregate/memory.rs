//! What the state of an aggregate allocates in a memory context of PostgreSQL: the bits of a filter
//! that is being built ([`Payload`]), and lists that grow ([`PgList`]).
//!
//! In a stored filter, blocks begin where the header ends, so nearly every block of 64 bytes lies on
//! two cache lines. While a filter is built, each block is on one cache line: setting bits then
//! fetches half as much memory. The finished filter is a copy, behind its header.
//!
//! ```text
//! | unused | prefix | block 0 | block 1 | …
//!                     ▲ a cache line begins here
//! ```

use super::pointer::{ALIGNMENT, aggregate_context};
use crate::pg::call::{Call, Result};
use crate::pg::memory::{self, Context};
use pg_bloom_core::filter::merging::GrowingList;
use pg_bloom_core::interrupt;
use pgrx::pg_sys;
use std::ops::{Deref, DerefMut};

/// How many items a list first gets room for, if no number is given.
const INITIAL_LIST_ROOM: usize = 4;

/// Returns the memory context of the aggregate that is being called, where its states live. Fails
/// with 55000 outside an aggregate.
pub fn aggregate_memory(call: &Call) -> Result<Context<'static>> {
    let context = aggregate_context(call)?.raw();
    // SAFETY: the result is used only for what states own. States are freed with this context, so
    // nothing of it is used later.
    Ok(unsafe { Context::new(context) })
}

/// What precedes the bytes of a [`Payload`] in memory.
#[repr(C)]
#[derive(Clone, Copy)]
struct PayloadPrefix {
    /// The beginning of the allocation.
    allocated: *mut u8,
    /// The length of the payload in bytes.
    len: usize,
}

/// The bits or counters of a filter that is being built. They must be freed, or are freed with
/// their memory context.
pub struct Payload {
    first_byte: *mut u8,
}

impl Payload {
    /// Allocates `len` zero bytes in a memory context, such that they begin at a line of the
    /// processor's cache. The length, and the address that must be freed, are stored before them.
    pub fn zeroed_in(context: Context<'static>, len: usize) -> Payload {
        let prefix_bytes = size_of::<PayloadPrefix>();
        let (allocated, prefix) =
            memory::allocate_aligned(context, len.saturating_add(prefix_bytes), prefix_bytes);
        // SAFETY: from `prefix` on, the allocation has room for the prefix and `len` bytes. It
        // begins at a cache line less 16 bytes, so the prefix is aligned.
        unsafe {
            prefix.cast::<PayloadPrefix>().write(PayloadPrefix { allocated, len });
            let first_byte = prefix.add(prefix_bytes);
            interrupt::write_zeros(std::slice::from_raw_parts_mut(first_byte.cast(), len));
            Payload { first_byte }
        }
    }

    #[inline(always)]
    fn prefix(&self) -> PayloadPrefix {
        // SAFETY: `zeroed_in` has written the prefix right before the first byte.
        unsafe { *self.first_byte.sub(size_of::<PayloadPrefix>()).cast() }
    }

    /// Frees the memory.
    pub fn free(self) {
        // SAFETY: `allocated` came from palloc, and `self` was the only owner.
        unsafe { pg_sys::pfree(self.prefix().allocated.cast()) };
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: `zeroed_in` has written `len` bytes, and `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.first_byte, self.prefix().len) }
    }
}

impl DerefMut for Payload {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.first_byte, self.prefix().len) }
    }
}

/// A list that grows in a memory context. It must be freed, or is freed with the context; items are
/// never dropped.
pub struct PgList<T> {
    context: Context<'static>,
    /// The first item. A dangling pointer as long as there is no room.
    items: *mut T,
    len: usize,
    /// How many items the allocation has room for.
    room: usize,
}

impl<T> PgList<T> {
    /// Returns an empty list with room for `room` items.
    pub fn new_in(context: Context<'static>, room: usize) -> PgList<T> {
        const {
            assert!(!std::mem::needs_drop::<T>(), "items are not dropped");
            assert!(align_of::<T>() <= ALIGNMENT);
        };
        let mut list = PgList { context, items: std::ptr::dangling_mut(), len: 0, room: 0 };
        if room > 0 {
            list.grow(room);
        }
        list
    }

    /// Reallocates the list, so that it has room for `room` items, which must be more than now.
    /// PostgreSQL raises an error if there is no memory.
    #[inline(never)]
    fn grow(&mut self, room: usize) {
        let bytes = room.saturating_mul(size_of::<T>());
        // SAFETY: the context outlives the list, and `items` came from palloc if there was room.
        // Reallocating copies the items. Both functions raise an error if there is no memory.
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
        // SAFETY: `len` items were written, and `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.items, self.len) }
    }
}

impl<T> DerefMut for PgList<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.items, self.len) }
    }
}

impl<T> GrowingList<T> for PgList<T> {
    #[inline]
    fn push(&mut self, item: T) {
        if self.len == self.room {
            self.grow((self.room * 2).max(INITIAL_LIST_ROOM));
        }
        // SAFETY: there is room for an item after the first `len`.
        unsafe { self.items.add(self.len).write(item) };
        self.len += 1;
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn free(self) {
        if self.room > 0 {
            // SAFETY: `items` came from palloc, and `self` was the only owner.
            unsafe { pg_sys::pfree(self.items.cast()) };
        }
    }
}
