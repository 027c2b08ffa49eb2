//! SQL's words for what can go wrong: SQLSTATE, message, detail and hint of each of the core's problems.

use crate::pg::call::error::{Error, Result, SqlState};
use pg_bloom_core::error::{InvalidBinary, InvalidParameter, KindMismatch, Mismatch, Parameters, TooLarge};
use pg_bloom_core::sizing::{GREATEST_FPR, is_possible_fpr, least_fpr};
use pg_bloom_core::{Layout, MAX_STORED_BYTES, Problem};

/// A refusal of an element's type, 0A000.
pub fn unsupported(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message).hint(hint)
}

/// An invalid parameter, 22023.
pub fn invalid_parameter(message: impl Into<String>) -> Error {
    Error::new(SqlState::ERRCODE_INVALID_PARAMETER_VALUE, message)
}

/// Results of the core.
pub trait During<T> {
    /// The result, or the error in SQL's words, which name the SQL function that was called.
    ///
    /// # Errors
    /// Those of the core.
    fn during(self, function: &str) -> Result<T>;
}

impl<T> During<T> for pg_bloom_core::Result<T> {
    #[inline(always)]
    fn during(self, function: &str) -> Result<T> {
        self.map_err(|error| describe(&error, Some(function)))
    }
}

impl From<pg_bloom_core::Error> for Error {
    fn from(error: pg_bloom_core::Error) -> Error {
        describe(&error, None)
    }
}

#[cold]
fn describe(error: &pg_bloom_core::Error, function: Option<&str>) -> Error {
    match error.problem() {
        Problem::InvalidBinary(problem) => damaged(problem),
        Problem::KindMismatch(problem) => of_other_kind(problem, function),
        Problem::InvalidParameter(problem) => invalid(problem, function),
        Problem::TooLarge(problem) => too_large(problem),
    }
}

/// What the call did, for a message: `cannot …`.
fn using(function: Option<&str>, otherwise: &str) -> String {
    function.map_or_else(|| otherwise.into(), |function| format!("use {function} with"))
}

fn damaged(problem: &InvalidBinary) -> Error {
    let error = |message: &str| Error::new(SqlState::ERRCODE_INVALID_BINARY_REPRESENTATION, message);
    match problem {
        InvalidBinary::UnknownVersion { found, known } => {
            error(&format!("bloom filter has format version {found}, which is unknown"))
                .detail(format!("This version of pg_bloom reads version {known}."))
                .hint(
                    "If a newer pg_bloom wrote it, update the extension; else the value is damaged or no bloom filter.",
                )
        }
        InvalidBinary::Counters(representation) => error("value is a counting bloom filter, not a bloom filter")
            .detail(format!("Its representation is {representation}: counters."))
            .hint("Read it as counting_bloom, and cast that to bloom."),
        InvalidBinary::NoCounters(representation) => error("value is a bloom filter, not a counting bloom filter")
            .detail(format!("Its representation is {representation}: there are no counters."))
            .hint("Read it as bloom. Counters cannot be had from bits: build the filter with counting_bloom_agg."),
        InvalidBinary::Parquet(what) => error("invalid Parquet bloom filter")
            .detail(what)
            .hint("It is the header and the bits: bloom_filter_length bytes of a file from bloom_filter_offset on."),
        InvalidBinary::Damaged(what) => error("invalid bloom filter").detail(format!("The value is damaged: {what}.")),
    }
}

fn of_other_kind(problem: &KindMismatch, function: Option<&str>) -> Error {
    let error = |message| Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message);
    match problem {
        KindMismatch::Element { filter, element } => error(format!(
            "cannot {} a bloom filter of kind {filter} and an element of kind {element}",
            using(function, "use together")
        ))
        .detail("An element of another kind would never be found.")
        .hint(advice_on_kinds(filter, element, function)),
        KindMismatch::Filters { a, b } => {
            error(format!("cannot {} bloom filters of different key kinds {a} and {b}", using(function, "merge")))
                .hint("Build both filters from elements of one type, with a cast where they differ.")
        }
        // SQL's arrays have members of one type.
        KindMismatch::Members { .. } => error(problem.to_string()),
    }
}

/// What to do about an element of another kind.
fn advice_on_kinds(filter: &str, element: &str, function: Option<&str>) -> String {
    let is_array_of = |array: &str, member: &str| array.strip_prefix("array of ") == Some(member);
    if !is_array_of(element, filter) && !is_array_of(filter, element) {
        return format!("Cast the element to a type of kind {filter}.");
    }
    let begins = |start: &str| function.is_some_and(|function| function.starts_with(start));
    let (of_one, of_members) = if begins("counting_") {
        ("counting_bloom_add or counting_bloom_remove", "counting_bloom_add_all or counting_bloom_remove_all")
    } else if begins("bloom_set_") {
        (
            "bloom_set_add, bloom_set_contains or bloom_set_remove",
            "bloom_set_add_all, bloom_set_present, bloom_set_absent or bloom_set_remove_all",
        )
    } else {
        ("bloom_add or bloom_contains", "bloom_add_all, bloom_contains_any or bloom_contains_all")
    };
    let takes_members =
        function.is_some_and(|name| ["_all", "_any", "_present", "_absent"].iter().any(|end| name.ends_with(end)));
    if takes_members && is_array_of(filter, element) {
        format!("To use an array as one element, call {of_one}.")
    } else {
        format!("To use the array's members, call {of_members}.")
    }
}

fn invalid(problem: &InvalidParameter, function: Option<&str>) -> Error {
    match problem {
        InvalidParameter::Mismatch { why, a, b, larger } => mismatch(*why, [a, b], larger, function),
        InvalidParameter::Rate { fpr, layout } => rate(*fpr, *layout),
        InvalidParameter::IndexRate { fpr, least, greatest } => {
            invalid_parameter(format!("false positive rate of an index must be from {least} to {greatest}, not {fpr}"))
                .hint("It is the share of all ranges that are read unnecessarily for an absent key.")
        }
        InvalidParameter::Capacity(capacity) => invalid_parameter(format!(
            "capacity of a bloom filter must be at least 1, not {capacity}"
        ))
        .hint("The capacity is the number of distinct elements expected; NULL sizes the filter for what it sees."),
        InvalidParameter::CountingCapacity(capacity) => counting_capacity(*capacity),
        InvalidParameter::NoCountersYet => invalid_parameter(format!(
            "cannot {} a counting bloom filter of no size",
            using(function, "add elements to")
        ))
        .hint("Make the filter with a capacity: counting_bloom_empty(capacity)."),
        InvalidParameter::TooFewBytes { bytes, least } => {
            invalid_parameter(format!("no bloom filter fits in {bytes} bytes"))
                .hint(format!("The smallest with this rate and layout has {least} bytes."))
        }
        InvalidParameter::ResizeNeedsCapacity => {
            invalid_parameter("a dense bloom filter cannot be resized without a capacity")
                .detail("Its bits don't tell how many elements it has.")
                .hint("Give the number of distinct elements to make room for.")
        }
        InvalidParameter::ResizeDoesNotDivide { own, capacity, blocks, possible } => {
            does_not_divide(own, *capacity, *blocks, *possible)
        }
        InvalidParameter::LayoutNotOfParquet(layout) => {
            invalid_parameter(format!("bloom filter of layout \"{}\" cannot be written to Parquet", layout.name()))
                .detail("Parquet has filters of layout \"parquet\" only.")
                .hint("Build it with layout 'parquet', for instance bloom_agg(x, capacity, fpr, 'parquet').")
        }
        InvalidParameter::KindNotReadFromParquet(kind) => {
            invalid_parameter(format!("bloom filters of Parquet files have no elements of kind {kind}"))
                .detail("No writer of Parquet hashes elements of this kind as pg_bloom does.")
                .hint("Name the type of the Parquet column, for instance text or bigint.")
        }
        InvalidParameter::KindNotWrittenToParquet(kind) => {
            invalid_parameter(format!("bloom filter of kind {kind} cannot be written to Parquet"))
                .detail("No reader of Parquet hashes elements of this kind as pg_bloom does.")
                .hint("Cast the elements to the type of the Parquet column, for instance text or bigint.")
        }
        InvalidParameter::OutOfRange(_) => {
            invalid_parameter(problem.to_string()).hint("Build the filter from elements of the wider type.")
        }
        // SQL's arrays can't be so.
        InvalidParameter::UnknownMembers | InvalidParameter::Ragged => invalid_parameter(problem.to_string()),
    }
}

fn counting_capacity(capacity: Option<i64>) -> Error {
    let message = match capacity {
        Some(capacity) => format!("capacity of a counting bloom filter must be at least 1, not {capacity}"),
        None => "a counting bloom filter needs a capacity".into(),
    };
    invalid_parameter(message)
        .hint("Give the number of distinct elements that it will have at a time: counters cannot be resized later.")
}

fn mismatch(why: Mismatch, both: [&Parameters; 2], larger: &Parameters, function: Option<&str>) -> Error {
    let [a, b] = both.map(|own| {
        let bits = own.blocks * own.layout.block_bits();
        let layout = own.layout.name();
        format!(
            "layout \"{layout}\", {} hashes, {bits} bits (capacity {}, rate {})",
            own.num_hashes, own.capacity, own.fpr
        )
    });
    let reason = match why {
        Mismatch::Layouts => "Filters of different layouts cannot be merged.",
        Mismatch::Hashes => "Filters of different rates cannot be merged: the rate decides the number of hashes.",
        Mismatch::Sizes => "The larger size must be a multiple of the smaller.",
        Mismatch::Counters => "Only filters with equally many counters can be added.",
    };
    invalid_parameter(format!("cannot {} bloom filters of different parameters", using(function, "merge")))
        .detail(format!("{a} against {b}. {reason}"))
        .hint(format!(
            "Build both with the same capacity, rate and layout, for instance capacity {}, rate {} and layout \"{}\".",
            larger.capacity,
            larger.fpr,
            larger.layout.name()
        ))
}

fn rate(fpr: f64, layout: Layout) -> Error {
    let shown = if fpr != 0.0 && fpr.abs() < 1e-4 { format!("{fpr:e}") } else { fpr.to_string() };
    let possible = |layout| format!("from {:e} to {GREATEST_FPR}", least_fpr(layout));
    let elsewhere = is_possible_fpr(Layout::Blocked, fpr);
    let message = if elsewhere {
        format!("false positive rate in layout \"{}\" must be {}, not {shown}", layout.name(), possible(layout))
    } else {
        format!("false positive rate must be {}, not {shown}", possible(Layout::Blocked))
    };
    let hint = if elsewhere {
        "Use layout \"blocked\", which reaches 1e-9."
    } else if fpr > 0.0 && fpr < GREATEST_FPR {
        "A filter of few elements keeps their hashes and is exact to 2^-64."
    } else {
        "A rate of 0.01 means that one in a hundred absent elements is reported as present."
    };
    invalid_parameter(message).hint(hint)
}

fn does_not_divide(own: &Parameters, capacity: u64, blocks: u64, possible: Option<u64>) -> Error {
    let unit = if own.layout.block_bits() == 1 { "bits" } else { "blocks" };
    let hint = match possible {
        Some(possible) => format!("Use capacity {possible}, or build the filter from its elements."),
        None => "Build the filter from its elements.".into(),
    };
    invalid_parameter(format!("cannot resize a dense bloom filter to capacity {capacity}"))
        .detail(format!(
            "It has {} {unit}, and that capacity at rate {} has {blocks}: neither is a multiple of the other.",
            own.blocks, own.fpr
        ))
        .hint(hint)
}

fn too_large(problem: &TooLarge) -> Error {
    let error = |message: String| Error::new(SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message);
    let too_many_bytes =
        |bytes: u64, limit: u64| error(format!("bloom filter of {bytes} bytes exceeds the limit of {limit} bytes"));
    match problem {
        TooLarge::Bytes { bytes, limit, own } => {
            // Beyond the largest value of the setting nothing is gained by raising it.
            let raise = if *bytes <= MAX_STORED_BYTES { ", raise pg_bloom.max_filter_size" } else { "" };
            too_many_bytes(*bytes, *limit)
                .detail(format!(
                    "Capacity {} at a false positive rate of {} in layout \"{}\".",
                    own.capacity,
                    own.fpr,
                    own.layout.name()
                ))
                .hint(format!(
                    "Use a smaller capacity or a higher rate{raise}, or spread the elements over several filters with bloom_shard."
                ))
        }
        TooLarge::ParquetBytes { bytes, limit, payload } => too_many_bytes(*bytes, *limit)
            .detail(format!("It has {payload} bytes of bits."))
            .hint(if *bytes <= MAX_STORED_BYTES {
                "Raise pg_bloom.max_filter_size."
            } else {
                "Ask each file's own filter, or have the files written with smaller ones."
            }),
        TooLarge::Bits { capacity, fpr } => {
            error(format!("bloom filter for {capacity} elements at a false positive rate of {fpr} is too large"))
                .hint("Use a smaller capacity.")
        }
        TooLarge::Sizes(bytes) => error("bloom filters of too many sizes to be merged in parallel".into())
            .detail(format!("They take {bytes} bytes."))
            .hint("Build filters that will be merged with the same capacity, or merge them without parallel workers."),
        TooLarge::IndexPages(pages) => error(format!("index of {pages} pages is too large"))
            .hint("Use more pages per range, or a higher false positive rate."),
        TooLarge::IndexRanges(ranges) => {
            error(format!("an index cannot have {ranges} ranges")).hint("Use more pages per range.")
        }
    }
}
