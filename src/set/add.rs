//! `bloom_set_add`, `bloom_set_add_all`: adding, and which elements were new.
//!
//! An element is new if the newest row, which is then this transaction's until it ends, does not have it. So of
//! sessions that add it at once one gets it: the others wait for its commit, and look again. A row that has all
//! elements of the batch is neither locked nor written.

use super::items::{Item, by_shard, check_often, chosen, distinct_items, item};
use super::table::{Set, Site};
use crate::error::During;
use crate::pg::array::{array_of, elements};
use crate::pg::call::Call;
use crate::pg::error::{Outcome, Result};
use crate::pg::keyed_rows::{KeyedRows, Replaced};
use crate::pg::open_table::Access;
use crate::pg::varlena::PgBuffer;
use crate::pg::{interrupt, snapshot};
use crate::settings;
use pg_bloom_core::View;
use pg_bloom_core::filter::build;
use pgrx::pg_sys::Datum;
use std::ffi::CStr;

/// What adds, for messages.
struct Operation {
    name: &'static str,
    /// As PostgreSQL names what can't be done in a read-only transaction.
    call: &'static CStr,
}

const ADD: Operation = Operation { name: "bloom_set_add", call: c"bloom_set_add()" };
const ADD_ALL: Operation = Operation { name: "bloom_set_add_all", call: c"bloom_set_add_all()" };

/// `bloom_set_add(set, element)`.
fn add(call: &Call) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else { return Ok(None) };
    let site = Site::of_element(call)?;
    let set = Set::open(call, oid, Access::Update, &mut site.constraint)?;
    set.check_writable(ADD.call);
    let mut is_new = false;
    if let Some(item) = item(site, set.parameters.shards, element) {
        insert(&set, site, &[item], &ADD, |_| is_new = true)?;
    }
    set.close();
    Ok(Some(Datum::from(is_new)))
}

/// `bloom_set_add_all(set, elements)`.
fn add_all(call: &Call) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else { return Ok(None) };
    let site = Site::of_array(call)?;
    let set = Set::open(call, oid, Access::Update, &mut site.constraint)?;
    set.check_writable(ADD_ALL.call);
    let elements = elements(call, 1, site.array.1);
    let items = distinct_items(site, set.parameters.shards, &elements);
    let mut are_new = pg_bloom_core::memory::collect(elements.iter().map(|_| false));
    insert(&set, site, &items, &ADD_ALL, |item| are_new[item.place] = true)?;
    set.close();
    Ok(Some(array_of(site.array.0, site.array.1, chosen(elements, &are_new))))
}

/// Adds items, in the order of their shards, and calls `is_new` for those that were not there.
///
/// Who has waited for another session takes a new snapshot before going on: in the old one all rows that the others
/// changed meanwhile are the versions before, of which each has to be locked and looked at again.
fn insert(set: &Set, site: &Site, items: &[Item], operation: &Operation, mut is_new: impl FnMut(&Item)) -> Result<()> {
    if items.is_empty() {
        return snapshot::with_latest(|snapshot| check_kind(set, site, set.rows(snapshot), operation));
    }
    if changes_many(set, items)? {
        set.take_turn();
    }
    let mut groups = by_shard(items).peekable();
    let mut new = Vec::new();
    while groups.peek().is_some() {
        snapshot::with_latest(|snapshot| -> Result<()> {
            let mut rows = set.rows(snapshot);
            let mut is_current = true;
            while is_current && let Some(items) = groups.next() {
                interrupt::check_for_interrupts();
                is_current = insert_into_shard(set, site, &mut rows, items, operation, &mut new)?;
                // Both are in the order of their hashes.
                let mut new = new.iter().peekable();
                items.iter().filter(|item| new.next_if_eq(&&item.hash).is_some()).for_each(&mut is_new);
            }
            rows.end();
            Ok(())
        })?;
    }
    Ok(())
}

/// Whether other batches of this size have to wait for this one, or this one for them: so many rows does it change, as
/// far as the first of them say. Such batches wait before they begin, in the order in which they came. Who waits in the
/// middle has changed rows: as long as it waits, and others overtake it, no old version of any row can be removed, and
/// the table grows to a multiple of its size.
fn changes_many(set: &Set, items: &[Item]) -> Result<bool> {
    const SAMPLE: u64 = 32;
    let rows = by_shard(items).count() as u64;
    if !set.is_shared_by_two_of(rows) {
        return Ok(false);
    }
    snapshot::with_latest(|snapshot| {
        let mut sample = set.rows(snapshot);
        let mut changed = 0;
        for items in by_shard(items).take(SAMPLE as usize) {
            if !sample.find(items[0].shard as i32) {
                return Err(set.missing(items[0].shard));
            }
            let value = sample.value();
            let view = View::parse_trusted(value.bytes())?;
            changed += u64::from(items.iter().any(|item| !build::contains(&view, item.hash)));
            value.free();
        }
        sample.end();
        Ok(set.is_shared_by_two_of(rows * changed / rows.min(SAMPLE)))
    })
}

/// Adds items of one shard. The hashes of those that were not there are in `new` afterwards. Whether the snapshot had
/// the newest row.
fn insert_into_shard(
    set: &Set,
    site: &Site,
    rows: &mut KeyedRows<'_>,
    items: &[Item],
    operation: &Operation,
    new: &mut Vec<u64>,
) -> Result<bool> {
    let shard = items[0].shard;
    let mut is_current = true;
    if !rows.find(shard as i32) {
        return Err(set.missing(shard));
    }
    loop {
        let value = rows.value();
        let view = View::parse_trusted(value.bytes())?;
        let kind = site.element.key(&view.header, operation.name)?.kind;
        new.clear();
        let often = items.iter().enumerate().inspect(|(i, _)| check_often(*i));
        new.extend(often.map(|(_, item)| item.hash).filter(|&hash| !build::contains(&view, hash)));
        let added = if new.is_empty() {
            None
        } else {
            Some(build::add::<PgBuffer>(&view, kind, new, settings::max_filter_bytes()).during(operation.name)?)
        };
        value.free();
        let Some(added) = added else { return Ok(is_current) };
        let replaced = rows.replace(added.datum())?;
        added.free();
        match replaced {
            Replaced::Done => return Ok(is_current),
            Replaced::Changed => is_current = false,
            Replaced::Gone => return Err(set.missing(shard)),
        }
    }
}

/// Refuses elements of another kind than the set has, even if there are none.
fn check_kind(set: &Set, site: &Site, mut rows: KeyedRows<'_>, operation: &Operation) -> Result<()> {
    if !rows.find(0) {
        return Err(set.missing(0));
    }
    let value = rows.value();
    site.element.key(&View::parse_trusted(value.bytes())?.header, operation.name)?;
    value.free();
    rows.end();
    Ok(())
}

pg_functions! {
    bloom_set_add => add;
    bloom_set_add_all => add_all;
}
