//! Other sizes for an existing filter.
//!
//! ```text
//! list   ──▶  as built from these elements with the other capacity
//! bits   ──▶  spread to a size that is a multiple, or folded to one that divides
//! ```
//!
//! [`fold`] halves a filter that has fewer elements than its capacity:
//!
//! ```text
//! list   while a list of its length may have that size; then it becomes bits
//! bits   neighbouring blocks are ORed
//! ```
//!
//! Resizing bits can't change the number of hashes that set them. If capacity and rate need another
//! number, as in a filter that was folded to another rate, the size is the smallest that keeps the
//! rate and is its own times a power of two.

use super::build::{from_hashes, insert_list, size_unsized_build};
use super::estimate::{dense_form_of, rate_of_bits};
use super::header::{Capacity, Header, payload_mut};
use super::merge::gcd;
use super::sparse;
use super::view::{Body, View};
use crate::error::{InvalidParameter, Result};
use crate::interrupt;
use crate::kind::Kind;
use crate::layout::Shape;
use crate::memory::{Buffer, List};
use crate::sizing::{self, MAX_STORED_BYTES};
use std::iter;

/// Returns the filter as if built for `capacity` elements at its own rate. Without a capacity, a
/// sparse filter is sized for the elements that it has.
///
/// Fails if the rate and the capacity give no filter; with
/// [`InvalidParameter::ResizeDoesNotDivide`] if the filter is dense and the number of its blocks
/// neither divides nor is divided by the new one; with [`InvalidParameter::ResizeNeedsCapacity`] if
/// it is dense and there is no capacity; and with [`crate::Class::TooLarge`] if it would grow to
/// more than `limit` bytes as stored.
pub fn resize<B: Buffer>(view: &View<'_>, capacity: Option<u64>, limit: u64) -> Result<B> {
    match (view.body, capacity) {
        (Body::Sparse(list), _) => resize_list(&view.header, list, capacity, limit),
        (Body::Dense(bits), Some(capacity)) => resize_bits(&view.header, bits, capacity, limit),
        (Body::Dense(_), None) => Err(InvalidParameter::ResizeNeedsCapacity.into()),
    }
}

/// Resizes a sparse filter, one that is a list of hashes: returns the filter that a build for
/// `capacity` elements would have made of these elements. Without a capacity, it is sized for as
/// many elements as it has. `header` is the header of the filter that has the `list`.
///
/// Fails as [`resize`] does. A result of more than `limit` bytes is refused only if it is larger
/// than the filter itself.
fn resize_list<B: Buffer>(
    header: &Header<'_>,
    list: &[[u8; 8]],
    capacity: Option<u64>,
    limit: u64,
) -> Result<B> {
    let resized = match capacity {
        Some(capacity) => {
            let size = sizing::size_for_capacity(header.layout, capacity, header.fpr)?;
            Header::with_size(size, header.kind)
        }
        None => {
            // Without elements there is no size, and a filter of no size has no kind.
            let kind = if list.is_empty() { Kind::NONE } else { header.kind };
            let unsized_header = Header { kind, ..Header::without_size(header.layout, header.fpr) };
            size_unsized_build(&unsized_header, list.len(), u64::MAX)?
        }
    };
    if resized.blocks > header.blocks {
        resized.check_size(limit)?;
    }

    let hashes = interrupt::cancellable(sparse::hashes_in(list)).collect::<List<_>>();
    from_hashes(&resized, &hashes, u64::MAX)
}

/// Resizes a dense filter, one with bits, so that it keeps its false positive rate with `capacity`
/// elements: its bits are *spread* to a multiple of its blocks (each block is copied to several),
/// or *folded* to a divisor (several blocks are ORed to one). `header` is the header of the
/// filter that has the `bits`.
///
/// Fails as [`resize`] does. A result of more than `limit` bytes is refused only if it is larger
/// than the filter itself.
fn resize_bits<B: Buffer>(
    header: &Header<'_>,
    bits: &[u8],
    capacity: u64,
    limit: u64,
) -> Result<B> {
    let blocks = blocks_for(header, capacity)?;
    let resized = Header {
        capacity: Capacity::Elements(capacity),
        ..with_blocks(header, blocks)
    };
    if blocks > header.blocks {
        resized.check_size(limit)?;
    }
    if !divides(blocks, header.blocks) {
        return Err(InvalidParameter::ResizeDoesNotDivide {
            own: header.size(),
            capacity,
            blocks,
            possible: possible_capacity(header, blocks),
        }
        .into());
    }

    let mut value: B = resized.dense();
    let payload = payload_mut(&mut value, &resized);
    if blocks >= header.blocks {
        header.layout.spread(bits, payload, blocks / header.blocks);
    } else {
        header.layout.fold(bits, payload, header.blocks / blocks);
    }
    Ok(value)
}

/// Returns whether one of two numbers of blocks is a multiple of the other.
fn divides(a: u64, b: u64) -> bool {
    a.is_multiple_of(b) || b.is_multiple_of(a)
}

/// Returns the header of a filter that is spread or folded to this number of blocks. Its capacity
/// is still the old one.
fn with_blocks<'a>(header: &Header<'a>, blocks: u64) -> Header<'a> {
    Header {
        blocks,
        base_blocks: gcd(header.base_blocks, blocks),
        ..*header
    }
}

/// Returns how many blocks a dense filter, one with bits, should be resized to, so that it keeps
/// its false positive rate with `capacity` elements.
///
/// Its bits were set with a number of hashes per element that can't change. Usually that is the
/// best one for its rate, and any new filter for this capacity has the same number of blocks. But
/// a filter that was folded to another rate may have another number of hashes. Then its own number
/// of blocks is doubled or halved until it is the least such number that keeps the rate.
///
/// Fails if the layout can't keep the rate, or if the filter would exceed the largest stored size.
fn blocks_for(header: &Header<'_>, capacity: u64) -> Result<u64> {
    let size = sizing::size_for_capacity(header.layout, capacity, header.fpr)?;
    if size.num_hashes == header.num_hashes {
        return Ok(size.blocks);
    }

    // The filter was folded to another rate, which would need another number of hashes.
    let holds_capacity = |blocks| {
        let shape = Shape { blocks, ..header.shape() };
        sizing::capacity_of(shape, header.fpr) >= capacity
    };
    let mut blocks = header.blocks;
    while !holds_capacity(blocks) {
        blocks *= 2;
        let doubled = Header { blocks, capacity: Capacity::Elements(capacity), ..*header };
        doubled.check_size(MAX_STORED_BYTES)?;
    }
    while blocks.is_multiple_of(2) && holds_capacity(blocks / 2) {
        blocks /= 2;
    }
    Ok(blocks)
}

/// How many numbers of blocks [`possible_capacity`] tries from the filter's own one on, each twice
/// as large as the last. A small filter that was built without a capacity may have a size that no
/// capacity has, but some larger power of two is the size of one.
const SIZES_TRIED: usize = 12;

/// Returns a capacity to which a dense filter can be resized, for the hint of the error that it
/// can't be resized to `wanted` blocks. `None` if none is found.
///
/// Bits can only be spread to a multiple of the filter's blocks, or folded to a divisor. So numbers
/// of blocks are tried that are the filter's own, doubled or halved some times. Not every number is
/// the size of some capacity: one element more may take several blocks more, and sizes are rounded
/// up. The result is the largest capacity of the first size that has one.
///
/// Example: if a filter of 96 blocks can't be resized to 150, the sizes tried are 192 (the least
/// that is enough), and then 96, 192, 384 …. The result is the largest capacity of 192 blocks.
fn possible_capacity(header: &Header<'_>, wanted: u64) -> Option<u64> {
    let mut nearest = header.blocks;
    while nearest < wanted {
        nearest *= 2;
    }
    while nearest.is_multiple_of(2) && nearest / 2 >= wanted {
        nearest /= 2;
    }

    let own_and_larger = iter::successors(Some(header.blocks), |blocks| blocks.checked_mul(2));
    iter::once(nearest)
        .chain(own_and_larger.take(SIZES_TRIED))
        .find_map(|blocks| largest_capacity(header, blocks))
}

/// Returns the largest capacity that needs at most this number of blocks, if a dense filter can be
/// resized to it; else `None`.
fn largest_capacity(header: &Header<'_>, blocks: u64) -> Option<u64> {
    // Sizes are rounded up, so one may keep the rate with a few more elements than its capacity.
    let shape = Shape { blocks, ..header.shape() };
    let guess = sizing::capacity_of(shape, header.fpr);
    let fits = |capacity| blocks_for(header, capacity).is_ok_and(|needed| needed <= blocks);
    let capacity = sizing::least_number(guess, |capacity| !fits(capacity)) - 1;

    let is_possible = capacity > 0
        && blocks_for(header, capacity).is_ok_and(|needed| divides(needed, header.blocks));
    is_possible.then_some(capacity)
}

/// Returns a filter in as few blocks as keep the rate `fpr`: its number of blocks is halved as long
/// as its present false positive rate, with the elements that it has now, is at most `fpr`.
///
/// If the filter becomes smaller, its promised rate is `fpr`, and its capacity the number of
/// elements that the smaller size holds at that rate. Otherwise the result is an unchanged copy.
///
/// Fails if the layout can't keep the rate `fpr`.
pub fn fold<B: Buffer>(view: &View<'_>, fpr: f64) -> Result<B> {
    let original = &view.header;
    sizing::check_fpr(original.layout, fpr)?;

    let mut header = *original;
    // The bits after the last halving. `None` while the body is the original one.
    let mut folded_bits: Option<List<u8>> = None;
    while header.blocks > 0 && header.blocks.is_multiple_of(2) {
        let body = folded_bits.as_deref().map_or(view.body, Body::Dense);
        let halved_header = Header { fpr, ..with_blocks(&header, header.blocks / 2) };
        let halved = halve_body(body, &halved_header);
        if halved.present_fpr > fpr {
            break;
        }
        header = halved_header;
        folded_bits = halved.bits;
    }

    if header.blocks < original.blocks {
        let capacity = sizing::capacity_of(header.shape(), fpr);
        header.capacity = Capacity::Elements(capacity);
    }
    let body = folded_bits.as_deref().map_or(view.body, Body::Dense);
    Ok(View { header, body }.to_buffer())
}

/// The body of a filter that was folded to half of its blocks.
struct HalvedBody {
    /// Its bits; `None` if it is still the same list of hashes.
    bits: Option<List<u8>>,
    /// Its present false positive rate; for a list, that of its dense form.
    present_fpr: f64,
}

/// Folds the elements of a filter to half of its blocks: returns its bits in that size, and the
/// false positive rate that they have. `halved_header` is the header of the result.
///
/// A filter that is a list of hashes stays the same list, without bits, if it is short enough for
/// the smaller size. The rate of a list is nearly 0. But the filter may get more elements until it
/// has bits, and then the size must keep the promised rate. So the rate that is returned is that of
/// the bits for which the list stands.
fn halve_body(body: Body<'_>, halved_header: &Header<'_>) -> HalvedBody {
    if let Body::Sparse(list) = body
        && halved_header.fits_sparse(list.len())
    {
        let present_fpr = dense_form_of(halved_header, list).fpr;
        return HalvedBody { bits: None, present_fpr };
    }

    let mut bits = List::zeroed(halved_header.payload_bytes() as usize);
    match body {
        Body::Dense(original_bits) => halved_header.layout.fold(original_bits, &mut bits, 2),
        Body::Sparse(list) => insert_list(&mut bits, halved_header, list),
    }
    let present_fpr = rate_of_bits(halved_header, &bits);
    HalvedBody { bits: Some(bits), present_fpr }
}

#[cfg(test)]
mod tests;
