//! What is in a filter: `bloom_info`, `bloom_header`, `bloom_cardinality`, `bloom_fpr`, and the
//! cardinalities of two filters together.

use crate::error::During;
use crate::filter_type::bloom;
use crate::pg::call::{Call, Outcome};
use crate::pg::value::row::{ResultColumn, row};
use crate::pg::value::varlena::Value;
use pg_bloom_core::filter::estimate;
use pg_bloom_core::filter::slices::{FilterStart, START_BYTES};
use pg_bloom_core::{Body, Header, View, filter};
use pgrx::pg_sys::{self, Datum};

fn float(value: f64) -> Option<Datum> {
    Some(Datum::from(value.to_bits()))
}

fn of_one(call: &Call, estimate: fn(&View<'_>) -> f64) -> Outcome {
    Ok(bloom(call, 0)?.and_then(|view| float(estimate(&view))))
}

/// An estimate from the cardinalities of two filters and of their union.
fn of_two(call: &Call, function: &str, estimate: fn(f64, f64, f64) -> f64) -> Outcome {
    let (Some(a), Some(b)) = (bloom(call, 0)?, bloom(call, 1)?) else {
        return Ok(None);
    };
    let union = estimate::union_cardinality(&a, &b).during(function)?;
    Ok(float(estimate(estimate::cardinality(&a), estimate::cardinality(&b), union)))
}

/// The columns that header and length tell, except for the length.
fn header_columns(h: &Header<'_>, is_sparse: bool) -> Vec<ResultColumn> {
    vec![
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
    ]
}

/// `bloom_header(filter)`: what needs no more than the start of the value. Of a value out of line
/// only the first slice is fetched, of a compressed one only the start is made.
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
    // SAFETY: as above; it says how many bytes the value has with the length before it.
    let length = unsafe { pg_sys::toast_raw_datum_size(datum) }.saturating_sub(size_of::<u32>());
    let start = FilterStart::parse(value.bytes(), length)?;
    let mut columns = header_columns(&start.header, start.hashes.is_some());
    columns.push(ResultColumn::I64(length as i64));
    Ok(Some(row(call, &columns)))
}

fn info(call: &Call) -> Outcome {
    let Some(view) = bloom(call, 0)? else {
        return Ok(None);
    };
    let found = estimate::info(&view);
    let mut columns = header_columns(&view.header, matches!(view.body, Body::Sparse(_)));
    columns.extend([
        ResultColumn::I64(found.bits_set as i64),
        ResultColumn::F64(found.fill_ratio),
        ResultColumn::F64(found.cardinality),
        ResultColumn::F64(found.current_fpr),
        ResultColumn::Bool(found.saturated),
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
