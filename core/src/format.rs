//! The stored form of a filter, and its one validating parser.
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
//! 16  base blocks  u64  what all block counts ever merged into it are multiples of
//! 24  capacity     u64  elements
//! 32  fpr          f64  promised at that capacity
//! 40  reserved     u32  = 0
//! 44  name              for kind "other": the type's name, zero-padded to a multiple of 8
//!     payload           dense: the bits; sparse: the 64-bit hashes, strictly ascending
//! ```
//!
//! With PostgreSQL's four-byte length before it, the payload starts at a multiple of eight.
//!
//! A value has one canonical form: a set that was never merged across sizes is sparse if and only if its hashes take no
//! more bytes than the dense payload would. A filter of no size (`blocks` 0) has no elements: it is `bloom_empty()`, the
//! identity of union.
//!
//! The state of an unsized aggregate has two more forms ([`View::parse_state`]): no size but hashes nevertheless, or a
//! dense payload of more blocks than will be needed and capacity 0, to be folded at the end.

use crate::error::{Code, Error, Result};
use crate::hash::HASH_ID;
use crate::kind::{self, Kind, Tag};
use crate::layout::{Layout, MAX_HASHES, PARQUET_HASHES};
use crate::sizing::Size;
use crate::{interrupt, sizing, sparse};
use serde::{Deserialize, Serialize};

/// The version of the stored form.
pub const VERSION: u8 = 1;
/// Bytes of the header without a name.
pub const HEADER_BYTES: usize = 44;

const SPARSE: u8 = 0;
const DENSE: u8 = 1;
/// The payload is counters: a value of the other type, [`crate::counting`].
pub(crate) const COUNTERS: u8 = 2;

/// The header as it lies in memory, by `bincode` with fixed-width little-endian integers.
#[derive(Serialize, Deserialize)]
struct Raw {
    version: u8,
    layout: u8,
    kind: u8,
    representation: u8,
    hashes: u8,
    hash_id: u8,
    name_len: u16,
    blocks: u64,
    base_blocks: u64,
    capacity: u64,
    fpr: f64,
    reserved: u32,
}

/// What a filter is, apart from its elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header<'a> {
    /// The layout.
    pub layout: Layout,
    /// Hashes an element (k); 0 in a filter of no size.
    pub hashes: u32,
    /// Blocks of the dense payload; 0 in a filter of no size.
    pub blocks: u64,
    /// The greatest common divisor of the block counts ever merged into it: of sizes that divide each other, the smallest.
    pub base_blocks: u64,
    /// Elements it was made for; 0 in a filter of no size.
    pub capacity: u64,
    /// The rate promised at that capacity.
    pub fpr: f64,
    /// The kind of its elements.
    pub kind: Kind<'a>,
}

/// The elements of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// Their hashes, eight bytes each, ascending.
    Sparse(&'a [[u8; 8]]),
    /// Their bits.
    Dense(&'a [u8]),
}

/// A stored filter that was validated, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View<'a> {
    /// What it is.
    pub header: Header<'a>,
    /// What it holds.
    pub body: Body<'a>,
}

/// Memory that an operation writes its result into: the caller decides whose it is.
pub trait Buffer {
    /// A buffer of `len` zero bytes.
    fn zeroed(len: usize) -> Self;
    /// Its bytes.
    fn bytes(&self) -> &[u8];
    /// Its bytes, to write.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Forgets all bytes from `len` on.
    fn truncate(&mut self, len: usize);
}

impl Buffer for Vec<u8> {
    fn zeroed(len: usize) -> Self {
        vec![0; len]
    }
    fn bytes(&self) -> &[u8] {
        self
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
    fn truncate(&mut self, len: usize) {
        Vec::truncate(self, len);
    }
}

impl<'a> Header<'a> {
    /// The header of a filter of no size, which remembers only layout and rate.
    pub fn unsized_(layout: Layout, fpr: f64) -> Header<'static> {
        Header { layout, hashes: 0, blocks: 0, base_blocks: 0, capacity: 0, fpr, kind: Kind::NONE }
    }

    /// The header of a filter of this size.
    pub fn sized(size: Size, kind: Kind<'a>) -> Header<'a> {
        Header {
            layout: size.layout,
            hashes: size.hashes,
            blocks: size.blocks,
            base_blocks: size.blocks,
            capacity: size.capacity,
            fpr: size.fpr,
            kind,
        }
    }

    /// The size that this header gives.
    pub fn size(&self) -> Size {
        Size { layout: self.layout, hashes: self.hashes, blocks: self.blocks, capacity: self.capacity, fpr: self.fpr }
    }

    /// Whether this is an unsized build, that will have the size that its elements need in the end.
    pub fn is_to_be_sized(&self) -> bool {
        self.capacity == 0
    }

    /// Whether the filter has no size yet.
    pub fn is_unsized(&self) -> bool {
        self.blocks == 0
    }

    /// Bytes of the payload when dense.
    pub fn payload_bytes(&self) -> u64 {
        self.layout.payload_bytes(self.blocks)
    }

    /// Bytes of the whole value when dense.
    pub fn dense_bytes(&self) -> u64 {
        self.prefix_bytes() as u64 + self.payload_bytes()
    }

    /// Whether `elements` hashes take no more bytes than the dense payload: the rule of the canonical form.
    pub fn fits_sparse(&self, elements: usize) -> bool {
        self.is_unsized() || elements as u64 * 8 <= self.payload_bytes()
    }

    /// Bytes before the payload.
    pub fn prefix_bytes(&self) -> usize {
        HEADER_BYTES + self.kind.name.len().next_multiple_of(8)
    }

    /// Checks that the filter, dense, is one that may be stored.
    ///
    /// # Errors
    /// [`Code::TooLarge`] if it would have more than `limit` bytes.
    pub fn check_size(&self, limit: u64) -> Result<()> {
        self.check_bytes(self.dense_bytes(), limit)
    }

    /// Checks that a filter of this header may have so many bytes.
    ///
    /// # Errors
    /// As [`Header::check_size`].
    pub(crate) fn check_bytes(&self, bytes: u64, limit: u64) -> Result<()> {
        if bytes <= limit {
            return Ok(());
        }
        Err(Error::new(
            Code::TooLarge,
            format!("bloom filter of {bytes} bytes exceeds the limit of {limit} bytes"),
        )
        .detail(format!(
            "Capacity {} at a false positive rate of {} in layout \"{}\".",
            self.capacity,
            self.fpr,
            self.layout.name()
        ))
        .hint(
            "Use a smaller capacity or a higher rate, raise pg_bloom.max_filter_size, or spread the elements over several filters with bloom_shard.",
        ))
    }

    /// Writes header and name to the start of `into`.
    pub(crate) fn write(&self, representation: u8, into: &mut [u8]) {
        let raw = Raw {
            version: VERSION,
            layout: self.layout as u8,
            kind: self.kind.tag as u8,
            representation,
            hashes: self.hashes as u8,
            hash_id: HASH_ID,
            name_len: self.kind.name.len() as u16,
            blocks: self.blocks,
            base_blocks: self.base_blocks,
            capacity: self.capacity,
            fpr: self.fpr,
            reserved: 0,
        };
        let (fixed, rest) = into.split_at_mut(HEADER_BYTES);
        bincode::serialize_into(fixed, &raw).expect("a header of fixed width fits its bytes");
        rest[..self.kind.name.len()].copy_from_slice(self.kind.name.as_bytes());
    }

    /// Writes the header of a dense value over the one that is there, which must take as many bytes.
    pub fn rewrite_dense(&self, value: &mut [u8]) {
        self.write(DENSE, value);
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

    /// A sparse value with room for `elements` hashes.
    pub fn sparse<B: Buffer>(&self, elements: usize) -> B {
        self.allocate(SPARSE, elements * 8)
    }
}

impl<'a> View<'a> {
    /// Reads a stored filter.
    ///
    /// # Errors
    /// [`Code::InvalidBinary`] for anything that no operation of this crate would have written.
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = View::parse_state(bytes)?;
        if view.header.is_unsized() && view != (View { body: Body::Sparse(&[]), ..view }) {
            return Err(invalid("a filter of no size holds elements"));
        }
        if view.header.is_unsized() && !view.header.kind.is_none() {
            return Err(invalid("a filter of no size has a key kind"));
        }
        require(view.header.is_unsized() || view.header.capacity > 0, || "capacity is 0".into())?;
        Ok(view)
    }

    /// Reads a stored filter or the serialised state of an unsized aggregate: a filter of no size with hashes.
    ///
    /// # Errors
    /// As [`View::parse`].
    pub fn parse_state(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = View::parse_trusted(bytes)?;
        match view.body {
            Body::Sparse(hashes) => {
                require(sparse::is_ascending(hashes), || "hashes are not in ascending order".into())?;
                let h = &view.header;
                require(!h.is_unsized() || h.kind.is_none() || !hashes.is_empty(), || {
                    "a filter of no size has a key kind but no elements".into()
                })?;
            }
            // Two empty filters of different sizes merge to one that is dense and has no kind yet.
            Body::Dense(bits) => {
                require(!view.header.kind.is_none() || interrupt::is_zero(bits), || {
                    "bits of elements without a key kind are set".into()
                })?;
                if view.header.is_to_be_sized() {
                    check_foldable(&view.header)?;
                }
            }
        }
        Ok(view)
    }

    /// Reads a value whose bytes a parser accepted before: everything is checked but the order of a sparse filter's
    /// hashes and the zeros of one without a kind, which takes time that grows with the filter. Reading other bytes can give wrong answers but nothing worse.
    ///
    /// # Errors
    /// As [`View::parse`].
    #[inline]
    pub fn parse_trusted(bytes: &'a [u8]) -> Result<View<'a>> {
        let (header, representation) = parse_header(bytes, check_bits)?;
        let payload = &bytes[header.prefix_bytes()..];
        let body = match representation {
            DENSE => Body::Dense(check_dense(&header, payload)?),
            _ => Body::Sparse(check_sparse(&header, payload)?),
        };
        Ok(View { header, body })
    }

    /// How many bytes the stored form has.
    pub fn stored_bytes(&self) -> usize {
        let payload = match self.body {
            Body::Sparse(hashes) => hashes.len() * 8,
            Body::Dense(bits) => bits.len(),
        };
        self.header.prefix_bytes() + payload
    }

    /// A copy of the stored form.
    pub fn to_buffer<B: Buffer>(&self) -> B {
        let prefix = self.header.prefix_bytes();
        match self.body {
            Body::Sparse(hashes) => {
                let mut value: B = self.header.sparse(hashes.len());
                interrupt::copy(&mut value.bytes_mut()[prefix..], hashes.as_flattened());
                value
            }
            Body::Dense(bits) => {
                let mut value: B = self.header.dense();
                interrupt::copy(&mut value.bytes_mut()[prefix..], bits);
                value
            }
        }
    }
}

/// Splits a value that this crate made into header and payload to write into.
pub(crate) fn payload_mut<'b, B: Buffer>(value: &'b mut B, header: &Header<'_>) -> &'b mut [u8] {
    &mut value.bytes_mut()[header.prefix_bytes()..]
}

pub(crate) fn invalid(detail: impl Into<String>) -> Error {
    Error::new(Code::InvalidBinary, "invalid bloom filter").detail(format!("The value is damaged: {}.", detail.into()))
}

pub(crate) fn require(holds: bool, detail: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(invalid(detail())) }
}

/// Refuses what is not sparse or dense.
fn check_bits(representation: u8) -> Result<()> {
    if representation == COUNTERS {
        return Err(Error::new(Code::InvalidBinary, "value is a counting bloom filter, not a bloom filter")
            .detail(format!("Its representation is {COUNTERS}: counters."))
            .hint("Read it as counting_bloom, and cast that to bloom."));
    }
    require(representation <= DENSE, || format!("representation {representation} is unknown"))
}

/// Reads and checks everything before the payload, the representation by `check`. Returns the header and that.
pub(crate) fn parse_header(bytes: &[u8], check: fn(u8) -> Result<()>) -> Result<(Header<'_>, u8)> {
    require(bytes.len() >= HEADER_BYTES, || format!("{} bytes where a header has {HEADER_BYTES}", bytes.len()))?;
    require(bytes.len() as u64 <= crate::MAX_STORED_BYTES, || format!("{} bytes are too many", bytes.len()))?;
    if bytes[0] != VERSION {
        return Err(Error::new(
            Code::InvalidBinary,
            format!("bloom filter has format version {}, which is unknown", bytes[0]),
        )
        .detail(format!("This version of pg_bloom reads version {VERSION}."))
        .hint("If a newer pg_bloom wrote it, update the extension; else the value is damaged or no bloom filter."));
    }
    let raw: Raw = bincode::deserialize(&bytes[..HEADER_BYTES]).map_err(|e| invalid(e.to_string()))?;
    let layout = Layout::from_code(raw.layout).ok_or_else(|| invalid(format!("layout {} is unknown", raw.layout)))?;
    let tag = Tag::from_code(raw.kind).ok_or_else(|| invalid(format!("key kind {} is unknown", raw.kind)))?;
    require(tag.allowed_in(layout == Layout::Parquet), || {
        format!("layout \"{}\" has no elements of kind {}", layout.name(), tag.name())
    })?;
    check(raw.representation)?;
    require(raw.hash_id == HASH_ID, || format!("hash function {} is unknown", raw.hash_id))?;
    require(raw.reserved == 0, || format!("reserved bytes are {}, not 0", raw.reserved))?;
    require(raw.fpr > 0.0 && raw.fpr < 1.0, || format!("false positive rate is {}", raw.fpr))?;
    let name = parse_name(tag, usize::from(raw.name_len), &bytes[HEADER_BYTES..])?;
    let header = Header {
        layout,
        hashes: u32::from(raw.hashes),
        blocks: raw.blocks,
        base_blocks: raw.base_blocks,
        capacity: raw.capacity,
        fpr: raw.fpr,
        kind: Kind { tag, name },
    };
    check_shape(&header)?;
    Ok((header, raw.representation))
}

fn parse_name(tag: Tag, len: usize, after_header: &[u8]) -> Result<&str> {
    require((tag == Tag::Other) == (len > 0) && len <= kind::MAX_NAME, || {
        format!("a name of {len} bytes for kind {}", tag.name())
    })?;
    let padded = after_header
        .get(..len.next_multiple_of(8))
        .ok_or_else(|| invalid("the name of its elements' type is cut off"))?;
    let (name, padding) = padded.split_at(len);
    require(padding.iter().all(|&b| b == 0), || "padding is not zero".into())?;
    std::str::from_utf8(name)
        .ok()
        .filter(|name| !name.contains('\0'))
        .ok_or_else(|| invalid("the name of its elements' type is not UTF-8"))
}

/// Checks hashes, blocks and capacity against each other.
fn check_shape(h: &Header<'_>) -> Result<()> {
    if h.is_unsized() {
        return require(h.base_blocks == 0 && h.capacity == 0 && h.hashes == 0, || {
            format!("no blocks, but {} base blocks, capacity {} and {} hashes", h.base_blocks, h.capacity, h.hashes)
        });
    }
    let hashes = if h.layout == Layout::Parquet { PARQUET_HASHES..=PARQUET_HASHES } else { 1..=MAX_HASHES };
    require(hashes.contains(&h.hashes), || format!("{} hashes in layout \"{}\"", h.hashes, h.layout.name()))?;
    require(h.blocks <= h.layout.max_blocks() && h.dense_bytes() <= crate::MAX_STORED_BYTES, || {
        format!("{} blocks are too many", h.blocks)
    })?;
    require(h.base_blocks > 0 && h.blocks.is_multiple_of(h.base_blocks), || {
        format!("{} blocks are no multiple of {}", h.blocks, h.base_blocks)
    })?;
    require(h.capacity <= i64::MAX as u64, || format!("capacity is {}", h.capacity))
}

/// Checks that a filter that is still to be sized can be folded to any smaller size without losing an element.
fn check_foldable(h: &Header<'_>) -> Result<()> {
    require(h.blocks.is_power_of_two(), || {
        format!("{} blocks of a filter to be folded are no power of two", h.blocks)
    })?;
    let hashes = sizing::density(h.layout, h.fpr).map_err(|e| invalid(e.message.clone()))?.hashes;
    require(h.hashes == hashes, || format!("{} hashes at a rate that has {hashes}", h.hashes))
}

/// Checks the length of a dense payload.
fn check_dense_length(header: &Header<'_>, length: usize) -> Result<()> {
    require(!header.is_unsized(), || "a filter of no size is dense".into())?;
    require(length as u64 == header.payload_bytes(), || {
        format!("{length} bytes of bits where {} blocks have {}", header.blocks, header.payload_bytes())
    })
}

fn check_dense<'a>(header: &Header<'_>, payload: &'a [u8]) -> Result<&'a [u8]> {
    check_dense_length(header, payload.len())?;
    let unused = payload.len() as u64 * 8 - header.blocks * header.layout.block_bits();
    require(payload.last().is_some_and(|&last| u64::from(last.leading_zeros()) >= unused), || {
        "bits are set after the last".into()
    })?;
    Ok(payload)
}

/// Checks the length of a sparse payload and returns the number of its hashes.
fn check_sparse_length(header: &Header<'_>, length: usize) -> Result<usize> {
    let hashes = length / 8;
    require(length.is_multiple_of(8), || format!("{length} bytes of hashes are no multiple of 8"))?;
    require(header.is_unsized() || header.capacity > 0, || "a sparse filter has capacity 0".into())?;
    require(header.fits_sparse(hashes), || {
        format!("{hashes} hashes are more than a sparse filter of {} blocks has", header.blocks)
    })?;
    require(!header.kind.is_none() || hashes == 0, || "elements have no key kind".into())?;
    Ok(hashes)
}

fn check_sparse<'a>(header: &Header<'_>, payload: &'a [u8]) -> Result<&'a [[u8; 8]]> {
    check_sparse_length(header, payload.len())?;
    Ok(payload.as_chunks::<8>().0)
}

/// Reads the header at the start of a value of `length` bytes, and what its payload is: bits, or so many hashes.
pub(crate) fn parse_start(bytes: &[u8], length: usize) -> Result<(Header<'_>, Option<usize>)> {
    let (header, representation) = parse_header(bytes, check_bits)?;
    let payload = length.checked_sub(header.prefix_bytes()).ok_or_else(|| invalid("it is cut off"))?;
    match representation {
        DENSE => check_dense_length(&header, payload).map(|()| (header, None)),
        _ => check_sparse_length(&header, payload).map(|hashes| (header, Some(hashes))),
    }
}

#[cfg(test)]
mod tests;
