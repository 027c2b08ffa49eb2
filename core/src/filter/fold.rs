//! Smaller sizes for a filter with fewer elements than its capacity.
//!
//! ```text
//! list   halved while a list of its length may have that size; then it becomes bits
//! bits   halved: neighbouring blocks are ORed
//! ```

use super::buffer::Buffer;
use super::build::insert_entries;
use super::estimate::{rate_of_bits, rate_of_hashes};
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
    let mut header = *h;
    // Its bits, once they are no longer those of `view`.
    let mut folded: Option<Vec<u8>> = None;
    while let Some(half) = half(&header, fpr) {
        let (rate, bits) = match view.body {
            Body::Sparse(entries) if half.fits_sparse(entries.len()) => (rate_of_hashes(&half, entries), None),
            body => {
                let mut bits = memory::zeroed(half.payload_bytes() as usize);
                match (&folded, body) {
                    (Some(own), _) => h.layout.fold(own, &mut bits, 2),
                    (None, Body::Dense(own)) => h.layout.fold(own, &mut bits, 2),
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
        header.capacity = Capacity::Elements(capacity_of(h.layout, h.num_hashes, header.blocks, fpr));
    }
    let Some(bits) = folded else { return Ok(View { header, body: view.body }.to_buffer()) };
    let mut value: B = header.dense();
    interrupt::copy(payload_mut(&mut value, &header), &bits);
    Ok(value)
}

/// The header of half the size, if that is a whole number of blocks.
fn half<'a>(h: &Header<'a>, fpr: f64) -> Option<Header<'a>> {
    if h.is_unsized() || !h.blocks.is_multiple_of(2) {
        return None;
    }
    let blocks = h.blocks / 2;
    Some(Header { blocks, base_blocks: gcd(h.base_blocks, blocks), fpr, ..*h })
}
