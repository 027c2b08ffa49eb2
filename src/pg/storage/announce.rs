//! Announcing pages: the operating system reads them from disk while other pages are in use.
//!
//! A random page takes a disk 50 to 200 µs, and eight neighbouring pages hardly longer. A reader
//! that asks for one after the other waits for each, and lets the operating system guess what comes
//! next: of a range of 64 kB that is read once it may fetch 500.
//!
//! A page in memory needs no announcement, and finding that out takes a lookup in the table of
//! buffers. So of neighbouring pages only the first one is looked up. The others are announced if
//! it isn't in memory, or as soon as a later one wasn't:
//!
//! ```text
//! page             40       41    42    43 …    all in memory: one lookup
//!                  lookup   read  read  read
//! page             40       41    42    43 …    none in memory: all are on their way before the first
//!                  announced together, read     one is read
//! page             40       41    42    43 …    some in memory: 42 wasn't, when it was read
//!                  lookup   read  read  announced together, read
//! ```
//!
//! `effective_io_concurrency` of the tablespace turns announcements off, if it is 0. With
//! `debug_io_direct` PostgreSQL itself announces nothing.

use super::relation::{MAIN_FORK, Relation};
use pgrx::pg_sys;
use std::ffi::CString;
use std::ops::Range;

/// Pages that are announced at least, where pages far apart are known before the first one is read,
/// and `effective_io_concurrency` isn't 0. Before version 18 its default is 1, which is meant for a
/// scan that goes on while one page is being read. A lookup waits for each of its pages.
pub const LEAST_PAGES_ANNOUNCED: usize = 16;

/// Returns `effective_io_concurrency` of a relation's tablespace: 0 if nothing must be announced.
pub fn io_concurrency(relation: Relation) -> u32 {
    // SAFETY: reads the options of the tablespace, or the setting.
    unsafe { pg_sys::get_tablespace_io_concurrency(relation.class().reltablespace) }
        .max(0)
        .cast_unsigned()
}

/// Returns the value that `effective_io_concurrency` needs for a scan of PostgreSQL's own to
/// announce [`LEAST_PAGES_ANNOUNCED`] pages; `None` if it is at least that, or 0, so that nothing
/// must be announced. A tablespace whose options say something else keeps that.
pub fn raised_io_concurrency() -> Option<CString> {
    // SAFETY: reads the setting.
    let concurrency = unsafe { pg_sys::effective_io_concurrency };
    let is_too_low = (1..LEAST_PAGES_ANNOUNCED as i32).contains(&concurrency);
    is_too_low.then(|| CString::new(LEAST_PAGES_ANNOUNCED.to_string()).expect("digits"))
}

/// Announces a page, which must be there. Returns whether it has to be read from disk.
pub fn announce(relation: Relation, page: u32) -> bool {
    // SAFETY: the relation is open.
    unsafe { pg_sys::PrefetchBuffer(relation.raw(), MAIN_FORK, page).initiated_io }
}

/// Announces neighbouring pages of a relation: asks the operating system to read them from disk
/// while other pages are in use. From PostgreSQL 17 on that is one request. The pages must exist.
fn announce_all(relation: Relation, pages: Range<u32>) {
    #[cfg(feature = "before_pg17")]
    for page in pages {
        announce(relation, page);
    }
    #[cfg(not(feature = "before_pg17"))]
    if !pages.is_empty() {
        let count = pages.len().try_into().unwrap_or(i32::MAX);
        // SAFETY: the relation is open.
        unsafe { pg_sys::smgrprefetch(relation.storage(), MAIN_FORK, pages.start, count) };
    }
}

/// Returns how many pages this session has read from disk so far, of whatever relations.
pub fn pages_read_from_disk() -> i64 {
    // SAFETY: a variable of this process, which has one thread.
    unsafe { pg_sys::pgBufferUsage.shared_blks_read + pg_sys::pgBufferUsage.local_blks_read }
}

/// Neighbouring pages of a relation, in their order, for a reader that reads each one before it
/// asks for the next.
pub struct NeighbouringPages<'r> {
    relation: Relation<'r>,
    /// The pages that were not returned yet.
    rest: Range<u32>,
    /// Whether pages that have to be read from disk are still to be announced.
    is_unannounced: bool,
    /// [`pages_read_from_disk`] when a page was returned last.
    read_before: Option<i64>,
}

impl<'r> NeighbouringPages<'r> {
    /// Returns pages that a relation has, and that it keeps while they are read. Nothing is
    /// announced yet.
    pub fn new(relation: Relation<'r>, pages: Range<u32>, io_concurrency: u32) -> Self {
        NeighbouringPages {
            relation,
            rest: pages,
            is_unannounced: io_concurrency > 0,
            read_before: None,
        }
    }

    /// Announces the pages that were not returned yet, unless the first of them is in memory.
    pub fn announce(&mut self) {
        let has_pages = !self.rest.is_empty();
        if self.is_unannounced && has_pages && announce(self.relation, self.rest.start) {
            announce_all(self.relation, self.rest.start + 1..self.rest.end);
            self.is_unannounced = false;
        }
    }
}

impl Iterator for NeighbouringPages<'_> {
    type Item = u32;

    /// Returns the next page, for the caller to read before the one after it is asked for. If the
    /// page before had to be read from disk, those still to come are announced first: the operating
    /// system is asked to read them while others are in use.
    fn next(&mut self) -> Option<u32> {
        if self.is_unannounced {
            let read_so_far = pages_read_from_disk();
            if self.read_before.is_some_and(|before| read_so_far > before) {
                self.announce();
            }
            self.read_before = Some(read_so_far);
        }
        self.rest.next()
    }
}
