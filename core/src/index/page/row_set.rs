//! Rows of a table by their location.

use crate::memory;

/// A row: what PostgreSQL calls its `ctid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    pub page: u32,
    /// The line pointer there.
    pub line: u16,
}

impl RowId {
    pub(crate) const BYTES: usize = 6;

    pub(crate) fn to_bytes(self) -> [u8; RowId::BYTES] {
        let ([a, b, c, d], [e, f]) = (self.page.to_le_bytes(), self.line.to_le_bytes());
        [a, b, c, d, e, f]
    }

    pub(crate) fn from_bytes([a, b, c, d, e, f]: [u8; RowId::BYTES]) -> RowId {
        RowId {
            page: u32::from_le_bytes([a, b, c, d]),
            line: u16::from_le_bytes([e, f]),
        }
    }
}

/// A set of rows that are added in the order of their pages, in a limited memory. Each is a bit,
/// mostly.
#[derive(Debug)]
pub struct RowSet {
    /// A page, which 64 of its lines, and a bit for each of these.
    words: Vec<(u32, u16, u64)>,
    most_bytes: usize,
}

impl RowSet {
    pub fn new(most_bytes: usize) -> RowSet {
        RowSet { words: Vec::new(), most_bytes }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }

    /// Adds a row, if there is memory for it.
    pub fn add(&mut self, RowId { page, line }: RowId) {
        let (lines, bit) = (line / 64, 1 << (line % 64));
        let is_full = self.bytes() + size_of::<(u32, u16, u64)>() > self.most_bytes;
        match self.words.last_mut() {
            Some((of, which, bits)) if (*of, *which) == (page, lines) => *bits |= bit,
            _ if is_full => {}
            _ => memory::push(&mut self.words, (page, lines, bit)),
        }
    }

    /// The rows, by pages.
    pub fn iter(&self) -> impl Iterator<Item = RowId> {
        self.words.iter().flat_map(|&(page, lines, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| RowId { page, line: lines * 64 + bit })
        })
    }
}

#[cfg(test)]
mod tests;
