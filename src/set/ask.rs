//! `bloom_set_contains`, `bloom_set_present`, `bloom_set_absent`: probing with the snapshot of the query.

use super::items::{Item, check_often, chosen, item, items};
use super::list::List;
use super::rows::{Wanted, first_batch};
use super::table::{Purpose, Set, Site};
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::sql::{Sees, connected};
use crate::pg::value::array::{array_of, elements};
use pg_bloom_core::filter::build;
use pg_bloom_core::{View, memory};
use pgrx::pg_sys::Datum;

/// `bloom_set_contains(set, element)`.
fn contains(call: &Call) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else { return Ok(None) };
    let site = Site::of_element(call)?;
    let set = Set::open(call, oid, Purpose::Ask)?;
    let mut is_there = false;
    if let Some(item) = item(site, element) {
        look_up(&set, site, &[item], "bloom_set_contains", |_| is_there = true)?;
    }
    Ok(Some(Datum::from(is_there)))
}

/// The elements of an array that may be in the set, or those that surely are not.
fn elements_answered(call: &Call, wanted: bool, operation: &str) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else { return Ok(None) };
    let site = Site::of_array(call)?;
    let set = Set::open(call, oid, Purpose::Ask)?;
    let elements = elements(call, 1, site.array.1);
    let items = items(site, &elements);
    let mut are_wanted = memory::collect(elements.iter().map(|_| !wanted));
    look_up(&set, site, &items, operation, |item| are_wanted[item.place] = wanted)?;
    Ok(Some(array_of(site.array.0, site.array.1, chosen(elements, &are_wanted))))
}

/// Calls `is_there` for those items that may be in the set.
fn look_up(set: &Set, site: &Site, items: &[Item], operation: &str, mut is_there: impl FnMut(&Item)) -> Result<()> {
    // The kind is checked even if there are no elements.
    let nothing = [Item { shard_hash: 0, hash: 0, place: 0 }];
    let mut rest = if items.is_empty() { &nothing } else { items };
    while !rest.is_empty() {
        rest = connected(|| {
            let list = set.list(Sees::CallingQuery)?;
            let (batch, later) = rest.split_at(first_batch(rest, &list));
            let wanted = |list: &List| memory::collect(list.generations.iter().flat_map(|g| Wanted::of(g, batch)));
            let mut cutoff = None;
            set.read(Sees::CallingQuery, wanted, |wanted, row| {
                let view = View::parse_trusted(row.filter.bytes())?;
                site.element.key(&view.header, operation)?;
                if items.is_empty() || set.is_over(wanted, row, &list, &mut cutoff) {
                    return Ok(());
                }
                let often = batch[wanted.items.clone()].iter().enumerate().inspect(|(i, _)| check_often(*i));
                often.map(|(_, item)| item).filter(|item| build::contains(&view, item.hash)).for_each(&mut is_there);
                Ok(())
            })?;
            Ok(later)
        })?;
    }
    Ok(())
}

pg_functions! {
    bloom_set_contains => contains;
    bloom_set_present => |call| elements_answered(call, true, "bloom_set_present");
    bloom_set_absent => |call| elements_answered(call, false, "bloom_set_absent");
}
