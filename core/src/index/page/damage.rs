//! What is wrong with a page that was read from disk. What passes the checks can be used without an index out of
//! bounds, an endless loop or an overflow; anything else is an error that names page and defect.

use super::address::{PageKind, PageNumber};
use std::fmt;

/// A page that no version of this code wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Damage {
    /// The page.
    pub page: PageNumber,
    /// What is wrong with it.
    pub defect: Defect,
}

impl Damage {
    /// A field that says what it can't say.
    pub(crate) fn field(page: PageNumber, field: &'static str, found: impl Into<u64>) -> Damage {
        Damage { page, defect: Defect::Field { field, found: found.into() } }
    }
}

/// Fails with this damage unless the condition holds.
pub(crate) fn require(holds: bool, damage: impl FnOnce() -> Damage) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(damage()) }
}

/// What is wrong with a page.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Defect {
    /// It doesn't have the length of a page.
    WrongLength {
        /// Bytes it has.
        found: usize,
        /// Bytes per page has.
        expected: usize,
    },
    /// It is all zero or after the end of the file, but must not be.
    NewPage,
    /// It has contents, but nothing was to be written there yet.
    UsedPage,
    /// It isn't a page of this access method.
    ForeignPage {
        /// The id it has.
        found: u16,
    },
    /// Another version wrote it.
    UnknownVersion {
        /// That version.
        found: u8,
    },
    /// It is another kind of page.
    WrongKind {
        /// The kind it has.
        found: u8,
        /// The kind that must be there.
        expected: PageKind,
    },
    /// It belongs to another tile, or to another place in the directory.
    WrongNumber {
        /// The number it has.
        found: u32,
        /// The number that must be there.
        expected: u32,
    },
    /// A metapage or a directory page has other contents than were written.
    WrongChecksum {
        /// The checksum that it has.
        found: u32,
        /// That of its contents.
        expected: u32,
    },
    /// A field of the metapage or of a directory page, or a number computed from its records, is out of range.
    Field {
        /// The field.
        field: &'static str,
        /// Its value; for the rate, its bits.
        found: u64,
    },
    /// A run of tiles is impossible.
    Run {
        /// Which of the page's runs.
        run: u32,
        /// Why.
        problem: String,
    },
    /// The last row of a tile's block can't say which columns its slots have.
    Columns,
    /// Tiles of level 0 have no slot in level 1.
    Uncovered {
        /// The first tile without a slot.
        tile: u64,
        /// How many tiles of level 0 there are.
        tiles: u64,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}: {}", self.page, self.defect)
    }
}

impl std::error::Error for Damage {}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::WrongLength { found, expected } => write!(f, "it has {found} bytes instead of {expected}"),
            Defect::NewPage => write!(f, "it is empty"),
            Defect::UsedPage => write!(f, "it must be empty, since it was not allocated yet"),
            Defect::ForeignPage { found } => {
                write!(f, "it is not a page of a bloom_filter index (its id is {found:04X})")
            }
            Defect::UnknownVersion { found } => write!(f, "its version is {found}, which is unknown"),
            Defect::WrongKind { found, expected } => {
                write!(f, "it is of kind {found}, but must be {} ({expected:?})", *expected as u8)
            }
            Defect::WrongNumber { found, expected } => write!(f, "its number is {found}, but must be {expected}"),
            Defect::WrongChecksum { found, expected } => {
                write!(f, "its checksum is {found:08X}, but must be {expected:08X}")
            }
            Defect::Field { field, found } => write!(f, "{field} is {found}"),
            Defect::Run { run, problem } => write!(f, "run {run} of tiles: {problem}"),
            Defect::Columns => write!(f, "its slots cannot have the columns that it says"),
            Defect::Uncovered { tile, tiles } => {
                write!(f, "tile {tile} of {tiles} has no slot in level 1")
            }
        }
    }
}
