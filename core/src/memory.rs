//! Memory that operations need: for their results a [`Buffer`] of the caller's, and what they need
//! besides.
//!
//! All other memory whose size depends on a filter is allocated here. Without enough memory the
//! installed hook raises an error and the process goes on; Rust's own collections would abort it.

use crate::interrupt;
use std::alloc::{Layout, handle_alloc_error};
use std::sync::OnceLock;

static HOOK: OnceLock<fn(usize) -> !> = OnceLock::new();

/// Installs what is called for lack of so many bytes, once. The hook must unwind or end the
/// process.
pub fn set_hook(hook: fn(usize) -> !) {
    HOOK.get_or_init(|| hook);
}

/// Fails for lack of this many bytes. Without a hook the process is aborted, as by Rust's own
/// collections.
#[cold]
pub fn exhausted(bytes: usize) -> ! {
    match HOOK.get() {
        Some(hook) => hook(bytes),
        None => {
            handle_alloc_error(Layout::from_size_align(bytes, 1).unwrap_or(Layout::new::<u8>()))
        }
    }
}

pub fn reserve<T>(list: &mut Vec<T>, more: usize) {
    if list.try_reserve_exact(more).is_err() {
        exhausted(list.len().saturating_add(more).saturating_mul(size_of::<T>()));
    }
}

pub fn with_capacity<T>(room: usize) -> Vec<T> {
    let mut list = Vec::new();
    reserve(&mut list, room);
    list
}

/// Adds one item to a list of any length.
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        reserve(list, list.len().max(4));
    }
    list.push(item);
}

/// The items as a list.
pub fn collect<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = with_capacity(items.size_hint().0);
    // `push` makes room if the iterator yields more than it says.
    items.for_each(|item| push(&mut all, item));
    all
}

/// As [`collect`], until one of the items is an error. Errors: those of the items.
pub fn try_collect<T, E>(items: impl Iterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let mut all = with_capacity(items.size_hint().0);
    for item in items {
        push(&mut all, item?);
    }
    Ok(all)
}

pub fn copy(bytes: &[u8]) -> Vec<u8> {
    let mut copy = with_capacity(bytes.len());
    interrupt::strides(bytes).for_each(|stride| copy.extend_from_slice(stride));
    copy
}

pub fn zeroed<T: Copy + Default>(len: usize) -> Vec<T> {
    let mut zeros = with_capacity(len);
    while zeros.len() < len {
        zeros.resize(len.min(zeros.len() + interrupt::STRIDE_BYTES / size_of::<T>()), T::default());
        interrupt::check();
    }
    zeros
}

/// Memory that an operation writes its result into; the caller chooses how it is allocated.
pub trait Buffer {
    fn zeroed(len: usize) -> Self;
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

/// What `\x` and hexadecimal digits, as psql and COPY show bytes, stand for; `None` for other text.
pub fn from_hex<B: Buffer>(text: &[u8]) -> Option<B> {
    let (pairs, []) = text.strip_prefix(b"\\x")?.as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut buffer = B::zeroed(pairs.len());
    for (byte, &[high, low]) in interrupt::cancellable(buffer.bytes_mut().iter_mut().zip(pairs)) {
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(buffer)
}

#[cfg(test)]
mod tests;
