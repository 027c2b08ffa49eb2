//! Keys that this session has added to a range of an index, or seen there: it need not look at their bits again.
//!
//! Of a line's hundred windows nine in ten are in the lines beside it. Bits are never cleared, and the WAL record that
//! set one was written before it was seen, so it precedes the commit of every row that relies on it. An index whose
//! file gets other contents gets another number: see [`crate::index::session`].

use pg_bloom_core::memory;
use std::cell::RefCell;

/// Keys that a session remembers, of all indexes: 192 kB. A range of log lines has some 6,000.
const REMEMBERED: usize = 1 << 13;

/// A key of a row in a range of an index.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Known {
    /// The number of the index.
    pub index: u64,
    /// The range.
    pub range: u32,
    /// The hash.
    pub hash: u64,
}

impl Known {
    fn place(&self) -> usize {
        self.hash as usize % REMEMBERED
    }
}

thread_local! {
    /// Each key in the place that its hash says; all zero where there is none.
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// Whether a key is remembered.
pub fn is_known(key: &Known) -> bool {
    KNOWN.with_borrow(|known| known.get(key.place()) == Some(key))
}

/// Remembers keys whose bits are set, in the places of others.
pub fn remember(keys: impl Iterator<Item = Known>) {
    KNOWN.with_borrow_mut(|known| {
        if known.is_empty() {
            *known = memory::zeroed(REMEMBERED);
        }
        keys.for_each(|key| known[key.place()] = key);
    });
}
