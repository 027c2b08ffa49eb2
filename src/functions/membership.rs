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
use pg_bloom_core::memory::List;
use pgrx::pg_sys::Datum;

/// Implements `bloom_contains(filter, element)`, its operators `filter @> element` and `element <@
/// filter`, and the same for `counting_bloom`: returns whether the element may be in the filter.
/// Argument `filter` of the call, 0 or 1, is the filter, and the other one the element. NULL if one
/// is.
#[inline(always)]
fn contains(call: &Call, filter_type: FilterType, filter: usize) -> Outcome {
    Ok(probe(call, filter_type, filter)?.map(Datum::from))
}

/// Implements `counting_bloom_count(filter, element)`: returns how many copies of an element a
/// counting filter has; NULL if an argument is.
fn count(call: &Call) -> Outcome {
    let copies = probe::count(call, "counting_bloom_count")?;
    Ok(copies.map(|copies| Datum::from(i32::from(copies))))
}

/// Probes the filter in argument 0 for the elements of the array in argument 1. Returns the
/// elements without NULLs, and in their order whether each may be in the filter. `None` if the
/// filter is NULL; a NULL array counts as an empty one.
///
/// If `until` is given, the answers end with the first that equals it, as the caller needs no
/// others. `function` is the SQL function's name, for messages. Fails with 42804 for elements of
/// another kind than the filter's, and with 22P03 for a damaged filter.
fn probe_array(
    call: &Call,
    function: &str,
    until: Option<bool>,
) -> Result<Option<(List<SqlValue>, List<bool>)>> {
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

/// Implements `bloom_contains_any(filter, elements)` and `bloom_contains_all(filter, elements)`. A
/// single `answer` decides about both: the first is true as soon as one element is in the filter,
/// and the second false as soon as one isn't. NULL if the filter is.
fn decided_by(call: &Call, function: &str, answer: bool) -> Outcome {
    Ok(probe_array(call, function, Some(answer))?
        .map(|(_, answers)| Datum::from(answers.contains(&answer) == answer)))
}

/// Implements `bloom_present(filter, elements)` and `bloom_absent(filter, elements)`: returns an
/// array of the elements for which the filter gives the `wanted` answer, in their order. NULL if
/// the filter is. `function` is the SQL function's name, for messages.
fn elements_answered(call: &Call, function: &str, wanted: bool) -> Outcome {
    let Some((mut elements, answers)) = probe_array(call, function, None)? else {
        return Ok(None);
    };
    let mut answers = answers.into_iter();
    elements.retain(|_| answers.next() == Some(wanted));
    let array = catalog::base_type(call.argument_type(1)?);
    // SAFETY: the elements are from an array of this type.
    Ok(Some(unsafe { array_of(array, elements) }))
}

/// Implements `bloom_query(filter, element)`: returns one row that says whether the element may be
/// in the filter, and how certain that is, from 0 to 1. A "no" is always right; a "yes" is wrong
/// with the probability of the filter's present false positive rate. NULL if an argument is.
fn query(call: &Call) -> Outcome {
    let Some(is_found) = probe(call, Bloom, 0)? else {
        return Ok(None);
    };
    let Some(filter) = bloom(call, 0)? else {
        return Ok(None);
    };
    let confidence = if is_found { 1.0 - estimate::current_fpr(&filter) } else { 1.0 };
    Ok(Some(row(call, &[ResultColumn::Bool(is_found), ResultColumn::F64(confidence)])))
}

/// The answer of a filter for an element that may be in it.
const IS_FOUND: bool = true;
/// The answer of a filter for an element that isn't in it.
const IS_NOT_FOUND: bool = false;

pg_functions! {
    bloom_contains => |call| contains(call, Bloom, 0);
    bloom_contained => |call| contains(call, Bloom, 1);
    counting_bloom_contains => |call| contains(call, CountingBloom, 0);
    counting_bloom_contained => |call| contains(call, CountingBloom, 1);
    counting_bloom_count => count;
    bloom_contains_any => |call| decided_by(call, "bloom_contains_any", IS_FOUND);
    bloom_contains_all => |call| decided_by(call, "bloom_contains_all", IS_NOT_FOUND);
    bloom_present => |call| elements_answered(call, "bloom_present", IS_FOUND);
    bloom_absent => |call| elements_answered(call, "bloom_absent", IS_NOT_FOUND);
    bloom_query => query;
}
