//! How a generation ends and the next is made, and how generations that are over go.
//!
//! An element must not be new in an old generation and in the next at the same time, to transactions that don't see
//! each other. Nobody waits for that until nobody adds to the old one, which may never be. Instead:
//!
//! ```text
//! who adds     shares the lock of the newest generation G until its transaction ends
//!              locks the rows of older generations that are not settled: somebody else has their lock
//!              probes all, locks the rows of G, looks whether G is the newest still: else begins again
//!              adds
//! who ends G   makes the rows of G + 1; others don't see them before it commits, and go on adding to G
//! ```
//!
//! So whoever adds to G has locked its rows before it looked, and found no G + 1: who adds to G + 1 afterwards waits
//! for these rows, and finds what was added. Who comes to the rows of G later finds G + 1. Rows are locked in the order
//! of their generations and shards. A transaction with one snapshot locks the rows of all generations, since what was
//! added there after it was taken is an error, 40001.

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

/// What a generation may take more than it is made for before a batch gets one of its own, as a share of that: less
/// where all may be full at once.
const LITTLE: f64 = 0.125;
const LITTLE_OF_SLICE: f64 = 0.03;

impl Set {
    /// Refuses who may not add to a set with generations.
    pub fn require_rights_to_add(&self) {
        if self.known.growth.is_some() {
            refuse_in_recovery(c"adding to a filter set");
            owner::require(self.oid, pg_sys::ACL_INSERT);
        }
    }

    /// Takes part in adding to a generation until the transaction ends.
    pub fn take_part(&self, generation: &Generation) {
        if self.known.growth.is_some() {
            self.part(generation).take(Mode::Shared);
        }
    }

    /// Those of the generations from this one on, and before the newest, to which a transaction may have added that
    /// isn't seen; to one with one snapshot that may be any.
    pub fn unsettled(&self, list: &List, from: i32) -> Vec<Generation> {
        let watch = &self.known.watch;
        let newest = list.newest().number;
        let older = || list.generations.iter().filter(|g| g.number >= from && g.number < newest);
        if has_one_snapshot() {
            return older().cloned().collect();
        }
        // Others don't see what this transaction made, and may still come to the one before.
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

    /// The lock of a generation. Some that are far from each other share one.
    fn part(&self, generation: &Generation) -> Lock {
        Lock::of(self.oid, 16 + (generation.number % 65_000) as u16)
    }

    /// The lock of who makes a generation.
    fn making(&self) -> Lock {
        Lock::of(self.oid, 1)
    }

    /// The lock of those who drop generations.
    pub fn dropping(&self) -> Lock {
        Lock::of(self.oid, 2)
    }

    /// Ends a generation whose time is over or that is full, and makes the next, unless somebody else does.
    ///
    /// # Errors
    /// As [`Set::end`].
    pub fn end_if_due(&self) -> Result<()> {
        let Some(growth) = &self.known.growth else { return Ok(()) };
        let list = self.list(Sees::Now)?;
        if let Some(end) = self.end_of(growth, &list)?
            && self.making().try_take(Mode::Exclusive)
        {
            self.end(growth, &list, |level| growth.plan.next(level, end))?;
        }
        Ok(())
    }

    /// Whether the newest generation is to end, and why.
    fn end_of(&self, growth: &Growth, list: &List) -> Result<Option<End>> {
        let newest = list.newest();
        if self.is_due(newest) {
            let is_idle = growth.plan.follows()
                && sample(self, list, newest)?.elements_of_all(newest) < growth.takes[self.level(growth, newest)] / 9.0;
            return Ok(Some(if is_idle { End::Idle } else { End::Over }));
        }
        let is_full = self.known.watch.full.get() == Some(newest.number);
        Ok((is_full && self.may_end_early(growth, list)).then_some(End::Full))
    }

    /// The level of a generation.
    pub fn level(&self, growth: &Growth, generation: &Generation) -> usize {
        growth.shards.iter().position(|&shards| shards == generation.shards).unwrap_or(0)
    }

    /// Whether the rates of the generations that are full leave room for one more.
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

    /// Whether a set that forgets and has a capacity has room for more than comes within its time.
    pub fn may_hold_too_much(&self, growth: &Growth, list: &List) -> bool {
        let capacities = growth.plan.capacities();
        let most = u64::from(growth.plan.most_full()) * capacities[0];
        !growth.plan.follows() && list.generations.iter().map(|g| capacities[self.level(growth, g)]).sum::<u64>() > most
    }

    /// Makes a generation that takes so many new elements, if the newest of these doesn't and a new one would; the
    /// caller must not have added anything. Returns whether the generations may be others now.
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
        // Whoever else makes one makes it for this batch too, if it is large.
        self.making().take(Mode::Exclusive);
        self.end(growth, list, |level| growth.plan.next(level, End::Full).max(enough))?;
        Ok(true)
    }

    /// Makes the generation after the newest of these, whose level `next` says from that of the newest. The caller has
    /// the lock of who makes one, and keeps it until the transaction ends if it does.
    ///
    /// # Errors
    /// Those of the statements; 40001 if the newest isn't that of the transaction's snapshot.
    fn end(&self, growth: &Growth, list: &List, next: impl FnOnce(usize) -> usize) -> Result<()> {
        let before = list.newest().number;
        let list = self.read_list(Sees::Now)?;
        self.check_snapshot(&list)?;
        if list.newest().number != before {
            // Somebody else was first.
            self.making().give_back(Mode::Exclusive);
            return Ok(());
        }
        self.make_next(growth, &list, next(self.level(growth, list.newest())))
    }

    /// Makes the generation after these.
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

    /// The first of these generations, or the one after them, that still counts when the next is made: those before it
    /// are settled, and all of their elements forgotten.
    fn oldest_to_count(&self, list: &List) -> Result<i32> {
        let mut oldest = list.generations[0].number;
        let Some(cutoff) = self.cutoff(list).filter(|_| !has_one_snapshot()) else { return Ok(oldest) };
        let unsettled = self.unsettled(list, 0);
        for generation in &list.generations {
            if generation.since > cutoff || unsettled.contains(generation) || self.last_change(generation)? > cutoff {
                break;
            }
            if generation == list.newest() {
                // Nobody can add to it now. Others wait until the transaction ends, and find the next.
                let is_settled = self.part(generation).try_take(Mode::Exclusive);
                if !is_settled || self.last_change(generation)? > cutoff {
                    break;
                }
            }
            oldest = generation.number + 1;
        }
        Ok(oldest)
    }

    /// When something was added to a generation last, as far as that is seen.
    fn last_change(&self, generation: &Generation) -> Result<Timestamp> {
        let mut last = Timestamp::MAX;
        self.about()?.last_change.execute(&[Datum::from(generation.number)], Sees::Now, |row| {
            last = row.column(1).map_or(Timestamp::MAX, |datum| datum.value() as Timestamp);
            Ok(())
        })?;
        let due = self.due(generation.since).filter(|_| self.known.parameters.renews);
        Ok(due.map_or(last, |due| last.max(due)))
    }

    /// Whether the newest of these generations is the newest still, after the rows to be changed were locked.
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

    /// Whether the newest of these generations is the newest of all, for a transaction with one snapshot.
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

    /// Deletes the generations that don't count any more, and returns how many these were. Nobody waits for that but
    /// who does the same, nor does it wait: rows that somebody has locked stay until the next time.
    ///
    /// # Errors
    /// Those of DELETE.
    pub fn drop_leftover(&self, list: &List) -> Result<usize> {
        if list.leftover > 0 {
            let oldest = list.generations[0].number;
            let about = self.about()?;
            // To lock a row takes the right to change it.
            let drop = if owner::may(self.oid, pg_sys::ACL_UPDATE) { &about.drop_unlocked } else { &about.drop };
            let rows = drop.execute(&[Datum::from(oldest)], Sees::Now, |_| Ok(()))?;
            self.forget_list();
            self.check_name()?;
            return Ok(if rows == 0 { 0 } else { list.leftover });
        }
        Ok(0)
    }

    /// The same while adding: at most once for each generation, and only by who may, and not while others do it.
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
                    .hint("Let somebody with that right call bloom_set_expire now and then, or grant it to who adds."),
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

/// Raises 25006 on a standby, where PostgreSQL's own error would be about a lock.
pub fn refuse_in_recovery(what: &CStr) {
    // SAFETY: raises an error or returns.
    unsafe { pg_sys::PreventCommandDuringRecovery(what.as_ptr()) };
}
