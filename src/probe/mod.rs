//! Querying stored filters: a call site asks a filter for one element, or a scan for those of many
//! rows. `cache` has the filters that a call site asks, remembered between its calls, of which no
//! more is read than is needed.

mod cache;

pub use cache::{FilterCache, MOST_AT_ONCE};

use crate::element::ElementType;
use crate::filter_type::FilterType;
use crate::pg::call::{Call, Element, Result};

/// What a call site remembers that probes a filter, one argument, for one element, the other.
struct ProbeSite {
    element: ElementType,
    filters: FilterCache,
}

#[inline(always)]
#[allow(
    clippy::mut_from_ref,
    reason = "it is that of this call, which gets it once"
)]
fn site(call: &Call, filter_type: FilterType, filter: usize) -> Result<&mut ProbeSite> {
    // SAFETY: remembered by the site of this call, the only way to get it.
    let filters = || unsafe { FilterCache::new(filter_type) };
    call.remembered(|| {
        Ok(ProbeSite {
            element: ElementType::of_argument(call, 1 - filter)?,
            filters: filters(),
        })
    })
}

/// Whether one of two arguments, the element, may be in the other, argument `filter`. Errors: 42804
/// for an element of another kind than the filter's, 0A000 for what can't be one, 22P03 for a
/// damaged filter.
#[inline(always)]
pub fn probe(call: &Call, filter_type: FilterType, filter: usize) -> Result<Option<bool>> {
    let site = site(call, filter_type, filter)?;
    // The remembered hasher is that of the type as it was resolved.
    if site.element.is_current()
        && let Some((whole, hasher)) = site.filters.last(call, filter)
        && let Some(element) = call.element(1 - filter)
    {
        // SAFETY: the type is that of the argument.
        let hash = unsafe { hasher.hash(element) };
        return Ok(Some(hash.is_some_and(|hash| whole.contains(hash))));
    }
    probe_any(call, site, filter_type, filter)
}

/// The same for a filter other than the last one probed, or one that is passed whole.
#[inline(never)]
fn probe_any(
    call: &Call,
    site: &mut ProbeSite,
    filter_type: FilterType,
    filter: usize,
) -> Result<Option<bool>> {
    let Some(element) = call.element(1 - filter) else {
        return Ok(None);
    };
    let Some(mut probed) = site.filters.filter(call, filter, 1)? else {
        return Ok(None);
    };
    site.element.refresh(call)?;
    let hasher = site.element.hasher_for(probed.header(), filter_type.contains())?;
    // SAFETY: the type is that of the argument.
    let found = probed.contains(unsafe { hasher.hash(element) })?;
    if call.identity(filter).is_some() {
        site.filters.remember_hasher(hasher);
    }
    Ok(Some(found))
}

/// Returns how many copies of argument 1, an element, are in argument 0, a `counting_bloom`; `None`
/// if either is NULL. `function` is the name of the SQL function.
///
/// Fails for an element of another kind than the filter's (42804), for what can't be an element
/// (0A000), and for a damaged filter (22P03).
pub fn count(call: &Call, function: &str) -> Result<Option<u8>> {
    let site = site(call, FilterType::CountingBloom, 0)?;
    let Some(element) = call.element(1) else {
        return Ok(None);
    };
    let Some(mut filter) = site.filters.filter(call, 0, 1)? else {
        return Ok(None);
    };
    site.element.refresh(call)?;
    let hasher = site.element.hasher_for(filter.header(), function)?;
    // SAFETY: the type is that of the argument.
    filter.count(unsafe { hasher.hash(element) }).map(Some)
}

/// Whether each of these elements may be in the filter that argument `filter` is, where the other
/// argument is the element of a row.
///
/// # Safety
/// The elements must be of the type of that argument.
pub unsafe fn probe_each(
    call: &Call,
    filter_type: FilterType,
    filter: usize,
    elements: &[Element],
    answers: &mut [bool],
) -> Result<()> {
    let site = site(call, filter_type, filter)?;
    let Some(mut filter) = site.filters.filter(call, filter, elements.len())? else {
        answers.fill(false);
        return Ok(());
    };
    site.element.refresh(call)?;
    let hasher = site.element.hasher_for(filter.header(), filter_type.contains())?;
    // SAFETY: promised by the caller.
    answers.copy_from_slice(&unsafe { filter.contains_each(&hasher, elements, None)? });
    Ok(())
}
