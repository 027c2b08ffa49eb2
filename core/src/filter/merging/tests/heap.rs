//! Merged filters in the memory of the program, for tests and fuzzing.

use super::{GrowingList, MergeMemory};

/// The memory of the program.
#[derive(Clone, Copy, Debug)]
pub struct Heap;

impl<T> GrowingList<T> for Vec<T> {
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
    fn free(&mut self, _: Vec<u8>) {}
    fn list<T>(&mut self, room: usize) -> Vec<T> {
        Vec::with_capacity(room)
    }
}
