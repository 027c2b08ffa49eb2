//! Probing a filter that an argument of a function is, for one element that another argument is.
//!
//! Most calls probe the stored filter that the call before probed, in a scan of many rows. So a
//! call site remembers its filters, how elements are hashed for each ([`FilterCache`]), and which
//! rows come next ([`crate::read_ahead`]).
//!
//! | module | what it does |
//! |---|---|
//! | `cache` | keeps the filters of a call site, of which no more is fetched than their probes need |

mod cache;

pub use cache::FilterCache;

use crate::element::{ElementType, Hasher};
use crate::filter_type::{FilterType, Whole};
use crate::pg::call::{Call, Result, SqlValue};
use crate::read_ahead::ReadAhead;
use cache::ProbedFilter;

/// Data that a call site keeps between calls that probe filters.
struct ProbeSite {
    element_type: ElementType,
    filters: FilterCache,
    read_ahead: Option<ReadAhead>,
}

/// Returns the data that a call site, one place in a query where a function is called, keeps
/// between its calls; the first call makes it. The call has two arguments: argument
/// `filter_argument`, 0 or 1, is the filter, and the other one is the element.
///
/// Fails with 0A000 for a type or collation that can't be an element.
#[inline(always)]
#[allow(clippy::mut_from_ref, reason = "each call asks for the data of its call site once")]
fn probe_site(
    call: &Call,
    filter_type: FilterType,
    filter_argument: usize,
) -> Result<&mut ProbeSite> {
    call.remembered(|| {
        let element_argument = 1 - filter_argument;
        Ok(ProbeSite {
            element_type: ElementType::of_argument(call, element_argument)?,
            // SAFETY: the call site keeps the cache, and only its own calls can reach it.
            filters: unsafe { FilterCache::new(filter_type) },
            // SAFETY: the call site keeps this as well.
            read_ahead: unsafe { ReadAhead::for_call_site(call, element_argument) },
        })
    })
}

/// Probes a filter for an element, and returns whether the element may be in it; `None` if the
/// filter or the element is NULL. The call has two arguments: argument `filter_argument`, 0 or 1,
/// is the filter, and the other one is the element.
///
/// Fails with 42804 for an element of another kind than the filter's, with 0A000 for a type or
/// collation that can't be an element, and with 22P03 for a damaged filter.
#[inline(always)]
pub fn probe(call: &Call, filter_type: FilterType, filter_argument: usize) -> Result<Option<bool>> {
    let element_argument = 1 - filter_argument;
    let site = probe_site(call, filter_type, filter_argument)?;

    // Most calls probe the filter that the call before has probed, and end here. The hasher that
    // was made for that filter is valid as long as the type of the elements was not altered.
    if site.element_type.is_current()
        && let Some((filter, hasher)) = site.filters.last_whole(call, filter_argument)
        && let Some(element) = call.element(element_argument)
    {
        // SAFETY: the hasher was made for the type of this argument.
        let hash = unsafe { hash_of_element(element, hasher, filter, &mut site.read_ahead) };
        return Ok(Some(hash.is_some_and(|hash| filter.contains(hash))));
    }
    // A NULL, another filter, or one that isn't in memory as a whole.
    fetch_and_probe(call, site, filter_type, filter_argument)
}

/// Probes a filter for an element, as [`probe`] does, whose arguments this has: the general way, by
/// which the filter is fetched as far as it isn't in the memory of the call site yet. `site` is the
/// data of the call site.
///
/// Returns whether the element may be in the filter; `None` if the filter or the element is NULL.
/// Fails with 42804 for an element of another kind than the filter's, with 0A000 for a type or
/// collation that can't be an element, and with 22P03 for a damaged filter.
#[inline(never)]
fn fetch_and_probe(
    call: &Call,
    site: &mut ProbeSite,
    filter_type: FilterType,
    filter_argument: usize,
) -> Result<Option<bool>> {
    let element_argument = 1 - filter_argument;
    let Some(element) = call.element(element_argument) else {
        return Ok(None);
    };
    let num_probes = 1;
    let Some(mut filter) = site.filters.filter(call, filter_argument, num_probes)? else {
        return Ok(None);
    };

    site.element_type.refresh(call)?;
    let hasher = site
        .element_type
        .hasher_for(filter.header(), filter_type.contains())?;
    // SAFETY: the hasher was made for the type of this argument.
    let hash = unsafe {
        match &filter {
            ProbedFilter::Whole(whole) => {
                hash_of_element(element, &hasher, whole, &mut site.read_ahead)
            }
            ProbedFilter::Slices(..) => hasher.hash(element),
        }
    };
    let is_found = filter.contains(hash)?;

    // The cache has only filters that are stored out of line, which have an identity.
    let is_in_cache = call.identity(filter_argument).is_some();
    if is_in_cache {
        site.filters.remember_hasher(hasher);
    }
    Ok(Some(is_found))
}

/// Returns how many copies of an element, argument 1 of the call, are in a `counting_bloom`,
/// argument 0; `None` if either is NULL. `function` is the name of the SQL function, for messages.
///
/// Fails with 42804 for an element of another kind than the filter's, with 0A000 for a type or
/// collation that can't be an element, and with 22P03 for a damaged filter.
pub fn count(call: &Call, function: &str) -> Result<Option<u8>> {
    let site = probe_site(call, FilterType::CountingBloom, 0)?;
    let Some(element) = call.element(1) else {
        return Ok(None);
    };
    let Some(mut filter) = site.filters.filter(call, 0, 1)? else {
        return Ok(None);
    };
    site.element_type.refresh(call)?;
    let hasher = site.element_type.hasher_for(filter.header(), function)?;
    // SAFETY: the hasher was made for the type of this argument.
    filter.count(unsafe { hasher.hash(element) }).map(Some)
}

/// Returns the hash of the element for which a call probes a filter that is in memory as a whole;
/// `None` if no filter of this kind can have the element. If `read_ahead` has computed the hash
/// already, together with the hashes of the following rows, it is taken from there.
///
/// # Safety
/// The element must be the argument of the call that the read-ahead is for, and the hasher be made
/// for its type.
#[inline(always)]
unsafe fn hash_of_element(
    element: SqlValue,
    hasher: &Hasher,
    filter: &Whole<'_>,
    read_ahead: &mut Option<ReadAhead>,
) -> Option<u64> {
    // SAFETY: the caller promises an element of the type that the hasher is for, from the argument
    // that is read ahead.
    unsafe {
        if let Some(read_ahead) = read_ahead
            && let Some(hash) = read_ahead.hash(element, hasher, filter)
        {
            return Some(hash);
        }
        hasher.hash(element)
    }
}
