//! Estimates of how many elements a filter has, and its present false positive rate.
//! [`crate::filter::overfull`] says whether that is higher than promised.
//!
//! **Elements.** An element leaves a given bit clear with probability 1 - a, so of `n` elements the
//! clear share is (1 - a)^n on average, and n is estimated as ln(clear) / ln(1 - a):
//!
//! | layout | a |
//! |---|---|
//! | classic | 1 - (1 - 1/m)^k |
//! | blocked | (1 - (1 - 1/512)^k) / B |
//! | parquet | 1 / (32 · B) |
//!
//! Spreading a small filter into a large one repeats its bits, which would count several times;
//! folding to the greatest common divisor of the block counts ever merged (the base) undoes that.
//! But a small filter that was nearly empty may, as a base, be full of the other filter's elements.
//! So the result is the estimate at the finest size that agrees with those at all coarser ones.
//! Here 50,000 elements at capacity 64,000 were merged with an empty filter of capacity 2,000:
//!
//! ```text
//! capacity   estimate
//!    2,000         ∞    every bit is set: it says nothing, and agrees with everything
//!    4,000    51,912
//!    8,000    50,003
//!   16,000    49,997
//!   32,000    50,071
//!   64,000    50,087    the result; if the small filter had been full, 4,000 would be the last that agrees
//! ```
//!
//! For a sparse filter the number is exact.
//!
//! **Rate.** The mean over blocks of fill^k; in `parquet` of the product of the fills of a block's
//! eight words, since an absent element is probed at one bit of each.

use super::build::insert_entries;
use super::header::Header;
use super::merge::{merged_header, or_into, union};
use super::sparse;
use super::view::{Body, View};
use crate::error::Result;
use crate::layout::{Layout, Shape};
use crate::simd;
use crate::{interrupt, memory};
use std::borrow::Cow;

/// Two estimates agree if they differ by at most this many standard errors of the coarser one.
const AGREEMENT: f64 = 2.0;

/// Unions of up to this many bytes are built to be counted.
const SMALL_UNION_BYTES: u64 = 16 << 20;

/// Figures of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterInfo {
    /// Bits of the dense form.
    pub num_bits: u64,
    /// Bits that are set, in a sparse filter those of its dense form.
    pub bits_set: u64,
    pub fill_ratio: f64,
    /// Estimated distinct elements; infinite if every bit is set.
    pub cardinality: f64,
    pub current_fpr: f64,
    /// Whether every bit is set, so that every element may be in it.
    pub saturated: bool,
}

pub fn count_ones(bits: &[u8]) -> u64 {
    interrupt::strides(bits).map(simd::count_ones).sum()
}

/// The rate of one block: the chance that an absent element's bits are all set.
fn block_rate(layout: Layout, num_hashes: u32, block: &[u8]) -> f64 {
    match layout {
        Layout::Parquet => {
            let words = block.as_chunks::<4>().0;
            words
                .iter()
                .map(|w| f64::from(u32::from_le_bytes(*w).count_ones()) / 32.0)
                .product()
        }
        _ => (simd::count_ones(block) as f64 / 512.0).powi(num_hashes as i32),
    }
}

/// The present rate of a dense payload of `header`'s size.
pub(crate) fn rate_of_bits(header: &Header<'_>, bits: &[u8]) -> f64 {
    let (layout, num_hashes) = (header.layout, header.num_hashes);
    if layout == Layout::Classic {
        return (count_ones(bits) as f64 / header.blocks as f64).powi(num_hashes as i32);
    }
    let bytes = (layout.block_bits() / 8) as usize;
    let of_block = |block: &[u8]| block_rate(layout, num_hashes, block);
    let of_stride = |stride: &[u8]| stride.chunks_exact(bytes).map(of_block).sum::<f64>();
    interrupt::strides(bits).map(of_stride).sum::<f64>() / header.blocks as f64
}

/// The most positions of a `classic` filter's elements that are kept as numbers; more are marked in
/// windows of bits.
const MOST_POSITIONS: usize = 1 << 20;
/// Bits of such a window.
const WINDOW: u64 = 8 * (64 << 20);

/// The number of bits that the dense form of a sparse `classic` filter would have set.
fn distinct_positions(header: &Header<'_>, entries: &[[u8; 8]]) -> u64 {
    let count = entries.len() * header.num_hashes as usize;
    let positions = || sparse::values(entries).flat_map(|hash| header.shape().classic_bits(hash));
    if count <= MOST_POSITIONS {
        let mut list = memory::with_capacity(count);
        list.extend(positions());
        list.sort_unstable();
        list.dedup();
        return list.len() as u64;
    }
    let mut ones = 0;
    for first in (0..header.blocks).step_by(WINDOW as usize) {
        let mut marked = memory::zeroed(WINDOW.min(header.blocks - first).div_ceil(8) as usize);
        for bit in
            interrupt::cancellable(positions()).filter_map(|position| position.checked_sub(first))
        {
            if let Some(byte) = marked.get_mut((bit >> 3) as usize) {
                *byte |= 1 << (bit & 7);
            }
        }
        ones += count_ones(&marked);
    }
    ones
}

/// The number of set bits of a sparse filter's dense form, and its rate, in memory that depends
/// only on the number of hashes.
pub(crate) fn dense_form_of(header: &Header<'_>, entries: &[[u8; 8]]) -> (u64, f64) {
    let (layout, num_hashes) = (header.layout, header.num_hashes);
    if layout == Layout::Classic {
        let ones = distinct_positions(header, entries);
        return (ones, (ones as f64 / header.blocks as f64).powi(num_hashes as i32));
    }
    // Ascending hashes have ascending blocks, so one block at a time is enough.
    let shape = header.shape();
    let one_block = Shape { blocks: 1, ..shape };
    let mut block = vec![0u8; (layout.block_bits() / 8) as usize];
    let (mut ones, mut sum) = (0, 0.0);
    let index = |entry: &[u8; 8]| shape.block_of(sparse::value(entry));
    for own in interrupt::cancellable(entries.chunk_by(|a, b| index(a) == index(b))) {
        block.fill(0);
        interrupt::cancellable(sparse::values(own))
            .for_each(|hash| one_block.insert_all(&mut block, &[hash]));
        ones += count_ones(&block);
        sum += block_rate(layout, num_hashes, &block);
    }
    (ones, sum / header.blocks as f64)
}

/// The present false positive rate of a filter. A sparse one compares whole hashes: n / 2^64.
pub fn current_fpr(view: &View<'_>) -> f64 {
    match view.body {
        Body::Sparse(entries) => entries.len() as f64 / 64f64.exp2(),
        Body::Dense(bits) => rate_of_bits(&view.header, bits),
    }
}

/// The number of elements that set this many of the bits of so many blocks; infinite for all of
/// them.
fn elements_for(shape: Shape, ones: u64) -> f64 {
    let Shape { layout, num_hashes, blocks } = shape;
    let (k, b, bits) = (f64::from(num_hashes), blocks as f64, blocks * layout.block_bits());
    // ln(1 - a): the logarithm of the chance that an element leaves a given bit clear.
    let log_clear = match layout {
        Layout::Classic => k * (-1.0 / b).ln_1p(),
        Layout::Blocked => ((k * (-1.0 / 512f64).ln_1p()).exp_m1() / b).ln_1p(),
        Layout::Parquet => (-1.0 / (32.0 * b)).ln_1p(),
    };
    match ones {
        0 => 0.0,
        _ if ones == bits => f64::INFINITY,
        _ => (-(ones as f64 / bits as f64)).ln_1p() / log_clear,
    }
}

/// The estimated number of distinct elements: exact when sparse, infinite when every bit is set.
pub fn cardinality(view: &View<'_>) -> f64 {
    let h = &view.header;
    match view.body {
        Body::Dense(bits) if h.base_blocks != h.blocks => finest_agreeing(h, &by_size(h, bits)),
        _ => elements_by_fill(view),
    }
}

/// Block counts and the estimates at them, from the filter's own down to its base. Each divides the
/// one before.
fn by_size(h: &Header<'_>, bits: &[u8]) -> Vec<(u64, f64)> {
    let mut blocks = h.blocks;
    let mut bits = Cow::Borrowed(bits);
    let mut sizes = Vec::new();
    loop {
        sizes.push((blocks, elements_for(Shape { blocks, ..h.shape() }, count_ones(&bits))));
        if blocks == h.base_blocks {
            return sizes;
        }
        // The smallest factor above one.
        let n = blocks / h.base_blocks;
        let factor = (2..)
            .take_while(|i| i * i <= n)
            .find(|&i| n.is_multiple_of(i))
            .unwrap_or(n);
        blocks /= factor;
        let mut folded = memory::zeroed(h.layout.payload_bytes(blocks) as usize);
        h.layout.fold(&bits, &mut folded, factor);
        bits = Cow::Owned(folded);
    }
}

/// The estimate at the finest size that agrees with those at all coarser ones. Estimates at finer
/// sizes vary less, but are higher for bits that were spread. A size with all bits set agrees with
/// every estimate.
fn finest_agreeing(h: &Header<'_>, sizes: &[(u64, f64)]) -> f64 {
    let mut coarser: Vec<(f64, f64)> = Vec::new();
    for &(blocks, elements) in sizes.iter().rev() {
        if coarser
            .iter()
            .any(|&(other, error)| (elements - other).abs() > AGREEMENT * error)
        {
            break;
        }
        let error = standard_error(Shape { blocks, ..h.shape() }, elements);
        coarser.push((elements, if elements.is_finite() { error } else { f64::INFINITY }));
    }
    coarser.last().map_or(0.0, |&(elements, _)| elements)
}

/// The estimated number of distinct elements of the union of two filters. A union that would be
/// much larger than both is not built: sparse filters are then counted by their hashes, or folded
/// to the size of the dense one. Errors: those of a union, except for its size.
pub fn union_cardinality(a: &View<'_>, b: &View<'_>) -> Result<f64> {
    let mut header = merged_header(&a.header, &b.header)?;
    // Nothing of the other filter is copied.
    if a.header.is_unsized() || b.header.is_unsized() {
        return Ok(cardinality(if a.header.is_unsized() { b } else { a }));
    }
    if header.payload_bytes() <= SMALL_UNION_BYTES {
        let value: Vec<u8> = union(a, b, u64::MAX)?;
        return Ok(cardinality(&View::parse_trusted(&value)?));
    }
    if let (Body::Sparse(x), Body::Sparse(y)) = (a.body, b.body) {
        return Ok(sparse::union(x, y).count() as f64);
    }
    let dense = [a, b].into_iter().filter(|view| matches!(view.body, Body::Dense(_)));
    header.blocks = dense.map(|view| view.header.blocks).max().unwrap_or(header.blocks);
    let mut bits = memory::zeroed(header.payload_bytes() as usize);
    for view in [a, b] {
        match view.body {
            Body::Sparse(entries) if view.header.blocks > header.blocks => {
                insert_entries(&mut bits, &header, entries)
            }
            _ => or_into(&mut bits, header.blocks, view),
        }
    }
    Ok(cardinality(&View { header, body: Body::Dense(&bits) }))
}

/// The number of elements with which a filter would be as full as it is; more than it has if it was
/// spread.
pub fn elements_by_fill(view: &View<'_>) -> f64 {
    let h = &view.header;
    match view.body {
        Body::Sparse(entries) => entries.len() as f64,
        Body::Dense(bits) => elements_for(h.shape(), count_ones(bits)),
    }
}

/// The standard error of the estimate for a filter that holds `elements`, from the variance of its
/// clear share.
///
/// In the block layouts the loads of blocks vary too: with λ elements per block, `E[z]` =
/// exp(-λ(1-q)) for one clear bit and exp(-λ(1-q₂)) for two of them, minus what follows from the
/// total being `elements`.
pub fn standard_error(shape: Shape, elements: f64) -> f64 {
    let Shape { layout, num_hashes, blocks } = shape;
    let (k, b) = (f64::from(num_hashes), blocks as f64);
    let load = elements / b;
    let clear = |untouched: f64| (-load * (1.0 - untouched)).exp();
    let (touched, square) = match layout {
        Layout::Classic => {
            let clear = (-k * load).exp();
            let variance = clear * (1.0 - (1.0 + k * load) * clear);
            return (b * variance.max(0.0)).sqrt() / (k * clear);
        }
        Layout::Blocked => {
            let (one, two) = ((511f64 / 512.0).powf(k), (510f64 / 512.0).powf(k));
            (1.0 - one, clear(one) / 512.0 + clear(two) * 511.0 / 512.0)
        }
        Layout::Parquet => {
            let (one, same_word) = (31.0 / 32.0, 30.0 / 32.0);
            let square = clear(one) + 31.0 * clear(same_word) + 224.0 * clear(one * one);
            (1.0 - one, square / 256.0)
        }
    };
    let mean = (-load * touched).exp();
    let variance = square - mean * mean * (1.0 + load * touched * touched);
    (b * variance.max(0.0)).sqrt() / (touched * mean)
}

pub fn info(view: &View<'_>) -> FilterInfo {
    let h = &view.header;
    let num_bits = h.blocks * h.layout.block_bits();
    let bits_set = match view.body {
        Body::Dense(bits) => count_ones(bits),
        Body::Sparse(entries) => dense_form_of(h, entries).0,
    };
    FilterInfo {
        num_bits,
        bits_set,
        fill_ratio: if num_bits == 0 { 0.0 } else { bits_set as f64 / num_bits as f64 },
        cardinality: cardinality(view),
        current_fpr: current_fpr(view),
        saturated: num_bits > 0 && bits_set == num_bits && matches!(view.body, Body::Dense(_)),
    }
}

/// The size of the intersection from |a|, |b| and |a ∪ b|, by inclusion–exclusion; never negative.
/// Not a number if a filter is saturated.
pub fn intersection_cardinality(a: f64, b: f64, union: f64) -> f64 {
    if union.is_infinite() {
        return f64::NAN;
    }
    (a + b - union).max(0.0).min(a.min(b))
}

/// |a ∩ b| / |a ∪ b|; 1 for two empty sets.
pub fn jaccard(a: f64, b: f64, union: f64) -> f64 {
    if union == 0.0 { 1.0 } else { intersection_cardinality(a, b, union) / union }
}

#[cfg(test)]
mod tests;
