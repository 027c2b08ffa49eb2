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

/// Returns the most blocks that a filter of this layout can have.
pub fn max_blocks(layout: Layout) -> u64 {
    match layout {
        // The Parquet format multiplies 32-bit numbers, of which the block count is a signed one.
        Layout::Parquet => (1 << 31) - 1,
        Layout::Blocked | Layout::Classic => MAX_STORED_BYTES * 8 / layout.block_bits(),
    }
}

/// Checks a false positive rate.
///
/// Fails with [`InvalidParameter::Rate`] if filters of this layout can't have it: it must be from
/// [`least_fpr`] to [`GREATEST_FPR`].
pub fn check_fpr(layout: Layout, fpr: f64) -> Result<()> {
    if is_possible_fpr(layout, fpr) {
        Ok(())
    } else {
        Err(InvalidParameter::Rate { fpr, layout }.into())
    }
}

/// Returns a capacity as an unsigned number.
///
/// Fails with [`InvalidParameter::Capacity`] if it is less than 1.
pub fn check_capacity(capacity: i64) -> Result<u64> {
    match u64::try_from(capacity) {
        Ok(elements) if elements > 0 => Ok(elements),
        _ => Err(InvalidParameter::Capacity(capacity).into()),
    }
}

/// From this number of blocks on, the number of a filter's blocks is computed from bits per element
/// and rounded up, to a number of the form m · 2^e, where m is at least this number and less than
/// twice as large. Smaller numbers are found by trying.
const LEAST_ROUNDED: f64 = 64.0;
/// As [`LEAST_ROUNDED`], in layout `classic`, where a block is one bit.
const LEAST_ROUNDED_CLASSIC: f64 = 1024.0;

/// What filters of one layout and rate have in common, whatever their size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Density {
    /// Hashes per element (k).
    pub num_hashes: u32,
    /// Bits per element, in the limit of many blocks.
    pub bits_per_element: f64,
}

/// Returns how many hashes and how many bits per element filters of a layout have at a false
/// positive rate, whatever their size.
///
/// The last result is kept, since a query usually needs the same one many times.
///
/// Fails with [`InvalidParameter::Rate`] if filters of this layout can't have the rate.
pub fn density(layout: Layout, fpr: f64) -> Result<Density> {
    /// A result, and what it was computed for.
    #[derive(Clone, Copy)]
    struct LastDensity {
        layout: Layout,
        /// The bits of the rate, which are compared exactly.
        fpr_bits: u64,
        density: Density,
    }
    thread_local! {
        static LAST: Cell<Option<LastDensity>> = const { Cell::new(None) };
    }
    check_fpr(layout, fpr)?;

    let fpr_bits = fpr.to_bits();
    if let Some(last) = LAST.get()
        && last.layout == layout
        && last.fpr_bits == fpr_bits
    {
        return Ok(last.density);
    }
    let density = find_density(layout, fpr);
    LAST.set(Some(LastDensity { layout, fpr_bits, density }));
    Ok(density)
}

/// Returns with how many hashes per element a filter of this layout needs the fewest bits per
/// element to have a false positive rate, and how many bits it then needs. The rate must be
/// possible in the layout. Takes long, so the result is cached by [`density`].
fn find_density(layout: Layout, fpr: f64) -> Density {
    let candidates = match layout {
        Layout::Parquet => PARQUET_HASHES..=PARQUET_HASHES,
        Layout::Blocked | Layout::Classic => {
            // The table of rates by whole numbers of bits per element tells the best number of
            // hashes for the next whole number of bits. The best one for a fraction of bits is at
            // most 2 away from that.
            let row = table::best_row(layout, fpr);
            let guess = row.map_or(MAX_HASHES, |row| row.best_hashes());
            guess.saturating_sub(2).max(1)..=(guess + 2).min(MAX_HASHES)
        }
    };
    candidates
        .map(|num_hashes| Density {
            num_hashes,
            bits_per_element: bits_that_keep_rate(layout, num_hashes, fpr),
        })
        .min_by(|a, b| a.bits_per_element.total_cmp(&b.bits_per_element))
        .expect("there is at least one candidate")
}

/// The relative error of the load from which the bits per element are computed. Stored sizes depend
/// on it.
const LOAD_PRECISION: f64 = 1e-12;
/// By how much the bits per element are raised at a time until a few blocks keep the rate as well.
/// Stored sizes depend on it.
const BITS_STEP: f64 = 1.0 + 1e-5;

/// Returns how many bits per element a filter needs to keep a false positive rate with this number
/// of hashes per element. So many bits are enough both in filters of very many blocks and in
/// filters of 64 blocks. (The sizes of smaller filters don't follow from bits per element.)
///
/// In `blocked` and `parquet`, the greatest load that keeps the rate is searched for: the number of
/// elements per block. The search begins at the least whole number of bits per element that is
/// enough, which the table of rates has; at one bit if the table has none.
///
/// Example: in `blocked` with 6 hashes, at a rate of 0.01, the table has 10 bits, which is a load
/// of 512 / 10 = 51.2 elements per block. A load of 51.6 still keeps the rate, so 512 / 51.6 = 9.92
/// bits are enough.
fn bits_that_keep_rate(layout: Layout, num_hashes: u32, fpr: f64) -> f64 {
    if layout == Layout::Classic {
        return classic_bits_that_keep_rate(num_hashes, fpr);
    }

    let block_bits = layout.block_bits() as f64;
    let table_bits = table::best_row(layout, fpr).map_or(1.0, |row| f64::from(row.bits));
    let keeps_rate = |load| rate::at_load(layout, num_hashes, load) <= fpr;
    let load = greatest_load(block_bits / table_bits, LOAD_PRECISION, keeps_rate);

    let in_many_blocks = Density { num_hashes, bits_per_element: block_bits / load };
    bits_for_few_blocks(layout, in_many_blocks, fpr)
}

/// Returns how many bits per element a `classic` filter needs to keep a false positive rate with
/// this number of hashes per element (k), by the textbook formula.
///
/// An absent element is found if all k bits at which it is probed are set. So the rate is fpr if
/// the share fpr^(1/k) of all bits is set, and 1 - fpr^(1/k) is clear. With b bits per element the
/// share e^(-k/b) is clear, so b is -k / ln(share).
///
/// Example: at a rate of 0.01 with 7 hashes, the share 0.482 must be clear, and b is 9.59.
fn classic_bits_that_keep_rate(num_hashes: u32, fpr: f64) -> f64 {
    let k = f64::from(num_hashes);
    let share_clear = -(fpr.ln() / k).exp_m1();
    -k / share_clear.ln()
}

/// Returns how many bits per element a `blocked` or `parquet` filter of few blocks needs to keep a
/// false positive rate, given the `density` that is enough in the limit of many blocks. The result
/// is at least as many bits.
///
/// Few blocks are 64 ([`LEAST_ROUNDED`]), the smallest size that is computed from bits per element;
/// smaller ones are found by trying. At rates above a quarter, filters of 64 blocks have a slightly
/// higher rate than larger ones. So the bits are raised in small steps until `fpr` is kept.
fn bits_for_few_blocks(layout: Layout, density: Density, fpr: f64) -> f64 {
    let few_blocks = Shape {
        layout,
        num_hashes: density.num_hashes,
        blocks: LEAST_ROUNDED as u64,
    };
    let num_bits = LEAST_ROUNDED * layout.block_bits() as f64;

    let mut bits_per_element = density.bits_per_element;
    while rate::expected(few_blocks, num_bits / bits_per_element) > fpr {
        bits_per_element *= BITS_STEP;
    }
    bits_per_element
}

/// Returns by which factor a `classic` filter of 1,024 bits must be larger than the bits per
/// element of its rate say, to keep the rate. Those are right in the limit of many bits; in a small
/// filter the share of set bits varies from set to set, which raises the mean rate.
///
/// The rate of a filter of m bits is E[F^k], where F is the share of bits that are set: μ on
/// average, with variance V/m. The logarithm of the rate is greater than that of μ^k by about
/// `excess` / m, where `excess` is C(k, 2) · V / μ². A share s of more bits lowers it by `slope` ·
/// s, where `slope` is the derivative of -ln(μ^k) by ln m. So s is `excess` / (`slope` · m).
///
/// Half a bit is added since n throws leave a bit clear with probability (1 - 1/m)^n, which is
/// about e^(-n / (m - 1/2)), and not with e^(-n/m); and one hundredth of a bit, which is more than
/// the terms that were left out.
fn classic_surplus(density: Density) -> f64 {
    const HALF_A_BIT_AND_MORE: f64 = 0.51;
    let k = f64::from(density.num_hashes);
    let throws_per_bit = k / density.bits_per_element;
    let clear = (-throws_per_bit).exp();
    let set = 1.0 - clear;

    let variance = clear * (1.0 - (1.0 + throws_per_bit) * clear);
    let excess = k * (k - 1.0) / 2.0 * variance / (set * set);
    let slope = k * throws_per_bit * clear / set;
    ((excess / slope + HALF_A_BIT_AND_MORE) / LEAST_ROUNDED_CLASSIC).exp()
}

/// Returns the number of blocks from which on block counts are rounded up.
fn least_rounded(layout: Layout) -> f64 {
    match layout {
        Layout::Classic => LEAST_ROUNDED_CLASSIC,
        Layout::Blocked | Layout::Parquet => LEAST_ROUNDED,
    }
}

/// Returns the smallest number that is at least `blocks`, which must be 64 or more, and has the
/// form m · 2^e with m from 64 to 126.
///
/// Example: 155 is 77.5 · 2, so it is rounded up to 78 · 2 = 156.
fn round_up(blocks: f64) -> f64 {
    let power_of_two = (blocks / LEAST_ROUNDED).log2().floor().exp2();
    let m = (blocks / power_of_two).ceil();
    // Without 127, the sizes of capacities in a power-of-two ratio always divide: see the module's
    // page.
    if m == 127.0 { 128.0 * power_of_two } else { m * power_of_two }
}

/// Returns how many blocks a filter for `capacity` elements needs by the bits per element of its
/// `density`. The result is not rounded to a whole number. It is enough for large filters (those
/// whose number of blocks will be rounded up); smaller ones may need some more.
fn needed(layout: Layout, density: Density, capacity: f64) -> f64 {
    let surplus = match layout {
        Layout::Classic => classic_surplus(density),
        Layout::Blocked | Layout::Parquet => 1.0,
    };
    capacity * density.bits_per_element * surplus / layout.block_bits() as f64
}

/// Returns how many blocks a filter for this capacity gets, so that it keeps the false positive
/// rate `fpr`. Below 64 blocks (in `classic`, where a block is a bit, below 1,024) it is the least
/// number that keeps the rate. From there on the number is rounded up to one of a few numbers, so
/// that filters of different sizes can be merged. `density` must be [`density`] of the layout and
/// the rate.
fn blocks_for(layout: Layout, density: Density, fpr: f64, capacity: f64) -> f64 {
    let needed = needed(layout, density, capacity);
    if needed >= least_rounded(layout) {
        return round_up(needed);
    }
    let keeps_rate = |blocks| {
        let shape = Shape { layout, num_hashes: density.num_hashes, blocks };
        rate::expected(shape, capacity) <= fpr
    };
    least_number(needed.ceil() as u64, keeps_rate) as f64
}

/// Returns the size of a filter that keeps the false positive rate `fpr` with up to `capacity`
/// distinct elements: how many hashes per element and how many blocks it has. The filter may be
/// larger than [`MAX_STORED_BYTES`], so that it can't be stored.
///
/// Fails with [`InvalidParameter::Rate`] if filters of this layout can't have the rate, and with
/// [`TooLarge::Bits`] if the filter would have 2^63 bits or more.
pub fn size_for_capacity(layout: Layout, capacity: u64, fpr: f64) -> Result<FilterSize> {
    let density = density(layout, fpr)?;
    let blocks = blocks_for(layout, density, fpr, capacity as f64);
    // SQL shows the number of bits as a bigint.
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

/// Returns the size of a filter that was built without a capacity, and has got `elements` distinct
/// elements: the smallest number of blocks that is a power of two and keeps the false positive rate
/// `fpr` with them. The capacity of the size is the greatest number of elements with which so many
/// blocks keep the rate.
///
/// Fails with [`InvalidParameter::Rate`] if filters of this layout can't have the rate.
pub fn power_of_two_size(layout: Layout, elements: u64, fpr: f64) -> Result<FilterSize> {
    let density = density(layout, fpr)?;
    let elements = elements.max(1) as f64;
    let mut shape = Shape { layout, num_hashes: density.num_hashes, blocks: 1 };

    // The rate of a filter that is much too small takes longest to compute. A quarter of the blocks
    // that keep the rate in large filters is surely too few, so smaller ones are skipped.
    let surely_too_few = needed(layout, density, elements) / 4.0;
    while (shape.blocks as f64) < surely_too_few {
        shape.blocks *= 2;
    }
    while rate::expected(shape, elements) > fpr {
        shape.blocks *= 2;
    }

    Ok(FilterSize {
        layout,
        num_hashes: shape.num_hashes,
        blocks: shape.blocks,
        capacity: capacity_of(shape, fpr),
        fpr,
    })
}

/// Returns the capacity of a filter of this shape: the most distinct elements with which its
/// expected false positive rate is at most `fpr`. Returns 1 if even one element leads to a higher
/// rate.
pub fn capacity_of(shape: Shape, fpr: f64) -> u64 {
    // An absent element is found if all k bits at which it is probed are set, so the rate is fpr if
    // 1 - fpr^(1/k) of the bits are clear. By the textbook formula n elements leave the share
    // e^(-k·n / bits) clear, so n is -ln(share) / k · bits. The exact capacity is near that.
    let k = f64::from(shape.num_hashes);
    let share_clear = -(fpr.ln() / k).exp_m1();
    let bits = shape.blocks as f64 * shape.layout.block_bits() as f64;
    let textbook_capacity = -share_clear.ln() / k * bits;

    let exceeds_rate = |elements| rate::expected(shape, elements as f64) > fpr;
    let too_many = least_number(textbook_capacity as u64, exceeds_rate);
    (too_many - 1).max(1)
}

/// Returns the largest capacity whose filter has at most `bytes` bytes of bits, without its header;
/// 0 if not even a filter for one element fits.
///
/// Fails with [`InvalidParameter::Rate`] if filters of this layout can't have the rate.
pub fn capacity_for_payload(layout: Layout, bytes: u64, fpr: f64) -> Result<u64> {
    let density = density(layout, fpr)?;
    let blocks_that_fit = match layout {
        Layout::Classic => bytes.saturating_mul(8),
        Layout::Blocked | Layout::Parquet => bytes / (layout.block_bits() / 8),
    } as f64;

    // Without rounding and in large filters, this many elements would fit.
    let blocks_per_element = needed(layout, density, 1.0);
    let estimate = (blocks_that_fit / blocks_per_element) as u64;
    let does_not_fit =
        |capacity| blocks_for(layout, density, fpr, capacity as f64) > blocks_that_fit;
    let too_many = least_number(estimate, does_not_fit);
    // SQL shows capacities as bigints, which are signed.
    Ok((too_many - 1).min(i64::MAX as u64))
}

/// Returns the least number, from 1 on, for which `holds` is true; `u64::MAX` if it is for none.
/// `holds` must be true for all numbers above one for which it is.
///
/// The search is fast if `guess` is near the result. From there it takes steps, each twice as long
/// as the last one, down while `holds` is true, or up while it isn't. Then the result lies between
/// two numbers that were tried, and this interval is halved until it has one number.
pub(crate) fn least_number(guess: u64, holds: impl Fn(u64) -> bool) -> u64 {
    // `holds` is false for `too_small`, or this is still 0. It is true for `enough`, or this is
    // still the greatest number.
    let mut too_small = 0;
    let mut enough = u64::MAX;
    let mut tried = guess.clamp(1, u64::MAX - 1);
    let mut step = 1;
    while enough - too_small > 1 {
        if holds(tried) {
            enough = tried;
        } else {
            too_small = tried;
        }

        let only_held_so_far = too_small == 0;
        let never_held_so_far = enough == u64::MAX;
        tried = if only_held_so_far {
            enough.saturating_sub(step).max(1)
        } else if never_held_so_far {
            too_small.saturating_add(step).min(u64::MAX - 1)
        } else {
            too_small + (enough - too_small) / 2
        };
        step = step.saturating_mul(2);
    }
    enough
}

/// Returns the greatest load, in elements per block, for which `holds` is true, with a relative
/// error of at most `precision`. `holds` must be true for all smaller loads, and false for some.
///
/// The result should be between half of `guess` and `guess`; the interval is widened if it isn't,
/// and then halved. Small loads are tried first, since computing the rates of large ones takes
/// long.
pub(crate) fn greatest_load(guess: f64, precision: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let mut enough = guess / 2.0;
    let mut too_much = guess;
    while !holds(enough) {
        too_much = enough;
        enough /= 2.0;
    }
    while holds(too_much) {
        enough = too_much;
        too_much *= 1.5;
    }

    while too_much / enough > 1.0 + precision {
        // The precision is relative, so the interval is halved by ratio: at the geometric mean.
        let middle = (enough * too_much).sqrt();
        if holds(middle) {
            enough = middle;
        } else {
            too_much = middle;
        }
    }
    enough
}

#[cfg(test)]
mod tests;
