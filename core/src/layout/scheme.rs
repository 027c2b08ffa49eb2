//! What every layout has: a name, the rates that it can keep, the numbers that decide the bits that an element sets,
//! and its operations; and code that several layouts share.

use crate::interrupt::{Meter, strides_with};
use crate::simd::PREFETCH_AHEAD;

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
    pub fn named(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|l| l.name() == name)
    }

    /// Bits of a block.
    pub const fn block_bits(self) -> u64 {
        match self {
            Layout::Blocked => 512,
            Layout::Classic => 1,
            Layout::Parquet => 256,
        }
    }

    /// Bytes of the dense payload of `blocks` blocks.
    pub fn payload_bytes(self, blocks: u64) -> u64 {
        match self {
            Layout::Classic => blocks.div_ceil(8),
            _ => blocks.saturating_mul(self.block_bits() / 8),
        }
    }
}

/// The most hashes (k) that a filter may have.
pub const MAX_HASHES: u32 = 64;

/// Layout, number of hashes and number of blocks, which decide the bits that an element sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The layout.
    pub layout: Layout,
    /// Hashes per element (k).
    pub num_hashes: u32,
    /// Blocks of the payload.
    pub blocks: u64,
}

impl Shape {
    /// Bytes of the payload.
    pub fn payload_bytes(self) -> u64 {
        self.layout.payload_bytes(self.blocks)
    }
}

/// The smallest rate that a layout can keep at any size.
pub fn least_fpr(layout: Layout) -> f64 {
    match layout {
        Layout::Parquet => 1e-6,
        _ => 1e-9,
    }
}

/// The greatest rate that a filter may promise: it finds half of the absent elements.
pub const GREATEST_FPR: f64 = 0.5;

/// Whether a filter of a layout may promise a rate.
pub fn is_possible_fpr(layout: Layout, fpr: f64) -> bool {
    (least_fpr(layout)..=GREATEST_FPR).contains(&fpr)
}

/// The operations of a layout. The payload always has [`Shape::payload_bytes`] bytes.
pub trait Scheme {
    /// The first block that an element touches; in `classic`, its first bit.
    fn block_of(shape: Shape, hash: u64) -> u64;

    /// Sets the bits of one element.
    fn insert(payload: &mut [u8], shape: Shape, hash: u64);

    /// Whether every bit of one element is set.
    fn contains(payload: &[u8], shape: Shape, hash: u64) -> bool;

    /// Prefetches the memory that this element needs.
    fn prefetch(payload: &[u8], shape: Shape, hash: u64);

    /// Sets the bits of many elements, prefetching memory.
    fn insert_all(payload: &mut [u8], shape: Shape, hashes: &[u64]) {
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&ahead) = hashes.get(i + PREFETCH_AHEAD) {
                Self::prefetch(payload, shape, ahead);
            }
            Self::insert(payload, shape, hash);
        }
    }

    /// Probes many elements, prefetching memory. Calls `found` with each result, in order.
    fn contains_each(payload: &[u8], shape: Shape, hashes: &[u64], mut found: impl FnMut(bool)) {
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&ahead) = hashes.get(i + PREFETCH_AHEAD) {
                Self::prefetch(payload, shape, ahead);
            }
            found(Self::contains(payload, shape, hash));
        }
    }
}

/// ORs `from` into `into`, byte by byte, in strides that can be cancelled.
pub fn or_bytes(into: &mut [u8], from: &[u8]) {
    for (into, from) in strides_with(into, from) {
        into.iter_mut().zip(from).for_each(|(i, &f)| *i |= f);
    }
}

/// ANDs `from` into `into`, byte by byte, in strides that can be cancelled.
pub fn and_bytes(into: &mut [u8], from: &[u8]) {
    for (into, from) in strides_with(into, from) {
        into.iter_mut().zip(from).for_each(|(i, &f)| *i &= f);
    }
}

/// Spreading for layouts whose blocks are `N` whole bytes.
pub(super) fn spread_blocks<const N: usize>(small: &[u8], large: &mut [u8], q: u64) {
    let mut meter = Meter::default();
    for (block, copies) in small.as_chunks::<N>().0.iter().zip(large.as_chunks_mut::<N>().0.chunks_mut(q as usize)) {
        for copy in copies {
            copy.iter_mut().zip(block).for_each(|(c, &b)| *c |= b);
            meter.add(N);
        }
    }
}

/// Folding for layouts whose blocks are `N` whole bytes.
pub(super) fn fold_blocks<const N: usize>(large: &[u8], small: &mut [u8], q: u64) {
    let mut meter = Meter::default();
    for (block, copies) in small.as_chunks_mut::<N>().0.iter_mut().zip(large.as_chunks::<N>().0.chunks(q as usize)) {
        for copy in copies {
            block.iter_mut().zip(copy).for_each(|(b, &c)| *b |= c);
            meter.add(N);
        }
    }
}
