//! The metapage and the directory pages: what both indexes have in common. The
//! [module above](super) has their bytes. The payload of a metapage is 40 bytes that are read here,
//! the fields of the index, and records; that of a directory page 12 bytes and records.
//!
//! Records are only ever added. So what a session has read stays true, and lacks at most what was
//! added since: [`Chain::is_current`] compares four bytes.
//!
//! What these pages say decides where bits are written and how long the file becomes. So they have
//! a checksum, and each page that was allocated must belong to one tile or be one of them. The
//! length of the file proves nothing.

use super::page::{
    Damage, PAGE_HEADER_BYTES, PageKind, PageNumber, PageSize, Pages, Reader, Special, require,
};
use crate::error::{self, TooLarge};
use crate::hash::{self, HASH_ID};
use crate::memory;

pub const META_PAGE: PageNumber = 0;

const META: Special = Special { kind: PageKind::Meta, number: 0 };
/// Bytes of a payload before the fields of the index, and before the records of a directory page.
pub(super) const META_HEADER: usize = 40;
pub(super) const DIRECTORY_HEADER: usize = 12;
/// Where the checksum is in the payload of both.
const CHECKSUM: std::ops::Range<usize> = 8..12;
const GENERATION: usize = PAGE_HEADER_BYTES + 12;

pub(super) struct ChainForm {
    pub magic: [u8; 4],
    /// Bytes of the index's own fields.
    pub fields: usize,
}

/// The checksum of a payload: XXH64 of what follows it, with what precedes it as the seed.
fn checksum(payload: &[u8]) -> u32 {
    let (before, rest) = payload.split_first_chunk().expect("a payload has more bytes");
    hash::hash_with_seed(&rest[CHECKSUM.len()..], u64::from_le_bytes(*before)) as u32
}

/// Writes the checksum of a metapage or a directory page that is complete otherwise.
pub fn sign(page: &mut [u8], size: PageSize) {
    let payload = &mut page[size.payload()];
    let checksum = checksum(payload);
    payload[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
}

/// A page with these bytes, whose checksum is 0.
fn page(size: PageSize, special: Special, bytes: &[u8]) -> Vec<u8> {
    let mut page = vec![0; size.bytes()];
    special.write(&mut page);
    page[size.payload()][..bytes.len()].copy_from_slice(bytes);
    sign(&mut page, size);
    page
}

fn check_signed(payload: &[u8], page: PageNumber) -> Result<(), Damage> {
    let (found, expected) = (Reader(&payload[CHECKSUM]).u32(), checksum(payload));
    let problem = || format!("its checksum is {found:08X}, but must be {expected:08X}");
    require(found == expected, || Damage::new(page, problem()))
}

/// Where the tiles of an index are, as its metapage and the directory pages say. In pages that are
/// written PostgreSQL's header is zero.
pub trait Tiles: Sized {
    /// Reads it. Errors: [`Damage`] for pages that no code here writes; those of reading.
    fn read<P: Pages>(pages: &mut P, size: PageSize) -> Result<Self, P::Error>;

    fn chain(&self) -> &Chain;

    fn metapage(&self) -> Vec<u8>;
}

/// A directory with more tiles, to be written with one WAL record by a session that has held the
/// exclusive lock of the metapage since the directory was current. Nothing else changes: pages of
/// new tiles are read as empty.
#[derive(Clone, Debug)]
pub struct Growth<D> {
    pub directory: D,
    /// Number and bytes of a directory page.
    pub page: Option<(PageNumber, Vec<u8>)>,
}

/// What the metapages of both indexes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub rows_built: u64,
    /// Changes with every change of the directory.
    pub(super) generation: u32,
    /// How many pages were allocated, including the metapage. The file may end before they do.
    pub allocated: PageNumber,
    /// The directory pages, oldest first.
    pub pages: Vec<PageNumber>,
}

/// An index's metapage and directory pages, as far as both indexes have the same.
pub(super) struct Stored {
    pub chain: Chain,
    pub fields: Vec<u8>,
    /// The records of each directory page, oldest first.
    pub records: Vec<(PageNumber, Vec<u8>)>,
    /// The records of the metapage.
    pub open: Vec<u8>,
}

impl Chain {
    pub(super) const fn empty() -> Chain {
        Chain {
            rows_built: 0,
            generation: 0,
            allocated: 1,
            pages: Vec::new(),
        }
    }

    /// Whether a metapage is still the one that this was read from. Nothing else of it is checked.
    pub fn is_current(&self, metapage: &[u8]) -> bool {
        metapage.get(GENERATION..GENERATION + 4) == Some(&self.generation.to_le_bytes()[..])
    }

    /// Allocates consecutive pages. Returns the first. Errors: [`crate::Class::TooLarge`] if too
    /// few numbers are left.
    pub(super) fn allocate(&mut self, pages: u64) -> error::Result<PageNumber> {
        let first = self.allocated;
        let end = u64::from(first).saturating_add(pages);
        // The last number means "no page" to PostgreSQL.
        if end >= u64::from(u32::MAX) {
            return Err(TooLarge::IndexPages(end).into());
        }
        self.allocated = end as u32;
        Ok(first)
    }

    /// The newest directory page, which there must be, with these records, and its number.
    pub(super) fn newest_page(&self, size: PageSize, records: &[u8]) -> (PageNumber, Vec<u8>) {
        let (&newest, before) = self.pages.split_last().expect("a directory page was added");
        let numbers = [before.last().copied().unwrap_or(0), records.len() as u32, 0];
        let bytes = [numbers.map(u32::to_le_bytes).as_flattened(), records].concat();
        (
            newest,
            page(size, Special { kind: PageKind::Directory, number: before.len() as u32 }, &bytes),
        )
    }

    /// The metapage, with the index's own fields and these records.
    pub(super) fn metapage(
        &self,
        form: &ChainForm,
        size: PageSize,
        fields: &[u8],
        records: &[u8],
    ) -> Vec<u8> {
        let newest = self.pages.last().copied().unwrap_or(0);
        let numbers = [
            0,
            self.generation,
            self.allocated,
            self.pages.len() as u32,
            newest,
            records.len() as u32,
        ];
        let numbers = numbers.map(u32::to_le_bytes);
        let rows = self.rows_built.to_le_bytes();
        let bytes = [
            &form.magic[..],
            &[HASH_ID, 0, 0, 0],
            numbers.as_flattened(),
            &rows,
            fields,
            records,
        ]
        .concat();
        page(size, META, &bytes)
    }
}

impl Stored {
    /// Reads the metapage and the directory pages. Errors: those of [`Tiles::read`].
    pub fn read<P: Pages>(
        form: &ChainForm,
        pages: &mut P,
        size: PageSize,
    ) -> Result<Stored, P::Error> {
        let (mut stored, mut at, count) =
            pages.with(META_PAGE, |page| parse_meta(form, page, size))??;
        // From the newest to the oldest: each has a smaller number than the one that names it, so
        // this ends.
        for number in (0..count).rev() {
            let (previous, records) =
                pages.with(at, |page| parse_page(page, at, size, number))??;
            memory::push(&mut stored.records, (at, records));
            at = previous;
        }
        stored.records.reverse();
        stored.chain.pages = memory::collect(stored.records.iter().map(|(page, _)| *page));
        Ok(stored)
    }
}

/// The metapage: what it says without the directory pages, the newest of these, and how many there
/// are.
fn parse_meta(
    form: &ChainForm,
    page: Option<&[u8]>,
    size: PageSize,
) -> Result<(Stored, PageNumber, u32), Damage> {
    let payload = payload(META, page, META_PAGE, size)?;
    let field = |field, found: u32| Damage::field(META_PAGE, field, found);
    let mut bytes = Reader(payload);
    let magic = bytes.take();
    require(magic == form.magic, || field("magic number", u32::from_le_bytes(magic)))?;
    check_signed(payload, META_PAGE)?;
    let [hash_id, reserved @ ..] = bytes.take::<4>();
    require(hash_id == HASH_ID, || field("hash function", hash_id.into()))?;
    require(reserved == [0; 3], || {
        field("reserved byte", reserved.into_iter().fold(0, u8::max).into())
    })?;
    let (_checksum, generation, allocated) = (bytes.u32(), bytes.u32(), bytes.u32());
    let (count, newest, length) = (bytes.u32(), bytes.u32(), bytes.u32());
    require(allocated > 0 && allocated < u32::MAX, || field("number of pages", allocated))?;
    require(count < allocated, || field("number of directory pages", count))?;
    require((count == 0) == (newest == 0) && newest < allocated, || {
        field("newest directory page", newest)
    })?;
    let chain = Chain {
        rows_built: bytes.u64(),
        generation,
        allocated,
        pages: Vec::new(),
    };
    require(chain.rows_built <= i64::MAX as u64, || {
        Damage::field(META_PAGE, "rows", chain.rows_built)
    })?;
    let (fields, rest) = bytes.0.split_at(form.fields);
    let open = records(rest, length, META_PAGE)?;
    Ok((Stored { chain, fields: fields.to_vec(), records: Vec::new(), open }, newest, count))
}

/// A directory page: the one before it, and its records.
fn parse_page(
    page: Option<&[u8]>,
    at: PageNumber,
    size: PageSize,
    number: u32,
) -> Result<(PageNumber, Vec<u8>), Damage> {
    let payload = payload(Special { kind: PageKind::Directory, number }, page, at, size)?;
    check_signed(payload, at)?;
    let mut bytes = Reader(payload);
    let (previous, length, _checksum) = (bytes.u32(), bytes.u32(), bytes.u32());
    let is_before = (number == 0) == (previous == 0) && previous < at;
    require(is_before, || Damage::field(at, "previous directory page", previous))?;
    require(length > 0, || Damage::field(at, "bytes of records", length))?;
    Ok((previous, records(bytes.0, length, at)?))
}

/// The payload of a page that must have been written.
fn payload(
    special: Special,
    page: Option<&[u8]>,
    at: PageNumber,
    size: PageSize,
) -> Result<&[u8], Damage> {
    let page = special.written(page, size, at)?.ok_or_else(|| Damage::empty(at))?;
    Ok(&page[size.payload()])
}

/// The records of a page, which has zeros after them.
fn records(bytes: &[u8], length: u32, page: PageNumber) -> Result<Vec<u8>, Damage> {
    require(length as usize <= bytes.len(), || Damage::field(page, "bytes of records", length))?;
    let (records, rest) = bytes.split_at(length as usize);
    match rest.iter().find(|&&byte| byte != 0) {
        Some(&found) => Err(Damage::field(page, "unused byte", found)),
        None => Ok(records.to_vec()),
    }
}
