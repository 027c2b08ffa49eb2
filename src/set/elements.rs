//! The functions of elements: `bloom_set_contains`, `bloom_set_add`, `bloom_set_remove`, and those
//! of arrays.

use super::change::change_elements;
use super::leaves::Item;
use super::table::{Purpose, Set};
use crate::element::{ElementType, Given};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::catalog;
use crate::pg::sql::connected;
use crate::pg::value::array::{array_of, elements};
use pg_bloom_core::set::Row;
use pg_bloom_core::{Layout, interrupt, memory};
use pgrx::pg_sys::Datum;

/// A function of a set and one element: the answer for it.
fn one(call: &Call, operation: &str, purpose: Purpose) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else {
        return Ok(None);
    };
    let element_type = ElementType::remembered(call, 1, Given::Element)?;
    let set = Set::open(call, oid, purpose)?;
    set.check_kind(element_type, operation)?;
    let mut answer = false;
    // SAFETY: the type is that of the argument.
    if let Some(hash) = unsafe { element_type.hasher(Layout::Blocked).hash(element) } {
        act(&set, purpose, &[Item { hash, place: 0 }], &mut |_| answer = true)?;
    }
    Ok(Some(Datum::from(answer)))
}

/// A function of a set and an array of elements: those for which the answer is `wanted`, in their
/// order. Of equal elements only the first is changed.
fn all(call: &Call, operation: &str, purpose: Purpose, wanted: bool) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else {
        return Ok(None);
    };
    let element_type = ElementType::remembered(call, 1, Given::Array)?;
    let set = Set::open(call, oid, purpose)?;
    set.check_kind(element_type, operation)?;
    let mut elements = elements(call, 1, element_type.oid);
    let hasher = element_type.hasher(Layout::Blocked);
    let mut items = memory::with_capacity(elements.len());
    for (place, &element) in interrupt::cancellable(elements.iter().enumerate()) {
        // SAFETY: the type is that of the array's elements.
        if let Some(hash) = unsafe { hasher.hash(element) } {
            items.push(Item { hash, place });
        }
    }
    // Equal elements stay in their own order.
    items.sort_unstable_by(|a, b| {
        check_for_interrupts();
        a.cmp(b)
    });
    if purpose != Purpose::Ask {
        items.dedup_by_key(|item| item.hash);
    }
    let mut are_chosen = memory::collect(elements.iter().map(|_| !wanted));
    act(&set, purpose, &items, &mut |place| are_chosen[place] = wanted)?;
    let mut are_chosen = are_chosen.into_iter();
    elements.retain(|_| are_chosen.next() == Some(true));
    let array = catalog::base_type(call.argument_type(1)?);
    // SAFETY: they are elements of such an array.
    Ok(Some(unsafe { array_of(array, elements) }))
}

/// Changes items, or looks them up with the snapshot of the query; `answer` gets the places of
/// those that changed, or that may be in the set.
fn act(set: &Set, purpose: Purpose, items: &[Item], answer: &mut dyn FnMut(usize)) -> Result<()> {
    if purpose != Purpose::Ask {
        return change_elements(set, purpose, items, answer);
    }
    let (form, now) = (set.form, set.now());
    let note = |row: &Row, item: Item| {
        if row
            .slice_of(form.prefix(item.hash))
            .is_some_and(|slice| form.remembers(slice, now))
        {
            answer(item.place);
        }
    };
    connected(|| set.read_leaves(items, note))
}

pg_functions! {
    bloom_set_contains => |call| one(call, "bloom_set_contains", Purpose::Ask);
    bloom_set_present => |call| all(call, "bloom_set_present", Purpose::Ask, true);
    bloom_set_absent => |call| all(call, "bloom_set_absent", Purpose::Ask, false);
    bloom_set_add => |call| one(call, "bloom_set_add", Purpose::Add);
    bloom_set_add_all => |call| all(call, "bloom_set_add_all", Purpose::Add, true);
    bloom_set_remove => |call| one(call, "bloom_set_remove", Purpose::Remove);
    bloom_set_remove_all => |call| all(call, "bloom_set_remove_all", Purpose::Remove, true);
}
