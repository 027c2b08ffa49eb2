//! Whose memory merged filters are in.

use std::ops::DerefMut;

/// A list that grows.
pub trait List<T>: DerefMut<Target = [T]> {
    /// Adds an item at the end.
    fn push(&mut self, item: T);
    /// Drops all items from `len` on.
    fn truncate(&mut self, len: usize);
    /// Frees the memory.
    fn free(self);
}

/// Memory for merged filters.
pub trait MergeMemory {
    /// The bits of filters that are merged.
    type Bits: DerefMut<Target = [u8]>;
    /// Hashes, and what there is one of for each size.
    type List<T>: List<T>;

    /// `len` zero bytes.
    fn zeroed(&mut self, len: usize) -> Self::Bits;
    /// A copy of these bytes.
    fn copied(&mut self, bytes: &[u8]) -> Self::Bits;
    /// Frees bytes.
    fn free(&mut self, bits: Self::Bits);
    /// An empty list with room for `room` items.
    fn list<T>(&mut self, room: usize) -> Self::List<T>;
}

/// The memory of the program.
#[derive(Clone, Copy, Debug)]
pub struct Heap;

impl<T> List<T> for Vec<T> {
    fn push(&mut self, item: T) {
        Vec::push(self, item);
    }
    fn truncate(&mut self, len: usize) {
        Vec::truncate(self, len);
    }
    fn free(self) {}
}

impl MergeMemory for Heap {
    type Bits = Vec<u8>;
    type List<T> = Vec<T>;

    fn zeroed(&mut self, len: usize) -> Vec<u8> {
        vec![0; len]
    }
    fn copied(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.to_vec()
    }
    fn free(&mut self, _: Vec<u8>) {}
    fn list<T>(&mut self, room: usize) -> Vec<T> {
        Vec::with_capacity(room)
    }
}
