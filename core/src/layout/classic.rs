//! `classic`: the textbook filter of one array of `m` bits, of which an element sets `k` anywhere.
//!
//! ```text
//! position j = high half of word(h, j) · m          bit p is bit (p mod 8) of byte (p div 8)
//! ```
//!
//! A "block" here is one bit, so that spreading and folding are the same operation in every layout.

use crate::interrupt::{self, Meter};

/// Sets the bit at a position of a payload.
#[inline(always)]
pub fn set(payload: &mut [u8], position: u64) {
    payload[(position >> 3) as usize] |= 1 << (position & 7);
}

/// Returns whether the bit at a position of a payload is set.
#[inline(always)]
pub fn is_set(payload: &[u8], position: u64) -> bool {
    payload[(position >> 3) as usize] >> (position & 7) & 1 == 1
}

/// Calls `visit` with the position of every set bit, in ascending order. Checks for interrupts.
fn for_each_set_bit(payload: &[u8], mut visit: impl FnMut(u64)) {
    for (i, &byte) in interrupt::cancellable(payload.iter().enumerate()) {
        let mut unvisited = byte;
        while unvisited != 0 {
            visit(i as u64 * 8 + u64::from(unvisited.trailing_zeros()));
            // Clears the lowest set bit.
            unvisited &= unvisited - 1;
        }
    }
}

/// Sets, for each set bit `i` of `small`, the bits from `factor·i` to `factor·i + factor - 1` of
/// `large`. Checks for interrupts.
pub fn spread(small: &[u8], large: &mut [u8], factor: u64) {
    let mut meter = Meter::default();
    for_each_set_bit(small, |position| {
        let copies = position * factor..(position + 1) * factor;
        for copy in interrupt::cancellable(copies) {
            set(large, copy);
        }
        // Many bits with few copies each take long as well.
        meter.add_bytes(factor as usize);
    });
}

/// Sets bit `i` of `small` if any of the bits from `factor·i` to `factor·i + factor - 1` of `large`
/// is set. Checks for interrupts.
pub fn fold(large: &[u8], small: &mut [u8], factor: u64) {
    for_each_set_bit(large, |position| set(small, position / factor));
}
