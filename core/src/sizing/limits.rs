//! Limits of rates, capacities and sizes.

use crate::error::{InvalidParameter, Result};
use crate::layout::{Layout, is_possible_fpr};

/// The false positive rate of a filter for which none is given.
pub const DEFAULT_FPR: f64 = 0.01;

/// The largest stored filter in bytes: 511 MB, so that its text form (two characters per byte) fits a PostgreSQL value.
pub const MAX_STORED_BYTES: u64 = 511 * 1024 * 1024;

/// The most blocks that index arithmetic and the stored form allow.
pub fn max_blocks(layout: Layout) -> u64 {
    match layout {
        // The Parquet format multiplies 32-bit numbers, of which the block count is a signed one.
        Layout::Parquet => (1 << 31) - 1,
        _ => MAX_STORED_BYTES * 8 / layout.block_bits(),
    }
}

/// Checks whether a layout can keep a rate.
///
/// # Errors
/// [`InvalidParameter::Rate`] unless `least_fpr(layout) ≤ fpr ≤ GREATEST_FPR`.
pub fn check_fpr(layout: Layout, fpr: f64) -> Result<()> {
    if is_possible_fpr(layout, fpr) { Ok(()) } else { Err(InvalidParameter::Rate { fpr, layout }.into()) }
}

/// Checks a capacity.
///
/// # Errors
/// [`InvalidParameter::Capacity`] unless it is at least one.
pub fn check_capacity(capacity: i64) -> Result<u64> {
    u64::try_from(capacity).ok().filter(|&c| c > 0).ok_or_else(|| InvalidParameter::Capacity(capacity).into())
}
