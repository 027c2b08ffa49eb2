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
//! the rates of the levels multiply, and each level has a share of the logarithm
//! ([`rate_of_level`]):
//!
//! ```text
//! others read for a present key        127 · f0: the other slots of its own tile, which no level above can rule out
//! index pages, absent key              1 + tiles without a slot above + tiles of level 1 · f2
//!                                        + tiles of level 0 · f2 · f1
//! ```
//!
//! A bit lowers the product of the rates by about as much on any level. More bits above save index
//! pages; more bits on level 0 save heap pages around present keys. The more levels, the fewer bits
//! in all, since blocks of low rates waste more: a rate of 0.0001 takes 22.0 bits per key on one
//! level, 19.9 on two and 19.4 on three.
//!
//! Example: an index with two levels promises 0.0001. Level 0 then keeps 0.0001^0.575 = 0.005, and
//! level 1 keeps 0.0001^0.425 = 0.02.
//!
//! # Pages of a tile
//!
//! A tile is sized by the number of distinct keys of its columns, as far as it is known. It gets
//! the fewest pages with which the mean of their rates is the rate of its level ([`sized_for`]).

use super::directory::Options;
use super::shape::{Level, MAX_HASHES, TileShape};
use crate::index::page::PageSize;
use crate::memory::List;
use crate::sizing::{greatest_load, least_number, rate};

/// The lowest rate that can be chosen.
pub const MIN_FPR: f64 = 1e-7;
/// The highest rate that can be chosen for an index with one key for each row.
pub const MAX_FPR_ONE_KEY: f64 = 0.1;
/// The highest rate that can be chosen for an index with many keys for each row: a lookup asks for
/// several of them.
pub const MAX_FPR_MANY_KEYS: f64 = 0.5;
/// Heap pages that a lookup may read unnecessarily for each doubling of the table since the build.
const PAGES_PER_DOUBLING: f64 = 0.08;
/// A smaller table is taken for one of so many pages, which it may become.
const LEAST_TABLE_PAGES: u64 = 1 << 16;
/// The share of each level in the logarithm of the rate, from level 0 up: a row for each highest
/// level. The example `index_figures` shows the pages and bits that they lead to.
const SHARES: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.575, 0.425, 0.0], [0.4, 0.3, 0.3]];
/// Two hashes are only used if they need at most this share of the bits that one needs. They set
/// twice as many bits, each of which is in the WAL.
const MOST_BITS_OF_TWO_HASHES: f64 = 0.9;
/// The most pages of a tile: far more than a heap of 2^32 pages needs at these rates.
pub(super) const MAX_TILE_PAGES: u64 = 1 << 24;
/// A column with a smaller estimate has no keys.
const LEAST_KEYS: f64 = 0.5;

/// The false positive rate that the slots of a tile must keep, and what it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotTarget {
    /// The false positive rate of a slot, as a mean over the slots of a tile.
    pub fpr: f64,
    /// Hashes per key (k) that need the fewest bits.
    pub num_hashes: u8,
    /// Bits per key, in the limit of many blocks.
    pub bits_per_key: f64,
}

impl Options {
    /// Returns the false positive rate that the index promises for ranges of the table near this
    /// one: the share of them, from 0 to 1, that a lookup reports of a key that no row of the table
    /// has.
    ///
    /// If the user chose a rate, it is that. Otherwise it falls as the table grows, so that a
    /// lookup reads about one page of the table unnecessarily. It is 1 / n for the n pages that the
    /// table had when the index was built (at least 65,536). Each doubling of the table after that
    /// may add 0.08 unnecessary pages: these are shared by as many pages as the table had before
    /// the doubling.
    ///
    /// Example: a table had 1,000,000 pages at the build. The promised rate is 1 / 1,000,000 for
    /// each of these. The pages from 2,097,152 (2^21) to twice as many are one doubling, and have
    /// the rate 0.08 / 2,097,152 each.
    pub fn promised_fpr(&self, range: u64) -> f64 {
        if let Some(chosen_fpr) = self.fpr {
            return chosen_fpr;
        }

        let page = range * u64::from(self.pages_per_range);
        let pages_at_build = LEAST_TABLE_PAGES.max(self.table_pages.into());
        if page < pages_at_build {
            1.0 / pages_at_build as f64
        } else {
            let pages_before_doubling = 1u64 << page.ilog2();
            PAGES_PER_DOUBLING / pages_before_doubling as f64
        }
    }

    /// Returns what the slots of a level must keep that have the keys of this range, if
    /// `highest_level` is the highest level that has bits of these keys.
    pub(super) fn target(&self, level: Level, highest_level: Level, range: u64) -> SlotTarget {
        let promised = self.promised_fpr(range);
        SlotTarget::for_rate(self.size, rate_of_level(promised, level, highest_level))
    }
}

/// Returns the rate of a level if all levels together must have the rate `fpr`, which is the
/// product of theirs. A level above the highest one has rate 1.
pub fn rate_of_level(fpr: f64, level: Level, highest_level: Level) -> f64 {
    fpr.powf(SHARES[highest_level as usize][level as usize])
}

impl SlotTarget {
    /// Returns how to reach a false positive rate below 1 with the fewest bits: the number of
    /// hashes per key (k), and how many bits it needs for each key. `size` is that of the pages of
    /// the index.
    ///
    /// One hash is chosen where two need hardly fewer bits, as each hash of a key is a bit to
    /// write.
    pub fn for_rate(size: PageSize, fpr: f64) -> SlotTarget {
        assert!(fpr < 1.0, "a rate of {fpr} needs no bits");
        let mut best = SlotTarget { fpr, num_hashes: 1, bits_per_key: f64::INFINITY };
        for num_hashes in 1..=MAX_HASHES as u8 {
            let bits_per_key = least_bits_per_key(size, num_hashes, fpr);
            let most_bits_per_key = if num_hashes == 2 {
                best.bits_per_key * MOST_BITS_OF_TWO_HASHES
            } else {
                best.bits_per_key
            };
            // Bits fall with the number of hashes up to the best one, and then grow.
            if bits_per_key > most_bits_per_key {
                break;
            }
            best = SlotTarget { fpr, num_hashes, bits_per_key };
        }
        best
    }
}

/// Returns how many bits per key a filter needs to have the false positive rate `fpr` with
/// `num_hashes` hashes per key, if it has many blocks. `size` is the size of a page, by which a
/// block has its number of bits.
fn least_bits_per_key(size: PageSize, num_hashes: u8, fpr: f64) -> f64 {
    const PRECISION: f64 = 1e-9;
    let block_bits = size.block_bits();
    let k = f64::from(num_hashes);

    // The textbook formula for a filter of one block, fpr = (1 - e^(-k · keys / bits))^k, solved
    // for the keys: bits · -ln(1 - fpr^(1/k)) / k. Several blocks are filled unevenly, and have
    // room for fewer keys on average.
    let share_of_set_bits = (fpr.ln() / k).exp();
    let most_keys_per_block = f64::from(block_bits) * -(-share_of_set_bits).ln_1p() / k;
    let keys_per_block = greatest_load(most_keys_per_block, PRECISION, |keys| {
        rate::at_load_in_blocks(block_bits, u32::from(num_hashes), keys) <= fpr
    });
    f64::from(block_bits) / keys_per_block
}

/// Returns this shape of a tile with the fewest pages with which it keeps the false positive rate
/// `target.fpr`, up to `MAX_TILE_PAGES`; the number of pages that `shape` has doesn't matter. A
/// tile consists of columns, each of which is a Bloom filter, and its rate is the mean of their
/// rates. `keys_per_column` says how many keys they have.
///
/// Example: 128 columns with 500 keys each must keep a rate of 0.005, which takes 7 hashes and
/// 11.54 bits per key. So a column needs 5,770 bits, or 11.3 blocks of 510 bits. Each page has one
/// block of each column, so the search begins with 11 pages. These give a rate of 0.0056, and 12
/// pages one of 0.0037: the tile gets 12.
pub fn sized_for(shape: TileShape, target: SlotTarget, keys_per_column: &[f64]) -> TileShape {
    let keeps_rate = |pages: u32| {
        let sized = TileShape { pages, ..shape };
        mean_rate(sized, keys_per_column) <= target.fpr
    };

    // The search begins with the number of pages that would be right if there were many blocks, and
    // goes up or down from there.
    let mean_keys = mean(keys_per_column).unwrap_or(0.0);
    let likely_blocks = mean_keys * target.bits_per_key / f64::from(shape.size.block_bits());
    let likely_pages = likely_blocks / f64::from(shape.width.blocks_per_page());
    let pages = least_number(likely_pages as u64, |pages| {
        pages >= MAX_TILE_PAGES || keeps_rate(pages as u32)
    });
    TileShape { pages: pages as u32, ..shape }
}

/// Returns the mean of the false positive rates of columns with these numbers of distinct keys.
pub fn mean_rate(shape: TileShape, keys_per_column: &[f64]) -> f64 {
    let mut sorted = List::from(keys_per_column);
    sorted.sort_unstable_by(f64::total_cmp);
    // Rates take long to compute, and many columns have the same number of keys.
    let sum: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|equal| equal.len() as f64 * shape.rate(equal[0]))
        .sum();
    sum / keys_per_column.len().max(1) as f64
}

/// Returns the numbers of keys of those columns that look complete, in descending order: the next
/// tile is sized for them. The others are empty, or belong to ranges that are not full yet.
///
/// A column looks complete if it has at least half the keys of a reference column, which is fuller
/// than seven columns in eight. The fullest one is no good reference, since a few ranges may have
/// much more keys than all others.
///
/// Example: ten columns have 900, 120, 110, six times 100, and 40 keys, and others have none. Of
/// the ten, the column at place 10 / 8 = 1, counted from 0, is the reference. It has 120 keys, so
/// that all columns with 60 keys or more look complete, and those with 40 and none don't.
pub fn complete_columns(keys_per_column: &[f64]) -> List<f64> {
    let mut filled: List<f64> = keys_per_column
        .iter()
        .copied()
        .filter(|&keys| keys >= LEAST_KEYS)
        .collect();
    filled.sort_unstable_by(|a, b| b.total_cmp(a));
    let Some(&reference) = filled.get(filled.len() / 8) else {
        return filled;
    };
    filled.retain(|&keys| keys >= reference / 2.0);
    filled
}

/// Returns the mean of some numbers; `None` if there are none.
pub fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// Returns whether new tiles may have as many pages as the tile before them, though `needed` pages
/// would suffice. Neighbouring tiles of one shape are stored as one record, so that some unneeded
/// pages are worth it: a 32nd, or one page in seven.
pub fn may_keep_pages(pages_of_last: u32, needed: u32) -> bool {
    let Some(unneeded) = pages_of_last.checked_sub(needed) else {
        return false;
    };
    unneeded <= needed / 32 || unneeded == 1 && needed >= 6
}
