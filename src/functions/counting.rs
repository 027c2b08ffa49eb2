//! `counting_bloom`: filters from which elements can be removed. `counting_bloom_empty`, `…_add`
//! and `||`, `…_remove`, `…_union` and `+`, what they say about themselves, and the cast to
//! `bloom`.

use crate::arguments::{FilterArguments, at_fpr, counting_header, empty_counting};
use crate::element::{ArgumentHashes, ElementArgument, hashes_of_argument};
use crate::error::WithFunctionName;
use crate::filter_type::counting_bloom;
use crate::overfull;
use crate::pg::call::{Call, Outcome};
use crate::pg::value::row::{ResultColumn, row};
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::counting;
use pg_bloom_core::filter;
use pgrx::pg_sys::Datum;

/// Implements `counting_bloom_empty()` and `counting_bloom_empty(capacity, fpr)`: returns a
/// counting filter without elements. Fails with 22023 for invalid arguments, and with 54000 if the
/// filter would be too large.
fn empty(call: &Call) -> Outcome {
    if call.nargs() == 0 {
        return empty_counting().map(Some);
    }
    let header = counting_header(&FilterArguments::of_call(call, 0))?;
    let filter: PgBuffer = counting::empty(&header);
    Ok(Some(filter.into_datum()))
}

/// Implements `counting_bloom_add` and `counting_bloom_add_all`: returns the counting filter in
/// argument 0 with one copy more of the elements in argument 1, one element or an array. NULL for a
/// NULL filter. `function` is the name in SQL, for messages.
///
/// An overfull result raises a warning, or an error as `pg_bloom.overfill` says. Fails with 42804
/// for elements of another kind than the filter's.
fn add(call: &Call, function: &str, element_argument: ElementArgument) -> Outcome {
    let Some(counting) = counting_bloom(call, 0)? else {
        return Ok(None);
    };
    let ArgumentHashes { kind, hashes } =
        hashes_of_argument(call, 1, element_argument, &counting.header, function)?;
    if hashes.is_empty() {
        return Ok(call.datum(0));
    }
    let enlarged = counting.add(kind, &hashes).with_function_name(function)?;
    overfull::finish(call, overfull::COUNTING, enlarged)
}

/// Implements `counting_bloom_remove` and `counting_bloom_remove_all`: returns the counting filter
/// in argument 0 with one copy less of the elements in argument 1, one element or an array.
/// Elements that aren't there change nothing. NULL for a NULL filter. `function` is the name in
/// SQL, for messages. Fails with 42804 for elements of another kind than the filter's.
fn remove(call: &Call, function: &str, element_argument: ElementArgument) -> Outcome {
    let Some(counting) = counting_bloom(call, 0)? else {
        return Ok(None);
    };
    let ArgumentHashes { hashes, .. } =
        hashes_of_argument(call, 1, element_argument, &counting.header, function)?;
    match counting.remove::<PgBuffer>(&hashes) {
        Some(reduced) => Ok(Some(reduced.into_datum())),
        // None of the elements is there: the filter stays as it is.
        None => Ok(call.datum(0)),
    }
}

/// Implements `counting_bloom_union(filter, filter)` and `filter + filter`: returns a filter in
/// which each counter is the sum of the counters in both; NULL if one is. An overfull result raises
/// a warning, or an error as `pg_bloom.overfill` says. Fails with 22023 or 42804 if the filters'
/// parameters or kinds of elements differ.
fn union(call: &Call) -> Outcome {
    let (Some(a), Some(b)) = (counting_bloom(call, 0)?, counting_bloom(call, 1)?) else {
        return Ok(None);
    };
    let sum = counting::sum(&a, &b).with_function_name("counting_bloom_union")?;
    overfull::finish(call, overfull::COUNTING, sum)
}

/// Implements the cast of `counting_bloom` to `bloom`: returns the filter that has a bit set for
/// each counter that isn't 0. NULL for NULL.
fn to_bloom(call: &Call) -> Outcome {
    let Some(counting) = counting_bloom(call, 0)? else {
        return Ok(None);
    };
    let filter: PgBuffer = counting.to_bloom();
    Ok(Some(filter.into_datum()))
}

/// Implements `counting_bloom_cardinality(filter)`: returns the estimated number of distinct
/// elements of a counting filter; NULL for NULL.
fn cardinality(call: &Call) -> Outcome {
    let Some(counting) = counting_bloom(call, 0)? else {
        return Ok(None);
    };
    Ok(Some(Datum::from(counting.cardinality().to_bits())))
}

/// Implements `counting_bloom_info(filter)`: returns one row that says what a counting filter is
/// and how full it is. Its columns are those that sql/pg_bloom.sql declares, in their order. NULL
/// for NULL.
fn info(call: &Call) -> Outcome {
    let Some(counting) = counting_bloom(call, 0)? else {
        return Ok(None);
    };
    let header = &counting.header;
    let measured = counting.info();
    let kind = if header.kind.is_none() {
        ResultColumn::Null
    } else {
        ResultColumn::Text(header.kind.to_string())
    };
    let capacity = match header.capacity.elements() {
        Some(elements) => ResultColumn::I64(elements as i64),
        None => ResultColumn::Null,
    };
    // A filter of no size has no counters.
    let share_set = match measured.num_counters {
        0 => 0.0,
        num_counters => measured.tally.set as f64 / num_counters as f64,
    };
    let columns = [
        ResultColumn::I32(i32::from(filter::VERSION)),
        kind,
        capacity,
        ResultColumn::F64(header.fpr),
        ResultColumn::I64(measured.num_counters as i64),
        ResultColumn::I32(header.num_hashes as i32),
        ResultColumn::I64(measured.tally.set as i64),
        ResultColumn::I64(measured.tally.saturated as i64),
        ResultColumn::F64(share_set),
        ResultColumn::F64(measured.cardinality),
        measured.copies.map_or(ResultColumn::Null, ResultColumn::F64),
        ResultColumn::F64(measured.current_fpr),
        ResultColumn::I64(counting::stored_bytes(header) as i64),
    ];
    Ok(Some(row(call, &columns)))
}

pg_functions! {
    counting_bloom_empty => empty;
    counting_bloom_empty_at_fpr => |call| at_fpr(call, 1, empty);
    counting_bloom_add => |call| add(call, "counting_bloom_add", ElementArgument::OneElement);
    counting_bloom_add_all => |call| add(call, "counting_bloom_add_all", ElementArgument::Array);
    counting_bloom_remove => |call| remove(call, "counting_bloom_remove", ElementArgument::OneElement);
    counting_bloom_remove_all => |call| remove(call, "counting_bloom_remove_all", ElementArgument::Array);
    counting_bloom_union => union;
    counting_bloom_to_bloom => to_bloom;
    counting_bloom_cardinality => cardinality;
    counting_bloom_info => info;
}
