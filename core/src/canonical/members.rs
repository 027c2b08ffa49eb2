//! Composed values: arrays, rows, ranges and multiranges. Their canonical bytes are those of their
//! members, with what is written around them:
//!
//! ```text
//! member      00                                    NULL
//!             01, length u64, canonical bytes       a value of a kind that is not composed
//!             01, canonical bytes                   an array, row, range or multirange: its bytes say where it ends
//!
//! array       dimensions u32, for each its length i32 and lower bound i32, the members in order of storage
//! row         the members in order of the columns
//! range       flags u8; the lower bound as a member, unless there is none; the upper bound likewise
//! multirange  ranges u32, the ranges in order
//! ```
//!
//! All numbers are little-endian.

use super::Sink;

/// The byte of a member that is NULL.
const NULL_MEMBER: u8 = 0;
/// The first byte of any other member.
const VALUE_MEMBER: u8 = 1;

/// The flags of a range. The first byte of its canonical bytes is the sum of those that hold.
pub mod flags {
    /// The range is empty. It has no other flags and no bounds.
    pub const EMPTY: u8 = 1;
    /// The lower bound belongs to the range.
    pub const LOWER_IN: u8 = 2;
    /// The upper bound belongs to the range.
    pub const UPPER_IN: u8 = 4;
    /// There is no lower bound.
    pub const NO_LOWER: u8 = 8;
    /// There is no upper bound.
    pub const NO_UPPER: u8 = 16;
}

/// Writes a member that is NULL.
pub fn write_null(into: &mut impl Sink) {
    into.write(&[NULL_MEMBER]);
}

/// Writes what precedes the canonical bytes of a member that is composed itself.
pub fn write_composite_start(into: &mut impl Sink) {
    into.write(&[VALUE_MEMBER]);
}

/// Writes what precedes the canonical bytes of a member that is not composed, given how many bytes
/// these are.
pub fn write_value_start(length: u64, into: &mut impl Sink) {
    let mut start = [VALUE_MEMBER; 9];
    start[1..].copy_from_slice(&length.to_le_bytes());
    into.write(&start);
}

/// Writes a member that is not composed, given its canonical bytes.
pub fn write_value(bytes: &[u8], into: &mut impl Sink) {
    write_value_start(bytes.len() as u64, into);
    into.write(bytes);
}

/// Writes what precedes the members of an array, given the length and the lower bound of each
/// dimension.
pub fn write_array_start(
    lengths_and_lower_bounds: impl ExactSizeIterator<Item = (i32, i32)>,
    into: &mut impl Sink,
) {
    let num_dimensions = lengths_and_lower_bounds.len() as u32;
    into.write(&num_dimensions.to_le_bytes());
    for (length, lower_bound) in lengths_and_lower_bounds {
        into.write(&length.to_le_bytes());
        into.write(&lower_bound.to_le_bytes());
    }
}

/// Writes what precedes the ranges of a multirange, given how many these are.
pub fn write_multirange_start(num_ranges: u32, into: &mut impl Sink) {
    into.write(&num_ranges.to_le_bytes());
}

#[cfg(test)]
mod tests;
