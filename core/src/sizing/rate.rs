//! The exact false positive rate of a filter, by occupancy.
//!
//! The textbook formula (fill^k at the mean fill) is 1 to 7 % too low, since the rate of filters
//! and blocks with more than the mean fill exceeds it by more than the rate of the others falls
//! short of it. So:
//!
//! | layout | rate of `n` elements in `B` blocks |
//! |---|---|
//! | blocked | mean over J ~ Binomial(n, 1/B) of F(k, J) = E[(X/512)^k], X = cells hit by k·J throws into 512 |
//! | parquet | mean over J ~ Binomial(n, 1/B) of (1 - (31/32)^J)^8 |
//! | classic | E[(X/m)^k], X = cells hit by k·n throws into m |
//!
//! F comes from the occupancy chain: a throw hits a new cell with probability (512 - x)/512 when x
//! are hit (Feller, An Introduction to Probability Theory, vol. 1, IV.2). For more than 1,024 cells
//! `classic` uses the mean and variance of X, which is exact to the second order of 1/m.
//!
//! [`at_load`] is the same with Poisson in place of Binomial: the limit of many blocks, from which
//! sizes start.
//!
//! Bits are called *cells* here, and setting one of an element's k bits is a *throw*: each of an
//! element's throws hits one cell, and may hit one that was hit before.
//!
//! # The share of set bits of a large filter
//!
//! `fill_moments` returns its mean and its variance. With m bits and a = throws/m, a bit stays
//! clear with probability q = (1 - 1/m)^throws. So q is the mean share of clear bits, and 1 - q
//! that of set bits. Both shares have the same variance.
//!
//! The square of the share of clear bits is the probability that two bits drawn at random are both
//! clear. In one of m draws they are the same bit, which is clear with probability q. Two different
//! bits are clear with probability (1 - 2/m)^throws, about q² (1 - a/m). So, up to terms of 1/m²:
//!
//! ```text
//! mean of the square     q/m + (1 - 1/m) · q² (1 - a/m)  =  q² + (q - q² - a q²)/m
//! square of the mean     q²
//! variance               their difference: q (1 - (1 + a) q)/m
//! ```
//!
//! # How much the rates of filters vary
//!
//! `rate_moments` returns what decides this, for filters of many blocks that all have the same
//! number of elements. A block has J elements, J ~ Poisson(λ), and a rate Y, which depends on J and
//! on the hashes of the elements. If one block has more elements than λ, others have fewer. So the
//! part of Y that is linear in J cancels out over the filter, and what varies is only the distance
//! of Y from the regression line of Y on J (L. Holst, "Two conditional limit theorems with
//! applications", Annals of Statistics 7, 1979):
//!
//! ```text
//! line(j)   E[Y] + slope · (j - λ)     slope = Cov(Y, J) / Var(J)     Var(J) = λ
//! moments   E[(Y - line(J))²]  and  E[(Y - line(J))³]
//! ```

use crate::layout::{Layout, Shape};
use crate::memory::List;
use std::cell::RefCell;
use std::iter;

/// Bits of a block of the layout `blocked`.
const BLOCKED_BITS: u32 = 512;
/// Bits of a word of the layout `parquet`, in which an element sets one bit.
const PARQUET_WORD_BITS: u32 = 32;
/// Words of a block of the layout `parquet`.
const PARQUET_WORDS: i32 = 8;
/// Up to this number of bits, the rate of a `classic` filter is computed by the occupancy chain.
const MOST_CELLS_OF_CHAIN: u64 = 1024;
/// Below this number of throws per cell, nearly every hit cell was hit once.
const SPARSE_LOAD: f64 = 1e-5;
/// Above this number of throws per cell, fewer than one cell in 10^17 is not hit.
const FULL_LOAD: f64 = 40.0;
/// Terms of a mean whose weight is below this share of the largest weight are left out. A sum of
/// floats doesn't change by them.
const NEGLIGIBLE_WEIGHT: f64 = 1e-22;
/// Probabilities below this are taken for 0. No sum of floats changes by them.
const NEGLIGIBLE_PROBABILITY: f64 = 1e-40;

/// Returns the expected false positive rate of a filter of this shape with `elements` distinct
/// elements: the probability, from 0 to 1, that an element that isn't in it seems to be. Which bits
/// are set depends on the hashes of the elements, so this is the mean over all sets of so many
/// elements.
pub fn expected(shape: Shape, elements: f64) -> f64 {
    let Shape { layout, num_hashes, blocks } = shape;
    match layout {
        Layout::Blocked => expected_in_blocks(BLOCKED_BITS, num_hashes, blocks, elements),
        _ if elements <= 0.0 => 0.0,
        _ if is_full(shape, elements) => 1.0,
        // Sums of many terms may be a little above one by rounding.
        Layout::Classic => classic_rate(num_hashes, blocks, elements).min(1.0),
        Layout::Parquet => {
            // Each element is in this block with the same probability as in any other.
            let share_of_block = 1.0 / blocks as f64;
            binomial_mean(elements, share_of_block, &mut parquet_block_rate).min(1.0)
        }
    }
}

/// Returns whether a filter with this number of elements has practically all bits set.
pub(crate) fn is_full(shape: Shape, elements: f64) -> bool {
    let throws = elements * f64::from(shape.num_hashes);
    let cells = shape.blocks as f64 * shape.layout.block_bits() as f64;
    throws / cells > FULL_LOAD
}

/// Returns the false positive rate of filters with many blocks that have `load` elements per block
/// on average; in `classic`, per bit.
pub fn at_load(layout: Layout, num_hashes: u32, load: f64) -> f64 {
    match layout {
        Layout::Blocked => at_load_in_blocks(BLOCKED_BITS, num_hashes, load),
        Layout::Classic => {
            // A bit is set with probability 1 - e^(-load·k), and an absent element has k of them.
            let fill = -(-load * f64::from(num_hashes)).exp_m1();
            fill.powi(num_hashes as i32)
        }
        Layout::Parquet => poisson_mean(load, &mut parquet_block_rate),
    }
}

/// Returns the expected false positive rate of a filter of `blocks` blocks with `elements` distinct
/// elements: the mean over all sets of so many elements, from 0 to 1. As in layout `blocked`, all
/// bits of an element are in one block; but blocks have `block_bits` bits instead of 512. Each
/// element sets `num_hashes` bits (k), some of which may be the same.
pub fn expected_in_blocks(block_bits: u32, num_hashes: u32, blocks: u64, elements: f64) -> f64 {
    if elements <= 0.0 {
        return 0.0;
    }
    // All bits are set for all practical purposes, if elements set each of them this often.
    let throws = elements * f64::from(num_hashes);
    let cells = blocks as f64 * f64::from(block_bits);
    if throws / cells > FULL_LOAD {
        return 1.0;
    }

    // The number j of elements in a block is binomially distributed.
    let share_of_block = 1.0 / blocks as f64;
    let rate = BlockMoments::with_cached(FillPower::rate(block_bits, num_hashes), |rates| {
        binomial_mean(elements, share_of_block, &mut |j| rates.of_block_with(j))
    });
    // A sum of many terms may be a little above one.
    rate.min(1.0)
}

/// Returns the false positive rate of filters with many blocks that have `load` elements per block
/// on average. As in layout `blocked`, all bits of an element are in one block; but the blocks have
/// `block_bits` bits instead of 512.
pub fn at_load_in_blocks(block_bits: u32, num_hashes: u32, load: f64) -> f64 {
    BlockMoments::with_cached(FillPower::rate(block_bits, num_hashes), |rates| {
        poisson_mean(load, &mut |j| rates.of_block_with(j))
    })
}

/// Moments of the false positive rate of one block, which decide how much the rates of whole
/// filters vary from set to set. For the variance and the third moment, the rate that a straight
/// line predicts from the number of elements in the block is subtracted.
pub(crate) struct RateMoments {
    /// The mean of the rate.
    pub(crate) mean: f64,
    /// The mean square of its distance from the line.
    pub(crate) variance: f64,
    /// The mean cube of its distance from the line.
    pub(crate) third: f64,
}

/// Returns how the false positive rate of one block varies, as far as this makes the rate of the
/// whole filter vary. The filter is of layout `blocked` or `parquet`, and has many blocks, with
/// `load` elements per block on average.
///
/// A block with more elements has a higher rate. But the filter as a whole has a given number of
/// elements, so other blocks have fewer, and this evens out. Therefore a straight line is fitted
/// that predicts the rate of a block from the number of its elements, by linear regression. Only
/// distances from this line count: the module's page has the source.
pub(crate) fn rate_moments(layout: Layout, num_hashes: u32, load: f64) -> RateMoments {
    let rate_with = |elements: usize| BlockRate { layout, num_hashes, elements };

    // The number of elements in a block is Poisson-distributed, so its variance is `load`, too.
    let mean = poisson_mean(load, &mut |elements| rate_with(elements).moment(1));
    let covariance = poisson_mean(load, &mut |elements| {
        rate_with(elements).moment(1) * (elements as f64 - load)
    });
    let slope = covariance / load;
    let predicted = |elements: usize| mean + slope * (elements as f64 - load);

    let variance = poisson_mean(load, &mut |elements| {
        rate_with(elements).second_moment_about(predicted(elements))
    });
    let third = poisson_mean(load, &mut |elements| {
        rate_with(elements).third_moment_about(predicted(elements))
    });

    // Differences of nearly equal floats may be a little below 0.
    RateMoments { mean, variance: variance.max(0.0), third: third.max(0.0) }
}

/// The false positive rate Y of one block of a `blocked` or `parquet` filter that has a given
/// number of elements. Which bits the elements set depends on their hashes, which are random, so Y
/// is a random number.
#[derive(Clone, Copy)]
struct BlockRate {
    layout: Layout,
    num_hashes: u32,
    elements: usize,
}

impl BlockRate {
    /// Returns E[Y^power], the mean of a power of the rate over all sets of so many elements.
    fn moment(self, power: u32) -> f64 {
        if self.layout == Layout::Parquet {
            // An element sets one bit in each of eight words, and an absent one is probed at one
            // bit in each. So the rate is the product of the shares of set bits of the words, which
            // are independent, and the mean of its power is the product of eight equal means.
            let fill_power = FillPower { cells: PARQUET_WORD_BITS, throws_per_element: 1, power };
            return mean_fill_power(fill_power, self.elements).powi(PARQUET_WORDS);
        }

        // An absent element is probed at k bits. So the rate is the k-th power of the share of set
        // bits, and its power is a power of that share, too.
        let fill_power = FillPower {
            cells: BLOCKED_BITS,
            throws_per_element: self.num_hashes,
            power: power * self.num_hashes,
        };
        mean_fill_power(fill_power, self.elements)
    }

    /// Returns E[(Y - c)²], the mean square of the distance of the rate from `c`. It is computed as
    /// E[Y²] - 2c E[Y] + c².
    fn second_moment_about(self, c: f64) -> f64 {
        self.moment(2) - 2.0 * c * self.moment(1) + c * c
    }

    /// Returns E[(Y - c)³], the mean cube of the distance of the rate from `c`. It is computed as
    /// E[Y³] - 3c E[Y²] + 3c² E[Y] - c³.
    fn third_moment_about(self, c: f64) -> f64 {
        self.moment(3) - 3.0 * c * self.moment(2) + 3.0 * c * c * self.moment(1) - c * c * c
    }
}

/// Returns the mean of a power of the share of set bits of one block that has this number of
/// elements.
fn mean_fill_power(fill_power: FillPower, elements: usize) -> f64 {
    BlockMoments::with_cached(fill_power, |moments| moments.of_block_with(elements))
}

/// Returns the false positive rate of a block of layout `parquet` that has this number of elements:
/// an absent element is probed at one bit in each of eight words.
fn parquet_block_rate(elements: usize) -> f64 {
    // Each element sets one of 32 bits of a word, and leaves the share 31/32 of the others clear.
    let word_bits = f64::from(PARQUET_WORD_BITS);
    let share_clear = ((word_bits - 1.0) / word_bits).powi(elements as i32);
    (1.0 - share_clear).powi(PARQUET_WORDS)
}

/// Returns the mean of `f(J)` for J ~ Binomial(n, p).
fn binomial_mean(n: f64, p: f64, f: &mut dyn FnMut(usize) -> f64) -> f64 {
    if p >= 1.0 {
        return f(n as usize);
    }
    let odds = p / (1.0 - p);
    // P(j + 1) / P(j).
    let ratio = |j: f64| (n - j).max(0.0) / (j + 1.0) * odds;
    weighted_mean(n * p, ratio, f)
}

/// Returns the mean of `f(J)` for J ~ Poisson(mean).
fn poisson_mean(mean: f64, f: &mut dyn FnMut(usize) -> f64) -> f64 {
    // P(j + 1) / P(j).
    let ratio = |j: f64| mean / (j + 1.0);
    weighted_mean(mean, ratio, f)
}

/// A number, and its probability divided by that of the most probable number.
struct WeightedNumber {
    j: f64,
    weight: f64,
}

impl WeightedNumber {
    /// Returns whether the number changes a mean. Probabilities fall on both sides of the most
    /// probable number, so all numbers beyond one that doesn't matter don't either.
    fn matters(&self) -> bool {
        self.weight >= NEGLIGIBLE_WEIGHT
    }
}

/// Returns the mean of `f(J)`, where J is a random number of 0, 1, 2 …, given how probable each
/// number is compared with the next: `ratio(j)` must be the probability of j + 1 divided by that of
/// j. The most probable number must be `mode`, rounded down, and numbers must be less probable the
/// further they are away from it.
///
/// The probabilities themselves aren't needed. The most probable number gets weight 1. From there
/// the weights of greater numbers follow by multiplication with ratios, and those of smaller
/// numbers by division, until they are negligible. (Beginning with 0 would not do: if the mean is
/// large, the probability of 0 is too small for a float.)
fn weighted_mean(mode: f64, ratio: impl Fn(f64) -> f64, f: &mut dyn FnMut(usize) -> f64) -> f64 {
    let most_probable = || WeightedNumber { j: mode.floor(), weight: 1.0 };
    let upwards = iter::successors(Some(most_probable()), |last| {
        let weight = last.weight * ratio(last.j);
        Some(WeightedNumber { j: last.j + 1.0, weight })
    });
    let downwards = iter::successors(Some(most_probable()), |last| {
        if last.j <= 0.0 {
            return None;
        }
        let j = last.j - 1.0;
        let weight = last.weight / ratio(j);
        Some(WeightedNumber { j, weight })
    });

    // The most probable number itself is only taken once.
    let from_mode = upwards.take_while(WeightedNumber::matters);
    let below_mode = downwards.skip(1).take_while(WeightedNumber::matters);
    let mut total_weight = 0.0;
    let mut sum = 0.0;
    for number in from_mode.chain(below_mode) {
        total_weight += number.weight;
        sum += number.weight * f(number.j as usize);
    }
    sum / total_weight
}

/// A power of the *fill* of a block, the share of its bits that are set by its elements.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FillPower {
    /// Bits of the block.
    cells: u32,
    /// How many bits an element sets, some of which may be the same.
    throws_per_element: u32,
    /// At least 1.
    power: u32,
}

impl FillPower {
    /// Returns the power that is the false positive rate of the block: an absent element is probed
    /// at as many bits as an element sets.
    fn rate(cells: u32, num_hashes: u32) -> FillPower {
        FillPower { cells, throws_per_element: num_hashes, power: num_hashes }
    }
}

/// The mean of a power of a block's fill, by the number of the block's elements:
/// E[(X/cells)^power], where X is the number of cells that are hit. The means are computed as far
/// as they were needed.
struct BlockMoments {
    fill_power: FillPower,
    /// The means for blocks with 0, 1, 2 … elements.
    moments: List<f64>,
    /// The state after the elements of the last of these moments.
    chain: OccupancyChain,
}

impl BlockMoments {
    /// Calls `work` with the means of a power of a block's *fill*, and returns what it returns. The
    /// fill of a block, a small Bloom filter, is the share of its bits that are set. It depends on
    /// the hashes of the elements, which are random. `work` asks for the mean by the number of
    /// elements: [`BlockMoments::of_block_with`].
    ///
    /// Example: an absent element is probed at k bits, so the mean of fill^k is the false positive
    /// rate of the block.
    ///
    /// `fill_power` says which power it is, and what the block is like. Means take long to compute,
    /// so those that any call has computed stay cached for the thread. `work` must not call this
    /// function, as the cache is borrowed meanwhile.
    fn with_cached<T>(fill_power: FillPower, work: impl FnOnce(&mut BlockMoments) -> T) -> T {
        thread_local! {
            /// The first item is the one that was used last: it is usually needed again at once.
            /// The others are in no order.
            static CACHE: RefCell<List<BlockMoments>> = const { RefCell::new(List::new()) };
        }
        CACHE.with_borrow_mut(|cache| {
            let index_if_cached = cache.iter().position(|moments| moments.fill_power == fill_power);
            let index = index_if_cached.unwrap_or_else(|| {
                cache.push(BlockMoments::without_elements(fill_power));
                cache.len() - 1
            });
            cache.swap(0, index);
            work(&mut cache[0])
        })
    }

    /// Returns the means of a power of a block's fill, of which only that of a block without
    /// elements has been computed.
    fn without_elements(fill_power: FillPower) -> BlockMoments {
        BlockMoments {
            fill_power,
            // Without elements no bit is set, and any power of 0 from the first on is 0.
            moments: List::from([0.0]),
            chain: OccupancyChain::new(fill_power.cells as usize),
        }
    }

    /// Returns the mean for a block with this number of elements: of the share of its bits that are
    /// set, to the power `self.fill_power.power`. Computes the means up to that number that weren't
    /// needed before.
    fn of_block_with(&mut self, elements: usize) -> f64 {
        let FillPower { throws_per_element, power, .. } = self.fill_power;
        // From this number on, all cells are hit.
        let full = (FULL_LOAD * self.chain.cells()) as usize / throws_per_element as usize;
        let elements = elements.min(full);
        while self.moments.len() <= elements {
            for _ in 0..throws_per_element {
                self.chain.throw();
            }
            self.moments.push(self.chain.moment(power));
        }
        self.moments[elements]
    }
}

/// The distribution of the number of cells that are hit after some throws, each of which hits any
/// cell with the same probability.
struct OccupancyChain {
    /// The probability that x cells are hit, for each x from 0 to the number of cells.
    probabilities: List<f64>,
    /// The least x whose probability is not 0.
    first: usize,
    /// The greatest x whose probability is not 0.
    last: usize,
}

impl OccupancyChain {
    /// Returns the state before the first throw.
    fn new(cells: usize) -> Self {
        let mut probabilities = List::filled(0.0, cells + 1);
        probabilities[0] = 1.0;
        OccupancyChain { probabilities, first: 0, last: 0 }
    }

    /// Returns the number of cells.
    fn cells(&self) -> f64 {
        (self.probabilities.len() - 1) as f64
    }

    /// Throws once more: changes the probability that x cells are hit, for each x, to that after
    /// one more throw, which hits each of the c cells with the same probability.
    ///
    /// If x cells are hit afterwards, either x were hit before and the throw hit one of these, with
    /// probability x/c; or x - 1 were, and the throw hit another one, with probability 1 - (x -
    /// 1)/c.
    ///
    /// Only the probabilities from `self.first` to `self.last` are above 0. Those that have become
    /// negligible at either end are set to 0, which shortens later throws.
    fn throw(&mut self) {
        let one_cell = 1.0 / self.cells();
        self.last = (self.last + 1).min(self.probabilities.len() - 1);

        // The probability of x - 1 before the throw.
        let mut old_of_one_fewer = 0.0;
        let possible = &mut self.probabilities[self.first..=self.last];
        for (x, probability) in (self.first..).zip(possible) {
            let hits_one_of_x = x as f64 * one_cell; // x/c
            let misses_one_fewer = 1.0 + one_cell - hits_one_of_x; // 1 - (x - 1)/c = 1 + 1/c - x/c
            let old_of_x = *probability;
            *probability = old_of_x * hits_one_of_x + old_of_one_fewer * misses_one_fewer;
            old_of_one_fewer = old_of_x;
        }

        while self.probabilities[self.first] < NEGLIGIBLE_PROBABILITY {
            self.probabilities[self.first] = 0.0;
            self.first += 1;
        }
        while self.probabilities[self.last] < NEGLIGIBLE_PROBABILITY {
            self.probabilities[self.last] = 0.0;
            self.last -= 1;
        }
    }

    /// Returns E[(X/cells)^power], where X is the number of cells that are hit.
    fn moment(&self, power: u32) -> f64 {
        let cells = self.cells();
        (self.first..=self.last)
            .map(|x| self.probabilities[x] * (x as f64 / cells).powi(power as i32))
            .sum()
    }
}

/// The mean and the variance of a share from 0 to 1: the share of bits of a filter that are set.
pub(crate) struct FillMoments {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// Returns the mean and the variance of the share of bits that are set in a filter of `cells` bits,
/// after `throws` times one of them was chosen at random and set. `cells` must be large: terms of
/// 1/cells² are left out.
///
/// A bit stays clear with probability q = (1 - 1/cells)^throws, so the mean is 1 - q. With a =
/// throws/cells, the variance is q (1 - (1 + a) q) / cells, which is derived on the module's page.
///
/// Example: of 1,000,000 bits, half are set by 693,147 throws, with a standard deviation of 277
/// bits. The variance is 0.5 · (1 - 1.693 · 0.5) / 1,000,000 = 7.7e-8, and its root 0.000277.
pub(crate) fn fill_moments(cells: u64, throws: f64) -> FillMoments {
    let cells = cells as f64;
    let throws_per_cell = throws / cells;
    if throws_per_cell < SPARSE_LOAD {
        // The formulas below would subtract floats that are nearly equal.
        return sparse_fill_moments(cells, throws_per_cell);
    }

    let share_clear = (throws * (-1.0 / cells).ln_1p()).exp();
    let variance = share_clear * (1.0 - (1.0 + throws_per_cell) * share_clear) / cells;
    // A variance near 0 may be a little below it by rounding.
    FillMoments { mean: 1.0 - share_clear, variance: variance.max(0.0) }
}

/// Returns what [`fill_moments`] returns if there are few throws: fewer than [`SPARSE_LOAD`] for
/// each of the `cells` bits.
///
/// Nearly every throw sets another bit. Each pair of throws hits the same bit with probability
/// 1/cells, so about throws²/2 / cells throws are repeated. With a = throws/cells, these are a²/2
/// for each bit. So the share of set bits is a - a²/2 on average.
///
/// The number of repeated throws is nearly Poisson-distributed. So its variance is its mean,
/// a²/2 · cells, and the variance of the share is that divided by cells²: a²/2 / cells.
fn sparse_fill_moments(cells: f64, throws_per_cell: f64) -> FillMoments {
    let a = throws_per_cell;
    FillMoments {
        mean: a - a * a / 2.0,
        // a/3 is not the next term of the series, which is 5a/6. Either lowers the variance by less
        // than one part in 50,000.
        variance: a * a * (0.5 - a / 3.0) / cells,
    }
}

impl FillMoments {
    /// Returns E[F^k], where F is a share with this mean μ and this variance, and k is `power`. F
    /// must be nearly normally distributed, and its standard deviation much smaller than μ.
    ///
    /// With F = μ (1 + d) and v = variance/μ², the deviation d has E[d²] = v and E[d⁴] = 3v², as
    /// normal variables have, and E[d] = E[d³] = 0. So by the binomial theorem
    ///
    /// ```text
    /// E[F^k] = μ^k · E[(1 + d)^k] = μ^k · (1 + C(k, 2) v + C(k, 4) 3v² + …)
    /// ```
    ///
    /// The other terms, from v³ on, are left out.
    fn mean_power_of_normal(&self, power: u32) -> f64 {
        let v = self.variance / (self.mean * self.mean);
        let pairs = binomial_coefficient(power, 2);
        let fours = binomial_coefficient(power, 4);
        self.mean.powi(power as i32) * (1.0 + pairs * v + 3.0 * fours * v * v)
    }
}

/// Returns the false positive rate of a `classic` filter of `bits` bits with `elements` distinct
/// elements: the probability that all `num_hashes` bits are set at which an absent element is
/// probed. By rounding it may be a little above 1.
///
/// With k hashes this is the mean of F^k, where F is the share of bits that are set; it varies with
/// the hashes of the elements. In a filter of few bits, the mean is computed from the probability
/// of each number of set bits. For more bits that takes too long, but F is nearly normally
/// distributed then, so its mean and variance are enough.
fn classic_rate(num_hashes: u32, bits: u64, elements: f64) -> f64 {
    let throws = elements * f64::from(num_hashes);
    if bits <= MOST_CELLS_OF_CHAIN {
        let mut chain = OccupancyChain::new(bits as usize);
        for _ in 0..throws.round() as u64 {
            chain.throw();
        }
        return chain.moment(num_hashes);
    }
    fill_moments(bits, throws).mean_power_of_normal(num_hashes)
}

/// Returns how many ways there are to choose `i` of `n` items.
fn binomial_coefficient(n: u32, i: u32) -> f64 {
    (0..i).fold(1.0, |product, j| product * (f64::from(n) - f64::from(j)) / f64::from(j + 1))
}

#[cfg(test)]
mod tests;
