//! What SQL adds to the core's errors: SQLSTATE, and what the user can do about each.

use crate::pg::call::error::{Error, Result, SqlState};
use pg_bloom_core::error::{InvalidBinary, InvalidParameter, KindMismatch, TooLarge};
use pg_bloom_core::sizing::{GREATEST_FPR, is_possible_fpr};
use pg_bloom_core::{Layout, MAX_STORED_BYTES, Problem};

/// A refusal of an element's type, 0A000.
pub fn unsupported(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message).hint(hint)
}

/// An invalid parameter, 22023.
pub fn invalid_parameter(message: impl Into<String>) -> Error {
    Error::new(SqlState::ERRCODE_INVALID_PARAMETER_VALUE, message)
}

/// Turns a result of the core into a result of a SQL function.
pub trait WithFunctionName<T> {
    /// Returns the result, or its error as PostgreSQL reports it, in which the message and the hint
    /// name `function`, the SQL function that was called.
    fn with_function_name(self, function: &str) -> Result<T>;
}

impl<T> WithFunctionName<T> for pg_bloom_core::Result<T> {
    #[inline(always)]
    fn with_function_name(self, function: &str) -> Result<T> {
        self.map_err(|error| to_sql_error(&error, Some(function)))
    }
}

impl From<pg_bloom_core::Error> for Error {
    fn from(error: pg_bloom_core::Error) -> Error {
        to_sql_error(&error, None)
    }
}

/// Returns an error of the core as PostgreSQL reports it: with a SQLSTATE, a hint that says what
/// the user can do, and the name of the SQL function that was called, if it is known.
#[cold]
fn to_sql_error(error: &pg_bloom_core::Error, function: Option<&str>) -> Error {
    let (state, hint) = match error.problem() {
        Problem::InvalidBinary(problem) => {
            (SqlState::ERRCODE_INVALID_BINARY_REPRESENTATION, hint_for_binary(problem))
        }
        Problem::KindMismatch(problem) => {
            (SqlState::ERRCODE_DATATYPE_MISMATCH, hint_for_other_kind(problem, function))
        }
        Problem::InvalidParameter(problem) => {
            (SqlState::ERRCODE_INVALID_PARAMETER_VALUE, hint_for_parameter(problem))
        }
        Problem::TooLarge(problem) => {
            (SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED, Some(hint_for_too_large(problem)))
        }
    };
    let mut sql_error = Error::new(state, error.message(function));
    if let Some(detail) = error.detail() {
        sql_error = sql_error.detail(detail);
    }
    if let Some(hint) = hint {
        sql_error = sql_error.hint(hint);
    }
    sql_error
}

/// Returns the hint for bytes that are not the stored form of a filter, or not the form that was
/// asked for (22P03): what the user can do. `None` if they are damaged, which no hint helps.
fn hint_for_binary(problem: &InvalidBinary) -> Option<String> {
    let hint = match problem {
        InvalidBinary::UnknownVersion { .. } => {
            "If a newer pg_bloom wrote it, update the extension; else the value is damaged or no bloom filter."
        }
        InvalidBinary::Counters { .. } => "Read it as counting_bloom, and cast that to bloom.",
        InvalidBinary::NoCounters { .. } => {
            "Read it as bloom. Counters cannot be had from bits: build the filter with counting_bloom_agg."
        }
        InvalidBinary::Parquet(_) => {
            "It is the header and the bits: bloom_filter_length bytes of a file from bloom_filter_offset on."
        }
        InvalidBinary::Damaged(_) => return None,
    };
    Some(hint.into())
}

/// Returns the hint for elements or filters whose types don't fit together (42804): what the user
/// can do. `function` is the SQL function that was called. `None` for members of one array with
/// several types, which SQL doesn't have.
fn hint_for_other_kind(problem: &KindMismatch, function: Option<&str>) -> Option<String> {
    match problem {
        KindMismatch::Element { filter, element } => {
            Some(advice_on_kinds(filter, element, function))
        }
        KindMismatch::Filters { .. } => Some(
            "Build both filters from elements of one type, with a cast where they differ.".into(),
        ),
        // SQL's arrays have members of one type.
        KindMismatch::Members { .. } => None,
    }
}

/// Returns the hint for an element whose type isn't that of a filter's elements: to build the
/// filter again, to cast the element, or to call the function for one element instead of the one
/// for an array's members, or the other way round.
///
/// `filter` and `element` are the names of the two key kinds, such as `integer` and `array of
/// integer`; `function` is the SQL function that was called.
pub fn advice_on_kinds(filter: &str, element: &str, function: Option<&str>) -> String {
    if without_hash(filter) == without_hash(element) {
        return "The type is the same, and hashed otherwise now: by another function, or in another encoding of the database. Build the filter again.".into();
    }
    let is_array_of = |array: &str, member: &str| array.strip_prefix("array of ") == Some(member);
    if !is_array_of(element, filter) && !is_array_of(filter, element) {
        return format!("Cast the element to a type of kind {filter}.");
    }
    let begins = |start: &str| function.is_some_and(|function| function.starts_with(start));
    let (of_one, of_members) = if begins("counting_") {
        (
            "counting_bloom_add or counting_bloom_remove",
            "counting_bloom_add_all or counting_bloom_remove_all",
        )
    } else if begins("bloom_set_") {
        (
            "bloom_set_add, bloom_set_contains or bloom_set_remove",
            "bloom_set_add_all, bloom_set_present, bloom_set_absent or bloom_set_remove_all",
        )
    } else {
        ("bloom_add or bloom_contains", "bloom_add_all, bloom_contains_any or bloom_contains_all")
    };
    let takes_members = function.is_some_and(|name| {
        ["_all", "_any", "_present", "_absent"]
            .iter()
            .any(|end| name.ends_with(end))
    });
    if takes_members && is_array_of(filter, element) {
        format!("To use an array as one element, call {of_one}.")
    } else {
        format!("To use the array's members, call {of_members}.")
    }
}

/// Returns the name of a key kind, the type of a filter's elements, without the functions that hash
/// its types. Such a function follows an `@`, up to the comma or the parenthesis that ends the
/// type: `public.pair(a public.tick@pg_catalog.hashint8extended(pg_catalog.int8), b text)` becomes
/// `public.pair(a public.tick, b text)`. Within double quotes these characters mean nothing.
fn without_hash(kind: &str) -> String {
    let mut name_without_hash = String::new();
    let mut is_quoted = false;
    let mut is_in_hash = false;
    let mut open_parentheses = 0;
    for character in kind.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            '@' if !is_quoted => is_in_hash = true,
            '(' if is_in_hash && !is_quoted => open_parentheses += 1,
            ')' if is_in_hash && !is_quoted && open_parentheses > 0 => open_parentheses -= 1,
            // What follows the type in the name of a kind that is made of it.
            ',' | ')' if !is_quoted => is_in_hash = false,
            _ => {}
        }
        if !is_in_hash {
            name_without_hash.push(character);
        }
    }
    name_without_hash
}

/// Returns the hint for a parameter of a SQL function that is invalid (22023): which value it may
/// have, or what the user can do. `None` for parameters that SQL can't pass.
fn hint_for_parameter(problem: &InvalidParameter) -> Option<String> {
    let text = match problem {
        InvalidParameter::Mismatch { larger, .. } => {
            return Some(format!(
                "Build both with the same capacity, rate and layout, for instance capacity {}, rate {} and layout \"{}\".",
                larger.capacity,
                larger.fpr,
                larger.layout.name()
            ));
        }
        InvalidParameter::TooFewBytes { least, .. } => {
            return Some(format!("The smallest with this rate and layout has {least} bytes."));
        }
        InvalidParameter::ResizeDoesNotDivide { possible: Some(possible), .. } => {
            return Some(format!(
                "Use capacity {possible}, or build the filter from its elements."
            ));
        }
        InvalidParameter::ResizeDoesNotDivide { possible: None, .. } => {
            "Build the filter from its elements."
        }
        InvalidParameter::Rate { fpr, .. } if is_possible_fpr(Layout::Blocked, *fpr) => {
            "Use layout \"blocked\", which reaches 1e-9."
        }
        InvalidParameter::Rate { fpr, .. } if *fpr > 0.0 && *fpr < GREATEST_FPR => {
            "A filter of few elements keeps their hashes and is exact to 2^-64."
        }
        InvalidParameter::Rate { .. } => {
            "A rate of 0.01 means that one in a hundred absent elements is reported as present."
        }
        InvalidParameter::Capacity(_) => {
            "The capacity is the number of distinct elements expected; NULL sizes the filter for what it sees."
        }
        InvalidParameter::CountingCapacity(_) => {
            "Give the number of distinct elements that it will have at a time: counters cannot be resized later."
        }
        InvalidParameter::NoCountersYet => {
            "Make the filter with a capacity: counting_bloom_empty(capacity)."
        }
        InvalidParameter::ResizeNeedsCapacity => {
            "Give the number of distinct elements to make room for."
        }
        InvalidParameter::LayoutNotOfParquet(_) => {
            "Build it with layout 'parquet', for instance bloom_agg(x, capacity, fpr, 'parquet')."
        }
        InvalidParameter::KindNotReadFromParquet(_) => {
            "Name the type of the Parquet column, for instance text or bigint."
        }
        InvalidParameter::KindNotWrittenToParquet(_) => {
            "Cast the elements to the type of the Parquet column, for instance text or bigint."
        }
        InvalidParameter::OutOfRange(_) => "Build the filter from elements of the wider type.",
        // SQL's arrays can't be so.
        InvalidParameter::UnknownMembers | InvalidParameter::Ragged => return None,
    };
    Some(text.into())
}

/// Returns the hint for a filter or an index that would be too large (54000): what the user can
/// change.
fn hint_for_too_large(problem: &TooLarge) -> String {
    // Beyond the largest value of the setting nothing is gained by raising it.
    let can_raise = |bytes| bytes <= MAX_STORED_BYTES;
    match *problem {
        TooLarge::Bytes { bytes, .. } => {
            let raise = if can_raise(bytes) { ", raise pg_bloom.max_filter_size" } else { "" };
            format!(
                "Use a smaller capacity or a higher rate{raise}, or spread the elements over several filters with bloom_shard."
            )
        }
        TooLarge::ParquetBytes { bytes, .. } if can_raise(bytes) => "Raise pg_bloom.max_filter_size.".into(),
        TooLarge::ParquetBytes { .. } => {
            "Ask each file's own filter, or have the files written with smaller ones.".into()
        }
        TooLarge::Bits { .. } => "Use a smaller capacity.".into(),
        TooLarge::PartialState { .. } => {
            "Build filters that will be merged with the same capacity, or merge them without parallel workers.".into()
        }
        TooLarge::IndexPages(_) => "Use more pages per range, or a higher false positive rate.".into(),
        TooLarge::IndexRanges(_) => "Use more pages per range.".into(),
    }
}
