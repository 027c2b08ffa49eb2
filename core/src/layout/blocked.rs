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

/// Bits of a number below 512, which is the number of bits of a block.
const POSITION_BITS: u32 = 9;
/// How many positions one word has bits for.
const POSITIONS_PER_WORD: u32 = u64::BITS / POSITION_BITS;

/// Up to seven positions in a block, packed into one number: 9 bits each, the first one lowest.
struct PackedPositions {
    bits: u64,
    count: u32,
}

/// Returns the positions of the `num_hashes` bits of an element in its block.
#[inline(always)]
fn positions(num_hashes: u32, hash: u64) -> impl Iterator<Item = PackedPositions> {
    let num_words = num_hashes.div_ceil(POSITIONS_PER_WORD);
    (0..num_words).map(move |j| {
        let remaining = num_hashes - j * POSITIONS_PER_WORD;
        PackedPositions {
            bits: word(hash, j),
            count: remaining.min(POSITIONS_PER_WORD),
        }
    })
}

/// Sets the `num_hashes` bits of an element in its block.
#[inline(always)]
pub fn insert(block: &mut [u8; BLOCK_BYTES], num_hashes: u32, hash: u64) {
    let (words, _) = block.as_chunks_mut::<8>();
    for mut packed in positions(num_hashes, hash) {
        for _ in 0..packed.count {
            // The lowest 9 bits are a position: 3 bits choose one of 8 words, 6 bits one of its 64
            // bits.
            let word = &mut words[(packed.bits >> 6) as usize & 7];
            let bit = 1 << (packed.bits & 63);
            *word = (u64::from_le_bytes(*word) | bit).to_le_bytes();
            packed.bits >>= POSITION_BITS;
        }
    }
}

/// Returns whether all bits of an element are set in its block: whether the element may be in the
/// filter. An element has up to `num_hashes` bits, at positions from 0 to 511, which are derived
/// from its hash.
#[inline(always)]
pub fn contains(block: &[u8; BLOCK_BYTES], num_hashes: u32, hash: u64) -> bool {
    let (words, _) = block.as_chunks::<8>();
    // Up to seven positions come packed into one number, 9 bits each, the first one lowest.
    positions(num_hashes, hash).all(|mut packed| {
        // The lowest bit of `are_set` stays 1 as long as all bits that were looked at are set. Its
        // other bits are rubbish, and are dropped in the end. The positions of one number are
        // looked at without branches, which would be mispredicted.
        let mut are_set = 1;
        for _ in 0..packed.count {
            // The lowest 9 bits are a position: 3 bits choose one of 8 words, 6 bits one of its 64
            // bits.
            let word = u64::from_le_bytes(words[(packed.bits >> 6) as usize & 7]);
            are_set &= word >> (packed.bits & 63);
            packed.bits >>= POSITION_BITS;
        }
        are_set & 1 == 1
    })
}
