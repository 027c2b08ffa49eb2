//! Reading ahead: when a sequential scan probes one filter for a column of its rows, the memory
//! that the next probes read is fetched before they read it.
//!
//! A filter of many megabytes doesn't fit into the processor's caches, so that a probe waits for
//! memory, for about as long as everything else takes that is done for the row. The processor
//! fetches from several places at a time if it knows them early enough. So the first probe of up to
//! 32 rows hashes the elements of all of them, and prefetches what their probes will read:
//!
//! ```text
//! row    7           8           9      …   38          39
//!        hash 7 to 38                                   hash 39 to 70
//!        prefetch 32 places                             prefetch 32 places
//!        probe 7     probe 8     probe 9    probe 38    probe 39            their memory has arrived
//! ```
//!
//! Except by the time that it takes, nobody can tell a query that reads ahead from one that
//! doesn't. The plan, the scan, its conditions, their order and the filter are PostgreSQL's, and so
//! are all errors; no step of PostgreSQL's is done earlier or later. This room
//!
//! - looks at rows only on the page that the scan is at, and only at those that the scan will return
//!   from there, so it reads no page and decides about no row ([`RowsOfScan`] has the details);
//! - looks at columns, not at other expressions, and only at values that are hashed as they are on
//!   the page, without calling PostgreSQL, so that nothing can fail or wait;
//! - gets the filter that PostgreSQL has passed for the current row, and so had evaluated already;
//! - gives no answers. It only gives a probe the hash of its element, and that only if the element
//!   is where the hash was computed from.
//!
//! Measured on an AMD EPYC with 8 MB of cache and a filter of 12 MB, a column of URLs of 45 bytes
//! takes 0.61 to 0.66 times as long to probe as without reading ahead if all are in the set, and
//! 0.58 to 0.63 times if none is. Fetching without using the hashes again, it would be 0.68.

use crate::element::{Form, Hasher};
use crate::filter_type::Whole;
use crate::heap::{RowsOfScan, ScanPosition};
use crate::pg::call::error::debug;
use crate::pg::call::scan::{self, ScannedColumn};
use crate::pg::call::{Call, SqlValue};
use crate::settings;
use pgrx::pg_sys::{Datum, InvalidBlockNumber};

/// Rows that are hashed together, at most. A processor fetches from 10 to 50 places at a time.
const MOST_ROWS: usize = 32;

/// The size from which on a filter is read ahead. Smaller ones are in the cache that a core has for
/// itself.
const LEAST_BYTES: usize = 1 << 20;

/// Lets call sites find the scans that evaluate them, in queries that start from now on. Panics the
/// second time.
pub fn define() {
    scan::define();
}

/// What a call site remembers that probes a filter for a column of a sequential scan's rows.
pub struct ReadAhead {
    rows: RowsOfScan,
    /// The rows whose elements were hashed last.
    group: Group,
    /// How many rows were to be hashed for that group; 0 before the first one.
    group_size: usize,
    /// Whether the client was told that the call site reads ahead.
    is_reported: bool,
}

/// Rows that follow each other on a page, whose elements were hashed together.
struct Group {
    /// The first row.
    first: ScanPosition,
    /// How many rows it has, those included whose element could not be hashed.
    len: usize,
    /// How many of them were probed so far. Conditions before the probe may reject the others.
    probes: usize,
    /// In which form the elements were hashed.
    form: Form,
    /// By row. `None` where a row has no element, or none that can be hashed where it is.
    hashes: [Option<KnownHash>; MOST_ROWS],
}

/// The hash of an element that is on a page.
#[derive(Clone, Copy)]
struct KnownHash {
    /// The element itself, or where it is.
    element: Datum,
    hash: u64,
}

impl ReadAhead {
    /// Prepares a call site, the place in a query where a filter is probed for each row, to read
    /// ahead: to hash the elements of the next rows together, and to prefetch the memory that their
    /// probes will read. Argument `element_argument` of the call is the element.
    ///
    /// `None` if the setting `pg_bloom.read_ahead` is off, or if the next rows aren't known, since
    /// the argument isn't a column of a sequential scan that has the call as a condition.
    ///
    /// # Safety
    /// The result must only be used during calls of this call site, and be kept no longer than what
    /// the call site remembers.
    pub unsafe fn for_call_site(call: &Call, element_argument: usize) -> Option<ReadAhead> {
        if !settings::READ_AHEAD.get() {
            return None;
        }
        // SAFETY: the caller uses the result only in calls of this call site, and keeps it no
        // longer than the data of the site.
        let column = unsafe { ScannedColumn::of_argument(call, element_argument) }?;
        Some(ReadAhead {
            rows: RowsOfScan::new(column)?,
            group: Group::without_rows(),
            group_size: 0,
            is_reported: false,
        })
    }

    /// Returns the hash of `element`, for which the current row of the scan probes `filter`, if it
    /// was computed ahead; otherwise `None`, and the caller computes it. If the scan has come to a
    /// row behind the *group*, the rows that were hashed together last, the next group is hashed
    /// first.
    ///
    /// # Safety
    /// The element must be the argument of this call, and the hasher be made for its type.
    #[inline(always)]
    pub unsafe fn hash(
        &mut self,
        element: SqlValue,
        hasher: &Hasher,
        filter: &Whole<'_>,
    ) -> Option<u64> {
        let position = self.rows.position();
        if !self.group.contains(position) {
            // SAFETY: the caller promises a hasher for the type of the element.
            unsafe { self.read_group(position, hasher, filter) };
        }
        self.group.probes += 1;
        self.group.hash(position, element, hasher)
    }

    /// Makes a group of `first`, the row that the scan is at, and the rows after it on the page:
    /// hashes their elements, and prefetches the memory that their probes in `filter` will read. If
    /// the filter is small, or the elements can't be hashed where they are, a group without hashes
    /// lasts until the next page.
    ///
    /// # Safety
    /// The hasher must be made for the column's type.
    #[inline(never)]
    unsafe fn read_group(&mut self, first: ScanPosition, hasher: &Hasher, filter: &Whole<'_>) {
        if !hasher.is_in_place() || filter.probed_bytes() < LEAST_BYTES {
            // On the next page, the filter may be another one.
            self.group = Group::rest_of_page_without_hashes(first);
            return;
        }
        if !self.is_reported {
            debug("reading ahead in a sequential scan that probes a bloom filter");
            self.is_reported = true;
        }

        self.group_size = self.next_group_size();
        let mut hashes = [None; MOST_ROWS];
        let rows_read = self.rows.visit_next(self.group_size, |row, element| {
            // SAFETY: the caller promises a hasher for the type of the element.
            if let Some(hash) = unsafe { hasher.hash_in_place(element) } {
                hashes[row] = Some(KnownHash { element: element.datum, hash });
            }
        });

        // Prefetches come together, not each after its hash: the processor looks up several
        // addresses at a time only if they follow each other closely.
        for known in hashes.iter().flatten() {
            filter.prefetch(known.hash);
        }

        self.group = Group {
            first,
            len: rows_read,
            probes: 0,
            form: hasher.form(),
            hashes,
        };
    }

    /// Returns how many rows to hash together next, from 1 to 32: twice as many as last time if
    /// more than half of the last group's rows were probed, otherwise half as many. Thus little is
    /// hashed for nothing if a query wants only few rows, or if conditions before the probe reject
    /// most of them.
    fn next_group_size(&self) -> usize {
        let are_most_probed = 2 * self.group.probes > self.group.len;
        let size = if are_most_probed { 2 * self.group_size } else { self.group_size / 2 };
        size.clamp(1, MOST_ROWS)
    }
}

impl Group {
    /// Returns a group that contains no row, so that the first probe begins another one.
    fn without_rows() -> Group {
        let nowhere = ScanPosition { page: InvalidBlockNumber, row: 0 };
        Group {
            first: nowhere,
            len: 0,
            probes: 0,
            form: Form::General,
            hashes: [None; MOST_ROWS],
        }
    }

    /// Returns a group of all rows from `first` to the end of its page, of which no hash is known.
    fn rest_of_page_without_hashes(first: ScanPosition) -> Group {
        Group { first, len: usize::MAX, ..Group::without_rows() }
    }

    /// Returns whether the row at this position of the scan is in the group.
    #[inline(always)]
    fn contains(&self, position: ScanPosition) -> bool {
        let is_on_page = position.page == self.first.page;
        let is_after_first = position.row >= self.first.row;
        is_on_page && is_after_first && position.row - self.first.row < self.len
    }

    /// Returns the hash of an element of the row at this position of the scan, if it is known.
    ///
    /// The element must be the very datum that was hashed. A number is then the same number. Of
    /// other types a datum is an address on the page, and the row at a position of a scan is always
    /// the same one, since the scan has one snapshot: what the snapshot sees doesn't change, even
    /// if the scan was begun again in the meantime and the page read again. The hasher must make
    /// the same form of hash, since the filter may be another one than before.
    #[inline(always)]
    fn hash(&self, position: ScanPosition, element: SqlValue, hasher: &Hasher) -> Option<u64> {
        let row = position.row.wrapping_sub(self.first.row);
        let known = (*self.hashes.get(row)?)?;
        let is_same = known.element == element.datum && self.form == hasher.form();
        is_same.then_some(known.hash)
    }
}
