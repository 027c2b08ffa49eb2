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
use crate::memory::{Buffer, List};
use crate::sizing::DEFAULT_FPR;
use crate::{interrupt, sizing};
use thrift::{
    I32, STRUCT, ThriftError, ThriftField, ThriftReader, ThriftResult, write_i32_field, write_stop,
    write_union_field,
};

/// Bytes of a block of bits.
const BLOCK_BYTES: usize = 32;
/// The longest header that is read. A header without unknown fields has at most 19 bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// The numbers of the fields of `BloomFilterHeader` in parquet.thrift.
const NUM_BYTES_ID: i16 = 1;
const ALGORITHM_ID: i16 = 2;
const HASH_ID: i16 = 3;
const COMPRESSION_ID: i16 = 4;

/// `BloomFilterHeader` of parquet.thrift: what precedes the bits of a filter in a file.
///
/// Each field has one known value, except the number of bytes. `None`: the field was not found.
#[derive(Default)]
struct FileHeader {
    /// Field 1, `numBytes`: how many bytes of bits follow.
    num_bytes: Option<i32>,
    /// Field 2.
    algorithm: Option<SplitBlock>,
    /// Field 3.
    hash: Option<XxHash>,
    /// Field 4.
    compression: Option<Uncompressed>,
}

/// `BloomFilterAlgorithm.BLOCK`: the layout `parquet`.
struct SplitBlock;
/// `BloomFilterHash.XXHASH`: XXH64 with seed 0.
struct XxHash;
/// `BloomFilterCompression.UNCOMPRESSED`: the bits as they are.
struct Uncompressed;

impl FileHeader {
    /// Reads the header of a filter in a Parquet file: a struct in Thrift's compact protocol, with
    /// the number of bytes of bits, and how they are to be read. Fields may come in any order.
    /// Unknown fields are skipped; of repeated fields the last one counts.
    ///
    /// Fails if the header is cut off, or if a known field has an unknown type or value. Missing
    /// fields are `None`.
    fn read(reader: &mut ThriftReader<'_>) -> ThriftResult<FileHeader> {
        /// The header is the only struct in which its fields are.
        const DEPTH_OF_FIELDS: u32 = 1;
        let mut header = FileHeader::default();
        let mut previous_id = 0;
        while let Some(field) = reader.field(previous_id)? {
            previous_id = field.id;
            match field.id {
                NUM_BYTES_ID => header.num_bytes = Some(read_num_bytes(reader, field)?),
                ALGORITHM_ID => {
                    read_union(reader, field, "algorithm", "BLOCK")?;
                    header.algorithm = Some(SplitBlock);
                }
                HASH_ID => {
                    read_union(reader, field, "hash", "XXHASH")?;
                    header.hash = Some(XxHash);
                }
                COMPRESSION_ID => {
                    read_union(reader, field, "compression", "UNCOMPRESSED")?;
                    header.compression = Some(Uncompressed);
                }
                _ => reader.skip_field(field, DEPTH_OF_FIELDS)?,
            }
        }
        Ok(header)
    }

    /// Returns how many bytes of bits follow the header.
    ///
    /// Fails if a required field is missing: all of them are.
    fn into_num_bytes(self) -> ThriftResult<i32> {
        check_found(self.algorithm, "algorithm")?;
        check_found(self.hash, "hash")?;
        check_found(self.compression, "compression")?;
        check_found(self.num_bytes, "numBytes")
    }
}

/// Returns the value of a field. Fails if it is missing.
fn check_found<T>(value: Option<T>, name: &str) -> ThriftResult<T> {
    match value {
        Some(value) => Ok(value),
        None => thrift::invalid(format!("{name} is missing")),
    }
}

/// Reads the value of the field `numBytes`. Fails if it is no 32-bit number.
fn read_num_bytes(reader: &mut ThriftReader<'_>, field: ThriftField) -> ThriftResult<i32> {
    if field.wire_type != I32 {
        return thrift::invalid(format!("numBytes has type {}", field.wire_type));
    }
    reader.i32()
}

/// Checks that the value of a field of the header is the only one that is known, and reads past it.
/// Such a value is a union (a struct with one field) that has its first member, an empty struct.
/// `name` is the name of the field, and `member` the name of that member, for messages.
///
/// Fails if the value isn't a union, or if the union has another member, none or several.
fn read_union(
    reader: &mut ThriftReader<'_>,
    field: ThriftField,
    name: &str,
    member: &str,
) -> ThriftResult<()> {
    const FIRST_MEMBER: i16 = 1;
    /// The member is in two structs: the union and the header.
    const DEPTH_OF_MEMBER: u32 = 2;
    if field.wire_type != STRUCT {
        return thrift::invalid(format!("{name} has type {}", field.wire_type));
    }

    let Some(found) = reader.field(0)? else {
        return thrift::invalid(format!("{name} has no value"));
    };
    if found.id != FIRST_MEMBER || found.wire_type != STRUCT {
        let id = found.id;
        return thrift::invalid(format!("{name} {id} is unknown; only {member} (1) is"));
    }
    // A later version may have given the member fields, which are skipped.
    reader.skip_field(found, DEPTH_OF_MEMBER)?;

    match reader.field(found.id)? {
        None => Ok(()),
        Some(_) => thrift::invalid(format!("{name} has several values")),
    }
}

/// Returns the bytes of the header of a filter that has `num_bytes` bytes of bits.
fn encode_header(num_bytes: i32) -> List<u8> {
    let mut bytes = List::new();
    write_i32_field(&mut bytes, num_bytes);
    // Algorithm, hash and compression: the only known member of each union.
    for _ in 0..3 {
        write_union_field(&mut bytes);
    }
    write_stop(&mut bytes);
    bytes
}

/// Returns the error for bytes that are no filter of a Parquet file. `why` is a sentence.
fn invalid(why: String) -> Error {
    InvalidBinary::Parquet(why).into()
}

/// How many bytes a filter has in a Parquet file.
struct FileLengths {
    header: usize,
    /// The bytes of bits that should follow the header.
    bits: usize,
}

/// Reads the header of a filter of a Parquet file at the start of `bytes`. Returns how many bytes
/// the header has, and how many bytes of bits should follow it; whether they do is not checked.
///
/// Fails if the header is invalid, cut off or longer than [`MAX_HEADER_BYTES`], or if the bits are
/// no whole blocks.
fn read_lengths(bytes: &[u8]) -> Result<FileLengths> {
    let start = &bytes[..bytes.len().min(MAX_HEADER_BYTES)];
    let mut reader = ThriftReader::new(start);
    let num_bytes = FileHeader::read(&mut reader)
        .and_then(FileHeader::into_num_bytes)
        .map_err(|error| match error {
            ThriftError::Invalid(why) => invalid(format!("The header is damaged: {why}.")),
            ThriftError::CutOff if start.len() < bytes.len() => {
                invalid(format!("The header has more than {MAX_HEADER_BYTES} bytes."))
            }
            ThriftError::CutOff => {
                invalid(format!("The header is cut off after {} bytes.", bytes.len()))
            }
        })?;

    let is_whole_blocks = num_bytes > 0 && (num_bytes as usize).is_multiple_of(BLOCK_BYTES);
    if !is_whole_blocks {
        return Err(invalid(format!("{num_bytes} bytes of bits are no blocks of {BLOCK_BYTES}.")));
    }
    Ok(FileLengths {
        header: start.len() - reader.unread_bytes(),
        bits: num_bytes as usize,
    })
}

/// Returns the bits of a filter, given its bytes in a Parquet file: the header, and these bits.
///
/// Fails with [`InvalidBinary::Parquet`] if the header is invalid, or if another number of bytes
/// follows than it says.
pub fn decode(bytes: &[u8]) -> Result<&[u8]> {
    let lengths = read_lengths(bytes)?;
    let bits = &bytes[lengths.header..];
    if bits.len() != lengths.bits {
        return Err(invalid(format!(
            "The header of {} bytes says that {} bytes of bits follow, but {} do.",
            lengths.header,
            lengths.bits,
            bits.len()
        )));
    }
    Ok(bits)
}

/// Returns the bytes of the filter at the start of `bytes`, without those that follow it. If its
/// bits are cut off, all of `bytes` are returned.
///
/// Fails with [`InvalidBinary::Parquet`] if `bytes` don't begin with a valid header.
pub fn without_rest(bytes: &[u8]) -> Result<&[u8]> {
    let lengths = read_lengths(bytes)?;
    let end = lengths.header + lengths.bits;
    Ok(&bytes[..bytes.len().min(end)])
}

/// The hashes of the floats that import and export add to a filter: see the module's page.
struct FloatHashes {
    zero: u64,
    negative_zero: u64,
    /// Of the canonical NaN.
    nan: u64,
    /// Of the same NaN with the other sign.
    negative_nan: u64,
}

impl FloatHashes {
    /// Returns the hashes, given the canonical bytes of 0 and of NaN.
    fn from_canonical<const BYTES: usize>(zero: [u8; BYTES], nan: [u8; BYTES]) -> FloatHashes {
        FloatHashes {
            zero: hash(&zero),
            negative_zero: hash(&with_other_sign(zero)),
            nan: hash(&nan),
            negative_nan: hash(&with_other_sign(nan)),
        }
    }

    /// Returns the hashes for elements with this tag; `None` if these are not floats of Parquet.
    fn for_tag(tag: Tag) -> Option<FloatHashes> {
        match tag {
            Tag::ParquetFloat => {
                Some(FloatHashes::from_canonical(scalar::float32(0.0), scalar::float32(f32::NAN)))
            }
            Tag::ParquetDouble => {
                Some(FloatHashes::from_canonical(scalar::float(0.0), scalar::float(f64::NAN)))
            }
            _ => None,
        }
    }
}

/// Returns the little-endian bytes of a float with the other sign.
fn with_other_sign<const BYTES: usize>(mut float: [u8; BYTES]) -> [u8; BYTES] {
    float[BYTES - 1] ^= 0x80;
    float
}

/// Converts a filter of a Parquet file to a stored filter, which is dense. `bytes` are the file's
/// header of the filter and its bits; `tag` is the key kind of its elements, which the file doesn't
/// tell.
///
/// A file doesn't tell rate and capacity either. The filter gets the default rate, or its present
/// rate if that is higher, and the capacity that its size has at that rate. Of floats, also those
/// elements are added that are equal in SQL to elements of the filter, but hashed differently by
/// others.
///
/// Fails with [`InvalidBinary::Parquet`] if the bytes are no filter; with
/// [`InvalidParameter::KindNotReadFromParquet`] if Parquet's elements can't have this tag; and with
/// [`TooLarge::ParquetBytes`] if the result would have more than `limit` bytes as stored.
pub fn import<B: Buffer>(bytes: &[u8], tag: Tag, limit: u64) -> Result<B> {
    if !tag.is_parquet() {
        return Err(InvalidParameter::KindNotReadFromParquet(tag.name().into()).into());
    }
    let bits = decode(bytes)?;
    let size = sizing::FilterSize {
        layout: Layout::Parquet,
        num_hashes: PARQUET_HASHES,
        blocks: (bits.len() / BLOCK_BYTES) as u64,
        // Rate and capacity are computed from the bits below.
        capacity: 1,
        fpr: DEFAULT_FPR,
    };
    let header = Header::with_size(size, Kind::unnamed(tag));
    if header.dense_bytes() > limit {
        return Err(TooLarge::ParquetBytes {
            bytes: header.dense_bytes(),
            limit,
            payload: header.payload_bytes(),
        }
        .into());
    }

    let mut value: B = header.dense();
    let payload = payload_mut(&mut value, &header);
    interrupt::copy(payload, bits);
    complete_imported_floats(&header, payload);

    let fpr = estimate::rate_of_bits(&header, payload).clamp(DEFAULT_FPR, sizing::GREATEST_FPR);
    // The largest capacity for which a filter that is built at this rate has at most this size.
    let capacity = capacity_for_bytes(header.layout, header.dense_bytes(), fpr)?;
    let header = Header { capacity: Capacity::Elements(capacity), fpr, ..header };
    header.write(Representation::Dense, value.bytes_mut());
    Ok(value)
}

/// Completes the bits of an imported filter whose elements are floats; does nothing for others.
///
/// In SQL -0 equals 0, and all NaNs (not a number) are equal, so pg_bloom looks for 0 and for one
/// canonical NaN only. But the program that wrote the file has hashed floats by their bytes. So 0
/// is added if the filter may have -0, and the canonical NaN if the filter has any element, since
/// that may be another NaN.
fn complete_imported_floats(header: &Header<'_>, bits: &mut [u8]) {
    let Some(floats) = FloatHashes::for_tag(header.kind.tag) else {
        return;
    };
    let shape = header.shape();
    let may_have_nan = estimate::count_ones(bits) > 0;
    if shape.contains(bits, floats.negative_zero) {
        shape.insert_all(bits, &[floats.zero]);
    }
    if may_have_nan {
        shape.insert_all(bits, &[floats.nan]);
    }
}

/// Converts a filter to the form in which Parquet files keep it: a header in their own format, and
/// the bits. A filter of no size becomes one block without elements. Of floats, also those elements
/// are added that are equal in SQL to elements of the filter, but hashed differently by others.
///
/// Fails with [`InvalidParameter::LayoutNotOfParquet`] if the filter has another layout than
/// `parquet`; with [`InvalidParameter::KindNotWrittenToParquet`] if Parquet doesn't have such
/// elements; and with [`TooLarge::Bytes`] if the filter is sparse, and would have more than `limit`
/// bytes as stored when dense.
pub fn export<B: Buffer>(view: &View<'_>, limit: u64) -> Result<B> {
    let header = &view.header;
    if !header.is_unsized() && header.layout != Layout::Parquet {
        return Err(InvalidParameter::LayoutNotOfParquet(header.layout).into());
    }
    let is_kind_of_parquet = header.kind.is_none() || header.kind.tag.is_parquet();
    if !is_kind_of_parquet {
        let kind = header.kind.to_string();
        return Err(InvalidParameter::KindNotWrittenToParquet(kind).into());
    }
    if matches!(view.body, Body::Sparse(_)) {
        header.check_size(limit)?;
    }

    let num_bytes = if header.is_unsized() { BLOCK_BYTES } else { header.payload_bytes() as usize };
    let file_header = encode_header(num_bytes as i32);
    let mut file = B::zeroed(file_header.len() + num_bytes);
    let (start, bits) = file.bytes_mut().split_at_mut(file_header.len());
    start.copy_from_slice(&file_header);
    match view.body {
        Body::Dense(own_bits) => interrupt::copy(bits, own_bits),
        Body::Sparse(list) => insert_list(bits, header, list),
    }
    complete_exported_floats(view, bits);
    Ok(file)
}

/// Completes the bits of an exported filter whose elements are floats; does nothing for others.
/// `view` is the filter as it was, and `bits` are those of the export.
///
/// In SQL -0 equals 0, and all NaNs (not a number) are equal, so pg_bloom has only added 0 and one
/// canonical NaN. But programs that read the file hash floats by their bytes. So -0 is added if the
/// filter may have 0, and the NaN with the other sign if it may have the canonical one.
fn complete_exported_floats(view: &View<'_>, bits: &mut [u8]) {
    let Some(floats) = FloatHashes::for_tag(view.header.kind.tag) else {
        return;
    };
    let shape = view.header.shape();
    if contains(view, floats.zero) {
        shape.insert_all(bits, &[floats.negative_zero]);
    }
    if contains(view, floats.nan) {
        shape.insert_all(bits, &[floats.negative_nan]);
    }
}

#[cfg(test)]
mod tests;
