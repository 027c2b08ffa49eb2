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

/// Implements the functions of a set and one element, such as `bloom_set_add(set, element)`:
/// argument 0 of the call is the table's OID, and argument 1 the element. Returns a boolean:
/// whether the element may be in the set, was new, or was removed, depending on `action`; NULL if
/// an argument is. `function` is the function's name in SQL, for messages.
///
/// Fails for a table that isn't a set that the user may use, with 42804 for an element of another
/// kind than the set's, and if reading or changing the set does.
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
    // An element without a hash can be in no set. It is neither found nor added.
    if let Some(hash) = hash {
        let hashed = HashedElement { hash, array_index: 0 };
        look_or_change(&set, action, &[hashed], &mut |_| is_found = true)?;
    }
    Ok(Some(Datum::from(is_found)))
}

/// Implements the functions of a set and an array of elements, such as `bloom_set_add_all(set,
/// elements)`: argument 0 of the call is the table's OID, and argument 1 the array. Returns an
/// array of the elements that `selection` names, in their order: those that may be in the set, or
/// that were changed, or else the others. Returns NULL if an argument is.
///
/// If the set is changed, only the first of equal elements is. `function` is the function's name in
/// SQL, for messages. Fails for a table that isn't a set that the user may use, with 42804 for
/// elements of another kind than the set's, and if reading or changing the set does.
fn elements_of_array(call: &Call, function: &str, action: Action, selection: Selection) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else {
        return Ok(None);
    };
    let element_type = ElementType::remembered(call, 1, Given::Array)?;
    let set = Set::open(call, oid, action.purpose())?;
    set.check_kind(call, element_type, function)?;

    let mut elements = elements(call, 1, element_type.oid);
    let hashed = hashed_elements(&elements, element_type, action);
    // By array index. An element that isn't found keeps what it begins with.
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

/// Returns the elements of an array with their hashes and their array indexes, in the order of the
/// hashes, in which a set reads and locks its rows. Elements without a hash, which no set can have,
/// are left out. If `action` changes the set, only the first of elements with equal hashes is
/// returned: the others aren't new any more.
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

    // Of equal hashes, the one with the lower array index comes first.
    hashed.sort_unstable_by(|a, b| {
        check_for_interrupts();
        a.cmp(b)
    });
    if action != Action::Look {
        hashed.dedup_by_key(|element| element.hash);
    }
    hashed
}

/// Looks up elements in a set, with the snapshot of the calling query and without locks, or adds or
/// removes them, as `action` says. Calls `on_found` with the array index of each element that may
/// be in the set, that was new, or that was removed.
///
/// The elements must be in the order of their hashes. In a set that forgets, an element counts only
/// while it is remembered. Fails if reading or changing the set does.
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
