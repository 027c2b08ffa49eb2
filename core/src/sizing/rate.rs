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

use crate::layout::{Layout, Shape};
use std::cell::RefCell;
use std::collections::HashMap;
use std::iter;

/// Bits of a block of the layout `blocked`.
const BLOCK: u32 = 512;
/// Up to this many bits a `classic` filter's rate is computed by the occupancy chain itself.
const EXACT_CELLS: u64 = 1024;
/// With fewer throws per cell, nearly every hit cell was hit once.
const SPARSE_LOAD: f64 = 1e-5;
/// With more throws per cell, fewer than one cell in 10^17 is not hit.
const FULL: f64 = 40.0;

/// The false positive rate of a filter that holds `elements` distinct elements, averaged over sets.
pub fn expected(shape: Shape, elements: f64) -> f64 {
    let Shape { layout, num_hashes, blocks } = shape;
    // Sums of many terms end a little above one.
    match layout {
        Layout::Blocked => expected_in_blocks(BLOCK, num_hashes, blocks, elements),
        _ if elements <= 0.0 => 0.0,
        _ if is_full(shape, elements) => 1.0,
        Layout::Classic => classic(num_hashes, blocks, elements).min(1.0),
        Layout::Parquet => {
            binomial_mean(elements, 1.0 / blocks as f64, &mut parquet_block).min(1.0)
        }
    }
}

/// Whether this number of elements hits every cell.
pub(crate) fn is_full(shape: Shape, elements: f64) -> bool {
    elements * f64::from(shape.num_hashes)
        / (shape.blocks as f64 * shape.layout.block_bits() as f64)
        > FULL
}

/// The false positive rate at a mean of `load` elements per block, in the limit of many blocks.
pub fn at_load(layout: Layout, num_hashes: u32, load: f64) -> f64 {
    match layout {
        Layout::Blocked => at_load_in_blocks(BLOCK, num_hashes, load),
        Layout::Classic => (-(-load * f64::from(num_hashes)).exp_m1()).powi(num_hashes as i32),
        Layout::Parquet => poisson_mean(load, &mut parquet_block),
    }
}

/// [`expected`] for a filter like those of layout `blocked` whose blocks have `block_bits` bits.
pub fn expected_in_blocks(block_bits: u32, num_hashes: u32, blocks: u64, elements: f64) -> f64 {
    if elements <= 0.0 {
        return 0.0;
    }
    if elements * f64::from(num_hashes) / (blocks as f64 * f64::from(block_bits)) > FULL {
        return 1.0;
    }
    let mean = |o: &mut Occupancy| binomial_mean(elements, 1.0 / blocks as f64, &mut |j| o.rate(j));
    Occupancy::with(block_bits, num_hashes, num_hashes, mean).min(1.0)
}

/// [`at_load`] for a filter like those of layout `blocked` whose blocks have `block_bits` bits.
pub fn at_load_in_blocks(block_bits: u32, num_hashes: u32, load: f64) -> f64 {
    Occupancy::with(block_bits, num_hashes, num_hashes, |o| poisson_mean(load, &mut |j| o.rate(j)))
}

/// What decides how the rates of filters vary from set to set: moments of one block's share of
/// them.
pub(crate) struct Spread {
    /// The mean, over blocks and sets.
    pub mean: f64,
    /// The variance and the third central moment of what the number of elements in the block
    /// doesn't explain.
    pub variance: f64,
    pub third: f64,
}

/// The spread of the rates of blocks with J ~ Poisson(`load`) elements, for filters of exactly
/// their capacity.
///
/// The sum of all J is given, so what a block's rate owes to J linearly cancels out: what is left
/// is the residual of the regression on J (L. Holst, "Two conditional limit theorems with
/// applications", Annals of Statistics 7, 1979).
pub(crate) fn spread(layout: Layout, num_hashes: u32, load: f64) -> Spread {
    // E[Y^i] of a block with j elements.
    let moment = |i: u32, j: usize| match layout {
        Layout::Parquet => Occupancy::with(32, 1, i, |o| o.rate(j)).powi(8),
        _ => Occupancy::with(BLOCK, num_hashes, i * num_hashes, |o| o.rate(j)),
    };
    let mean = poisson_mean(load, &mut |j| moment(1, j));
    let slope = poisson_mean(load, &mut |j| moment(1, j) * (j as f64 - load)) / load;
    let expected = |j: usize| mean + slope * (j as f64 - load);
    let variance = poisson_mean(load, &mut |j| {
        let c = expected(j);
        moment(2, j) - 2.0 * c * moment(1, j) + c * c
    });
    let third = poisson_mean(load, &mut |j| {
        let c = expected(j);
        moment(3, j) - 3.0 * c * moment(2, j) + 3.0 * c * c * moment(1, j) - c * c * c
    });
    Spread { mean, variance: variance.max(0.0), third: third.max(0.0) }
}

/// The rate of a block of `parquet` with this number of elements.
fn parquet_block(elements: usize) -> f64 {
    (1.0 - (31f64 / 32.0).powi(elements as i32)).powi(8)
}

/// The mean of `f(J)`, J ~ Binomial(n, p).
fn binomial_mean(n: f64, p: f64, f: &mut dyn FnMut(usize) -> f64) -> f64 {
    if p >= 1.0 {
        return f(n as usize);
    }
    let odds = p / (1.0 - p);
    weighted_mean(n * p, |j| (n - j).max(0.0) / (j + 1.0) * odds, f)
}

/// The mean of `f(J)`, J ~ Poisson(mean).
fn poisson_mean(mean: f64, f: &mut dyn FnMut(usize) -> f64) -> f64 {
    weighted_mean(mean, |j| mean / (j + 1.0), f)
}

/// The mean of `f` over a distribution that falls to both sides of `mode`, given the ratio of the
/// weight of j + 1 to that of j. Terms below 1e-22 of the largest are left out.
fn weighted_mean(mode: f64, ratio: impl Fn(f64) -> f64, f: &mut dyn FnMut(usize) -> f64) -> f64 {
    const NEGLIGIBLE: f64 = 1e-22;
    let top = Some((mode.floor(), 1.0));
    let up = iter::successors(top, |&(j, weight)| Some((j + 1.0, weight * ratio(j))));
    let down =
        iter::successors(top, |&(j, weight)| (j > 0.0).then(|| (j - 1.0, weight / ratio(j - 1.0))));
    let counts = |&(_, weight): &(f64, f64)| weight >= NEGLIGIBLE;
    let (mut total, mut sum) = (0.0, 0.0);
    for (j, weight) in up.take_while(counts).chain(down.skip(1).take_while(counts)) {
        total += weight;
        sum += weight * f(j as usize);
    }
    sum / total
}

/// E[(X/cells)^power] after j elements of `num_hashes` throws, computed as far as it was needed.
struct Occupancy {
    num_hashes: u32,
    power: u32,
    /// After `rates.len() - 1` elements.
    chain: OccupancyChain,
    rates: Vec<f64>,
}

impl Occupancy {
    fn with<T>(cells: u32, num_hashes: u32, power: u32, f: impl FnOnce(&mut Occupancy) -> T) -> T {
        thread_local! {
            static KNOWN: RefCell<HashMap<(u32, u32, u32), Occupancy>> = RefCell::new(HashMap::new());
        }
        let new = || Occupancy {
            num_hashes,
            power,
            chain: OccupancyChain::new(cells as usize),
            rates: vec![0.0],
        };
        KNOWN
            .with_borrow_mut(|known| f(known.entry((cells, num_hashes, power)).or_insert_with(new)))
    }

    fn rate(&mut self, elements: usize) -> f64 {
        let full = (FULL * self.chain.cells()) as usize / self.num_hashes as usize;
        let elements = elements.min(full);
        while self.rates.len() <= elements {
            (0..self.num_hashes).for_each(|_| self.chain.throw());
            self.rates.push(self.chain.moment(self.power));
        }
        self.rates[elements]
    }
}

/// The occupancy chain: how many of a number of cells are hit after some throws.
struct OccupancyChain {
    /// Probability that x cells are hit. Those of less than [`NEGLIGIBLE`] at both ends are left
    /// out.
    hit: Vec<f64>,
    /// The least and the most cells that may be hit.
    first: usize,
    last: usize,
}

/// Probabilities below this don't change any sum.
const NEGLIGIBLE: f64 = 1e-40;

impl OccupancyChain {
    /// Before the first throw.
    fn new(cells: usize) -> Self {
        let mut hit = vec![0.0; cells + 1];
        hit[0] = 1.0;
        OccupancyChain { hit, first: 0, last: 0 }
    }

    fn cells(&self) -> f64 {
        (self.hit.len() - 1) as f64
    }

    fn throw(&mut self) {
        let a_cell = 1.0 / self.cells();
        self.last = (self.last + 1).min(self.hit.len() - 1);
        let mut before = 0.0;
        for (x, hit) in (self.first..).zip(&mut self.hit[self.first..=self.last]) {
            let old = x as f64 * a_cell;
            (before, *hit) = (*hit, *hit * old + before * (1.0 + a_cell - old));
        }
        while self.hit[self.first] < NEGLIGIBLE {
            self.hit[self.first] = 0.0;
            self.first += 1;
        }
        while self.hit[self.last] < NEGLIGIBLE {
            self.hit[self.last] = 0.0;
            self.last -= 1;
        }
    }

    /// E[(X/cells)^k].
    fn moment(&self, k: u32) -> f64 {
        let cells = self.cells();
        (self.first..=self.last)
            .map(|x| self.hit[x] * (x as f64 / cells).powi(k as i32))
            .sum()
    }
}

/// The mean and the variance of the share of many cells that so many throws hit.
pub(crate) fn fill(cells: u64, throws: f64) -> (f64, f64) {
    let m = cells as f64;
    let load = throws / m;
    if load < SPARSE_LOAD {
        // The differences below would be between numbers near one. These are the first terms of
        // their series.
        return (load - load * load / 2.0, load * load * (0.5 - load / 3.0) / m);
    }
    let empty = (throws * (-1.0 / m).ln_1p()).exp();
    (1.0 - empty, (empty * (1.0 - (1.0 + load) * empty) / m).max(0.0))
}

fn classic(k: u32, bits: u64, elements: f64) -> f64 {
    let throws = elements * f64::from(k);
    if bits <= EXACT_CELLS {
        let mut chain = OccupancyChain::new(bits as usize);
        (0..throws.round() as u64).for_each(|_| chain.throw());
        return chain.moment(k);
    }
    let (mean, variance) = fill(bits, throws);
    let v = variance / (mean * mean);
    let choose = |n: f64| {
        (0..n as u32).fold(1.0, |c, i| c * (f64::from(k) - f64::from(i)) / f64::from(i + 1))
    };
    mean.powi(k as i32) * (1.0 + choose(2.0) * v + 3.0 * choose(4.0) * v * v)
}

#[cfg(test)]
mod tests;
