//! The functions of elements: `bloom_set_contains`, `bloom_set_add`, `bloom_set_remove`, and those of arrays.

use super::change::{Verb, change};
use super::leaves::{Item, check_often};
use super::table::{Purpose, Set};
use crate::element::ElementType;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::call::{Call, Element};
use crate::pg::catalog;
use crate::pg::sql::connected;
use crate::pg::value::array::{array_of, elements};
use pg_bloom_core::set::Row;
use pg_bloom_core::{Layout, memory};
use pgrx::pg_sys::Datum;

/// What is done with the items of a call: it is given the places for which the answer is yes.
type Act = fn(&Set, &[Item], &mut dyn FnMut(usize)) -> Result<()>;

/// A function of a set and one element: the answer for it.
fn one(call: &Call, purpose: Purpose, operation: &str, act: Act) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else { return Ok(None) };
    let element_type = ElementType::remembered(call, 1)?;
    let set = Set::open(call, oid, purpose)?;
    set.check_kind(element_type, operation)?;
    let mut answer = false;
    // SAFETY: the type is that of the argument.
    if let Some(hash) = unsafe { element_type.hasher(Layout::Blocked).hash(element) } {
        act(&set, &[Item { hash, place: 0 }], &mut |_| answer = true)?;
    }
    Ok(Some(Datum::from(answer)))
}

/// A function of a set and an array of elements: those for which the answer is `wanted`, in their order. Of equal
/// elements only the first is changed.
fn all(call: &Call, purpose: Purpose, operation: &str, wanted: bool, act: Act) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else { return Ok(None) };
    let (element_type, element_oid) = ElementType::remembered_of_array(call, 1)?;
    let set = Set::open(call, oid, purpose)?;
    set.check_kind(element_type, operation)?;
    let mut elements = elements(call, 1, *element_oid);
    // SAFETY: the type is that of the array's elements.
    let mut items = unsafe { items(element_type, &elements) };
    if purpose == Purpose::Change {
        items.dedup_by_key(|item| item.hash);
    }
    let mut are_chosen = memory::collect(elements.iter().map(|_| !wanted));
    act(&set, &items, &mut |place| are_chosen[place] = wanted)?;
    let mut are_chosen = are_chosen.into_iter();
    elements.retain(|_| are_chosen.next() == Some(true));
    let array = catalog::base_type(call.argument_type(1)?);
    // SAFETY: they are elements of such an array.
    Ok(Some(unsafe { array_of(array, *element_oid, elements) }))
}

/// Elements in the order of their hashes, equal ones in their own order.
///
/// # Safety
/// They must be of this type.
unsafe fn items(element_type: &ElementType, elements: &[Element]) -> Vec<Item> {
    let hasher = element_type.hasher(Layout::Blocked);
    let mut items = memory::list(elements.len());
    for (place, &element) in elements.iter().enumerate() {
        check_often(place);
        // SAFETY: promised by the caller.
        if let Some(hash) = unsafe { hasher.hash(element) } {
            items.push(Item { hash, place });
        }
    }
    let mut compared = 0;
    items.sort_unstable_by(|a, b| {
        compared += 1;
        check_often(compared);
        a.cmp(b)
    });
    items
}

/// Finds those items that may be in the set, with the snapshot of the query.
fn look_up(set: &Set, items: &[Item], is_there: &mut dyn FnMut(usize)) -> Result<()> {
    let (form, now) = (set.known.form, set.now());
    let note = |row: &Row, item: Item| {
        if row.slice_of(form.prefix(item.hash)).is_some_and(|slice| form.remembers(slice, now)) {
            is_there(item.place);
        }
    };
    connected(|| set.read_leaves(items, note))
}

const ADD: Act = |set, items, is_new| change(set, Verb::Add, items, is_new);
const REMOVE: Act = |set, items, is_removed| change(set, Verb::Remove, items, is_removed);

pg_functions! {
    bloom_set_contains => |call| one(call, Purpose::Ask, "bloom_set_contains", look_up);
    bloom_set_present => |call| all(call, Purpose::Ask, "bloom_set_present", true, look_up);
    bloom_set_absent => |call| all(call, Purpose::Ask, "bloom_set_absent", false, look_up);
    bloom_set_add => |call| one(call, Purpose::Change, "bloom_set_add", ADD);
    bloom_set_add_all => |call| all(call, Purpose::Change, "bloom_set_add_all", true, ADD);
    bloom_set_remove => |call| one(call, Purpose::Change, "bloom_set_remove", REMOVE);
    bloom_set_remove_all => |call| all(call, Purpose::Change, "bloom_set_remove_all", true, REMOVE);
}
