//! The keys of many rows, in memory that depends on how many of them are distinct.

use super::columns::RangesColumn;
use crate::element::with_value;
use crate::pg::call::{Element, Result};
use pg_bloom_core::conditions::text::Windows;
use pg_bloom_core::memory;

/// Hashes that are gathered before those are looked for that are there several times.
const FEW: usize = 1 << 16;

pub struct GatheredKeys<'c> {
    column: &'c RangesColumn,
    /// Those of texts, and those of others.
    windows: Windows,
    hashes: Vec<u64>,
    /// How many hashes were left when those were removed that were there several times.
    distinct: usize,
}

impl<'c> GatheredKeys<'c> {
    pub fn new(column: &'c RangesColumn) -> GatheredKeys<'c> {
        GatheredKeys { column, windows: Windows::default(), hashes: Vec::new(), distinct: 0 }
    }

    /// Adds those of a row. Returns how many it has. Errors: those of hashing.
    ///
    /// # Safety
    /// The value must be of the type of the index's column.
    pub unsafe fn add(&mut self, value: Element) -> Result<usize> {
        if let RangesColumn::Text(texts) = self.column {
            // SAFETY: a text is of variable length.
            return Ok(unsafe { with_value(value, |text| self.windows.add(text, texts.encoding)) });
        }
        let hashes = &mut self.hashes;
        let before = hashes.len();
        // SAFETY: promised by the caller.
        unsafe { self.column.each_key(value, |hash| memory::push(hashes, hash))? };
        let count = hashes.len() - before;
        if hashes.len() > FEW.max(2 * self.distinct) {
            self.keep_distinct();
        }
        Ok(count)
    }

    /// Whether each row has exactly one key.
    pub fn is_of_elements(&self) -> bool {
        matches!(self.column, RangesColumn::Element(_))
    }

    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty() && self.windows.is_empty()
    }

    /// Their hashes; those of elements may repeat. After them there are none.
    pub fn take(&mut self) -> Vec<u64> {
        match self.column {
            RangesColumn::Text(_) => return self.windows.take(),
            RangesColumn::Element(_) => {}
            _ => self.keep_distinct(),
        }
        self.distinct = 0;
        std::mem::take(&mut self.hashes)
    }

    fn keep_distinct(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.distinct = self.hashes.len();
    }
}
