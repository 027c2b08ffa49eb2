//! Estimates for a whole set from some of its filters. Shards are alike, so the mean rate of some is that of all,
//! within its standard error.

use super::list::{Generation, List};
use super::rows::{Row, Wanted};
use super::table::Set;
use crate::pg::call::error::Result;
use crate::pg::sql::Sees;
use crate::pg::value::time::Timestamp;
use pg_bloom_core::filter::{estimate, overfull};
use pg_bloom_core::{Header, Layout, View};

/// Rows of a sample: enough to know to a few percent how full a set is.
pub const SAMPLE: u32 = 50;

/// Sums over some of the filters of a set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Estimated distinct elements.
    pub elements: f64,
    /// How many filters these are.
    pub shards: u32,
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

    /// Adds the filter of a row; it counts as empty if its elements are forgotten.
    ///
    /// # Errors
    /// XX001 for a damaged filter.
    pub fn add_row(
        &mut self,
        set: &Set,
        list: &List,
        wanted: &Wanted,
        row: &Row<'_>,
        cutoff: &mut Option<Timestamp>,
    ) -> Result<()> {
        if set.is_over(wanted, row, list, cutoff) {
            self.shards += 1;
        } else {
            self.add(&View::parse_trusted(row.filter.bytes())?);
        }
        Ok(())
    }

    /// Estimated distinct elements of the generation of which these are some filters.
    pub fn elements_of_all(&self, generation: &Generation) -> f64 {
        self.elements / f64::from(self.shards.max(1)) * f64::from(generation.shards)
    }

    /// The mean rate.
    pub fn mean(&self) -> f64 {
        self.sum / f64::from(self.shards.max(1))
    }

    /// The standard error of the mean as an estimate for all `shards` shards.
    pub fn standard_error(&self, shards: u32) -> f64 {
        let n = f64::from(self.shards);
        let variance = (self.squares / n - self.mean().powi(2)).max(0.0);
        (variance / n * (1.0 - n / f64::from(shards)).max(0.0)).sqrt()
    }

    /// Whether the rate of so many shards is above what one filter of their size has with so many elements, beyond
    /// random variation.
    pub fn is_overfull(&self, shards: u32, capacity: u64, fpr: f64) -> bool {
        let blocks = self.blocks * u64::from(shards);
        let one_filter = Header {
            num_hashes: self.num_hashes,
            blocks,
            base_blocks: blocks,
            ..Header::unsized_(Layout::Blocked, fpr)
        };
        let at_least = self.mean() - 6.0 * self.standard_error(shards);
        overfull::is_overfull(&one_filter, capacity, at_least)
    }
}

/// The sum of the mean rates of several generations, each with its number of shards, less six standard errors.
pub fn at_least(all: impl IntoIterator<Item = (Rates, u32)>) -> f64 {
    let add = |(sum, variance), (rates, shards): (Rates, u32)| {
        let error = if rates.shards > 0 { rates.standard_error(shards) } else { 0.0 };
        (sum + rates.mean(), variance + error * error)
    };
    let (sum, variance) = all.into_iter().fold((0.0, 0.0), add);
    sum - 6.0 * f64::sqrt(variance)
}

/// Reads rows that are evenly distributed over a generation; forgotten ones count as empty. While connected.
///
/// # Errors
/// Those of reading.
pub fn sample(set: &Set, list: &List, generation: &Generation) -> Result<Rates> {
    let (mut rates, mut cutoff) = (Rates::default(), None);
    // Another session may have dropped the generation in the meantime.
    let still = |list: &List| list.generations.contains(generation);
    set.read(
        Sees::Now,
        |list| if still(list) { Wanted::sample(generation, SAMPLE) } else { Vec::new() },
        |wanted, row| rates.add_row(set, list, wanted, row, &mut cutoff),
    )?;
    Ok(rates)
}
