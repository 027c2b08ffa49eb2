//! Where the tiles are: groups, their tiles, and the row pages of these. It is stored as a list of
//! records, each a group, or a tile of a group, to which new ones are added: a million filters of
//! one shape are 24 pages of them.

use super::row_page::{RowPage, room};
use super::tile::{Grid, Group, Slot, Tile};
use crate::error::Result;
use crate::index::chain::Chain;
use crate::index::page::{PageNumber, PageSize};

/// All tiles of an index, according to its metapage and directory pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    pub size: PageSize,
    pub chain: Chain,
    /// The records of the newest directory page.
    pub(super) newest: Vec<u8>,
    pub(super) tiles: u32,
    groups: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    group: Group,
    /// In the order of their row pages, and of their first slots there.
    tiles: Vec<Tile>,
    row_pages: Vec<RowPage>,
}

impl Directory {
    pub fn empty(size: PageSize) -> Directory {
        Directory {
            size,
            chain: Chain::empty(),
            newest: Vec::new(),
            tiles: 0,
            groups: Vec::new(),
        }
    }

    /// All groups with their numbers.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Group)> {
        (0..).zip(self.groups.iter().map(|member| &member.group))
    }

    pub fn group(&self, number: u32) -> Option<&Group> {
        self.groups.get(number as usize).map(|member| &member.group)
    }

    /// The number of a group, if it has tiles.
    pub fn group_number(&self, group: &Group) -> Option<u32> {
        self.groups
            .iter()
            .position(|member| member.group == *group)
            .map(|number| number as u32)
    }

    /// The tiles of a group; those of the same row page are neighbours.
    pub fn tiles(&self, group: u32) -> &[Tile] {
        self.groups.get(group as usize).map_or(&[], |member| &member.tiles)
    }

    pub fn row_pages(&self, group: u32) -> &[RowPage] {
        self.groups
            .get(group as usize)
            .map_or(&[], |member| &member.row_pages)
    }

    pub fn all_row_pages(&self) -> impl Iterator<Item = &RowPage> {
        self.groups.iter().flat_map(|member| &member.row_pages)
    }

    /// Pages that a lookup reads if each tile may have the element: the metapage, one of each tile,
    /// and the row pages.
    pub fn pages_per_lookup(&self) -> u64 {
        1 + u64::from(self.tiles) + self.all_row_pages().count() as u64
    }

    /// How many slots a group has, including free ones.
    pub fn slots(&self, group: u32) -> u64 {
        self.row_pages(group).iter().map(|page| u64::from(page.slots)).sum()
    }

    pub fn slot(&self, page: &RowPage, number: u16) -> Option<Slot> {
        let tiles = self.tiles(page.group);
        let place = (page.page, number);
        let tile = tiles[..tiles.partition_point(|tile| (tile.row_page, tile.first_slot) <= place)]
            .last()?;
        (tile.row_page == page.page && tile.slots().contains(&number))
            .then_some(Slot { tile: *tile, number })
    }

    pub(super) fn place_group(&mut self, group: Group) {
        self.groups
            .push(Member { group, tiles: Vec::new(), row_pages: Vec::new() });
    }

    /// Adds a tile after those of its group. One whose first slot is 0 begins a row page.
    pub(super) fn place(&mut self, tile: Tile) {
        let member = &mut self.groups[tile.group as usize];
        if tile.first_slot == 0 {
            member.row_pages.push(RowPage {
                page: tile.row_page,
                group: tile.group,
                slots: 0,
                size: self.size,
            });
        }
        member.row_pages.last_mut().expect("a first tile has slot 0").slots = tile.slots().end;
        member.tiles.push(tile);
        self.tiles += 1;
    }

    /// How many slots a tile of a group may have.
    pub(super) fn widest(&self, group: &Group) -> u16 {
        room(self.size).min(group.blocks_per_page(self.size) as u16)
    }

    /// Allocates the pages of a tile. Returns the first; 0 if it has none.
    pub(super) fn allocate(&mut self, grid: Grid) -> Result<PageNumber> {
        match grid.pages() {
            0 => Ok(0),
            pages => self.chain.allocate(pages),
        }
    }
}
