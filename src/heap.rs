//! The rows of a table's page, one column of which is read: all that are there, visible or not.
//!
//! This is the one room below the table access method. It relies on the layout of pages and rows of
//! PostgreSQL's own access method `heap`. It decides nothing about visibility: a row that a
//! snapshot sees is on its page, on the same line, as long as the snapshot is there. Under
//! SERIALIZABLE the scan of the index has a predicate lock of the whole index, and PostgreSQL takes
//! those of the rows when it reads them itself.
//!
//! ```text
//! page  | header | line 1 | line 2 | …    free    … | row 2 | row 1 |
//! row   | header, 23 bytes | which columns are NULL | … | column 1 | column 2 | …
//!                                                       ▲ a multiple of 8 bytes from where the row begins
//! ```
//!
//! While a page is locked for sharing, others set hint bits in the headers of rows, and nothing
//! else: so headers are read field by field, and only what follows them is ever a slice.

use crate::pg::call::Element;
use crate::pg::catalog::Storage;
use crate::pg::storage::buffer::{SharedTablePage, TablePage};
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use crate::pg::version;
use pgrx::pg_sys;
use std::cell::OnceCell;
use std::mem::offset_of;

/// Bytes of a page before its lines, and of a line.
const PAGE_HEADER: usize = offset_of!(pg_sys::PageHeaderData, pd_linp);
const LINE: usize = size_of::<pg_sys::ItemIdData>();
/// Where a page says how far its lines go, and where its rows begin.
const LOWER: usize = offset_of!(pg_sys::PageHeaderData, pd_lower);
const UPPER: usize = offset_of!(pg_sys::PageHeaderData, pd_upper);
/// Fields of a row's header: two of bits, and where its columns begin; then the bits of NULLs
/// follow.
const INFOMASK2: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_infomask2);
const INFOMASK: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_infomask);
const HOFF: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_hoff);
const NULL_BITS: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_bits);
/// What every row and every page is aligned to.
const ALIGNMENT: usize = pg_sys::MAXIMUM_ALIGNOF as usize;
const MOST_ROWS: usize =
    (PAGE_BYTES - PAGE_HEADER) / (NULL_BITS.next_multiple_of(ALIGNMENT) + LINE);

/// Where a column is in the rows of a table.
pub struct RowColumn<'r> {
    table: Relation<'r>,
    /// How the columns before it are kept, and how it is.
    before: Vec<Storage>,
    own: Storage,
    /// Whether rows that are older than the column have a value: the default that it was added
    /// with.
    has_default_for_older: bool,
}

/// What a row has in the column.
pub enum Found {
    Null,
    /// A value, which may be compressed or out of line.
    Value(Element),
    /// What only PostgreSQL can tell: the row is older than a column that was added with a default,
    /// or damaged.
    Unknown,
}

impl<'r> RowColumn<'r> {
    /// The column of a table that an index is on; `None` for an expression, for a table of another
    /// access method, and where PostgreSQL may remove rows that a snapshot still sees, since it has
    /// to notice that itself (`old_snapshot_threshold`, before version 17).
    pub fn of_index(index: Relation, table: Relation<'r>) -> Option<RowColumn<'r>> {
        let number = usize::try_from(index.column_number())
            .ok()
            .filter(|&number| number > 0)?;
        assert_eq!(index.table(), table.oid(), "the table of the index");
        if !table.is_heap() || version::may_snapshots_be_too_old() {
            return None;
        }
        let storage = |column: pg_sys::FormData_pg_attribute| Storage::of(&column);
        let mut columns = table.columns();
        let before = columns.by_ref().take(number - 1).map(storage).collect();
        let own = columns.next()?;
        Some(RowColumn {
            table,
            before,
            own: storage(own),
            has_default_for_older: own.atthasmissing,
        })
    }

    pub fn is_of_variable_length(&self) -> bool {
        self.own.len == -1
    }

    /// A page of the table, which must have it.
    pub fn page(&self, page: u32) -> TablePage<'r> {
        TablePage::read(self.table, page)
    }

    fn of(&self, row: &HeapRow<'_>) -> Found {
        if row.columns <= self.before.len() {
            return if self.has_default_for_older { Found::Unknown } else { Found::Null };
        }
        if row.is_null(self.before.len()) {
            return Found::Null;
        }
        let datum = || {
            let mut rest = row.data;
            for (i, storage) in self.before.iter().enumerate() {
                if !row.is_null(i) {
                    rest = storage.first_of(rest)?.1;
                }
            }
            let (value, _) = self.own.first_of(rest)?;
            // SAFETY: it is a value of the column, which is kept as its storage says.
            Some(unsafe { self.own.fetch(value.as_ptr()) })
        };
        datum().map_or(Found::Unknown, |datum| Found::Value(Element { datum }))
    }
}

/// A row, except for its header.
struct HeapRow<'p> {
    columns: usize,
    /// A bit for each column that is not NULL; empty if there is no NULL.
    present: &'p [u8],
    data: &'p [u8],
}

impl HeapRow<'_> {
    #[inline(always)]
    fn is_null(&self, column: usize) -> bool {
        !self.present.is_empty()
            && self
                .present
                .get(column / 8)
                .is_none_or(|bits| bits & 1 << (column % 8) == 0)
    }
}

/// A page of a table that nobody changes.
pub struct HeapPage<'p> {
    page: SharedTablePage<'p>,
    roots: OnceCell<[u16; MOST_ROWS]>,
}

impl<'p> HeapPage<'p> {
    pub fn lock(page: &'p TablePage<'_>) -> HeapPage<'p> {
        HeapPage { page: page.shared(), roots: OnceCell::new() }
    }

    /// A field of the page, of so many bytes: one, two or four.
    #[inline(always)]
    fn field<const BYTES: usize>(&self, at: usize) -> u32 {
        assert!(at.is_multiple_of(BYTES) && at + BYTES <= PAGE_BYTES);
        // SAFETY: within the page, which the lock keeps, and aligned. Hint bits are set by storing
        // a whole field.
        unsafe {
            let field = self.page.start().add(at);
            match BYTES {
                1 => field.read_volatile().into(),
                2 => field.cast::<u16>().read_volatile().into(),
                4 => field.cast::<u32>().read_volatile(),
                _ => unreachable!("a field of {BYTES} bytes"),
            }
        }
    }

    /// What a line says, counted from 0: where its row begins, what has become of it, and its
    /// bytes.
    #[inline(always)]
    fn line(&self, line: usize) -> (usize, u32, usize) {
        let bits = self.field::<LINE>(PAGE_HEADER + line * LINE);
        let (low, flags, high) = ((bits & 0x7FFF) as usize, bits >> 15 & 3, (bits >> 17) as usize);
        if cfg!(target_endian = "little") {
            (low, flags, high)
        } else {
            (high, flags, low)
        }
    }

    fn lines(&self) -> usize {
        let end = (self.field::<2>(LOWER) as usize).min(PAGE_BYTES);
        end.saturating_sub(PAGE_HEADER) / LINE
    }

    /// The share of the page that lines and rows take: the last page of a table has few.
    pub fn share_in_use(&self) -> f64 {
        let free = self.field::<2>(UPPER).saturating_sub(self.field::<2>(LOWER));
        1.0 - (f64::from(free) / (PAGE_BYTES - PAGE_HEADER) as f64).min(1.0)
    }

    /// Whether there is such a line, counted from 1, and it is in use, if only for a row that is
    /// gone.
    pub fn has_line(&self, line: u16) -> bool {
        let number = usize::from(line);
        (1..=self.lines()).contains(&number) && self.line(number - 1).1 != pg_sys::LP_UNUSED
    }

    /// The row between these bytes, unless it is damaged.
    #[inline(always)]
    fn row(&self, start: usize, end: usize) -> Option<HeapRow<'_>> {
        if !start.is_multiple_of(ALIGNMENT) || start + NULL_BITS > end || end > PAGE_BYTES {
            return None;
        }
        let columns = (self.field::<2>(start + INFOMASK2) & pg_sys::HEAP_NATTS_MASK) as usize;
        let has_nulls = self.field::<2>(start + INFOMASK) & pg_sys::HEAP_HASNULL != 0;
        let first = start + self.field::<1>(start + HOFF) as usize;
        let nulls =
            start + NULL_BITS..start + NULL_BITS + if has_nulls { columns.div_ceil(8) } else { 0 };
        if !first.is_multiple_of(ALIGNMENT) || first < nulls.end || first > end {
            return None;
        }
        // SAFETY: both are in the row, behind its header, where nothing is changed under the lock.
        let bytes = |at: usize, end: usize| unsafe {
            std::slice::from_raw_parts(self.page.start().add(at), end - at)
        };
        Some(HeapRow {
            columns,
            present: bytes(nulls.start, nulls.end),
            data: bytes(first, end),
        })
    }

    /// Calls `visit` with the line of each row, counted from 1, and what the row has in the column.
    #[inline(always)]
    pub fn for_each_row(&self, column: &RowColumn, mut visit: impl FnMut(u16, Found)) {
        for line in 0..self.lines() {
            let (start, flags, len) = self.line(line);
            if flags == pg_sys::LP_NORMAL {
                let row = self.row(start, start + len);
                visit(line as u16 + 1, row.map_or(Found::Unknown, |row| column.of(&row)));
            }
        }
    }

    /// By which line an index finds the row of this line: another one of the page, where the row
    /// was updated without being given to indexes. `None` if there is none any more.
    pub fn root_of(&self, line: u16) -> Option<u16> {
        let roots = self.roots.get_or_init(|| {
            // PostgreSQL writes as many as a page can have rows, and no more.
            let mut roots = [0; MOST_ROWS];
            if self.lines() <= MOST_ROWS {
                // SAFETY: the page is locked, and there is room for that many.
                unsafe {
                    pg_sys::heap_get_root_tuples(
                        self.page.start().cast_mut().cast(),
                        roots.as_mut_ptr(),
                    )
                };
            }
            roots
        });
        roots.get(usize::from(line) - 1).copied().filter(|&root| root > 0)
    }
}
