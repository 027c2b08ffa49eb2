//! Conditions with many alternatives: 200 patterns, 100 members, words joined by OR.
//!
//! An index asks its ranges for each alternative by itself. So each row of a range has to be
//! compared only with those that its range may have, by the hashes of the row's parts. Most rows
//! have none of them, and end with the first step:
//!
//! ```text
//! watched  a bit for one hash of each alternative of the range     has the row one of these?
//! places   . . h1 . h2 h3 . . .     a place for each hash that an alternative has
//! rows     . . 7  . 4  7  . . .     the last row that had it: row 7 has h1 and h3
//! ```
//!
//! If a row has the watched hash but the alternative doesn't hold, a hash that the row lacks is
//! watched from then on. So the watched hashes are soon those that few rows have.

use super::{Condition, place_of};
use crate::memory;

/// A condition as alternatives, and what must hold beside one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternatives {
    /// What must hold in any case; unknown if nothing must.
    pub every: Condition,
    /// One of these must hold. They are distinct.
    pub each: Vec<Condition>,
}

impl Alternatives {
    /// How many alternatives a condition has, with those within alternatives.
    pub fn count(condition: &Condition) -> usize {
        match condition {
            Condition::All(all) => all.iter().map(Alternatives::count).max().unwrap_or(1),
            Condition::Any(each) => each.iter().map(Alternatives::count).sum(),
            _ => 1,
        }
    }

    /// Those of a condition: if all of several must hold, those of the one that has most.
    pub fn of(condition: Condition) -> Alternatives {
        let (every, mut each) = match condition {
            Condition::Any(each) => (Condition::Unknown, each),
            Condition::All(mut all) => {
                let most = (0..all.len())
                    .max_by_key(|&i| Alternatives::count(&all[i]))
                    .unwrap_or(0);
                let each = match all.swap_remove(most) {
                    Condition::Any(each) => each,
                    other => vec![other],
                };
                (Condition::all(all), each)
            }
            other => (Condition::Unknown, vec![other]),
        };
        each.sort_unstable();
        each.dedup();
        Alternatives { every, each }
    }
}

/// What rows are compared with: first [`RowTest::is_watched`] for their hashes, then for the few
/// that have such a hash [`RowTest::begin_row`], [`RowTest::add`] for all of them, and
/// [`RowTest::may_match`].
pub struct RowTest {
    /// A hash in each place that is not 0: the place that the hash says, or one after it. At most a
    /// quarter are taken.
    places: Vec<u64>,
    /// The last row that has the hash of a place.
    rows: Vec<u32>,
    row: u32,
    every: Condition,
    each: Vec<Alternative>,
    /// Those that the range may have.
    numbers: Vec<u32>,
    /// A bit for each hash that is watched, by its highest bits.
    watched: Vec<u64>,
    shift: u32,
}

/// Conditions on places, which must all hold.
struct Alternative {
    all: Vec<Condition>,
    watched: usize,
}

impl RowTest {
    pub fn new(alternatives: &Alternatives) -> RowTest {
        /// Bits for hashes that are watched, at least; and for each alternative.
        const BITS: usize = 1 << 12;
        const BITS_EACH: usize = 16;
        let mut count = 0usize;
        let mut add = |hash| {
            count += 1;
            hash
        };
        alternatives
            .each
            .iter()
            .chain([&alternatives.every])
            .for_each(|condition| drop(condition.map(&mut add)));
        let mut places = memory::zeroed((4 * count).next_power_of_two());
        let mut put = |hash| {
            let place = find(&places, hash);
            places[place] = hash.max(1);
            place as u64
        };
        let each = memory::collect(alternatives.each.iter().map(|one| match one.map(&mut put) {
            Condition::All(all) => Alternative { all, watched: 0 },
            other => Alternative { all: vec![other], watched: 0 },
        }));
        let every = alternatives.every.map(&mut put);
        let rows = memory::zeroed(places.len());
        let bits = (BITS_EACH * each.len()).next_power_of_two().max(BITS);
        let (watched, shift) =
            (memory::zeroed(bits / u64::BITS as usize), u64::BITS - bits.ilog2());
        RowTest {
            places,
            rows,
            row: 0,
            every,
            each,
            numbers: Vec::new(),
            watched,
            shift,
        }
    }

    /// Begins with another range, which may have the alternatives with these numbers.
    pub fn begin_range(&mut self, numbers: &[u32]) {
        self.numbers.clear();
        numbers
            .iter()
            .for_each(|&number| memory::push(&mut self.numbers, number));
        self.watch();
    }

    fn watch(&mut self) {
        self.watched.fill(0);
        let mut add = |place: u64| {
            let bit = self.places[place as usize] >> self.shift;
            self.watched[bit as usize / 64] |= 1 << (bit % 64);
        };
        for &number in &self.numbers {
            let Alternative { all, watched } = &self.each[number as usize];
            all[*watched].watched(&mut add);
        }
    }

    /// Whether a row with this hash is to be looked at: no other is one that matches.
    #[inline(always)]
    pub fn is_watched(&self, hash: u64) -> bool {
        let bit = hash >> self.shift;
        self.watched[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    pub fn begin_row(&mut self) {
        // After four billion rows one may be compared for what another has, which is right.
        self.row = self.row.wrapping_add(1).max(1);
    }

    #[inline(always)]
    pub fn add(&mut self, hash: u64) {
        // That of a hash which no alternative has is asked for by none.
        self.rows[find(&self.places, hash)] = self.row;
    }

    /// Whether one of the range's alternatives may hold for the row.
    pub fn may_match(&mut self) -> bool {
        let (rows, row) = (&self.rows, self.row);
        let has = |place: u64| rows[place as usize] == row;
        let mut is_changed = false;
        for &number in &self.numbers {
            let Alternative { all, watched } = &mut self.each[number as usize];
            match all.iter().position(|condition| !condition.holds(&has)) {
                None => return self.every.holds(&has),
                Some(lacking) if all[*watched].holds(&has) => {
                    (*watched, is_changed) = (lacking, true)
                }
                Some(_) => {}
            }
        }
        if is_changed {
            self.watch();
        }
        false
    }
}

/// The place of a hash. No hash is 0: that one counts as 1.
#[inline(always)]
fn find(places: &[u64], hash: u64) -> usize {
    place_of(places, hash.max(1), hash.max(1))
}

#[cfg(test)]
mod tests;
