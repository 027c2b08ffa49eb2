//! The records of directory pages as bytes, and the checks of what was read from disk.
//! `core/src/index/pages.md` has the tables of their bytes.
//!
//! ```text
//! 1 │ GroupRecord │ name, zeros up to a multiple of 8 │ 2 │ TileRecord │ 2 │ TileRecord │ …
//! ```
//!
//! A record is checked against the directory of all records before it: a tile continues the tiles
//! of its group.

use super::directory::Directory;
use super::row_page::slots_per_row_page;
use super::tile::{FilterGroup, Grid, Holds, Tile};
use crate::index::chain::META_PAGE;
use crate::index::page::{
    PageNumber, WrongField, check_equal, check_field, decode, read_fixed, write_fixed,
};
use crate::kind::{Kind, MAX_NAME_BYTES, Tag};
use crate::layout::{Layout, MAX_HASHES, Shape};
use crate::memory::List;
use crate::sizing::max_blocks;
use serde::{Deserialize, Serialize};

/// The first byte of the record of a group.
const GROUP_CODE: u8 = 1;
/// The first byte of the record of a tile.
const TILE_CODE: u8 = 2;
/// The bytes of a record are a multiple of this number. Only names have to be padded for that.
const RECORD_ALIGNMENT: usize = 8;

/// A record that was read and checked.
pub(super) enum Record {
    Group(FilterGroup),
    Tile(Tile),
}

/// A group as it is stored, after the code of the record and before the bytes of the name.
#[derive(Serialize, Deserialize)]
struct GroupRecord {
    holds: u8,
    layout: u8,
    kind: u8,
    num_hashes: u8,
    reserved: u8,
    name_bytes: u16,
    blocks: u64,
}

/// A tile as it is stored, after the code of the record.
#[derive(Serialize, Deserialize)]
struct TileRecord {
    reserved: u8,
    width: u16,
    first_slot: u16,
    reserved_2: u16,
    group: u32,
    row_page: PageNumber,
    first_page: PageNumber,
    reserved_3: u32,
}

/// Reads and checks the first record of `bytes`, and advances `bytes` past it. A record of a
/// directory page describes a *group*, which is what filters have in common that may share pages,
/// or a *tile*, which is some pages with filters of one group side by side. `directory` has all
/// records before this one, and is not changed.
///
/// Fails if the record is incomplete, has an invalid field, or does not continue `directory`.
pub(super) fn read_record(bytes: &mut &[u8], directory: &Directory) -> Result<Record, WrongField> {
    let code: u8 = read_fixed(bytes)?;
    match code {
        GROUP_CODE => {
            let record: GroupRecord = read_fixed(bytes)?;
            let name = read_name(bytes, record.name_bytes)?;
            let group = record.into_group(name, directory)?;
            Ok(Record::Group(group))
        }
        TILE_CODE => {
            let record: TileRecord = read_fixed(bytes)?;
            let tile = record.into_tile(directory)?;
            Ok(Record::Tile(tile))
        }
        _ => Err(WrongField::new("code of a record", code)),
    }
}

/// Reads the name of a key kind, which follows the record of a group: `name_bytes` bytes, and zeros
/// up to a multiple of 8. Advances `bytes` past all of them. The name is empty if `name_bytes` is
/// 0.
///
/// Fails if the name is too long, incomplete or not UTF-8, or if its padding is not zero.
fn read_name<'a>(bytes: &mut &'a [u8], name_bytes: u16) -> Result<&'a str, WrongField> {
    let length = usize::from(name_bytes);
    check_field("length of a name", name_bytes, length <= MAX_NAME_BYTES)?;

    let padded_length = length.next_multiple_of(RECORD_ALIGNMENT);
    let available = bytes.len() as u64;
    check_field("bytes left for a name", available, padded_length as u64 <= available)?;

    let (padded_name, rest) = bytes.split_at(padded_length);
    *bytes = rest;

    let (name, padding) = padded_name.split_at(length);
    for &byte in padding {
        check_field("a byte after a name", byte, byte == 0)?;
    }
    str::from_utf8(name).map_err(|error| {
        WrongField::new("offset where a name is not UTF-8", error.valid_up_to() as u64)
    })
}

impl GroupRecord {
    /// Checks this record, and returns the *group* that it describes together with the name after
    /// it: the shape and the kind of elements that the filters of a tile have in common.
    /// `directory` has all records before this one.
    ///
    /// Fails if a field is invalid, if two fields contradict each other, or if `directory` already
    /// has this group.
    fn into_group(self, name: &str, directory: &Directory) -> Result<FilterGroup, WrongField> {
        check_field("reserved byte of a group", self.reserved, self.reserved == 0)?;

        let holds = decode("what a group holds", self.holds, Holds::from_code)?;
        let layout = decode("layout of a group", self.layout, Layout::from_code)?;
        let tag = decode("key kind of a group", self.kind, Tag::from_code)?;
        let shape = Shape {
            layout,
            num_hashes: self.num_hashes.into(),
            blocks: self.blocks,
        };

        self.check_has_name(tag)?;
        match holds {
            Holds::Bits | Holds::Hashes => self.check_with_bits(shape, tag)?,
            Holds::Nothing => self.check_without_bits(shape, tag)?,
        }

        let group = FilterGroup::new(holds, shape, Kind { tag, name });
        match directory.group_number(&group) {
            Some(number) => Err(WrongField::new("number of a group that is repeated", number)),
            None => Ok(group),
        }
    }

    /// Checks that there is a name if the key kind needs one, and only then.
    fn check_has_name(&self, tag: Tag) -> Result<(), WrongField> {
        let length = self.name_bytes;
        if tag.has_name() {
            check_field("length of a required name", length, length > 0)
        } else {
            check_field("length of a name that is not allowed", length, length == 0)
        }
    }

    /// Checks the fields of a group (filters of one shape and one kind of elements) of which the
    /// index keeps bits.
    ///
    /// Fails if its layout, its key kind, its number of blocks or its number of hashes is
    /// impossible.
    fn check_with_bits(&self, shape: Shape, tag: Tag) -> Result<(), WrongField> {
        // `classic` spreads the bits of an element over the whole filter, so it has no blocks that
        // could stand side by side in a tile.
        check_field("layout of a group", self.layout, shape.layout != Layout::Classic)?;
        // A filter without a key kind is empty and gets no slot.
        check_field("key kind of a group", self.kind, tag != Tag::None)?;

        let valid_blocks = 1..=max_blocks(shape.layout);
        check_field("blocks of a group", self.blocks, valid_blocks.contains(&shape.blocks))?;
        let valid_hashes = 1..=MAX_HASHES;
        check_field("hashes of a group", self.num_hashes, valid_hashes.contains(&shape.num_hashes))
    }

    /// Checks the fields of a group whose slots hold nothing. There is only one such group, for
    /// filters of all shapes and key kinds.
    fn check_without_bits(&self, shape: Shape, tag: Tag) -> Result<(), WrongField> {
        let valid = FilterGroup::without_bits().shape;
        check_field("layout of a group", self.layout, shape.layout == valid.layout)?;
        check_field("hashes of a group", self.num_hashes, shape.num_hashes == valid.num_hashes)?;
        check_field("blocks of a group", self.blocks, shape.blocks == valid.blocks)?;
        check_field("key kind of a group", self.kind, tag == Tag::None)
    }
}

impl TileRecord {
    /// Checks this record, and returns the *tile* that it describes: some neighbouring pages with
    /// the filters of one group (filters of one shape) side by side, each in a *slot*. `directory`
    /// has all records before this one; the tile is not added to it.
    ///
    /// Fails if the group is unknown, if the slots are not the next ones of the group, or if a page
    /// was never allocated.
    fn into_tile(self, directory: &Directory) -> Result<Tile, WrongField> {
        self.check_reserved()?;
        let group = directory
            .group(self.group)
            .ok_or_else(|| WrongField::new("group of a tile", self.group))?;
        self.check_width(directory.widest(group))?;
        self.check_slots(directory)?;
        self.check_row_page(directory.chain.allocated)?;

        // The pages depend on the width, which has been checked.
        let grid = Grid::new(directory.size, group, self.width);
        self.check_pages(grid.pages(), directory.chain.allocated)?;

        Ok(Tile {
            ordinal: directory.tile_count,
            group: self.group,
            width: self.width,
            first_slot: self.first_slot,
            row_page: self.row_page,
            first_page: self.first_page,
            grid,
        })
    }

    fn check_reserved(&self) -> Result<(), WrongField> {
        check_field("reserved byte 1 of a tile", self.reserved, self.reserved == 0)?;
        check_field("reserved bytes 6 to 7 of a tile", self.reserved_2, self.reserved_2 == 0)?;
        check_field("reserved bytes 20 to 23 of a tile", self.reserved_3, self.reserved_3 == 0)
    }

    fn check_width(&self, widest: u16) -> Result<(), WrongField> {
        check_field("width of a tile", self.width, (1..=widest).contains(&self.width))
    }

    /// Checks that the tile has the next *slots* of its group, places for filters: those after the
    /// last tile, on the same row page, or the first ones of a row page with a greater number.
    ///
    /// A *row page* says to which row of the table the filter in each slot belongs, and numbers the
    /// slots. The check makes sure that no slot is skipped, and that none belongs to two tiles.
    ///
    /// Fails if the tile has other slots, or more than the row page has room for.
    fn check_slots(&self, directory: &Directory) -> Result<(), WrongField> {
        let mut next_slot = 0;
        if let Some(last) = directory.row_pages(self.group).last() {
            check_field("a row page out of order", self.row_page, self.row_page >= last.number)?;
            if self.row_page == last.number {
                next_slot = last.slots;
            }
        }
        check_equal("first slot of a tile", self.first_slot, next_slot)?;

        let slots_per_row_page = slots_per_row_page(directory.size);
        let free_slots = slots_per_row_page - next_slot;
        check_field("width of a tile beyond its row page", self.width, self.width <= free_slots)
    }

    /// Checks that the row page is one of the `allocated` pages, but not the metapage.
    fn check_row_page(&self, allocated: PageNumber) -> Result<(), WrongField> {
        let valid_pages = META_PAGE + 1..allocated;
        check_field("row page of a tile", self.row_page, valid_pages.contains(&self.row_page))
    }

    /// Checks that the `pages` of the tile, which are consecutive, are among the `allocated` ones,
    /// and that the first page is stored as 0 if there are none.
    fn check_pages(&self, pages: u64, allocated: PageNumber) -> Result<(), WrongField> {
        let is_valid = if pages == 0 {
            self.first_page == 0
        } else {
            // The sum may exceed a page number, so it is computed in 64 bits.
            let end = u64::from(self.first_page).saturating_add(pages);
            self.first_page > META_PAGE && end <= u64::from(allocated)
        };
        check_field("first page of a tile", self.first_page, is_valid)
    }
}

/// Returns the bytes by which a directory page stores a group, which is what the filters of a tile
/// have in common: the code of the record, its fields, and the name of the key kind, padded with
/// zeros so that the whole is a multiple of 8 bytes.
pub(super) fn encode_group(group: &FilterGroup) -> List<u8> {
    let kind = group.kind();
    let record = GroupRecord {
        holds: group.holds as u8,
        layout: group.shape.layout as u8,
        kind: kind.tag as u8,
        // At most MAX_HASHES, which is 64.
        num_hashes: group.shape.num_hashes as u8,
        reserved: 0,
        // At most MAX_NAME_BYTES, which is 512.
        name_bytes: kind.name.len() as u16,
        blocks: group.shape.blocks,
    };

    let mut bytes = List::from([GROUP_CODE]);
    write_fixed(&mut bytes, &record);
    bytes.extend(kind.name.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(RECORD_ALIGNMENT), 0);
    bytes
}

/// Returns the bytes by which a directory page stores a tile, some neighbouring pages with filters
/// side by side: the code of the record, and its fields. They are a multiple of 8 bytes.
pub(super) fn encode_tile(tile: &Tile) -> List<u8> {
    // Reserved fields align the others. A reader refuses them unless they are 0.
    let record = TileRecord {
        reserved: 0,
        width: tile.width,
        first_slot: tile.first_slot,
        reserved_2: 0,
        group: tile.group,
        row_page: tile.row_page,
        first_page: tile.first_page,
        reserved_3: 0,
    };

    let mut bytes = List::from([TILE_CODE]);
    write_fixed(&mut bytes, &record);
    bytes
}
