//! `bloom_set_contains`, `bloom_set_present`, `bloom_set_absent`: asking, as of the snapshot of the query.

use super::items::{Item, by_shard, check_often, chosen, item, items};
use super::table::{Set, Site};
use crate::pg::array::{array_of, elements};
use crate::pg::call::Call;
use crate::pg::error::{Outcome, Result};
use crate::pg::open_table::Access;
use crate::pg::{interrupt, snapshot};
use pg_bloom_core::filter::build;
use pg_bloom_core::{View, memory};
use pgrx::pg_sys::Datum;

/// `bloom_set_contains(set, element)`.
fn contains(call: &Call) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else { return Ok(None) };
    let site = Site::of_element(call)?;
    let set = Set::open(call, oid, Access::Read, &mut site.constraint)?;
    let mut is_there = false;
    if let Some(item) = item(site, set.parameters.shards, element) {
        look_up(&set, site, &[item], "bloom_set_contains", |_| is_there = true)?;
    }
    set.close();
    Ok(Some(Datum::from(is_there)))
}

/// The elements of an array that may be in the set, or those that surely are not.
fn elements_answered(call: &Call, wanted: bool, operation: &str) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else { return Ok(None) };
    let site = Site::of_array(call)?;
    let set = Set::open(call, oid, Access::Read, &mut site.constraint)?;
    let elements = elements(call, 1, site.array.1);
    let items = items(site, set.parameters.shards, &elements);
    let mut are_wanted = memory::collect(elements.iter().map(|_| !wanted));
    look_up(&set, site, &items, operation, |item| are_wanted[item.place] = wanted)?;
    set.close();
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

/// Calls `is_there` for those items, in the order of their shards, that may be in the set.
fn look_up(set: &Set, site: &Site, items: &[Item], operation: &str, mut is_there: impl FnMut(&Item)) -> Result<()> {
    snapshot::with_current(|snapshot| {
        let mut rows = set.rows(snapshot);
        // Elements of another kind are refused even if there are none.
        let first = [Item { shard: 0, hash: 0, place: 0 }];
        let groups: &[Item] = if items.is_empty() { &first } else { items };
        for group in by_shard(groups) {
            interrupt::check_for_interrupts();
            if !rows.find(group[0].shard as i32) {
                return Err(set.missing(group[0].shard));
            }
            let value = rows.value();
            let view = View::parse_trusted(value.bytes())?;
            site.element.key(&view.header, operation)?;
            if !items.is_empty() {
                let often = group.iter().enumerate().inspect(|(i, _)| check_often(*i)).map(|(_, item)| item);
                often.filter(|item| build::contains(&view, item.hash)).for_each(&mut is_there);
            }
            value.free();
        }
        rows.end();
        Ok(())
    })
}

pg_functions! {
    bloom_set_contains => contains;
    bloom_set_present => present;
    bloom_set_absent => absent;
}
