//! `bloom_set_add`, `bloom_set_add_all`: adding, and which elements were new.
//!
//! ```text
//! read     the rows of the batch, without locks
//! turn     large batches wait for each other here, before they hold the lock of any row
//! lock     the rows that lack an element, in the order of their shards
//! compute  from the locked rows: what is new, and their filters with it
//! change   these rows by one UPDATE, which must return what was written
//! ```
//!
//! An element is new if the locked row does not have it. The row is then this transaction's until it ends, so of
//! sessions that add an element at once one gets it: the others wait for its commit, and look again.
//!
//! Nothing is retried. An UPDATE of unlocked rows that tried again those that had changed in the meantime would take
//! its locks in a second order, and three sessions of one call each could deadlock.

use super::fill::{self, Rates};
use super::items::{Item, batches, by_shard, check_often, chosen, distinct_items, item, shards_of};
use super::table::{Purpose, Set, Site};
use crate::error::During;
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::sql::{Sees, connected};
use crate::pg::value::array::{array_of, elements};
use crate::pg::value::varlena::{PgBuffer, Value};
use crate::settings;
use pg_bloom_core::filter::build;
use pg_bloom_core::{Buffer, View, memory};
use pgrx::pg_sys::Datum;

/// `bloom_set_add(set, element)`.
fn add(call: &Call) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else { return Ok(None) };
    let site = Site::of_element(call)?;
    let set = Set::open(call, oid, Purpose::Add)?;
    let mut is_new = false;
    if let Some(item) = item(site, set.parameters().shards, element) {
        insert(&set, site, &[item], "bloom_set_add", |_| is_new = true)?;
    }
    Ok(Some(Datum::from(is_new)))
}

/// `bloom_set_add_all(set, elements)`.
fn add_all(call: &Call) -> Outcome {
    let (Some(oid), Some(_)) = (call.oid(0), call.datum(1)) else { return Ok(None) };
    let site = Site::of_array(call)?;
    let set = Set::open(call, oid, Purpose::Add)?;
    let elements = elements(call, 1, site.array.1);
    let items = distinct_items(site, set.parameters().shards, &elements);
    let mut are_new = memory::collect(elements.iter().map(|_| false));
    insert(&set, site, &items, "bloom_set_add_all", |item| are_new[item.place] = true)?;
    Ok(Some(array_of(site.array.0, site.array.1, chosen(elements, &are_new))))
}

/// Adds items, in the order of their shards, and calls `is_new` for those that were not there.
fn insert(set: &Set, site: &Site, items: &[Item], operation: &str, mut is_new: impl FnMut(&Item)) -> Result<()> {
    if items.is_empty() {
        return check_kind(set, site, operation);
    }
    let mut has_turn = false;
    for batch in batches(items) {
        connected(|| {
            let shards = lacking(set, site, batch, operation)?;
            if !has_turn && set.is_shared_by_two_of(shards.len() as u64) {
                set.take_turn();
                has_turn = true;
            }
            insert_into(set, site, batch, &shards, operation, &mut is_new)
        })?;
    }
    Ok(())
}

/// The shards that lack an item of a batch, as read without locks.
fn lacking(set: &Set, site: &Site, batch: &[Item], operation: &str) -> Result<Vec<u32>> {
    let groups = memory::collect(by_shard(batch));
    let mut lacking: Vec<u32> = Vec::new();
    set.read(&shards_of(batch), Sees::Now, |place, filter| {
        let view = View::parse_trusted(filter.bytes())?;
        site.element.key(&view.header, operation)?;
        if groups[place].iter().any(|item| !build::contains(&view, item.hash)) {
            memory::push(&mut lacking, groups[place][0].shard);
        }
        Ok(())
    })?;
    lacking.sort_unstable();
    Ok(lacking)
}

/// Locks the rows of these shards, which ascend, and adds to them the items that are new. Without shards the statement
/// still asks for the right to UPDATE, which must not depend on what is in the set.
fn insert_into(
    set: &Set,
    site: &Site,
    batch: &[Item],
    shards: &[u32],
    operation: &str,
    is_new: &mut impl FnMut(&Item),
) -> Result<()> {
    let groups = memory::collect(by_shard(batch).filter(|group| shards.binary_search(&group[0].shard).is_ok()));
    let mut filters: Vec<(u32, PgBuffer)> = Vec::new();
    let (mut rates, mut new) = (Rates::default(), Vec::new());
    let mut added = 0;
    set.lock(shards, |place, filter: &Value<'_>| {
        let view = View::parse_trusted(filter.bytes())?;
        let kind = site.element.key(&view.header, operation)?.kind;
        new.clear();
        for (count, item) in groups[place].iter().enumerate() {
            check_often(count);
            if !build::contains(&view, item.hash) {
                memory::push(&mut new, item.hash);
                is_new(item);
            }
        }
        if !new.is_empty() {
            added += new.len() as u64;
            let changed = build::add::<PgBuffer>(&view, kind, &new, settings::max_filter_bytes()).during(operation)?;
            rates.add(&View::parse_trusted(changed.bytes())?);
            memory::push(&mut filters, (groups[place][0].shard, changed));
        }
        Ok(())
    })?;
    if filters.is_empty() {
        return Ok(());
    }
    fill::check(set, rates, added)?;
    filters.sort_unstable_by_key(|&(shard, _)| shard);
    let (shards, filters): (Vec<u32>, Vec<PgBuffer>) = filters.into_iter().unzip();
    set.update(&shards, &filters)
}

/// Refuses elements of another kind than the set has, even if there are none.
fn check_kind(set: &Set, site: &Site, operation: &str) -> Result<()> {
    connected(|| {
        set.read(&[0], Sees::Now, |_, filter| {
            site.element.key(&View::parse_trusted(filter.bytes())?.header, operation)?;
            Ok(())
        })
    })
}

pg_functions! {
    bloom_set_add => add;
    bloom_set_add_all => add_all;
}
