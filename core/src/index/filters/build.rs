//! Building an index in one pass: the filters of rows in any order.
//!
//! ```text
//! filter ──▶ kept with others of its group, until they fill a tile or memory ──▶ tile, written at once
//!       └──▶ its row, in the group's row page, which is written when all of its slots belong to tiles
//! end    ──▶ tiles for what is left, row pages, directory pages
//! ```

use super::directory::Directory;
use super::row_page::{RowPage, slots_per_row_page};
use super::tile::{FilterGroup, Grid, Tile, slot_bits};
use crate::error;
use crate::filter::View;
use crate::index::page::{ByteChange, PageSink, PageSize, RowId};
use crate::interrupt;
use crate::memory::List;
use std::ops::Range;

/// What a build keeps of a group until it is written.
struct PendingGroup {
    group: FilterGroup,
    /// The number of the group; `None` until it has a tile. Groups are numbered in the order of
    /// their first tiles.
    number: Option<u32>,
    /// The bits of the filters whose tile was not written yet, one filter after the other.
    bits: List<u8>,
    /// The rows of these filters.
    rows: List<RowId>,
    row_page: PendingRowPage,
}

/// A row page that is not full yet. It gets its page number when it is written.
struct PendingRowPage {
    address: RowPage,
    /// The bytes of the page; empty if no tile has slots in it yet.
    bytes: List<u8>,
    /// The tiles that have its slots, by their indexes in [`Build::tiles`].
    tiles: List<usize>,
}

/// An index that is being built. Call [`Build::add`] for each row, then [`Build::finish`].
pub struct Build {
    /// Has no tiles before the end; until then only pages are allocated in it.
    directory: Directory,
    /// How many bytes of filters are kept at most.
    most_bytes: usize,
    groups: List<PendingGroup>,
    /// All tiles so far. The row page of a tile is set when that is written.
    tiles: List<Tile>,
}

impl PendingGroup {
    /// Returns a group without filters.
    fn new(group: FilterGroup, size: PageSize) -> PendingGroup {
        let address = RowPage { number: 0, group: 0, slots: 0, size };
        PendingGroup {
            group,
            number: None,
            bits: List::new(),
            rows: List::new(),
            row_page: PendingRowPage { address, bytes: List::new(), tiles: List::new() },
        }
    }

    /// Adds the filter of a row, given its bits. For the first filter, memory for `expected_bytes`
    /// is reserved, so that the bits of the others don't move.
    fn keep(&mut self, row: RowId, bits: &[u8], expected_bytes: usize) {
        if self.bits.capacity() == 0 {
            self.bits.reserve_exact(expected_bytes);
        }
        self.bits.reserve_exact(bits.len());
        self.bits.extend_from_slice(bits);
        self.rows.push(row);
    }
}

impl PendingRowPage {
    /// Returns the first slot of the page that no tile has, where the next tile begins.
    fn next_slot(&self) -> u16 {
        self.address.slots
    }

    /// Returns whether the page has room for the slots of another tile of this width.
    fn has_room_for(&self, width: u16) -> bool {
        self.next_slot() + width <= slots_per_row_page(self.address.size)
    }

    /// Notes a tile whose slots are the next ones of the page, and the rows of these slots, which
    /// are places for filters: the first slot gets the first row, and so on. Slots without a row
    /// stay free.
    fn note_tile(&mut self, tile: &Tile, rows: &[RowId]) {
        // Tiles are numbered by their indexes in Build::tiles.
        self.tiles.push(tile.ordinal as usize);
        self.address.group = tile.group;
        // Allocates the page if this is its first tile.
        self.bytes.resize(self.address.size.bytes(), 0);
        for (slot, row) in tile.slots().zip(rows) {
            for change in self.address.claim(slot, *row) {
                self.change(change);
            }
            self.change(self.address.publish(slot));
        }
        // The next tile gets the slots of the page after these.
        self.address.slots = tile.slots().end;
    }

    /// Changes a byte of the page.
    fn change(&mut self, change: ByteChange) {
        self.bytes[usize::from(change.offset)] = change.value;
    }
}

impl Build {
    /// Begins an index with pages of this size. At most `most_bytes` bytes of filters are kept in
    /// memory, but at least one filter.
    pub fn new(size: PageSize, most_bytes: usize) -> Build {
        Build {
            directory: Directory::empty(size),
            most_bytes,
            groups: List::new(),
            tiles: List::new(),
        }
    }

    /// Adds a row of the table with its filter. A filter that can have no elements is left out,
    /// since no lookup must find it.
    ///
    /// Filters are kept in memory by *group*: filters of one shape and one kind of elements. As
    /// soon as those of one group fill a *tile*, pages with filters of one group side by side, they
    /// are written. If the kept filters of all groups take more than the memory that is allowed,
    /// those of the largest group are written before they fill a tile.
    ///
    /// Fails with [`crate::Class::TooLarge`] if page numbers run out, or if a page can't be
    /// written.
    pub fn add<S: PageSink>(
        &mut self,
        sink: &mut S,
        row: RowId,
        filter: &View<'_>,
    ) -> Result<(), S::Error> {
        let Some(group) = FilterGroup::of_filter(filter) else {
            return Ok(());
        };
        self.directory.chain.rows_built += 1;

        let bits = slot_bits(filter, &group);
        let filters_per_tile = usize::from(self.directory.widest(&group));
        let bytes_of_tile = bits.len().saturating_mul(filters_per_tile);
        // No more than this will be kept of the group.
        let expected_bytes = bytes_of_tile.min(self.most_bytes.max(bits.len()));

        let group_index = self.find_or_add_group(group);
        let pending = &mut self.groups[group_index];
        pending.keep(row, &bits, expected_bytes);

        let fills_tile = pending.rows.len() == filters_per_tile;
        if fills_tile {
            return self.write_tiles(sink, group_index);
        }
        let bytes_kept: usize = self.groups.iter().map(|pending| pending.bits.len()).sum();
        if bytes_kept > self.most_bytes {
            let largest_group = self.index_of_largest_group();
            self.write_tiles(sink, largest_group)?;
        }
        Ok(())
    }

    /// Ends the build: writes the filters that are still in memory, then the pages that say which
    /// rows of the table the filters belong to (*row pages*), and then those that say where the
    /// filters are (*directory pages*). Returns the directory. The caller must write its metapage.
    ///
    /// Fails with [`crate::Class::TooLarge`] if page numbers run out, or if a page can't be
    /// written.
    pub fn finish<S: PageSink>(mut self, sink: &mut S) -> Result<Directory, S::Error> {
        for group_index in 0..self.groups.len() {
            self.write_tiles(sink, group_index)?;
            self.write_row_page(sink, group_index)?;
        }

        // The record of a tile has the number of its row page. All row pages have numbers now, so
        // the tiles can be added to the directory, each with the group of its filters.
        let Build { mut directory, groups, tiles, .. } = self;
        for tile in tiles {
            let pending = groups
                .iter()
                .find(|pending| pending.number == Some(tile.group))
                .expect("the group of a tile has a number");
            if let Some(full_directory_page) = directory.append(&pending.group, tile)? {
                sink.write(&full_directory_page)?;
            }
        }

        let has_directory_page = !directory.chain.pages.is_empty();
        if has_directory_page {
            let newest = directory.chain.newest_page(directory.size, &directory.newest_records);
            sink.write(&newest.bytes)?;
        }
        Ok(directory)
    }

    /// Returns the index of a group in [`Build::groups`], and adds the group if it is new.
    fn find_or_add_group(&mut self, group: FilterGroup) -> usize {
        let known = self.groups.iter().position(|pending| pending.group == group);
        known.unwrap_or_else(|| {
            self.groups.push(PendingGroup::new(group, self.directory.size));
            self.groups.len() - 1
        })
    }

    /// Returns the index of the group in [`Build::groups`] whose filters take most memory. Panics
    /// if there is no group.
    fn index_of_largest_group(&self) -> usize {
        (0..self.groups.len())
            .max_by_key(|&index| self.groups[index].bits.len())
            .expect("a filter is kept")
    }

    /// Writes the filters of one group that are in memory, and removes them from there. They become
    /// one tile or several, each of which has filters of the group side by side. `group_index` is
    /// the index of the group in [`Build::groups`].
    ///
    /// Fails with [`crate::Class::TooLarge`] if page numbers run out, or if a page can't be
    /// written.
    fn write_tiles<S: PageSink>(
        &mut self,
        sink: &mut S,
        group_index: usize,
    ) -> Result<(), S::Error> {
        let mut next_filter = 0;
        while next_filter < self.groups[group_index].rows.len() {
            next_filter = self.write_tile(sink, group_index, next_filter)?;
        }

        let pending = &mut self.groups[group_index];
        pending.bits = List::new();
        pending.rows.clear();
        Ok(())
    }

    /// Returns the width of the next tile of a group: how many *slots* it gets, each of which is
    /// the place of one filter; at most [`Directory::widest`]. `filters` filters are left to be
    /// written, at least one. Each page of the tile will have the same number of blocks of every
    /// slot:
    ///
    /// 1. as many blocks as fit if the tile has a slot for each filter;
    /// 2. one more if the filters would fill less than three quarters of the page, unless it has
    ///    all blocks of each filter already.
    ///
    /// The tile gets as many slots as fit into its pages then. Filters without a slot need another
    /// tile. Examples, where a page has room for 127 blocks:
    ///
    /// ```text
    /// filters left       blocks of each slot in a page                          slots
    /// 50 of 100 blocks   127 / 50 = 2, since the filters fill 100 of the 127    127 / 2 = 63
    /// 90 of 100 blocks   127 / 90 = 1, but the filters would fill only 90: 2    127 / 2 = 63
    /// 20 of 3 blocks     3, which are all, though the filters fill only 60      127 / 3 = 42
    /// ```
    fn width_for(&self, group: &FilterGroup, filters: usize) -> u16 {
        let widest = self.directory.widest(group);
        let blocks_per_slot = group.shape.blocks;
        // A tile without blocks has no pages, however wide it is.
        if blocks_per_slot == 0 || filters >= usize::from(widest) {
            return widest;
        }

        let filters = filters as u64;
        let blocks_per_page = u64::from(group.blocks_per_page(self.directory.size));
        let mut blocks_of_each_slot = (blocks_per_page / filters).clamp(1, blocks_per_slot);

        let blocks_filled = filters * blocks_of_each_slot;
        let wastes_pages = blocks_filled < blocks_per_page * 3 / 4;
        let has_whole_filters = blocks_of_each_slot == blocks_per_slot;
        if wastes_pages && !has_whole_filters {
            blocks_of_each_slot += 1;
        }

        let width = (blocks_per_page / blocks_of_each_slot).max(1) as u16;
        width.min(widest)
    }

    /// Writes a *tile*: neighbouring pages that have the bits of filters side by side. They are
    /// filters of one group that are kept in memory, from index `first_filter` on, as many as the
    /// tile has slots for. Returns the index of the first filter after these. `group_index` is the
    /// index of the group in [`Build::groups`].
    ///
    /// The rows of the table that the filters belong to are noted on the group's *row page*, which
    /// is kept in memory as well. If it lacks room for the tile, it is written, and a new one
    /// begins.
    ///
    /// Fails with [`crate::Class::TooLarge`] if page numbers run out, or if a page can't be
    /// written.
    fn write_tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        group_index: usize,
        first_filter: usize,
    ) -> Result<usize, S::Error> {
        let pending = &self.groups[group_index];
        let filters_left = pending.rows.len() - first_filter;
        let width = self.width_for(&pending.group, filters_left);
        if !pending.row_page.has_room_for(width) {
            self.write_row_page(sink, group_index)?;
        }
        let tile = self.allocate_tile(group_index, width)?;

        // The tile may have more slots, which stay free.
        let num_filters = filters_left.min(usize::from(width));
        let end_filter = first_filter + num_filters;
        let filters = first_filter..end_filter;
        let pending = &mut self.groups[group_index];
        pending.row_page.note_tile(&tile, &pending.rows[filters.clone()]);
        write_tile_pages(sink, self.directory.size, &tile, pending.bits_of(&filters))?;
        Ok(end_filter)
    }

    /// Allocates a tile of this width for filters of a group, adds it to [`Build::tiles`], and
    /// returns it. Nothing is written. Its *slots*, the places for filters, are the next ones of
    /// the group's row page, which must have room for them, and is not changed. `group_index` is
    /// the index of the group in [`Build::groups`].
    ///
    /// Fails with [`crate::Class::TooLarge`] if page numbers run out.
    fn allocate_tile(&mut self, group_index: usize, width: u16) -> error::Result<Tile> {
        let group_number = self.number_of_group(group_index);
        let PendingGroup { group, row_page, .. } = &self.groups[group_index];
        let grid = Grid::new(self.directory.size, group, width);
        let tile = Tile {
            ordinal: self.tiles.len() as u32,
            group: group_number,
            width,
            first_slot: row_page.next_slot(),
            // The row page gets its number when it is written.
            row_page: 0,
            first_page: self.directory.allocate(grid)?,
            grid,
        };
        self.tiles.push(tile);
        Ok(tile)
    }

    /// Returns the number by which the index knows a group, and gives it the next one if it has
    /// none yet: groups are numbered in the order of their first tiles. `group_index` is the index
    /// of the group in [`Build::groups`].
    fn number_of_group(&mut self, group_index: usize) -> u32 {
        let groups_with_number = self.groups.iter().filter(|pending| pending.number.is_some());
        let next_number = groups_with_number.count() as u32;
        *self.groups[group_index].number.get_or_insert(next_number)
    }

    /// Writes the *row page* of a group, which says to which rows of the table the filters in the
    /// last tiles of the group belong, and begins an empty one. The page gets its number only now,
    /// and so do the tiles that use it. Does nothing if no tile was written since the last row
    /// page. `group_index` is the index of the group in [`Build::groups`].
    ///
    /// Fails with [`crate::Class::TooLarge`] if page numbers run out, or if a page can't be
    /// written.
    fn write_row_page<S: PageSink>(
        &mut self,
        sink: &mut S,
        group_index: usize,
    ) -> Result<(), S::Error> {
        let row_page = &mut self.groups[group_index].row_page;
        if row_page.bytes.is_empty() {
            return Ok(());
        }

        let page = self.directory.chain.allocate(1)?;
        for tile in row_page.tiles.drain(..) {
            self.tiles[tile].row_page = page;
        }

        let mut bytes = std::mem::take(&mut row_page.bytes);
        row_page.address.special().write(&mut bytes);
        sink.write(&bytes)?;
        row_page.address.slots = 0;
        Ok(())
    }
}

/// Bits of some filters of one shape, one filter after the other.
#[derive(Clone, Copy)]
struct FilterBits<'b> {
    bits: &'b [u8],
    bytes_per_filter: usize,
}

impl PendingGroup {
    /// Returns the bits of some of the filters that are kept, which are given by their places in
    /// `self.rows`.
    fn bits_of(&self, filters: &Range<usize>) -> FilterBits<'_> {
        let bytes_per_filter = self.bits.len() / self.rows.len();
        let bits = &self.bits[filters.start * bytes_per_filter..filters.end * bytes_per_filter];
        FilterBits { bits, bytes_per_filter }
    }
}

/// Writes all pages of a *tile*, which has filters of one shape side by side: each page has some
/// neighbouring blocks of the first filter, then the same blocks of the next one, and so on. If the
/// tile has room for more filters, their places stay zero.
///
/// Fails if a page can't be written.
fn write_tile_pages<S: PageSink>(
    sink: &mut S,
    size: PageSize,
    tile: &Tile,
    filters: FilterBits<'_>,
) -> Result<(), S::Error> {
    let bytes_per_page = tile.grid.slot_bytes_per_page();
    let mut page = List::filled(0, size.bytes());
    for start in (0..filters.bytes_per_filter).step_by(bytes_per_page) {
        interrupt::check();
        page.fill(0);
        // The last page may have less of each filter.
        let length = bytes_per_page.min(filters.bytes_per_filter - start);
        let places = page[size.payload()].chunks_exact_mut(bytes_per_page);
        for (place, bits) in places.zip(filters.bits.chunks_exact(filters.bytes_per_filter)) {
            place[..length].copy_from_slice(&bits[start..][..length]);
        }
        tile.special().write(&mut page);
        sink.write(&page)?;
    }
    Ok(())
}
