//! Filters as Parquet files keep them: a header in Thrift's compact protocol, then the bits, which
//! are those of the layout `parquet` (parquet-format, BloomFilter.md and parquet.thrift). The
//! protocol is in `thrift`.
//!
//! ```text
//! struct BloomFilterHeader              15 xx…        numBytes, zigzag varint: bytes of the bits
//!   1: required i32 numBytes            1c 1c 00 00   algorithm    BLOCK         = struct {}
//!   2: required union algorithm         1c 1c 00 00   hash         XXHASH        = struct {}
//!   3: required union hash              1c 1c 00 00   compression  UNCOMPRESSED  = struct {}
//!   4: required union compression       00
//! ```
//!
//! **Floats.** In SQL -0 and 0 are equal, and so are all NaNs. Parquet's writers hash the bytes as
//! they are. So a filter from a file may have -0 when we probe for 0, and another program may probe
//! for -0 in a filter of ours, which has only the canonical value. So elements are added to filters
//! of FLOAT and DOUBLE when they are imported or exported:
//!
//! | by | if the filter may have | the bits are set of |
//! |---|---|---|
//! | [`import`] | -0 | 0 |
//! | [`import`] | anything | the canonical NaN, since another NaN may be in it |
//! | [`export`] | 0 | -0 |
//! | [`export`] | the canonical NaN | the same NaN with the other sign |
//!
//! **Capacity.** A file doesn't have the capacity of its filter. An imported filter has the rate
//! 0.01, or its present rate if that is greater, and the capacity of its size at that rate.

mod thrift;

use crate::canonical::scalar;
use crate::error::{Error, InvalidBinary, InvalidParameter, Result, TooLarge};
use crate::filter::build::{contains, insert_list};
use crate::filter::estimate;
use crate::filter::header::{Capacity, Header, Representation, capacity_for_bytes, payload_mut};
use crate::filter::view::{Body, View};
use crate::hash::hash;
use crate::kind::{Kind, Tag};
use crate::layout::{Layout, PARQUET_HASHES};
use crate::memory::Buffer;
use crate::sizing::DEFAULT_FPR;
use crate::{interrupt, sizing};
use thrift::{Field, I32, Malformed, Read, STOP, STRUCT, ThriftReader, UNION_OF_FIRST, write_i32};

const BLOCK_BYTES: usize = 32;
/// The longest header that is read. Without unknown fields a header has at most 20 bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// The header of a filter with this number of bytes of bits.
fn header(bits: i32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(20);
    write_i32(&mut bytes, bits);
    // Algorithm, hash, compression.
    bytes.extend([UNION_OF_FIRST; 3].as_flattened());
    bytes.push(STOP);
    bytes
}

/// Reads a union whose only known member is the first, an empty struct.
fn read_union(reader: &mut ThriftReader<'_>, field: Field, name: &str, member: &str) -> Read<()> {
    if field.wire_type != STRUCT {
        return thrift::invalid(format!("{name} has type {}", field.wire_type));
    }
    let mut last = 0;
    match reader.field(&mut last)? {
        Some(found) if (found.id, found.wire_type) == (1, STRUCT) => reader.skip(found, 2)?,
        Some(found) => {
            return thrift::invalid(format!(
                "{name} {} is unknown; only {member} (1) is",
                found.id
            ));
        }
        None => return thrift::invalid(format!("{name} has no value")),
    }
    match reader.field(&mut last)? {
        None => Ok(()),
        Some(_) => thrift::invalid(format!("{name} has several values")),
    }
}

/// Reads a header. Returns how many bytes of bits follow it.
fn read_header(reader: &mut ThriftReader<'_>) -> Read<i32> {
    const UNIONS: [(&str, &str); 3] = [
        ("algorithm", "BLOCK"),
        ("hash", "XXHASH"),
        ("compression", "UNCOMPRESSED"),
    ];
    let (mut last, mut bits, mut found) = (0, None, [false; 3]);
    while let Some(field) = reader.field(&mut last)? {
        match field.id {
            1 if field.wire_type == I32 => bits = Some(reader.i32()?),
            1 => return thrift::invalid(format!("numBytes has type {}", field.wire_type)),
            2..=4 => {
                let union = field.id as usize - 2;
                read_union(reader, field, UNIONS[union].0, UNIONS[union].1)?;
                found[union] = true;
            }
            _ => reader.skip(field, 1)?,
        }
    }
    if let Some(missing) = found.iter().position(|&found| !found) {
        return thrift::invalid(format!("{} is missing", UNIONS[missing].0));
    }
    bits.map_or_else(|| thrift::invalid("numBytes is missing"), Ok)
}

fn invalid(what: String) -> Error {
    InvalidBinary::Parquet(what).into()
}

/// Bytes of the header that these begin with, and of the bits that should follow it.
fn lengths(bytes: &[u8]) -> Result<(usize, usize)> {
    let start = &bytes[..bytes.len().min(MAX_HEADER_BYTES)];
    let mut reader = ThriftReader(start);
    let length = read_header(&mut reader).map_err(|malformed| match malformed {
        Malformed::Invalid(detail) => invalid(format!("The header is damaged: {detail}.")),
        Malformed::CutOff if start.len() < bytes.len() => {
            invalid(format!("The header has more than {MAX_HEADER_BYTES} bytes."))
        }
        Malformed::CutOff => invalid(format!("The header is cut off after {} bytes.", bytes.len())),
    })?;
    let length = usize::try_from(length)
        .ok()
        .filter(|&length| length > 0 && length.is_multiple_of(BLOCK_BYTES))
        .ok_or_else(|| {
            invalid(format!("{length} bytes of bits are no blocks of {BLOCK_BYTES}."))
        })?;
    Ok((start.len() - reader.0.len(), length))
}

/// The bits of a filter as a Parquet file has it. Errors: [`InvalidBinary::Parquet`] for anything
/// else.
pub fn decode(bytes: &[u8]) -> Result<&[u8]> {
    let (header, length) = lengths(bytes)?;
    let bits = &bytes[header..];
    if bits.len() != length {
        return Err(invalid(format!(
            "The header of {header} bytes says that {length} bytes of bits follow, but {} do.",
            bits.len()
        )));
    }
    Ok(bits)
}

/// These bytes without those after the filter that they begin with. Errors:
/// [`InvalidBinary::Parquet`] if they don't begin with a header. The bits may be cut off.
pub fn without_rest(bytes: &[u8]) -> Result<&[u8]> {
    let (header, length) = lengths(bytes)?;
    Ok(&bytes[..bytes.len().min(header + length)])
}

/// The hashes of the zeros and of the NaNs that import and export add to a filter of floats, the
/// canonical ones first.
fn floats(tag: Tag) -> Option<[[u64; 2]; 2]> {
    fn with_other_sign<const N: usize>(canonical: [u8; N]) -> [u64; 2] {
        let mut other = canonical;
        other[N - 1] ^= 0x80;
        [hash(&canonical), hash(&other)]
    }
    match tag {
        Tag::ParquetFloat => {
            Some([0.0, f32::NAN].map(|value| with_other_sign(scalar::float32(value))))
        }
        Tag::ParquetDouble => {
            Some([0.0, f64::NAN].map(|value| with_other_sign(scalar::float(value))))
        }
        _ => None,
    }
}

/// The filter of a Parquet file as a stored filter, which is dense, with elements of this kind.
/// Errors: [`InvalidBinary::Parquet`]; [`TooLarge::ParquetBytes`] if it would have more than
/// `limit` bytes; [`InvalidParameter::KindNotReadFromParquet`].
pub fn import<B: Buffer>(bytes: &[u8], tag: Tag, limit: u64) -> Result<B> {
    if !tag.is_parquet() {
        return Err(InvalidParameter::KindNotReadFromParquet(tag.name().into()).into());
    }
    let bits = decode(bytes)?;
    let blocks = (bits.len() / BLOCK_BYTES) as u64;
    // Its capacity follows from its rate, which is not known yet.
    let size = sizing::FilterSize {
        layout: Layout::Parquet,
        num_hashes: PARQUET_HASHES,
        blocks,
        capacity: 1,
        fpr: DEFAULT_FPR,
    };
    let header = Header::with_size(size, Kind::unnamed(tag));
    let (stored, payload) = (header.dense_bytes(), header.payload_bytes());
    if stored > limit {
        return Err(TooLarge::ParquetBytes { bytes: stored, limit, payload }.into());
    }
    let mut value: B = header.dense();
    let payload = payload_mut(&mut value, &header);
    interrupt::copy(payload, bits);
    if let Some([[zero, other_zero], [nan, _]]) = floats(tag) {
        let shape = header.shape();
        if shape.contains(bits, other_zero) {
            shape.insert_all(payload, &[zero]);
        }
        if estimate::count_ones(bits) > 0 {
            shape.insert_all(payload, &[nan]);
        }
    }
    let fpr = estimate::rate_of_bits(&header, payload).clamp(DEFAULT_FPR, sizing::GREATEST_FPR);
    // A capacity for which a build has this size, if there is one.
    let capacity =
        Capacity::Elements(capacity_for_bytes(header.layout, header.dense_bytes(), fpr)?);
    Header { capacity, fpr, ..header }.write(Representation::Dense, value.bytes_mut());
    Ok(value)
}

/// A filter in the form of Parquet files. A filter of no size becomes one block without elements.
/// Errors: [`InvalidParameter::LayoutNotOfParquet`]; [`InvalidParameter::KindNotWrittenToParquet`];
/// [`TooLarge::Bytes`] if a sparse filter would have more than `limit` bytes when dense.
pub fn export<B: Buffer>(view: &View<'_>, limit: u64) -> Result<B> {
    let h = &view.header;
    if !h.is_unsized() && h.layout != Layout::Parquet {
        return Err(InvalidParameter::LayoutNotOfParquet(h.layout).into());
    }
    if !(h.kind.is_none() || h.kind.tag.is_parquet()) {
        return Err(InvalidParameter::KindNotWrittenToParquet(h.kind.to_string()).into());
    }
    if matches!(view.body, Body::Sparse(_)) {
        h.check_size(limit)?;
    }
    let bits = if h.is_unsized() { BLOCK_BYTES } else { h.payload_bytes() as usize };
    let start = header(bits as i32);
    let mut result = B::zeroed(start.len() + bits);
    let (prefix, payload) = result.bytes_mut().split_at_mut(start.len());
    prefix.copy_from_slice(&start);
    match view.body {
        Body::Dense(bits) => interrupt::copy(payload, bits),
        Body::Sparse(entries) => insert_list(payload, h, entries),
    }
    for [canonical, other] in floats(h.kind.tag).into_iter().flatten() {
        if contains(view, canonical) {
            h.shape().insert_all(payload, &[other]);
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests;
