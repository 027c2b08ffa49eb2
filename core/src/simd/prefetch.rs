//! Fetching memory before it is needed.

/// Hints that the cache line of a byte `offset` bytes from this one is about to be used. Does nothing on CPUs without
/// such a hint.
#[inline(always)]
pub fn prefetch(bytes: *const u8, offset: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address, and reads nothing that the program can see; SSE is part of
    // every x86_64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(bytes.wrapping_add(offset).cast::<i8>(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, offset);
}
