//! The functions of elements: `bloom_set_contains`, `bloom_set_add`, `bloom_set_remove`, and those
//! of arrays.

use super::change::{Verb, change_elements};
use super::leaves::HashedElement;
use super::table::{Purpose, Set};
use crate::element::{ElementArgument, ElementType};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::{Call, Outcome, Result, SqlValue};
use crate::pg::catalog;
use crate::pg::sql::connected;
use crate::pg::value::array::{array_of, elements};
use pg_bloom_core::memory::List;
use pg_bloom_core::{Layout, interrupt};
use pgrx::pg_sys::Datum;

/// What a function does with a set and elements. The elements that it is about are the *hits* of
/// the action.
#[derive(Clone, Copy, PartialEq)]
enum Action {
    /// Looks elements up. A hit is an element that may be in the set.
    LookUp,
    /// Changes the set. A hit is an element that was new when it was added, or that was in the set
    /// when it was removed.
    Change(Verb),
}

impl Action {
    /// Returns the purpose for which the set is opened, which decides how it is locked.
    fn purpose(self) -> Purpose {
        match self {
            Action::LookUp => Purpose::Ask,
            Action::Change(_) => Purpose::Change,
        }
    }
}

/// Which elements of an array a function returns.
#[derive(Clone, Copy, PartialEq)]
enum Returned {
    /// The hits of the function's action: elements that may be in the set, or that were added or
    /// removed.
    Hits,
    /// The other elements.
    Misses,
}

/// Implements the functions of a set and one element, such as `bloom_set_add(set, element)`:
/// argument 0 of the call is the table's OID, and argument 1 the element. Performs the `action`,
/// and returns a boolean: whether the element may be in the set, was new, or was removed; NULL if
/// an argument is. `function` is the function's name in SQL, for messages.
///
/// Fails for a table that isn't a set that the user may use, with 42804 for an element of another
/// kind than the set's, and if reading or changing the set does.
fn act_on_element(call: &Call, function: &str, action: Action) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else {
        return Ok(None);
    };
    let element_type = ElementType::remembered(call, 1, ElementArgument::OneElement)?;
    let set = Set::open(call, oid, action.purpose())?;
    set.check_kind(call, element_type, function)?;

    let mut is_hit = false;
    // SAFETY: the type is that of the argument.
    let hash = unsafe { element_type.hasher(Layout::Blocked).hash(element) };
    // An element without a hash can be in no set. It is neither found nor added.
    if let Some(hash) = hash {
        let hashed = HashedElement { hash, array_index: 0 };
        perform(&set, action, &[hashed], &mut |_| is_hit = true)?;
    }
    Ok(Some(Datum::from(is_hit)))
}

/// Implements the functions of a set and an array of elements, such as `bloom_set_add_all(set,
/// elements)`: argument 0 of the call is the table's OID, and argument 1 the array. Performs the
/// `action` for all elements of the array.
///
/// Returns an array of some of them, in their order: the *hits* of the action, which are elements
/// that may be in the set, or were new, or were removed; or all others, as `returned` says. Of
/// equal elements, only the first can be new or removed. Returns NULL if an argument is.
///
/// `function` is the function's name in SQL, for messages. Fails for a table that isn't a set that
/// the user may use, with 42804 for elements of another kind than the set's, and if reading or
/// changing the set does.
fn act_on_array(call: &Call, function: &str, action: Action, returned: Returned) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else {
        return Ok(None);
    };
    let element_type = ElementType::remembered(call, 1, ElementArgument::Array)?;
    let set = Set::open(call, oid, action.purpose())?;
    set.check_kind(call, element_type, function)?;

    let mut elements = elements(call, 1, element_type.oid);
    let hashed = hashed_elements(&elements, element_type, action);
    // By array index.
    let mut are_hits: List<bool> = elements.iter().map(|_| false).collect();
    perform(&set, action, &hashed, &mut |array_index| are_hits[array_index] = true)?;
    drop(hashed);

    let mut are_hits = are_hits.into_iter();
    let returns_hits = returned == Returned::Hits;
    elements.retain(|_| are_hits.next() == Some(returns_hits));
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
) -> List<HashedElement> {
    let hasher = element_type.hasher(Layout::Blocked);
    let mut hashed = List::with_capacity(elements.len());
    for (array_index, &element) in interrupt::cancellable(elements.iter().enumerate()) {
        // SAFETY: the type is that of the array's elements.
        if let Some(hash) = unsafe { hasher.hash(element) } {
            hashed.push(HashedElement { hash, array_index });
        }
    }

    // Of equal hashes, the one with the lower array index comes first.
    hashed.sort_unstable_by(|a, b| {
        check_for_interrupts();
        a.cmp(b)
    });
    if action != Action::LookUp {
        hashed.dedup_by_key(|element| element.hash);
    }
    hashed
}

/// Looks elements up in a set, with the snapshot of the calling query and without locks, or adds or
/// removes them, as `action` says. Calls `on_hit` with the array index of each element that may be
/// in the set, if they are looked up; that was new, if they are added; or that was in the set, if
/// they are removed.
///
/// The elements must be in the order of their hashes. In a set that forgets, an element counts only
/// while it is remembered. Fails if reading or changing the set does.
fn perform(
    set: &Set,
    action: Action,
    elements: &[HashedElement],
    on_hit: &mut dyn FnMut(usize),
) -> Result<()> {
    if let Action::Change(verb) = action {
        return change_elements(set, verb, elements, on_hit);
    }
    let form = set.form;
    let now = set.now();
    connected(|| {
        set.read_leaves(elements, |row, element| {
            // A row has the first bits of each hash, and the time at which it was added last.
            let stored_hash = form.prefix(element.hash);
            let added_at = row.time_slice_of(stored_hash);
            if added_at.is_some_and(|added_at| form.remembers(added_at, now)) {
                on_hit(element.array_index);
            }
        })
    })
}

const ADD: Action = Action::Change(Verb::Add);
const REMOVE: Action = Action::Change(Verb::Remove);

#[rustfmt::skip]
pg_functions! {
    bloom_set_contains => |call| act_on_element(call, "bloom_set_contains", Action::LookUp);
    bloom_set_present => |call| act_on_array(call, "bloom_set_present", Action::LookUp, Returned::Hits);
    bloom_set_absent => |call| act_on_array(call, "bloom_set_absent", Action::LookUp, Returned::Misses);
    bloom_set_add => |call| act_on_element(call, "bloom_set_add", ADD);
    bloom_set_add_all => |call| act_on_array(call, "bloom_set_add_all", ADD, Returned::Hits);
    bloom_set_remove => |call| act_on_element(call, "bloom_set_remove", REMOVE);
    bloom_set_remove_all => |call| act_on_array(call, "bloom_set_remove_all", REMOVE, Returned::Hits);
}
