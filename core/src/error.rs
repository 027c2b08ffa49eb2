//! Errors, and the values that they are about.
//!
//! `words` writes the text of an error: a message, and details. The text doesn't say what the user
//! can do, since that depends on where the crate is used; the caller adds a hint.

#![allow(missing_docs, reason = "names of variants and fields say what they are")]

mod words;

use crate::layout::{Layout, Shape};

/// An error of this crate.
///
/// It has the size of one pointer, so that a [`Result`] is returned in registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<Problem>);

/// A result with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, with the values that show it.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    InvalidBinary(InvalidBinary),
    KindMismatch(KindMismatch),
    InvalidParameter(InvalidParameter),
    TooLarge(TooLarge),
}

/// The class of an error: a [`Problem`] without its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Bytes are not a stored filter.
    InvalidBinary,
    /// Elements have different key kinds.
    KindMismatch,
    /// A parameter is out of its range, or filters can't be merged.
    InvalidParameter,
    /// A filter or an index would be larger than allowed.
    TooLarge,
}

/// What is wrong with bytes that should be a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum InvalidBinary {
    /// No operation of this crate writes such bytes. The text completes "the value is damaged: ".
    Damaged(String),
    /// The bytes have a version of the stored form other than `known`, which this crate reads.
    UnknownVersion { found: u8, known: u8 },
    /// The value is a counting filter, but a bit filter was expected.
    Counters { representation: u8 },
    /// The value is a bit filter, but a counting filter was expected.
    NoCounters { representation: u8 },
    /// The bytes are not a filter of a Parquet file. The text is a sentence that says why.
    Parquet(String),
}

/// Two key kinds that differ although they must be the same. Each is given as its name.
#[derive(Clone, Debug, PartialEq)]
pub enum KindMismatch {
    /// The kind of a filter, and that of an element that is added to it or probed in it.
    Element { filter: String, element: String },
    /// The kinds of two filters that should be merged.
    Filters { a: String, b: String },
    /// The kinds of two members of one array.
    Members { a: String, b: String },
}

/// A request that can't be fulfilled.
#[derive(Clone, Debug, PartialEq)]
pub enum InvalidParameter {
    /// Filters `a` and `b` can't be merged. Two filters that are built with the size of `larger`,
    /// which is one of them, could be.
    Mismatch {
        why: Mismatch,
        a: FilterSize,
        b: FilterSize,
        larger: FilterSize,
    },
    /// A false positive rate that filters of a layout can't have.
    Rate { fpr: f64, layout: Layout },
    /// A capacity below one.
    Capacity(i64),
    /// A counting filter must have a capacity of at least one. `None` if none was given.
    CountingCapacity(Option<i64>),
    /// Elements were added to a counting filter that has no size.
    NoCountersYet,
    /// A filter of at most `bytes` bytes was requested, but the smallest one has `least` bytes.
    TooFewBytes { bytes: u64, least: u64 },
    /// A dense filter can only be resized to a given capacity: its bits don't tell how many
    /// elements it has.
    ResizeNeedsCapacity,
    /// A dense filter, `own`, can't be resized to `capacity`: that needs `blocks` blocks, and
    /// neither number of blocks is a multiple of the other. `possible` is a capacity near the
    /// requested one that works, if there is one.
    ResizeDoesNotDivide {
        own: FilterSize,
        capacity: u64,
        blocks: u64,
        possible: Option<u64>,
    },
    /// A filter of this layout can't be written to Parquet, which has only the layout `parquet`.
    LayoutNotOfParquet(Layout),
    /// No writer of Parquet hashes elements of this kind as this crate does.
    KindNotReadFromParquet(String),
    /// No reader of Parquet hashes elements of this kind as this crate does.
    KindNotWrittenToParquet(String),
    /// An element is a number that filters of this kind can't have.
    OutOfRange(String),
    /// A filter that has no kind yet got only arrays of NULLs, or without members: they don't tell
    /// the kind of their members.
    UnknownMembers,
    /// An array has another number of members than its lengths say, or has arrays as members.
    Ragged,
}

/// What exceeds a limit.
#[derive(Clone, Debug, PartialEq)]
pub enum TooLarge {
    /// A filter of this size would have `bytes` bytes as stored.
    Bytes { bytes: u64, limit: u64, size: FilterSize },
    /// A filter of a Parquet file would have `bytes` bytes as stored, `payload` of them for bits.
    ParquetBytes { bytes: u64, limit: u64, payload: u64 },
    /// A filter for this capacity and rate would have 2^63 bits or more.
    Bits { capacity: u64, fpr: f64 },
    /// Filters of many sizes that are being merged take this many bytes, more than one process can
    /// pass to another.
    PartialState { bytes: usize },
    /// An index would have this many pages.
    IndexPages(u64),
    /// An index would have this many ranges.
    IndexRanges(u64),
}

/// The property in which two filters differ so that they can't be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    Layouts,
    /// The numbers of hashes per element.
    Hashes,
    /// The numbers of blocks, of which neither is a multiple of the other.
    Sizes,
    /// The numbers of counters.
    Counters,
}

/// The size of a filter, and the parameters from which it was computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterSize {
    pub layout: Layout,
    /// Hashes per element (k).
    pub num_hashes: u32,
    /// Blocks of the dense form.
    pub blocks: u64,
    /// How many distinct elements the filter is for.
    pub capacity: u64,
    /// The false positive rate promised at that capacity.
    pub fpr: f64,
}

impl FilterSize {
    /// Returns what decides the bits of an element in a filter of this size.
    pub fn shape(&self) -> Shape {
        Shape {
            layout: self.layout,
            num_hashes: self.num_hashes,
            blocks: self.blocks,
        }
    }
}

impl Error {
    /// Returns what went wrong, with the values that show it.
    pub fn problem(&self) -> &Problem {
        &self.0
    }

    /// Returns the class of the error.
    pub fn class(&self) -> Class {
        match self.problem() {
            Problem::InvalidBinary(_) => Class::InvalidBinary,
            Problem::KindMismatch(_) => Class::KindMismatch,
            Problem::InvalidParameter(_) => Class::InvalidParameter,
            Problem::TooLarge(_) => Class::TooLarge,
        }
    }
}

/// Implements the conversion of each problem into an [`Error`].
macro_rules! impl_into_error {
    ($($problem:ident),*) => {
        $(impl From<$problem> for Error {
            #[cold]
            fn from(problem: $problem) -> Error {
                Error(Box::new(Problem::$problem(problem)))
            }
        })*
    };
}

impl_into_error!(InvalidBinary, KindMismatch, InvalidParameter, TooLarge);

impl std::error::Error for Error {}

/// Returns the error for bytes that no operation of this crate writes. `why` completes "the value
/// is damaged: ".
#[cold]
pub(crate) fn damaged(why: impl Into<String>) -> Error {
    InvalidBinary::Damaged(why.into()).into()
}

/// Checks a rule that all bytes written by this crate keep. `why` is called for the text of the
/// error, which completes "the value is damaged: ".
///
/// Fails unless the rule holds.
#[inline(always)]
pub(crate) fn require(holds: bool, why: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(damaged(why())) }
}
