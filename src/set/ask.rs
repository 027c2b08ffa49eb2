//! `bloom_set_contains`, `bloom_set_present`, `bloom_set_absent`: asking, as of the snapshot of the query.

use super::items::{Item, batches, by_shard, check_often, chosen, item, items, shards_of};
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
    if let Some(item) = item(site, set.parameters().shards, element) {
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
    let items = items(site, set.parameters().shards, &elements);
    let mut are_wanted = memory::collect(elements.iter().map(|_| !wanted));
    look_up(&set, site, &items, operation, |item| are_wanted[item.place] = wanted)?;
    Ok(Some(array_of(site.array.0, site.array.1, chosen(elements, &are_wanted))))
}

/// `bloom_set_present(set, elements)`.
fn present(call: &Call) -> Outcome {
    elements_answered(call, true, "bloom_set_present")
}

/// `bloom_set_absent(set, elements)`.
fn absent(call: &Call) -> Outcome {
    elements_answered(call, false, "bloom_set_absent")
}

/// Calls `is_there` for those items that may be in the set.
fn look_up(set: &Set, site: &Site, items: &[Item], operation: &str, mut is_there: impl FnMut(&Item)) -> Result<()> {
    // Elements of another kind are refused even if there are none.
    let nothing = [Item { shard: 0, hash: 0, place: 0 }];
    for batch in batches(if items.is_empty() { &nothing } else { items }) {
        let groups = memory::collect(by_shard(batch));
        connected(|| {
            set.read(&shards_of(batch), Sees::CallingQuery, |place, filter| {
                let view = View::parse_trusted(filter.bytes())?;
                site.element.key(&view.header, operation)?;
                if !items.is_empty() {
                    let often = groups[place].iter().enumerate().inspect(|(i, _)| check_often(*i));
                    often
                        .map(|(_, item)| item)
                        .filter(|item| build::contains(&view, item.hash))
                        .for_each(&mut is_there);
                }
                Ok(())
            })
        })?;
    }
    Ok(())
}

pg_functions! {
    bloom_set_contains => contains;
    bloom_set_present => present;
    bloom_set_absent => absent;
}
