//! `classic`: the textbook filter of one array of `m` bits, of which an element sets `k` anywhere.
//!
//! ```text
//! position j = high half of word(h, j) · m          bit p is bit (p mod 8) of byte (p div 8)
//! ```
//!
//! A "block" here is one bit, so that spreading and folding are the same operation in every layout.

use super::scheme::{Scheme, Shape};
use crate::hash::{reduce, word};
use crate::interrupt::{self, Meter};
use crate::simd::prefetch;

/// The `classic` layout.
pub struct Classic;

#[inline(always)]
pub(super) fn bits(shape: Shape, hash: u64) -> impl Iterator<Item = u64> {
    (0..shape.num_hashes).map(move |j| reduce(word(hash, j), shape.blocks))
}

#[inline(always)]
fn set(payload: &mut [u8], bit: u64) {
    payload[(bit >> 3) as usize] |= 1 << (bit & 7);
}

/// Calls `visit` with the position of every set bit, in order.
fn for_each_set_bit(bits: &[u8], mut visit: impl FnMut(u64)) {
    for (i, &byte) in interrupt::each(bits.iter().enumerate()) {
        let mut rest = byte;
        while rest != 0 {
            visit(i as u64 * 8 + u64::from(rest.trailing_zeros()));
            rest &= rest - 1;
        }
    }
}

impl Scheme for Classic {
    #[inline(always)]
    fn block_of(shape: Shape, hash: u64) -> u64 {
        reduce(word(hash, 0), shape.blocks)
    }

    #[inline(always)]
    fn insert(payload: &mut [u8], shape: Shape, hash: u64) {
        bits(shape, hash).for_each(|bit| set(payload, bit));
    }

    #[inline(always)]
    fn contains(payload: &[u8], shape: Shape, hash: u64) -> bool {
        bits(shape, hash).all(|bit| payload[(bit >> 3) as usize] >> (bit & 7) & 1 == 1)
    }

    #[inline(always)]
    fn prefetch(payload: &[u8], shape: Shape, hash: u64) {
        bits(shape, hash).for_each(|bit| prefetch(payload.as_ptr(), (bit >> 3) as usize));
    }
}

pub(super) fn spread(small: &[u8], large: &mut [u8], q: u64) {
    let mut meter = Meter::default();
    for_each_set_bit(small, |bit| {
        interrupt::each(bit * q..(bit + 1) * q).for_each(|bit| set(large, bit));
        meter.add(q as usize);
    });
}

pub(super) fn fold(large: &[u8], small: &mut [u8], q: u64) {
    for_each_set_bit(large, |bit| set(small, bit / q));
}
