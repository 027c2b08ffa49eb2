//! The checks of a stored value: its length, its version, every field, and what follows from the fields. All values
//! from outside come through here.

use super::header::{COUNTERS, Capacity, DENSE, HEADER_BYTES, Header, Raw, VERSION};
use crate::error::{Error, InvalidBinary, Result};
use crate::hash::HASH_ID;
use crate::kind::{self, Kind, Tag};
use crate::layout::{Layout, MAX_HASHES, PARQUET_HASHES};
use crate::sizing::density;
use crate::sizing::is_possible_fpr;
use crate::sizing::limits::{MAX_STORED_BYTES, max_blocks};

pub(crate) fn invalid(what: impl Into<String>) -> Error {
    InvalidBinary::Damaged(what.into()).into()
}

pub(crate) fn require(holds: bool, what: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(invalid(what())) }
}

/// Checks that the representation is sparse or dense.
pub(super) fn check_bits(representation: u8) -> Result<()> {
    if representation == COUNTERS {
        return Err(InvalidBinary::Counters(representation).into());
    }
    require(representation <= DENSE, || format!("representation {representation} is unknown"))
}

/// Reads and checks everything before the payload, with `check` for the representation. Returns the header and the
/// representation.
pub(crate) fn parse_header(bytes: &[u8], check: fn(u8) -> Result<()>) -> Result<(Header<'_>, u8)> {
    require(bytes.len() >= HEADER_BYTES, || format!("{} bytes where a header has {HEADER_BYTES}", bytes.len()))?;
    require(bytes.len() as u64 <= MAX_STORED_BYTES, || format!("{} bytes are too many", bytes.len()))?;
    if bytes[0] != VERSION {
        return Err(InvalidBinary::UnknownVersion { found: bytes[0], known: VERSION }.into());
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
    require(is_possible_fpr(layout, raw.fpr), || {
        format!("false positive rate is {} in layout \"{}\"", raw.fpr, layout.name())
    })?;
    let name = parse_name(tag, usize::from(raw.name_len), &bytes[HEADER_BYTES..])?;
    let header = Header {
        layout,
        num_hashes: u32::from(raw.num_hashes),
        blocks: raw.blocks,
        base_blocks: raw.base_blocks,
        capacity: Capacity::from_stored(raw.blocks, raw.capacity),
        fpr: raw.fpr,
        kind: Kind { tag, name },
    };
    check_shape(&header, raw.capacity)?;
    Ok((header, raw.representation))
}

fn parse_name(tag: Tag, len: usize, after_header: &[u8]) -> Result<&str> {
    require(tag.has_name() == (len > 0) && len <= kind::MAX_NAME, || {
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

/// Checks hashes, blocks and the stored capacity against each other.
fn check_shape(h: &Header<'_>, capacity: u64) -> Result<()> {
    if h.is_unsized() {
        return require(h.base_blocks == 0 && capacity == 0 && h.num_hashes == 0, || {
            format!("no blocks, but {} base blocks, capacity {capacity} and {} hashes", h.base_blocks, h.num_hashes)
        });
    }
    let hashes = if h.layout == Layout::Parquet { PARQUET_HASHES..=PARQUET_HASHES } else { 1..=MAX_HASHES };
    require(hashes.contains(&h.num_hashes), || format!("{} hashes in layout \"{}\"", h.num_hashes, h.layout.name()))?;
    require(h.blocks <= max_blocks(h.layout) && h.dense_bytes() <= MAX_STORED_BYTES, || {
        format!("{} blocks are too many", h.blocks)
    })?;
    require(h.base_blocks > 0 && h.blocks.is_multiple_of(h.base_blocks), || {
        format!("{} blocks are no multiple of {}", h.blocks, h.base_blocks)
    })?;
    require(capacity <= i64::MAX as u64, || format!("capacity is {capacity}"))
}

/// Checks that a header is that of a stored filter, not of a partial state.
pub(crate) fn check_is_whole(h: &Header<'_>, is_empty_list: bool) -> Result<()> {
    match h.capacity {
        Capacity::Elements(_) => Ok(()),
        Capacity::ToBeFolded => Err(invalid("capacity is 0")),
        Capacity::Unsized if !is_empty_list => Err(invalid("a filter of no size holds elements")),
        Capacity::Unsized => require(h.kind.is_none(), || "a filter of no size has a key kind".into()),
    }
}

/// Checks that a filter without a final size can be folded to any smaller size without losing elements.
pub(super) fn check_foldable(h: &Header<'_>) -> Result<()> {
    require(h.blocks.is_power_of_two(), || {
        format!("{} blocks of a filter to be folded are no power of two", h.blocks)
    })?;
    let num_hashes = density(h.layout, h.fpr).map_err(|error| invalid(error.to_string()))?.num_hashes;
    require(h.num_hashes == num_hashes, || format!("{} hashes at a rate that has {num_hashes}", h.num_hashes))
}

fn check_dense_length(header: &Header<'_>, length: usize) -> Result<()> {
    require(!header.is_unsized(), || "a filter of no size is dense".into())?;
    require(length as u64 == header.payload_bytes(), || {
        format!("{length} bytes of bits where {} blocks have {}", header.blocks, header.payload_bytes())
    })
}

/// Checks that no bits are set after the last one of a dense payload.
pub(super) fn check_unused(header: &Header<'_>, payload: &[u8]) -> Result<()> {
    let unused = payload.len() as u64 * 8 - header.blocks * header.layout.block_bits();
    require(payload.last().is_some_and(|&last| u64::from(last.leading_zeros()) >= unused), || {
        "bits are set after the last".into()
    })
}

/// Checks the length of a sparse payload and returns the number of its hashes.
fn check_sparse_length(header: &Header<'_>, length: usize) -> Result<usize> {
    let hashes = length / 8;
    require(length.is_multiple_of(8), || format!("{length} bytes of hashes are no multiple of 8"))?;
    require(header.capacity != Capacity::ToBeFolded, || "a sparse filter has capacity 0".into())?;
    require(header.fits_sparse(hashes), || {
        format!("{hashes} hashes are more than a sparse filter of {} blocks has", header.blocks)
    })?;
    require(!header.kind.is_none() || hashes == 0, || "elements have no key kind".into())?;
    Ok(hashes)
}

/// Reads the header at the start of a value of `length` bytes. Returns the number of its hashes, if it is sparse.
pub(crate) fn parse_start(bytes: &[u8], length: usize) -> Result<(Header<'_>, Option<usize>)> {
    let (header, representation) = parse_header(bytes, check_bits)?;
    let payload = length.checked_sub(header.prefix_bytes()).ok_or_else(|| invalid("it is cut off"))?;
    let hashes = match representation {
        DENSE => check_dense_length(&header, payload).map(|()| None),
        _ => check_sparse_length(&header, payload).map(Some),
    }?;
    Ok((header, hashes))
}
