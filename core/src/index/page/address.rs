//! What pages are called: their number, their kind.

/// The number of a page in the index file; PostgreSQL's block number.
pub type PageNumber = u32;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// Page 0: what the index is, and where its directory is.
    Meta = 1,
    /// Where the tiles are.
    Directory = 2,
    /// Bits of a tile of level 0 of ranges.
    LevelZero = 3,
    /// Bits of a tile of level 1 of ranges.
    LevelOne = 4,
    /// Blocks of the filters of rows.
    Filters = 5,
    /// Which rows these are.
    Rows = 6,
    /// Bits of a tile of level 2 of ranges.
    LevelTwo = 7,
}
