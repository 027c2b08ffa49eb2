//! A hook that long loops call, so that a database can cancel them.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

static HOOK: OnceLock<fn()> = OnceLock::new();

/// How many bytes a loop may process between two calls of [`check`]: well under a millisecond of
/// work.
pub const STRIDE_BYTES: usize = 1 << 20;

/// Installs the function that [`check`] calls. Later calls have no effect. The hook may unwind.
pub fn set_hook(hook: fn()) {
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
pub fn cancellable<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    const ITEMS: usize = 1 << 16;
    let mut meter = Meter::default();
    items.inspect(move |_| meter.add_bytes(STRIDE_BYTES / ITEMS))
}

/// Counts bytes, to check once in a stride.
#[derive(Debug, Default)]
pub struct Meter {
    unchecked: usize,
}

impl Meter {
    #[inline(always)]
    pub fn add_bytes(&mut self, bytes: usize) {
        self.unchecked += bytes;
        if self.unchecked >= STRIDE_BYTES {
            self.unchecked = 0;
            check();
        }
    }
}

/// Copies bytes, in strides that can be cancelled.
pub fn copy(into: &mut [u8], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    paired_strides(into, from).for_each(|(into, from)| into.copy_from_slice(from));
}

/// Writes bytes where none are yet, in strides that can be cancelled.
pub fn write_copy(into: &mut [MaybeUninit<u8>], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    paired_strides(into, from).for_each(|(into, from)| _ = into.write_copy_of_slice(from));
}

/// Writes zeros where no bytes are yet, in strides that can be cancelled.
pub fn write_zeros(into: &mut [MaybeUninit<u8>]) {
    for stride in into.chunks_mut(STRIDE_BYTES) {
        stride.fill(MaybeUninit::new(0));
        check();
    }
}

/// The bytes in strides, with a check before each.
pub fn strides(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(STRIDE_BYTES).inspect(|_| check())
}

/// The same of two slices, one of them to be written.
pub fn paired_strides<'a, T>(
    into: &'a mut [T],
    from: &'a [u8],
) -> impl Iterator<Item = (&'a mut [T], &'a [u8])> {
    into.chunks_mut(STRIDE_BYTES).zip(strides(from))
}

pub fn is_zero(bytes: &[u8]) -> bool {
    strides(bytes).all(|stride| stride.iter().all(|&byte| byte == 0))
}
