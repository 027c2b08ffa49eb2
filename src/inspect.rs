//! What is in a filter: `bloom_info`, `bloom_header`, `bloom_cardinality`, `bloom_fpr`, and the cardinalities of two
//! filters together.

use crate::error::During;
use crate::filter_type::FilterArguments;
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::value::row::{Column, row};
use crate::probe::start;
use pg_bloom_core::filter::estimate;
use pg_bloom_core::{Body, Header, filter};
use pgrx::pg_sys::Datum;

fn float(value: f64) -> Option<Datum> {
    Some(Datum::from(value.to_bits()))
}

/// `bloom_cardinality(filter)`.
fn cardinality(call: &Call) -> Outcome {
    let Some(view) = call.view(0)? else { return Ok(None) };
    Ok(float(estimate::cardinality(&view)))
}

/// `bloom_fpr(filter)`.
fn fpr(call: &Call) -> Outcome {
    let Some(view) = call.view(0)? else { return Ok(None) };
    Ok(float(estimate::current_fpr(&view)))
}

/// The estimated cardinalities of two filters and of their union.
fn cardinalities(call: &Call, function: &str) -> Result<Option<(f64, f64, f64)>> {
    let (Some(a), Some(b)) = (call.view(0)?, call.view(1)?) else { return Ok(None) };
    let union = estimate::union_cardinality(&a, &b).during(function)?;
    Ok(Some((estimate::cardinality(&a), estimate::cardinality(&b), union)))
}

/// `bloom_union_cardinality(filter, filter)`.
fn union_cardinality(call: &Call) -> Outcome {
    Ok(cardinalities(call, "bloom_union_cardinality")?.and_then(|(_, _, union)| float(union)))
}

/// `bloom_intersection_cardinality(filter, filter)`.
fn intersection_cardinality(call: &Call) -> Outcome {
    Ok(cardinalities(call, "bloom_intersection_cardinality")?
        .and_then(|(a, b, union)| float(estimate::intersection_cardinality(a, b, union))))
}

/// `bloom_jaccard(filter, filter)`.
fn jaccard(call: &Call) -> Outcome {
    Ok(cardinalities(call, "bloom_jaccard")?.and_then(|(a, b, union)| float(estimate::jaccard(a, b, union))))
}

/// The columns that header and length tell, except for the length.
fn header_columns(h: &Header<'_>, is_sparse: bool) -> Vec<Column> {
    vec![
        Column::I32(i32::from(filter::VERSION)),
        Column::Text(h.layout.name().into()),
        if h.kind.is_none() { Column::Null } else { Column::Text(h.kind.to_string()) },
        Column::Text(if is_sparse { "sparse" } else { "dense" }.into()),
        h.capacity.elements().map_or(Column::Null, |capacity| Column::I64(capacity as i64)),
        Column::F64(h.fpr),
        Column::I64((h.blocks * h.layout.block_bits()) as i64),
        Column::I32(h.num_hashes as i32),
    ]
}

/// `bloom_header(filter)`: what needs no more than the start of the value.
fn header(call: &Call) -> Outcome {
    let columns = start(call, 0, |start, length| {
        let mut columns = header_columns(&start.header, start.is_sparse());
        columns.push(Column::I64(length as i64));
        columns
    })?;
    Ok(columns.map(|columns| row(call, &columns)))
}

/// `bloom_info(filter)`.
fn info(call: &Call) -> Outcome {
    let Some(view) = call.view(0)? else { return Ok(None) };
    let found = estimate::info(&view);
    let mut columns = header_columns(&view.header, matches!(view.body, Body::Sparse(_)));
    columns.extend([
        Column::I64(found.bits_set as i64),
        Column::F64(found.fill_ratio),
        Column::F64(found.cardinality),
        Column::F64(found.current_fpr),
        Column::Bool(found.saturated),
        Column::I64(view.stored_bytes() as i64),
    ]);
    Ok(Some(row(call, &columns)))
}

pg_functions! {
    bloom_cardinality => cardinality;
    bloom_fpr => fpr;
    bloom_union_cardinality => union_cardinality;
    bloom_intersection_cardinality => intersection_cardinality;
    bloom_jaccard => jaccard;
    bloom_info => info;
    bloom_header => header;
}
