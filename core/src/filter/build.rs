//! Building filters from hashes, probing them, and adding to them.

use super::header::{Capacity, Header, SizeLimit, payload_mut};
use super::sparse;
use super::view::{Body, View};
use crate::error::{KindMismatch, Result};
use crate::kind::Kind;
use crate::layout::Layout;
use crate::memory::Buffer;
use crate::sizing::max_blocks;
use crate::{interrupt, memory, sizing};

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
    /// Sized for what it gets, at [`sizing::DEFAULT_FPR`], in layout `blocked`.
    fn default() -> Request {
        Request {
            capacity: None,
            fpr: sizing::DEFAULT_FPR,
            layout: Layout::Blocked,
        }
    }
}

impl Request {
    /// The header of an empty filter. Errors: those of [`sizing::size_for_capacity`];
    /// [`crate::Class::TooLarge`] if it would have more than `limit` bytes when dense.
    pub fn header<'a>(&self, limit: u64) -> Result<Header<'a>> {
        let Some(capacity) = self.capacity else {
            return sizing::check_fpr(self.layout, self.fpr)
                .map(|()| Header::without_size(self.layout, self.fpr));
        };
        let header = Header::with_size(
            sizing::size_for_capacity(self.layout, capacity, self.fpr)?,
            Kind::NONE,
        );
        header.check_size(limit).map(|()| header)
    }
}

/// The header of an unsized build that ended. Errors: [`crate::Class::TooLarge`] for more than
/// `limit` bytes.
pub fn size_unsized_build<'a>(
    header: &Header<'a>,
    elements: usize,
    limit: u64,
) -> Result<Header<'a>> {
    if !header.is_unsized() || elements == 0 {
        return Ok(*header);
    }
    let settled = Header::with_size(
        sizing::power_of_two_size(header.layout, elements as u64, header.fpr)?,
        header.kind,
    );
    settled.check_size(limit).map(|()| settled)
}

/// The header of an unsized build that became dense before it had all elements. It has the most
/// blocks, a power of two, that a filter of at most `limit` bytes can have, and can be folded to
/// the size that any number of elements needs. Errors: those of [`sizing::power_of_two_size`];
/// [`crate::Class::TooLarge`] if not even the smallest filter fits.
pub fn largest_header<'a>(header: &Header<'a>, limit: u64) -> Result<Header<'a>> {
    let size = sizing::power_of_two_size(header.layout, 1, header.fpr)?;
    let mut largest = Header {
        capacity: Capacity::ToBeFolded,
        ..Header::with_size(size, header.kind)
    };
    largest.check_size(limit)?;
    loop {
        let blocks = largest.blocks * 2;
        let twice = Header { blocks, base_blocks: blocks, ..largest };
        if twice.dense_bytes() > limit || blocks > max_blocks(header.layout) {
            return Ok(largest);
        }
        largest = twice;
    }
}

/// Ends an unsized build that became dense early: folds it to the smallest power of two of blocks
/// that keeps the rate with so many elements. Errors: [`crate::Class::TooLarge`] for more than
/// `limit` bytes.
pub fn fold_unsized_build<B: Buffer>(
    header: &Header<'_>,
    bits: &[u8],
    elements: u64,
    limit: u64,
) -> Result<B> {
    let mut size = sizing::power_of_two_size(header.layout, elements, header.fpr)?;
    if size.blocks > header.blocks {
        Header::with_size(size, header.kind).check_size(limit)?;
        // The bits can't be separated into more blocks again. The capacity is what this size holds.
        size.blocks = header.blocks;
        size.capacity = sizing::capacity_of(size.shape(), header.fpr);
    }
    let sized = Header::with_size(size, header.kind);
    let settled = Header { base_blocks: header.base_blocks.min(size.blocks), ..sized };
    settled.check_size(limit)?;
    let mut value: B = settled.dense();
    let payload = payload_mut(&mut value, &settled);
    header.layout.fold(bits, payload, header.blocks / settled.blocks);
    Ok(value)
}

/// The filter of these distinct hashes, which ascend. If `header` has no size, it has the smallest
/// power of two of blocks that keeps the rate. Errors: [`crate::Class::TooLarge`] for more than
/// `limit` bytes.
pub fn from_hashes<B: Buffer>(header: &Header<'_>, hashes: &[u64], limit: u64) -> Result<B> {
    from_more_hashes(header, hashes, SizeLimit { max_bytes: limit, given_payload_bytes: 0 })
}

/// The same for the elements of an existing filter, whose payload has `given` bytes, and more: the
/// result may exceed the limit up to that size.
fn from_more_hashes<B: Buffer>(header: &Header<'_>, hashes: &[u64], limit: SizeLimit) -> Result<B> {
    let header = size_unsized_build(header, hashes.len(), limit.max_bytes)?;
    if header.fits_sparse(hashes.len()) {
        return list_of(&header, hashes, limit);
    }
    header.check_growth(header.payload_bytes(), limit)?;
    let mut value: B = header.dense();
    header.shape().insert_all(payload_mut(&mut value, &header), hashes);
    Ok(value)
}

/// The list of these hashes, in ascending order, with the check of its size by
/// [`Header::check_growth`].
pub(super) fn list_of<B: Buffer>(
    header: &Header<'_>,
    hashes: &[u64],
    limit: SizeLimit,
) -> Result<B> {
    header.check_growth(size_of_val(hashes) as u64, limit)?;
    let mut value: B = header.sparse(hashes.len());
    write_hashes(payload_mut(&mut value, header), hashes);
    Ok(value)
}

/// Writes hashes to the payload of a list of as many.
pub(super) fn write_hashes(payload: &mut [u8], hashes: &[u64]) {
    let slots = payload.as_chunks_mut::<8>().0.iter_mut().zip(hashes);
    interrupt::cancellable(slots).for_each(|(slot, hash)| *slot = hash.to_le_bytes());
}

/// Sets the bits of a sparse filter's elements in a dense payload of its size.
pub(crate) fn insert_entries(payload: &mut [u8], header: &Header<'_>, entries: &[[u8; 8]]) {
    let mut batch = [0u64; 256];
    for entries in entries.chunks(batch.len()) {
        let filled = &mut batch[..entries.len()];
        filled
            .iter_mut()
            .zip(sparse::values(entries))
            .for_each(|(slot, hash)| *slot = hash);
        header.shape().insert_all(payload, filled);
        interrupt::check();
    }
}

/// Whether the element with this hash may be in the filter.
#[inline]
pub fn contains(view: &View<'_>, hash: u64) -> bool {
    let h = &view.header;
    match view.body {
        Body::Dense(bits) => h.shape().contains(bits, hash),
        Body::Sparse(entries) => sparse::contains(entries, hash),
    }
}

/// Prefetches the memory that a probe for this element of a dense filter needs.
#[inline]
pub fn prefetch(view: &View<'_>, hash: u64) {
    if let Body::Dense(bits) = view.body {
        view.header.shape().prefetch(bits, hash);
    }
}

/// The kind of a filter to which an element is added, or in which it is probed. Errors:
/// [`KindMismatch::Element`].
pub fn unify_with_element<'a>(held: Kind<'a>, given: Kind<'a>) -> Result<Kind<'a>> {
    held.unify(given).ok_or_else(|| {
        KindMismatch::Element { filter: held.to_string(), element: given.to_string() }.into()
    })
}

/// The filter with more elements, whose hashes ascend; one of no size gets the size that these
/// need. Errors: [`KindMismatch::Element`]; [`crate::Class::TooLarge`] if it would grow to more
/// than `limit` bytes.
pub fn add_hashes<B: Buffer>(
    view: &View<'_>,
    kind: Kind<'_>,
    hashes: &[u64],
    limit: u64,
) -> Result<B> {
    let header = Header {
        kind: unify_with_element(view.header.kind, kind)?,
        ..view.header
    };
    match view.body {
        Body::Sparse([]) => from_hashes(&header, hashes, limit),
        Body::Sparse(entries) => {
            let mut all = memory::with_capacity(entries.len() + hashes.len());
            all.extend(interrupt::cancellable(sparse::values(entries)));
            let sorted = all.len();
            all.extend(hashes);
            let distinct = sparse::sort_distinct(&mut all, sorted);
            from_more_hashes(
                &header,
                &all[..distinct],
                SizeLimit {
                    max_bytes: limit,
                    given_payload_bytes: view.payload_bytes() as u64,
                },
            )
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
