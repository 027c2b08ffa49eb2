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
use crate::filter::View;
use crate::index::page::{PageSink, PageSize, RowId};
use crate::interrupt;
use crate::memory;
use std::ops::Range;

/// What a build keeps of a group until it is written.
struct PendingGroup {
    group: FilterGroup,
    /// The number of the group; `None` until it has a tile. Groups are numbered in the order of
    /// their first tiles.
    number: Option<u32>,
    /// The bits of the filters whose tile was not written yet, one filter after the other.
    bits: Vec<u8>,
    /// The rows of these filters.
    rows: Vec<RowId>,
    row_page: PendingRowPage,
}

/// A row page that is not full yet. It gets its page number when it is written.
struct PendingRowPage {
    address: RowPage,
    /// The bytes of the page; empty if no tile has slots in it yet.
    bytes: Vec<u8>,
    /// The tiles that have its slots, by their indices in [`Build::tiles`].
    tiles: Vec<usize>,
}

/// An index that is being built. Call [`Build::add`] for each row, then [`Build::finish`].
pub struct Build {
    /// Has no tiles before the end; until then only pages are allocated in it.
    directory: Directory,
    /// How many bytes of filters are kept at most.
    most_bytes: usize,
    groups: Vec<PendingGroup>,
    /// All tiles so far. The row page of a tile is set when that is written.
    tiles: Vec<Tile>,
}

impl PendingGroup {
    /// Returns a group without filters.
    fn new(group: FilterGroup, size: PageSize) -> PendingGroup {
        let address = RowPage { page: 0, group: 0, slots: 0, size };
        PendingGroup {
            group,
            number: None,
            bits: Vec::new(),
            rows: Vec::new(),
            row_page: PendingRowPage { address, bytes: Vec::new(), tiles: Vec::new() },
        }
    }

    /// Adds the filter of a row. If it is the first, memory for `expected_bytes` is reserved.
    fn keep(&mut self, row: RowId, bits: &[u8], expected_bytes: usize) {
        if self.bits.capacity() == 0 {
            memory::reserve(&mut self.bits, expected_bytes);
        }
        memory::reserve(&mut self.bits, bits.len());
        self.bits.extend_from_slice(bits);
        memory::push(&mut self.rows, row);
    }
}

impl PendingRowPage {
    /// Gives slots of a tile to rows: the first slot to the first row, and so on.
    fn add_tile(&mut self, tile: &Tile, rows: &[RowId]) {
        self.bytes.resize(self.address.size.bytes(), 0);
        for (slot, row) in tile.slots().zip(rows) {
            for change in self.address.claim(slot, *row) {
                self.bytes[usize::from(change.offset)] = change.value;
            }
            let published = self.address.publish(slot);
            self.bytes[usize::from(published.offset)] = published.value;
        }
        self.address.slots = tile.slots().end;
    }
}

impl Build {
    /// Begins an index with pages of this size. At most `most_bytes` bytes of filters are kept in
    /// memory, but at least one filter.
    pub fn new(size: PageSize, most_bytes: usize) -> Build {
        Build {
            directory: Directory::empty(size),
            most_bytes,
            groups: Vec::new(),
            tiles: Vec::new(),
        }
    }

    /// Adds a row with its filter. Filters are kept in memory until a tile can be made of them,
    /// which has the filters of one group (of one shape) side by side.
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
        let widest = usize::from(self.directory.widest(&group));
        // Enough for a tile, or for what may be kept, so that the bits need not move.
        let bytes_of_tile = bits.len().saturating_mul(widest);
        let expected_bytes = bytes_of_tile.min(self.most_bytes.max(bits.len()));

        let group_index = self.index_of_group(group);
        let pending = &mut self.groups[group_index];
        pending.keep(row, &bits, expected_bytes);

        // Filters are written as soon as they fill the widest tile, or take too much memory.
        let fills_tile = pending.rows.len() == widest;
        let bytes_kept: usize = self.groups.iter().map(|pending| pending.bits.len()).sum();
        if fills_tile {
            self.write_tiles(sink, group_index)?;
        } else if bytes_kept > self.most_bytes {
            let indices = 0..self.groups.len();
            let largest = indices.max_by_key(|&group_index| self.groups[group_index].bits.len());
            self.write_tiles(sink, largest.unwrap_or(group_index))?;
        }
        Ok(())
    }

    /// Writes what is left: tiles for the filters that are kept, the pages with the rows of tiles
    /// (row pages), and the directory pages, which say where the tiles are. Returns the directory,
    /// whose metapage the caller writes.
    ///
    /// Fails with [`crate::Class::TooLarge`] if page numbers run out, or if a page can't be
    /// written.
    pub fn finish<S: PageSink>(mut self, sink: &mut S) -> Result<Directory, S::Error> {
        for group_index in 0..self.groups.len() {
            self.write_tiles(sink, group_index)?;
            self.write_row_page(sink, group_index)?;
        }

        let Build { mut directory, groups, tiles, .. } = self;
        for tile in tiles {
            let pending = groups
                .iter()
                .find(|pending| pending.number == Some(tile.group))
                .expect("the group of a tile has a number");
            if let Some(full_page) = directory.append(&pending.group, tile)? {
                sink.write(&full_page)?;
            }
        }
        if !directory.chain.pages.is_empty() {
            let newest = directory.chain.newest_page(directory.size, &directory.newest_records);
            sink.write(&newest.bytes)?;
        }
        Ok(directory)
    }

    /// Returns the index of a group in [`Build::groups`], and adds the group if it is new.
    fn index_of_group(&mut self, group: FilterGroup) -> usize {
        let known = self.groups.iter().position(|pending| pending.group == group);
        known.unwrap_or_else(|| {
            self.groups.push(PendingGroup::new(group, self.directory.size));
            self.groups.len() - 1
        })
    }

    /// Writes the filters that are kept of the group with this index in [`Build::groups`], as
    /// tiles.
    ///
    /// Fails with [`crate::Class::TooLarge`] if page numbers run out, or if a page can't be
    /// written.
    fn write_tiles<S: PageSink>(
        &mut self,
        sink: &mut S,
        group_index: usize,
    ) -> Result<(), S::Error> {
        let mut written = 0;
        while written < self.groups[group_index].rows.len() {
            written = self.write_tile(sink, group_index, written)?;
        }
        let pending = &mut self.groups[group_index];
        pending.bits = Vec::new();
        pending.rows.clear();
        Ok(())
    }

    /// Returns how many slots a tile for some filters of a group should have. A slot has the blocks
    /// of one filter, and each page of the tile has the same number of blocks of every slot.
    ///
    /// The tile has room for all filters if they fill three quarters of its pages; slots are added
    /// until the pages are full. Else a page gets one more block of each slot. The tile then has
    /// fewer slots, and the filters that are left get another tile.
    ///
    /// For example, a page has room for 127 blocks, and filters have 100 blocks. Of 50 filters, a
    /// page has room for two blocks each (127 / 50). They fill 100 of the 127 places, so the tile
    /// gets 63 slots (127 / 2). Of 90 filters, a page has room for one block each. They fill 90
    /// places, which is less than three quarters. So a page gets two blocks of each slot, and the
    /// tile 63 slots again.
    fn width_for(&self, group: &FilterGroup, filters: usize) -> u16 {
        let widest = self.directory.widest(group);
        let blocks = group.shape.blocks;
        if blocks == 0 || filters >= usize::from(widest) {
            return widest;
        }

        let filters = filters as u64;
        let page_room = u64::from(group.blocks_per_page(self.directory.size));
        let mut blocks_per_slot = (page_room / filters).clamp(1, blocks);
        // A tile of one page can't have fewer pages.
        let has_one_page = blocks_per_slot == blocks;
        let fills_pages = filters * blocks_per_slot >= page_room * 3 / 4;
        if !has_one_page && !fills_pages {
            blocks_per_slot += 1;
        }
        let width = (page_room / blocks_per_slot).max(1) as u16;
        width.min(widest)
    }

    /// Writes the pages of a tile for filters of one group, beginning with filter number `first` of
    /// those that are kept of it. Returns the number of the first filter that the tile has no room
    /// for. `group_index` is the index of the group in [`Build::groups`].
    ///
    /// Fails with [`crate::Class::TooLarge`] if page numbers run out, or if a page can't be
    /// written.
    fn write_tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        group_index: usize,
        first: usize,
    ) -> Result<usize, S::Error> {
        let size = self.directory.size;
        let count = self.groups[group_index].rows.len();
        let width = self.width_for(&self.groups[group_index].group, count - first);
        let filters = first..count.min(first + usize::from(width));
        if self.groups[group_index].row_page.address.slots + width > slots_per_row_page(size) {
            self.write_row_page(sink, group_index)?;
        }

        // Groups are numbered in the order of their first tiles.
        let groups_with_number = self.groups.iter().filter(|pending| pending.number.is_some());
        let next_number = groups_with_number.count() as u32;
        let pending = &mut self.groups[group_index];
        let group_number = *pending.number.get_or_insert(next_number);
        let grid = Grid::new(size, &pending.group, width);
        let tile = Tile {
            ordinal: self.tiles.len() as u32,
            group: group_number,
            width,
            first_slot: pending.row_page.address.slots,
            // The row page gets its number when it is written.
            row_page: 0,
            first_page: self.directory.allocate(grid)?,
            grid,
        };

        pending.row_page.address.group = group_number;
        pending.row_page.add_tile(&tile, &pending.rows[filters.clone()]);
        pending.row_page.tiles.push(self.tiles.len());
        self.tiles.push(tile);
        write_tile_pages(sink, size, &tile, pending.bits_of(&filters))?;
        Ok(filters.end)
    }

    /// Writes the row page of a group: the page with the rows of the slots of its last tiles. These
    /// tiles get its page number. Does nothing if there are no such slots. `group_index` is the
    /// index of the group in [`Build::groups`].
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
        row_page.address.slots = 0;
        sink.write(&bytes)
    }
}

/// Bits of some filters of one shape, one filter after the other.
#[derive(Clone, Copy)]
struct FilterBits<'b> {
    bits: &'b [u8],
    bytes_per_filter: usize,
}

impl PendingGroup {
    /// Returns the bits of some of the filters that are kept.
    fn bits_of(&self, filters: &Range<usize>) -> FilterBits<'_> {
        let bytes_per_filter = self.bits.len() / self.rows.len();
        let bits = &self.bits[filters.start * bytes_per_filter..filters.end * bytes_per_filter];
        FilterBits { bits, bytes_per_filter }
    }
}

/// Writes all pages of a tile, whose first slots have the bits of these filters. Each page has some
/// blocks of every slot, one slot after the other.
///
/// Fails if a page can't be written.
fn write_tile_pages<S: PageSink>(
    sink: &mut S,
    size: PageSize,
    tile: &Tile,
    filters: FilterBits<'_>,
) -> Result<(), S::Error> {
    let slot_bytes = tile.grid.slot_bytes_per_page();
    let mut page = vec![0; size.bytes()];
    for from in (0..filters.bytes_per_filter).step_by(slot_bytes) {
        interrupt::check();
        page.fill(0);
        // The last page may have less of each filter.
        let length = slot_bytes.min(filters.bytes_per_filter - from);
        let slots = page[size.payload()].chunks_exact_mut(slot_bytes);
        for (slot, filter) in slots.zip(filters.bits.chunks_exact(filters.bytes_per_filter)) {
            slot[..length].copy_from_slice(&filter[from..][..length]);
        }
        tile.special().write(&mut page);
        sink.write(&page)?;
    }
    Ok(())
}
