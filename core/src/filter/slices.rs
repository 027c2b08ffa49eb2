//! Probing a stored filter of which only slices are read: those that one element needs, not the
//! whole value.
//!
//! ```text
//! dense    | header |  …  | block |  …                 |      one slice
//! classic  | header |  .    .        .   .             |      a byte at a time until a bit is missing
//! sparse   | header |      | window |  …               |      windows of hashes by interpolation
//! ```

use super::header::HEADER_BYTES;
use super::sparse;
use super::view::{check_is_whole, parse_start};
use crate::error::{Error, Result, damaged};
use crate::kind::MAX_NAME_BYTES;
use crate::layout::{Layout, Shape};
use std::ops::Range;

pub use super::view::FilterStart;

/// How many bytes at the start of a value surely contain its header and its name.
pub const START_BYTES: usize = HEADER_BYTES + MAX_NAME_BYTES;
/// How many hashes of a sparse filter are read at once. They take 2 kB, about a piece of a stored
/// value; reading fewer costs hardly less.
const WINDOW: usize = 256;

impl<'a> FilterStart<'a> {
    /// Reads everything before the payload of a stored filter. `bytes` are the first
    /// [`START_BYTES`] bytes of the value, or all of it, and `value_bytes` is its length.
    ///
    /// Fails with [`crate::Class::InvalidBinary`] if no stored filter begins like this or has that
    /// length.
    pub fn parse(bytes: &'a [u8], value_bytes: usize) -> Result<FilterStart<'a>> {
        let start = parse_start(bytes, value_bytes)?;
        check_is_whole(&start.header, start.hashes == Some(0))?;
        Ok(start)
    }

    /// Returns whether the element with this hash may be in the filter. Reads only those parts of
    /// its payload that decide it: one block of bits, or single bytes in layout `classic`; of a
    /// list of hashes, mostly one piece of 2 kB.
    ///
    /// `read(from, length)` must return `length` bytes of the stored value, from byte `from` on.
    ///
    /// Fails if `read` does, and with [`crate::Class::InvalidBinary`] if it returns fewer bytes.
    pub fn contains<E: From<Error>, B: AsRef<[u8]>>(
        &self,
        hash: u64,
        mut read: impl FnMut(usize, usize) -> std::result::Result<B, E>,
    ) -> std::result::Result<bool, E> {
        let payload_start = self.header.prefix_bytes();
        let read_payload = |range: Range<usize>| {
            let bytes = read(payload_start + range.start, range.len())?;
            if bytes.as_ref().len() != range.len() {
                return Err(E::from(damaged("it is cut off")));
            }
            Ok(bytes)
        };

        let shape = self.header.shape();
        match (self.hashes, shape.layout) {
            (Some(count), _) => contains_in_list(count, hash, read_payload),
            (None, Layout::Classic) => contains_classic(shape, hash, read_payload),
            (None, Layout::Blocked | Layout::Parquet) => {
                contains_in_block(shape, hash, read_payload)
            }
        }
    }
}

/// Returns whether all bits of an element are set in a `blocked` or `parquet` filter, where they
/// are in one block, which is read.
///
/// `read_payload` must return the bytes of a range of the payload. Fails if `read_payload` does.
fn contains_in_block<E, B: AsRef<[u8]>>(
    shape: Shape,
    hash: u64,
    mut read_payload: impl FnMut(Range<usize>) -> std::result::Result<B, E>,
) -> std::result::Result<bool, E> {
    let block_bytes = (shape.layout.block_bits() / 8) as usize;
    let start = shape.block_of(hash) as usize * block_bytes;
    let block = read_payload(start..start + block_bytes)?;

    // The positions of the bits in the block don't depend on how many blocks there are.
    let only_block = Shape { blocks: 1, ..shape };
    Ok(only_block.contains(block.as_ref(), hash))
}

/// Returns whether all bits of the element with this hash are set in a filter of layout `classic`,
/// in which they may be anywhere. So for one bit after the other the byte that has it is read,
/// until a bit is clear: two bytes on average, if half of the bits are set and the element isn't in
/// it.
///
/// `read_payload` must return the bytes of a range of the payload. Fails if `read_payload` does.
fn contains_classic<E, B: AsRef<[u8]>>(
    shape: Shape,
    hash: u64,
    mut read_payload: impl FnMut(Range<usize>) -> std::result::Result<B, E>,
) -> std::result::Result<bool, E> {
    for position in shape.classic_bits(hash) {
        let byte_at = (position >> 3) as usize;
        let byte = read_payload(byte_at..byte_at + 1)?;
        let is_set = byte.as_ref()[0] >> (position & 7) & 1 == 1;
        if !is_set {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether a stored list of `count` hashes, which must be ascending, has this one. Reads
/// windows of [`WINDOW`] hashes of the list until the hash must be in the window, or can be
/// nowhere.
///
/// Hashes are uniform, so the first window is read where the hash would be if they were spaced
/// evenly (*interpolation*): nearly always one window is enough. A forged list may not be uniform.
/// So every second window is read in the middle of the places that are left, which at least halves
/// them, and the search ends after at most two windows for each halving.
///
/// `read_payload` must return the bytes of a range of the payload. Fails if `read_payload` does.
fn contains_in_list<E, B: AsRef<[u8]>>(
    count: usize,
    hash: u64,
    mut read_payload: impl FnMut(Range<usize>) -> std::result::Result<B, E>,
) -> std::result::Result<bool, E> {
    // The hash can only be at one of these places. All hashes before them are at most
    // `lower_bound`, and all hashes after them at least `upper_bound`.
    let mut places = 0..count;
    let mut lower_bound = 0;
    let mut upper_bound = u64::MAX;
    let mut takes_middle = false;
    while !places.is_empty() {
        let expected_place = if takes_middle {
            places.start + places.len() / 2
        } else {
            // Neither difference is negative: the hash lies between the bounds, since it is greater
            // than the last hash of each window before `places`, and less than the first hash of
            // each window after them.
            let distance = u128::from(hash - lower_bound);
            let width = u128::from(upper_bound - lower_bound) + 1;
            places.start + (distance * places.len() as u128 / width) as usize
        };
        takes_middle = !takes_middle;

        let first_place = expected_place.saturating_sub(WINDOW / 2).max(places.start);
        let end_place = (first_place + WINDOW).min(places.end);
        let bytes = read_payload(first_place * 8..end_place * 8)?;
        let (window, _) = bytes.as_ref().as_chunks::<8>();

        let first_hash = sparse::hash_in(&window[0]);
        let last_hash = sparse::hash_in(&window[window.len() - 1]);
        if hash < first_hash {
            places.end = first_place;
            upper_bound = first_hash;
        } else if hash > last_hash {
            places.start = end_place;
            lower_bound = last_hash;
        } else {
            return Ok(sparse::contains(window, hash));
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
