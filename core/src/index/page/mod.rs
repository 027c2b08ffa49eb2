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
//! | `damage` | what is wrong with a page: [`Damage`]; checks of stored fields |
//! | `fields` | structs as they are stored: reading and writing |
//! | `row_set` | rows of a table: [`RowId`], [`RowSet`] |
//! | `memory` | pages in memory, for tests (feature `testing`) |

mod damage;
mod fields;
#[cfg(any(test, feature = "testing"))]
#[path = "tests/memory.rs"]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only tests use it"
)]
pub mod memory;
mod row_set;

pub use damage::{Damage, PageNumber};
pub(crate) use damage::{WrongField, check_at_most, check_equal, check_field};
pub(crate) use fields::{decode, read_fixed, write_fixed};
pub use row_set::{RowId, RowSet};

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What a page has in its payload, by the code in its last bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// Page 0: what the index is, and where its directory is.
    Meta = 1,
    /// Where the tiles are.
    Directory = 2,
    /// Bits of a tile of level 0, in an index over ranges.
    LevelZero = 3,
    /// Bits of a tile of level 1.
    LevelOne = 4,
    /// Blocks of the filters of rows, in an index over a column of filters.
    Filters = 5,
    /// Which rows these filters belong to.
    Rows = 6,
    /// Bits of a tile of level 2.
    LevelTwo = 7,
}

/// A byte of a page that gets another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteChange {
    /// Where the byte is in the page, counted from its start.
    pub offset: u16,
    /// Its new value.
    pub value: u8,
}

/// Bytes of PostgreSQL's header at the start of a page.
pub const PAGE_HEADER_BYTES: usize = 24;
/// Bytes at the end of a page that say what it is: PostgreSQL's special space.
pub const SPECIAL_BYTES: usize = 8;
/// The version of the form of all pages of an index.
const PAGE_VERSION: u8 = 3;
/// Distinguishes pages of this access method from those of others.
const PAGE_ID: u16 = 0xFB1F;

/// The size of a server's pages: its `BLCKSZ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageSize(u32);

impl PageSize {
    pub const DEFAULT: PageSize = PageSize(8192);

    /// Returns the size for this number of bytes; `None` if PostgreSQL can't be built with it. It
    /// must be a power of two from 1,024 to 32,768.
    pub const fn new(bytes: usize) -> Option<PageSize> {
        if bytes.is_power_of_two() && bytes >= 1024 && bytes <= 32768 {
            Some(PageSize(bytes as u32))
        } else {
            None
        }
    }

    /// Returns the bytes of a whole page.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// Returns where the payload of a page is: between PostgreSQL's header and the special space.
    pub const fn payload(self) -> Range<usize> {
        PAGE_HEADER_BYTES..self.bytes() - SPECIAL_BYTES
    }

    /// Returns the bytes of a payload.
    pub const fn payload_bytes(self) -> usize {
        self.bytes() - SPECIAL_BYTES - PAGE_HEADER_BYTES
    }

    /// Returns the bits of a filter block in an index over ranges: 510 in pages of 8,192 bytes.
    ///
    /// With so many bits, the blocks of 128 slots fill a page.
    pub const fn block_bits(self) -> u32 {
        let payload_bits = self.payload_bytes() * 8;
        (payload_bits / 128) as u32
    }
}

/// What the end of a page says: which page of an index it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special {
    pub kind: PageKind,
    /// Which tile or directory page it is; 0 for the metapage, the group for rows.
    pub number: u32,
}

/// The special space of a page as it is stored.
#[derive(Serialize, Deserialize)]
struct SpecialRecord {
    number: u32,
    version: u8,
    kind: u8,
    id: u16,
}

impl Special {
    /// Returns the special space of a page that this describes.
    #[inline]
    fn encode(self) -> [u8; SPECIAL_BYTES] {
        let record = SpecialRecord {
            number: self.number,
            version: PAGE_VERSION,
            kind: self.kind as u8,
            id: PAGE_ID,
        };
        let mut bytes = [0; SPECIAL_BYTES];
        write_fixed(&mut bytes[..], &record);
        bytes
    }

    /// Writes the special space of a page. `page` has all bytes of the page, or the special space
    /// alone.
    pub fn write(self, page: &mut [u8]) {
        let special_space = page.last_chunk_mut().expect("a page has a special space");
        *special_space = self.encode();
    }

    /// Checks that a page is the one that it should be, and returns its bytes: its last eight
    /// bytes, PostgreSQL's *special space*, say what it is, and must be as `self` describes.
    /// Returns `None` if the page was never written: it is all zero, or after the end of the file.
    ///
    /// `page` has the bytes, or is `None` if the file ends before the page. `page_number` is only
    /// for errors.
    ///
    /// Fails if the page has not `size` bytes, or if its special space says that it is another
    /// page.
    #[inline]
    pub fn bytes_if_written(
        self,
        page: Option<&[u8]>,
        size: PageSize,
        page_number: PageNumber,
    ) -> Result<Option<&[u8]>, Damage> {
        let Some(page) = page else {
            return Ok(None);
        };
        let has_right_size = page.len() == size.bytes();
        if has_right_size && page.ends_with(&self.encode()) {
            return Ok(Some(page));
        }
        if has_right_size && page.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        Err(Damage::new(page_number, self.problem(page, size)))
    }

    /// Returns why a page is not the one that it must be, in the words of the error message: "it
    /// has …" or "its … is …". `self` is what its last eight bytes, the *special space*, must say.
    ///
    /// The caller must have found that the page has not `size` bytes, or that its special space
    /// says something else.
    #[cold]
    fn problem(self, page: &[u8], size: PageSize) -> String {
        if page.len() != size.bytes() {
            return format!("it has {} bytes instead of {}", page.len(), size.bytes());
        }

        let mut special_space = &page[size.payload().end..];
        let found: SpecialRecord =
            read_fixed(&mut special_space).expect("a page has a special space");
        let expected_kind = self.kind as u8;
        if found.id != PAGE_ID {
            format!("it is not a page of a bloom_filter index (its id is {:04X})", found.id)
        } else if found.version != PAGE_VERSION {
            format!("its version is {}, which is unknown", found.version)
        } else if found.kind != expected_kind {
            format!("it is of kind {}, but must be {expected_kind} ({:?})", found.kind, self.kind)
        } else {
            // The other fields of the special space are right, so it is the last one that differs.
            format!("its number is {}, but must be {}", found.number, self.number)
        }
    }
}

/// The pages of an index: in shared buffers, or in memory for tests.
pub trait Pages {
    type Error: From<Damage>;

    /// Calls `read` with the bytes of a page, which is locked for reading meanwhile, or with `None`
    /// if the file ends before the page. Returns the result of `read`.
    ///
    /// Fails if the page can't be read.
    fn with_page<R>(
        &mut self,
        page: PageNumber,
        read: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R, Self::Error>;

    /// Returns whether further pages may be announced now: see [`Pages::announce`]. Ask before
    /// computing which pages will be read soon, which is for nothing where pages are in memory. By
    /// default there is nothing to announce.
    fn can_announce(&mut self) -> bool {
        false
    }

    /// Announces (prefetches) a page: says that it will be read soon, so that it can be read from
    /// disk while others are in use. Call it only if [`Pages::can_announce`] has just returned
    /// `true`.
    fn announce(&mut self, _page: PageNumber) {
        // Pages in memory are read at once, so that their implementation need not do anything.
    }
}

/// Writes the pages of an index that is being built, in the order of their numbers.
pub trait PageSink {
    type Error: From<Error>;

    /// Writes the next page, whose PostgreSQL header is zero here. The first call writes page 1:
    /// page 0 is the metapage, which the caller of the build writes.
    ///
    /// Fails if the page can't be written.
    fn write(&mut self, page: &[u8]) -> Result<(), Self::Error>;
}
