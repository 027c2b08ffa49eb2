//! Building filters from hashes, probing them, and adding to them.

use super::header::{Capacity, Header, SizeLimit, payload_mut};
use super::sparse;
use super::view::{Body, View};
use crate::error::{KindMismatch, Result};
use crate::kind::Kind;
use crate::layout::Layout;
use crate::memory::{Buffer, List};
use crate::sizing::max_blocks;
use crate::{interrupt, sizing};

/// The parameters of a build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Distinct elements to make room for; `None` sizes the filter for the elements that it gets.
    pub capacity: Option<u64>,
    /// The false positive rate at that capacity.
    pub fpr: f64,
    /// The layout.
    pub layout: Layout,
}

impl Default for Request {
    /// Returns a request for a filter that is sized for the elements that it gets, at
    /// [`sizing::DEFAULT_FPR`], in layout `blocked`.
    fn default() -> Request {
        Request {
            capacity: None,
            fpr: sizing::DEFAULT_FPR,
            layout: Layout::Blocked,
        }
    }
}

impl Request {
    /// Returns the header of an empty filter as requested, without a key kind.
    ///
    /// Fails if the layout can't keep the rate, and with [`crate::Class::TooLarge`] if the filter
    /// would have more than `limit` bytes as stored when dense.
    pub fn header<'a>(&self, limit: u64) -> Result<Header<'a>> {
        let Some(capacity) = self.capacity else {
            sizing::check_fpr(self.layout, self.fpr)?;
            return Ok(Header::without_size(self.layout, self.fpr));
        };
        let size = sizing::size_for_capacity(self.layout, capacity, self.fpr)?;
        let header = Header::with_size(size, Kind::NONE);
        header.check_size(limit)?;
        Ok(header)
    }
}

/// Returns the header of the filter of a build that has ended with `elements` distinct elements. If
/// the build was told a capacity, `header` has a size, and is returned as it is. Otherwise the
/// result gets the size that so many elements need; without elements it has no size either.
///
/// Fails with [`crate::Class::TooLarge`] if the filter would get more than `limit` bytes as stored
/// when dense.
pub fn size_unsized_build<'a>(
    header: &Header<'a>,
    elements: usize,
    limit: u64,
) -> Result<Header<'a>> {
    if !header.is_unsized() || elements == 0 {
        return Ok(*header);
    }
    let size = sizing::power_of_two_size(header.layout, elements as u64, header.fpr)?;
    let sized = Header::with_size(size, header.kind);
    sized.check_size(limit)?;
    Ok(sized)
}

/// Returns the header of the largest filter that has at most `limit` bytes as stored, and whose
/// number of blocks is a power of two. `header` says its layout, false positive rate and key kind;
/// its size is ignored.
///
/// A build that wasn't told how many elements to expect keeps their hashes. If there are too many
/// of them, it sets their bits in a filter of this size. When all elements have come,
/// [`fold_unsized_build`] folds the filter in half again and again, to the size that they need.
///
/// Fails if the layout can't keep the rate, and with [`crate::Class::TooLarge`] if not even the
/// smallest filter fits.
pub fn largest_header<'a>(header: &Header<'a>, limit: u64) -> Result<Header<'a>> {
    let size_for_one = sizing::power_of_two_size(header.layout, 1, header.fpr)?;
    let mut largest = Header {
        capacity: Capacity::ToBeFolded,
        ..Header::with_size(size_for_one, header.kind)
    };
    largest.check_size(limit)?;

    loop {
        let blocks = largest.blocks * 2;
        // Base blocks are those of a filter that was never merged: all of them.
        let twice_as_large = Header { blocks, base_blocks: blocks, ..largest };
        let fits = twice_as_large.dense_bytes() <= limit && blocks <= max_blocks(header.layout);
        if !fits {
            return Ok(largest);
        }
        largest = twice_as_large;
    }
}

/// Ends a build that wasn't told how many elements to expect, and returns its filter. It gets the
/// fewest blocks, a power of two, that keep the false positive rate with `elements` distinct
/// elements.
///
/// There were too many elements to keep their hashes. So the build has set their `bits` in a filter
/// of the size of [`largest_header`], which `header` describes. Now that the number of elements is
/// known, the bits are *folded*: neighbouring blocks are ORed, until as few blocks are left as
/// needed.
///
/// If the elements need more blocks than the bits have, the bits stay as they are. The filter then
/// has too many elements for its rate, and its header says for how many it would be right: its
/// capacity.
///
/// Fails with [`crate::Class::TooLarge`] if the filter that the elements need, or the one that is
/// returned, would have more than `limit` bytes as stored.
pub fn fold_unsized_build<B: Buffer>(
    header: &Header<'_>,
    bits: &[u8],
    elements: u64,
    limit: u64,
) -> Result<B> {
    let mut size = sizing::power_of_two_size(header.layout, elements, header.fpr)?;
    if size.blocks > header.blocks {
        // The bits have as many blocks as the limit allowed when the build began. So this fails,
        // unless the limit has risen since.
        Header::with_size(size, header.kind).check_size(limit)?;
        // Folded bits can't be separated into more blocks again.
        size.blocks = header.blocks;
        size.capacity = sizing::capacity_of(size.shape(), header.fpr);
    }

    // Base blocks are the greatest common divisor of all numbers of blocks that the filter had.
    // These are powers of two, so it is the lesser one.
    let base_blocks = header.base_blocks.min(size.blocks);
    let folded_header = Header { base_blocks, ..Header::with_size(size, header.kind) };
    folded_header.check_size(limit)?;

    let mut value: B = folded_header.dense();
    let payload = payload_mut(&mut value, &folded_header);
    let factor = header.blocks / folded_header.blocks;
    header.layout.fold(bits, payload, factor);
    Ok(value)
}

/// Returns the filter with these elements, given by their hashes, which must be distinct and
/// ascending. If `header` has no size, the filter gets the one that the elements need.
///
/// Fails with [`crate::Class::TooLarge`] if the filter would have more than `limit` bytes as
/// stored.
pub fn from_hashes<B: Buffer>(header: &Header<'_>, hashes: &[u64], limit: u64) -> Result<B> {
    filter_of(header, hashes, SizeLimit::bytes(limit))
}

/// Returns the filter with these elements, given by their hashes, which must be distinct and
/// ascending. It is sparse if the hashes take no more bytes than bits would.
///
/// Fails with [`crate::Class::TooLarge`] if the filter is larger than `limit` allows.
fn filter_of<B: Buffer>(header: &Header<'_>, hashes: &[u64], limit: SizeLimit) -> Result<B> {
    let header = size_unsized_build(header, hashes.len(), limit.max_bytes)?;
    if header.fits_sparse(hashes.len()) {
        return sparse_filter(&header, hashes, limit);
    }
    header.check_growth(header.payload_bytes(), limit)?;
    let mut value: B = header.dense();
    let payload = payload_mut(&mut value, &header);
    header.shape().insert_all(payload, hashes);
    Ok(value)
}

/// Returns the sparse filter with these hashes, which must be distinct and ascending.
///
/// Fails with [`crate::Class::TooLarge`] if the filter is larger than `limit` allows.
pub(super) fn sparse_filter<B: Buffer>(
    header: &Header<'_>,
    hashes: &[u64],
    limit: SizeLimit,
) -> Result<B> {
    header.check_growth(size_of_val(hashes) as u64, limit)?;
    let mut value: B = header.sparse(hashes.len());
    write_hashes(payload_mut(&mut value, header), hashes);
    Ok(value)
}

/// Writes hashes to the payload of a sparse filter, which must have room for exactly these. Checks
/// for interrupts.
pub(super) fn write_hashes(payload: &mut [u8], hashes: &[u64]) {
    let (entries, _) = payload.as_chunks_mut::<8>();
    for (entry, hash) in interrupt::cancellable(entries.iter_mut().zip(hashes)) {
        *entry = hash.to_le_bytes();
    }
}

/// Sets the bits of the elements of a sparse filter, given by the stored list of their hashes, in
/// `payload`: the bits of a dense filter, which must have the size that `header` tells.
///
/// Checks for interrupts, so a user can cancel it.
pub(crate) fn insert_list(payload: &mut [u8], header: &Header<'_>, list: &[[u8; 8]]) {
    // Hashes are decoded in batches, since `insert_all` prefetches memory for later ones. 256 are
    // far more than it looks ahead, and take 2 kB of the stack.
    let mut batch = [0; 256];
    for entries in list.chunks(batch.len()) {
        let hashes = &mut batch[..entries.len()];
        for (hash, entry) in hashes.iter_mut().zip(entries) {
            *hash = sparse::hash_in(entry);
        }
        header.shape().insert_all(payload, hashes);
        interrupt::check();
    }
}

/// Returns whether the element with this hash may be in the filter.
#[inline]
pub fn contains(view: &View<'_>, hash: u64) -> bool {
    match view.body {
        Body::Dense(bits) => view.header.shape().contains(bits, hash),
        Body::Sparse(list) => sparse::contains(list, hash),
    }
}

/// Prefetches the memory that a later probe of a dense filter for this element will read. Does
/// nothing if the filter is sparse.
#[inline]
pub fn prefetch(view: &View<'_>, hash: u64) {
    if let Body::Dense(bits) = view.body {
        view.header.shape().prefetch(bits, hash);
    }
}

/// Returns the kind that a filter of kind `filter` has once an element of kind `element` was added:
/// that of the element if it is the first one, else its own.
///
/// Fails with [`KindMismatch::Element`] if the filter has elements of another kind, so that the
/// element can be neither added nor probed.
pub fn unify_with_element<'a>(filter: Kind<'a>, element: Kind<'a>) -> Result<Kind<'a>> {
    filter.unify(element).ok_or_else(|| {
        let filter = filter.to_string();
        let element = element.to_string();
        KindMismatch::Element { filter, element }.into()
    })
}

/// Returns a copy of a filter with more elements of kind `kind`, given by their hashes, which must
/// be distinct and ascending.
///
/// An empty filter gets these elements as if it were built from them: if it has no size yet, it
/// gets the size that they need. A sparse filter, a list of its elements' hashes, stays a list as
/// long as the list takes no more bytes than the bits of a dense one would.
///
/// Fails with [`KindMismatch::Element`] if the filter has elements of another kind, and with
/// [`crate::Class::TooLarge`] if it would grow to more than `limit` bytes as stored.
pub fn add_hashes<B: Buffer>(
    view: &View<'_>,
    kind: Kind<'_>,
    hashes: &[u64],
    limit: u64,
) -> Result<B> {
    let kind = unify_with_element(view.header.kind, kind)?;
    let header = Header { kind, ..view.header };
    match view.body {
        Body::Sparse([]) => from_hashes(&header, hashes, limit),
        Body::Sparse(list) => {
            let mut all = List::with_capacity(list.len() + hashes.len());
            all.extend(interrupt::cancellable(sparse::hashes_in(list)));
            all.extend(hashes);
            // Some hashes may be in both; the list is sorted already.
            let num_distinct = sparse::sort_distinct(&mut all, list.len());

            let size_limit = SizeLimit {
                max_bytes: limit,
                given_payload_bytes: view.payload_bytes() as u64,
            };
            filter_of(&header, &all[..num_distinct], size_limit)
        }
        Body::Dense(_) => {
            let mut value: B = View { header, body: view.body }.to_buffer();
            let payload = payload_mut(&mut value, &header);
            header.shape().insert_all(payload, hashes);
            Ok(value)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
