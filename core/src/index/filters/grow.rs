//! New tiles: how wide, and where.
//!
//! A tile has its full size from the start, and each costs a question a page. So a group's tiles are narrow while it
//! has few filters: a new one has a quarter as many slots as there are, until it is as wide as it can be. Filters so
//! small that a tile is a few pages begin with one that fills its pages, and double.

use super::directory::Directory;
use super::group::Group;
use super::meta::{TILE_BYTES, group_record, tile_record};
use super::tile::{Tile, widest};
use crate::error::Result;
use crate::index::chain;
use crate::index::page::PageNumber;

/// Filters of at most so many blocks are small.
const SMALL_BLOCKS: u64 = 4;

/// A directory with one more tile.
#[derive(Clone, Debug)]
pub struct Growth {
    /// What the metapage becomes: [`Directory::write_meta`].
    pub directory: Directory,
    /// The directory page that has the tile's record, which may be a new one: its number and all of its bytes,
    /// PostgreSQL's header being zero.
    pub page: (PageNumber, Vec<u8>),
}

impl Directory {
    /// Adds a tile for a group, and the group if it is new.
    ///
    /// The caller holds the metapage's exclusive lock, under which this directory is current. It writes the metapage
    /// and the directory page with one WAL record, and gives up the lock. Nothing else changes: pages of new tiles, and
    /// their row page, are read as empty until they are written.
    ///
    /// # Errors
    /// [`crate::Class::TooLarge`] when there are no numbers left for pages.
    pub fn grow(&self, group: &Group) -> Result<Growth> {
        let mut directory = self.clone();
        let known = self.group_number(group);
        let number = known.unwrap_or(self.groups().count() as u32);
        let width = self.next_width(group, self.slots(number));
        let (row_page, first_slot) = match directory.next_slot(number, width) {
            Some(page) => (page.page, page.slots),
            None => (directory.chain.allocate(1)?, 0),
        };
        let pages = directory.pages_of(group, width);
        let first_page = if pages == 0 { 0 } else { directory.chain.allocate(pages)? };
        let ordinal = directory.tiles;
        let tile = Tile { ordinal, group: number, width, first_slot, row_page, first_page };
        directory.append(known.is_none().then_some(group), tile)?;
        directory.chain.generation = directory.chain.generation.wrapping_add(1);
        let page = directory.newest_page();
        Ok(Growth { directory, page })
    }

    /// How wide the next tile is of a group that has so many slots.
    fn next_width(&self, group: &Group, slots: u64) -> u16 {
        let most = self.widest(group);
        let blocks = group.shape.blocks;
        if blocks == 0 {
            return most;
        }
        let wanted = if blocks <= SMALL_BLOCKS { slots } else { slots / 4 };
        let wanted = wanted.clamp(1, most.into()) as u16;
        let room = widest(self.size, group.block_bytes());
        // As many slots as fit the page when it has so many blocks of each.
        let per_page = u64::from(room / u32::from(wanted)).clamp(1, blocks);
        ((u64::from(room) / per_page) as u16).min(most)
    }

    /// Whether a tile's record needs another directory page, with that of its group if that is given.
    pub(super) fn is_full(&self, group: Option<&Group>) -> bool {
        let group = group.map_or(0, |group| group_record(group).len());
        self.newest.len() + group + TILE_BYTES > chain::room(self.size)
    }

    /// Adds a tile whose pages were given away, and the group before it if that is given. Where the newest directory
    /// page is full, another one becomes the newest.
    pub(super) fn append(&mut self, group: Option<&Group>, tile: Tile) -> Result<()> {
        if self.chain.pages().is_empty() || self.is_full(group) {
            self.chain.add_page()?;
            self.newest.clear();
        }
        if let Some(group) = group {
            self.newest.extend(group_record(group));
            self.place_group(group.clone());
        }
        self.newest.extend(tile_record(&tile));
        self.place(tile);
        Ok(())
    }
}
