//! Whether a set is overfull, judged by the rows that a call changes.
//!
//! Counting a whole set reads all of it. But its rows are split as they grow, so all of them are
//! about equally dense: some rows tell how many hashes all have. The rows of a small set have so
//! few hashes that one of them tells nothing. A small set is counted now and then, which takes
//! little time.

use super::parameters::Parameters;
use super::table::Set;
use crate::error::invalid_parameter;
use crate::pg::call::error::warn;
use crate::pg::call::{Error, Result};
use crate::pg::sql::Sees;
use crate::settings::{self, Overfill};
use pg_bloom_core::set::{Row, SetForm, tree};

/// The largest capacity of a set that is counted. Rows of larger sets have more than a hundred
/// hashes at capacity, which is enough to judge by.
const MOST_COUNTED_CAPACITY: u64 = 200_000;
/// How often a set is counted while as many elements are added as its capacity.
///
/// Between the most elements that a small set may have, 1.75 times its capacity, and twice its
/// capacity, it is counted sixteen times on average. That it is not counted there at all has a
/// probability of e^-16.
const COUNTS_PER_CAPACITY: u64 = 64;

/// The number of hashes in some rows of a set, from which the number in all rows is estimated.
///
/// A row is added to the sample before a call adds elements to it: afterwards it is denser than the
/// rows that the call leaves alone.
#[derive(Clone, Copy, Default)]
pub struct RowSample {
    /// How many hashes the sampled rows have.
    hashes: usize,
    /// The share of all possible hashes that the sampled rows cover, from 0 to 1.
    share: f64,
}

impl RowSample {
    /// Adds a row, which must not be in the sample yet.
    pub fn add(&mut self, row: &Row) {
        self.hashes += row.entries.len();
        self.share += tree::share(row.bucket);
    }

    /// Adds the rows of another sample, none of which may be in this one.
    fn add_sample(&mut self, other: RowSample) {
        self.hashes += other.hashes;
        self.share += other.share;
    }

    /// Returns how many hashes the whole set has, if its other rows are as dense as the sample.
    fn hashes_of_set(&self) -> f64 {
        self.hashes as f64 / self.share
    }

    /// Returns whether the sampled rows have more hashes than they would have in a set of
    /// `hashes_of_set` hashes, even if the sampled rows are denser than others by chance.
    fn shows_more_than(&self, hashes_of_set: f64) -> bool {
        let expected_hashes = hashes_of_set * self.share;
        is_more_than_chance(self.hashes as f64, expected_hashes)
    }

    /// Returns whether the sampled rows are denser than the mean row of a set of `hashes_of_set`
    /// hashes, or would be with one hash more: of a small set most rows have none.
    fn suggests_more_than(&self, hashes_of_set: f64) -> bool {
        let expected_hashes = hashes_of_set * self.share;
        (self.hashes + 1) as f64 > expected_hashes
    }
}

/// Returns how many elements a set can have before it is overfull, which is when a warning is due.
///
/// A set keeps the first B bits of each hash. Its false positive rate is the share of the `2^B`
/// possible prefixes that it has, so it reaches the rate `fpr` that it was made for with `fpr ·
/// 2^B` elements. B is the smallest number with which this is at least the capacity. So this is
/// less than twice the capacity, except in the smallest sets, which have 16 bits. For these the
/// limit is 1.75 times the capacity, so that an overfull set is noticed before it has twice its
/// capacity. A set without a capacity has only the first limit.
pub fn most_elements(made_for: &Parameters, form: SetForm) -> f64 {
    let rate_of_one_element = form.rate(1.0);
    let elements_at_rate = made_for.fpr / rate_of_one_element;
    match made_for.capacity {
        Some(capacity) => elements_at_rate.min(1.75 * capacity as f64),
        None => elements_at_rate,
    }
}

/// What a call that adds elements finds out about how full the set is.
pub struct Fullness<'a> {
    set: &'a Set,
    /// The rows that the call has added to, as they were before it.
    sampled_rows: RowSample,
    /// How many new elements the call adds to these rows, the last [`Addition`] included.
    num_added: usize,
    /// How many elements the set had before this call; `None` unless the call has counted them.
    counted_before_call: Option<usize>,
    /// The setting `pg_bloom.overfill`.
    overfill: Overfill,
    is_overfull: bool,
}

/// The elements that a call is about to add to some rows of the set.
pub struct Addition {
    /// These rows, as they are before the elements are added.
    pub sampled_rows: RowSample,
    /// How many of the elements are new.
    pub num_new: usize,
    /// Whether the set is to be counted: [`Fullness::is_count_due`] holds for one of the elements.
    pub is_count_due: bool,
}

impl<'a> Fullness<'a> {
    /// Begins to watch how full a set becomes by one call that adds elements. The setting
    /// `pg_bloom.overfill` is read now.
    pub fn new(set: &'a Set) -> Fullness<'a> {
        Fullness {
            set,
            sampled_rows: RowSample::default(),
            num_added: 0,
            counted_before_call: None,
            overfill: settings::OVERFILL.get(),
            is_overfull: false,
        }
    }

    /// Returns whether the elements of the set are to be counted when the element with this 64-bit
    /// hash is added. A set with a capacity of 100,000 is counted by about 64 of the first 100,000
    /// additions, and likewise each set whose capacity is at most 200,000. A larger set, or one
    /// without a capacity, is never counted: a sample of its rows tells enough.
    ///
    /// The hash decides, as a random number. So nothing needs to be stored about the additions of
    /// other calls and sessions.
    pub fn is_count_due(&self, hash: u64) -> bool {
        let Some(capacity) = self.set.parameters.capacity else {
            return false;
        };
        // The last 32 bits are a random number below 2^32. Multiplied by the capacity and divided
        // by 2^32, it is a random number below the capacity.
        let random = (u64::from(hash as u32) * capacity.min(MOST_COUNTED_CAPACITY)) >> 32;
        capacity <= MOST_COUNTED_CAPACITY && random < COUNTS_PER_CAPACITY
    }

    /// Determines whether adding some elements, the `addition`, makes the set overfull. Must be
    /// called before they are written, while connected.
    ///
    /// Nothing is determined if the setting `pg_bloom.overfill` is `ignore`, or if it is `warn` and
    /// the session was warned about this set before. Fails with 22023 if the set is overfull and
    /// the setting is `error`, and if counting the set does.
    pub fn check_addition(&mut self, addition: &Addition) -> Result<()> {
        self.sampled_rows.add_sample(addition.sampled_rows);
        self.num_added += addition.num_new;

        // This takes time, so it is left out if nothing would follow from it.
        let is_of_interest = match self.overfill {
            Overfill::Ignore => false,
            Overfill::Warn => !self.set.has_warned.get(),
            Overfill::Error => true,
        };
        if is_of_interest && !self.is_overfull && addition.num_new > 0 {
            self.is_overfull =
                self.is_overfull_by_sample() || self.is_overfull_by_count(addition)?;
        }

        if self.is_overfull && self.overfill == Overfill::Error {
            return Err(self.overfull());
        }
        Ok(())
    }

    /// Warns, once in a session and set, if the additions have made the set overfull.
    pub fn warn_if_overfull(&self) {
        if self.is_overfull && !self.set.has_warned.replace(true) {
            warn(self.overfull());
        }
    }

    /// Returns whether the rows that the call adds to show that the set is overfull, beyond chance.
    fn is_overfull_by_sample(&self) -> bool {
        let most = most_elements(&self.set.parameters, self.set.form);
        let added = self.num_added as f64;
        added > most || self.sampled_rows.shows_more_than(most - added)
    }

    /// Returns whether the set is overfull once `addition`, the elements that the call is about to
    /// write, is in it, by counting the hashes in all of its rows.
    ///
    /// Returns false without counting if `addition` has no element by whose hash a count is due, as
    /// most additions have none, or if the rows that the call adds to look no denser than those of
    /// a set that isn't overfull. Fails if reading the rows does.
    fn is_overfull_by_count(&mut self, addition: &Addition) -> Result<bool> {
        let most = most_elements(&self.set.parameters, self.set.form);
        // The sample has the rows as they were before the call.
        let most_before_call = most - self.num_added as f64;
        let looks_overfull = self.sampled_rows.suggests_more_than(most_before_call);
        if !addition.is_count_due || !looks_overfull {
            return Ok(false);
        }

        let counted = self.count_hashes()?;
        // What this call has added before is in the rows already. `addition` isn't yet.
        let added_by_call_before = self.num_added - addition.num_new;
        self.counted_before_call = Some(counted.saturating_sub(added_by_call_before));
        Ok(self.elements_now() > most)
    }

    /// Reads all rows of the set, and returns how many hashes the set remembers. Fails if reading
    /// the rows does.
    fn count_hashes(&self) -> Result<usize> {
        let form = self.set.form;
        let now = self.set.now();
        let mut count = 0;
        self.set.each_page(Sees::Now, |rows| {
            let entries = rows.iter().flat_map(|row| &row.entries);
            count += entries.filter(|entry| form.remembers(entry.time_slice, now)).count();
            Ok(())
        })?;
        Ok(count)
    }

    /// Returns how many elements the set has together with those that the call adds. The number
    /// before the call is the one that was counted; without a count, it is estimated from the rows
    /// that the call adds to.
    fn elements_now(&self) -> f64 {
        let before_call = match self.counted_before_call {
            Some(counted) => counted as f64,
            None => self.sampled_rows.hashes_of_set(),
        };
        before_call + self.num_added as f64
    }

    /// Returns the error or the warning for a set with more elements than its capacity, with
    /// estimates of its number of elements and its false positive rate.
    fn overfull(&self) -> Error {
        let capacity = self.set.parameters.capacity_or_default();
        let fpr = self.set.parameters.fpr;
        let subject = match self.counted_before_call {
            Some(_) => "It",
            None => "Judging by the rows that change, it",
        };
        let elements = self.elements_now();
        let rate = self.set.form.rate(elements);
        // Small rates are shown with three significant digits.
        let digits = (2.0 - rate.log10().floor()).clamp(1.0, 9.0) as usize;
        let set = self.set.quoted_name();
        invalid_parameter(format!("filter set {set} holds more than its capacity of {capacity}"))
            .detail(format!(
                "{subject} has about {elements:.0} elements with those added, and a false positive rate of about \
                 {rate:.digits$}: that share of the new elements is taken for old ones. It was made for a rate of {fpr}.",
            ))
            .hint("Make a set with a larger capacity, and use both for a while. Capacity costs only a few bits an element.")
    }
}

/// Returns whether a sample with `found` hashes is too large to be chance, in a set where a sample
/// of this size has `expected` hashes on average.
///
/// By Chernoff's bound for Poisson's distribution, the probability of finding at least `found` is
/// at most `e^(found - expected) · (expected / found)^found`. Chance is ruled out below e^-18,
/// which is six standard deviations of a large number.
///
/// Example: 268,000 hashes are expected. Finding 270,000 has an exponent of -7.4 and may be chance;
/// finding 275,000 has an exponent of -90.6 and can't be.
fn is_more_than_chance(found: f64, expected: f64) -> bool {
    if found <= expected {
        return false;
    }
    let exponent = found - expected - found * (found / expected).ln();
    exponent < -18.0
}
