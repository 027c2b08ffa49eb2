//! Whether a filter gives wrong answers more often than it was made for.
//!
//! The rate that a filter has now varies from set to set: of filters in `blocked` with exactly the
//! 1,600 elements of their capacity, 42 % are above their promise, by up to 1.17 times. So a filter
//! is overfull where its rate is above its promise *and* above the expected rate of filters with
//! exactly their capacity by six standard deviations, which about one in a billion exceeds. One
//! that is a list is never overfull.
//!
//! | filter | its rate is decided by | limit, z = 6 |
//! |---|---|---|
//! | several blocks | the mean over B blocks of each one's random rate | μ + z·σ/√B + (z² - 1)/6 · κ/(σ²·B) |
//! | `classic`, one block of `blocked` | X, the number of hit cells | the rate of `E[X]` + z·σ + (z² - 1)/6 cells |
//!
//! The last term is the skewness (Cornish and Fisher, "Moments and Cumulants in the Specification
//! of Distributions", 1937): few full blocks decide the rate of a small filter. μ, σ² and κ are
//! those of sizing/rate.rs. X is a sum of independent zeros and ones, whose third cumulant is at
//! most their variance, and at most one for each hash.

use super::estimate;
use super::header::Header;
use super::view::{Body, View};
use crate::layout::{Layout, Shape};
use crate::sizing::rate::{self, FillMoments};
use std::cell::Cell;

/// A filter that gives wrong answers more often than it was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overfull {
    /// Estimated distinct elements.
    pub cardinality: f64,
    /// The number it was made for.
    pub capacity: u64,
    /// The rate it has now.
    pub current_fpr: f64,
    /// The rate it was made for.
    pub fpr: f64,
}

/// How many standard deviations above the expected rate a filter must be to be overfull. One filter
/// in a billion is by chance.
const DEVIATIONS: f64 = 6.0;

/// Returns the present number of elements and rate of a filter whose false positive rate is higher
/// than promised, beyond random variation; `None` for all others.
///
/// A filter with exactly the elements of its capacity has a rate that varies around the promised
/// one. So its rate must also be higher than that of nearly all such filters.
pub fn overfull(view: &View<'_>) -> Option<Overfull> {
    let header = &view.header;
    let capacity = header.capacity.elements()?;
    // A list of hashes is exact to 2^-64.
    if matches!(view.body, Body::Sparse(_)) {
        return None;
    }

    let current_fpr = estimate::current_fpr(view);
    let is_overfull =
        current_fpr > header.fpr && current_fpr > greatest_by_chance(header, capacity);
    is_overfull.then(|| Overfull {
        cardinality: estimate::cardinality(view),
        capacity,
        current_fpr,
        fpr: header.fpr,
    })
}

/// Returns the greatest false positive rate that chance explains in a filter with exactly
/// `capacity` distinct elements. The rate depends on the elements' hashes: of a billion such
/// filters one has a higher rate.
///
/// The last result is cached for the thread, since a query often asks for many filters of one size.
fn greatest_by_chance(header: &Header<'_>, capacity: u64) -> f64 {
    /// A result, and what it was computed for.
    #[derive(Clone, Copy)]
    struct Computed {
        shape: Shape,
        capacity: u64,
        greatest_rate: f64,
    }
    thread_local! {
        static LAST: Cell<Option<Computed>> = const { Cell::new(None) };
    }

    let shape = header.shape();
    if let Some(last) = LAST.get()
        && last.shape == shape
        && last.capacity == capacity
    {
        return last.greatest_rate;
    }
    let greatest_rate = rate_at_deviations(shape, capacity, DEVIATIONS);
    LAST.set(Some(Computed { shape, capacity, greatest_rate }));
    greatest_rate
}

/// Returns a false positive rate that few filters of this shape with `elements` distinct elements
/// exceed. How few is said by `deviations`: as many as normally distributed values exceed their
/// mean by more than this number of standard deviations. For 6 it is one in a billion.
fn rate_at_deviations(shape: Shape, elements: u64, deviations: f64) -> f64 {
    let elements = elements as f64;
    if rate::is_full(shape, elements) {
        return 1.0;
    }
    // In layout `classic`, and in a filter of one block, a hash may set any bit of the filter. (The
    // blocks of `parquet` consist of words.)
    let hashes_set_any_bit =
        shape.layout == Layout::Classic || (shape.layout == Layout::Blocked && shape.blocks == 1);
    let fpr = if hashes_set_any_bit {
        array_rate_at_deviations(shape, elements, deviations)
    } else {
        blocks_rate_at_deviations(shape, elements, deviations)
    };
    fpr.min(1.0)
}

/// Returns (z² - 1)/6 for a number z of standard deviations: the factor by which the bound on a sum
/// of random numbers is corrected, as the sum isn't normally distributed, but skewed.
///
/// A sum with the mean μ, the standard deviation σ and the third central moment κ exceeds
/// μ + z·σ + (z² - 1)/6 · κ/σ² as rarely as a normal variable exceeds its mean by z standard
/// deviations (Cornish and Fisher, see the module's page).
fn skew_factor(deviations: f64) -> f64 {
    (deviations * deviations - 1.0) / 6.0
}

/// Returns a false positive rate that few filters with `elements` elements exceed, see
/// [`rate_at_deviations`], for a filter whose hashes may set any of its bits. Its rate follows from
/// the number of bits that are set.
fn array_rate_at_deviations(shape: Shape, elements: f64, deviations: f64) -> f64 {
    let num_bits = shape.blocks * shape.layout.block_bits();
    let throws = elements * f64::from(shape.num_hashes);
    let FillMoments { mean, variance } = rate::fill_moments(num_bits, throws);

    // The number of bits that are set is a sum of independent zeros and ones, so κ/σ² is at most 1.
    let bits = num_bits as f64;
    let bits_set = bits * mean + deviations * bits * variance.sqrt() + skew_factor(deviations);
    // An element sets at most one bit for each of its hashes.
    let fill = bits_set.min(throws) / bits;
    fill.powi(shape.num_hashes as i32)
}

/// Returns a false positive rate that few filters with `elements` elements exceed, see
/// [`rate_at_deviations`], for a filter of several blocks. Its rate is the sum of the rates of all
/// blocks, which are independent, divided by the number of blocks.
fn blocks_rate_at_deviations(shape: Shape, elements: f64, deviations: f64) -> f64 {
    let blocks = shape.blocks as f64;
    let moments = rate::rate_moments(shape.layout, shape.num_hashes, elements / blocks);
    // κ/σ² of one block, which is that of the sum, too.
    let skewness = if moments.variance > 0.0 { moments.third / moments.variance } else { 0.0 };
    let deviation_of_mean = (moments.variance / blocks).sqrt();
    moments.mean + deviations * deviation_of_mean + skew_factor(deviations) * skewness / blocks
}

#[cfg(test)]
mod tests;
