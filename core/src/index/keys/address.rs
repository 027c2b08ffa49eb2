//! The levels of an index, and the kinds of their pages.

use crate::index::page::PageKind;

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
