//! Scans of a table for an index that is being built, which read one column of each row where it is.
//!
//! PostgreSQL's own scan decides for each row who sees it, follows chains of versions, copies the values of all columns
//! up to the indexed one, and calls the access method. An index whose entries are about pages needs none of that: any
//! version of a row belongs to its page, and one that nobody sees does no harm. So this scan gives all versions but
//! those that PostgreSQL's leaves out as dead to everybody, and looks at a row twice only where the bits in its header
//! don't say that it is there for all. An index on 6 million rows is built in 0.5 s instead of 0.8.
//!
//! Old versions that snapshots still see are given as well, which PostgreSQL's scan can't: it gives one version for
//! each chain, and if others had another value, older transactions must not use the index (`indcheckxmin`). They may
//! use this one. But an old version may have lost its value where that was out of line: VACUUM removes such values
//! earlier, since it need not wait for transactions of other databases. So these are left out as PostgreSQL's scan
//! does.

use super::buffer::{BulkRead, Pin};
use super::call::Element;
use super::error::{Error, Result, SqlState};
use super::heap_page::{Found, HeapPage, RowColumn, RowPlace};
use super::interrupt;
use super::memory::Scratch;
use super::relation::Relation;
use pg_bloom_core::memory;
use pgrx::pg_sys::{self, HTSV_Result};

/// A scan of a table.
pub struct HeapScan {
    table: Relation,
    info: *mut pg_sys::IndexInfo,
    column: RowColumn,
    pages: u32,
    strategy: BulkRead,
    /// Rows that were deleted by an older transaction are dead to everybody.
    horizon: pg_sys::TransactionId,
    /// A transaction, and what became of the rows that it inserted and nobody deleted.
    known: (pg_sys::TransactionId, Fate),
}

/// Whether PostgreSQL may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayCall {
    /// It may not: a page is locked.
    No,
    /// It may.
    Yes,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is there.
    Present,
    /// It was deleted or updated, but some still see it.
    Deleted,
    /// Nobody sees it.
    Dead,
}

impl HeapScan {
    /// A scan for a new index on a table that nobody writes to; nothing where only PostgreSQL's own scan will do: where
    /// others write, for expressions and partial indexes, for tables of other access methods, and where rows are older
    /// than the column but have a value in it.
    ///
    /// # Safety
    /// `info` must be what PostgreSQL passes to ambuild with these.
    pub unsafe fn for_index(table: Relation, index: Relation, info: *mut pg_sys::IndexInfo) -> Option<HeapScan> {
        // SAFETY: promised by the caller.
        let is_plain = unsafe { !(*info).ii_Concurrent && (*info).ii_Predicate.is_null() };
        let column = RowColumn::of_index(index, table).filter(|column| is_plain && column.is_in_every_row())?;
        let pages = table.pages();
        progress(pg_sys::PROGRESS_SCAN_BLOCKS_TOTAL, pages);
        Some(HeapScan {
            table,
            info,
            column,
            pages,
            strategy: BulkRead::of(table),
            horizon: oldest_seen(table),
            known: (pg_sys::InvalidTransactionId, Fate::Dead),
        })
    }

    /// How many pages there are.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Gives the values of a page's rows to `take`, which says whether it could do without calling PostgreSQL, which it
    /// must while the page is locked. What it refused it is given again, and may then. NULLs are left out. Returns how
    /// many rows the table has there.
    ///
    /// # Errors
    /// XX001 for a damaged row.
    pub fn read(&mut self, page: u32, mut take: impl FnMut(Element, MayCall) -> bool) -> Result<u32> {
        interrupt::check_for_interrupts();
        let pin = self.strategy.read(self.table, page);
        let HeapScan { table, column, horizon, known, .. } = self;
        let (mut rows, mut refused, mut damaged, mut has_left_out) = (0, Vec::new(), None, false);
        let heap_page = HeapPage::lock(&pin);
        heap_page.for_each_row(column, |row, found| {
            let fate = fate(&heap_page, &pin, (*table, page, row), *horizon, known);
            rows += u32::from(fate == Fate::Present);
            match found {
                _ if fate == Fate::Dead => {}
                Found::Null => {}
                Found::Unknown => damaged = Some(row.line),
                Found::Value(element) if take(element, MayCall::No) => {}
                Found::Value(_) if fate == Fate::Deleted && heap_page.is_updated_in_page(row) => has_left_out = true,
                Found::Value(element) => memory::push(&mut refused, element),
            }
        });
        // The rows stay where they are while the page is in its buffer.
        drop(heap_page);
        if has_left_out {
            // SAFETY: what PostgreSQL passed to ambuild. Older transactions must not use the index.
            unsafe { (*self.info).ii_BrokenHotChain = true };
        }
        if !refused.is_empty() {
            let _scratch = Scratch::new();
            refused.into_iter().for_each(|element| {
                take(element, MayCall::Yes);
            });
        }
        progress(pg_sys::PROGRESS_SCAN_BLOCKS_DONE, page + 1);
        match damaged {
            None => Ok(rows),
            Some(line) => Err(self.damaged(page, line)),
        }
    }

    #[cold]
    fn damaged(&self, page: u32, line: u16) -> Error {
        let message = format!("row ({page},{line}) of table \"{}\" is damaged", self.table.name());
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, message).hint("Restore the table from a backup.")
    }
}

/// What became of a row.
#[inline(always)]
fn fate(
    heap_page: &HeapPage<'_>,
    pin: &Pin,
    (table, page, row): (Relation, u32, RowPlace),
    horizon: pg_sys::TransactionId,
    known: &mut (pg_sys::TransactionId, Fate),
) -> Fate {
    const THERE: u32 = pg_sys::HEAP_XMIN_COMMITTED | pg_sys::HEAP_XMAX_INVALID;
    let Some((inserted_by, bits)) = heap_page.fate(row) else { return Fate::Present };
    let is_undeleted = bits & (pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_MOVED) == pg_sys::HEAP_XMAX_INVALID;
    if is_undeleted && bits & THERE == THERE {
        return Fate::Present;
    }
    // Rows that one transaction inserted are neighbours.
    if is_undeleted && inserted_by == known.0 {
        return known.1;
    }
    let Some(mut tuple) = heap_page.tuple(table, page, row) else { return Fate::Present };
    // SAFETY: a row of a page that is locked, in this buffer.
    let fate = match unsafe { pg_sys::HeapTupleSatisfiesVacuum(&mut tuple, horizon, pin.number()) } {
        HTSV_Result::HEAPTUPLE_DEAD => Fate::Dead,
        HTSV_Result::HEAPTUPLE_LIVE | HTSV_Result::HEAPTUPLE_INSERT_IN_PROGRESS => Fate::Present,
        _ => Fate::Deleted,
    };
    if is_undeleted {
        *known = (inserted_by, fate);
    }
    fate
}

/// The oldest transaction that may still see what others deleted since.
fn oldest_seen(table: Relation) -> pg_sys::TransactionId {
    // SAFETY: the table is open.
    unsafe {
        #[cfg(feature = "pg13")]
        return pg_sys::GetOldestXmin(table.raw(), pg_sys::PROCARRAY_FLAGS_VACUUM as i32);
        #[cfg(not(feature = "pg13"))]
        return pg_sys::GetOldestNonRemovableTransactionId(table.raw());
    }
}

/// Shows how far the build is.
fn progress(parameter: u32, pages: u32) {
    // SAFETY: writes a number of this process.
    unsafe { pg_sys::pgstat_progress_update_param(parameter as i32, i64::from(pages)) };
}
