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

/// Whether prefetching memory far from that of the last prefetch costs this CPU little, even where the page table has
/// to be looked up: true of AMD's, by measurement. Takes some microseconds on a virtual machine.
pub fn prefetches_far() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let maker = std::arch::x86_64::__cpuid(0);
        let name = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
        name.as_flattened() == b"AuthenticAMD"
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}
