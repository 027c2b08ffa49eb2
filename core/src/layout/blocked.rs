//! `blocked`: all bits of an element in one 512-bit block, which is one cache line.
//!
//! ```text
//! block    = high half of h · B
//! position = 9 bits of word(h, j): seven to a word, lowest first
//!
//! word(h, 0) = |-| p6 | p5 | p4 | p3 | p2 | p1 | p0 |     1 + 7 · 9 = 64 bits
//!
//! bit p of a block is bit (p mod 8) of its byte (p div 8)
//! ```

use crate::hash::word;

pub const BLOCK_BYTES: usize = 64;

/// Positions that one word has bits for.
const POSITIONS_PER_WORD: u32 = 7;

/// The words that have an element's positions, each with how many of them are to be used.
#[inline(always)]
fn words(num_hashes: u32, hash: u64) -> impl Iterator<Item = (u64, u32)> {
    (0..num_hashes.div_ceil(POSITIONS_PER_WORD))
        .map(move |j| (word(hash, j), POSITIONS_PER_WORD.min(num_hashes - j * POSITIONS_PER_WORD)))
}

#[inline(always)]
pub fn insert(block: &mut [u8; BLOCK_BYTES], num_hashes: u32, hash: u64) {
    for (mut positions, count) in words(num_hashes, hash) {
        for _ in 0..count {
            let bytes = &mut block.as_chunks_mut::<8>().0[(positions >> 6) as usize & 7];
            *bytes = (u64::from_le_bytes(*bytes) | 1 << (positions & 63)).to_le_bytes();
            positions >>= 9;
        }
    }
}

#[inline(always)]
pub fn contains(block: &[u8; BLOCK_BYTES], num_hashes: u32, hash: u64) -> bool {
    words(num_hashes, hash).all(|(mut positions, count)| {
        let mut all = 1;
        for _ in 0..count {
            all &= block[(positions >> 3) as usize & 63] >> (positions & 7);
            positions >>= 9;
        }
        all & 1 == 1
    })
}
