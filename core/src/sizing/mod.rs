//! How large a filter must be: how many hashes and blocks a capacity needs at a rate, and the
//! inverse.
//!
//! | module | what it knows |
//! |---|---|
//! | [`rate`] | the exact false positive rate of a layout |
//! | [`table`] | the lookup tables, in the manner of ClickHouse |
//!
//! # Hashes and bits per element
//!
//! Both depend only on layout and rate, so that all filters of one layout and rate can be merged.
//! For k hashes:
//!
//! | layout | bits per element b(k) |
//! |---|---|
//! | classic | -k / ln(1 - fpr^(1/k)) |
//! | blocked, parquet | w / λ: w is 512 or 256 bits, λ the greatest load at which `rate::at_load` meets the rate |
//!
//! For rates above a quarter that is a little too kind to few blocks: while 64 blocks with 64λ
//! elements miss the rate by [`crate::sizing::rate::expected`], b(k) is raised by one part in
//! 100,000. k is the number from 1 to 64 (in `parquet` 8) with the least b(k). The lookup table
//! ([`crate::sizing::table`]) says where to look for it; b(k) refines between its rows (9.6 bits
//! rather than 10).
//!
//! # Blocks
//!
//! `needed` is capacity · b(k) / w. In `classic`, where w is one bit, it is that times a surplus,
//! which makes it enough for 1,024 bits.
//!
//! | `needed` | blocks |
//! |---|---|
//! | below 64 (`classic`: 1,024) | the fewest that meet the rate by [`crate::sizing::rate::expected`] |
//! | from there up | `needed`, rounded up to `m · 2^e` with m from 64 to 126, or 128 |
//!
//! ```text
//! needed   155.0 blocks      64 ≤ m ≤ 128      155.0 = 77.5 · 2^1  ──▶  78 · 2^1 = 156
//! capacity doubled: needed doubles, m stays, e grows by one: so block counts in a power-of-two ratio divide
//! ```
//!
//! 127 is left out because of 64: a capacity that needs 63.2 blocks gets 64, and one twice as
//! large, which needs 126.4, gets 128. So sizes of capacities in a power-of-two ratio always divide
//! if both have 64 blocks or more. That costs at most 1.6 % more than the least size (in `classic`,
//! whose surplus is the same share of larger sizes, up to 2.1 % at 1e-6 and 2.3 % at 1e-9). Sizes
//! never fall when the capacity grows: 64 blocks meet the rate for all that need fewer.

pub mod rate;
pub mod table;

pub use crate::error::FilterSize;
pub use crate::layout::{GREATEST_FPR, is_possible_fpr, least_fpr};

use crate::error::{InvalidParameter, Result, TooLarge};
use crate::layout::{Layout, MAX_HASHES, PARQUET_HASHES, Shape};
use std::cell::Cell;

/// The false positive rate of a filter for which none is given.
pub const DEFAULT_FPR: f64 = 0.01;

/// The largest stored filter in bytes: 511 MB, so that its text form (two characters per byte) fits
/// a PostgreSQL value.
pub const MAX_STORED_BYTES: u64 = 511 * 1024 * 1024;

/// The most blocks that index arithmetic and the stored form allow.
pub fn max_blocks(layout: Layout) -> u64 {
    match layout {
        // The Parquet format multiplies 32-bit numbers, of which the block count is a signed one.
        Layout::Parquet => (1 << 31) - 1,
        _ => MAX_STORED_BYTES * 8 / layout.block_bits(),
    }
}

/// Checks a rate. Errors: [`InvalidParameter::Rate`] unless
/// `least_fpr(layout) ≤ fpr ≤ GREATEST_FPR`.
pub fn check_fpr(layout: Layout, fpr: f64) -> Result<()> {
    if is_possible_fpr(layout, fpr) {
        Ok(())
    } else {
        Err(InvalidParameter::Rate { fpr, layout }.into())
    }
}

/// Checks a capacity. Errors: [`InvalidParameter::Capacity`] unless it is at least one.
pub fn check_capacity(capacity: i64) -> Result<u64> {
    u64::try_from(capacity)
        .ok()
        .filter(|&c| c > 0)
        .ok_or_else(|| InvalidParameter::Capacity(capacity).into())
}

/// The least m of the grid. From as many blocks up sizes are on it.
const GRID: f64 = 64.0;
/// The blocks from which sizes are on it in `classic`, where a block is a bit.
const LEAST_CLASSIC_ON_GRID: f64 = 1024.0;

/// Hashes per element and the bits per element costs, at one rate in the limit of many blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Density {
    /// Hashes per element (k).
    pub num_hashes: u32,
    pub bits: f64,
}

/// The hashes and bits per element that `layout` needs for `fpr`. Errors: those of [`check_fpr`].
pub fn density(layout: Layout, fpr: f64) -> Result<Density> {
    thread_local! {
        /// The last result: a query usually needs the same one many times.
        static LAST: Cell<Option<(Layout, u64, Density)>> = const { Cell::new(None) };
    }
    check_fpr(layout, fpr)?;
    if let Some((l, f, density)) = LAST.get()
        && (l, f) == (layout, fpr.to_bits())
    {
        return Ok(density);
    }
    let density = find_density(layout, fpr);
    LAST.set(Some((layout, fpr.to_bits(), density)));
    Ok(density)
}

fn find_density(layout: Layout, fpr: f64) -> Density {
    let candidates = if layout == Layout::Parquet {
        PARQUET_HASHES..=PARQUET_HASHES
    } else {
        let guess = table::best_row(layout, fpr).map_or(MAX_HASHES, |row| row.best_hashes());
        guess.saturating_sub(2).max(1)..=(guess + 2).min(MAX_HASHES)
    };
    candidates
        .map(|num_hashes| Density { num_hashes, bits: bits_per_element(layout, num_hashes, fpr) })
        .min_by(|a, b| a.bits.total_cmp(&b.bits))
        .expect("there is at least one candidate")
}

/// Bits per element at which `hashes` hashes give `fpr`, in the limit of many blocks and in 64 of
/// them.
fn bits_per_element(layout: Layout, num_hashes: u32, fpr: f64) -> f64 {
    let k = f64::from(num_hashes);
    if layout == Layout::Classic {
        // ln(1 - fpr^(1/k)).
        return -k / (-(fpr.ln() / k).exp_m1()).ln();
    }
    let bits = layout.block_bits() as f64;
    // The load is between two rows of the table.
    let row = table::best_row(layout, fpr).map_or(1.0, |row| f64::from(row.bits));
    let load =
        greatest_load(bits / row, 1e-12, |load| rate::at_load(layout, num_hashes, load) <= fpr);
    // Rates above a quarter are a little lower in the limit of many blocks than in a few.
    let mut density = bits / load;
    while rate::expected(Shape { layout, num_hashes, blocks: GRID as u64 }, GRID * bits / density)
        > fpr
    {
        density *= 1.0 + 1e-5;
    }
    density
}

/// How much more than in the limit of many bits a `classic` filter of 1,024 bits needs, as a
/// factor: the variance of its fill raises the logarithm of the rate by about C(k,2) · Var / μ²,
/// and one percent more bits lower it by `slope` percent. Half a bit more, since n throws leave a
/// bit clear with (1 - 1/m)^n rather than e^(-n/m); a hundredth is more than the terms left out.
fn classic_surplus(density: Density) -> f64 {
    let k = f64::from(density.num_hashes);
    let load = k / density.bits;
    let empty = (-load).exp();
    let variance = empty * (1.0 - (1.0 + load) * empty);
    let raised = k * (k - 1.0) / 2.0 * variance / ((1.0 - empty) * (1.0 - empty));
    let slope = k * load * empty / (1.0 - empty);
    ((raised / slope + 0.51) / LEAST_CLASSIC_ON_GRID).exp()
}

fn least_on_grid(layout: Layout) -> f64 {
    if layout == Layout::Classic { LEAST_CLASSIC_ON_GRID } else { GRID }
}

/// The smallest `m · 2^e ≥ needed` with m from 64 to 126, or 128, for `needed ≥ 64`.
fn round_up_to_grid(needed: f64) -> f64 {
    let step = (needed / GRID).log2().floor().exp2();
    let m = (needed / step).ceil();
    if m == 127.0 { 128.0 * step } else { m * step }
}

/// Blocks by the limit of many blocks.
fn needed(layout: Layout, density: Density, capacity: f64) -> f64 {
    let surplus = if layout == Layout::Classic { classic_surplus(density) } else { 1.0 };
    capacity * density.bits * surplus / layout.block_bits() as f64
}

fn blocks_for(layout: Layout, density: Density, fpr: f64, capacity: f64) -> f64 {
    let needed = needed(layout, density, capacity);
    if needed >= least_on_grid(layout) {
        return round_up_to_grid(needed);
    }
    least_number(needed.ceil() as u64, |blocks| {
        rate::expected(Shape { layout, num_hashes: density.num_hashes, blocks }, capacity) <= fpr
    }) as f64
}

/// The size of a filter, whether or not that may be stored. Errors: [`InvalidParameter::Rate`] for
/// a rate that the layout can't keep; [`TooLarge::Bits`].
pub fn size_for_capacity(layout: Layout, capacity: u64, fpr: f64) -> Result<FilterSize> {
    let density = density(layout, fpr)?;
    let blocks = blocks_for(layout, density, fpr, capacity as f64);
    if blocks * layout.block_bits() as f64 >= i64::MAX as f64 {
        return Err(TooLarge::Bits { capacity, fpr }.into());
    }
    Ok(FilterSize {
        layout,
        num_hashes: density.num_hashes,
        blocks: blocks as u64,
        capacity,
        fpr,
    })
}

/// The size of an unsized build that saw `elements` distinct elements: the smallest power-of-two
/// block count that keeps the rate, and the capacity that this has. Errors: those of [`density`].
pub fn power_of_two_size(layout: Layout, elements: u64, fpr: f64) -> Result<FilterSize> {
    let density = density(layout, fpr)?;
    let elements = elements.max(1) as f64;
    let mut blocks = 1u64;
    while (blocks as f64) < needed(layout, density, elements) / 4.0 {
        blocks *= 2;
    }
    let shape = |blocks| Shape { layout, num_hashes: density.num_hashes, blocks };
    while rate::expected(shape(blocks), elements) > fpr {
        blocks *= 2;
    }
    let capacity = capacity_of(shape(blocks), fpr);
    Ok(FilterSize {
        layout,
        num_hashes: density.num_hashes,
        blocks,
        capacity,
        fpr,
    })
}

/// The most elements that `blocks` blocks hold at `fpr`, at least one.
pub fn capacity_of(shape: Shape, fpr: f64) -> u64 {
    let Shape { layout, num_hashes, blocks } = shape;
    let k = f64::from(num_hashes);
    // The textbook formula: the fill whose k-th power is the rate.
    let share_clear = -(fpr.ln() / k).exp_m1();
    let guess = -share_clear.ln() / k * (blocks as f64 * layout.block_bits() as f64);
    let too_many = least_number(guess as u64, |n| rate::expected(shape, n as f64) > fpr);
    (too_many - 1).max(1)
}

/// The largest capacity whose dense payload has at most this number of bytes; 0 if not even one
/// element fits. Errors: those of [`density`].
pub fn capacity_for_payload(layout: Layout, bytes: u64, fpr: f64) -> Result<u64> {
    let density = density(layout, fpr)?;
    let blocks = match layout {
        Layout::Classic => bytes.saturating_mul(8),
        _ => bytes / (layout.block_bits() / 8),
    };
    let estimate = (blocks as f64 / needed(layout, density, 1.0)) as u64;
    let too_many = least_number(estimate, |capacity| {
        blocks_for(layout, density, fpr, capacity as f64) > blocks as f64
    });
    Ok((too_many - 1).min(i64::MAX as u64))
}

/// The least number from 1 on for which a condition holds, given that it then holds for all greater
/// ones. The search starts at `guess`, with steps that double.
pub(crate) fn least_number(guess: u64, holds: impl Fn(u64) -> bool) -> u64 {
    // It holds for `yes`, or that is the greatest number, and not for `no`.
    let (mut no, mut yes) = (0, u64::MAX);
    let (mut next, mut step) = (guess.clamp(1, u64::MAX - 1), 1);
    while yes - no > 1 {
        if holds(next) {
            yes = next;
        } else {
            no = next;
        }
        next = match (no, yes) {
            (0, _) => yes.saturating_sub(step).max(1),
            (_, u64::MAX) => no.saturating_add(step).min(u64::MAX - 1),
            _ => no + (yes - no) / 2,
        };
        step = step.saturating_mul(2);
    }
    yes
}

/// The greatest load for which a condition holds, up to a relative error of `precision`. The search
/// starts between half of `guess` and `guess`, and tries small loads first, since the rates of
/// large ones take long to compute.
pub(crate) fn greatest_load(guess: f64, precision: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut enough, mut too_many) = (guess / 2.0, guess);
    while !holds(enough) {
        (enough, too_many) = (enough / 2.0, enough);
    }
    while holds(too_many) {
        (enough, too_many) = (too_many, too_many * 1.5);
    }
    while too_many / enough > 1.0 + precision {
        let middle = (enough * too_many).sqrt();
        if holds(middle) {
            enough = middle;
        } else {
            too_many = middle;
        }
    }
    enough
}

#[cfg(test)]
mod tests;
