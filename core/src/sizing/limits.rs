//! What may be asked of a filter: rates, capacities, sizes.

use crate::error::{Code, Error, Result};
use crate::layout::Layout;

/// The false positive rate of a filter for which none was given.
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

/// The smallest rate that a layout can keep, in whatever size.
pub fn least_fpr(layout: Layout) -> f64 {
    match layout {
        Layout::Parquet => 1e-6,
        _ => 1e-9,
    }
}

/// The greatest rate that a filter may promise: one that finds half of what is not in it.
pub const GREATEST_FPR: f64 = 0.5;

/// Whether a filter of a layout may promise a rate.
pub fn is_possible_fpr(layout: Layout, fpr: f64) -> bool {
    (least_fpr(layout)..=GREATEST_FPR).contains(&fpr)
}

/// Checks a wanted rate against what a layout can do.
///
/// # Errors
/// [`Code::InvalidParameter`] unless `least_fpr(layout) ≤ fpr ≤ GREATEST_FPR`.
pub fn check_fpr(layout: Layout, fpr: f64) -> Result<()> {
    if is_possible_fpr(layout, fpr) {
        return Ok(());
    }
    let shown = if fpr != 0.0 && fpr.abs() < 1e-4 { format!("{fpr:e}") } else { fpr.to_string() };
    let possible = |layout| format!("from {:e} to {GREATEST_FPR}", least_fpr(layout));
    let message = if is_possible_fpr(Layout::Blocked, fpr) {
        format!("false positive rate in layout \"{}\" must be {}, not {shown}", layout.name(), possible(layout))
    } else {
        format!("false positive rate must be {}, not {shown}", possible(Layout::Blocked))
    };
    let hint = if is_possible_fpr(Layout::Blocked, fpr) {
        "Use layout \"blocked\", which reaches 1e-9."
    } else if fpr > 0.0 && fpr < GREATEST_FPR {
        "A filter whose elements are few keeps their hashes and is exact to 2^-64."
    } else {
        "A rate of 0.01 means that one in a hundred absent elements is reported as present."
    };
    Err(Error::new(Code::InvalidParameter, message).hint(hint))
}

/// Checks a wanted capacity.
///
/// # Errors
/// [`Code::InvalidParameter`] unless it is at least one.
pub fn check_capacity(capacity: i64) -> Result<u64> {
    u64::try_from(capacity).ok().filter(|&c| c > 0).ok_or_else(|| {
        Error::new(Code::InvalidParameter, format!("capacity of a bloom filter must be at least 1, not {capacity}"))
            .hint("The capacity is the number of distinct elements expected; NULL sizes the filter for what it sees.")
    })
}
