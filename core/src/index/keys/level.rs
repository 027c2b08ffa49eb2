//! The levels of an index, the kinds of their pages, and limits.

use crate::index::page::PageKind;

/// The most hashes (k) of a tile: the words of a level have bits for so many, besides the word for the block.
pub const MAX_HASHES: usize = 60;
/// Tiles that end within so many ranges have no slot in level 1.
pub const RANGES_ALONE: u64 = 512;

/// The two levels of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Level 0: a slot is a range of heap pages.
    Zero = 0,
    /// Level 1: a slot is a whole tile of level 0.
    One = 1,
}

impl Level {
    /// Both.
    pub const ALL: [Level; 2] = [Level::Zero, Level::One];
}

impl PageKind {
    /// The kind of the pages of this level's tiles.
    pub const fn of(level: Level) -> PageKind {
        match level {
            Level::Zero => PageKind::LevelZero,
            Level::One => PageKind::LevelOne,
        }
    }
}
