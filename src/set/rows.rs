//! Reading and changing the rows of a set.
//!
//! The generations that the session remembers are tried first. The rows that come back show whether they are still
//! right: each row has the number of shards of its generation, and one more row is looked up, the first of the
//! generation after the newest, which must not exist.

use super::items::{Item, by_shard};
use super::list::{Generation, List};
use super::statements::{self, About};
use super::table::Set;
use crate::pg::call::Element;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::catalog;
use crate::pg::sql::{Prepared, ResultRow, Sees};
use crate::pg::storage::lock::{Lock, Mode};
use crate::pg::value::array;
use crate::pg::value::time::{self, Timestamp};
use crate::pg::value::varlena::{PgBuffer, Value};
use pg_bloom_core::{Buffer, memory};
use pgrx::pg_sys::{self, Datum};
use std::ops::Range;
use std::rc::Rc;

/// A row.
pub struct Row<'a> {
    /// Its filter.
    pub filter: Value<'a>,
    /// When the filter last changed, in a set with generations.
    pub changed: Timestamp,
}

/// A row to be read or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The number of its generation.
    pub generation: i32,
    /// Its shard.
    pub shard: u32,
    /// The number of shards of its generation.
    pub shards: u32,
    /// When its generation was made.
    pub since: Timestamp,
    /// The items of a batch that belong to it.
    pub items: Range<usize>,
}

impl Wanted {
    /// The rows of a generation to which these items belong, in the items' order.
    pub fn of(generation: &Generation, batch: &[Item]) -> impl Iterator<Item = Wanted> {
        let mut from = 0;
        let generation = generation.clone();
        by_shard(batch, generation.shards).map(move |group| {
            let items = from..from + group.len();
            from = items.end;
            Wanted::one(&generation, group[0].shard(generation.shards), items)
        })
    }

    /// One row of a generation.
    pub fn one(generation: &Generation, shard: u32, items: Range<usize>) -> Wanted {
        let Generation { number, shards, since, .. } = *generation;
        Wanted { generation: number, shard, shards, since, items }
    }

    /// Rows that are evenly distributed over a generation, at most `most`.
    pub fn sample(generation: &Generation, most: u32) -> Vec<Wanted> {
        let (all, some) = (generation.shards, most.min(generation.shards));
        let nth = |i: u32| (u64::from(i) * u64::from(all) / u64::from(some)) as u32;
        memory::collect((0..some).map(|i| Wanted::one(generation, nth(i), 0..0)))
    }
}

/// The most rows in memory at once: a few megabytes, whatever the size of an array.
pub const MOST_ROWS_AT_ONCE: usize = 1024;

/// How many of the items to take at once, so that they have at most [`MOST_ROWS_AT_ONCE`] rows.
pub fn first_batch(items: &[Item], list: &List) -> usize {
    let most = (MOST_ROWS_AT_ONCE / list.generations.len()).max(1);
    by_shard(items, list.newest().shards).take(most).map(<[Item]>::len).sum()
}

impl Set {
    /// The generations, as the session remembers them or as they are now. While connected.
    ///
    /// # Errors
    /// As [`Set::read_list`].
    pub fn list(&self, sees: Sees) -> Result<Rc<List>> {
        let known = self.known.list.borrow().clone();
        known.map_or_else(|| self.read_list(sees), Ok)
    }

    /// Reads which generations there are. While connected.
    ///
    /// # Errors
    /// 55000 if one is missing.
    pub fn read_list(&self, sees: Sees) -> Result<Rc<List>> {
        let mut rows = Vec::new();
        self.about()?.list.execute(&[], sees, |row| {
            let int = |column| row.column(column).map(|datum| datum.value() as i32);
            let time = |column| row.column(column).map(|datum| datum.value() as Timestamp);
            let (Some(number), Some(shards), Some(since), Some(oldest)) = (int(1), int(2), time(3), int(5)) else {
                return Err(null());
            };
            rows.push((Generation { number, shards: shards as u32, since, until: time(4) }, oldest));
            Ok(())
        })?;
        let list = List::of_rows(rows).map_err(|generation| self.missing(generation, 0))?;
        let watch = &self.known.watch;
        if list.newest().number < watch.settled.get() {
            // Somebody has put other rows there.
            watch.settled.set(0);
        }
        // What this transaction made may go, and others make another with the same number.
        let remembered = watch.made.get().is_none_or(|(by, _)| by != transaction()).then(|| list.clone());
        let before = self.known.list.replace(remembered);
        if before.is_some_and(|before| before.newest().number != list.newest().number) {
            // The plans of its statements are for a smaller table.
            self.known.is_current.set(false);
        }
        Ok(list)
    }

    /// The generations as they are now. While connected.
    ///
    /// # Errors
    /// As [`Set::read_list`].
    pub fn current_list(&self, sees: Sees) -> Result<Rc<List>> {
        self.forget_list();
        self.list(sees)
    }

    /// Forgets the generations that the session remembers.
    pub fn forget_list(&self) {
        if self.known.growth.is_some() {
            *self.known.list.borrow_mut() = None;
        }
    }

    /// Calls `each` with every row that `wanted` asks for, in any order, while connected. If it turns out that the set
    /// has other generations, starts again with these. Returns the right ones.
    ///
    /// # Errors
    /// 55000 for a missing row; those of reading and of `each`.
    pub fn read(
        &self,
        sees: Sees,
        wanted: impl Fn(&List) -> Vec<Wanted>,
        mut each: impl FnMut(&Wanted, &Row<'_>) -> Result<()>,
    ) -> Result<Rc<List>> {
        let mut list = self.list(sees)?;
        while let Some(error) = self.try_read(&list, &wanted(&list), sees, &mut each)? {
            if self.known.growth.is_none() {
                return Err(error);
            }
            // Each time there are others, since a session made one after the list was read.
            let now = self.read_list(sees)?;
            if now == list {
                return Err(error);
            }
            list = now;
        }
        Ok(list)
    }

    /// Reads rows, given in ascending order. Returns an error if the set has other generations than these.
    fn try_read(
        &self,
        list: &List,
        wanted: &[Wanted],
        sees: Sees,
        each: impl FnMut(&Wanted, &Row<'_>) -> Result<()>,
    ) -> Result<Option<Error>> {
        let next = self.known.growth.is_some().then(|| (list.newest().number.saturating_add(1), 0));
        let rows = self.numbers_of(wanted, next);
        self.rows(&self.known.read, &[rows], wanted, sees, each)
    }

    /// Whether there is no generation after these. While connected.
    ///
    /// # Errors
    /// Those of reading.
    pub fn agrees(&self, list: &List) -> Result<bool> {
        Ok(self.try_read(list, &[], Sees::Now, |_, _| Ok(()))?.is_none())
    }

    /// Locks rows, given in ascending order, until the transaction ends, while connected. Rows that were dropped in the
    /// meantime, because they were forgotten, are left out.
    ///
    /// # Errors
    /// Those of locking; 40001 under REPEATABLE READ for a row that changed since the transaction began.
    pub fn lock_what_is_there(&self, wanted: &[Wanted]) -> Result<()> {
        let (lock, _) = self.write()?;
        self.rows(lock, &[self.numbers_of(wanted, None)], wanted, Sees::Now, |_, _| Ok(())).map(drop)
    }

    /// Locks rows of one generation, given in ascending order, until the transaction ends, and calls `each` with the
    /// newest version of each, while connected.
    ///
    /// # Errors
    /// As [`Set::read`]; 40001 under REPEATABLE READ for a row that changed since the transaction began.
    pub fn lock(&self, wanted: &[Wanted], each: impl FnMut(&Wanted, &Row<'_>) -> Result<()>) -> Result<()> {
        let (lock, _) = self.write()?;
        self.rows(lock, &[self.numbers_of(wanted, None)], wanted, Sees::Now, each)?.map_or(Ok(()), Err)
    }

    /// Changes the filters of rows of one generation, given in ascending order, while connected.
    ///
    /// # Errors
    /// 55000 and 27000 if a trigger, a rule or a policy left out a row or stored something else; those of UPDATE.
    pub fn update(&self, changes: &[(Wanted, PgBuffer)], now: Timestamp) -> Result<()> {
        let (_, update) = self.write()?;
        let mut datums = memory::list(changes.len());
        changes.iter().for_each(|(_, filter)| memory::push(&mut datums, Element { datum: filter.datum() }));
        let wanted: Vec<Wanted> = memory::collect(changes.iter().map(|(wanted, _)| wanted.clone()));
        let filters = array::array_of(catalog::array_type(self.known.bloom), self.known.bloom, datums);
        let all = [self.numbers_of(&wanted, None), filters, Datum::from(now)];
        let values = if self.known.growth.is_some() { &all[..] } else { &all[..2] };
        let as_written = |wanted: &Wanted, row: &Row<'_>| {
            let place = changes.binary_search_by_key(&wanted.shard, |(wanted, _)| wanted.shard);
            let is_same = place.is_ok_and(|place| changes[place].1.bytes() == row.filter.bytes());
            if is_same { Ok(()) } else { Err(self.changed_otherwise()) }
        };
        if self.rows(update, values, &wanted, Sees::Now, as_written)?.is_some() {
            return Err(self.changed_otherwise());
        }
        if !self.known.is_changed_after {
            return Ok(());
        }
        self.read(Sees::Now, |_| wanted.clone(), as_written).map(drop)
    }

    /// The array of numbers by which the statements look up these rows and one more: their shards, in a set without
    /// generations, whose number is then 0.
    fn numbers_of(&self, wanted: &[Wanted], more: Option<(i32, u32)>) -> Datum {
        let mut numbers = memory::list(wanted.len() + 1);
        for (generation, shard) in wanted.iter().map(|wanted| (wanted.generation, wanted.shard)).chain(more) {
            let both = (i64::from(generation) << 32) | i64::from(shard);
            memory::push(&mut numbers, Element { datum: Datum::from(both) });
        }
        match self.known.growth {
            None => array::array_of(pg_sys::INT4ARRAYOID, pg_sys::INT4OID, numbers),
            Some(_) => array::array_of(pg_sys::INT8ARRAYOID, pg_sys::INT8OID, numbers),
        }
    }

    /// Executes a statement that must return each of these rows once; they are given in ascending order. Returns an
    /// error if a row is missing, or if there are others.
    fn rows(
        &self,
        statement: &Prepared,
        values: &[Datum],
        wanted: &[Wanted],
        sees: Sees,
        mut each: impl FnMut(&Wanted, &Row<'_>) -> Result<()>,
    ) -> Result<Option<Error>> {
        let has_generations = self.known.growth.is_some();
        let mut missing: Vec<bool> = memory::collect(wanted.iter().map(|_| true));
        let mut other = None;
        statement.execute(values, sees, |result| {
            let (generation, shard, shards, row) = row_of(result, has_generations)?;
            let place = wanted.binary_search_by_key(&(generation, shard), |w| (w.generation, w.shard));
            match place {
                Ok(place) if missing[place] && (!has_generations || shards == wanted[place].shards) => {
                    missing[place] = false;
                    each(&wanted[place], &row)?;
                }
                _ => other = Some((generation, shard)),
            }
            row.filter.free();
            Ok(())
        })?;
        self.check_name()?;
        let missing = missing.iter().position(|&is_missing| is_missing);
        Ok(match (other, missing) {
            (Some((generation, shard)), _) => Some(self.ambiguous(generation, shard)),
            (None, Some(place)) => Some(self.missing(wanted[place].generation, wanted[place].shard)),
            (None, None) => None,
        })
    }

    /// The statements that lock rows and change them.
    fn write(&self) -> Result<&(Prepared, Prepared)> {
        if let Some(statements) = self.known.write.get() {
            return Ok(statements);
        }
        let filters = catalog::array_type(self.known.bloom);
        let statements = statements::write(&self.known.names.table, filters, self.known.growth.is_some())?;
        Ok(self.known.write.get_or_init(|| statements))
    }

    /// The statements about generations.
    pub fn about(&self) -> Result<&About> {
        if let Some(about) = self.known.about.get() {
            return Ok(about);
        }
        let about = About::new(&self.known.names.table, self.known.bloom)?;
        Ok(self.known.about.get_or_init(|| about))
    }

    /// The time of the clock, but not before the newest generation was made.
    pub fn now(&self, list: &List) -> Timestamp {
        time::now().max(list.newest().since)
    }

    /// Rows whose last change is at or before this time are forgotten, if the set forgets.
    pub fn cutoff(&self, list: &List) -> Option<Timestamp> {
        self.known.parameters.keep.map(|keep| keep.before(self.now(list)))
    }

    /// Whether the time of a generation is over.
    pub fn is_due(&self, generation: &Generation) -> bool {
        self.due(generation.since).is_some_and(|due| due <= time::now())
    }

    /// When the time of a generation made at `since` is over, if the set forgets.
    pub fn due(&self, since: Timestamp) -> Option<Timestamp> {
        self.known.growth.as_ref()?.slice.map(|slice| slice.after(since))
    }

    /// Whether the elements of a row are forgotten. `cutoff` is set by the first row, so that all rows of a call are
    /// judged by one time. In a set that renews, an element may have been added again, without a change of its row,
    /// until the time of its generation was over.
    pub fn is_over(&self, of: &Wanted, row: &Row<'_>, list: &List, cutoff: &mut Option<Timestamp>) -> bool {
        let parameters = &self.known.parameters;
        if parameters.keep.is_none() {
            return false;
        }
        let due = self.due(of.since).filter(|_| parameters.renews).unwrap_or(Timestamp::MIN);
        row.changed.max(due) <= *cutoff.get_or_insert_with(|| self.cutoff(list).unwrap_or(Timestamp::MIN))
    }

    /// Whether two batches that change `rows` of `shards` rows each have a row in common in at least 98 of 100 cases.
    pub fn are_shared_by_two_of(rows: u64, shards: u32) -> bool {
        rows * rows > 4 * u64::from(shards)
    }

    /// Waits for other transactions that called this for the same set, and makes later callers wait for the end of this
    /// one. It blocks nothing else, neither VACUUM nor other statements.
    pub fn take_turn(&self) {
        Lock::of(self.oid, 0).take(Mode::Exclusive);
    }

    /// What messages call a row.
    fn row_name(&self, generation: i32, shard: u32) -> String {
        match self.known.growth {
            None => format!("shard {shard}"),
            Some(_) => format!("shard {shard} of generation {generation}"),
        }
    }

    #[cold]
    fn missing(&self, generation: i32, shard: u32) -> Error {
        let what = self.row_name(generation, shard);
        Error::new(
            SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("filter set {} has no row for {what}", self.quoted_name()),
        )
        .detail(format!(
            "All of its{} rows must be visible. If the row was deleted, the elements in it are lost.",
            self.known.parameters.shards.map_or(String::new(), |shards| format!(" {shards}"))
        ))
        .hint(
            "Retry if its rows were replaced in the meantime. Otherwise restore the row from a backup, make a new set, \
             or change the policy that hides the row. An unlogged set loses its rows in a crash.",
        )
    }

    #[cold]
    fn ambiguous(&self, generation: i32, shard: u32) -> Error {
        let what = self.row_name(generation, shard);
        Error::new(
            SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("filter set {} returned a wrong row for {what}", self.quoted_name()),
        )
        .detail("Each shard must have exactly one row, also in the tables that inherit from the set.")
        .hint(
            "Retry if its rows and its constraint were replaced in the meantime. Otherwise remove the other rows, or \
             tables that inherit from the set.",
        )
    }

    #[cold]
    fn changed_otherwise(&self) -> Error {
        Error::new(
            SqlState::ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION,
            format!("filters of filter set {} were not stored as they were written", self.quoted_name()),
        )
        .detail("A trigger, a rule or a row-level security policy of the table skipped a row or changed it.")
        .hint("Let it leave the columns of the filter set as they are.")
    }
}

/// The columns that the statements return: generation, shard, number of shards, and the row.
fn row_of(result: &ResultRow, has_generations: bool) -> Result<(i32, u32, u32, Row<'_>)> {
    let (Some(shard), Some(filter)) = (result.column(1), result.column(2)) else { return Err(null()) };
    // SAFETY: the second column is of type bloom, which is of variable length.
    let filter = unsafe { Value::detoast(filter) };
    let shard = shard.value() as u32;
    if !has_generations {
        return Ok((0, shard, 0, Row { filter, changed: 0 }));
    }
    let columns = (result.column(3), result.column(4), result.column(5));
    let (Some(generation), Some(shards), Some(changed)) = columns else { return Err(null()) };
    let row = Row { filter, changed: changed.value() as Timestamp };
    Ok((generation.value() as i32, shard, shards.value() as u32, row))
}

/// The identifier of the transaction, or 0 if it hasn't written anything.
pub fn transaction() -> u32 {
    // SAFETY: within a transaction.
    unsafe { pg_sys::GetTopTransactionIdIfAny() }.into_inner()
}

#[cold]
fn null() -> Error {
    Error::new(SqlState::ERRCODE_NOT_NULL_VIOLATION, "row of a filter set has a null value")
}
