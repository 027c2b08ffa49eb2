//! Index scans as PostgreSQL asks for them.

use crate::pg::call::SqlValue;
use crate::pg::memory;
use crate::pg::storage::relation::PAGE_BYTES;
use crate::pg::value::array;
use crate::pg::version;
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory::List;
use pgrx::pg_sys;
use std::marker::PhantomData;
use std::mem::offset_of;

/// A scan key, PostgreSQL's `ScanKey`: a value, or an array of values, with which a query compares
/// the index's column.
pub struct Key<'k> {
    /// The number of the operator in its operator family.
    pub strategy: i16,
    /// The type of the value, or of the array's elements; invalid if it is the one that the
    /// operator class is declared for.
    pub asked_type: pg_sys::Oid,
    pub collation: pg_sys::Oid,
    pub(in crate::pg) is_array: bool,
    /// The value or the array; `None` is NULL.
    pub(in crate::pg) value: Option<pg_sys::Datum>,
    pub(in crate::pg) lifetime: PhantomData<&'k ()>,
}

impl Key<'_> {
    /// Returns the values with which the column is compared, one or the elements of the array, in
    /// the current memory context. NULLs are left out, since nothing is equal to them.
    pub fn sought(&self) -> List<SqlValue> {
        match self.value {
            None => List::new(),
            // SAFETY: PostgreSQL sets the flag only for keys with an array.
            Some(array) if self.is_array => unsafe { array::elements_of(array) },
            Some(datum) => List::from([SqlValue { datum }]),
        }
    }
}

/// Returns the scan keys of an index scan, in PostgreSQL's order: each is a value, or an array of
/// values, with which the query compares the index's column. A row must match all of them.
///
/// # Safety
/// The scan must have begun, and its keys must exist for `'k`.
pub unsafe fn keys<'k>(scan: pg_sys::IndexScanDesc) -> List<Key<'k>> {
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
    // SAFETY: a scan has an array of `numberOfKeys` keys.
    unsafe {
        (0..(*scan).numberOfKeys as usize)
            .map(|i| key(&*(*scan).keyData.add(i)))
            .collect()
    }
}

/// Returns whether a page of a table can have a line pointer with this number, from 1 on.
/// PostgreSQL itself doesn't check numbers, and uses them as places in arrays.
pub fn is_line(line: u16) -> bool {
    const PAGE_HEADER: usize = offset_of!(pg_sys::PageHeaderData, pd_linp);
    /// The bytes of a row without columns: what every row's header has, aligned.
    const SMALLEST_ROW: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_bits)
        .next_multiple_of(pg_sys::MAXIMUM_ALIGNOF as usize);
    const LINE_POINTER: usize = size_of::<pg_sys::ItemIdData>();
    let most_lines = (PAGE_BYTES - PAGE_HEADER) / (SMALLEST_ROW + LINE_POINTER);
    line > 0 && usize::from(line) <= most_lines
}

/// Returns PostgreSQL's struct for the place of a row in a table; `None` for a place where no row
/// can be.
pub(super) fn place(RowId { page, line }: RowId) -> Option<pg_sys::ItemPointerData> {
    let ip_blkid = pg_sys::BlockIdData { bi_hi: (page >> 16) as u16, bi_lo: page as u16 };
    (is_line(line) && page != pg_sys::InvalidBlockNumber)
        .then_some(pg_sys::ItemPointerData { ip_blkid, ip_posid: line })
}

/// The rows that are reported for a whole page, since nobody knows how many will match.
/// PostgreSQL's BRIN reports this number, too.
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
    /// Lines of these pages: rows whose values the scan hashed, and a few that are NULL or gone.
    pub rows_hashed: u64,
    /// Rows that were given to PostgreSQL one by one.
    pub rows_given: u64,
    /// Pages of the table that were given to PostgreSQL with all their rows.
    pub pages_given: u64,
}

impl ScanCounts {
    /// Adds the counts of another scan, or of one search, to these.
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

/// The bitmap of rows and pages that one search of an index fills, and PostgreSQL then reads from
/// the table, with counts of what the search did.
pub struct RowBatch {
    bitmap: *mut pg_sys::TIDBitmap,
    /// How many rows were added; a page counts as some.
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
    /// Wraps a bitmap of PostgreSQL.
    ///
    /// # Safety
    /// The bitmap must be one that is being filled, and exist as long as the result.
    pub unsafe fn new(bitmap: *mut pg_sys::TIDBitmap) -> RowBatch {
        let counts = ScanCounts { searches: 1, ..ScanCounts::default() };
        RowBatch { bitmap, added: 0, counts, range_being_read: None }
    }

    /// Adds a row of the table to the bitmap that PostgreSQL reads, and returns true. Returns false
    /// for a place where no row can be: nothing is added then. If `must_compare` is true,
    /// PostgreSQL compares the row with the query's condition again.
    pub fn add(&mut self, row: RowId, must_compare: bool) -> bool {
        let Some(mut place) = place(row) else {
            return false;
        };
        // SAFETY: the bitmap is valid, as the caller of `new` has promised, and one place is
        // passed.
        unsafe { pg_sys::tbm_add_tuples(self.bitmap, &mut place, 1, must_compare) };
        self.added += 1;
        self.counts.rows_given += 1;
        true
    }

    /// Adds the row at line `root` of a page, which PostgreSQL compares with the query's condition
    /// again; without a line, or for one that no page has, all rows of the page.
    pub fn add_again(&mut self, page: u32, root: Option<u16>) {
        let must_compare = true;
        let is_added = root.is_some_and(|line| self.add(RowId { page, line }, must_compare));
        if !is_added {
            self.add_page(page);
        }
    }

    /// Adds all rows of a page of the table to the bitmap that PostgreSQL reads, and compares with
    /// the query's condition again. They count as ten rows. Panics for the page number 2^32 - 1,
    /// which no page has.
    pub fn add_page(&mut self, page: u32) {
        assert_ne!(
            page,
            pg_sys::InvalidBlockNumber,
            "a page: for this number PostgreSQL may add one"
        );
        // SAFETY: the bitmap is valid, as the caller of `new` has promised.
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
