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

/// Implements `bloom_key(element)`: returns an element in a form, a *probe key*, with which filters
/// of any layout can be probed; NULL for NULL. Fails with 0A000 for a type that can't be an
/// element.
fn key(call: &Call) -> Outcome {
    let Some(element) = call.element(0) else {
        return Ok(None);
    };
    // SAFETY: the type is that of the argument.
    let key = unsafe { ElementType::remembered(call, 0, Given::Element)?.probe_key(Some(element)) };
    Ok(Some(PgBuffer::copy_of(&key.to_bytes()).into_datum()))
}

/// Implements `bloom_keys(anyarray)`: returns the elements of an array in a form, the *probe keys*,
/// with which filters of any layout can be probed. NULLs are left out. If there are no others, the
/// result has one probe key of no element: it is found in no filter, but still has the kind of the
/// elements, so that filters of other kinds are an error.
///
/// Fails with 0A000 for a type that can't be an element.
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
    // With no key at all, a filter of another kind would not be noticed.
    if keys.is_empty() {
        memory::push(&mut keys, SqlValue { datum: value(None) });
    }
    let array = catalog::type_in_schema_of(call.function()?, c"_bloom_key");
    // SAFETY: each datum was made from the bytes of a key.
    Ok(Some(unsafe { array_of(array, keys) }))
}

/// Implements `bloom_contains_key(filter, key)` and `filter @=> key`: returns whether the element
/// that a probe key, made by `bloom_key`, stands for may be in the filter, as `filter @> element`
/// does. NULL if an argument is. Fails with 42804 for an element of another kind than the filter's,
/// and with 22P03 for a damaged filter.
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
    let hash = key.hash_for_filter(filter.header())?;
    Ok(Some(Datum::from(filter.contains(hash)?)))
}

pg_functions! {
    bloom_key_in => input;
    bloom_key_out => |call| Ok(call.value(0).map(|value| hex_string(&value)));
    bloom_key => key;
    bloom_keys => keys;
    bloom_contains_key => contains;
}
