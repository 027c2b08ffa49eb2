//! Errors and the values that they are about. `words` has what is said of them: a message, and details. What the user
//! can do about them depends on where the crate is used, so it is for the caller to say.

mod words;

use crate::layout::{Layout, Shape};

/// An error: one pointer, so that results are returned in registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<Problem>);

/// A result with an [`Error`].
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

/// The kind of an error, without values.
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
    /// No operation of this crate writes them: what is wrong with them.
    Damaged(String),
    /// Another version of the stored form than the second, which is read here.
    UnknownVersion(u8, u8),
    /// A counting filter where one of bits was expected: the code of its representation.
    Counters(u8),
    /// A filter of bits where a counting one was expected: the code of its representation.
    NoCounters(u8),
    /// They are not a filter of a Parquet file: what is wrong with them, as a sentence.
    Parquet(String),
}

/// Two key kinds that differ.
#[derive(Clone, Debug, PartialEq)]
pub enum KindMismatch {
    /// A filter and an element of these kinds.
    Element(String, String),
    /// Two filters of these kinds.
    Filters(String, String),
    /// Two members of an array, of these kinds.
    Members(String, String),
}

/// What is not possible.
#[derive(Clone, Debug, PartialEq)]
pub enum InvalidParameter {
    /// Two filters that can't be merged.
    Mismatch {
        /// What is different.
        why: Mismatch,
        /// The parameters of the first.
        a: Parameters,
        /// The parameters of the second.
        b: Parameters,
        /// The larger of the two: filters that were both built like it could be merged.
        larger: Parameters,
    },
    /// A false positive rate that a layout can't keep.
    Rate(f64, Layout),
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
    Capacity(i64),
    /// A counting filter without a capacity, or with one below one.
    CountingCapacity(Option<i64>),
    /// Elements for a counting filter of no size.
    NoCountersYet,
    /// Bytes that are too few for any filter, and those of the smallest.
    TooFewBytes(u64, u64),
    /// Bits can't be resized without a capacity, since their elements are not known.
    ResizeNeedsCapacity,
    /// The size of the bits neither divides nor is divided by the requested one.
    ResizeDoesNotDivide {
        /// The parameters of the filter.
        own: Parameters,
        /// The requested capacity.
        capacity: u64,
        /// Blocks of the requested size.
        blocks: u64,
        /// A capacity near it that is possible, if there is one.
        possible: Option<u64>,
    },
    /// A layout that Parquet doesn't have.
    LayoutNotOfParquet(Layout),
    /// A kind of elements that no writer of Parquet hashes as this crate does.
    KindNotReadFromParquet(String),
    /// A kind of elements that no reader of Parquet hashes as this crate does.
    KindNotWrittenToParquet(String),
    /// A number that a filter of this kind can't have.
    OutOfRange(String),
    /// An array without members, or with NULLs only, for a filter that has no kind yet.
    UnknownMembers,
    /// An array whose members are not as many as its lengths say, or are arrays.
    Ragged,
}

/// What would be too large.
#[derive(Clone, Debug, PartialEq)]
pub enum TooLarge {
    /// Bytes of a filter.
    Bytes {
        /// How many it has.
        bytes: u64,
        /// How many it may have.
        limit: u64,
        /// Its parameters.
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
    /// The number of bits for this capacity at this rate exceeds 63 bits.
    Bits(u64, f64),
    /// Filters of different sizes that one process passes to another: bytes that all of them take.
    Sizes(usize),
    /// An index with so many pages.
    IndexPages(u64),
    /// An index with so many ranges.
    IndexRanges(u64),
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

/// The parameters of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The layout.
    pub layout: Layout,
    /// Hashes per element (k).
    pub num_hashes: u32,
    /// Blocks of the dense payload.
    pub blocks: u64,
    /// Its capacity.
    pub capacity: u64,
    /// The false positive rate promised at that capacity.
    pub fpr: f64,
}

impl Parameters {
    /// The shape, which decides the bits that an element sets.
    pub fn shape(&self) -> Shape {
        Shape { layout: self.layout, num_hashes: self.num_hashes, blocks: self.blocks }
    }
}

impl Error {
    /// What went wrong.
    pub fn problem(&self) -> &Problem {
        &self.0
    }

    /// The kind of an error, without values.
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

impl std::error::Error for Error {}
