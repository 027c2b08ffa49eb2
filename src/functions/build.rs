//! Making filters one at a time: `bloom_empty`, `bloom_from_array`, `bloom_add`, `bloom_add_all`;
//! spreading elements over several with `bloom_shard`.

use crate::arguments::{FilterArguments, at_fpr};
use crate::element::{ArgumentHashes, ElementArgument, ElementType, hashes_of_argument};
use crate::error::{WithFunctionName, invalid_parameter};
use crate::filter_type::bloom;
use crate::pg::call::{Call, Outcome};
use crate::pg::value::varlena::PgBuffer;
use crate::{overfull, settings};
use pg_bloom_core::filter::{build, sparse};
use pg_bloom_core::memory::List;
use pg_bloom_core::{Header, Layout, hash};
use pgrx::pg_sys::Datum;

/// Implements `bloom_empty()` and `bloom_empty(capacity, fpr, layout)`: returns a filter without
/// elements. Fails with 22023 for invalid arguments, and with 54000 if the filter would be too
/// large.
fn empty(call: &Call) -> Outcome {
    let header = FilterArguments::of_call(call, 0)
        .request()?
        .header(settings::max_filter_bytes())?;
    Ok(Some(header.sparse::<PgBuffer>(0).into_datum()))
}

/// Implements `bloom_from_array(elements, capacity, fpr, layout)`: returns a filter of the elements
/// of an array; NULL for a NULL array. Without a capacity, the filter is sized for its number of
/// distinct elements. With one, it may become overfull, which raises a warning, or an error as
/// `pg_bloom.overfill` says.
///
/// Fails with 22023 for invalid arguments, with 0A000 for a type that can't be an element, and with
/// 54000 if the filter would be too large.
fn from_array(call: &Call) -> Outcome {
    let header = FilterArguments::of_call(call, 1)
        .request()?
        .header(settings::max_filter_bytes())?;
    let ArgumentHashes { kind, hashes } =
        hashes_of_argument(call, 0, ElementArgument::Array, &header, "bloom_from_array")?;
    if call.datum(0).is_none() {
        return Ok(None);
    }
    // A filter without elements has no kind, so that elements of any kind can be added later.
    let header = if hashes.is_empty() { header } else { Header { kind, ..header } };
    let filter: PgBuffer =
        build::from_hashes(&header, &distinct(hashes), settings::max_filter_bytes())?;
    // A filter that was sized for its elements can only be overfull by chance: no warning is due.
    if header.is_to_be_sized() {
        Ok(Some(filter.into_datum()))
    } else {
        overfull::finish(call, overfull::BUILT, filter)
    }
}

/// Returns the distinct hashes of these, in ascending order.
fn distinct(mut hashes: List<u64>) -> List<u64> {
    let distinct = sparse::sort_distinct(&mut hashes, 0);
    hashes.truncate(distinct);
    hashes
}

/// Implements `bloom_add(filter, element)` and `bloom_add_all(filter, elements)`: returns the
/// filter in argument 0 with the elements of argument 1, one element or an array.
/// The filter itself is returned if it has all of them already; NULL for a NULL filter. `function`
/// is the SQL function's name, for messages.
///
/// An overfull result raises a warning, or an error as `pg_bloom.overfill` says. Fails with 42804
/// for elements of another kind than the filter's, and with 54000 if the filter would be too large.
fn add(call: &Call, function: &str, element_argument: ElementArgument) -> Outcome {
    let Some(filter) = bloom(call, 0)? else {
        return Ok(None);
    };
    let ArgumentHashes { kind, hashes } =
        hashes_of_argument(call, 1, element_argument, &filter.header, function)?;
    if hashes.iter().all(|&hash| build::contains(&filter, hash)) {
        return Ok(call.datum(0));
    }
    let enlarged =
        build::add_hashes(&filter, kind, &distinct(hashes), settings::max_filter_bytes())
            .with_function_name(function)?;
    overfull::finish(call, overfull::ADDED, enlarged)
}

/// Implements `bloom_shard(element, shards)`: returns which one of `shards` filters an element
/// belongs to, a number from 0 on that depends on its hash only. NULL if an argument is, or for an
/// element that no filter can have. Fails with 22023 if `shards` is less than 1.
fn shard(call: &Call) -> Outcome {
    let element_type = ElementType::remembered(call, 0, ElementArgument::OneElement)?;
    let (Some(element), Some(shards)) = (call.element(0), call.i32(1)) else {
        return Ok(None);
    };
    let shards = u32::try_from(shards)
        .ok()
        .filter(|&shards| shards > 0)
        .ok_or_else(|| {
            invalid_parameter(format!("number of shards must be at least 1, not {shards}"))
                .hint("Give the number of filters that the elements are spread over.")
        })?;
    // SAFETY: the type is that of the argument.
    let hash = unsafe { element_type.hasher(Layout::Blocked).hash(element) };
    Ok(hash.map(|hash| Datum::from(hash::shard(hash, shards) as i32)))
}

pg_functions! {
    bloom_shard => shard;
    bloom_empty => empty;
    bloom_empty_at_fpr => |call| at_fpr(call, 1, empty);
    bloom_from_array => from_array;
    bloom_from_array_at_fpr => |call| at_fpr(call, 2, from_array);
    bloom_add => |call| add(call, "bloom_add", ElementArgument::OneElement);
    bloom_add_all => |call| add(call, "bloom_add_all", ElementArgument::Array);
}
