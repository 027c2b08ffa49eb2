//! The functions of elements: `bloom_set_contains`, `bloom_set_add`, `bloom_set_remove`, and those
//! of arrays.

use super::change::{Verb, change_elements};
use super::leaves::HashedElement;
use super::table::{Purpose, Set};
use crate::element::{ElementType, Given};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::{Call, Outcome, Result, SqlValue};
use crate::pg::catalog;
use crate::pg::sql::connected;
use crate::pg::value::array::{array_of, elements};
use pg_bloom_core::{Layout, interrupt, memory};
use pgrx::pg_sys::Datum;

/// What a function does with a set and elements.
#[derive(Clone, Copy, PartialEq)]
enum Action {
    /// Looks up which elements may be in the set.
    Look,
    /// Changes the set, and finds out which elements this concerned.
    Change(Verb),
}

impl Action {
    /// Returns the purpose for which the set is opened, which decides how it is locked.
    fn purpose(self) -> Purpose {
        match self {
            Action::Look => Purpose::Ask,
            Action::Change(_) => Purpose::Change,
        }
    }
}

/// Which elements of an array a function returns.
#[derive(Clone, Copy, PartialEq)]
enum Selection {
    /// Those that may be in the set, or that the call changed.
    Found,
    /// The others.
    NotFound,
}

/// Executes a function of a set and one element: returns whether the element may be in the set, or
/// was new or removed; NULL if an argument is. `function` is the function's name in SQL.
fn one_element(call: &Call, function: &str, action: Action) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else {
        return Ok(None);
    };
    let element_type = ElementType::remembered(call, 1, Given::Element)?;
    let set = Set::open(call, oid, action.purpose())?;
    set.check_kind(call, element_type, function)?;

    let mut is_found = false;
    // SAFETY: the type is that of the argument.
    let hash = unsafe { element_type.hasher(Layout::Blocked).hash(element) };
    if let Some(hash) = hash {
        let hashed = HashedElement { hash, array_index: 0 };
        look_or_change(&set, action, &[hashed], &mut |_| is_found = true)?;
    }
    Ok(Some(Datum::from(is_found)))
}

/// Executes a function of a set and an array: returns an array of the elements that `selection`
/// names, in their order; NULL if an argument is. Of equal elements only the first is changed.
/// `function` is the function's name in SQL.
fn elements_of_array(call: &Call, function: &str, action: Action, selection: Selection) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else {
        return Ok(None);
    };
    let element_type = ElementType::remembered(call, 1, Given::Array)?;
    let set = Set::open(call, oid, action.purpose())?;
    set.check_kind(call, element_type, function)?;

    let mut elements = elements(call, 1, element_type.oid);
    let hashed = hashed_elements(&elements, element_type, action);
    let mut are_returned: Vec<bool> =
        memory::collect(elements.iter().map(|_| selection == Selection::NotFound));
    look_or_change(&set, action, &hashed, &mut |array_index| {
        are_returned[array_index] = selection == Selection::Found;
    })?;
    drop(hashed);

    let mut is_returned = are_returned.into_iter();
    elements.retain(|_| is_returned.next() == Some(true));
    let array_type = catalog::base_type(call.argument_type(1)?);
    // SAFETY: the elements are from an array of this type.
    Ok(Some(unsafe { array_of(array_type, elements) }))
}

/// Returns the elements of an array with their hashes, in the order of the hashes. Elements that no
/// set can have are left out. If the set is to be changed, only the first of elements with equal
/// hashes is returned.
fn hashed_elements(
    elements: &[SqlValue],
    element_type: &ElementType,
    action: Action,
) -> Vec<HashedElement> {
    let hasher = element_type.hasher(Layout::Blocked);
    let mut hashed = memory::with_capacity(elements.len());
    for (array_index, &element) in interrupt::cancellable(elements.iter().enumerate()) {
        // SAFETY: the type is that of the array's elements.
        if let Some(hash) = unsafe { hasher.hash(element) } {
            memory::push(&mut hashed, HashedElement { hash, array_index });
        }
    }

    // Equal hashes are in the order of the array.
    hashed.sort_unstable_by(|a, b| {
        check_for_interrupts();
        a.cmp(b)
    });
    if action != Action::Look {
        hashed.dedup_by_key(|element| element.hash);
    }
    hashed
}

/// Looks up elements with the snapshot of the calling query, or changes them, and calls `on_found`
/// with the array index of each that may be in the set, or that was changed.
fn look_or_change(
    set: &Set,
    action: Action,
    elements: &[HashedElement],
    on_found: &mut dyn FnMut(usize),
) -> Result<()> {
    if let Action::Change(verb) = action {
        return change_elements(set, verb, elements, on_found);
    }
    let form = set.form;
    let now = set.now();
    connected(|| {
        set.read_leaves(elements, |row, element| {
            let added_at = row.time_slice_of(form.prefix(element.hash));
            if added_at.is_some_and(|added_at| form.remembers(added_at, now)) {
                on_found(element.array_index);
            }
        })
    })
}

const ADD: Action = Action::Change(Verb::Add);
const REMOVE: Action = Action::Change(Verb::Remove);

#[rustfmt::skip]
pg_functions! {
    bloom_set_contains => |call| one_element(call, "bloom_set_contains", Action::Look);
    bloom_set_present => |call| elements_of_array(call, "bloom_set_present", Action::Look, Selection::Found);
    bloom_set_absent => |call| elements_of_array(call, "bloom_set_absent", Action::Look, Selection::NotFound);
    bloom_set_add => |call| one_element(call, "bloom_set_add", ADD);
    bloom_set_add_all => |call| elements_of_array(call, "bloom_set_add_all", ADD, Selection::Found);
    bloom_set_remove => |call| one_element(call, "bloom_set_remove", REMOVE);
    bloom_set_remove_all => |call| elements_of_array(call, "bloom_set_remove_all", REMOVE, Selection::Found);
}
