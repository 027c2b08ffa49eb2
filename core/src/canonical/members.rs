//! Composed values: what is written around the canonical bytes of their members.
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

/// The flags of a range: it is empty, and has no bounds; its lower, its upper bound is in it; it
/// has no lower, no upper bound.
pub mod flags {
    pub const EMPTY: u8 = 1;
    pub const LOWER_IN: u8 = 2;
    pub const UPPER_IN: u8 = 4;
    pub const NO_LOWER: u8 = 8;
    pub const NO_UPPER: u8 = 16;
}

/// Writes a member that is NULL.
pub fn write_null(into: &mut impl Sink) {
    into.write(&[0]);
}

/// Writes what comes before the canonical bytes of a composed member.
pub fn write_composite_start(into: &mut impl Sink) {
    into.write(&[1]);
}

/// Writes what comes before the canonical bytes of any other member.
pub fn write_value_start(length: u64, into: &mut impl Sink) {
    let mut start = [1; 9];
    start[1..].copy_from_slice(&length.to_le_bytes());
    into.write(&start);
}

/// Writes such a member, with its bytes.
pub fn write_value(bytes: &[u8], into: &mut impl Sink) {
    write_value_start(bytes.len() as u64, into);
    into.write(bytes);
}

/// Writes what comes before the members of an array with these lengths and lower bounds.
pub fn write_array_start(
    dimensions: impl ExactSizeIterator<Item = (i32, i32)>,
    into: &mut impl Sink,
) {
    into.write(&(dimensions.len() as u32).to_le_bytes());
    for (length, lower_bound) in dimensions {
        into.write(&length.to_le_bytes());
        into.write(&lower_bound.to_le_bytes());
    }
}

/// Writes what comes before the ranges of a multirange.
pub fn write_multirange_start(ranges: u32, into: &mut impl Sink) {
    into.write(&ranges.to_le_bytes());
}

#[cfg(test)]
mod tests;
