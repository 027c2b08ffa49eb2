//! Querying stored filters: a call site asks a filter for one element, or a scan for those of many rows. `cache` has
//! the filters that a call site asks, remembered between its calls, of which no more is read than is needed.

mod cache;

pub use cache::FilterCache;

use cache::Filter;

use crate::element::ElementType;
use crate::filter_type::FilterType;
use crate::pg::call::{Call, Element, Result};

/// Elements that are probed for at once at most.
pub const MOST_AT_ONCE: usize = 32;

/// What a call site remembers that probes for one element, argument `ELEMENT`.
struct ProbeSite<S: FilterType, const ELEMENT: usize> {
    element: ElementType,
    filters: FilterCache<S>,
}

#[inline(always)]
#[allow(clippy::mut_from_ref, reason = "it is that of this call, which gets it once")]
fn site<S: FilterType, const ELEMENT: usize>(call: &Call) -> Result<&mut ProbeSite<S, ELEMENT>> {
    // SAFETY: remembered by the site of this call, the only way to get it.
    let filters = || unsafe { FilterCache::new() };
    call.remembered(|| Ok(ProbeSite { element: ElementType::of_argument(call, ELEMENT)?, filters: filters() }))
}

/// Whether argument `ELEMENT` may be in the filter that argument `FILTER` is. Errors: 42804 for an element of another
/// kind than the filter's, 0A000 for what can't be one, 22P03 for a damaged filter.
#[inline(always)]
pub fn probe<S: FilterType, const FILTER: usize, const ELEMENT: usize>(call: &Call) -> Result<Option<bool>> {
    let site = site::<S, ELEMENT>(call)?;
    // Elements of a type that can't be altered are always read the same way.
    if !site.element.is_alterable()
        && let Some((view, hasher)) = site.filters.last(call, FILTER)
        && let Some(element) = call.element(ELEMENT)
    {
        // SAFETY: the type is that of the argument.
        let hash = unsafe { hasher.hash(element) };
        return Ok(Some(hash.is_some_and(|hash| S::contains(view, hash))));
    }
    probe_any(call, site, FILTER)
}

/// The same for a filter other than the last one probed, or one that is passed whole.
#[inline(never)]
fn probe_any<S: FilterType, const ELEMENT: usize>(
    call: &Call,
    site: &mut ProbeSite<S, ELEMENT>,
    filter: usize,
) -> Result<Option<bool>> {
    let ProbeSite { element: type_of_element, filters } = site;
    let Some(element) = call.element(ELEMENT) else { return Ok(None) };
    let Some(mut filter) = filters.filter(call, filter, 1)? else { return Ok(None) };
    type_of_element.refresh(call)?;
    let hasher = type_of_element.hasher_for(filter.header(), S::CONTAINS)?;
    // SAFETY: the type is that of the argument.
    let found = filter.contains(unsafe { hasher.hash(element) })?;
    if !matches!(filter, Filter::Whole(_, false)) {
        filters.remember_hasher(hasher);
    }
    Ok(Some(found))
}

/// Whether each of these elements may be in the filter that argument `FILTER` is, where argument `ELEMENT` is the
/// element of a row. All of the memory that their answers need is prefetched before any of it is read.
///
/// # Safety
/// The elements must be of the type of that argument.
pub unsafe fn probe_each<S: FilterType, const FILTER: usize, const ELEMENT: usize>(
    call: &Call,
    elements: &[Element],
    answers: &mut [bool],
) -> Result<()> {
    let site = site::<S, ELEMENT>(call)?;
    let Some(mut filter) = site.filters.filter(call, FILTER, elements.len())? else {
        answers.fill(false);
        return Ok(());
    };
    site.element.refresh(call)?;
    let hasher = site.element.hasher_for(filter.header(), S::CONTAINS)?;
    let mut hashes = [None; MOST_AT_ONCE];
    for (hash, &element) in hashes.iter_mut().zip(elements) {
        // SAFETY: promised by the caller.
        *hash = unsafe { hasher.hash(element) };
        if let Some(hash) = *hash {
            filter.prefetch(hash);
        }
    }
    for (answer, hash) in answers.iter_mut().zip(hashes) {
        *answer = filter.contains(hash)?;
    }
    Ok(())
}
