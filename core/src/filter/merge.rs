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

use super::build::{contains, insert_entries, list_of};
use super::header::{Header, SizeLimit, payload_mut};
use super::sparse;
use super::view::{Body, View};
use crate::error::{Error, InvalidParameter, KindMismatch, Mismatch, Result};
use crate::interrupt;
use crate::kind::Kind;
use crate::layout::{Layout, and_bytes};
use crate::memory::{self, Buffer};
use crate::sizing::DEFAULT_FPR;

/// Greatest common divisor; that of 0 and n is n.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The header of the merged filter: the larger by blocks, capacity and rate. The rest is for
/// filters of no size.
pub(super) fn larger<'h, 'k>(a: &'h Header<'k>, b: &'h Header<'k>) -> &'h Header<'k> {
    let order = a
        .blocks
        .cmp(&b.blocks)
        .then(a.capacity.cmp(&b.capacity))
        .then(is_plain(b).cmp(&is_plain(a)));
    if order
        .then(a.fpr.total_cmp(&b.fpr))
        .then(b.layout.cmp(&a.layout))
        .is_lt()
    {
        b
    } else {
        a
    }
}

/// Whether this is the filter of no size with the default rate and layout, in place of which any
/// other is taken.
fn is_plain(h: &Header<'_>) -> bool {
    h.is_unsized() && h.layout == Layout::Blocked && h.fpr == DEFAULT_FPR
}

/// The header of two filters merged. Errors: [`KindMismatch::Filters`] for different key kinds,
/// [`InvalidParameter::Mismatch`] for other layouts or hashes or block counts that don't divide.
pub fn merged_header<'a>(a: &Header<'a>, b: &Header<'a>) -> Result<Header<'a>> {
    let kind = merged_kind(a.kind, b.kind)?;
    let (small, large) = (a.blocks.min(b.blocks), a.blocks.max(b.blocks));
    if small > 0 {
        let sizes = (!large.is_multiple_of(small)).then_some(Mismatch::Sizes);
        if let Some(why) = mismatch(a, b).or(sizes) {
            return Err(cannot_merge(a, b, why));
        }
    }
    Ok(Header {
        kind,
        base_blocks: gcd(a.base_blocks, b.base_blocks),
        ..*larger(a, b)
    })
}

/// `Some(reason)` if two filters can't be merged whatever their sizes.
pub(super) fn mismatch(a: &Header<'_>, b: &Header<'_>) -> Option<Mismatch> {
    let hashes = (a.num_hashes != b.num_hashes).then_some(Mismatch::Hashes);
    if a.layout == b.layout { hashes } else { Some(Mismatch::Layouts) }
}

pub(super) fn merged_kind<'a>(a: Kind<'a>, b: Kind<'a>) -> Result<Kind<'a>> {
    a.unify(b)
        .ok_or_else(|| KindMismatch::Filters { a: a.to_string(), b: b.to_string() }.into())
}

pub(crate) fn cannot_merge(a: &Header<'_>, b: &Header<'_>, why: Mismatch) -> Error {
    let larger = larger(a, b).size();
    InvalidParameter::Mismatch { why, a: a.size(), b: b.size(), larger }.into()
}

/// ORs D(view), spread to `blocks` blocks, into a dense payload.
pub fn or_into(payload: &mut [u8], blocks: u64, view: &View<'_>) {
    let h = &view.header;
    if h.is_unsized() {
        return;
    }
    let q = blocks / h.blocks;
    match view.body {
        Body::Dense(bits) => h.layout.spread(bits, payload, q),
        Body::Sparse(entries) if q == 1 => insert_entries(payload, h, entries),
        Body::Sparse([]) => {}
        Body::Sparse(entries) => {
            let mut own = memory::zeroed(h.payload_bytes() as usize);
            insert_entries(&mut own, h, entries);
            h.layout.spread(&own, payload, q);
        }
    }
}

/// The union of two filters. Errors: those of [`merged_header`]; [`crate::Class::TooLarge`] if the
/// result has more than `limit` bytes and is larger than both filters.
pub fn union<B: Buffer>(a: &View<'_>, b: &View<'_>, limit: u64) -> Result<B> {
    let header = merged_header(&a.header, &b.header)?;
    if a.header.is_unsized() || b.header.is_unsized() {
        let body = if a.header.is_unsized() { b.body } else { a.body };
        return Ok(View { header, body }.to_buffer());
    }
    let limit = SizeLimit {
        max_bytes: limit,
        given_payload_bytes: a.payload_bytes().max(b.payload_bytes()) as u64,
    };
    if a.header.blocks == b.header.blocks
        && let (Body::Sparse(x), Body::Sparse(y)) = (a.body, b.body)
        && (header.fits_sparse(x.len() + y.len())
            || header.fits_sparse(sparse::union(x, y).count()))
    {
        return list_of(&header, &memory::collect(sparse::union(x, y)), limit);
    }
    header.check_growth(header.payload_bytes(), limit)?;
    let mut value: B = header.dense();
    let payload = payload_mut(&mut value, &header);
    or_into(payload, header.blocks, a);
    or_into(payload, header.blocks, b);
    Ok(value)
}

/// The intersection of two filters, which is never larger than both. Errors: those of
/// [`merged_header`].
pub fn intersection<B: Buffer>(a: &View<'_>, b: &View<'_>) -> Result<B> {
    let header = merged_header(&a.header, &b.header)?;
    if a.header.is_unsized() || b.header.is_unsized() {
        return Ok(header.sparse(0));
    }
    let (entries, other) = match (a.body, b.body) {
        (Body::Sparse(x), Body::Sparse(y)) if y.len() < x.len() => (y, a),
        (Body::Sparse(x), _) => (x, b),
        (_, Body::Sparse(y)) => (y, a),
        (Body::Dense(_), Body::Dense(_)) => {
            let mut value: B = header.dense();
            let payload = payload_mut(&mut value, &header);
            or_into(payload, header.blocks, a);
            let mut spread = memory::zeroed(payload.len());
            or_into(&mut spread, header.blocks, b);
            and_bytes(payload, &spread);
            return Ok(value);
        }
    };
    let common =
        interrupt::cancellable(sparse::values(entries)).filter(|&hash| contains(other, hash));
    list_of(
        &header,
        &memory::collect(common),
        SizeLimit { max_bytes: u64::MAX, given_payload_bytes: 0 },
    )
}

#[cfg(test)]
pub(super) mod tests;
