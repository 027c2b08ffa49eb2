//! Layouts: which bits of the payload an element sets.
//!
//! | layout | block | an element sets |
//! |---|---|---|
//! | `blocked` | 512 bits: a cache line | k bits anywhere in one block |
//! | `classic` | one bit | k bits anywhere |
//! | `parquet` | 256 bits, split in eight words | one bit in each word of one block |
//!
//! A layout divides the payload into blocks and chooses an element's blocks by multiply-shift
//! ([`crate::hash::reduce`]), so block `i` of a filter with `B` blocks has exactly the elements of
//! blocks `q·i … q·i + q - 1` of one with `q·B`.

pub(crate) mod blocked;
mod classic;
mod parquet;

pub use parquet::PARQUET_HASHES;

use crate::hash::{reduce, word};
use crate::interrupt::{self, Meter, STRIDE_BYTES, paired_strides};
use crate::simd::{PREFETCH_AHEAD, prefetch};

/// Elements whose bits are set between two checks for interrupts.
const UNCANCELLED: usize = 1 << 16;

/// A layout by name, as chosen by users and kept in the stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Layout {
    /// One 512-bit block for an element; the default.
    Blocked = 1,
    /// The textbook filter.
    Classic = 2,
    /// Parquet's split block filter.
    Parquet = 3,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Layout; 3] = [Layout::Blocked, Layout::Classic, Layout::Parquet];

    /// The layout with this stored code.
    pub fn from_code(code: u8) -> Option<Layout> {
        Layout::ALL.into_iter().find(|&l| l as u8 == code)
    }

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Blocked => "blocked",
            Layout::Classic => "classic",
            Layout::Parquet => "parquet",
        }
    }

    /// The layout with this name.
    pub fn from_name(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|l| l.name() == name)
    }

    /// Bits of a block.
    pub const fn block_bits(self) -> u64 {
        match self {
            Layout::Blocked => 8 * blocked::BLOCK_BYTES as u64,
            Layout::Classic => 1,
            Layout::Parquet => 8 * parquet::BLOCK_BYTES as u64,
        }
    }

    /// Bytes of the dense payload of `blocks` blocks.
    pub fn payload_bytes(self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.block_bits()).div_ceil(8)
    }

    /// ORs every block of `small` into the `q` blocks of `large` that hold its elements.
    pub fn spread(self, small: &[u8], large: &mut [u8], q: u64) {
        match self {
            _ if q == 1 => or_bytes(large, small),
            Layout::Blocked => spread_blocks::<{ blocked::BLOCK_BYTES }>(small, large, q),
            Layout::Classic => classic::spread(small, large, q),
            Layout::Parquet => spread_blocks::<{ parquet::BLOCK_BYTES }>(small, large, q),
        }
    }

    /// ORs each `q` neighbouring blocks of `large` into one of `small`.
    pub fn fold(self, large: &[u8], small: &mut [u8], q: u64) {
        match self {
            _ if q == 1 => or_bytes(small, large),
            Layout::Blocked => fold_blocks::<{ blocked::BLOCK_BYTES }>(large, small, q),
            Layout::Classic => classic::fold(large, small, q),
            Layout::Parquet => fold_blocks::<{ parquet::BLOCK_BYTES }>(large, small, q),
        }
    }
}

/// The smallest rate that a layout can keep at any size.
pub fn least_fpr(layout: Layout) -> f64 {
    if layout == Layout::Parquet { 1e-6 } else { 1e-9 }
}

/// The greatest rate that a filter may promise: it finds half of the absent elements.
pub const GREATEST_FPR: f64 = 0.5;

pub fn is_possible_fpr(layout: Layout, fpr: f64) -> bool {
    (least_fpr(layout)..=GREATEST_FPR).contains(&fpr)
}

/// The most hashes (k) that a filter may have.
pub const MAX_HASHES: u32 = 64;

/// Layout, number of hashes and number of blocks, which decide the bits that an element sets. A
/// payload always has [`Shape::payload_bytes`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub layout: Layout,
    /// Hashes per element (k).
    pub num_hashes: u32,
    pub blocks: u64,
}

impl Shape {
    pub fn payload_bytes(self) -> u64 {
        self.layout.payload_bytes(self.blocks)
    }

    /// The first block that an element touches; in `classic`, its first bit.
    #[inline(always)]
    pub fn block_of(self, hash: u64) -> u64 {
        match self.layout {
            Layout::Blocked => reduce(hash, self.blocks),
            Layout::Classic => reduce(word(hash, 0), self.blocks),
            Layout::Parquet => parquet::block_of(hash, self.blocks),
        }
    }

    /// The bits of an element in the `classic` layout.
    #[inline(always)]
    pub fn classic_bits(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.num_hashes).map(move |j| reduce(word(hash, j), self.blocks))
    }

    /// Sets the bits of many elements in a dense payload.
    pub fn insert_all(self, payload: &mut [u8], hashes: &[u64]) {
        for (i, piece) in hashes.chunks(UNCANCELLED).enumerate() {
            if i > 0 {
                interrupt::check();
            }
            for (i, &hash) in piece.iter().enumerate() {
                self.prefetch_ahead(payload, piece, i);
                self.insert(payload, hash);
            }
        }
    }

    #[inline(always)]
    fn insert(self, payload: &mut [u8], hash: u64) {
        let block = self.block_of(hash) as usize;
        match self.layout {
            Layout::Blocked => {
                blocked::insert(&mut payload.as_chunks_mut().0[block], self.num_hashes, hash)
            }
            Layout::Classic => self.classic_bits(hash).for_each(|bit| classic::set(payload, bit)),
            Layout::Parquet => parquet::insert(&mut payload.as_chunks_mut().0[block], hash),
        }
    }

    /// Whether every bit of one element is set in a dense payload.
    #[inline]
    pub fn contains(self, payload: &[u8], hash: u64) -> bool {
        let block = self.block_of(hash) as usize;
        match self.layout {
            Layout::Blocked => {
                blocked::contains(&payload.as_chunks().0[block], self.num_hashes, hash)
            }
            Layout::Classic => self.classic_bits(hash).all(|bit| classic::has(payload, bit)),
            Layout::Parquet => parquet::contains(&payload.as_chunks().0[block], hash),
        }
    }

    /// Probes many elements in a dense payload. Calls `found` with each result, in order.
    pub fn contains_each(self, payload: &[u8], hashes: &[u64], mut found: impl FnMut(bool)) {
        for (i, &hash) in hashes.iter().enumerate() {
            self.prefetch_ahead(payload, hashes, i);
            found(self.contains(payload, hash));
        }
    }

    /// Prefetches the memory that a probe for this element needs.
    #[inline(always)]
    pub fn prefetch(self, payload: &[u8], hash: u64) {
        let start = payload.as_ptr();
        match self.layout {
            Layout::Blocked => prefetch(start, self.block_of(hash) as usize * blocked::BLOCK_BYTES),
            Layout::Classic => self
                .classic_bits(hash)
                .for_each(|bit| prefetch(start, (bit >> 3) as usize)),
            Layout::Parquet => prefetch(start, self.block_of(hash) as usize * parquet::BLOCK_BYTES),
        }
    }

    /// Prefetches what one of the elements after the `i`-th needs.
    #[inline(always)]
    fn prefetch_ahead(self, payload: &[u8], hashes: &[u64], i: usize) {
        if let Some(&ahead) = hashes.get(i + PREFETCH_AHEAD) {
            self.prefetch(payload, ahead);
        }
    }
}

/// ORs `from` into `into`, byte by byte, in strides that can be cancelled.
pub fn or_bytes(into: &mut [u8], from: &[u8]) {
    for (into, from) in paired_strides(into, from) {
        into.iter_mut().zip(from).for_each(|(i, &f)| *i |= f);
    }
}

/// ANDs `from` into `into`, byte by byte, in strides that can be cancelled.
pub fn and_bytes(into: &mut [u8], from: &[u8]) {
    for (into, from) in paired_strides(into, from) {
        into.iter_mut().zip(from).for_each(|(i, &f)| *i &= f);
    }
}

/// Spreading for layouts whose blocks are `N` whole bytes.
fn spread_blocks<const N: usize>(small: &[u8], large: &mut [u8], q: u64) {
    let mut meter = Meter::default();
    for (block, copies) in small
        .as_chunks::<N>()
        .0
        .iter()
        .zip(large.as_chunks_mut::<N>().0.chunks_mut(q as usize))
    {
        for copies in copies.chunks_mut(STRIDE_BYTES / N) {
            copies
                .iter_mut()
                .for_each(|copy| copy.iter_mut().zip(block).for_each(|(c, &b)| *c |= b));
            meter.add_bytes(copies.len() * N);
        }
    }
}

/// Folding for layouts whose blocks are `N` whole bytes.
fn fold_blocks<const N: usize>(large: &[u8], small: &mut [u8], q: u64) {
    let mut meter = Meter::default();
    for (block, copies) in small
        .as_chunks_mut::<N>()
        .0
        .iter_mut()
        .zip(large.as_chunks::<N>().0.chunks(q as usize))
    {
        for copies in copies.chunks(STRIDE_BYTES / N) {
            copies
                .iter()
                .for_each(|copy| block.iter_mut().zip(copy).for_each(|(b, &c)| *b |= c));
            meter.add_bytes(copies.len() * N);
        }
    }
}
