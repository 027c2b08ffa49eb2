//! Smaller sizes for a filter that holds less than it was made for.

use super::buffer::Buffer;
use super::build::insert_entries;
use super::estimate;
use super::header::{Capacity, Header, payload_mut};
use super::merge::gcd;
use super::view::{Body, View};
use crate::error::Result;
use crate::sizing::{capacity_of, limits};
use crate::{interrupt, memory};

/// Halves a filter while its present rate stays at or under `fpr`. Where that made it smaller, `fpr` is its rate and
/// its capacity what the smaller size holds at it.
///
/// # Errors
/// Those of [`limits::check_fpr`].
pub fn fold<B: Buffer>(view: &View<'_>, fpr: f64) -> Result<B> {
    let h = &view.header;
    limits::check_fpr(h.layout, fpr)?;
    let halved = |blocks| Header { blocks, base_blocks: gcd(h.base_blocks, blocks), fpr, ..*h };
    let finish = |header: Header<'_>| {
        if header.blocks == h.blocks {
            return *h;
        }
        let capacity = Capacity::Elements(capacity_of(h.layout, h.num_hashes, header.blocks, fpr));
        Header { capacity, kind: h.kind, ..header }
    };
    let mut folded = *h;
    let mut bits = match view.body {
        Body::Dense(bits) => memory::copy(bits),
        Body::Sparse(entries) => {
            while folded.blocks.is_multiple_of(2)
                && !folded.is_unsized()
                && halved(folded.blocks / 2).fits_sparse(entries.len())
                && estimate::rate_of_hashes(&halved(folded.blocks / 2), entries) <= fpr
            {
                folded = halved(folded.blocks / 2);
            }
            if folded.is_unsized()
                || !folded.blocks.is_multiple_of(2)
                || halved(folded.blocks / 2).fits_sparse(entries.len())
            {
                return Ok(View { header: finish(folded), body: view.body }.to_buffer());
            }
            let mut bits = memory::zeroed(folded.payload_bytes() as usize);
            insert_entries(&mut bits, &folded, entries);
            bits
        }
    };
    let start = folded.blocks;
    while folded.blocks.is_multiple_of(2) {
        let half = halved(folded.blocks / 2);
        let mut half_bits = memory::zeroed(half.payload_bytes() as usize);
        h.layout.fold(&bits, &mut half_bits, 2);
        if estimate::rate_of_bits(&half, &half_bits) > fpr {
            break;
        }
        (folded, bits) = (half, half_bits);
    }
    if folded.blocks == start && matches!(view.body, Body::Sparse(_)) {
        return Ok(View { header: finish(folded), body: view.body }.to_buffer());
    }
    let header = finish(folded);
    let mut value: B = header.dense();
    interrupt::copy(payload_mut(&mut value, &header), &bits);
    Ok(value)
}
