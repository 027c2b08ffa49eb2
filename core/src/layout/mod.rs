//! Layouts: which bits of the payload an element sets.
//!
//! | layout | block | an element sets |
//! |---|---|---|
//! | [`Blocked`] | 512 bits: a cache line | k bits anywhere in one block |
//! | [`Classic`] | one bit | k bits anywhere |
//! | [`Parquet`] | 256 bits, split in eight words | one bit in each word of one block |
//!
//! A layout divides the payload into blocks and chooses an element's blocks by multiply-shift ([`crate::hash::reduce`]),
//! so block `i` of a filter with `B` blocks holds just the elements of blocks `q·i … q·i + q - 1` of one with `q·B`.

mod blocked;
mod classic;
mod parquet;

pub use blocked::Blocked;
pub(crate) use blocked::POSITIONS_PER_WORD;
pub use classic::Classic;
pub use parquet::{PARQUET_HASHES, Parquet};

use crate::error::{Code, Error, Result};

/// How many probes ahead of the one being done a batch asks for its memory.
pub(crate) const PREFETCH_AHEAD: usize = 16;

/// Elements whose bits are set before the next look whether to stop.
const UNCANCELLED: usize = 1 << 16;

/// The most hashes (k) that a filter may have.
pub const MAX_HASHES: u32 = 64;

/// What a layout is asked to do. The payload always has [`Layout::payload_bytes`] bytes for `blocks`.
pub trait Scheme {
    /// Bits of a block.
    const BLOCK_BITS: u64;

    /// The first block that an element touches; in `classic`, its first bit.
    fn block_of(blocks: u64, hash: u64) -> u64;

    /// Sets the bits of one element.
    fn insert(payload: &mut [u8], hashes: u32, blocks: u64, hash: u64);

    /// Whether every bit of one element is set.
    fn contains(payload: &[u8], hashes: u32, blocks: u64, hash: u64) -> bool;

    /// Asks for the first memory that this element needs.
    fn prefetch(payload: &[u8], blocks: u64, hash: u64);

    /// Sets the bits of many elements, asking for memory ahead of its use.
    fn insert_all(payload: &mut [u8], hashes: u32, blocks: u64, elements: &[u64]) {
        insert_all_portably::<Self>(payload, hashes, blocks, elements);
    }

    /// Asks for many elements, with memory requested ahead of its use: calls `found` with each answer, in order.
    fn contains_each(payload: &[u8], hashes: u32, blocks: u64, elements: &[u64], found: impl FnMut(bool)) {
        contains_each_portably::<Self>(payload, hashes, blocks, elements, found);
    }

    /// ORs every block of `small` into the `q` blocks of `large` that hold its elements.
    fn spread(small: &[u8], large: &mut [u8], blocks: u64, q: u64);

    /// ORs each `q` neighbouring blocks of `large` into one of the `blocks` of `small`.
    fn fold(large: &[u8], small: &mut [u8], blocks: u64, q: u64);
}

fn insert_all_portably<S: Scheme + ?Sized>(payload: &mut [u8], hashes: u32, blocks: u64, elements: &[u64]) {
    for (i, &hash) in elements.iter().enumerate() {
        if let Some(&ahead) = elements.get(i + PREFETCH_AHEAD) {
            S::prefetch(payload, blocks, ahead);
        }
        S::insert(payload, hashes, blocks, hash);
    }
}

fn contains_each_portably<S: Scheme + ?Sized>(
    payload: &[u8],
    hashes: u32,
    blocks: u64,
    elements: &[u64],
    mut found: impl FnMut(bool),
) {
    for (i, &hash) in elements.iter().enumerate() {
        if let Some(&ahead) = elements.get(i + PREFETCH_AHEAD) {
            S::prefetch(payload, blocks, ahead);
        }
        found(S::contains(payload, hashes, blocks, hash));
    }
}

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

    /// The most blocks that index arithmetic and the stored form allow.
    pub fn max_blocks(self) -> u64 {
        match self {
            // The Parquet format multiplies 32-bit numbers, of which the block count is a signed one.
            Layout::Parquet => (1 << 31) - 1,
            _ => crate::MAX_STORED_BYTES * 8 / self.block_bits(),
        }
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

/// ORs `from` into `into`, byte by byte, in strides that can be cancelled.
pub fn or_bytes(into: &mut [u8], from: &[u8]) {
    use crate::interrupt::{STRIDE, check};
    for (into, from) in into.chunks_mut(STRIDE).zip(from.chunks(STRIDE)) {
        into.iter_mut().zip(from).for_each(|(i, &f)| *i |= f);
        check();
    }
}

/// ANDs `from` into `into`, byte by byte, in strides that can be cancelled.
pub fn and_bytes(into: &mut [u8], from: &[u8]) {
    use crate::interrupt::{STRIDE, check};
    for (into, from) in into.chunks_mut(STRIDE).zip(from.chunks(STRIDE)) {
        into.iter_mut().zip(from).for_each(|(i, &f)| *i &= f);
        check();
    }
}

/// Looks whether to stop, if so many bytes were worked through since the last time.
#[inline(always)]
fn check_each_stride(since_check: &mut usize) {
    if *since_check >= crate::interrupt::STRIDE {
        crate::interrupt::check();
        *since_check = 0;
    }
}

/// Spreading for layouts whose blocks are `N` whole bytes.
fn spread_blocks<const N: usize>(small: &[u8], large: &mut [u8], q: u64) {
    let group = usize::try_from(q).unwrap_or(usize::MAX).saturating_mul(N);
    let mut since_check = 0;
    for (block, copies) in small.chunks_exact(N).zip(large.chunks_exact_mut(group)) {
        for copies in copies.chunks_mut(crate::interrupt::STRIDE) {
            for copy in copies.chunks_exact_mut(N) {
                copy.iter_mut().zip(block).for_each(|(c, &b)| *c |= b);
            }
            since_check += copies.len();
            check_each_stride(&mut since_check);
        }
    }
}

/// Folding for layouts whose blocks are `N` whole bytes.
fn fold_blocks<const N: usize>(large: &[u8], small: &mut [u8], q: u64) {
    let group = usize::try_from(q).unwrap_or(usize::MAX).saturating_mul(N);
    let mut since_check = 0;
    for (block, copies) in small.chunks_exact_mut(N).zip(large.chunks_exact(group)) {
        for copies in copies.chunks(crate::interrupt::STRIDE) {
            for copy in copies.chunks_exact(N) {
                block.iter_mut().zip(copy).for_each(|(b, &c)| *b |= c);
            }
            since_check += copies.len();
            check_each_stride(&mut since_check);
        }
    }
}
