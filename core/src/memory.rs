//! Memory whose size depends on data.
//!
//! Results are written into a [`Buffer`], which the caller allocates as it likes. Everything else
//! that grows with the data is allocated by the functions of this module: if there is too little
//! memory, they call the installed hook, which ends the operation with an error. Rust's own
//! collections would abort the process.

use crate::interrupt;
use std::alloc::{Layout, handle_alloc_error};
use std::sync::OnceLock;

static HOOK: OnceLock<fn(usize) -> !> = OnceLock::new();

/// The room that the first [`push`] makes in an empty list.
const LEAST_CAPACITY: usize = 4;

/// Installs the function that is called, with the number of bytes, if that much memory can't be
/// allocated. It must unwind or end the process.
///
/// The first hook stays: later calls have no effect.
pub fn set_hook(hook: fn(usize) -> !) {
    HOOK.get_or_init(|| hook);
}

/// Ends the operation because `bytes` bytes can't be allocated: calls the installed hook, or aborts
/// the process if there is none.
#[cold]
pub fn exhausted(bytes: usize) -> ! {
    if let Some(hook) = HOOK.get() {
        hook(bytes);
    }
    // More bytes than a `Layout` can describe are reported as one.
    let layout = Layout::from_size_align(bytes, 1).unwrap_or(Layout::new::<u8>());
    handle_alloc_error(layout)
}

/// Makes room for exactly `additional` more items in a list. Without enough memory the operation
/// ends, as by [`exhausted`].
pub fn reserve<T>(list: &mut Vec<T>, additional: usize) {
    if list.try_reserve_exact(additional).is_err() {
        let items = list.len().saturating_add(additional);
        exhausted(items.saturating_mul(size_of::<T>()));
    }
}

/// Returns an empty list with room for `capacity` items. Without enough memory the operation ends,
/// as by [`exhausted`].
pub fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let mut list = Vec::new();
    reserve(&mut list, capacity);
    list
}

/// Adds an item to the end of a list, whose room doubles when it is full. Without enough memory the
/// operation ends, as by [`exhausted`].
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        reserve(list, list.len().max(LEAST_CAPACITY));
    }
    list.push(item);
}

/// Returns the items as a list. Without enough memory the operation ends, as by [`exhausted`].
pub fn collect<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let (least_items, _) = items.size_hint();
    let mut list = with_capacity(least_items);
    // Chained iterators are faster with `for_each` than in a loop.
    items.for_each(|item| push(&mut list, item));
    list
}

/// Returns the items as a list, or the first error among them. Without enough memory the operation
/// ends, as by [`exhausted`].
pub fn try_collect<T, E>(items: impl Iterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let (least_items, _) = items.size_hint();
    let mut list = with_capacity(least_items);
    for item in items {
        push(&mut list, item?);
    }
    Ok(list)
}

/// Returns a copy of the bytes. Checks for interrupts. Without enough memory the operation ends, as
/// by [`exhausted`].
pub fn copy(bytes: &[u8]) -> Vec<u8> {
    let mut copy = with_capacity(bytes.len());
    for stride in interrupt::strides(bytes) {
        copy.extend_from_slice(stride);
    }
    copy
}

/// Returns a list of `len` items that all have their default value, which is 0 for numbers. Checks
/// for interrupts. Without enough memory the operation ends, as by [`exhausted`].
pub fn zeroed<T: Copy + Default>(len: usize) -> Vec<T> {
    let items_per_stride = interrupt::STRIDE_BYTES / size_of::<T>();
    let mut zeros = with_capacity(len);
    while zeros.len() < len {
        let next_len = len.min(zeros.len() + items_per_stride);
        zeros.resize(next_len, T::default());
        interrupt::check();
    }
    zeros
}

/// Memory for the result of an operation. The caller chooses the type, and so how it is allocated.
pub trait Buffer {
    /// Allocates `len` bytes, all 0.
    fn zeroed(len: usize) -> Self;

    /// Returns all bytes of the buffer, to read or write.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl Buffer for Vec<u8> {
    fn zeroed(len: usize) -> Self {
        zeroed(len)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// Returns the bytes that a text stands for: `\x`, and two hexadecimal digits for each byte, in
/// lower or upper case, as PostgreSQL shows a `bytea`. Returns `None` for any other text.
///
/// Checks for interrupts, so a user can cancel it.
pub fn from_hex<B: Buffer>(text: &[u8]) -> Option<B> {
    let digits = text.strip_prefix(b"\\x")?;
    let (pairs, unpaired) = digits.as_chunks::<2>();
    if !unpaired.is_empty() {
        return None;
    }

    let mut buffer = B::zeroed(pairs.len());
    let bytes = buffer.bytes_mut().iter_mut();
    for (byte, &[high, low]) in interrupt::cancellable(bytes.zip(pairs)) {
        *byte = hex_digit(high)? << 4 | hex_digit(low)?;
    }
    Some(buffer)
}

/// Returns the number, from 0 to 15, that a hexadecimal digit stands for; `None` for any other
/// character.
fn hex_digit(character: u8) -> Option<u8> {
    let digit = char::from(character).to_digit(16)?;
    Some(digit as u8)
}

#[cfg(test)]
mod tests;
