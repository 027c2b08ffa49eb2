//! `bloom_set_contains`, `bloom_set_present`, `bloom_set_absent`: asking with the snapshot of the query.

use super::items::{Item, check_often, chosen, item, items};
use super::table::{Purpose, Set, Site};
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::sql::connected;
use crate::pg::value::array::{array_of, elements};
use pg_bloom_core::memory;
use pgrx::pg_sys::Datum;

/// `bloom_set_contains(set, element)`.
fn contains(call: &Call) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else { return Ok(None) };
    let site = Site::of_element(call)?;
    let set = Set::open(call, oid, Purpose::Ask)?;
    set.check_kind(site, "bloom_set_contains")?;
    let mut is_there = false;
    if let Some(item) = item(site, element) {
        look_up(&set, &[item], |_| is_there = true)?;
    }
    Ok(Some(Datum::from(is_there)))
}

/// The elements of an array that may be in the set, or those that surely are not.
fn elements_answered(call: &Call, wanted: bool, operation: &str) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else { return Ok(None) };
    let site = Site::of_array(call)?;
    let set = Set::open(call, oid, Purpose::Ask)?;
    set.check_kind(site, operation)?;
    let elements = elements(call, 1, site.array.1);
    let items = items(site, &elements);
    let mut are_wanted = memory::collect(elements.iter().map(|_| !wanted));
    look_up(&set, &items, |item| are_wanted[item.place] = wanted)?;
    Ok(Some(array_of(site.array.0, site.array.1, chosen(elements, &are_wanted))))
}

/// Calls `is_there` for those items that may be in the set.
fn look_up(set: &Set, items: &[Item], mut is_there: impl FnMut(&Item)) -> Result<()> {
    let (form, now) = (set.known.form, set.now());
    connected(|| {
        set.read_leaves(items, |row, items| {
            for (i, item) in items.iter().enumerate() {
                check_often(i);
                if row.slice_of(form.prefix(item.hash)).is_some_and(|slice| form.remembers(slice, now)) {
                    is_there(item);
                }
            }
            Ok(())
        })
    })
}

pg_functions! {
    bloom_set_contains => contains;
    bloom_set_present => |call| elements_answered(call, true, "bloom_set_present");
    bloom_set_absent => |call| elements_answered(call, false, "bloom_set_absent");
}
