//! What the pages of both indexes have in common: PostgreSQL's header, which is not touched here,
//! and eight bytes at the end that say what the page is.
//!
//! ```text
//!  0            24                                            8184   8188  8189  8190  8192
//!  ┌────────────┬──────────────────────────────────────────────┬──────┬─────┬─────┬─────┐
//!  │ PostgreSQL │ payload: 8,160 bytes                         │number│ ver │kind │ id  │
//!  └────────────┴──────────────────────────────────────────────┴──────┴─────┴─────┴─────┘
//! ```
//!
//! A page of a tile may also be all zero, as when the file was extended, or be after the end of the
//! file: both are pages without bits. So a crash between extending and writing leaves nothing to
//! repair.
//!
//! What passes the checks of what was read from disk can be used without an index out of bounds, an
//! endless loop or an overflow; anything else is [`Damage`], which names page and defect.
//!
//! | module | what it knows |
//! |---|---|
//! | `row_set` | rows of a table: [`RowId`], [`RowSet`] |
//! | `memory` | pages in memory, for tests (feature `testing`) |

#[cfg(any(test, feature = "testing"))]
#[path = "tests/memory.rs"]
pub mod memory;
mod row_set;

pub use row_set::{RowId, RowSet};

use crate::error::Error;
use std::ops::Range;

/// The number of a page in the index file; PostgreSQL's block number.
pub type PageNumber = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// Page 0: what the index is, and where its directory is.
    Meta = 1,
    /// Where the tiles are.
    Directory = 2,
    /// Bits of a tile of ranges; so are `LevelOne` and `LevelTwo`.
    LevelZero = 3,
    LevelOne = 4,
    /// Blocks of the filters of rows.
    Filters = 5,
    /// Which rows these are.
    Rows = 6,
    LevelTwo = 7,
}

/// A page that no version of this code wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Damage {
    pub page: PageNumber,
    /// What is wrong with it, in the words of the error.
    pub problem: String,
}

impl Damage {
    #[cold]
    pub fn new(page: PageNumber, problem: impl Into<String>) -> Damage {
        Damage { page, problem: problem.into() }
    }

    /// A page that is all zero or after the end of the file, but must not be.
    #[cold]
    pub fn empty(page: PageNumber) -> Damage {
        Damage::new(page, "it is empty")
    }

    /// A field of a page, or a number computed from its records, that is out of range.
    #[cold]
    pub fn field(page: PageNumber, field: &str, found: impl Into<u64>) -> Damage {
        Damage::new(page, format!("{field} is {}", found.into()))
    }
}

/// A field of a record that is out of range, before it is known on which page the record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongField {
    /// The name of the field, in the words of the error.
    field: &'static str,
    found: u64,
}

impl WrongField {
    #[cold]
    pub fn new(field: &'static str, found: impl Into<u64>) -> WrongField {
        WrongField { field, found: found.into() }
    }

    /// The damage of the page that has the record.
    pub fn on(self, page: PageNumber) -> Damage {
        Damage::field(page, self.field, self.found)
    }
}

/// Returns an error that names the field and the value found there, unless the value `is_valid`.
pub(crate) fn check_field(
    field: &'static str,
    found: impl Into<u64>,
    is_valid: bool,
) -> Result<(), WrongField> {
    if is_valid { Ok(()) } else { Err(WrongField::new(field, found)) }
}

pub(crate) fn require(holds: bool, damage: impl FnOnce() -> Damage) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(damage()) }
}

pub const PAGE_HEADER_BYTES: usize = 24;
pub const SPECIAL_BYTES: usize = 8;
const PAGE_VERSION: u8 = 3;
/// Distinguishes pages of this access method from those of others.
const PAGE_ID: u16 = 0xFB1F;

/// The size of a server's pages: its `BLCKSZ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageSize(u32);

impl PageSize {
    pub const DEFAULT: PageSize = PageSize(8192);

    /// A size that PostgreSQL can be built with: a power of two from 1,024 to 32,768.
    pub const fn new(bytes: usize) -> Option<PageSize> {
        if bytes.is_power_of_two() && bytes >= 1024 && bytes <= 32768 {
            Some(PageSize(bytes as u32))
        } else {
            None
        }
    }

    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    pub const fn payload(self) -> Range<usize> {
        PAGE_HEADER_BYTES..self.bytes() - SPECIAL_BYTES
    }

    pub const fn payload_bytes(self) -> usize {
        self.bytes() - SPECIAL_BYTES - PAGE_HEADER_BYTES
    }

    /// Bits of a filter block: with so many, a block of 128 slots fills a page. 510 in pages of
    /// 8,192 bytes.
    pub const fn block_bits(self) -> u32 {
        (self.payload_bytes() * 8) as u32 / 128
    }
}

/// The end of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special {
    pub kind: PageKind,
    /// Which tile or directory page it is; 0 for the metapage, the group for rows.
    pub number: u32,
}

impl Special {
    const fn encode(self) -> [u8; SPECIAL_BYTES] {
        let number = self.number as u64;
        (number | (PAGE_VERSION as u64) << 32 | (self.kind as u64) << 40 | (PAGE_ID as u64) << 48)
            .to_le_bytes()
    }

    /// Writes the end of a page, which must have as many bytes.
    pub fn write(self, page: &mut [u8]) {
        *page.last_chunk_mut().expect("a page has a special space") = self.encode();
    }

    /// The page, if it was written: one that is all zero, or after the end of the file, was not.
    /// Errors: what is wrong with the page.
    #[inline]
    pub fn written(
        self,
        page: Option<&[u8]>,
        size: PageSize,
        at: PageNumber,
    ) -> Result<Option<&[u8]>, Damage> {
        match page {
            Some(page) if page.len() == size.bytes() && page.ends_with(&self.encode()) => {
                Ok(Some(page))
            }
            Some(page) if page.len() != size.bytes() || page.iter().any(|&byte| byte != 0) => {
                Err(Damage::new(at, self.problem(page, size)))
            }
            _ => Ok(None),
        }
    }

    #[cold]
    fn problem(self, page: &[u8], size: PageSize) -> String {
        if page.len() != size.bytes() {
            return format!("it has {} bytes instead of {}", page.len(), size.bytes());
        }
        let [n0, n1, n2, n3, version, kind, id0, id1] =
            *page.last_chunk().expect("a page has a special space");
        let (number, id) = (u32::from_le_bytes([n0, n1, n2, n3]), u16::from_le_bytes([id0, id1]));
        if id != PAGE_ID {
            format!("it is not a page of a bloom_filter index (its id is {id:04X})")
        } else if version != PAGE_VERSION {
            format!("its version is {version}, which is unknown")
        } else if kind != self.kind as u8 {
            format!("it is of kind {kind}, but must be {} ({:?})", self.kind as u8, self.kind)
        } else {
            format!("its number is {number}, but must be {}", self.number)
        }
    }
}

/// The pages of an index: in shared buffers, or in memory for tests.
pub trait Pages {
    type Error: From<Damage>;

    /// Calls `f` with the bytes of a page under a share lock, or with `None` if the page is after
    /// the end of the file. Errors: those of reading a page.
    fn with<R>(
        &mut self,
        page: PageNumber,
        f: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R, Self::Error>;

    fn prefetch(&mut self, _page: PageNumber) {}
}

/// Takes the pages of an index that is being built.
pub trait PageSink {
    type Error: From<Error>;

    /// Takes the next page, whose PostgreSQL header is zero. The first one has number 1; the
    /// metapage comes from the caller. Errors: those of writing a page.
    fn write(&mut self, page: &[u8]) -> Result<(), Self::Error>;
}

/// Reads little-endian numbers from the front of bytes that are long enough.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().expect("the lengths of pages were checked");
        self.0 = rest;
        *taken
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
