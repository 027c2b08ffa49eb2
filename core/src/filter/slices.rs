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
pub use super::view::FilterStart;
use super::view::{check_is_whole, parse_start};
use crate::error::{Error, Result, damaged};
use crate::kind::MAX_NAME_BYTES;
use crate::layout::{Layout, Shape};

/// Bytes at the start of a value that contain its whole header, however long that is.
pub const START_BYTES: usize = HEADER_BYTES + MAX_NAME_BYTES;
/// Hashes of a sparse filter that are read at once, which costs little more than reading one.
const WINDOW: usize = 256;

impl<'a> FilterStart<'a> {
    /// Reads the first [`START_BYTES`] bytes, or all, of a value of `length` bytes. Errors: as
    /// [`crate::View::parse`].
    pub fn parse(bytes: &'a [u8], length: usize) -> Result<FilterStart<'a>> {
        let start = parse_start(bytes, length)?;
        check_is_whole(&start.header, start.hashes == Some(0))?;
        Ok(start)
    }

    /// Whether the element with this hash may be in the filter. `read(from, length)` reads a slice
    /// of the value. Errors: those of `read`; [`crate::Class::InvalidBinary`] if it returns too few
    /// bytes.
    pub fn contains<E: From<Error>, B: AsRef<[u8]>>(
        &self,
        hash: u64,
        mut read: impl FnMut(usize, usize) -> std::result::Result<B, E>,
    ) -> std::result::Result<bool, E> {
        let first = self.header.prefix_bytes();
        let mut read = |from: usize, length: usize| {
            let bytes = read(first + from, length)?;
            if bytes.as_ref().len() == length {
                Ok(bytes)
            } else {
                Err(E::from(damaged("it is cut off")))
            }
        };
        let shape = self.header.shape();
        match (self.hashes, shape.layout) {
            (Some(count), _) => contains_sparse(count, hash, read),
            (None, Layout::Classic) => {
                for bit in shape.classic_bits(hash) {
                    if read((bit >> 3) as usize, 1)?.as_ref()[0] >> (bit & 7) & 1 == 0 {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (None, _) => {
                let bytes = (shape.layout.block_bits() / 8) as usize;
                let block = read(shape.block_of(hash) as usize * bytes, bytes)?;
                // Positions in a block don't depend on how many blocks there are.
                Ok(Shape { blocks: 1, ..shape }.contains(block.as_ref(), hash))
            }
        }
    }
}

/// Searches for a hash in a sorted list of `count` by reading windows: first where it should be, as
/// hashes are uniform, then in the middle of what is left, so that a forged list doesn't take many
/// steps.
fn contains_sparse<E, B: AsRef<[u8]>>(
    count: usize,
    hash: u64,
    mut read: impl FnMut(usize, usize) -> std::result::Result<B, E>,
) -> std::result::Result<bool, E> {
    // It may be at low..high. Hashes before `low` are at most `least`, hashes from `high` on are at
    // least `most`.
    let (mut low, mut high) = (0, count);
    let (mut least, mut most) = (0u64, u64::MAX);
    let mut halve = false;
    while low < high {
        let middle = if halve {
            low + (high - low) / 2
        } else {
            let share =
                u128::from(hash - least) * (high - low) as u128 / (u128::from(most - least) + 1);
            low + share as usize
        };
        halve = !halve;
        let from = middle.saturating_sub(WINDOW / 2).max(low);
        let to = (from + WINDOW).min(high);
        let bytes = read(from * 8, (to - from) * 8)?;
        let window = bytes.as_ref().as_chunks::<8>().0;
        let (first, last) = (sparse::value(&window[0]), sparse::value(&window[window.len() - 1]));
        if hash < first {
            (high, most) = (from, first);
        } else if hash > last {
            (low, least) = (to, last);
        } else {
            return Ok(sparse::contains(window, hash));
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
