//! `bloom_set_add`, `bloom_set_add_all`: adding, and which elements were new.
//!
//! ```text
//! part     share the lock of the newest generation; only in sets that grow or forget
//! read     the rows of the batch, of all generations, without locks
//! turn     large batches wait for each other here, before they lock any row
//! lock     the rows of the newest generation that lack an element, in the order of their shards
//! compute  from the locked rows: what is new, and their filters with it
//! change   these rows by one UPDATE, which must return what was written
//! ```
//!
//! An element is new if the locked row does not have it. The row stays locked until the transaction ends, so only one
//! of the sessions that add an element at the same time gets it: the others wait for its commit, and look again.
//!
//! Nothing is retried. An UPDATE of unlocked rows that retried those changed in the meantime would take its locks in a
//! second order, and three sessions with one call each could deadlock.

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
    set.require_rights_to_add();
    let places = items.iter().map(|item| item.place + 1).max().unwrap_or(0);
    let mut adding = Adding { was_there: memory::collect((0..places).map(|_| false)), ..Adding::default() };
    let mut rest = items;
    while !rest.is_empty() {
        rest = connected(|| {
            set.end_if_due()?;
            let list = set.list(Sees::Now)?;
            adding.take_part(set, site, &list, rest, operation)?;
            let (batch, later) = rest.split_at(first_batch(rest, &list));
            let probed = adding.probe(set, site, batch, operation)?;
            if probed.list.newest() != list.newest() {
                return Ok(rest);
            }
            let new = probed.count_new() as f64 * (rest.len() as f64 / batch.len() as f64);
            if !adding.has_locks && !std::mem::replace(&mut adding.has_made_room, true) && set.make_room(&list, new)? {
                return Ok(rest);
            }
            let rows = probed.lacking(set, batch);
            adding.take_turn(set, rows.len(), &list);
            let is_added = insert_into(set, site, batch, &probed, &rows, operation, &mut is_new)?;
            adding.has_locks = true;
            Ok(if is_added { later } else { rest })
        })?;
    }
    connected(|| set.drop_leftover_once(&*set.list(Sees::Now)?))
}

/// What a call has done so far for the elements that are still to be added.
#[derive(Default)]
struct Adding {
    /// The generation whose lock it shares.
    part: Option<i32>,
    /// Whether it has locked rows. Then it must not wait for its turn: the session whose turn it is may wait for them.
    has_locks: bool,
    has_turn: bool,
    has_made_room: bool,
    /// Rows whose last change is at or before this time are forgotten, for all of the call.
    cutoff: Option<Timestamp>,
    /// Whether the element at each place of the array was there when the call first looked. That stays so if its
    /// generation is forgotten while the call waits: its rows weren't locked, and may not be locked after later ones.
    was_there: Vec<bool>,
}

impl Adding {
    /// Looks for the items of a batch in all generations.
    fn probe(&mut self, set: &Set, site: &Site, batch: &[Item], operation: &str) -> Result<Probed> {
        let mut probed = probe(set, site, batch, operation, &mut self.cutoff)?;
        for (item, found) in batch.iter().zip(&mut probed.found) {
            let was_there = &mut self.was_there[item.place];
            *was_there |= found.is_some();
            if *was_there {
                *found = found.or(Some(FORGOTTEN));
            }
        }
        Ok(probed)
    }

    /// Shares the lock of the newest generation, and locks the rows of older ones to which other sessions may be adding
    /// the same elements, in the order of their generations and shards. Rows of generations before the one whose lock
    /// this call already shares are locked or settled.
    fn take_part(&mut self, set: &Set, site: &Site, list: &List, items: &[Item], operation: &str) -> Result<()> {
        let newest = list.newest();
        if self.part == Some(newest.number) {
            return Ok(());
        }
        set.take_part(newest);
        for generation in set.unsettled(list, self.part.unwrap_or(0)) {
            // Not in turn: one old transaction would make all sessions wait for each other.
            let mut rest = items;
            while !rest.is_empty() {
                let (batch, later) = rest.split_at(first_batch(rest, list));
                // Rows of elements that are there needn't be locked, nor may they be if this call has locked later
                // ones.
                let probed = self.probe(set, site, batch, operation)?;
                set.lock_what_is_there(&probed.without(set, &generation, batch))?;
                rest = later;
            }
            self.has_locks = true;
        }
        self.part = Some(newest.number);
        Ok(())
    }

    /// Waits for the turn of this call, if it changes so many rows that another call of its size would share some.
    fn take_turn(&mut self, set: &Set, rows: usize, list: &List) {
        let wants_turn = Set::are_shared_by_two_of(rows as u64, list.newest().shards);
        if wants_turn && !self.has_locks && !std::mem::replace(&mut self.has_turn, true) {
            set.take_turn();
        }
    }
}

/// Stands for a generation that is forgotten.
const FORGOTTEN: i32 = -1;

/// The elements of a batch that were found, without locks.
struct Probed {
    /// The generations of the set.
    list: Rc<List>,
    /// The newest generation that has each item, or `None`.
    found: Vec<Option<i32>>,
    /// As in [`Adding`].
    cutoff: Option<Timestamp>,
}

impl Probed {
    /// How many items no generation has.
    fn count_new(&self) -> usize {
        self.found.iter().filter(|found| found.is_none()).count()
    }

    /// The rows of the newest generation that lack an item of the batch, or must be changed to renew one.
    fn lacking(&self, set: &Set, batch: &[Item]) -> Vec<Wanted> {
        let newest = self.list.newest();
        let (renews, touches) = (set.parameters().renews, self.touches(set));
        let lacks = |found: &Option<i32>| found.is_none_or(|found| touches || renews && found < newest.number);
        let lacking = Wanted::of(newest, batch).filter(|row| self.found[row.items.clone()].iter().any(lacks));
        memory::collect(lacking)
    }

    /// The rows of a generation to which items belong that no generation has, or that only older ones have, if they are
    /// renewed.
    fn without(&self, set: &Set, generation: &Generation, batch: &[Item]) -> Vec<Wanted> {
        let renews = set.parameters().renews;
        let lacks = |found: &Option<i32>| found.is_none_or(|found| renews && found < generation.number);
        memory::collect(Wanted::of(generation, batch).filter(|row| self.found[row.items.clone()].iter().any(lacks)))
    }

    /// Whether adding an element again must change the time of its row: so in a set that renews, once the time of the
    /// newest generation is over.
    fn touches(&self, set: &Set) -> bool {
        set.parameters().renews && set.is_due(self.list.newest())
    }
}

/// Looks for the items of a batch in all generations.
fn probe(set: &Set, site: &Site, batch: &[Item], operation: &str, cutoff: &mut Option<Timestamp>) -> Result<Probed> {
    let mut found: Vec<Option<i32>> = memory::collect(batch.iter().map(|_| None));
    let wanted = |list: &List| memory::collect(list.generations.iter().flat_map(|g| Wanted::of(g, batch)));
    let remembered = set.list(Sees::Now)?;
    let list = set.read(Sees::Now, wanted, |wanted, row| {
        let view = View::parse_trusted(row.filter.bytes())?;
        site.element.key(&view.header, operation)?;
        if set.is_over(wanted, row, &remembered, cutoff) {
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
    Ok(Probed { list, found, cutoff: *cutoff })
}

/// Locks these rows of the newest generation, and adds the items that no generation has. Returns false without a change
/// if there is a newer generation. Even without rows it executes the statement that locks them: it requires the right
/// to UPDATE, which must not depend on what is in the set.
fn insert_into(
    set: &Set,
    site: &Site,
    batch: &[Item],
    probed: &Probed,
    rows: &[Wanted],
    operation: &str,
    is_new: &mut impl FnMut(&Item),
) -> Result<bool> {
    let (now, renews, touches) = (set.now(&probed.list), set.parameters().renews, probed.touches(set));
    let mut cutoff = probed.cutoff;
    let mut changes: Vec<(Wanted, PgBuffer)> = Vec::new();
    let (mut rates, mut new, mut new_items) = (Rates::default(), Vec::new(), Vec::new());
    let mut added = 0;
    set.lock(rows, |wanted, row| {
        let view = View::parse_trusted(row.filter.bytes())?;
        let kind = site.element.key(&view.header, operation)?.kind;
        // A forgotten row starts empty.
        let is_over = set.is_over(wanted, row, &probed.list, &mut cutoff);
        let emptied = is_over.then(|| build::empty::<PgBuffer>(&view.header));
        let view = emptied.as_ref().map_or(Ok(view), |empty| View::parse_trusted(empty.bytes()))?;
        new.clear();
        for i in wanted.items.clone() {
            check_often(i);
            let is_old = probed.found[i].is_some_and(|found| found < wanted.generation);
            if (!is_old || renews) && !build::contains(&view, batch[i].hash) {
                memory::push(&mut new, batch[i].hash);
                if !is_old {
                    memory::push(&mut new_items, i);
                }
            }
        }
        if !new.is_empty() || touches {
            added += new.len() as u64;
            new.sort_unstable();
            let changed = build::add::<PgBuffer>(&view, kind, &new, settings::max_filter_bytes()).during(operation)?;
            rates.add(&View::parse_trusted(changed.bytes())?);
            memory::push(&mut changes, (wanted.clone(), changed));
        }
        Ok(())
    })?;
    if changes.is_empty() {
        return Ok(true);
    }
    if !set.is_newest(&probed.list)? {
        set.forget_list();
        return Ok(false);
    }
    new_items.iter().for_each(|&i| is_new(&batch[i]));
    fill::check(set, &probed.list, rates, added)?;
    changes.sort_unstable_by_key(|(wanted, _)| wanted.shard);
    set.update(&changes, now)?;
    Ok(true)
}

/// Checks the kind of the elements although there are none.
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
