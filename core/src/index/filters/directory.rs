//! Where the tiles are: groups, their tiles, and the row pages of these. It is stored as a list of
//! records, each a group, or a tile of a group, to which new ones are added: a million filters of
//! one shape are 24 pages of them.
//!
//! `meta` reads it, and `grow` adds tiles.

use super::row_page::{RowPage, slots_per_row_page};
use super::tile::{FilterGroup, Grid, Slot, Tile};
use crate::error::Result;
use crate::index::chain::Chain;
use crate::index::page::{PageNumber, PageSize};
use crate::memory::List;

/// All tiles of an index, according to its metapage and directory pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    pub size: PageSize,
    pub chain: Chain,
    /// The records of the newest directory page.
    pub(super) newest_records: List<u8>,
    /// How many tiles there are, of all groups together.
    pub(super) tile_count: u32,
    /// Groups are numbered by their places in this list.
    groups: List<GroupEntry>,
}

/// A group and where the filters of it are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupEntry {
    group: FilterGroup,
    /// In the order of their row pages, and of their first slots there.
    tiles: List<Tile>,
    row_pages: List<RowPage>,
}

impl Directory {
    /// Returns the directory of an index without tiles.
    pub fn empty(size: PageSize) -> Directory {
        Directory {
            size,
            chain: Chain::empty(),
            newest_records: List::new(),
            tile_count: 0,
            groups: List::new(),
        }
    }

    /// Returns all groups with their numbers.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &FilterGroup)> {
        (0..).zip(self.groups.iter().map(|entry| &entry.group))
    }

    /// Returns the group with this number; `None` if there are fewer.
    pub fn group(&self, number: u32) -> Option<&FilterGroup> {
        self.groups.get(number as usize).map(|entry| &entry.group)
    }

    /// Returns the number of a group; `None` if the index has no tiles of it.
    pub fn group_number(&self, group: &FilterGroup) -> Option<u32> {
        let number = self.groups.iter().position(|entry| entry.group == *group)?;
        Some(number as u32)
    }

    /// Returns the tiles of the group with this number. Tiles with the same row page are
    /// neighbours.
    pub fn tiles(&self, group: u32) -> &[Tile] {
        self.groups.get(group as usize).map_or(&[], |entry| &entry.tiles)
    }

    /// Returns the row pages of the group with this number, in the order of its tiles.
    pub fn row_pages(&self, group: u32) -> &[RowPage] {
        self.groups.get(group as usize).map_or(&[], |entry| &entry.row_pages)
    }

    /// Returns the row pages of all groups.
    pub fn all_row_pages(&self) -> impl Iterator<Item = &RowPage> {
        self.groups.iter().flat_map(|entry| &entry.row_pages)
    }

    /// Returns how many pages a lookup reads at most for one element: the metapage, one page of
    /// each tile, and all row pages.
    pub fn pages_per_lookup(&self) -> u64 {
        let row_pages = self.all_row_pages().count() as u64;
        1 + u64::from(self.tile_count) + row_pages
    }

    /// Returns how many slots the group with this number has, including free ones.
    pub fn slots(&self, group: u32) -> u64 {
        self.row_pages(group).iter().map(|page| u64::from(page.slots)).sum()
    }

    /// Returns the slot, a place for a filter, that has this number in a row page; `None` if no
    /// tile has it.
    pub fn slot(&self, page: &RowPage, number: u16) -> Option<Slot> {
        // Tiles are sorted by row page and first slot. The slot is in the last tile that begins
        // with it or before it.
        let tiles = self.tiles(page.group);
        let tiles_begun =
            tiles.partition_point(|tile| (tile.row_page, tile.first_slot) <= (page.number, number));
        let tile = tiles[..tiles_begun].last()?;

        let is_in_tile = tile.row_page == page.number && tile.slots().contains(&number);
        is_in_tile.then_some(Slot { tile: *tile, number })
    }

    /// Adds a group, which gets the next number.
    pub(super) fn add_group(&mut self, group: FilterGroup) {
        self.groups
            .push(GroupEntry { group, tiles: List::new(), row_pages: List::new() });
    }

    /// Adds a tile after the others of its group, and its row page if that is new.
    ///
    /// A tile has *slots*, each of which is a place for one filter. A *row page* says to which row
    /// of the table the filter in each slot belongs, for one tile or several, and numbers the
    /// slots. So a tile whose first slot is 0 begins a row page; otherwise it must continue the
    /// last one of its group.
    pub(super) fn add_tile(&mut self, tile: Tile) {
        let entry = &mut self.groups[tile.group as usize];
        if tile.first_slot == 0 {
            entry.row_pages.push(RowPage {
                number: tile.row_page,
                group: tile.group,
                slots: 0,
                size: self.size,
            });
        }
        let row_page = entry.row_pages.last_mut().expect("a first tile has slot 0");
        // How many slots of the row page belong to tiles.
        row_page.slots = tile.slots().end;
        entry.tiles.push(tile);
        self.tile_count += 1;
    }

    /// Returns how many slots a tile of a group may have: one block of each fits into a page, and
    /// their rows into a row page.
    pub(super) fn widest(&self, group: &FilterGroup) -> u16 {
        let blocks_per_page = group.blocks_per_page(self.size) as u16;
        blocks_per_page.min(slots_per_row_page(self.size))
    }

    /// Allocates the pages of a tile, and returns the number of the first; 0 if the tile has none.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few page numbers are left.
    pub(super) fn allocate(&mut self, grid: Grid) -> Result<PageNumber> {
        match grid.pages() {
            0 => Ok(0),
            pages => self.chain.allocate(pages),
        }
    }
}
