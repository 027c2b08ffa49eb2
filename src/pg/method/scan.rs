//! Index scans as PostgreSQL asks for them.

use crate::pg::call::Element;
use crate::pg::memory;
use crate::pg::storage::relation::PAGE_BYTES;
use crate::pg::value::array;
use crate::pg::version;
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys;
use std::marker::PhantomData;

pub struct Key<'k> {
    pub strategy: i16,
    /// The type of what is looked for, or of the array's elements; invalid for that of the operator
    /// class.
    pub asked_type: pg_sys::Oid,
    pub collation: pg_sys::Oid,
    pub(in crate::pg) is_array: bool,
    /// The value or the array; `None` is NULL.
    pub(in crate::pg) value: Option<pg_sys::Datum>,
    pub(in crate::pg) lifetime: PhantomData<&'k ()>,
}

impl Key<'_> {
    /// The values one of which is looked for, in the current memory: NULL isn't one, since nothing
    /// is equal to it.
    pub fn sought(&self) -> Vec<Element> {
        match self.value {
            None => Vec::new(),
            // SAFETY: the argument of such a key is an array.
            Some(array) if self.is_array => unsafe { array::elements_of(array) },
            Some(datum) => vec![Element { datum }],
        }
    }
}

/// # Safety
/// The scan must be one that is under way, and its keys be there for `'k`.
pub unsafe fn keys<'k>(scan: pg_sys::IndexScanDesc) -> Vec<Key<'k>> {
    let key = |key: &pg_sys::ScanKeyData| {
        let has = |flag| key.sk_flags.cast_unsigned() & flag != 0;
        Key {
            strategy: key.sk_strategy.cast_signed(),
            asked_type: key.sk_subtype,
            collation: key.sk_collation,
            is_array: has(pg_sys::SK_SEARCHARRAY),
            value: (!has(pg_sys::SK_ISNULL)).then_some(key.sk_argument),
            lifetime: PhantomData,
        }
    };
    // SAFETY: a scan has as many keys as it says.
    unsafe {
        (0..(*scan).numberOfKeys as usize)
            .map(|i| key(&*(*scan).keyData.add(i)))
            .collect()
    }
}

/// Whether a page of a table can have such a line: PostgreSQL has arrays of so many, and doesn't
/// check what is given.
pub fn is_line(line: u16) -> bool {
    /// Bytes of PostgreSQL's header of a page, and of the smallest row with its line pointer.
    const HEADER: usize = 24;
    const SMALLEST: usize = 28;
    line > 0 && usize::from(line) <= (PAGE_BYTES - HEADER) / SMALLEST
}

/// The place of a row in a table; `None` where no row can be.
pub(super) fn place(RowId { page, line }: RowId) -> Option<pg_sys::ItemPointerData> {
    let ip_blkid = pg_sys::BlockIdData { bi_hi: (page >> 16) as u16, bi_lo: page as u16 };
    (is_line(line) && page != pg_sys::InvalidBlockNumber)
        .then_some(pg_sys::ItemPointerData { ip_blkid, ip_posid: line })
}

/// What is reported for a page, of which nobody knows how many rows will match. BRIN says the same.
const ROWS_PER_PAGE: i64 = 10;

/// What scans of an index did.
#[derive(Clone, Copy, Default)]
pub struct ScanCounts {
    pub searches: u64,
    /// Searches that could tell nothing about any row, and so gave all pages of the table.
    pub unrestricted_searches: u64,
    /// Ranges of the table's pages that may have a row, in all other searches.
    pub ranges: u64,
    /// Ranges whose pages the scan read itself, because PostgreSQL would take longer.
    pub ranges_read: u64,
    /// Ranges among them in which the scan found no row to give.
    pub ranges_read_for_nothing: u64,
    pub index_pages: u64,
    /// Pages of the table that the scan read itself.
    pub table_pages: u64,
    /// Rows on these pages whose values the scan hashed.
    pub rows_hashed: u64,
    /// Rows that were given to PostgreSQL one by one.
    pub rows_given: u64,
    /// Pages of the table that were given to PostgreSQL with all their rows.
    pub pages_given: u64,
}

impl ScanCounts {
    fn add(&mut self, other: &ScanCounts) {
        self.searches += other.searches;
        self.unrestricted_searches += other.unrestricted_searches;
        self.ranges += other.ranges;
        self.ranges_read += other.ranges_read;
        self.ranges_read_for_nothing += other.ranges_read_for_nothing;
        self.index_pages += other.index_pages;
        self.table_pages += other.table_pages;
        self.rows_hashed += other.rows_hashed;
        self.rows_given += other.rows_given;
        self.pages_given += other.pages_given;
    }
}

/// Prepares a scan that has just been begun for [`count_search`].
///
/// # Safety
/// The scan must be of the extension's access method.
pub unsafe fn begin_counts(scan: pg_sys::IndexScanDesc) {
    if version::EXPLAINS_SCANS {
        // SAFETY: the scan has a place for what its access method remembers.
        unsafe { (*scan).opaque = memory::copied(&ScanCounts::default()).cast() };
    }
}

/// Adds what one search of a scan did to what EXPLAIN shows, from PostgreSQL 18 on.
///
/// # Safety
/// The scan must be one that [`begin_counts`] has prepared.
pub unsafe fn count_search(scan: pg_sys::IndexScanDesc, search: &ScanCounts) {
    // SAFETY: promised by the caller; null before version 18.
    if let Some(counts) = unsafe { (*scan).opaque.cast::<ScanCounts>().as_mut() } {
        counts.add(search);
    }
    // SAFETY: the scan was begun.
    unsafe { version::count_search(scan) };
}

/// Frees what [`begin_counts`] has allocated.
///
/// # Safety
/// The scan must be one that [`begin_counts`] has prepared, and that ends now.
pub unsafe fn end_counts(scan: pg_sys::IndexScanDesc) {
    // SAFETY: promised by the caller.
    unsafe {
        let counts = std::mem::replace(&mut (*scan).opaque, std::ptr::null_mut());
        if !counts.is_null() {
            pg_sys::pfree(counts);
        }
    }
}

/// The rows that one search of an index gives to PostgreSQL, and what it did for them.
pub struct RowBatch {
    bitmap: *mut pg_sys::TIDBitmap,
    /// The number of rows as far as it is known.
    pub added: i64,
    pub counts: ScanCounts,
    range_being_read: Option<RangeBeingRead>,
}

/// The range of the table's pages that a scan is reading.
struct RangeBeingRead {
    range: u32,
    /// `RowBatch::added` before its first page was read.
    added_before: i64,
}

impl RowBatch {
    /// # Safety
    /// The bitmap must be one that is being filled, and outlive this.
    pub unsafe fn new(bitmap: *mut pg_sys::TIDBitmap) -> RowBatch {
        let counts = ScanCounts { searches: 1, ..ScanCounts::default() };
        RowBatch { bitmap, added: 0, counts, range_being_read: None }
    }

    /// Adds a row, which will be compared if `again`. False for a place where no row can be.
    pub fn add(&mut self, row: RowId, again: bool) -> bool {
        let Some(mut place) = place(row) else {
            return false;
        };
        // SAFETY: as `new` was promised; one row is given.
        unsafe { pg_sys::tbm_add_tuples(self.bitmap, &mut place, 1, again) };
        self.added += 1;
        self.counts.rows_given += 1;
        true
    }

    /// Adds a row that will be compared; all rows of its page if none leads to it.
    pub fn add_again(&mut self, page: u32, root: Option<u16>) {
        if !root.is_some_and(|line| self.add(RowId { page, line }, true)) {
            self.add_page(page);
        }
    }

    /// Adds all rows of a page, which will be compared.
    pub fn add_page(&mut self, page: u32) {
        assert_ne!(
            page,
            pg_sys::InvalidBlockNumber,
            "a page: for this number PostgreSQL may add one"
        );
        // SAFETY: as `new` was promised.
        unsafe { pg_sys::tbm_add_page(self.bitmap, page) };
        self.added += ROWS_PER_PAGE;
        self.counts.pages_given += 1;
    }

    /// Counts a page of the table that the scan reads itself. The pages of a range must follow each
    /// other.
    pub fn count_table_page(&mut self, range: u32) {
        self.counts.table_pages += 1;
        if self.range_being_read.as_ref().is_none_or(|read| read.range != range) {
            self.end_range();
            self.range_being_read = Some(RangeBeingRead { range, added_before: self.added });
        }
    }

    /// Counts the range whose pages were read last.
    fn end_range(&mut self) {
        if let Some(RangeBeingRead { added_before, .. }) = self.range_being_read.take() {
            self.counts.ranges_read += 1;
            self.counts.ranges_read_for_nothing += u64::from(self.added == added_before);
        }
    }

    /// Returns what the search did, which is at its end.
    pub fn finish(mut self) -> ScanCounts {
        self.end_range();
        self.counts
    }
}
