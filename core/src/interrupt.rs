//! Cancelling long operations.
//!
//! A program installs a hook with [`set_hook`], which ends the operation if the user has asked for
//! that. Loops whose length depends on data call the hook through [`check`], [`cancellable`] or
//! [`Meter`], about once in a millisecond. Without a hook they run to their end.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

static HOOK: OnceLock<fn()> = OnceLock::new();

/// How many bytes a loop may process between two calls of [`check`]. This takes well under a
/// millisecond.
pub const STRIDE_BYTES: usize = 1 << 20;

/// Installs the function that [`check`] calls. It may unwind, to end the operation that called it.
///
/// The first hook stays: later calls have no effect.
pub fn set_hook(hook: fn()) {
    HOOK.get_or_init(|| hook);
}

/// Calls the installed hook, if there is one. It doesn't return if the operation was cancelled.
#[inline]
pub fn check() {
    if let Some(hook) = HOOK.get() {
        hook();
    }
}

/// Returns the same items, and calls [`check`] after every 65,536 of them.
pub fn cancellable<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    // Work on so many items takes about a millisecond.
    const ITEMS_BETWEEN_CHECKS: usize = 1 << 16;
    let mut meter = Meter::default();
    items.inspect(move |_| meter.add_bytes(STRIDE_BYTES / ITEMS_BETWEEN_CHECKS))
}

/// Counts the bytes that a loop has processed, and calls [`check`] whenever there are
/// [`STRIDE_BYTES`] more.
#[derive(Debug, Default)]
pub struct Meter {
    /// Bytes since the last check.
    unchecked: usize,
}

impl Meter {
    /// Adds the bytes that were processed since the last call.
    #[inline(always)]
    pub fn add_bytes(&mut self, bytes: usize) {
        self.unchecked += bytes;
        if self.unchecked >= STRIDE_BYTES {
            self.unchecked = 0;
            check();
        }
    }
}

/// Copies `from` to `into`, which must have the same length. Checks for interrupts.
pub fn copy(into: &mut [u8], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    for (into, from) in paired_strides(into, from) {
        into.copy_from_slice(from);
    }
}

/// Copies `from` to memory of the same length that is not initialized yet. Checks for interrupts.
pub fn write_copy(into: &mut [MaybeUninit<u8>], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    for (into, from) in paired_strides(into, from) {
        into.write_copy_of_slice(from);
    }
}

/// Writes zeros to memory that is not initialized yet. Checks for interrupts.
pub fn write_zeros(into: &mut [MaybeUninit<u8>]) {
    for stride in into.chunks_mut(STRIDE_BYTES) {
        stride.fill(MaybeUninit::new(0));
        check();
    }
}

/// Returns the bytes in pieces of [`STRIDE_BYTES`], and calls [`check`] before each.
pub fn strides(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(STRIDE_BYTES).inspect(|_| check())
}

/// Returns pieces of [`STRIDE_BYTES`] of `into`, to be written, each with the piece of `from` at
/// the same place. Calls [`check`] before each pair.
pub fn paired_strides<'a, T>(
    into: &'a mut [T],
    from: &'a [u8],
) -> impl Iterator<Item = (&'a mut [T], &'a [u8])> {
    into.chunks_mut(STRIDE_BYTES).zip(strides(from))
}

/// Returns whether all bytes are 0. Checks for interrupts.
pub fn all_are_zero(bytes: &[u8]) -> bool {
    strides(bytes).all(|stride| stride.iter().all(|&byte| byte == 0))
}
