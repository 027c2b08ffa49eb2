//! Whether a set is overfull, judged by the rows that a call changes.
//!
//! Counting a whole set would read all of it. But its rows are split as they grow, so all of them
//! are about equally dense: some rows tell how many hashes all have.

use super::table::{Parameters, Set};
use crate::error::invalid_parameter;
use crate::pg::call::error::warn;
use crate::pg::call::{Error, Result};
use crate::settings::{self, Overfill};
use pg_bloom_core::set::Row;
use pg_bloom_core::set::tree::{self, DEFAULT_CAPACITY};

/// The number of hashes in some rows of a set, from which that of all its rows is estimated.
///
/// A row is added to the sample before a call adds elements to it: afterwards it is denser than the
/// rows that the call leaves alone.
#[derive(Default)]
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

    /// Returns how many hashes the whole set has, if its other rows are as dense as the sample.
    fn hashes_of_set(&self) -> f64 {
        self.hashes as f64 / self.share
    }

    /// Returns whether the sample has too many hashes for a set of `hashes_of_set` hashes, even if
    /// the sampled rows are denser than others by chance.
    fn shows_more_than(&self, hashes_of_set: f64) -> bool {
        let expected_hashes = hashes_of_set * self.share;
        is_more_than_chance(self.hashes as f64, expected_hashes)
    }
}

/// Warns or fails, as the setting `pg_bloom.overfill` says, if the elements that a call adds make a
/// set overfull: its false positive rate is then higher than the one it was made for.
///
/// `rows_before` are the rows that the call adds to, as they were before. `added` is how many
/// elements the call adds in all. A session is warned of a set only once. Errors: 22023 for an
/// overfull set, if the setting is `error`.
pub fn check_fullness(set: &Set, rows_before: &RowSample, added: usize) -> Result<()> {
    let added = added as f64;
    // The rate is proportional to the number of hashes.
    let rate_of_one_hash = set.form.rate(1.0);
    let most_hashes = set.parameters.fpr / rate_of_one_hash;

    let is_overfull = added > most_hashes || rows_before.shows_more_than(most_hashes - added);
    if !is_overfull {
        return Ok(());
    }

    let rate = set.form.rate(rows_before.hashes_of_set() + added);
    match settings::OVERFILL.get() {
        Overfill::Ignore => Ok(()),
        Overfill::Error => Err(overfull(set, rate)),
        Overfill::Warn => {
            let was_warned_before = set.has_warned.replace(true);
            if !was_warned_before {
                warn(overfull(set, rate));
            }
            Ok(())
        }
    }
}

/// Returns whether a sample with `found` hashes is too large to come by chance from a set where
/// `expected` hashes are in such a sample.
///
/// By Chernoff's bound for Poisson's distribution, the probability of finding at least `found` is
/// at most `e^(found - expected) · (expected / found)^found`. Chance is ruled out below e^-18,
/// which is six standard deviations of a large number.
///
/// Example: 268,000 hashes are expected. Finding 270,000 has an exponent of -7.4 and may be chance;
/// finding 275,000 has an exponent of -90.6 and is none.
fn is_more_than_chance(found: f64, expected: f64) -> bool {
    if found <= expected {
        return false;
    }
    let exponent = found - expected - found * (found / expected).ln();
    exponent < -18.0
}

/// Returns the error or the warning for an overfull set, whose false positive rate is now `rate`.
fn overfull(set: &Set, rate: f64) -> Error {
    let Parameters { capacity, fpr, .. } = set.parameters;
    let capacity = capacity.unwrap_or(DEFAULT_CAPACITY);
    // Small rates are shown with three significant digits.
    let digits = (2.0 - rate.log10().floor()).clamp(1.0, 9.0) as usize;
    invalid_parameter(format!("filter set {} holds more than its capacity of {capacity}", set.quoted_name()))
        .detail(format!(
            "Judging by the rows that change, its false positive rate is about {rate:.digits$}, not {fpr}: that share of the new elements is taken for old ones.",
        ))
        .hint("Make a set with a larger capacity, and use both for a while. Capacity costs only a few bits an element.")
}
