//! Building an index in one pass: the filters of rows in any order.
//!
//! ```text
//! filter ──▶ kept with others of its group, until they fill a tile or memory ──▶ tile, written at once
//!       └──▶ its row, in the group's row page, which is written when all of its slots belong to tiles
//! end    ──▶ tiles for what is left, row pages, directory pages
//! ```

use super::directory::Directory;
use super::row_page::{RowPage, room};
use super::tile::{Grid, Group, Tile, slot_bits};
use crate::filter::View;
use crate::index::page::{PageSink, PageSize, RowId};
use crate::memory;

/// Filters of one group whose tile was not written yet.
struct Open {
    group: Group,
    /// Its number, once it has a tile: groups are numbered in the order of their first tiles.
    number: Option<u32>,
    /// Their bits, one after the other.
    bits: Vec<u8>,
    rows: Vec<RowId>,
    /// The row page that is not full yet, whose number is not known, and its bytes.
    row_page: RowPage,
    bytes: Vec<u8>,
    /// The tiles that have its slots.
    tiles: Vec<usize>,
}

pub struct Build {
    directory: Directory,
    /// Most bytes of filters that are kept.
    hold: usize,
    groups: Vec<Open>,
    /// All tiles so far. Their row page is not set until it is written.
    tiles: Vec<Tile>,
}

impl Build {
    /// Begins an index with pages of this size. At most `hold` bytes of filters are kept in memory.
    pub fn new(size: PageSize, hold: usize) -> Build {
        Build {
            directory: Directory::empty(size),
            hold,
            groups: Vec::new(),
            tiles: Vec::new(),
        }
    }

    /// Adds a row with its filter. Errors: [`crate::Class::TooLarge`] if page numbers run out;
    /// those of writing.
    pub fn add<S: PageSink>(
        &mut self,
        sink: &mut S,
        row: RowId,
        filter: &View<'_>,
    ) -> Result<(), S::Error> {
        let Some(group) = Group::of(filter) else {
            return Ok(());
        };
        self.directory.chain.rows_built += 1;
        let number = self
            .groups
            .iter()
            .position(|open| open.group == group)
            .unwrap_or(self.groups.len());
        if number == self.groups.len() {
            let row_page = RowPage { page: 0, group: 0, slots: 0, size: self.directory.size };
            let (bits, rows, bytes, tiles) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            self.groups
                .push(Open { group, number: None, bits, rows, row_page, bytes, tiles });
        }
        let open = &mut self.groups[number];
        let bits = slot_bits(filter, &open.group);
        if open.bits.capacity() == 0 {
            // Enough for a tile, or for what may be kept, so that the bits need not move.
            let tile = bits
                .len()
                .saturating_mul(usize::from(self.directory.widest(&open.group)));
            memory::reserve(&mut open.bits, tile.min(self.hold.max(bits.len())));
        }
        memory::reserve(&mut open.bits, bits.len());
        open.bits.extend_from_slice(&bits);
        memory::push(&mut open.rows, row);
        if open.rows.len() == usize::from(self.directory.widest(&open.group)) {
            self.flush(sink, number)?;
        } else if self.groups.iter().map(|open| open.bits.len()).sum::<usize>() > self.hold {
            let largest =
                (0..self.groups.len()).max_by_key(|&number| self.groups[number].bits.len());
            self.flush(sink, largest.unwrap_or(number))?;
        }
        Ok(())
    }

    /// Writes what is left. Returns the directory, whose metapage the caller writes. Errors: as
    /// [`Build::add`].
    pub fn finish<S: PageSink>(mut self, sink: &mut S) -> Result<Directory, S::Error> {
        for number in 0..self.groups.len() {
            self.flush(sink, number)?;
            self.write_row_page(sink, number)?;
        }
        let Build { mut directory, groups, tiles, .. } = self;
        for tile in tiles {
            let own = groups
                .iter()
                .find(|open| open.number == Some(tile.group))
                .expect("its group got a number");
            if let Some(page) = directory.append(&own.group, tile)? {
                sink.write(&page)?;
            }
        }
        if !directory.chain.pages.is_empty() {
            sink.write(&directory.chain.newest_page(directory.size, &directory.newest).1)?;
        }
        Ok(directory)
    }

    /// Writes the filters that are kept of a group, as tiles.
    fn flush<S: PageSink>(&mut self, sink: &mut S, number: usize) -> Result<(), S::Error> {
        let mut first = 0;
        while first < self.groups[number].rows.len() {
            first = self.tile(sink, number, first)?;
        }
        let open = &mut self.groups[number];
        open.bits = Vec::new();
        open.rows.clear();
        Ok(())
    }

    /// The width of a tile for so many filters, or for the first of them: the greatest, if most of
    /// it is used.
    fn width_for(&self, group: &Group, filters: usize) -> u16 {
        let most = self.directory.widest(group);
        if group.shape.blocks == 0 || filters >= usize::from(most) {
            return most;
        }
        let (room, filters) =
            (u64::from(group.blocks_per_page(self.directory.size)), filters as u64);
        let per_page = (room / filters).clamp(1, group.shape.blocks);
        let fits_one_page = per_page == group.shape.blocks;
        let per_page = if fits_one_page || filters * per_page >= room * 3 / 4 {
            per_page
        } else {
            per_page + 1
        };
        ((room / per_page).max(1) as u16).min(most)
    }

    /// Writes the filters from number `first` on as a tile. Returns the number of the next one.
    fn tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        number: usize,
        first: usize,
    ) -> Result<usize, S::Error> {
        let size = self.directory.size;
        let count = self.groups[number].rows.len();
        let width = self.width_for(&self.groups[number].group, count - first);
        let slots = first..count.min(first + usize::from(width));
        if self.groups[number].row_page.slots + width > room(size) {
            self.write_row_page(sink, number)?;
        }
        let numbered = self.groups.iter().filter(|open| open.number.is_some()).count() as u32;
        let Open { group, number, bits, rows, row_page, bytes, tiles } = &mut self.groups[number];
        row_page.group = *number.get_or_insert(numbered);
        let grid = Grid::new(size, group, width);
        let first_page = self.directory.allocate(grid)?;
        let (ordinal, first_slot) = (self.tiles.len() as u32, row_page.slots);
        let tile = Tile {
            ordinal,
            group: row_page.group,
            width,
            first_slot,
            row_page: 0,
            first_page,
            grid,
        };
        bytes.resize(size.bytes(), 0);
        for (slot, row) in tile.slots().zip(&rows[slots.clone()]) {
            let changes = row_page.claim(slot, *row).into_iter().chain([row_page.publish(slot)]);
            changes.for_each(|(offset, byte)| bytes[usize::from(offset)] = byte);
        }
        row_page.slots += width;
        tiles.push(self.tiles.len());
        self.tiles.push(tile);
        // Bytes of a slot, and those of them that are in one page.
        let (each, stride) = (bits.len() / rows.len(), grid.stride());
        let bits = &bits[slots.start * each..slots.end * each];
        let mut page = vec![0; size.bytes()];
        for from in (0..each).step_by(stride) {
            crate::interrupt::check();
            page.fill(0);
            let length = stride.min(each - from);
            for (to, bits) in page[size.payload()]
                .chunks_exact_mut(stride)
                .zip(bits.chunks_exact(each))
            {
                to[..length].copy_from_slice(&bits[from..][..length]);
            }
            tile.special().write(&mut page);
            sink.write(&page)?;
        }
        Ok(slots.end)
    }

    /// Writes the row page of a group, if there is one, and sets it in its tiles.
    fn write_row_page<S: PageSink>(&mut self, sink: &mut S, number: usize) -> Result<(), S::Error> {
        let open = &mut self.groups[number];
        let mut page = std::mem::take(&mut open.bytes);
        if page.is_empty() {
            return Ok(());
        }
        let at = self.directory.chain.allocate(1)?;
        open.tiles.drain(..).for_each(|tile| self.tiles[tile].row_page = at);
        open.row_page.slots = 0;
        open.row_page.special().write(&mut page);
        sink.write(&page)
    }
}
