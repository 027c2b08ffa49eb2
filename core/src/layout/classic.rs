//! `classic`: the textbook filter of one array of `m` bits, of which an element sets `k` anywhere.
//!
//! ```text
//! position j = high half of word(h, j) · m          bit p is bit (p mod 8) of byte (p div 8)
//! ```
//!
//! A "block" here is one bit, so that spreading and folding are the same operation in every layout.

use super::scheme::Scheme;
use super::shape::Shape;
use crate::hash::{reduce, word};
use crate::interrupt;
use crate::simd::prefetch;

/// The `classic` layout.
pub struct Classic;

/// The bits of an element.
pub(super) fn bits(shape: Shape, hash: u64) -> impl Iterator<Item = u64> {
    (0..shape.num_hashes).map(move |j| reduce(word(hash, j), shape.blocks))
}

#[inline(always)]
fn position(shape: Shape, hash: u64, j: u32) -> (usize, u8) {
    let bit = reduce(word(hash, j), shape.blocks);
    ((bit >> 3) as usize, 1 << (bit & 7))
}

/// Sets bits `from..to`.
fn set_range(bits: &mut [u8], from: u64, to: u64) {
    let (first, last) = ((from >> 3) as usize, ((to - 1) >> 3) as usize);
    let head = 0xFFu8 << (from & 7);
    let tail = 0xFFu8 >> (7 - ((to - 1) & 7));
    if first == last {
        bits[first] |= head & tail;
    } else {
        bits[first] |= head;
        for stride in bits[first + 1..last].chunks_mut(interrupt::STRIDE) {
            stride.fill(0xFF);
            if stride.len() == interrupt::STRIDE {
                interrupt::check();
            }
        }
        bits[last] |= tail;
    }
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
        for j in 0..shape.num_hashes {
            let (byte, bit) = position(shape, hash, j);
            payload[byte] |= bit;
        }
    }

    #[inline(always)]
    fn contains(payload: &[u8], shape: Shape, hash: u64) -> bool {
        (0..shape.num_hashes).all(|j| {
            let (byte, bit) = position(shape, hash, j);
            payload[byte] & bit != 0
        })
    }

    #[inline(always)]
    fn prefetch(payload: &[u8], shape: Shape, hash: u64) {
        prefetch(payload, position(shape, hash, 0).0);
    }

    /// An element's bits are spread over memory, so all of them are prefetched.
    fn insert_all(payload: &mut [u8], shape: Shape, hashes: &[u64]) {
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&ahead) = hashes.get(i + 4) {
                (0..shape.num_hashes).for_each(|j| prefetch(payload, position(shape, ahead, j).0));
            }
            Self::insert(payload, shape, hash);
        }
    }

    fn spread(small: &[u8], large: &mut [u8], q: u64) {
        for_each_set_bit(small, |bit| set_range(large, bit * q, (bit + 1) * q));
    }

    fn fold(large: &[u8], small: &mut [u8], q: u64) {
        for_each_set_bit(large, |bit| {
            let bit = bit / q;
            small[(bit >> 3) as usize] |= 1 << (bit & 7);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_equal_single_bits() {
        for from in 0..40u64 {
            for to in from + 1..=48 {
                let mut bits = [0u8; 6];
                set_range(&mut bits, from, to);
                let mut expected = [0u8; 6];
                (from..to).for_each(|b| expected[b as usize / 8] |= 1 << (b % 8));
                assert_eq!(bits, expected, "{from}..{to}");
            }
        }
    }
}
