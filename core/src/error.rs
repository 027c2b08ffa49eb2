//! What can go wrong, with the values that say so. The words that a user reads are the caller's: here are plain ones,
//! for tests and logs.

use crate::layout::Layout;
use std::fmt;

/// An error: one pointer, so that results are returned in registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<Problem>);

/// A result whose error is an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// Bytes that are not a stored filter.
    InvalidBinary(InvalidBinary),
    /// Elements of different key kinds.
    KindMismatch(KindMismatch),
    /// A parameter out of its range, or filters that can't be merged.
    InvalidParameter(InvalidParameter),
    /// Larger than a filter, or an index, may be.
    TooLarge(TooLarge),
}

/// The same without values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// [`Problem::InvalidBinary`].
    InvalidBinary,
    /// [`Problem::KindMismatch`].
    KindMismatch,
    /// [`Problem::InvalidParameter`].
    InvalidParameter,
    /// [`Problem::TooLarge`].
    TooLarge,
}

/// What is wrong with bytes that should be a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum InvalidBinary {
    /// No operation of this crate would have written them.
    Damaged {
        /// What is wrong with them.
        what: String,
    },
    /// Another version of the stored form.
    UnknownVersion {
        /// That version.
        found: u8,
        /// The one that is read here.
        known: u8,
    },
    /// A counting filter where one of bits was expected.
    Counters {
        /// The code of its representation.
        representation: u8,
    },
    /// A filter of bits where a counting one was expected.
    NoCounters {
        /// The code of its representation.
        representation: u8,
    },
    /// They are not a filter of a Parquet file.
    Parquet {
        /// What is wrong with them, as a sentence.
        what: String,
    },
}

/// What has which kind.
#[derive(Clone, Debug, PartialEq)]
pub enum KindMismatch {
    /// A filter and an element.
    Element {
        /// The kind of the filter.
        filter: String,
        /// The kind of the element.
        element: String,
    },
    /// Two filters.
    Filters {
        /// The kind of the one.
        a: String,
        /// The kind of the other.
        b: String,
    },
}

/// What can't be.
#[derive(Clone, Debug, PartialEq)]
pub enum InvalidParameter {
    /// Two filters that can't be merged.
    Mismatch {
        /// What is different.
        why: Mismatch,
        /// What the one was made with.
        a: Parameters,
        /// What the other was made with.
        b: Parameters,
        /// The larger of the two: had both been made like it, they could be merged.
        larger: Parameters,
    },
    /// A false positive rate that a layout can't keep.
    Rate {
        /// The rate.
        fpr: f64,
        /// The layout.
        layout: Layout,
    },
    /// A false positive rate that an index can't keep.
    IndexRate {
        /// The rate.
        fpr: f64,
        /// The least that is possible.
        least: f64,
        /// The greatest that is possible.
        greatest: f64,
    },
    /// A capacity below one.
    Capacity {
        /// The capacity.
        capacity: i64,
    },
    /// A counting filter without a capacity, or with one below one.
    CountingCapacity {
        /// The capacity, if one was given.
        capacity: Option<i64>,
    },
    /// Elements for a counting filter of no size.
    NoCountersYet,
    /// Bytes that are too few for any filter.
    TooFewBytes {
        /// How many they are.
        bytes: u64,
        /// What the smallest filter has.
        least: u64,
    },
    /// Bits that are to be resized for the elements they have, which they don't tell.
    ResizeNeedsCapacity,
    /// Bits of a size that neither divides nor is divided by the one wanted.
    ResizeDoesNotDivide {
        /// What the filter was made with.
        own: Parameters,
        /// The capacity wanted.
        capacity: u64,
        /// Blocks of the size wanted.
        blocks: u64,
        /// A capacity near it that is possible, if there is one.
        possible: Option<u64>,
    },
    /// A layout that Parquet doesn't have.
    LayoutNotOfParquet {
        /// The layout.
        layout: Layout,
    },
    /// A kind of elements that no writer of Parquet hashes as this crate does.
    KindNotReadFromParquet {
        /// The kind.
        kind: String,
    },
    /// A kind of elements that no reader of Parquet hashes as this crate does.
    KindNotWrittenToParquet {
        /// The kind.
        kind: String,
    },
}

/// What there would be too much of.
#[derive(Clone, Debug, PartialEq)]
pub enum TooLarge {
    /// Bytes of a filter.
    Bytes {
        /// How many it has.
        bytes: u64,
        /// How many it may have.
        limit: u64,
        /// What it was to be made with.
        own: Parameters,
    },
    /// Bytes of a filter of a Parquet file.
    ParquetBytes {
        /// How many it has as a stored filter.
        bytes: u64,
        /// How many it may have.
        limit: u64,
        /// Bytes of its bits.
        payload: u64,
    },
    /// Bits: their number is not a 63-bit number.
    Bits {
        /// The capacity.
        capacity: u64,
        /// The rate.
        fpr: f64,
    },
    /// Filters of a set.
    Shards {
        /// The capacity.
        capacity: u64,
        /// The rate.
        fpr: f64,
        /// How many there would be.
        shards: u64,
        /// How many there may be.
        most: u64,
    },
    /// Filters of different sizes that one process hands to another.
    Sizes {
        /// Bytes that all of them take.
        bytes: usize,
    },
    /// Pages of an index.
    IndexPages {
        /// How many it would have.
        pages: u64,
    },
    /// Ranges of an index.
    IndexRanges {
        /// How many it would have.
        ranges: u64,
    },
}

/// Why two filters can't be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// They have different layouts.
    Layouts,
    /// They have different numbers of hashes.
    Hashes,
    /// The block count of neither is a multiple of the other's.
    Sizes,
    /// They have different numbers of counters.
    Counters,
}

/// What a filter was made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The layout.
    pub layout: Layout,
    /// Hashes per element (k).
    pub num_hashes: u32,
    /// Blocks of the dense payload.
    pub blocks: u64,
    /// Elements it was made for.
    pub capacity: u64,
    /// The rate promised at that capacity.
    pub fpr: f64,
}

impl Error {
    /// What went wrong.
    pub fn problem(&self) -> &Problem {
        &self.0
    }

    /// The same without values.
    pub fn class(&self) -> Class {
        match self.problem() {
            Problem::InvalidBinary(_) => Class::InvalidBinary,
            Problem::KindMismatch(_) => Class::KindMismatch,
            Problem::InvalidParameter(_) => Class::InvalidParameter,
            Problem::TooLarge(_) => Class::TooLarge,
        }
    }
}

macro_rules! problems {
    ($($problem:ident),*) => {
        $(impl From<$problem> for Error {
            #[cold]
            fn from(problem: $problem) -> Error {
                Error(Box::new(Problem::$problem(problem)))
            }
        })*
    };
}

problems!(InvalidBinary, KindMismatch, InvalidParameter, TooLarge);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem() {
            Problem::InvalidBinary(problem) => match problem {
                InvalidBinary::Damaged { what } => write!(f, "damaged filter: {what}"),
                InvalidBinary::Parquet { what } => write!(f, "damaged filter of a Parquet file: {what}"),
                InvalidBinary::UnknownVersion { found, known } => write!(f, "version {found}, which is not {known}"),
                InvalidBinary::Counters { representation } => {
                    write!(f, "representation {representation}: there are counters")
                }
                InvalidBinary::NoCounters { representation } => {
                    write!(f, "representation {representation}: there are no counters")
                }
            },
            Problem::KindMismatch(problem) => write!(f, "different kinds: {problem:?}"),
            Problem::InvalidParameter(problem) => write!(f, "invalid parameter: {problem:?}"),
            Problem::TooLarge(problem) => write!(f, "too large: {problem:?}"),
        }
    }
}

impl std::error::Error for Error {}
