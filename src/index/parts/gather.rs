//! The distinct parts of many rows, in memory that depends on how many are distinct.

use super::class::Class;
use super::column::PartsColumn;
use crate::pg::call::error::Result;
use crate::pg::value::varlena::Value;
use pg_bloom_core::memory;
use pg_bloom_core::parts::text::Windows;
use pgrx::pg_sys::Datum;

/// Hashes that are gathered before those that are there several times are looked for.
const FEW: usize = 1 << 16;

/// Parts of rows.
pub struct Gathered {
    /// Those of texts.
    windows: Option<Windows>,
    /// Those of others.
    hashes: Vec<u64>,
    /// How many hashes were left when those were removed that were there several times.
    distinct: usize,
}

impl Gathered {
    /// None yet.
    pub fn new(column: &PartsColumn) -> Gathered {
        let windows = (column.class() == Class::Text).then(Windows::new);
        Gathered { windows, hashes: Vec::new(), distinct: 0 }
    }

    /// Adds the parts of a value. Returns how many it has.
    ///
    /// # Errors
    /// Those of [`PartsColumn::each_part`].
    ///
    /// # Safety
    /// The value must be of the column's type.
    pub unsafe fn add(&mut self, column: &PartsColumn, value: Datum) -> Result<usize> {
        if let Some(windows) = &mut self.windows {
            // SAFETY: a text is of variable length.
            let text = unsafe { Value::detoast(value) };
            let count = windows.add(&text, column.encoding());
            text.free();
            return Ok(count);
        }
        let hashes = &mut self.hashes;
        let before = hashes.len();
        // SAFETY: promised by the caller.
        unsafe { column.each_part(value, |hash| memory::push(hashes, hash))? };
        let count = self.hashes.len() - before;
        if self.hashes.len() > FEW.max(2 * self.distinct) {
            self.keep_distinct();
        }
        Ok(count)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty() && self.windows.as_ref().is_none_or(Windows::is_empty)
    }

    /// The hashes, after which there are none.
    pub fn take(&mut self) -> Vec<u64> {
        self.keep_distinct();
        self.distinct = 0;
        match &mut self.windows {
            Some(windows) => windows.take(),
            None => std::mem::take(&mut self.hashes),
        }
    }

    fn keep_distinct(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.distinct = self.hashes.len();
    }
}
