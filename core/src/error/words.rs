//! What is said of errors: a message, as in "cannot …" or "… is too large", and details in
//! sentences.

use super::{
    Error, InvalidBinary, InvalidParameter, KindMismatch, Mismatch, Parameters, Problem, TooLarge,
};
use crate::layout::{GREATEST_FPR, Layout, is_possible_fpr, least_fpr};
use std::fmt;

impl Error {
    /// What is wrong, without a full stop. `function` is what the user called, if that has a name
    /// of its own.
    pub fn message(&self, function: Option<&str>) -> String {
        match self.problem() {
            Problem::InvalidBinary(problem) => problem.message(),
            Problem::KindMismatch(problem) => problem.message(function),
            Problem::InvalidParameter(problem) => problem.message(function),
            Problem::TooLarge(problem) => problem.message(),
        }
    }

    /// More about it, in sentences.
    pub fn detail(&self) -> Option<String> {
        match self.problem() {
            Problem::InvalidBinary(problem) => problem.detail(),
            Problem::KindMismatch(KindMismatch::Element(..)) => {
                Some("An element of another kind would never be found.".into())
            }
            Problem::KindMismatch(_) => None,
            Problem::InvalidParameter(problem) => problem.detail(),
            Problem::TooLarge(problem) => problem.detail(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(None))?;
        self.detail().map_or(Ok(()), |detail| write!(f, ". {detail}"))
    }
}

/// What a call did, as in `cannot …`.
fn using(function: Option<&str>, otherwise: &str) -> String {
    function.map_or_else(|| otherwise.into(), |function| format!("use {function} with"))
}

impl InvalidBinary {
    fn message(&self) -> String {
        match self {
            InvalidBinary::Damaged(_) => "invalid bloom filter".into(),
            InvalidBinary::Parquet(_) => "invalid Parquet bloom filter".into(),
            InvalidBinary::UnknownVersion(found, _) => {
                format!("bloom filter has format version {found}, which is unknown")
            }
            InvalidBinary::Counters(_) => {
                "value is a counting bloom filter, not a bloom filter".into()
            }
            InvalidBinary::NoCounters(_) => {
                "value is a bloom filter, not a counting bloom filter".into()
            }
        }
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            InvalidBinary::Damaged(what) => format!("The value is damaged: {what}."),
            InvalidBinary::Parquet(what) => what.clone(),
            InvalidBinary::UnknownVersion(_, known) => {
                format!("This version of pg_bloom reads version {known}.")
            }
            InvalidBinary::Counters(representation) => {
                format!("Its representation is {representation}: counters.")
            }
            InvalidBinary::NoCounters(representation) => {
                format!("Its representation is {representation}: there are no counters.")
            }
        })
    }
}

impl KindMismatch {
    fn message(&self, function: Option<&str>) -> String {
        match self {
            KindMismatch::Element(filter, element) => match function {
                None => format!(
                    "cannot use a bloom filter of kind {filter} with an element of kind {element}"
                ),
                Some(function) => format!(
                    "cannot use {function} with a bloom filter of kind {filter} and an element of kind {element}"
                ),
            },
            KindMismatch::Filters(a, b) => {
                format!(
                    "cannot {} bloom filters of different key kinds {a} and {b}",
                    using(function, "merge")
                )
            }
            KindMismatch::Members(a, b) => {
                format!("array has members of different kinds {a} and {b}")
            }
        }
    }
}

impl InvalidParameter {
    fn message(&self, function: Option<&str>) -> String {
        match self {
            InvalidParameter::Mismatch { .. } => {
                format!("cannot {} bloom filters of different parameters", using(function, "merge"))
            }
            InvalidParameter::Rate(fpr, layout) => rate(*fpr, *layout),
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
                format!(
                    "cannot {} a counting bloom filter of no size",
                    using(function, "add elements to")
                )
            }
            InvalidParameter::TooFewBytes(bytes, _) => {
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

    fn detail(&self) -> Option<String> {
        Some(match self {
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
        })
    }
}

/// The message for a rate that a layout can't keep, and perhaps no other.
fn rate(fpr: f64, layout: Layout) -> String {
    let shown = if fpr != 0.0 && fpr.abs() < 1e-4 {
        format!("{fpr:e}")
    } else {
        fpr.to_string()
    };
    let possible = |layout| format!("from {:e} to {GREATEST_FPR}", least_fpr(layout));
    if is_possible_fpr(Layout::Blocked, fpr) {
        format!(
            "false positive rate in layout \"{}\" must be {}, not {shown}",
            layout.name(),
            possible(layout)
        )
    } else {
        format!("false positive rate must be {}, not {shown}", possible(Layout::Blocked))
    }
}

impl Mismatch {
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
    fn message(&self) -> String {
        match self {
            TooLarge::Bytes { bytes, limit, .. } | TooLarge::ParquetBytes { bytes, limit, .. } => {
                format!("bloom filter of {bytes} bytes exceeds the limit of {limit} bytes")
            }
            TooLarge::Bits(capacity, fpr) => {
                format!(
                    "bloom filter for {capacity} elements at a false positive rate of {fpr} is too large"
                )
            }
            TooLarge::Sizes(_) => "bloom filters of too many sizes to be merged in parallel".into(),
            TooLarge::IndexPages(pages) => format!("index of {pages} pages is too large"),
            TooLarge::IndexRanges(ranges) => format!("an index cannot have {ranges} ranges"),
        }
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            TooLarge::Bytes { own: Parameters { capacity, fpr, layout, .. }, .. } => {
                format!(
                    "Capacity {capacity} at a false positive rate of {fpr} in layout \"{}\".",
                    layout.name()
                )
            }
            TooLarge::ParquetBytes { payload, .. } => format!("It has {payload} bytes of bits."),
            TooLarge::Sizes(bytes) => format!("They take {bytes} bytes."),
            _ => return None,
        })
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameters { layout, num_hashes, blocks, capacity, fpr } = self;
        let bits = blocks * layout.block_bits();
        write!(
            f,
            "layout \"{}\", {num_hashes} hashes, {bits} bits (capacity {capacity}, rate {fpr})",
            layout.name()
        )
    }
}
