//! What pages are called: their number, their level, their kind.

/// The number of a page in the index file; PostgreSQL's block number.
pub type PageNumber = u32;

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

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// Page 0: options, counts, and the newest runs of tiles.
    Meta = 1,
    /// Older runs of tiles.
    Directory = 2,
    /// Bits of a tile of level 0.
    LevelZero = 3,
    /// Bits of a tile of level 1.
    LevelOne = 4,
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
