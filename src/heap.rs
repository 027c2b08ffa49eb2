//! The rows of a table's page, one column of which is read: all that are there, visible or not.
//!
//! This is the one room below the table access method. It relies on the layout of pages and rows of PostgreSQL's own
//! access method `heap`, which any table of another one, and the setting `pg_bloom.heap_filter`, keep it away from. It
//! decides nothing about visibility: a row that a snapshot sees is on its page, on the same line, as long as the
//! snapshot is there. Under SERIALIZABLE the scan of the index has a predicate lock of the whole index, as it has
//! without this room, and PostgreSQL takes those of the rows when it reads them itself.
//!
//! ```text
//! page  | header | line 1 | line 2 | …    free    … | row 2 | row 1 |
//! row   | header, 23 bytes | which columns are NULL | … | column 1 | column 2 | …
//!                                                       ▲ a multiple of 8 bytes from where the row begins
//! ```
//!
//! While a page is locked for sharing, others set hint bits in the headers of rows, and nothing else: so headers are
//! read field by field, and only what follows them is ever a slice.

use crate::pg::call::Element;
use crate::pg::memory::CACHE_LINE;
use crate::pg::storage::buffer::{SharedTablePage, TablePage};
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use crate::pg::value::varlena;
use crate::pg::version::{self, attribute};
use pg_bloom_core::simd;
use pgrx::pg_sys;
use std::cell::OnceCell;
use std::mem::offset_of;

/// Bytes of a page before its lines, and of a line.
const PAGE_HEADER: usize = offset_of!(pg_sys::PageHeaderData, pd_linp);
const LINE: usize = size_of::<pg_sys::ItemIdData>();
/// Where a page says how far its lines go, and where its rows begin.
const LOWER: usize = offset_of!(pg_sys::PageHeaderData, pd_lower);
const UPPER: usize = offset_of!(pg_sys::PageHeaderData, pd_upper);
/// Fields of a row's header: two of bits, and where its columns begin; then the bits of NULLs follow.
const INFOMASK2: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_infomask2);
const INFOMASK: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_infomask);
const HOFF: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_hoff);
const NULL_BITS: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_bits);
/// What every row and every page is aligned to.
const ALIGNMENT: usize = pg_sys::MAXIMUM_ALIGNOF as usize;
/// Rows whose memory is fetched while others are read, and how much of each: a page takes a fifth less time.
const AHEAD: usize = 12;
const ROW_START: usize = 128;
/// The most rows of a page.
const MOST_ROWS: usize = (PAGE_BYTES - PAGE_HEADER) / (NULL_BITS.next_multiple_of(ALIGNMENT) + LINE);

/// Where a column is in the rows of a table.
pub struct RowColumn<'r> {
    table: Relation<'r>,
    before: Vec<Place>,
    own: Place,
    by_value: bool,
    /// Whether rows that are older than the column have a value: the default that it was added with.
    has_default_for_older: bool,
}

/// How a column is stored.
struct Place {
    /// Bytes; -1 for a value that says how long it is, -2 for one that ends in a zero byte.
    len: i16,
    align: usize,
}

/// What a row has in the column.
pub enum Found {
    Null,
    /// A value, which may be compressed or out of line.
    Value(Element),
    /// What only PostgreSQL can tell: the row is older than a column that was added with a default, or damaged.
    Unknown,
}

impl<'r> RowColumn<'r> {
    /// The column of a table that an index is on; `None` for an expression, for a table of another access method, and
    /// where PostgreSQL may remove rows that a snapshot still sees, since it has to notice that itself
    /// (`old_snapshot_threshold`, before version 17).
    pub fn of_index(index: Relation, table: Relation<'r>) -> Option<RowColumn<'r>> {
        let number = usize::try_from(index.column_number()).ok().filter(|&number| number > 0)?;
        assert_eq!(index.table(), table.oid(), "the table of the index");
        if !table.is_heap() || version::may_snapshots_be_too_old() {
            return None;
        }
        // SAFETY: the descriptor has at least as many columns as the number of one that an index of the table is on.
        let column = |i| unsafe { attribute((*table.raw()).rd_att, i) };
        let place = |i| Place {
            len: column(i).attlen,
            align: match column(i).attalign as u8 {
                pg_sys::TYPALIGN_SHORT => pg_sys::ALIGNOF_SHORT as usize,
                pg_sys::TYPALIGN_INT => pg_sys::ALIGNOF_INT as usize,
                pg_sys::TYPALIGN_DOUBLE => pg_sys::ALIGNOF_DOUBLE as usize,
                _ => 1,
            },
        };
        let own = number - 1;
        Some(RowColumn {
            table,
            before: (0..own).map(place).collect(),
            own: place(own),
            by_value: column(own).attbyval,
            has_default_for_older: column(own).atthasmissing,
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
            let mut at = 0;
            for (i, place) in self.before.iter().enumerate() {
                if !row.is_null(i) {
                    at = place.find(row.data, at)?.1;
                }
            }
            let (start, end) = self.own.find(row.data, at)?;
            self.datum(&row.data[start..end])
        };
        datum().map_or(Found::Unknown, |datum| Found::Value(Element { datum }))
    }

    fn datum(&self, bytes: &[u8]) -> Option<pg_sys::Datum> {
        Some(match *bytes {
            _ if !self.by_value => pg_sys::Datum::from(bytes.as_ptr()),
            [byte] => pg_sys::Datum::from(byte as i8),
            [a, b] => pg_sys::Datum::from(i16::from_ne_bytes([a, b])),
            [a, b, c, d] => pg_sys::Datum::from(i32::from_ne_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => pg_sys::Datum::from(i64::from_ne_bytes([a, b, c, d, e, f, g, h])),
            _ => return None,
        })
    }
}

impl Place {
    /// Where a value starts and ends in the columns of a row, if those before it end at `at`; `None` beyond the row.
    #[inline(always)]
    fn find(&self, data: &[u8], at: usize) -> Option<(usize, usize)> {
        // A value of up to 126 bytes isn't aligned: its first byte is not zero, as those between columns are.
        let is_packed = self.len == -1 && *data.get(at)? != 0;
        let start = if is_packed { at } else { at.next_multiple_of(self.align) };
        let len = match self.len {
            -1 => varlena::length_of(data.get(start..)?)?,
            -2 => data.get(start..)?.iter().position(|&byte| byte == 0)? + 1,
            len => usize::try_from(len).ok()?,
        };
        (start + len <= data.len()).then_some((start, start + len))
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
        !self.present.is_empty() && self.present.get(column / 8).is_none_or(|bits| bits & 1 << (column % 8) == 0)
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
        // SAFETY: within the page, which the lock keeps, and aligned as the page is. Hint bits are set by storing a
        // whole field.
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

    /// What a line says, counted from 0: where its row begins, what has become of it, and its bytes.
    #[inline(always)]
    fn line(&self, line: usize) -> (usize, u32, usize) {
        let bits = self.field::<LINE>(PAGE_HEADER + line * LINE);
        let (low, flags, high) = ((bits & 0x7FFF) as usize, bits >> 15 & 3, (bits >> 17) as usize);
        if cfg!(target_endian = "little") { (low, flags, high) } else { (high, flags, low) }
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

    /// Whether there is such a line, counted from 1, and it is in use, if only for a row that is gone.
    pub fn has_line(&self, line: u16) -> bool {
        let number = usize::from(line);
        (1..=self.lines()).contains(&number) && self.line(number - 1).1 != pg_sys::LP_UNUSED
    }

    /// Prefetches the start of a line's row.
    #[inline(always)]
    fn approach(&self, line: usize) {
        if PAGE_HEADER + (line + 1) * LINE <= PAGE_BYTES {
            let (start, ..) = self.line(line);
            (0..ROW_START).step_by(CACHE_LINE).for_each(|byte| simd::prefetch(self.page.start(), start + byte));
        }
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
        let nulls = start + NULL_BITS..start + NULL_BITS + if has_nulls { columns.div_ceil(8) } else { 0 };
        if !first.is_multiple_of(ALIGNMENT) || first < nulls.end || first > end {
            return None;
        }
        // SAFETY: both are in the row, behind its header, where nothing is changed under the lock.
        let bytes = |at: usize, end: usize| unsafe { std::slice::from_raw_parts(self.page.start().add(at), end - at) };
        Some(HeapRow { columns, present: bytes(nulls.start, nulls.end), data: bytes(first, end) })
    }

    /// Calls `visit` with the line of each row, counted from 1, and what the row has in the column.
    #[inline(always)]
    pub fn for_each_row(&self, column: &RowColumn, mut visit: impl FnMut(u16, Found)) {
        for line in 0..self.lines() {
            self.approach(line + AHEAD);
            let (start, flags, len) = self.line(line);
            if flags == pg_sys::LP_NORMAL {
                let row = self.row(start, start + len);
                visit(line as u16 + 1, row.map_or(Found::Unknown, |row| column.of(&row)));
            }
        }
    }

    /// By which line an index finds the row of this line: another one of the page, where the row was updated without
    /// being given to indexes. `None` if there is none any more.
    pub fn root_of(&self, line: u16) -> Option<u16> {
        let roots = self.roots.get_or_init(|| {
            // PostgreSQL writes as many as a page can have rows, and no more.
            let mut roots = [0; MOST_ROWS];
            if self.lines() <= MOST_ROWS {
                // SAFETY: the page is locked, and there is room for that many.
                unsafe { pg_sys::heap_get_root_tuples(self.page.start().cast_mut().cast(), roots.as_mut_ptr()) };
            }
            roots
        });
        roots.get(usize::from(line) - 1).copied().filter(|&root| root > 0)
    }
}
