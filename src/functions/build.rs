//! Making filters one at a time: `bloom_empty`, `bloom_from_array`, `bloom_add`, `bloom_add_all`;
//! spreading elements over several with `bloom_shard`.

use crate::arguments::{Arguments, at_fpr, request};
use crate::element::{ElementType, Given, hashes_of};
use crate::error::{During, invalid_parameter};
use crate::filter_type::bloom;
use crate::pg::call::{Call, Outcome};
use crate::pg::value::varlena::PgBuffer;
use crate::{overfull, settings};
use pg_bloom_core::filter::{build, sparse};
use pg_bloom_core::{Header, Layout, hash};
use pgrx::pg_sys::Datum;

/// `bloom_empty()`, `bloom_empty(capacity, fpr, layout)`.
fn empty(call: &Call) -> Outcome {
    let header = request(&Arguments::of(call, 0))?.header(settings::max_filter_bytes())?;
    Ok(Some(header.sparse::<PgBuffer>(0).into_datum()))
}

/// `bloom_from_array(elements, capacity, fpr, layout)`.
fn from_array(call: &Call) -> Outcome {
    let header = request(&Arguments::of(call, 1))?.header(settings::max_filter_bytes())?;
    let (kind, hashes) = hashes_of(call, 0, Given::Array, &header, "bloom_from_array")?;
    if call.datum(0).is_none() {
        return Ok(None);
    }
    let header = if hashes.is_empty() { header } else { Header { kind, ..header } };
    let filter: PgBuffer =
        build::from_hashes(&header, &distinct(hashes), settings::max_filter_bytes())?;
    // One that was sized for its elements is overfull by chance at most.
    if header.is_to_be_sized() {
        Ok(Some(filter.into_datum()))
    } else {
        overfull::finish(call, overfull::BUILT, filter)
    }
}

fn distinct(mut hashes: Vec<u64>) -> Vec<u64> {
    let distinct = sparse::sort_distinct(&mut hashes, 0);
    hashes.truncate(distinct);
    hashes
}

/// The filter that argument 0 is, with what argument 1 is, which this SQL function adds.
fn add(call: &Call, function: &str, given: Given) -> Outcome {
    let Some(view) = bloom(call, 0)? else {
        return Ok(None);
    };
    let (kind, hashes) = hashes_of(call, 1, given, &view.header, function)?;
    if hashes.iter().all(|&hash| build::contains(&view, hash)) {
        return Ok(call.datum(0));
    }
    let added = build::add_hashes(&view, kind, &distinct(hashes), settings::max_filter_bytes())
        .during(function)?;
    overfull::finish(call, overfull::ADDED, added)
}

/// `bloom_shard(element, shards)`.
fn shard(call: &Call) -> Outcome {
    let element_type = ElementType::remembered(call, 0, Given::Element)?;
    let (Some(element), Some(shards)) = (call.element(0), call.i32(1)) else {
        return Ok(None);
    };
    let shards = u32::try_from(shards).ok().filter(|&n| n > 0).ok_or_else(|| {
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
    bloom_add => |call| add(call, "bloom_add", Given::Element);
    bloom_add_all => |call| add(call, "bloom_add_all", Given::Array);
}
