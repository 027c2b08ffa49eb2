//! What is in a filter: `bloom_info`, `bloom_header`, `bloom_cardinality`, `bloom_fpr`, and the
//! cardinalities of two filters together.

use crate::error::WithFunctionName;
use crate::filter_type::bloom;
use crate::pg::call::{Call, Outcome};
use crate::pg::value::row::{ResultColumn, row};
use crate::pg::value::varlena::Value;
use pg_bloom_core::filter::estimate;
use pg_bloom_core::filter::slices::{FilterStart, START_BYTES};
use pg_bloom_core::memory::List;
use pg_bloom_core::{Body, Header, View, filter};
use pgrx::pg_sys::{self, Datum};

fn float(value: f64) -> Option<Datum> {
    Some(Datum::from(value.to_bits()))
}

/// Implements the functions that return an estimate about the filter in argument 0, such as its
/// number of elements; NULL for NULL.
fn of_one(call: &Call, estimate: fn(&View<'_>) -> f64) -> Outcome {
    Ok(bloom(call, 0)?.and_then(|view| float(estimate(&view))))
}

/// Implements the functions that return an estimate about the filters in arguments 0 and 1
/// together; NULL if one is. `estimate` is given the numbers of elements of the first filter, of
/// the second one, and of their union. `function` is the name in SQL, for messages. Fails for
/// filters that can't be merged.
fn of_two(call: &Call, function: &str, estimate: fn(f64, f64, f64) -> f64) -> Outcome {
    let (Some(a), Some(b)) = (bloom(call, 0)?, bloom(call, 1)?) else {
        return Ok(None);
    };
    let union = estimate::union_cardinality(&a, &b).with_function_name(function)?;
    Ok(float(estimate(estimate::cardinality(&a), estimate::cardinality(&b), union)))
}

/// Returns the columns that `bloom_header` and `bloom_info` have in common, from a filter's header.
/// `is_sparse` says whether the filter is stored as a list of hashes.
fn header_columns(h: &Header<'_>, is_sparse: bool) -> List<ResultColumn> {
    List::from([
        ResultColumn::I32(i32::from(filter::VERSION)),
        ResultColumn::Text(h.layout.name().into()),
        if h.kind.is_none() {
            ResultColumn::Null
        } else {
            ResultColumn::Text(h.kind.to_string())
        },
        ResultColumn::Text(if is_sparse { "sparse" } else { "dense" }.into()),
        h.capacity
            .elements()
            .map_or(ResultColumn::Null, |capacity| ResultColumn::I64(capacity as i64)),
        ResultColumn::F64(h.fpr),
        ResultColumn::I64((h.blocks * h.layout.block_bits()) as i64),
        ResultColumn::I32(h.num_hashes as i32),
    ])
}

/// Implements `bloom_header(filter)`: returns one row with the parameters of a filter, for which
/// the start of the value suffices. Of a value out of line only its first bytes are fetched, and of
/// a compressed one only these are decompressed. NULL for NULL. Fails with 22P03 for a damaged
/// start.
fn header(call: &Call) -> Outcome {
    let Some(datum) = call.datum(0) else {
        return Ok(None);
    };
    // SAFETY: by declaration the argument is of variable length; a slice is a copy in the memory of
    // this call.
    let value = unsafe {
        Value::in_place(datum).unwrap_or_else(|| {
            Value::owned(pg_sys::pg_detoast_datum_slice(
                datum.cast_mut_ptr(),
                0,
                START_BYTES as i32,
            ))
        })
    };
    // SAFETY: the argument is of variable length. The size includes the length before the value.
    let length = unsafe { pg_sys::toast_raw_datum_size(datum) }.saturating_sub(size_of::<u32>());
    let start = FilterStart::parse(value.bytes(), length)?;
    let mut columns = header_columns(&start.header, start.hashes.is_some());
    columns.push(ResultColumn::I64(length as i64));
    Ok(Some(row(call, &columns)))
}

/// Implements `bloom_info(filter)`: returns one row with the parameters of a filter and how full it
/// is, for which all of the filter is read. NULL for NULL.
fn info(call: &Call) -> Outcome {
    let Some(view) = bloom(call, 0)? else {
        return Ok(None);
    };
    let measured = estimate::info(&view);
    let mut columns = header_columns(&view.header, matches!(view.body, Body::Sparse(_)));
    columns.extend([
        ResultColumn::I64(measured.bits_set as i64),
        ResultColumn::F64(measured.fill_ratio),
        ResultColumn::F64(measured.cardinality),
        ResultColumn::F64(measured.current_fpr),
        ResultColumn::Bool(measured.saturated),
        ResultColumn::I64(view.stored_bytes() as i64),
    ]);
    Ok(Some(row(call, &columns)))
}

pg_functions! {
    bloom_cardinality => |call| of_one(call, estimate::cardinality);
    bloom_fpr => |call| of_one(call, estimate::current_fpr);
    bloom_union_cardinality => |call| of_two(call, "bloom_union_cardinality", |_, _, union| union);
    bloom_intersection_cardinality =>
        |call| of_two(call, "bloom_intersection_cardinality", estimate::intersection_cardinality);
    bloom_jaccard => |call| of_two(call, "bloom_jaccard", estimate::jaccard);
    bloom_info => info;
    bloom_header => header;
}
