//! A hook that long loops call, so that a database can cancel them.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

static HOOK: OnceLock<fn()> = OnceLock::new();

/// How many bytes a loop may process between two calls of [`check`]: well under a millisecond of work.
pub const STRIDE: usize = 1 << 20;

/// Installs the function that [`check`] calls. Later calls have no effect. The hook may unwind.
pub fn install(hook: fn()) {
    HOOK.get_or_init(|| hook);
}

/// Calls the installed hook, if there is one.
#[inline]
pub fn check() {
    if let Some(hook) = HOOK.get() {
        hook();
    }
}

/// The same items, with a check after each 65,536 of them: about a millisecond of work.
pub fn each<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    const ITEMS: usize = 1 << 16;
    let mut passed = 0usize;
    items.inspect(move |_| {
        passed += 1;
        if passed.is_multiple_of(ITEMS) {
            check();
        }
    })
}

/// Counts bytes, to check once in a stride.
#[derive(Debug, Default)]
pub struct Meter {
    unchecked: usize,
}

impl Meter {
    /// Counts bytes that were processed.
    #[inline(always)]
    pub fn add(&mut self, bytes: usize) {
        self.unchecked += bytes;
        if self.unchecked >= STRIDE {
            self.unchecked = 0;
            check();
        }
    }
}

/// Copies bytes, in strides that can be cancelled.
pub fn copy(into: &mut [u8], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    for (into, from) in into.chunks_mut(STRIDE).zip(from.chunks(STRIDE)) {
        into.copy_from_slice(from);
        check();
    }
}

/// Writes bytes where none are yet, in strides that can be cancelled.
pub fn write(into: &mut [MaybeUninit<u8>], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    for (into, from) in into.chunks_mut(STRIDE).zip(from.chunks(STRIDE)) {
        into.write_copy_of_slice(from);
        check();
    }
}

/// Writes zeros where no bytes are yet, in strides that can be cancelled.
pub fn write_zeros(into: &mut [MaybeUninit<u8>]) {
    for stride in into.chunks_mut(STRIDE) {
        stride.fill(MaybeUninit::new(0));
        check();
    }
}

/// The bytes in strides, with a check before each.
pub fn strides(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(STRIDE).inspect(|_| check())
}

/// Whether all bytes are zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    strides(bytes).all(|stride| stride.iter().all(|&byte| byte == 0))
}
