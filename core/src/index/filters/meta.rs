//! The directory as bytes, and the one check of what was read from disk; new tiles. The metapage
//! has neither fields of its own nor records. A record is a group or a tile.
//!
//! A tile has its full size from the start, and each costs a lookup one page. So a group's tiles
//! are narrow while it has few filters: a new one has a quarter as many slots as there are, up to
//! the greatest width. For filters so small that a tile has only a few pages, the first tile fills
//! its pages, and each further one doubles the slots.

use super::directory::Directory;
use super::row_page::room;
use super::tile::{Grid, Group, Holds, Tile};
use crate::error;
use crate::index::chain::{Chain, ChainForm, DIRECTORY_HEADER, Growth, META_PAGE, Stored, Tiles};
use crate::index::page::{Damage, PageNumber, PageSize, Pages, Reader, require};
use crate::kind::{Kind, MAX_NAME, Tag};
use crate::layout::{Layout, MAX_HASHES, Shape};
use crate::memory;
use crate::sizing::max_blocks;
use std::ops::Range;

const FORM: ChainForm = ChainForm { magic: *b"bfrw", fields: 0 };
const GROUP_BYTES: usize = 16;
const TILE_BYTES: usize = 24;
/// What a record begins with.
const GROUP: u8 = 1;
const TILE: u8 = 2;

/// Pages that have an owner.
type Taken = Vec<Range<PageNumber>>;

fn group_record(group: &Group) -> Vec<u8> {
    let (kind, shape) = (group.kind(), group.shape);
    let layout = shape.layout as u8;
    let mut record = vec![
        GROUP,
        group.holds as u8,
        layout,
        kind.tag as u8,
        shape.num_hashes as u8,
        0,
    ];
    record.extend((kind.name.len() as u16).to_le_bytes());
    record.extend(shape.blocks.to_le_bytes());
    record.extend(kind.name.as_bytes());
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

fn tile_record(tile: &Tile) -> Vec<u8> {
    let mut record = vec![TILE, 0];
    record.extend(
        [tile.width, tile.first_slot, 0]
            .into_iter()
            .flat_map(u16::to_le_bytes),
    );
    record.extend(
        [tile.group, tile.row_page, tile.first_page, 0]
            .into_iter()
            .flat_map(u32::to_le_bytes),
    );
    record
}

/// The group of a record whose first byte was read.
fn parse_group(bytes: &mut Reader<'_>, page: PageNumber) -> Result<Group, Damage> {
    let wrong = |field, found: usize| Damage::field(page, field, found as u64);
    require(bytes.0.len() >= GROUP_BYTES - 1, || wrong("bytes of records", bytes.0.len()))?;
    let [holds, layout, tag, hashes, reserved] = bytes.take();
    let (name_len, blocks) = (usize::from(bytes.u16()), bytes.u64());
    let padded = name_len.next_multiple_of(8);
    require(reserved == 0, || wrong("reserved byte", reserved.into()))?;
    require(name_len <= MAX_NAME && padded <= bytes.0.len(), || {
        wrong("bytes of a name", name_len)
    })?;
    let (name, rest) = bytes.0.split_at(padded);
    bytes.0 = rest;
    let (name, padding) = name.split_at(name_len);
    let name = std::str::from_utf8(name).map_err(|_| wrong("bytes of a name", name_len))?;
    let tag = Tag::from_code(tag).ok_or_else(|| wrong("key kind", tag.into()))?;
    let layout = Layout::from_code(layout).ok_or_else(|| wrong("layout", layout.into()))?;
    let shape = Shape { layout, num_hashes: hashes.into(), blocks };
    let has_blocks = layout != Layout::Classic
        && (1..=max_blocks(layout)).contains(&blocks)
        && (1..=MAX_HASHES).contains(&shape.num_hashes);
    let is_named = padding.iter().all(|&byte| byte == 0) && name.is_empty() != tag.has_name();
    let is_sound = |known: &Holds| match known {
        Holds::Bits | Holds::Hashes => is_named && has_blocks && tag != Tag::None,
        Holds::Nothing => is_named && Group::of_any().shape == shape && tag == Tag::None,
    };
    let known = [Holds::Bits, Holds::Hashes, Holds::Nothing]
        .into_iter()
        .find(|&known| known as u8 == holds);
    let holds = known.filter(is_sound).ok_or_else(|| wrong("a group", holds.into()))?;
    Ok(Group::new(holds, shape, Kind { tag, name }))
}

impl Tiles for Directory {
    fn read<P: Pages>(pages: &mut P, size: PageSize) -> Result<Directory, P::Error> {
        Ok(Directory::parse(Stored::read(&FORM, pages, size)?, size)?)
    }

    fn chain(&self) -> &Chain {
        &self.chain
    }

    fn metapage(&self) -> Vec<u8> {
        self.chain.metapage(&FORM, self.size, &[], &[])
    }
}

impl Directory {
    fn parse(stored: Stored, size: PageSize) -> Result<Directory, Damage> {
        require(stored.open.is_empty(), || {
            Damage::field(META_PAGE, "bytes of records", stored.open.len() as u64)
        })?;
        let mut directory = Directory::empty(size);
        directory.chain = stored.chain;
        let mut taken = Taken::new();
        for (at, records) in stored.records {
            directory.add_records(&records, at, &mut taken)?;
            taken.push(at..at + 1);
            directory.newest = records;
        }
        directory.check_taken(taken)?;
        Ok(directory)
    }

    /// Adds the groups and tiles of a directory page, and the pages that they own.
    fn add_records(
        &mut self,
        records: &[u8],
        page: PageNumber,
        taken: &mut Taken,
    ) -> Result<(), Damage> {
        let mut bytes = Reader(records);
        while !bytes.0.is_empty() {
            crate::interrupt::check();
            match bytes.take() {
                [GROUP] => {
                    let group = parse_group(&mut bytes, page)?;
                    require(self.group_number(&group).is_none(), || {
                        Damage::field(page, "a group again", 1u8)
                    })?;
                    self.place_group(group);
                }
                [TILE] => {
                    let tile = self.parse_tile(&mut bytes, page)?;
                    self.place(tile);
                    memory::push(
                        taken,
                        tile.row_page..tile.row_page + u32::from(tile.first_slot == 0),
                    );
                    memory::push(taken, tile.pages());
                }
                [other] => return Err(Damage::field(page, "a record", other)),
            }
        }
        Ok(())
    }

    fn parse_tile(&self, bytes: &mut Reader<'_>, page: PageNumber) -> Result<Tile, Damage> {
        let wrong = |field, found: u32| Damage::field(page, field, found);
        require(bytes.0.len() >= TILE_BYTES - 1, || {
            wrong("bytes of records", bytes.0.len() as u32)
        })?;
        let ([reserved], width, first_slot, reserved_too) =
            (bytes.take(), bytes.u16(), bytes.u16(), bytes.u16());
        let (group, row_page, first_page, last) =
            (bytes.u32(), bytes.u32(), bytes.u32(), bytes.u32());
        require((reserved, reserved_too, last) == (0, 0, 0), || {
            wrong("reserved byte", reserved.into())
        })?;
        let known = self.group(group).ok_or_else(|| wrong("the group of a tile", group))?;
        require((1..=self.widest(known)).contains(&width), || {
            wrong("the width of a tile", width.into())
        })?;
        let last = self.row_pages(group).last();
        require(last.is_none_or(|last| last.page <= row_page), || {
            wrong("the row page of a tile", row_page)
        })?;
        let next = last.filter(|last| last.page == row_page).map_or(0, |last| last.slots);
        let fits = first_slot == next && width <= room(self.size) - next;
        require(fits, || wrong("the first slot of a tile", first_slot.into()))?;
        let allocated = self.chain.allocated;
        require((1..allocated).contains(&row_page), || wrong("the row page of a tile", row_page))?;
        let grid = Grid::new(self.size, known, width);
        let end = u64::from(first_page).saturating_add(grid.pages());
        let is_there = if grid.pages() == 0 {
            first_page == 0
        } else {
            first_page > 0 && end <= allocated.into()
        };
        require(is_there, || wrong("the first page of a tile", first_page))?;
        Ok(Tile {
            ordinal: self.tiles,
            group,
            width,
            first_slot,
            row_page,
            first_page,
            grid,
        })
    }

    /// Checks that each page that was allocated has one owner, and no other page has one.
    fn check_taken(&self, mut taken: Taken) -> Result<(), Damage> {
        taken.sort_unstable_by_key(|pages| pages.start);
        let mut end = META_PAGE + 1;
        for pages in taken.into_iter().filter(|pages| !pages.is_empty()) {
            require(pages.start >= end, || {
                Damage::field(META_PAGE, "a page of two owners", pages.start)
            })?;
            require(pages.start == end, || {
                Damage::field(META_PAGE, "a page without an owner", end)
            })?;
            end = pages.end;
        }
        let allocated = self.chain.allocated;
        require(allocated == end, || Damage::field(META_PAGE, "number of pages", allocated))
    }
}

const SMALL_BLOCKS: u64 = 4;

impl Directory {
    /// Adds a tile for a group, and the group if it is new. The directory must be current, under
    /// the exclusive lock of the metapage. Errors: [`crate::Class::TooLarge`] if too few page
    /// numbers are left.
    pub fn grow(&self, group: &Group) -> error::Result<Growth<Directory>> {
        let mut directory = self.clone();
        let number = self.group_number(group).unwrap_or(self.groups().count() as u32);
        let width = self.next_width(group, self.slots(number));
        let (row_page, first_slot) = match self.row_pages(number).last() {
            Some(last) if last.slots + width <= room(self.size) => (last.page, last.slots),
            _ => (directory.chain.allocate(1)?, 0),
        };
        let grid = Grid::new(self.size, group, width);
        let first_page = directory.allocate(grid)?;
        let tile = Tile {
            ordinal: self.tiles,
            group: number,
            width,
            first_slot,
            row_page,
            first_page,
            grid,
        };
        directory.append(group, tile)?;
        directory.chain.generation = directory.chain.generation.wrapping_add(1);
        let page = Some(directory.chain.newest_page(self.size, &directory.newest));
        Ok(Growth { directory, page })
    }

    /// The width of the next tile of a group with this number of slots.
    fn next_width(&self, group: &Group, slots: u64) -> u16 {
        let (most, blocks) = (self.widest(group), group.shape.blocks);
        if blocks == 0 {
            return most;
        }
        let wanted = if blocks <= SMALL_BLOCKS { slots } else { slots / 4 };
        let wanted = wanted.clamp(1, most.into());
        let room = u64::from(group.blocks_per_page(self.size));
        // As many slots as fill the page with this number of blocks of each.
        let per_page = (room / wanted).clamp(1, blocks);
        ((room / per_page) as u16).min(most)
    }

    /// Adds a tile whose pages are allocated, and before it its group if that is new. If the newest
    /// directory page is full, another one becomes the newest; then returns the full one.
    pub(super) fn append(&mut self, group: &Group, tile: Tile) -> error::Result<Option<Vec<u8>>> {
        let new = if self.group(tile.group).is_none() { group_record(group) } else { Vec::new() };
        let is_full = self.newest.len() + new.len() + TILE_BYTES
            > self.size.payload_bytes() - DIRECTORY_HEADER;
        let full = is_full.then(|| self.chain.newest_page(self.size, &self.newest).1);
        if is_full || self.chain.pages.is_empty() {
            let page = self.chain.allocate(1)?;
            self.chain.pages.push(page);
            self.newest.clear();
        }
        if !new.is_empty() {
            self.place_group(group.clone());
        }
        self.newest.extend(new);
        self.newest.extend(tile_record(&tile));
        self.place(tile);
        Ok(full)
    }
}
