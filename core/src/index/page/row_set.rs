//! Rows of a table by their location.

use super::fields::{read_fixed, write_fixed};
use crate::memory::List;
use serde::{Deserialize, Serialize};

/// A row: what PostgreSQL calls its `ctid`. Row pages store it as these two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RowId {
    /// The page of the table.
    pub page: u32,
    /// The number of its line pointer there.
    pub line: u16,
}

impl RowId {
    /// Bytes of a stored row.
    pub(crate) const BYTES: usize = 6;

    /// Returns the row as it is stored.
    pub(crate) fn to_bytes(self) -> [u8; RowId::BYTES] {
        let mut bytes = [0; RowId::BYTES];
        write_fixed(&mut bytes[..], &self);
        bytes
    }

    /// Returns a row that was stored as these bytes.
    pub(crate) fn from_bytes(bytes: [u8; RowId::BYTES]) -> RowId {
        read_fixed(&mut &bytes[..]).expect("all bytes of a row are there")
    }
}

/// A set of rows that are added in the order of their pages, in a limited memory.
///
/// Rows in neighbouring lines of a page share an entry, which has a bit for each.
#[derive(Debug)]
pub struct RowSet {
    entries: List<LineBits>,
    most_bytes: usize,
}

/// Which of 64 neighbouring lines of a page are in a set of rows.
#[derive(Debug)]
struct LineBits {
    page: u32,
    /// The first of the lines, a multiple of 64.
    first_line: u16,
    /// Bit i is set if line `first_line + i` is in the set.
    bits: u64,
}

impl RowSet {
    /// Returns an empty set that will take `most_bytes` of memory at most.
    pub fn new(most_bytes: usize) -> RowSet {
        RowSet { entries: List::new(), most_bytes }
    }

    /// Returns the bytes of memory that the set takes now.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.entries[..])
    }

    /// Adds a row of the table to the set. Rows must be added in the order of their pages. If the
    /// set would then take more memory than it may, the row is left out without notice: callers use
    /// the set only where a missing row does no harm.
    pub fn add(&mut self, row: RowId) {
        const LINES_PER_ENTRY: u16 = u64::BITS as u16;
        let first_line = row.line / LINES_PER_ENTRY * LINES_PER_ENTRY;
        let bit = 1 << (row.line - first_line);

        // The row probably is in the same lines as the one before it.
        if let Some(last) = self.entries.last_mut()
            && last.page == row.page
            && last.first_line == first_line
        {
            last.bits |= bit;
            return;
        }
        if self.bytes() + size_of::<LineBits>() <= self.most_bytes {
            let entry = LineBits { page: row.page, first_line, bits: bit };
            self.entries.push(entry);
        }
    }

    /// Returns all rows of the set, in the order of their pages. Rows of one page come in any
    /// order.
    pub fn iter(&self) -> impl Iterator<Item = RowId> {
        self.entries.iter().flat_map(LineBits::rows)
    }
}

impl LineBits {
    fn rows(&self) -> impl Iterator<Item = RowId> {
        let lines = (0..u64::BITS as u16).filter(|line| self.bits >> line & 1 == 1);
        lines.map(|line| RowId { page: self.page, line: self.first_line + line })
    }
}

#[cfg(test)]
mod tests;
