//! Warnings about overfull sets, from the rows of a call: leaves are split, so all are about equally dense.

use super::table::{Parameters, Set};
use crate::error::invalid_parameter;
use crate::pg::call::error::{Error, Result, warn};
use crate::settings::{self, Overfill};
use pg_bloom_core::set::tree::DEFAULT_CAPACITY;

/// Checks how full the set will be with so many new elements; warns once in a session, or fails. `hashes` and `share`
/// are sums over some rows: how many hashes they have, and the share of all hashes that they cover. They are taken
/// before the call adds to these rows: afterwards they would be denser than others.
///
/// # Errors
/// 22023 for an overfull set if `pg_bloom.overfill` is `error`.
pub fn check(set: &Set, hashes: f64, share: f64, added: usize) -> Result<()> {
    let form = set.known.form;
    let (added, all) = (added as f64, hashes / share + added as f64);
    let most = set.known.parameters.fpr / form.rate(1.0);
    if added > most || is_more_than_chance(hashes, (most - added) * share) {
        match settings::overfill() {
            Overfill::Error => return Err(describe(set, form.rate(all))),
            Overfill::Warn if !set.known.has_warned.replace(true) => warn(describe(set, form.rate(all))),
            _ => {}
        }
    }
    Ok(())
}

/// Whether so many hashes would be in some rows with a probability of at most e^-18, six deviations of a large number,
/// if so many were expected there. By Chernoff's bound for Poisson's distribution, P(n ≥ found) ≤
/// e^(found - expected) (expected / found)^found.
fn is_more_than_chance(found: f64, expected: f64) -> bool {
    found > expected && found - expected - found * (found / expected).ln() < -18.0
}

fn describe(set: &Set, rate: f64) -> Error {
    let Parameters { capacity, fpr, .. } = set.known.parameters;
    let capacity = capacity.unwrap_or(DEFAULT_CAPACITY);
    let digits = (2.0 - rate.log10().floor()).clamp(1.0, 9.0) as usize;
    invalid_parameter(format!("filter set {} holds more than its capacity of {capacity}", set.quoted_name()))
        .detail(format!(
            "Its false positive rate is now about {rate:.digits$}, not {fpr}: that share of the new elements is taken for old ones.",
        ))
        .hint("Make a set with a larger capacity, and use both for a while. Capacity costs only a few bits an element.")
}
