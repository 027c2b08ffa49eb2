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
//! watched from then on. So the watched hashes are soon those that few rows have. (SAT solvers
//! watch the literals of a clause in this way.)
//!
//! Example: the alternative `the AND zebra` watches `the` at first. The first row with `the` and
//! without `zebra` is looked at for nothing. From then on `zebra` is watched, and rows without it
//! are passed over.

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
///
/// Two things make this fast:
///
/// - A row that matches has at least one of the hashes that are *watched*. Most rows have none, and
///   end after a look at a few bits (`WatchedHashes`).
/// - The conditions have been rewritten: for each hash they name its place in a table of all
///   hashes. The number of the last row that had the hash is noted at the same place. So whether
///   the row that is tested has a hash takes one comparison.
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
    /// The hashes of which a row must have at least one to match an alternative of the range.
    watched_hashes: WatchedHashes,
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

/// A set of hashes, as a small bitmap. Hashes whose highest bits are equal share a bit, so a hash
/// may seem to be in the set by mistake.
struct WatchedHashes {
    /// Its number of bits is a power of two. Each word has 64 of them.
    bitmap: List<u64>,
    /// By how many bits a hash is shifted to the right to get the number of its bit in the bitmap.
    shift: u32,
}

/// The fewest bits for watched hashes: half a kilobyte, which no row test is too small for.
const LEAST_WATCHED_BITS: usize = 1 << 12;
/// Bits for watched hashes by alternative. Each alternative usually watches one hash, so one bit of
/// sixteen is set, and one hash of sixteen that no alternative has looks as if it were watched.
const WATCHED_BITS_OF_ALTERNATIVE: usize = 16;

impl WatchedHashes {
    /// Returns an empty set, with enough bits for what this number of alternatives watches.
    fn for_alternatives(num_alternatives: usize) -> WatchedHashes {
        let wanted_bits = num_alternatives * WATCHED_BITS_OF_ALTERNATIVE;
        let num_bits = wanted_bits.next_power_of_two().max(LEAST_WATCHED_BITS);
        WatchedHashes {
            bitmap: List::zeroed(num_bits / u64::BITS as usize),
            // Of 4,096 = 2^12 bits, the highest 12 bits of a hash choose one.
            shift: u64::BITS - num_bits.ilog2(),
        }
    }

    fn clear(&mut self) {
        self.bitmap.fill(0);
    }

    fn insert(&mut self, hash: u64) {
        let bit = hash >> self.shift;
        self.bitmap[bit as usize / 64] |= 1 << (bit % 64);
    }

    /// Returns whether the set may have this hash; `false` is always right.
    #[inline(always)]
    fn may_have(&self, hash: u64) -> bool {
        let bit = hash >> self.shift;
        self.bitmap[bit as usize / 64] >> (bit % 64) & 1 == 1
    }
}

impl RowTest {
    /// Prepares to test rows: returns a test of whether a row has what one of these alternatives
    /// requires. Call [`RowTest::begin_range`] before the rows of each range.
    ///
    /// The alternatives are conditions on hashes. In the test they are conditions on places in a
    /// hash table, which has all of these hashes. If the hash 7F3A has place 5, `Has(7F3A)` becomes
    /// `Has(5)`.
    pub fn new(alternatives: &Alternatives) -> RowTest {
        let hashes = table_of_hashes(alternatives);
        let mut place_in_table = |hash| find(&hashes, hash) as u64;

        let required_on_places = alternatives.required.map(&mut place_in_table);
        let mut alternatives_on_places = List::with_capacity(alternatives.choices.len());
        for choice in &alternatives.choices {
            let condition = choice.map(&mut place_in_table);
            alternatives_on_places.push(WatchedAlternative::of_condition(condition));
        }

        RowTest {
            // No row has been tested. The first one gets number 1.
            last_row: List::zeroed(hashes.len()),
            row: 0,
            hashes,
            required: required_on_places,
            alternatives: alternatives_on_places,
            // Empty until a range begins.
            alternatives_in_range: List::new(),
            watched_hashes: WatchedHashes::for_alternatives(alternatives.choices.len()),
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
        self.watched_hashes.clear();
        for &number in &self.alternatives_in_range {
            let alternative = &self.alternatives[number as usize];
            let watched_part = &alternative.parts[alternative.watched_part];
            watched_part.visit_necessary_hashes(&mut |place| {
                self.watched_hashes.insert(self.hashes[place as usize]);
            });
        }
    }
}

impl RangeTest<'_> {
    /// Returns whether a row with this hash must be looked at. A row that matches has at least one
    /// hash for which this is true.
    #[inline(always)]
    pub fn is_watched(&self, hash: u64) -> bool {
        self.test.watched_hashes.may_have(hash)
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
    /// An alternative consists of parts that must all hold. It *watches* one of them: a row comes
    /// here only if it has a hash of a watched part, or one that shares its bit. If the row meets
    /// the watched part but lacks another one, the alternative watches that one from now on, since
    /// fewer rows may meet it.
    pub fn may_match(self) -> bool {
        let test = self.test;
        let last_row = &test.last_row;
        let row = test.row;
        let row_has = |place: u64| last_row[place as usize] == row;

        let mut watches_other_parts = false;
        for &number in &test.alternatives_in_range {
            let alternative = &mut test.alternatives[number as usize];
            let lacking_part = alternative.parts.iter().position(|part| !part.holds(&row_has));
            let Some(lacking_part) = lacking_part else {
                // All parts of the alternative hold. Alternatives before it may just have begun to
                // watch other parts, whose bits are set later. The bits of their old parts are
                // still right: a row that matches has all parts, so any of them can be watched.
                return test.required.holds(&row_has);
            };

            // If the row lacks the watched part, it came here by another alternative, or by a
            // shared bit. Then the watched part rules out rows like it already, and stays. (It also
            // stays if the row has a hash of the part that isn't enough: `a` of `(a AND b) OR c`.)
            let watched_part = &alternative.parts[alternative.watched_part];
            if watched_part.holds(&row_has) {
                alternative.watched_part = lacking_part;
                watches_other_parts = true;
            }
        }
        if watches_other_parts {
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
