//! The distinct parts of many rows, in memory that depends on how many are distinct.

use super::class::Class;
use super::column::PartsColumn;
use crate::index::keys::Gather;
use crate::pg::call::error::Result;
use crate::pg::value::varlena::Value;
use pg_bloom_core::memory;
use pg_bloom_core::parts::text::Windows;
use pgrx::pg_sys::Datum;

/// Hashes that are gathered before those that are there several times are looked for.
const FEW: usize = 1 << 16;

/// Parts of rows.
pub struct Gathered<'c> {
    column: &'c PartsColumn,
    /// Those of texts.
    windows: Option<Windows>,
    /// Those of others.
    hashes: Vec<u64>,
    /// How many hashes were left when those were removed that were there several times.
    distinct: usize,
}

impl<'c> Gathered<'c> {
    /// None yet.
    pub fn new(column: &'c PartsColumn) -> Gathered<'c> {
        let windows = (column.class == Class::Text).then(Windows::default);
        Gathered { column, windows, hashes: Vec::new(), distinct: 0 }
    }

    fn keep_distinct(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.distinct = self.hashes.len();
    }
}

impl Gather for Gathered<'_> {
    unsafe fn add(&mut self, value: Datum) -> Result<usize> {
        if let Some(windows) = &mut self.windows {
            // SAFETY: a text is of variable length.
            let text = unsafe { Value::detoast(value) };
            let count = windows.add(&text, self.column.encoding);
            text.free();
            return Ok(count);
        }
        let hashes = &mut self.hashes;
        let before = hashes.len();
        // SAFETY: promised by the caller.
        unsafe { self.column.each_part(value, |hash| memory::push(hashes, hash))? };
        let count = self.hashes.len() - before;
        if self.hashes.len() > FEW.max(2 * self.distinct) {
            self.keep_distinct();
        }
        Ok(count)
    }

    fn is_empty(&self) -> bool {
        self.hashes.is_empty() && self.windows.as_ref().is_none_or(Windows::is_empty)
    }

    fn take(&mut self) -> Vec<u64> {
        self.keep_distinct();
        self.distinct = 0;
        match &mut self.windows {
            Some(windows) => windows.take(),
            None => std::mem::take(&mut self.hashes),
        }
    }
}
