//! New tiles: how wide they are, and where.
//!
//! A tile has its full size from the start, and each costs a lookup one page. So a group's tiles are narrow while it
//! has few filters: a new one has a quarter as many slots as there are, up to the greatest width. For filters so small
//! that a tile has only a few pages, the first tile fills its pages, and each further one doubles the slots.

use super::directory::Directory;
use super::group::Group;
use super::meta::{TILE_BYTES, group_record, tile_record};
use super::row_page::room;
use super::tile::Tile;
use crate::error::Result;
use crate::index::chain;
use crate::index::page::PageNumber;

/// Filters with at most so many blocks are small.
const SMALL_BLOCKS: u64 = 4;

/// A directory with one more tile.
#[derive(Clone, Debug)]
pub struct Growth {
    /// The new contents of the metapage: [`Directory::write_meta`].
    pub directory: Directory,
    /// The directory page with the tile's record, which may be a new page: its number and its bytes. PostgreSQL's
    /// header is zero.
    pub page: (PageNumber, Vec<u8>),
}

impl Directory {
    /// Adds a tile for a group, and the group if it is new.
    ///
    /// The caller must hold the exclusive lock of the metapage, and the directory must be current. It then writes the
    /// metapage and the directory page with one WAL record, and releases the lock. Nothing else changes: pages of new
    /// tiles, and their row page, are read as empty until they are written.
    ///
    /// # Errors
    /// [`crate::Class::TooLarge`] if there are too few numbers left for pages.
    pub fn grow(&self, group: &Group) -> Result<Growth> {
        let mut directory = self.clone();
        let number = self.group_number(group).unwrap_or(self.groups().count() as u32);
        let width = self.next_width(group, self.slots(number));
        let (row_page, first_slot) = match self.row_pages(number).last() {
            Some(last) if last.slots + width <= room(self.size) => (last.page, last.slots),
            _ => (directory.chain.allocate(1)?, 0),
        };
        let first_page = directory.allocate(group, width)?;
        let tile = Tile { ordinal: self.tiles, group: number, width, first_slot, row_page, first_page };
        directory.append(group, tile)?;
        directory.chain.generation = directory.chain.generation.wrapping_add(1);
        let page = directory.newest_page();
        Ok(Growth { directory, page })
    }

    /// The width of the next tile of a group with this number of slots.
    fn next_width(&self, group: &Group, slots: u64) -> u16 {
        let most = self.widest(group);
        let blocks = group.shape.blocks;
        if blocks == 0 {
            return most;
        }
        let wanted = if blocks <= SMALL_BLOCKS { slots } else { slots / 4 };
        let wanted = wanted.clamp(1, most.into()) as u16;
        let room = group.blocks_per_page(self.size);
        // As many slots as fill the page with this number of blocks of each.
        let per_page = u64::from(room / u32::from(wanted)).clamp(1, blocks);
        ((u64::from(room) / per_page) as u16).min(most)
    }

    /// Adds a tile whose pages are allocated, and before it its group if that is new. If the newest directory page is
    /// full, another one becomes the newest; then returns the full one.
    pub(super) fn append(&mut self, group: &Group, tile: Tile) -> Result<Option<(PageNumber, Vec<u8>)>> {
        let new = if self.group(tile.group).is_none() { group_record(group) } else { Vec::new() };
        let is_full = self.newest.len() + new.len() + TILE_BYTES > chain::room(self.size);
        let full = is_full.then(|| self.newest_page());
        if is_full || self.chain.pages().is_empty() {
            self.chain.add_page()?;
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
