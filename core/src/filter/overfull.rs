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
use crate::sizing::rate;
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

/// Standard deviations above what is expected, from which on a filter is overfull.
const DEVIATIONS: f64 = 6.0;

/// Whether a filter's rate is above its promise by more than chance.
pub fn overfull(view: &View<'_>) -> Option<Overfull> {
    let h = &view.header;
    let capacity = h.capacity.elements()?;
    if matches!(view.body, Body::Sparse(_)) {
        return None;
    }
    let current_fpr = estimate::current_fpr(view);
    let is_overfull = current_fpr > h.fpr && current_fpr > limit(h, capacity);
    is_overfull.then(|| Overfull {
        cardinality: estimate::cardinality(view),
        capacity,
        current_fpr,
        fpr: h.fpr,
    })
}

/// The rate from which on filters with exactly their capacity are overfull.
fn limit(h: &Header<'_>, capacity: u64) -> f64 {
    thread_local! {
        /// The last shape and capacity, and their limit: the groups of a query have one size.
        static LAST: Cell<Option<((Shape, u64), f64)>> = const { Cell::new(None) };
    }
    let key = (h.shape(), capacity);
    if let Some((known, limit)) = LAST.get()
        && known == key
    {
        return limit;
    }
    let limit = deviating(h.layout, h.num_hashes, h.blocks, capacity, DEVIATIONS);
    LAST.set(Some((key, limit)));
    limit
}

/// The rate that is `z` standard deviations above what is expected of filters of `elements`
/// elements.
fn deviating(layout: Layout, num_hashes: u32, blocks: u64, elements: u64, z: f64) -> f64 {
    let (n, b) = (elements as f64, blocks as f64);
    let skew = (z * z - 1.0) / 6.0;
    if rate::is_full(Shape { layout, num_hashes, blocks }, n) {
        return 1.0;
    }
    let limit = if layout == Layout::Classic || (layout == Layout::Blocked && blocks == 1) {
        let cells = if layout == Layout::Classic { blocks } else { layout.block_bits() };
        let (throws, m) = (n * f64::from(num_hashes), cells as f64);
        let (mean, variance) = rate::fill(cells, throws);
        let hit = m * mean + z * m * variance.sqrt() + skew;
        (hit.min(throws) / m).powi(num_hashes as i32)
    } else {
        let spread = rate::spread(layout, num_hashes, n / b);
        let third = if spread.variance > 0.0 { spread.third / spread.variance } else { 0.0 };
        spread.mean + z * (spread.variance / b).sqrt() + skew * third / b
    };
    limit.min(1.0)
}

#[cfg(test)]
mod tests;
