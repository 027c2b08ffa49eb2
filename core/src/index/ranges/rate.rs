//! The rates of the levels, and how many pages a tile needs to keep them.
//!
//! # What is promised
//!
//! What a lookup of an absent key costs is the number of heap pages that it reads unnecessarily, so
//! a share of ranges that stays the same is the wrong promise for a table that grows. Unless a
//! share was chosen, the promise follows the table:
//!
//! ```text
//! pages of the table       promised rate of their ranges                        pages read unnecessarily
//! at the build, at first   1 / max(pages at the build, 65,536)                  1
//! later, from 2^i on       0.08 / 2^i                                           0.08 for each doubling
//! ```
//!
//! Tiles can't be made sharper later, so what the later ones promise adds up, to 1.3 more pages at
//! the 2^32 pages that a table can have.
//!
//! # Levels
//!
//! A range is read unnecessarily if its slots on all levels are wrong, which are independent. So
//! the rates of the levels multiply, and each level has a share of the logarithm ([`share`]):
//!
//! ```text
//! others read for a present key        127 · f0: the other slots of its own tile, which no level above can rule out
//! index pages, absent key              1 + tiles without a slot above + tiles of level 1 · f2
//!                                        + tiles of level 0 · f2 · f1
//! ```
//!
//! A bit lowers the product of the rates by about as much on any level. More bits above save index
//! pages; more bits on level 0 save heap pages around present keys. The more levels, the fewer bits
//! in all, since blocks of low rates waste more: a rate of 0.0001 takes 22.0 bits per element on
//! one level, 19.9 on two and 19.4 on three.

use super::directory::Options;
use super::shape::{Level, MAX_HASHES, TileShape};
use crate::index::page::PageSize;
use crate::sizing::{greatest_load, least_number, rate};

pub const MIN_FPR: f64 = 1e-7;
/// The largest of an index with a key for each row.
pub const MAX_FPR: f64 = 0.1;
/// The largest of one with many keys for each row: a lookup asks for several of them.
pub const MAX_PART_FPR: f64 = 0.5;
/// Heap pages that a lookup may read unnecessarily for each doubling of the table since the build.
const PAGES_GROWN: f64 = 0.08;
/// A smaller table is taken for one of so many pages, which it may become.
const LEAST_PAGES: u64 = 1 << 16;
/// The shares of the levels in the logarithm of the rate, from level 0 up, by the highest level.
const SHARES: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.575, 0.425, 0.0], [0.4, 0.3, 0.3]];
/// The share of the bits of one hash that two may need, since they set twice as many, each of which
/// is in the WAL.
const WORTH_A_SECOND: f64 = 0.9;
/// The most pages of a tile: far more than a heap of 2^32 pages needs at these rates.
pub(super) const MAX_TILE_PAGES: u64 = 1 << 24;

/// The rate that slots must keep, and what it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The false positive rate of a slot, as a mean over the slots of a tile.
    pub fpr: f64,
    pub num_hashes: u8,
    /// Bits per element in the limit of many blocks.
    pub bits: f64,
}

impl Options {
    /// The share of ranges, about this one, that a lookup of an absent key may read unnecessarily.
    pub fn promised(&self, range: u64) -> f64 {
        let page = range * u64::from(self.pages_per_range);
        let built = LEAST_PAGES.max(self.table_pages.into());
        match self.fpr {
            Some(fpr) => fpr,
            None if page < built => 1.0 / built as f64,
            None => PAGES_GROWN / (1u64 << page.ilog2()) as f64,
        }
    }

    /// What slots of a level must keep that have this range, with `top` as the highest level above
    /// it.
    pub(super) fn target(&self, level: Level, top: Level, range: u64) -> Target {
        target(self.size, share(self.promised(range), level, top))
    }
}

/// The rate of a level of an index that promises `fpr`, whose highest level is `top`: the product
/// of all is `fpr`.
pub fn share(fpr: f64, level: Level, top: Level) -> f64 {
    fpr.powf(SHARES[top as usize][level as usize])
}

/// The target whose number of hashes needs the fewest bits for a rate below 1; one hash if a second
/// saves little.
pub fn target(size: PageSize, fpr: f64) -> Target {
    assert!(fpr < 1.0, "a rate of {fpr} needs no bits");
    let mut best = Target { fpr, num_hashes: 1, bits: f64::INFINITY };
    for num_hashes in 1..=MAX_HASHES as u8 {
        let bits = bits_per_element(size, num_hashes, fpr);
        let enough = if num_hashes == 2 { best.bits * WORTH_A_SECOND } else { best.bits };
        if bits > enough {
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

/// This shape with the fewest pages with which a tile keeps its rate, as a mean over columns with
/// such loads.
pub fn with_pages(shape: TileShape, target: Target, loads: &[f64]) -> TileShape {
    let keeps = |pages: u32| mean_rate(TileShape { pages, ..shape }, loads) <= target.fpr;
    let blocks = mean(loads).unwrap_or(0.0) * target.bits / f64::from(shape.size.block_bits());
    let guess = blocks / f64::from(shape.width.blocks_per_page());
    let pages =
        least_number(guess as u64, |pages| pages >= MAX_TILE_PAGES || keeps(pages as u32)) as u32;
    TileShape { pages, ..shape }
}

/// The mean of the rates of columns with these numbers of distinct elements.
pub fn mean_rate(shape: TileShape, loads: &[f64]) -> f64 {
    let mut sorted = loads.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let sum: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|equal| equal.len() as f64 * shape.rate(equal[0]))
        .sum();
    sum / loads.len().max(1) as f64
}

/// The loads that the next tile is sized for: those of columns that look complete. These have at
/// least half the load of the one that is fuller than seven in eight: some are empty or incomplete,
/// and a few hold much more than the others.
pub fn typical(loads: &[f64]) -> Vec<f64> {
    let mut filled: Vec<f64> = loads.iter().copied().filter(|&load| load >= 0.5).collect();
    filled.sort_unstable_by(|a, b| b.total_cmp(a));
    let Some(&reference) = filled.get(filled.len() / 8) else {
        return filled;
    };
    filled.retain(|&load| load >= reference / 2.0);
    filled
}

pub fn mean(loads: &[f64]) -> Option<f64> {
    (!loads.is_empty()).then(|| loads.iter().sum::<f64>() / loads.len() as f64)
}

/// Whether tiles of `before` pages may be used instead of `needed`: neighbouring tiles of a shape
/// are one run.
pub fn may_stay(before: u32, needed: u32) -> bool {
    before >= needed && (before - needed <= needed / 32 || before - needed == 1 && needed >= 6)
}
