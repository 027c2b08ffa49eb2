//! Code for particular CPUs, and the only place with `unsafe` in this crate: prefetching memory,
//! and counting bits with POPCNT where the CPU has it. Results are those of the portable code.

/// How many probes ahead of the current one a batch prefetches memory.
pub const PREFETCH_AHEAD: usize = 16;

/// Hints to the CPU that the cache line with the byte at `start + offset` will be used soon. Does
/// nothing on CPUs for which no such hint is known.
#[inline(always)]
pub fn prefetch(start: *const u8, offset: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address, and reads nothing that the program can
    // see; SSE is part of every x86_64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(start.wrapping_add(offset).cast::<i8>(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, offset);
}

/// Returns how many bits are set.
pub fn count_ones(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        // SAFETY: the CPU has the feature.
        return unsafe { count_ones_by_popcnt(bytes) };
    }
    count_ones_portably(bytes)
}

/// Returns how many bits are set, by the instruction POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn count_ones_by_popcnt(bytes: &[u8]) -> u64 {
    count_ones_portably(bytes)
}

/// Returns how many bits are set.
///
/// The function is inlined, and compiled for the CPU features of the function that calls it.
#[inline(always)]
fn count_ones_portably(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u64 = words
        .iter()
        .map(|word| u64::from(u64::from_ne_bytes(*word).count_ones()))
        .sum();
    let in_rest: u64 = rest.iter().map(|byte| u64::from(byte.count_ones())).sum();
    in_words + in_rest
}

#[cfg(test)]
mod tests;
