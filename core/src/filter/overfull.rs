//! Whether a filter gives wrong answers more often than it was made for.
//!
//! The rate that a filter has now varies from set to set: of filters in `blocked` with exactly the 1,600 elements of
//! their capacity, 42 % are above their promise, by up to 1.17 times. So a filter is overfull where its rate is above
//! its promise *and* above what filters with exactly their capacity exceed with a probability of one in a billion. One
//! that is a list is never overfull.
//!
//! # That rate
//!
//! `n` elements in `B` blocks. Block i has J elements and, given those, the random rate Y (rate.rs); the filter's rate
//! is R = ΣY / B, under the condition ΣJ = n. With J ~ Poisson(n/B) independently, and that condition taken into
//! account by tilting (J's mean must stay n/B), the logarithm of E[e^(tΣY)] is
//!
//! ```text
//! B·K(t) + ln(λ/v)/2     K(t) = min over s of ln E[e^(tY - s(J - λ))],   λ = n/B
//! v = the variance of J where it is least
//! ```
//!
//! and R exceeds x with a probability of at most about Φ(-√(2I)) where I(x) = max over t of t·B·x - B·K(t) - ln(λ/v)/2
//! (the saddlepoint approximation; what it leaves out makes it larger than the truth for distributions that lean to the
//! right, as this one does). So the limit is
//!
//! ```text
//! min over t of (I + B·K(t) + ln(λ/v)/2) / (t·B),   I = z²/2,   z = 6.109: Φ(-z) = 5e-10
//! ```
//!
//! over a geometric sequence of t, which is close: any t gives a limit that is high enough. The other 5e-10 are for
//! blocks that are fuller than nearly all others: loads that B blocks have with that probability or less are left out
//! of K, which they would decide otherwise. For many blocks the limit is the mean and six standard deviations; for few
//! blocks and low rates much more, since few full blocks decide the rate.
//!
//! In `classic`, and in `blocked` with one block, there is one number of hit cells, X. Up to 1,024 cells its
//! distribution is the occupancy chain's, and the limit is that of the largest number that is exceeded with a
//! probability above 1e-9. For more cells X is normal but for its skewness, which shifts the quantile by less than (z²
//! - 1)/6 < 6 cells: it is a sum of independent zeros and ones, whose third cumulant is at most their variance.

use super::estimate;
use super::header::Header;
use super::view::{Body, View};
use crate::layout::Layout;
use crate::sizing::rate::{self, Chain};
use std::cell::Cell;

mod saddlepoint;

use saddlepoint::Tail;

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

const ONE_IN_A_BILLION: Tail = Tail { probability: 1e-9, deviate: 5.998, half_deviate: 6.109 };

/// Whether a filter's rate is above its promise by more than chance.
pub fn overfull(view: &View<'_>) -> Option<Overfull> {
    let h = &view.header;
    let capacity = h.capacity.elements()?;
    if matches!(view.body, Body::Sparse(_)) {
        return None;
    }
    let current_fpr = estimate::current_fpr(view);
    if !is_overfull(h, capacity, current_fpr) {
        return None;
    }
    Some(Overfull { cardinality: estimate::cardinality(view), capacity, current_fpr, fpr: h.fpr })
}

/// Whether a rate is above the promise of filters with this header and capacity by more than chance.
pub fn is_overfull(header: &Header<'_>, capacity: u64, current_fpr: f64) -> bool {
    current_fpr > header.fpr && current_fpr > limit(header, capacity)
}

/// What decides the limit: layout, hashes, blocks, capacity.
type Shape = (Layout, u32, u64, u64);

/// The rate that filters with exactly their capacity exceed with a probability of 1e-9.
fn limit(h: &Header<'_>, capacity: u64) -> f64 {
    thread_local! {
        /// The last answer: the groups of a query have one size.
        static LAST: Cell<Option<(Shape, f64)>> = const { Cell::new(None) };
    }
    let key = (h.layout, h.num_hashes, h.blocks, capacity);
    if let Some((known, limit)) = LAST.get()
        && known == key
    {
        return limit;
    }
    let limit = quantile(h.layout, h.num_hashes, h.blocks, capacity, ONE_IN_A_BILLION);
    LAST.set(Some((key, limit)));
    limit
}

/// The rate that filters of `elements` elements exceed with this probability at most.
fn quantile(layout: Layout, num_hashes: u32, blocks: u64, elements: u64, tail: Tail) -> f64 {
    let n = elements as f64;
    if rate::is_full(layout, num_hashes, blocks, n) {
        return 1.0;
    }
    match (layout, blocks) {
        (Layout::Classic, _) => occupancy_quantile(num_hashes, blocks, n, tail),
        (Layout::Blocked, 1) => occupancy_quantile(num_hashes, layout.block_bits(), n, tail),
        _ => saddlepoint::quantile(layout, num_hashes, blocks, n, tail),
    }
}

/// The same of filters whose rate is decided by one number of hit cells.
fn occupancy_quantile(num_hashes: u32, cells: u64, elements: f64, tail: Tail) -> f64 {
    let throws = elements * f64::from(num_hashes);
    let m = cells as f64;
    let rate = |hit: f64| (hit.min(m) / m).powi(num_hashes as i32);
    if cells <= rate::EXACT_CELLS {
        let mut chain = Chain::new(cells as usize);
        (0..throws as u64).for_each(|_| chain.throw());
        let mut beyond = 0.0;
        let most = chain.states().rev().find(|&(_, probability)| {
            beyond += probability;
            beyond > tail.probability
        });
        return rate(most.map_or(m, |(hit, _)| hit as f64));
    }
    let z = tail.deviate;
    let (mean, variance) = rate::fill(cells, throws);
    rate(m * mean + z * m * variance.sqrt() + (z * z - 1.0) / 6.0)
}

#[cfg(test)]
mod tests;
