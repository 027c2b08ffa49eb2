//! The distribution of the rate of a filter of several blocks, by saddlepoints: see the file above.

use crate::layout::Layout;
use crate::sizing::rate::Chain;

/// A probability, and the normal deviate that is exceeded with it.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    pub(super) probability: f64,
    pub(super) deviate: f64,
    /// That of half the probability.
    pub(super) half_deviate: f64,
}

/// Values of t that are tried, from the greatest down.
const STEPS: usize = 64;
/// The ratio of one to the next. The limit of the best of them is within a hundredth of the way from the mean to the
/// best of all.
const RATIO: f64 = 1.3;
/// Terms of the series for E[e^(tY)]; where they aren't enough, t is too great to be of use.
const TERMS: usize = 160;

/// ln E[e^(tY) | J = j] for the values of t, for each j from `first` on.
struct Blocks {
    first: usize,
    given: Vec<[f64; STEPS]>,
}

/// The rate that a filter of `n` elements in `blocks` blocks exceeds with this probability, at most.
pub fn quantile(layout: Layout, num_hashes: u32, blocks: u64, n: f64, tail: Tail) -> f64 {
    let (b, z) = (blocks as f64, tail.half_deviate);
    let load = n / b;
    let scale = crate::sizing::rate::expected(layout, num_hashes, blocks, n).max(1e-300);
    // From ten times what a rate that varied by no more than a tenth of itself would want.
    let greatest = 10.0 * z / (0.1 * scale * b.sqrt());
    let t: [f64; STEPS] = std::array::from_fn(|i| greatest / RATIO.powi(i as i32));
    let distribution = Blocks::around(layout, num_hashes, load, blocks, tail.probability / 2.0, &t);
    let limit = |i: usize| {
        let (cumulant, variance) = match blocks {
            1 => (distribution.given[0][i], load),
            _ => distribution.conditional_cumulant(i, load),
        };
        (z * z / 2.0 + b * cumulant + (load / variance).ln() / 2.0) / (t[i] * b)
    };
    (0..STEPS).map(limit).filter(|limit| limit.is_finite()).fold(1.0, f64::min)
}

impl Blocks {
    /// For the numbers of elements that blocks may have, but for what `blocks` blocks have with the probability
    /// `negligible`.
    fn around(layout: Layout, num_hashes: u32, load: f64, blocks: u64, negligible: f64, t: &[f64; STEPS]) -> Blocks {
        // Beyond this no block is found in any filter: Poisson's tails there are below 1e-30.
        let width = if blocks == 1 { 0.0 } else { 12.0 * load.sqrt() + 30.0 };
        let (first, last) = ((load - width).max(0.0) as usize, (load + width) as usize);
        let (cells, throws) = if layout == Layout::Parquet { (32, 1) } else { (512, num_hashes) };
        let each = |see: &mut dyn FnMut(usize, &Chain)| {
            let mut chain = Chain::new(cells);
            for j in 0..=last {
                if j >= first {
                    see(j - first, &chain);
                }
                (0..throws).for_each(|_| chain.throw());
            }
        };
        let poisson = poisson(load, first, last);
        let cut = |weights: &[f64]| {
            let mut beyond = 0.0;
            let found = weights.iter().rposition(|weight| {
                beyond += weight * blocks as f64;
                beyond > negligible
            });
            found.unwrap_or(0)
        };
        if layout == Layout::Parquet {
            let most = cut(&poisson);
            let mut given = Vec::with_capacity(most + 1);
            each(&mut |i, chain| {
                if i <= most {
                    given.push(of_words(chain, t));
                }
            });
            return Blocks { first, given };
        }
        let mut hit = vec![0.0; cells + 1];
        each(&mut |i, chain| chain.states().for_each(|(x, probability)| hit[x] += poisson[i] * probability));
        let most = cut(&hit);
        let exponentials: Vec<[f64; STEPS]> =
            (0..=most).map(|x| t.map(|t| (t * (x as f64 / cells as f64).powi(num_hashes as i32)).exp())).collect();
        let mut given = Vec::with_capacity(poisson.len());
        each(&mut |_, chain| given.push(of_a_block(chain, &exponentials)));
        Blocks { first, given }
    }

    /// K(t) and the variance of J where it is least, for t number `i`.
    fn conditional_cumulant(&self, i: usize, load: f64) -> (f64, f64) {
        let poisson = log_poisson(load, self.first, self.first + self.given.len() - 1);
        let total = log_sum(poisson.iter().copied());
        let mut tilt = 0.0;
        let mut found = (f64::INFINITY, load);
        for _ in 0..40 {
            let logs = |k: usize| poisson[k] + self.given[k][i] - tilt * ((self.first + k) as f64 - load);
            let cumulant = log_sum((0..poisson.len()).map(logs)) - total;
            if !cumulant.is_finite() {
                return (f64::INFINITY, load);
            }
            let (mut mean, mut square) = (0.0, 0.0);
            for k in 0..poisson.len() {
                let weight = (logs(k) - cumulant - total).exp();
                let off = (self.first + k) as f64 - load;
                mean += weight * off;
                square += weight * off * off;
            }
            let variance = (square - mean * mean).max(1e-12);
            found = (cumulant, variance);
            if mean.abs() < 1e-9 * load.max(1.0) {
                break;
            }
            // Far from the minimum a whole step of Newton's may overshoot.
            tilt += (mean / variance).clamp(-1.0, 1.0);
        }
        found
    }
}

/// ln of Poisson's probabilities from `first` to `last`, but for a constant that their sum makes up for.
fn log_poisson(load: f64, first: usize, last: usize) -> Vec<f64> {
    let steps = (first..=last).scan(0.0, |log, j| {
        let own = *log;
        *log += (load / (j + 1) as f64).ln();
        Some(own)
    });
    steps.collect()
}

/// Poisson's probabilities from `first` to `last`, which are next to all of it.
fn poisson(load: f64, first: usize, last: usize) -> Vec<f64> {
    let logs = log_poisson(load, first, last);
    let total = log_sum(logs.iter().copied());
    logs.iter().map(|log| (log - total).exp()).collect()
}

/// ln Σ e^x.
fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if !most.is_finite() {
        return most;
    }
    most + logs.map(|log| (log - most).exp()).sum::<f64>().ln()
}

/// ln E[e^(tY)] of a block of 512 cells.
fn of_a_block(chain: &Chain, exponentials: &[[f64; STEPS]]) -> [f64; STEPS] {
    let mut sums = [0.0; STEPS];
    for (x, probability) in chain.states() {
        let Some(exponentials) = exponentials.get(x) else { break };
        for (sum, exponential) in sums.iter_mut().zip(exponentials) {
            *sum += probability * exponential;
        }
    }
    sums.map(f64::ln)
}

/// ln E[e^(tY)] where Y is the product of the fills of eight words of 32 cells: the sum of t^i · E[fill^i]^8 / i!.
fn of_words(chain: &Chain, t: &[f64; STEPS]) -> [f64; STEPS] {
    let mut powers: Vec<(f64, f64)> = chain.states().map(|(x, probability)| (probability, x as f64 / 32.0)).collect();
    let mut moments = [0.0; TERMS];
    for moment in &mut moments {
        *moment = powers.iter().map(|(product, _)| product).sum::<f64>().powi(8);
        powers.iter_mut().for_each(|(product, fill)| *product *= *fill);
    }
    t.map(|t| {
        let (mut sum, mut factor, mut term) = (0.0, 1.0, f64::INFINITY);
        for (i, moment) in moments.iter().enumerate() {
            term = factor * moment;
            sum += term;
            factor *= t / (i + 1) as f64;
        }
        if term < 1e-9 * sum { sum.ln() } else { f64::INFINITY }
    })
}
