//! Metapage and directory pages as bytes, and the one check of what was read from disk.
//!
//! ```text
//! metapage, payload                               directory page, payload
//!  0  magic              u32  "bfrw"               0  previous      u32  directory page before it, or 0
//!  4  hash id            u8   1                    4  bytes         u32  of records
//!  5  reserved           3    0                    8  records, then 0 up to the end
//!  8  bytes of a page    u32
//! 12  generation         u32                      its number at the end of the page is how many directory
//! 16  pages given away   u32                      pages are before it
//! 20  directory pages    u32
//! 24  newest of them     u32  or 0
//! 28  reserved           u32  0
//! 32  rows built from    u64
//! 40  0 up to the end
//!
//! record of a group                               record of a tile
//!  0  1                  u8                        0  2             u8
//!  1  holds              u8   0, 1, 2              1  reserved      u8   0
//!  2  layout             u8                        2  width         u16
//!  3  kind               u8                        4  first slot    u16
//!  4  hashes             u8                        6  reserved      u16  0
//!  5  reserved           u8   0                    8  group         u32
//!  6  bytes of the name  u16                      12  row page      u32
//!  8  blocks             u64                      16  first page    u32
//! 16  name, zero-padded to a multiple of 8        20  reserved      u32  0
//! ```

use super::directory::Directory;
use super::group::{Group, Holds};
use super::row_page::room;
use super::tile::Tile;
use crate::hash::HASH_ID;
use crate::index::page::{Damage, Defect, PageKind, PageNumber, PageSize, Pages, Reader, Special};
use crate::kind::{Kind, MAX_NAME, Tag};
use crate::layout::{Layout, MAX_HASHES, Shape};

const META_PAGE: PageNumber = 0;
const META: Special = Special { kind: PageKind::Meta, number: 0 };
const MAGIC: u32 = u32::from_le_bytes(*b"bfrw");
const META_BYTES: usize = 40;
const DIRECTORY_HEADER: usize = 8;
/// Where the generation stands in the metapage's payload.
const GENERATION: usize = 12;
const GROUP_BYTES: usize = 16;
/// Bytes of the record of a tile.
pub(super) const TILE_BYTES: usize = 24;
/// What a record begins with.
const GROUP: u8 = 1;
const TILE: u8 = 2;

/// Bytes of records that a directory page has room for.
pub(super) const fn record_room(size: PageSize) -> usize {
    size.payload_bytes() - DIRECTORY_HEADER
}

fn damage(page: PageNumber, field: &'static str, found: impl Into<u64>) -> Damage {
    Damage { page, defect: Defect::Field { field, found: found.into() } }
}

fn require(holds: bool, damage: impl FnOnce() -> Damage) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(damage()) }
}

/// The record of a group.
pub(super) fn group_record(group: &Group) -> Vec<u8> {
    let (kind, shape) = (group.kind(), group.shape);
    let mut record = vec![0; GROUP_BYTES + kind.name.len().next_multiple_of(8)];
    let layout = shape.layout as u8;
    record[..6].copy_from_slice(&[GROUP, group.holds as u8, layout, kind.tag as u8, shape.num_hashes as u8, 0]);
    record[6..8].copy_from_slice(&(kind.name.len() as u16).to_le_bytes());
    record[8..16].copy_from_slice(&shape.blocks.to_le_bytes());
    record[16..][..kind.name.len()].copy_from_slice(kind.name.as_bytes());
    record
}

/// The record of a tile.
pub(super) fn tile_record(tile: &Tile) -> Vec<u8> {
    let mut record = vec![0; TILE_BYTES];
    record[0] = TILE;
    record[2..4].copy_from_slice(&tile.width.to_le_bytes());
    record[4..6].copy_from_slice(&tile.first_slot.to_le_bytes());
    record[8..12].copy_from_slice(&tile.group.to_le_bytes());
    record[12..16].copy_from_slice(&tile.row_page.to_le_bytes());
    record[16..20].copy_from_slice(&tile.first_page.to_le_bytes());
    record
}

/// A directory page, but for PostgreSQL's header.
pub(super) fn directory_page(size: PageSize, number: u32, previous: PageNumber, records: &[u8]) -> Vec<u8> {
    let mut page = vec![0; size.bytes()];
    Special { kind: PageKind::Directory, number }.write(&mut page);
    let payload = &mut page[size.payload()];
    payload[..4].copy_from_slice(&previous.to_le_bytes());
    payload[4..8].copy_from_slice(&(records.len() as u32).to_le_bytes());
    payload[DIRECTORY_HEADER..][..records.len()].copy_from_slice(records);
    page
}

/// The group of a record, of which the first byte was read.
fn parse_group(bytes: &mut Reader<'_>, page: PageNumber) -> Result<Group, Damage> {
    require(bytes.0.len() >= GROUP_BYTES - 1, || damage(page, "bytes of records", bytes.0.len() as u64))?;
    let [holds, layout, tag, hashes, reserved, n0, n1] = bytes.take();
    let (name_len, blocks) = (usize::from(u16::from_le_bytes([n0, n1])), bytes.u64());
    let padded = name_len.next_multiple_of(8);
    require(reserved == 0, || damage(page, "reserved byte", reserved))?;
    require(name_len <= MAX_NAME && padded <= bytes.0.len(), || damage(page, "bytes of a name", name_len as u64))?;
    let (name, rest) = bytes.0.split_at(padded);
    bytes.0 = rest;
    let (name, padding) = name.split_at(name_len);
    let name = std::str::from_utf8(name).map_err(|_| damage(page, "bytes of a name", name_len as u64))?;
    let tag = Tag::from_code(tag).ok_or_else(|| damage(page, "key kind", tag))?;
    let layout = Layout::from_code(layout).ok_or_else(|| damage(page, "layout", layout))?;
    let shape = Shape { layout, num_hashes: hashes.into(), blocks };
    let is_sound = padding.iter().all(|&byte| byte == 0)
        && name.is_empty() != tag.has_name()
        && match holds {
            2 => Group::of_any().shape == shape && tag == Tag::None,
            0 | 1 => layout != Layout::Classic && blocks > 0 && tag != Tag::None,
            _ => false,
        }
        && (holds == 2 || (1..=MAX_HASHES).contains(&shape.num_hashes));
    require(is_sound, || damage(page, "a group", holds))?;
    let holds = match holds {
        0 => Holds::Bits,
        1 => Holds::Hashes,
        _ => Holds::Nothing,
    };
    Ok(Group::new(holds, shape, Kind { tag, name }))
}

impl Directory {
    /// Reads metapage and directory pages.
    ///
    /// # Errors
    /// [`Damage`] for what nothing here would have written; those of reading.
    pub fn read<P: Pages>(pages: &mut P, size: PageSize) -> Result<Directory, P::Error> {
        let (mut directory, mut at, count) = pages.with(META_PAGE, |page| parse_meta(page, size))??;
        // From the newest back: each lies before the one that names it, so this ends.
        let mut found = Vec::new();
        for number in (0..count).rev() {
            let (previous, records) = pages.with(at, |page| parse_records(page, at, size, number))??;
            found.push((at, records));
            at = previous;
        }
        let mut taken: Vec<_> = std::iter::once(0..1).collect();
        for (at, records) in found.into_iter().rev() {
            directory.add_records(&records, at, &mut taken)?;
            directory.pages.push(at);
            taken.push(at..at + 1);
            directory.newest = records;
        }
        directory.check_taken(taken)?;
        Ok(directory)
    }

    /// Adds the groups and tiles of a directory page, and what pages they take.
    fn add_records(
        &mut self,
        records: &[u8],
        page: PageNumber,
        taken: &mut Vec<std::ops::Range<PageNumber>>,
    ) -> Result<(), Damage> {
        let mut bytes = Reader(records);
        while !bytes.0.is_empty() {
            crate::interrupt::check();
            match bytes.take() {
                [GROUP] => {
                    let group = parse_group(&mut bytes, page)?;
                    require(self.group_number(&group).is_none(), || damage(page, "a group again", 1u8))?;
                    self.place_group(group);
                }
                [TILE] => {
                    let tile = self.parse_tile(&mut bytes, page)?;
                    let is_new = self.row_pages(tile.group).last().is_none_or(|last| last.page != tile.row_page);
                    self.place(tile);
                    taken.extend(is_new.then_some(tile.row_page..tile.row_page + 1));
                    let group = self.group(tile.group).expect("its tile was parsed");
                    let pages = tile.pages(self.size, group);
                    taken.extend((!pages.is_empty()).then_some(pages));
                }
                [other] => return Err(damage(page, "a record", other)),
            }
        }
        Ok(())
    }

    fn parse_tile(&self, bytes: &mut Reader<'_>, page: PageNumber) -> Result<Tile, Damage> {
        require(bytes.0.len() >= TILE_BYTES - 1, || damage(page, "bytes of records", bytes.0.len() as u64))?;
        let [reserved, w0, w1, s0, s1, r0, r1] = bytes.take();
        let (width, first_slot) = (u16::from_le_bytes([w0, w1]), u16::from_le_bytes([s0, s1]));
        let (group, row_page, first_page, last) = (bytes.u32(), bytes.u32(), bytes.u32(), bytes.u32());
        require((reserved, r0, r1, last) == (0, 0, 0, 0), || damage(page, "reserved byte", reserved))?;
        let known = self.group(group).ok_or_else(|| damage(page, "the group of a tile", group))?;
        require((1..=self.widest(known)).contains(&width), || damage(page, "the width of a tile", width))?;
        let last = self.row_pages(group).last().filter(|last| last.page == row_page);
        let next = last.map_or(0, |last| last.slots);
        let fits = first_slot == next && width <= room(self.size) - next;
        require(fits, || damage(page, "the first slot of a tile", first_slot))?;
        require((1..self.allocated).contains(&row_page), || damage(page, "the row page of a tile", row_page))?;
        let pages = self.pages_of(known, width);
        let end = u64::from(first_page) + pages;
        let is_there = if pages == 0 { first_page == 0 } else { first_page > 0 && end <= self.allocated.into() };
        require(is_there, || damage(page, "the first page of a tile", first_page))?;
        Ok(Tile { ordinal: self.tiles, group, width, first_slot, row_page, first_page })
    }

    /// Checks that no page belongs to two.
    fn check_taken(&self, mut taken: Vec<std::ops::Range<PageNumber>>) -> Result<(), Damage> {
        taken.sort_unstable_by_key(|pages| pages.start);
        let overlap = taken.windows(2).find(|pair| pair[0].end > pair[1].start);
        overlap.map_or(Ok(()), |pair| Err(damage(META_PAGE, "a page of two owners", pair[1].start)))
    }

    /// Whether a metapage is still the one that this directory was read from. It is not checked otherwise.
    pub fn is_current(&self, metapage: &[u8]) -> bool {
        let payload = metapage.get(self.size.payload());
        payload.is_some_and(|bytes| Reader(&bytes[GENERATION..]).u32() == self.generation)
    }

    /// Writes the metapage, but for PostgreSQL's header.
    ///
    /// # Panics
    /// If the page has another size.
    pub fn write_meta(&self, page: &mut [u8]) {
        assert_eq!(page.len(), self.size.bytes(), "the size of a page");
        META.write(page);
        let payload = &mut page[self.size.payload()];
        payload.fill(0);
        payload[..4].copy_from_slice(&MAGIC.to_le_bytes());
        payload[4] = HASH_ID;
        let numbers = [
            self.size.bytes() as u32,
            self.generation,
            self.allocated,
            self.pages.len() as u32,
            self.pages.last().copied().unwrap_or(0),
        ];
        payload[8..28].as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(b, n)| *b = n.to_le_bytes());
        payload[32..40].copy_from_slice(&self.rows_built.to_le_bytes());
    }
}

/// The metapage: a directory without tiles yet, the newest directory page, and how many there are.
fn parse_meta(page: Option<&[u8]>, size: PageSize) -> Result<(Directory, PageNumber, u32), Damage> {
    let page = page.ok_or(Damage { page: META_PAGE, defect: Defect::NewPage })?;
    META.check(page, size, META_PAGE)?;
    let field = |field, found: u32| damage(META_PAGE, field, found);
    let mut bytes = Reader(&page[size.payload()]);
    let magic = bytes.u32();
    require(magic == MAGIC, || field("magic number", magic))?;
    let [hash_id, reserved @ ..] = bytes.take::<4>();
    require(hash_id == HASH_ID, || field("hash function", hash_id.into()))?;
    require(reserved == [0; 3], || field("reserved byte", 1))?;
    let page_bytes = bytes.u32();
    require(page_bytes as usize == size.bytes(), || field("page size", page_bytes))?;
    let (generation, allocated) = (bytes.u32(), bytes.u32());
    let (count, newest, reserved) = (bytes.u32(), bytes.u32(), bytes.u32());
    require(reserved == 0, || field("reserved number", reserved))?;
    require(allocated > 0 && allocated < u32::MAX, || field("number of pages", allocated))?;
    require(count < allocated, || field("number of directory pages", count))?;
    require((count == 0) == (newest == 0) && newest < allocated, || field("newest directory page", newest))?;
    let rows_built = bytes.u64();
    let rest = page[size.payload()][META_BYTES..].iter().find(|&&byte| byte != 0);
    require(rest.is_none(), || field("unused byte", rest.copied().unwrap_or(0).into()))?;
    let mut directory = Directory::empty(size);
    (directory.rows_built, directory.generation, directory.allocated) = (rows_built, generation, allocated);
    Ok((directory, newest, count))
}

/// A directory page: the one before it, and its records.
fn parse_records(
    page: Option<&[u8]>,
    at: PageNumber,
    size: PageSize,
    number: u32,
) -> Result<(PageNumber, Vec<u8>), Damage> {
    let page = page.ok_or(Damage { page: at, defect: Defect::NewPage })?;
    Special { kind: PageKind::Directory, number }.check(page, size, at)?;
    let mut bytes = Reader(&page[size.payload()]);
    let (previous, length) = (bytes.u32(), bytes.u32());
    require((number == 0) == (previous == 0) && previous < at, || damage(at, "previous directory page", previous))?;
    require(length as usize <= bytes.0.len(), || damage(at, "bytes of records", length))?;
    let (records, rest) = bytes.0.split_at(length as usize);
    let unused = rest.iter().find(|&&byte| byte != 0);
    require(unused.is_none(), || damage(at, "unused byte", unused.copied().unwrap_or(0)))?;
    Ok((previous, records.to_vec()))
}
