//! `bloom_set_add`, `bloom_set_add_all`, `bloom_set_remove`, `bloom_set_remove_all`.

use super::change::{Verb, change};
use super::items::{chosen, distinct_items, item};
use super::table::{Purpose, Set, Site};
use crate::pg::call::Call;
use crate::pg::call::error::Outcome;
use crate::pg::value::array::{array_of, elements};
use pg_bloom_core::memory;
use pgrx::pg_sys::Datum;

/// One element: whether it was new, or was removed.
fn one(call: &Call, verb: Verb, operation: &str) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else { return Ok(None) };
    let site = Site::of_element(call)?;
    let set = Set::open(call, oid, Purpose::Change)?;
    set.check_kind(site, operation)?;
    let mut is_affected = false;
    if let Some(item) = item(site, element) {
        change(&set, verb, &[item], |_| is_affected = true)?;
    }
    Ok(Some(Datum::from(is_affected)))
}

/// The elements of an array: those that were new, or were removed.
fn all(call: &Call, verb: Verb, operation: &str) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else { return Ok(None) };
    let site = Site::of_array(call)?;
    let set = Set::open(call, oid, Purpose::Change)?;
    set.check_kind(site, operation)?;
    let elements = elements(call, 1, site.array.1);
    let items = distinct_items(site, &elements);
    let mut are_affected = memory::collect(elements.iter().map(|_| false));
    change(&set, verb, &items, |place| are_affected[place] = true)?;
    Ok(Some(array_of(site.array.0, site.array.1, chosen(elements, &are_affected))))
}

pg_functions! {
    bloom_set_add => |call| one(call, Verb::Add, "bloom_set_add");
    bloom_set_add_all => |call| all(call, Verb::Add, "bloom_set_add_all");
    bloom_set_remove => |call| one(call, Verb::Remove, "bloom_set_remove");
    bloom_set_remove_all => |call| all(call, Verb::Remove, "bloom_set_remove_all");
}
