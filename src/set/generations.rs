//! How a generation ends and the next is made, and how generations that are over go.
//!
//! An element must not be new in an old generation and in the next at the same time, to transactions that don't see
//! each other. So nothing is added to a generation after another has been made, and the other is made when nobody adds:
//!
//! ```text
//! who adds         gate: passes ──▶ generations: shared, until its transaction ends ──▶ reads which there are, probes
//!                                                                                      all, adds to the newest
//! who ends one     gate: alone, briefly ──▶ generations: alone, until its transaction ends ──▶ makes the next
//!                  (nobody starts to add)  (who was adding has ended; who comes waits, and sees the next)
//! ```
//!
//! Whoever ends one doesn't queue behind a transaction that stays open: it waits for [`PATIENCE`], adds to the old
//! generation, and tries again later. A batch that is large for the old generation waits as long as it takes, as it
//! would for the rows that others have changed.
//!
//! A transaction whose snapshot is older than the newest generation can't see that one, so it gets 40001. If it is
//! itself the one that makes the next (under REPEATABLE READ), that is for the others: it adds to the one that its
//! snapshot shows, whose rows it locks, so that those who were there before it are seen as usual.

use super::list::{Generation, List};
use super::rates::sample;
use super::rows::Wanted;
use super::table::{Growth, Set};
use crate::pg::call::error::{Error, Result, SqlState, warn};
use crate::pg::call::interrupt;
use crate::pg::catalog::owner;
use crate::pg::sql::Sees;
use crate::pg::storage::lock::{Lock, Mode, Taken};
use crate::pg::value::time::{self, Timestamp};
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::View;
use pg_bloom_core::filter::build;
use pg_bloom_core::filter::generations::End;
use pgrx::pg_sys::{self, Datum};
use std::time::Duration;

/// Microseconds for which who ends a generation waits for others, and new ones for it: large batches that wait for each
/// other's turn take as long.
const PATIENCE: Timestamp = 200_000;
/// Microseconds until it tries again: at first, and at most, after every try has doubled it.
const PAUSES: (Timestamp, Timestamp) = (1_000_000, 16_000_000);

/// What a generation may take more than it is made for, as a share of that.
const LITTLE: f64 = 0.125;

/// How long to wait for those who add to a generation that is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Some milliseconds.
    Briefly,
    /// Until they have all ended.
    ForAll,
}

impl Set {
    /// Takes part in adding until the transaction ends, so that the newest generation stays the newest, after ending
    /// one whose time is over or that is full.
    ///
    /// # Errors
    /// Those of the statements; 42501 without the right to make generations.
    pub fn take_part(&self) -> Result<()> {
        if self.known.growth.is_none() {
            return Ok(());
        }
        refuse_in_recovery();
        owner::require(self.oid, pg_sys::ACL_INSERT);
        if !self.end_if_due()? {
            self.join();
        }
        Ok(())
    }

    /// Shares the lock of the generations with all who add.
    fn join(&self) {
        let (gate, generations) = (self.gate(), self.generations());
        if gate.try_take(Mode::Shared) == Taken::No {
            // Whoever has the gate waits for those who take part already.
            for mode in [Mode::Exclusive, Mode::Shared] {
                match generations.try_take(mode) {
                    Taken::Again => return,
                    Taken::Yes => generations.give_back(mode),
                    Taken::No => {}
                }
            }
            gate.take(Mode::Shared);
        }
        gate.give_back(Mode::Shared);
        generations.take(Mode::Shared);
    }

    /// Ends a generation whose time is over or that is full, if others let it, and makes the next. Returns whether
    /// nobody else can add now, until the transaction ends.
    ///
    /// # Errors
    /// As [`Set::end`].
    pub fn end_if_due(&self) -> Result<bool> {
        let Some(growth) = &self.known.growth else { return Ok(false) };
        let list = self.list(Sees::Now)?;
        match self.end_of(growth, &list)? {
            Some(end) => self.end(growth, &list, Wait::Briefly, |level| growth.plan.next(level, end)),
            None => Ok(false),
        }
    }

    fn generations(&self) -> Lock {
        Lock::of(self.oid, 1)
    }

    fn gate(&self) -> Lock {
        Lock::of(self.oid, 2)
    }

    /// Whether the newest generation is to end, and why.
    fn end_of(&self, growth: &Growth, list: &List) -> Result<Option<End>> {
        let newest = list.newest();
        if growth.slice.is_some_and(|slice| slice.after(newest.since) <= time::now()) {
            let is_idle = growth.shards.len() > 1
                && sample(self, newest)?.elements_of_all(newest) < growth.takes[self.level(growth, newest)] / 9.0;
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
        let Some(slice) = growth.slice else {
            return growth.shards.last() != Some(&list.newest().shards);
        };
        let ended_early = |pair: &&[Generation]| pair[1].since < slice.after(pair[0].since);
        let full = list.generations.windows(2).filter(ended_early).count() as u32;
        full + 1 < growth.plan.most_full()
    }

    /// Makes a generation that takes so many new elements, if the newest of these doesn't and a new one would, after
    /// all others have ended; the caller must not have added anything. Returns whether the generations may be others
    /// now.
    ///
    /// # Errors
    /// As [`Set::end`].
    pub fn make_room(&self, list: &List, elements: f64) -> Result<bool> {
        let (Some(growth), newest) = (&self.known.growth, list.newest()) else { return Ok(false) };
        let made_for = growth.takes[self.level(growth, newest)];
        if elements <= made_for * LITTLE || !self.may_end_early(growth, list) {
            return Ok(false);
        }
        let left = made_for - sample(self, newest)?.elements_of_all(newest);
        let enough = growth.plan.level_for(elements as u64);
        if elements <= left + made_for * LITTLE || growth.takes[enough] <= left {
            return Ok(false);
        }
        let is_alone = self.generations().try_take(Mode::Exclusive) != Taken::No;
        if !is_alone {
            // Two that wait for all others must not both be among these.
            self.generations().give_back(Mode::Shared);
        }
        if !self.end(growth, list, Wait::ForAll, |level| growth.plan.next(level, End::Full).max(enough))? && !is_alone {
            self.join();
        }
        Ok(true)
    }

    /// Ends the newest of these generations, if others let it, and makes the next one, whose level `next` says from
    /// that of the newest.
    ///
    /// # Errors
    /// Those of the statements; 40001 if the newest isn't that of the transaction's snapshot.
    pub fn end(&self, growth: &Growth, list: &List, wait: Wait, next: impl FnOnce(usize) -> usize) -> Result<bool> {
        if wait == Wait::Briefly && time::now() < self.known.watch.try_again.get() {
            return Ok(false);
        }
        let watch = &self.known.watch;
        if !self.wait_for_others(wait) {
            let (first, most) = PAUSES;
            watch.pause.set((2 * watch.pause.get()).clamp(first, most));
            watch.try_again.set(time::now() + watch.pause.get());
            return Ok(false);
        }
        watch.pause.set(0);
        let before = list.newest().number;
        let list = self.read_list(Sees::Now)?;
        self.check_snapshot(&list)?;
        if list.newest().number != before {
            // Somebody else was first.
            self.generations().give_back(Mode::Exclusive);
            return Ok(false);
        }
        self.make_next(growth, &list, next(self.level(growth, list.newest())))?;
        Ok(true)
    }

    /// Takes the lock of the generations alone, if the others let it.
    fn wait_for_others(&self, wait: Wait) -> bool {
        let (gate, generations) = (self.gate(), self.generations());
        if generations.try_take(Mode::Exclusive) != Taken::No {
            return true;
        }
        if wait == Wait::ForAll {
            gate.take(Mode::Exclusive);
            generations.take(Mode::Exclusive);
            gate.give_back(Mode::Exclusive);
            return true;
        }
        if gate.try_take(Mode::Exclusive) == Taken::No {
            return false;
        }
        let until = time::now() + PATIENCE;
        let has_lock = loop {
            interrupt::check_for_interrupts();
            if generations.try_take(Mode::Exclusive) != Taken::No {
                break true;
            }
            if time::now() >= until {
                break false;
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        gate.give_back(Mode::Exclusive);
        has_lock
    }

    /// Makes the generation after these, while nobody else adds.
    fn make_next(&self, growth: &Growth, list: &List, level: usize) -> Result<()> {
        let (newest, now) = (list.newest(), self.now(list));
        let about = self.about()?;
        let ended = self.last_change(newest.number, now)?;
        let mut oldest = list.generations[0].number;
        if let Some(cutoff) = self.cutoff(list) {
            let until = |g: &Generation| g.until.unwrap_or(ended);
            let over = list.generations.iter().take_while(|g| until(g) <= cutoff).count() as i32;
            oldest += over;
        }
        let first = Wanted { generation: newest.number, shard: 0, shards: newest.shards, items: 0..0 };
        let mut next = None;
        self.read(
            Sees::Now,
            |_| vec![first.clone()],
            |_, row| {
                let (shards, header) =
                    growth.plan.shards(level, View::parse_trusted(row.filter.bytes())?.header.kind)?;
                next = Some((shards, build::empty::<PgBuffer>(&header)));
                Ok(())
            },
        )?;
        let Some((shards, filter)) = next else { return Ok(()) };
        let number = newest.number + 1;
        let changed = about.end.execute(&[Datum::from(newest.number), Datum::from(ended)], Sees::Now, |_| Ok(()))?;
        let int = |value: u32| Datum::from(value as i32);
        let values =
            [Datum::from(number), int(shards), int(shards - 1), Datum::from(now), filter.datum(), int(oldest as u32)];
        let made = about.make.execute(&values, Sees::Now, |_| Ok(()))?;
        self.forget_list();
        // The plans of its statements are for a smaller table.
        self.known.is_current.set(false);
        self.check_name()?;
        if changed != 1 || made != u64::from(shards) {
            return Err(self.not_made(number));
        }
        // SAFETY: within a transaction, which has written.
        let transaction = unsafe { pg_sys::GetTopTransactionIdIfAny() };
        self.known.watch.made.set(Some((transaction.into_inner(), number)));
        Ok(())
    }

    /// When something was added to a generation last, if the set forgets.
    fn last_change(&self, generation: i32, now: Timestamp) -> Result<Timestamp> {
        let mut last = now;
        if self.known.growth.as_ref().is_some_and(|growth| growth.slice.is_some()) {
            self.about()?.last_change.execute(&[Datum::from(generation)], Sees::Now, |row| {
                last = row.column(1).map_or(now, |datum| datum.value() as Timestamp);
                Ok(())
            })?;
        }
        Ok(last)
    }

    /// The generation that the transaction adds to, one of these, while it takes part.
    ///
    /// # Errors
    /// 40001 if others have made a generation since its snapshot was taken.
    pub fn takes_new<'a>(&self, list: &'a List) -> Result<&'a Generation> {
        let newest = list.newest();
        if !has_one_snapshot() {
            return Ok(newest);
        }
        self.check_snapshot(list)?;
        // SAFETY: within a transaction.
        let transaction = unsafe { pg_sys::GetTopTransactionIdIfAny() };
        let is_own = self.known.watch.made.get() == Some((transaction.into_inner(), newest.number));
        let before = list.generations.iter().rev().nth(1).filter(|_| is_own);
        Ok(before.unwrap_or(newest))
    }

    /// Whether the newest of these generations is the newest of all, for a transaction with one snapshot.
    fn check_snapshot(&self, list: &List) -> Result<()> {
        if self.known.growth.is_none() || !has_one_snapshot() {
            return Ok(());
        }
        let latest = self.read_list(Sees::Latest)?;
        self.forget_list();
        if latest.newest().number == list.newest().number {
            return Ok(());
        }
        Err(Error::new(
            SqlState::ERRCODE_T_R_SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent change of a filter set",
        )
        .detail(format!(
            "Generation {} of filter set {} was made after the transaction's snapshot was taken.",
            latest.newest().number,
            self.quoted_name()
        ))
        .hint("Retry the transaction."))
    }

    /// Deletes the generations that don't count any more, and returns how many these were. Nobody waits for that but
    /// who does the same.
    ///
    /// # Errors
    /// Those of DELETE.
    pub fn drop_leftover(&self, list: &List) -> Result<usize> {
        if list.leftover > 0 {
            let oldest = list.generations[0].number;
            self.about()?.drop.execute(&[Datum::from(oldest)], Sees::Now, |_| Ok(()))?;
            self.forget_list();
            self.check_name()?;
        }
        Ok(list.leftover)
    }

    /// The same while adding: at most once for each generation, and only by who may, and not while others do it.
    ///
    /// # Errors
    /// As [`Set::drop_leftover`].
    pub fn drop_leftover_once(&self, list: &List) -> Result<()> {
        let (watch, newest) = (&self.known.watch, list.newest().number);
        if list.leftover == 0 || watch.dropped.get() == Some(newest) {
            return Ok(());
        }
        // SAFETY: within a transaction. Others wait for who has made a generation: they don't for this.
        let transaction = unsafe { pg_sys::GetTopTransactionIdIfAny() };
        if has_one_snapshot() || watch.made.get().is_some_and(|(made, _)| made == transaction.into_inner()) {
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
        if self.dropping().try_take(Mode::Exclusive) != Taken::No {
            self.drop_leftover(list)?;
        }
        Ok(())
    }

    /// The lock of those who drop generations.
    pub fn dropping(&self) -> Lock {
        Lock::of(self.oid, 3)
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
pub fn refuse_in_recovery() {
    // SAFETY: raises an error or returns.
    unsafe { pg_sys::PreventCommandDuringRecovery(c"adding to a filter set".as_ptr()) };
}

/// Whether the transaction sees all the time what was committed when it began.
fn has_one_snapshot() -> bool {
    // SAFETY: reads a variable of the session.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}
