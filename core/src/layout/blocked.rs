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

use super::scheme::{Scheme, Shape};
use crate::hash::{reduce, word};
use crate::simd::{Blocks, POSITIONS_PER_WORD, prefetch};

/// The `blocked` layout.
pub struct Blocked;

pub(super) const BLOCK_BYTES: usize = 64;

impl Blocked {
    #[inline(always)]
    fn offset(shape: Shape, hash: u64) -> usize {
        Self::block_of(shape, hash) as usize * BLOCK_BYTES
    }
}

impl Scheme for Blocked {
    #[inline(always)]
    fn block_of(shape: Shape, hash: u64) -> u64 {
        reduce(hash, shape.blocks)
    }

    #[inline(always)]
    fn insert(payload: &mut [u8], shape: Shape, hash: u64) {
        let offset = Self::offset(shape, hash);
        let block = payload[offset..offset + BLOCK_BYTES].as_chunks_mut::<8>().0;
        let block: &mut [[u8; 8]; 8] = block.try_into().expect("a block is eight words");
        let mut left = shape.num_hashes;
        let mut j = 0;
        loop {
            let mut bits = word(hash, j);
            for _ in 0..left.min(POSITIONS_PER_WORD) {
                let bytes = &mut block[(bits as usize >> 6) & 7];
                *bytes = (u64::from_le_bytes(*bytes) | 1 << (bits & 63)).to_le_bytes();
                bits >>= 9;
            }
            if left <= POSITIONS_PER_WORD {
                return;
            }
            left -= POSITIONS_PER_WORD;
            j += 1;
        }
    }

    #[inline(always)]
    fn contains(payload: &[u8], shape: Shape, hash: u64) -> bool {
        let offset = Self::offset(shape, hash);
        let block: &[u8; BLOCK_BYTES] = payload[offset..offset + BLOCK_BYTES].try_into().expect("a block is 64 bytes");
        let mut left = shape.num_hashes;
        let mut j = 0;
        loop {
            let mut bits = word(hash, j);
            let mut all = 1u8;
            for _ in 0..left.min(POSITIONS_PER_WORD) {
                all &= block[(bits as usize >> 3) & 63] >> (bits & 7);
                bits >>= 9;
            }
            if all & 1 == 0 {
                return false;
            }
            if left <= POSITIONS_PER_WORD {
                return true;
            }
            left -= POSITIONS_PER_WORD;
            j += 1;
        }
    }

    #[inline(always)]
    fn prefetch(payload: &[u8], shape: Shape, hash: u64) {
        prefetch(payload.as_ptr(), Self::offset(shape, hash));
    }
}

/// The blocks of a shape of this layout, for code for particular CPUs.
pub(super) fn blocks_of(shape: Shape) -> Blocks {
    Blocks { count: shape.blocks, num_hashes: shape.num_hashes }
}

#[cfg(test)]
mod tests;
