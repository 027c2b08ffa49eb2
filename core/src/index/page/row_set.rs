//! Rows of a table by their location.

use crate::memory;

/// A row: what PostgreSQL calls its `ctid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// The page of the table.
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
        RowId { page: u32::from_le_bytes([a, b, c, d]), line: u16::from_le_bytes([e, f]) }
    }
}

/// A set of rows that are added in the order of their pages. Each is a bit.
///
/// ```text
/// pages   | page, first word | page, first word | …
/// words   | 64 lines | 64 lines | 64 lines | …
/// ```
#[derive(Debug, Default)]
pub struct RowSet {
    pages: Vec<(u32, u32)>,
    words: Vec<u64>,
}

impl RowSet {
    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.pages[..]) + size_of_val(&self.words[..])
    }

    /// Adds a row, unless the set would then take more than `most_bytes`.
    pub fn add(&mut self, row: RowId, most_bytes: usize) {
        let (word, bit) = (usize::from(row.line) / 64, row.line % 64);
        let known = self.pages.last().copied().filter(|(page, _)| *page == row.page);
        let first = known.map_or(self.words.len(), |(_, first)| first as usize);
        let missing = (first + word + 1).saturating_sub(self.words.len());
        if missing > 0 {
            if self.bytes() + (missing + 1) * size_of::<u64>() > most_bytes {
                return;
            }
            if known.is_none() {
                memory::push(&mut self.pages, (row.page, first as u32));
            }
            (0..missing).for_each(|_| memory::push(&mut self.words, 0));
        }
        self.words[first + word] |= 1 << bit;
    }

    /// The rows, by page and line.
    pub fn iter(&self) -> impl Iterator<Item = RowId> {
        let ends = self.pages.iter().skip(1).map(|&(_, first)| first as usize).chain([self.words.len()]);
        self.pages.iter().zip(ends).flat_map(|(&(page, first), end)| {
            let words = self.words[first as usize..end].iter().enumerate();
            words.flat_map(move |(i, word)| {
                let lines = (0..u64::BITS as usize).filter(move |bit| word >> bit & 1 == 1);
                lines.map(move |bit| RowId { page, line: (i * u64::BITS as usize + bit) as u16 })
            })
        })
    }
}

#[cfg(test)]
mod tests;
