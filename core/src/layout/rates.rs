//! Rates that a layout can keep.

use super::shape::Layout;

/// The smallest rate that a layout can keep at any size.
pub fn least_fpr(layout: Layout) -> f64 {
    match layout {
        Layout::Parquet => 1e-6,
        _ => 1e-9,
    }
}

/// The greatest rate that a filter may promise: it finds half of the absent elements.
pub const GREATEST_FPR: f64 = 0.5;

/// Whether a filter of a layout may promise a rate.
pub fn is_possible_fpr(layout: Layout, fpr: f64) -> bool {
    (least_fpr(layout)..=GREATEST_FPR).contains(&fpr)
}
