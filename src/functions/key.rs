//! `bloom_key`: an element in a form with which any filter can be probed. What conditions on a
//! column of filters become for the index over it: `filter @> element` becomes
//! `filter @=> bloom_key(element)`.

use crate::element::{ElementType, Given, ProbeKey};
use crate::error::unsupported;
use crate::filter_type::FilterType;
use crate::pg::call::{Call, Outcome, SqlValue};
use crate::pg::catalog;
use crate::pg::value::array::{array_of, elements};
use crate::pg::value::varlena::{PgBuffer, hex_string};
use crate::probe::FilterCache;
use pg_bloom_core::memory;
use pgrx::pg_sys::Datum;

/// `bloom_key_in(cstring)`: keys are not read from text, as what they say can't be checked.
fn input(_: &Call) -> Outcome {
    Err(unsupported("cannot accept a value of type bloom_key", "Make it with bloom_key(element)."))
}

/// `bloom_key(element)`.
fn key(call: &Call) -> Outcome {
    let Some(element) = call.element(0) else {
        return Ok(None);
    };
    // SAFETY: the type is that of the argument.
    let key = unsafe { ElementType::remembered(call, 0, Given::Element)?.probe_key(Some(element)) };
    Ok(Some(PgBuffer::copy_of(&key.to_bytes()).into_datum()))
}

/// `bloom_keys(anyarray)`, without NULLs. If there are none, one of no element: other kinds are an
/// error still.
fn keys(call: &Call) -> Outcome {
    let element_type = ElementType::remembered(call, 0, Given::Array)?;
    let elements = elements(call, 0, element_type.oid);
    // SAFETY: the type is that of the array's elements.
    let value = |element| {
        PgBuffer::copy_of(&unsafe { element_type.probe_key(element) }.to_bytes()).into_datum()
    };
    let mut keys = memory::collect(
        elements
            .into_iter()
            .map(|element| SqlValue { datum: value(Some(element)) }),
    );
    if keys.is_empty() {
        memory::push(&mut keys, SqlValue { datum: value(None) });
    }
    let array = catalog::type_beside(call.function()?, c"_bloom_key");
    // SAFETY: they are such keys.
    Ok(Some(unsafe { array_of(array, keys) }))
}

/// `bloom_contains_key(filter, key)`, `filter @=> key`: what `filter @> element` is.
fn contains(call: &Call) -> Outcome {
    // SAFETY: remembered by the site of this call.
    let filters = call.remembered(|| Ok(unsafe { FilterCache::new(FilterType::Bloom) }))?;
    let Some(key) = call.value(1) else {
        return Ok(None);
    };
    let key = ProbeKey::parse(key.bytes())?;
    let Some(mut filter) = filters.filter(call, 0, 1)? else {
        return Ok(None);
    };
    let hash = key.hash_for(filter.header())?;
    Ok(Some(Datum::from(filter.contains(hash)?)))
}

pg_functions! {
    bloom_key_in => input;
    bloom_key_out => |call| Ok(call.value(0).map(|value| hex_string(&value)));
    bloom_key => key;
    bloom_keys => keys;
    bloom_contains_key => contains;
}
