//! How full a set is, as far as the rows say that a call has at hand, and the warning when it is overfull.
//!
//! Shards are alike, so the mean rate of some of them is that of all, within its standard error. A set is overfull if
//! that mean less six standard errors is still above what chance explains at its capacity.

use super::table::Set;
use crate::error::invalid_parameter;
use crate::pg::call::error::{Error, Result, warn};
use crate::pg::sql::Sees;
use crate::settings::{self, Overfill};
use pg_bloom_core::filter::{estimate, overfull};
use pg_bloom_core::{Header, Layout, View};

/// With the rows of fewer shards, others are read too.
const SAMPLE: u32 = 50;
/// Elements that a session adds before it reads such others again; a smaller share of the capacity in small sets.
const SELDOM: u64 = 64;

/// What some of the filters of a set say together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Estimated distinct elements.
    pub elements: f64,
    shards: u32,
    sum: f64,
    squares: f64,
    blocks: u64,
    num_hashes: u32,
}

impl Rates {
    /// Adds a shard's filter.
    pub fn add(&mut self, filter: &View<'_>) {
        let rate = estimate::current_fpr(filter);
        self.elements += estimate::cardinality(filter);
        self.shards += 1;
        self.sum += rate;
        self.squares += rate * rate;
        (self.blocks, self.num_hashes) = (filter.header.blocks, filter.header.num_hashes);
    }

    /// The mean rate.
    pub fn mean(&self) -> f64 {
        self.sum / f64::from(self.shards.max(1))
    }

    /// The standard error of the mean, as that of all shards.
    fn standard_error(&self, shards: u32) -> f64 {
        let n = f64::from(self.shards);
        let variance = (self.squares / n - self.mean().powi(2)).max(0.0);
        (variance / n * (1.0 - n / f64::from(shards)).max(0.0)).sqrt()
    }

    /// Whether the set's rate is above its promise, beyond random variation.
    pub fn is_overfull(&self, set: &Set) -> bool {
        let made_for = set.parameters();
        let blocks = self.blocks * u64::from(made_for.shards);
        let one_filter = Header {
            num_hashes: self.num_hashes,
            blocks,
            base_blocks: blocks,
            ..Header::unsized_(Layout::Blocked, made_for.fpr)
        };
        let at_least = self.mean() - 6.0 * self.standard_error(made_for.shards);
        overfull::is_overfull(&one_filter, made_for.capacity, at_least)
    }
}

/// Warns, once in a session, about a set that is overfull once these filters are stored, to which `added` elements were
/// added; or fails.
///
/// # Errors
/// 22023 when `pg_bloom.overfill` is `error`.
pub fn check(set: &Set, of_batch: Rates, added: u64) -> Result<()> {
    let (overfill, watch) = (settings::overfill(), set.watch());
    if overfill == Overfill::Ignore || (overfill == Overfill::Warn && watch.warned.get()) {
        return Ok(());
    }
    let made_for = set.parameters();
    let is_due = watch.until_sample.get() == 0;
    watch.until_sample.set(watch.until_sample.get().saturating_sub(added));
    let mut rates = of_batch;
    if rates.mean() <= made_for.fpr {
        return Ok(());
    }
    if rates.shards < SAMPLE.min(made_for.shards) {
        if !is_due {
            return Ok(());
        }
        rates = sample(set)?;
    }
    if !rates.is_overfull(set) {
        watch.until_sample.set(SELDOM.min(made_for.capacity / 256));
        return Ok(());
    }
    watch.until_sample.set(0);
    if overfill == Overfill::Error {
        return Err(describe(set, &rates));
    }
    watch.warned.set(true);
    warn(describe(set, &rates));
    Ok(())
}

/// Reads some rows that are evenly distributed over the set.
fn sample(set: &Set) -> Result<Rates> {
    let all = set.parameters().shards;
    let some = SAMPLE.min(all);
    let shards: Vec<u32> = (0..some).map(|i| (u64::from(i) * u64::from(all) / u64::from(some)) as u32).collect();
    let mut rates = Rates::default();
    set.read(&shards, Sees::Now, |_, filter| {
        rates.add(&View::parse_trusted(filter.bytes())?);
        Ok(())
    })?;
    Ok(rates)
}

fn describe(set: &Set, rates: &Rates) -> Error {
    let made_for = set.parameters();
    let message = format!("filter set {} holds more than its capacity of {}", set.quoted_name(), made_for.capacity);
    invalid_parameter(message)
        .detail(format!(
            "Its false positive rate is now about {:.1$}, not {2}: that share of the new elements is taken for old ones.",
            rates.mean(),
            (2.0 - rates.mean().log10().floor()).clamp(1.0, 9.0) as usize,
            made_for.fpr
        ))
        .hint("Make a larger set, and use both for a while. Empty shards are small, so capacity is cheap.")
}
