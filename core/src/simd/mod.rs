//! Code for particular CPUs, and the only place with `unsafe` in this crate: setting and probing bits of the `blocked`
//! layout with AVX-512, prefetching memory, counting bits with POPCNT. It is chosen at run time, and its results are
//! those of the portable code.
//!
//! All bits of an element in one block are set or probed at once:
//!
//! ```text
//! positions of one word, 9 bits each      | - | p6 | p5 | p4 | p3 | p2 | p1 | p0 |
//!                                               broadcast, each lane shifted by 9 more
//! lane                                    |  7 |  6 |  5 |  4 |  3 |  2 |  1 |  0 |     eight lanes of 64 bits
//! word of the block that it picks                         p / 64
//! bit of that word                                        p mod 64
//! ```

/// How many probes ahead of the current one a batch prefetches memory.
pub const PREFETCH_AHEAD: usize = 16;

/// Positions of the `blocked` layout that one word has bits for.
pub const POSITIONS_PER_WORD: u32 = 7;

/// The blocks of a payload, and the number of bits that an element sets.
#[derive(Clone, Copy)]
pub struct Blocks {
    /// How many there are.
    pub count: u64,
    /// How many bits an element sets: k.
    pub num_hashes: u32,
}

/// Sets the bits of many elements of the `blocked` layout, or returns `false` if portable code is as fast on this CPU.
#[inline]
pub fn insert_all(payload: &mut [u8], blocks: Blocks, hashes: &[u64]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has the feature.
        unsafe { avx512::insert_all(payload, blocks, hashes) };
        return true;
    }
    let _ = (payload, blocks, hashes);
    false
}

/// Probes many elements, with the same condition: calls `found` with each result, or returns `false`.
#[inline]
pub fn contains_each(payload: &[u8], blocks: Blocks, hashes: &[u64], found: &mut impl FnMut(bool)) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has the feature.
        unsafe { avx512::contains_each(payload, blocks, hashes, found) };
        return true;
    }
    let _ = (payload, blocks, hashes, found);
    false
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{Blocks, POSITIONS_PER_WORD, PREFETCH_AHEAD, prefetch};
    use crate::hash::{reduce, word};
    use std::arch::x86_64::*;

    type Block = [u8; 64];

    #[inline(always)]
    fn prefetch_ahead(payload: &[u8], blocks: Blocks, hashes: &[u64], i: usize) {
        if let Some(&ahead) = hashes.get(i + PREFETCH_AHEAD) {
            prefetch(payload.as_ptr(), reduce(ahead, blocks.count) as usize * size_of::<Block>());
        }
    }

    #[target_feature(enable = "avx512f")]
    pub fn insert_all(payload: &mut [u8], blocks: Blocks, hashes: &[u64]) {
        let one = _mm512_set1_epi64(1);
        let first_bits = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448);
        for (i, &hash) in hashes.iter().enumerate() {
            prefetch_ahead(payload, blocks, hashes, i);
            let block = &mut payload.as_chunks_mut::<64>().0[reduce(hash, blocks.count) as usize];
            // SAFETY: a block is 64 bytes.
            let mut bits = unsafe { _mm512_loadu_epi64(block.as_ptr().cast()) };
            let mut left = blocks.num_hashes;
            let mut j = 0;
            while left > 0 {
                let mut positions = word(hash, j);
                for _ in 0..left.min(POSITIONS_PER_WORD) {
                    // In other lanes than the position's the shift is by 64 or more, which leaves nothing.
                    let shift = _mm512_sub_epi64(_mm512_set1_epi64((positions & 511) as i64), first_bits);
                    bits = _mm512_or_si512(bits, _mm512_sllv_epi64(one, shift));
                    positions >>= 9;
                }
                left -= left.min(POSITIONS_PER_WORD);
                j += 1;
            }
            // SAFETY: a block is 64 bytes.
            unsafe { _mm512_storeu_epi64(block.as_mut_ptr().cast(), bits) };
        }
    }

    #[target_feature(enable = "avx512f")]
    pub fn contains_each(payload: &[u8], blocks: Blocks, hashes: &[u64], found: &mut impl FnMut(bool)) {
        for (i, &hash) in hashes.iter().enumerate() {
            prefetch_ahead(payload, blocks, hashes, i);
            found(covers(&payload.as_chunks::<64>().0[reduce(hash, blocks.count) as usize], blocks, hash));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn covers(block: &Block, blocks: Blocks, hash: u64) -> bool {
        let one = _mm512_set1_epi64(1);
        let offsets = _mm512_setr_epi64(0, 9, 18, 27, 36, 45, 54, 63);
        // SAFETY: a block is 64 bytes.
        let words = unsafe { _mm512_loadu_epi64(block.as_ptr().cast()) };
        let mut left = blocks.num_hashes;
        let mut j = 0;
        while left > 0 {
            let positions = _mm512_srlv_epi64(_mm512_set1_epi64(word(hash, j) as i64), offsets);
            let picked = _mm512_permutexvar_epi64(_mm512_srli_epi64::<6>(positions), words);
            let bits = _mm512_sllv_epi64(one, _mm512_and_si512(positions, _mm512_set1_epi64(63)));
            let wanted = (1u8 << left.min(POSITIONS_PER_WORD)) - 1;
            if _mm512_test_epi64_mask(picked, bits) & wanted != wanted {
                return false;
            }
            left -= left.min(POSITIONS_PER_WORD);
            j += 1;
        }
        true
    }
}

/// Hints that the cache line of a byte `offset` bytes from this one will be used, on CPUs that have such a hint.
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
    let in_words: u64 = words.iter().map(|w| u64::from(u64::from_ne_bytes(*w).count_ones())).sum();
    in_words + rest.iter().map(|b| u64::from(b.count_ones())).sum::<u64>()
}

#[cfg(test)]
mod tests;
