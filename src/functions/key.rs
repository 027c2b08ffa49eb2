//! `bloom_key`: an element in a form with which any filter can be probed. What conditions on a
//! column of filters become for the index over it: `filter @> element` becomes
//! `filter @=> bloom_key(element)`.

use crate::element::{ElementArgument, ElementType, ProbeKey};
use crate::error::unsupported;
use crate::filter_type::FilterType;
use crate::pg::call::{Call, Outcome, SqlValue};
use crate::pg::catalog;
use crate::pg::value::array::{array_of, elements};
use crate::pg::value::varlena::{PgBuffer, hex_string};
use crate::probe::FilterCache;
use pg_bloom_core::memory::List;
use pgrx::pg_sys::Datum;

/// `bloom_key_in(cstring)`: keys are not read from text, as what they say can't be checked.
fn input(_: &Call) -> Outcome {
    Err(unsupported("cannot accept a value of type bloom_key", "Make it with bloom_key(element)."))
}

/// Implements `bloom_key(element)`: returns an element in a form, a *probe key*, with which filters
/// of any layout can be probed; NULL for NULL. Fails with 0A000 for a type that can't be an
/// element.
fn key_of_element(call: &Call) -> Outcome {
    let Some(element) = call.element(0) else {
        return Ok(None);
    };
    let element_type = ElementType::remembered(call, 0, ElementArgument::OneElement)?;
    // SAFETY: the type is that of the argument.
    Ok(Some(unsafe { key_datum(element_type, Some(element)) }))
}

/// Returns the probe key of an element, or of no element, as a value of type `bloom_key`.
///
/// # Safety
/// The element must be of this type.
unsafe fn key_datum(element_type: &ElementType, element: Option<SqlValue>) -> Datum {
    // SAFETY: the caller promises an element of this type.
    let key = unsafe { element_type.probe_key(element) };
    PgBuffer::copy_of(&key.to_bytes()).into_datum()
}

/// Implements `bloom_keys(anyarray)`: returns an array of type `bloom_key[]`, with each element of
/// an array as a *probe key*, a form with which filters of any layout can be probed. NULLs are left
/// out.
///
/// If no element is left, the result has one key without an element. No filter has that key, but it
/// still says of which type the elements are, so that probing a filter of another type is an error,
/// as it is with any other array. Fails with 0A000 for a type that can't be an element.
fn keys_of_array(call: &Call) -> Outcome {
    let element_type = ElementType::remembered(call, 0, ElementArgument::Array)?;
    // SAFETY: the function is called with elements of the array, which are of this type.
    let key_of = |element| SqlValue { datum: unsafe { key_datum(element_type, element) } };
    let elements = elements(call, 0, element_type.oid).into_iter();
    let mut keys = elements.map(|element| key_of(Some(element))).collect::<List<_>>();
    if keys.is_empty() {
        let key_without_element = key_of(None);
        keys.push(key_without_element);
    }

    // PostgreSQL's name for the type `bloom_key[]`.
    let array_type = catalog::type_in_schema_of(call.function()?, c"_bloom_key");
    // SAFETY: each datum was made from the bytes of a key.
    Ok(Some(unsafe { array_of(array_type, keys) }))
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
    bloom_key => key_of_element;
    bloom_keys => keys_of_array;
    bloom_contains_key => contains;
}
