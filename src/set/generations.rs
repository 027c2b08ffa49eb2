//! How a generation ends and the next is made, and how forgotten generations are dropped.
//!
//! Two transactions that don't see each other must not both find an element new, one in an old generation and the other
//! in the next. Waiting until nobody adds to the old one could take forever. Instead:
//!
//! ```text
//! adding to G    shares the lock of the newest generation G until the transaction ends;
//!                locks the rows of older generations that are not settled: other transactions share their locks;
//!                probes all generations, locks the rows of G, and starts again unless G is still the newest;
//!                adds
//! ending G       makes the rows of G + 1. Other transactions go on adding to G until this one commits
//! ```
//!
//! A transaction that adds to G locks the rows of G before it checks that there is no G + 1. So a transaction that adds
//! to G + 1 waits for these rows, and then finds what was added. One that locks rows of G later finds G + 1 and starts
//! again. Rows are locked in the order of their generations and shards. A transaction with one snapshot (REPEATABLE
//! READ and SERIALIZABLE) locks the rows of all generations: what was added after its snapshot is then an error, 40001.

use super::list::{Generation, List};
use super::rates::sample;
use super::rows::{Wanted, transaction};
use super::table::{Growth, Set, changed};
use crate::pg::call::error::{Error, Result, SqlState, warn};
use crate::pg::catalog::owner;
use crate::pg::sql::{Sees, has_one_snapshot};
use crate::pg::storage::lock::{Lock, Mode};
use crate::pg::value::time::Timestamp;
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::View;
use pg_bloom_core::filter::build;
use pg_bloom_core::filter::generations::End;
use pgrx::pg_sys::{self, Datum};
use std::ffi::CStr;

/// How much a batch may overfill a generation before it gets one of its own, as a share of the generation's capacity.
const LITTLE: f64 = 0.125;
/// The same for sets that forget and have a capacity, all of whose slices may be full at once.
const LITTLE_OF_SLICE: f64 = 0.03;

impl Set {
    /// Raises an error if the caller may not add to a set with generations.
    pub fn require_rights_to_add(&self) {
        if self.known.growth.is_some() {
            refuse_in_recovery(c"adding to a filter set");
            owner::require(self.oid, pg_sys::ACL_INSERT);
        }
    }

    /// Shares the lock of a generation until the transaction ends.
    pub fn take_part(&self, generation: &Generation) {
        if self.known.growth.is_some() {
            self.part(generation).take(Mode::Shared);
        }
    }

    /// The generations from number `from` on, except the newest, to which a transaction may have added elements that
    /// this one doesn't see. With one snapshot those are all.
    pub fn unsettled(&self, list: &List, from: i32) -> Vec<Generation> {
        let watch = &self.known.watch;
        let newest = list.newest().number;
        let older = || list.generations.iter().filter(|g| g.number >= from && g.number < newest);
        if has_one_snapshot() {
            return older().cloned().collect();
        }
        // Other transactions don't see the generations made by this one, and may still add to the one before.
        let made = watch.made.get().filter(|&(by, _)| by == transaction()).map(|(_, first)| first);
        let is_unsettled = |g: &&Generation| {
            if made.is_some_and(|first| g.number >= first - 1) {
                return true;
            }
            let part = self.part(g);
            let is_free = part.try_take(Mode::Exclusive);
            if is_free {
                part.give_back(Mode::Exclusive);
            }
            !is_free
        };
        let unsettled: Vec<Generation> =
            older().filter(|g| g.number >= watch.settled.get()).filter(is_unsettled).cloned().collect();
        if unsettled.is_empty() && made.is_none() {
            watch.settled.set(watch.settled.get().max(newest));
        }
        unsettled
    }

    /// The lock that transactions which add to a generation share. Numbers far apart have the same lock.
    fn part(&self, generation: &Generation) -> Lock {
        Lock::of(self.oid, 16 + (generation.number % 65_000) as u16)
    }

    /// The lock for making a generation.
    fn making(&self) -> Lock {
        Lock::of(self.oid, 1)
    }

    /// The lock for dropping generations.
    pub fn dropping(&self) -> Lock {
        Lock::of(self.oid, 2)
    }

    /// Ends the newest generation if its time is over or it is full, and makes the next, unless another session is
    /// doing so.
    ///
    /// # Errors
    /// As [`Set::end`].
    pub fn end_if_due(&self) -> Result<()> {
        let Some(growth) = &self.known.growth else { return Ok(()) };
        let list = self.list(Sees::Now)?;
        let is_full = self.known.watch.full.get() == Some(list.newest().number);
        let ends = self.is_due(list.newest()) || is_full && self.may_end_early(growth, &list);
        if ends && self.making().try_take(Mode::Exclusive) {
            self.end(growth, &list, |list| self.level_after(growth, list))?;
        }
        Ok(())
    }

    /// The level of the generation that follows the newest, whose time is over or which is full.
    fn level_after(&self, growth: &Growth, list: &List) -> Result<usize> {
        let newest = list.newest();
        let level = self.level(growth, newest);
        let end = if !self.is_due(newest) {
            End::Full
        } else if growth.plan.follows()
            && sample(self, list, newest)?.elements_of_all(newest) < growth.takes[level] / 9.0
        {
            End::Idle
        } else {
            End::Over
        };
        Ok(growth.plan.next(level, end))
    }

    /// The level of a generation.
    pub fn level(&self, growth: &Growth, generation: &Generation) -> usize {
        growth.shards.iter().position(|&shards| shards == generation.shards).unwrap_or(0)
    }

    /// Whether one more full generation keeps the promised rate.
    pub fn may_end_early(&self, growth: &Growth, list: &List) -> bool {
        if growth.slice.is_none() {
            return growth.shards.last() != Some(&list.newest().shards);
        }
        if !growth.plan.follows() {
            return list.generations.len() < growth.plan.most_slices();
        }
        let ended_early = |pair: &&[Generation]| self.due(pair[0].since).is_some_and(|due| pair[1].since < due);
        let full = list.generations.windows(2).filter(ended_early).count() as u32;
        full + 1 < growth.plan.most_full()
    }

    /// Whether the generations of a set that forgets and has a capacity take more elements together than it promises.
    pub fn may_hold_too_much(&self, growth: &Growth, list: &List) -> bool {
        let capacities = growth.plan.capacities();
        let most = u64::from(growth.plan.most_full()) * capacities[0];
        !growth.plan.follows() && list.generations.iter().map(|g| capacities[self.level(growth, g)]).sum::<u64>() > most
    }

    /// Makes a generation for so many new elements if the newest has no room for them and a new one would have. The
    /// caller must not have added anything yet. Returns whether the generations may have changed.
    ///
    /// # Errors
    /// As [`Set::end`].
    pub fn make_room(&self, list: &List, elements: f64) -> Result<bool> {
        let (Some(growth), newest) = (&self.known.growth, list.newest()) else { return Ok(false) };
        let made_for = growth.takes[self.level(growth, newest)];
        let little = made_for * if growth.plan.follows() { LITTLE } else { LITTLE_OF_SLICE };
        if elements <= little || !self.may_end_early(growth, list) {
            return Ok(false);
        }
        let left = made_for - sample(self, list, newest)?.elements_of_all(newest);
        let enough = growth.plan.level_for(elements as u64);
        if elements <= left + little || growth.takes[enough] <= left {
            return Ok(false);
        }
        // If another session is making one, that may have room for this batch too.
        self.making().take(Mode::Exclusive);
        let next = |list: &List| growth.plan.next(self.level(growth, list.newest()), End::Full);
        self.end(growth, list, |list| Ok(next(list).max(enough)))?;
        Ok(true)
    }

    /// Makes the next generation; `next` computes its level from the present ones. The caller has the lock for making
    /// one. It is kept until the transaction ends, or released if another session was first.
    ///
    /// # Errors
    /// Those of the statements; 40001 if the newest isn't that of the transaction's snapshot.
    fn end(&self, growth: &Growth, list: &List, next: impl FnOnce(&List) -> Result<usize>) -> Result<()> {
        let before = list.newest().number;
        let list = self.read_list(Sees::Now)?;
        self.check_snapshot(&list)?;
        if list.newest().number != before {
            // Another session was first.
            self.making().give_back(Mode::Exclusive);
            return Ok(());
        }
        self.make_next(growth, &list, next(&list)?)
    }

    /// Makes the generation after these, of this level.
    fn make_next(&self, growth: &Growth, list: &List, level: usize) -> Result<()> {
        let (newest, now) = (list.newest(), self.now(list));
        let oldest = self.oldest_to_count(list)?;
        let first = Wanted::one(newest, 0, 0..0);
        let mut next = None;
        self.read(
            Sees::Now,
            |_| vec![first.clone()],
            |_, row| {
                let kind = View::parse_trusted(row.filter.bytes())?.header.kind;
                let (shards, header) = growth.plan.shards(level, kind)?;
                let (_, ended) = growth.plan.shards(self.level(growth, newest), kind)?;
                next = Some((shards, build::empty::<PgBuffer>(&header), build::empty::<PgBuffer>(&ended)));
                Ok(())
            },
        )?;
        let Some((shards, filter, ended)) = next else { return Ok(()) };
        let (about, int) = (self.about()?, |value: u32| Datum::from(value as i32));
        let number = newest.number + 1;
        let end = [Datum::from(newest.number), int(newest.shards), Datum::from(now), ended.datum()];
        let ended = about.end.execute(&end, Sees::Now, |_| Ok(()))?;
        let values =
            [Datum::from(number), int(shards), int(shards - 1), Datum::from(now), filter.datum(), Datum::from(oldest)];
        let made = about.make.execute(&values, Sees::Now, |_| Ok(()))?;
        self.forget_list();
        // The plans of its statements are for a smaller table.
        self.known.is_current.set(false);
        let own = &self.known.watch.made;
        if own.get().is_none_or(|(by, _)| by != transaction()) {
            own.set(Some((transaction(), number)));
        }
        self.check_name()?;
        if ended != 1 || made != u64::from(shards) {
            return Err(self.not_made(number));
        }
        Ok(())
    }

    /// The oldest generation that still counts when the next is made. Those before it are settled, and all of their
    /// elements are forgotten.
    fn oldest_to_count(&self, list: &List) -> Result<i32> {
        let mut oldest = list.generations[0].number;
        let Some(cutoff) = self.cutoff(list).filter(|_| !has_one_snapshot()) else { return Ok(oldest) };
        let unsettled = self.unsettled(list, 0);
        for generation in &list.generations {
            if generation.since > cutoff || unsettled.contains(generation) || self.last_change(generation)? > cutoff {
                break;
            }
            if generation == list.newest() {
                // With its lock nobody can add to it: others wait until this transaction ends, and find the next.
                let is_settled = self.part(generation).try_take(Mode::Exclusive);
                if !is_settled || self.last_change(generation)? > cutoff {
                    break;
                }
            }
            oldest = generation.number + 1;
        }
        Ok(oldest)
    }

    /// When an element was last added to a generation, as far as the transaction sees.
    fn last_change(&self, generation: &Generation) -> Result<Timestamp> {
        let mut last = Timestamp::MAX;
        self.about()?.last_change.execute(&[Datum::from(generation.number)], Sees::Now, |row| {
            last = row.column(1).map_or(Timestamp::MAX, |datum| datum.value() as Timestamp);
            Ok(())
        })?;
        let due = self.due(generation.since).filter(|_| self.known.parameters.renews);
        Ok(due.map_or(last, |due| last.max(due)))
    }

    /// Whether the newest of these generations is still the newest. Called after the rows to be changed were locked.
    ///
    /// # Errors
    /// 40001 if it isn't, and the transaction has one snapshot.
    pub fn is_newest(&self, list: &List) -> Result<bool> {
        if self.known.growth.is_none() {
            return Ok(true);
        }
        if has_one_snapshot() {
            return self.check_snapshot(list).map(|()| true);
        }
        self.agrees(list)
    }

    /// Raises 40001 if the transaction has one snapshot and a newer generation was made since.
    fn check_snapshot(&self, list: &List) -> Result<()> {
        if !has_one_snapshot() {
            return Ok(());
        }
        let latest = self.read_list(Sees::Latest)?;
        self.forget_list();
        if latest.newest().number == list.newest().number {
            return Ok(());
        }
        Err(changed(format!(
            "Generation {} of filter set {} was made after the transaction's snapshot was taken.",
            latest.newest().number,
            self.quoted_name()
        )))
    }

    /// Deletes the generations that no longer count, and returns how many these were. Only other sessions that drop
    /// generations wait for this, and it waits for nobody: rows that are locked stay until the next time.
    ///
    /// # Errors
    /// Those of DELETE.
    pub fn drop_leftover(&self, list: &List) -> Result<usize> {
        if list.leftover > 0 {
            let oldest = list.generations[0].number;
            let about = self.about()?;
            // Locking rows needs the right to UPDATE.
            let drop = if owner::may(self.oid, pg_sys::ACL_UPDATE) { &about.drop_unlocked } else { &about.drop };
            let rows = drop.execute(&[Datum::from(oldest)], Sees::Now, |_| Ok(()))?;
            self.forget_list();
            self.check_name()?;
            return Ok(if rows == 0 { 0 } else { list.leftover });
        }
        Ok(0)
    }

    /// The same while adding: at most once for each generation, and only if the caller has the right to DELETE and no
    /// other session is dropping generations.
    ///
    /// # Errors
    /// As [`Set::drop_leftover`].
    pub fn drop_leftover_once(&self, list: &List) -> Result<()> {
        let (watch, newest) = (&self.known.watch, list.newest().number);
        if list.leftover == 0 || watch.dropped.get() == Some(newest) || has_one_snapshot() {
            return Ok(());
        }
        watch.dropped.set(Some(newest));
        if !owner::may(self.oid, pg_sys::ACL_DELETE) {
            let message = format!("elements of filter set {} that are over cannot be dropped", self.quoted_name());
            warn(
                Error::new(SqlState::ERRCODE_WARNING, message)
                    .detail("They are not found any more, but take space: dropping them needs the right to DELETE.")
                    .hint("Let somebody with that right call bloom_set_expire now and then, or grant it to roles that add."),
            );
            return Ok(());
        }
        if self.dropping().try_take(Mode::Exclusive) {
            self.drop_leftover(list)?;
        }
        Ok(())
    }

    #[cold]
    fn not_made(&self, generation: i32) -> Error {
        Error::new(
            SqlState::ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION,
            format!("generation {generation} of filter set {} was not stored as it was written", self.quoted_name()),
        )
        .detail("A trigger, a rule or a row-level security policy of the table skipped a row.")
        .hint("Let it leave the rows of the filter set as they are.")
    }
}

/// Raises 25006 on a standby. PostgreSQL's own error would be about a lock.
pub fn refuse_in_recovery(what: &CStr) {
    // SAFETY: raises an error or returns.
    unsafe { pg_sys::PreventCommandDuringRecovery(what.as_ptr()) };
}
