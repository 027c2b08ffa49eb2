//! Filters as sets of bits, by docs/format.md alone: slow, short, and sharing nothing with the code
//! that it judges.

use pg_bloom_core::{Body, Header, Layout, View};

/// The most bits that are compared with an oracle.
pub const MOST_BITS: u64 = 1 << 16;

/// The salts of the Parquet format.
const SALT: [u32; 8] = [
    0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
];

/// The j-th word of a hash: SplitMix64.
fn word(hash: u64, j: u32) -> u64 {
    let mut z = hash.wrapping_add(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(u64::from(j) + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn part(hash: u64, of: u64) -> u64 {
    (u128::from(hash) * u128::from(of) / (1 << 64)) as u64
}

/// The bits of an element in a filter of so many blocks.
pub fn positions(layout: Layout, hashes: u32, blocks: u64, hash: u64) -> Vec<u64> {
    match layout {
        Layout::Blocked => (0..hashes)
            .map(|j| part(hash, blocks) * 512 + (word(hash, j / 7) >> (9 * (j % 7))) % 512)
            .collect(),
        Layout::Classic => (0..hashes).map(|j| part(word(hash, j), blocks)).collect(),
        Layout::Parquet => SALT
            .iter()
            .zip(0..)
            .map(|(salt, i)| {
                let block = ((hash >> 32) * blocks) >> 32;
                block * 256 + i * 32 + u64::from((hash as u32).wrapping_mul(*salt) >> 27)
            })
            .collect(),
    }
}

/// The bits of D(view), the dense form at its own size; `None` if they are too many, or there is no
/// size.
pub fn bits_of(view: &View<'_>) -> Option<Vec<bool>> {
    let h = &view.header;
    let count = h.blocks * h.layout.block_bits();
    if count > MOST_BITS || h.is_unsized() {
        return None;
    }
    match view.body {
        Body::Dense(bytes) => {
            let all = bytes
                .iter()
                .flat_map(|byte| std::array::from_fn::<_, 8, _>(|i| byte >> i & 1 == 1));
            let mut bits: Vec<bool> = all.collect();
            // The last byte of a `classic` filter has bits to spare.
            bits.truncate(count as usize);
            Some(bits)
        }
        Body::Sparse(entries) => {
            let mut bits = vec![false; count as usize];
            set(&mut bits, h, entries.iter().map(|entry| u64::from_le_bytes(*entry)));
            Some(bits)
        }
    }
}

/// Sets the bits of elements.
pub fn set(bits: &mut [bool], h: &Header<'_>, elements: impl IntoIterator<Item = u64>) {
    for hash in elements {
        positions(h.layout, h.num_hashes, h.blocks, hash)
            .into_iter()
            .for_each(|p| bits[p as usize] = true);
    }
}

/// The bits spread over `q` times as many blocks.
pub fn spread(layout: Layout, bits: &[bool], q: u64) -> Vec<bool> {
    let (width, q) = (layout.block_bits() as usize, q as usize);
    let mut spread = vec![false; bits.len() * q];
    for (block, copies) in bits.chunks_exact(width).zip(spread.chunks_exact_mut(width * q)) {
        match block {
            [bit] => copies.fill(*bit),
            _ => copies
                .chunks_exact_mut(width)
                .for_each(|copy| copy.copy_from_slice(block)),
        }
    }
    spread
}

/// The bits folded to one `q`-th of the blocks.
pub fn fold(layout: Layout, bits: &[bool], q: u64) -> Vec<bool> {
    let (width, q) = (layout.block_bits() as usize, q as usize);
    let mut folded = vec![false; bits.len() / q];
    for (block, group) in folded.chunks_exact_mut(width).zip(bits.chunks_exact(width * q)) {
        for part in group.chunks_exact(width) {
            block.iter_mut().zip(part).for_each(|(bit, other)| *bit |= other);
        }
    }
    folded
}

/// How many bits are set. The sum wraps so that the compiler can add many at once; there are too
/// few bits for that to happen.
pub fn ones(bits: &[bool]) -> u64 {
    bits.iter()
        .fold(0, |ones: u64, &bit| ones.wrapping_add(u64::from(bit)))
}

/// The chance that an absent element is found: the mean over blocks of the chance in each.
pub fn rate(h: &Header<'_>, bits: &[bool]) -> f64 {
    let fill = |bits: &[bool]| ones(bits) as f64 / bits.len() as f64;
    match h.layout {
        Layout::Classic => fill(bits).powi(h.num_hashes as i32),
        Layout::Blocked => {
            bits.chunks(512)
                .map(|b| fill(b).powi(h.num_hashes as i32))
                .sum::<f64>()
                / h.blocks as f64
        }
        Layout::Parquet => {
            bits.chunks(256)
                .map(|b| b.chunks(32).map(fill).product::<f64>())
                .sum::<f64>()
                / h.blocks as f64
        }
    }
}

/// Whether a filter has an element, by definition.
pub fn has(view: &View<'_>, hash: u64) -> bool {
    let h = &view.header;
    match view.body {
        Body::Sparse(entries) => entries.contains(&hash.to_le_bytes()),
        Body::Dense(bits) => positions(h.layout, h.num_hashes, h.blocks, hash)
            .iter()
            .all(|p| bits[(p / 8) as usize] >> (p % 8) & 1 == 1),
    }
}
