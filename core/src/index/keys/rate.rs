//! The rates of the levels, and how many pages a tile needs to keep them.
//!
//! For an absent key, a range without level 1 is read unnecessarily at its own rate; one below level 1 only if its
//! tile's slot there answers wrongly as well, which is independent. So
//!
//! ```text
//! alone          fpr
//! level 1        f1 = fpr^0.42
//! level 0        f0 = fpr / f1                                                  f0 · f1 = fpr
//!
//! ranges read for an absent key        (ranges alone + ranges below · f1 · f0 / fpr) · fpr
//! others read for a present key        127 · f0: the other slots of its own tile, which level 1 can't rule out
//! index pages, absent key              1 + tiles alone + tiles of level 1 + tiles below · f1
//! ```
//!
//! A bit lowers the product of the rates by about as much on either level. More bits on level 1 save index pages; more
//! bits on level 0 save heap pages around present keys. The exponent gives ten and fourteen bits per element at the
//! default rate, and the same proportion at others. By exact occupancy of blocks of 510 bits, in the limit of many
//! blocks:
//!
//! | fpr | alone: k, bits | level 1: rate, k, bits | level 0: rate, k, bits | both, bits | beside a present key |
//! |---:|---:|---:|---:|---:|---:|
//! | 0.1 | 3, 4.8 | 3.80e-1, 2, 2.1 | 2.63e-1, 2, 2.8 | 4.9 | 33.40 |
//! | 0.01 | 6, 9.9 | 1.45e-1, 3, 4.0 | 6.92e-2, 4, 5.6 | 9.7 | 8.79 |
//! | 0.001 | 9, 15.5 | 5.50e-2, 4, 6.1 | 1.82e-2, 6, 8.6 | 14.7 | 2.31 |
//! | 0.0001 | 12, 22.0 | 2.09e-2, 5, 8.2 | 4.79e-3, 7, 11.6 | 19.9 | 0.61 |
//! | 0.00002 | 13, 27.3 | 1.06e-2, 6, 9.8 | 1.88e-3, 9, 13.9 | 23.7 | 0.24 |
//! | 0.00001 | 14, 29.7 | 7.94e-3, 7, 10.4 | 1.26e-3, 9, 14.9 | 25.4 | 0.16 |
//! | 0.000001 | 16, 38.9 | 3.02e-3, 8, 12.8 | 3.31e-4, 11, 18.6 | 31.3 | 0.04 |
//! | 0.0000001 | 18, 50.0 | 1.15e-3, 9, 15.2 | 8.71e-5, 12, 22.5 | 37.6 | 0.01 |
//!
//! A tile gets the fewest pages for which the mean of its slots' exact rates is at most the promised rate: a slot that
//! is fuller than the others counts with its own rate.

use super::level::Level;
use super::level::MAX_HASHES;
use super::tile::{MAX_WIDTH, TileShape, Width};
use crate::error::{InvalidParameter, Result};
use crate::index::page::PageSize;
use crate::sizing::rate;
use crate::sizing::search::{first, greatest_load};
use std::cell::Cell;

/// The rate of an index for which none is given.
pub const DEFAULT_FPR: f64 = 0.00002;
/// The smallest rate that an index may have.
pub const MIN_FPR: f64 = 1e-7;
/// The largest of one with a key for each row.
pub const MAX_FPR: f64 = 0.1;
/// The largest of one with many keys for each row: a lookup asks for several of them.
pub const MAX_PART_FPR: f64 = 0.5;
/// The share of level 1 in the logarithm of the rate.
const LEVEL_ONE_SHARE: f64 = 0.42;
/// The most pages of a tile: far more than a heap of 2^32 pages needs at these rates.
const MAX_TILE_PAGES: u64 = 1 << 24;

/// The rate that slots must keep, and what it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The false positive rate of a slot, as a mean over the slots of a tile.
    pub fpr: f64,
    /// Hashes per element (k) that need the fewest bits for it.
    pub num_hashes: u8,
    /// Bits per element in the limit of many blocks.
    pub bits: f64,
}

/// The targets of an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Ranges whose tile has no slot in level 1.
    pub alone: Target,
    /// Ranges whose tile has one.
    pub below: Target,
    /// Slots of level 1.
    pub above: Target,
}

/// Checks the rate of an index.
///
/// # Errors
/// [`InvalidParameter::IndexRate`] unless it is from [`MIN_FPR`] to [`MAX_PART_FPR`].
pub fn check_fpr(fpr: f64) -> Result<()> {
    if (MIN_FPR..=MAX_PART_FPR).contains(&fpr) {
        return Ok(());
    }
    Err(InvalidParameter::IndexRate { fpr, least: MIN_FPR, greatest: MAX_PART_FPR }.into())
}

/// The rates of level 0, below level 1, and of level 1 in an index that promises `fpr`: their product is that.
pub fn split(fpr: f64) -> (f64, f64) {
    let above = fpr.powf(LEVEL_ONE_SHARE);
    (fpr / above, above)
}

impl Rates {
    /// The rates of an index that promises `fpr`.
    ///
    /// # Errors
    /// Those of [`check_fpr`].
    pub fn of(size: PageSize, fpr: f64) -> Result<Rates> {
        thread_local! {
            /// The last result, which is usually the next one as well: most indexes have the same rate.
            static LAST: Cell<Option<(PageSize, u64, Rates)>> = const { Cell::new(None) };
        }
        check_fpr(fpr)?;
        if let Some((s, f, rates)) = LAST.get()
            && (s, f) == (size, fpr.to_bits())
        {
            return Ok(rates);
        }
        let (below, above) = split(fpr);
        let rates = Rates { alone: target(size, fpr), below: target(size, below), above: target(size, above) };
        LAST.set(Some((size, fpr.to_bits(), rates)));
        Ok(rates)
    }

    /// The target of a tile, given its level and whether it has a slot in level 1.
    pub const fn target(&self, level: Level, covered: bool) -> Target {
        match (level, covered) {
            (Level::One, _) => self.above,
            (Level::Zero, true) => self.below,
            (Level::Zero, false) => self.alone,
        }
    }

    /// How many other ranges are read for a present key whose tile has a slot in level 1.
    pub fn beside_present(&self) -> f64 {
        f64::from(MAX_WIDTH - 1) * self.below.fpr
    }
}

/// The target with the number of hashes that needs the fewest bits for a rate.
fn target(size: PageSize, fpr: f64) -> Target {
    let mut best = Target { fpr, num_hashes: 1, bits: f64::INFINITY };
    for num_hashes in 1..=MAX_HASHES as u8 {
        let bits = bits_per_element(size, num_hashes, fpr);
        if bits > best.bits {
            break;
        }
        best = Target { fpr, num_hashes, bits };
    }
    best
}

/// Bits per element at which `num_hashes` hashes give `fpr`, in the limit of many blocks.
fn bits_per_element(size: PageSize, num_hashes: u8, fpr: f64) -> f64 {
    let rate = |load: f64| rate::at_load_in_blocks(size.block_bits(), u32::from(num_hashes), load);
    // Elements per block, at most what the textbook formula gives.
    let k = f64::from(num_hashes);
    let textbook = f64::from(size.block_bits()) * -(-(fpr.ln() / k).exp()).ln_1p() / k;
    f64::from(size.block_bits()) / greatest_load(textbook, 1e-9, |load| rate(load) <= fpr)
}

/// The fewest pages with which a tile of this width keeps its rate, as a mean over slots with these numbers of distinct
/// elements.
pub fn pages_for(size: PageSize, level: Level, width: Width, target: Target, loads: &[f64]) -> u32 {
    let keeps = |pages: u32| {
        let shape = TileShape { level, width, num_hashes: target.num_hashes, pages };
        mean_rate(shape, size, loads) <= target.fpr
    };
    let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
    let blocks = mean * target.bits / f64::from(size.block_bits());
    let guess = blocks / f64::from(width.blocks_per_page());
    first(guess as u64, |pages| pages >= MAX_TILE_PAGES || keeps(pages as u32)) as u32
}

/// The mean of the rates of slots with these numbers of distinct elements.
pub fn mean_rate(shape: TileShape, size: PageSize, loads: &[f64]) -> f64 {
    let mut sorted = loads.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let sum: f64 = sorted.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64 * shape.rate(size, equal[0])).sum();
    sum / loads.len().max(1) as f64
}

/// The loads that the next tile is sized for: those of slots that look complete. Slots may be empty or incomplete, and
/// a few may hold much more than the others.
///
/// A slot looks complete if it has at least half the load of the one that is fuller than seven in eight.
pub fn typical(loads: &[f64]) -> Vec<f64> {
    let mut filled: Vec<f64> = loads.iter().copied().filter(|&load| load >= 0.5).collect();
    filled.sort_unstable_by(|a, b| b.total_cmp(a));
    let Some(&reference) = filled.get(filled.len() / 8) else { return filled };
    filled.retain(|&load| load >= reference / 2.0);
    filled
}

/// The mean, if there are any.
pub fn mean(loads: &[f64]) -> Option<f64> {
    (!loads.is_empty()).then(|| loads.iter().sum::<f64>() / loads.len() as f64)
}

/// Whether tiles of `before` pages may be used instead of `needed`: neighbouring tiles of the same shape are one run of
/// the directory.
pub fn may_stay(before: u32, needed: u32) -> bool {
    before >= needed && (before - needed <= needed / 12 || before - needed == 1 && needed >= 6)
}
