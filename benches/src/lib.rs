//! What the benchmarks and the figures share.

pub mod machine;
pub mod plot;

/// The middle of several measurements.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
