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

use super::build::{from_hashes, insert_entries, size_unsized_build};
use super::estimate::{dense_form_of, rate_of_bits};
use super::header::{Capacity, Header, payload_mut};
use super::merge::gcd;
use super::sparse;
use super::view::{Body, View};
use crate::error::{InvalidParameter, Result};
use crate::kind::Kind;
use crate::layout::Shape;
use crate::memory::Buffer;
use crate::sizing::{self, MAX_STORED_BYTES};
use crate::{interrupt, memory};

/// The filter as if built for `capacity` elements at its own rate. Without a capacity the filter
/// must be a list, and is sized for its elements. Errors: [`InvalidParameter::ResizeDoesNotDivide`]
/// for bits whose size neither divides nor is divided by the new one,
/// [`InvalidParameter::ResizeNeedsCapacity`] for bits without a capacity;
/// [`crate::Class::TooLarge`] if it would grow to more than `limit` bytes; those of
/// [`sizing::size_for_capacity`].
pub fn resize<B: Buffer>(view: &View<'_>, capacity: Option<u64>, limit: u64) -> Result<B> {
    match (view.body, capacity) {
        (Body::Sparse(entries), _) => resize_list(&view.header, entries, capacity, limit),
        (Body::Dense(bits), Some(capacity)) => resize_bits(&view.header, bits, capacity, limit),
        (Body::Dense(_), None) => Err(InvalidParameter::ResizeNeedsCapacity.into()),
    }
}

fn resize_list<B: Buffer>(
    h: &Header<'_>,
    entries: &[[u8; 8]],
    capacity: Option<u64>,
    limit: u64,
) -> Result<B> {
    let header = match capacity {
        Some(capacity) => {
            Header::with_size(sizing::size_for_capacity(h.layout, capacity, h.fpr)?, h.kind)
        }
        None => {
            let kind = if entries.is_empty() { Kind::NONE } else { h.kind };
            size_unsized_build(
                &Header { kind, ..Header::without_size(h.layout, h.fpr) },
                entries.len(),
                u64::MAX,
            )?
        }
    };
    if header.blocks > h.blocks {
        header.check_size(limit)?;
    }
    from_hashes(
        &header,
        &memory::collect(interrupt::cancellable(sparse::values(entries))),
        u64::MAX,
    )
}

fn resize_bits<B: Buffer>(h: &Header<'_>, bits: &[u8], capacity: u64, limit: u64) -> Result<B> {
    let blocks = blocks_for(h, capacity)?;
    let header = Header { capacity: Capacity::Elements(capacity), ..of_size(h, blocks) };
    if blocks > h.blocks {
        header.check_size(limit)?;
    }
    if !blocks.is_multiple_of(h.blocks) && !h.blocks.is_multiple_of(blocks) {
        let possible = capacity_that_fits(h, blocks);
        return Err(InvalidParameter::ResizeDoesNotDivide {
            own: h.size(),
            capacity,
            blocks,
            possible,
        }
        .into());
    }
    let mut value: B = header.dense();
    let payload = payload_mut(&mut value, &header);
    if blocks >= h.blocks {
        h.layout.spread(bits, payload, blocks / h.blocks);
    } else {
        h.layout.fold(bits, payload, h.blocks / blocks);
    }
    Ok(value)
}

/// The blocks of a filter with the hashes and the rate of this one, for this many elements.
fn blocks_for(h: &Header<'_>, capacity: u64) -> Result<u64> {
    let size = sizing::size_for_capacity(h.layout, capacity, h.fpr)?;
    if size.num_hashes == h.num_hashes {
        return Ok(size.blocks);
    }
    let holds = |blocks| sizing::capacity_of(Shape { blocks, ..h.shape() }, h.fpr) >= capacity;
    let mut blocks = h.blocks;
    while !holds(blocks) {
        blocks *= 2;
        Header { blocks, capacity: Capacity::Elements(capacity), ..*h }
            .check_size(MAX_STORED_BYTES)?;
    }
    while blocks.is_multiple_of(2) && holds(blocks / 2) {
        blocks /= 2;
    }
    Ok(blocks)
}

/// The capacity of a size to which bits can be resized: the next one from `wanted` blocks up, if
/// there is one.
fn capacity_that_fits(h: &Header<'_>, wanted: u64) -> Option<u64> {
    let mut blocks = h.blocks;
    while blocks < wanted {
        blocks *= 2;
    }
    while blocks.is_multiple_of(2) && blocks / 2 >= wanted {
        blocks /= 2;
    }
    // No capacity may have the size of a small filter that was built without one, but larger powers
    // of two have one.
    let own = std::iter::successors(Some(h.blocks), |own| own.checked_mul(2)).take(12);
    std::iter::once(blocks).chain(own).find_map(|blocks| {
        let most = sizing::capacity_of(Shape { blocks, ..h.shape() }, h.fpr);
        // A size may be slightly larger than the least that keeps the rate.
        let fits = |capacity| blocks_for(h, capacity).is_ok_and(|found| found <= blocks);
        let capacity = sizing::least_number(most, |capacity| !fits(capacity)) - 1;
        let divides = |found: u64| found.is_multiple_of(h.blocks) || h.blocks.is_multiple_of(found);
        (capacity > 0 && blocks_for(h, capacity).is_ok_and(divides)).then_some(capacity)
    })
}

/// Halves a filter while its present rate stays at or under `fpr`. If it becomes smaller, its rate
/// is `fpr`, and its capacity what the smaller size holds at that rate. Errors: those of
/// [`sizing::check_fpr`].
pub fn fold<B: Buffer>(view: &View<'_>, fpr: f64) -> Result<B> {
    let h = &view.header;
    sizing::check_fpr(h.layout, fpr)?;
    let mut header = *h;
    // Its bits, once they are no longer those of `view`.
    let mut folded: Option<Vec<u8>> = None;
    while header.blocks > 0 && header.blocks.is_multiple_of(2) {
        let half = Header { fpr, ..of_size(&header, header.blocks / 2) };
        let (rate, bits) = match view.body {
            Body::Sparse(entries) if half.fits_sparse(entries.len()) => {
                (dense_form_of(&half, entries).1, None)
            }
            body => {
                let mut bits = memory::zeroed(half.payload_bytes() as usize);
                match (folded.as_deref(), body) {
                    (Some(own), _) | (None, Body::Dense(own)) => h.layout.fold(own, &mut bits, 2),
                    (None, Body::Sparse(entries)) => insert_entries(&mut bits, &half, entries),
                }
                (rate_of_bits(&half, &bits), Some(bits))
            }
        };
        if rate > fpr {
            break;
        }
        (header, folded) = (half, bits);
    }
    if header.blocks < h.blocks {
        header.capacity = Capacity::Elements(sizing::capacity_of(header.shape(), fpr));
    }
    let body = folded.as_deref().map_or(view.body, Body::Dense);
    Ok(View { header, body }.to_buffer())
}

/// The header of the filter with this many blocks, to which it is spread or folded.
fn of_size<'a>(h: &Header<'a>, blocks: u64) -> Header<'a> {
    Header { blocks, base_blocks: gcd(h.base_blocks, blocks), ..*h }
}

#[cfg(test)]
mod tests;
