//! The shape of tiles: of which level they are, how many pages, columns and slots they have.
//!
//! A row of a tile has a bit in each column. Mostly a slot has one column. But where pages are
//! split, one document may have a hundred times the text of another, and a slot that is large
//! enough for it would be too large for the others. So there a tile has half as many slots as
//! columns, and each slot has as many neighbouring columns as its elements need. An element is in
//! one of them, which its hash says.
//!
//! ```text
//! slot            0   1           2   3  …
//! columns        |0|1   2   3   4|5  |6   7| …
//! last row        1 1 0 0 0       1   1 0          a bit where the columns of a slot begin
//!                   ╰─ an element of slot 1: column 1 + (its share of 2^32 · 4 columns)
//! ```
//!
//! The last row of each block says where they begin. In a tile that was appended it is zero: nobody
//! knew what its slots would have, so all have equally many.

use crate::index::page::{Damage, PageNumber, PageSize, require};
use crate::sizing::rate;
use std::ops::Range;

/// The most hashes (k) of a tile: the words of a level have bits for so many, besides the word for
/// the block.
pub const MAX_HASHES: usize = 60;
/// The most heap pages of a range: building holds the hashes of 128 ranges in memory, of a gigabyte
/// of the table then.
pub const MAX_PAGES_PER_RANGE: u32 = 1024;
/// Tiles of levels 0 and 1 that end within so many slots of their level have none in the level
/// above.
pub const MOST_ALONE: u64 = 512;

/// A slot of level 0 is a range of heap pages, one of another level a whole tile of the level
/// below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Zero = 0,
    One = 1,
    Two = 2,
}

impl Level {
    pub const ALL: [Level; 3] = [Level::Zero, Level::One, Level::Two];

    pub fn below(self) -> Option<Level> {
        (self as usize).checked_sub(1).map(|below| Level::ALL[below])
    }
}

pub const MAX_WIDTH: u32 = 128;

/// How many columns a tile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(u8);

impl Width {
    pub const MIN: Width = Width(8);
    pub const MAX: Width = Width(MAX_WIDTH as u8);
    pub const ALL: [Width; 5] = [Width(8), Width(16), Width(32), Width(64), Width(128)];

    /// The narrowest with room for this number of columns; the widest if none has.
    pub fn holding(columns: u64) -> Width {
        Width::ALL
            .into_iter()
            .find(|width| u64::from(width.0) >= columns)
            .unwrap_or(Width::MAX)
    }

    /// The widest with at most this number of columns; the narrowest if there is none.
    pub fn within(columns: u64) -> Width {
        Width::ALL
            .into_iter()
            .rfind(|width| u64::from(width.0) <= columns)
            .unwrap_or(Width::MIN)
    }

    pub const fn columns(self) -> u32 {
        self.0 as u32
    }

    pub const fn slots(self, columns_per_slot: u8) -> u32 {
        self.columns() / columns_per_slot as u32
    }

    /// Bytes of a row.
    pub const fn bytes(self) -> usize {
        self.0 as usize / 8
    }

    pub const fn blocks_per_page(self) -> u32 {
        MAX_WIDTH / self.0 as u32
    }
}

/// What tiles of one run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    pub level: Level,
    pub width: Width,
    /// Columns of a slot in the mean: one; two where slots have different numbers of them.
    pub columns_per_slot: u8,
    /// Hashes per element (k), 1 to [`MAX_HASHES`].
    pub num_hashes: u8,
    /// Pages, at least one; blocks fill each of them.
    pub pages: u32,
    pub size: PageSize,
}

impl TileShape {
    pub const fn slots(self) -> u32 {
        self.width.slots(self.columns_per_slot)
    }

    /// Filter blocks of each column (B).
    pub const fn blocks(self) -> u64 {
        self.pages as u64 * self.width.blocks_per_page() as u64
    }

    /// Bits of a column in a block: one less than there are rows if the last row says which columns
    /// slots have.
    pub const fn block_bits(self) -> u32 {
        self.size.block_bits() - (self.columns_per_slot > 1) as u32
    }

    /// The false positive rate of a column with this number of distinct elements, by exact
    /// occupancy.
    pub fn rate(self, elements: f64) -> f64 {
        rate::expected_in_blocks(
            self.block_bits(),
            u32::from(self.num_hashes),
            self.blocks(),
            elements,
        )
    }
}

/// The columns of each slot of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// A bit for each column that is the first of a slot.
    firsts: u128,
    width: Width,
}

impl Columns {
    /// Equally many for each slot.
    pub fn even(width: Width, columns_per_slot: u8) -> Columns {
        let firsts = (0..width.columns()).step_by(usize::from(columns_per_slot));
        Columns { firsts: firsts.map(|first| 1 << first).sum(), width }
    }

    /// As many as slots with these numbers of elements need: the fullest column has as few as
    /// possible. Panics if there are more slots than columns, or none.
    pub fn by_load(width: Width, loads: &[f64]) -> Columns {
        let mut columns = vec![1u32; loads.len()];
        for _ in loads.len()..width.columns() as usize {
            let of_column = |slot: usize| loads[slot] / f64::from(columns[slot]);
            let fullest = (0..loads.len()).max_by(|&a, &b| of_column(a).total_cmp(&of_column(b)));
            columns[fullest.expect("a tile has slots")] += 1;
        }
        let (mut firsts, mut next) = (0, 0);
        for columns in columns {
            firsts |= 1 << next;
            next += columns;
        }
        Columns { firsts, width }
    }

    /// Those that the last row of a block of this page says. Errors: [`Damage`] if it can't be one.
    pub fn read(shape: TileShape, row: &[u8], page: PageNumber) -> Result<Columns, Damage> {
        let mut bytes = [0; 16];
        bytes[..row.len()].copy_from_slice(row);
        let firsts = u128::from_le_bytes(bytes);
        if firsts == 0 {
            return Ok(Columns::even(shape.width, shape.columns_per_slot));
        }
        let problem = "its slots cannot have the columns that it says";
        require(firsts & 1 == 1 && firsts.count_ones() == shape.slots(), || {
            Damage::new(page, problem)
        })?;
        Ok(Columns { firsts, width: shape.width })
    }

    pub fn write(self, row: &mut [u8]) {
        row.copy_from_slice(&self.firsts.to_le_bytes()[..row.len()]);
    }

    pub fn slots(self) -> impl Iterator<Item = Range<u32>> {
        let mut firsts = self.firsts;
        std::iter::from_fn(move || {
            let first = (firsts != 0).then(|| firsts.trailing_zeros())?;
            firsts &= firsts - 1;
            Some(first..firsts.trailing_zeros().min(self.width.columns()))
        })
    }
}

/// The one of the columns of a slot that an element is in. Its share is of 2^32.
#[inline(always)]
pub fn column(columns: &Range<u32>, share: u32) -> u32 {
    columns.start + ((u64::from(share) * u64::from(columns.end - columns.start)) >> 32) as u32
}
