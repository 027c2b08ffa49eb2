//! Making filters one at a time: `bloom_empty`, `bloom_from_array`, `bloom_add`, `bloom_add_all`; spreading elements
//! over several with `bloom_shard`.

use crate::arguments::{Arguments, at_fpr, request};
use crate::element::{ElementType, hash_to_add, hashes};
use crate::error::{During, invalid_parameter};
use crate::filter_type::{Bloom, argument};
use crate::pg::call::Call;
use crate::pg::call::error::Outcome;
use crate::pg::value::array::elements;
use crate::pg::value::varlena::PgBuffer;
use crate::{overfull, settings};
use pg_bloom_core::filter::build;
use pg_bloom_core::{Header, Layout, hash};
use pgrx::pg_sys::Datum;

/// `bloom_empty()`, `bloom_empty(capacity, fpr, layout)`.
fn empty(call: &Call) -> Outcome {
    let header = request(&Arguments::of(call, 0))?.header(settings::max_filter_bytes())?;
    Ok(Some(build::empty::<PgBuffer>(&header).into_datum()))
}

/// `bloom_from_array(elements, capacity, fpr, layout)`.
fn from_array(call: &Call) -> Outcome {
    let header = request(&Arguments::of(call, 1))?.header(settings::max_filter_bytes())?;
    let (element, oid) = ElementType::remembered_of_array(call, 0)?;
    if call.value(0).is_none() {
        return Ok(None);
    }
    let key = element.key(&header, "bloom_from_array")?;
    // SAFETY: the type is that of the array's elements.
    let hashes = unsafe { hashes(&elements(call, 0, *oid), &key)? };
    let header = if hashes.is_empty() { header } else { Header { kind: key.kind, ..header } };
    let filter: PgBuffer = build::from_hashes(&header, &hashes, settings::max_filter_bytes())?;
    // Without a capacity it has the size that it needs.
    if header.is_to_be_sized() {
        Ok(Some(filter.into_datum()))
    } else {
        overfull::finish::<Bloom>(call, overfull::BUILT, filter)
    }
}

/// `bloom_add(filter, element)`, `filter || element`.
fn add(call: &Call) -> Outcome {
    let Some(view) = argument::<Bloom>(call, 0)? else { return Ok(None) };
    let type_of_element = ElementType::remembered(call, 1)?;
    let Some(element) = call.element(1) else { return Ok(call.datum(0)) };
    let key = type_of_element.key(&view.header, "bloom_add")?;
    // SAFETY: the type is that of the argument.
    let hash = unsafe { hash_to_add(&key, element)? };
    if build::contains(&view, hash) {
        return Ok(call.datum(0));
    }
    let added = build::add(&view, key.kind, &[hash], settings::max_filter_bytes()).during("bloom_add")?;
    overfull::finish::<Bloom>(call, overfull::ADDED, added)
}

/// `bloom_add_all(filter, elements)`.
fn add_all(call: &Call) -> Outcome {
    let Some(view) = argument::<Bloom>(call, 0)? else { return Ok(None) };
    let (element, oid) = ElementType::remembered_of_array(call, 1)?;
    let key = element.key(&view.header, "bloom_add_all")?;
    // SAFETY: the type is that of the array's elements.
    let hashes = unsafe { hashes(&elements(call, 1, *oid), &key)? };
    if hashes.iter().all(|&hash| build::contains(&view, hash)) {
        return Ok(call.datum(0));
    }
    let added = build::add(&view, key.kind, &hashes, settings::max_filter_bytes()).during("bloom_add_all")?;
    overfull::finish::<Bloom>(call, overfull::ADDED, added)
}

/// `bloom_shard(element, shards)`.
fn shard(call: &Call) -> Outcome {
    let element_type = ElementType::remembered(call, 0)?;
    let (Some(element), Some(shards)) = (call.element(0), call.i32(1)) else { return Ok(None) };
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
    bloom_add => add;
    bloom_add_all => add_all;
}
