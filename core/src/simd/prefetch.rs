//! Fetching memory before it is needed.

/// Hints that the cache line holding `bytes[offset]` is about to be used. Does nothing on CPUs without such a hint.
#[inline(always)]
pub fn prefetch(bytes: &[u8], offset: usize) {
    debug_assert!(offset < bytes.len());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address, and SSE is part of every x86_64; `wrapping_add` makes no
    // promise about the pointer that could be broken.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(bytes.as_ptr().wrapping_add(offset).cast::<i8>(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, offset);
}
