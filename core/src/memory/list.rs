//! A list that ends the operation, and not the process, if there is too little memory.

use super::hook::exhausted;
use crate::interrupt;
use std::borrow::{Borrow, Cow};
use std::collections::{TryReserveError, VecDeque};
use std::fmt::{self, Debug, Formatter};
use std::io::{self, Write};
use std::ops::{Deref, DerefMut, RangeBounds};
use std::{slice, vec};

/// The room that the first [`List::push`] makes in an empty list.
const LEAST_CAPACITY: usize = 4;

/// A growable list: a `Vec` whose memory can be refused.
///
/// It has the methods of `Vec` that are used, with their meanings, and dereferences to a slice.
/// Without enough memory, whatever allocates ends the operation, as by
/// [`exhausted`](super::exhausted); a `Vec` would abort the process.
///
/// `Vec::from(list)` and `List::from(vec)` copy nothing.
///
/// ```
/// # use pg_bloom_core::memory::List;
/// let mut squares: List<u64> = (1..4).map(|number| number * number).collect();
/// squares.push(16);
/// assert_eq!(squares, [1, 4, 9, 16]);
/// ```
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct List<T>(Vec<T>);

/// Ends the operation because a list of `len` items was refused room for `additional` more, each
/// of `item_bytes` bytes.
///
/// One function for all types of items, so that the code of the lists stays small.
#[cold]
#[inline(never)]
fn refused(len: usize, additional: usize, item_bytes: usize) -> ! {
    let items = len.saturating_add(additional);
    exhausted(items.saturating_mul(item_bytes))
}

impl<T> List<T> {
    /// Returns an empty list, which has no memory yet.
    #[inline]
    pub const fn new() -> List<T> {
        List(Vec::new())
    }

    /// Returns an empty list with room for `capacity` items.
    pub fn with_capacity(capacity: usize) -> List<T> {
        let mut list = List::new();
        list.reserve_exact(capacity);
        list
    }

    /// Returns an empty list with room for `capacity` items; `None` without enough memory, if the
    /// caller can do without the list.
    pub fn try_with_capacity(capacity: usize) -> Option<List<T>> {
        let mut items = Vec::new();
        items.try_reserve_exact(capacity).ok()?;
        Some(List(items))
    }

    /// Returns how many items there are.
    #[inline]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no items.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all items.
    #[inline]
    pub const fn as_slice(&self) -> &[T] {
        self.0.as_slice()
    }

    /// Returns how many items the list has room for, those in it included.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Makes room for exactly `additional` more items.
    pub fn reserve_exact(&mut self, additional: usize) {
        let reserved = self.0.try_reserve_exact(additional);
        self.require(reserved, additional);
    }

    /// Makes room for at least `additional` more items. If there is too little room, it at least
    /// doubles.
    #[inline]
    fn reserve(&mut self, additional: usize) {
        let reserved = self.0.try_reserve(additional);
        self.require(reserved, additional);
    }

    /// Ends the operation if room for `additional` more items was refused.
    #[inline]
    fn require(&self, reserved: Result<(), TryReserveError>, additional: usize) {
        if reserved.is_err() {
            refused(self.len(), additional, size_of::<T>());
        }
    }

    /// Adds an item to the end. The room doubles when it is full.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.0.len() == self.0.capacity() {
            self.reserve_exact(self.len().max(LEAST_CAPACITY));
        }
        self.0.push(item);
    }

    /// Removes the last item, and returns it; `None` if the list is empty.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// Removes the last item if `removes` says so, and returns it.
    pub fn pop_if(&mut self, removes: impl FnOnce(&mut T) -> bool) -> Option<T> {
        self.0.pop_if(removes)
    }

    /// Removes the item with this index, and returns it. Those behind it move to the front.
    pub fn remove(&mut self, index: usize) -> T {
        self.0.remove(index)
    }

    /// Removes the item with this index, and returns it. The last item takes its place.
    pub fn swap_remove(&mut self, index: usize) -> T {
        self.0.swap_remove(index)
    }

    /// Removes all items, and keeps their memory.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes all items except the first `len`, and keeps their memory.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Removes the items in a range of indexes, and returns them.
    pub fn drain(&mut self, range: impl RangeBounds<usize>) -> vec::Drain<'_, T> {
        self.0.drain(range)
    }

    /// Removes the items from the index `at` on, and returns them as a list.
    pub fn split_off(&mut self, at: usize) -> List<T> {
        self.drain(at..).collect()
    }

    /// Removes the items that `keeps` refuses. Asks it once about each, in order.
    pub fn retain(&mut self, keeps: impl FnMut(&T) -> bool) {
        self.0.retain(keeps);
    }

    /// Removes items that are equal to the one before.
    pub fn dedup(&mut self)
    where
        T: PartialEq,
    {
        self.0.dedup();
    }

    /// Removes items that `is_same` says to be the same as the last one that is kept before them.
    /// It gets the later item first.
    pub fn dedup_by(&mut self, is_same: impl FnMut(&mut T, &mut T) -> bool) {
        self.0.dedup_by(is_same);
    }

    /// Removes items that have the same key as the one before.
    pub fn dedup_by_key<K: PartialEq>(&mut self, key: impl FnMut(&mut T) -> K) {
        self.0.dedup_by_key(key);
    }

    /// Drops items behind the first `len`, or adds items that `new` returns, until there are `len`.
    pub fn resize_with(&mut self, len: usize, new: impl FnMut() -> T) {
        self.reserve(len.saturating_sub(self.len()));
        self.0.resize_with(len, new);
    }

    /// Adds items to the end, for whose least number there is room.
    #[inline]
    fn fill(&mut self, items: impl Iterator<Item = T>) {
        // Chained iterators are faster with `for_each` than in a loop.
        items.for_each(|item| self.push(item));
    }
}

impl<T: Clone> List<T> {
    /// Returns a list of `len` items that are all equal to `item`.
    pub fn filled(item: T, len: usize) -> List<T> {
        let mut list = List::with_capacity(len);
        list.0.resize(len, item);
        list
    }

    /// Drops items behind the first `len`, or adds copies of `item`, until there are `len`.
    pub fn resize(&mut self, len: usize, item: T) {
        self.reserve(len.saturating_sub(self.len()));
        self.0.resize(len, item);
    }

    /// Adds copies of the items to the end.
    #[inline]
    pub fn extend_from_slice(&mut self, items: &[T]) {
        self.reserve(items.len());
        self.0.extend_from_slice(items);
    }
}

impl<T: Copy + Default> List<T> {
    /// Returns a list of `len` items that all have their default value, which is 0 for numbers.
    /// Checks for interrupts.
    pub fn zeroed(len: usize) -> List<T> {
        let items_per_stride = interrupt::STRIDE_BYTES / size_of::<T>();
        let mut zeros = List::with_capacity(len);
        while zeros.len() < len {
            let next_len = len.min(zeros.len() + items_per_stride);
            zeros.0.resize(next_len, T::default());
            interrupt::check();
        }
        zeros
    }
}

impl List<u8> {
    /// Returns a copy of the bytes. Checks for interrupts.
    pub fn copy_of(bytes: &[u8]) -> List<u8> {
        let mut copy = List::with_capacity(bytes.len());
        for stride in interrupt::strides(bytes) {
            copy.extend_from_slice(stride);
        }
        copy
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for List<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> AsRef<[T]> for List<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> Borrow<[T]> for List<T> {
    fn borrow(&self) -> &[T] {
        self
    }
}

impl<T> Default for List<T> {
    #[inline]
    fn default() -> List<T> {
        List::new()
    }
}

impl<T: Clone> Clone for List<T> {
    fn clone(&self) -> List<T> {
        List::from(&**self)
    }
}

impl<T: Debug> Debug for List<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> FromIterator<T> for List<T> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> List<T> {
        let items = items.into_iter();
        let (least_items, _) = items.size_hint();
        let mut list = List::with_capacity(least_items);
        list.fill(items);
        list
    }
}

impl<T> Extend<T> for List<T> {
    #[inline]
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        let items = items.into_iter();
        let (least_items, _) = items.size_hint();
        self.reserve(least_items);
        self.fill(items);
    }
}

impl<'a, T: Copy + 'a> Extend<&'a T> for List<T> {
    #[inline]
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, items: I) {
        self.extend(items.into_iter().copied());
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    #[inline]
    fn into_iter(self) -> vec::IntoIter<T> {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    #[inline]
    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut List<T> {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    #[inline]
    fn into_iter(self) -> slice::IterMut<'a, T> {
        self.iter_mut()
    }
}

impl<T: Clone> From<&[T]> for List<T> {
    fn from(items: &[T]) -> List<T> {
        let mut list = List::with_capacity(items.len());
        list.0.extend_from_slice(items);
        list
    }
}

impl<T: Clone, const N: usize> From<&[T; N]> for List<T> {
    fn from(items: &[T; N]) -> List<T> {
        List::from(items.as_slice())
    }
}

impl<T, const N: usize> From<[T; N]> for List<T> {
    #[inline]
    fn from(items: [T; N]) -> List<T> {
        items.into_iter().collect()
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> List<T> {
        List(items)
    }
}

impl<T> From<List<T>> for Vec<T> {
    fn from(list: List<T>) -> Vec<T> {
        list.0
    }
}

impl<T> From<List<T>> for VecDeque<T> {
    fn from(list: List<T>) -> VecDeque<T> {
        list.0.into()
    }
}

impl<T: Clone> From<List<T>> for Cow<'_, [T]> {
    fn from(list: List<T>) -> Self {
        Cow::Owned(list.0)
    }
}

/// Adds what is written to the end.
impl Write for List<u8> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T: PartialEq<U>, U> PartialEq<[U]> for List<T> {
    fn eq(&self, other: &[U]) -> bool {
        self.0 == other
    }
}

impl<T: PartialEq<U>, U> PartialEq<&[U]> for List<T> {
    fn eq(&self, other: &&[U]) -> bool {
        self.0 == *other
    }
}

impl<T: PartialEq<U>, U, const N: usize> PartialEq<[U; N]> for List<T> {
    fn eq(&self, other: &[U; N]) -> bool {
        self.0 == other
    }
}

impl<T: PartialEq<U>, U, const N: usize> PartialEq<&[U; N]> for List<T> {
    fn eq(&self, other: &&[U; N]) -> bool {
        self.0 == *other
    }
}

impl<T: PartialEq<U>, U> PartialEq<Vec<U>> for List<T> {
    fn eq(&self, other: &Vec<U>) -> bool {
        self.0 == *other
    }
}

impl<T: PartialEq<U>, U> PartialEq<List<U>> for Vec<T> {
    fn eq(&self, other: &List<U>) -> bool {
        *self == other.0
    }
}
