//! Conditions with many alternatives: 200 patterns, 100 members, words joined by OR.
//!
//! An index asks its ranges for each alternative by itself. So each row of a range has to be
//! compared only with the alternatives that its range may have, by the hashes of the row's keys.
//! Most rows have none of them, and end with the first step:
//!
//! ```text
//! watched   a bit for one hash of each alternative of the range     has the row one of these?
//! hashes    . . h1 . h2 h3 . . .     a hash table of all hashes that an alternative has
//! last_row  . . 7  . 4  7  . . .     by place in it, the last row that had the hash: row 7 has h1 and h3
//! ```
//!
//! If a row has the watched hash but the alternative doesn't hold, a hash that the row lacks is
//! watched from then on. So the watched hashes are soon those that few rows have.

use super::{Condition, place_of};
use crate::memory::List;

/// A condition as alternatives, and what must hold beside one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternatives {
    /// What must hold in any case; unknown if nothing must.
    pub required: Condition,
    /// One of these must hold. They are distinct.
    pub choices: List<Condition>,
}

impl Alternatives {
    /// Returns how many alternatives a condition has: of an OR the sum over its parts, of an AND
    /// the number of the part that has most, of a hash 1.
    pub fn count(condition: &Condition) -> usize {
        match condition {
            Condition::All(all) => all.iter().map(Alternatives::count).max().unwrap_or(1),
            Condition::Any(any) => any.iter().map(Alternatives::count).sum(),
            _ => 1,
        }
    }

    /// Divides a condition into alternatives, at least one of which must hold, and what is required
    /// beside that. An OR becomes one alternative for each of its parts. Of an AND only one part is
    /// divided, the one with the most alternatives, and the other parts are required. Any other
    /// condition is the only alternative.
    ///
    /// Example: of `(a OR b) AND (c OR d OR e)`, the alternatives are c, d and e, and a OR b is
    /// required.
    pub fn of_condition(condition: Condition) -> Alternatives {
        let mut required = Condition::Unknown;
        let mut choices = match condition {
            Condition::Any(any) => any,
            Condition::All(mut all) => {
                let index_of_widest = (0..all.len())
                    .max_by_key(|&i| Alternatives::count(&all[i]))
                    .unwrap_or(0);
                let choices = match all.swap_remove(index_of_widest) {
                    Condition::Any(any) => any,
                    other => List::from([other]),
                };
                required = Condition::all(all);
                choices
            }
            other => List::from([other]),
        };
        choices.sort_unstable();
        choices.dedup();
        Alternatives { required, choices }
    }
}

/// Compares rows with the alternatives of a condition, range by range.
///
/// [`RowTest::begin_range`] returns a test for the rows of a range. For each row,
/// [`RangeTest::is_watched`] is asked about each of its hashes. Only the few rows that have such a
/// hash are looked at: [`RangeTest::begin_row`], [`TestedRow::add`] for all hashes of the row, and
/// [`TestedRow::may_match`].
pub struct RowTest {
    /// A hash table of the hashes of all alternatives, 0 where a place is free. At most a quarter
    /// of its places are taken.
    hashes: List<u64>,
    /// By place in `hashes`, the last row that has the hash.
    last_row: List<u32>,
    /// The number of the row whose hashes are being added.
    row: u32,
    /// What must hold beside an alternative, on places in `hashes` instead of hashes.
    required: Condition,
    alternatives: List<WatchedAlternative>,
    /// The numbers of the alternatives that the range may have.
    alternatives_in_range: List<u32>,
    /// A bit for each hash that is watched: the one with the number that its highest bits are.
    watched_bits: List<u64>,
    /// By how many bits a hash is shifted to the right to get the number of its bit.
    watched_shift: u32,
}

/// Compares the rows of a range with the alternatives that the range may have.
pub struct RangeTest<'t> {
    test: &'t mut RowTest,
}

/// A row whose hashes are being added, to find out whether it may match.
pub struct TestedRow<'t> {
    test: &'t mut RowTest,
}

/// An alternative: parts that must all hold, which are conditions on places in [`RowTest::hashes`].
struct WatchedAlternative {
    parts: List<Condition>,
    /// The index of the part of which hashes are watched.
    watched_part: usize,
}

impl WatchedAlternative {
    /// Returns the alternative of a condition on places. Its first part is watched first.
    fn of_condition(condition: Condition) -> WatchedAlternative {
        let parts = match condition {
            Condition::All(all) => all,
            other => List::from([other]),
        };
        WatchedAlternative { parts, watched_part: 0 }
    }
}

/// The fewest bits for watched hashes: half a kilobyte, which no row test is too small for.
const LEAST_WATCHED_BITS: usize = 1 << 12;
/// Bits for watched hashes by alternative. Each alternative usually watches one hash, so one bit of
/// sixteen is set, and one hash of sixteen that no alternative has looks as if it were watched.
const WATCHED_BITS_OF_ALTERNATIVE: usize = 16;

impl RowTest {
    /// Prepares to test many rows: returns a test of whether a row has what one of these
    /// alternatives requires. No range is begun: call [`RowTest::begin_range`] before the rows of
    /// each range.
    ///
    /// Two things make tests fast:
    ///
    /// - All hashes that the alternatives mention are put into a hash table, and conditions refer
    ///   to them by their places in it. `last_row[place]` is the number of the last row that had
    ///   the hash at that place, so whether the present row has a hash takes one comparison.
    /// - Before the hashes of a row are looked up in that table, most rows are ruled out by a small
    ///   bitmap. Some hashes are *watched*: a row that matches must have at least one of them. The
    ///   bitmap has a bit for each value of the highest bits of a hash, which is set if a watched
    ///   hash begins with these. All bits are clear until a range begins.
    pub fn new(alternatives: &Alternatives) -> RowTest {
        let hashes = table_of_hashes(alternatives);
        let mut place_of_hash = |hash| find(&hashes, hash) as u64;

        // The same conditions, with the place of each hash instead of the hash.
        let required = alternatives.required.map(&mut place_of_hash);
        let mut watched_alternatives = List::with_capacity(alternatives.choices.len());
        for choice in &alternatives.choices {
            let by_place = choice.map(&mut place_of_hash);
            watched_alternatives.push(WatchedAlternative::of_condition(by_place));
        }

        let wanted_bits = WATCHED_BITS_OF_ALTERNATIVE * watched_alternatives.len();
        let num_bits = wanted_bits.next_power_of_two().max(LEAST_WATCHED_BITS);
        RowTest {
            last_row: List::zeroed(hashes.len()),
            hashes,
            row: 0,
            required,
            alternatives: watched_alternatives,
            alternatives_in_range: List::new(),
            watched_bits: List::zeroed(num_bits / u64::BITS as usize),
            watched_shift: u64::BITS - num_bits.ilog2(),
        }
    }

    /// Returns a test for the rows of a range, which may have only the alternatives with these
    /// numbers: places in [`Alternatives::choices`].
    pub fn begin_range(&mut self, numbers: &[u32]) -> RangeTest<'_> {
        self.alternatives_in_range.clear();
        for &number in numbers {
            self.alternatives_in_range.push(number);
        }
        self.set_watched_bits();
        RangeTest { test: self }
    }

    /// Sets the bits of the hashes that the range's alternatives *watch*, and no others. Each
    /// alternative watches a few hashes of which a row must have at least one to match it.
    /// Different hashes may share a bit: then [`RangeTest::is_watched`] is true for some rows
    /// without need.
    fn set_watched_bits(&mut self) {
        self.watched_bits.fill(0);
        for &number in &self.alternatives_in_range {
            let alternative = &self.alternatives[number as usize];
            let watched_part = &alternative.parts[alternative.watched_part];
            watched_part.visit_necessary_hashes(&mut |place| {
                let bit = self.hashes[place as usize] >> self.watched_shift;
                self.watched_bits[bit as usize / 64] |= 1 << (bit % 64);
            });
        }
    }
}

impl RangeTest<'_> {
    /// Returns whether a row with this hash must be looked at. A row that matches has at least one
    /// hash for which this is true.
    #[inline(always)]
    pub fn is_watched(&self, hash: u64) -> bool {
        let bit = hash >> self.test.watched_shift;
        self.test.watched_bits[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    /// Begins with a row of the range, which has no hashes yet.
    pub fn begin_row(&mut self) -> TestedRow<'_> {
        // After four billion rows a row may seem to have hashes that an earlier one had. It is
        // reported without need then, and the query compares it itself.
        self.test.row = self.test.row.wrapping_add(1).max(1);
        TestedRow { test: self.test }
    }
}

impl TestedRow<'_> {
    /// Adds a hash that the row has.
    #[inline(always)]
    pub fn add(&mut self, hash: u64) {
        // A hash that no alternative has comes to a free place, which nothing looks at.
        let place = find(&self.test.hashes, hash);
        self.test.last_row[place] = self.test.row;
    }

    /// Returns whether the row may match: whether one of the range's alternatives holds for its
    /// hashes, and what all rows must have beside it. All hashes of the row must have been added.
    ///
    /// If no alternative holds, this may change which rows come here. An alternative consists of
    /// parts that must all hold. It *watches* one of them, and only rows with a hash of a watched
    /// part come here. If a row meets the part that an alternative watches, but lacks another one,
    /// the alternative watches that one from now on. In the course of time parts are watched that
    /// few rows meet. (SAT solvers watch the literals of a clause in this way.)
    pub fn may_match(self) -> bool {
        let test = self.test;
        let last_row = &test.last_row;
        let row = test.row;
        let row_has = |place: u64| last_row[place as usize] == row;

        let mut is_changed = false;
        for &number in &test.alternatives_in_range {
            let alternative = &mut test.alternatives[number as usize];
            let lacking_part = alternative.parts.iter().position(|part| !part.holds(&row_has));
            let Some(lacking_part) = lacking_part else {
                // All parts of the alternative hold.
                return test.required.holds(&row_has);
            };
            if alternative.parts[alternative.watched_part].holds(&row_has) {
                alternative.watched_part = lacking_part;
                is_changed = true;
            }
        }
        if is_changed {
            test.set_watched_bits();
        }
        false
    }
}

/// Returns a hash table of all hashes that alternatives mention, and of those that are required
/// beside them.
fn table_of_hashes(alternatives: &Alternatives) -> List<u64> {
    let mut hashes = List::new();
    for condition in alternatives.choices.iter().chain([&alternatives.required]) {
        condition.visit_hashes(&mut |hash| hashes.push(hash));
    }

    // At least four places for each hash, so that searches are short. 0 is a free place.
    let mut table: List<u64> = List::zeroed((4 * hashes.len()).next_power_of_two());
    for hash in hashes {
        // The place where the hash is already, or a free one for it.
        let place = find(&table, hash);
        table[place] = table_entry(hash);
    }
    table
}

/// Returns the place of a hash in a hash table, or a free place if the table lacks it.
#[inline(always)]
fn find(table: &[u64], hash: u64) -> usize {
    let entry = table_entry(hash);
    place_of(table, entry, entry)
}

/// Returns the entry of a hash table for a hash: the hash itself, but 1 for 0, which marks a free
/// place.
#[inline(always)]
fn table_entry(hash: u64) -> u64 {
    hash.max(1)
}

#[cfg(test)]
mod tests;
