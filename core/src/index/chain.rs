//! The metapage and the directory pages, as far as both indexes have the same. The
//! [module above](super) has their bytes.
//!
//! The metapage, which is page 0, names the newest directory page, and each directory page names
//! the one before it. Together they hold *records*, which say where the tiles of the index are.
//!
//! ```text
//! metapage                          directory page 2         directory page 1        directory page 0
//! ┌─────────────────────────┐       ┌───────────────┐        ┌───────────────┐       ┌───────────────┐
//! │ MetaRecord, newest page │ ────▶ │ previous page │ ─────▶ │ previous page │ ────▶ │ none          │
//! │ fields of the index     │       │ records       │        │ records       │       │ records       │
//! │ records                 │       │               │        │               │       │               │
//! └─────────────────────────┘       └───────────────┘        └───────────────┘       └───────────────┘
//! ```
//!
//! Records are only ever added. So what a session has read stays true, and lacks at most what was
//! added since: [`Chain::is_current`] compares four bytes.
//!
//! What these pages say decides where bits are written and how long the file becomes. So they have
//! a checksum, and each page that was allocated must belong to one tile or be one of them. The
//! length of the file proves nothing.

use super::page::{
    Damage, PAGE_HEADER_BYTES, PageKind, PageNumber, PageSize, Pages, Special, WrongField,
    check_at_most, check_field, read_fixed, write_fixed,
};
use crate::error::{self, TooLarge};
use crate::hash::{self, HASH_ID};
use crate::memory::List;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The page number of the metapage.
pub const META_PAGE: PageNumber = 0;

const META_SPECIAL: Special = Special { kind: PageKind::Meta, number: 0 };
/// Where the checksum is in the payload of the metapage and of a directory page.
const CHECKSUM: Range<usize> = 8..12;
/// Where the generation is in the metapage.
const GENERATION: Range<usize> = PAGE_HEADER_BYTES + 12..PAGE_HEADER_BYTES + 16;

/// What distinguishes the metapage of one kind of index from that of the other.
pub(super) struct MetaForm {
    pub magic: [u8; 4],
    /// Bytes of the fields that only this kind of index has.
    pub own_bytes: usize,
}

/// The first fields of a metapage as they are stored, in both indexes. The fields of the index
/// itself follow, then its records.
#[derive(Serialize, Deserialize)]
struct MetaRecord {
    magic: [u8; 4],
    hash_id: u8,
    reserved: [u8; 3],
    checksum: u32,
    generation: u32,
    allocated: PageNumber,
    directory_pages: u32,
    newest_directory_page: PageNumber,
    record_bytes: u32,
    rows_built: u64,
}

/// The first fields of a directory page as they are stored. Its records follow.
#[derive(Serialize, Deserialize)]
struct DirectoryPageRecord {
    previous: PageNumber,
    record_bytes: u32,
    checksum: u32,
}

/// Bytes of the payload of a metapage before the fields of the index itself.
pub(super) const META_HEADER: usize = 40;
/// Bytes of the payload of a directory page before its records.
pub(super) const DIRECTORY_HEADER: usize = 12;

/// Returns the checksum of a payload: the low half of the XXH64 of the bytes after the place of the
/// checksum, with the eight bytes before it as the seed.
fn checksum(payload: &[u8]) -> u32 {
    let (seed, _) = payload.split_first_chunk().expect("a payload has more bytes");
    let content = &payload[CHECKSUM.end..];
    hash::hash_with_seed(content, u64::from_le_bytes(*seed)) as u32
}

/// Writes the checksum of a metapage or a directory page that is complete otherwise.
pub fn sign(page: &mut [u8], size: PageSize) {
    let payload = &mut page[size.payload()];
    let checksum = checksum(payload);
    payload[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
}

/// Checks that a payload has the right checksum, of which `found` is the stored one.
fn check_checksum(payload: &[u8], found: u32, page: PageNumber) -> Result<(), Damage> {
    let expected = checksum(payload);
    if found == expected {
        return Ok(());
    }
    let problem = format!("its checksum is {found:08X}, but must be {expected:08X}");
    Err(Damage::new(page, problem))
}

/// Returns the bytes of a metapage or a directory page whose payload begins with these bytes, of
/// which the checksum is 0 so far.
fn signed_page(size: PageSize, special: Special, payload_start: &[u8]) -> List<u8> {
    let mut page = List::filled(0, size.bytes());
    special.write(&mut page);
    page[size.payload()][..payload_start.len()].copy_from_slice(payload_start);
    sign(&mut page, size);
    page
}

/// Where the tiles of an index are, according to its metapage and its directory pages. PostgreSQL's
/// header is zero in all pages that are written here.
pub trait IndexDirectory: Sized {
    /// Reads and checks the metapage and the directory pages.
    ///
    /// Fails with [`Damage`] if no code here has written such pages, or if a page can't be read.
    fn read<P: Pages>(pages: &mut P, size: PageSize) -> Result<Self, P::Error>;

    /// Returns the part of the directory that both indexes have.
    fn chain(&self) -> &Chain;

    /// Returns the bytes of the metapage.
    fn metapage(&self) -> List<u8>;
}

/// A directory with more tiles than are stored. Its metapage and `page` are to be written, with one
/// WAL record, by the session that has held the exclusive lock of the metapage since the directory
/// was current. Nothing else changes: pages of new tiles are read as empty.
#[derive(Clone, Debug)]
pub struct Growth<D> {
    pub directory: D,
    /// A directory page that is new or has more records.
    pub page: Option<PageImage>,
}

/// The bytes that a page is to have.
#[derive(Clone, Debug)]
pub struct PageImage {
    pub number: PageNumber,
    pub bytes: List<u8>,
}

/// What the metapages of both indexes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Rows that the index was built from.
    pub rows_built: u64,
    /// A number that changes with every change of the directory.
    pub(super) generation: u32,
    /// How many pages were allocated, including the metapage. The file may end before they do.
    pub allocated: PageNumber,
    /// The directory pages, oldest first.
    pub pages: List<PageNumber>,
}

/// What is stored in the metapage and the directory pages, before the records are read.
pub(super) struct StoredDirectory {
    pub chain: Chain,
    /// The fields of the metapage that only this kind of index has.
    pub own_fields: List<u8>,
    /// The directory pages, oldest first.
    pub pages: List<StoredRecords>,
    /// The records of the metapage, which come after those of the directory pages.
    pub meta_records: List<u8>,
}

/// The records of a directory page, one after the other.
pub(super) struct StoredRecords {
    pub page: PageNumber,
    pub bytes: List<u8>,
}

impl Chain {
    /// Returns the chain of an index that has a metapage and nothing else.
    pub(super) const fn empty() -> Chain {
        Chain {
            rows_built: 0,
            generation: 0,
            allocated: META_PAGE + 1,
            pages: List::new(),
        }
    }

    /// Returns whether a metapage is still the one that this was read from. Nothing else of the
    /// page is checked.
    pub fn is_current(&self, metapage: &[u8]) -> bool {
        metapage.get(GENERATION) == Some(&self.generation.to_le_bytes()[..])
    }

    /// Notes that the directory has changed, so that other sessions read it again.
    pub(super) fn change_generation(&mut self) {
        // Sessions only compare the generation with the one that they know. So it may start again
        // from 0.
        self.generation = self.generation.wrapping_add(1);
    }

    /// Allocates `count` consecutive pages, and returns the number of the first. They are the next
    /// ones of the file that belong to nothing. Only this struct changes: the file grows when the
    /// pages are written.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few page numbers are left.
    pub(super) fn allocate(&mut self, count: u64) -> error::Result<PageNumber> {
        let first = self.allocated;
        let end = u64::from(first).saturating_add(count);
        // The last number means "no page" to PostgreSQL.
        if end >= u64::from(u32::MAX) {
            return Err(TooLarge::IndexPages(end).into());
        }
        self.allocated = end as u32;
        Ok(first)
    }

    /// Returns the newest *directory page*, a page with records that say where the tiles of the
    /// index are, as it is to be written: its number and its bytes, with these records. Each
    /// directory page names the one before it. `size` is the size of pages. Panics if there is no
    /// directory page.
    pub(super) fn newest_page(&self, size: PageSize, records: &[u8]) -> PageImage {
        let (&number, older_pages) = self.pages.split_last().expect("a directory page was added");
        let record = DirectoryPageRecord {
            // 0 if there is none: page 0 is the metapage.
            previous: older_pages.last().copied().unwrap_or(0),
            record_bytes: records.len() as u32,
            // Computed when the page is complete.
            checksum: 0,
        };
        let special = Special { kind: PageKind::Directory, number: older_pages.len() as u32 };

        let mut payload = List::new();
        write_fixed(&mut payload, &record);
        payload.extend(records);
        PageImage { number, bytes: signed_page(size, special, &payload) }
    }

    /// Returns the bytes of the metapage, which begins with fields that indexes of every kind have.
    /// `own_fields` has the fields that only indexes of the kind `form` have, and `records` the
    /// records that say where tiles are, as far as they are in the metapage.
    pub(super) fn metapage(
        &self,
        form: &MetaForm,
        size: PageSize,
        own_fields: &[u8],
        records: &[u8],
    ) -> List<u8> {
        let record = MetaRecord {
            magic: form.magic,
            hash_id: HASH_ID,
            reserved: [0; 3],
            // Computed when the page is complete.
            checksum: 0,
            generation: self.generation,
            allocated: self.allocated,
            directory_pages: self.pages.len() as u32,
            // 0 if there is none: page 0 is the metapage.
            newest_directory_page: self.pages.last().copied().unwrap_or(0),
            record_bytes: records.len() as u32,
            rows_built: self.rows_built,
        };

        let mut payload = List::new();
        write_fixed(&mut payload, &record);
        payload.extend(own_fields);
        payload.extend(records);
        signed_page(size, META_SPECIAL, &payload)
    }
}

impl StoredDirectory {
    /// Reads the metapage and the *directory pages* of an index: the pages that say where its bits
    /// are. Checks the fields that indexes of every kind have. `form` says which kind of index it
    /// must be, and `size` is the size of pages.
    ///
    /// The metapage names the newest directory page, and each directory page the one before it. The
    /// result has them from the oldest on.
    ///
    /// Fails with [`Damage`] if no code here has written such pages, or if a page can't be read.
    pub fn read<P: Pages>(
        form: &MetaForm,
        pages: &mut P,
        size: PageSize,
    ) -> Result<StoredDirectory, P::Error> {
        let meta = pages.with_page(META_PAGE, |page| MetaContent::parse(form, page, size))??;

        // The pages are read from the newest to the oldest. The metapage says how many there are,
        // and each has a smaller page number than the one that names it.
        let mut directory_pages = List::new();
        let mut page_number = meta.record.newest_directory_page;
        for older_pages in (0..meta.record.directory_pages).rev() {
            let content = pages.with_page(page_number, |page| {
                DirectoryPageContent::parse(page, page_number, size, older_pages)
            })??;
            let records = StoredRecords { page: page_number, bytes: content.records };
            directory_pages.push(records);
            page_number = content.previous;
        }
        directory_pages.reverse();

        let chain = Chain {
            rows_built: meta.record.rows_built,
            generation: meta.record.generation,
            allocated: meta.record.allocated,
            pages: directory_pages.iter().map(|stored| stored.page).collect(),
        };
        Ok(StoredDirectory {
            chain,
            own_fields: meta.own_fields,
            pages: directory_pages,
            meta_records: meta.records,
        })
    }
}

/// The payload of a metapage.
struct MetaContent {
    record: MetaRecord,
    own_fields: List<u8>,
    records: List<u8>,
}

impl MetaContent {
    /// Reads what the metapage of an index says, and checks the fields that indexes of every kind
    /// have. `page` has the bytes of page 0, or is `None` if the file has no pages. `size` is the
    /// size of pages.
    ///
    /// Fails if it is not the metapage of an index of the kind `form`, or if a field is invalid.
    fn parse(form: &MetaForm, page: Option<&[u8]>, size: PageSize) -> Result<MetaContent, Damage> {
        let payload = written_payload(META_SPECIAL, page, META_PAGE, size)?;
        let mut unread = payload;
        let record: MetaRecord = read_fixed(&mut unread).map_err(|wrong| wrong.on(META_PAGE))?;
        // If it is the page of another index, the magic number says more than the checksum.
        record.check_magic(form).map_err(|wrong| wrong.on(META_PAGE))?;
        check_checksum(payload, record.checksum, META_PAGE)?;
        record.check().map_err(|wrong| wrong.on(META_PAGE))?;

        let (own_fields, rest) = unread.split_at(form.own_bytes);
        let records = used_bytes(rest, record.record_bytes).map_err(|wrong| wrong.on(META_PAGE))?;
        Ok(MetaContent {
            record,
            own_fields: own_fields.into(),
            records: records.into(),
        })
    }
}

impl MetaRecord {
    fn check_magic(&self, form: &MetaForm) -> Result<(), WrongField> {
        let found = u32::from_le_bytes(self.magic);
        check_field("magic number", found, self.magic == form.magic)
    }

    /// Checks those fields of a metapage that indexes of every kind have, except for the magic
    /// number and the checksum: hash function, reserved bytes, number of allocated pages, directory
    /// pages, and rows at the build.
    ///
    /// Fails with the first field that has an impossible value.
    fn check(&self) -> Result<(), WrongField> {
        check_field("hash function", self.hash_id, self.hash_id == HASH_ID)?;
        for byte in self.reserved {
            check_field("reserved byte", byte, byte == 0)?;
        }

        // The metapage itself is allocated; and in PostgreSQL no page has the number 2^32 - 1,
        // which stands for "no page".
        let valid_counts = META_PAGE + 1..u32::MAX;
        check_field("number of pages", self.allocated, valid_counts.contains(&self.allocated))?;
        // One of the allocated pages is the metapage, so there are fewer directory pages.
        let count = self.directory_pages;
        check_field("number of directory pages", count, count < self.allocated)?;

        // Stored as 0, the number of the metapage, if there is none.
        let newest = self.newest_directory_page;
        let is_valid_newest = if count == 0 {
            newest == 0
        } else {
            newest > META_PAGE && newest < self.allocated
        };
        check_field("newest directory page", newest, is_valid_newest)?;

        // SQL shows the number of rows as a bigint.
        check_field("rows", self.rows_built, self.rows_built <= i64::MAX as u64)
    }
}

/// The payload of a directory page.
struct DirectoryPageContent {
    previous: PageNumber,
    records: List<u8>,
}

impl DirectoryPageContent {
    /// Reads and checks a *directory page*, which says where tiles of the index are: returns its
    /// records, and the number of the directory page before it.
    ///
    /// `page` has the bytes of the page, or is `None` if the file ends before it, and `page_number`
    /// is its number. `older_pages` is how many directory pages there are before it, which the last
    /// bytes of the page must say too.
    ///
    /// Fails if it is not that directory page, or if a field is invalid.
    fn parse(
        page: Option<&[u8]>,
        page_number: PageNumber,
        size: PageSize,
        older_pages: u32,
    ) -> Result<DirectoryPageContent, Damage> {
        let special = Special { kind: PageKind::Directory, number: older_pages };
        let payload = written_payload(special, page, page_number, size)?;
        let mut unread = payload;
        let record: DirectoryPageRecord =
            read_fixed(&mut unread).map_err(|wrong| wrong.on(page_number))?;
        check_checksum(payload, record.checksum, page_number)?;
        record
            .check(page_number, older_pages)
            .map_err(|wrong| wrong.on(page_number))?;

        let records =
            used_bytes(unread, record.record_bytes).map_err(|wrong| wrong.on(page_number))?;
        Ok(DirectoryPageContent { previous: record.previous, records: records.into() })
    }
}

impl DirectoryPageRecord {
    /// Checks the fields of the directory page with this page number, before which there are
    /// `older_pages` directory pages.
    fn check(&self, page_number: PageNumber, older_pages: u32) -> Result<(), WrongField> {
        let is_valid_previous = if older_pages == 0 {
            self.previous == 0
        } else {
            // Directory pages are allocated one after the other.
            self.previous > META_PAGE && self.previous < page_number
        };
        check_field("previous directory page", self.previous, is_valid_previous)?;
        // A directory page is only begun for a record.
        check_field("bytes of records", self.record_bytes, self.record_bytes > 0)
    }
}

/// Returns the bytes of a page between PostgreSQL's header and the last bytes, which say what the
/// page is and must be as `special` says. `page` has all bytes of the page, or is `None` if the
/// file ends before it. `page_number` is for errors.
///
/// Fails if the page was never written, or if its end says that it is another page.
fn written_payload(
    special: Special,
    page: Option<&[u8]>,
    page_number: PageNumber,
    size: PageSize,
) -> Result<&[u8], Damage> {
    let page = special
        .bytes_if_written(page, size, page_number)?
        .ok_or_else(|| Damage::empty(page_number))?;
    Ok(&page[size.payload()])
}

/// Returns the first `length` bytes of the part of a page that is for records.
///
/// Fails if that part is shorter, or if one of the bytes after them is not zero.
fn used_bytes(bytes: &[u8], length: u32) -> Result<&[u8], WrongField> {
    check_at_most("bytes of records", length, bytes.len() as u64)?;
    let (used, unused) = bytes.split_at(length as usize);
    for &byte in unused {
        check_field("unused byte", byte, byte == 0)?;
    }
    Ok(used)
}
