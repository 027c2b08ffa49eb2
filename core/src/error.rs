//! Errors and the values that they are about. `words` has what is said of them: a message, and
//! details. What the user can do about them depends on where the crate is used, so it is for the
//! caller to say.

#![allow(missing_docs, reason = "names of fields say what they are")]

mod words;

use crate::layout::Layout;

/// An error: one pointer, so that results are returned in registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<Problem>);

/// A result with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong: a [`Class`] with values.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    InvalidBinary(InvalidBinary),
    KindMismatch(KindMismatch),
    InvalidParameter(InvalidParameter),
    TooLarge(TooLarge),
}

/// What went wrong, without values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Bytes are not a stored filter.
    InvalidBinary,
    /// Elements have different key kinds.
    KindMismatch,
    /// A parameter is out of its range, or filters can't be merged.
    InvalidParameter,
    /// Something is larger than a filter, or an index, may be.
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
    /// Two filters that can't be merged. Those that were both built like the larger could be.
    Mismatch {
        why: Mismatch,
        a: Parameters,
        b: Parameters,
        larger: Parameters,
    },
    /// A false positive rate that a layout can't keep.
    Rate(f64, Layout),
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
    /// The size of the bits neither divides nor is divided by the requested one, which has so many
    /// blocks; and a capacity near it that is possible, if there is one.
    ResizeDoesNotDivide {
        own: Parameters,
        capacity: u64,
        blocks: u64,
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
    /// A filter of so many bytes.
    Bytes { bytes: u64, limit: u64, own: Parameters },
    /// A filter of a Parquet file, which has so many bytes as a stored filter, of them `payload` of
    /// bits.
    ParquetBytes { bytes: u64, limit: u64, payload: u64 },
    /// The number of bits for this capacity at this rate exceeds 63 bits.
    Bits(u64, f64),
    /// Filters of different sizes that one process passes to another: bytes that all of them take.
    Sizes(usize),
    /// An index with so many pages.
    IndexPages(u64),
    /// An index with so many ranges.
    IndexRanges(u64),
}

/// What differs in two filters that can't be merged. Of sizes, neither is a multiple of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    Layouts,
    Hashes,
    Sizes,
    Counters,
}

/// The parameters of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    pub layout: Layout,
    /// Hashes per element (k).
    pub num_hashes: u32,
    /// Blocks of the dense payload.
    pub blocks: u64,
    pub capacity: u64,
    /// The false positive rate promised at that capacity.
    pub fpr: f64,
}

impl Error {
    pub fn problem(&self) -> &Problem {
        &self.0
    }

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
