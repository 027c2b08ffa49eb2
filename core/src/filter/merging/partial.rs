//! The state of a merge that one process passes to another: one filter for each size.
//!
//! ```text
//!  0  u8    0: not a version of a filter, so it can't be taken for one
//!  1  u8    1 union, 2 intersection
//!  2  u16   0
//!  4  u32   filters that follow, at least 1
//!  8  u64   bytes of the largest payload of all filters
//! 16        for each filter: its length (u64), its stored form, zeros up to a multiple of 8
//! ```
//!
//! The filters ascend by block count; the first may have no size. All have one layout, number of
//! hashes, kind and base. Those of an intersection are dense, or they are lists, all empty except
//! the last, which has the common hashes.

use crate::error::{Result, TooLarge, damaged, require};
use crate::filter::build::write_hashes;
use crate::filter::header::{Header, Representation};
use crate::filter::view::{Body, View};
use crate::interrupt;
use crate::memory::{Buffer, List};
use crate::sizing::MAX_STORED_BYTES;
use serde::{Deserialize, Serialize};

/// Bytes of the record before the first filter.
const RECORD_BYTES: usize = 16;
/// Bytes of the length before each filter.
const LENGTH_BYTES: usize = size_of::<u64>();
/// A filter is padded with zeros to a multiple of this number of bytes, so that numbers in the next
/// one are aligned.
const FILTER_ALIGNMENT: usize = 8;
/// The most bytes of a partial state: what fits a value of PostgreSQL.
const MOST_BYTES: usize = (1 << 30) - 64;

/// How filters are merged. The codes are part of partial states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// The result has the elements of any of the filters.
    Union = 1,
    /// The result has the elements that are in all of the filters.
    Intersection = 2,
}

/// A partial state from another process, validated.
#[derive(Clone, Debug)]
pub struct PartialMerge<'a> {
    pub operation: Operation,
    /// Bytes of the largest payload of all filters that were merged.
    pub(super) given_payload_bytes: u64,
    /// The filters, by ascending number of blocks; at least one.
    pub(super) filters: List<View<'a>>,
}

/// What comes before the filters of a partial state.
///
/// The fields stand in the order of their bytes; `bincode` writes them little-endian and without
/// padding.
#[derive(Serialize, Deserialize)]
struct PartialRecord {
    /// 0, in the place of a filter's version.
    no_version: u8,
    operation: u8,
    reserved: u16,
    num_filters: u32,
    given_payload_bytes: u64,
}

impl PartialRecord {
    /// Reads the record at the start of a partial state. Returns it with the bytes after it.
    ///
    /// Fails if there are too few bytes.
    fn read(bytes: &[u8]) -> Result<(PartialRecord, &[u8])> {
        let (record, filters) = bytes
            .split_at_checked(RECORD_BYTES)
            .ok_or_else(|| damaged("a partial state is cut off"))?;
        let record = bincode::deserialize(record).map_err(|error| damaged(error.to_string()))?;
        Ok((record, filters))
    }

    /// Returns how the filters are merged. Fails if this is not the record of a partial state.
    fn operation(&self) -> Result<Operation> {
        match (self.no_version, self.operation, self.reserved) {
            (0, 1, 0) => Ok(Operation::Union),
            (0, 2, 0) => Ok(Operation::Intersection),
            _ => Err(damaged("it is no partial state of a merge")),
        }
    }

    fn check_num_filters(&self) -> Result<()> {
        require(self.num_filters > 0, || "a partial state has no filters".into())
    }

    fn check_given_payload_bytes(&self) -> Result<()> {
        let bytes = self.given_payload_bytes;
        require(bytes <= MAX_STORED_BYTES, || format!("a filter of {bytes} bytes was merged"))
    }
}

impl<'a> PartialMerge<'a> {
    /// Reads a *partial state* of a merge: the bytes that [`super::MergedFilters::to_partial`]
    /// wrote in another process. Checks each filter in it, and that they can be merged with each
    /// other.
    ///
    /// Fails with [`crate::Class::InvalidBinary`] if the bytes are anything else.
    pub fn parse(bytes: &'a [u8]) -> Result<PartialMerge<'a>> {
        let (record, mut unread) = PartialRecord::read(bytes)?;
        let operation = record.operation()?;
        record.check_num_filters()?;
        record.check_given_payload_bytes()?;

        let mut partial = PartialMerge {
            operation,
            given_payload_bytes: record.given_payload_bytes,
            filters: List::new(),
        };
        for i in 0..record.num_filters {
            let is_last = i + 1 == record.num_filters;
            let filter = View::parse(read_filter(&mut unread)?)?;
            partial.check_next(&filter, is_last)?;
            partial.filters.push(filter);
        }
        require(unread.is_empty(), || "a partial state is too long".into())?;
        Ok(partial)
    }

    /// Checks that a filter may follow those that were read before.
    ///
    /// Fails if it has not more blocks than they have, if it couldn't be merged with them, or if it
    /// can't be part of an intersection.
    fn check_next(&self, filter: &View<'_>, is_last: bool) -> Result<()> {
        if let Some(previous) = self.filters.last() {
            check_order(&previous.header, &filter.header)?;
            check_alike(&previous.header, &filter.header)?;
        }
        match self.operation {
            Operation::Union => Ok(()),
            Operation::Intersection => self.check_intersection(filter, is_last),
        }
    }

    /// Checks that a filter may come next in the partial state of an intersection. Such a state has
    /// one of two forms:
    ///
    /// - all filters have bits;
    /// - all filters are lists of hashes. Only the last one has hashes, which all merged filters
    ///   have in common. The others are empty, and say only which sizes the merged filters had.
    ///
    /// A filter of no size is an empty list. So if one comes first, all others must be lists, too.
    ///
    /// Fails if the filter before is of the other form, or if the filter is a list with hashes and
    /// isn't the last one.
    fn check_intersection(&self, filter: &View<'_>, is_last: bool) -> Result<()> {
        let wrong_form = || Err(damaged("an intersection of bits and hashes"));

        let is_list = |filter: &View<'_>| matches!(filter.body, Body::Sparse(_));
        if let Some(previous) = self.filters.last()
            && is_list(previous) != is_list(filter)
        {
            return wrong_form();
        }

        let is_empty_list = matches!(filter.body, Body::Sparse([]));
        if is_list(filter) && !is_empty_list && !is_last {
            return wrong_form();
        }
        Ok(())
    }
}

/// Checks that a filter has more blocks than the one before it.
fn check_order(previous: &Header<'_>, next: &Header<'_>) -> Result<()> {
    require(previous.blocks < next.blocks, || "the filters of a partial state do not ascend".into())
}

/// Checks that a filter has what all filters of a partial state have in common. One of no size has
/// only a layout, which may be another one.
fn check_alike(previous: &Header<'_>, next: &Header<'_>) -> Result<()> {
    let is_alike = previous.layout == next.layout
        && previous.num_hashes == next.num_hashes
        && previous.kind == next.kind
        && previous.base_blocks == next.base_blocks;
    require(previous.is_unsized() || is_alike, || "the filters of a partial state differ".into())
}

/// Returns the stored form of the next filter: a length of eight bytes comes before it, and padding
/// with zeros after it. Advances `unread` past all of them.
///
/// Fails if the filter or its padding is cut off, or if its padding is not zero.
fn read_filter<'a>(unread: &mut &'a [u8]) -> Result<&'a [u8]> {
    let cut_off = || damaged("a filter of a partial state is cut off");

    let (length, rest) = unread.split_first_chunk::<LENGTH_BYTES>().ok_or_else(cut_off)?;
    let length = u64::from_le_bytes(*length);
    if length > rest.len() as u64 {
        return Err(cut_off());
    }
    let length = length as usize;

    let (filter, rest) = rest.split_at(length);
    let padding_bytes = length.next_multiple_of(FILTER_ALIGNMENT) - length;
    let (padding, rest) = rest.split_at_checked(padding_bytes).ok_or_else(cut_off)?;
    require(padding.iter().all(|&byte| byte == 0), || {
        "padding of a partial state is not zero".into()
    })?;
    *unread = rest;
    Ok(filter)
}

/// The elements of a filter that is written to a partial state.
#[derive(Clone, Copy)]
pub(super) enum PartialElements<'a> {
    Bits(&'a [u8]),
    /// Distinct hashes, ascending.
    Hashes(&'a [u64]),
}

/// A filter that is written to a partial state.
pub(super) struct PartialFilter<'a> {
    pub(super) header: Header<'a>,
    pub(super) elements: PartialElements<'a>,
}

impl PartialFilter<'_> {
    /// Returns how many bytes the stored form of the filter has.
    fn stored_bytes(&self) -> usize {
        let payload_bytes = match self.elements {
            PartialElements::Bits(bits) => bits.len(),
            PartialElements::Hashes(hashes) => size_of_val(hashes),
        };
        self.header.prefix_bytes() + payload_bytes
    }

    /// Returns how many bytes the filter takes in a partial state, with its length and its padding.
    fn partial_bytes(&self) -> usize {
        LENGTH_BYTES + self.stored_bytes().next_multiple_of(FILTER_ALIGNMENT)
    }

    /// Writes the filter to the start of `into`: a length of eight bytes, and then that many bytes
    /// in the form in which PostgreSQL stores filters (header, then bits or hashes). `into` must
    /// have at least [`PartialFilter::partial_bytes`] bytes, all zeros; those after the filter stay
    /// zero.
    ///
    /// Checks for interrupts while it copies the payload, so a user can cancel it.
    fn write(&self, into: &mut [u8]) {
        let (length, rest) = into.split_at_mut(LENGTH_BYTES);
        let stored_bytes = self.stored_bytes();
        length.copy_from_slice(&(stored_bytes as u64).to_le_bytes());

        let stored_filter = &mut rest[..stored_bytes];
        let (prefix, payload) = stored_filter.split_at_mut(self.header.prefix_bytes());
        match self.elements {
            PartialElements::Bits(bits) => {
                self.header.write(Representation::Dense, prefix);
                interrupt::copy(payload, bits);
            }
            PartialElements::Hashes(hashes) => {
                self.header.write(Representation::Sparse, prefix);
                write_hashes(payload, hashes);
            }
        }
    }
}

/// Returns the bytes of a partial state, which [`PartialMerge::parse`] reads: a record of 16 bytes,
/// and then each filter. `given_payload_bytes` is the largest payload of all filters that were
/// merged, which limits the size of the result.
///
/// Fails with [`TooLarge::PartialState`] if the state has more bytes than a value of PostgreSQL may
/// have.
pub(super) fn write_partial<B: Buffer>(
    operation: Operation,
    given_payload_bytes: u64,
    filters: &[PartialFilter<'_>],
) -> Result<B> {
    let filter_bytes: usize = filters.iter().map(PartialFilter::partial_bytes).sum();
    let bytes = RECORD_BYTES + filter_bytes;
    if bytes > MOST_BYTES {
        return Err(TooLarge::PartialState { bytes }.into());
    }

    let record = PartialRecord {
        no_version: 0,
        operation: operation as u8,
        reserved: 0,
        num_filters: filters.len() as u32,
        given_payload_bytes,
    };
    let mut value = B::zeroed(bytes);
    let (start, mut rest) = value.bytes_mut().split_at_mut(RECORD_BYTES);
    bincode::serialize_into(start, &record).expect("a record of fixed width fits its bytes");
    for filter in filters {
        let (own, after) = rest.split_at_mut(filter.partial_bytes());
        filter.write(own);
        rest = after;
    }
    Ok(value)
}
