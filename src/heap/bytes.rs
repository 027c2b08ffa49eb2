//! A page of a table as bytes.
//!
//! ```text
//! page  | header | line 1 | line 2 | …    free    … | row 2 | row 1 |
//! row   | header, 23 bytes | a bit for each column that is not NULL | … | column 1 | column 2 | …
//!                                                                       ▲ a multiple of 8 bytes from where the row begins
//! ```
//!
//! While this session has the page locked for sharing, others set hint bits in the headers of rows,
//! and nothing else. While it only has it pinned, they may also add rows and mark versions as
//! replaced, but not move or change the columns of a version that a snapshot sees. So headers are
//! read field by field, and only what follows them is ever a slice.

use crate::pg::storage::buffer::{SharedTablePage, TablePage};
use crate::pg::storage::relation::PAGE_BYTES;
use pgrx::pg_sys::{self, HeapTupleHeaderData, ItemIdData, PageHeaderData};
use std::mem::offset_of;

/// Bytes of a page before its line pointers, and of a line pointer.
const PAGE_HEADER: usize = offset_of!(PageHeaderData, pd_linp);
const LINE: usize = size_of::<ItemIdData>();

/// Where a page says how far its line pointers go, and where its rows begin.
const LOWER: usize = offset_of!(PageHeaderData, pd_lower);
const UPPER: usize = offset_of!(PageHeaderData, pd_upper);

/// Where a row's header has what each is named after. The first two are transactions.
const XMIN: usize = 0;
const XMAX: usize = XMIN + size_of::<pg_sys::TransactionId>();
const NEXT_LINE: usize =
    offset_of!(HeapTupleHeaderData, t_ctid) + offset_of!(pg_sys::ItemPointerData, ip_posid);
const INFOMASK2: usize = offset_of!(HeapTupleHeaderData, t_infomask2);
const INFOMASK: usize = offset_of!(HeapTupleHeaderData, t_infomask);
const HOFF: usize = offset_of!(HeapTupleHeaderData, t_hoff);
/// Where the bits of NULLs begin: the end of what every header has.
const NULL_BITS: usize = offset_of!(HeapTupleHeaderData, t_bits);

/// What every row is aligned to.
const ALIGNMENT: usize = pg_sys::MAXIMUM_ALIGNOF as usize;

/// The most rows that a page can have: each has a line pointer and at least a header.
pub const MOST_ROWS: usize =
    (PAGE_BYTES - PAGE_HEADER) / (NULL_BITS.next_multiple_of(ALIGNMENT) + LINE);

/// A line pointer, by what it is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// For nothing.
    Unused,
    /// For a row version that was removed.
    Dead,
    /// For a row version that was updated on this page and removed. This line, counted from 1 if it
    /// is sound, has a newer version.
    Redirect(u16),
    /// For a row version. Its header is within the page, its end only if the line pointer is sound.
    Row { start: usize, end: usize },
    /// For a row version whose header can't be where the line pointer says: nobody can find it.
    Damaged,
}

/// A row version without its header.
pub struct RowBody<'p> {
    /// How many columns it has: fewer than the table if it is older than the last ones.
    pub columns: usize,
    /// A bit for each column that is not NULL; empty if no column is NULL.
    null_bits: &'p [u8],
    /// The values of the columns that are not NULL, one after the other.
    pub data: &'p [u8],
}

impl RowBody<'_> {
    /// Returns whether the column with this number, counted from 0, is NULL. The row must have it;
    /// if the bits that say so are too few, since the row is damaged, it counts as NULL.
    #[inline(always)]
    pub fn is_null(&self, column: usize) -> bool {
        if self.null_bits.is_empty() {
            return false;
        }
        self.null_bits
            .get(column / 8)
            .is_none_or(|bits| bits & 1 << (column % 8) == 0)
    }
}

/// The bytes of a page from the start of a row version on, as they were when they were copied.
pub struct RowCopy {
    page: [u64; PAGE_BYTES / size_of::<u64>()],
    start: usize,
}

impl RowCopy {
    /// Returns the columns of the row version that begins at `start`. Only its header counts: the
    /// row's length, which its line pointer gives, is ignored, as PostgreSQL does, so that the
    /// caller sees what PostgreSQL would read of a damaged row. The bytes go on to the end of the
    /// page. `None` if the columns would begin behind the page, or at a place that isn't aligned.
    pub fn body(&self) -> Option<RowBody<'_>> {
        // SAFETY: as many bytes as the page has.
        let page: &[u8] =
            unsafe { std::slice::from_raw_parts(self.page.as_ptr().cast(), PAGE_BYTES) };
        let row = &page[self.start..];
        let number = |offset: usize| u16::from_ne_bytes([row[offset], row[offset + 1]]).into();

        let header = BodyHeader::new(number(INFOMASK2), number(INFOMASK), row[HOFF].into());
        if !header.first_column.is_multiple_of(ALIGNMENT) {
            return None;
        }
        Some(RowBody {
            columns: header.columns,
            null_bits: row.get(NULL_BITS..NULL_BITS + header.null_bytes)?,
            data: row.get(header.first_column..)?,
        })
    }
}

/// What the header of a row version says of its columns.
struct BodyHeader {
    columns: usize,
    /// Bytes that say which columns are NULL.
    null_bytes: usize,
    /// Where the columns begin, from the start of the row.
    first_column: usize,
}

impl BodyHeader {
    #[inline(always)]
    fn new(infomask2: u32, infomask: u32, hoff: u32) -> BodyHeader {
        let columns = (infomask2 & pg_sys::HEAP_NATTS_MASK) as usize;
        let has_nulls = infomask & pg_sys::HEAP_HASNULL != 0;
        BodyHeader {
            columns,
            null_bytes: if has_nulls { columns.div_ceil(8) } else { 0 },
            first_column: hoff as usize,
        }
    }
}

/// A row version's place in the history of its row.
pub struct Version {
    /// The transaction that wrote this version.
    pub inserted_by: pg_sys::TransactionId,
    /// Whether indexes don't know this version, since it replaced another one on its page.
    pub is_heap_only: bool,
    pub next: Option<NextVersion>,
}

/// What a row version says of the one that replaced it on its page.
pub struct NextVersion {
    /// Its line, counted from 1 if the header is sound.
    pub line: u16,
    /// The transaction that wrote it; `None` if only PostgreSQL's table of multixacts tells.
    pub inserted_by: Option<pg_sys::TransactionId>,
}

/// A page of a table, locked for sharing or at least pinned.
pub struct PageBytes<'p> {
    start: *const u8,
    /// What keeps the page locked; `None` for one that somebody else keeps pinned.
    _lock: Option<SharedTablePage<'p>>,
}

impl<'p> PageBytes<'p> {
    /// Waits for a share lock of a page that is pinned, and returns the page under it.
    pub fn lock(page: &'p TablePage<'_>) -> PageBytes<'p> {
        let lock = page.shared();
        PageBytes { start: lock.start(), _lock: Some(lock) }
    }

    /// Wraps a page that is pinned and not locked.
    ///
    /// # Safety
    /// A page must begin at `start` and stay pinned for `'p`. Only row versions may be read that a
    /// snapshot of this session sees: others may be removed, or not be written yet.
    pub unsafe fn pinned(start: *const u8) -> PageBytes<'p> {
        PageBytes { start, _lock: None }
    }

    /// Returns the number in a field of the page that has `BYTES` bytes, 1, 2 or 4, in the byte
    /// order of the machine. Panics if the offset `at` isn't a multiple of that, or if the field
    /// isn't within the page.
    #[inline(always)]
    fn field<const BYTES: usize>(&self, at: usize) -> u32 {
        assert!(at.is_multiple_of(BYTES) && at + BYTES <= PAGE_BYTES);
        // SAFETY: the field is within the page, which the lock or the pin keeps, and is aligned.
        // Others store hint bits as whole fields meanwhile, so it is read once, as a whole.
        unsafe {
            let field = self.start.add(at);
            match BYTES {
                1 => field.read_volatile().into(),
                2 => field.cast::<u16>().read_volatile().into(),
                4 => field.cast::<u32>().read_volatile(),
                _ => unreachable!("a field of {BYTES} bytes"),
            }
        }
    }

    /// Returns how many line pointers the page has.
    pub fn lines(&self) -> usize {
        let end = (self.field::<2>(LOWER) as usize).min(PAGE_BYTES);
        end.saturating_sub(PAGE_HEADER) / LINE
    }

    /// Returns what the line pointer with this number, counted from 1, is used for. The page must
    /// have room for the pointer, but may have fewer. A line pointer (PostgreSQL's `ItemIdData`)
    /// says where on the page a row version is.
    #[inline(always)]
    pub fn line(&self, number: usize) -> Line {
        let bits = self.field::<LINE>(PAGE_HEADER + (number - 1) * LINE);
        // C fills bit fields from the end that the first byte is at.
        let (offset, flags, length) = if cfg!(target_endian = "little") {
            (bits & 0x7FFF, bits >> 15 & 3, bits >> 17)
        } else {
            (bits >> 17, bits >> 15 & 3, bits & 0x7FFF)
        };

        match flags {
            pg_sys::LP_NORMAL => {
                let start = offset as usize;
                let has_header = start.is_multiple_of(ALIGNMENT) && start + NULL_BITS <= PAGE_BYTES;
                if has_header {
                    Line::Row { start, end: start + length as usize }
                } else {
                    Line::Damaged
                }
            }
            pg_sys::LP_REDIRECT => Line::Redirect(offset as u16),
            pg_sys::LP_DEAD => Line::Dead,
            _ => Line::Unused,
        }
    }

    /// Returns the share of the page that line pointers and rows take, from 0 to 1.
    pub fn share_in_use(&self) -> f64 {
        let free = self.field::<2>(UPPER).saturating_sub(self.field::<2>(LOWER));
        let room = (PAGE_BYTES - PAGE_HEADER) as f64;
        1.0 - (f64::from(free) / room).min(1.0)
    }

    /// Returns the columns of the row version from byte `start` of the page to byte `end`, which a
    /// [`Line::Row`] gives. `None` if these bytes aren't all within the page, or if the header is
    /// damaged: the columns would begin before the header ends, behind the row, or where they
    /// aren't aligned.
    #[inline(always)]
    pub fn body(&self, start: usize, end: usize) -> Option<RowBody<'_>> {
        if start + NULL_BITS > end || end > PAGE_BYTES {
            return None;
        }
        let header = BodyHeader::new(
            self.field::<2>(start + INFOMASK2),
            self.field::<2>(start + INFOMASK),
            self.field::<1>(start + HOFF),
        );
        let first_null_bit = start + NULL_BITS;
        let end_of_nulls = first_null_bit + header.null_bytes;
        let first_column = start + header.first_column;
        if !first_column.is_multiple_of(ALIGNMENT)
            || first_column < end_of_nulls
            || first_column > end
        {
            return None;
        }

        // SAFETY: both lie in the row, after the header's fields and before its end, which is
        // within the page. Nobody changes these bytes while the page is locked, nor in a version
        // that a snapshot sees while it is pinned.
        unsafe {
            Some(RowBody {
                columns: header.columns,
                null_bits: self.slice(first_null_bit, end_of_nulls),
                data: self.slice(first_column, end),
            })
        }
    }

    /// Copies the page from the start of a row version on, which a [`Line::Row`] gives. The bytes
    /// before are zeros. Each field is read once, as a whole, since other sessions may set hint
    /// bits meanwhile.
    #[cold]
    pub fn copy(&self, start: usize) -> RowCopy {
        let mut page = [0; PAGE_BYTES / size_of::<u64>()];
        for (number, word) in page.iter_mut().enumerate().skip(start / size_of::<u64>()) {
            let offset = number * size_of::<u64>();
            let halves = [
                self.field::<4>(offset),
                self.field::<4>(offset + size_of::<u32>()),
            ];
            let [first, second] = halves.map(u32::to_ne_bytes);
            let mut bytes = [0; size_of::<u64>()];
            bytes[..4].copy_from_slice(&first);
            bytes[4..].copy_from_slice(&second);
            *word = u64::from_ne_bytes(bytes);
        }
        RowCopy { page, start }
    }

    /// # Safety
    /// The bytes must be within the page, and nobody may change them while it is locked or pinned.
    unsafe fn slice(&self, start: usize, end: usize) -> &[u8] {
        // SAFETY: promised by the caller; the lock or the pin keeps the page.
        unsafe { std::slice::from_raw_parts(self.start.add(start), end - start) }
    }

    /// Returns what the header of a row version, which begins at the `start` of a [`Line::Row`],
    /// says of the row's history: which transaction has inserted this version, whether indexes know
    /// it, and which version has replaced it on this page, if one has.
    pub fn version(&self, start: usize) -> Version {
        let infomask = self.field::<2>(start + INFOMASK);
        let infomask2 = self.field::<2>(start + INFOMASK2);
        let has_all = |bits| infomask & bits == bits;

        // Two bits together say that the transaction ended so long ago that its number is no longer
        // looked at.
        let is_frozen = has_all(pg_sys::HEAP_XMIN_FROZEN);
        let inserted_by = if is_frozen {
            pg_sys::FrozenTransactionId
        } else {
            self.field::<4>(start + XMIN).into()
        };

        let is_aborted = has_all(pg_sys::HEAP_XMIN_INVALID) && !is_frozen;
        let is_replaced = infomask2 & pg_sys::HEAP_HOT_UPDATED != 0
            && !has_all(pg_sys::HEAP_XMAX_INVALID)
            && !is_aborted;
        let next = is_replaced.then(|| {
            let is_multi =
                has_all(pg_sys::HEAP_XMAX_IS_MULTI) && !has_all(pg_sys::HEAP_XMAX_LOCK_ONLY);
            let xmax = self.field::<4>(start + XMAX).into();
            let is_known = !is_multi && xmax != pg_sys::InvalidTransactionId;
            NextVersion {
                line: self.field::<2>(start + NEXT_LINE) as u16,
                inserted_by: is_known.then_some(xmax),
            }
        });

        let is_heap_only = infomask2 & pg_sys::HEAP_ONLY_TUPLE != 0;
        Version { inserted_by, is_heap_only, next }
    }
}
