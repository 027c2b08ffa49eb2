//! `bloom_set_add`, `bloom_set_add_all`: adding, and which elements were new.
//!
//! ```text
//! part     the newest generation stays the newest until the transaction ends; only of sets that grow or forget
//! read     the rows of the batch, of all generations, without locks
//! turn     large batches wait for each other here, before they hold the lock of any row
//! lock     the rows of the newest generation that lack an element, in the order of their shards
//! compute  from the locked rows: what is new, and their filters with it
//! change   these rows by one UPDATE, which must return what was written
//! ```
//!
//! An element is new if the locked row does not have it. The row is then this transaction's until it ends, so of
//! sessions that add an element at once one gets it: the others wait for its commit, and look again.
//!
//! Nothing is retried. An UPDATE of unlocked rows that tried again those that had changed in the meantime would take
//! its locks in a second order, and three sessions of one call each could deadlock.

use super::fill;
use super::items::{Item, check_often, chosen, distinct_items, item};
use super::list::{Generation, List};
use super::rates::Rates;
use super::rows::{Wanted, first_batch};
use super::table::{Purpose, Set, Site};
use crate::error::During;
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::sql::{Sees, connected};
use crate::pg::value::array::{array_of, elements};
use crate::pg::value::time::Timestamp;
use crate::pg::value::varlena::PgBuffer;
use crate::settings;
use pg_bloom_core::filter::build;
use pg_bloom_core::{Buffer, View, memory};
use pgrx::pg_sys::Datum;
use std::rc::Rc;

/// `bloom_set_add(set, element)`.
fn add(call: &Call) -> Outcome {
    let (Some(oid), Some(element)) = (call.oid(0), call.element(1)) else { return Ok(None) };
    let site = Site::of_element(call)?;
    let set = Set::open(call, oid, Purpose::Add)?;
    let mut is_new = false;
    if let Some(item) = item(site, element) {
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
    let items = distinct_items(site, &elements);
    let mut are_new = memory::collect(elements.iter().map(|_| false));
    insert(&set, site, &items, "bloom_set_add_all", |item| are_new[item.place] = true)?;
    Ok(Some(array_of(site.array.0, site.array.1, chosen(elements, &are_new))))
}

/// Adds items, in the order of their shards, and calls `is_new` for those that were not there.
fn insert(set: &Set, site: &Site, items: &[Item], operation: &str, mut is_new: impl FnMut(&Item)) -> Result<()> {
    if items.is_empty() {
        return check_kind(set, site, operation);
    }
    connected(|| set.take_part())?;
    let (mut rest, mut has_made_room, mut has_added) = (items, false, false);
    while !rest.is_empty() {
        rest = connected(|| {
            if has_added {
                set.end_if_due()?;
            }
            let list = set.list(Sees::Now)?;
            let (batch, later) = rest.split_at(first_batch(rest, &list));
            let probed = probe(set, site, batch, operation)?;
            let new = probed.count_new() as f64 * (rest.len() as f64 / batch.len() as f64);
            if !has_added && !has_made_room && set.make_room(&probed.list, new)? {
                has_made_room = true;
                return Ok(rest);
            }
            let taking = set.takes_new(&probed.list)?.clone();
            let rows = probed.lacking(&taking, batch, set.parameters().renews);
            // Who has the lock of a row already could be waited for by who has the turn.
            if !has_added && Set::are_shared_by_two_of(rows.len() as u64, taking.shards) {
                set.take_turn();
            }
            insert_into(set, site, batch, &probed, &rows, operation, &mut is_new)?;
            has_added = true;
            Ok(later)
        })?;
    }
    connected(|| set.drop_leftover_once(&*set.list(Sees::Now)?))
}

/// What was found of a batch, without locks.
struct Probed {
    /// The generations of the set.
    list: Rc<List>,
    /// The newest generation that has each item.
    found: Vec<Option<i32>>,
}

impl Probed {
    /// How many items no generation has.
    fn count_new(&self) -> usize {
        self.found.iter().filter(|found| found.is_none()).count()
    }

    /// The rows of the generation that takes what is new, which lack an item of the batch.
    fn lacking(&self, taking: &Generation, batch: &[Item], renews: bool) -> Vec<Wanted> {
        let lacks = |found: &Option<i32>| found.is_none_or(|generation| renews && generation < taking.number);
        let lacking = Wanted::of(taking, batch).filter(|row| self.found[row.items.clone()].iter().any(lacks));
        memory::collect(lacking)
    }
}

/// Looks for the items of a batch in all generations.
fn probe(set: &Set, site: &Site, batch: &[Item], operation: &str) -> Result<Probed> {
    let mut found: Vec<Option<i32>> = memory::collect(batch.iter().map(|_| None));
    let wanted = |list: &List| memory::collect(list.generations.iter().flat_map(|g| Wanted::of(g, batch)));
    let (remembered, mut cutoff) = (set.list(Sees::Now)?, None);
    let list = set.read(Sees::Now, wanted, |wanted, row| {
        let view = View::parse_trusted(row.filter.bytes())?;
        site.element.key(&view.header, operation)?;
        if set.is_over(row, &remembered, &mut cutoff) {
            return Ok(());
        }
        for i in wanted.items.clone() {
            check_often(i);
            if build::contains(&view, batch[i].hash) {
                found[i] = found[i].max(Some(wanted.generation));
            }
        }
        Ok(())
    })?;
    Ok(Probed { list, found })
}

/// Locks these rows of the generation that takes what is new, and adds to them the items that no generation has.
/// Without rows the statement still asks for the right to UPDATE, which must not depend on what is in the set.
fn insert_into(
    set: &Set,
    site: &Site,
    batch: &[Item],
    probed: &Probed,
    rows: &[Wanted],
    operation: &str,
    is_new: &mut impl FnMut(&Item),
) -> Result<()> {
    let generation = rows.first().map_or(probed.list.newest().number, |row| row.generation);
    let (now, renews) = (set.now(&probed.list), set.parameters().renews);
    let mut cutoff = Some(set.cutoff(&probed.list).unwrap_or(Timestamp::MIN));
    let mut changes: Vec<(Wanted, PgBuffer)> = Vec::new();
    let (mut rates, mut new) = (Rates::default(), Vec::new());
    let mut added = 0;
    set.lock(rows, |wanted, row| {
        let view = View::parse_trusted(row.filter.bytes())?;
        let kind = site.element.key(&view.header, operation)?.kind;
        // What is forgotten makes room.
        let emptied = set.is_over(row, &probed.list, &mut cutoff).then(|| build::empty::<PgBuffer>(&view.header));
        let view = emptied.as_ref().map_or(Ok(view), |empty| View::parse_trusted(empty.bytes()))?;
        new.clear();
        for i in wanted.items.clone() {
            check_often(i);
            let is_old = probed.found[i].is_some_and(|found| found < generation);
            if (!is_old || renews) && !build::contains(&view, batch[i].hash) {
                memory::push(&mut new, batch[i].hash);
                if !is_old {
                    is_new(&batch[i]);
                }
            }
        }
        if !new.is_empty() {
            added += new.len() as u64;
            new.sort_unstable();
            let changed = build::add::<PgBuffer>(&view, kind, &new, settings::max_filter_bytes()).during(operation)?;
            rates.add(&View::parse_trusted(changed.bytes())?);
            memory::push(&mut changes, (wanted.clone(), changed));
        }
        Ok(())
    })?;
    if changes.is_empty() {
        return Ok(());
    }
    fill::check(set, &probed.list, rates, added)?;
    changes.sort_unstable_by_key(|(wanted, _)| wanted.shard);
    set.update(&changes, now)
}

/// Refuses elements of another kind than the set has, even if there are none.
fn check_kind(set: &Set, site: &Site, operation: &str) -> Result<()> {
    connected(|| {
        let first = |list: &List| Wanted::sample(list.newest(), 1);
        set.read(Sees::Now, first, |_, row| {
            site.element.key(&View::parse_trusted(row.filter.bytes())?.header, operation)?;
            Ok(())
        })
        .map(drop)
    })
}

pg_functions! {
    bloom_set_add => add;
    bloom_set_add_all => add_all;
}
