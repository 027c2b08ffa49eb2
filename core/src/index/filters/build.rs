//! Building an index in one pass: the filters of rows in any order.
//!
//! ```text
//! filter ──▶ kept with others of its group, until they fill a tile or memory ──▶ tile, written at once
//!       └──▶ its row, in the group's row page, which is written when all of its slots belong to tiles
//! end    ──▶ tiles for what is left, row pages, directory pages
//! ```

use super::directory::Directory;
use super::group::{Group, slot_bits};
use super::row_page::{RowPage, room};
use super::tile::{Grid, Tile, widest};
use crate::filter::View;
use crate::index::page::{PageSink, PageSize, RowId};
use crate::memory;
use std::ops::Range;

/// Filters of one group whose tile was not written yet.
struct Open {
    group: Group,
    /// Its number, once it has a tile.
    number: Option<u32>,
    /// Their bits, one after the other.
    bits: Vec<u8>,
    rows: Vec<RowId>,
    /// The row page that is not full yet, and how many of its slots belong to tiles.
    row_page: Vec<u8>,
    slots: u16,
    /// The numbers of these tiles.
    tiles: Range<usize>,
}

/// An index that is being built.
pub struct Build {
    directory: Directory,
    /// Most bytes of filters that are kept.
    hold: usize,
    held: usize,
    groups: Vec<Open>,
    /// All tiles so far. Their row page is not set until it is written.
    tiles: Vec<Tile>,
    /// Groups that have a tile.
    numbered: u32,
    /// Rows with a slot.
    rows: u64,
}

impl Build {
    /// Begins an index with pages of this size. At most `hold` bytes of filters are kept in memory.
    pub fn new(size: PageSize, hold: usize) -> Build {
        let directory = Directory::empty(size);
        Build { directory, hold, held: 0, groups: Vec::new(), tiles: Vec::new(), numbered: 0, rows: 0 }
    }

    /// How many rows have a slot.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row with its filter.
    ///
    /// # Errors
    /// [`crate::Class::TooLarge`] if there are too few numbers left for pages; those of writing.
    pub fn add<S: PageSink>(
        &mut self,
        sink: &mut S,
        row: RowId,
        filter: &View<'_>,
    ) -> std::result::Result<(), S::Error> {
        let Some(group) = Group::of(filter) else { return Ok(()) };
        self.rows += 1;
        let number = match self.groups.iter().position(|open| open.group == group) {
            Some(number) => number,
            None => {
                let (bits, rows, row_page) = (Vec::new(), Vec::new(), Vec::new());
                self.groups.push(Open { group, number: None, bits, rows, row_page, slots: 0, tiles: 0..0 });
                self.groups.len() - 1
            }
        };
        let open = &mut self.groups[number];
        let bits = slot_bits(filter, &open.group);
        if open.bits.capacity() == 0 {
            // Enough for a tile, or for what may be kept, so that the bits need not move.
            let tile = bits.len().saturating_mul(usize::from(self.directory.widest(&open.group)));
            memory::reserve(&mut open.bits, tile.min(self.hold.max(bits.len())));
        }
        memory::reserve(&mut open.bits, bits.len());
        open.bits.extend_from_slice(&bits);
        memory::push(&mut open.rows, row);
        self.held += bits.len();
        if open.rows.len() == usize::from(self.directory.widest(&open.group)) {
            self.flush(sink, number)?;
        } else if self.held > self.hold {
            let largest = (0..self.groups.len()).max_by_key(|&number| self.groups[number].bits.len());
            self.flush(sink, largest.unwrap_or(number))?;
        }
        Ok(())
    }

    /// Writes what is left, after the last row, and returns the directory, whose metapage the caller writes.
    ///
    /// # Errors
    /// As [`Build::add`].
    pub fn finish<S: PageSink>(mut self, sink: &mut S) -> std::result::Result<Directory, S::Error> {
        for number in 0..self.groups.len() {
            self.flush(sink, number)?;
            self.write_row_page(sink, number)?;
        }
        let Build { mut directory, groups, tiles, rows, .. } = self;
        for tile in tiles {
            // Groups are numbered in the order of their first tiles.
            let is_new = directory.group(tile.group).is_none();
            let group = groups.iter().find(|open| is_new && open.number == Some(tile.group)).map(|open| &open.group);
            if directory.is_full(group) {
                write_directory_page(sink, &directory)?;
            }
            directory.append(group, tile)?;
        }
        write_directory_page(sink, &directory)?;
        directory.chain.rows_built = rows;
        Ok(directory)
    }

    /// Writes the filters that are kept of a group, as tiles.
    fn flush<S: PageSink>(&mut self, sink: &mut S, number: usize) -> std::result::Result<(), S::Error> {
        let mut first = 0;
        let count = self.groups[number].rows.len();
        while first < count {
            let width = self.width_for(&self.groups[number].group, count - first);
            let slots = first..count.min(first + usize::from(width));
            first = slots.end;
            self.tile(sink, number, width, slots)?;
        }
        let open = &mut self.groups[number];
        self.held -= std::mem::take(&mut open.bits).len();
        open.rows.clear();
        Ok(())
    }

    /// The width of a tile for so many filters, or for the first of them: the greatest, if most of it is used.
    fn width_for(&self, group: &Group, filters: usize) -> u16 {
        let most = self.directory.widest(group);
        if group.shape.blocks == 0 || filters >= usize::from(most) {
            return most;
        }
        let room = u64::from(widest(self.directory.size, group.block_bytes()));
        let filters = filters as u64;
        let per_page = (room / filters).clamp(1, group.shape.blocks);
        let fits_one_page = per_page == group.shape.blocks;
        let per_page = if fits_one_page || filters * per_page >= room * 3 / 4 { per_page } else { per_page + 1 };
        ((room / per_page).max(1) as u16).min(most)
    }

    /// Writes a tile of some of the filters that are kept.
    fn tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        number: usize,
        width: u16,
        slots: Range<usize>,
    ) -> std::result::Result<(), S::Error> {
        let size = self.directory.size;
        if self.groups[number].slots + width > room(size) {
            self.write_row_page(sink, number)?;
        }
        let ordinal = self.tiles.len() as u32;
        let Open { group, number, bits, rows, row_page, slots: used, tiles } = &mut self.groups[number];
        if row_page.is_empty() {
            *row_page = vec![0; size.bytes()];
            tiles.start = self.tiles.len();
        }
        let group_number = *number.get_or_insert_with(|| {
            self.numbered += 1;
            self.numbered - 1
        });
        let first_slot = *used;
        let grid = Grid::new(size, group, width);
        let pages = grid.map_or(0, |grid| grid.pages());
        let first_page = if pages == 0 { 0 } else { self.directory.chain.allocate(pages)? };
        let tile = Tile { ordinal, group: group_number, width, first_slot, row_page: 0, first_page };
        let unplaced = RowPage { page: 0, group: group_number, slots: 0, size };
        for (slot, row) in (first_slot..).zip(&rows[slots.clone()]) {
            unplaced.set(row_page, slot, *row);
        }
        *used += width;
        self.tiles.push(tile);
        tiles.end = self.tiles.len();
        if let Some(grid) = grid {
            let each = bits.len() / rows.len();
            write_blocks(sink, size, &tile, &grid, &bits[slots.start * each..slots.end * each], each)?;
        }
        Ok(())
    }

    /// Writes the row page of a group, if there is one, and sets it in its tiles.
    fn write_row_page<S: PageSink>(&mut self, sink: &mut S, number: usize) -> std::result::Result<(), S::Error> {
        let open = &mut self.groups[number];
        let mut page = std::mem::take(&mut open.row_page);
        if page.is_empty() {
            return Ok(());
        }
        let at = self.directory.chain.allocate(1)?;
        let group = open.number.unwrap_or(0);
        for tile in self.tiles[open.tiles.clone()].iter_mut().filter(|tile| tile.group == group) {
            tile.row_page = at;
        }
        open.slots = 0;
        RowPage { page: at, group, slots: 0, size: self.directory.size }.special().write(&mut page);
        sink.write(at, &page)
    }
}

/// Writes the pages of a tile, whose slots have `each` bytes of bits.
fn write_blocks<S: PageSink>(
    sink: &mut S,
    size: PageSize,
    tile: &Tile,
    grid: &Grid,
    bits: &[u8],
    each: usize,
) -> std::result::Result<(), S::Error> {
    let stride = grid.stride();
    let mut page = vec![0; size.bytes()];
    for (number, from) in (tile.first_page..).zip((0..each).step_by(stride)) {
        crate::interrupt::check();
        page.fill(0);
        let length = stride.min(each - from);
        for (to, bits) in page[size.payload()].chunks_exact_mut(stride).zip(bits.chunks_exact(each)) {
            to[..length].copy_from_slice(&bits[from..][..length]);
        }
        tile.special().write(&mut page);
        sink.write(number, &page)?;
    }
    Ok(())
}

/// Writes the newest directory page, if there is one.
fn write_directory_page<S: PageSink>(sink: &mut S, directory: &Directory) -> std::result::Result<(), S::Error> {
    if directory.chain.pages().is_empty() {
        return Ok(());
    }
    let (number, page) = directory.newest_page();
    sink.write(number, &page)
}
