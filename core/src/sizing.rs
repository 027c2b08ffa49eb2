//! How many hashes and blocks a capacity needs at a rate, and the way back.
//!
//! The number of hashes depends on layout and rate alone, so that all filters of one layout and rate can be merged. It is
//! the one that needs the fewest bits an element in the limit of many blocks: the lookup table ([`crate::table`]) gives the
//! rows of whole bits to search between, [`crate::rate::at_load`] the exact figure (9.6 bits rather than 10).
//!
//! The number of blocks is that figure times the capacity, rounded up to `m · 2^e` with m in 64…128:
//!
//! ```text
//! needed   155.0 blocks      64 ≤ m ≤ 128      155.0 = 77.5 · 2^1  ──▶  78 · 2^1 = 156
//! capacity doubled: needed doubles, m stays, e grows by one: so block counts in a power-of-two ratio divide
//! ```
//!
//! Fewer than 64 blocks have no such grid below them: 19.4 blocks at a capacity of 1,000 must divide the 39 of 2,000,
//! the 78 of 4,000 and the 156 of 8,000. So there the answer is the smallest divisor of the answer for twice the capacity
//! that meets the rate exactly: up to many times the least possible where that is few blocks, but never more than eight bytes an element held,
//! since a filter is sparse until its dense form is smaller.
//!
//! `classic` counts bits where the others count blocks. A small filter needs a few bits more than the limit says, so
//! its need is raised by what 1,024 bits would want (`classic_surplus`); below that size it steps up the grid until the exact
//! rate is met, and the power-of-two rule may fail.

use crate::error::{Code, Error, Result};
use crate::format;
use crate::layout::{Layout, MAX_HASHES, PARQUET_HASHES};
use crate::{rate, table};
use std::cell::Cell;

/// Up to this many blocks the grid has no finer step than one block.
const GRID: f64 = 64.0;
/// Below this many bits `classic` checks the exact rate instead of relying on `classic_surplus`.
const SMALL_CLASSIC: f64 = 1024.0;

/// Size of a filter: what [`crate::format::Header`] is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// The layout.
    pub layout: Layout,
    /// Hashes an element (k).
    pub hashes: u32,
    /// Blocks of the payload.
    pub blocks: u64,
    /// How many distinct elements it holds at its rate.
    pub capacity: u64,
    /// The false positive rate promised at that capacity.
    pub fpr: f64,
}

/// Hashes an element and the bits an element costs, at one rate in the limit of many blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Density {
    /// Hashes an element (k).
    pub hashes: u32,
    /// Bits an element.
    pub bits: f64,
}

/// The smallest rate that a layout can keep, in whatever size.
pub fn least_fpr(layout: Layout) -> f64 {
    match layout {
        Layout::Parquet => 1e-6,
        _ => 1e-9,
    }
}

/// Checks a wanted rate against what a layout can do.
///
/// # Errors
/// [`Code::InvalidParameter`] unless `least_fpr(layout) ≤ fpr < 1`.
pub fn check_fpr(layout: Layout, fpr: f64) -> Result<()> {
    if !(fpr > 0.0 && fpr < 1.0) {
        return Err(Error::new(
            Code::InvalidParameter,
            format!("false positive rate must be greater than 0 and less than 1, not {fpr}"),
        )
        .hint("A rate of 0.01 means that one in a hundred absent elements is reported as present."));
    }
    if fpr < least_fpr(layout) {
        let hint = match layout {
            Layout::Parquet => "Use layout \"blocked\", which reaches 1e-9.",
            _ => "A filter whose elements are few keeps their hashes and is exact to 2^-64.",
        };
        return Err(Error::new(
            Code::InvalidParameter,
            format!("layout \"{}\" cannot keep a false positive rate of {fpr:e}", layout.name()),
        )
        .detail(format!("Its smallest rate is {:e}.", least_fpr(layout)))
        .hint(hint));
    }
    Ok(())
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

/// The hashes and bits an element that `layout` needs for `fpr`.
///
/// # Errors
/// Those of [`check_fpr`].
pub fn density(layout: Layout, fpr: f64) -> Result<Density> {
    thread_local! {
        /// The last answer: a query asks for the same one again and again.
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
        .map(|hashes| Density { hashes, bits: bits_per_element(layout, hashes, fpr) })
        .min_by(|a, b| a.bits.total_cmp(&b.bits))
        .expect("there is at least one candidate")
}

/// Bits an element at which `hashes` hashes give `fpr`, in the limit of many blocks and in 64 of them.
fn bits_per_element(layout: Layout, hashes: u32, fpr: f64) -> f64 {
    let k = f64::from(hashes);
    if layout == Layout::Classic {
        // ln(1 - fpr^(1/k)); the power itself would be one for rates next to it.
        return -k / (-(fpr.ln() / k).exp_m1()).ln();
    }
    let bits = layout.block_bits() as f64;
    // Between two rows of the table, from small loads up: a large one costs a long occupancy chain.
    let row = table::best_row(layout, fpr).map_or(1.0, |row| f64::from(row.bits));
    let (mut enough, mut too_few) = (bits / row / 2.0, bits / row);
    while rate::at_load(layout, hashes, too_few) <= fpr {
        (enough, too_few) = (too_few, too_few * 1.5);
    }
    while rate::at_load(layout, hashes, enough) > fpr {
        (enough, too_few) = (enough / 2.0, enough);
    }
    // `enough` and `too_few` are elements a block: the load that keeps the rate and one that doesn't.
    while too_few / enough > 1.0 + 1e-12 {
        let middle = (enough * too_few).sqrt();
        if rate::at_load(layout, hashes, middle) <= fpr {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    // Rates above a quarter are a little lower in the limit of many blocks than in a few.
    let mut density = bits / enough;
    while rate::expected(layout, hashes, GRID as u64, GRID * bits / density) > fpr {
        density *= 1.0 + 1e-5;
    }
    density
}

/// How much more than in the limit of many bits a `classic` filter of 1,024 bits needs, as a factor: the variance of
/// its fill raises the logarithm of the rate by about C(k,2) · Var / μ², and one percent more bits lower it by `slope`
/// percent. Half a bit more, since n throws leave a bit clear with (1 - 1/m)^n rather than e^(-n/m).
fn classic_surplus(density: Density) -> f64 {
    let k = f64::from(density.hashes);
    let load = k / density.bits;
    let empty = (-load).exp();
    let variance = empty * (1.0 - (1.0 + load) * empty);
    let raised = k * (k - 1.0) / 2.0 * variance / ((1.0 - empty) * (1.0 - empty));
    let slope = k * load * empty / (1.0 - empty);
    // A hundredth of a bit is more than the terms left out.
    ((raised / slope + 0.51) / SMALL_CLASSIC).exp()
}

/// The smallest `m · 2^e ≥ needed` with m in 64…128, for `needed ≥ 64`.
fn round_up_to_grid(needed: f64) -> f64 {
    let exponent = (needed / GRID).log2().floor();
    let step = exponent.exp2();
    (needed / step).ceil() * step
}

/// Blocks that the limit of many blocks asks for.
fn needed(layout: Layout, density: Density, capacity: f64) -> f64 {
    let surplus = if layout == Layout::Classic { classic_surplus(density) } else { 1.0 };
    capacity * density.bits * surplus / layout.block_bits() as f64
}

fn blocks_for(layout: Layout, density: Density, fpr: f64, capacity: f64) -> f64 {
    let meets = |blocks: f64| rate::expected(layout, density.hashes, blocks as u64, capacity) <= fpr;
    let needed = needed(layout, density, capacity);
    if layout == Layout::Classic && needed < SMALL_CLASSIC {
        let mut blocks = if needed < GRID { needed.ceil() } else { round_up_to_grid(needed) };
        while !meets(blocks) {
            blocks = if blocks < GRID { blocks + 1.0 } else { round_up_to_grid(blocks + 1.0) };
        }
        return blocks;
    }
    if needed >= GRID {
        return round_up_to_grid(needed);
    }
    let twice = blocks_for(layout, density, fpr, capacity * 2.0);
    (1..=twice as u64).map(|d| d as f64).find(|&d| twice % d == 0.0 && d * 2.0 >= needed && meets(d)).unwrap_or(twice)
}

/// The size of a filter for `capacity` elements at `fpr`.
///
/// # Errors
/// [`Code::InvalidParameter`] for a rate that the layout can't keep; [`Code::TooLarge`] when the number of bits is no 63-bit
/// number. Whether the filter may be stored is not asked here.
pub fn size(layout: Layout, capacity: u64, fpr: f64) -> Result<Size> {
    let density = density(layout, fpr)?;
    let blocks = blocks_for(layout, density, fpr, capacity as f64);
    if blocks * layout.block_bits() as f64 >= i64::MAX as f64 {
        return Err(Error::new(
            Code::TooLarge,
            format!("bloom filter for {capacity} elements at a false positive rate of {fpr} is too large"),
        )
        .hint("Use a smaller capacity."));
    }
    Ok(Size { layout, hashes: density.hashes, blocks: blocks as u64, capacity, fpr })
}

/// The size of an unsized build that saw `elements` distinct elements: the smallest power-of-two block count that
/// keeps the rate, and the capacity that this has.
///
/// # Errors
/// Those of [`density`].
pub fn power_of_two(layout: Layout, elements: u64, fpr: f64) -> Result<Size> {
    let density = density(layout, fpr)?;
    let elements = elements.max(1) as f64;
    let mut blocks = 1u64;
    while (blocks as f64) < needed(layout, density, elements) / 4.0 {
        blocks *= 2;
    }
    while rate::expected(layout, density.hashes, blocks, elements) > fpr {
        blocks *= 2;
    }
    let capacity = capacity_of(layout, density.hashes, blocks, fpr);
    Ok(Size { layout, hashes: density.hashes, blocks, capacity, fpr })
}

/// The most elements that `blocks` blocks hold at `fpr`; at least one.
pub fn capacity_of(layout: Layout, hashes: u32, blocks: u64, fpr: f64) -> u64 {
    let meets = |n: u64| rate::expected(layout, hashes, blocks, n as f64) <= fpr;
    let (mut enough, mut too_many) = (0u64, 1u64);
    while meets(too_many) {
        enough = too_many;
        too_many = too_many.saturating_mul(2);
    }
    while too_many - enough > 1 {
        let middle = enough + (too_many - enough) / 2;
        if meets(middle) {
            enough = middle;
        } else {
            too_many = middle;
        }
    }
    enough.max(1)
}

/// The largest capacity whose filter, dense, has at most `bytes` bytes as stored.
///
/// # Errors
/// Those of [`density`]; [`Code::InvalidParameter`] when not even a capacity of one fits.
pub fn capacity_for_bytes(layout: Layout, bytes: u64, fpr: f64) -> Result<u64> {
    let density = density(layout, fpr)?;
    let payload = bytes.saturating_sub(format::HEADER_BYTES as u64);
    let blocks = match layout {
        Layout::Classic => payload.saturating_mul(8),
        _ => payload / (layout.block_bits() / 8),
    };
    let capacity = largest_fitting(layout, density, fpr, blocks as f64);
    if capacity < 1.0 {
        let least = format::HEADER_BYTES as u64 + layout.payload_bytes(blocks_for(layout, density, fpr, 1.0) as u64);
        return Err(Error::new(Code::InvalidParameter, format!("a bloom filter cannot fit {bytes} bytes"))
            .hint(format!("At this rate and layout the smallest has {least} bytes.")));
    }
    Ok((capacity as u64).min(i64::MAX as u64))
}

/// The largest capacity whose filter has at most `blocks` blocks, or 0.
///
/// The block count does not grow steadily with the capacity below 64 blocks, but it does between two steps of the grid:
/// so those stretches are tried from the highest down.
fn largest_fitting(layout: Layout, density: Density, fpr: f64, blocks: f64) -> f64 {
    if blocks < 1.0 {
        return 0.0;
    }
    let fits = |capacity: f64| blocks_for(layout, density, fpr, capacity) <= blocks;
    let per_element = needed(layout, density, 1.0);
    let mut high = (blocks / per_element).floor() + 1.0;
    if blocks < 4.0 * SMALL_CLASSIC {
        high = high.max(capacity_of(layout, density.hashes, blocks as u64, fpr) as f64);
    }
    while high >= 1.0 {
        let step = (high * per_element / GRID).log2().floor().exp2();
        let low = (((high * per_element / step).ceil() - 1.0) * step / per_element).floor().min(high);
        if let Some(fitting) = (0..3).map(|i| low + f64::from(i)).find(|&n| n >= 1.0 && fits(n)) {
            return last_that(fits, fitting, high + 1.0);
        }
        // Above 2^53 one less may be the same number.
        high = (low - 1.0).min(high.next_down());
    }
    0.0
}

/// The last whole number from `yes` to before `no` for which `holds`, given that it changes once.
fn last_that(holds: impl Fn(f64) -> bool, mut yes: f64, mut no: f64) -> f64 {
    while no - yes > 1.0 {
        let middle = ((yes + no) / 2.0).floor();
        if middle <= yes || middle >= no {
            break;
        }
        if holds(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    yes
}

#[cfg(test)]
mod tests;
