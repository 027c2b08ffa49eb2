//! Warnings about overfull sets, from the rows of a call: leaves are split, so all are about equally dense.

use super::table::Set;
use crate::error::invalid_parameter;
use crate::pg::call::error::{Error, Result, warn};
use crate::settings::{self, Overfill};
use pg_bloom_core::set::form::DEFAULT_CAPACITY;
use pg_bloom_core::set::{Row, tree};

/// Sums over some rows of a set, as they were before a call changed them: those that it changes are those to which it
/// adds, so that afterwards they would be denser than others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Density {
    hashes: f64,
    /// The share of all hashes that these rows cover.
    share: f64,
}

impl Density {
    pub fn add(&mut self, row: &Row) {
        self.hashes += row.entries.len() as f64;
        self.share += tree::share(row.bucket);
    }

    /// How many hashes the whole set has, and six standard deviations of that.
    fn estimate(&self) -> (f64, f64) {
        (self.hashes / self.share, 6.0 * self.hashes.sqrt() / self.share)
    }
}

/// Checks how full the set will be with so many new elements; warns once in a session, or fails.
///
/// # Errors
/// 22023 for an overfull set if `pg_bloom.overfill` is `error`.
pub fn check(set: &Set, before: Density, added: usize) -> Result<()> {
    let (hashes, chance) = before.estimate();
    let (form, fpr) = (set.known.form, set.parameters().fpr);
    let (hashes, overfill) = (hashes + added as f64, settings::overfill());
    if form.rate(hashes - chance) <= fpr {
        return Ok(());
    }
    match overfill {
        Overfill::Error => return Err(describe(set, form.rate(hashes))),
        Overfill::Warn if !set.known.has_warned.replace(true) => warn(describe(set, form.rate(hashes))),
        _ => {}
    }
    Ok(())
}

fn describe(set: &Set, rate: f64) -> Error {
    let capacity = set.parameters().capacity.unwrap_or(DEFAULT_CAPACITY);
    let digits = (2.0 - rate.log10().floor()).clamp(1.0, 9.0) as usize;
    let fpr = set.parameters().fpr;
    invalid_parameter(format!("filter set {} holds more than its capacity of {capacity}", set.quoted_name()))
        .detail(format!(
            "Its false positive rate is now about {rate:.digits$}, not {fpr}: that share of the new elements is taken for old ones.",
        ))
        .hint("Make a set with a larger capacity, and use both for a while. Capacity costs only a few bits an element.")
}
