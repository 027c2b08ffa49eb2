//! Keys that this session has added to a range of an index, or seen there: it need not look at their bits again.
//!
//! Of a line's hundred windows nine in ten are in the lines beside it. Bits are never cleared, and the WAL record that
//! set one was written before it was seen, so it precedes the commit of every row that relies on it. An index whose
//! file gets other contents gets another number: see [`crate::index::session`].

use pg_bloom_core::memory;
use std::cell::RefCell;

/// Keys that a session remembers, of all indexes: 192 kB. A range of log lines has some 6,000.
const REMEMBERED: usize = 1 << 13;

#[derive(Clone, Copy, Default, PartialEq)]
pub struct RecentKey {
    /// The number of the index.
    pub index: u64,
    pub range: u32,
    pub hash: u64,
}

/// Each key in the place that its hash says, in those of others; all zero where there is none.
#[derive(Default)]
pub struct RecentKeys(Vec<RecentKey>);

impl RecentKeys {
    pub fn has(&self, key: &RecentKey) -> bool {
        self.0.get(key.hash as usize % REMEMBERED) == Some(key)
    }

    /// Remembers a key whose bits are set.
    pub fn add(&mut self, key: RecentKey) {
        if self.0.is_empty() {
            self.0 = memory::zeroed(REMEMBERED);
        }
        self.0[key.hash as usize % REMEMBERED] = key;
    }
}

thread_local! {
    pub static RECENT: RefCell<RecentKeys> = const { RefCell::new(RecentKeys(Vec::new())) };
}
