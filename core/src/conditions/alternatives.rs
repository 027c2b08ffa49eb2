//! Conditions with many alternatives: 200 patterns, 100 members, words joined by OR.
//!
//! An index asks its ranges for each alternative by itself. So each row of a range has to be compared only with those
//! that its range may have, by the hashes of the row's parts. Most rows have none of them, and end with the first step:
//!
//! ```text
//! watched  a bit for one hash of each alternative of the range     has the row one of these?
//! places   . . h1 . h2 h3 . . .     a place for each hash that an alternative has
//! rows     . . 7  . 4  7  . . .     the last row that had it: row 7 has h1 and h3
//! ```
//!
//! If a row has the watched hash but the alternative doesn't hold, a hash that the row lacks is watched from then on.
//! So the watched hashes are soon those that few rows have.

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
    /// How many alternatives a condition has.
    pub fn count(condition: &Condition) -> usize {
        match condition {
            Condition::All(conditions) => conditions.iter().map(Alternatives::count_own).max().unwrap_or(1),
            other => Alternatives::count_own(other),
        }
    }

    fn count_own(condition: &Condition) -> usize {
        if let Condition::Any(conditions) = condition { conditions.len() } else { 1 }
    }

    /// Those of a condition: if all of several must hold, those of the one that has most.
    pub fn of(condition: Condition) -> Alternatives {
        let (every, mut each) = match condition {
            Condition::Any(each) => (Condition::Unknown, each),
            Condition::All(mut all) => {
                let most = (0..all.len()).max_by_key(|&i| Alternatives::count_own(&all[i])).unwrap_or(0);
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

/// What rows are compared with: first [`RowTest::is_watched`] for their hashes, then for the few that have such a hash
/// [`RowTest::begin_row`], [`RowTest::add`] for all of them, and [`RowTest::may_match`].
pub struct RowTest {
    /// A hash in each place that is not 0: the place that the hash says, or one after it. At most a quarter are taken.
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
    /// Which of them is watched.
    watched: usize,
}

impl RowTest {
    /// For these alternatives.
    pub fn new(alternatives: &Alternatives) -> RowTest {
        /// Bits for hashes that are watched, at least; and for each alternative.
        const BITS: usize = 1 << 12;
        const BITS_EACH: usize = 16;
        let mut count = 0usize;
        let mut add = |hash| {
            count += 1;
            hash
        };
        alternatives.each.iter().chain([&alternatives.every]).for_each(|condition| drop(condition.map(&mut add)));
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
        let (watched, shift) = (memory::zeroed(bits / u64::BITS as usize), u64::BITS - bits.ilog2());
        RowTest { places, rows, row: 0, every, each, numbers: Vec::new(), watched, shift }
    }

    /// Begins with another range, which may have the alternatives with these numbers.
    pub fn begin_range(&mut self, numbers: &[u32]) {
        self.numbers.clear();
        numbers.iter().for_each(|&number| memory::push(&mut self.numbers, number));
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

    /// Begins with another row.
    pub fn begin_row(&mut self) {
        // After four billion rows one may be compared for what another has, which is right.
        self.row = self.row.wrapping_add(1).max(1);
    }

    /// Adds the hash of one of the row's parts.
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
                Some(lacking) if all[*watched].holds(&has) => (*watched, is_changed) = (lacking, true),
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
mod tests {
    use super::Condition::{All, Any, Has, Unknown};
    use super::*;

    #[test]
    fn alternatives_are_those_of_the_widest_condition() {
        let many = || Any(vec![Has(3), Has(1), Has(2), Has(1)]);
        assert_eq!(Alternatives::count(&many()), 4);
        assert_eq!(Alternatives::of(many()), Alternatives { every: Unknown, each: vec![Has(1), Has(2), Has(3)] });
        let both = All(vec![Has(7), Any(vec![Has(8), Has(9)]), many()]);
        assert_eq!(Alternatives::count(&both), 4);
        let every = All(vec![Has(7), Any(vec![Has(8), Has(9)])]);
        assert_eq!(Alternatives::of(both), Alternatives { every, each: vec![Has(1), Has(2), Has(3)] });
        let one = All(vec![Has(7), Has(8)]);
        assert_eq!(Alternatives::count(&one), 1);
        assert_eq!(Alternatives::count(&Has(0)), 1);
        assert_eq!(Alternatives::count(&Condition::NONE), 0);
        assert_eq!(Alternatives::of(Has(0)), Alternatives { every: Unknown, each: vec![Has(0)] });
    }

    #[test]
    fn a_row_may_match_if_and_only_if_the_condition_holds_for_its_hashes() {
        // Hashes that share their lowest bits, 0 among them.
        let hash = |i: u64| i << 60;
        let condition = All(vec![
            Any(vec![
                Has(hash(0)),
                All(vec![Has(hash(1)), Has(hash(2))]),
                Any(vec![Has(hash(3)), Has(hash(4))]),
                Has(hash(5)),
            ]),
            Any(vec![Has(hash(6)), Has(hash(1))]),
        ]);
        let alternatives = Alternatives::of(condition.clone());
        let all: Vec<u32> = (0..alternatives.each.len() as u32).collect();
        let mut test = RowTest::new(&alternatives);
        // Again and again, since what is watched changes.
        for bits in (0..4 << 8).map(|i| i * 89 % (1 << 8)) {
            let has = |of: u64| (0..8).any(|i| bits >> i & 1 == 1 && hash(i) == of);
            let mut may_match = |numbers: &[u32]| {
                test.begin_range(numbers);
                let hashes = || (0..8).filter(|i| bits >> i & 1 == 1).map(hash);
                hashes().any(|hash| test.is_watched(hash)) && {
                    test.begin_row();
                    hashes().for_each(|hash| test.add(hash));
                    test.may_match()
                }
            };
            assert_eq!(may_match(&all), condition.holds(&has), "{bits:b}");
            for (number, one) in alternatives.each.iter().enumerate() {
                let expected = one.holds(&has) && alternatives.every.holds(&has);
                assert_eq!(may_match(&[number as u32]), expected, "{bits:b}, {number}");
            }
            assert!(!may_match(&[]));
        }
    }

    #[test]
    fn what_few_rows_have_is_watched() {
        let hash = |i: u64| i << 56;
        let all = (0..10).map(hash).map(Has);
        let mut test = RowTest::new(&Alternatives::of(Condition::any([Condition::all(all), Has(hash(99))])));
        test.begin_range(&[0, 1]);
        for _ in 0..10 {
            // Rows that have all but the seventh.
            test.begin_row();
            (0..10).filter(|&i| i != 7).for_each(|i| test.add(hash(i)));
            assert!(!test.may_match());
        }
        let watched: Vec<u64> = (0..200).filter(|&i| test.is_watched(hash(i))).collect();
        assert_eq!(watched, [7, 99]);
    }
}
