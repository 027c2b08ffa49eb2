//! Smaller sizes for a filter with fewer elements than its capacity.
//!
//! ```text
//! list   halved while a list of its length may have that size; then its bits, if they can be halved once more
//! bits   halved: neighbouring blocks are ORed
//! ```

use super::buffer::Buffer;
use super::build::insert_entries;
use super::estimate;
use super::header::{Capacity, Header, payload_mut};
use super::merge::gcd;
use super::view::{Body, View};
use crate::error::Result;
use crate::sizing::{capacity_of, limits};
use crate::{interrupt, memory};

/// Halves a filter while its present rate stays at or under `fpr`. If it becomes smaller, its rate is `fpr`, and its
/// capacity what the smaller size holds at that rate.
///
/// # Errors
/// Those of [`limits::check_fpr`].
pub fn fold<B: Buffer>(view: &View<'_>, fpr: f64) -> Result<B> {
    let h = &view.header;
    limits::check_fpr(h.layout, fpr)?;
    let (list, folded) = match view.body {
        Body::Sparse(entries) => fold_list(h, entries, fpr),
        Body::Dense(bits) => (*h, fold_bits(h, bits, fpr)),
    };
    let Some((folded, bits)) = folded else {
        return Ok(View { header: with_capacity(h, &list), body: view.body }.to_buffer());
    };
    let header = with_capacity(h, &folded);
    let mut value: B = header.dense();
    interrupt::copy(payload_mut(&mut value, &header), &bits);
    Ok(value)
}

/// A filter that was folded to bits.
type Folded<'a> = (Header<'a>, Vec<u8>);

/// The header of the smallest size that a list can have, and the bits that it becomes if these can be smaller still.
fn fold_list<'a>(h: &Header<'a>, entries: &[[u8; 8]], fpr: f64) -> (Header<'a>, Option<Folded<'a>>) {
    let mut list = *h;
    while let Some(half) = half(&list, fpr) {
        if !half.fits_sparse(entries.len()) {
            let mut bits = memory::zeroed(list.payload_bytes() as usize);
            insert_entries(&mut bits, &list, entries);
            return (list, fold_bits(&list, &bits, fpr));
        }
        if estimate::rate_of_hashes(&half, entries) > fpr {
            break;
        }
        list = half;
    }
    (list, None)
}

/// The smallest size that bits can have, if it is smaller than theirs.
fn fold_bits<'a>(h: &Header<'a>, bits: &[u8], fpr: f64) -> Option<Folded<'a>> {
    let mut folded: Option<Folded<'a>> = None;
    loop {
        let (own, bits) = folded.as_ref().map_or((h, bits), |(header, bits)| (header, bits));
        let Some(half) = half(own, fpr) else { return folded };
        let mut half_bits = memory::zeroed(half.payload_bytes() as usize);
        h.layout.fold(bits, &mut half_bits, 2);
        if estimate::rate_of_bits(&half, &half_bits) > fpr {
            return folded;
        }
        folded = Some((half, half_bits));
    }
}

/// The header of half the size, if that is a whole number of blocks.
fn half<'a>(h: &Header<'a>, fpr: f64) -> Option<Header<'a>> {
    if h.is_unsized() || !h.blocks.is_multiple_of(2) {
        return None;
    }
    let blocks = h.blocks / 2;
    Some(Header { blocks, base_blocks: gcd(h.base_blocks, blocks), fpr, ..*h })
}

/// The header of a folded filter, with the capacity that its size has.
fn with_capacity<'a>(h: &Header<'a>, folded: &Header<'a>) -> Header<'a> {
    if folded.blocks == h.blocks {
        return *h;
    }
    let capacity = Capacity::Elements(capacity_of(h.layout, h.num_hashes, folded.blocks, folded.fpr));
    Header { capacity, ..*folded }
}
