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
        problem: RunProblem,
    },
    /// Tiles of level 0 have no slot in level 1.
    Uncovered {
        /// The first tile without a slot.
        tile: u64,
        /// How many tiles of level 0 there are.
        tiles: u64,
    },
}

/// Why a run of tiles is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunProblem {
    /// There are levels 0 and 1 only.
    Level(u8),
    /// Tiles are 8, 16, 32, 64 or 128 slots wide.
    Width(u8),
    /// Elements have 1 to 60 hashes.
    Hashes(u8),
    /// A reserved byte is not zero.
    Reserved(u8),
    /// It has no tiles, or its tiles have no pages, or more pages than a file.
    Pages {
        /// Pages of each tile.
        pages: u32,
        /// Tiles of the run.
        tiles: u32,
    },
    /// It doesn't begin with the slot that comes next on its level.
    FirstSlot {
        /// The slot it begins with.
        found: u32,
        /// The slot that comes next.
        expected: u64,
    },
    /// More slots than there are numbers for.
    Slots(u64),
    /// Its pages belong to an earlier run or directory page.
    Overlaps {
        /// Its first page.
        first_page: u32,
        /// The end of what precedes it.
        end: u64,
    },
    /// Its pages were not allocated.
    Beyond {
        /// The first page after it.
        end: u64,
        /// How many pages were allocated.
        allocated: u32,
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
            Defect::ForeignPage { found } => {
                write!(f, "it is not a page of a bloom_filter index (its id is {found:04X})")
            }
            Defect::UnknownVersion { found } => write!(f, "its version is {found}, which is unknown"),
            Defect::WrongKind { found, expected } => {
                write!(f, "it is of kind {found}, but must be {} ({expected:?})", *expected as u8)
            }
            Defect::WrongNumber { found, expected } => write!(f, "its number is {found}, but must be {expected}"),
            Defect::Field { field, found } => write!(f, "{field} is {found}"),
            Defect::Run { run, problem } => write!(f, "run {run} of tiles: {problem}"),
            Defect::Uncovered { tile, tiles } => {
                write!(f, "tile {tile} of {tiles} has no slot in level 1")
            }
        }
    }
}

impl fmt::Display for RunProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunProblem::Level(level) => write!(f, "level {level} is unknown"),
            RunProblem::Width(width) => write!(f, "a tile cannot have {width} slots"),
            RunProblem::Hashes(hashes) => write!(f, "{hashes} hashes are not possible"),
            RunProblem::Reserved(byte) => write!(f, "a reserved byte is {byte}"),
            RunProblem::Pages { pages, tiles } => write!(f, "{tiles} tiles of {pages} pages"),
            RunProblem::FirstSlot { found, expected } => write!(f, "begins with slot {found} instead of {expected}"),
            RunProblem::Slots(slots) => write!(f, "{slots} slots are too many"),
            RunProblem::Overlaps { first_page, end } => {
                write!(f, "begins at page {first_page}, before the end of what precedes it at page {end}")
            }
            RunProblem::Beyond { end, allocated } => {
                write!(f, "ends at page {end}, though only {allocated} pages were allocated")
            }
        }
    }
}
