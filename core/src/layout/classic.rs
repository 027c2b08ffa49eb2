//! `classic`: the textbook filter of one array of `m` bits, of which an element sets `k` anywhere.
//!
//! ```text
//! position j = high half of word(h, j) · m          bit p is bit (p mod 8) of byte (p div 8)
//! ```
//!
//! A "block" here is one bit, so that spreading and folding are the same operation in every layout.

use crate::interrupt::{self, Meter};

#[inline(always)]
pub fn set(payload: &mut [u8], bit: u64) {
    payload[(bit >> 3) as usize] |= 1 << (bit & 7);
}

#[inline(always)]
pub fn has(payload: &[u8], bit: u64) -> bool {
    payload[(bit >> 3) as usize] >> (bit & 7) & 1 == 1
}

/// Calls `visit` with the position of every set bit, in order.
fn for_each_set_bit(bits: &[u8], mut visit: impl FnMut(u64)) {
    for (i, &byte) in interrupt::cancellable(bits.iter().enumerate()) {
        let mut rest = byte;
        while rest != 0 {
            visit(i as u64 * 8 + u64::from(rest.trailing_zeros()));
            rest &= rest - 1;
        }
    }
}

pub fn spread(small: &[u8], large: &mut [u8], q: u64) {
    let mut meter = Meter::default();
    for_each_set_bit(small, |bit| {
        interrupt::cancellable(bit * q..(bit + 1) * q).for_each(|bit| set(large, bit));
        meter.add_bytes(q as usize);
    });
}

pub fn fold(large: &[u8], small: &mut [u8], q: u64) {
    for_each_set_bit(large, |bit| set(small, bit / q));
}
