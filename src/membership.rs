//! Probing a filter: `bloom_contains` and its operators `@>` and `<@`, `bloom_contains_any`, `bloom_contains_all`,
//! `bloom_present`, `bloom_absent`, `bloom_query`.

use crate::element::{ElementType, Hasher};
use crate::filter_type::{Bloom, CountingBloom, FilterArguments, FilterType};
use crate::pg::array::{array_of, elements};
use crate::pg::call::{Call, Element};
use crate::pg::catalog;
use crate::pg::error::{Outcome, Result};
use crate::pg::expression;
use crate::pg::row::{Column, row};
use crate::probe::FilterCache;
use pg_bloom_core::filter::estimate;
use pg_bloom_core::memory;
use pgrx::pg_sys::{Datum, Oid};

/// What a call site that probes for one element remembers.
struct ProbeSite<S: FilterType> {
    element: ElementType,
    filters: FilterCache<S>,
    /// Whether the element is a constant.
    is_constant: bool,
    /// Whether the element is not a constant, and of a type that can't be altered: then it is always read the same way.
    is_plain: bool,
    /// The hash of a constant, and how it was read.
    constant: Option<(Hasher, Option<u64>)>,
}

impl<S: FilterType> ProbeSite<S> {
    fn new(call: &Call, element: usize) -> Result<ProbeSite<S>> {
        let is_constant = expression::is_constant(call, element);
        let element = ElementType::of_argument(call, element)?;
        let is_plain = !is_constant && !element.is_alterable();
        Ok(ProbeSite { element, filters: FilterCache::default(), is_constant, is_plain, constant: None })
    }
}

/// Whether argument `element` may be in the filter that argument `filter` is.
#[inline(always)]
fn probe<S: FilterType>(call: &Call, filter: usize, element: usize) -> Result<Option<bool>> {
    let site = call.remembered(|| ProbeSite::<S>::new(call, element))?;
    if site.is_plain
        && let Some((view, hasher)) = site.filters.last(call, filter)
        && let Some(element) = call.element(element)
    {
        return Ok(Some(hasher.hash(element).is_some_and(|hash| S::contains(view, hash))));
    }
    probe_any(call, site, filter, element)
}

/// The same for a filter other than the last one asked, or one that is passed whole.
#[inline(never)]
fn probe_any<S: FilterType>(
    call: &Call,
    site: &mut ProbeSite<S>,
    filter: usize,
    element: usize,
) -> Result<Option<bool>> {
    let ProbeSite { element: type_of_element, filters, is_constant, constant, .. } = site;
    let Some(element) = call.element(element) else { return Ok(None) };
    let Some(mut filter) = filters.filter(call, filter, 1)? else { return Ok(None) };
    type_of_element.refresh(call)?;
    let hasher = type_of_element.key(filter.header(), S::CONTAINS)?.hasher();
    let hash = match constant {
        Some((known, hash)) if *known == hasher => *hash,
        _ => {
            let hash = hasher.hash(element);
            if *is_constant {
                *constant = Some((hasher.clone(), hash));
            }
            hash
        }
    };
    let found = match hash {
        Some(hash) => filter.contains(hash)?,
        None => false,
    };
    if filter.is_remembered() {
        filters.remember_hasher(hasher);
    }
    Ok(Some(found))
}

/// `bloom_contains(filter, element)`, `filter @> element`; the same of a `counting_bloom`.
fn contains<S: FilterType>(call: &Call) -> Outcome {
    Ok(probe::<S>(call, 0, 1)?.map(Datum::from))
}

/// `element <@ filter`; the same of a `counting_bloom`.
fn contained<S: FilterType>(call: &Call) -> Outcome {
    Ok(probe::<S>(call, 1, 0)?.map(Datum::from))
}

/// What a call site that probes for the elements of an array remembers.
struct ArrayProbeSite {
    element: ElementType,
    /// Type of the array.
    array: Oid,
    /// Type of its elements.
    oid: Oid,
    filters: FilterCache<Bloom>,
}

/// An array whose elements were probed for.
struct Probed {
    /// Type of the array.
    array: Oid,
    /// Type of its elements.
    oid: Oid,
    elements: Vec<Element>,
    /// Whether each may be in the filter, as far as that was needed.
    answers: Vec<bool>,
}

/// The elements of the array that is argument 1, and for each in turn whether it may be in the filter that is argument
/// 0; `until` is an answer after which the others aren't needed. `None` if the filter is NULL.
fn probe_array(call: &Call, until: Option<bool>) -> Result<Option<Probed>> {
    let site = call.remembered(|| {
        let (element, oid) = ElementType::of_array(call, 1)?;
        let array = catalog::base_type(call.argument_type(1)?);
        Ok(ArrayProbeSite { element, array, oid, filters: FilterCache::default() })
    })?;
    site.element.refresh(call)?;
    let elements = elements(call, 1, site.oid);
    let Some(mut filter) = site.filters.filter(call, 0, elements.len())? else { return Ok(None) };
    let key = site.element.key(filter.header(), Bloom::CONTAINS)?;
    let hashes = memory::collect(elements.iter().map(|&element| key.hash(element)));
    let answers = filter.contains_each(&hashes, until)?;
    Ok(Some(Probed { array: site.array, oid: site.oid, elements, answers }))
}

/// `bloom_contains_any(filter, elements)`.
fn contains_any(call: &Call) -> Outcome {
    Ok(probe_array(call, Some(true))?.map(|probed| Datum::from(probed.answers.contains(&true))))
}

/// `bloom_contains_all(filter, elements)`.
fn contains_all(call: &Call) -> Outcome {
    Ok(probe_array(call, Some(false))?.map(|probed| Datum::from(!probed.answers.contains(&false))))
}

/// The elements of an array for which the filter gives this answer, in their order.
fn elements_answered(call: &Call, wanted: bool) -> Outcome {
    Ok(probe_array(call, None)?.map(|Probed { array, oid, elements, answers }| {
        let mut chosen = elements;
        let mut answers = answers.into_iter();
        chosen.retain(|_| answers.next() == Some(wanted));
        array_of(array, oid, chosen)
    }))
}

/// `bloom_present(filter, elements)`: those that may be in the filter.
fn present(call: &Call) -> Outcome {
    elements_answered(call, true)
}

/// `bloom_absent(filter, elements)`: those that surely are not in the filter.
fn absent(call: &Call) -> Outcome {
    elements_answered(call, false)
}

/// `bloom_query(filter, element)`.
fn query(call: &Call) -> Outcome {
    let Some(yes) = probe::<Bloom>(call, 0, 1)? else { return Ok(None) };
    let Some(view) = call.view(0)? else { return Ok(None) };
    let confidence = if yes { 1.0 - estimate::current_fpr(&view) } else { 1.0 };
    Ok(Some(row(call, &[Column::Bool(yes), Column::F64(confidence)])))
}

pg_functions! {
    bloom_contains => contains::<Bloom>;
    bloom_contained => contained::<Bloom>;
    counting_bloom_contains => contains::<CountingBloom>;
    counting_bloom_contained => contained::<CountingBloom>;
    bloom_contains_any => contains_any;
    bloom_contains_all => contains_all;
    bloom_present => present;
    bloom_absent => absent;
    bloom_query => query;
}
