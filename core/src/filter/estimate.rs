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

use super::build::insert_list;
use super::header::Header;
use super::merge::{merged_header, or_into, union};
use super::sparse;
use super::view::{Body, View};
use crate::error::Result;
use crate::interrupt;
use crate::layout::{Layout, Shape};
use crate::memory::List;
use crate::simd;
use std::borrow::Cow;

/// Two estimates agree if they differ by at most this many standard errors of the coarser one.
const AGREEMENT: f64 = 2.0;

/// A union of at most this number of bytes is built to be counted. This takes a few milliseconds.
const SMALL_UNION_BYTES: u64 = 16 << 20;

/// Bits of a block of the layout `blocked`.
const BLOCKED_BITS: f64 = 512.0;

/// Bits of each of the eight words of a block of the layout `parquet`.
const PARQUET_WORD_BITS: f64 = 32.0;

/// Bits of a block of the layout `parquet`.
const PARQUET_BLOCK_BITS: f64 = 256.0;

/// What can be told of a filter from its header and its bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterInfo {
    /// Bits of the dense form.
    pub num_bits: u64,
    /// Bits that are set in the dense form.
    pub bits_set: u64,
    /// The share of bits that are set; 0 in a filter of no size.
    pub fill_ratio: f64,
    /// Estimated distinct elements; infinite if every bit is set.
    pub cardinality: f64,
    /// The share of absent elements that the filter reports as present.
    pub current_fpr: f64,
    /// Whether the filter is dense and every bit is set, so that any element may be in it.
    pub saturated: bool,
}

/// Returns how many bits are set. Checks for interrupts.
pub fn count_ones(bits: &[u8]) -> u64 {
    interrupt::strides(bits).map(simd::count_ones).sum()
}

/// Returns the false positive rate of one block of a `blocked` or `parquet` filter: the probability
/// that all bits at which an absent element is probed are set.
fn block_rate(layout: Layout, num_hashes: u32, block: &[u8]) -> f64 {
    if layout == Layout::Parquet {
        // One bit of each 32-bit word is probed.
        let (words, _) = block.as_chunks::<4>();
        return words
            .iter()
            .map(|word| f64::from(u32::from_le_bytes(*word).count_ones()) / PARQUET_WORD_BITS)
            .product();
    }
    let fill = simd::count_ones(block) as f64 / BLOCKED_BITS;
    fill.powi(num_hashes as i32)
}

/// Returns the present false positive rate of a `classic` filter, given how many of its bits are
/// set.
fn classic_rate(shape: Shape, bits_set: u64) -> f64 {
    let fill = bits_set as f64 / shape.blocks as f64;
    fill.powi(shape.num_hashes as i32)
}

/// Returns the present false positive rate of a dense filter, given its bits: the probability that
/// all bits at which an absent element is probed are set. Checks for interrupts.
pub(crate) fn rate_of_bits(header: &Header<'_>, bits: &[u8]) -> f64 {
    let shape = header.shape();
    if shape.layout == Layout::Classic {
        return classic_rate(shape, count_ones(bits));
    }

    // An absent element is probed in any block with the same probability, so the rate is the mean
    // of the rates of all blocks. They are summed stride by stride: other orders round differently.
    let block_bytes = (shape.layout.block_bits() / 8) as usize;
    let rate_of_block = |block: &[u8]| block_rate(shape.layout, shape.num_hashes, block);
    let sum: f64 = interrupt::strides(bits)
        .map(|stride| stride.chunks_exact(block_bytes).map(rate_of_block).sum::<f64>())
        .sum();
    sum / shape.blocks as f64
}

/// Up to this number of positions are counted by sorting them, in 8 MB of memory.
const MOST_SORTED_POSITIONS: usize = 1 << 20;
/// More positions are counted by marking them in bits: 64 MB of bits at a time.
const MARKED_AT_ONCE: u64 = 8 * (64 << 20);

/// Returns how many bits would be set if a sparse filter of layout `classic`, a list of hashes,
/// were dense. Each bit that several elements set is counted once. The dense form isn't built,
/// since it may be much larger than memory.
///
/// The positions of the bits of a short list are sorted, and repeated ones are dropped. Those of a
/// long list are marked in a bitmap of one part of the dense form after the other.
///
/// Checks for interrupts, so a user can cancel it.
fn bits_set_in_classic(header: &Header<'_>, list: &[[u8; 8]]) -> u64 {
    let shape = header.shape();
    let num_positions = list.len() * shape.num_hashes as usize;
    if num_positions <= MOST_SORTED_POSITIONS {
        let mut sorted = List::with_capacity(num_positions);
        sorted.extend(sparse::hashes_in(list).flat_map(|hash| shape.classic_bits(hash)));
        sorted.sort_unstable();
        sorted.dedup();
        return sorted.len() as u64;
    }

    // The bits of one part of the dense form at a time.
    let mut bits_set = 0;
    for part_start in (0..shape.blocks).step_by(MARKED_AT_ONCE as usize) {
        let part_bits = MARKED_AT_ONCE.min(shape.blocks - part_start);
        let mut marked: List<u8> = List::zeroed(part_bits.div_ceil(8) as usize);
        let positions = sparse::hashes_in(list).flat_map(|hash| shape.classic_bits(hash));
        for position in interrupt::cancellable(positions) {
            // Positions in other parts are left out.
            let Some(bit) = position.checked_sub(part_start) else {
                continue;
            };
            if let Some(byte) = marked.get_mut((bit >> 3) as usize) {
                *byte |= 1 << (bit & 7);
            }
        }
        bits_set += count_ones(&marked);
    }
    bits_set
}

/// What a sparse filter would be as a dense one.
pub(crate) struct DenseForm {
    pub(crate) bits_set: u64,
    /// Its false positive rate.
    pub(crate) fpr: f64,
}

/// Returns what a sparse filter, a stored list of hashes, would be if it were dense: how many bits
/// would be set, and which false positive rate it would have, in the size that `header` tells. The
/// dense form isn't built, since it may be much larger than memory.
///
/// Checks for interrupts, so a user can cancel it.
pub(crate) fn dense_form_of(header: &Header<'_>, list: &[[u8; 8]]) -> DenseForm {
    let shape = header.shape();
    if shape.layout == Layout::Classic {
        let bits_set = bits_set_in_classic(header, list);
        return DenseForm { bits_set, fpr: classic_rate(shape, bits_set) };
    }

    // The highest bits of a hash choose its block, and the hashes ascend. So those of one block
    // follow each other, and one block at a time is built.
    let block_of = |entry: &[u8; 8]| shape.block_of(sparse::hash_in(entry));
    let hashes_by_block = list.chunk_by(|first, second| block_of(first) == block_of(second));

    let one_block = Shape { blocks: 1, ..shape };
    let mut block = List::filled(0u8, (shape.layout.block_bits() / 8) as usize);
    let mut bits_set = 0;
    // Blocks without elements have rate 0.
    let mut sum_of_rates = 0.0;
    for hashes_of_block in interrupt::cancellable(hashes_by_block) {
        block.fill(0);
        for hash in interrupt::cancellable(sparse::hashes_in(hashes_of_block)) {
            one_block.insert_all(&mut block, &[hash]);
        }
        bits_set += count_ones(&block);
        sum_of_rates += block_rate(shape.layout, shape.num_hashes, &block);
    }
    DenseForm { bits_set, fpr: sum_of_rates / shape.blocks as f64 }
}

/// Returns the present false positive rate of a filter: the share of absent elements that it
/// reports as present. Checks for interrupts.
pub fn current_fpr(view: &View<'_>) -> f64 {
    match view.body {
        Body::Dense(bits) => rate_of_bits(&view.header, bits),
        // An absent element is found if its 64-bit hash is that of one of the elements.
        Body::Sparse(list) => list.len() as f64 / 64f64.exp2(),
    }
}

/// Returns the number of distinct elements that set `bits_set` bits of a filter of this shape, on
/// average; infinity if all bits are set.
///
/// If an element sets a given bit with probability a, then n elements leave it clear with
/// probability (1 - a)^n, which is the share of clear bits on average. So n is
/// ln(share of clear bits) / ln(1 - a). With k hashes, m bits and B blocks, a is
///
/// - in `classic` 1 - (1 - 1/m)^k: each hash sets one of all bits;
/// - in `blocked` (1 - (1 - 1/512)^k) / B: the element's block is the bit's, and one of the hashes
///   sets the bit in it;
/// - in `parquet` 1 / (32 · B): the element's block is the bit's, and one bit of each word is set.
fn elements_for(shape: Shape, bits_set: u64) -> f64 {
    let bits = shape.blocks * shape.layout.block_bits();
    if bits_set == 0 {
        return 0.0;
    }
    if bits_set == bits {
        return f64::INFINITY;
    }

    let k = f64::from(shape.num_hashes);
    let blocks = shape.blocks as f64;
    // ln(1 - a).
    let log_clear_by_element = match shape.layout {
        Layout::Classic => k * (-1.0 / blocks).ln_1p(),
        Layout::Blocked => ((k * (-1.0 / BLOCKED_BITS).ln_1p()).exp_m1() / blocks).ln_1p(),
        Layout::Parquet => (-1.0 / (32.0 * blocks)).ln_1p(),
    };
    let log_clear = (-(bits_set as f64 / bits as f64)).ln_1p();
    log_clear / log_clear_by_element
}

/// Returns the estimated number of distinct elements. It is exact if the filter is sparse, and
/// infinite if every bit is set. Checks for interrupts.
pub fn cardinality(view: &View<'_>) -> f64 {
    let header = &view.header;
    match view.body {
        // The filter was merged with one of another size, so bits may be there several times.
        Body::Dense(bits) if header.base_blocks != header.blocks => {
            finest_agreeing(header, &estimates_by_size(header, bits))
        }
        _ => elements_by_fill(view),
    }
}

/// The estimated number of distinct elements of a filter that was folded to some size.
struct SizeEstimate {
    blocks: u64,
    elements: f64,
}

/// Estimates the number of distinct elements of a dense filter, which has these `bits`, at several
/// sizes. Returns the estimates, that at the largest size first.
///
/// If a smaller filter was merged into this one, its bits were *spread*: each block of it was
/// copied to several. Then the bits would count several times. *Folding*, ORing such blocks again,
/// undoes that. So the number is estimated from the filter's own blocks, and from its bits folded
/// to fewer blocks by the smallest possible factor again and again, down to the base blocks: the
/// greatest common divisor of the numbers of blocks of all filters that were merged.
///
/// Checks for interrupts, so a user can cancel it.
fn estimates_by_size(header: &Header<'_>, bits: &[u8]) -> List<SizeEstimate> {
    let mut shape = header.shape();
    let mut bits_at_size = Cow::Borrowed(bits);
    let mut estimates = List::new();
    loop {
        let elements = elements_for(shape, count_ones(&bits_at_size));
        estimates.push(SizeEstimate { blocks: shape.blocks, elements });
        if shape.blocks == header.base_blocks {
            return estimates;
        }

        let factor = smallest_factor(shape.blocks / header.base_blocks);
        shape.blocks /= factor;
        let mut folded = List::zeroed(shape.payload_bytes() as usize);
        shape.layout.fold(&bits_at_size, &mut folded, factor);
        bits_at_size = Cow::Owned(folded.into());
    }
}

/// Returns the smallest factor of a number that is greater than 1. It is a prime number.
fn smallest_factor(n: u64) -> u64 {
    (2..)
        .take_while(|factor| factor * factor <= n)
        .find(|&factor| n.is_multiple_of(factor))
        .unwrap_or(n)
}

/// Chooses the best of several estimates of the number of elements of a filter, which were made at
/// several sizes of it: returns the estimate at the largest size that agrees with the estimates at
/// all smaller sizes. `estimates` has them from the largest to the smallest size; without any the
/// result is 0.
///
/// Estimates at larger sizes vary less. But they are too high if a small filter was merged into the
/// large one: then each of its bits is there several times. Two estimates agree if they differ by
/// at most [`AGREEMENT`] standard errors of the one at the smaller size. A size with all bits set
/// estimates infinity, which says nothing, and agrees with every other.
fn finest_agreeing(header: &Header<'_>, estimates: &[SizeEstimate]) -> f64 {
    /// An estimate that agrees with all at smaller sizes, and how far others may be from it.
    struct Agreeing {
        elements: f64,
        tolerance: f64,
    }

    let mut agreeing: List<Agreeing> = List::new();
    for &SizeEstimate { blocks, elements } in estimates.iter().rev() {
        let disagrees = agreeing
            .iter()
            .any(|smaller| (elements - smaller.elements).abs() > smaller.tolerance);
        if disagrees {
            break;
        }
        let tolerance = if elements.is_finite() {
            AGREEMENT * standard_error(Shape { blocks, ..header.shape() }, elements)
        } else {
            f64::INFINITY
        };
        agreeing.push(Agreeing { elements, tolerance });
    }
    agreeing.last().map_or(0.0, |largest_size| largest_size.elements)
}

/// Returns the estimated number of distinct elements that are in at least one of two filters.
///
/// A union of at most `SMALL_UNION_BYTES` is built, and its elements are estimated. For larger ones
/// less work is done. Of two lists of hashes, the distinct hashes are counted. In all other cases a
/// filter has bits, and the elements of both are estimated in a filter of its size (of the larger
/// size, if both have bits), which may be smaller than the union.
///
/// Checks for interrupts, so a user can cancel it. Fails if the filters can't be merged, as
/// [`merged_header`] does.
pub fn union_cardinality(a: &View<'_>, b: &View<'_>) -> Result<f64> {
    let merged = merged_header(&a.header, &b.header)?;

    // A filter of no size has no elements.
    if a.header.is_unsized() {
        return Ok(cardinality(b));
    }
    if b.header.is_unsized() {
        return Ok(cardinality(a));
    }

    if merged.payload_bytes() <= SMALL_UNION_BYTES {
        let value: List<u8> = union(a, b, u64::MAX)?;
        return Ok(cardinality(&View::parse_trusted(&value)?));
    }
    if let (Body::Sparse(list_a), Body::Sparse(list_b)) = (a.body, b.body) {
        return Ok(sparse::union(list_a, list_b).count() as f64);
    }

    let header = Header { blocks: most_blocks_of_bits(a, b), ..merged };
    let mut bits = List::zeroed(header.payload_bytes() as usize);
    add_elements(&mut bits, &header, a);
    add_elements(&mut bits, &header, b);
    Ok(cardinality(&View { header, body: Body::Dense(&bits) }))
}

/// Returns the number of blocks in which the elements of two filters are counted together: that of
/// the filter with bits, or the larger one if both have bits. 0 if both are lists of hashes.
///
/// A list doesn't matter, even if its filter has more blocks: its hashes can set bits in any number
/// of blocks. In more blocks, the bits of the other filter would only be copied to several of them,
/// which tells nothing more about its elements.
fn most_blocks_of_bits(a: &View<'_>, b: &View<'_>) -> u64 {
    let blocks_of_bits = |view: &View<'_>| match view.body {
        Body::Dense(_) => view.header.blocks,
        Body::Sparse(_) => 0,
    };
    blocks_of_bits(a).max(blocks_of_bits(b))
}

/// Adds the elements of a filter to the bits of another one, whose header is `header`. The filter
/// must not have more blocks than that one, except if it is a list of hashes.
///
/// Checks for interrupts, so a user can cancel it.
fn add_elements(bits: &mut [u8], header: &Header<'_>, view: &View<'_>) {
    match view.body {
        // The hashes set the same bits as if they were set in the filter's own, larger size, whose
        // neighbouring blocks were then ORed.
        Body::Sparse(list) if view.header.blocks > header.blocks => {
            insert_list(bits, header, list);
        }
        // As in a union: each block of the filter is copied to several, if it has fewer.
        _ => or_into(bits, header.blocks, view),
    }
}

/// Returns the number of distinct elements with which a filter would be as full as it is. This is
/// more than it has if bits were spread. Checks for interrupts.
pub fn elements_by_fill(view: &View<'_>) -> f64 {
    match view.body {
        Body::Dense(bits) => elements_for(view.header.shape(), count_ones(bits)),
        Body::Sparse(list) => list.len() as f64,
    }
}

/// Returns the standard error of the estimated number of elements of a dense filter: how far, in
/// elements, the estimate typically is from the truth, if the filter has this shape and `elements`
/// distinct elements.
///
/// The estimate follows from the shares of clear bits of all blocks, of which the sum is taken. If
/// by chance the sum is wrong by as much as ten elements change it, the estimate is wrong by ten.
/// So the standard error is the standard deviation of the sum, divided by the slope: how much the
/// sum falls for each element.
///
/// Example: with 7 hashes, 100,000 elements in 1,000,000 bits of layout `classic` leave 496,585
/// clear, with a standard deviation of 278. One element more leaves 3.48 fewer. So the standard
/// error is 278 / 3.48 = 80 elements.
pub fn standard_error(shape: Shape, elements: f64) -> f64 {
    let blocks = shape.blocks as f64;
    let load = elements / blocks;
    let ClearShare { variance, slope } = match shape.layout {
        Layout::Classic => clear_share_of_bit(shape.num_hashes, load),
        Layout::Blocked | Layout::Parquet => clear_share_of_block(shape, load),
    };
    // A variance near 0 may be a little below it by rounding.
    (blocks * variance.max(0.0)).sqrt() / slope
}

/// How the shares of clear bits of a filter's blocks depend on chance, and on the number of
/// elements.
struct ClearShare {
    /// The variance of the sum of the shares of all blocks, divided by the number of blocks.
    variance: f64,
    /// By how much one element more lowers the sum of the shares on average.
    slope: f64,
}

/// Returns how the share of clear bits of a block varies in a filter of layout `classic`, with
/// `load` elements per block. A block is one bit here, so its share is 1 or 0.
///
/// After `load`·k throws per bit, a bit is clear with probability q = e^(-load·k). The variance is
/// that of the number of bits which random throws leave clear, divided by the number of bits:
/// q (1 - (1 + load·k) q), which is derived on the page of [`crate::sizing::rate`].
fn clear_share_of_bit(num_hashes: u32, load: f64) -> ClearShare {
    let k = f64::from(num_hashes);
    let clear = (-k * load).exp();
    ClearShare {
        variance: clear * (1.0 - (1.0 + k * load) * clear),
        slope: k * clear,
    }
}

/// Returns how the share of clear bits of a block varies in a filter of layout `blocked` or
/// `parquet`, with `load` elements per block.
///
/// If the number of elements in a block is Poisson-distributed with mean `load`, the share z of the
/// block has the variance E(z²) - E(z)². A part of this comes from the number: its variance is the
/// load, and z falls by the slope for each element, so the part is load · slope². But all blocks
/// together have a given number of elements: if one has more, others have fewer. So this part
/// cancels out over the filter, and is subtracted.
fn clear_share_of_block(shape: Shape, load: f64) -> ClearShare {
    // Of j elements, each sets a given bit with probability s. So the bit stays clear with
    // probability (1 - s)^j, whose mean over j is e^(-load·s). It falls by s·mean for an element.
    let sets_given_bit = 1.0 - chance_to_leave_clear(shape);
    let mean = (-load * sets_given_bit).exp();
    let slope = sets_given_bit * mean;

    // The part that cancels out is load · slope² = load · s² · mean².
    let cancelled_per_mean_square = load * sets_given_bit * sets_given_bit;
    let mean_square = mean_square_of_clear_share(shape, load);
    let variance = mean_square - mean * mean * (1.0 + cancelled_per_mean_square);
    ClearShare { variance, slope }
}

/// Returns the probability that an element of a `blocked` or `parquet` block leaves a given bit of
/// it clear.
fn chance_to_leave_clear(shape: Shape) -> f64 {
    if shape.layout == Layout::Parquet {
        // One bit of each 32-bit word is set.
        return (PARQUET_WORD_BITS - 1.0) / PARQUET_WORD_BITS;
    }
    // Each of k hashes sets one of 512 bits.
    let k = f64::from(shape.num_hashes);
    ((BLOCKED_BITS - 1.0) / BLOCKED_BITS).powf(k)
}

/// Returns the probability that some given bits of a block are all clear. One element leaves all of
/// them clear with probability `one_leaves_clear` (u), and the number of elements in the block is
/// Poisson-distributed with mean `load`.
///
/// If there are j elements, the probability is u^j, and its mean over all j is e^(-load·(1 - u)).
fn chance_all_clear(load: f64, one_leaves_clear: f64) -> f64 {
    (-load * (1.0 - one_leaves_clear)).exp()
}

/// Returns the mean of z², where z is the share of clear bits of a `blocked` or `parquet` block,
/// and the number of elements in the block is Poisson-distributed with mean `load`.
///
/// If two bits are drawn at random from the block, perhaps the same one twice, both are clear with
/// probability z². So the mean of z² is the probability that two drawn bits are clear. All bits are
/// alike, so only the second bit matters: whether it is the first one again, and in `parquet`
/// whether it is in the same word.
fn mean_square_of_clear_share(shape: Shape, load: f64) -> f64 {
    let leaves_one_clear = chance_to_leave_clear(shape);
    let same_bit_is_clear = chance_all_clear(load, leaves_one_clear);

    if shape.layout == Layout::Parquet {
        // Of the 256 bits that may be drawn second, 1 is the first one again, 31 are others in its
        // word, and 224 are in other words.
        let others_in_word = PARQUET_WORD_BITS - 1.0;
        let in_other_words = PARQUET_BLOCK_BITS - PARQUET_WORD_BITS;

        // An element sets one of 32 bits in each word, in one independently of the others.
        let leaves_two_in_word_clear = (PARQUET_WORD_BITS - 2.0) / PARQUET_WORD_BITS;
        let leaves_two_in_two_words_clear = leaves_one_clear * leaves_one_clear;
        let sum = same_bit_is_clear
            + others_in_word * chance_all_clear(load, leaves_two_in_word_clear)
            + in_other_words * chance_all_clear(load, leaves_two_in_two_words_clear);
        return sum / PARQUET_BLOCK_BITS;
    }

    // Of the 512 bits that may be drawn second, 1 is the first one again, and 511 are others. An
    // element has k hashes, each of which sets one of the 512 bits.
    let k = f64::from(shape.num_hashes);
    let leaves_two_clear = ((BLOCKED_BITS - 2.0) / BLOCKED_BITS).powf(k);
    same_bit_is_clear / BLOCKED_BITS
        + chance_all_clear(load, leaves_two_clear) * (BLOCKED_BITS - 1.0) / BLOCKED_BITS
}

/// Returns figures that describe a filter: its bits, how many of them are set, its estimated number
/// of elements, and its present false positive rate. Of a sparse filter, which has a list of hashes
/// instead of bits, the bits are those that it would have if it were dense; the other figures are
/// those of the list.
///
/// Checks for interrupts, so a user can cancel it.
pub fn info(view: &View<'_>) -> FilterInfo {
    let header = &view.header;
    let num_bits = header.blocks * header.layout.block_bits();
    let bits_set = match view.body {
        Body::Dense(bits) => count_ones(bits),
        Body::Sparse(list) => dense_form_of(header, list).bits_set,
    };
    let is_dense = matches!(view.body, Body::Dense(_));
    FilterInfo {
        num_bits,
        bits_set,
        fill_ratio: if num_bits == 0 { 0.0 } else { bits_set as f64 / num_bits as f64 },
        cardinality: cardinality(view),
        current_fpr: current_fpr(view),
        saturated: is_dense && num_bits > 0 && bits_set == num_bits,
    }
}

/// Returns the size of the intersection of two sets, given their sizes and that of their union,
/// which may be estimates: |a| + |b| - |a ∪ b|, at least 0 and at most the smaller size. Not a
/// number if the size of the union is infinite, as of filters with all bits set.
pub fn intersection_cardinality(a: f64, b: f64, union: f64) -> f64 {
    if union.is_infinite() {
        return f64::NAN;
    }
    (a + b - union).max(0.0).min(a.min(b))
}

/// Returns the Jaccard similarity |a ∩ b| / |a ∪ b| of two sets, given their sizes and that of
/// their union; 1 if both are empty.
pub fn jaccard(a: f64, b: f64, union: f64) -> f64 {
    if union == 0.0 { 1.0 } else { intersection_cardinality(a, b, union) / union }
}

#[cfg(test)]
mod tests;
