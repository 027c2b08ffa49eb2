//! Things that the caller names by handles.

use pg_bloom_core::memory::List;

/// A list of things, each of which keeps its handle until it is removed.
pub struct Slots<T> {
    things: List<Option<T>>,
    /// Handles that are free again.
    free: List<i32>,
}

impl<T> Slots<T> {
    pub fn new() -> Slots<T> {
        Slots { things: List::new(), free: List::new() }
    }

    /// Keeps a thing, and returns its handle.
    pub fn insert(&mut self, thing: T) -> i32 {
        if let Some(handle) = self.free.pop() {
            self.things[handle as usize] = Some(thing);
            return handle;
        }
        self.things.push(Some(thing));
        (self.things.len() - 1) as i32
    }

    /// Returns the thing with a handle. Panics if there is none.
    pub fn get(&self, handle: i32) -> &T {
        self.things[handle as usize].as_ref().expect("the handle is in use")
    }

    /// Returns the thing with a handle, to be changed. Panics if there is none.
    pub fn get_mut(&mut self, handle: i32) -> &mut T {
        self.things[handle as usize].as_mut().expect("the handle is in use")
    }

    /// Returns the thing with a handle, which is free afterwards. Panics if there is none.
    pub fn remove(&mut self, handle: i32) -> T {
        let thing = self.things[handle as usize].take().expect("the handle is in use");
        self.free.push(handle);
        thing
    }
}
