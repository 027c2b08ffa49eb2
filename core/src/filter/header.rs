//! The header of a stored filter: what the filter is, apart from its elements.
//!
//! ```text
//!  0  version         u8   = 1                  12  (blocks)
//!  1  layout          u8   1 blocked, 2 classic, 3 parquet
//!  2  kind            u8   key kind             all numbers little-endian
//!  3  representation  u8   0 sparse, 1 dense; 2 counters ([`crate::counting`])
//!  4  hashes          u8   k
//!  5  hash id         u8   = 1 (XXH64, SplitMix64)
//!  6  name length     u16
//!  8  blocks          u64  of the payload when dense
//! 16  base blocks     u64  greatest common divisor of all block counts ever merged into it
//! 24  capacity        u64  elements
//! 32  fpr             f64  promised at that capacity
//! 40  reserved        u32  = 0
//! 44  name                 of kinds that have one, zero-padded to a multiple of 8
//!     payload              dense: the bits; sparse: the 64-bit hashes, strictly ascending
//! ```
//!
//! Together with PostgreSQL's four-byte length word, the payload starts at a multiple of eight.
//!
//! A value has one canonical form: a set that was never merged across sizes is sparse if and only
//! if its hashes take no more bytes than the dense payload would. A filter of no size (no blocks,
//! capacity 0) has no elements: it is the empty filter, the identity of union. Partial states of a
//! build have two more forms: [`super::View::parse_partial`].

use crate::error::{
    FilterSize, InvalidBinary, InvalidParameter, Result, TooLarge, damaged, require,
};
use crate::hash::HASH_ID;
use crate::kind::{Kind, MAX_NAME_BYTES, Tag};
use crate::layout::{Layout, MAX_HASHES, PARQUET_HASHES, Shape};
use crate::memory::Buffer;
use crate::sizing::{self, MAX_STORED_BYTES, is_possible_fpr, max_blocks};
use serde::{Deserialize, Serialize};

/// The version of the stored form that this crate reads and writes.
pub const VERSION: u8 = 1;
/// Bytes of the header without the name.
pub const HEADER_BYTES: usize = 44;
/// The name is padded with zeros to a multiple of this number of bytes, so that hashes and words of
/// bits in the payload are aligned.
const NAME_ALIGNMENT: usize = 8;

/// What the payload of a stored value consists of. The codes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Representation {
    /// The hashes of the elements.
    Sparse = 0,
    /// The bits of the elements.
    Dense = 1,
    /// Counters, in a value of [`crate::counting`].
    Counters = 2,
}

impl Representation {
    /// Returns the representation with a stored code; `None` if there is none.
    fn from_code(code: u8) -> Option<Representation> {
        match code {
            0 => Some(Representation::Sparse),
            1 => Some(Representation::Dense),
            2 => Some(Representation::Counters),
            _ => None,
        }
    }
}

/// The two types of stored values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// A filter of bits, or of hashes that stand for them.
    BitFilter,
    /// A filter of counters.
    CountingFilter,
}

/// The capacity that a filter was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capacity {
    /// Not known yet: the filter has no blocks, and no number of hashes.
    Unsized,
    /// Not known yet, but the filter already has the bits of elements: it is a partial state of a
    /// build, and will be folded to fewer blocks when the build ends.
    ToBeFolded,
    /// This many distinct elements.
    Elements(u64),
}

impl Capacity {
    /// Returns the capacity in elements; `None` if it is not known yet.
    pub fn elements(self) -> Option<u64> {
        match self {
            Capacity::Elements(elements) => Some(elements),
            Capacity::Unsized | Capacity::ToBeFolded => None,
        }
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

/// How large the result of an operation on filters may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeLimit {
    /// The most bytes that the result may have as stored.
    pub(crate) max_bytes: u64,
    /// A result whose payload has at most this number of bytes is allowed in any case: a filter
    /// with as large a payload was given.
    pub(crate) given_payload_bytes: u64,
}

impl SizeLimit {
    /// Returns the limit for a result that has at most this number of bytes as stored.
    pub(crate) fn bytes(max_bytes: u64) -> SizeLimit {
        SizeLimit { max_bytes, given_payload_bytes: 0 }
    }
}

impl Header<'_> {
    /// Returns whether the final size of the filter is not known yet: it is an unsized build, which
    /// ends with the size that its elements need.
    pub fn is_to_be_sized(&self) -> bool {
        self.capacity.elements().is_none()
    }

    /// Returns whether the filter has no size yet, and so neither blocks nor bits.
    pub fn is_unsized(&self) -> bool {
        self.capacity == Capacity::Unsized
    }

    /// Returns how many bytes the payload has when dense.
    pub fn payload_bytes(&self) -> u64 {
        self.shape().payload_bytes()
    }

    /// Returns how many bytes the whole value has when dense.
    pub fn dense_bytes(&self) -> u64 {
        self.prefix_bytes() as u64 + self.payload_bytes()
    }
}

#[doc(hidden)]
impl<'a> Header<'a> {
    /// Returns the header of a filter of no size, which has only a layout and a rate.
    pub fn without_size(layout: Layout, fpr: f64) -> Header<'static> {
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

    /// Returns the header of a filter of this size, which was never merged with one of another
    /// size.
    pub fn with_size(size: FilterSize, kind: Kind<'a>) -> Header<'a> {
        Header {
            layout: size.layout,
            num_hashes: size.num_hashes,
            blocks: size.blocks,
            base_blocks: size.blocks,
            capacity: Capacity::Elements(size.capacity),
            fpr: size.fpr,
            kind,
        }
    }

    /// Returns the fields that decide which bits an element sets.
    #[inline(always)]
    pub fn shape(&self) -> Shape {
        Shape {
            layout: self.layout,
            num_hashes: self.num_hashes,
            blocks: self.blocks,
        }
    }

    /// Returns the size of the filter, for errors. A capacity that is not known yet is 0.
    pub(crate) fn size(&self) -> FilterSize {
        FilterSize {
            layout: self.layout,
            num_hashes: self.num_hashes,
            blocks: self.blocks,
            capacity: self.capacity.elements().unwrap_or(0),
            fpr: self.fpr,
        }
    }

    /// Returns whether a filter with this header and `elements` distinct elements is sparse: its
    /// hashes, of 8 bytes each, take no more bytes than the dense payload.
    pub fn fits_sparse(&self, elements: usize) -> bool {
        self.is_unsized() || elements as u64 * 8 <= self.payload_bytes()
    }

    /// Returns how many bytes of a stored value come before the payload: the header, and the name
    /// with its padding.
    pub fn prefix_bytes(&self) -> usize {
        HEADER_BYTES + self.kind.name.len().next_multiple_of(NAME_ALIGNMENT)
    }

    /// Checks the size of the dense filter.
    ///
    /// Fails with [`TooLarge::Bytes`] if it has more than `max_bytes` bytes as stored.
    pub fn check_size(&self, max_bytes: u64) -> Result<()> {
        self.check_bytes(self.dense_bytes(), max_bytes)
    }

    /// Checks that a value with this header, which has `bytes` bytes as stored, is small enough.
    ///
    /// Fails with [`TooLarge::Bytes`] if `bytes` exceeds `max_bytes`.
    pub(crate) fn check_bytes(&self, bytes: u64, max_bytes: u64) -> Result<()> {
        if bytes > max_bytes {
            let size = self.size();
            return Err(TooLarge::Bytes { bytes, limit: max_bytes, size }.into());
        }
        Ok(())
    }

    /// Checks that a result with this header and `payload_bytes` bytes of payload is small enough.
    ///
    /// Fails with [`TooLarge::Bytes`] if the result is larger than `limit` allows.
    pub(crate) fn check_growth(&self, payload_bytes: u64, limit: SizeLimit) -> Result<()> {
        if payload_bytes <= limit.given_payload_bytes {
            return Ok(());
        }
        self.check_bytes(self.prefix_bytes() as u64 + payload_bytes, limit.max_bytes)
    }

    /// Writes the bytes that come before the payload of a stored value to the start of `into`: the
    /// header, and the name of the key kind. `representation` says what the payload will be:
    /// hashes, bits or counters. `into` must begin with [`Header::prefix_bytes`] zeros, or with the
    /// bytes of a header with the same name; padding behind the name stays 0.
    pub(crate) fn write(&self, representation: Representation, into: &mut [u8]) {
        let name = self.kind.name.as_bytes();
        let record = HeaderRecord {
            version: VERSION,
            layout: self.layout as u8,
            kind: self.kind.tag as u8,
            representation: representation as u8,
            // At most MAX_HASHES, which is 64.
            num_hashes: self.num_hashes as u8,
            hash_id: HASH_ID,
            // At most MAX_NAME_BYTES, which is 512.
            name_bytes: name.len() as u16,
            blocks: self.blocks,
            base_blocks: self.base_blocks,
            // Values whose capacity is not known yet store 0.
            capacity: self.capacity.elements().unwrap_or(0),
            fpr: self.fpr,
            reserved: 0,
        };

        let (fixed, rest) = into.split_at_mut(HEADER_BYTES);
        bincode::serialize_into(fixed, &record).expect("a header of fixed width fits its bytes");
        rest[..name.len()].copy_from_slice(name);
    }

    /// Returns a value with this header and a payload of `payload_bytes` zeros.
    pub(crate) fn allocate<B: Buffer>(
        &self,
        representation: Representation,
        payload_bytes: usize,
    ) -> B {
        let mut value = B::zeroed(self.prefix_bytes() + payload_bytes);
        self.write(representation, value.bytes_mut());
        value
    }

    /// Returns a dense value without elements. Its payload starts at [`Header::prefix_bytes`].
    pub fn dense<B: Buffer>(&self) -> B {
        self.allocate(Representation::Dense, self.payload_bytes() as usize)
    }

    /// Returns a sparse value whose payload has room for `elements` hashes, which the caller must
    /// write. Without any it is the empty filter.
    pub fn sparse<B: Buffer>(&self, elements: usize) -> B {
        self.allocate(Representation::Sparse, elements * 8)
    }
}

/// Returns the payload of a value that has this header, to write into.
pub(crate) fn payload_mut<'b, B: Buffer>(value: &'b mut B, header: &Header<'_>) -> &'b mut [u8] {
    &mut value.bytes_mut()[header.prefix_bytes()..]
}

/// Returns the largest capacity, in distinct elements, for which a filter at the false positive
/// rate `fpr` has at most `bytes` bytes as stored when it is dense (has bits, not a list of
/// hashes). The name of a key kind isn't counted.
///
/// Fails if the layout can't keep the rate `fpr`, and with [`InvalidParameter::TooFewBytes`] if not
/// even a filter for one element fits.
pub fn capacity_for_bytes(layout: Layout, bytes: u64, fpr: f64) -> Result<u64> {
    let header_bytes = HEADER_BYTES as u64;
    let payload_bytes = bytes.saturating_sub(header_bytes);
    let capacity = sizing::capacity_for_payload(layout, payload_bytes, fpr)?;
    if capacity > 0 {
        return Ok(capacity);
    }

    let smallest = sizing::size_for_capacity(layout, 1, fpr)?;
    let least = header_bytes + smallest.shape().payload_bytes();
    Err(InvalidParameter::TooFewBytes { bytes, least }.into())
}

/// The header as it is stored, before the name.
///
/// The fields stand in the order of their bytes; `bincode` writes them little-endian and without
/// padding.
#[derive(Serialize, Deserialize)]
struct HeaderRecord {
    version: u8,
    layout: u8,
    kind: u8,
    representation: u8,
    num_hashes: u8,
    hash_id: u8,
    name_bytes: u16,
    blocks: u64,
    base_blocks: u64,
    capacity: u64,
    fpr: f64,
    reserved: u32,
}

/// The header of a stored value, and what its payload consists of.
pub(crate) struct ParsedHeader<'a> {
    pub(crate) header: Header<'a>,
    pub(crate) representation: Representation,
}

/// Reads and checks what comes before the payload of a stored value: the header, and the name of
/// its key kind. `expected` is the type that the value must have.
///
/// `bytes` is the whole value, or its start up to the end of the name or further. The payload is
/// not looked at.
///
/// Fails if a field is invalid, if two fields contradict each other, if the bytes are cut off, or
/// if the value is of the other type.
pub(crate) fn parse_header(bytes: &[u8], expected: ValueType) -> Result<ParsedHeader<'_>> {
    let record = HeaderRecord::read(bytes)?;
    let layout = record.layout()?;
    let tag = record.tag(layout)?;
    let representation = record.representation(expected)?;
    record.check_hash_id()?;
    record.check_reserved()?;
    record.check_fpr(layout)?;

    let name = parse_name(tag, record.name_bytes.into(), &bytes[HEADER_BYTES..])?;
    let header = Header {
        layout,
        num_hashes: record.num_hashes.into(),
        blocks: record.blocks,
        base_blocks: record.base_blocks,
        capacity: record.capacity(),
        fpr: record.fpr,
        kind: Kind { tag, name },
    };
    if header.is_unsized() {
        record.check_without_size()?;
    } else {
        record.check_with_size(&header)?;
    }
    Ok(ParsedHeader { header, representation })
}

impl HeaderRecord {
    /// Reads the header at the start of a value. Only its version is checked.
    ///
    /// Fails if there are fewer bytes than a header has, or more than a value may have, or if the
    /// version is unknown.
    fn read(bytes: &[u8]) -> Result<HeaderRecord> {
        require(bytes.len() >= HEADER_BYTES, || {
            format!("{} bytes where a header has {HEADER_BYTES}", bytes.len())
        })?;
        require(bytes.len() as u64 <= MAX_STORED_BYTES, || {
            format!("{} bytes are too many", bytes.len())
        })?;

        // The version is looked at first: another one may have other fields.
        let version = bytes[0];
        if version != VERSION {
            return Err(InvalidBinary::UnknownVersion { found: version, known: VERSION }.into());
        }
        bincode::deserialize(&bytes[..HEADER_BYTES]).map_err(|error| damaged(error.to_string()))
    }

    /// Returns the layout. Fails if its code is unknown.
    fn layout(&self) -> Result<Layout> {
        Layout::from_code(self.layout)
            .ok_or_else(|| damaged(format!("layout {} is unknown", self.layout)))
    }

    /// Returns the tag of the key kind. Fails if its code is unknown, or if a filter of this layout
    /// can't have such elements.
    fn tag(&self, layout: Layout) -> Result<Tag> {
        let tag = Tag::from_code(self.kind)
            .ok_or_else(|| damaged(format!("key kind {} is unknown", self.kind)))?;
        require(tag.is_allowed_in(layout), || {
            format!("layout \"{}\" has no elements of kind {}", layout.name(), tag.name())
        })?;
        Ok(tag)
    }

    /// Returns what the payload consists of: hashes or bits in a filter, counters in a counting
    /// filter. `expected` says which of these two types the value must be.
    ///
    /// Fails if the stored code is unknown, or if it belongs to the other type.
    fn representation(&self, expected: ValueType) -> Result<Representation> {
        let code = self.representation;
        let representation = Representation::from_code(code)
            .ok_or_else(|| damaged(format!("representation {code} is unknown")))?;

        let has_counters = representation == Representation::Counters;
        match expected {
            ValueType::BitFilter if has_counters => {
                Err(InvalidBinary::Counters { representation: code }.into())
            }
            ValueType::CountingFilter if !has_counters => {
                Err(InvalidBinary::NoCounters { representation: code }.into())
            }
            _ => Ok(representation),
        }
    }

    /// Returns the capacity. The stored number is 0 in filters whose capacity is not known yet;
    /// whether they have blocks tells which of these they are.
    fn capacity(&self) -> Capacity {
        match (self.blocks, self.capacity) {
            (0, _) => Capacity::Unsized,
            (_, 0) => Capacity::ToBeFolded,
            (_, elements) => Capacity::Elements(elements),
        }
    }

    fn check_hash_id(&self) -> Result<()> {
        require(self.hash_id == HASH_ID, || format!("hash function {} is unknown", self.hash_id))
    }

    fn check_reserved(&self) -> Result<()> {
        require(self.reserved == 0, || format!("reserved bytes are {}, not 0", self.reserved))
    }

    fn check_fpr(&self, layout: Layout) -> Result<()> {
        require(is_possible_fpr(layout, self.fpr), || {
            format!("false positive rate is {} in layout \"{}\"", self.fpr, layout.name())
        })
    }

    /// Checks a filter that has no blocks: nothing else about its size may be known either.
    fn check_without_size(&self) -> Result<()> {
        let has_no_size = self.base_blocks == 0 && self.capacity == 0 && self.num_hashes == 0;
        require(has_no_size, || {
            format!(
                "no blocks, but {} base blocks, capacity {} and {} hashes",
                self.base_blocks, self.capacity, self.num_hashes
            )
        })
    }

    /// Checks the fields that only a filter with a size has: number of hashes, number of blocks,
    /// base blocks (the size to which the bits can be folded without counting any twice), and
    /// capacity. `header` must be the header that this record stores.
    ///
    /// Fails with the first field that is impossible in the filter's layout.
    fn check_with_size(&self, header: &Header<'_>) -> Result<()> {
        let layout = header.layout;
        // The Parquet format fixes the number of hashes.
        let valid_hashes = match layout {
            Layout::Parquet => PARQUET_HASHES..=PARQUET_HASHES,
            Layout::Blocked | Layout::Classic => 1..=MAX_HASHES,
        };
        require(valid_hashes.contains(&header.num_hashes), || {
            format!("{} hashes in layout \"{}\"", self.num_hashes, layout.name())
        })?;

        let is_storable =
            self.blocks <= max_blocks(layout) && header.dense_bytes() <= MAX_STORED_BYTES;
        require(is_storable, || format!("{} blocks are too many", self.blocks))?;

        // Base blocks are the greatest common divisor of the numbers of blocks of all filters that
        // were merged into this one.
        let is_divisor = self.base_blocks > 0 && self.blocks.is_multiple_of(self.base_blocks);
        require(is_divisor, || {
            format!("{} blocks are no multiple of {}", self.blocks, self.base_blocks)
        })?;

        // SQL shows the capacity as a bigint.
        require(self.capacity <= i64::MAX as u64, || format!("capacity is {}", self.capacity))
    }
}

/// Returns the name of a key kind, which follows the header of a stored value; empty for kinds
/// without names. `tag` and `length`, in bytes, are from the header; `after_record` are the bytes
/// after it.
///
/// Fails if the kind needs a name and there is none, or the other way round; if the name is too
/// long, cut off or not UTF-8; or if its padding is not zero.
fn parse_name(tag: Tag, length: usize, after_record: &[u8]) -> Result<&str> {
    let has_valid_length = tag.has_name() == (length > 0) && length <= MAX_NAME_BYTES;
    require(has_valid_length, || format!("a name of {length} bytes for kind {}", tag.name()))?;

    let padded_name = after_record
        .get(..length.next_multiple_of(NAME_ALIGNMENT))
        .ok_or_else(|| damaged("the name of its elements' type is cut off"))?;
    let (name, padding) = padded_name.split_at(length);
    require(padding.iter().all(|&byte| byte == 0), || "padding is not zero".into())?;

    match str::from_utf8(name) {
        // PostgreSQL's text has no zero bytes.
        Ok(name) if !name.contains('\0') => Ok(name),
        _ => Err(damaged("the name of its elements' type is not UTF-8")),
    }
}
