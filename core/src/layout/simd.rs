//! The one place with `unsafe` in this crate: what the CPU can do beyond portable code. It is chosen when the program
//! runs, and sets and reads the very bits that the portable code does.
//!
//! ```text
//! positions of one word, 9 bits each      | - | p6 | p5 | p4 | p3 | p2 | p1 | p0 |
//!                                               broadcast, each lane shifted by 9 more
//! lane                                    |  7 |  6 |  5 |  4 |  3 |  2 |  1 |  0 |     eight lanes of 64 bits
//! word of the block that it picks                         p / 64
//! bit of that word                                        p mod 64
//! ```

use super::shape::Shape;

/// How many probes ahead of the one being done a batch asks for its memory.
pub(super) const PREFETCH_AHEAD: usize = 16;

/// Positions of the `blocked` layout that one word has bits for.
pub(super) const POSITIONS_PER_WORD: u32 = 7;

/// Hints that the cache line holding `bytes[offset]` is about to be used. Does nothing where there is no such hint.
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

/// Sets the bits of many elements of the `blocked` layout, if this CPU has a faster way than the portable one; else
/// does nothing and returns `false`.
#[inline]
pub fn insert_all(payload: &mut [u8], shape: Shape, hashes: &[u64]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has the feature.
        unsafe { avx512::insert_all(payload, shape, hashes) };
        return true;
    }
    let _ = (payload, shape, hashes);
    false
}

/// Asks for many elements of the `blocked` layout like [`insert_all`] adds them: calls `found` with each answer, or
/// returns `false`.
#[inline]
pub fn contains_each(payload: &[u8], shape: Shape, hashes: &[u64], found: &mut impl FnMut(bool)) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has the feature.
        unsafe { avx512::contains_each(payload, shape, hashes, found) };
        return true;
    }
    let _ = (payload, shape, hashes, found);
    false
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

/// How many bits of a block of the `blocked` layout can be set: 0 to 512.
pub const COUNTS: usize = 513;

/// Counts blocks of the `blocked` layout by the number of their bits that are set.
pub fn tally_blocks(bits: &[u8], with_ones: &mut [u64; COUNTS]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        // SAFETY: the CPU has the feature.
        return unsafe { tally_blocks_by_instruction(bits, with_ones) };
    }
    tally_blocks_portably(bits, with_ones);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn tally_blocks_by_instruction(bits: &[u8], with_ones: &mut [u64; COUNTS]) {
    tally_blocks_portably(bits, with_ones);
}

/// As [`count_ones_portably`].
#[inline(always)]
fn tally_blocks_portably(bits: &[u8], with_ones: &mut [u64; COUNTS]) {
    for block in bits.as_chunks::<64>().0 {
        with_ones[count_ones_portably(block) as usize] += 1;
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{POSITIONS_PER_WORD, PREFETCH_AHEAD, Shape};
    use crate::hash::{reduce, word};
    use std::arch::x86_64::*;

    type Block = [u8; 64];

    #[inline(always)]
    fn prefetch_ahead(payload: &[u8], shape: Shape, hashes: &[u64], i: usize) {
        if let Some(&ahead) = hashes.get(i + PREFETCH_AHEAD) {
            super::prefetch(payload, reduce(ahead, shape.blocks) as usize * size_of::<Block>());
        }
    }

    #[target_feature(enable = "avx512f")]
    pub fn insert_all(payload: &mut [u8], shape: Shape, hashes: &[u64]) {
        let one = _mm512_set1_epi64(1);
        let first_bits = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448);
        for (i, &hash) in hashes.iter().enumerate() {
            prefetch_ahead(payload, shape, hashes, i);
            let block = &mut payload.as_chunks_mut::<64>().0[reduce(hash, shape.blocks) as usize];
            // SAFETY: a block is 64 bytes.
            let mut bits = unsafe { _mm512_loadu_epi64(block.as_ptr().cast()) };
            let mut left = shape.num_hashes;
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
    pub fn contains_each(payload: &[u8], shape: Shape, hashes: &[u64], found: &mut impl FnMut(bool)) {
        for (i, &hash) in hashes.iter().enumerate() {
            prefetch_ahead(payload, shape, hashes, i);
            found(covers(&payload.as_chunks::<64>().0[reduce(hash, shape.blocks) as usize], shape, hash));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn covers(block: &Block, shape: Shape, hash: u64) -> bool {
        let one = _mm512_set1_epi64(1);
        let offsets = _mm512_setr_epi64(0, 9, 18, 27, 36, 45, 54, 63);
        // SAFETY: a block is 64 bytes.
        let words = unsafe { _mm512_loadu_epi64(block.as_ptr().cast()) };
        let mut left = shape.num_hashes;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::word;

    #[test]
    fn blocks_are_tallied() {
        let mut bits = vec![0; 5 * 64];
        bits[64..128].fill(255);
        bits[128..].iter_mut().enumerate().for_each(|(i, byte)| *byte = word(5, i as u32) as u8);
        let mut expected = [0; COUNTS];
        for block in bits.chunks(64) {
            expected[block.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()] += 1;
        }
        let (mut fast, mut portable) = ([0; COUNTS], [0; COUNTS]);
        tally_blocks(&bits, &mut fast);
        tally_blocks_portably(&bits, &mut portable);
        assert_eq!((fast, portable), (expected, expected));
        assert_eq!((fast[0], fast[512]), (1, 1));
    }
}
