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

/// How many elements are added to a payload between two checks for interrupts. This takes about a
/// millisecond.
const ELEMENTS_BETWEEN_CHECKS: usize = 1 << 16;

/// The way in which the bits of an element are chosen. Users choose it by name; the codes are
/// stored.
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

    /// Returns the layout with a stored code; `None` if there is none.
    pub fn from_code(code: u8) -> Option<Layout> {
        Layout::ALL.into_iter().find(|&layout| layout as u8 == code)
    }

    /// Returns the name that users write.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Blocked => "blocked",
            Layout::Classic => "classic",
            Layout::Parquet => "parquet",
        }
    }

    /// Returns the layout with this name, in lower case; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// Returns how many bits a block has.
    pub const fn block_bits(self) -> u64 {
        match self {
            Layout::Blocked => 8 * blocked::BLOCK_BYTES as u64,
            Layout::Classic => 1,
            Layout::Parquet => 8 * parquet::BLOCK_BYTES as u64,
        }
    }

    /// Returns how many bytes the bits of `blocks` blocks take.
    pub fn payload_bytes(self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.block_bits()).div_ceil(8)
    }

    /// Spreads the bits of a filter to one with `factor` times as many blocks: ORs block `i` of
    /// `small` into blocks `factor·i` to `factor·i + factor - 1` of `large`. Afterwards all
    /// elements of `small` are in `large`. Checks for interrupts.
    pub fn spread(self, small: &[u8], large: &mut [u8], factor: u64) {
        if factor == 1 {
            return or_bytes(large, small);
        }
        match self {
            Layout::Blocked => spread_blocks::<{ blocked::BLOCK_BYTES }>(small, large, factor),
            Layout::Classic => classic::spread(small, large, factor),
            Layout::Parquet => spread_blocks::<{ parquet::BLOCK_BYTES }>(small, large, factor),
        }
    }

    /// Folds the bits of a filter to one with `factor` times fewer blocks: ORs blocks `factor·i` to
    /// `factor·i + factor - 1` of `large` into block `i` of `small`. Afterwards all elements of
    /// `large` are in `small`. Checks for interrupts.
    pub fn fold(self, large: &[u8], small: &mut [u8], factor: u64) {
        if factor == 1 {
            return or_bytes(small, large);
        }
        match self {
            Layout::Blocked => fold_blocks::<{ blocked::BLOCK_BYTES }>(large, small, factor),
            Layout::Classic => classic::fold(large, small, factor),
            Layout::Parquet => fold_blocks::<{ parquet::BLOCK_BYTES }>(large, small, factor),
        }
    }
}

/// The greatest false positive rate that a filter may promise: it finds half of the absent
/// elements.
pub const GREATEST_FPR: f64 = 0.5;

/// Returns the smallest false positive rate that filters of a layout can keep at any size.
pub fn least_fpr(layout: Layout) -> f64 {
    match layout {
        Layout::Blocked | Layout::Classic => 1e-9,
        // The number of hashes is fixed, so lower rates would take too many bits.
        Layout::Parquet => 1e-6,
    }
}

/// Returns whether filters of a layout may promise this false positive rate.
pub fn is_possible_fpr(layout: Layout, fpr: f64) -> bool {
    (least_fpr(layout)..=GREATEST_FPR).contains(&fpr)
}

/// The most hashes per element (k) that a filter may have.
pub const MAX_HASHES: u32 = 64;

/// The parameters of a filter that decide which bits an element sets.
///
/// Functions that take a payload expect one of [`Shape::payload_bytes`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub layout: Layout,
    /// Hashes per element (k).
    pub num_hashes: u32,
    pub blocks: u64,
}

impl Shape {
    /// Returns how many bytes the bits of a filter of this shape take.
    pub fn payload_bytes(self) -> u64 {
        self.layout.payload_bytes(self.blocks)
    }

    /// Returns the number of the block that has the bits of an element; in `classic`, where a block
    /// is one bit, that of its first bit.
    #[inline(always)]
    pub fn block_of(self, hash: u64) -> u64 {
        match self.layout {
            Layout::Blocked => reduce(hash, self.blocks),
            Layout::Classic => reduce(word(hash, 0), self.blocks),
            Layout::Parquet => parquet::block_of(hash, self.blocks),
        }
    }

    /// Returns the positions in the payload of the bits that an element sets in layout `classic`.
    #[inline(always)]
    pub fn classic_bits(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.num_hashes).map(move |j| reduce(word(hash, j), self.blocks))
    }

    /// Sets the bits of many elements, given by their hashes, in the payload of a filter of this
    /// shape. Memory is prefetched for later elements. After every 65,536 elements it is checked
    /// whether the user has cancelled the operation.
    pub fn insert_all(self, payload: &mut [u8], hashes: &[u64]) {
        for (batch, hashes_of_batch) in hashes.chunks(ELEMENTS_BETWEEN_CHECKS).enumerate() {
            // A call for a few elements is not cancelled.
            if batch > 0 {
                interrupt::check();
            }
            for (i, &hash) in hashes_of_batch.iter().enumerate() {
                self.prefetch_ahead(payload, hashes_of_batch, i);
                self.insert(payload, hash);
            }
        }
    }

    /// Sets the bits of an element, given by its hash, in a payload: up to k bits, in one block or,
    /// in layout `classic`, anywhere.
    #[inline(always)]
    fn insert(self, payload: &mut [u8], hash: u64) {
        let block = self.block_of(hash) as usize;
        match self.layout {
            Layout::Blocked => {
                let (blocks, _) = payload.as_chunks_mut();
                blocked::insert(&mut blocks[block], self.num_hashes, hash);
            }
            Layout::Classic => {
                for position in self.classic_bits(hash) {
                    classic::set(payload, position);
                }
            }
            Layout::Parquet => {
                let (blocks, _) = payload.as_chunks_mut();
                parquet::insert(&mut blocks[block], hash);
            }
        }
    }

    /// Returns whether all bits of an element, given by its hash, are set in a payload: whether the
    /// element may be in the filter.
    #[inline(always)]
    pub fn contains(self, payload: &[u8], hash: u64) -> bool {
        let block = self.block_of(hash) as usize;
        match self.layout {
            Layout::Blocked => {
                let (blocks, _) = payload.as_chunks();
                blocked::contains(&blocks[block], self.num_hashes, hash)
            }
            Layout::Classic => self
                .classic_bits(hash)
                .all(|position| classic::is_set(payload, position)),
            Layout::Parquet => {
                let (blocks, _) = payload.as_chunks();
                parquet::contains(&blocks[block], hash)
            }
        }
    }

    /// Probes many elements, given by their hashes, in a payload. Calls `found` for each, in order,
    /// with whether all its bits are set.
    pub fn contains_each(self, payload: &[u8], hashes: &[u64], mut found: impl FnMut(bool)) {
        for (i, &hash) in hashes.iter().enumerate() {
            self.prefetch_ahead(payload, hashes, i);
            found(self.contains(payload, hash));
        }
    }

    /// Asks the CPU to fetch the memory of the payload that a later probe for this element will
    /// read, so that the probe needn't wait for it. Changes nothing else.
    #[inline(always)]
    pub fn prefetch(self, payload: &[u8], hash: u64) {
        let start = payload.as_ptr();
        match self.layout {
            Layout::Blocked => prefetch(start, self.block_of(hash) as usize * blocked::BLOCK_BYTES),
            Layout::Classic => {
                for position in self.classic_bits(hash) {
                    prefetch(start, (position >> 3) as usize);
                }
            }
            Layout::Parquet => prefetch(start, self.block_of(hash) as usize * parquet::BLOCK_BYTES),
        }
    }

    /// While element `i` of a batch is processed, prefetches the memory of an element that follows
    /// it, if there is one.
    #[inline(always)]
    fn prefetch_ahead(self, payload: &[u8], hashes: &[u64], i: usize) {
        if let Some(&later_hash) = hashes.get(i + PREFETCH_AHEAD) {
            self.prefetch(payload, later_hash);
        }
    }
}

/// ORs the bytes of `from` into those of `into`. Checks for interrupts.
pub fn or_bytes(into: &mut [u8], from: &[u8]) {
    for (into, from) in paired_strides(into, from) {
        or_stride(into, from);
    }
}

/// ANDs the bytes of `from` into those of `into`. Checks for interrupts.
pub fn and_bytes(into: &mut [u8], from: &[u8]) {
    for (into, from) in paired_strides(into, from) {
        for (into, from) in into.iter_mut().zip(from) {
            *into &= from;
        }
    }
}

/// ORs the bytes of `from` into those of `into`.
#[inline(always)]
fn or_stride(into: &mut [u8], from: &[u8]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into |= from;
    }
}

/// Spreads the bits of a filter to one with `factor` times as many blocks: ORs block `i` of `small`
/// into blocks `factor·i` to `factor·i + factor - 1` of `large`, for each `i`. In the larger size
/// an element of block `i` belongs to one of these, so all elements of the small filter are in the
/// large one then. All blocks have `BLOCK_BYTES` bytes.
///
/// Checks for interrupts, so a user can cancel it.
fn spread_blocks<const BLOCK_BYTES: usize>(small: &[u8], large: &mut [u8], factor: u64) {
    let (small_blocks, _) = small.as_chunks::<BLOCK_BYTES>();
    let (large_blocks, _) = large.as_chunks_mut::<BLOCK_BYTES>();
    let groups = large_blocks.chunks_mut(factor as usize);

    let mut meter = Meter::default();
    for (small_block, group) in small_blocks.iter().zip(groups) {
        // A group may be as large as the filter, so it is written in strides: the meter checks for
        // interrupts after some bytes.
        for stride in group.chunks_mut(STRIDE_BYTES / BLOCK_BYTES) {
            for large_block in stride.iter_mut() {
                or_stride(large_block, small_block);
            }
            meter.add_bytes(stride.len() * BLOCK_BYTES);
        }
    }
}

/// Folds the bits of a filter to one with `factor` times fewer blocks: ORs blocks `factor·i` to
/// `factor·i + factor - 1` of `large` into block `i` of `small`, for each `i`. In the smaller size
/// all elements of these blocks belong to block `i`, so all elements of the large filter are in the
/// small one then. All blocks have `BLOCK_BYTES` bytes.
///
/// Checks for interrupts, so a user can cancel it.
fn fold_blocks<const BLOCK_BYTES: usize>(large: &[u8], small: &mut [u8], factor: u64) {
    let (small_blocks, _) = small.as_chunks_mut::<BLOCK_BYTES>();
    let (large_blocks, _) = large.as_chunks::<BLOCK_BYTES>();
    let groups = large_blocks.chunks(factor as usize);

    let mut meter = Meter::default();
    for (small_block, group) in small_blocks.iter_mut().zip(groups) {
        // A group may be as large as the filter, so it is read in strides: the meter checks for
        // interrupts after some bytes.
        for stride in group.chunks(STRIDE_BYTES / BLOCK_BYTES) {
            for large_block in stride {
                or_stride(small_block, large_block);
            }
            meter.add_bytes(stride.len() * BLOCK_BYTES);
        }
    }
}
