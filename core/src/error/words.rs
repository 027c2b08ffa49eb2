//! The text of errors: a message without a full stop, such as "cannot merge …" or "… is too large",
//! and details in sentences.

use super::{
    Error, FilterSize, InvalidBinary, InvalidParameter, KindMismatch, Mismatch, Problem, TooLarge,
};
use crate::layout::{GREATEST_FPR, Layout, is_possible_fpr, least_fpr};
use std::fmt;

/// Rates below this are shown with an exponent: `1e-5` is easier to read than `0.00001`.
const LEAST_FPR_WITHOUT_EXPONENT: f64 = 1e-4;

impl Error {
    /// Returns what is wrong, without a full stop.
    ///
    /// `function` is the name of the function that the user called, if the message should name it:
    /// "cannot use bloom_add with …". Otherwise the message describes the operation.
    pub fn message(&self, function: Option<&str>) -> String {
        match self.problem() {
            Problem::InvalidBinary(problem) => problem.message(),
            Problem::KindMismatch(problem) => problem.message(function),
            Problem::InvalidParameter(problem) => problem.message(function),
            Problem::TooLarge(problem) => problem.message(),
        }
    }

    /// Returns what else is known about the error, in sentences; `None` if the message says all.
    pub fn detail(&self) -> Option<String> {
        match self.problem() {
            Problem::InvalidBinary(problem) => Some(problem.detail()),
            Problem::KindMismatch(problem) => problem.detail(),
            Problem::InvalidParameter(problem) => problem.detail(),
            Problem::TooLarge(problem) => problem.detail(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(None))?;
        match self.detail() {
            Some(detail) => write!(f, ". {detail}"),
            None => Ok(()),
        }
    }
}

/// Returns what follows "cannot" in a message: `operation`, such as "merge"; or, if a function is
/// to be named, its use, such as "use bloom_or with".
fn cannot_do(operation: &str, function: Option<&str>) -> String {
    match function {
        Some(function) => format!("use {function} with"),
        None => operation.into(),
    }
}

impl InvalidBinary {
    /// Returns what is wrong, without a full stop.
    fn message(&self) -> String {
        match self {
            InvalidBinary::Damaged(_) => "invalid bloom filter".into(),
            InvalidBinary::Parquet(_) => "invalid Parquet bloom filter".into(),
            InvalidBinary::UnknownVersion { found, .. } => {
                format!("bloom filter has format version {found}, which is unknown")
            }
            InvalidBinary::Counters { .. } => {
                "value is a counting bloom filter, not a bloom filter".into()
            }
            InvalidBinary::NoCounters { .. } => {
                "value is a bloom filter, not a counting bloom filter".into()
            }
        }
    }

    /// Returns what is known about the error beyond its message, as a sentence: PostgreSQL's
    /// DETAIL.
    fn detail(&self) -> String {
        match self {
            InvalidBinary::Damaged(why) => format!("The value is damaged: {why}."),
            // Already a sentence.
            InvalidBinary::Parquet(why) => why.clone(),
            InvalidBinary::UnknownVersion { known, .. } => {
                format!("This version of pg_bloom reads version {known}.")
            }
            InvalidBinary::Counters { representation } => {
                format!("Its representation is {representation}: counters.")
            }
            InvalidBinary::NoCounters { representation } => {
                format!("Its representation is {representation}: there are no counters.")
            }
        }
    }
}

impl KindMismatch {
    /// Returns what is wrong, without a full stop. `function` is the function that the user called,
    /// if the message should name it instead of the operation.
    fn message(&self, function: Option<&str>) -> String {
        match self {
            KindMismatch::Element { filter, element } => match function {
                None => format!(
                    "cannot use a bloom filter of kind {filter} with an element of kind {element}"
                ),
                Some(function) => format!(
                    "cannot use {function} with a bloom filter of kind {filter} and an element of kind {element}"
                ),
            },
            KindMismatch::Filters { a, b } => {
                let merge = cannot_do("merge", function);
                format!("cannot {merge} bloom filters of different key kinds {a} and {b}")
            }
            KindMismatch::Members { a, b } => {
                format!("array has members of different kinds {a} and {b}")
            }
        }
    }

    /// Returns what else is known about the error, as sentences; `None` if the message says all.
    fn detail(&self) -> Option<String> {
        match self {
            KindMismatch::Element { .. } => {
                Some("An element of another kind would never be found.".into())
            }
            KindMismatch::Filters { .. } | KindMismatch::Members { .. } => None,
        }
    }
}

impl InvalidParameter {
    /// Returns what is wrong, without a full stop. `function` is the function that the user called,
    /// if the message should name it instead of the operation.
    fn message(&self, function: Option<&str>) -> String {
        match self {
            InvalidParameter::Mismatch { .. } => {
                let merge = cannot_do("merge", function);
                format!("cannot {merge} bloom filters of different parameters")
            }
            InvalidParameter::Rate { fpr, layout } => rate_message(*fpr, *layout),
            InvalidParameter::Capacity(capacity) => {
                format!("capacity of a bloom filter must be at least 1, not {capacity}")
            }
            InvalidParameter::CountingCapacity(Some(capacity)) => {
                format!("capacity of a counting bloom filter must be at least 1, not {capacity}")
            }
            InvalidParameter::CountingCapacity(None) => {
                "a counting bloom filter needs a capacity".into()
            }
            InvalidParameter::NoCountersYet => {
                let add = cannot_do("add elements to", function);
                format!("cannot {add} a counting bloom filter of no size")
            }
            InvalidParameter::TooFewBytes { bytes, .. } => {
                format!("no bloom filter fits in {bytes} bytes")
            }
            InvalidParameter::ResizeNeedsCapacity => {
                "a dense bloom filter cannot be resized without a capacity".into()
            }
            InvalidParameter::ResizeDoesNotDivide { capacity, .. } => {
                format!("cannot resize a dense bloom filter to capacity {capacity}")
            }
            InvalidParameter::LayoutNotOfParquet(layout) => {
                format!("bloom filter of layout \"{}\" cannot be written to Parquet", layout.name())
            }
            InvalidParameter::KindNotReadFromParquet(kind) => {
                format!("bloom filters of Parquet files have no elements of kind {kind}")
            }
            InvalidParameter::KindNotWrittenToParquet(kind) => {
                format!("bloom filter of kind {kind} cannot be written to Parquet")
            }
            InvalidParameter::OutOfRange(kind) => {
                format!("element is out of range for a bloom filter of kind {kind}")
            }
            InvalidParameter::UnknownMembers => {
                "could not determine the kind of an array without members".into()
            }
            InvalidParameter::Ragged => {
                "an array must have as many members as its lengths say".into()
            }
        }
    }

    /// Returns what else is known about the error, as sentences; `None` if the message says all.
    fn detail(&self) -> Option<String> {
        let detail = match self {
            InvalidParameter::Mismatch { why, a, b, .. } => {
                format!("{a} against {b}. {}", why.reason())
            }
            InvalidParameter::ResizeNeedsCapacity => {
                "Its bits don't tell how many elements it has.".into()
            }
            InvalidParameter::ResizeDoesNotDivide { own, blocks, .. } => {
                let unit = if own.layout.block_bits() == 1 { "bits" } else { "blocks" };
                format!(
                    "It has {} {unit}, and that capacity at rate {} has {blocks}: neither is a multiple of the other.",
                    own.blocks, own.fpr
                )
            }
            InvalidParameter::LayoutNotOfParquet(_) => {
                "Parquet has filters of layout \"parquet\" only.".into()
            }
            InvalidParameter::KindNotReadFromParquet(_) => {
                "No writer of Parquet hashes elements of this kind as pg_bloom does.".into()
            }
            InvalidParameter::KindNotWrittenToParquet(_) => {
                "No reader of Parquet hashes elements of this kind as pg_bloom does.".into()
            }
            _ => return None,
        };
        Some(detail)
    }
}

/// Returns the message for a rate that filters of a layout can't have.
///
/// The message names the layout only if the default one, `blocked`, can have the rate.
fn rate_message(fpr: f64, layout: Layout) -> String {
    let is_tiny = fpr != 0.0 && fpr.abs() < LEAST_FPR_WITHOUT_EXPONENT;
    let shown_fpr = if is_tiny { format!("{fpr:e}") } else { fpr.to_string() };

    if is_possible_fpr(Layout::Blocked, fpr) {
        let name = layout.name();
        let range = shown_fpr_range(layout);
        format!("false positive rate in layout \"{name}\" must be {range}, not {shown_fpr}")
    } else {
        let range = shown_fpr_range(Layout::Blocked);
        format!("false positive rate must be {range}, not {shown_fpr}")
    }
}

/// Returns the rates that filters of a layout can have, as in "from 1e-9 to 0.5".
fn shown_fpr_range(layout: Layout) -> String {
    format!("from {:e} to {GREATEST_FPR}", least_fpr(layout))
}

impl Mismatch {
    /// Returns the rule that two filters break, as a sentence.
    fn reason(self) -> &'static str {
        match self {
            Mismatch::Layouts => "Filters of different layouts cannot be merged.",
            Mismatch::Hashes => {
                "Filters of different rates cannot be merged: the rate decides the number of hashes."
            }
            Mismatch::Sizes => "The larger size must be a multiple of the smaller.",
            Mismatch::Counters => "Only filters with equally many counters can be added.",
        }
    }
}

impl TooLarge {
    /// Returns what is wrong, without a full stop.
    fn message(&self) -> String {
        match self {
            TooLarge::Bytes { bytes, limit, .. } | TooLarge::ParquetBytes { bytes, limit, .. } => {
                format!("bloom filter of {bytes} bytes exceeds the limit of {limit} bytes")
            }
            TooLarge::Bits { capacity, fpr } => {
                format!(
                    "bloom filter for {capacity} elements at a false positive rate of {fpr} is too large"
                )
            }
            TooLarge::PartialState { .. } => {
                "bloom filters of too many sizes to be merged in parallel".into()
            }
            TooLarge::IndexPages(pages) => format!("index of {pages} pages is too large"),
            TooLarge::IndexRanges(ranges) => format!("an index cannot have {ranges} ranges"),
        }
    }

    /// Returns what else is known about the error, as sentences; `None` if the message says all.
    fn detail(&self) -> Option<String> {
        match self {
            TooLarge::Bytes { size, .. } => {
                let FilterSize { capacity, fpr, layout, .. } = size;
                let name = layout.name();
                Some(format!(
                    "Capacity {capacity} at a false positive rate of {fpr} in layout \"{name}\"."
                ))
            }
            TooLarge::ParquetBytes { payload, .. } => {
                Some(format!("It has {payload} bytes of bits."))
            }
            TooLarge::PartialState { bytes } => Some(format!("They take {bytes} bytes.")),
            TooLarge::Bits { .. } | TooLarge::IndexPages(_) | TooLarge::IndexRanges(_) => None,
        }
    }
}

impl fmt::Display for FilterSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FilterSize { layout, num_hashes, blocks, capacity, fpr } = self;
        let name = layout.name();
        let bits = blocks * layout.block_bits();
        write!(
            f,
            "layout \"{name}\", {num_hashes} hashes, {bits} bits (capacity {capacity}, rate {fpr})"
        )
    }
}
