//! Asking a filter: `bloom_contains` and its operators `@>` and `<@`, `bloom_contains_any`, `bloom_contains_all`,
//! `bloom_query`.

use crate::datum::{Call, Column, elements, row};
use crate::element::ElementType;
use crate::error::Failure;
use pg_bloom_core::View;
use pg_bloom_core::build::contains as may_contain;
use pg_bloom_core::estimate;
use pgrx::pg_sys::Datum;

type Outcome = Result<Option<Datum>, Failure>;

/// Whether argument `element` may be in the filter that argument `filter` is.
#[inline(always)]
fn probe(call: &Call, filter: usize, element: usize) -> Result<Option<bool>, Failure> {
    let type_of_element = call.remembered(|| ElementType::of_argument(call, element))?;
    let (Some(filter), Some(element)) = (call.value(filter), call.element(element)) else { return Ok(None) };
    let view = View::parse_trusted(filter.bytes())?;
    let key = type_of_element.key(&view.header, "bloom_contains")?;
    Ok(Some(key.hash(element).is_some_and(|hash| may_contain(&view, hash))))
}

/// `bloom_contains(filter, element)`, `filter @> element`.
fn contains(call: &Call) -> Outcome {
    Ok(probe(call, 0, 1)?.map(Datum::from))
}

/// `element <@ filter`.
fn contained(call: &Call) -> Outcome {
    Ok(probe(call, 1, 0)?.map(Datum::from))
}

/// Whether `any`, or else every one, of the elements of the array that is argument 1 may be in the filter.
fn probe_array(call: &Call, any: bool) -> Outcome {
    let (element, oid) = call.remembered(|| ElementType::of_array(call, 1))?;
    let Some(filter) = call.value(0) else { return Ok(None) };
    let view = View::parse_trusted(filter.bytes())?;
    let key = element.key(&view.header, "bloom_contains")?;
    let elements = elements(call, 1, *oid);
    let mut answers = elements.iter().map(|&e| key.hash(e).is_some_and(|hash| may_contain(&view, hash)));
    Ok(Some(Datum::from(if any { answers.any(|yes| yes) } else { answers.all(|yes| yes) })))
}

/// `bloom_contains_any(filter, elements)`.
fn contains_any(call: &Call) -> Outcome {
    probe_array(call, true)
}

/// `bloom_contains_all(filter, elements)`.
fn contains_all(call: &Call) -> Outcome {
    probe_array(call, false)
}

/// `bloom_query(filter, element)`.
fn query(call: &Call) -> Outcome {
    let Some(yes) = probe(call, 0, 1)? else { return Ok(None) };
    let Some(filter) = call.value(0) else { return Ok(None) };
    let confidence = if yes { 1.0 - estimate::current_fpr(&View::parse_trusted(filter.bytes())?) } else { 1.0 };
    Ok(Some(row(call, &[Column::Bool(yes), Column::F64(confidence)])))
}

pg_functions! {
    bloom_contains => contains;
    bloom_contained => contained;
    bloom_contains_any => contains_any;
    bloom_contains_all => contains_all;
    bloom_query => query;
}
