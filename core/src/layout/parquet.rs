//! `parquet`: the split block filter of the Parquet format, bit for bit (parquet-format,
//! BloomFilter.md).
//!
//! ```text
//! block      = ((h >> 32) · z) >> 32          z blocks of eight 32-bit little-endian words
//! bit of word i = ((low 32 bits of h) · SALT[i] mod 2^32) >> 27
//! ```

/// The number of hashes, which the format fixes: one bit in each word of a block.
pub const PARQUET_HASHES: u32 = 8;

pub const BLOCK_BYTES: usize = 32;

/// The factors, one for each word of a block, that the format calls salts.
const SALT: [u32; 8] = [
    0x47B6_137B,
    0x4497_4D91,
    0x8824_AD5B,
    0xA2B7_289D,
    0x7054_95C7,
    0x2DF1_424B,
    0x9EFC_4947,
    0x5C6B_FB31,
];

/// Returns the number, below `blocks`, of the block of an element. There must be less than 2^32
/// blocks.
#[inline(always)]
pub fn block_of(hash: u64, blocks: u64) -> u64 {
    ((hash >> 32) * blocks) >> 32
}

/// Returns for each word of a block the bit of an element, as a mask.
#[inline(always)]
fn masks(hash: u64) -> [u32; 8] {
    let low_half = hash as u32;
    // The highest 5 bits of the product are a number below 32.
    SALT.map(|salt| 1 << (low_half.wrapping_mul(salt) >> 27))
}

/// Sets the bits of an element in its block.
#[inline(always)]
pub fn insert(block: &mut [u8; BLOCK_BYTES], hash: u64) {
    let (words, _) = block.as_chunks_mut::<4>();
    for (word, mask) in words.iter_mut().zip(masks(hash)) {
        *word = (u32::from_le_bytes(*word) | mask).to_le_bytes();
    }
}

/// Returns whether all bits of an element are set in its block.
#[inline(always)]
pub fn contains(block: &[u8; BLOCK_BYTES], hash: u64) -> bool {
    let (words, _) = block.as_chunks::<4>();
    // Without a branch for each word, the compiler looks at all words at once.
    let mut missing_bits = 0;
    for (word, mask) in words.iter().zip(masks(hash)) {
        missing_bits |= mask & !u32::from_le_bytes(*word);
    }
    missing_bits == 0
}
