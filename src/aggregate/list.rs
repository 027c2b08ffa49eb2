//! A list that grows, in a memory context.

use super::tag::ALIGNMENT;
use crate::pg::memory::Context;
use pg_bloom_core::filter::merging::List;
use pgrx::pg_sys;
use std::ops::{Deref, DerefMut};

/// Items in a memory context, which live until they are freed or it ends. Nothing is dropped, so no item may need it.
pub struct PgList<T> {
    context: Context<'static>,
    items: *mut T,
    len: usize,
    room: usize,
}

impl<T> PgList<T> {
    /// An empty list with room for `room` items, in a context that outlives the list.
    pub fn new_in(context: Context<'static>, room: usize) -> PgList<T> {
        const { assert!(!std::mem::needs_drop::<T>() && align_of::<T>() <= ALIGNMENT) };
        let mut list = PgList { context, items: std::ptr::null_mut(), len: 0, room: 0 };
        if room > 0 {
            list.grow(room);
        }
        list
    }

    /// Makes room for `room` items in all.
    #[inline(never)]
    fn grow(&mut self, room: usize) {
        let bytes = room.saturating_mul(size_of::<T>());
        // SAFETY: the context outlives the list, and repalloc keeps the items. Both raise an error where
        // there is no memory.
        self.items = unsafe {
            if self.items.is_null() {
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
        if self.len == 0 {
            return &[];
        }
        // SAFETY: that many items were written.
        unsafe { std::slice::from_raw_parts(self.items, self.len) }
    }
}

impl<T> DerefMut for PgList<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.len == 0 {
            return &mut [];
        }
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
        if !self.items.is_null() {
            // SAFETY: it came from palloc, and this was its only owner.
            unsafe { pg_sys::pfree(self.items.cast()) };
        }
    }
}
