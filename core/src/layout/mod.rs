//! Layouts: which bits of the payload an element sets.
//!
//! | layout | block | an element sets |
//! |---|---|---|
//! | [`Blocked`] | 512 bits: a cache line | k bits anywhere in one block |
//! | [`Classic`] | one bit | k bits anywhere |
//! | [`Parquet`] | 256 bits, split in eight words | one bit in each word of one block |
//!
//! [`Shape`] has layout, number of hashes and number of blocks. Its methods, here, are the operations of its layout; it
//! is in `scheme`, with the trait that `blocked`, `classic` and `parquet` implement.
//!
//! A layout divides the payload into blocks and chooses an element's blocks by multiply-shift
//! ([`crate::hash::reduce`]), so block `i` of a filter with `B` blocks has exactly the elements of blocks
//! `q·i … q·i + q - 1` of one with `q·B`.

mod blocked;
mod classic;
mod parquet;
mod scheme;

pub use blocked::Blocked;
pub use classic::Classic;
pub use parquet::{PARQUET_HASHES, Parquet};
pub use scheme::{GREATEST_FPR, Layout, MAX_HASHES, Scheme, Shape, and_bytes, is_possible_fpr, least_fpr, or_bytes};

use blocked::blocks_of;
use scheme::{fold_blocks, spread_blocks};

use crate::{interrupt, simd};

/// Elements whose bits are set between two checks for interrupts.
const UNCANCELLED: usize = 1 << 16;

/// Runs `$body` with `$scheme` standing for the type that implements `$layout`.
macro_rules! with_scheme {
    ($layout:expr, $scheme:ident => $body:expr) => {
        match $layout {
            Layout::Blocked => {
                type $scheme = Blocked;
                $body
            }
            Layout::Classic => {
                type $scheme = Classic;
                $body
            }
            Layout::Parquet => {
                type $scheme = Parquet;
                $body
            }
        }
    };
}

impl Shape {
    /// The first block that an element touches; in `classic`, its first bit.
    #[inline]
    pub fn block_of(self, hash: u64) -> u64 {
        with_scheme!(self.layout, S => S::block_of(self, hash))
    }

    /// The bits of an element in the `classic` layout.
    pub fn classic_bits(self, hash: u64) -> impl Iterator<Item = u64> {
        classic::bits(self, hash)
    }

    /// Sets the bits of many elements in a dense payload.
    pub fn insert_all(self, payload: &mut [u8], hashes: &[u64]) {
        for (i, piece) in hashes.chunks(UNCANCELLED).enumerate() {
            if i > 0 {
                interrupt::check();
            }
            if self.layout != Layout::Blocked || !simd::insert_all(payload, blocks_of(self), piece) {
                with_scheme!(self.layout, S => S::insert_all(payload, self, piece));
            }
        }
    }

    /// Whether every bit of one element is set in a dense payload.
    #[inline]
    pub fn contains(self, payload: &[u8], hash: u64) -> bool {
        with_scheme!(self.layout, S => S::contains(payload, self, hash))
    }

    /// Probes many elements in a dense payload. Calls `found` with each result, in order.
    pub fn contains_each(self, payload: &[u8], hashes: &[u64], mut found: impl FnMut(bool)) {
        if self.layout != Layout::Blocked || !simd::contains_each(payload, blocks_of(self), hashes, &mut found) {
            with_scheme!(self.layout, S => S::contains_each(payload, self, hashes, found));
        }
    }

    /// Prefetches the memory that a probe for this element needs.
    #[inline(always)]
    pub fn prefetch(self, payload: &[u8], hash: u64) {
        with_scheme!(self.layout, S => S::prefetch(payload, self, hash));
    }
}

impl Layout {
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
