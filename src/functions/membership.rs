//! Probing a filter: `bloom_contains` and its operators `@>` and `<@`, `bloom_contains_any`,
//! `bloom_contains_all`, `bloom_present`, `bloom_absent`, `bloom_query`, `counting_bloom_count`.

use crate::element::ElementType;
use crate::filter_type::FilterType::{self, Bloom, CountingBloom};
use crate::filter_type::bloom;
use crate::pg::call::{Call, Outcome, Result, SqlValue};
use crate::pg::catalog;
use crate::pg::value::array::{array_of, elements};
use crate::pg::value::row::{ResultColumn, row};
use crate::probe::{self, FilterCache, probe};
use pg_bloom_core::filter::estimate;
use pgrx::pg_sys::Datum;

/// `bloom_contains(filter, element)`, `filter @> element`, `element <@ filter`; the same of a
/// `counting_bloom`.
#[inline(always)]
fn contains(call: &Call, filter_type: FilterType, filter: usize) -> Outcome {
    Ok(probe(call, filter_type, filter)?.map(Datum::from))
}

/// `counting_bloom_count(filter, element)`.
fn count(call: &Call) -> Outcome {
    let copies = probe::count(call, "counting_bloom_count")?;
    Ok(copies.map(|copies| Datum::from(i32::from(copies))))
}

/// The elements of the array that is argument 1, and for each in turn whether it may be in the
/// filter that is argument 0, for this SQL function; `until` is an answer after which the others
/// aren't needed. `None` if the filter is NULL.
fn probe_array(
    call: &Call,
    function: &str,
    until: Option<bool>,
) -> Result<Option<(Vec<SqlValue>, Vec<bool>)>> {
    let (element_type, filters) = call.remembered(|| {
        // SAFETY: remembered by the site of this call, the only way to get it.
        Ok((ElementType::of_array(call, 1)?, unsafe { FilterCache::new(Bloom) }))
    })?;
    element_type.refresh(call)?;
    let elements = elements(call, 1, element_type.oid);
    let Some(mut filter) = filters.filter(call, 0, elements.len())? else {
        return Ok(None);
    };
    let hasher = element_type.hasher_for(filter.header(), function)?;
    // SAFETY: the type is that of the array's elements.
    let answers = unsafe { filter.contains_each(&hasher, &elements, until)? };
    Ok(Some((elements, answers)))
}

/// `bloom_contains_any(filter, elements)`, which one "yes" decides, and `bloom_contains_all`, which
/// one "no" does.
fn decided_by(call: &Call, function: &str, answer: bool) -> Outcome {
    Ok(probe_array(call, function, Some(answer))?
        .map(|(_, answers)| Datum::from(answers.contains(&answer) == answer)))
}

/// The elements of an array for which the filter gives this answer, in their order.
fn elements_answered(call: &Call, function: &str, wanted: bool) -> Outcome {
    let Some((mut elements, answers)) = probe_array(call, function, None)? else {
        return Ok(None);
    };
    let mut answers = answers.into_iter();
    elements.retain(|_| answers.next() == Some(wanted));
    let array = catalog::base_type(call.argument_type(1)?);
    // SAFETY: they are elements of such an array.
    Ok(Some(unsafe { array_of(array, elements) }))
}

/// `bloom_query(filter, element)`.
fn query(call: &Call) -> Outcome {
    let Some(yes) = probe(call, Bloom, 0)? else {
        return Ok(None);
    };
    let Some(view) = bloom(call, 0)? else {
        return Ok(None);
    };
    let confidence = if yes { 1.0 - estimate::current_fpr(&view) } else { 1.0 };
    Ok(Some(row(call, &[ResultColumn::Bool(yes), ResultColumn::F64(confidence)])))
}

pg_functions! {
    bloom_contains => |call| contains(call, Bloom, 0);
    bloom_contained => |call| contains(call, Bloom, 1);
    counting_bloom_contains => |call| contains(call, CountingBloom, 0);
    counting_bloom_contained => |call| contains(call, CountingBloom, 1);
    counting_bloom_count => count;
    bloom_contains_any => |call| decided_by(call, "bloom_contains_any", true);
    bloom_contains_all => |call| decided_by(call, "bloom_contains_all", false);
    bloom_present => |call| elements_answered(call, "bloom_present", true);
    bloom_absent => |call| elements_answered(call, "bloom_absent", false);
    bloom_query => query;
}
