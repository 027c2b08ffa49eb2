//! Layouts: which bits of the payload an element sets.
//!
//! | layout | block | an element sets |
//! |---|---|---|
//! | [`Blocked`] | 512 bits: a cache line | k bits anywhere in one block |
//! | [`Classic`] | one bit | k bits anywhere |
//! | [`Parquet`] | 256 bits, split in eight words | one bit in each word of one block |
//!
//! `blocked`, `classic` and `parquet` implement the trait of `scheme`; `simd` has what a CPU does faster.
//!
//! A layout divides the payload into blocks and chooses an element's blocks by multiply-shift
//! ([`crate::hash::reduce`]), so block `i` of a filter with `B` blocks holds just the elements of blocks `q·i … q·i + q
//! - 1` of one with `q·B`.

mod blocked;
mod classic;
mod parquet;
mod scheme;
#[allow(unsafe_code, reason = "the one place: prefetches, loads and stores of whole registers have no safe form")]
mod simd;

pub use blocked::Blocked;
pub use classic::Classic;
pub use parquet::{PARQUET_HASHES, Parquet};
pub use scheme::{Scheme, and_bytes, or_bytes};
pub(crate) use simd::{COUNTS, count_ones, prefetch, tally_blocks};

use crate::error::{Code, Error, Result};

/// Elements whose bits are set before the next look whether to stop.
const UNCANCELLED: usize = 1 << 16;

/// The most hashes (k) that a filter may have.
pub const MAX_HASHES: u32 = 64;

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
    ///
    /// # Errors
    /// [`Code::InvalidParameter`] for any other name.
    pub fn parse(name: &str) -> Result<Layout> {
        Layout::ALL.into_iter().find(|l| l.name() == name).ok_or_else(|| {
            Error::new(Code::InvalidParameter, format!("unknown bloom filter layout \"{name}\""))
                .hint("The layouts are \"blocked\", \"classic\" and \"parquet\".")
        })
    }

    /// Bits of a block.
    pub fn block_bits(self) -> u64 {
        with_scheme!(self, S => S::BLOCK_BITS)
    }

    /// Bytes of the dense payload of `blocks` blocks.
    pub fn payload_bytes(self, blocks: u64) -> u64 {
        match self {
            Layout::Classic => blocks.div_ceil(8),
            _ => blocks.saturating_mul(self.block_bits() / 8),
        }
    }

    /// The first block that an element touches; in `classic`, its first bit.
    #[inline]
    pub fn block_of(self, blocks: u64, hash: u64) -> u64 {
        with_scheme!(self, S => S::block_of(blocks, hash))
    }

    /// The bits of an element in the `classic` layout.
    pub fn bits(hashes: u32, blocks: u64, hash: u64) -> impl Iterator<Item = u64> {
        classic::bits(hashes, blocks, hash)
    }

    /// Sets the bits of many elements in a dense payload.
    pub fn insert_all(self, payload: &mut [u8], hashes: u32, blocks: u64, elements: &[u64]) {
        let mut pieces = elements.chunks(UNCANCELLED);
        if let Some(first) = pieces.next() {
            with_scheme!(self, S => S::insert_all(payload, hashes, blocks, first));
        }
        for piece in pieces {
            crate::interrupt::check();
            with_scheme!(self, S => S::insert_all(payload, hashes, blocks, piece));
        }
    }

    /// Whether every bit of one element is set in a dense payload.
    #[inline]
    pub fn contains(self, payload: &[u8], hashes: u32, blocks: u64, hash: u64) -> bool {
        with_scheme!(self, S => S::contains(payload, hashes, blocks, hash))
    }

    /// Asks for many elements in a dense payload: calls `found` with each answer, in order.
    pub fn contains_each(self, payload: &[u8], hashes: u32, blocks: u64, elements: &[u64], found: impl FnMut(bool)) {
        with_scheme!(self, S => S::contains_each(payload, hashes, blocks, elements, found));
    }

    /// Asks for the first memory that a probe for this element needs.
    #[inline]
    pub fn prefetch(self, payload: &[u8], blocks: u64, hash: u64) {
        with_scheme!(self, S => S::prefetch(payload, blocks, hash));
    }

    /// ORs a payload of `blocks` blocks into one of `q · blocks`.
    pub fn spread(self, small: &[u8], large: &mut [u8], blocks: u64, q: u64) {
        if q == 1 {
            or_bytes(large, small);
        } else {
            with_scheme!(self, S => S::spread(small, large, blocks, q));
        }
    }

    /// ORs a payload of `q · blocks` blocks into one of `blocks`.
    pub fn fold(self, large: &[u8], small: &mut [u8], blocks: u64, q: u64) {
        if q == 1 {
            or_bytes(small, large);
        } else {
            with_scheme!(self, S => S::fold(large, small, blocks, q));
        }
    }
}
