//! New tiles: how wide they are, where their slots and pages are, and their records.
//!
//! A tile has its full size from the start, and each tile costs a lookup one page. So the first
//! tiles of a group are narrow, and later ones wide ([`Directory::next_width`]).

use super::directory::Directory;
use super::record::{encode_group, encode_tile};
use super::row_page::slots_per_row_page;
use super::tile::{FilterGroup, Grid, Tile};
use crate::error;
use crate::index::chain::{DIRECTORY_HEADER, Growth};
use crate::index::page::PageNumber;
use crate::memory::List;

/// Filters with up to this many blocks are small: their tiles have few pages, however wide they
/// are.
const SMALL_BLOCKS: u64 = 4;

/// Where the slots of a new tile are.
struct SlotPlace {
    row_page: PageNumber,
    first_slot: u16,
}

impl Directory {
    /// Returns a copy of the directory with one more tile for `group`, and the directory page that
    /// has its record, which the caller must write. A tile has room for filters of one group, which
    /// have the same shape. A group that has no tiles yet is added, too.
    ///
    /// The caller must hold the exclusive lock of the metapage, and have made sure that no other
    /// session has changed the index since this directory was read.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few page numbers are left.
    pub fn grow(&self, group: &FilterGroup) -> error::Result<Growth<Directory>> {
        let mut grown = self.clone();
        let tile = grown.allocate_tile(group)?;

        // If this fills a directory page, that page isn't written again: it has got no new record.
        grown.append(group, tile)?;

        grown.chain.change_generation();

        let newest_page = grown.chain.newest_page(grown.size, &grown.newest_records);
        Ok(Growth { directory: grown, page: Some(newest_page) })
    }

    /// Allocates the next *tile* of a group: some neighbouring pages, which will have the bits of
    /// filters side by side. A *group* is filters of one shape and one kind of elements. A tile has
    /// a fixed number of *slots*, the places for filters; they are numbered on a *row page*, which
    /// says to which row of the table the filter in each slot belongs.
    ///
    /// Returns the tile. Its pages are allocated, and its row page if that is new, but nothing is
    /// written, and the tile isn't in the directory yet. A group that the directory doesn't have
    /// gets the next number, and isn't added either.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few page numbers are left.
    fn allocate_tile(&mut self, group: &FilterGroup) -> error::Result<Tile> {
        let next_number = self.groups().count() as u32;
        let number = self.group_number(group).unwrap_or(next_number);

        let width = self.next_width(group, self.slots(number));
        let place = self.allocate_slots(number, width)?;
        let grid = Grid::new(self.size, group, width);
        let first_page = self.allocate(grid)?;

        Ok(Tile {
            ordinal: self.tile_count,
            group: number,
            width,
            first_slot: place.first_slot,
            row_page: place.row_page,
            first_page,
            grid,
        })
    }

    /// Finds `width` slots, places for filters, for a new tile of a group. Slots are numbered on a
    /// *row page*, a page of the index that says to which row of the table the filter in each slot
    /// belongs. The new slots follow those on the last row page of the group if that has room for
    /// all of them. Otherwise a new row page is allocated, and they are its first ones. The
    /// directory knows of them only when the tile is added.
    ///
    /// Fails with [`crate::Class::TooLarge`] if no page number is left.
    fn allocate_slots(&mut self, group: u32, width: u16) -> error::Result<SlotPlace> {
        let slots_per_row_page = slots_per_row_page(self.size);
        if let Some(last) = self.row_pages(group).last()
            && last.slots + width <= slots_per_row_page
        {
            return Ok(SlotPlace { row_page: last.number, first_slot: last.slots });
        }

        let new_page = self.chain.allocate(1)?;
        Ok(SlotPlace { row_page: new_page, first_slot: 0 })
    }

    /// Returns the width of the next tile of a group: how many *slots* it gets, each of which is
    /// the place of one filter; at most [`Directory::widest`]. The group has `slots` slots now.
    /// Each page of the tile will have the same number of blocks of every slot.
    ///
    /// Example: the group has 76 slots of 100 blocks each, and a page has room for 127 blocks.
    ///
    /// 1. The tile adds at least a quarter to the slots: 76 / 4 = 19. (If filters are small, it
    ///    doubles the slots.)
    /// 2. With 19 slots, a page has room for 127 / 19 = 6 blocks of each.
    /// 3. With 6 blocks of each slot, a page has room for 127 / 6 = 21 slots. So the tile gets 21.
    fn next_width(&self, group: &FilterGroup, slots: u64) -> u16 {
        let widest = self.widest(group);
        let blocks_per_slot = group.shape.blocks;
        if blocks_per_slot == 0 {
            // A tile without blocks has no pages, however wide it is.
            return widest;
        }

        let is_small = blocks_per_slot <= SMALL_BLOCKS;
        let added_slots = if is_small { slots } else { slots / 4 };
        let least_width = added_slots.clamp(1, widest.into());

        // A page has no more blocks of a slot than the slot has.
        let blocks_per_page = u64::from(group.blocks_per_page(self.size));
        let blocks_of_each_slot = (blocks_per_page / least_width).clamp(1, blocks_per_slot);

        let width = blocks_per_page / blocks_of_each_slot;
        width.min(widest.into()) as u16
    }

    /// Adds a tile, whose slots and pages are allocated, to the directory. If the directory has no
    /// tile of its group yet, the group is added first. Their records are added to those of the
    /// newest directory page, which are kept in memory: the caller must write that page
    /// (`Chain::newest_page`) after the last tile.
    ///
    /// If the page has no room for the records, a new directory page is allocated for them. Then
    /// the bytes of the page that was full are returned, for callers that haven't written it yet;
    /// otherwise `None`.
    ///
    /// Fails with [`crate::Class::TooLarge`] if no page number is left.
    pub(super) fn append(
        &mut self,
        group: &FilterGroup,
        tile: Tile,
    ) -> error::Result<Option<List<u8>>> {
        let is_new_group = self.group(tile.group).is_none();
        let mut records = List::new();
        if is_new_group {
            records.extend(encode_group(group));
        }
        records.extend(encode_tile(&tile));

        let full_page = self.make_room_for_records(records.len())?;
        self.newest_records.extend(records);

        if is_new_group {
            self.add_group(group.clone());
        }
        self.add_tile(tile);
        Ok(full_page)
    }

    /// Makes sure that the newest *directory page*, whose records say where the tiles of the index
    /// are, has room for `more_bytes` bytes of records: begins a new page if it hasn't. Returns the
    /// bytes of the page that was full; `None` if there was room, or no directory page at all.
    ///
    /// Fails with [`crate::Class::TooLarge`] if no page number is left.
    fn make_room_for_records(&mut self, more_bytes: usize) -> error::Result<Option<List<u8>>> {
        let has_directory_page = !self.chain.pages.is_empty();
        let most_bytes = self.size.payload_bytes() - DIRECTORY_HEADER;
        if has_directory_page && self.newest_records.len() + more_bytes <= most_bytes {
            return Ok(None);
        }

        let full_page = if has_directory_page {
            Some(self.chain.newest_page(self.size, &self.newest_records).bytes)
        } else {
            None
        };
        let new_page = self.chain.allocate(1)?;
        self.chain.pages.push(new_page);
        self.newest_records.clear();
        Ok(full_page)
    }
}
