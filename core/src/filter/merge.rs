//! Union, intersection, and the resizing that they are based on.
//!
//! Two filters may be merged when layout, hashes and key kind agree and one block count divides the
//! other. With D(v) the dense form of v at its own block count:
//!
//! ```text
//! D(a | b) = spread(D(a)) | spread(D(b))        spread: block i ──▶ blocks q·i … q·i + q - 1
//! D(a & b) = spread(D(a)) & spread(D(b))        when both are dense
//!                                               fold:   blocks q·i … q·i + q - 1 ──▶ their OR, block i
//! ```
//!
//! Union is a commutative, idempotent monoid, bit for bit. That is why a union stays sparse only
//! when both inputs are sparse at the same block count: resizing a sparse filter losslessly looks
//! tempting and breaks associativity.
//!
//! An intersection with a sparse filter is sparse: those of its hashes that the other filter has
//! too. Since a filter has a hash if and only if its spread form does, intersection is commutative
//! and associative as well.

use super::build::{contains, insert_list, sparse_filter};
use super::header::{Header, SizeLimit, payload_mut};
use super::sparse;
use super::view::{Body, View};
use crate::error::{Error, InvalidParameter, KindMismatch, Mismatch, Result};
use crate::interrupt;
use crate::kind::Kind;
use crate::layout::{Layout, and_bytes};
use crate::memory::{Buffer, List};
use crate::sizing::DEFAULT_FPR;
use std::cmp::Ordering;

/// Returns the greatest common divisor; that of 0 and `b` is `b`.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the header from which a merged filter takes its size, capacity and rate: the one of the
/// two with more blocks. If they have equally many, it is the one of greater capacity; then the one
/// that isn't the default header; then the one with the greater false positive rate; then the one
/// whose layout comes first. The result doesn't depend on the order of the two.
pub(super) fn larger<'h, 'k>(a: &'h Header<'k>, b: &'h Header<'k>) -> &'h Header<'k> {
    let by_blocks = a.blocks.cmp(&b.blocks);
    let by_capacity = a.capacity.cmp(&b.capacity);
    // Two filters of no size may differ in rate and layout. Any other one is preferred to that with
    // the default rate and layout, which nobody chose.
    let by_choice = is_default(b).cmp(&is_default(a));
    let by_rate = a.fpr.total_cmp(&b.fpr);
    let by_layout = b.layout.cmp(&a.layout);

    let order = by_blocks
        .then(by_capacity)
        .then(by_choice)
        .then(by_rate)
        .then(by_layout);
    if order == Ordering::Less { b } else { a }
}

/// Returns whether this is the header of the filter of no size that has the default rate and
/// layout.
fn is_default(header: &Header<'_>) -> bool {
    header.is_unsized() && header.layout == Layout::Blocked && header.fpr == DEFAULT_FPR
}

/// Returns the header of the filter that two filters merge to: that of the larger one, which has
/// more blocks or, of as many, the greater capacity, except for two fields:
///
/// - the key kind is that of the filter that has elements: an empty one may have none;
/// - the base blocks, the size to which bits can be folded without counting any twice, are the
///   greatest common divisor of both, since folding needs a divisor of each number of blocks.
///
/// Fails with [`KindMismatch::Filters`] if the filters have different key kinds, and with
/// [`InvalidParameter::Mismatch`] if they differ in layout or number of hashes, or if the larger
/// number of blocks isn't a multiple of the smaller one. A filter of no size can be merged with any
/// of its kind.
pub fn merged_header<'a>(a: &Header<'a>, b: &Header<'a>) -> Result<Header<'a>> {
    let kind = merged_kind(a.kind, b.kind)?;

    let has_both_sizes = a.blocks > 0 && b.blocks > 0;
    if has_both_sizes {
        if let Some(why) = mismatch(a, b) {
            return Err(cannot_merge(a, b, why));
        }
        let fewer = a.blocks.min(b.blocks);
        let more = a.blocks.max(b.blocks);
        if !more.is_multiple_of(fewer) {
            return Err(cannot_merge(a, b, Mismatch::Sizes));
        }
    }

    Ok(Header {
        kind,
        base_blocks: gcd(a.base_blocks, b.base_blocks),
        ..*larger(a, b)
    })
}

/// Returns the reason why two filters can't be merged whatever their sizes; `None` if there is
/// none.
pub(super) fn mismatch(a: &Header<'_>, b: &Header<'_>) -> Option<Mismatch> {
    if a.layout != b.layout {
        Some(Mismatch::Layouts)
    } else if a.num_hashes != b.num_hashes {
        Some(Mismatch::Hashes)
    } else {
        None
    }
}

/// Returns the key kind of two filters merged: that which both have, or the only one, if the other
/// filter never had an element.
///
/// Fails with [`KindMismatch::Filters`] if the kinds differ.
pub(super) fn merged_kind<'a>(a: Kind<'a>, b: Kind<'a>) -> Result<Kind<'a>> {
    a.unify(b)
        .ok_or_else(|| KindMismatch::Filters { a: a.to_string(), b: b.to_string() }.into())
}

/// Returns the error for two filters that can't be merged.
pub(crate) fn cannot_merge(a: &Header<'_>, b: &Header<'_>, why: Mismatch) -> Error {
    let larger = larger(a, b).size();
    InvalidParameter::Mismatch { why, a: a.size(), b: b.size(), larger }.into()
}

/// Adds the elements of a filter to the bits of another one, `payload`: ORs the filter's bits into
/// it. `payload` has `blocks` blocks, a multiple of the number that the filter has. So each block
/// of the filter is *spread*: ORed into the several blocks in which its elements might be in the
/// larger size. A filter of no size has no elements, and changes nothing.
///
/// Checks for interrupts, so a user can cancel it.
pub fn or_into(payload: &mut [u8], blocks: u64, view: &View<'_>) {
    let header = &view.header;
    if header.is_unsized() {
        return;
    }
    let factor = blocks / header.blocks;
    match view.body {
        Body::Dense(bits) => header.layout.spread(bits, payload, factor),
        Body::Sparse([]) => {}
        Body::Sparse(list) if factor == 1 => insert_list(payload, header, list),
        Body::Sparse(list) => {
            // A list stands for the bits of its own size, each block of which becomes several. In
            // the larger size the hashes would set the bits of only one of these.
            let mut own_bits = List::zeroed(header.payload_bytes() as usize);
            insert_list(&mut own_bits, header, list);
            header.layout.spread(&own_bits, payload, factor);
        }
    }
}

/// Returns the filter with the elements of both.
///
/// Fails if the filters can't be merged, as [`merged_header`] does, and with
/// [`crate::Class::TooLarge`] if the result has more than `limit` bytes as stored and is larger
/// than both filters.
pub fn union<B: Buffer>(a: &View<'_>, b: &View<'_>, limit: u64) -> Result<B> {
    let header = merged_header(&a.header, &b.header)?;

    // A filter of no size has no elements.
    if a.header.is_unsized() {
        return Ok(View { header, body: b.body }.to_buffer());
    }
    if b.header.is_unsized() {
        return Ok(View { header, body: a.body }.to_buffer());
    }

    let limit = SizeLimit {
        max_bytes: limit,
        given_payload_bytes: a.payload_bytes().max(b.payload_bytes()) as u64,
    };
    if let Some(hashes) = sparse_union(&header, a, b) {
        return sparse_filter(&header, &hashes, limit);
    }
    header.check_growth(header.payload_bytes(), limit)?;
    let mut value: B = header.dense();
    let payload = payload_mut(&mut value, &header);
    or_into(payload, header.blocks, a);
    or_into(payload, header.blocks, b);
    Ok(value)
}

/// Returns the hashes of the union of two filters, distinct and ascending, if the union is sparse
/// (a list of hashes); `None` if it has bits. It is sparse if both filters are, if they have
/// equally many blocks, and if the hashes take no more bytes than bits would. `header` is that of
/// the union.
fn sparse_union(header: &Header<'_>, a: &View<'_>, b: &View<'_>) -> Option<List<u64>> {
    let (Body::Sparse(list_a), Body::Sparse(list_b)) = (a.body, b.body) else {
        return None;
    };
    if a.header.blocks != b.header.blocks {
        return None;
    }
    // Hashes that are in both lists are counted only if it matters.
    let is_sparse = header.fits_sparse(list_a.len() + list_b.len())
        || header.fits_sparse(sparse::union(list_a, list_b).count());
    is_sparse.then(|| sparse::union(list_a, list_b).collect())
}

/// Returns the filter with the elements that both filters may have. A filter is *dense*, bits, or
/// *sparse*, a list of its elements' hashes. The intersection of two dense filters is dense and as
/// large as the larger one. If one is sparse, so is the intersection: it has those of its hashes
/// that the other filter has, too.
///
/// Fails if the filters can't be merged, as [`merged_header`] does.
pub fn intersection<B: Buffer>(a: &View<'_>, b: &View<'_>) -> Result<B> {
    let header = merged_header(&a.header, &b.header)?;

    // A filter of no size has no elements.
    if a.header.is_unsized() || b.header.is_unsized() {
        return Ok(header.sparse(0));
    }

    match (a.body, b.body) {
        (Body::Dense(_), Body::Dense(_)) => {
            let mut value: B = header.dense();
            let payload = payload_mut(&mut value, &header);
            // Both are spread to the same size first: ORing into zeros copies their bits.
            or_into(payload, header.blocks, a);
            let mut bits_of_b = List::zeroed(payload.len());
            or_into(&mut bits_of_b, header.blocks, b);
            and_bytes(payload, &bits_of_b);
            Ok(value)
        }
        // Each hash of one list is looked up in the other filter. Of two lists, the longer one is
        // searched, by halving.
        (Body::Sparse(list_a), Body::Sparse(list_b)) if list_b.len() < list_a.len() => {
            common_elements(&header, list_b, a)
        }
        (Body::Sparse(list), _) => common_elements(&header, list, b),
        (Body::Dense(_), Body::Sparse(list)) => common_elements(&header, list, a),
    }
}

/// Returns the sparse filter of those hashes of a list that another filter has, too. `header` is
/// that of the result. Checks for interrupts.
fn common_elements<B: Buffer>(
    header: &Header<'_>,
    list: &[[u8; 8]],
    other: &View<'_>,
) -> Result<B> {
    let hashes = interrupt::cancellable(sparse::hashes_in(list));
    let common = hashes.filter(|&hash| contains(other, hash)).collect::<List<_>>();
    // No more hashes than in the list, which was given.
    sparse_filter(header, &common, SizeLimit::bytes(u64::MAX))
}

#[cfg(test)]
pub(super) mod tests;
