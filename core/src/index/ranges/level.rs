//! The levels of an index, the kinds of their pages, and limits.

use crate::index::page::PageKind;

/// The most hashes (k) of a tile: the words of a level have bits for so many, besides the word for the block.
pub const MAX_HASHES: usize = 60;
/// The most heap pages of a range: building holds the hashes of 128 ranges in memory, of a gigabyte of the table then.
pub const MAX_PAGES_PER_RANGE: u32 = 1024;
/// Tiles of level 0 that end within so many ranges have no slot in level 1.
pub const RANGES_ALONE: u64 = 512;
/// Tiles of level 1 that end within so many of their slots have no slot in level 2.
pub const TILES_ALONE: u64 = 512;

/// The levels of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Level 0: a slot is a range of heap pages.
    Zero = 0,
    /// Level 1: a slot is a whole tile of level 0.
    One = 1,
    /// Level 2: a slot is a whole tile of level 1.
    Two = 2,
}

impl Level {
    /// All, from the ranges up.
    pub const ALL: [Level; 3] = [Level::Zero, Level::One, Level::Two];

    /// The level whose slots are the tiles of this one.
    pub fn above(self) -> Option<Level> {
        Level::ALL.get(self as usize + 1).copied()
    }

    /// The level whose tiles are the slots of this one.
    pub fn below(self) -> Option<Level> {
        (self as usize).checked_sub(1).map(|below| Level::ALL[below])
    }
}

impl PageKind {
    /// The kind of the pages of this level's tiles.
    pub const fn of(level: Level) -> PageKind {
        match level {
            Level::Zero => PageKind::LevelZero,
            Level::One => PageKind::LevelOne,
            Level::Two => PageKind::LevelTwo,
        }
    }
}
