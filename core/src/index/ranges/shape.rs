//! The shape of tiles: how many columns and pages they have, and slots.

use super::level::Level;
use crate::index::page::PageSize;
use crate::sizing::rate;

/// The most columns of a tile.
pub const MAX_WIDTH: u32 = 128;

/// How many columns a tile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(u8);

impl Width {
    /// The narrowest.
    pub const MIN: Width = Width(8);
    /// The widest.
    pub const MAX: Width = Width(MAX_WIDTH as u8);
    /// All, from the narrowest up.
    pub const ALL: [Width; 5] = [Width(8), Width(16), Width(32), Width(64), Width(128)];

    /// The width with this number of columns, if tiles can have it.
    pub fn new(columns: u8) -> Option<Width> {
        Width::ALL.into_iter().find(|width| width.0 == columns)
    }

    /// The narrowest with room for this number of columns; the widest if none has.
    pub fn holding(columns: u32) -> Width {
        Width::ALL.into_iter().find(|width| width.columns() >= columns).unwrap_or(Width::MAX)
    }

    /// The widest with at most this number of columns; the narrowest if there is none.
    pub fn within(columns: u32) -> Width {
        Width::ALL.into_iter().rfind(|width| width.columns() <= columns).unwrap_or(Width::MIN)
    }

    /// Columns.
    pub const fn columns(self) -> u32 {
        self.0 as u32
    }

    /// Slots with so many columns each.
    pub const fn slots(self, columns_per_slot: u8) -> u32 {
        self.columns() / columns_per_slot as u32
    }

    /// Bytes of a row.
    pub const fn bytes(self) -> usize {
        self.0 as usize / 8
    }

    /// Filter blocks in a page.
    pub const fn blocks_per_page(self) -> u32 {
        MAX_WIDTH / self.0 as u32
    }
}

/// What tiles of one run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    /// Whether its slots are ranges or tiles.
    pub level: Level,
    /// Columns.
    pub width: Width,
    /// Columns of a slot in the mean: one; two where slots have different numbers of them.
    pub columns_per_slot: u8,
    /// Hashes per element (k), 1 to [`MAX_HASHES`](super::MAX_HASHES).
    pub num_hashes: u8,
    /// Pages, at least one; blocks fill each of them.
    pub pages: u32,
}

impl TileShape {
    /// Slots.
    pub const fn slots(self) -> u32 {
        self.width.slots(self.columns_per_slot)
    }

    /// Filter blocks of each column (B).
    pub const fn blocks(self) -> u64 {
        self.pages as u64 * self.width.blocks_per_page() as u64
    }

    /// Bits of a column in a block: one less than there are rows if the last row says which columns slots have.
    pub const fn block_bits(self, size: PageSize) -> u32 {
        size.block_bits() - (self.columns_per_slot > 1) as u32
    }

    /// The false positive rate of a column with this number of distinct elements, by exact occupancy.
    pub fn rate(self, size: PageSize, elements: f64) -> f64 {
        rate::expected_in_blocks(self.block_bits(size), u32::from(self.num_hashes), self.blocks(), elements)
    }
}
