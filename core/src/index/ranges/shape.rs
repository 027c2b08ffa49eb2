//! The shape of tiles: of which level they are, how many pages, columns and slots they have.
//!
//! A tile is a table of bits. Each row has a bit for each column, and a column is a Bloom filter:
//! of the keys of one slot, or of some of them. On level 0 a slot is a range of the table; on
//! another level it is a tile of the level below.
//!
//! Mostly a slot has one column. But where pages are split, one document may have a hundred times
//! the text of another, and a slot that is large enough for it would be too large for the others.
//! So there a tile has half as many slots as columns, and each slot has as many neighbouring
//! columns as its keys need. A key is in one of them, which its hash says.
//!
//! ```text
//! slot            0   1           2   3  …
//! columns        |0|1   2   3   4|5  |6   7| …
//! last row        1 1 0 0 0       1   1 0          a bit where the columns of a slot begin
//!                   ╰─ a key of slot 1: column 1 + (its share of 2^32 · 4 columns)
//! ```
//!
//! The last row of each block says where they begin. In a tile that was appended it is zero: nobody
//! knew what its slots would have, so all have equally many.

use crate::index::page::{Damage, PageNumber, PageSize};
use crate::memory::List;
use crate::sizing::rate;
use std::ops::{Index, IndexMut, Range};

/// The most hashes (k) of a tile: the words of a level have bits for so many, besides the word for
/// the block.
pub const MAX_HASHES: usize = 60;
/// The most heap pages of a range: building holds the hashes of 128 ranges in memory, of a gigabyte
/// of the table then.
pub const MAX_PAGES_PER_RANGE: u32 = 1024;
/// How many slots of level 0, and of level 1, belong to tiles without a slot above, at most. Every
/// lookup probes such tiles, so they must be few.
pub const MOST_ALWAYS_PROBED_SLOTS: u64 = 512;

/// A level of tiles. A slot of level 0 is a range of heap pages, a slot of another level is a whole
/// tile of the level below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Zero = 0,
    One = 1,
    Two = 2,
}

impl Level {
    /// All levels, from the lowest up.
    pub const ALL: [Level; 3] = [Level::Zero, Level::One, Level::Two];

    /// Returns the level that a stored code stands for; `None` if it stands for none.
    pub(super) fn from_code(code: u8) -> Option<Level> {
        Level::ALL.into_iter().find(|&level| level as u8 == code)
    }

    /// Returns the level whose tiles are the slots of this one; `None` for level 0.
    pub fn below(self) -> Option<Level> {
        match self {
            Level::Zero => None,
            Level::One => Some(Level::Zero),
            Level::Two => Some(Level::One),
        }
    }

    /// Returns the level whose slots are the tiles of this one; `None` for level 2.
    pub fn above(self) -> Option<Level> {
        match self {
            Level::Zero => Some(Level::One),
            Level::One => Some(Level::Two),
            Level::Two => None,
        }
    }
}

/// One value for each level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerLevel<T>([T; Level::ALL.len()]);

impl<T> PerLevel<T> {
    /// Returns the values that `value` returns for the levels, beginning with level 0.
    pub fn from_fn(value: impl FnMut(Level) -> T) -> PerLevel<T> {
        PerLevel(Level::ALL.map(value))
    }
}

impl<T> Index<Level> for PerLevel<T> {
    type Output = T;

    fn index(&self, level: Level) -> &T {
        &self.0[level as usize]
    }
}

impl<T> IndexMut<Level> for PerLevel<T> {
    fn index_mut(&mut self, level: Level) -> &mut T {
        &mut self.0[level as usize]
    }
}

/// The most columns of a tile.
pub const MAX_WIDTH: u32 = 128;

/// How many columns a tile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(u8);

impl Width {
    pub const MIN: Width = Width(8);
    pub const MAX: Width = Width(MAX_WIDTH as u8);
    /// All widths, from the narrowest up.
    pub const ALL: [Width; 5] = [Width(8), Width(16), Width(32), Width(64), Width(128)];

    /// Returns the width of exactly this number of columns; `None` if no tile can have that.
    pub(super) fn from_columns(columns: u8) -> Option<Width> {
        Width::ALL.into_iter().find(|width| width.0 == columns)
    }

    /// Returns the narrowest width of at least this number of columns, or else the widest one.
    pub fn holding(columns: u64) -> Width {
        Width::ALL
            .into_iter()
            .find(|width| u64::from(width.0) >= columns)
            .unwrap_or(Width::MAX)
    }

    /// Returns the widest width of at most this number of columns, or else the narrowest one.
    pub fn within(columns: u64) -> Width {
        Width::ALL
            .into_iter()
            .rfind(|width| u64::from(width.0) <= columns)
            .unwrap_or(Width::MIN)
    }

    /// Returns the number of columns.
    pub const fn columns(self) -> u32 {
        self.0 as u32
    }

    /// Returns how many slots a tile has if its slots have this many columns on average.
    pub const fn slots(self, columns_per_slot: u8) -> u32 {
        self.columns() / columns_per_slot as u32
    }

    /// Returns the bytes of a row, which has a bit for each column.
    pub const fn row_bytes(self) -> usize {
        self.0 as usize / 8
    }

    /// Returns how many filter blocks of each column are in a page.
    pub const fn blocks_per_page(self) -> u32 {
        MAX_WIDTH / self.0 as u32
    }
}

/// What tiles of one run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    pub level: Level,
    pub width: Width,
    /// Columns of a slot on average: one; two if slots have different numbers of them.
    pub columns_per_slot: u8,
    /// Hashes per key (k), 1 to [`MAX_HASHES`].
    pub num_hashes: u8,
    /// Pages, at least one; blocks fill each of them.
    pub pages: u32,
    pub size: PageSize,
}

impl TileShape {
    /// Returns how many slots a tile has.
    pub const fn slots(self) -> u32 {
        self.width.slots(self.columns_per_slot)
    }

    /// Returns how many filter blocks each column has (B).
    pub const fn blocks(self) -> u64 {
        self.pages as u64 * self.width.blocks_per_page() as u64
    }

    /// Returns how many bits of a column are in a block. Keys can't use the last row of a block if
    /// that says which columns slots have.
    pub const fn block_bits(self) -> u32 {
        let has_column_row = self.columns_per_slot > 1;
        self.size.block_bits() - has_column_row as u32
    }

    /// Returns how many rows of a block of a page have bits of keys. A block is stored row by row,
    /// with a bit of each column in a row, so there are as many as a column has bits in the block.
    pub(super) const fn key_rows_per_block(self) -> u32 {
        self.block_bits()
    }

    /// Returns the false positive rate of a column with this number of distinct keys, by exact
    /// occupancy.
    pub fn rate(self, keys: f64) -> f64 {
        rate::expected_in_blocks(self.block_bits(), u32::from(self.num_hashes), self.blocks(), keys)
    }
}

/// Which columns each slot of a tile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotColumns {
    /// A bit for each column that is the first of a slot.
    firsts: u128,
    width: Width,
}

impl SlotColumns {
    /// Returns the columns of slots that have equally many.
    pub fn even(width: Width, columns_per_slot: u8) -> SlotColumns {
        let first_columns = (0..width.columns()).step_by(usize::from(columns_per_slot));
        let firsts = first_columns.map(|column| 1 << column).sum();
        SlotColumns { firsts, width }
    }

    /// Divides the columns of a tile, each of which is a filter, among the ranges of the table that
    /// the tile is about, its *slots*. The keys of a slot are spread over its columns. So a slot
    /// with more keys gets more columns, and the fullest column gets as few keys as possible.
    ///
    /// `width` is the number of columns, and `keys_per_slot` has a number for each slot. Panics if
    /// there are more slots than columns, or none.
    ///
    /// For example, four slots with 10, 70, 25 and 20 keys share eight columns. Each gets one, and
    /// each of the four that are left goes to the slot whose columns are fullest by then: to slot 1
    /// (70 keys in a column), slot 1 (35), slot 2 (25) and slot 1 (23). The slots now have 1, 4, 2
    /// and 1 columns, with 10, 17.5, 12.5 and 20 keys in each.
    pub fn by_keys(width: Width, keys_per_slot: &[f64]) -> SlotColumns {
        let mut columns_of_slots = List::filled(1u32, keys_per_slot.len());
        let columns_left = (width.columns() as usize).saturating_sub(keys_per_slot.len());
        for _ in 0..columns_left {
            let keys_per_column =
                |slot: usize| keys_per_slot[slot] / f64::from(columns_of_slots[slot]);
            let fullest_slot = (0..keys_per_slot.len())
                .max_by(|&a, &b| keys_per_column(a).total_cmp(&keys_per_column(b)))
                .expect("a tile has slots");
            columns_of_slots[fullest_slot] += 1;
        }

        let mut firsts = 0;
        let mut next_column = 0;
        for columns in columns_of_slots {
            firsts |= 1 << next_column;
            next_column += columns;
        }
        SlotColumns { firsts, width }
    }

    /// Reads which columns each slot of a tile has. A column is a Bloom filter, and a slot, such as
    /// a range of the table, has one column or several neighbouring ones.
    ///
    /// `row` is the last row of a block of bits of the tile: a bit for each column, which is set if
    /// the column is the first one of a slot. A row of zeros says that all slots have equally many
    /// columns. `page` is the number of the page that has the row, for errors.
    ///
    /// Fails if column 0 begins no slot, or if there are more or fewer slots than the shape says.
    pub fn read(shape: TileShape, row: &[u8], page: PageNumber) -> Result<SlotColumns, Damage> {
        // A narrow tile has rows of fewer bytes; columns that it doesn't have begin no slot.
        let mut bytes = [0; MAX_WIDTH as usize / 8];
        bytes[..row.len()].copy_from_slice(row);
        let firsts = u128::from_le_bytes(bytes);
        if firsts == 0 {
            return Ok(SlotColumns::even(shape.width, shape.columns_per_slot));
        }

        let column_0_begins_a_slot = firsts & 1 == 1;
        if column_0_begins_a_slot && firsts.count_ones() == shape.slots() {
            Ok(SlotColumns { firsts, width: shape.width })
        } else {
            Err(Damage::new(page, "its slots cannot have the columns that it says"))
        }
    }

    /// Writes the last row of a block, which has as many bytes as `row`.
    pub fn write(self, row: &mut [u8]) {
        row.copy_from_slice(&self.firsts.to_le_bytes()[..row.len()]);
    }

    /// Returns which columns each slot of the tile has, beginning with the first slot. A column is
    /// a Bloom filter, and a slot is what the tile has filters for. Slots have neighbouring
    /// columns: a slot ends where the next one begins, and the last one ends with the last column.
    pub fn slots(self) -> impl Iterator<Item = Range<u32>> {
        let mut firsts_left = self.firsts;
        std::iter::from_fn(move || {
            if firsts_left == 0 {
                return None;
            }
            let first = firsts_left.trailing_zeros();
            // Clears the lowest bit that is set.
            firsts_left &= firsts_left - 1;
            // After the last slot there is none, and the number of zeros is 128.
            let end = firsts_left.trailing_zeros().min(self.width.columns());
            Some(first..end)
        })
    }
}

/// Returns the one of the columns of a slot that a key is in. The hash of the key gives `share`, a
/// number from 0 to 2^32 - 1, which is scaled to the columns.
#[inline(always)]
pub fn column(columns: &Range<u32>, share: u32) -> u32 {
    let count = columns.end - columns.start;
    let scaled = (u64::from(share) * u64::from(count)) >> 32;
    columns.start + scaled as u32
}
