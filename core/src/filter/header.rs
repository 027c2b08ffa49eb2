//! The stored form of a filter; [`super::view`] has its one validating parser.
//!
//! ```text
//!  0  version      u8   = 1                  12  (blocks)
//!  1  layout       u8   1 blocked, 2 classic, 3 parquet
//!  2  kind         u8   key kind             all numbers little-endian
//!  3  sparse/dense u8   0 sparse, 1 dense; 2 counters ([`crate::counting`])
//!  4  hashes       u8   k
//!  5  hash id      u8   = 1 (XXH64, SplitMix64)
//!  6  name length  u16
//!  8  blocks       u64  of the payload when dense
//! 16  base blocks  u64  greatest common divisor of all block counts ever merged into it
//! 24  capacity     u64  elements
//! 32  fpr          f64  promised at that capacity
//! 40  reserved     u32  = 0
//! 44  name              of kinds that have one, zero-padded to a multiple of 8
//!     payload           dense: the bits; sparse: the 64-bit hashes, strictly ascending
//! ```
//!
//! Together with PostgreSQL's four-byte length word, the payload starts at a multiple of eight.
//!
//! A value has one canonical form: a set that was never merged across sizes is sparse if and only
//! if its hashes take no more bytes than the dense payload would. A filter of no size (no blocks,
//! capacity 0) has no elements: it is the empty filter, the identity of union. Partial states of a
//! build have two more forms: [`super::View::parse_partial`].

use crate::error::{InvalidParameter, Parameters, Result, TooLarge};
use crate::hash::HASH_ID;
use crate::kind::Kind;
use crate::layout::{Layout, Shape};
use crate::memory::Buffer;
use crate::sizing::{self, Size};
use serde::{Deserialize, Serialize};

pub const VERSION: u8 = 1;
/// Bytes of the header without a name.
pub const HEADER_BYTES: usize = 44;

pub(super) const SPARSE: u8 = 0;
pub(crate) const DENSE: u8 = 1;
/// The payload is counters: a value of [`crate::counting`].
pub(crate) const COUNTERS: u8 = 2;

/// The header as it lies in memory, by `bincode` with fixed-width little-endian integers.
#[derive(Serialize, Deserialize)]
pub(super) struct Raw {
    pub(super) version: u8,
    pub(super) layout: u8,
    pub(super) kind: u8,
    pub(super) representation: u8,
    pub(super) num_hashes: u8,
    pub(super) hash_id: u8,
    pub(super) name_len: u16,
    pub(super) blocks: u64,
    pub(super) base_blocks: u64,
    pub(super) capacity: u64,
    pub(super) fpr: f64,
    pub(super) reserved: u32,
}

/// The capacity that a filter was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capacity {
    /// None yet: it has no size, no blocks, and no number of hashes.
    Unsized,
    /// None yet, but it has the bits of elements: a partial state with more blocks than it will
    /// have in the end.
    ToBeFolded,
    /// This many elements.
    Elements(u64),
}

impl Capacity {
    /// How many elements, if that is known.
    pub fn elements(self) -> Option<u64> {
        if let Capacity::Elements(elements) = self { Some(elements) } else { None }
    }
}

/// What a filter is, apart from its elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header<'a> {
    /// The layout.
    pub layout: Layout,
    /// Hashes per element (k); 0 in a filter of no size.
    pub num_hashes: u32,
    /// Blocks of the dense payload; 0 in a filter of no size.
    pub blocks: u64,
    /// The greatest common divisor of the block counts ever merged into it.
    pub base_blocks: u64,
    /// The capacity that it was built for.
    pub capacity: Capacity,
    /// The false positive rate promised at that capacity.
    pub fpr: f64,
    /// The kind of its elements.
    pub kind: Kind<'a>,
}

impl Header<'_> {
    /// Whether this is an unsized build, which ends with the size that its elements need.
    pub fn is_to_be_sized(&self) -> bool {
        self.capacity.elements().is_none()
    }

    /// Whether the filter has no size yet.
    pub fn is_unsized(&self) -> bool {
        self.capacity == Capacity::Unsized
    }

    /// Bytes of the payload when dense.
    pub fn payload_bytes(&self) -> u64 {
        self.shape().payload_bytes()
    }

    /// Bytes of the whole value when dense.
    pub fn dense_bytes(&self) -> u64 {
        self.prefix_bytes() as u64 + self.payload_bytes()
    }
}

#[doc(hidden)]
impl<'a> Header<'a> {
    /// The header of a filter of no size, which has only a layout and a rate.
    pub fn unsized_(layout: Layout, fpr: f64) -> Header<'static> {
        Header {
            layout,
            num_hashes: 0,
            blocks: 0,
            base_blocks: 0,
            capacity: Capacity::Unsized,
            fpr,
            kind: Kind::NONE,
        }
    }

    pub fn sized(size: Size, kind: Kind<'a>) -> Header<'a> {
        let Size { layout, num_hashes, blocks, capacity, fpr } = size;
        let capacity = Capacity::Elements(capacity);
        Header {
            layout,
            num_hashes,
            blocks,
            base_blocks: blocks,
            capacity,
            fpr,
            kind,
        }
    }

    #[inline(always)]
    pub fn shape(&self) -> Shape {
        Shape {
            layout: self.layout,
            num_hashes: self.num_hashes,
            blocks: self.blocks,
        }
    }

    /// Whether `elements` hashes take no more bytes than the dense payload: the rule of the
    /// canonical form.
    pub fn fits_sparse(&self, elements: usize) -> bool {
        self.is_unsized() || elements as u64 * 8 <= self.payload_bytes()
    }

    /// Bytes before the payload.
    pub fn prefix_bytes(&self) -> usize {
        HEADER_BYTES + self.kind.name.len().next_multiple_of(8)
    }

    /// Checks the size of the dense filter. Errors: [`TooLarge::Bytes`] if it has more than `limit`
    /// bytes.
    pub fn check_size(&self, limit: u64) -> Result<()> {
        self.check_bytes(self.dense_bytes(), limit)
    }

    pub(crate) fn check_bytes(&self, bytes: u64, limit: u64) -> Result<()> {
        if bytes <= limit {
            Ok(())
        } else {
            Err(TooLarge::Bytes { bytes, limit, own: self.parameters() }.into())
        }
    }

    /// Checks the size of a result with `payload` bytes of payload. It may exceed the limit up to
    /// `given`, the largest payload of the filters that it is computed from.
    pub(crate) fn check_growth(&self, payload: u64, given: u64, limit: u64) -> Result<()> {
        if payload <= given {
            Ok(())
        } else {
            self.check_bytes(self.prefix_bytes() as u64 + payload, limit)
        }
    }

    /// The parameters that it was built with, for errors.
    pub(crate) fn parameters(&self) -> Parameters {
        let Header { layout, num_hashes, blocks, fpr, .. } = *self;
        Parameters {
            layout,
            num_hashes,
            blocks,
            capacity: self.capacity.elements().unwrap_or(0),
            fpr,
        }
    }

    /// Writes header and name to the start of `into`.
    pub(crate) fn write(&self, representation: u8, into: &mut [u8]) {
        let raw = Raw {
            version: VERSION,
            layout: self.layout as u8,
            kind: self.kind.tag as u8,
            representation,
            num_hashes: self.num_hashes as u8,
            hash_id: HASH_ID,
            name_len: self.kind.name.len() as u16,
            blocks: self.blocks,
            base_blocks: self.base_blocks,
            capacity: self.capacity.elements().unwrap_or(0),
            fpr: self.fpr,
            reserved: 0,
        };
        let (fixed, rest) = into.split_at_mut(HEADER_BYTES);
        bincode::serialize_into(fixed, &raw).expect("a header of fixed width fits its bytes");
        rest[..self.kind.name.len()].copy_from_slice(self.kind.name.as_bytes());
    }

    /// A value with this header and room for `payload` bytes, all zero.
    pub(crate) fn allocate<B: Buffer>(&self, representation: u8, payload: usize) -> B {
        let mut value = B::zeroed(self.prefix_bytes() + payload);
        self.write(representation, value.bytes_mut());
        value
    }

    /// A dense value without elements. Its payload starts at [`Header::prefix_bytes`].
    pub fn dense<B: Buffer>(&self) -> B {
        self.allocate(DENSE, self.payload_bytes() as usize)
    }

    /// A sparse value with room for `elements` hashes; without any it is the empty filter.
    pub fn sparse<B: Buffer>(&self, elements: usize) -> B {
        self.allocate(SPARSE, elements * 8)
    }
}

/// The payload of a value with this header, to write into.
pub(crate) fn payload_mut<'b, B: Buffer>(value: &'b mut B, header: &Header<'_>) -> &'b mut [u8] {
    &mut value.bytes_mut()[header.prefix_bytes()..]
}

/// The largest capacity whose dense filter has at most `bytes` bytes as stored. Errors: those of
/// [`sizing::density`]; [`InvalidParameter::TooFewBytes`] if not even a capacity of one fits.
pub fn capacity_for_bytes(layout: Layout, bytes: u64, fpr: f64) -> Result<u64> {
    const HEADER: u64 = HEADER_BYTES as u64;
    let capacity = sizing::capacity_for_payload(layout, bytes.saturating_sub(HEADER), fpr)?;
    if capacity > 0 {
        return Ok(capacity);
    }
    let least = HEADER + layout.payload_bytes(sizing::size(layout, 1, fpr)?.blocks);
    Err(InvalidParameter::TooFewBytes(bytes, least).into())
}
