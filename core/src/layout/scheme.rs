//! The operations of a layout, and code that several layouts share.

use super::shape::Shape;
use crate::interrupt::{Meter, STRIDE, check};
use crate::simd::PREFETCH_AHEAD;

/// The operations of a layout. The payload always has [`Shape::payload_bytes`] bytes.
pub trait Scheme {
    /// The first block that an element touches; in `classic`, its first bit.
    fn block_of(shape: Shape, hash: u64) -> u64;

    /// Sets the bits of one element.
    fn insert(payload: &mut [u8], shape: Shape, hash: u64);

    /// Whether every bit of one element is set.
    fn contains(payload: &[u8], shape: Shape, hash: u64) -> bool;

    /// Prefetches the memory that this element needs.
    fn prefetch(payload: &[u8], shape: Shape, hash: u64);

    /// Sets the bits of many elements, prefetching memory.
    fn insert_all(payload: &mut [u8], shape: Shape, hashes: &[u64]) {
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&ahead) = hashes.get(i + PREFETCH_AHEAD) {
                Self::prefetch(payload, shape, ahead);
            }
            Self::insert(payload, shape, hash);
        }
    }

    /// Probes many elements, prefetching memory. Calls `found` with each result, in order.
    fn contains_each(payload: &[u8], shape: Shape, hashes: &[u64], mut found: impl FnMut(bool)) {
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&ahead) = hashes.get(i + PREFETCH_AHEAD) {
                Self::prefetch(payload, shape, ahead);
            }
            found(Self::contains(payload, shape, hash));
        }
    }

    /// ORs every block of `small` into the `q` blocks of `large` that hold its elements.
    fn spread(small: &[u8], large: &mut [u8], q: u64);

    /// ORs each `q` neighbouring blocks of `large` into one of `small`.
    fn fold(large: &[u8], small: &mut [u8], q: u64);
}

/// ORs `from` into `into`, byte by byte, in strides that can be cancelled.
pub fn or_bytes(into: &mut [u8], from: &[u8]) {
    for (into, from) in into.chunks_mut(STRIDE).zip(from.chunks(STRIDE)) {
        into.iter_mut().zip(from).for_each(|(i, &f)| *i |= f);
        check();
    }
}

/// ANDs `from` into `into`, byte by byte, in strides that can be cancelled.
pub fn and_bytes(into: &mut [u8], from: &[u8]) {
    for (into, from) in into.chunks_mut(STRIDE).zip(from.chunks(STRIDE)) {
        into.iter_mut().zip(from).for_each(|(i, &f)| *i &= f);
        check();
    }
}

/// Spreading for layouts whose blocks are `N` whole bytes.
pub(super) fn spread_blocks<const N: usize>(small: &[u8], large: &mut [u8], q: u64) {
    let group = usize::try_from(q).unwrap_or(usize::MAX).saturating_mul(N);
    let mut meter = Meter::default();
    for (block, copies) in small.chunks_exact(N).zip(large.chunks_exact_mut(group)) {
        for copies in copies.chunks_mut(STRIDE) {
            for copy in copies.chunks_exact_mut(N) {
                copy.iter_mut().zip(block).for_each(|(c, &b)| *c |= b);
            }
            meter.add(copies.len());
        }
    }
}

/// Folding for layouts whose blocks are `N` whole bytes.
pub(super) fn fold_blocks<const N: usize>(large: &[u8], small: &mut [u8], q: u64) {
    let group = usize::try_from(q).unwrap_or(usize::MAX).saturating_mul(N);
    let mut meter = Meter::default();
    for (block, copies) in small.chunks_exact_mut(N).zip(large.chunks_exact(group)) {
        for copies in copies.chunks(STRIDE) {
            for copy in copies.chunks_exact(N) {
                block.iter_mut().zip(copy).for_each(|(b, &c)| *b |= c);
            }
            meter.add(copies.len());
        }
    }
}
