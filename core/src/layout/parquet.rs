//! `parquet`: the split block filter of the Parquet format, bit for bit (parquet-format,
//! BloomFilter.md).
//!
//! ```text
//! block      = ((h >> 32) · z) >> 32          z blocks of eight 32-bit little-endian words
//! bit of word i = ((low 32 bits of h) · SALT[i] mod 2^32) >> 27
//! ```

/// The number of hashes, which the format fixes.
pub const PARQUET_HASHES: u32 = 8;

pub const BLOCK_BYTES: usize = 32;

/// The salts of the Parquet format.
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

#[inline(always)]
pub fn block_of(hash: u64, blocks: u64) -> u64 {
    ((hash >> 32) * blocks) >> 32
}

/// The bit of each word.
#[inline(always)]
fn mask(hash: u64) -> [u32; 8] {
    SALT.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

#[inline(always)]
pub fn insert(block: &mut [u8; BLOCK_BYTES], hash: u64) {
    for (bytes, bit) in block.as_chunks_mut::<4>().0.iter_mut().zip(mask(hash)) {
        *bytes = (u32::from_le_bytes(*bytes) | bit).to_le_bytes();
    }
}

#[inline(always)]
pub fn contains(block: &[u8; BLOCK_BYTES], hash: u64) -> bool {
    let words = block.as_chunks::<4>().0.iter().zip(mask(hash));
    words.fold(0, |missing, (bytes, bit)| missing | (bit & !u32::from_le_bytes(*bytes))) == 0
}
