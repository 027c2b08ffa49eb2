//! Estimates from the rows of a batch how full a set is. A full generation of a set that grows or forgets is to end;
//! for another overfull set there is a warning or an error.
//!
//! A set is overfull if the mean rate of some shards, less six standard errors, is higher than that of a set at its
//! capacity, beyond random variation.

use super::list::List;
use super::rates::{Rates, SAMPLE, at_least, sample};
use super::table::{Growth, Set};
use crate::error::invalid_parameter;
use crate::pg::call::error::{Error, Result, warn};
use crate::settings::{self, Overfill};

/// How many elements a session adds before it samples other rows than those of its batches again; fewer in small sets.
const SELDOM: u64 = 64;
/// A generation may be full if the shards of the batch hold this share of their capacity.
const NEARLY_FULL: f64 = 0.85;

/// Checks how full the set will be once filters with these rates are stored, to which `added` elements were added.
///
/// # Errors
/// 22023 for an overfull set when `pg_bloom.overfill` is `error`.
pub fn check(set: &Set, list: &List, of_batch: Rates, added: u64) -> Result<()> {
    match &set.known.growth {
        None => check_capacity(set, list, of_batch, added),
        Some(growth) => check_generation(set, growth, list, of_batch, added),
    }
}

/// Warns about an overfull set, once in a session, or fails.
fn check_capacity(set: &Set, list: &List, of_batch: Rates, added: u64) -> Result<()> {
    let (overfill, watch) = (settings::overfill(), set.watch());
    if overfill == Overfill::Ignore || (overfill == Overfill::Warn && watch.warned.get()) {
        return Ok(());
    }
    let (made_for, newest) = (set.parameters(), list.newest());
    let capacity = made_for.capacity.unwrap_or(0);
    let is_due = is_due(set, added);
    let mut rates = of_batch;
    if rates.mean() <= made_for.fpr {
        return Ok(());
    }
    if rates.shards < SAMPLE.min(newest.shards) {
        if !is_due {
            return Ok(());
        }
        rates = sample(set, list, newest)?;
    }
    if !rates.is_overfull(newest.shards, capacity, made_for.fpr) {
        watch.until_sample.set(SELDOM.min(capacity / 256));
        return Ok(());
    }
    watch.until_sample.set(0);
    complain(set, describe(set, capacity, rates.mean()))
}

/// Remembers whether the newest generation is full. The set is overfull if that generation can't end; a set that
/// forgets and has a capacity may be overfull before.
fn check_generation(set: &Set, growth: &Growth, list: &List, of_batch: Rates, added: u64) -> Result<()> {
    let (watch, newest) = (set.watch(), list.newest());
    let (is_due, made_for) = (is_due(set, added), growth.takes[set.level(growth, newest)]);
    let mut rates = of_batch;
    let may_be_overfull = set.may_hold_too_much(growth, list);
    if !may_be_overfull && rates.elements_of_all(newest) < NEARLY_FULL * made_for {
        return Ok(());
    }
    if rates.shards < SAMPLE.min(newest.shards) {
        if !is_due {
            return Ok(());
        }
        rates = sample(set, list, newest)?;
    }
    if rates.elements_of_all(newest) >= made_for {
        watch.full.set(Some(newest.number));
    } else {
        watch.until_sample.set((made_for / 256.0) as u64);
    }
    if may_be_overfull {
        let rate = rate_of_all(set, list, rates)?;
        if rate > set.parameters().fpr {
            watch.until_sample.set(0);
            return complain(set, describe(set, set.parameters().capacity.unwrap_or(0), rate));
        }
    }
    if watch.full.get() != Some(newest.number) || set.may_end_early(growth, list) {
        return Ok(());
    }
    let capacity = set.parameters().capacity.unwrap_or_else(|| growth.plan.capacities().iter().sum());
    let full = f64::from(growth.plan.most_full() - 1) * growth.plan.fpr();
    complain(set, describe(set, capacity, full + rates.mean()))
}

/// A lower bound for the sum of the rates of all generations, from a sample of each; that of the newest is given.
fn rate_of_all(set: &Set, list: &List, newest: Rates) -> Result<f64> {
    let mut all = vec![(newest, list.newest().shards)];
    for generation in list.generations.iter().rev().skip(1) {
        all.push((sample(set, list, generation)?, generation.shards));
    }
    Ok(at_least(all))
}

/// Whether enough elements were added since the session last sampled other rows. Counts those added now.
fn is_due(set: &Set, added: u64) -> bool {
    let until = &set.watch().until_sample;
    let is_due = until.get() == 0;
    until.set(until.get().saturating_sub(added));
    is_due
}

/// Warns once in a session, or fails, by `pg_bloom.overfill`.
fn complain(set: &Set, what: Error) -> Result<()> {
    match settings::overfill() {
        Overfill::Error => return Err(what),
        Overfill::Warn if !set.watch().warned.replace(true) => warn(what),
        _ => {}
    }
    Ok(())
}

fn describe(set: &Set, capacity: u64, rate: f64) -> Error {
    let message = format!("filter set {} holds more than its capacity of {capacity}", set.quoted_name());
    let fpr = set.parameters().fpr;
    invalid_parameter(message)
        .detail(format!(
            "Its false positive rate is now about {rate:.0$}, not {fpr}: that share of the new elements is taken for old ones.",
            (2.0 - rate.log10().floor()).clamp(1.0, 9.0) as usize,
        ))
        .hint("Make a larger set, and use both for a while. Empty shards are small, so capacity is cheap.")
}
