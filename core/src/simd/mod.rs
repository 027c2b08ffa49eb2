//! Code for particular CPUs, and the only place with `unsafe` in this crate: prefetching memory,
//! and counting bits with POPCNT where the CPU has it. Results are those of the portable code.

/// How many probes ahead of the current one a batch prefetches memory.
pub const PREFETCH_AHEAD: usize = 16;

/// Hints that the cache line of a byte `offset` bytes from this one will be used, on CPUs that have
/// such a hint.
#[inline(always)]
pub fn prefetch(bytes: *const u8, offset: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address, and reads nothing that the program can
    // see; SSE is part of every x86_64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(bytes.wrapping_add(offset).cast::<i8>(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, offset);
}

/// The number of set bits.
pub fn count_ones(bits: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        // SAFETY: the CPU has the feature.
        return unsafe { count_ones_by_instruction(bits) };
    }
    count_ones_portably(bits)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn count_ones_by_instruction(bits: &[u8]) -> u64 {
    count_ones_portably(bits)
}

/// What the compiler makes of this depends on the features of the function that it is part of.
#[inline(always)]
fn count_ones_portably(bits: &[u8]) -> u64 {
    let (words, rest) = bits.as_chunks::<8>();
    let in_words: u64 = words
        .iter()
        .map(|w| u64::from(u64::from_ne_bytes(*w).count_ones()))
        .sum();
    in_words + rest.iter().map(|b| u64::from(b.count_ones())).sum::<u64>()
}

#[cfg(test)]
mod tests;
