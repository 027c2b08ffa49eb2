//! Index scans as PostgreSQL asks for them.

use crate::pg::call::Element;
use crate::pg::storage::relation::PAGE_BYTES;
use crate::pg::value::array;
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

pub struct RowBatch {
    bitmap: *mut pg_sys::TIDBitmap,
    pub added: i64,
}

impl RowBatch {
    /// # Safety
    /// The bitmap must be one that is being filled, and outlive this.
    pub unsafe fn new(bitmap: *mut pg_sys::TIDBitmap) -> RowBatch {
        RowBatch { bitmap, added: 0 }
    }

    /// Adds a row, which will be compared if `again`. False for a place where no row can be.
    pub fn add(&mut self, row: RowId, again: bool) -> bool {
        let Some(mut place) = place(row) else {
            return false;
        };
        // SAFETY: as `new` was promised; one row is given.
        unsafe { pg_sys::tbm_add_tuples(self.bitmap, &mut place, 1, again) };
        self.added += 1;
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
    }
}
