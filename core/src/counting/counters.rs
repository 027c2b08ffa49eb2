//! The counters of a payload: four bits each, sixteen in eight bytes.
//!
//! ```text
//! counter   1    0     3    2     5    4
//!         ┌────┬────┐┌────┬────┐┌────┬────┐
//!         │high│low ││high│low ││high│low │ …        counter i belongs to bit i of a blocked filter
//!         └────┴────┘└────┴────┘└────┴────┘
//! byte         0          1          2
//! ```
//!
//! Incrementing and adding stop at 15, which [`super`] explains. That makes both commutative and
//! associative: any order gives min(number of increments, 15).

use crate::hash::reduce;
use crate::interrupt::{self, STRIDE_BYTES};
use crate::layout::{Layout, Shape, blocked};
use crate::simd::prefetch as prefetch_line;
use std::{array, iter};

/// The largest value of a counter, which means this or more.
pub const SATURATED: u8 = 15;
/// The counters of a block; all counters of an element are in one.
pub const BLOCK_COUNTERS: u64 = Layout::Blocked.block_bits();
/// The bytes of a block.
pub const BLOCK_BYTES: usize = BLOCK_COUNTERS as usize / 2;

const CACHE_LINE: usize = 64;

#[inline(always)]
fn block_of(payload: &mut [u8], shape: Shape, hash: u64) -> &mut [u8; BLOCK_BYTES] {
    &mut payload.as_chunks_mut::<BLOCK_BYTES>().0[reduce(hash, shape.blocks) as usize]
}

/// Returns which of the 512 counters of its block an element has: the same positions as those of
/// its bits in a filter of layout `blocked`, in ascending order. Each position is returned once,
/// even if several hashes of the element choose it, so that adding the element counts it once.
#[inline(always)]
fn positions(shape: Shape, hash: u64) -> impl Iterator<Item = usize> {
    // Adds the element to an empty block of bits; its positions are the bits that are set there.
    let mut block = [0; blocked::BLOCK_BYTES];
    blocked::insert(&mut block, shape.num_hashes, hash);
    let words: [u64; 8] = array::from_fn(|i| u64::from_le_bytes(block.as_chunks().0[i]));
    words
        .into_iter()
        .enumerate()
        .flat_map(|(word_number, mut bits_left)| {
            iter::from_fn(move || {
                let position = (bits_left != 0)
                    .then(|| word_number * 64 + bits_left.trailing_zeros() as usize);
                // Clears the lowest bit that is set.
                bits_left &= bits_left.wrapping_sub(1);
                position
            })
        })
}

/// Returns by how many bits the counter at a position is shifted in its byte.
#[inline(always)]
fn shift(position: usize) -> u32 {
    4 * (position as u32 & 1)
}

/// Returns whether every counter of an element in its block is at least one. Only the number of
/// hashes of `shape` counts here.
#[inline]
pub fn block_contains(block: &[u8; BLOCK_BYTES], shape: Shape, hash: u64) -> bool {
    positions(shape, hash).all(|p| block[p / 2] >> shift(p) & SATURATED != 0)
}

/// Returns how many copies of an element a filter seems to have, given the element's block of
/// counters: the least of the element's counters. [`SATURATED`], 15, stands for 15 or more.
///
/// Each counter of an element is the number of its copies, plus the copies of other elements that
/// share the counter. So the least counter is the nearest to the number of copies, and never below
/// it. Of `shape` only the number of hashes matters here.
pub fn block_count(block: &[u8; BLOCK_BYTES], shape: Shape, hash: u64) -> u8 {
    let counters = positions(shape, hash).map(|p| block[p / 2] >> shift(p) & SATURATED);
    counters.min().unwrap_or(0)
}

/// Returns the least counter of an element, as [`block_count`] does, in all counters of a filter.
pub fn count(payload: &[u8], shape: Shape, hash: u64) -> u8 {
    let blocks = payload.as_chunks::<BLOCK_BYTES>().0;
    block_count(&blocks[reduce(hash, shape.blocks) as usize], shape, hash)
}

/// Returns whether every counter of an element is at least one, in all counters of a filter.
#[inline]
pub fn contains(payload: &[u8], shape: Shape, hash: u64) -> bool {
    block_contains(
        &payload.as_chunks::<BLOCK_BYTES>().0[reduce(hash, shape.blocks) as usize],
        shape,
        hash,
    )
}

/// Requests the memory of an element's block.
#[inline]
pub fn prefetch(payload: &[u8], shape: Shape, hash: u64) {
    let start = reduce(hash, shape.blocks) as usize * BLOCK_BYTES;
    for line in 0..BLOCK_BYTES / CACHE_LINE {
        prefetch_line(payload.as_ptr(), start + line * CACHE_LINE);
    }
}

/// Changes the counters of an element in its block, except for those that are saturated (15), whose
/// true value isn't known. A byte has two counters of four bits. So `change` is called with the
/// byte that has the counter, and with the number that adds one to this counter: 1 for the lower
/// four bits, 16 for the upper four.
#[inline(always)]
fn change_counters(
    block: &mut [u8; BLOCK_BYTES],
    shape: Shape,
    hash: u64,
    change: impl Fn(&mut u8, u8),
) {
    for position in positions(shape, hash) {
        let counter = block[position / 2] >> shift(position) & SATURATED;
        if counter != SATURATED {
            change(&mut block[position / 2], 1 << shift(position));
        }
    }
}

/// Adds one to the counters of an element, except saturated ones.
#[inline]
pub fn add(payload: &mut [u8], shape: Shape, hash: u64) {
    change_counters(block_of(payload, shape, hash), shape, hash, |byte, one| *byte += one);
}

/// Subtracts one from the counters of an element, except saturated ones. Nothing changes if one of
/// them is zero, since the element isn't there then.
#[inline]
pub fn remove(payload: &mut [u8], shape: Shape, hash: u64) {
    let block = block_of(payload, shape, hash);
    if block_contains(block, shape, hash) {
        change_counters(block, shape, hash, |byte, one| *byte -= one);
    }
}

/// Adds the counters of `from` to those of `into`, which are as many; a sum above 15 becomes 15.
/// Checks for interrupts.
pub fn sum_into(into: &mut [u8], from: &[u8]) {
    for (into_stride, from_stride) in interrupt::paired_strides(into, from) {
        for (into_byte, from_byte) in into_stride.iter_mut().zip(from_stride) {
            let low = ((*into_byte & SATURATED) + (from_byte & SATURATED)).min(SATURATED);
            let high = ((*into_byte >> 4) + (from_byte >> 4)).min(SATURATED);
            *into_byte = high << 4 | low;
        }
    }
}

/// Returns one bit for each of sixteen counters of four bits: whether it isn't zero.
#[inline(always)]
fn bits_of(counters: u64) -> u16 {
    // The lowest bit of each counter becomes the "or" of its four bits.
    let lowest = (counters | counters >> 1 | counters >> 2 | counters >> 3) & 0x1111_1111_1111_1111;
    // Every fourth bit is collected: first two of them side by side, then four, eight, sixteen.
    let pairs = (lowest | lowest >> 3) & 0x0303_0303_0303_0303;
    let fours = (pairs | pairs >> 6) & 0x000F_000F_000F_000F;
    let eights = (fours | fours >> 12) & 0x0000_00FF_0000_00FF;
    (eights | eights >> 24) as u16
}

/// Writes one bit for each counter: whether it isn't zero. `counters` must have four times as many
/// bytes as `bits`. Checks for interrupts.
pub fn to_bits(counters: &[u8], bits: &mut [u8]) {
    // A bit for a counter of four bits.
    let bits_of_strides = bits.chunks_mut(STRIDE_BYTES / 4);
    for (stride, bits_of_stride) in interrupt::strides(counters).zip(bits_of_strides) {
        let (sixteen_counters_each, _) = stride.as_chunks::<8>();
        let (sixteen_bits_each, _) = bits_of_stride.as_chunks_mut::<2>();
        for (counters, bits) in sixteen_counters_each.iter().zip(sixteen_bits_each) {
            *bits = bits_of(u64::from_le_bytes(*counters)).to_le_bytes();
        }
    }
}

/// Totals of the counters of a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Counters that are not zero.
    pub set: u64,
    /// Counters that are saturated.
    pub saturated: u64,
    /// The sum of all counters.
    pub total: u64,
}

/// Returns how many counters are not zero, how many are saturated (have their greatest value, 15),
/// and the sum of all. `counters` has two counters of four bits in each byte.
///
/// Checks for interrupts, so a user can cancel it.
pub fn tally(counters: &[u8]) -> Tally {
    let mut tally = Tally::default();
    for stride in interrupt::strides(counters) {
        // The totals of a stride, of at most a megabyte, fit 32 bits, which are added faster.
        let mut set = 0;
        let mut saturated = 0;
        let mut total = 0;
        for byte in stride {
            let low_counter = byte & SATURATED;
            let high_counter = byte >> 4;
            for counter in [low_counter, high_counter] {
                set += u32::from(counter > 0);
                saturated += u32::from(counter == SATURATED);
                total += u32::from(counter);
            }
        }
        tally.set += u64::from(set);
        tally.saturated += u64::from(saturated);
        tally.total += u64::from(total);
    }
    tally
}
